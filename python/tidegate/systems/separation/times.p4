// Round-trip times: from sequence and acknowledgment numbers, from timestamps; and the time from one tap to the other.

// What waits for its acknowledgment: a signature of flow, direction and number, and when the packet was seen. Two stages, after X. Chen
// et al., "Measuring TCP Round-Trip Time in the Data Plane", SPIN 2020; which packets may be sampled, after S. Sengupta et al.,
// "Continuous In-Network Round-Trip Time Monitoring" (Dart), SIGCOMM 2022.
register<bit<64>>(1 << PACKET_BITS) waiting_1;
register<bit<64>>(1 << PACKET_BITS) waiting_2;
// Time after which a packet that was not acknowledged by its own number leaves its cell to another that needs it. It may be shorter than
// round-trip times: with room, nobody needs it.
register<bit<32>>(1) waiting_time;
// Packets for which there was no cell.
register<bit<32>>(1) no_cell;

// After which a timestamp that was not echoed is given up, in microseconds.
const bit<32> STAMP_TIME = 2000000;

// How long such a packet took from tap to tap; `NOT_LEFT` of one that goes by two, until it has come to the second.
const bit<32> NOT_LEFT = 0xffff_ffff;
register<bit<32>>(1 << PACKET_BITS) queued_1;
register<bit<32>>(1 << PACKET_BITS) queued_2;

// `queued`: the part of it between the taps. If that is not known, the sample says nothing of the time without the router: the packet was
// lost there and sent again unseen, or passed the second tap unseen.
control Sample(in bit<32> direction, in bit<32> took, in bit<32> queued) {
    apply {
        bit<32> least;
        bit<64> sum;
        bit<32> number;
        // 0 is for none.
        bit<32> time = took == 0 ? 32w1 : took;
        rtt_least.read(least, direction);
        if (least == 0 || time < least) {
            rtt_least.write(direction, time);
        }
        if (queued != NOT_LEFT) {
            bit<32> rest = took > queued ? took - queued : 32w1;
            rtt_base.read(least, direction);
            if (least == 0 || rest < least) {
                rtt_base.write(direction, rest);
            }
        }
        rtt_last.write(direction, time);
        rtt_sum.read(sum, direction);
        rtt_sum.write(direction, sum + (bit<64>) time);
        rtt_samples.read(number, direction);
        rtt_samples.write(direction, number + 1);
    }
}

// The cell of a number in the first stage, and its signature.
control FirstCell(in bit<32> flow_hash, in bit<32> direction, in bit<32> number, out bit<32> signature, out bit<32> one) {
    apply {
        hash(signature, HashAlgorithm.crc32, 32w0, { flow_hash, direction, number }, 64w0x1_0000_0000);
        signature = signature == 0 ? 32w1 : signature;
        // Two flows whose numbers have one signature, as some of millions have, meet in a cell only if their hashes end alike.
        one = (signature + flow_hash + direction) & ((1 << PACKET_BITS) - 1);
    }
}

// That in the second stage: few numbers need it.
control SecondCell(in bit<32> flow_hash, in bit<32> direction, in bit<32> number, out bit<32> two) {
    apply {
        bit<16> other;
        hash(other, HashAlgorithm.crc16, 16w0, { flow_hash, direction, number }, 32w0x1_0000);
        two = (bit<32>) other & ((1 << PACKET_BITS) - 1);
    }
}

control ByNumbers(in headers_t hdr, in metadata_t meta) {
    FirstCell() first_sent;
    SecondCell() second_sent;
    SecondCell() second_sent_again;
    FirstCell() first_acked;
    SecondCell() second_acked;
    Sample() sample;

    apply {
        bit<8> flags = hdr.tcp.flags;
        bit<32> takes = meta.payload + (flags & (SYN | FIN) != 0 ? 32w1 : 32w0);
        // What else can stand in the options of a packet without SYN.
        bool    has_sack = hdr.tcp.data_offset > (hdr.timestamps.isValid() ? 4w8 : 4w5);
        bit<32> signature;
        bit<32> one;
        bit<32> two;
        bit<64> first;
        bit<64> second;
        bit<64> range;
        bit<32> queued;

        // What it sends.
        if (takes != 0 && flags & RST == 0) {
            bit<32> seq = hdr.tcp.seq;
            bit<32> end = seq + takes;
            ranges.read(range, meta.forth);
            bit<32> ahead = seq - range[31:0];
            first_sent.apply(meta.flow_hash, meta.forth & 1, end, signature, one);
            // A SYN whose number is up to 65 536 before what was sent is one that is sent again, also without the data that it had
            // (RFC 7413 section 4.2). Another one opens another connection.
            bool opens = flags & SYN != 0 && range[31:0] - seq - 1 >= 0x1_0000;
            if (opens || range == 0 || ahead < 0x8000_0000) {
                // New data: next to the last, or behind a gap, before which nothing can be told.
                bool next = range != 0 && ahead == 0 && !opens;
                ranges.write(meta.forth, (next ? range[63:32] : seq) ++ end);
                bit<32> patience;
                bit<32> between = meta.sees & (OFFERS | COUNTS) == OFFERS ? NOT_LEFT : 32w0;
                waiting_time.read(patience, 0);
                waiting_1.read(first, one);
                if (first == 0 || first[63:32] == signature || meta.now - first[31:0] > patience) {
                    waiting_1.write(one, signature ++ meta.now);
                    queued_1.write(one, between);
                } else {
                    second_sent.apply(meta.flow_hash, meta.forth & 1, end, two);
                    waiting_2.read(second, two);
                    if (second == 0 || second[63:32] == signature || meta.now - second[31:0] > patience) {
                        waiting_2.write(two, signature ++ meta.now);
                        queued_2.write(two, between);
                    } else {
                        bit<32> lost;
                        no_cell.read(lost, 0);
                        no_cell.write(0, lost + 1);
                    }
                }
            } else {
                // Sent before, or late: an acknowledgment may be for either, so that nothing sent up to now gives a sample.
                bit<32> last = end - range[31:0] < 0x8000_0000 ? end : range[31:0];
                ranges.write(meta.forth, last ++ last);
                bit<32> again;
                resent.read(again, meta.forth);
                resent.write(meta.forth, again + 1);
                // Nor does it wait any longer: the second tap would take the time since it was first sent for the router's.
                waiting_1.read(first, one);
                if (first[63:32] == signature) {
                    waiting_1.write(one, 0);
                } else {
                    second_sent_again.apply(meta.flow_hash, meta.forth & 1, end, two);
                    waiting_2.read(second, two);
                    if (second[63:32] == signature) {
                        waiting_2.write(two, 0);
                    }
                }
            }
        }

        // What it acknowledges.
        if (flags & ACK != 0 && flags & RST == 0) {
            bit<48> before;
            bit<32> ack = hdr.tcp.ack;
            acks.read(before, meta.forth);
            acks.write(meta.forth, ack ++ hdr.tcp.window);
            ranges.read(range, meta.back);
            bit<32> more = ack - range[63:32];
            bit<32> all = range[31:0] - range[63:32];
            if (range != 0 && more != 0 && more <= all) {
                ranges.write(meta.back, ack ++ range[31:0]);
                first_acked.apply(meta.flow_hash, meta.back & 1, ack, signature, one);
                waiting_1.read(first, one);
                if (first[63:32] == signature) {
                    waiting_1.write(one, 0);
                    queued_1.read(queued, one);
                    sample.apply(meta.back, meta.now - first[31:0], queued);
                } else {
                    second_acked.apply(meta.flow_hash, meta.back & 1, ack, two);
                    waiting_2.read(second, two);
                    if (second[63:32] == signature) {
                        waiting_2.write(two, 0);
                        queued_2.read(queued, two);
                        sample.apply(meta.back, meta.now - second[31:0], queued);
                    }
                }
            } else if (range != 0 && more == 0 && all != 0 && takes == 0 && (before == ack ++ hdr.tcp.window || has_sack)) {
                // A duplicate acknowledgment (RFC 5681 section 2): something is missing, and what comes will be acknowledged late. The
                // first one with its number is none, though samples may begin there.
                ranges.write(meta.back, range[31:0] ++ range[31:0]);
            }
        }
    }
}

// One timestamp at a time in each direction: the first packet with a newer value, until the value comes back. After K. Nichols, pping.
control ByTimestamps(in headers_t hdr, in metadata_t meta) {
    apply {
        bit<64> stamp;
        stamps.read(stamp, meta.back);
        bit<32> beyond = hdr.timestamps.echo - stamp[63:32];
        if (stamp != 0 && hdr.tcp.flags & ACK != 0 && beyond < 0x8000_0000) {
            // A later value comes back where the other end had two before it sent anything: then this one's will not.
            if (beyond == 0) {
                bit<32> took = meta.now - stamp[31:0];
                bit<32> least;
                took = took == 0 ? 32w1 : took;
                stamp_least.read(least, meta.back);
                if (least == 0 || took < least) {
                    stamp_least.write(meta.back, took);
                }
            }
            stamps.write(meta.back, 0);
        }
        // A value that was there before, or an older one that comes late, may be echoed earlier. So may the first that is seen of a flow
        // whose begin was not: other packets may have had it. A connection begins with any.
        bit<32> seen;
        stamp_seen.read(seen, meta.forth);
        bit<32> ahead = hdr.timestamps.value - seen;
        if (ahead != 0 && (ahead < 0x8000_0000 || seen == 0 || hdr.tcp.flags & SYN != 0)) {
            bit<64> own;
            stamp_seen.write(meta.forth, hdr.timestamps.value);
            stamps.read(own, meta.forth);
            bool is_first = seen != 0 || hdr.tcp.flags & SYN != 0;
            if (is_first && (own == 0 || meta.now - own[31:0] > STAMP_TIME)) {
                stamps.write(meta.forth, hdr.timestamps.value ++ meta.now);
            }
        }
    }
}

// A packet that waits for its acknowledgment has come to the second tap.
control BetweenTaps(in headers_t hdr, in metadata_t meta) {
    FirstCell() first_cell;
    SecondCell() second_cell;

    apply {
        bit<32> takes = meta.payload + (hdr.tcp.flags & (SYN | FIN) != 0 ? 32w1 : 32w0);
        if (takes != 0) {
            bit<32> signature;
            bit<32> one;
            bit<32> two = 0;
            bit<64> found;
            bit<64> sum;
            bit<32> number;
            bool    is_first;
            first_cell.apply(meta.flow_hash, meta.forth & 1, hdr.tcp.seq + takes, signature, one);
            waiting_1.read(found, one);
            is_first = found[63:32] == signature;
            if (!is_first) {
                second_cell.apply(meta.flow_hash, meta.forth & 1, hdr.tcp.seq + takes, two);
                waiting_2.read(found, two);
            }
            if (found[63:32] == signature) {
                bit<32> took = meta.now - found[31:0];
                if (is_first) {
                    queued_1.write(one, took);
                } else {
                    queued_2.write(two, took);
                }
                queued_last.write(meta.forth, took);
                queued_sum.read(sum, meta.forth);
                queued_sum.write(meta.forth, sum + (bit<64>) took);
                queued_samples.read(number, meta.forth);
                queued_samples.write(meta.forth, number + 1);
            }
        }
    }
}
