// What `pi2_tofino.p4` and `dualpi2_tofino.p4` have in common: the data plane of G. Gombos et al., NOMS 2022, section III, in the form
// that it has on Tofino, written for v1model.
//
// The control plane runs the PI controller. It reads R1, the delay of the last Classic packet, and writes p' into R2 and R3. A packet
// reads or writes each of the three at most once, one write or one read, and each comparison is one that a stateful ALU makes beside
// its access; nothing is multiplied or divided. The buffer's limit is the traffic manager's. Probabilities are in 1/2^32; 1 itself is
// 2^32 - 1.

#include "frames.p4"
#include "statistics.p4"

// R1: how long the last Classic packet has waited. It stays when the queue is empty.
register<time_t>(PORTS) classic_delay;
// R2 and R3: p', for scalable and for Classic packets.
register<bit<32>>(PORTS) p_coupled;
register<bit<32>>(PORTS) p_squared;

// Where a packet goes, and whether and how the queues there are managed.
control Ports(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    Forward() forward;

    action manage(time_t step) {
        meta.managed = 1;
        meta.step = step;
    }

    action leave() { }

    // L packets that have waited longer than `step` are marked. Ports without an entry are not managed.
    table steps {
        key = { standard_metadata.egress_spec : exact; }
        actions = { manage; leave; }
        default_action = leave();
        size = 512;
    }

    apply {
        bool sent;
        forward.apply(hdr, standard_metadata, sent);
        if (sent) {
            steps.apply();
        }
    }
}

// For a scalable packet: due if p' > R/2, which has the likelihood 2 p'.
control Doubled(in bit<32> port, out bool due) {
    apply {
        bit<32> base;
        bit<32> draw;
        random(draw, 32w0, 32w0xffffffff);
        p_coupled.read(base, port);
        due = base > draw >> 1;
    }
}

// For a Classic packet: due if two random numbers are below p', which has the likelihood p'^2.
control Twice(in bit<32> port, out bool due) {
    apply {
        bit<32> base;
        bit<32> draw;
        bit<32> second;
        random(draw, 32w0, 32w0xffffffff);
        random(second, 32w0, 32w0xffffffff);
        draw = second > draw ? second : draw;
        p_squared.read(base, port);
        due = base > draw;
    }
}
