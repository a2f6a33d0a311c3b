//! Variables that actions set to the values that they are given, and that are read after the table, beside the interpreter.

use std::sync::Arc;

use p4lang::ir::EntryMatch;
use units::SplitMix;

use crate::pipeline::Pipeline;
use crate::state::table::Target;

/// Actions that leave `x` and `y` alone, set them from the same places of their data, from different ones, one of them only, or to
/// something else; before them both are 0, or not; also where one lookup follows another, and in a loop.
const SOURCE: &str = r#"
#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> k; bit<8> how; bit<32> sum; }
struct H { h_t h; }
struct M { }
parser P(packet_in p, out H hdr, inout M m, inout standard_metadata_t sm) {
    state start { p.extract(hdr.h); transition accept; }
}
control V(inout H hdr, inout M m) { apply {} }
control I(inout H hdr, inout M m, inout standard_metadata_t sm) {
    bit<8> key;
    bit<8> x;
    bit<16> y;
    action both(bit<8> p, bit<16> q) { x = p; y = q; }
    action turned(bit<16> q, bit<8> p) { x = p; y = q; }
    action one(bit<8> p) { x = p; }
    action other(bit<8> p, bit<16> q) { y = q; }
    action more(bit<8> p, bit<16> q) { x = p; y = q; x = x + 1; }
    action sometimes(bit<8> p, bit<16> q) { x = p; if (p > 100) { y = q; } }
    action none() { }
    table alike { key = { key : exact; } actions = { both; none; } default_action = none(); }
    table places { key = { key : exact; } actions = { both; turned; none; } default_action = none(); }
    table parts { key = { key : exact; } actions = { one; other; none; } default_action = none(); }
    table all { key = { key : exact; } actions = { both; more; sometimes; one; none; } default_action = none(); }
    table single { key = { key : exact; } actions = { both; } default_action = both(1, 2); }
    action use() { hdr.h.sum = (hdr.h.sum << 5 | hdr.h.sum >> 27) ^ (bit<32>) (x ++ y); }
    apply {
        sm.egress_spec = 1;
        key = hdr.h.k;
        x = 0; y = 0; alike.apply(); if (hdr.h.how[0:0] == 1) { use(); } else { hdr.h.sum = hdr.h.sum + (bit<32>) y; }
        places.apply(); use();
        x = 0; y = 0; places.apply(); use();
        x = 0; y = 0; parts.apply(); use();
        x = 0; y = 0; all.apply(); use();
        x = 0; y = 0; single.apply(); use();
        x = 7; y = 0; alike.apply(); use();
        x = 0; y = 0;
        if (hdr.h.how[1:1] == 1) { alike.apply(); }
        use();
        x = 0; y = 0;
        for (bit<8> i in 8w0 .. 8w3) { key = hdr.h.k + i; alike.apply(); use(); }
        for (bit<8> i in 8w0 .. 8w3) { key = hdr.h.k + i; x = 0; y = 0; alike.apply(); use(); }
    }
}
control E(inout H hdr, inout M m, inout standard_metadata_t sm) { apply {} }
control C(inout H hdr, inout M m) { apply {} }
control D(packet_out p, in H hdr) { apply { p.emit(hdr.h); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
"#;

#[test]
fn what_actions_are_given_is_read_behind_the_table() {
    let compiled = p4lang::compile_str("actions.p4", SOURCE, None, &p4lang::Options::default());
    let program = Arc::new(compiled.program.unwrap_or_else(|| panic!("{:?}", compiled.diagnostics)));
    let mut both =
        [Pipeline::interpreted(program.clone(), 1).unwrap(), Pipeline::compiled(program.clone(), 1).unwrap()];
    let mut rng = SplitMix::new(1);
    let mut seen = std::collections::HashSet::new();
    for round in 0..6000 {
        let declared = &program.tables[round % program.tables.len()];
        let action = (rng.next_u64() % declared.actions.len() as u64) as usize;
        let widths = program[declared.actions[action].action].params.iter().map(|p| program[p.var].width);
        let args: Vec<u64> = widths.map(|width| rng.next_u64() >> (64 - width)).collect();
        let target = Target::Action { action: action as u32, args: args.into() };
        let key = vec![EntryMatch::Exact((rng.next_u64() % 12).into())];
        let default = rng.next_u64().is_multiple_of(8);
        for pipeline in &mut both {
            let table = &mut pipeline.state.tables[round % program.tables.len()];
            match table.find(&key, 0) {
                _ if default => table.set_default(target.clone()),
                Some(known) => {
                    table.remove(known);
                }
                None => {
                    table.insert(key.clone(), 0, target.clone(), false);
                }
            }
        }
        let bytes = [(rng.next_u64() % 16) as u8, rng.next_u64() as u8, 0, 0, 0, 0];
        let [expected, native] = [0, 1].map(|at| {
            let mut out = Vec::new();
            both[at].process(0, 1, &bytes, &mut out);
            out
        });
        assert_eq!(native, expected, "{round}");
        seen.insert(expected[0].bytes.clone());
    }
    assert!(seen.len() > 5000, "{} different results", seen.len());
}
