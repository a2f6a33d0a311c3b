#include <core.p4>
#include <v1model.p4>

header s_t { bit<8> last; bit<8> v; }
header r_t { bit<8> code; bit<8> count; }
struct H { r_t r; s_t[2] s; }
struct M { bit<32> n; }

parser P(packet_in p, out H hdr, inout M m, inout standard_metadata_t sm) {
    
    
    state start { p.extract(hdr.s.next); m.n = hdr.s.lastIndex; transition select(hdr.s.last.last) { 0: start; default: accept; } }
}

control V(inout H hdr, inout M m) {
    apply {  }
}

control I(inout H hdr, inout M m, inout standard_metadata_t sm) {
    
    apply {
        sm.egress_spec = 1;
        hdr.r.setValid();
        hdr.r.count = (bit<8>) m.n;
        if (sm.parser_error == error.StackOutOfBounds) { hdr.r.code = 0xaa; }
        else if (sm.parser_error == error.PacketTooShort) { hdr.r.code = 0xbb; }
        else { hdr.r.code = 0; }
        hdr.s.push_front(1);
        if (!hdr.s[0].isValid()) { hdr.s[0] = { 9, 9 }; }
    }
}

control E(inout H hdr, inout M m, inout standard_metadata_t sm) {
    apply {  }
}

control C(inout H hdr, inout M m) {
    apply {  }
}

control D(packet_out p, in H hdr) {
    apply { p.emit(hdr); }
}

V1Switch(P(), V(), I(), E(), C(), D()) main;
