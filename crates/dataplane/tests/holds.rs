//! What one operation does while packets wait: members, entries and looks are counted, not time.

use std::sync::Arc;

use control::{
    Answer, Call, Extras, Kind, Leads, MOST_COMPARED, Match, Op, TableOp, Target as _, ValueSetOp,
};
use dataplane::pipeline::Pipeline;
use units::Time;

const PROGRAM: &str = r#"
#include <core.p4>
#include <v1model.p4>
header h_t { bit<32> a; bit<32> b; }
struct H { h_t h; }
struct M {}
struct pair_t { bit<32> a; bit<32> b; }
parser P(packet_in p, out H hdr, inout M m, inout standard_metadata_t sm) {
    value_set<bit<32>>(65536) one;
    value_set<pair_t>(65536) two;
    value_set<bit<32>>(10) small;
    state start {
        p.extract(hdr.h);
        transition select(hdr.h.a, hdr.h.b) { two: accept; default: more; }
    }
    state more { transition select(hdr.h.a) { one: accept; small: accept; default: accept; } }
}
control I(inout H hdr, inout M m, inout standard_metadata_t sm) {
    direct_counter(CounterType.packets_and_bytes) hits;
    action to(bit<9> port) { sm.egress_spec = port; }
    table t {
        key = { hdr.h.a: exact; } actions = { to; NoAction; }
        counters = hits; size = 20000; support_timeout = true;
    }
    table other { key = { hdr.h.a: exact; } actions = { to; NoAction; } size = 8; }
    apply { t.apply(); other.apply(); }
}
control V(inout H hdr, inout M m) { apply {} }
control E(inout H hdr, inout M m, inout standard_metadata_t sm) { apply {} }
control C(inout H hdr, inout M m) { apply {} }
control D(packet_out p, in H hdr) { apply { p.emit(hdr); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
"#;

fn pipeline() -> Pipeline {
    let compiled = p4lang::compile_str("holds.p4", PROGRAM, None, &p4lang::Options::default());
    let program = compiled.program.unwrap_or_else(|| panic!("{:?}", compiled.diagnostics));
    Pipeline::interpreted(Arc::new(program), 0).unwrap()
}

fn fill(
    pipeline: &mut Pipeline,
    set: &str,
    members: impl Iterator<Item = u64>,
    fields: usize,
) -> Result<(), Kind> {
    let members = members.map(|member| vec![Match::Exact(member.into()); fields]).collect();
    let op = Op::from(ValueSetOp::Set { value_set: set.into(), members });
    pipeline.act(Time::ZERO, &op).map(|_| ()).map_err(|error| error.kind)
}

fn members(pipeline: &mut Pipeline, set: &str) -> usize {
    match pipeline.act(Time::ZERO, &ValueSetOp::Read { value_set: set.into() }.into()).unwrap() {
        Answer::Matches(members) => members.len(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_value_set_has_no_more_members_than_a_packet_may_be_compared_with() {
    let most = MOST_COMPARED as u64;
    let mut p = pipeline();
    assert_eq!(fill(&mut p, "one", 0..most, 1), Ok(()));
    assert_eq!(fill(&mut p, "one", 0..most + 1, 1), Err(Kind::Full));
    assert_eq!(members(&mut p, "one"), MOST_COMPARED, "what is refused changes nothing");
    let member = vec![Match::Exact((most + 9).into())];
    let refused = p.act(Time::ZERO, &ValueSetOp::Add { value_set: "one".into(), member }.into()).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "value set `P.one` is full: packets are compared with 2048 members at most"
    );
    assert_eq!(fill(&mut p, "two", 0..most / 2, 2), Ok(()));
    assert_eq!(fill(&mut p, "two", 0..most / 2 + 1, 2), Err(Kind::Full));
    assert_eq!(fill(&mut p, "small", 0..11, 1), Err(Kind::Full));
    assert_eq!(fill(&mut p, "small", (0..3).chain(1..2), 1), Err(Kind::Exists));
    assert_eq!(members(&mut p, "small"), 0);
    assert_eq!(fill(&mut p, "one", 5..7, 1), Ok(()));
    assert_eq!(members(&mut p, "one"), 2);
}

fn add(p: &mut Pipeline, now: Time, key: u64, packets: u64, idle_timeout: u64) {
    let to = Leads::Action(Call { action: "to".into(), values: vec![1.into()] });
    let extras = Extras {
        counter: Some((packets, 2 * packets)),
        idle_timeout: Some(idle_timeout),
        ..Extras::default()
    };
    let key = vec![Match::Exact(key.into())];
    p.act(now, &TableOp::Add { table: "t".into(), key, priority: None, to, extras }.into()).unwrap();
}

#[test]
fn direct_counters_are_summed_some_at_a_time() {
    let mut p = pipeline();
    (0..10_000).for_each(|key| add(&mut p, Time::ZERO, key, 3, 0));
    for handle in (0..10_000).step_by(2) {
        let entry = control::EntryRef::Handle(handle);
        p.act(Time::ZERO, &TableOp::Delete { table: "t".into(), entry }.into()).unwrap();
    }
    let mut totals = |table: Option<&str>, start| {
        let op = TableOp::Totals { table: table.map(Into::into), start };
        match p.act(Time::ZERO, &op.into()).unwrap() {
            Answer::Totals(totals) => totals,
            other => panic!("{other:?}"),
        }
    };
    let all = totals(None, None);
    assert_eq!(all.iter().map(|t| t.counts).collect::<Vec<_>>(), [Some((15_000, 30_000)), None]);
    assert_eq!(all.iter().map(|t| t.next).collect::<Vec<_>>(), [None, None]);
    let (mut start, mut counts) = (Some(0), Vec::new());
    while let Some(from) = start {
        let some = totals(Some("t"), start);
        assert_eq!((some.len(), some[0].entries), (1, 5000));
        counts.push(some[0].counts.unwrap().0);
        start = some[0].next;
        assert!(start.is_none_or(|next| next == from + 4096));
    }
    // 2048 of 4096 handles have entries, and 904 of the last 1808.
    assert_eq!(counts, [6144, 6144, 2712]);
}

#[test]
fn a_sparse_table_is_read_some_handles_at_a_time() {
    let mut p = pipeline();
    (0..10_000).for_each(|key| add(&mut p, Time::ZERO, key, 0, 0));
    for handle in (1..10_000).filter(|handle| *handle != 9_000) {
        let entry = control::EntryRef::Handle(handle);
        p.act(Time::ZERO, &TableOp::Delete { table: "t".into(), entry }.into()).unwrap();
    }
    let (mut start, mut pages) = (Some(0), Vec::new());
    while let Some(from) = start {
        match p.act(Time::ZERO, &TableOp::Read { table: "t".into(), start: from, only: None }.into()).unwrap()
        {
            Answer::Rows { rows, next } => {
                pages.push((rows.iter().map(|row| row.handle).collect::<Vec<_>>(), next));
                start = next;
            }
            other => panic!("{other:?}"),
        }
    }
    let found: Vec<u32> = pages.iter().flat_map(|(rows, _)| rows.clone()).collect();
    assert_eq!(found, [0, 9000]);
    let next: Vec<_> = pages.iter().map(|(_, next)| *next).collect();
    assert_eq!(next, (1..10).map(|n| Some(1024 * n)).chain([None]).collect::<Vec<_>>());
}

/// Entries that are alive are looked at when their timeouts end, and not all at once.
#[test]
fn some_entries_at_a_time_are_looked_at_for_their_timeout() {
    let mut p = pipeline();
    let (early, late) = (Time::from_ps(100), Time::from_ps(500));
    (0..10_000).for_each(|key| add(&mut p, Time::ZERO, key, 0, 100));
    let mut outputs = Vec::new();
    for key in 0..9_000u32 {
        p.process(50, 0, &[key.to_be_bytes(), [0; 4]].concat(), &mut outputs);
    }
    let mut take = |now: Time| match p.act(now, &TableOp::TakeIdle {}.into()).unwrap() {
        Answer::Idle(rows) => (rows.len(), p.is_due(now)),
        other => panic!("{other:?}"),
    };
    // 1024 looks each time; those at the 9000 that are alive find nothing.
    let taken: Vec<_> = std::iter::repeat_with(|| take(early)).take(20).collect();
    assert_eq!(taken.iter().map(|(rows, _)| rows).sum::<usize>(), 1000);
    assert!(taken[..8].iter().all(|(_, due)| *due), "{taken:?}");
    assert!(taken.iter().all(|(rows, _)| *rows <= 256));
    assert!(!taken[19].1);
    assert!(take(late).1, "each timeout begins anew");
}
