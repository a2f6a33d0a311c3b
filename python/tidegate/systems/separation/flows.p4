// Flows: their places, the sketch that finds long ones, and their counts.

// A flow that has a place now.
struct flow_t {
    bit<32>  place;
    bit<128> low;
    bit<128> high;
    bit<16>  low_port;
    bit<16>  high_port;
    bit<8>   protocol;
    bit<1>   six;
}

const bit<32> NOWHERE = 0xffff_ffff;

// Signature of the flow, and when a packet of it was last seen; in two stages.
register<bit<64>>(FLOWS) flows_1;
register<bit<64>>(FLOWS) flows_2;

// Bytes from which on a flow is long and gets a place, or 0: all flows get one. Time without a packet after which a flow's place is
// free. What is written in one cell.
register<bit<32>>(1) long_bytes;
register<bit<32>>(1) idle_time;

// Count-min: bytes of flows without a place. The bytes in it tell how many collisions there are; the controller clears it before there are
// many.
register<bit<32>>(1 << SKETCH_BITS) sketch_1;
register<bit<32>>(1 << SKETCH_BITS) sketch_2;
register<bit<32>>(1 << SKETCH_BITS) sketch_3;
register<bit<64>>(1) sketched;

// Long flows for which there was no place.
register<bit<32>>(1) no_place;

// Packets of IPv6 with more extension headers than are walked: they count in a flow without ports.
register<bit<32>>(1) too_many_headers;

// By direction: a place's directions have the numbers 2 * place, from the lower address to the higher, and 2 * place + 1.
register<bit<64>>(DIRECTIONS) bytes;
register<bit<32>>(DIRECTIONS) packets;
// Whether a FIN or a RST has been seen since the last SYN.
register<bit<8>>(DIRECTIONS) ended;
// Bytes of UDP that come to the router, which may drop some of them.
register<bit<64>>(DIRECTIONS) offered;
register<bit<32>>(DIRECTIONS) resent;
// From the first byte that is not acknowledged to the last that was sent: the packets whose acknowledgment gives a sample.
register<bit<64>>(DIRECTIONS) ranges;
// The last acknowledgment number and window of this direction's packets.
register<bit<48>>(DIRECTIONS) acks;
// Of the samples the least, the least without the time from tap to tap, the last, their sum and number.
register<bit<32>>(DIRECTIONS) rtt_least;
register<bit<32>>(DIRECTIONS) rtt_base;
register<bit<32>>(DIRECTIONS) rtt_last;
register<bit<64>>(DIRECTIONS) rtt_sum;
register<bit<32>>(DIRECTIONS) rtt_samples;
// A timestamp that waits to be echoed, and when it was seen; the last that was seen; and the least time that one took.
register<bit<64>>(DIRECTIONS) stamps;
register<bit<32>>(DIRECTIONS) stamp_seen;
register<bit<32>>(DIRECTIONS) stamp_least;
// From tap to tap: the last time, the sum and the number.
register<bit<32>>(DIRECTIONS) queued_last;
register<bit<64>>(DIRECTIONS) queued_sum;
register<bit<32>>(DIRECTIONS) queued_samples;

control Forget(in bit<32> direction) {
    apply {
        bytes.write(direction, 0);
        packets.write(direction, 0);
        ended.write(direction, 0);
        offered.write(direction, 0);
        resent.write(direction, 0);
        ranges.write(direction, 0);
        acks.write(direction, 0);
        rtt_least.write(direction, 0);
        rtt_base.write(direction, 0);
        rtt_last.write(direction, 0);
        rtt_sum.write(direction, 0);
        rtt_samples.write(direction, 0);
        stamps.write(direction, 0);
        stamp_seen.write(direction, 0);
        stamp_least.write(direction, 0);
        queued_last.write(direction, 0);
        queued_sum.write(direction, 0);
        queued_samples.write(direction, 0);
    }
}

// Adds bytes to the sketch, where they are `counted`; whether a flow is long.
control Sketch(in bit<32> hash, in bit<16> other, in bit<32> length, in bool counted, out bool is_long) {
    apply {
        bit<32> limit;
        long_bytes.read(limit, 0);
        is_long = limit == 0;
        if (!is_long && counted) {
            bit<32> one = (bit<32>) hash[SKETCH_BITS - 1:0];
            bit<32> two = (bit<32>) hash[31:32 - SKETCH_BITS];
            bit<32> three = (bit<32>) other & ((1 << SKETCH_BITS) - 1);
            bit<32> a;
            bit<32> b;
            bit<32> c;
            bit<64> all;
            sketch_1.read(a, one);
            sketch_2.read(b, two);
            sketch_3.read(c, three);
            a = a |+| length;
            b = b |+| length;
            c = c |+| length;
            sketch_1.write(one, a);
            sketch_2.write(two, b);
            sketch_3.write(three, c);
            sketched.read(all, 0);
            sketched.write(0, all + (bit<64>) length);
            bit<32> least = a < b ? a : b;
            least = least < c ? least : c;
            is_long = least >= limit;
        }
    }
}

// `known`: the flow has a place.
control FindFlow(in headers_t hdr, inout metadata_t meta, out bool known) {
    Sketch() sketch;
    Forget() forget_forth;
    Forget() forget_back;

    apply {
        bit<128> src;
        bit<128> dst;
        if (hdr.ipv4.isValid()) {
            src = (bit<128>) hdr.ipv4.src;
            dst = (bit<128>) hdr.ipv4.dst;
        } else {
            src = hdr.ipv6.src;
            dst = hdr.ipv6.dst;
            if (meta.extensions > MOST_EXTENSIONS && meta.sees & COUNTS != 0) {
                bit<32> packets_so_far;
                too_many_headers.read(packets_so_far, 0);
                too_many_headers.write(0, packets_so_far + 1);
            }
        }
        bit<16> src_port = 0;
        bit<16> dst_port = 0;
        if (hdr.tcp.isValid()) {
            src_port = hdr.tcp.src_port;
            dst_port = hdr.tcp.dst_port;
        } else if (hdr.udp.isValid()) {
            src_port = hdr.udp.src;
            dst_port = hdr.udp.dst;
        }
        bool backwards = src > dst || (src == dst && src_port > dst_port);
        flow_t flow;
        flow.low = backwards ? dst : src;
        flow.high = backwards ? src : dst;
        flow.low_port = backwards ? dst_port : src_port;
        flow.high_port = backwards ? src_port : dst_port;
        flow.protocol = meta.protocol;
        flow.six = hdr.ipv6.isValid() ? 1w1 : 1w0;

        bit<32> signature;
        if (hdr.ipv4.isValid()) {
            hash(signature, HashAlgorithm.crc32, 32w0,
                { flow.low[31:0], flow.high[31:0], flow.low_port, flow.high_port, flow.protocol }, 64w0x1_0000_0000);
        } else {
            hash(signature, HashAlgorithm.crc32, 32w0,
                { flow.low, flow.high, flow.low_port, flow.high_port, flow.protocol }, 64w0x1_0000_0000);
        }
        // 0 is for a free place.
        signature = signature == 0 ? 32w1 : signature;
        meta.flow_hash = signature;
        bit<32> one = signature & (FLOWS - 1);
        bit<32> two = 0;
        bit<64> first;
        flows_1.read(first, one);
        meta.place = NOWHERE;
        if (first[63:32] == signature) {
            meta.place = one;
        } else {
            // The second stage's hash: few flows need it.
            bit<16> other;
            if (hdr.ipv4.isValid()) {
                hash(other, HashAlgorithm.crc16, 16w0,
                    { flow.low[31:0], flow.high[31:0], flow.low_port, flow.high_port, flow.protocol }, 32w0x1_0000);
            } else {
                hash(other, HashAlgorithm.crc16, 16w0,
                    { flow.low, flow.high, flow.low_port, flow.high_port, flow.protocol }, 32w0x1_0000);
            }
            two = (bit<32>) other & (FLOWS - 1);
            bit<64> second;
            flows_2.read(second, two);
            if (second[63:32] == signature) {
                meta.place = two + FLOWS;
            } else {
                bool is_long;
                sketch.apply(signature, other, meta.length, meta.sees & COUNTS != 0, is_long);
                if (is_long) {
                    bit<32> idle;
                    idle_time.read(idle, 0);
                    if (first == 0 || meta.now - first[31:0] > idle) {
                        meta.place = one;
                    } else if (second == 0 || meta.now - second[31:0] > idle) {
                        meta.place = two + FLOWS;
                    }
                    if (meta.place == NOWHERE) {
                        bit<32> lost;
                        no_place.read(lost, 0);
                        no_place.write(0, lost + 1);
                    } else {
                        flow.place = meta.place;
                        forget_forth.apply(meta.place << 1);
                        forget_back.apply((meta.place << 1) + 1);
                        digest(1, flow);
                    }
                }
            }
        }
        known = meta.place != NOWHERE;
        if (known) {
            if (meta.place < FLOWS) {
                flows_1.write(one, signature ++ meta.now);
            } else {
                flows_2.write(two, signature ++ meta.now);
            }
            meta.forth = (meta.place << 1) + (bit<32>) (backwards ? 1w1 : 1w0);
            meta.back = meta.forth ^ 1;
        }
    }
}

control Count(in headers_t hdr, in metadata_t meta) {
    apply {
        if (meta.sees & COUNTS != 0) {
            bit<64> size;
            bit<32> number;
            bytes.read(size, meta.forth);
            packets.read(number, meta.forth);
            bytes.write(meta.forth, size + (bit<64>) meta.length);
            packets.write(meta.forth, number + 1);
        }
        if (hdr.tcp.isValid()) {
            if (meta.sees & TRACKS != 0 && hdr.tcp.flags & (SYN | FIN | RST) != 0) {
                ended.write(meta.forth, hdr.tcp.flags & SYN != 0 ? 8w0 : 8w1);
                if (hdr.tcp.flags & RST != 0) {
                    ended.write(meta.back, 1);
                }
            }
        } else if (meta.sees & OFFERS != 0 && meta.protocol != PROTOCOL_TCP) {
            bit<64> came;
            offered.read(came, meta.forth);
            offered.write(meta.forth, came + (bit<64>) meta.length);
        }
    }
}
