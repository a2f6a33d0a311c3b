//! What clients add at run time beside the program's declared sizes is within the budget of its state.

use std::sync::Arc;

use control::{
    Call, Choice, CopiesOp, EntryRef, Extras, Kind, Leads, Match, Mirror, Op, ProfileOp, Put, Share, StateOp,
    TableOp, Target,
};
use dataplane::pipeline::Pipeline;
use p4lang::ir::Program;
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
    action put(bit<9> port) { sm.egress_spec = port; }
    action_selector(HashAlgorithm.crc16, 32w1024, 32w8) chosen;
    action_selector(HashAlgorithm.crc16, 32w1024, 32w8) others;
    action_profile(0) unsized;
    table picks {
        key = { hdr.h.a: exact; hdr.h.b: selector; } actions = { put; } implementation = chosen; size = 1024;
    }
    table sets {
        key = { hdr.h.a: exact; hdr.h.b: selector; } actions = { put; } implementation = others; size = 1024;
    }
    table members { key = { hdr.h.a: exact; } actions = { put; } implementation = unsized; size = 1024; }
    table plain { key = { hdr.h.a: exact; } actions = { put; NoAction; } size = 1024; }
    apply { picks.apply(); sets.apply(); members.apply(); plain.apply(); }
}
control V(inout H hdr, inout M m) { apply {} }
control E(inout H hdr, inout M m, inout standard_metadata_t sm) { apply {} }
control C(inout H hdr, inout M m) { apply {} }
control D(packet_out p, in H hdr) { apply { p.emit(hdr); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
"#;

/// Of the whole state.
const BUDGET: u64 = 5 << 20;

/// The program's declared sizes take two MiB of the budget.
fn program() -> Arc<Program> {
    let mut options = p4lang::Options::default();
    (options.limits.state_bytes, options.limits.queue_bytes) = (BUDGET, 1 << 10);
    let compiled = p4lang::compile_str("room.p4", PROGRAM, None, &options);
    let program = compiled.program.unwrap_or_else(|| panic!("{:?}", compiled.diagnostics));
    assert!((BUDGET / 2..BUDGET).contains(&program.room), "{}", program.room);
    Arc::new(program)
}

fn pipeline() -> Pipeline {
    let mut pipeline = Pipeline::interpreted(program(), 0).unwrap();
    pipeline.act(Time::ZERO, &member("chosen", 0)).unwrap();
    pipeline
}

fn put(port: u64) -> Call {
    Call { action: "put".into(), values: vec![port.into()] }
}

fn member(profile: &str, member: u32) -> Op {
    ProfileOp::AddMember { profile: profile.into(), member: Some(member), to: put(1) }.into()
}

fn group(group: u32, weight: u32) -> Op {
    let shares = vec![Share { member: 0, weight, watch: Vec::new() }];
    ProfileOp::SetGroup { profile: "chosen".into(), group, shares, max_size: 0, put: Put::Either }.into()
}

fn set(weight: u32) -> Leads {
    Leads::Set(vec![Choice { call: put(1), weight, watch: Vec::new() }])
}

fn entry(table: &str, key: u64, to: Leads, note: usize) -> Op {
    let key = vec![Match::Exact(key.into())];
    let extras = Extras { note: Some(vec![7; note]), ..Extras::default() };
    TableOp::Add { table: table.into(), key, priority: None, to, extras }.into()
}

/// There is no multicast group 0.
fn from_1(number: u32) -> u32 {
    if number == 0 { 0xffff } else { number }
}

fn multicast(group: u32, copies: u32) -> Op {
    let copies = (0..copies).map(|rid| (1, rid)).collect();
    CopiesOp::SetGroup { group, copies, put: Put::Either }.into()
}

fn mirror(session: u32) -> Op {
    let to = Mirror { copies: (0..256).map(|rid| (1, rid)).collect(), ..Mirror::default() };
    CopiesOp::SetMirror { session, to, put: Put::Either }.into()
}

fn node(rid: u32) -> Op {
    CopiesOp::AddNode { rid, ports: (0..256).collect() }.into()
}

/// What may be added again and again, what one of them is called, and what takes the one of a number away.
type Case = (&'static str, fn(u32) -> Op, fn(u32) -> Op);

const CASES: [Case; 7] = [
    (
        "group 7 of `I.chosen`",
        |n| group(n, 65_536),
        |group| ProfileOp::DeleteGroup { profile: "chosen".into(), group }.into(),
    ),
    (
        "a member of `I.unsized`",
        |n| member("unsized", n),
        |member| ProfileOp::DeleteMember { profile: "unsized".into(), member }.into(),
    ),
    ("an entry of table `I.sets`", |n| entry("sets", n.into(), set(65_536), 0), |n| delete("sets", n)),
    (
        "an entry of table `I.plain`",
        |n| entry("plain", n.into(), Leads::Action(put(1)), 64 << 10),
        |n| delete("plain", n),
    ),
    (
        "multicast group 7",
        |n| multicast(from_1(n), 1024),
        |n| CopiesOp::DeleteGroup { group: from_1(n), put: Put::Known, nodes: true }.into(),
    ),
    ("mirror session 7", mirror, |session| CopiesOp::DeleteMirror { session, put: Put::Known }.into()),
    ("a node", node, |node| CopiesOp::DeleteNode { node }.into()),
];

fn delete(table: &str, key: u32) -> Op {
    let entry = EntryRef::Key(vec![Match::Exact(u64::from(key).into())], None);
    TableOp::Delete { table: table.into(), entry }.into()
}

/// Adds until there is no room; gives how many there were, and what was said.
fn fill(pipeline: &mut Pipeline, add: fn(u32) -> Op) -> (u32, control::Error) {
    for number in 0..1 << 20 {
        if let Err(error) = pipeline.act(Time::ZERO, &add(number)) {
            return (number, error);
        }
    }
    panic!("there is no end to it");
}

#[test]
fn what_is_added_is_refused_beyond_the_budget_and_given_back_when_deleted() {
    for (object, add, delete) in CASES {
        let mut pipeline = pipeline();
        let (start, room) = (pipeline.added_bytes(), pipeline.program().room);
        let (count, error) = fill(&mut pipeline, add);
        assert_eq!(error.kind, Kind::Full, "{object}: {error}");
        let named = object.replace(" 7", &format!(" {count}"));
        for part in [named.as_str(), "bytes more", &room.to_string(), "`state_bytes`"] {
            assert!(error.to_string().contains(part), "{object}: {error}");
        }
        // Nearly all of it is used, and what was refused has left nothing.
        let full = pipeline.added_bytes();
        assert!(full <= room && full > room / 2, "{object}: {full} of {room}");
        pipeline.act(Time::ZERO, &delete(0)).unwrap();
        pipeline.act(Time::ZERO, &add(0)).unwrap();
        assert_eq!(pipeline.added_bytes(), full, "{object}");
        for number in 0..count {
            pipeline.act(Time::ZERO, &delete(number)).unwrap();
        }
        assert_eq!(pipeline.added_bytes(), start, "{object}");
    }
}

#[test]
fn a_batch_that_is_undone_gives_back_what_it_took() {
    for (object, add, delete) in CASES {
        let mut pipeline = pipeline();
        pipeline.act(Time::ZERO, &add(0)).unwrap();
        let before = pipeline.added_bytes();
        let refused = [add(1), delete(0), add(0), delete(1), delete(1)];
        assert_eq!(pipeline.act_all(Time::ZERO, &refused).unwrap_err().0, 4, "{object}");
        assert_eq!(pipeline.added_bytes(), before, "{object}");
        pipeline.act_all(Time::ZERO, &[add(1), delete(0), add(0), delete(1)]).unwrap();
        assert_eq!(pipeline.added_bytes(), before, "{object}");
    }
}

/// A batch keeps what it replaces until it is done: that counts, too.
#[test]
fn a_batch_keeps_no_more_than_there_is_room_for() {
    let mut pipeline = pipeline();
    pipeline.act(Time::ZERO, &entry("sets", 1, set(65_536), 0)).unwrap();
    let change = |weight| {
        let entry = EntryRef::Key(vec![Match::Exact(1u64.into())], None);
        Op::from(TableOp::Set {
            table: "sets".into(),
            entry,
            to: Some(set(weight)),
            extras: Extras::default(),
        })
    };
    let before = pipeline.added_bytes();
    let same = vec![change(65_536); 64];
    let (at, error) = pipeline.act_all(Time::ZERO, &same).unwrap_err();
    assert!(at < 16 && error.kind == Kind::Full, "{at} {error}");
    assert!(error.to_string().contains("several batches"), "{error}");
    let (at, error) = pipeline.act_all(Time::ZERO, &vec![multicast(1, 1024); 16]).unwrap_err();
    assert!(at < 16 && error.kind == Kind::Full, "{at} {error}");
    assert_eq!(pipeline.added_bytes(), before);
    // One by one they need no more room than one.
    for op in same {
        pipeline.act(Time::ZERO, &op).unwrap();
    }
    // What fills all of it can be taken away at once.
    let (count, _) = fill(&mut pipeline, |n| group(n, 65_536));
    let gone = |group| Op::from(ProfileOp::DeleteGroup { profile: "chosen".into(), group });
    pipeline.act_all(Time::ZERO, &(0..count).map(gone).collect::<Vec<_>>()).unwrap();
    assert_eq!(pipeline.added_bytes(), before);
}

#[test]
fn a_reset_gives_back_what_it_takes_away_and_a_kept_state_must_fit() {
    let mut pipeline = pipeline();
    let (count, _) = fill(&mut pipeline, |n| group(n, 65_536));
    pipeline.act(Time::ZERO, &StateOp::Reset {}.into()).unwrap();
    assert_eq!(pipeline.added_bytes(), 0);
    pipeline.act(Time::ZERO, &member("chosen", 0)).unwrap();
    for number in 0..count {
        pipeline.act(Time::ZERO, &group(number, 65_536)).unwrap();
    }
    let mut smaller = Program::clone(pipeline.program());
    smaller.room /= 2;
    let smaller = Pipeline::interpreted(Arc::new(smaller), 0).unwrap();
    assert_eq!(pipeline.replace(smaller, true, 0).err().map(|error| error.kind), Some(Kind::Full));
    let same = Pipeline::interpreted(pipeline.program().clone(), 0).unwrap();
    pipeline.replace(same, true, 0).unwrap();
}
