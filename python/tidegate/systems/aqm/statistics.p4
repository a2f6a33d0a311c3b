// Statistics of queues (RFC 9332 section 2.5.2.2), and what becomes of a packet. What is in the histogram of delays was presented to
// the AQM; the rest of what arrived is tail drop, or waits.

// Bins of a queue's delays: 128 of 16 us, then 240 of 128 us, then 144 of 2048 us, the last of which has no end.
const bit<32> BINS = 512;
const bit<8> BINS_SHIFT = 9;
const bit<32> LAST_BIN = 511;

counter(SLOTS, CounterType.packets_and_bytes) arrived;
counter(SLOTS, CounterType.packets_and_bytes) forwarded;
counter(SLOTS, CounterType.packets) marked;
counter(SLOTS, CounterType.packets) dropped_not_ect;
counter(SLOTS, CounterType.packets) dropped_ect;
register<bit<64>>(SLOTS) delay_sum;
counter(SLOTS * BINS, CounterType.packets) delay_histogram;

// A packet has waited so long in its queue.
control Waits(in bit<32> slot, in time_t time) {
    apply {
        bit<64> sum;
        delay_sum.read(sum, slot);
        delay_sum.write(slot, sum + (bit<64>) time);
        bit<32> bin;
        if (time < 2048) {
            bin = time >> 4;
        } else if (time < 32768) {
            bin = 112 + (time >> 7);
        } else {
            bin = 352 + (time >> 11);
            bin = bin > LAST_BIN ? LAST_BIN : bin;
        }
        delay_histogram.count(slot << BINS_SHIFT | bin);
    }
}

// What is to become of a packet, done: CE, gone, or neither; and counted. Only what is ECN-capable is marked (RFC 3168). Packets
// with CE stay as they are (RFC 9331 section 5.1).
control Signal(
    in bit<32> slot, in bool marks, in bool drops, inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata
) {
    apply {
        if (drops) {
            if (meta.ecn == NOT_ECT) {
                dropped_not_ect.count(slot);
            } else {
                dropped_ect.count(slot);
            }
            mark_to_drop(standard_metadata);
        } else {
            if (marks && (meta.ecn == ECT0 || meta.ecn == ECT1)) {
                marked.count(slot);
                if (hdr.ipv4.isValid()) {
                    hdr.ipv4.checksum = checksum_with_ce(hdr.ipv4.checksum, hdr.ipv4.ecn);
                    hdr.ipv4.ecn = CE;
                } else {
                    hdr.ipv6.ecn = CE;
                }
            }
            forwarded.count(slot);
        }
    }
}
