//! Lookups and accesses that native code does in place, for this processor and for any, beside the interpreter.

use std::sync::Arc;

use num_bigint::BigUint;
use p4lang::ir::{EntryMatch, MatchKind};
use units::SplitMix;

use crate::jit::Jit;
use crate::layout::Layout;
use crate::path;
use crate::pipeline::Pipeline;
use crate::state::exact::alike;
use crate::state::table::Target;

/// Keys of a prefix, of words that are packed into one and into two, and of more than are packed; prefixes of one to three words beside
/// exact keys and alone, and of more; then registers, indexed in all ways
/// in which an index may be shown to be small enough, or not quite.
const SOURCE: &str = r#"
#include <core.p4>
#include <v1model.p4>
header h_t { bit<32> a; bit<16> b; bit<8> c; bit<8> d; bit<64> e; bit<48> f; bit<8> out1; bit<8> out2; bit<8> out3; bit<8> out4; bit<32> sum; }
struct H { h_t h; }
struct M { bit<9> small; bit<10> wide; }
parser P(packet_in p, out H hdr, inout M m, inout standard_metadata_t sm) {
    state start { p.extract(hdr.h); transition accept; }
}
control V(inout H hdr, inout M m) { apply {} }
control I(inout H hdr, inout M m, inout standard_metadata_t sm) {
    register<bit<32>>(512) r512;
    register<bit<32>>(1000) r1000;
    register<bit<32>>(7) r7;
    action one(bit<8> v) { hdr.h.out1 = v; }
    action two(bit<8> v) { hdr.h.out2 = v; }
    action three(bit<8> v) { hdr.h.out3 = v; }
    action four(bit<8> v) { hdr.h.out4 = v; }
    table prefixes { key = { hdr.h.a : lpm; } actions = { one; } default_action = one(99); size = 4096; }
    table word { key = { hdr.h.b : exact; hdr.h.c : exact; } actions = { two; } default_action = two(99); size = 4096; }
    table words { key = { hdr.h.e : exact; hdr.h.f : exact; hdr.h.d : exact; } actions = { three; } default_action = three(99); size = 4096; }
    table many { key = { hdr.h.e : exact; hdr.h.f : exact; hdr.h.b : exact; hdr.h.c : exact; } actions = { four; } default_action = four(99); size = 4096; }
    action at(bit<32> by) { hdr.h.sum = hdr.h.sum ^ by; }
    table narrow { key = { hdr.h.d : exact; } actions = { at; } default_action = at(0x100); size = 256; }
    table beside { key = { hdr.h.b : exact; hdr.h.a : lpm; } actions = { at; } default_action = at(0x20000); size = 4095; }
    table before { key = { hdr.h.f : lpm; hdr.h.e : exact; hdr.h.d : exact; } actions = { at; } default_action = at(0x40000); size = 4095; }
    table between { key = { hdr.h.e : exact; hdr.h.f : lpm; hdr.h.a : exact; hdr.h.b : exact; } actions = { at; } default_action = at(0x80000); size = 4095; }
    table whole { key = { hdr.h.f ++ hdr.h.d ++ hdr.h.e ++ hdr.h.c : lpm @name("all"); } actions = { at; } default_action = at(0x100000); size = 4095; }
    table over { key = { hdr.h.e ++ hdr.h.e ++ hdr.h.e : exact @name("thrice"); hdr.h.d : lpm; } actions = { at; } default_action = at(0x200000); size = 4095; }
    apply {
        sm.egress_spec = 1;
        prefixes.apply(); word.apply(); words.apply(); many.apply(); narrow.apply();
        beside.apply(); before.apply(); between.apply(); whole.apply(); over.apply();
        bit<32> got;
        m.small = hdr.h.b[8:0];
        m.wide = hdr.h.b[9:0];
        r512.read(got, (bit<32>) m.small); at(got); r512.write((bit<32>) m.small, got + 3);
        r512.read(got, (bit<32>) m.wide); at(got); r512.write((bit<32>) m.wide, got + 5);
        r1000.read(got, (bit<32>) m.wide); at(got); r1000.write((bit<32>) m.wide, got + 7);
        r7.read(got, hdr.h.a & 7); at(got); r7.write(hdr.h.a & 7, got + 11);
        r7.read(got, (bit<32>) hdr.h.c[1:0] + (bit<32>) hdr.h.d[1:0]); at(got);
        r512.read(got, ((bit<32>) hdr.h.c << 1) | (bit<32>) hdr.h.d[0:0]); at(got);
        r512.write(((bit<32>) hdr.h.c << 1) + (bit<32>) hdr.h.d[1:0], got);
        r512.read(got, hdr.h.sum); at(got);
    }
}
control E(inout H hdr, inout M m, inout standard_metadata_t sm) { apply {} }
control C(inout H hdr, inout M m) { apply {} }
control D(packet_out p, in H hdr) { apply { p.emit(hdr.h); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
"#;

/// Few different values of a width, in its lowest bits or its highest, or any.
fn value(rng: &mut SplitMix, width: u32) -> u64 {
    let any = rng.next_u64() >> (64 - width);
    match rng.next_u64() % 3 {
        0 => any % 4,
        1 => (any % 4) << (width - 2),
        _ => any,
    }
}

/// The same of a width of more than a word.
fn any(rng: &mut SplitMix, width: u32) -> BigUint {
    let mut all = BigUint::ZERO;
    for at in (0..width).step_by(64) {
        all = all << 64 | BigUint::from(value(rng, (width - at).clamp(2, 64)));
    }
    all & ((BigUint::from(1u8) << width) - 1u8)
}

fn packet(rng: &mut SplitMix) -> Vec<u8> {
    let mut bytes = Vec::new();
    for width in [32, 16, 8, 8, 64, 48, 8, 8, 8, 8, 32] {
        let value = value(rng, width);
        bytes.extend_from_slice(&value.to_be_bytes()[8 - width as usize / 8..]);
    }
    bytes
}

/// The interpreter, native code for this processor, and for any.
fn engines(source: &str) -> [Pipeline; 3] {
    let compiled = p4lang::compile_str("lookups.p4", source, None, &p4lang::Options::default());
    let program = Arc::new(compiled.program.unwrap_or_else(|| panic!("{:?}", compiled.diagnostics)));
    let layout = Arc::new(Layout::new(&program).unwrap());
    let portable = Jit::portable(program.clone(), layout.clone(), path::native(&program)).unwrap();
    [
        Pipeline::interpreted(program.clone(), 1).unwrap(),
        Pipeline::compiled(program.clone(), 1).unwrap(),
        Pipeline::with_executor(program.clone(), layout, Arc::new(portable), 1),
    ]
}

#[test]
fn lookups_and_indexes_in_place() {
    lookups_and_indexes(SOURCE);
}

/// Of tables that may have so many entries that their slots are looked at in groups.
#[test]
fn lookups_in_groups() {
    lookups_and_indexes(&SOURCE.replace("size = 4096", "size = 65537"));
}

/// More keys of one tag than a group has slots, and one that is not in the table.
#[test]
fn keys_of_one_tag() {
    for size in ["4096", "65537"] {
        let table = "table words { key = { hdr.h.e : exact; }";
        let source = SOURCE
            .replace("table words { key = { hdr.h.e : exact; hdr.h.f : exact; hdr.h.d : exact; }", table)
            .replace("size = 4096", &format!("size = {size}"));
        let keys = alike(10);
        for mut pipeline in engines(&source) {
            for (key, number) in keys[1..].iter().zip(1..) {
                let target = Target::Action { action: 0, args: [number].into() };
                pipeline.state.tables[2].insert(vec![EntryMatch::Exact((*key).into())], 0, target, false);
            }
            for (key, expected) in keys.iter().zip([99, 1, 2, 3, 4, 5, 6, 7, 8, 9]) {
                let mut packet = [0; 40];
                packet[8..16].copy_from_slice(&key.to_be_bytes());
                let mut out = Vec::new();
                pipeline.process(0, 1, &packet, &mut out);
                assert_eq!(out[0].bytes[24], expected, "of {size}");
            }
        }
    }
}

fn lookups_and_indexes(source: &str) {
    let mut all = engines(source);
    let program = all[0].program().clone();
    let mut rng = SplitMix::new(1);
    let mut hits = 0;
    for round in 0..16_000 {
        if round % 4 == 0 {
            let table = round / 4 % program.tables.len();
            let declared = &program.tables[table];
            let matches: Vec<EntryMatch> = declared
                .keys
                .iter()
                .map(|key| {
                    let width = key.expr.width;
                    let value = any(&mut rng, width);
                    let prefix_len = (rng.next_u64() % u64::from(width + 1)) as u32;
                    let behind = width - prefix_len;
                    match key.kind {
                        MatchKind::Lpm => EntryMatch::Lpm { value: value >> behind << behind, prefix_len },
                        _ => EntryMatch::Exact(value),
                    }
                })
                .collect();
            let target = Target::Action { action: 0, args: [rng.next_u64() % 90].into() };
            for pipeline in &mut all {
                let state = &mut pipeline.state.tables[table];
                match state.find(&matches, 0) {
                    Some(known) => {
                        state.remove(known);
                    }
                    None => {
                        state.insert(matches.clone(), 0, target.clone(), false);
                    }
                }
            }
        }
        let bytes = packet(&mut rng);
        let [expected, native, portable] = [0, 1, 2].map(|at| {
            let mut out = Vec::new();
            all[at].process(0, 1, &bytes, &mut out);
            out
        });
        assert_eq!(native, expected, "{round}");
        assert_eq!(portable, expected, "{round}");
        hits += expected[0].bytes[22..26].iter().filter(|out| **out != 99).count();
    }
    assert!(hits > 8000, "only {hits} lookups found something");
    for register in 0..3 {
        let cells = |pipeline: &Pipeline| pipeline.state.registers.get(register).all();
        assert_eq!(cells(&all[1]), cells(&all[0]));
        assert_eq!(cells(&all[2]), cells(&all[0]));
    }
    for pipeline in &mut all {
        pipeline.state.tables.each(|table| table.clear());
        let mut out = Vec::new();
        pipeline.process(0, 1, &packet(&mut SplitMix::new(2)), &mut out);
        assert_eq!(out[0].bytes[22..26], [99; 4]);
    }
}

/// What the control plane or a test has put into memory is not relied on: an index or a key that is wider than its declaration says
/// leads to no access outside of the register or of a table's slots.
#[test]
fn indexes_beyond_their_width_stay_inside() {
    let narrow = "table narrow { key = { m.small : exact; }";
    let source = SOURCE.replace("table narrow { key = { hdr.h.d : exact; }", narrow).replace("action at(bit<32> by) {", "action at_port(bit<9> port) { m.small = port; r512.write((bit<32>) port, 1); }\n    table ports { key = { hdr.h.a : exact; } actions = { at_port; } default_action = at_port(0); }\n    action at(bit<32> by) {").replace("prefixes.apply();", "ports.apply(); narrow.apply(); prefixes.apply();").replace("many.apply(); narrow.apply();", "many.apply();");
    let compiled = p4lang::compile_str("lookups.p4", &source, None, &p4lang::Options::default());
    let program = Arc::new(compiled.program.unwrap_or_else(|| panic!("{:?}", compiled.diagnostics)));
    let [ports, narrow] = ["ports", "narrow"]
        .map(|name| program.tables.iter().position(|table| table.info.name.ends_with(name)).unwrap());
    // Twice the port 5, once with more bits than a port has.
    let [expected, found] = [5, u64::MAX << 9 | 5].map(|port| {
        let mut pipeline = Pipeline::compiled(program.clone(), 1).unwrap();
        let mut out = Vec::new();
        pipeline.state.tables[ports].set_default(Target::Action { action: 0, args: [port].into() });
        let target = Target::Action { action: 0, args: [0xabcd].into() };
        pipeline.state.tables[narrow].insert(vec![EntryMatch::Exact(5u32.into())], 0, target, false);
        pipeline.process(0, 1, &[0; 40], &mut out);
        (out, pipeline.state.registers.get(0).all())
    });
    assert_eq!(found, expected);
    assert_eq!(expected.1[5], 1);
    assert_eq!(expected.0[0].bytes[28..30], [0xab, 0xcd]);
}
