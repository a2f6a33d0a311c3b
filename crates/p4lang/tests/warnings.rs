//! What is legal but suspicious gets a warning, at its line; what is fine gets none.

use p4lang::Options;

const HEAD: &str = "#include <core.p4>\n#include <v1model.p4>\n\
    header h_t { bit<8> a; bit<8> b; } struct s_t { bit<8> x; bit<8> y; } struct hs_t { h_t h; h_t g; }\n";

/// Warnings with their lines, the first line of `text` being 1; the one on a missing `main` left out.
fn warnings(text: &str) -> Vec<(u32, String)> {
    let compiled = p4lang::compile_str("t.p4", &format!("{HEAD}{text}\n"), None, &Options::default());
    let all = compiled.diagnostics.iter().filter(|d| d.code != "no-main");
    all.map(|d| (compiled.sources.line_column(d.span).0 - 3, format!("{}: {}", d.code, d.message))).collect()
}

#[test]
fn suspicious() {
    for (text, line, expected) in [
        (
            "control c(inout bit<8> o) { apply {\n #o = 2; // it's off\n o = 1; } }",
            2,
            "bad-directive: unknown preprocessor directive `#o`: the line is left out",
        ),
        (
            "control c(inout bit<8> o) { apply {\n o = o == 1 ? 8w2 : o == 2\n ? 8w3 : 4; } }",
            3,
            "chained-conditional: the reference compiler takes all before this `?` for its condition",
        ),
        (
            "control c(inout bit<8> o) { bit<8> v; apply {\n o = v; } }",
            2,
            "uninitialized-read: `v` may be read here before it is set",
        ),
        (
            "control c(inout bit<8> o) { apply { bit<8> v;\n if (o == 1) { v = 2; }\n o = v; } }",
            3,
            "uninitialized-read: `v` may be read here before it is set",
        ),
        (
            "control c(inout bit<8> o) { apply { s_t v; v.x = 1;\n o = v.y; } }",
            2,
            "uninitialized-read: `v` may be read here before it is set",
        ),
        (
            "control c(inout bit<8> o) { apply { s_t v; v.x = 1; s_t w = v;\n o = w.y; } }",
            2,
            "uninitialized-read: `w` may be read here before it is set",
        ),
        (
            "control c(inout bit<8> o) { apply { bit<8> v;\n for (bit<8> i in 0 .. 3) { o = v; v = i; } } }",
            2,
            "uninitialized-read: `v` may be read here before it is set",
        ),
        (
            "control c(inout bit<8> o) { bit<8> v; action a() {} table t {\n key = { v : exact; } actions = { a; } } apply { t.apply(); } }",
            2,
            "uninitialized-read: `v` may be read here before it is set",
        ),
        (
            "control c(inout bit<8> o) { h_t v; apply {\n o = v.a; } }",
            2,
            "uninitialized-read: a field of a header that is not valid here, in `v`",
        ),
        (
            "control c(inout bit<8> o) { h_t v; apply { v.setValid(); v.a = 1; v.setInvalid();\n o = v.a; } }",
            2,
            "uninitialized-read: a field of a header that is not valid here, in `v`",
        ),
        (
            "parser p(packet_in b, out hs_t h) { state start { transition\n select(h.g.a) { 1: more; default: accept; } } state more { b.extract(h.g); transition accept; } }",
            2,
            "uninitialized-read: a field of a header that is not valid here, in `h`",
        ),
        (
            "control c(inout bit<8> o,\n out bit<8> v) { apply { if (o == 1) { v = 2; } } }",
            2,
            "uninitialized-out: the `out` parameter `v` may not be set on every path",
        ),
        (
            "void f(in bit<8> o,\n out bit<8> v) { if (o == 1) { return; } v = 2; }",
            2,
            "uninitialized-out: the `out` parameter `v` may not be set on every path",
        ),
        (
            "parser p(packet_in b) { state start { transition accept; }\n state lost { transition accept; } }",
            2,
            "unreachable: no transition leads to state `lost`",
        ),
        (
            "parser p(in bit<8> x) { state start { transition select(x) { _: accept;\n 1: reject; } } }",
            2,
            "unreachable: no packet gets to this case: one before it takes everything",
        ),
        (
            "const string s = \"call g\"; @deprecated(\"please \" ++ s) extern void f(); control c() { apply {\n f(); } }",
            2,
            "deprecated: `f` is deprecated: please call g",
        ),
        (
            "@deprecated(\"use F\") extern E { E(); } control c() {\n E() e; apply {} }",
            2,
            "deprecated: `E` is deprecated: use F",
        ),
        (
            "extern E { E(); @deprecated(\"use n\") void m(); void n(); } control c() { E() e; apply { e.n();\n e.m(); } }",
            2,
            "deprecated: `m` is deprecated: use n",
        ),
        (
            "control c(in bit<8> x) { table t { key = { x: ternary; } actions = { NoAction; } entries = {\n priority = 3: 1: NoAction();\n priority = 3: 2: NoAction(); } } apply { t.apply(); } }",
            3,
            "duplicate-priorities: a second entry of priority 3: which of them wins is open",
        ),
        (
            "control c(in bit<8> x) { table t { key = { x: ternary; } actions = { NoAction; } entries = {\n priority = 3: 1: NoAction();\n priority = 4: 2: NoAction(); } } apply { t.apply(); } }",
            3,
            "entries-out-of-priority-order: this entry wins over the one before it",
        ),
        (
            "control c(in bit<8> x) { table t { key = { x: ternary; } actions = { NoAction; } entries = {\n priority = 30: 1: NoAction();\n 2: NoAction();\n priority = 25: 3: NoAction(); } largest_priority_wins = false; priority_delta = 10; } apply { t.apply(); } }",
            4,
            "entries-out-of-priority-order: this entry wins over the one before it",
        ),
    ] {
        assert_eq!(warnings(text), [(line, expected.to_owned())], "{text}");
    }
}

#[test]
fn fine() {
    for text in [
        "control c(inout bit<8> o) { apply { o = o == 1 ? 8w2 : (o == 2 ? 8w3 : 4); } }",
        "control c(inout bit<8> o) { apply { o = o == 1 ? o == 2 ? 8w3 : 4 : 5; } }",
        "control c(inout bit<8> o) { apply { o = (o == 1 ? o == 2 : o == 3) ? 8w3 : 4; } }",
        "control c(inout bit<8> o) { apply { bit<8> v; if (o == 1) { v = 2; } else { v = 3; } o = v; } }",
        "control c(inout bit<8> o) { apply { bit<8> v; if (o == 1) { v = 2; } else { return; } o = v; } }",
        "control c(inout bit<8> o) { bit<8> v; action a(bit<8> x) { v = x; } table t { actions = { a; } } apply { t.apply(); o = v; } }",
        "void f(out bit<8> v) { v = 1; } control c(inout bit<8> o) { apply { bit<8> v; f(v); o = v; } }",
        "control c(inout bit<8> o) { apply { bit<8> v; v[3:0] = 1; v[7:4] = 2; o = v; } }",
        "control c(inout bit<8> o) { apply { s_t v; v.x = 1; s_t w = v; o = w.x; } }",
        "control c(inout bit<8> o) { apply { h_t v; v = { 1, 2 }; o = v.a; } }",
        "control c(inout bit<8> o) { apply { h_t v; if (o == 1) { v.setValid(); v.a = 3; } if (v.isValid() && v.a == 3) { o = v.a; } } }",
        "control c(inout bit<8> o) { apply { bit<8> v; switch (o) { 1: { v = 1; } default: { v = 2; } } o = v; } }",
        "control c(inout bit<8> o) { apply { bit<8> v; for (v = 0; v < 3; v = v + 1) { o = o + v; } } }",
        "parser p(packet_in b, out hs_t h) { state start { b.extract(h.h); transition select(h.h.a) { 1: more; default: accept; } } state more { b.extract(h.g); transition select(h.h.b, h.g.a) { (1, 2): start; default: accept; } } }",
        "parser p(packet_in b, out h_t h, out bit<8> n) { bit<8> m; state start { m = 1; transition next; } state next { b.extract(h); n = m; transition accept; } }",
        "control c(inout bit<8> o) { register<bit<8>>(4) r; apply { bit<8> v; r.read(v, 0); o = v; } }",
        "control c(inout h_t h) { apply { h.a = h.b; } }",
        "control c(in bit<8> x) { table t { key = { x: ternary; } actions = { NoAction; } entries = { priority = 30: 1: NoAction(); 2: NoAction(); priority = 20: 3: NoAction(); } } apply { t.apply(); } }",
        "control c(in bit<8> x) { table t { key = { x: ternary; } actions = { NoAction; } @noWarn(\"duplicate_priorities\") entries = { priority = 3: 1: NoAction(); priority = 3: 2: NoAction(); } } apply { t.apply(); } }",
        "control c(in bit<8> x) { table t { key = { x: ternary; } actions = { NoAction; } @noWarn(\"entries_out_of_priority_order\") entries = { priority = 3: 1: NoAction(); priority = 4: 2: NoAction(); } } apply { t.apply(); } }",
    ] {
        assert_eq!(warnings(text), [], "{text}");
    }
}

/// A program for v1model whose ingress has these declarations and this body.
fn v1model(locals: &str, body: &str) -> String {
    format!(
        "struct m_t {{ bit<2> colour; bit<16> wide; }}\n\
        parser p(packet_in b, out hs_t h, inout m_t m, inout standard_metadata_t s) {{ state start {{ transition accept; }} }}\n\
        control none(inout hs_t h, inout m_t m) {{ apply {{ }} }}\n\
        control i(inout hs_t h, inout m_t m, inout standard_metadata_t s) {{\n{locals}\napply {{\n{body}\n}} }}\n\
        control e(inout hs_t h, inout m_t m, inout standard_metadata_t s) {{ apply {{ }} }}\n\
        control d(packet_out b, in hs_t h) {{ apply {{ }} }}\n\
        V1Switch(p(), none(), i(), e(), none(), d()) main;"
    )
}

#[test]
fn what_the_reference_compiler_refuses_for_v1model() {
    let shift = "the reference compiler has no shifts by amounts of more than 8 bits for v1model";
    let unread = "the reference compiler wants an action that reads the direct meter `i.d`";
    let table = "direct_meter<bit<2>>(MeterType.packets) d; action a() { d.read(m.colour); } action b() { }";
    for (locals, body, line, expected) in [
        ("", "h.h.a = h.h.a << m.wide;", 7, format!("wide-shift: {shift}")),
        ("", "h.h.a = h.h.a >> (bit<9>) h.h.b;", 7, format!("wide-shift: {shift}")),
        ("", "h.h.a <<= m.wide;", 7, format!("wide-shift: {shift}")),
        (
            "",
            "bit<320> v = (bit<320>) h.h.a;\nv = v << 257; h.h.a = (bit<8>) v;",
            8,
            format!("wide-shift: {shift}"),
        ),
        (
            &format!("{table} table t {{ key = {{ h.h.a: exact; }} actions = {{ b; }} meters = d; }}"),
            "t.apply();",
            5,
            format!("unread-meter: {unread}"),
        ),
    ] {
        let text = v1model(locals, body);
        assert_eq!(warnings(&text), [(line, expected)], "{text}");
    }
    for (locals, body) in [
        ("", "h.h.a = h.h.a << (bit<8>) m.wide;"),
        ("", "h.h.a = h.h.a >> h.h.b;"),
        ("", "bit<320> v = (bit<320>) h.h.a; v = v << 256; h.h.a = (bit<8>) v;"),
        ("", "bit<320> v = (bit<320>) h.h.a; h.h.a = v[319:312];"),
        (
            &format!("{table} table t {{ key = {{ h.h.a: exact; }} actions = {{ a; b; }} meters = d; }}"),
            "t.apply();",
        ),
    ] {
        let text = v1model(locals, body);
        assert_eq!(warnings(&text), [], "{text}");
    }
}

#[test]
fn direct_counters_and_meters_of_no_table() {
    let objects = "direct_counter(CounterType.packets) n; direct_meter<bit<2>>(MeterType.packets) d;";
    let actions = format!("{objects} action a() {{\nn.count();\nd.read(m.colour); }}");
    let table = |properties: &str| {
        format!("{actions} table t {{ key = {{ h.h.a: exact; }} actions = {{ a; }} {properties} }}")
    };
    let expected =
        |line, name: &str| (line, format!("no-effect: this has no effect: no table has `i.{name}`"));
    let of = |locals: &str, body: &str| warnings(&v1model(locals, body));
    let (counting, reading) = (expected(6, "n"), expected(7, "d"));
    assert_eq!(of(&table(""), "t.apply();"), [counting, reading.clone()]);
    assert_eq!(of(&table("counters = n;"), "t.apply();"), [reading]);
    assert_eq!(of(&table("counters = n; meters = d;"), "t.apply();"), []);
}

/// An action or a function that is taken in at several places has its warning once.
#[test]
fn a_warning_is_given_once() {
    let text = v1model("action a(in bit<16> n) { h.h.a = h.h.a << n; }", "a(m.wide);\na(1);");
    assert_eq!(warnings(&text).len(), 1, "{text}");
}

/// A control is applied twice in ingress and once in egress; what has no effect in one of them is warned of once.
#[test]
fn copies_without_an_effect() {
    let text = "struct M {}
        control both(inout standard_metadata_t s) { action again() { resubmit_preserving_field_list(0); } table t { actions = { again; } default_action = again; } apply { t.apply();
            clone(CloneType.I2E, 1);
            clone(CloneType.E2E, 1);
            recirculate_preserving_field_list(0); } }
        parser P(packet_in p, out hs_t h, inout M m, inout standard_metadata_t s) { state start { transition accept; } }
        control V(inout hs_t h, inout M m) { apply {} }
        control I(inout hs_t h, inout M m, inout standard_metadata_t s) { both() b; both() c; apply {
            b.apply(s); c.apply(s);
            clone(CloneType.I2E, 1);
            recirculate_preserving_field_list(0); } }
        control E(inout hs_t h, inout M m, inout standard_metadata_t s) { both() b; apply { b.apply(s);
            clone(CloneType.E2E, 1);
            resubmit_preserving_field_list(0); } }
        control D(packet_out p, in hs_t h) { apply {} }
        V1Switch(P(), V(), I(), E(), V(), D()) main;";
    let mut found = warnings(text);
    found.retain(|(_, message)| message.starts_with("no-effect: "));
    let what = |line, what: &str| (line, format!("no-effect: {what} has no effect here"));
    assert_eq!(
        found,
        [
            what(4, "a clone of type E2E"),
            what(5, "`recirculate`"),
            what(11, "`recirculate`"),
            what(2, "`resubmit`"),
            what(3, "a clone of type I2E"),
            what(14, "`resubmit`"),
        ]
    );
}
