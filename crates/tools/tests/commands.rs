//! Commands that look: what they say of what was set up before.

use std::path::Path;

use dataplane::pipeline::Pipeline;
use tools::commands::Session;
use tools::load::Source;

fn said(program: &str, commands: &[&str]) -> Vec<Result<String, String>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/p4").join(program);
    let source = Source { path, ..Default::default() };
    let mut pipeline = Pipeline::interpreted(source.program().unwrap(), 0);
    let mut session = Session { pipeline: &mut pipeline, now: 0 };
    commands.iter().map(|line| session.execute(line).unwrap()).collect()
}

#[test]
fn entries_by_their_keys() {
    let answers = said(
        "ch14_tables/runtime.p4",
        &[
            "table_add t put 0x10&&&0xf0 1 => 7 8 3",
            "table_dump_entry_from_key t 0x10&&&0xf0 1 3",
            "table_dump_entry_from_key t 0x10&&&0xf0 1 4",
            "table_dump_entry_from_key t 0x10&&&0xf0 3",
        ],
    );
    assert_eq!(answers[0].as_deref(), Ok("entry has been added with handle 0"));
    assert_eq!(
        answers[1].as_deref(),
        Ok("entry 0: hdr.h.a=0x10&&&0xf0 low=0x1 priority 3 => I.put(v=0x7, w=0x8)")
    );
    assert_eq!(answers[2], Err("table `t` has no such entry".into()));
    assert_eq!(answers[3], Err("table `I.t` has 2 keys (hdr.h.a, low), not 1".into()));
}

#[test]
fn groups_and_value_sets() {
    let answers = said(
        "ch13_parsing/value_sets.p4",
        &["mc_mgrp_create 6", "mc_node_create 0x41 3 1", "mc_node_associate 6 0", "mc_dump", "show_pvs"],
    );
    assert_eq!(answers[3].as_deref(), Ok("group 6: node 0 rid 65 ports [1, 3]"));
    assert_eq!(answers[4].as_deref(), Ok("P.plain [16] size 2\nP.pairs [8, 8] size 4"));
}
