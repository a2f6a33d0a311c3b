//! What the control plane does to a pipeline beyond adding entries: timeouts, groups by weight, another program.

use std::sync::Arc;

use control::{Error, Extras, Kind, Put, StateOp, Target as _};
use dataplane::pipeline::Pipeline;
use dataplane::state::profile::Share;
use dataplane::state::table::{Page, TOP_PRIORITY, Target};
use num_bigint::BigUint;
use p4lang::ir::{EntryMatch, Program, TableId};
use units::Time;

fn program(extra: &str) -> Arc<Program> {
    let text = format!(
        r#"
#include <v1model.p4>
header h_t {{ bit<8> a; bit<8> b; }}
struct H {{ h_t h; }}
struct M {{}}
parser P(packet_in p, out H h, inout M m, inout standard_metadata_t s) {{ state start {{ p.extract(h.h); transition accept; }} }}
control C(inout H h, inout M m) {{ apply {{}} }}
control I(inout H h, inout M m, inout standard_metadata_t s) {{
    register<bit<8>>(4) cells;
    action_selector(HashAlgorithm.identity, 32w8, 32w8) choices;
    action to(bit<9> port) {{ s.egress_spec = port; }}
    table ages {{ key = {{ h.h.a: exact; }} actions = {{ to; NoAction; }} support_timeout = true; }}
    table picks {{ key = {{ h.h.a: exact; h.h.b: selector; }} actions = {{ to; NoAction; }} implementation = choices; }}
    table given {{
        key = {{ h.h.a: ternary; }}
        actions = {{ NoAction; }}
        entries = {{ priority = 10: 1: NoAction(); priority = 30: 2: NoAction(); }}
    }}
    table least {{
        key = {{ h.h.a: ternary; }}
        actions = {{ NoAction; }}
        largest_priority_wins = false;
        entries = {{ priority = 30: _: NoAction(); priority = 10: 1: NoAction(); }}
    }}
    apply {{ ages.apply(); picks.apply(); given.apply(); least.apply(); cells.write(0, h.h.a); if (h.h.a == 77) {{ mark_to_drop(s); }} {extra} }}
}}
control E(inout H h, inout M m, inout standard_metadata_t s) {{ apply {{}} }}
control D(packet_out p, in H h) {{ apply {{ p.emit(h); }} }}
V1Switch(P(), C(), I(), E(), C(), D()) main;
"#
    );
    let compiled = p4lang::compile_str("control.p4", &text, None, &p4lang::Options::default());
    Arc::new(compiled.program.unwrap_or_else(|| panic!("{:?}", compiled.diagnostics)))
}

fn exact(value: u32) -> Vec<EntryMatch> {
    vec![EntryMatch::Exact(value.into())]
}

fn to(p: &Pipeline, table: TableId, port: u32) -> Target {
    let action = p.action_index(table, "to").unwrap();
    p.action_target(table, action, &[BigUint::from(port)]).unwrap()
}

fn add(p: &mut Pipeline, a: u32, idle_timeout: u64, now: u64) -> u32 {
    let table = p.table_id("ages").unwrap();
    let extras = Extras { idle_timeout: Some(idle_timeout), ..Extras::default() };
    p.entry_add(table, exact(a), 0, to(p, table, 1), &extras, now).unwrap()
}

fn idle(p: &mut Pipeline, now: u64) -> Vec<u32> {
    let table = p.table_id("ages").unwrap();
    p.state.tables[table.index()].take_idle(now, usize::MAX, usize::MAX, &mut Page::of(usize::MAX))
}

fn kind<T>(refused: Result<T, Error>) -> Kind {
    refused.err().expect("it is refused").kind
}

fn send(p: &mut Pipeline, now: u64, bytes: &[u8]) -> Vec<u32> {
    let mut outputs = Vec::new();
    p.process(now, 1, bytes, &mut outputs);
    outputs.iter().map(|o| o.port).collect()
}

#[test]
fn an_entry_is_idle_when_nothing_has_hit_it_for_its_timeout_and_again_after_another() {
    for mut p in [Pipeline::interpreted(program(""), 0).unwrap(), Pipeline::compiled(program(""), 0).unwrap()]
    {
        let (first, second) = (add(&mut p, 1, 100, 0), add(&mut p, 2, 250, 0));
        add(&mut p, 3, 0, 0);
        assert!(idle(&mut p, 99).is_empty());
        send(&mut p, 90, &[1, 0]);
        assert!(idle(&mut p, 189).is_empty(), "a hit begins it anew");
        assert_eq!(idle(&mut p, 190), [first]);
        assert!(idle(&mut p, 249).is_empty());
        assert_eq!(idle(&mut p, 250), [second]);
        assert_eq!(idle(&mut p, 290), [first], "told again after another timeout");
    }
}

#[test]
fn the_state_of_another_program_begins_when_that_is_run() {
    let mut p = Pipeline::interpreted(program(""), 0).unwrap();
    let mut next = Pipeline::interpreted(program(""), 0).unwrap();
    let (first, second) = (add(&mut next, 1, 100, 0), add(&mut next, 2, 0, 0));
    p.replace(next, false, 1_000).unwrap();
    let table = p.table_id("ages").unwrap();
    for handle in [first, second] {
        let state = &p.state.tables[table.index()];
        assert_eq!(state.last_hit(state.entry(handle).unwrap()), 1_000);
    }
    assert!(idle(&mut p, 1_099).is_empty());
    assert_eq!(idle(&mut p, 1_100), [first]);
    // A state that is kept goes on.
    let next = Pipeline::interpreted(program(""), 0).unwrap();
    p.replace(next, true, 1_150).unwrap();
    assert_eq!(idle(&mut p, 1_200), [first]);
}

/// Its own clock may have gone on, and its timeouts may be changed, deleted and added from then on.
#[test]
fn timeouts_of_a_state_that_has_been_in_use_begin_anew_too() {
    let mut p = Pipeline::interpreted(program(""), 0).unwrap();
    let mut next = Pipeline::interpreted(program(""), 0).unwrap();
    let (early, late) = (add(&mut next, 1, 300, 0), add(&mut next, 2, 100, 500));
    let (changed, deleted) = (add(&mut next, 3, 100, 500), add(&mut next, 4, 100, 500));
    p.replace(next, false, 1_000).unwrap();
    let table = p.table_id("ages").unwrap();
    let state = &mut p.state.tables[table.index()];
    state.set_idle_timeout(changed, 150, 1_020);
    state.remove(deleted);
    let added = add(&mut p, 5, 100, 1_050);
    assert!(idle(&mut p, 1_099).is_empty());
    assert_eq!(idle(&mut p, 1_100), [late]);
    assert_eq!(idle(&mut p, 1_150), [added]);
    assert_eq!(idle(&mut p, 1_170), [changed]);
    send(&mut p, 1_190, &[2, 0]);
    assert!(idle(&mut p, 1_249).is_empty(), "a hit begins it anew");
    assert_eq!(idle(&mut p, 1_250), [added]);
    assert_eq!(idle(&mut p, 1_290), [late]);
    assert_eq!(idle(&mut p, 1_300), [early]);
}

#[test]
fn the_program_s_entries_begin_when_the_state_is_reset() {
    let mut p = Pipeline::interpreted(program(""), 0).unwrap();
    p.act(Time::from_ps(5_000), &StateOp::Reset {}.into()).unwrap();
    let table = p.table_id("given").unwrap();
    let state = &p.state.tables[table.index()];
    let entries: Vec<_> = state.iter().map(|(_, entry)| state.last_hit(entry)).collect();
    assert_eq!(entries, [5_000, 5_000]);
}

#[test]
fn a_timeout_that_is_changed_or_whose_entry_is_gone_is_not_told_of() {
    let mut p = Pipeline::interpreted(program(""), 0).unwrap();
    let table = p.table_id("ages").unwrap();
    let handle = add(&mut p, 1, 100, 0);
    for round in 0..5000 {
        // The looks that are left over do not pile up.
        let extras = Extras { idle_timeout: Some(1_000_000), ..Extras::default() };
        p.entry_modify(table, handle, None, &extras, round).unwrap();
    }
    assert!(idle(&mut p, 1_000_000).is_empty());
    p.table_delete(table, handle).unwrap();
    assert_eq!(add(&mut p, 2, 0, 0), handle);
    assert!(idle(&mut p, u64::MAX).is_empty());
}

#[test]
fn only_tables_that_say_so_have_timeouts_counters_and_meters() {
    let mut p = Pipeline::interpreted(program(""), 0).unwrap();
    let table = p.table_id("given").unwrap();
    let found = vec![EntryMatch::Ternary { value: 7u8.into(), mask: 255u8.into() }];
    let target = p.action_target(table, 0, &[]).unwrap();
    for extras in [
        Extras { idle_timeout: Some(1), ..Extras::default() },
        Extras { counter: Some((1, 1)), ..Extras::default() },
        Extras { meter: Some(Some(Default::default())), ..Extras::default() },
    ] {
        assert_eq!(kind(p.entry_add(table, found.clone(), 5, target.clone(), &extras, 0)), Kind::Invalid);
    }
    assert_eq!(p.state.tables[table.index()].len(), 2);
}

/// P4_16 sections 14.2 and 14.2.1.4.
#[test]
fn what_the_program_says_is_const_stays() {
    let text = r#"
#include <v1model.p4>
header h_t { bit<8> a; }
struct H { h_t h; }
struct M {}
parser P(packet_in p, out H h, inout M m, inout standard_metadata_t s) { state start { p.extract(h.h); transition accept; } }
control C(inout H h, inout M m) { apply {} }
control I(inout H h, inout M m, inout standard_metadata_t s) {
    action to(bit<9> port) { s.egress_spec = port; }
    table all { key = { h.h.a: exact; } actions = { to; } const default_action = to(1); const entries = { 5: to(2); } }
    table some { key = { h.h.a: exact; } actions = { to; } default_action = to(1); entries = { const 5: to(2); 6: to(3); } }
    apply { all.apply(); some.apply(); }
}
control E(inout H h, inout M m, inout standard_metadata_t s) { apply {} }
control D(packet_out p, in H h) { apply { p.emit(h); } }
V1Switch(P(), C(), I(), E(), C(), D()) main;
"#;
    let compiled = p4lang::compile_str("const.p4", text, None, &p4lang::Options::default());
    let mut p = Pipeline::interpreted(Arc::new(compiled.program.expect("it compiles")), 0).unwrap();
    let [all, some] = ["all", "some"].map(|name| p.table_id(name).unwrap());
    let handle =
        |p: &Pipeline, table: TableId, a: u32| p.state.tables[table.index()].find(&exact(a), 0).unwrap();
    let target = to(&p, all, 4);
    assert_eq!(kind(p.table_add(all, exact(7), 0, target.clone())), Kind::Denied);
    assert_eq!(kind(p.table_set_default(all, target.clone())), Kind::Denied);
    for table in [all, some] {
        let fixed = handle(&p, table, 5);
        assert_eq!(kind(p.table_modify(table, fixed, target.clone())), Kind::Denied);
        assert_eq!(kind(p.table_delete(table, fixed)), Kind::Denied);
    }
    p.table_set_default(some, target.clone()).unwrap();
    p.table_add(some, exact(7), 0, target.clone()).unwrap();
    let free = handle(&p, some, 6);
    p.table_modify(some, free, target).unwrap();
    p.table_delete(some, free).unwrap();
}

#[test]
fn priorities_that_the_program_says_are_those_of_p4runtime() {
    let p = Pipeline::interpreted(program(""), 0).unwrap();
    let table = p.table_id("given").unwrap();
    let mut said: Vec<u32> =
        p.state.tables[table.index()].iter().map(|(_, e)| TOP_PRIORITY - e.priority).collect();
    said.sort_unstable();
    assert_eq!(said, [10, 30]);
}

/// An entry that comes later has a place between the program's.
#[test]
fn where_the_smallest_priority_wins_entries_have_the_numbers_that_the_program_says() {
    let mut p = Pipeline::interpreted(program(""), 0).unwrap();
    let table = p.table_id("least").unwrap();
    let target = p.action_target(table, 0, &[]).unwrap();
    let place = |p: &Pipeline| {
        let mut said: Vec<u32> = p.state.tables[table.index()].iter().map(|(_, e)| e.priority).collect();
        said.sort_unstable();
        said
    };
    assert_eq!(place(&p), [10, 30]);
    let found = vec![EntryMatch::Ternary { value: 3u8.into(), mask: 3u8.into() }];
    p.table_add(table, found, 20, target).unwrap();
    assert_eq!(place(&p), [10, 20, 30]);
}

#[test]
fn members_have_the_numbers_that_are_asked_for_and_groups_go_by_weight() {
    let mut p = Pipeline::compiled(program(""), 0).unwrap();
    let profile = p.profile_index("choices").unwrap();
    for member in [4_000_000_000, 0] {
        p.member_add(profile, Some(member), "to", &[BigUint::from(member % 7 + 1)]).unwrap();
    }
    assert_eq!(p.member_add(profile, None, "NoAction", &[]), Ok(1), "the first that is free");
    assert_eq!(kind(p.member_add(profile, Some(0), "NoAction", &[])), Kind::Exists);
    let share = |member, weight| Share { member, weight, watch: Vec::new() };
    p.group_set(profile, 9, Put::New, vec![share(4_000_000_000, 1), share(0, 3)], 0).unwrap();
    assert_eq!(kind(p.group_set(profile, 9, Put::New, Vec::new(), 0)), Kind::Exists);
    assert_eq!(kind(p.group_set(profile, 8, Put::New, vec![share(5, 1)], 0)), Kind::NotFound);
    assert_eq!(kind(p.group_set(profile, 8, Put::New, vec![share(0, 1_000_000)], 0)), Kind::Full);
    let table = p.table_id("picks").unwrap();
    p.table_add(table, exact(1), 0, Target::Group(9)).unwrap();
    let ports: Vec<u32> = (0..8).flat_map(|b| send(&mut p, 0, &[1, b])).collect();
    let first = 4_000_000_000u32 % 7 + 1;
    assert_eq!(ports, [first, 1, 1, 1, first, 1, 1, 1]);
    assert_eq!(kind(p.group_delete(profile, 9)), Kind::InUse);
}

#[test]
fn another_program_keeps_the_state_only_if_it_has_the_same_objects() {
    let mut p = Pipeline::interpreted(program(""), 0).unwrap();
    add(&mut p, 1, 0, 0);
    assert_eq!(send(&mut p, 0, &[1, 0]), [1]);
    assert!(send(&mut p, 0, &[77, 0]).is_empty());
    send(&mut p, 0, &[1, 0]);
    let dropped: u64 = p.drops().values().sum();
    assert_eq!(dropped, 1);
    let same = Pipeline::interpreted(program("if (h.h.b == 9) { s.egress_spec = 4; }"), 0).unwrap();
    p.replace(same, true, 0).unwrap();
    assert_eq!(send(&mut p, 0, &[1, 9]), [4], "the new program");
    assert_eq!(send(&mut p, 0, &[1, 0]), [1], "the old entry");
    assert_eq!(p.register_read(0, 0).unwrap(), BigUint::from(1u8));
    let fewer = Pipeline::interpreted(without_register(), 0).unwrap();
    assert_eq!(kind(p.replace(fewer, true, 0)), Kind::Invalid);
    assert_eq!(send(&mut p, 0, &[1, 9]), [4], "nothing has changed");
    p.replace(Pipeline::interpreted(without_register(), 0).unwrap(), false, 0).unwrap();
    assert_eq!(send(&mut p, 0, &[1, 9]), [0], "no entry is left");
    assert_eq!(p.drops().values().sum::<u64>(), dropped, "counts go on");
}

fn without_register() -> Arc<Program> {
    let text = r#"
#include <v1model.p4>
struct H {}
struct M {}
parser P(packet_in p, out H h, inout M m, inout standard_metadata_t s) { state start { transition accept; } }
control C(inout H h, inout M m) { apply {} }
control I(inout H h, inout M m, inout standard_metadata_t s) { apply {} }
control D(packet_out p, in H h) { apply {} }
V1Switch(P(), C(), I(), I(), C(), D()) main;
"#;
    let compiled = p4lang::compile_str("none.p4", text, None, &p4lang::Options::default());
    Arc::new(compiled.program.unwrap_or_else(|| panic!("{:?}", compiled.diagnostics)))
}
