// PI2 as it runs on Tofino: one queue, the PI controller in the control plane.
//
// Source: G. Gombos, M. Mouw, S. Laki, C. Papagianni, K. De Schepper, "Active Queue Management on the Tofino programmable switch: The
// (Dual)PI2 case", NOMS 2022, section III-A and Fig. 2. What it leaves open is as RFC 9332 has it: ECT(0) is Classic and marked, CE is
// scalable.

#include "tofino.p4"

control Pi2Ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    Ports() ports;

    apply {
        ports.apply(hdr, meta, standard_metadata);
        if (meta.managed == 1) {
            arrived.count((bit<32>) standard_metadata.egress_spec << 1);
        }
    }
}

control Pi2Egress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    Waits() waits;
    Doubled() doubled;
    Twice() twice;
    Signal() signal;

    apply {
        if (meta.managed == 1) {
            bit<32> port = (bit<32>) standard_metadata.egress_port;
            bit<32> slot = port << 1;
            time_t time = (time_t) (standard_metadata.egress_global_timestamp - standard_metadata.ingress_global_timestamp);
            waits.apply(slot, time);
            classic_delay.write(port, time);
            bool marks = false;
            bool drops = false;
            if (meta.ecn[0:0] == 1) {
                doubled.apply(port, marks);
            } else {
                bool due;
                twice.apply(port, due);
                marks = due && meta.ecn == ECT0;
                drops = due && meta.ecn == NOT_ECT;
            }
            signal.apply(slot, marks, drops, hdr, meta, standard_metadata);
        }
    }
}

V1Switch(AqmParser(), AqmVerify(), Pi2Ingress(), Pi2Egress(), AqmCompute(), AqmDeparser()) main;
