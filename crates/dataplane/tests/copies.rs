//! What clones and packets that come back know of themselves, on both executors.

use std::sync::Arc;

use dataplane::pipeline::Pipeline;
use dataplane::replication::Session;

/// The first byte of a packet says what ingress asks for: 1 clone, 2 clone with a field list, 3 resubmit.
/// Egress writes the instance type, ingress port and two metadata fields into the header.
const SOURCE: &str = r#"
#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> what; bit<8> instance; bit<8> port; bit<8> kept; bit<8> lost; bit<8> passes; }
struct headers { h_t h; }
struct meta { @field_list(1) bit<8> kept; bit<8> lost; bit<8> passes; }
parser P(packet_in p, out headers hdr, inout meta m, inout standard_metadata_t sm) {
    state start { p.extract(hdr.h); m.lost = 9; transition accept; }
}
control V(inout headers hdr, inout meta m) { apply { } }
control I(inout headers hdr, inout meta m, inout standard_metadata_t sm) {
    apply {
        sm.egress_spec = 1;
        m.kept = 7;
        if (hdr.h.what == 1) { clone(CloneType.I2E, 5); }
        if (hdr.h.what == 2) { clone_preserving_field_list(CloneType.I2E, 5, 1); }
        if (hdr.h.what == 3 && sm.instance_type == 0) { resubmit_preserving_field_list(1); }
        if (sm.instance_type == 6) { m.passes = 1; }
    }
}
control E(inout headers hdr, inout meta m, inout standard_metadata_t sm) {
    apply {
        hdr.h.instance = (bit<8>) sm.instance_type;
        hdr.h.port = (bit<8>) sm.ingress_port;
        hdr.h.kept = m.kept;
        hdr.h.lost = m.lost;
        hdr.h.passes = m.passes;
    }
}
control C(inout headers hdr, inout meta m) { apply { } }
control D(packet_out p, in headers hdr) { apply { p.emit(hdr); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
"#;

#[test]
fn what_copies_know() {
    let compiled = p4lang::compile_str("copies.p4", SOURCE, None, &p4lang::Options::default());
    let program = Arc::new(compiled.program.expect("compiles"));
    let compiled = Pipeline::compiled(program.clone(), 1).expect("native code");
    for mut pipeline in [Pipeline::interpreted(program, 1).unwrap(), compiled] {
        pipeline.replication.set_session(5, Session { port: Some(2), ..Session::default() });
        let mut run = |what: u8| {
            let mut out = Vec::new();
            pipeline.process(0, 3, &[what, 0, 0, 0, 0, 0], &mut out);
            out.sort_by_key(|o| o.port);
            out.into_iter().map(|o| (o.port, o.bytes)).collect::<Vec<_>>()
        };
        let normal = |what| (1, vec![what, 0, 3, 7, 9, 0]);
        // A clone's metadata is zero, also what its parser wrote, but for the list.
        assert_eq!(run(1), [normal(1), (2, vec![1, 1, 0, 0, 0, 0])]);
        assert_eq!(run(2), [normal(2), (2, vec![2, 1, 0, 7, 0, 0])]);
        // Ingress sees that the packet was resubmitted, and not where it came from; in egress it is one like any other.
        assert_eq!(run(3), [(1, vec![3, 0, 0, 7, 9, 1])]);
    }
}

/// As above; egress looks at arrays and a varbit of the metadata, which the parser, and in an egress clone egress, wrote.
const ARRAYS: &str = r#"
#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> what; bit<8> array; bit<8> pair; bit<8> bits; bit<8> listed; }
header v_t { varbit<8> v; }
struct headers { h_t h; v_t v; }
struct pair_t { bit<4> x; bit<4> y; }
struct meta { bit<8>[3] array; pair_t[2] pairs; varbit<8> bits; @field_list(2) bit<8>[2] listed; }
parser P(packet_in p, out headers hdr, inout meta m, inout standard_metadata_t sm) {
    state start {
        p.extract(hdr.h);
        p.extract(hdr.v, 8);
        m.array[2] = 9;
        m.pairs[1].y = 5;
        m.bits = hdr.v.v;
        m.listed[1] = 7;
        transition accept;
    }
}
control V(inout headers hdr, inout meta m) { apply { } }
control I(inout headers hdr, inout meta m, inout standard_metadata_t sm) {
    apply {
        sm.egress_spec = 1;
        if (hdr.h.what == 1) { clone(CloneType.I2E, 5); }
        if (hdr.h.what == 2) { clone_preserving_field_list(CloneType.I2E, 5, 2); }
    }
}
control E(inout headers hdr, inout meta m, inout standard_metadata_t sm) {
    apply {
        if (sm.instance_type == 0 && hdr.h.what == 3) { clone(CloneType.E2E, 5); }
        if (sm.instance_type == 0 && hdr.h.what == 4) { clone_preserving_field_list(CloneType.E2E, 5, 2); }
        hdr.h.array = m.array[2];
        hdr.h.pair = (bit<8>) m.pairs[1].y;
        hdr.h.bits = m.bits == hdr.v.v ? 8w1 : 0;
        hdr.h.listed = m.listed[1];
    }
}
control C(inout headers hdr, inout meta m) { apply { } }
control D(packet_out p, in headers hdr) { apply { p.emit(hdr.h); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
"#;

#[test]
fn clones_forget_arrays_and_varbits() {
    let compiled = p4lang::compile_str("copies.p4", ARRAYS, None, &p4lang::Options::default());
    let program = Arc::new(compiled.program.expect("compiles"));
    let compiled = Pipeline::compiled(program.clone(), 1).expect("native code");
    for mut pipeline in [Pipeline::interpreted(program, 1).unwrap(), compiled] {
        pipeline.replication.set_session(5, Session { port: Some(2), ..Session::default() });
        for (what, listed) in [(1, 0), (2, 7), (3, 0), (4, 7)] {
            let mut out = Vec::new();
            pipeline.process(0, 3, &[what, 0, 0, 0, 0, 0xab], &mut out);
            out.sort_by_key(|o| o.port);
            let found: Vec<_> = out.into_iter().map(|o| (o.port, o.bytes)).collect();
            assert_eq!(found, [(1, vec![what, 9, 5, 1, 7]), (2, vec![what, 0, 0, 0, listed])]);
        }
    }
}
