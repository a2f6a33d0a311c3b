// DualPI2 as it runs on Tofino: an L queue for scalable and a C queue for Classic packets, the PI controller in the control plane.
//
// Source: G. Gombos, M. Mouw, S. Laki, C. Papagianni, K. De Schepper, "Active Queue Management on the Tofino programmable switch: The
// (Dual)PI2 case", NOMS 2022, section III-B and Fig. 3. What it leaves open is as RFC 9332 has it: ECT(0) is Classic and marked, CE is
// scalable. L packets are never dropped; from p' = 0.5 on all of them are marked, and the scheduler alone protects C.
//
// Queue 1 of a port is the L queue, queue 0 the C queue.

#include "tofino.p4"

control DualIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    Ports() ports;

    apply {
        ports.apply(hdr, meta, standard_metadata);
        if (meta.managed == 1) {
            // ECT(1) and CE.
            meta.low = meta.ecn[0:0];
            standard_metadata.priority = (bit<3>) meta.low;
            arrived.count((bit<32>) standard_metadata.egress_spec << 1 | (bit<32>) meta.low);
        }
    }
}

control DualEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    Waits() waits;
    Doubled() doubled;
    Twice() twice;
    Signal() signal;

    apply {
        if (meta.managed == 1) {
            bit<32> port = (bit<32>) standard_metadata.egress_port;
            bit<32> slot = port << 1 | (bit<32>) meta.low;
            time_t time = (time_t) (standard_metadata.egress_global_timestamp - standard_metadata.ingress_global_timestamp);
            waits.apply(slot, time);
            bool marks = false;
            bool drops = false;
            if (meta.low == 1) {
                bool coupled;
                doubled.apply(port, coupled);
                marks = coupled || time > meta.step;
            } else {
                classic_delay.write(port, time);
                bool due;
                twice.apply(port, due);
                marks = due && meta.ecn == ECT0;
                drops = due && meta.ecn == NOT_ECT;
            }
            signal.apply(slot, marks, drops, hdr, meta, standard_metadata);
        }
    }
}

V1Switch(AqmParser(), AqmVerify(), DualIngress(), DualEgress(), AqmCompute(), AqmDeparser()) main;
