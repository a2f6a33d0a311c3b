// Meters to compare with: RFC 2697, RFC 2698 (by two ways), and a shaped queue.
//
// Sources: RFC 2697 (single rate three color marker) and RFC 2698 (two rate three color marker), both colour-blind, in bytes of IP as
// they say; names are theirs. Red packets are dropped, green and yellow ones pass.
//
// `meters` says by its action how a meter works:
//   - `rfc2697(cbs, ebs)`: CIR in the register `cir`;
//   - `rfc2698(cbs, pbs)`: CIR and PIR in the registers `cir` and `pir`;
//   - `v1model_meter()`: RFC 2698 by v1model's own meter, `frames`, which the control plane sets. It counts whole frames: for packets of
//     L bytes of IP behind an Ethernet header, a rate R of IP is R (L + 14) / L of `frames`, and its bursts are scaled alike;
//   - `shape(queue)`: no meter. The packet goes to that queue of its port; the switch's shaper of the queue, which counts frames as
//     well, holds it to the rate.
//
// Sizes and levels are in 1/65536 byte, rates in 1/65536 byte a microsecond. Buckets are to start full: the control plane writes
// `tc`, `te` and `tp`, and `updated`, when it adds a meter.

#include "common.p4"

// What `execute_meter` says.
const bit<2> RED = 2;
const bit<2> YELLOW = 1;
const bit<2> GREEN = 0;

struct metadata_t {
    meter_t  meter;
    // Sizes of the meter's buckets: of C, and of E or P.
    level_t  cbs;
    level_t  second;
}

parser StandardParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    HeadersParser() headers;

    state start {
        headers.apply(packet, hdr);
        transition accept;
    }
}

control StandardVerify(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control StandardIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    // Tokens in the buckets C, E (RFC 2697) and P (RFC 2698).
    register<level_t>(METERS) tc;
    register<level_t>(METERS) te;
    register<level_t>(METERS) tp;
    // Microseconds of the last packet.
    register<bit<48>>(METERS) updated;
    register<bit<32>>(METERS) cir;
    register<bit<32>>(METERS) pir;
    meter(METERS, MeterType.bytes) frames;

    counter(METERS, CounterType.packets_and_bytes) passed;
    counter(METERS, CounterType.packets_and_bytes) dropped;
    // Of those passed.
    counter(METERS, CounterType.packets_and_bytes) yellow;

    Forward() forwarding;
    Classify() classification;

    action drop() {
        mark_to_drop(standard_metadata);
    }

    action pass() { }

    action rfc2697(level_t cbs, level_t ebs) {
        meta.cbs = cbs;
        meta.second = ebs;
    }

    action rfc2698(level_t cbs, level_t pbs) {
        meta.cbs = cbs;
        meta.second = pbs;
    }

    action v1model_meter() { }

    action shape(bit<3> queue) {
        standard_metadata.priority = queue;
    }

    // A meter without an entry lets everything pass.
    table meters {
        key = { meta.meter : exact; }
        actions = { rfc2697; rfc2698; v1model_meter; shape; @defaultonly pass; }
        default_action = pass();
        size = 65536;
    }

    apply {
        bool goes;
        bool metered;
        forwarding.apply(hdr.ethernet, standard_metadata, goes);
        if (!goes) {
            // What goes nowhere takes no tokens.
            exit;
        }
        classification.apply(hdr, standard_metadata, meta.meter, metered);
        if (metered) {
            bit<32> meter = (bit<32>) meta.meter;
            bit<32> length = standard_metadata.packet_length - 14;
            if (hdr.vlan.isValid()) {
                length = length - 4;
            }
            level_t cost = (level_t) length << 16;
            bit<48> now = standard_metadata.ingress_global_timestamp;
            bit<48> then;
            updated.read(then, meter);
            bit<48> elapsed = now - then;
            // Longer than half an hour is as good as half an hour, and no sum below overflows.
            elapsed = elapsed > 0x7fffffff ? 48w0x7fffffff : elapsed;
            bit<32> per_us;
            cir.read(per_us, meter);
            level_t more = (level_t) elapsed * (level_t) per_us;
            level_t c;
            tc.read(c, meter);
            bool counts = true;
            bit<2> color = GREEN;
            switch (meters.apply().action_run) {
                rfc2697: {
                    // Section 3: what C has no room for goes to E.
                    level_t e;
                    te.read(e, meter);
                    c = c + more;
                    if (c > meta.cbs) {
                        e = e + (c - meta.cbs);
                        c = meta.cbs;
                    }
                    e = e > meta.second ? meta.second : e;
                    if (c >= cost) {
                        c = c - cost;
                    } else if (e >= cost) {
                        color = YELLOW;
                        e = e - cost;
                    } else {
                        color = RED;
                    }
                    tc.write(meter, c);
                    te.write(meter, e);
                    updated.write(meter, now);
                }
                rfc2698: {
                    // Section 3: P is asked first.
                    level_t p;
                    tp.read(p, meter);
                    c = c + more;
                    c = c > meta.cbs ? meta.cbs : c;
                    pir.read(per_us, meter);
                    p = p + (level_t) elapsed * (level_t) per_us;
                    p = p > meta.second ? meta.second : p;
                    if (p < cost) {
                        color = RED;
                    } else {
                        p = p - cost;
                        if (c < cost) {
                            color = YELLOW;
                        } else {
                            c = c - cost;
                        }
                    }
                    tc.write(meter, c);
                    tp.write(meter, p);
                    updated.write(meter, now);
                }
                v1model_meter: {
                    frames.execute_meter(meter, color);
                }
                shape: { }
                default: {
                    // A meter without an entry.
                    counts = false;
                }
            }
            if (color == RED) {
                dropped.count(meter);
                drop();
            } else if (counts) {
                passed.count(meter);
                if (color == YELLOW) {
                    yellow.count(meter);
                }
            }
        }
    }
}

control StandardEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    apply { }
}

control StandardCompute(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control StandardDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr);
    }
}

V1Switch(StandardParser(), StandardVerify(), StandardIngress(), StandardEgress(), StandardCompute(), StandardDeparser()) main;
