// A trace: what a link gives to a flow, on the flow's SYN-ACK.

// Bytes that an option takes in an IPv6 header: a header of its own with padding, or padded behind another option.
const bit<16> OPTION_BYTES6 = 16;

// A TRACE option of a link.
void fill_trace(inout option_t option, in bit<8> type, in bit<8> length, in bit<3> hops, in bit<1> key_number, in bit<8> id,
                in bit<32> share, in bit<32> sum) {
    option.setValid();
    option.type = type;
    option.length = length;
    option.version = VERSION;
    option.kind = TRACE;
    option.sequence = 0;
    option.hops = hops == 7 ? 3w7 : hops + 1;
    option.key = key_number;
    option.link = id;
    option.rate = packed(share);
    option.weight = packed_up(sum);
    option.check = 0;
}

// The narrowest link stays in the option, or, with `each`, a link's option is put before those that are there. `room`: there was
// room for it.
control WriteTrace(inout headers_t hdr, in flow_t flow, in ends_t ends, in bool is_trace, in bit<1> each, in bit<64> key, in bit<1> key_number,
                   in bit<1> needs_check, in bit<8> id, in bit<32> share, in bit<32> sum, out bool room) {
    apply {
        bool grows = !is_trace || each == 1 && (hdr.ipv6.isValid() ? hdr.hop.length <= 5 : hdr.ipv4.ihl <= 15 - OPTION_WORDS);
        bool writes = true;
        bit<3> hops = is_trace ? hdr.option.hops : 0;
        bit<32> words = 0;
        room = true;
        if (!is_trace) {
            // Other options of IPv6 stay alone.
            room = hdr.ipv6.isValid() ? !hdr.hop.isValid() : hdr.ipv4.ihl <= 15 - OPTION_WORDS;
            writes = room;
        } else if (!grows) {
            room = each == 0;
            writes = (bit<64>) share * (bit<64>) number(hdr.option.weight) < (bit<64>) number(hdr.option.rate) * (bit<64>) sum;
        }
        if (writes) {
            if (is_trace && grows) {
                hdr.behind = hdr.option;
                if (hdr.ipv6.isValid()) {
                    hdr.hop.length = hdr.hop.length + 2;
                    hdr.ipv6.payload_length = hdr.ipv6.payload_length + OPTION_BYTES6;
                    hdr.between.setValid();
                    hdr.between.type = OPTION_PAD;
                    hdr.between.length = 2;
                    hdr.between.zeros = 0;
                }
            } else if (grows && hdr.ipv6.isValid()) {
                hdr.hop.setValid();
                hdr.hop.next_header = hdr.ipv6.next_header;
                hdr.hop.length = 1;
                hdr.ipv6.next_header = PROTOCOL_HOP_BY_HOP;
                hdr.ipv6.payload_length = hdr.ipv6.payload_length + OPTION_BYTES6;
                hdr.pad.setValid();
                hdr.pad.type = OPTION_PAD;
                hdr.pad.length = 0;
            } else if (is_trace) {
                words = minus(sum_of(hdr.option));
            }
            if (grows && hdr.ipv4.isValid()) {
                hdr.ipv4.ihl = hdr.ipv4.ihl + OPTION_WORDS;
                hdr.ipv4.total_length = hdr.ipv4.total_length + 12;
                // What the header's first words grow by.
                words = 0x0300 + 12;
            }
            if (hdr.ipv6.isValid()) {
                fill_trace(hdr.option, OPTION_PACING6, OPTION_LENGTH - 2, hops, key_number, id, share, sum);
            } else {
                fill_trace(hdr.option, OPTION_PACING, OPTION_LENGTH, hops, key_number, id, share, sum);
            }
            if (needs_check == 1) {
                hdr.option.check = check_of(key, flow, hdr.ipv6.isValid(), ends, hdr.tcp.ack, hdr.option);
            }
            if (hdr.ipv4.isValid()) {
                hdr.ipv4.checksum = ~(bit<16>) folded(folded((bit<32>) ~hdr.ipv4.checksum + words + sum_of(hdr.option)));
            }
        }
    }
}
