// Headers, and the parser. The option is described to the bit in README.md.

const bit<8> OPTION_PACING = 94;
const bit<8> OPTION_LENGTH = 12;
// Of IPv6, where the length does not count the first two bytes. Switches may change it; who does not know it skips it.
const bit<8> OPTION_PACING6 = 0x3e;
const bit<8> OPTION_PAD = 1;
const bit<8> PROTOCOL_HOP_BY_HOP = 0;
const bit<4> OPTION_WORDS = 3;

const bit<1> VERSION = 0;
// What an option says.
const bit<3> JOIN = 0;
const bit<3> TRACE = 1;
const bit<3> NOTICE = 2;
const bit<3> UPDATE = 3;
const bit<3> SEEN = 4;

// In place of a NOTICE's and a SEEN's hops: it is for all flows of the host that have a share of the link.
const bit<3> FOR_ALL = 1;

// Packets of the packet generator (an experimental type of IEEE 802).
const bit<16> TYPE_TICK = 0x88b6;

const bit<8> FIN = 1;
const bit<8> SYN = 2;
const bit<8> RST = 4;
const bit<8> ACK = 16;

header option_t {
    bit<8>  type;
    bit<8>  length;
    bit<1>  version;
    // Which of two keys the check is made with.
    bit<1>  key;
    bit<3>  kind;
    bit<3>  hops;
    bit<8>  link;
    // UPDATE: what the flow takes. TRACE, NOTICE: what the link's flows share.
    bit<16> rate;
    // JOIN, UPDATE: the flow's weight. TRACE, NOTICE: the sum of those of the flows that share.
    bit<16> weight;
    // NOTICE, SEEN: counts the link's changes.
    bit<8>  sequence;
    bit<24> check;
}

// IPv6's hop-by-hop options header; its length is in 8 bytes, less the first 8.
header hop_t {
    bit<8> next_header;
    bit<8> length;
}

header pad_t {
    bit<8> type;
    bit<8> length;
}

header pad4_t {
    bit<8>  type;
    bit<8>  length;
    bit<16> zeros;
}

header rest_t {
    varbit<320> bytes;
}

header tcp_t {
    bit<16> src_port;
    bit<16> dst_port;
    bit<32> seq;
    bit<32> ack;
    bit<4>  offset;
    bit<4>  reserved;
    bit<8>  flags;
    bit<16> window;
    bit<16> checksum;
    bit<16> urgent;
}

header tick_t {
    bit<16> unused;
}

struct headers_t {
    ethernet_t ethernet;
    tick_t     tick;
    vlan_t     vlan;
    ipv4_t     ipv4;
    ipv6_t     ipv6;
    hop_t      hop;
    option_t   option;
    // The option of the switch before, if this one has put its own in front.
    pad4_t     between;
    option_t   behind;
    pad_t      pad;
    // Options behind ours, or options without ours.
    rest_t     rest;
    tcp_t      tcp;
}

parser PacingParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) {
            TYPE_IPV4: ipv4;
            TYPE_IPV6: ipv6;
            TYPE_VLAN: vlan;
            TYPE_TICK: tick;
            default: accept;
        }
    }

    state vlan {
        packet.extract(hdr.vlan);
        transition select(hdr.vlan.type) {
            TYPE_IPV4: ipv4;
            TYPE_IPV6: ipv6;
            default: accept;
        }
    }

    state tick {
        packet.extract(hdr.tick);
        transition accept;
    }

    state ipv4 {
        packet.extract(hdr.ipv4);
        transition select(hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.fragment_offset) {
            (4, 5, 0): protocol;
            (4, 8 .. 15, 0): options;
            (4, 6 .. 15, 0): others;
            default: accept;
        }
    }

    // The option counts where it is the first.
    state options {
        transition select(packet.lookahead<bit<16>>()) {
            0x5e0c: option;
            default: others;
        }
    }

    state option {
        packet.extract(hdr.option);
        transition select(hdr.ipv4.ihl) {
            8: protocol;
            default: behind;
        }
    }

    state behind {
        packet.extract(hdr.rest, (bit<32>) (hdr.ipv4.ihl - 8) << 5);
        transition protocol;
    }

    state others {
        packet.extract(hdr.rest, (bit<32>) (hdr.ipv4.ihl - 5) << 5);
        transition protocol;
    }

    state ipv6 {
        packet.extract(hdr.ipv6);
        transition select(hdr.ipv6.next_header) {
            PROTOCOL_TCP: tcp;
            PROTOCOL_HOP_BY_HOP: hop;
            default: accept;
        }
    }

    state hop {
        packet.extract(hdr.hop);
        transition select(hdr.hop.length, packet.lookahead<bit<16>>()) {
            (1 .. 5, 0x3e0a): option6;
            (0 .. 4, _): others6;
            default: accept;
        }
    }

    state option6 {
        packet.extract(hdr.option);
        packet.extract(hdr.rest, (bit<32>) ((hdr.hop.length << 3) - 6) << 3);
        transition protocol6;
    }

    state others6 {
        packet.extract(hdr.rest, (bit<32>) ((hdr.hop.length << 3) + 6) << 3);
        transition protocol6;
    }

    state protocol6 {
        transition select(hdr.hop.next_header) {
            PROTOCOL_TCP: tcp;
            default: accept;
        }
    }

    state protocol {
        transition select(hdr.ipv4.protocol) {
            PROTOCOL_TCP: tcp;
            default: accept;
        }
    }

    state tcp {
        packet.extract(hdr.tcp);
        transition accept;
    }
}
