// The field as an IPv4 option, anywhere among the others: parser, and the header's checksum.
//
// The option's type is 30 (RFC 4727, for experiments). Its bytes stay where they are, and so do all others.

#define OPTION_LENGTH (3 + VALUE_BYTES)
// The option and its padding to a multiple of 4 bytes.
#define PADDED ((OPTION_LENGTH + 3) / 4 * 4)

const bit<8> OPTION_END = 0;
const bit<8> OPTION_NOP = 1;
const bit<8> OPTION_STAMP = 30;

header options_t {
    varbit<320> bytes;
}

header stamp_t {
    bit<8>          type;
    bit<8>          length;
    bit<VALUE_BITS> value;
    bit<2>          version;
    bit<6>          hops;
}

#include "checksum.p4"

struct headers_t {
    ethernet_t ethernet;
    vlan_t     vlan;
    ipv4_t     ipv4;
    // Options before the stamp. Those after it stay in the packet's payload.
    options_t  before;
    stamp_t    stamp;
}

// A parser state for a header with so many words of options.
#define OPTIONS(words) \
    state options_##words { \
        rest = packet.lookahead<bit<(32 * words)>>() ++ (bit<(320 - 32 * words)>) 0; \
        left = 4 * words; \
        transition walk; \
    }

parser StampParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    // The options from the one looked at on, and how many bytes they are; the stamp's place.
    bit<320> rest;
    bit<8>   left;
    bit<8>   length;
    bit<8>   place;
    bit<8>   size;

    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) {
            TYPE_IPV4: ipv4;
            TYPE_VLAN: vlan;
            default: accept;
        }
    }

    state vlan {
        packet.extract(hdr.vlan);
        transition select(hdr.vlan.type) {
            TYPE_IPV4: ipv4;
            default: accept;
        }
    }

    state ipv4 {
        packet.extract(hdr.ipv4);
        transition select(hdr.ipv4.version, hdr.ipv4.ihl) {
            (4, 5): accept;
            (4, 5 + PADDED / 4): alone;
            (4, 6 .. 15): options;
            default: accept;
        }
    }

    // Most packets have the stamp, perhaps its padding, and no other option.
    state alone {
        meta.field = FIELD_MALFORMED;
        transition select(packet.lookahead<bit<(8 * PADDED)>>()) {
            ((30 << 8 | OPTION_LENGTH) << (8 * PADDED - 16))
                &&& ((0xffff << (8 * PADDED - 16)) | ((1 << (8 * (PADDED - OPTION_LENGTH))) - 1)): found;
            default: options;
        }
    }

    state found {
        packet.extract(hdr.stamp);
        meta.field = FIELD_FOUND;
        transition accept;
    }

    state options {
        meta.field = FIELD_MALFORMED;
        place = 255;
        transition select(hdr.ipv4.ihl) {
            6: options_1;
            7: options_2;
            8: options_3;
            9: options_4;
            10: options_5;
            11: options_6;
            12: options_7;
            13: options_8;
            14: options_9;
            default: options_10;
        }
    }

    OPTIONS(1)
    OPTIONS(2)
    OPTIONS(3)
    OPTIONS(4)
    OPTIONS(5)
    OPTIONS(6)
    OPTIONS(7)
    OPTIONS(8)
    OPTIONS(9)

    state options_10 {
        rest = packet.lookahead<bit<320>>();
        left = 40;
        transition walk;
    }

    state walk {
        length = rest[311:304];
        transition select(left, rest[319:312]) {
            (0, _): walked;
            (_, OPTION_END): walked;
            (_, OPTION_NOP): no_operation;
            (_, OPTION_STAMP): stamp;
            default: other;
        }
    }

    state no_operation {
        rest = rest << 8;
        left = left - 1;
        transition walk;
    }

    state other {
        transition select(length >= 2 && length <= left) {
            true: next;
            default: accept;
        }
    }

    state stamp {
        transition select(place == 255, length == OPTION_LENGTH && length <= left) {
            (false, _): repeated;
            (true, true): first;
            default: accept;
        }
    }

    state first {
        place = 4 * (bit<8>) (hdr.ipv4.ihl - 5) - left;
        transition next;
    }

    state next {
        // By 8 times the length, in two steps: the reference switch shifts by amounts of 8 bits. What is left has 40 bytes at most.
        rest = rest << (length << 2) << (length << 2);
        left = left - length;
        transition walk;
    }

    state repeated {
        meta.field = FIELD_REPEATED;
        transition accept;
    }

    state walked {
        transition select(place) {
            255: none;
            0: found;
            default: behind;
        }
    }

    state none {
        meta.field = FIELD_NONE;
        transition accept;
    }

    state behind {
        meta.odd = place[0:0];
        packet.extract(hdr.before, (bit<32>) place << 3);
        transition found;
    }
}
