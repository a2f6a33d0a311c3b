// PI2: one queue, one PI controller, and signals of two strengths, for classic and for scalable congestion controls.
//
// Sources: K. De Schepper, O. Bondarenko, I.-J. Tsang, B. Briscoe, "PI2: A Linearized AQM for both Classic and Scalable TCP",
// CoNEXT 2016; G. Gombos et al. as `dualpi2.p4`; RFC 9332, whose C queue this is.
//
// Classic packets get the signal with likelihood p' squared, scalable ones (ECT(1), CE) with k p'. Signals are given as a packet
// leaves the queue. PI controller and signals are in `common.p4`.

#include "common.p4"

control Pi2Ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    Forwarding() forwarding;
    Buffer() buffer;

    apply {
        forwarding.apply(hdr, meta, standard_metadata);
        if (meta.managed == 1) {
            buffer.apply(meta, standard_metadata);
        }
    }
}

control Pi2Egress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    Configuration() configuration;
    Dequeue() dequeue;
    Pi() pi;
    Coupled() couple;
    Linear() linear;
    Squared() squared;
    Signal() signal;

    apply {
        if (meta.managed == 1) {
            bit<32> port = (bit<32>) standard_metadata.egress_port;
            bit<32> slot = port << 1;
            bit<32> waiting;
            time_t waited;
            dequeue.apply(slot, standard_metadata, waiting, waited);
            bool marks = false;
            bool drops = false;
            config_t config;
            bool configured;
            configuration.apply(standard_metadata, config, configured);
            if (configured) {
                prob_t base;
                prob_t coupled;
                pi.apply(port, config, waited, standard_metadata.egress_global_timestamp, base);
                if (waiting < config.spared) {
                    base = 0;
                }
                couple.apply(config, base, coupled);
                // Without L4S, ECT(1) is as if not ECN-capable (RFC 9331 section 5.1).
                bool scalable = meta.l4s == 1 && meta.ecn[0:0] == 1;
                bool capable = meta.ecn[1:1] == 1 || scalable;
                bool overload = base >= config.p_max;
                if (scalable) {
                    if (overload) {
                        squared.apply(config, slot, base, drops);
                    }
                    if (!drops) {
                        linear.apply(config, slot, coupled, marks);
                    }
                } else {
                    bool due;
                    squared.apply(config, slot, base, due);
                    drops = due && (!capable || overload);
                    marks = due && !drops;
                }
            }
            signal.apply(slot, marks, drops, hdr, meta, standard_metadata);
        }
    }
}

V1Switch(AqmParser(), AqmVerify(), Pi2Ingress(), Pi2Egress(), AqmCompute(), AqmDeparser()) main;
