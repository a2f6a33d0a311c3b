//! Headers that are left in the packet as they came: what leaves is the same as with the interpreter, whether or not a program lets the
//! deparser leave them.

#[expect(dead_code, reason = "these tests need a part of it")]
mod common;

use std::sync::Arc;

use dataplane::pipeline::{Output, Pipeline};
use dataplane::replication::Session;
use units::SplitMix;

/// Two headers and one that is in front of the second if the first says so. What a case has of its own stands in the braces.
struct Case {
    name: &'static str,
    /// Behind `a`; the states `b` and `c` read these headers and end.
    start: &'static str,
    ingress: &'static str,
    egress: &'static str,
    deparser: &'static str,
}

const ORDINARY: Case = Case {
    name: "nothing is written",
    start: "transition select(hdr.a.kind) { 1: b; 2: c; 3: both; default: accept; }",
    ingress: "",
    egress: "",
    deparser: "p.emit(hdr.a); p.emit(hdr.b); p.emit(hdr.c);",
};

const CASES: [Case; 16] = [
    ORDINARY,
    Case { name: "egress writes", egress: "hdr.a.x = 7;", ..ORDINARY },
    Case { name: "egress writes some", egress: "if (hdr.a.x[0:0] == 1) { hdr.b.x = 9; }", ..ORDINARY },
    Case { name: "ingress writes", ingress: "if (hdr.a.x[0:0] == 1) { hdr.a.x = 9; }", ..ORDINARY },
    Case { name: "egress removes", egress: "if (hdr.a.x[1:0] == 1) { hdr.b.setInvalid(); }", ..ORDINARY },
    Case {
        name: "egress adds",
        egress: "if (hdr.a.x[1:0] == 1) { hdr.c.setValid(); hdr.c.x = 3; }",
        ..ORDINARY
    },
    Case { name: "egress copies", egress: "if (hdr.a.x[1:0] == 1) { hdr.b = hdr.c; }", ..ORDINARY },
    Case { name: "ingress removes", ingress: "if (hdr.a.x[1:0] == 1) { hdr.b.setInvalid(); }", ..ORDINARY },
    Case {
        name: "something is skipped",
        start: "transition select(hdr.a.kind) { 1: b; 2: skip; default: accept; }",
        ..ORDINARY
    },
    Case {
        name: "half a byte is skipped and made up for",
        start: "transition select(hdr.a.kind) { 1: b; 2: half; default: accept; }",
        ..ORDINARY
    },
    Case { name: "another order", deparser: "p.emit(hdr.b); p.emit(hdr.a); p.emit(hdr.c);", ..ORDINARY },
    Case { name: "one is left out", deparser: "p.emit(hdr.a); p.emit(hdr.c);", ..ORDINARY },
    Case { name: "one leaves twice", deparser: "p.emit(hdr.a); p.emit(hdr.b); p.emit(hdr.a);", ..ORDINARY },
    Case {
        name: "clones have what egress wrote before",
        egress: "if (sm.instance_type == 0) { hdr.a.x = 5; clone(CloneType.E2E, 5); }",
        ..ORDINARY
    },
    Case {
        name: "clones of the packet as it came",
        ingress: "clone_preserving_field_list(CloneType.I2E, 5, 1);",
        egress: "if (sm.instance_type == 0) { hdr.a.x = 5; }",
        ..ORDINARY
    },
    Case {
        name: "a header of the pass before",
        egress: "if (sm.instance_type == 0 && hdr.a.kind == 1) { hdr.a.kind = 0; recirculate_preserving_field_list(2); }",
        ..ORDINARY
    },
];

fn source(case: &Case) -> String {
    let Case { start, ingress, egress, deparser, .. } = case;
    let listed = if egress.contains("list(2)") { "@field_list(2)" } else { "" };
    // A program without it stays at whole bytes.
    let half =
        if start.contains("half") { "state half { p.advance(4); p.advance(12); transition b; }" } else { "" };
    format!(
        r#"
#include <core.p4>
#include <v1model.p4>
header a_t {{ bit<8> kind; bit<8> x; }}
header b_t {{ bit<8> x; bit<16> y; }}
struct headers {{ a_t a; {listed} b_t b; b_t c; }}
struct meta {{ @field_list(1) bit<8> kept; }}
parser P(packet_in p, out headers hdr, inout meta m, inout standard_metadata_t sm) {{
    state start {{ p.extract(hdr.a); {start} }}
    state b {{ p.extract(hdr.b); transition accept; }}
    state c {{ p.extract(hdr.c); transition accept; }}
    state both {{ p.extract(hdr.b); transition c; }}
    state skip {{ p.advance(8); transition b; }}
    {half}
}}
control V(inout headers hdr, inout meta m) {{ apply {{ }} }}
control I(inout headers hdr, inout meta m, inout standard_metadata_t sm) {{
    apply {{ sm.egress_spec = 1; m.kept = 3; {ingress} }}
}}
control E(inout headers hdr, inout meta m, inout standard_metadata_t sm) {{ apply {{ {egress} }} }}
control C(inout headers hdr, inout meta m) {{ apply {{ }} }}
control D(packet_out p, in headers hdr) {{ apply {{ {deparser} }} }}
V1Switch(P(), V(), I(), E(), C(), D()) main;
"#
    )
}

#[test]
fn what_leaves_is_what_the_interpreter_says() {
    for case in CASES {
        let name = case.name;
        let source = source(&case);
        let compiled = p4lang::compile_str("in_place.p4", &source, None, &p4lang::Options::default());
        let program = Arc::new(compiled.program.unwrap_or_else(|| panic!("{name}: {source}")));
        let native = Pipeline::compiled(program.clone(), 1).expect("native code");
        let mut pipelines = [native, Pipeline::interpreted(program, 1).unwrap()];
        for pipeline in &mut pipelines {
            pipeline.replication.set_session(5, Session { port: Some(2), ..Session::default() });
        }
        let mut rng = SplitMix::new(7);
        for number in 0..400 {
            let length = common::below(&mut rng, 12);
            let mut packet: Vec<u8> = (0..length).map(|_| rng.next_u64() as u8).collect();
            if let Some(kind) = packet.first_mut() {
                *kind %= 4;
            }
            let mut run = |pipeline: &mut Pipeline| -> [Vec<Output>; 3] {
                let mut through = Vec::new();
                pipeline.process(number, 3, &packet, &mut through);
                let queued = |at_once| common::queued(pipeline, number, 3, &packet, at_once);
                let [waits, passes] = [false, true].map(queued);
                [through, waits, passes]
            };
            let [native, interpreted] = pipelines.each_mut().map(&mut run);
            assert_eq!(native, interpreted, "{name}, packet {number}: {packet:02x?}");
        }
    }
}
