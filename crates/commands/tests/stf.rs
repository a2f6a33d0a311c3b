//! What a test may say and what its statements mean, where a wrong reading would let a wrong program pass.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use commands::load::{Engine, Source};
use commands::stf::{Options, run};
use p4lang::ir::Program;
use serde_json::Value;

const PROGRAM: &str = r#"
#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> a; bit<8> b; bit<16> c; }
struct headers { h_t h; h_t g; }
struct metadata {}
parser P(packet_in packet, out headers hdr, inout metadata m, inout standard_metadata_t s) {
    state start { packet.extract(hdr.h); transition accept; }
}
control C(inout headers hdr, inout metadata m) { apply {} }
control I(inout headers hdr, inout metadata m, inout standard_metadata_t s) {
    direct_counter(CounterType.packets) hits;
    counter(8, CounterType.packets) seen;
    action put(bit<8> v, bit<9> port) { hdr.h.a = v; s.egress_spec = port; }
    table exact_c { key = { hdr.h.c: exact; } actions = { put; NoAction; } counters = hits; }
    table two { key = { hdr.h.a: ternary; hdr.g.a: ternary; } actions = { put; NoAction; } }
    table always { actions = { put; NoAction; } }
    table valid { key = { hdr.h.isValid(): exact; } actions = { put; NoAction; } }
    table prefix { key = { hdr.h.c: lpm; } actions = { put; NoAction; } }
    apply {
        s.egress_spec = 1;
        seen.count(0);
        exact_c.apply(); always.apply(); two.apply(); valid.apply(); prefix.apply();
        if (hdr.h.b == 0xff) { s.mcast_grp = 1; }
    }
}
control E(inout headers hdr, inout metadata m, inout standard_metadata_t s) { apply {} }
control D(packet_out packet, in headers hdr) { apply { packet.emit(hdr.h); } }
V1Switch(P(), C(), I(), E(), C(), D()) main;
"#;

fn program(dir: &Path) -> Arc<Program> {
    let path = dir.join("t.p4");
    fs::write(&path, PROGRAM).unwrap();
    Source { path, ..Source::default() }.program().unwrap()
}

/// Answers on both engines, which are the same.
fn answers(text: &str) -> Result<Value, String> {
    let dir = tempfile::tempdir().unwrap();
    let program = program(dir.path());
    let test = dir.path().join("t.stf");
    fs::write(&test, text).unwrap();
    let on = |engine| {
        let options = Options { engine, ..Options::default() };
        let answer = run(program.clone(), &test, options, &mut || Ok(()));
        answer.map_err(|why| why.to_string().rsplit_once("t.stf").unwrap_or_default().1.to_owned())
    };
    let (interp, jit) = (on(Engine::Interp), on(Engine::Jit));
    let judged = |answer: &Result<Value, String>| answer.clone().map(|answer| answer["failures"].clone());
    assert_eq!(judged(&interp), judged(&jit), "{text}");
    jit
}

fn passes(text: &str) {
    let answer = answers(text).unwrap_or_else(|why| panic!("{text}: {why}"));
    assert!(answer["ok"] == true, "{text}: {}", answer["text"]);
}

/// What is said about the only expectation that is not met.
fn fails(text: &str) -> Value {
    let answer = answers(text).unwrap_or_else(|why| panic!("{text}: {why}"));
    let failures = answer["failures"].as_array().unwrap();
    assert_eq!(failures.len(), 1, "{text}: {}", answer["text"]);
    failures[0].clone()
}

fn refused(text: &str) -> String {
    answers(text).map(|answer| panic!("{text}: {}", answer["text"])).unwrap_err()
}

#[test]
fn a_handle_goes_with_its_entry() {
    let add = "add exact_c hdr.h.c:3 put(v:1, port:1) = a\n";
    passes(&format!("{add}packet 0 05020003\nexpect 1 01020003$\ncheck_counter hits($a) packets == 1"));
    passes(&format!("{add}remove a\npacket 0 05020003\nexpect 1 05020003$"));
    // The number of an entry that is gone may be another's.
    let other = "add exact_c hdr.h.c:4 put(v:9, port:1)\n";
    for gone in ["table_clear I.exact_c", "table_delete I.exact_c 0", "remove all"] {
        for line in ["remove a", "check_counter hits($a) packets == 0"] {
            let why = refused(&format!("{add}{gone}\n{other}{line}"));
            assert!(why.starts_with(":4: there is no entry `a`"), "{gone}, {line}: {why}");
        }
    }
    // It stays while it is there.
    passes(&format!("{add}{other}table_delete I.exact_c 1\nremove a\npacket 0 05020003\nexpect 1 05020003$"));
}

#[test]
fn a_number_is_an_index_and_a_handle_is_an_entry() {
    let add = "add exact_c hdr.h.c:7 put(v:1, port:1) = 5\n";
    let failure = fails(&format!("{add}packet 0 00020003\nexpect 1\ncheck_counter seen(5) packets == 1"));
    assert_eq!(failure["what"], "counter seen(5) has 0 packets, expected == 1");
    assert_eq!(failure["port"], Value::Null);
    passes(&format!("{add}packet 0 00020007\nexpect 1\ncheck_counter hits($5) packets == 1"));
    passes(&format!("{add}packet 0 00020007\nexpect 1\ncheck_counter seen(0) packets == 1"));
    let why = refused(&format!("{add}check_counter seen($5) packets == 0"));
    assert_eq!(why, ":2: counter `seen` does not belong to a table's entries; give an index, not `5`");
    assert!(refused("check_counter hits($x) packets == 0").starts_with(":1: there is no entry `x`"));
}

#[test]
fn a_key_is_named_once_and_without_doubt() {
    passes("add two 1 hdr.h.a:0x05 put(v:2, port:3)\npacket 0 05020003\nexpect 3 02020003$");
    let why = refused("add two 1 a:0x05 put(v:2, port:3)");
    assert_eq!(why, ":1: `a` could be any of 2 keys of table `I.two`; give the full name");
    let why = refused("add two 1 hdr.h.a:0x05 h.a:0x06 put(v:2, port:3)");
    assert_eq!(why, ":1: key `h.a` has a match twice (`hdr.h.a` is the same key)");
    for name in ["hdr.h.isValid()", "h.isValid()", "hdr.h.$valid$", "valid", "$valid$", "h.valid", "hdr.h"] {
        passes(&format!("add valid {name}:1 put(v:2, port:3)\npacket 0 05020003\nexpect 3 02020003$"));
    }
}

#[test]
fn an_lpm_key_covers_what_stands_before_its_stars() {
    let to_3 = |key: &str, packet: &str| {
        passes(&format!("add prefix hdr.h.c:{key} put(v:2, port:3)\npacket 0 0502{packet}\nexpect 3 0202"));
    };
    to_3("0x12**", "12ff");
    to_3("0x1_2_**", "12ff");
    to_3("0x5", "0005");
    let not = "add prefix hdr.h.c:0x5 put(v:2, port:3)\npacket 0 05020105\nexpect 1 0502";
    passes(not);
    let why = refused("add prefix hdr.h.c:0x*2** put(v:2, port:3)");
    assert!(why.ends_with("in an lpm key only the last digits may be `*`"), "{why}");
}

#[test]
fn ports_are_those_that_there_are() {
    let group = "mc_mgrp_create 1\nmc_node_create 0";
    passes(&format!("{group} 0 510\nmc_node_associate 1 0\npacket 0 05ff0003\nexpect 0\nexpect 510"));
    for line in [&format!("{group} 511"), "mirroring_add 5 512", "mirroring_add_truncate 5 4294967295 9"] {
        let why = refused(line);
        assert!(why.ends_with("is not possible: ports are 0 to 510"), "{why}");
    }
}

#[test]
fn what_comes_out_has_a_bound() {
    let ports: Vec<String> = (0..500).map(|port| port.to_string()).collect();
    let group = format!("mc_mgrp_create 1\nmc_node_create 0 {}\nmc_node_associate 1 0\n", ports.join(" "));
    let packet = format!("packet 0 05ff0003{}\n", "00".repeat(10_000));
    let why = refused(&(group + &packet.repeat(100)));
    assert!(why.contains("takes more than 256 MiB; give fewer packets or copies"), "{why}");
}

#[test]
fn a_byte_order_mark_and_other_blanks_are_skipped() {
    passes("\u{feff}packet 0 0502\u{a0}0003\nexpect 1 0502\u{a0}0003 $");
}

#[test]
fn a_table_without_keys_has_no_entries() {
    let why = refused("add always put(v:1, port:2)");
    assert_eq!(why, ":1: table `I.always` has no keys, so no packet finds an entry; set its default action");
    passes("setdefault always put(v:1, port:2)\npacket 0 05020003\nexpect 2 01020003$");
}

#[test]
fn a_group_s_numbers_are_those_that_packets_can_have() {
    for (line, why) in [
        ("mc_mgrp_create 0", "0 is not a multicast group; they are 1 to 65535"),
        ("mirroring_add_mc 1 65536", "65536 is not a multicast group; they are 0 to 65535"),
        ("mc_node_create 65536 1", "replication id 65536 is more than 65535"),
    ] {
        let refusal = refused(line);
        assert!(refusal.ends_with(why), "{refusal}");
    }
}

#[test]
fn tables_that_share_a_profile_list_the_same_actions() {
    let dir = tempfile::tempdir().unwrap();
    let compiled = |first: &str, second: &str| {
        let path = dir.path().join("shared.p4");
        let tables = format!(
            "action_profile(16) ap;
             table t1 {{ key = {{ hdr.h.a: exact; }} actions = {{ {first} }} implementation = ap; }}
             table t2 {{ key = {{ hdr.h.b: exact; }} actions = {{ {second} }} implementation = ap; }}"
        );
        let text = PROGRAM
            .replace(
                "    apply {\n        s.egress",
                &format!("    {tables}\n    apply {{ t1.apply(); t2.apply();\n        s.egress"),
            )
            .replace("    action put(", "    action g(bit<8> v) { hdr.h.a = v; }\n    action put(");
        fs::write(&path, text).unwrap();
        Source { path, ..Source::default() }.program().map(|_| ()).map_err(|why| why.to_string())
    };
    compiled("put; g; NoAction;", "put; g; NoAction;").unwrap();
    compiled("put; g;", "put; g;").unwrap();
    compiled("put; g; @defaultonly NoAction;", "put; g;").unwrap();
    for second in ["g; put; NoAction;", "g; NoAction;", "put; g;"] {
        let why = compiled("put; g; NoAction;", second).unwrap_err();
        assert!(why.contains("share an action profile or selector and list different actions"), "{why}");
    }
}
