#include <core.p4>
#include <v1model.p4>

header h_t { bit<8> a; bit<8> b; bit<8> c; bit<8> d; }
struct H { h_t h; }
struct M { bit<8> x; }
struct pair_t { bit<8> x; bit<8> y; }
struct data_t { pair_t p; bit<8> z; }

parser P(packet_in p, out H hdr, inout M m, inout standard_metadata_t sm) {
    
    state start { p.extract(hdr.h); transition accept; }
}

control V(inout H hdr, inout M m) {
    apply {  }
}

control I(inout H hdr, inout M m, inout standard_metadata_t sm) {
    action set(data_t s, bit<8> last) { hdr.h = { s.p.x, s.p.y, s.z, last }; }
    table t {
        key = { hdr.h.a : exact; }
        actions = { set; }
        // Sections 14.2.1.3 and 8.26: what `...` leaves out is zero, and what follows stays in its place.
        default_action = set({ z = 3, ... }, 4);
        const entries = {
            1 : set({ { 5, 6 }, 7 }, 8);
            2 : set({ { y = 9, ... }, ... }, 8);
        }
    }
    apply {
        sm.egress_spec = 1;
        t.apply();
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
