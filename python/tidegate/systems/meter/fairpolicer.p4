// FairPolicer: a token bucket whose flows each occupy a share of it. A peer that the meter is compared with.
//
// Source: D. Shan et al., "Towards the Fairness of Traffic Policer", INFOCOM 2021, and the rules of its kernel module. A meter has a
// bucket of B bytes, a count-min sketch (4 x 1024) of the bytes that each flow occupies of it, and a FIFO of the active flows. For each
// packet:
//   1. Flows repay in turn: for each 100 bytes of the rate x time the flow at the head of the FIFO repays 100 bytes and goes to the
//      end; if it occupies 100 or less, it repays these and leaves. Time in which the FIFO is empty repays nothing.
//   2. Tokens come at the rate, up to B.
//   3. The packet passes if there are as many tokens as its length, and if its flow occupies no more than tokens / 2^alpha_shift.
//      Then its length is taken from the tokens and added to what its flow occupies; a flow that occupied nothing joins the FIFO.
//
// Ours, where the rules are silent: a new flow's packet that finds 2000 flows in the FIFO is dropped (nobody would repay for it).
// Bounded: a packet repays at most 1024 times, 102 400 bytes. What is left is repaid by the packets that follow; it is never lost. So
// it matters only to the first packets after a gap of more than that, to which flows seem to occupy what they have repaid.
// Rounding: none. Lengths are whole bytes, and what is left of 100 bytes is kept in 1/65536 byte.
//
// A FIFO is a ring with its head and number in registers; a flow is known by its place in each row of the sketch, which are 30 bits of
// a CRC-32 and 10 of a CRC-16. Two flows that meet in all four rows are one; those that meet in some repay for each other.
//
// There is a loop over repayments: no program for a switch pipeline. Tokens are in 1/65536 byte, rates in 1/65536 byte a microsecond.

#include "common.p4"

const bit<32> POLICERS = 64;
const bit<32> SKETCH_CELLS = 65536;
// 2048 for each, of which 2000 are used.
const bit<32> FIFO_CELLS = 131072;
const bit<16> FIFO_MOST = 2000;
const bit<64> UNIT_BYTES = 100;
const level_t UNIT_LEVEL = 100 << 16;

typedef bit<40> flow_t;

struct metadata_t {
    meter_t  meter;
    flow_t   flow;
    // B, and how much smaller than the tokens a flow's share must be.
    level_t  burst;
    bit<6>   alpha_shift;
}

parser FairPolicerParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    HeadersParser() headers;

    state start {
        headers.apply(packet, hdr);
        transition accept;
    }
}

control FairPolicerVerify(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

// What a flow occupies, by the sketch: the least of its four cells.
control Sketch(register<bit<64>> row0, register<bit<64>> row1, register<bit<64>> row2, register<bit<64>> row3, in bit<32> first,
               in flow_t flow, out bit<64> occupied) {
    apply {
        bit<64> other;
        row0.read(occupied, first + (bit<32>) flow[9:0]);
        row1.read(other, first + (bit<32>) flow[19:10]);
        occupied = other < occupied ? other : occupied;
        row2.read(other, first + (bit<32>) flow[29:20]);
        occupied = other < occupied ? other : occupied;
        row3.read(other, first + (bit<32>) flow[39:30]);
        occupied = other < occupied ? other : occupied;
    }
}

// Adds to what a flow occupies, modulo 2^64: what is taken away is never more than the least of the four.
control Occupy(register<bit<64>> row0, register<bit<64>> row1, register<bit<64>> row2, register<bit<64>> row3, in bit<32> first,
               in flow_t flow, in bit<64> change) {
    apply {
        bit<64> bytes;
        row0.read(bytes, first + (bit<32>) flow[9:0]);
        row0.write(first + (bit<32>) flow[9:0], bytes + change);
        row1.read(bytes, first + (bit<32>) flow[19:10]);
        row1.write(first + (bit<32>) flow[19:10], bytes + change);
        row2.read(bytes, first + (bit<32>) flow[29:20]);
        row2.write(first + (bit<32>) flow[29:20], bytes + change);
        row3.read(bytes, first + (bit<32>) flow[39:30]);
        row3.write(first + (bit<32>) flow[39:30], bytes + change);
    }
}

control FairPolicerIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    register<bit<64>>(SKETCH_CELLS) row0;
    register<bit<64>>(SKETCH_CELLS) row1;
    register<bit<64>>(SKETCH_CELLS) row2;
    register<bit<64>>(SKETCH_CELLS) row3;
    register<flow_t>(FIFO_CELLS) fifo;
    // Where the FIFO begins (its end wraps), and how many flows are in it.
    register<bit<16>>(POLICERS) head;
    register<bit<16>>(POLICERS) waiting;
    register<level_t>(POLICERS) tokens;
    // What may be repaid and has not been.
    register<level_t>(POLICERS) repayable;
    // Microseconds of the last packet.
    register<bit<48>>(POLICERS) updated;
    register<bit<32>>(POLICERS) rate;

    counter(POLICERS, CounterType.packets_and_bytes) passed;
    counter(POLICERS, CounterType.packets_and_bytes) dropped;

    Forward() forwarding;
    Classify() classification;
    Sketch() debt_of_head;
    Sketch() debt_of_flow;
    Occupy() repay;
    Occupy() take;

    action drop() {
        mark_to_drop(standard_metadata);
    }

    action pass() { }

    action configure(level_t burst, bit<6> alpha_shift) {
        meta.burst = burst;
        meta.alpha_shift = alpha_shift;
    }

    // A meter without an entry lets everything pass.
    table meters {
        key = { meta.meter : exact; }
        actions = { configure; @defaultonly pass; }
        default_action = pass();
        size = 64;
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
        if (metered && meters.apply().hit) {
            bit<30> places = 0;
            bit<10> place = 0;
            if (hdr.ipv4.isValid()) {
                hash(places, HashAlgorithm.crc32, 32w0,
                     { hdr.ipv4.src, hdr.ipv4.dst, hdr.ipv4.protocol, hdr.ports.src, hdr.ports.dst }, 64w0x1_0000_0000);
                hash(place, HashAlgorithm.crc16, 16w0,
                     { hdr.ipv4.src, hdr.ipv4.dst, hdr.ipv4.protocol, hdr.ports.src, hdr.ports.dst }, 32w0x1_0000);
            } else if (hdr.ipv6.isValid()) {
                hash(places, HashAlgorithm.crc32, 32w0,
                     { hdr.ipv6.src, hdr.ipv6.dst, hdr.ipv6.next_header, hdr.ports.src, hdr.ports.dst }, 64w0x1_0000_0000);
                hash(place, HashAlgorithm.crc16, 16w0,
                     { hdr.ipv6.src, hdr.ipv6.dst, hdr.ipv6.next_header, hdr.ports.src, hdr.ports.dst }, 32w0x1_0000);
            }
            meta.flow = place ++ places;
            bit<32> meter = (bit<32>) meta.meter;
            bit<32> first = meter << 10;
            bit<32> ring = meter << 11;
            bit<48> now = standard_metadata.ingress_global_timestamp;
            bit<48> then;
            updated.read(then, meter);
            updated.write(meter, now);
            bit<48> elapsed = now - then;
            // Longer than half an hour is as good as half an hour, and no sum below overflows.
            elapsed = elapsed > 0x7fffffff ? 48w0x7fffffff : elapsed;
            bit<32> per_us;
            rate.read(per_us, meter);
            level_t more = (level_t) elapsed * (level_t) per_us;

            // Step 1.
            level_t credit;
            repayable.read(credit, meter);
            credit = credit + more;
            bit<16> begin;
            bit<16> count;
            head.read(begin, meter);
            waiting.read(count, meter);
            bit<64> occupied;
            for (bit<16> turn in 0 .. 1023) {
                if (count == 0 || credit < UNIT_LEVEL) {
                    break;
                }
                credit = credit - UNIT_LEVEL;
                flow_t debtor;
                fifo.read(debtor, ring + (bit<32>) begin[10:0]);
                begin = begin + 1;
                debt_of_head.apply(row0, row1, row2, row3, first, debtor, occupied);
                if (occupied > UNIT_BYTES) {
                    occupied = UNIT_BYTES;
                    fifo.write(ring + (bit<32>) (begin + count - 1)[10:0], debtor);
                } else {
                    count = count - 1;
                }
                repay.apply(row0, row1, row2, row3, first, debtor, 0 - occupied);
            }
            if (count == 0) {
                credit = 0;
            }
            // What all flows can occupy is less than this.
            credit = credit > (1 << 62) ? 64w1 << 62 : credit;
            repayable.write(meter, credit);
            head.write(meter, begin);

            // Step 2.
            level_t level;
            tokens.read(level, meter);
            level = level + more;
            level = level > meta.burst ? meta.burst : level;

            // Step 3.
            bit<32> octets = standard_metadata.packet_length - 14;
            if (hdr.vlan.isValid()) {
                octets = octets - 4;
            }
            level_t cost = (level_t) octets << 16;
            debt_of_flow.apply(row0, row1, row2, row3, first, meta.flow, occupied);
            bool green = level >= cost && (occupied << 16) <= (level >> meta.alpha_shift);
            if (green && occupied == 0) {
                if (count < FIFO_MOST) {
                    fifo.write(ring + (bit<32>) (begin + count)[10:0], meta.flow);
                    count = count + 1;
                } else {
                    green = false;
                }
            }
            if (green) {
                level = level - cost;
                take.apply(row0, row1, row2, row3, first, meta.flow, (bit<64>) octets);
                passed.count(meter);
            } else {
                dropped.count(meter);
                drop();
            }
            waiting.write(meter, count);
            tokens.write(meter, level);
        }
    }
}

control FairPolicerEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    apply { }
}

control FairPolicerCompute(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control FairPolicerDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr);
    }
}

V1Switch(FairPolicerParser(), FairPolicerVerify(), FairPolicerIngress(), FairPolicerEgress(), FairPolicerCompute(),
         FairPolicerDeparser()) main;
