// What a switch measures of a port: the time that the packet has waited, bytes or packets that it has found, the utilisation, or
// all that a host needs to compute one (telemetry).
//
// Bytes are those of Ethernet frames. A packet that is being sent is not in the queue. The queue is counted by arrival and departure;
// a packet that finds no room in the buffer has been counted and never leaves. So the count is held to the bytes that as many of the
// largest frames have as wait, which is none when the queue is empty.

#define COUNTS_BYTES (STAMP_SOURCE == SOURCE_BYTES || STAMP_SOURCE == SOURCE_UTILISATION || STAMP_SOURCE == SOURCE_TELEMETRY)
#define SEES_ALL COUNTS_BYTES

const bit<32> NORMAL = 0;

#if COUNTS_BYTES
register<bit<32>>(PORTS) backlog;

control Arrival(inout metadata_t meta, in standard_metadata_t standard_metadata) {
    apply {
        // Copies of a group are not counted: where they go is decided behind this.
        if (standard_metadata.mcast_grp == 0) {
            bit<32> port = (bit<32>) standard_metadata.egress_spec;
            backlog.read(meta.found, port);
            backlog.write(port, meta.found + standard_metadata.packet_length);
        }
    }
}

// `left`: bytes behind the packet.
control Departure(inout metadata_t meta, in standard_metadata_t standard_metadata, out bit<32> left) {
    apply {
        bit<32> port = (bit<32>) standard_metadata.egress_port;
        backlog.read(left, port);
        if (standard_metadata.instance_type == NORMAL) {
            left = left |-| standard_metadata.packet_length;
        } else {
            meta.found = left;
        }
        bit<32> most = (bit<32>) standard_metadata.deq_qdepth * (bit<32>) meta.frame;
        left = left > most ? most : left;
        backlog.write(port, left);
    }
}
#endif

#if STAMP_SOURCE == SOURCE_UTILISATION
#include "meter.p4"

// Of each port: the shortest queue in the present window, and in the one before.
register<bit<32>>(PORTS) shortest;
register<bit<32>>(PORTS) shortest_before;

// The shorter one. `elapsed`: windows since the last packet; `left`: bytes behind this one.
control Standing(in standard_metadata_t standard_metadata, in bit<48> elapsed, in bit<32> left, out bit<32> standing) {
    apply {
        bit<32> port = (bit<32>) standard_metadata.egress_port;
        bit<32> before;
        shortest.read(standing, port);
        shortest_before.read(before, port);
        if (elapsed != 0) {
            before = elapsed == 1 ? standing : left;
            shortest_before.write(port, before);
            standing = left;
        }
        standing = left < standing ? left : standing;
        shortest.write(port, standing);
        standing = before < standing ? before : standing;
    }
}
#endif

#if STAMP_SOURCE == SOURCE_TELEMETRY
// Bytes that a port has sent, modulo 2^32.
register<bit<32>>(PORTS) passed;

// A hop's telemetry, in the widths of HPCC (Li et al., SIGCOMM 2019): the code of the link's rate (3 bits), the time in nanoseconds
// (24), bytes sent before the packet in units of 128 (20), bytes behind it in units of 80 (17).
control Telemetry(in metadata_t meta, in standard_metadata_t standard_metadata, in bit<32> left, out bit<64> hop) {
    apply {
        bit<32> port = (bit<32>) standard_metadata.egress_port;
        bit<32> bytes;
        passed.read(bytes, port);
        passed.write(port, bytes + standard_metadata.packet_length);
        // A division by 80.
        bit<64> units = (bit<64>) left * 52429 >> 22;
        bit<17> queue = units > 0x1ffff ? 17w0x1ffff : (bit<17>) units;
        bit<24> time = (bit<24>) standard_metadata.egress_global_timestamp;
        hop = (bit<3>) meta.ratio ++ time ++ (bit<20>) (bytes >> 7) ++ queue;
    }
}
#endif

control Quantity(inout metadata_t meta, in standard_metadata_t standard_metadata, out bit<64> measured) {
#if COUNTS_BYTES
    Departure() departure;
#endif
#if STAMP_SOURCE == SOURCE_UTILISATION
    Meter() meter;
    Standing() queue;
#elif STAMP_SOURCE == SOURCE_TELEMETRY
    Telemetry() telemetry;
#endif

    apply {
#if STAMP_SOURCE == SOURCE_TIME
        measured = (bit<64>) standard_metadata.deq_timedelta;
#elif STAMP_SOURCE == SOURCE_PACKETS
        measured = (bit<64>) standard_metadata.enq_qdepth;
#ifdef STAMP_OWN
        measured = measured + 1;
#endif
#else
        bit<32> left;
        departure.apply(meta, standard_metadata, left);
#if STAMP_SOURCE == SOURCE_BYTES
        measured = (bit<64>) meta.found;
#ifdef STAMP_OWN
        measured = measured + (bit<64>) standard_metadata.packet_length;
#endif
#elif STAMP_SOURCE == SOURCE_TELEMETRY
        telemetry.apply(meta, standard_metadata, left, measured);
#else
        // In bytes of a base RTT at the port's rate: `ratio` is how many windows that is, in 1/65536.
        bit<64> rate;
        bit<48> elapsed;
        bit<32> standing;
        meter.apply(standard_metadata, meta.window, rate, elapsed);
        queue.apply(standard_metadata, elapsed, left, standing);
        measured = (rate * (bit<64>) meta.ratio >> 24) + (bit<64>) standing;
#endif
#endif
    }
}
