// Links: what the switch knows of each port. Rates are in kbit/s of frames.

// How often other traffic is measured, in microseconds.
const bit<48> MEASURING = 16384;
// A port whose turn comes this much later is measured by the time that has passed since; times beyond LONGEST count as that.
const bit<48> LATE = 2048;
const bit<48> LONGEST = 0x3f_ffff;

// A queue that never has fewer packets than this is drained, until it has as few as that. Fast links have more of them: `long_by`.
const bit<32> LONG = 8;
const bit<32> SHORT = 2;

// The fewest packets that a packet has left behind it in a port's queue, plus 1; 0: no packet has left. Egress writes it.
register<bit<32>>(PORTS) backlog;

// Of a managed port, by its number.
register<bit<32>>(PORTS) capacity;
register<bit<8>>(PORTS)  link_id;
register<bit<32>>(PORTS) flows;
// Sum of the weights of members that share what the others leave.
register<bit<32>>(PORTS) weights;
// Sum of the rates of members that another link, or their application, limits to less.
register<bit<32>>(PORTS) taken;
register<bit<32>>(PORTS) others;
register<bit<32>>(PORTS) other_bytes;
register<bit<32>>(PORTS) other_average;
// When a port was due to be measured, and when its bytes were taken.
register<bit<48>>(PORTS) measured_at;
register<bit<48>>(PORTS) counted_from;
// What is kept back for a while, so that a queue that has built up drains.
register<bit<32>>(PORTS) draining;
// How many packets more than LONG it takes for a queue to be long.
register<bit<32>>(PORTS) long_by;
// Counts changes.
register<bit<32>>(PORTS) epoch;
// The managed port whose turn it is after this one.
register<bit<16>>(PORTS) port_after;
// Places plus 1; 0: none.
register<bit<32>>(PORTS) head;
register<bit<32>>(PORTS) cursor;
register<bit<1>>(PORTS)  walk_wanted;
register<bit<48>>(PORTS) walk_at;

// Whose turn is next, and a port that something has changed at, plus 1.
register<bit<16>>(1) turn;
register<bit<16>>(1) urgent;

// The rate in kbit/s of bytes in so many microseconds, MEASURING or more: by the time's first five bits, within 3 %.
control RateOf(inout bit<32> bytes, in bit<48> spent) {
    bit<32> first = 0;
    bit<64> part = 0;

    action take(bit<64> reciprocal) {
        part = reciprocal;
    }
    // 2^20 divided by the middle of what begins with these bits.
    table reciprocals {
        key = { first : exact; }
        actions = { take; }
        const default_action = take(0);
        const entries = {
            16 : take(63550);
            17 : take(59919);
            18 : take(56680);
            19 : take(53773);
            20 : take(51150);
            21 : take(48771);
            22 : take(46603);
            23 : take(44620);
            24 : take(42799);
            25 : take(41121);
            26 : take(39569);
            27 : take(38130);
            28 : take(36792);
            29 : take(35545);
            30 : take(34380);
            31 : take(33288);
        }
    }

    apply {
        bit<8> shift = 30;
        first = (bit<32>) (spent > LONGEST ? LONGEST : spent) >> 10;
        if (first >= 256) {
            first = first >> 4;
            shift = shift + 4;
        }
        if (first >= 64) {
            first = first >> 2;
            shift = shift + 2;
        }
        if (first >= 32) {
            first = first >> 1;
            shift = shift + 1;
        }
        reciprocals.apply();
        bytes = (bit<32>) ((bit<64>) bytes * 8000 * part >> shift);
    }
}

// What others take of a link's rate, and whether its queue is to drain. Done when its turn has come.
control Measure(in bit<32> port, in bit<32> rate, in bit<48> now) {
    RateOf() rate_of;

    apply {
        bit<48> before;
        measured_at.read(before, port);
        if (now - before >= MEASURING) {
            // Traffic that does not take part, in kbit/s: what rises by much counts at once, what falls as a moving average.
            bit<32> bytes;
            bit<32> average;
            bit<32> used;
            bit<48> from;
            bool    late = now - before >= MEASURING + LATE;
            measured_at.write(port, late ? now : before + MEASURING);
            counted_from.read(from, port);
            counted_from.write(port, now);
            other_bytes.read(bytes, port);
            other_bytes.write(port, 0);
            other_average.read(average, port);
            if (late) {
                rate_of.apply(bytes, now - from);
            } else {
                bytes = (bit<32>) ((bit<64>) bytes * 8000 >> 14);
            }
            if (bytes > average + (rate >> 5)) {
                average = bytes;
            } else {
                average = average - (average >> 3) + (bytes >> 3);
            }
            other_average.write(port, average);
            others.read(used, port);
            bit<32> waiting;
            bit<32> drains;
            bit<32> drained;
            backlog.read(waiting, port);
            backlog.write(port, 0);
            draining.read(drained, port);
            bit<32> more;
            long_by.read(more, port);
            drains = waiting > LONG + more ? rate >> 6 : (waiting <= SHORT + (more >> 2) ? 0 : drained);
            if ((average > used ? average - used : used - average) > rate >> 7 || drains != drained) {
                bit<32> count;
                others.write(port, average);
                draining.write(port, drains);
                epoch.read(count, port);
                epoch.write(port, count + 1);
                walk_wanted.write(port, 1);
            }
        }
    }
}
