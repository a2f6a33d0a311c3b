// log_msg: numbers with their sign, and every field of what is composite.
#include <core.p4>
#include <v1model.p4>

struct pair_t { int<8> low; bit<8> high; }
header h_t { bit<4> a; bit<4> b; pair_t pair; }
struct H { h_t h; h_t[2] stack; }
struct M { bit<8> x; }

parser P(packet_in p, out H hdr, inout M m, inout standard_metadata_t sm) {
    state start { p.extract(hdr.h); transition accept; }
}

control V(inout H hdr, inout M m) { apply { } }

control I(inout H hdr, inout M m, inout standard_metadata_t sm) {
    apply {
        sm.egress_spec = 1;
        log_msg("plain");
        log_msg("low {}, header {} and {}", { hdr.h.pair.low, hdr.h, hdr.h.isValid() });
        log_msg("{}{}", { hdr.stack, (bit<8>)hdr.h.pair.low });
    }
}

control E(inout H hdr, inout M m, inout standard_metadata_t sm) { apply { } }
control C(inout H hdr, inout M m) { apply { } }
control D(packet_out p, in H hdr) { apply { p.emit(hdr); } }

V1Switch(P(), V(), I(), E(), C(), D()) main;
