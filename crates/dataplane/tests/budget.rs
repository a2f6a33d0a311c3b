//! What one packet, and one program, may ask for: more is refused, or dropped and counted, with both executors alike.

use std::sync::Arc;
use std::time::Instant;

use dataplane::drops::DropReason;
use dataplane::jit::JitError;
use dataplane::pipeline::{Pipeline, QueueInfo, Refused};
use dataplane::replication::Session;
use dataplane::state::State;
use dataplane::state::table::Target;
use p4lang::ir::{EntryMatch, Program, TableId};

/// A program whose ingress is `body`, with these declarations in it, and metadata beside the header `h`.
fn program(metadata: &str, declarations: &str, body: &str) -> Arc<Program> {
    compiled(&source(metadata, declarations, body))
}

fn source(metadata: &str, declarations: &str, body: &str) -> String {
    format!(
        r#"
#include <core.p4>
#include <v1model.p4>
header h_t {{ bit<8> a; bit<8> b; }}
header v_t {{ varbit<65528> v; }}
struct H {{ h_t h; v_t v; h_t[4] s; }}
struct M {{ bit<32> n; bit<32> i; {metadata} }}
parser P(packet_in p, out H hdr, inout M m, inout standard_metadata_t sm) {{
    state start {{ p.extract(hdr.h); transition accept; }}
}}
control V(inout H hdr, inout M m) {{ apply {{}} }}
control I(inout H hdr, inout M m, inout standard_metadata_t sm) {{
    {declarations}
    apply {{ sm.egress_spec = 1; {body} }}
}}
control E(inout H hdr, inout M m, inout standard_metadata_t sm) {{ apply {{}} }}
control C(inout H hdr, inout M m) {{ apply {{}} }}
control D(packet_out p, in H hdr) {{ apply {{ p.emit(hdr.h); }} }}
V1Switch(P(), V(), I(), E(), C(), D()) main;
"#
    )
}

fn compiled(source: &str) -> Arc<Program> {
    // The compiler's own limits are not those that are tested here.
    let mut options = p4lang::Options::default();
    (options.limits.frame_bytes, options.limits.state_bytes) = (1 << 40, 1 << 50);
    let compiled = p4lang::compile_str("budget.p4", source, None, &options);
    Arc::new(compiled.program.unwrap_or_else(|| panic!("{:?}", compiled.diagnostics)))
}

fn both(program: &Arc<Program>) -> [Pipeline; 2] {
    let compiled = Pipeline::compiled(program.clone(), 1).expect("native code");
    [Pipeline::interpreted(program.clone(), 1).expect("runs"), compiled]
}

/// Packets that leave after one has come in, and the reasons for which packets were dropped.
fn run(pipeline: &mut Pipeline) -> (usize, Vec<(DropReason, u64)>) {
    let mut out = Vec::new();
    pipeline.process(0, 0, &[1, 2, 3, 4], &mut out);
    (out.len(), pipeline.drops().iter().map(|(reason, count)| (*reason, *count)).collect())
}

/// Packets that one packet turns into.
const MAX_COPIES: u64 = 4096;

const DROPPED: (DropReason, u64) = (DropReason::WorkBudget, 1);

#[test]
fn cheap_loops_run_and_dear_ones_are_dropped() {
    let wide = "bit<65528> w; ";
    for (metadata, body, dropped) in [
        ("", "for (bit<32> i in 0..50000) { m.n = m.n + i; }", false),
        ("", "for (bit<32> i in 0..50000000) { m.n = m.n + i; }", true),
        ("", "for (bit<32> i in 0..3000) { for (bit<32> j in 0..3000) { m.n = m.n + i; } }", true),
        (wide, "for (bit<32> i in 0..60000) { m.w = m.w * m.w + 1; }", true),
        (wide, "for (bit<32> i in 0..1) { m.w = m.w * m.w + 1; }", false),
        (
            wide,
            "for (bit<32> i in 0..60000) { hash(m.n, HashAlgorithm.crc32, 32w0, { m.w, m.w }, 32w1000); }",
            true,
        ),
    ] {
        let program = program(metadata, "", body);
        for mut pipeline in both(&program) {
            let expected = if dropped { (0, vec![DROPPED]) } else { (1, Vec::new()) };
            assert_eq!(run(&mut pipeline), expected, "{body}");
        }
    }
}

#[test]
fn a_program_that_is_too_large_for_native_code_has_less_work_for_a_packet() {
    let large = "m.i = m.i * m.i + m.n; ".repeat(40_000);
    let program = program("", "", &format!("for (bit<32> i in 0..200000) {{ m.n = m.n + i; }} {large}"));
    let (mut pipeline, why) = Pipeline::new(program.clone(), 1).expect("runs");
    assert!(matches!(why, Some(JitError::TooLarge)), "{why:?}");
    assert_eq!(run(&mut pipeline), (0, vec![DROPPED]));
    // All of a packet's work is enough.
    assert_eq!(run(&mut Pipeline::interpreted(program, 1).expect("runs")), (1, Vec::new()));
}

/// What the interpreter does for a loop and a `switch` is what they are charged for, however much is in them.
#[test]
fn large_loops_and_switches_take_no_longer_than_small_ones() {
    let time = |cases: usize| {
        let cases: String = (0..cases).map(|n| format!("{n}: {{ m.n = m.n + {n}; }} ")).collect();
        let inner = format!("for (bit<32> j in 0..m.n) {{ switch (m.i) {{ {cases} default: {{ }} }} }}");
        let program =
            program("", "", &format!("m.i = 0xffffffff; for (bit<32> i in 0..0xffffffff) {{ {inner} }}"));
        let mut pipeline = Pipeline::interpreted(program, 1).expect("runs");
        let runs = (0..3).map(|_| {
            let began = Instant::now();
            assert_eq!(run(&mut pipeline).0, 0);
            began.elapsed()
        });
        runs.min().expect("there are some")
    };
    let (small, large) = (time(10), time(4000));
    assert!(large < 6 * small, "{large:?} instead of about {small:?}");
}

/// Each pass and copy takes from the same budget.
#[test]
fn passes_and_copies_share_one_budget() {
    let loops = "for (bit<32> i in 0..100000) { m.n = m.n + i; }";
    let again = format!("{loops} resubmit_preserving_field_list(1);");
    for mut pipeline in both(&program("", "", &again)) {
        assert_eq!(run(&mut pipeline), (0, vec![DROPPED]));
    }
    // Not for its work alone.
    for mut pipeline in both(&program("", "", "resubmit_preserving_field_list(1);")) {
        assert_eq!(run(&mut pipeline), (0, vec![(DropReason::Recirculation, 1)]));
    }
    let clone = "if (sm.instance_type == 0) { clone_preserving_field_list(CloneType.I2E, 5, 1); }";
    for mut pipeline in both(&program("bit<65528> a; bit<65528> b; bit<65528> c;", "", clone)) {
        let copies = (0..4000).map(|rid| (rid, 2)).collect();
        pipeline.replication.set_session(5, Session { copies, ..Session::default() });
        let (left, drops) = run(&mut pipeline);
        assert!(left < 3000, "{left} copies of large frames were made");
        assert_eq!(drops, [DROPPED]);
    }
}

/// Also where queues stand between: what the egress of one copy has cost is not there for the next, whether it left or was dropped.
#[test]
fn copies_that_wait_in_queues_share_one_budget() {
    let loops = "for (bit<32> j in 0..20000) { m.n = m.n + j; }";
    for (ending, leaves) in [("", true), ("hdr.h.setInvalid();", true), ("mark_to_drop(sm);", false)] {
        let source = source("", "", "sm.mcast_grp = 1;").replace(
            "control E(inout H hdr, inout M m, inout standard_metadata_t sm) { apply {} }",
            &format!(
                "control E(inout H hdr, inout M m, inout standard_metadata_t sm) {{ apply {{ {loops} {ending} }} }}"
            ),
        );
        assert!(source.contains(loops));
        let seen = both(&compiled(&source)).map(|mut pipeline| {
            pipeline.replication.create_group(1);
            for rid in 0..300 {
                let node = pipeline.replication.create_node(rid, vec![2]);
                pipeline.replication.associate(1, node);
            }
            let (packet, mut pending) = (pipeline.packet(&[1, 2, 3, 4], 0), Vec::new());
            pipeline.receive(0, 0, packet, &mut pending, &mut |_, _| false);
            assert_eq!(pending.len(), 300);
            let mut left = 0;
            for copy in pending {
                left += u32::from(pipeline.depart(0, copy, QueueInfo::default(), &mut Vec::new()).is_some());
            }
            (left, pipeline.drops().clone())
        });
        assert_eq!(seen[0], seen[1], "{ending}");
        let within = if leaves { u64::from(seen[0].0) } else { seen[0].1[&DropReason::Egress] };
        assert!((1..100).contains(&within), "{within} of 300 are within one packet's work");
        assert_eq!(seen[0].1[&DropReason::WorkBudget], 300 - within);
    }
}

/// The memory of large ones is provided page by page as it is touched.
#[test]
fn cells_of_large_registers_counters_and_meters_are_dear() {
    for (declared, access, small, large) in [
        ("register<bit<64>>(SIZE) x;", "x.write(i, (bit<64>)m.n);", 1 << 22, 1 << 24),
        ("register<bit<64>>(SIZE) x;", "bit<64> v; x.read(v, i); m.n = (bit<32>)v;", 1 << 22, 1 << 24),
        ("counter(SIZE, CounterType.bytes) x;", "x.count(i);", 1 << 21, 1 << 23),
        ("meter(SIZE, MeterType.bytes) x;", "x.execute_meter(i, m.n);", 1 << 19, 1 << 20),
    ] {
        for (size, dropped) in [(small, false), (large, true)] {
            let declared = declared.replace("SIZE", &size.to_string());
            let mut bodies = vec![format!("for (bit<32> i in 0..20000) {{ {access} }}")];
            if access.starts_with("x.write") {
                bodies.push(format!("bit<32> i = m.n; {}", format!("i = i + 600; {access} ").repeat(5600)));
            }
            for body in bodies {
                let program = program("", &declared, &body);
                for mut pipeline in both(&program) {
                    let expected = if dropped { (0, vec![DROPPED]) } else { (1, Vec::new()) };
                    assert_eq!(run(&mut pipeline), expected, "{declared}");
                }
            }
        }
    }
}

/// A packet has its first pass alone to touch cells without paying for their memory.
#[test]
fn later_passes_pay_for_each_cell() {
    let touches = |count: usize| format!("bit<32> i = m.n; {}", "i = i + 600; x.write(i, 7); ".repeat(count));
    let declared = |size: u32| format!("register<bit<64>>({size}) x;");
    let again = format!("{} resubmit_preserving_field_list(1);", touches(140));
    let once =
        format!("{} if (sm.instance_type == 0) {{ resubmit_preserving_field_list(1); }}", touches(140));
    for (size, dropped) in [(1 << 22, DropReason::Recirculation), (1 << 24, DropReason::WorkBudget)] {
        for mut pipeline in both(&program("", &declared(size), &again)) {
            assert_eq!(run(&mut pipeline), (0, vec![(dropped, 1)]), "{size}");
        }
        for mut pipeline in both(&program("", &declared(size), &once)) {
            assert_eq!(run(&mut pipeline), (1, Vec::new()), "{size}");
        }
    }
}

/// Copies have none, neither in egress nor in the parser, which runs on clones of what came in.
#[test]
fn copies_pay_for_each_cell() {
    let clone = "if (sm.instance_type == 0) { clone_preserving_field_list(CloneType.I2E, 5, 1); }";
    let source = source("", "", clone).replace("varbit<65528>", "varbit<8>");
    let touches = "m.i = m.i + 600; x.write(m.i, 7); ".repeat(100);
    let parser = ("state start { p", format!("register<bit<64>>(SIZE) x; state start {{ {touches} p"));
    let egress = (
        "control E(inout H hdr, inout M m, inout standard_metadata_t sm) { apply {} }",
        format!(
            "control E(inout H hdr, inout M m, inout standard_metadata_t sm) {{ register<bit<64>>(SIZE) x; apply {{ {touches} }} }}"
        ),
    );
    for (plain, with) in [parser, egress] {
        assert!(source.contains(plain));
        for (size, dropped) in [(1 << 22, false), (1 << 24, true)] {
            let program = compiled(&source.replace(plain, &with.replace("SIZE", &size.to_string())));
            for mut pipeline in both(&program) {
                let copies = (0..100).map(|rid| (rid, 2)).collect();
                pipeline.replication.set_session(5, Session { copies, ..Session::default() });
                let (left, drops) = run(&mut pipeline);
                let expected = if dropped { vec![DROPPED] } else { Vec::new() };
                assert_eq!((left < 60, drops), (dropped, expected), "{left} of 101 left");
            }
        }
    }
}

#[test]
fn one_packet_turns_into_so_many() {
    let clone = "if (sm.instance_type == 0) { clone_preserving_field_list(CloneType.I2E, 5, 1); }";
    // With a small frame, of which so many copies are within the budget of work.
    let program = compiled(&source("", "", clone).replace("varbit<65528>", "varbit<8>"));
    for mut pipeline in both(&program) {
        let copies = (0..5000).map(|rid| (rid, 2)).collect();
        pipeline.replication.set_session(5, Session { copies, ..Session::default() });
        let (left, drops) = run(&mut pipeline);
        assert_eq!(drops, [(DropReason::Copies, 1)], "once for all that are left");
        assert_eq!(left as u64, 1 + MAX_COPIES);
    }
}

#[test]
fn lookups_pay_for_the_masks_that_they_try() {
    let table = "action put(bit<8> v) { hdr.h.b = v; }
        table t { key = { m.n: ternary; } actions = { put; } default_action = put(0); size = 200000; }";
    let body = "for (bit<32> i in 0..1000) { t.apply(); }";
    let program = program("", table, body);
    for mut pipeline in both(&program) {
        assert_eq!(run(&mut pipeline), (1, Vec::new()));
        // Each entry has a mask of its own, and none matches.
        for number in 1..2000u32 {
            let matched = EntryMatch::Ternary { value: number.into(), mask: number.into() };
            let to = Target::Action { action: 0, args: [1].into() };
            pipeline.table_add(TableId(0), vec![matched], 1, to).unwrap();
        }
        assert_eq!(run(&mut pipeline), (0, vec![DROPPED]));
    }
}

/// Work of an average lookup that finds its entry, in a table with so many entries.
fn average_work(kind: &str, entries: u32, matched: &dyn Fn(u32) -> (EntryMatch, u32)) -> u64 {
    let table = format!(
        "action put(bit<8> v) {{ hdr.h.b = v; }}
        table t {{ key = {{ m.n: {kind}; }} actions = {{ put; }} default_action = put(0); size = 100000; }}"
    );
    let mut state = State::new(&program("", &table, "t.apply();"));
    let table = &mut state.tables[0];
    let mut keys = Vec::new();
    for number in 0..entries {
        let (matched, key) = matched(number.wrapping_mul(0x9e37_79b9).rotate_left(7));
        // In no order of the values.
        let priority = number.wrapping_mul(0x85eb_ca6b) >> 1;
        let matched = vec![matched];
        if table.find(&matched, priority).is_none() {
            table.insert(matched, priority, Target::Action { action: 0, args: [1].into() }, false);
            keys.push(u64::from(key));
        }
    }
    let mut sum = 0;
    for key in &keys {
        let (found, _, work) = table.lookup_action(&[*key]);
        assert!(found);
        sum += work;
    }
    sum / keys.len() as u64
}

/// 64 masks whose bits lie anywhere, and ranges of up to 65 536 values.
#[test]
fn a_thousand_times_the_entries_cost_at_most_twenty_times_as_much() {
    let ternary = |random: u32| {
        let mask = (random % 64 + 1).wrapping_mul(0x9e37_79b9) | 0xffff;
        let value = random.rotate_left(16) & mask;
        (EntryMatch::Ternary { value: value.into(), mask: mask.into() }, value)
    };
    let range = |random: u32| {
        let lo = random & 0x7fff_ffff;
        let hi = lo + (random.rotate_left(13) & 0xffff) + 1;
        (EntryMatch::Range { lo: lo.into(), hi: hi.into() }, lo)
    };
    for (kind, matched) in [("ternary", &ternary as &dyn Fn(u32) -> _), ("range", &range)] {
        let (few, many) = (average_work(kind, 100, matched), average_work(kind, 100_000, matched));
        println!("{kind}: {few} units with 100 entries, {many} with 100 000");
        assert!(few > 0 && many <= 20 * few, "{kind}: {many} instead of {few}");
    }
}

#[test]
fn large_frames_and_stacks_are_refused() {
    let many: String = (0..10_000).map(|n| format!("bit<65535> w{n}; ")).collect();
    let program_of_many = program(&many, "", "");
    for refused in [
        Pipeline::interpreted(program_of_many.clone(), 1).err().expect("too large").to_string(),
        Pipeline::compiled(program_of_many, 1).err().expect("too large").to_string(),
    ] {
        assert!(refused.starts_with("the program cannot be run: the headers and variables"), "{refused}");
    }
    let list = vec!["hdr.v.v"; 300].join(", ");
    let body = format!("hash(m.n, HashAlgorithm.crc32, 32w0, {{ {list} }}, 32w1000);");
    let error = Pipeline::new(program("", "", &body), 1).err().expect("too much stack");
    assert!(matches!(error, Refused::Stack(_)), "{error}");
    assert!(error.to_string().starts_with("the program cannot be run: a parser or control needs"), "{error}");
}
