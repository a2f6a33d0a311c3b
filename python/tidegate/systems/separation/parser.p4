// What the monitor reads of a packet: IPv4 and IPv6, with VLAN tags or without, TCP and UDP.

const bit<16> TYPE_SERVICE_VLAN = 0x88a8;

const bit<8> FIN = 0x01;
const bit<8> SYN = 0x02;
const bit<8> RST = 0x04;
const bit<8> ACK = 0x10;

// Extension headers of IPv6 (RFC 8200 section 4, RFC 4302), and how many of a packet are walked at most. RFC 8200 section 4.1 knows
// six, if each is there as often as it should be.
const bit<8> HOP_BY_HOP = 0;
const bit<8> ROUTING = 43;
const bit<8> FRAGMENT = 44;
const bit<8> AUTHENTICATION = 51;
const bit<8> DESTINATION = 60;
const bit<8> MOST_EXTENSIONS = 6;

// NOP, NOP, timestamps: as hosts write them (RFC 7323, appendix A).
const bit<32> TIMESTAMPS = 0x0101080a;

// What a tap's copies are for.
const bit<4> TRACKS = 1;  // sequence and acknowledgment numbers
const bit<4> COUNTS = 2;  // bytes and packets
const bit<4> LEAVES = 4;  // the packet has come to the second tap
const bit<4> OFFERS = 8;  // it is on its way to the router

header tcp_t {
    bit<16> src_port;
    bit<16> dst_port;
    bit<32> seq;
    bit<32> ack;
    bit<4>  data_offset;
    bit<4>  reserved;
    bit<8>  flags;
    bit<16> window;
    bit<16> checksum;
    bit<16> urgent;
}

header timestamps_t {
    bit<32> kind;
    bit<32> value;
    bit<32> echo;
}

struct headers_t {
    ethernet_t   ethernet;
    vlan_t[2]    vlan;
    ipv4_t       ipv4;
    ipv6_t       ipv6;
    tcp_t        tcp;
    ports_t      udp;
    timestamps_t timestamps;
}

struct metadata_t {
    bit<4>  sees;
    bit<32> now;
    bit<8>  protocol;
    // Extension headers that were walked; more than that, if more follow.
    bit<8>  extensions;
    // IP bytes, and those of the payload of TCP.
    bit<32> length;
    bit<32> payload;
    // Of the 5-tuple, the same in both directions.
    bit<32> flow_hash;
    // Where the flow's measurements are, and those of this direction and of the other.
    bit<32> place;
    bit<32> forth;
    bit<32> back;
}

parser MonitorParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) {
            TYPE_IPV4: ipv4;
            TYPE_IPV6: ipv6;
            TYPE_VLAN: vlan;
            TYPE_SERVICE_VLAN: vlan;
            default: accept;
        }
    }

    state vlan {
        packet.extract(hdr.vlan.next);
        transition select(hdr.vlan.last.type) {
            TYPE_IPV4: ipv4;
            TYPE_IPV6: ipv6;
            TYPE_VLAN: vlan;
            default: accept;
        }
    }

    state ipv4 {
        packet.extract(hdr.ipv4);
        meta.protocol = hdr.ipv4.protocol;
        meta.length = (bit<32>) hdr.ipv4.total_length;
        meta.payload = (bit<32>) hdr.ipv4.total_length - ((bit<32>) hdr.ipv4.ihl << 2);
        transition select(hdr.ipv4.ihl, hdr.ipv4.fragment_offset) {
            (5, 0): above;
            (6 .. 15, 0): options;
            default: accept;
        }
    }

    state options {
        packet.advance(((bit<32>) hdr.ipv4.ihl - 5) << 5);
        transition above;
    }

    state ipv6 {
        packet.extract(hdr.ipv6);
        meta.protocol = hdr.ipv6.next_header;
        meta.length = (bit<32>) hdr.ipv6.payload_length + 40;
        meta.payload = (bit<32>) hdr.ipv6.payload_length;
        transition behind_ipv6;
    }

    state behind_ipv6 {
        transition select(meta.protocol) {
            PROTOCOL_TCP: tcp;
            PROTOCOL_UDP: udp;
            HOP_BY_HOP: extension;
            ROUTING: extension;
            DESTINATION: extension;
            FRAGMENT: extension;
            AUTHENTICATION: extension;
            default: accept;
        }
    }

    // A next header, and where all but fragments have their length. What comes behind too many is not looked at.
    state extension {
        meta.extensions = meta.extensions + 1;
        transition select(meta.extensions, meta.protocol) {
            (MOST_EXTENSIONS + 1, _): accept;
            (_, FRAGMENT): fragment;
            (_, AUTHENTICATION): authentication;
            default: of_eight_bytes;
        }
    }

    state of_eight_bytes {
        bit<16> next = packet.lookahead<bit<16>>();
        bit<32> units = (bit<32>) next[7:0] + 1;
        packet.advance(units << 6);
        meta.payload = meta.payload - (units << 3);
        meta.protocol = next[15:8];
        transition behind_ipv6;
    }

    state authentication {
        bit<16> next = packet.lookahead<bit<16>>();
        bit<32> units = (bit<32>) next[7:0] + 2;
        packet.advance(units << 5);
        meta.payload = meta.payload - (units << 2);
        meta.protocol = next[15:8];
        transition behind_ipv6;
    }

    // Fragments other than the first have no ports (RFC 8200 section 4.5).
    state fragment {
        bit<32> next = packet.lookahead<bit<32>>();
        packet.advance(64);
        meta.payload = meta.payload - 8;
        meta.protocol = next[31:24];
        transition select(next[15:3]) {
            0: behind_ipv6;
            default: accept;
        }
    }

    state above {
        transition select(meta.protocol) {
            PROTOCOL_TCP: tcp;
            PROTOCOL_UDP: udp;
            default: accept;
        }
    }

    state udp {
        packet.extract(hdr.udp);
        transition accept;
    }

    state tcp {
        packet.extract(hdr.tcp);
        meta.payload = meta.payload - ((bit<32>) hdr.tcp.data_offset << 2);
        transition select(hdr.tcp.data_offset) {
            8 .. 15: options_of_tcp;
            default: accept;
        }
    }

    state options_of_tcp {
        transition select(packet.lookahead<bit<32>>()) {
            TIMESTAMPS: timestamps;
            default: accept;
        }
    }

    state timestamps {
        packet.extract(hdr.timestamps);
        transition accept;
    }
}
