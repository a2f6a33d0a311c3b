//! Commands that look: what they say of what was set up before.

use std::path::Path;

use commands::cli::{Script, Session};
use commands::load::Source;
use dataplane::pipeline::Pipeline;

fn said(program: &str, commands: &[&str]) -> Vec<Result<String, String>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/p4").join(program);
    let source = Source { path, ..Default::default() };
    let mut pipeline = Pipeline::interpreted(source.program().unwrap(), 0).unwrap();
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

#[test]
fn members_and_groups() {
    let answers = said(
        "v1model/profiles.p4",
        &[
            "act_prof_create_member I.shared set 0x55",
            "act_prof_create_member I.chosen mark 0x1111",
            "act_prof_create_member I.chosen mark 0x2222",
            "act_prof_create_group I.chosen",
            "act_prof_create_group I.chosen",
            "act_prof_add_member_to_group I.chosen 0 1",
            "act_prof_add_member_to_group I.chosen 1 1",
            "act_prof_dump I.shared",
            "act_prof_dump I.chosen",
            "act_prof_dump_member I.chosen 1",
            "act_prof_dump_member I.chosen 2",
            "act_prof_dump_group I.chosen 1",
            "act_prof_dump_group I.chosen 2",
            "op group_set profile=I.chosen group=0 shares=1:3 max_size=0 put=known",
            "act_prof_dump_group I.chosen 0",
        ],
    );
    let ok = |text: &str| Ok(text.to_owned());
    assert_eq!(answers[7], ok("action profile I.shared\nmember 0: I.set(v=0x55)"));
    let both = "member 0: I.mark(v=0x1111)\nmember 1: I.mark(v=0x2222)";
    let groups = "group 0: members []\ngroup 1: members [0, 1]";
    assert_eq!(answers[8], ok(&format!("action profile I.chosen\n{both}\n{groups}")));
    assert_eq!(answers[9], ok("member 1: I.mark(v=0x2222)"));
    assert_eq!(answers[10], Err("action profile `I.chosen` has no member 2".into()));
    assert_eq!(answers[11], ok("group 1: members [0, 1]"));
    assert_eq!(answers[12], Err("action selector `I.chosen` has no group 2".into()));
    assert_eq!(answers[14], ok("group 0: members [1 x 3]"));
}

/// Each operation by its name does what the command of the reference switch does.
#[test]
fn operations_by_name() {
    let answers = said(
        "ch14_tables/runtime.p4",
        &[
            "op table_add table=t key=0x10&&&0xf0,1 to=put(7,8) priority=3",
            "table_dump_entry t 0",
            "op table_set table=t entry=0x10&&&0xf0,1@3 to=put(1,2)",
            "table_dump_entry t 0",
            "op table_add table=t key=*,2 to=put(1,2)",
            "op table_add table=t key=*,2 to=put(1,2) priority=1 colour=red",
            "op table_add table=t key=*,2 priority=1",
            "op table_delete table=t entry=0",
            "table_num_entries t",
            "op walk",
        ],
    );
    assert_eq!(answers[0].as_deref(), Ok("0"));
    let entry = "entry 0: hdr.h.a=0x10&&&0xf0 low=0x1 priority 3 => ";
    assert_eq!(answers[1], Ok(format!("{entry}I.put(v=0x7, w=0x8)")));
    assert_eq!(answers[2].as_deref(), Ok(""));
    assert_eq!(answers[3], Ok(format!("{entry}I.put(v=0x1, w=0x2)")));
    assert_eq!(answers[4], Err("table `I.t` has keys that need a priority; end with one".into()));
    assert_eq!(answers[5], Err("operation `table_add` has no field `colour`; see docs/operations.md".into()));
    assert_eq!(answers[6], Err("`to` is missing; give `to=...`".into()));
    assert_eq!(answers[7].as_deref(), Ok(""));
    assert_eq!(answers[8].as_deref(), Ok("0"));
    assert_eq!(answers[9], Err("no operation `walk`; see docs/operations.md for those there are".into()));
}

/// Answers are text that `op` takes again.
#[test]
fn answers_can_be_read_and_written_again() {
    let everything = "../../../../python/tidegate/p4runtime/everything.p4";
    let answers = said(
        everything,
        &[
            "op member_add profile=choices member=4 to=forward(3)",
            "op group_set profile=choices group=2 shares=4:3@7001 max_size=8 put=new",
            "op groups_read profile=choices",
            "op table_add table=range_table key=5->9 to=mark(2) priority=7",
            "op table_read table=range_table start=0",
            "op meter_set meter=rates at=1 rates=0.125:100,2:200",
            "op meter_read meter=rates start=1 count=1",
            "op mirror_set session=9 to=port:1,truncate:100,copy:2:7 put=either",
            "op mirror_read",
            "op crc_set to=16:0x1021:0xffff:0:true:false",
            "op crc_set to=16:0x1021",
            "op crc_set to=8:0x1021:0xffff:0:true:false",
            "op register_write register=cells start=2 words=1,0xff",
            "op register_read register=cells start=1 count=3",
            "op multicast_set group=5 copies=1:0,2:7 put=new",
            "op multicast_read",
            "op port_set port=1 to=scheduler:round;packets:1",
            "op port_set port=1 to=scheduler:strict_priority;packets:1",
        ],
    );
    for (index, expected) in [
        (2, r#"[{"group":2,"max_size":8,"shares":"4:3@7001"}]"#),
        (6, r#"["0.125:100,2:200"]"#),
        (8, r#"[{"copies":"2:7,1:0","session":9,"to":"port:1,truncate:100,copy:2:7"}]"#),
        (9, ""),
        (13, r#"["0x0","0x1","0xff"]"#),
        (15, r#"[{"group":5,"nodes":[{"node":0,"ports":[1],"rid":0},{"node":1,"ports":[2],"rid":7}]}]"#),
    ] {
        assert_eq!(answers[index].as_deref(), Ok(expected));
    }
    let rows: serde_json::Value = serde_json::from_str(answers[4].as_ref().unwrap()).unwrap();
    assert_eq!(
        (&rows["rows"][0]["key"], &rows["rows"][0]["to"]),
        (&"0x5->0x9".into(), &"Work.mark(0x2)".into())
    );
    assert!(answers[10].as_ref().unwrap_err().contains("expected `WIDTH:POLYNOMIAL"));
    assert_eq!(answers[11], Err("a CRC of 8 bits cannot be set; give 16 or 32".into()));
    assert!(answers[16].as_ref().unwrap_err().starts_with("there is no scheduler `round`; known: strict"));
    let why = "`port_set` is for a switch with ports; a pipeline alone has none: use a switch of a network";
    assert_eq!(answers[17], Err(why.into()));
    let sets = said(
        everything,
        &[
            "op table_add table=selected key=1 to=forward(1)*2;forward(2)*1@7001",
            "op table_read table=selected start=0 only=0",
            "op table_add table=selected key=2 to=forward(1)*",
        ],
    );
    let rows: serde_json::Value = serde_json::from_str(sets[1].as_ref().unwrap()).unwrap();
    assert_eq!(rows["rows"][0]["to"], "Work.forward(0x1)*2;Work.forward(0x2)*1@7001");
    assert!(sets[2].is_err());
}

#[test]
fn rates_below_one_a_second() {
    let answers = said(
        "v1model/meters.p4",
        &["meter_array_set_rates I.packets 0.0000005:1 0.00001:2", "meter_get_rates I.packets 0"],
    );
    assert_eq!(answers[1].as_deref(), Ok("I.packets[0]: 0.0000005:1 0.00001:2"));
}

#[test]
fn a_file_for_a_switch_with_queues() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/p4/ch14_tables/runtime.p4");
    let source = Source { path, ..Default::default() };
    let mut pipeline = Pipeline::interpreted(source.program().unwrap(), 0).unwrap();
    let text = "table_add t put 0x10&&&0xf0 1 => 7 8 3\n\
                reset_state // from nothing\n\
                # queues\n\
                set_queue_rate 2000 2       //in packets a second\n\
                //table_add t no_such_action\n\
                table_num_entries t\n";
    let mut notes = Vec::new();
    let readings = Script::parse("c.txt", text).run(&mut pipeline, 0, &mut notes).unwrap();
    let why = "`set_queue_rate` has no effect: queues are not set by commands here; `tidegate switch` has --rate and --queue-limit";
    assert_eq!(notes, [format!("c.txt:4: {why}")]);
    assert_eq!(readings.len(), 1);
    assert_eq!((readings[0].line, &*readings[0].answer), (6, "0"));
}

#[test]
fn timeouts_of_entries() {
    let answers = said(
        "../../../../python/tidegate/p4runtime/everything.p4",
        &[
            "table_add exact_table drop 1 =>",
            "table_set_timeout exact_table 0 30",
            "table_set_timeout exact_table 1 30",
            "table_add lpm_table NoAction 0/0 =>",
            "table_set_timeout lpm_table 0 30",
        ],
    );
    assert_eq!(answers[1].as_deref(), Ok(""));
    assert_eq!(answers[2], Err("table `Work.exact_table` has no entry 1".into()));
    let why = "table `Work.lpm_table` has no idle timeouts; give it `support_timeout = true`";
    assert_eq!(answers[4], Err(why.into()));
}
