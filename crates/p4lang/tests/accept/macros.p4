#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> a; bit<8> b; bit<16> c; bit<32> d; }
struct H { h_t h; }
struct M { bit<48> t; bit<16> n; bit<32> i; }

// Shifts in macros, pasted names and statements, tables made by macros, and annotations with conditionals inside.
#define TICKS (48w80000 >> 10) // about 78
#define SCALE(x) (((x) >> 2) + ((x) >> 1))
#define BLOCKS 3
#define LIMITED
#define CELLS(n) register<bit<32>>(16) cells_##n
#define COUNT(n, ...) hash(meta.i, HashAlgorithm.crc32, 16w0, { __VA_ARGS__ }, 32w16); \
    cells_##n.read(hdr.h.d, meta.i); \
    cells_##n.write(meta.i, hdr.h.d + 1)
#define STEP(n) else if (hdr.h.a[n:0] == hdr.h.b[n:0]) { hdr.h.b = hdr.h.b + n; }
#define APPLY(names...) apply_each(names)
#define apply_each(first, ...) first##.apply(); __VA_OPT__(__VA_ARGS__.apply();)

parser P(packet_in b, out H hdr, inout M meta, inout standard_metadata_t sm) {
    state start { b.extract(hdr.h); transition accept; }
}
control V(inout H hdr, inout M meta) { apply { } }
control I(inout H hdr, inout M meta, inout standard_metadata_t sm) {
    CELLS(first);
    CELLS(second);
    action set(bit<8> v) { hdr.h.b = v; }
    @entry_restriction("
    // Nobody's `a` is zero.
    a::mask != 0 -> a != 0;
#ifdef LIMITED
    a < 200;
#else
    a < 100;
#endif
    ")
    table limited {
        key = { hdr.h.a : ternary @name("a"); }
        actions = { set; NoAction; }
        default_action = NoAction();
    }
    table other { key = { hdr.h.c : exact; } actions = { set; } }
    apply {
        meta.t = sm.ingress_global_timestamp >> 3;
        if (meta.t > TICKS) { meta.n = SCALE(hdr.h.c) >> 1; }
        #meta.n = 0; // it's off
        COUNT(first, hdr.h.a, hdr.h.b);
        COUNT(second, hdr.h.c);
        if (hdr.h.a == 0) { hdr.h.b = BLOCKS; } STEP(0) STEP(1) STEP(2) else { hdr.h.b = 9; }
        APPLY(limited, other)
        hdr.h.c = meta.n + (bit<16>)SCALE(meta.i)[15:0];
        sm.egress_spec = 2;
    }
}
control E(inout H hdr, inout M meta, inout standard_metadata_t sm) { apply { } }
control D(packet_out b, in H hdr) { apply { b.emit(hdr); } }
V1Switch(P(), V(), I(), E(), V(), D()) main;
