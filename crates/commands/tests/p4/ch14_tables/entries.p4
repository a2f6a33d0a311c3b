#include <core.p4>
#include <v1model.p4>

header h_t { bit<8> a; bit<8> b; bit<16> c; bit<32> d; }
struct H { h_t h; }
struct M { bit<8> x; bit<16> y; }

parser P(packet_in p, out H hdr, inout M m, inout standard_metadata_t sm) {
    
    state start { p.extract(hdr.h); transition accept; }
}

control V(inout H hdr, inout M m) {
    apply {  }
}

control I(inout H hdr, inout M m, inout standard_metadata_t sm) {
    
    action set(bit<8> v) { hdr.h.b = v; }
    table ex { key = { hdr.h.a : exact; hdr.h.c : exact; } actions = { set; NoAction; } const entries = { (1, 2) : set(0x11); (1, 3) : set(0x12); } }
    table lp { key = { hdr.h.d : lpm; } actions = { set; NoAction; } const entries = { 0x0a000000 &&& 0xff000000 : set(0x21); 0x0a0b0000 &&& 0xffff0000 : set(0x22); _ : set(0x23); } }
    table te { key = { hdr.h.a : ternary; hdr.h.c : range; } actions = { set; NoAction; }
        const entries = { (0x0f &&& 0x0f, _) : set(0x31); (_, 100 .. 200) : set(0x32); (0x10, 5) : set(0x33); (0x10 &&& 0xf0, _) : set(0x34); } }
    table pr { key = { hdr.h.a : optional; } actions = { set; NoAction; } largest_priority_wins = false;
        @noWarn("entries_out_of_priority_order") entries = { priority = 20 : _ : set(0x41); priority = 10 : 7 : set(0x42); } }
    apply {
        sm.egress_spec = 1;
        if (hdr.h.a == 1) { if (!ex.apply().hit) { hdr.h.b = 0xff; } }
        else if (hdr.h.a == 2) { lp.apply(); }
        else if (hdr.h.a == 7 || hdr.h.a == 8) { pr.apply(); }
        else { te.apply(); }
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
