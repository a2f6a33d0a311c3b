// Queue-occupancy stamping: each switch folds the state of the egress queue into a field of the packet.
//
// Source: S. Arslan, N. McKeown, "Switches Know the Exact Amount of Congestion", Buffer Sizing Workshop, 2019: sections 3 and 4.
// The formats, to the bit, are in README.md.
//
// The program is specialised when it is compiled, by these definitions (`Format.defines` in format.py makes them):
//
//   STAMP_BITS     n: a code is from 0 to 2^n - 1
//   STAMP_BYTES    W: bytes of a code in the packet
//
// The table `ports` has the full scale of each port, as a multiplier and a shift; a port without an entry does not stamp. All
// work is done in egress. IPv4 only; one VLAN tag may stand before it.

#include <core.p4>
#include <v1model.p4>
#include "../../p4/headers.p4"
#include "../../p4/forward.p4"

#ifndef STAMP_BITS
#define STAMP_BITS 8
#endif
#ifndef STAMP_BYTES
#define STAMP_BYTES 1
#endif

#include "option.p4"

#define VALUE_BITS (8 * STAMP_BYTES)

const bit<64> LARGEST_CODE = (1 << STAMP_BITS) - 1;
const bit<6> MOST_HOPS = 63;

// Why a packet is not stamped: the index of its counter.
const bit<32> MALFORMED = 0;
const bit<32> REPEATED = 1;
const bit<32> FULL = 2;
const bit<32> VERSION = 3;

control StampVerify(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control StampIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    Forward() forwarding;

    apply {
        bool goes;
        forwarding.apply(hdr.ethernet, standard_metadata, goes);
    }
}

control Stamp(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    counter(4, CounterType.packets) unstamped;
    action stamp(bit<32> multiplier, bit<8> shift) {
        meta.multiplier = multiplier;
        meta.shift = shift;
    }

    action pass() { }

    // The code of an occupancy v is (v * multiplier) >> shift.
    table ports {
        key = { standard_metadata.egress_port : exact; }
        actions = { stamp; @defaultonly pass; }
        default_action = pass();
        size = 512;
    }

    apply {
        if (meta.field != FIELD_NONE && ports.apply().hit) {
            if (meta.field != FIELD_FOUND) {
                unstamped.count(meta.field == FIELD_REPEATED ? REPEATED : MALFORMED);
            } else if (hdr.stamp.version != 0) {
                unstamped.count(VERSION);
            } else {
                bit<64> code = ((bit<64>) standard_metadata.deq_timedelta * (bit<64>) meta.multiplier) >> meta.shift;
                code = code > LARGEST_CODE ? LARGEST_CODE : code;
                stamp_t old = hdr.stamp;
                bit<VALUE_BITS> value = (bit<VALUE_BITS>) code;
                hdr.stamp.value = value > old.value ? value : old.value;
                hdr.stamp.hops = old.hops |+| 1;
                hdr.ipv4.checksum = checksum_with(hdr.ipv4.checksum, old, hdr.stamp, meta.odd);
            }
        }
    }
}

control StampCompute(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

V1Switch(StampParser(), StampVerify(), StampIngress(), Stamp(), StampCompute(), StampDeparser()) main;
