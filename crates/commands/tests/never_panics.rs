//! Whatever is written in a test, a command file or a capture: an answer or a refusal, never a panic or a hang.

use std::sync::{Arc, Mutex};

use commands::cli::Session;
use dataplane::pipeline::Pipeline;
use p4lang::ir::Program;
use proptest::prelude::*;
use wire::pcap::Reader;

const PROGRAM: &str = r#"
#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> a; bit<9> b; bit<7> c; bit<128> d; }
struct headers { h_t h; }
struct meta { }
parser P(packet_in p, out headers hdr, inout meta m, inout standard_metadata_t s) {
    value_set<bit<8>>(4) pvs;
    state start { p.extract(hdr.h); transition select(hdr.h.a) { pvs: accept; default: accept; } }
}
control V(inout headers hdr, inout meta m) { apply { } }
control I(inout headers hdr, inout meta m, inout standard_metadata_t s) {
    counter(8, CounterType.packets_and_bytes) c;
    meter(8, MeterType.bytes) mt;
    register<bit<128>>(8) r;
    action_selector(HashAlgorithm.crc16, 8, 16) sel;
    direct_counter(CounterType.packets) dc;
    action set(bit<9> port, bit<128> v) { s.egress_spec = port; hdr.h.d = v; }
    action count(bit<32> i) { c.count(i); }
    table t {
        key = { hdr.h.a: exact; hdr.h.b: lpm; }
        actions = { set; count; NoAction; }
        counters = dc;
        size = 4;
    }
    table u {
        key = { hdr.h.a: ternary; hdr.h.b: range; hdr.h.c: optional; }
        actions = { set; count; NoAction; }
    }
    table w {
        key = { hdr.h.a: exact; hdr.h.b: selector; }
        actions = { set; count; }
        implementation = sel;
    }
    apply { t.apply(); u.apply(); w.apply(); bit<2> color; mt.execute_meter(0, color); r.write(0, hdr.h.d); }
}
control E(inout headers hdr, inout meta m, inout standard_metadata_t s) { apply { } }
control C(inout headers hdr, inout meta m) { apply { } }
control D(packet_out p, in headers hdr) { apply { p.emit(hdr.h); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
"#;

fn program() -> Arc<Program> {
    static PROGRAM_ONCE: Mutex<Option<Arc<Program>>> = Mutex::new(None);
    let mut slot = PROGRAM_ONCE.lock().unwrap();
    slot.get_or_insert_with(|| {
        let compiled = p4lang::compile_str("t.p4", PROGRAM, None, &p4lang::Options::default());
        Arc::new(compiled.program.expect("the program compiles"))
    })
    .clone()
}

/// Words that commands are made of, and some that they are not.
fn word() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => prop::sample::select(vec![
            "t", "u", "w", "I.t", "set", "count", "NoAction", "c", "mt", "r", "sel", "dc", "pvs", "P.pvs", "=>", "|",
        ]).prop_map(str::to_owned),
        4 => prop::sample::select(vec![
            "0", "1", "7", "8", "511", "512", "0x1ff", "0b101", "-1", "1e9", "99999999999999999999", "1/9", "0/0",
            "1&&&3", "1->5", "5->1", "10.0.0.1", "::1", "00:11:22:33:44:55", "0.5:10", "1.0:20", "NaN:1", "inf:0",
            "true", "4294967295", "&&&", "->", "/", ":",
        ]).prop_map(str::to_owned),
        1 => "[ -~]{0,8}",
        1 => any::<String>(),
    ]
}

fn command() -> impl Strategy<Value = String> {
    let names = vec![
        "table_add",
        "table_set_default",
        "table_modify",
        "table_delete",
        "table_clear",
        "table_reset_default",
        "table_dump",
        "table_dump_entry",
        "table_info",
        "table_num_entries",
        "table_indirect_add",
        "table_indirect_add_with_group",
        "table_indirect_set_default",
        "register_read",
        "register_write",
        "register_reset",
        "counter_read",
        "counter_write",
        "counter_reset",
        "meter_set_rates",
        "meter_array_set_rates",
        "meter_get_rates",
        "mirroring_add",
        "mirroring_add_mc",
        "mirroring_delete",
        "mirroring_get",
        "mc_mgrp_create",
        "mc_mgrp_destroy",
        "mc_node_create",
        "mc_node_update",
        "mc_node_associate",
        "mc_node_dissociate",
        "mc_node_destroy",
        "act_prof_create_member",
        "act_prof_modify_member",
        "act_prof_delete_member",
        "act_prof_create_group",
        "act_prof_delete_group",
        "act_prof_add_member_to_group",
        "act_prof_remove_member_from_group",
        "act_prof_dump",
        "act_prof_dump_group",
        "act_prof_dump_member",
        "set_crc16_parameters",
        "set_crc32_parameters",
        "pvs_add",
        "pvs_remove",
        "pvs_clear",
        "pvs_get",
        "show_tables",
        "show_actions",
        "set_queue_depth",
        "nonsense",
    ];
    (prop::sample::select(names), prop::collection::vec(word(), 0..8))
        .prop_map(|(name, words)| format!("{name} {}", words.join(" ")))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn commands_then_packets(
        commands in prop::collection::vec(command(), 0..40),
        packets in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..4),
    ) {
        let mut pipeline = Pipeline::interpreted(program(), 1).unwrap();
        let mut outputs = Vec::new();
        for line in &commands {
            let mut session = Session { pipeline: &mut pipeline, now: 0 };
            if let Some(Err(why)) = session.execute(line) {
                prop_assert!(!why.is_empty());
            }
        }
        for packet in &packets {
            pipeline.process(1, 3, packet, &mut outputs);
        }
    }

    #[test]
    fn tests_of_any_text(lines in prop::collection::vec(
        prop_oneof![
            "[ -~]{0,60}",
            "(add|setdefault|packet|expect|remove|check_counter|check_register) [ -~]{0,50}",
            "add (t|u|I\\.t) [0-9]{0,3} (hdr\\.h\\.[abc]:(0x)?[0-9a-f*]{1,5}(/[0-9])? ){0,3}(set|count)\\([a-z:0-9,]{0,12}\\)",
            any::<String>(),
        ],
        0..30,
    )) {
        // Lines that are fine alone reach the switch; a bad one alone would hide the others.
        let good: Vec<&String> = lines.iter().filter(|l| commands::stf::parse(l).is_ok()).collect();
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("t.stf");
        for line in good {
            std::fs::write(&path, line).unwrap();
            let options = commands::stf::Options { engine: commands::load::Engine::Interp, ..Default::default() };
            let _ = commands::stf::run(program(), &path, options, &mut || Ok(()));
        }
    }

    #[test]
    fn captures_of_any_bytes(
        magic in prop::sample::select(vec![
            vec![], vec![0xd4, 0xc3, 0xb2, 0xa1], vec![0xa1, 0xb2, 0x3c, 0x4d],
            vec![0x0a, 0x0d, 0x0d, 0x0a, 28, 0, 0, 0, 0x4d, 0x3c, 0x2b, 0x1a],
            vec![0x0a, 0x0d, 0x0d, 0x0a, 0, 0, 0, 28, 0x1a, 0x2b, 0x3c, 0x4d, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 28,
                 0, 0, 0, 1, 0, 0, 0, 20, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 20],
        ]),
        rest in prop::collection::vec(prop_oneof![3 => 0u8..8, 1 => any::<u8>()], 0..400),
    ) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("t.pcap");
        std::fs::write(&path, [magic, rest].concat()).unwrap();
        if let Ok(mut reader) = Reader::open(&path) {
            let mut bytes = Vec::new();
            let mut count = 0;
            while let Ok(Some(packet)) = reader.next(&mut bytes) {
                prop_assert!(packet.wire_len as usize >= bytes.len());
                count += 1;
                prop_assert!(count < 1000);
            }
        }
    }
}
