//! Which architecture a program is for, and what each one refuses.

use p4lang::lower::ebpf::Filter;
use p4lang::lower::v1model::V1Model;
use p4lang::{Compiled, Options, compile_str};

fn compile(text: &str) -> Compiled {
    compile_str("t.p4", text, None, &Options { no_files: true, ..Default::default() })
}

/// A filter with these declarations and statements in its control.
fn filter(locals: &str, apply: &str) -> String {
    format!(
        "#include <ebpf_model.p4>\n\
         header h_t {{ bit<32> a; }} struct headers {{ h_t h; }}\n\
         parser P(packet_in p, out headers hdr) {{ state start {{ p.extract(hdr.h); transition accept; }} }}\n\
         control C(inout headers hdr, out bool ok) {{ {locals} apply {{ ok = true; {apply} }} }}\n\
         ebpfFilter(P(), C()) main;"
    )
}

#[test]
fn the_package_says_which() {
    let program = compile(&filter("", "")).program.expect("a filter can be run");
    assert_eq!(program.package.architecture, "ebpf_model");
    assert!(Filter::of(&program.package).is_some());
    assert!(V1Model::of(&program.package).is_none());
    assert!(p4lang::p4info::p4info(&program).contains("arch: \"ebpf_model\""));
    // Of another architecture's package there is only a warning.
    let other = compile(
        "#include <core.p4>\nparser p_t(); package Other(p_t p); parser P() { state start { transition accept; } } Other(P()) main;",
    );
    assert!(other.program.is_none() && !other.failed());
    let message = &other.diagnostics[0].message;
    assert!(message.contains("v1model's `V1Switch` and ebpf_model's `ebpfFilter`"), "{message}");
}

#[test]
fn what_a_filter_declares() {
    let table = "CounterArray(10, false) n; action drop() { ok = false; } \
                 table t { key = { hdr.h.a: exact; } actions = { drop; NoAction; } implementation = hash_table(7); }";
    let program = compile(&filter(table, "t.apply(); n.increment(3);")).program.expect("it can be run");
    assert_eq!(program.tables[0].size, 7);
    assert_eq!((program.counters[0].info.name.as_str(), program.counters[0].size), ("C.n", 10));
}

#[test]
fn what_a_filter_may_not() {
    for (locals, apply, code, expected) in [
        (
            "table t { key = { hdr.h.a: exact; } actions = { NoAction; } }",
            "t.apply();",
            "bad-table",
            "no `implementation`",
        ),
        (
            "table t { key = { hdr.h.a: ternary; } actions = { NoAction; } implementation = hash_table(1); }",
            "t.apply();",
            "unsupported",
            "ebpf_model has no match kind `ternary`",
        ),
        (
            "CounterArray(1, false) n; table t { key = { hdr.h.a: exact; } actions = { NoAction; } implementation = n; }",
            "t.apply();",
            "bad-table",
            "must be an array_table or a hash_table",
        ),
        (
            "table t { key = { hdr.h.a: exact; } actions = { NoAction; } implementation = hash_table(1); support_timeout = true; }",
            "t.apply();",
            "unknown-property",
            "ebpf_model has no table property `support_timeout`",
        ),
        (
            "CounterArray(8, true) n;",
            "n.increment(hdr.h.a);",
            "sparse-counter",
            "`C.n` counts indices below 8 only",
        ),
    ] {
        let diagnostics = compile(&filter(locals, apply)).diagnostics;
        let found = diagnostics.iter().find(|d| d.code == code);
        assert!(found.is_some_and(|d| d.message.contains(expected)), "{locals}: {diagnostics:?}");
    }
    let own = filter("", "own();").replace("header h_t", "extern void own(); header h_t");
    let diagnostics = compile(&own).diagnostics;
    let expected = "ebpf_model has no extern function `own`; the program can be checked but not run";
    assert_eq!(diagnostics[0].message, expected);
    assert!(diagnostics.iter().all(|d| d.severity != p4lang::diag::Severity::Error), "{diagnostics:?}");
}

/// v1model's programs: declarations around and within ingress, its statements.
fn switch(around: &str, locals: &str, apply: &str) -> String {
    format!(
        "#include <v1model.p4>\n\
         header h_t {{ bit<8> a; bit<8> b; bit<72> w; }} struct H {{ h_t h; }} struct M {{}}\n{around}\n\
         parser P(packet_in p, out H hdr, inout M m, inout standard_metadata_t s) {{ state start {{ p.extract(hdr.h); transition accept; }} }}\n\
         control V(inout H hdr, inout M m) {{ apply {{}} }}\n\
         control I(inout H hdr, inout M m, inout standard_metadata_t s) {{ {locals} apply {{ {apply} }} }}\n\
         control E(inout H hdr, inout M m, inout standard_metadata_t s) {{ apply {{}} }}\n\
         control D(packet_out p, in H hdr) {{ apply {{}} }}\n\
         V1Switch(P(), V(), I(), E(), V(), D()) main;"
    )
}

/// What would give something else than the program says.
#[test]
fn what_a_switch_may_not() {
    let entries = |range: &str| {
        format!(
            "table t {{ key = {{ (int<8>) hdr.h.a: range @name(\"a\"); }} actions = {{ NoAction; }} const entries = {{ {range}: NoAction(); }} }}"
        )
    };
    let with_table = "control K(register<bit<8>> r, inout bit<8> x) {
        action one() { r.read(x, 0); } table t { actions = { one; } default_action = one(); } apply { t.apply(); } }";
    let objects = "register<bit<8>>(1) ra; register<bit<8>>(1) rb; K() k;";
    for (around, locals, apply, expected) in [
        ("", entries("-5..5").as_str(), "t.apply();", Some("tables match ranges by their bits")),
        ("", entries("3..-5").as_str(), "t.apply();", Some("this range ends before it starts")),
        ("", entries("-5..-1").as_str(), "t.apply();", None),
        ("", entries("0..5").as_str(), "t.apply();", None),
        ("", "", "random(hdr.h.w, 0, 5);", Some("random numbers have 64 bits at most, not 72")),
        (
            with_table,
            objects,
            "k.apply(ra, hdr.h.a); k.apply(rb, hdr.h.b);",
            Some("has tables and was applied with another object as `r` before"),
        ),
        (with_table, objects, "k.apply(ra, hdr.h.a); k.apply(ra, hdr.h.b);", None),
    ] {
        let diagnostics = compile(&switch(around, locals, apply)).diagnostics;
        let errors: Vec<_> =
            diagnostics.iter().filter(|d| d.severity == p4lang::diag::Severity::Error).collect();
        match expected {
            Some(expected) => {
                assert!(errors.iter().any(|d| d.message.contains(expected)), "{apply}: {diagnostics:?}");
            }
            None => assert!(errors.is_empty(), "{apply}: {errors:?}"),
        }
    }
}
