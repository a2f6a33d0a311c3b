//! Batches that are done whole or not at all: what is refused has left nothing behind.

use std::sync::Arc;

use control::{
    ArrayOp, At, Call, Choice, CopiesOp, EntryRef, Error, Extras, FixedOp, Kind, Leads, MOST_CELLS_IN_ALL,
    MOST_IN_ALL, Match, MeterRates, Mirror, Name, Op, ProfileOp, Put, Share, StateOp, TableOp, Target as _,
    Words,
};
use dataplane::pipeline::Pipeline;
use dataplane::state::table::{TableState, Target};
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
    meter(4, MeterType.bytes) rates;
    direct_counter(CounterType.packets) hits;
    action put(bit<8> v) { hdr.h.b = v; sm.egress_spec = 1; cells.write((bit<32>) v, 7); }
    table t {
        key = { hdr.h.a: ternary; } actions = { put; NoAction; } counters = hits; size = 6; support_timeout = true;
    }
    table exact_table { key = { hdr.h.a: exact; } actions = { put; NoAction; } size = 6; }
    table trie { key = { hdr.h.a: lpm; } actions = { put; NoAction; } size = 6; }
    table both { key = { hdr.h.b: exact; hdr.h.a: lpm; } actions = { put; NoAction; } size = 6; }
    action_selector(HashAlgorithm.crc16, 32w6, 32w8) chosen;
    table picks {
        key = { hdr.h.a: exact; hdr.h.b: selector; } actions = { put; NoAction; } implementation = chosen; size = 6;
    }
    apply { t.apply(); exact_table.apply(); trie.apply(); both.apply(); picks.apply(); counts.count(0); }
}
control V(inout H hdr, inout M m) { apply {} }
control E(inout H hdr, inout M m, inout standard_metadata_t sm) { apply {} }
control C(inout H hdr, inout M m) { apply {} }
control D(packet_out p, in H hdr) { apply { p.emit(hdr); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
"#;

const WIDE: &str = "hdr.h.a ++ hdr.h.b: exact @name(\"both\"); } actions = { put; NoAction; } size = 65536";

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

const TABLES: [&str; 4] = ["t", "exact_table", "trie", "both"];

/// An entry of a table, whose keys are few enough to come again.
fn add_to(table: usize, value: u8, length: u32, extras: Extras) -> Op {
    let exact = Match::Exact(u64::from(value).into());
    let prefix = Match::Lpm((u64::from(value) & (0xff << (8 - length))).into(), length);
    let key = match table {
        1 => vec![exact],
        2 => vec![prefix],
        _ => vec![exact, prefix],
    };
    let to = Leads::Action(Call { action: "put".into(), values: vec![u64::from(value).into()] });
    TableOp::Add { table: TABLES[table].into(), key, priority: None, to, extras }.into()
}

fn any_op() -> impl Strategy<Value = Op> {
    let timeout = prop_oneof![Just(None), (0u64..3).prop_map(|ms| Some(ms * 1_000_000_000))];
    prop_oneof![
        4 => (0u8..4, prop_oneof![Just(0u8), Just(1), Just(255)], 1u32..3).prop_map(|(v, m, p)| add(v, m, p)),
        4 => (1usize..4, 0u8..4, 6u32..=8)
            .prop_map(|(table, value, length)| add_to(table, value, length, Extras::default())),
        3 => (0usize..4, 0u32..7).prop_map(|(table, handle)| {
            TableOp::Delete { table: TABLES[table].into(), entry: EntryRef::Handle(handle) }.into()
        }),
        1 => (0u32..7, any::<u64>(), timeout).prop_map(|(handle, packets, idle_timeout)| {
            let counter = Some((packets, 1));
            let extras = Extras { counter, idle_timeout, note: Some(vec![1]), ..Extras::default() };
            let entry = EntryRef::Handle(handle);
            TableOp::Set { table: "t".into(), entry, to: None, extras }.into()
        }),
        1 => (0usize..4, 0u32..7, 0u64..256).prop_map(|(table, handle, value)| {
            let to = Some(Leads::Action(Call { action: "put".into(), values: vec![value.into()] }));
            let (table, entry) = (TABLES[table].into(), EntryRef::Handle(handle));
            TableOp::Set { table, entry, to, extras: Extras::default() }.into()
        }),
        1 => (0usize..4, 0u64..256).prop_map(|(table, value)| {
            let to = Leads::Action(Call { action: "put".into(), values: vec![value.into()] });
            TableOp::SetDefault { table: TABLES[table].into(), to, note: Some(vec![value as u8]) }.into()
        }),
        1 => (0usize..4).prop_map(|table| TableOp::ResetDefault { table: TABLES[table].into() }.into()),
        1 => (0u32..7).prop_map(|handle| {
            let at = if handle == 6 { At::All } else { At::Index(handle) };
            ArrayOp::SetCounter { counter: "hits".into(), at, packets: 5, bytes: 0 }.into()
        }),
        1 => (0u32..9, 0u64..1 << 17).prop_map(|(index, value)| {
            let at = if index == 8 { At::All } else { At::Index(index) };
            ArrayOp::SetRegister { register: "cells".into(), at, value: value.into() }.into()
        }),
        1 => (0u32..9, prop::collection::vec(0u8..8, 0..3)).prop_map(|(start, cells)| {
            let words = Words(cells.iter().flat_map(|cell| u64::from(*cell).to_le_bytes()).collect());
            ArrayOp::WriteRegister { register: "cells".into(), start, words }.into()
        }),
        1 => (0u32..5, 0u32..4, 0u64..9).prop_map(|(start, count, value)| {
            let at = At::Cells { start, count };
            match value {
                0..3 => ArrayOp::SetCounter { counter: "counts".into(), at, packets: value, bytes: 4 }.into(),
                3..6 => {
                    let rates = Some(MeterRates { peak_rate: value, ..MeterRates::default() });
                    ArrayOp::SetMeter { meter: "rates".into(), at, rates }.into()
                }
                _ => ArrayOp::SetRegister { register: "cells".into(), at, value: value.into() }.into(),
            }
        }),
        1 => (0u32..5).prop_map(|index| {
            let at = At::Index(index);
            ArrayOp::SetCounter { counter: "counts".into(), at, packets: 3, bytes: 4 }.into()
        }),
        3 => (0u8..4, any_lead())
            .prop_map(|(value, to)| {
                let (table, key) = ("picks".into(), vec![Match::Exact(u64::from(value).into())]);
                TableOp::Add { table, key, priority: None, to, extras: Extras::default() }.into()
            }),
        1 => (0u32..5, any_lead()).prop_map(|(handle, to)| {
            let (table, entry) = ("picks".into(), EntryRef::Handle(handle));
            TableOp::Set { table, entry, to: Some(to), extras: Extras::default() }.into()
        }),
        2 => (0u32..5).prop_map(|handle| {
            TableOp::Delete { table: "picks".into(), entry: EntryRef::Handle(handle) }.into()
        }),
        4 => any_copies_op().prop_map(Op::from),
        5 => any_profile_op().prop_map(Op::from),
        1 => Just(StateOp::Reset {}.into()),
        1 => (0usize..4).prop_map(|table| TableOp::Clear { table: TABLES[table].into() }.into()),
    ]
}

fn any_lead() -> impl Strategy<Value = Leads> {
    prop_oneof![(0u32..4).prop_map(Leads::Member), (0u32..3).prop_map(Leads::Group)]
}

fn any_put() -> impl Strategy<Value = Put> {
    prop_oneof![Just(Put::New), Just(Put::Known), Just(Put::Either)]
}

fn any_copies_op() -> impl Strategy<Value = CopiesOp> {
    let ports = || prop::collection::vec(0u32..4, 0..3);
    let copies = prop::collection::vec((0u32..3, 0u32..4), 0..4);
    prop_oneof![
        2 => (0u32..3, copies, any_put()).prop_map(|(group, copies, put)| CopiesOp::SetGroup { group, copies, put }),
        1 => (0u32..3, any_put(), any::<bool>())
            .prop_map(|(group, put, nodes)| CopiesOp::DeleteGroup { group, put, nodes }),
        2 => (0u32..3, ports()).prop_map(|(rid, ports)| CopiesOp::AddNode { rid, ports }),
        1 => (0u32..5, ports()).prop_map(|(node, ports)| CopiesOp::SetNode { node, ports }),
        1 => (0u32..5).prop_map(|node| CopiesOp::DeleteNode { node }),
        2 => (0u32..3, 0u32..5).prop_map(|(group, node)| CopiesOp::JoinNode { group, node }),
        1 => (0u32..3, 0u32..5).prop_map(|(group, node)| CopiesOp::LeaveNode { group, node }),
        1 => (0u32..3, 0u32..4, any_put()).prop_map(|(session, port, put)| {
            CopiesOp::SetMirror { session, to: Mirror { port: Some(port), ..Mirror::default() }, put }
        }),
        1 => (0u32..3, any_put()).prop_map(|(session, put)| CopiesOp::DeleteMirror { session, put }),
    ]
}

fn any_profile_op() -> impl Strategy<Value = ProfileOp> {
    let name = || Name::from("chosen");
    let to = || (0u64..256).prop_map(|value| Call { action: "put".into(), values: vec![value.into()] });
    let shares = prop::collection::vec((0u32..4, 1u32..3), 0..3).prop_map(|shares| {
        let share = |(member, weight)| Share { member, weight, watch: Vec::new() };
        shares.into_iter().map(share).collect()
    });
    prop_oneof![
        3 => (prop::option::of(0u32..4), to())
            .prop_map(move |(member, to)| ProfileOp::AddMember { profile: name(), member, to }),
        1 => (0u32..4, to()).prop_map(move |(member, to)| ProfileOp::SetMember { profile: name(), member, to }),
        1 => (0u32..4).prop_map(move |member| ProfileOp::DeleteMember { profile: name(), member }),
        2 => Just(ProfileOp::AddGroup { profile: name() }),
        2 => (0u32..3, shares, any_put()).prop_map(move |(group, shares, put)| {
            ProfileOp::SetGroup { profile: name(), group, shares, max_size: 4, put }
        }),
        1 => (0u32..3, 0u32..4)
            .prop_map(move |(group, member)| ProfileOp::JoinGroup { profile: name(), group, member }),
        1 => (0u32..3, 0u32..4)
            .prop_map(move |(group, member)| ProfileOp::LeaveGroup { profile: name(), group, member }),
        1 => (0u32..3).prop_map(move |group| ProfileOp::DeleteGroup { profile: name(), group }),
    ]
}

/// All that a pipeline keeps, in one form: how a table finds its entries may differ.
fn seen(pipeline: &Pipeline) -> String {
    let state = &pipeline.state;
    let tables: Vec<_> = state
        .tables
        .iter()
        .map(|t| (t.len(), t.iter().collect::<Vec<_>>(), t.default_target(), t.default_note()))
        .collect();
    let arrays = (&state.registers, &state.counters, &state.meters);
    let profiles: Vec<_> = state
        .profiles
        .iter()
        .map(|p| (p.members(0).collect::<Vec<_>>(), p.groups(0).collect::<Vec<_>>()))
        .collect();
    let others = (profiles, &state.value_sets, &state.digests, state.digests_lost, &state.hashes);
    format!("{tables:?} {arrays:?} {others:?} {:?}", pipeline.replication)
}

/// What is known of how entries and groups use members and groups is what is found by going through them.
fn uses_are_known(pipeline: &mut Pipeline) {
    let targets: Vec<_> = (0..4).map(Target::Member).chain((0..3).map(Target::Group)).collect();
    for table in &pipeline.state.tables {
        for target in &targets {
            assert_eq!(table.leads_to(target), table.iter().any(|(_, entry)| entry.target() == target));
        }
    }
    for member in 0..4 {
        let profile = &mut pipeline.state.profiles[0];
        let used = profile.groups(0).any(|(_, group)| group.shares().iter().any(|s| s.member == member));
        if used {
            assert_eq!(profile.remove_member(member), Err("a group has it"));
        } else {
            assert_ne!(profile.remove_member(member), Err("a group has it"));
        }
    }
}

/// What each table finds for small keys, and by a match that its entries may have.
fn finds(pipeline: &Pipeline) -> Vec<Option<u32>> {
    let program = pipeline.program();
    let of_table = |(table, state): (&p4lang::ir::Table, &TableState)| {
        let mut found: Vec<_> =
            (0..8).map(|a| state.lookup(&[a / 2, a][2 - table.keys.len()..]).entry).collect();
        found.extend(state.iter().map(|(_, entry)| state.find(&entry.matches, entry.priority)));
        found
    };
    program.tables.iter().zip(&pipeline.state.tables).flat_map(of_table).collect()
}

proptest! {
    /// A batch does what its operations do one by one, or nothing; what comes after it goes on alike.
    #[test]
    fn whole_or_nothing(
        before in prop::collection::vec(any_op(), 0..20),
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
        let untouched = (seen(&one), finds(&one));
        let now = Time::from_ms(2);
        match one.act_all(now, &batch) {
            Ok(answers) => {
                let each: Vec<_> = batch.iter().map(|op| other.act(now, op).unwrap()).collect();
                prop_assert_eq!(answers, each);
            }
            Err((index, error)) => {
                prop_assert_eq!((seen(&one), finds(&one)), untouched);
                let mut trial = other.another(0);
                trial.state = other.state.clone();
                trial.replication = other.replication.clone();
                for op in &batch[..index] {
                    prop_assert!(trial.act(now, op).is_ok());
                }
                prop_assert_eq!(trial.act(now, &batch[index]), Err(error));
            }
        }
        let now = Time::from_ms(4);
        let idle = TableOp::TakeIdle {}.into();
        prop_assert_eq!(one.act(now, &idle), other.act(now, &idle));
        for op in &after {
            prop_assert_eq!(one.act(now, op), other.act(now, op));
        }
        prop_assert_eq!((seen(&one), finds(&one)), (seen(&other), finds(&other)));
        uses_are_known(&mut one);
    }
}

/// What a refused batch costs does not depend on how many entries the table has.
#[test]
fn a_batch_on_a_large_table_keeps_its_changes_only() {
    let source = PROGRAM.replace("hdr.h.a: exact; } actions = { put; NoAction; } size = 6", WIDE);
    assert_ne!(source, PROGRAM);
    let compiled = p4lang::compile_str("large.p4", &source, None, &p4lang::Options::default());
    let mut pipeline = Pipeline::interpreted(Arc::new(compiled.program.unwrap()), 0).unwrap();
    let add = |value: u64| {
        let to = Leads::Action(Call { action: "put".into(), values: vec![1.into()] });
        let (table, key) = ("exact_table".into(), vec![Match::Exact(value.into())]);
        Op::from(TableOp::Add { table, key, priority: None, to, extras: Extras::default() })
    };
    for value in 0..60_000 {
        pipeline.act(Time::ZERO, &add(value)).unwrap();
    }
    let batch = [add(60_001), add(60_002), add(60_001)];
    let taken = (0..200)
        .map(|_| {
            let start = std::time::Instant::now();
            assert_eq!(pipeline.act_all(Time::ZERO, &batch).unwrap_err().1.kind, Kind::Exists);
            start.elapsed()
        })
        .min();
    eprintln!("{taken:?}");
    assert_eq!(pipeline.state.tables[1].len(), 60_000);
}

/// What a refused batch costs does not depend on how many groups, sessions and members there are beside those that it names.
#[test]
fn a_batch_among_many_groups_keeps_its_changes_only() {
    let mut pipeline = Pipeline::interpreted(program(), 0).unwrap();
    let group = |group| Op::from(CopiesOp::SetGroup { group, copies: vec![(1, 0), (2, 0)], put: Put::New });
    let mirror = |session| {
        let to = Mirror { port: Some(1), ..Mirror::default() };
        Op::from(CopiesOp::SetMirror { session, to, put: Put::New })
    };
    let batch = [group(1), mirror(1), Op::from(ProfileOp::AddGroup { profile: "chosen".into() }), group(1)];
    let mut taken = Vec::new();
    for count in [100, 50_000] {
        for number in pipeline.replication.sessions(0).count() as u32..count {
            pipeline.act(Time::ZERO, &group(number + 10)).unwrap();
            pipeline.act(Time::ZERO, &mirror(number + 10)).unwrap();
        }
        let once = || {
            let start = std::time::Instant::now();
            assert_eq!(
                pipeline.act_all(Time::ZERO, &batch).unwrap_err(),
                (3, Error::new(Kind::Exists, "there is a multicast group 1 already"))
            );
            start.elapsed()
        };
        taken.push(std::iter::repeat_with(once).take(50).min());
    }
    eprintln!("{taken:?}");
    assert!(!pipeline.replication.has_group(1) && pipeline.replication.session(1).is_none());
    assert_eq!(pipeline.replication.groups(0).count(), 50_000);
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

/// Members of groups, copies and actions of sets are cells of a batch, those that are replaced or removed with them.
#[test]
fn what_has_many_parts_is_counted_with_what_it_replaces() {
    const MANY: usize = 4000;
    let source = PROGRAM
        .replace("action_selector(HashAlgorithm.crc16, 32w6, 32w8) chosen", "action_selector(HashAlgorithm.crc16, 32w65536, 32w16) chosen; action_selector(HashAlgorithm.crc16, 32w65536, 32w16) others")
        .replace(
            "apply { t.apply();",
            "table more { key = { hdr.h.a: exact; hdr.h.b: selector; } actions = { put; NoAction; } implementation = others; size = 8; }
            apply { more.apply(); t.apply();",
        );
    let compiled = p4lang::compile_str("parts.p4", &source, None, &p4lang::Options::default());
    let mut pipeline = Pipeline::interpreted(Arc::new(compiled.program.unwrap()), 0).unwrap();
    let call = || Call { action: "put".into(), values: vec![1u64.into()] };
    let choices = || Leads::Set(vec![Choice { call: call(), weight: 1, watch: Vec::new() }; MANY]);
    let key = || vec![Match::Exact(5u64.into())];
    let entry = || EntryRef::Key(key(), None);
    let set_group = |members: usize, put| {
        let share = |member| Share { member: member as u32, weight: 1, watch: Vec::new() };
        let (profile, shares) = ("others".into(), (0..members).map(share).collect());
        Op::from(ProfileOp::SetGroup { profile, group: 1, shares, max_size: 0, put })
    };
    let set_mirror = |copies: usize| {
        let to = Mirror { copies: vec![(1, 0); copies], ..Mirror::default() };
        Op::from(CopiesOp::SetMirror { session: 1, to, put: Put::Either })
    };
    let set_multicast = |copies: usize| {
        Op::from(CopiesOp::SetGroup { group: 1, copies: vec![(1, 0); copies], put: Put::Either })
    };
    let extras = Extras::default;
    let mut before = vec![
        TableOp::Add { table: "picks".into(), key: key(), priority: None, to: choices(), extras: extras() }
            .into(),
        set_mirror(MANY),
        set_multicast(MANY),
    ];
    before.extend((0..MANY).map(|number| {
        ProfileOp::AddMember { profile: "others".into(), member: Some(number as u32), to: call() }.into()
    }));
    before.push(set_group(MANY, Put::Either));
    before.iter().for_each(|op| _ = pipeline.act(Time::ZERO, op).unwrap());

    let table = || Name::from("picks");
    let changes: [(&str, Op); 8] = [
        (
            "note",
            TableOp::Set {
                table: table(),
                entry: entry(),
                to: None,
                extras: Extras { note: Some(vec![1]), ..extras() },
            }
            .into(),
        ),
        (
            "set",
            TableOp::Set { table: table(), entry: entry(), to: Some(choices()), extras: extras() }.into(),
        ),
        ("entry", TableOp::Delete { table: table(), entry: entry() }.into()),
        ("group", set_group(1, Put::Known)),
        ("no group", ProfileOp::DeleteGroup { profile: "others".into(), group: 1 }.into()),
        ("mirror", set_mirror(0)),
        ("no mirror", CopiesOp::DeleteMirror { session: 1, put: Put::Known }.into()),
        ("copies", set_multicast(0)),
    ];
    for (what, change) in changes {
        let batch = vec![change; 5];
        let seen_before = seen(&pipeline);
        let (index, error) = pipeline.act_all(Time::ZERO, &batch).unwrap_err();
        let fits = MOST_CELLS_IN_ALL / if what == "set" { 2 * MANY } else { MANY };
        assert_eq!((index, error.kind), (fits, Kind::Unsupported), "{what}: {error}");
        assert_eq!(seen(&pipeline), seen_before);
        pipeline.act_all(Time::ZERO, &batch[..1]).unwrap_or_else(|(_, error)| panic!("{what}: {error}"));
        before.iter().for_each(|op| _ = pipeline.act(Time::ZERO, op));
    }
}

/// A batch may set so many cells in all, as a whole array, as a range, or one by one; what it has set goes back.
#[test]
fn cells_of_a_batch_are_counted_and_go_back() {
    let source = PROGRAM.replace(
        "register<bit<16>>(8) cells",
        "register<bit<16>>(20000) cells; register<bit<1024>>(2000) wide",
    );
    let compiled = p4lang::compile_str("cells.p4", &source, None, &p4lang::Options::default());
    let mut pipeline = Pipeline::interpreted(Arc::new(compiled.program.unwrap()), 0).unwrap();
    let set = |register: &str, at, value: u64| {
        Op::from(ArrayOp::SetRegister { register: register.into(), at, value: value.into() })
    };
    let most = MOST_CELLS_IN_ALL as u32;
    let many = At::Cells { start: 100, count: most };
    let words = |cells: usize| {
        let words = Words(vec![0; 8 * cells]);
        Op::from(ArrayOp::WriteRegister { register: "cells".into(), start: 0, words })
    };
    let too_many = [
        vec![set("cells", At::All, 7)],
        vec![set("cells", At::Index(1), 7), set("cells", many, 7)],
        vec![set("cells", At::Index(1), 7), words(MOST_CELLS_IN_ALL)],
        // A cell of 16 words counts as two.
        vec![set("wide", At::All, 7), set("cells", At::Cells { start: 0, count: most - 3999 }, 7)],
    ];
    for batch in too_many {
        let (index, error) = pipeline.act_all(Time::ZERO, &batch).unwrap_err();
        assert_eq!((index, error.kind), (batch.len() - 1, Kind::Unsupported));
        assert!(error.to_string().contains("set 16384 at most, or let each be done by itself"), "{error}");
    }
    assert!(pipeline.state.registers.get(0).all().iter().all(|word| *word == 0));
    let refused = set("cells", At::Index(20_000), 7);
    let batch = [
        set("cells", At::Index(200), 1),
        set("cells", At::Cells { start: 150, count: most - 2 }, 7),
        refused,
    ];
    assert_eq!(pipeline.act_all(Time::ZERO, &batch).unwrap_err().0, 2);
    assert!(pipeline.state.registers.get(0).all().iter().all(|word| *word == 0));
    pipeline.act_all(Time::ZERO, &[set("cells", many, 7)]).unwrap();
    let cells = pipeline.state.registers.get(0).all();
    assert!(
        cells.iter().enumerate().all(|(at, word)| (*word == 7) == (100..100 + most as usize).contains(&at))
    );
}
