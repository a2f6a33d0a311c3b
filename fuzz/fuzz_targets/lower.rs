//! Any bytes as the ingress of a program for v1model: the checker and the lowering end within a small budget, and a program
//! that compiles asks for no more state than it may.
#![no_main]

use libfuzzer_sys::fuzz_target;
use p4lang::{Limits, Options, compile_str};

const HEAD: &str = "#include <v1model.p4>
header T { bit<8> a; varbit<32> v; bit<16> b; } header_union U { T x; T y; }
struct H { T t; T[3] s; U u; } struct M { bit<8> x; bit<65> w; int<9> i; bool f; }
parser P(packet_in p, out H h, inout M m, inout standard_metadata_t s) { state start { transition accept; } }
control V(inout H h, inout M m) { apply {} }
control E(inout H h, inout M m, inout standard_metadata_t s) { apply {} }
control D(packet_out p, in H h) { apply {} }
control I(inout H h, inout M m, inout standard_metadata_t s) {
";

fuzz_target!(|bytes: &[u8]| {
    let body = String::from_utf8_lossy(bytes);
    let text = format!("{HEAD}{body}\n}} V1Switch(P(), V(), I(), E(), V(), D()) main;");
    let limits = Limits { work: 10_000_000, bytes: 32 << 20, ..Limits::default() };
    let compiled = compile_str("fuzz.p4", &text, None, &Options { no_files: true, limits, ..Options::default() });
    if let Some(program) = compiled.program {
        assert!(p4lang::sizes::frame(&program) <= 1 << 16);
    }
});
