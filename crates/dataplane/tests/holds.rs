//! What one operation does while packets wait: members, entries and looks are counted, not time.

use std::sync::Arc;
use std::time::Instant;

use control::{
    Answer, Call, Choice, CopiesOp, Extras, Kind, Leads, MOST_AT_A_TIME, MOST_COMPARED, MOST_SHARES, Match,
    Mirror, Op, ProfileOp, Put, Row, Share, StateOp, TableOp, Target as _, ValueSetOp,
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
    pipeline_of(PROGRAM)
}

fn pipeline_of(text: &str) -> Pipeline {
    let compiled = p4lang::compile_str("holds.p4", text, None, &p4lang::Options::default());
    let program = compiled.program.unwrap_or_else(|| panic!("{:?}", compiled.diagnostics));
    Pipeline::interpreted(Arc::new(program), 0).unwrap()
}

/// With a table beside `t` whose entries have sets of actions, and a digest of each packet.
fn pipeline_with_sets() -> Pipeline {
    let table = "action_selector(HashAlgorithm.crc16, 32w65536, 32w16) chosen;
        table picks {
            key = { hdr.h.a: exact; hdr.h.b: selector; } actions = { to; NoAction; } implementation = chosen;
            size = 1000; support_timeout = true;
        }
        apply { picks.apply(); digest<pair_t>(1, { hdr.h.a, hdr.h.b }); ";
    pipeline_of(&PROGRAM.replace("apply { t.apply();", &format!("{table} t.apply();")))
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

/// An entry of `picks` with a set of so many actions.
fn add_set(p: &mut Pipeline, key: u64, actions: usize, idle_timeout: u64) {
    let choice = |port: usize| Choice {
        call: Call { action: "to".into(), values: vec![(port as u64 % 8).into()] },
        weight: 1,
        watch: Vec::new(),
    };
    let to = Leads::Set((0..actions).map(choice).collect());
    let extras = Extras { idle_timeout: Some(idle_timeout), ..Extras::default() };
    let key = vec![Match::Exact(key.into())];
    p.act(Time::ZERO, &TableOp::Add { table: "picks".into(), key, priority: None, to, extras }.into())
        .unwrap();
}

fn read(table: &str, start: u32) -> TableOp {
    TableOp::Read { table: table.into(), start, only: None }
}

fn actions(rows: &[Row]) -> usize {
    let of = |row: &Row| if let Leads::Set(choices) = &row.to { choices.len() } else { 0 };
    rows.iter().map(of).sum()
}

/// Entries with sets are read fewer at a time, one with a large set alone.
#[test]
fn actions_of_sets_count_when_entries_are_read() {
    let mut p = pipeline_with_sets();
    let sizes = [MOST_SHARES, 1000, 1000, 1000, 1000, 1000].into_iter().chain([1; 300]);
    sizes.enumerate().for_each(|(key, actions)| add_set(&mut p, key as u64, actions, 0));
    let mut read_all = |pages: bool| {
        let (mut start, mut found) = (Some(0), Vec::new());
        while let Some(from) = start {
            let op = read("picks", from);
            let answer = if pages { p.act_on_pages(Time::ZERO, &op) } else { p.act(Time::ZERO, &op.into()) };
            match answer.unwrap() {
                Answer::Rows { rows, next } => {
                    assert!(actions(&rows) <= MOST_SHARES);
                    found.push(rows.iter().map(|row| row.handle).collect::<Vec<_>>());
                    start = next;
                }
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(found.concat(), (0..306).collect::<Vec<_>>());
        found.iter().map(Vec::len).collect::<Vec<_>>()
    };
    // An action counts as half an entry: 501 for one of a thousand, of 256 and of 1024.
    assert_eq!(read_all(false), [1, 1, 1, 1, 1, 1, 256, 44]);
    assert_eq!(read_all(true), [1, 2, 2, 301]);
}

/// Each table has its turn, however large the sets of another one's entries are.
#[test]
fn actions_of_sets_count_when_idle_entries_are_taken() {
    let mut p = pipeline_with_sets();
    (0..10).for_each(|key| add(&mut p, Time::ZERO, key, 0, 100));
    (0..3).for_each(|key| add_set(&mut p, key, MOST_SHARES, 100));
    let now = Time::from_ps(150);
    let mut taken = Vec::new();
    while p.is_due(now) {
        match p.act(now, &TableOp::TakeIdle {}.into()).unwrap() {
            Answer::Idle(rows) => {
                let (tables, rows): (Vec<_>, Vec<_>) = rows.into_iter().unzip();
                assert!(actions(&rows) <= MOST_SHARES);
                taken.push(
                    tables
                        .iter()
                        .map(|table| table.rsplit('.').next().unwrap().to_owned())
                        .collect::<Vec<_>>(),
                );
            }
            other => panic!("{other:?}"),
        }
    }
    let counts: Vec<_> = taken.iter().map(|tables| (tables[0].as_str(), tables.len())).collect();
    assert_eq!(counts, [("t", 10), ("picks", 1), ("picks", 1), ("picks", 1)]);
    // Entries of both that are idle all the time.
    let always =
        |p: &mut Pipeline, at: u64| match p.act(Time::from_ps(at), &TableOp::TakeIdle {}.into()).unwrap() {
            Answer::Idle(rows) => rows.iter().any(|(table, _)| table.ends_with(".t") || table == "t"),
            other => panic!("{other:?}"),
        };
    let turns = (1..=10).filter(|turn| always(&mut p, 1000 * turn)).count();
    assert!(turns >= 3, "{turns} of 10");
}

/// The time, not a count: nothing is done for each.
#[test]
fn a_program_is_replaced_in_the_same_time_however_many_entries_come_with_the_next() {
    let replaced = |entries: u64| {
        let mut p = pipeline();
        let times = (0..5).map(|_| {
            let mut next = pipeline();
            (0..entries).for_each(|key| add(&mut next, Time::ZERO, key, 0, 100));
            let began = Instant::now();
            let before = p.replace(next, false, 1_000).unwrap();
            let took = began.elapsed();
            drop(before);
            took
        });
        times.min().unwrap()
    };
    let (few, all) = (replaced(10), replaced(20_000));
    assert!(all < few * 20, "{few:?} with 10 entries, {all:?} with 20 000");
}

#[test]
fn digests_are_taken_by_their_fields() {
    let mut p = pipeline_with_sets();
    let mut outputs = Vec::new();
    for packet in 0..3000u32 {
        p.process(0, 0, &[packet.to_be_bytes(), [0; 4]].concat(), &mut outputs);
    }
    let mut taken = Vec::new();
    loop {
        match p.act(Time::ZERO, &StateOp::TakeDigests {}.into()).unwrap() {
            Answer::Digests(digests) if digests.is_empty() => break,
            Answer::Digests(digests) => {
                let fields: usize = digests.iter().map(|digest| digest.fields.len()).sum();
                assert!(fields + digests.len() <= 4096, "{fields} fields of {}", digests.len());
                taken.push(digests.len());
            }
            other => panic!("{other:?}"),
        }
    }
    // Two fields each, and the message itself.
    assert_eq!(taken, [1365, 1365, 270]);
}

/// What operations that need not be done whole count for while packets wait, with what they replace.
#[test]
fn updates_count_by_the_sets_that_they_set_and_replace() {
    let mut p = pipeline_with_sets();
    add_set(&mut p, 5, 1000, 0);
    let entry = || control::EntryRef::Key(vec![Match::Exact(5u64.into())], None);
    let set = |actions| {
        let call = Call { action: "to".into(), values: vec![1.into()] };
        let to = Leads::Set(vec![Choice { call, weight: 1, watch: Vec::new() }; actions]);
        Op::from(TableOp::Set {
            table: "picks".into(),
            entry: entry(),
            to: Some(to),
            extras: Extras::default(),
        })
    };
    let note = Extras { note: Some(vec![1]), ..Extras::default() };
    let cases = [
        (set(300), 1300),
        (TableOp::Set { table: "picks".into(), entry: entry(), to: None, extras: note }.into(), 1000),
        (TableOp::Delete { table: "picks".into(), entry: entry() }.into(), 1000),
        (TableOp::Delete { table: "t".into(), entry: entry() }.into(), MOST_AT_A_TIME / 64),
        (TableOp::Delete { table: "none".into(), entry: entry() }.into(), MOST_AT_A_TIME / 64),
    ];
    for (op, parts) in cases {
        assert_eq!(p.parts_of(&op), parts, "{op:?}");
    }
}

/// Large groups and sessions are fewer than are asked for, one at least.
#[test]
fn groups_are_read_by_what_is_in_them() {
    let mut p = pipeline_with_sets();
    for member in 0..MOST_SHARES as u32 {
        let to = Call { action: "to".into(), values: vec![1.into()] };
        let op = ProfileOp::AddMember { profile: "chosen".into(), member: Some(member), to };
        p.act(Time::ZERO, &op.into()).unwrap();
    }
    let sizes = [MOST_SHARES, 1000, 3000, 97, 0, 4000, 1, 1];
    for (group, size) in (1..).zip(sizes) {
        let shares = (0..size as u32).map(|member| Share { member, weight: 1, watch: vec![1] }).collect();
        let profile = "chosen".into();
        let set = ProfileOp::SetGroup { profile, group, shares, max_size: 0, put: Put::Either };
        let copies: Vec<_> = (0..size as u32).map(|rid| (1, rid)).collect();
        let copied = (0..size as u32).map(|rid| (rid, 1)).collect();
        let to = Mirror { copies: copied, ..Mirror::default() };
        let mirror = CopiesOp::SetMirror { session: group, to, put: Put::Either };
        let multicast = CopiesOp::SetGroup { group, copies, put: Put::Either };
        for op in [set.into(), mirror.into(), multicast.into()] {
            p.act(Time::ZERO, &op).unwrap();
        }
    }
    type Read = fn(Option<u32>, Option<u32>) -> Op;
    let kinds: [Read; 3] = [
        |start, count| ProfileOp::ReadGroups { profile: "chosen".into(), start, count }.into(),
        |start, count| CopiesOp::ReadGroups { start, count }.into(),
        |start, count| CopiesOp::ReadMirrors { start, count }.into(),
    ];
    for read in kinds {
        let mut numbers = |start, count| -> Vec<u32> {
            match p.act(Time::ZERO, &read(Some(start), count)).unwrap() {
                Answer::Groups(groups) => groups.iter().map(|group| group.group).collect(),
                Answer::Multicast(groups) => groups.iter().map(|(group, _)| *group).collect(),
                Answer::Mirrors(sessions) => sessions.iter().map(|session| session.session).collect(),
                other => panic!("{other:?}"),
            }
        };
        let (mut start, mut found) = (0, Vec::new());
        loop {
            let some = numbers(start, Some(16));
            let Some(last) = some.last() else { break };
            start = last + 1;
            found.push(some);
        }
        // A group that is empty counts as one part.
        assert_eq!(found, [vec![1], vec![2, 3], vec![4, 5], vec![6, 7, 8]]);
        assert_eq!(numbers(2, Some(1)), [2]);
        assert_eq!(numbers(2, Some(0)), [0; 0]);
        assert_eq!(numbers(1, None), [1, 2, 3, 4, 5, 6, 7, 8]);
    }
}
