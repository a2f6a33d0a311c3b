// What `pi2.p4` and `dualpi2.p4` have in common: what is remembered of a port and its queues, the PI controller, and the two ways to
// say "with this likelihood". Units as in `frames.p4`; probabilities are in 1/2^32 (ONE is 1).

#include "frames.p4"
#include "statistics.p4"

typedef bit<64> prob_t;

const prob_t ONE = 0x1_0000_0000;
// Longer delays than a second count as a second: with gains of 23 bits no sum of the PI controller overflows. A longer time between
// two of its runs, in which nothing left, counts in units of 1024 us, up to 17 minutes.
const bit<48> MOST_TIME = 0xf_ffff;
const bit<8> ALPHA_SHIFT = 20;
const bit<8> LONG_SHIFT = 10;

// How a port's queues are managed.
struct config_t {
    // Of the PI controller in the program. A period of 0: the control plane sets p'.
    time_t  period;
    // Gains for a microsecond of delay, in 1/2^32: alpha for each microsecond that has gone by, too, and in 1/2^20 of that.
    time_t  target;
    bit<23> alpha;
    bit<23> beta;
    // Coupling factor in 1/16, and one over it in 1/65536; and from which p' on there is overload.
    bit<8>  k;
    bit<24> one_by_k;
    prob_t  p_max;
    // The native AQM of the L queue: a ramp from `min_th` to `max_th`, `slope` for each microsecond; only for a packet behind
    // which at least `behind` wait.
    time_t  min_th;
    time_t  max_th;
    prob_t  slope;
    bit<19> behind;
    // Random numbers, or RFC 9332's recurrence.
    bit<1>  dice;
    // Something else polices the L queue: packets in it that are not ECN-capable are left alone.
    bit<1>  policed;
    // While fewer bytes wait (two full packets; 0: never), the PI controller's signals are held back.
    bit<32> spared;
}

counter(SLOTS, CounterType.packets) overflowed;

// Bytes that wait; how long the last packet waited (0: none waits any more), which is what the control plane goes by; and since
// when the first packet waits, as far as it is known: when it came, if the queue was empty, else when the one before it had come.
register<bit<32>>(SLOTS) backlog;
register<time_t>(SLOTS) delay;
register<bit<48>>(SLOTS) since;
// p', from which everything else follows. The control plane writes it, or the PI controller in the program.
register<prob_t>(PORTS) p;
register<time_t>(PORTS) previous_delay;
register<bit<48>>(PORTS) updated;
// What RFC 9332's recurrence has added up.
register<prob_t>(SLOTS) signals;

// Where a packet goes, and whether queues are managed there.
control Forwarding(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    Forward() forward;

    action manage(bit<32> room, bit<1> l4s, bit<1> classified) {
        meta.managed = 1;
        meta.room = room;
        meta.l4s = l4s;
        meta.classified = classified;
    }

    action leave() { }

    // At how many waiting bytes in both queues a packet is still taken; whether there is L4S at all, and classifiers of the
    // operator's. Ports without an entry are not managed.
    table buffers {
        key = { standard_metadata.egress_spec : exact; }
        actions = { manage; leave; }
        default_action = leave();
        size = 512;
    }

    apply {
        bool sent;
        forward.apply(hdr, standard_metadata, sent);
        if (sent) {
            buffers.apply();
        }
    }
}

// How the queues of a packet's port are managed; `there`: somebody has said so.
control Configuration(in standard_metadata_t standard_metadata, out config_t config, out bool there) {
    action configure(
        time_t period, time_t target, bit<23> alpha, bit<23> beta, bit<8> k, bit<24> one_by_k, prob_t p_max, time_t min_th,
        time_t max_th, prob_t slope, bit<19> behind, bit<1> dice, bit<1> policed, bit<32> spared
    ) {
        config.period = period;
        config.target = target;
        config.alpha = alpha;
        config.beta = beta;
        config.k = k;
        config.one_by_k = one_by_k;
        config.p_max = p_max;
        config.min_th = min_th;
        config.max_th = max_th;
        config.slope = slope;
        config.behind = behind;
        config.dice = dice;
        config.policed = policed;
        config.spared = spared;
    }

    action none() { }

    table aqm {
        key = { standard_metadata.egress_port : exact; }
        actions = { configure; none; }
        default_action = none();
        size = 512;
    }

    apply {
        there = aqm.apply().hit;
    }
}

// Takes a packet into the buffer that a port's queues share, or drops it (RFC 9332 Fig. 3): there must be room for a full packet.
control Buffer(inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    apply {
        bit<32> slot = (bit<32>) standard_metadata.egress_spec << 1 | (bit<32>) meta.low;
        bit<32> own;
        bit<32> other;
        arrived.count(slot);
        backlog.read(own, slot);
        backlog.read(other, slot ^ 1);
        if (own + other > meta.room) {
            overflowed.count(slot);
            meta.managed = 0;
            mark_to_drop(standard_metadata);
        } else {
            backlog.write(slot, own + standard_metadata.packet_length);
            if (own == 0) {
                since.write(slot, standard_metadata.ingress_global_timestamp);
            }
        }
    }
}

// Takes a packet out of the buffer. `waiting`: bytes that waited, this packet included; `waited`: how long the first packet of
// either queue has waited, whichever is longer (an empty queue's has not).
control Dequeue(in bit<32> slot, in standard_metadata_t standard_metadata, out bit<32> waiting, out time_t waited) {
    Waits() waits;

    apply {
        bit<48> now = standard_metadata.egress_global_timestamp;
        time_t time = standard_metadata.deq_timedelta;
        bit<32> own;
        bit<32> other;
        backlog.read(own, slot);
        backlog.read(other, slot ^ 1);
        waiting = own + other;
        waited = time;
        if (other != 0) {
            bit<48> then;
            since.read(then, slot ^ 1);
            bit<48> longer = now - then;
            // More than an hour does not fit, and is no delay.
            waited = longer > (bit<48>) time && longer <= 0xffff_ffff ? (time_t) longer : time;
        }
        // An empty queue has no bytes and no delay, whatever has been lost on the way.
        if (standard_metadata.deq_qdepth == 0) {
            backlog.write(slot, 0);
            delay.write(slot, 0);
        } else {
            backlog.write(slot, own |-| standard_metadata.packet_length);
            delay.write(slot, time);
            since.write(slot, now - (bit<48>) time);
        }
        waits.apply(slot, time);
    }
}

// The PI controller (RFC 9332 Fig. 8), run by a packet that leaves when a period is over: p' from the longer delay of both queues.
// The integral part goes with the time since the last run, as alpha goes with Tupdate, so that packets need not come on the period.
control Pi(in bit<32> port, in config_t config, in time_t waited, in bit<48> now, out prob_t base) {
    apply {
        p.read(base, port);
        if (config.period != 0) {
            bit<48> then;
            updated.read(then, port);
            bit<48> elapsed = now - then;
            if (elapsed >= (bit<48>) config.period) {
                time_t before;
                previous_delay.read(before, port);
                bit<8> shift = ALPHA_SHIFT;
                if (elapsed > MOST_TIME) {
                    elapsed = elapsed >> LONG_SHIFT;
                    elapsed = elapsed > MOST_TIME ? MOST_TIME : elapsed;
                    shift = ALPHA_SHIFT - LONG_SHIFT;
                }
                int<64> time = (int<64>) (bit<64>) (waited > (time_t) MOST_TIME ? (time_t) MOST_TIME : waited);
                int<64> above = time - (int<64>) (bit<64>) config.target;
                int<64> change = time - (int<64>) (bit<64>) before;
                int<64> integral = (int<64>) (bit<64>) elapsed * (int<64>) (bit<64>) config.alpha * above;
                int<64> next = (int<64>) base + (integral >> shift) + (int<64>) (bit<64>) config.beta * change;
                next = next < 0 ? 64s0 : next;
                base = (prob_t) next;
                base = base > ONE ? ONE : base;
                p.write(port, base);
                previous_delay.write(port, (time_t) (bit<64>) time);
                updated.write(port, now);
            }
        }
    }
}

// k p', one at most (RFC 9332 equation 3).
control Coupled(in config_t config, in prob_t base, out prob_t coupled) {
    apply {
        coupled = base * (prob_t) config.k >> 4;
        coupled = coupled > ONE ? ONE : coupled;
    }
}

// Whether a signal is due that has this likelihood.
control Linear(in config_t config, in bit<32> slot, in prob_t likelihood, out bool due) {
    apply {
        if (config.dice == 1) {
            bit<32> die;
            random(die, 32w0, 32w0xffffffff);
            due = (prob_t) die < likelihood;
        } else {
            // recur() of RFC 9332 Fig. 4.
            prob_t sum;
            signals.read(sum, slot);
            sum = sum + likelihood;
            due = sum > ONE;
            sum = due ? sum - ONE : sum;
            signals.write(slot, sum);
        }
    }
}

// The same with the square of a likelihood: the larger of two random numbers has to be below it.
control Squared(in config_t config, in bit<32> slot, in prob_t root, out bool due) {
    apply {
        if (config.dice == 1) {
            bit<32> die;
            bit<32> second;
            random(die, 32w0, 32w0xffffffff);
            random(second, 32w0, 32w0xffffffff);
            die = second > die ? second : die;
            due = (prob_t) die < root;
        } else {
            prob_t sum;
            signals.read(sum, slot);
            // 1 itself has no room for its square.
            sum = sum + (root == ONE ? ONE : root * root >> 32);
            due = sum > ONE;
            sum = due ? sum - ONE : sum;
            signals.write(slot, sum);
        }
    }
}
