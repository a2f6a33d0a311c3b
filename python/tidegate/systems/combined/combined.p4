// Meter, DualPI2 and stamping on one switch: their programs as they are, one behind the other.
//
//   ingress: meter (may drop, may mark)  ->  DualPI2's classifier and buffer
//   egress:  DualPI2 (marks, drops)      ->  stamp of the time in the queue
//
// The meter is the paper's, or with COMBINED_FAIR the fair one. The parts are included, not copied. Each is a whole program; its `main` is renamed away, and so are the names that two of them have
// (headers, metadata, `Forward`, `PORTS`). Each keeps its own forwarding table.
//
// Where they could fight:
//   - ECN: the queue is chosen by the code point that came in. A mark of the meter must not send a Classic packet into the L queue.
//   - Buffer: DualPI2 counts what the meter has let pass, and nothing else.
//   - Headers: stamps are in a shim in front of IP, so that the meter and DualPI2 see plain IP. The meter counts the shim's bytes.

#ifndef STAMP_CARRIER
#define STAMP_CARRIER CARRIER_SHIM
#endif

#define V1Switch(p, v, i, e, c, d) typedef bit<1>

#define main meter_main
#define headers_t meter_headers_t
#define metadata_t meter_metadata_t
#ifdef COMBINED_FAIR
#include "../meter/fair.p4"
#else
#include "../meter/meter.p4"
#endif
#undef main
#undef headers_t
#undef metadata_t

#define main aqm_main
#define headers_t aqm_headers_t
#define metadata_t aqm_metadata_t
#define Forward AqmForward
#include "../aqm/dualpi2.p4"
#undef main
#undef headers_t
#undef metadata_t
#undef Forward

#define main stamp_main
#define headers_t stamp_headers_t
#define metadata_t stamp_metadata_t
#define PORTS STAMP_PORTS
#include "../stamping/stamp.p4"
#undef main
#undef headers_t
#undef metadata_t
#undef PORTS

#undef V1Switch

struct headers_t {
    stamp_headers_t outer;
    // Behind the shim: IP and ports.
    meter_headers_t inner;
}

struct metadata_t {
    meter_metadata_t meter;
    aqm_metadata_t   aqm;
    stamp_metadata_t stamp;
}

parser CombinedParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    StampParser() stamps;
    bit<16> type;

    state start {
        stamps.apply(packet, hdr.outer, meta.stamp, standard_metadata);
        hdr.inner.ethernet = hdr.outer.ethernet;
        hdr.inner.vlan = hdr.outer.vlan;
        type = hdr.outer.vlan.isValid() ? hdr.outer.vlan.type : hdr.outer.ethernet.type;
        type = hdr.outer.stamp.isValid() ? hdr.outer.stamp.next : type;
        transition select(type) {
            TYPE_IPV4: ipv4;
            TYPE_IPV6: ipv6;
            default: accept;
        }
    }

    state ipv4 {
        packet.extract(hdr.inner.ipv4);
        meta.aqm.ecn = hdr.inner.ipv4.ecn;
        meta.aqm.dscp = hdr.inner.ipv4.dscp;
        transition select(hdr.inner.ipv4.ihl, hdr.inner.ipv4.fragment_offset, hdr.inner.ipv4.protocol) {
            (5, 0, PROTOCOL_TCP): tcp;
            (5, 0, PROTOCOL_UDP): ports;
            default: accept;
        }
    }

    state ipv6 {
        packet.extract(hdr.inner.ipv6);
        meta.aqm.ecn = hdr.inner.ipv6.ecn;
        meta.aqm.dscp = hdr.inner.ipv6.dscp;
        transition select(hdr.inner.ipv6.next_header) {
            PROTOCOL_TCP: tcp;
            PROTOCOL_UDP: ports;
            default: accept;
        }
    }

    state tcp {
        packet.extract(hdr.inner.ports);
#ifdef COMBINED_FAIR
        // The fair meter looks for SYNs.
        packet.extract(hdr.inner.tcp);
#endif
        transition accept;
    }

    state ports {
        packet.extract(hdr.inner.ports);
        transition accept;
    }
}

control CombinedVerify(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

// What v1model sets for a packet that is dropped.
const bit<9> NOWHERE = 511;

control CombinedIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
#ifdef COMBINED_FAIR
    FairIngress() meter;
#else
    MeterIngress() meter;
#endif
    DualIngress() aqm;

    apply {
        // What goes nowhere leaves the meter by `exit`.
        meter.apply(hdr.inner, meta.meter, standard_metadata);
        if (standard_metadata.egress_spec != NOWHERE) {
            aqm_headers_t seen;
            seen.ethernet = hdr.inner.ethernet;
            seen.vlan = hdr.inner.vlan;
            seen.ipv4 = hdr.inner.ipv4;
            seen.ipv6 = hdr.inner.ipv6;
            aqm.apply(seen, meta.aqm, standard_metadata);
        }
    }
}

control CombinedEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    DualEgress() aqm;
    Stamp() stamp;

    apply {
        aqm_headers_t seen;
        seen.ethernet = hdr.inner.ethernet;
        seen.vlan = hdr.inner.vlan;
        seen.ipv4 = hdr.inner.ipv4;
        seen.ipv6 = hdr.inner.ipv6;
        // `meta.aqm.ecn` is as it came in: what the meter has marked is still Classic or L4S, and has its CE already.
        aqm.apply(seen, meta.aqm, standard_metadata);
        hdr.inner.ipv4 = seen.ipv4;
        hdr.inner.ipv6 = seen.ipv6;
        stamp.apply(hdr.outer, meta.stamp, standard_metadata);
    }
}

control CombinedCompute(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control CombinedDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.outer);
        packet.emit(hdr.inner.ipv4);
        packet.emit(hdr.inner.ipv6);
        packet.emit(hdr.inner.ports);
        packet.emit(hdr.inner.tcp);
    }
}

V1Switch(CombinedParser(), CombinedVerify(), CombinedIngress(), CombinedEgress(), CombinedCompute(), CombinedDeparser()) main;
