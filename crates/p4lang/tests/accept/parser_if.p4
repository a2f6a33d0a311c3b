#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> a; bit<8> b; bit<16> c; }
struct H { h_t h; h_t g; }
struct M { bit<8> x; }

parser MyP(packet_in p, out H h, inout M m, inout standard_metadata_t sm) { bit<8> cnt = 0; state start { p.extract(h.h); if (h.h.a == 1) { cnt = cnt + 1; } else { cnt = 2; } { m.x = cnt; } verify(cnt < 5, error.NoMatch); transition select(cnt, h.h.b) { (1, 2 &&& 3): accept; (_, 1..4): accept; default: start2; } } state start2 { const bit<8> K = 4; transition select(h.h.a == K, h.h.b[3:0]) { (true, 3): reject; (false, _): accept; } } }
control MyV(inout H h, inout M m) { apply {  } }
control MyI(inout H h, inout M m, inout standard_metadata_t sm) {  apply {  } }
control MyE(inout H h, inout M m, inout standard_metadata_t sm) { apply {  } }
control MyC(inout H h, inout M m) { apply {  } }
control MyD(packet_out p, in H h) { apply { p.emit(h.h); } }
V1Switch(MyP(), MyV(), MyI(), MyE(), MyC(), MyD()) main;
