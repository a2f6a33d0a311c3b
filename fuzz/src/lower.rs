//! Any bytes as the ingress of a program for v1model, through the checker, the lowering and native code. A program that compiles
//! asks for no more state than it may, and does the same in both engines.

use std::sync::Arc;

use dataplane::pipeline::Pipeline;
use p4lang::compile_str;

use super::programs::options;

const HEAD: &str = "#include <v1model.p4>
header T { bit<8> a; varbit<32> v; bit<16> b; } header_union U { T x; T y; }
struct H { T t; T[3] s; U u; } struct M { bit<8> x; bit<65> w; int<9> i; bool f; }
parser P(packet_in p, out H h, inout M m, inout standard_metadata_t s) {
    state start { p.extract(h.t, 16); transition accept; }
}
control V(inout H h, inout M m) { apply {} }
control E(inout H h, inout M m, inout standard_metadata_t s) { apply {} }
control D(packet_out p, in H h) { apply { p.emit(h); } }
control I(inout H h, inout M m, inout standard_metadata_t s) {
";

const PACKETS: [&[u8]; 3] = [&[], &[1, 2, 3, 4, 5, 6, 7], &[0xff; 40]];

pub fn lower(bytes: &[u8]) {
    let body = String::from_utf8_lossy(bytes);
    let text = format!("{HEAD}{body}\n}} V1Switch(P(), V(), I(), E(), V(), D()) main;");
    let Some(program) = compile_str("fuzz.p4", &text, None, &options()).program else { return };
    assert!(p4lang::sizes::frame(&program) <= 1 << 18);
    let program = Arc::new(program);
    let (Ok(mut one), Ok(mut other)) =
        (Pipeline::interpreted(program.clone(), 1), Pipeline::compiled(program, 1))
    else {
        return;
    };
    for packet in PACKETS {
        let (mut expected, mut found) = (Vec::new(), Vec::new());
        one.process(1, 1, packet, &mut expected);
        other.process(1, 1, packet, &mut found);
        assert_eq!(expected, found);
    }
}
