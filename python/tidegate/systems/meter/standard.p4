// The meters that the friendly one is compared with: RFC 2697, RFC 2698 (by two ways), and a shaped queue.
//
// Sources: RFC 2697 (single rate three color marker) and RFC 2698 (two rate three color marker), both colour-blind, in bytes of IP as
// they say; names are theirs. Red packets are dropped, green and yellow ones pass. Parser, forwarding and classification as in
// meter.p4.
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

#include <core.p4>
#include <v1model.p4>

const bit<32> METERS = 65536;

const bit<16> TYPE_IPV4 = 0x0800;
const bit<16> TYPE_IPV6 = 0x86dd;
const bit<16> TYPE_VLAN = 0x8100;

const bit<8> PROTOCOL_TCP = 6;
const bit<8> PROTOCOL_UDP = 17;

// What `execute_meter` says.
const bit<2> RED = 2;
const bit<2> YELLOW = 1;
const bit<2> GREEN = 0;

typedef bit<16> meter_t;
// Bytes, in 1/65536.
typedef bit<64> level_t;

header ethernet_t {
    bit<48> dst;
    bit<48> src;
    bit<16> type;
}

header vlan_t {
    bit<16> tag;
    bit<16> type;
}

header ipv4_t {
    bit<4>  version;
    bit<4>  ihl;
    bit<6>  dscp;
    bit<2>  ecn;
    bit<16> total_length;
    bit<16> identification;
    bit<3>  flags;
    bit<13> fragment_offset;
    bit<8>  ttl;
    bit<8>  protocol;
    bit<16> checksum;
    bit<32> src;
    bit<32> dst;
}

header ipv6_t {
    bit<4>   version;
    bit<6>   dscp;
    bit<2>   ecn;
    bit<20>  flow_label;
    bit<16>  payload_length;
    bit<8>   next_header;
    bit<8>   hop_limit;
    bit<128> src;
    bit<128> dst;
}

header ports_t {
    bit<16> src;
    bit<16> dst;
}

struct headers_t {
    ethernet_t ethernet;
    vlan_t     vlan;
    ipv4_t     ipv4;
    ipv6_t     ipv6;
    ports_t    ports;
}

struct metadata_t {
    meter_t  meter;
    bit<1>   metered;
    // Sizes of the meter's buckets: of C, and of E or P.
    level_t  cbs;
    level_t  second;
}

parser StandardParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) {
            TYPE_IPV4: ipv4;
            TYPE_IPV6: ipv6;
            TYPE_VLAN: vlan;
            default: accept;
        }
    }

    state vlan {
        packet.extract(hdr.vlan);
        transition select(hdr.vlan.type) {
            TYPE_IPV4: ipv4;
            TYPE_IPV6: ipv6;
            default: accept;
        }
    }

    state ipv4 {
        packet.extract(hdr.ipv4);
        // Ports are where they are expected only without options, and in the first fragment.
        transition select(hdr.ipv4.ihl, hdr.ipv4.fragment_offset, hdr.ipv4.protocol) {
            (5, 0, PROTOCOL_TCP): ports;
            (5, 0, PROTOCOL_UDP): ports;
            default: accept;
        }
    }

    state ipv6 {
        packet.extract(hdr.ipv6);
        transition select(hdr.ipv6.next_header) {
            PROTOCOL_TCP: ports;
            PROTOCOL_UDP: ports;
            default: accept;
        }
    }

    state ports {
        packet.extract(hdr.ports);
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

    action drop() {
        mark_to_drop(standard_metadata);
    }

    action to_port(bit<9> port) {
        standard_metadata.egress_spec = port;
    }

    action flood(bit<16> group) {
        standard_metadata.mcast_grp = group;
    }

    table forward {
        key = { hdr.ethernet.dst : exact; }
        actions = { to_port; flood; drop; }
        default_action = drop();
        size = 65536;
    }

    // Where packets go whose address `forward` does not know: by the port that they come in by. So the switch can be put into a wire.
    table wires {
        key = { standard_metadata.ingress_port : exact; }
        actions = { to_port; @defaultonly drop; }
        default_action = drop();
        size = 512;
    }

    // From packets to meters: the first table that knows the packet decides, `pass` too; a packet that none knows is not metered.
    action use(meter_t meter) {
        meta.meter = meter;
        meta.metered = 1;
    }

    action pass() { }

    table flows4 {
        key = {
            hdr.ipv4.src : exact;
            hdr.ipv4.dst : exact;
            hdr.ipv4.protocol : exact;
            hdr.ports.src : exact;
            hdr.ports.dst : exact;
        }
        actions = { use; pass; }
        default_action = pass();
        size = 65536;
    }

    table flows6 {
        key = {
            hdr.ipv6.src : exact;
            hdr.ipv6.dst : exact;
            hdr.ipv6.next_header : exact;
            hdr.ports.src : exact;
            hdr.ports.dst : exact;
        }
        actions = { use; pass; }
        default_action = pass();
        size = 65536;
    }

    table sources4 {
        key = { hdr.ipv4.src : lpm; }
        actions = { use; pass; }
        default_action = pass();
        size = 65536;
    }

    table sources6 {
        key = { hdr.ipv6.src : lpm; }
        actions = { use; pass; }
        default_action = pass();
        size = 65536;
    }

    table targets4 {
        key = { hdr.ipv4.dst : lpm; }
        actions = { use; pass; }
        default_action = pass();
        size = 65536;
    }

    table targets6 {
        key = { hdr.ipv6.dst : lpm; }
        actions = { use; pass; }
        default_action = pass();
        size = 65536;
    }

    table ports {
        key = { standard_metadata.ingress_port : exact; }
        actions = { use; pass; }
        default_action = pass();
        size = 512;
    }

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
        switch (forward.apply().action_run) {
            drop: {
                // What goes nowhere takes no tokens.
                if (!wires.apply().hit) {
                    exit;
                }
            }
            default: { }
        }
        // What is not IP is not metered.
        bool known = true;
        if (hdr.ipv4.isValid()) {
            known = false;
            if (hdr.ports.isValid()) {
                known = flows4.apply().hit;
            }
            if (!known) {
                known = sources4.apply().hit;
            }
            if (!known) {
                known = targets4.apply().hit;
            }
        } else if (hdr.ipv6.isValid()) {
            known = false;
            if (hdr.ports.isValid()) {
                known = flows6.apply().hit;
            }
            if (!known) {
                known = sources6.apply().hit;
            }
            if (!known) {
                known = targets6.apply().hit;
            }
        }
        if (!known) {
            ports.apply();
        }
        if (meta.metered == 1) {
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
