#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> a; bit<8> b; bit<16> c; }
struct H { h_t h; h_t[4] s; }
struct M { bit<8> x; }

parser MyP(packet_in p, out H h, inout M m, inout standard_metadata_t sm) {  state start { p.extract(h.h); transition next; } state next { p.extract(h.s.next); transition select(h.s.last.a) { 0: accept; _: next; } } }
control MyV(inout H h, inout M m) { apply {  } }
control MyI(inout H h, inout M m, inout standard_metadata_t sm) {  apply { h.s.push_front(1); h.s[0].setValid(); h.s[0].a = 1; h.s.pop_front(2); h.s[h.h.a].b = 3; bit<32> n = (bit<32>)h.s[1].minSizeInBits(); h.h.a = (bit<8>) h.s.size; h_t[4] cp = h.s; if (cp == h.s) { h.h.b = 1; } if (h.s[h.h.b].isValid()) { h.s[h.h.b].setInvalid(); } } }
control MyE(inout H h, inout M m, inout standard_metadata_t sm) { apply {  } }
control MyC(inout H h, inout M m) { apply {  } }
control MyD(packet_out p, in H h) { apply { p.emit(h.h); p.emit(h.s); } }
V1Switch(MyP(), MyV(), MyI(), MyE(), MyC(), MyD()) main;
