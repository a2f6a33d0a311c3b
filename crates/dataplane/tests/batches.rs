//! Batches that are done whole or not at all: what is refused has left nothing behind.

use std::sync::Arc;

use control::{
    ArrayOp, At, Call, CopiesOp, EntryRef, Extras, FixedOp, Kind, Leads, MOST_IN_ALL, Match, Op, Put,
    StateOp, TableOp, Target,
};
use dataplane::pipeline::Pipeline;
use p4lang::ir::Program;
use proptest::prelude::*;
use units::Time;

const PROGRAM: &str = r#"
#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> a; bit<8> b; }
struct H { h_t h; }
struct M {}
parser P(packet_in p, out H hdr, inout M m, inout standard_metadata_t sm) {
    state start { p.extract(hdr.h); transition accept; }
}
control I(inout H hdr, inout M m, inout standard_metadata_t sm) {
    register<bit<16>>(8) cells;
    counter(4, CounterType.packets) counts;
    direct_counter(CounterType.packets) hits;
    action put(bit<8> v) { hdr.h.b = v; sm.egress_spec = 1; cells.write((bit<32>) v, 7); }
    table t { key = { hdr.h.a: ternary; } actions = { put; NoAction; } counters = hits; size = 6; }
    apply { t.apply(); counts.count(0); }
}
control V(inout H hdr, inout M m) { apply {} }
control E(inout H hdr, inout M m, inout standard_metadata_t sm) { apply {} }
control C(inout H hdr, inout M m) { apply {} }
control D(packet_out p, in H hdr) { apply { p.emit(hdr); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
"#;

fn program() -> Arc<Program> {
    let compiled = p4lang::compile_str("batches.p4", PROGRAM, None, &p4lang::Options::default());
    Arc::new(compiled.program.unwrap_or_else(|| panic!("{:?}", compiled.diagnostics)))
}

fn add(value: u8, mask: u8, priority: u32) -> Op {
    let key = vec![Match::Ternary(u64::from(value & mask).into(), u64::from(mask).into())];
    let to = Leads::Action(Call { action: "put".into(), values: vec![u64::from(value).into()] });
    let (table, priority) = ("t".into(), Some(priority));
    TableOp::Add { table, key, priority, to, extras: Extras::default() }.into()
}

fn any_op() -> impl Strategy<Value = Op> {
    prop_oneof![
        4 => (0u8..4, prop_oneof![Just(0u8), Just(1), Just(255)], 1u32..3).prop_map(|(v, m, p)| add(v, m, p)),
        2 => (0u32..7).prop_map(|handle| {
            TableOp::Delete { table: "t".into(), entry: EntryRef::Handle(handle) }.into()
        }),
        1 => (0u32..7, any::<u64>()).prop_map(|(handle, packets)| {
            let extras = Extras { counter: Some((packets, 1)), note: Some(vec![1]), ..Extras::default() };
            let entry = EntryRef::Handle(handle);
            TableOp::Set { table: "t".into(), entry, to: None, extras }.into()
        }),
        1 => (0u32..9, 0u64..1 << 17).prop_map(|(index, value)| {
            let at = if index == 8 { At::All } else { At::Index(index) };
            ArrayOp::SetRegister { register: "cells".into(), at, value: value.into() }.into()
        }),
        1 => (0u32..5).prop_map(|index| {
            let at = At::Index(index);
            ArrayOp::SetCounter { counter: "counts".into(), at, packets: 3, bytes: 4 }.into()
        }),
        1 => (0u32..3).prop_map(|group| {
            CopiesOp::SetGroup { group, copies: vec![(group, 1)], put: Put::New }.into()
        }),
        1 => Just(StateOp::Reset {}.into()),
        1 => Just(TableOp::Clear { table: "t".into() }.into()),
    ]
}

/// All that a pipeline keeps.
fn seen(pipeline: &Pipeline) -> String {
    format!("{:?} {:?}", pipeline.state, pipeline.replication)
}

proptest! {
    /// A batch does what its operations do one by one, or nothing; what comes after it goes on alike.
    #[test]
    fn whole_or_nothing(
        before in prop::collection::vec(any_op(), 0..12),
        batch in prop::collection::vec(any_op(), 0..12),
        after in prop::collection::vec(any_op(), 0..6),
    ) {
        let program = program();
        let [mut one, mut other] = [0, 0].map(|seed| Pipeline::interpreted(program.clone(), seed).unwrap());
        let now = Time::from_ms(1);
        for op in &before {
            prop_assert_eq!(one.act(now, op), other.act(now, op));
        }
        let mut outputs = Vec::new();
        one.process(5, 0, &[1, 0], &mut outputs);
        other.process(5, 0, &[1, 0], &mut outputs);
        let untouched = seen(&one);
        match one.act_all(now, &batch) {
            Ok(answers) => {
                let each: Vec<_> = batch.iter().map(|op| other.act(now, op).unwrap()).collect();
                prop_assert_eq!(answers, each);
            }
            Err((index, error)) => {
                prop_assert_eq!(seen(&one), untouched);
                let mut trial = other.another(0);
                trial.state = other.state.clone();
                trial.replication = other.replication.clone();
                for op in &batch[..index] {
                    prop_assert!(trial.act(now, op).is_ok());
                }
                prop_assert_eq!(trial.act(now, &batch[index]), Err(error));
            }
        }
        for op in &after {
            prop_assert_eq!(one.act(now, op), other.act(now, op));
        }
        prop_assert_eq!(seen(&one), seen(&other));
    }
}

#[test]
fn what_cannot_be_undone_is_refused() {
    let mut pipeline = Pipeline::interpreted(program(), 0).unwrap();
    for op in [FixedOp::TakePacket {}.into(), StateOp::TakeDigests {}.into(), TableOp::TakeIdle {}.into()] {
        let before = seen(&pipeline);
        let (index, error) = pipeline.act_all(Time::ZERO, &[add(1, 255, 1), op]).unwrap_err();
        assert_eq!((index, error.kind), (1, Kind::Unsupported));
        assert!(error.to_string().contains("cannot be undone"), "{error}");
        assert_eq!(seen(&pipeline), before);
    }
    let many = vec![Op::from(TableOp::Clear { table: "t".into() }); MOST_IN_ALL + 1];
    assert_eq!(pipeline.act_all(Time::ZERO, &many).unwrap_err().1.kind, Kind::Unsupported);
    assert!(pipeline.act_all(Time::ZERO, &many[1..]).is_ok());
}
