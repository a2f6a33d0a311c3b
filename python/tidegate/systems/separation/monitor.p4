// A passive monitor: what taps copy is measured and goes nowhere.
//
// Source: J. Gomez, E. Kfoury, J. Crichigno, G. Srivastava, "Improving TCP Fairness in Non-programmable Networks Using P4-programmable
// Data Planes", 2024, sections III-A and III-B. What the paper leaves open, and how it is here, is in README.md.
//
// Of each flow, in both directions: bytes and packets, retransmissions, round-trip times from here to the receiver and back, from
// sequence and acknowledgment numbers and from TCP timestamps, and the time between two taps. Sizes are set when it is compiled:
//
//   FLOW_BITS    places for flows: two stages of 2^FLOW_BITS
//   PACKET_BITS  packets that wait for their acknowledgment: two stages of 2^PACKET_BITS
//   SKETCH_BITS  cells of a row of the sketch that finds long flows: 2^SKETCH_BITS, three rows
//
// Times are in microseconds.

#include <core.p4>
#include <v1model.p4>
#include "../../p4/headers.p4"

#ifndef FLOW_BITS
#define FLOW_BITS 12
#endif
#ifndef PACKET_BITS
#define PACKET_BITS 16
#endif
#ifndef SKETCH_BITS
#define SKETCH_BITS 14
#endif

#define FLOWS (1 << FLOW_BITS)
#define PLACES (2 << FLOW_BITS)
#define DIRECTIONS (4 << FLOW_BITS)

#include "parser.p4"
#include "flows.p4"
#include "times.p4"

control MonitorVerify(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control MonitorIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    FindFlow() find;
    Count() count;
    ByNumbers() by_numbers;
    ByTimestamps() by_timestamps;
    BetweenTaps() between_taps;

    action sees(bit<4> what) {
        meta.sees = what;
    }

    // What the copies of a port are for.
    table taps {
        key = { standard_metadata.ingress_port : exact; }
        actions = { sees; }
        default_action = sees(TRACKS | COUNTS | OFFERS);
        size = 512;
    }

    apply {
        mark_to_drop(standard_metadata);
        taps.apply();
        if (meta.sees != 0 && (hdr.ipv4.isValid() || hdr.ipv6.isValid())) {
            meta.now = (bit<32>) standard_metadata.ingress_global_timestamp;
            bool known;
            find.apply(hdr, meta, known);
            if (known) {
                count.apply(hdr, meta);
                if (hdr.tcp.isValid()) {
                    if (meta.sees & TRACKS != 0) {
                        by_numbers.apply(hdr, meta);
                        if (hdr.timestamps.isValid()) {
                            by_timestamps.apply(hdr, meta);
                        }
                    }
                    if (meta.sees & LEAVES != 0) {
                        between_taps.apply(hdr, meta);
                    }
                }
            }
        }
    }
}

control MonitorEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    apply { }
}

control MonitorCompute(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control MonitorDeparser(packet_out packet, in headers_t hdr) {
    apply { }
}

V1Switch(MonitorParser(), MonitorVerify(), MonitorIngress(), MonitorEgress(), MonitorCompute(), MonitorDeparser()) main;
