//! Limits that are constants: what has just so much is a program, and what has one more is refused by the code of that limit.

use std::fmt::Write as _;

use p4lang::diag::Severity;
use p4lang::limits::Limits;
use p4lang::{Options, compile_str};

/// A program with these declarations before the ingress, in it, and with this body.
fn ingress(before: &str, locals: &str, body: &str) -> String {
    format!(
        "#include <core.p4>\n#include <v1model.p4>\nheader T {{ bit<8> x; }}\nstruct H {{}} struct M {{ bit<8> x; bit<32> i; }}\n{before}
parser P(packet_in p, out H h, inout M m, inout standard_metadata_t s) {{ state start {{ transition accept; }} }}
control V(inout H h, inout M m) {{ apply {{}} }}
control I(inout H h, inout M m, inout standard_metadata_t s) {{ {locals} apply {{ {body} }} }}
control E(inout H h, inout M m, inout standard_metadata_t s) {{ apply {{}} }}
control D(packet_out p, in H h) {{ apply {{}} }}
V1Switch(P(), V(), I(), E(), V(), D()) main;\n"
    )
}

fn each(n: usize, text: impl Fn(usize) -> String) -> String {
    (0..n).fold(String::new(), |mut all, i| {
        let _ = write!(all, "{}", text(i));
        all
    })
}

/// Codes of errors. Limits that are settings are out of the way.
fn errors(text: &str) -> Vec<&'static str> {
    let limits = Limits { state_bytes: 1 << 50, frame_bytes: 1 << 24, ..Limits::default() };
    let compiled = compile_str("sizes.p4", text, None, &Options { limits, ..Options::default() });
    let errors = compiled.diagnostics.iter().filter(|d| d.severity == Severity::Error);
    let codes: Vec<_> = errors.map(|d| d.code).collect();
    assert_eq!(compiled.program.is_some(), codes.is_empty());
    codes
}

/// What a program has so much of.
type Text = fn(usize) -> String;

const CASES: [(&str, usize, &str, Text); 12] = [
    ("bits of a constant without a width", 131_072, "bad-constant", |n| {
        ingress(&format!("const int x = 1 << {};", n - 1), "", "")
    }),
    ("bits of a value", 65_535, "bad-size", |n| ingress(&format!("const bit<{n}> x = 1;"), "", "")),
    ("scalars in a value", 50_000, "too-large", |n| {
        ingress(&format!("struct S {{ {} }}", each(n, |i| format!("bit<1> f{i};"))), "S s;", "")
    }),
    ("nested structs", 100, "too-large", |n| {
        let row = each(n - 1, |i| format!("struct S{} {{ S{i} s; }}\n", i + 1));
        ingress(&format!("struct S0 {{ bit<8> x; }}\n{row}"), &format!("S{} s;", n - 1), "")
    }),
    ("elements of a stack", 4096, "bad-size", |n| ingress(&format!("struct S {{ T[{n}] t; }}"), "S s;", "")),
    ("cells of a register", 1 << 28, "bad-size", |n| {
        ingress("", &format!("register<bit<8>>({n}) r;"), "r.write(m.i, 1);")
    }),
    ("cells of a counter", 1 << 28, "bad-size", |n| {
        ingress("", &format!("counter({n}, CounterType.bytes) c;"), "c.count(m.i);")
    }),
    ("cells of a meter", 1 << 28, "bad-size", |n| {
        ingress("", &format!("meter({n}, MeterType.bytes) t;"), "t.execute_meter(m.i, m.x);")
    }),
    ("members of an action profile", 1 << 28, "bad-size", |n| {
        let table = "table t { key = { m.x: exact; } actions = { a; } implementation = p; }";
        ingress("", &format!("action_profile({n}) p; action a() {{}} {table}"), "t.apply();")
    }),
    ("nested calls", 200, "too-large", |n| {
        let row = each(n - 1, |i| format!("void f{}(inout bit<8> x) {{ f{i}(x); }}\n", i + 1));
        ingress(&format!("void f0(inout bit<8> x) {{ x = x + 1; }}\n{row}"), "", &format!("f{}(m.x);", n - 1))
    }),
    ("nested instances", 200, "too-large", |n| {
        let row = each(n - 1, |i| {
            format!("control c{}(inout bit<8> x) {{ c{i}() a; apply {{ a.apply(x); }} }}\n", i + 1)
        });
        let first = "control c0(inout bit<8> x) { apply { x = x + 1; } }\n";
        ingress(&format!("{first}{row}"), &format!("c{}() c;", n - 1), "c.apply(m.x);")
    }),
    ("blocks in one another", 150, "nesting", |n| {
        ingress("", "", &format!("{}{}", "{".repeat(n), "}".repeat(n)))
    }),
];

#[test]
fn so_much_is_a_program_and_more_is_refused() {
    for (what, most, code, text) in CASES {
        // A level or two of some are those around.
        assert_eq!(errors(&text(most - 2)), [""; 0], "{what}");
        let beyond = errors(&text(most + 1));
        assert!(beyond.contains(&code), "{what}: {beyond:?}");
    }
}

#[test]
fn a_thousand_warnings_are_told() {
    let text = |n| ingress("", &each(n, |i| format!("bit<8> v{i};")), &each(n, |i| format!("m.x = v{i};")));
    for (n, told) in [(900, 900), (1_500, 1_000)] {
        let compiled = compile_str("warnings.p4", &text(n), None, &Options::default());
        let warnings = compiled.diagnostics.iter().filter(|d| d.severity == Severity::Warning);
        assert_eq!(warnings.count(), told, "{:?}", compiled.diagnostics.first());
    }
}
