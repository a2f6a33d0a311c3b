//! What the parser accepts and how it reports what it does not.

use p4lang::{Options, parse_str};

fn messages(text: &str) -> Vec<String> {
    let (_, _, diagnostics) = parse_str("t.p4", text, None, &Options::default());
    diagnostics.into_iter().map(|d| d.message).collect()
}

#[test]
fn builtin_files_parse() {
    assert_eq!(messages("#include <core.p4>\n#include <v1model.p4>\n"), [""; 0]);
    assert_eq!(messages("#define V1MODEL_VERSION 20200408\n#include <v1model.p4>\n"), [""; 0]);
}

#[test]
fn accepted() {
    for text in [
        "header h { bit<8> a; varbit<(4 * 8)> b; } struct s<T> { T[3] x; h[2] y; tuple<bit<1>, bool> t; }",
        "enum bit<8> e { a = 1, b = 2 } enum f { x, y } typedef bit<9> p; type bit<32> q; error { E1 }",
        "const bit<8> c = (bit<8>) 3 + 4 << 2; const int d = a > 3 ? 1 : 2; const bool e = 1 << 2 >> 1 == 2;",
        "control c<T>(inout T x, in bit<8> y = 3)(bit<8> n) { apply { } }",
        "control c() { bit<8> a; action act(inout bit<8> z, bit<3> w) { z[3:0] = z[7:4]; z = z |+| 1; }
           table t { key = { a : exact @name(\"k\"); a & 3 : ternary; } actions = { act(a); @defaultonly NoAction; }
             const default_action = NoAction(); size = 3; const entries = { (1, _) : act(2); (2, 3 &&& 4) : act(3); }
             largest_priority_wins = false; }
           apply { if (t.apply().hit) { } else if (!t.apply().miss) a = 3; switch (t.apply().action_run) { act: NoAction: { } default: { } } } }",
        "parser p(packet_in b, out h x) { value_set<bit<8>>(4) vs; state start { b.extract(x.s.next); b.extract<h>(_);
           transition select(x.a, b.lookahead<bit<16>>()[7:0]) { (1, 2) : a; (3 &&& 7, _) : b; (1 .. 2, default) : c; (vs, _) : accept; default : reject; } } }",
        "void f<T>(in T x) { for (bit<8> i = 0; i < 3; i = i + 1) { continue; } for (bit<8> i in 0 .. 3) break; for (bit<8> x in { 1, 2 }) { } }",
        "C(3) c; C<bit<8>, bool>({ 1, 2 }, x = _) d; control q() { apply { C.apply(); C<bit<8>>.apply(1); c.apply(); f<bit<8>>(1); g.m<bool, bit<(1+2)>>(a); } }",
        "extern E<T> { E(int x); abstract void m(in T t); T get<U>(out U u); } extern void g<T>(in T x); extern F;",
        "package P<A>(A a, @optional int n); parser T<H>(packet_in b, out H h); control U<H>(in H h);",
        "@name(\"x.y\") @foo[a=1, b=\"c\"] @bar[1, 2] @weird(a b { } -> ( ) ) struct s { @x bit<8> f; }",
        "bit<8> f(in bit<8> x) { return x > 3 ? x - 1 : -x; } bit<16> g() { return 8w0 ++ (8w3 >> 1); } bool h(bit<3> a, bit<3> b) { return a < b; }",
        "const s x = { a = 1, b = { 2, ... }, ... }; header h { } const h y = (h){#}; const list<bit<8>> l = { 1, 2 };",
        "control c() { apply { bit<8>[3] x; a >>= 1; a |+|= 2; a += 3; a[2+:3] = 1; { } ; } }",
        "match_kind { foo, } const bit<8> x = 2 |-| 1; const bool b = a &&b; const bit<4> n = a & b == c ? 1 : 2;",
        "control c() { key k; state s; apply { key.apply(); type = 1; } }",
        "#define HALF(x) (x >> 1)\n#define TICKS (48w80000 >> 10) // about 1 ms\n#define LOW [2 +: 3]\n#define SHR > ## >
           const bit<48> a = HALF(TICKS); const bit<8> b = 8w7 SHR 1; control c() { apply { x LOW = HALF(y) >> 1; } }",
    ] {
        assert_eq!(messages(text), [""; 0], "{text}");
    }
}

#[test]
fn faults_are_named_where_they_are() {
    for (text, line, expected) in [
        ("struct s {\n bit<8> a\n}", 2, "expected `;` after this"),
        ("const bit<8> x = ;", 1, "expected an expression, found `;`"),
        ("control c() {\n apply { x == 3; } }", 2, "a comparison is not a statement"),
        ("control c() {\n apply { if (x = 3) {} } }", 2, "an assignment is not a condition"),
        ("bit<8> x;", 1, "outside of any parser or control"),
        ("header h { bit<8> header; }", 1, "found the keyword `header`"),
        ("const int x = 0xZZ;", 1, "not hexadecimal"),
        ("control c() { apply { f(; } }", 1, "expected an expression"),
        ("control c() { }", 1, "expected `apply"),
        ("$", 1, "expected a declaration"),
        ("const bit<8> a =\u{a0}1;", 1, "expected an expression, found the character `\u{a0}` (U+00A0)"),
        (
            "const bit<8> a\n= 1 \u{2013} 1;",
            2,
            "expected `;` after this, found the character `\u{2013}` (U+2013)",
        ),
        (
            "#define GT >\n#define PAIR > >\nconst bit<8> a = 8w1 GT\nGT 1;",
            4,
            "expected an expression, found `>`",
        ),
        ("#define PAIR > >\nconst bit<8> a = 8w1\n PAIR 1;", 3, "expected an expression, found `>`"),
    ] {
        let (sources, _, diagnostics) = parse_str("t.p4", text, None, &Options::default());
        let first = diagnostics.first().unwrap_or_else(|| panic!("{text}: accepted"));
        assert!(first.message.contains(expected), "{text}: {}", first.message);
        assert_eq!(sources.line_column(first.span).0, line, "{text}");
    }
}

#[test]
fn sizes_after_names_do_not_nest() {
    let fields: String = (0..3000).map(|i| format!("bit<8> f{i}[2]; ")).collect();
    assert_eq!(messages(&format!("struct s {{ {fields} }}")), [""; 0]);
}

#[test]
fn what_compilers_made_is_named() {
    for (text, expected) in [
        ("\n {\"header_types\" : [], \"parsers\" : []}", "compiled for the reference switch (BMv2 JSON)"),
        ("{ \"a\": 1 }", "this is JSON"),
        ("pkg_info {\n  arch: \"v1model\"\n}\n", "this is a P4Info"),
        ("# proto-file: p4/config/v1/p4info.proto\n", "this is a P4Info"),
    ] {
        let (sources, program, diagnostics) = parse_str("t.p4", text, None, &Options::default());
        assert!(program.is_none() && diagnostics.len() == 1, "{text}: {diagnostics:?}");
        assert!(diagnostics[0].message.contains(expected), "{text}: {}", diagnostics[0].message);
        assert!(diagnostics[0].help.as_ref().is_some_and(|help| help.contains(".p4")), "{text}");
        let line = if text.starts_with('\n') { 2 } else { 1 };
        assert_eq!(sources.line_column(diagnostics[0].span).0, line, "{text}");
    }
}

#[test]
fn p4_14_is_named() {
    for (text, line) in [
        (
            "/* a */\nheader_type a_t {\n fields {\n f : 8;\n } }\nheader a_t a;\nparser start {\n extract(a); return ingress; }",
            2,
        ),
        ("#define X 1\nheader a_t a;\nheader a_t b[2];", 2),
        ("metadata m_t m;", 1),
        ("metadata m_t m { f : 3; }", 1),
        ("action a() { }\nfield_list f { a.x; }", 2),
        ("calculated_field ipv4.sum { update c; }", 1),
        ("field_list_calculation c { input { f; } algorithm : csum16; output_width : 16; }", 1),
        ("parser start { return ingress; }", 1),
        ("table t { reads { a.x : exact; } actions { b; } }", 1),
        ("table t {\n actions { b; } }", 1),
        ("control ingress { apply(t); }", 1),
        ("control ingress { if (valid(a)) { apply(t); } }", 1),
        ("control egress { }", 1),
    ] {
        let (sources, program, diagnostics) = parse_str("t.p4", text, None, &Options::default());
        assert!(program.is_none() && diagnostics.len() == 1, "{text}: {diagnostics:?}");
        assert_eq!(diagnostics[0].code, "p4-14", "{text}");
        assert_eq!(sources.line_column(diagnostics[0].span).0, line, "{text}");
    }
    // Mistakes in P4_16 stay mistakes in P4_16.
    for text in [
        "parser p { state start { transition accept; } }",
        "control c { apply { } }",
        "control c() { table t { actions { a; } } apply { } }",
        "header a_t { bit<8> f; } header b;",
    ] {
        let (_, _, diagnostics) = parse_str("t.p4", text, None, &Options::default());
        assert!(
            diagnostics.iter().all(|d| d.code == "syntax") && !diagnostics.is_empty(),
            "{text}: {diagnostics:?}"
        );
    }
}

#[test]
fn other_architectures_are_named() {
    for (name, known) in [("tna.p4", true), ("psa.p4", true), ("pna.p4", true), ("headers.p4", false)] {
        let (_, _, found) = parse_str("t.p4", &format!("#include <{name}>\n"), None, &Options::default());
        let help = found[0].help.as_deref().unwrap_or_default();
        assert_eq!(help.starts_with("it declares another architecture"), known, "{name}: {help}");
        assert!(help.contains("-I"), "{name}: {help}");
    }
}

#[test]
fn one_run_reports_several() {
    let text = "control c() {\n apply {\n x = ;\n y = 1;\n z + 1;\n } }\nstruct s { bit<8> }\nheader h { bit<8> a; }";
    let (sources, _, diagnostics) = parse_str("t.p4", text, None, &Options::default());
    let lines: Vec<_> = diagnostics.iter().map(|d| sources.line_column(d.span).0).collect();
    assert_eq!(lines, [3, 5, 7]);
}

/// What follows from a mistake is no mistake of its own.
#[test]
fn one_mistake_has_one_message() {
    for (statement, expected) in [
        ("switch (x) { 1 .. 3: { y = 1; } default: { y = 2; } }", "a label of `switch` is one value"),
        ("switch (x) { 1: { } 2 &&& 2: { y = 1; } 3: { } }", "a label of `switch` is one value"),
        ("for (;;) { y = 1; break; }", "a loop needs a condition"),
        ("for (bit<8> i = 0; ; i = i + 1) y = 1;", "a loop needs a condition"),
    ] {
        let text =
            format!("control c() {{ apply {{\n{statement}\ny = 3; }} }}\ncontrol d() {{ apply {{ }} }}");
        let (sources, _, found) = parse_str("t.p4", &text, None, &Options::default());
        let found: Vec<_> = found.iter().map(|d| (sources.line_column(d.span).0, &*d.message)).collect();
        assert_eq!(found, [(2, expected)], "{statement}");
    }
    let doubling: String = (1..60).map(|i| format!("#define A{i} A{0} A{0}\n", i - 1)).collect();
    for (text, expected) in [
        (format!("control c() {{ apply {{ }} }}\n{doubling}const int x = A59;"), "bytes made by macros"),
        ("control c() { apply { /* } }".to_owned(), "this comment never ends"),
    ] {
        let found = messages(&text);
        assert!(found.len() == 1 && found[0].contains(expected), "{found:?}");
    }
}

#[test]
fn depth_is_bounded() {
    for text in [
        format!("const int x = {}1{};", "(".repeat(100_000), ")".repeat(100_000)),
        format!("const int x = {}1;", "-".repeat(100_000)),
        format!("control c() {{ apply {{ {} }} }}", "{".repeat(100_000)),
        format!("const int x = 1{};", " + 1".repeat(100_000)),
        format!("const int x = a{};", ".b".repeat(100_000)),
        format!("const int x = {}", "a<".repeat(100_000)),
        format!("const {} x = 1;", "tuple<".repeat(100_000)),
        format!("const int x = {}", "a<bit<(".repeat(10_000)),
        "(T".repeat(10_000),
    ] {
        assert!(!messages(&text).is_empty());
    }
}

#[test]
fn a_strangers_text_includes_no_files() {
    let options = Options { no_files: true, include_dirs: vec!["/".into()], ..Options::default() };
    for name in ["\"/etc/hostname\"", "</etc/hostname>", "\"Cargo.toml\"", "<etc/hostname>"] {
        let (_, _, found) = parse_str("t.p4", &format!("#include {name}\n"), None, &options);
        assert!(found.iter().any(|d| d.message.contains("cannot find")), "{name}: {found:?}");
    }
    let (_, _, found) = parse_str("t.p4", "#include <core.p4>\n#include \"v1model.p4\"\n", None, &options);
    assert!(found.is_empty(), "{found:?}");
}
