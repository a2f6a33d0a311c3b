// The field in a shim header between Ethernet (and its VLAN tag) and any payload, for networks whose hosts all know it: parser.
//
// EtherType 0x88b5 (IEEE 802, for local experiments), then the payload's own EtherType, the length of the field, and the field.

const bit<16> TYPE_SHIM = 0x88b5;
const bit<8> FIELD_LENGTH = VALUE_BYTES + 1;

header stamp_t {
    bit<16>         next;
    bit<8>          length;
    bit<VALUE_BITS> value;
    bit<2>          version;
    bit<6>          hops;
}

struct headers_t {
    ethernet_t ethernet;
    vlan_t     vlan;
    stamp_t    stamp;
}

parser StampParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) {
            TYPE_SHIM: shim;
            TYPE_VLAN: vlan;
            default: accept;
        }
    }

    state vlan {
        packet.extract(hdr.vlan);
        transition select(hdr.vlan.type) {
            TYPE_SHIM: shim;
            default: accept;
        }
    }

    state shim {
        meta.field = FIELD_MALFORMED;
        transition select(packet.lookahead<bit<24>>()) {
            ((bit<24>) TYPE_SHIM << 8 &&& 0xffff00): repeated;
            ((bit<24>) FIELD_LENGTH &&& 0x0000ff): found;
            default: accept;
        }
    }

    state repeated {
        meta.field = FIELD_REPEATED;
        transition accept;
    }

    state found {
        packet.extract(hdr.stamp);
        meta.field = FIELD_FOUND;
        transition accept;
    }
}
