// DualPI2: an L queue for scalable congestion controls and a C queue for the others, with coupled signals.
//
// Sources: RFC 9332 (appendix A, with the additions that it names: no PI signals while less than two packets wait, unexpected code
// points, overload, statistics), RFC 9331 section 5, and G. Gombos, M. Mouw, S. Laki, C. Papagianni, K. De Schepper, "Active
// Queue Management on the Tofino programmable switch: The (Dual)PI2 case", NOMS 2022.
//
// Queue 1 of a port is the L queue, queue 0 the C queue; the port's scheduler prefers L within bounds. Signals are given as a
// packet leaves its queue. PI controller and signals are in `common.p4`.

#include "common.p4"

control DualIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    // An operator's own classification, before that by ECN (RFC 9331 section 5.4): by source, then by DSCP. Code points stay.
    action low() {
        meta.low = 1;
    }

    action classic() { }

    action by_ecn() { }

    table sources4 {
        key = { hdr.ipv4.src : lpm; }
        actions = { low; classic; by_ecn; }
        default_action = by_ecn();
        size = 1024;
    }

    table sources6 {
        key = { hdr.ipv6.src : lpm; }
        actions = { low; classic; by_ecn; }
        default_action = by_ecn();
        size = 1024;
    }

    table dscps {
        key = { meta.dscp : exact; }
        actions = { low; classic; by_ecn; }
        default_action = by_ecn();
        size = 64;
    }

    Forwarding() forwarding;
    Buffer() buffer;

    apply {
        forwarding.apply(hdr, meta, standard_metadata);
        if (meta.managed == 1) {
            if (meta.l4s == 1) {
                bool known = false;
                if (meta.classified == 1) {
                    if (hdr.ipv4.isValid()) {
                        known = sources4.apply().hit;
                    } else if (hdr.ipv6.isValid()) {
                        known = sources6.apply().hit;
                    }
                    if (!known) {
                        known = dscps.apply().hit;
                    }
                }
                // ECT(1) and CE.
                if (!known && meta.ecn[0:0] == 1) {
                    low();
                }
            }
            standard_metadata.priority = (bit<3>) meta.low;
            buffer.apply(meta, standard_metadata);
        }
    }
}

control DualEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
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
            bit<32> slot = port << 1 | (bit<32>) meta.low;
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
                // Section 5.1 of RFC 9331: without L4S, ECT(1) is as if not ECN-capable. CE is always.
                bool scalable = meta.l4s == 1 && meta.ecn[0:0] == 1;
                bool capable = meta.ecn[1:1] == 1 || scalable;
                bool due;
                if (meta.low == 1) {
                    prob_t native = 0;
                    time_t time = standard_metadata.deq_timedelta;
                    if (standard_metadata.deq_qdepth >= config.behind) {
                        if (time >= config.max_th) {
                            native = ONE;
                        } else if (time > config.min_th) {
                            native = (prob_t) (time - config.min_th) * config.slope;
                        }
                    }
                    native = native > coupled ? native : coupled;
                    // p_max may be set lower than where marks saturate: overload is for both queues (RFC 9332 section 2.5.1.1).
                    if (coupled < ONE && base < config.p_max) {
                        if (scalable) {
                            linear.apply(config, slot, native, marks);
                        } else if (capable || config.policed == 0) {
                            // Classic packets that somebody wants here: the likelihood that goes with it, (p_L / k)^2.
                            squared.apply(config, slot, native * (prob_t) config.one_by_k >> 16, due);
                            marks = due && capable;
                            drops = due && !capable;
                        }
                    } else {
                        // Overload: drop as if Classic, and mark the rest.
                        squared.apply(config, slot, base, drops);
                        if (!drops) {
                            linear.apply(config, slot, native, marks);
                        }
                    }
                } else if (scalable) {
                    // ECT(1) that somebody wants here (RFC 9332 section 2.5.1.1).
                    if (base >= config.p_max) {
                        squared.apply(config, slot, base, drops);
                    }
                    if (!drops) {
                        linear.apply(config, slot, coupled, marks);
                    }
                } else {
                    squared.apply(config, slot, base, due);
                    drops = due && (!capable || base >= config.p_max);
                    marks = due && !drops;
                }
            }
            signal.apply(slot, marks, drops, hdr, meta, standard_metadata);
        }
    }
}

V1Switch(AqmParser(), AqmVerify(), DualIngress(), DualEgress(), AqmCompute(), AqmDeparser()) main;
