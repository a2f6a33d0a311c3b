//! Sums of 16-bit words, of lists that are added up in several ways, beside the interpreter.

use std::sync::Arc;

use units::SplitMix;

use crate::pipeline::Pipeline;

/// Runs packets whose words are often all zeros or all ones through both; gives how many different ones leave.
fn agree(source: &str, length: usize) -> usize {
    let compiled = p4lang::compile_str("sums.p4", source, None, &p4lang::Options::default());
    let program = Arc::new(compiled.program.unwrap_or_else(|| panic!("{:?}", compiled.diagnostics)));
    let mut both =
        [Pipeline::interpreted(program.clone(), 1).unwrap(), Pipeline::compiled(program, 1).unwrap()];
    let mut rng = SplitMix::new(1);
    let mut seen = std::collections::HashSet::new();
    for round in 0..3000 {
        let kinds = rng.next_u64();
        let bytes: Vec<u8> = (0..length)
            .map(|at| match kinds >> (at / 2 % 32 * 2) & 3 {
                0 => 0,
                1 => 0xff,
                _ => rng.next_u64() as u8,
            })
            .collect();
        let [expected, native] = both.each_mut().map(|pipeline| {
            let mut out = Vec::new();
            pipeline.process(0, 1, &bytes, &mut out);
            out
        });
        assert_eq!(native, expected, "{round}: {bytes:02x?}");
        seen.insert(expected[0].bytes.clone());
    }
    seen.len()
}

/// `declared`: fields of the header; `ingress`, `compute`: bodies.
fn source(declared: &str, verify: &str, ingress: &str, compute: &str) -> String {
    format!(
        r#"
#include <core.p4>
#include <v1model.p4>
header h_t {{ {declared} }}
header more_t {{ bit<32> w; bit<8> x; bit<24> y; bit<48> z; }}
struct H {{ h_t h; more_t more; }}
struct M {{ }}
parser P(packet_in p, out H hdr, inout M m, inout standard_metadata_t sm) {{
    state start {{ p.extract(hdr.h); p.extract(hdr.more); transition accept; }}
}}
control V(inout H hdr, inout M m) {{ apply {{ {verify} }} }}
control I(inout H hdr, inout M m, inout standard_metadata_t sm) {{
    apply {{ sm.egress_spec = 1; hdr.h.wrong = (bit<8>) (bit<1>) sm.checksum_error; {ingress} }}
}}
control E(inout H hdr, inout M m, inout standard_metadata_t sm) {{ apply {{ }} }}
control C(inout H hdr, inout M m) {{ apply {{ {compute} }} }}
control D(packet_out p, in H hdr) {{ apply {{ p.emit(hdr.h); p.emit(hdr.more); }} }}
V1Switch(P(), V(), I(), E(), C(), D()) main;
"#
    )
}

#[test]
fn sums_of_words_are_the_same_in_place() {
    let fields = "bit<8> wrong; bit<8> a; bit<16> sum; bit<16> other; bit<16> b; bit<64> c; bit<4> d; bit<12> e; bit<48> f;";
    let lists = [
        "hdr.h.b",
        "hdr.h.a",
        "hdr.h.b, hdr.h.c",
        "hdr.h.b, hdr.h.c, hdr.h.d, hdr.h.e, hdr.h.f",
        "hdr.h.b, hdr.h.c, hdr.h.a, hdr.more.x, hdr.h.f, hdr.more.w",
        "hdr.more.w, hdr.more.x, hdr.more.y, hdr.more.z",
        "hdr.h.d, hdr.h.c, hdr.h.f, hdr.h.e, hdr.h.c, hdr.more.z",
        "hdr.h.c, hdr.h.c, hdr.h.c, hdr.h.c, hdr.h.c, hdr.h.c, hdr.h.c, hdr.h.c, hdr.h.c, hdr.h.c, hdr.h.a",
        "hdr.h.e ++ hdr.h.c ++ hdr.h.f, hdr.h.d",
    ];
    for list in lists {
        for written in ["", "hdr.more.x = hdr.more.x - 1;", "hdr.h.c[15:0] = hdr.h.b; hdr.more.w = 0;"] {
            let verify = format!("verify_checksum(true, {{ {list} }}, hdr.h.sum, HashAlgorithm.csum16);");
            let compute = format!(
                "update_checksum(true, {{ {list} }}, hdr.h.other, HashAlgorithm.csum16);
                 update_checksum_with_payload(hdr.h.wrong == 1, {{ {list} }}, hdr.h.sum, HashAlgorithm.csum16);"
            );
            let different = agree(&source(fields, &verify, written, &compute), 60);
            assert!(different > 2000, "{list}: {different}");
        }
    }
}
