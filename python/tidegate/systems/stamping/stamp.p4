// Queue-occupancy stamping: each switch folds the state of the egress queue into a field of the packet.
//
// Source: S. Arslan, N. McKeown, "Switches Know the Exact Amount of Congestion", Buffer Sizing Workshop, 2019: sections 3 and 4.
// The formats, to the bit, are in README.md.
//
// The program is specialised when it is compiled, by these definitions (`Format.defines` in format.py makes them):
//
//   STAMP_CARRIER   CARRIER_OPTION or CARRIER_SHIM: where the field stands
//   STAMP_SOURCE    SOURCE_TIME, SOURCE_BYTES, SOURCE_PACKETS, SOURCE_UTILISATION or SOURCE_TELEMETRY: the quantity
//   STAMP_FOLD      FOLD_MAX, FOLD_SUM, FOLD_SUM_SQU or FOLD_VECTOR
//   STAMP_BITS      n: a code is from 0 to 2^n - 1
//   STAMP_BYTES     W: bytes of a code in the packet
//   STAMP_ENTRIES   codes in the packet: hops of a vector, otherwise 1
//   STAMP_MANTISSA  m: logarithmic bins, with 2^m bins for each doubling; not defined: equal bins
//   STAMP_OWN       defined: the packet's own bytes, or the packet, are counted
//
// The table `ports` has the scale of each port; a port without an entry does not stamp.

#include <core.p4>
#include <v1model.p4>
#include "../../p4/headers.p4"
#include "../../p4/forward.p4"

#define CARRIER_OPTION 0
#define CARRIER_SHIM 1
#define SOURCE_TIME 0
#define SOURCE_BYTES 1
#define SOURCE_PACKETS 2
#define SOURCE_UTILISATION 3
#define SOURCE_TELEMETRY 4
#define FOLD_MAX 0
#define FOLD_SUM 1
#define FOLD_SUM_SQU 2
#define FOLD_VECTOR 3

#ifndef STAMP_CARRIER
#define STAMP_CARRIER CARRIER_OPTION
#endif
#ifndef STAMP_SOURCE
#define STAMP_SOURCE SOURCE_TIME
#endif
#ifndef STAMP_FOLD
#define STAMP_FOLD FOLD_MAX
#endif
#ifndef STAMP_BITS
#define STAMP_BITS 8
#endif
#ifndef STAMP_BYTES
#define STAMP_BYTES 1
#endif
#ifndef STAMP_ENTRIES
#define STAMP_ENTRIES 1
#endif

#define CODE_BITS (8 * STAMP_BYTES)
#define VALUE_BYTES (STAMP_BYTES * STAMP_ENTRIES)
#define VALUE_BITS (8 * VALUE_BYTES)

#include "field.p4"
#if STAMP_CARRIER == CARRIER_OPTION
#include "option.p4"
#else
#include "shim.p4"
#endif
#include "quantity.p4"

#if STAMP_FOLD == FOLD_VECTOR
// Shifts by the bits of the codes behind one, in equal steps: the reference switch shifts by amounts of 8 bits.
#if VALUE_BITS <= 256
#define PLACE_STEPS 1
#define PLACED(value, shift) (value shift step)
#elif VALUE_BITS <= 512
#define PLACE_STEPS 2
#define PLACED(value, shift) (value shift step shift step)
#elif VALUE_BITS <= 1024
#define PLACE_STEPS 4
#define PLACED(value, shift) (value shift step shift step shift step shift step)
#else
#define PLACE_STEPS 8
#define PLACED(value, shift) \
    (value shift step shift step shift step shift step shift step shift step shift step shift step)
#endif
#endif

const bit<64> LARGEST_CODE = (1 << STAMP_BITS) - 1;
const bit<6> MOST_HOPS = 63;

control StampVerify(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control StampIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    Forward() forwarding;
#if COUNTS_BYTES
    Arrival() arrival;
#endif

    apply {
        bool goes;
        forwarding.apply(hdr.ethernet, standard_metadata, goes);
#if COUNTS_BYTES
        if (goes) {
            arrival.apply(meta, standard_metadata);
        }
#endif
    }
}

// The code of a scaled quantity.
control Bins(in bit<64> scaled, out bit<64> code) {
    apply {
#ifdef STAMP_MANTISSA
        // The leading one, from halves of what is left.
        bit<64> x = scaled > 0xffff_ffff ? 64w0xffff_ffff : scaled;
        bit<64> e = 0;
        if (x >> (STAMP_MANTISSA + 16) != 0) {
            x = x >> 16;
            e = 16;
        }
        if (x >> (STAMP_MANTISSA + 8) != 0) {
            x = x >> 8;
            e = e + 8;
        }
        if (x >> (STAMP_MANTISSA + 4) != 0) {
            x = x >> 4;
            e = e + 4;
        }
        if (x >> (STAMP_MANTISSA + 2) != 0) {
            x = x >> 2;
            e = e + 2;
        }
        if (x >> (STAMP_MANTISSA + 1) != 0) {
            x = x >> 1;
            e = e + 1;
        }
        code = (e << STAMP_MANTISSA) + x;
#elif STAMP_FOLD == FOLD_SUM_SQU
        code = scaled > 0xffff_ffff ? 64w0xffff_ffff : scaled;
        code = code * code;
#else
        code = scaled;
#endif
        code = code > LARGEST_CODE ? LARGEST_CODE : code;
    }
}

control Stamp(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    counter(4, CounterType.packets) unstamped;
    Quantity() quantity;
#if STAMP_SOURCE != SOURCE_TELEMETRY
    Bins() bins;
#endif

    // The scaled quantity is (quantity * multiplier) >> shift. `frame`: bytes of the largest frame. The others are for the
    // utilisation: see quantity.p4.
    action stamp(bit<32> multiplier, bit<8> shift, bit<16> frame, bit<8> window, bit<32> ratio) {
        meta.multiplier = multiplier;
        meta.shift = shift;
        meta.frame = frame;
        meta.window = window;
        meta.ratio = ratio;
    }

    action pass() { }

    table ports {
        key = { standard_metadata.egress_port : exact; }
        actions = { stamp; @defaultonly pass; }
        default_action = pass();
        size = 512;
    }

    apply {
        bit<64> measured = 0;
#if SEES_ALL
        // What is measured needs all packets.
        bool stamps = ports.apply().hit;
        quantity.apply(meta, standard_metadata, measured);
        if (stamps && meta.field != FIELD_NONE) {
#else
        if (meta.field != FIELD_NONE && ports.apply().hit) {
            quantity.apply(meta, standard_metadata, measured);
#endif
            if (meta.field != FIELD_FOUND) {
                unstamped.count(meta.field == FIELD_REPEATED ? REPEATED : MALFORMED);
            } else if (hdr.stamp.version != 0) {
                unstamped.count(VERSION);
#if STAMP_FOLD == FOLD_VECTOR
            } else if (hdr.stamp.hops >= STAMP_ENTRIES) {
                unstamped.count(FULL);
#endif
            } else {
#if STAMP_SOURCE == SOURCE_TELEMETRY
                bit<64> code = measured;
#else
                bit<64> code;
                bins.apply((measured * (bit<64>) meta.multiplier) >> meta.shift, code);
#endif
                bit<6> hops = hdr.stamp.hops;
                bit<CODE_BITS> old;
                bit<CODE_BITS> new;
#if STAMP_FOLD == FOLD_VECTOR
                // The first hop's code comes first.
                bit<8> step = (bit<8>) (CODE_BITS / PLACE_STEPS) * (bit<8>) (STAMP_ENTRIES - 1 - hops);
                bit<VALUE_BITS> value = hdr.stamp.value;
                old = (bit<CODE_BITS>) PLACED(value, >>);
                new = (bit<CODE_BITS>) code;
                hdr.stamp.value = value ^ PLACED((bit<VALUE_BITS>) (old ^ new), <<);
#else
                old = hdr.stamp.value;
#if STAMP_FOLD == FOLD_MAX
                new = (bit<CODE_BITS>) code;
                new = new > old ? new : old;
#else
                code = code + (bit<64>) old;
                new = (bit<CODE_BITS>) (code > LARGEST_CODE ? LARGEST_CODE : code);
#endif
                hdr.stamp.value = new;
#endif
                hdr.stamp.hops = hops == MOST_HOPS ? MOST_HOPS : hops + 1;
#if STAMP_CARRIER == CARRIER_OPTION
                hdr.ipv4.checksum = checksum_with(hdr.ipv4.checksum, old, new, hops, hdr.stamp.hops, meta.odd);
#endif
            }
        }
    }
}

control StampCompute(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control StampDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr);
    }
}

V1Switch(StampParser(), StampVerify(), StampIngress(), Stamp(), StampCompute(), StampDeparser()) main;
