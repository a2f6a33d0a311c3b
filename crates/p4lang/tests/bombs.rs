//! Texts of at most 1 MiB that ask for much more than they are: each ends with the diagnostic that says what it asks for, or
//! with a program, within the counted budget. What is counted does not depend on the machine.
//!
//! `TIDEGATE_BOMBS=DIR` also writes them into a directory, to be timed.

use std::fmt::Write as _;

use p4lang::diag::{Diagnostic, Severity};
use p4lang::{Limits, Options, compile_file, compile_str};

/// Enough of a program to be run around an ingress control `I`.
const HEAD: &str = "#include <core.p4>\n#include <v1model.p4>\n";
const TAIL: &str = "
parser P(packet_in p, out H h, inout M m, inout standard_metadata_t s) { state start { transition accept; } }
control V(inout H h, inout M m) { apply {} }
control E(inout H h, inout M m, inout standard_metadata_t s) { apply {} }
control D(packet_out p, in H h) { apply {} }
V1Switch(P(), V(), I(), E(), V(), D()) main;
";

/// A program whose ingress has these locals and statements, after these declarations.
fn ingress(before: &str, locals: &str, body: &str) -> String {
    let control = format!(
        "control I(inout H h, inout M m, inout standard_metadata_t s) {{ {locals} apply {{ {body} }} }}"
    );
    let types =
        if before.contains("struct H ") { "" } else { "struct H {} struct M { bit<8> x; bit<8> y; }\n" };
    format!("{HEAD}{types}{before}\n{control}{TAIL}")
}

/// `text(i)` for each i below n.
fn each(n: usize, text: impl Fn(usize) -> String) -> String {
    (0..n).map(text).collect()
}

/// `text(i)` for each i from 1 to n, after `first`, where each uses the one before twice.
fn doubling(first: &str, n: usize, text: impl Fn(usize, usize) -> String) -> String {
    let mut out = first.to_owned();
    for i in 1..=n {
        out.push_str(&text(i, i - 1));
        out.push('\n');
    }
    out
}

struct Bomb {
    name: &'static str,
    text: String,
    /// Code of an error that it ends with, and which limit that names; none: it compiles.
    code: Option<&'static str>,
    limit: Option<&'static str>,
}

/// `ends`: code of the error, and after it the limit that the error says to raise, if there is one.
fn bomb(name: &'static str, ends: impl Into<Option<&'static str>>, text: String) -> Bomb {
    assert!(text.len() <= 1 << 20, "{name} has {} bytes", text.len());
    let mut ends = ends.into().into_iter().flat_map(|ends| ends.split(' '));
    Bomb { name, text, code: ends.next(), limit: ends.next() }
}

/// The limit that a diagnostic says to raise.
fn named(diagnostic: &Diagnostic) -> Option<&str> {
    let (_, rest) = diagnostic.help.as_deref()?.rsplit_once("raise the limit `")?;
    rest.strip_suffix('`')
}

fn preprocessing() -> Vec<Bomb> {
    let paste = doubling(
        "#define CAT(a, b) a ## b\n#define CAT2(a, b) CAT(a, b)\n#define A0 xxxxxxxx\n",
        60,
        |i, j| format!("#define A{i} CAT2(A{j}, A{j})"),
    );
    let strings = doubling("#define S(a) #a\n#define S2(a) S(a)\n#define A0 \"\\\\\"\n", 60, |i, j| {
        format!("#define A{i} S2(A{j})")
    });
    let mut nested = String::from("#define F(x) x x\n");
    nested.push_str(&"F(".repeat(20_000));
    nested.push('1');
    nested.push_str(&")".repeat(20_000));
    let objects = doubling("#define A0 1\n", 40_000, |i, j| format!("#define A{i} A{j}"));
    let itself = "#define F(x) F(x) + F(x)\n#define A F(A) F(A)\nconst int z = A;\n".to_owned();
    let params = format!(
        "#define F({}) {}\n{}",
        each(9_000, |i| format!("p{i},")).trim_end_matches(','),
        each(9_000, |i| format!("p{i} ")),
        "F(1)\n".repeat(1_000),
    );
    let open_strings = format!("\"{}", "\\\"\n".repeat(300_000));
    let directive = format!("#define X {}\n", "\"\" ".repeat(300_000));
    let conditionals = format!("\"\n{}\"", "#if 1\na\n#endif\n".repeat(60_000));
    vec![
        bomb(
            "macro doubling",
            "macro-limit macros",
            doubling("#define A0 x x\n", 60, |i, j| format!("#define A{i} A{j} A{j}")) + "A60",
        ),
        bomb("macro pasting", "macro-limit macros", paste + "A60"),
        bomb("macro stringifying", "macro-limit macros", strings + "A60"),
        bomb("macro calls nested", "macro-limit macros", nested),
        bomb("object macros in a row", None, objects + "const int z = A40000;\n"),
        bomb("macro with itself for an argument", "syntax", itself),
        bomb("macro of many parameters", "macro-call", params),
        bomb("includes of v1model.p4", "too-large included_bytes", "#include <v1model.p4>\n".repeat(47_000)),
        bomb("includes of nothing", "include", "#include <v1model.p5>\n".repeat(47_000)),
        bomb("strings that do not end", "unterminated-string", open_strings),
        bomb("strings in a directive", None, directive),
        bomb("a string of conditionals", "syntax", conditionals),
        bomb("open strings and conditionals", "unterminated-string", "#if 1\n\\\"\n".repeat(100_000)),
        bomb("open strings between conditionals", "unterminated-string", "\"\n#if 1\n".repeat(120_000)),
        bomb("lines by number", "syntax", "__LINE__ ".repeat(100_000)),
        bomb("unknown directives", None, "#x\n".repeat(300_000)),
        bomb(
            "literal in a macro",
            "too-large work",
            format!("#define A {}\nconst int z = {{{}}};", "9".repeat(90_000), "A,".repeat(400_000)),
        ),
        bomb(
            "string in a macro",
            "too-large work",
            format!("#define A \"{}\"\nconst int z = {{{}}};", "x".repeat(90_000), "A,".repeat(400_000)),
        ),
        bomb(
            "conditions with long literals",
            None,
            format!("#define A {}\n{}", "9".repeat(90_000), "#if A\n#endif\n".repeat(10))
                .replace("#if A", "#if 1 || defined(A)"),
        ),
    ]
}

fn expressions() -> Vec<Bomb> {
    let chains = {
        // 40 levels of chains of 1900 operators.
        let chain = " + m.x".repeat(1_900);
        let mut e = String::from("m.x");
        for _ in 0..40 {
            e = format!("({e}{chain})");
        }
        e
    };
    let sliced = {
        let mut e = String::from("0");
        for _ in 0..100 {
            e = format!("m.x[{e} +: 1]");
        }
        e
    };
    let compare = {
        let mut e = String::from("x");
        for _ in 0..140 {
            e = format!("(f<{e}>");
        }
        e
    };
    let statement = |e: String| ingress("", "", &format!("m.x = {e};"));
    vec![
        bomb("chains of operators, nested", "nesting depth", statement(chains)),
        bomb("a chain of operators", "nesting depth", statement(format!("m.x{}", " + m.x".repeat(100_000)))),
        bomb("a chain of members", "nesting depth", statement(format!("m{}", ".x".repeat(300_000)))),
        bomb(
            "a chain of indices of a type",
            "nesting depth",
            format!("const bit<8>{} x = 0;", "[1]".repeat(300_000)),
        ),
        bomb("parentheses", "nesting", statement(format!("{}1{}", "(".repeat(400_000), ")".repeat(400_000)))),
        bomb("unary operators", "nesting", statement(format!("{}m.x", "~".repeat(900_000)))),
        bomb("else if", "nesting", ingress("", "", &"if (m.x == 1) { m.x = 2; } else ".repeat(20_000))),
        bomb(
            "deep types",
            "nesting",
            format!("const {}bit<8>{} x = 0;", "tuple<".repeat(100_000), ">".repeat(100_000)),
        ),
        bomb("slices by width, nested", "type-mismatch", statement(sliced)),
        bomb("type arguments that are none", "nesting", statement(compare.repeat(300))),
        bomb("constant multiplications", "too-large bytes", {
            let product = "x*y%".repeat(240);
            let chains = each(900, |i| format!("const int c{i} = {product}x;\n"));
            format!("const int x = (1 << 60000) - 3; const int y = (1 << 65000) - 9;\n{chains}")
        }),
        bomb("constant shifts", "bad-constant", format!("const int x = 1 {};", "<< 100000 ".repeat(900))),
        bomb(
            "wide constants",
            "too-large bytes",
            format!("const int x = 1 << 131000; const int y = {{ {} }};", "x,".repeat(400_000)),
        ),
        bomb("a long string in many annotations", "too-large bytes", {
            let uses = each(20_000, |i| format!("@a[S] const bit<8> k{i} = 1;\n"));
            format!("const string S = \"{}\";\n{uses}", "x".repeat(100_000))
        }),
        bomb("a huge literal", "syntax", format!("const int x = {};", "9".repeat(1_000_000))),
        bomb("a long concatenation", "bad-size", {
            ingress(
                "",
                "",
                &format!("bit<65535> w = 0; bool b = {} == {0};", format!("w{}", " ++ w".repeat(900))),
            )
        }),
        bomb("arithmetic on wide numbers", "frame-limit frame_bytes", {
            ingress(
                "",
                "",
                &each(4_000, |i| format!("bit<65535> w{i} = (bit<65535>)m.x; m.x = (bit<8>)w{i};\n")),
            )
        }),
        bomb("overloads, nested", "bad-call", {
            let calls = format!("{}1{}", "f(".repeat(100), ")".repeat(100));
            format!(
                "extern bit<8> f(in bit<8> a);\nextern bit<8> f(in bit<16> b);\nconst bit<8> z = {calls};"
            )
        }),
        bomb("overloads", "too-large work", each(30_000, |i| format!("extern void f(in int<8> a{i});\n"))),
    ]
}

fn declarations() -> Vec<Bomb> {
    let fields = |n: usize| each(n, |i| format!("bit<8> a{i};"));
    vec![
        bomb(
            "an enum of many members",
            None,
            format!("enum E {{ {} }}", each(130_000, |i| format!("a{i},"))),
        ),
        bomb(
            "many errors",
            "too-large work",
            format!("error {{ {} last }}", each(130_000, |i| format!("a{i},"))),
        ),
        bomb("members of an enum, used", "too-large work", {
            let uses = each(30_000, |i| format!("const E c{i}=E.a39999;"));
            format!("enum E {{ {} }}\n{uses}", each(40_000, |i| format!("a{i},")))
        }),
        bomb(
            "a header of many fields",
            None,
            ingress(
                &format!("struct H {{ T t; }} struct M {{ bit<8> x; }} header T {{ {} }}", fields(40_000))
                    .replace("struct H { T t; } struct M { bit<8> x; } header", "header"),
                "",
                "",
            ),
        ),
        bomb("a header of many fields, used", None, {
            let types =
                format!("header T {{ {} }}\nstruct H {{ T t; }} struct M {{ bit<8> x; }}", fields(20_000));
            ingress(&types, "", &each(20_000, |i| format!("h.t.a{i}=h.t.a{};", (i + 1) % 20_000)))
        }),
        bomb("a struct literal of many fields", None, {
            let types = format!("struct T {{ {} }}\nstruct H {{}} struct M {{ T t; }}", fields(4_000));
            ingress(
                &types,
                "",
                &format!(
                    "m.t = {{ {} }};",
                    each(4_000, |i| format!("m.t.a{},", 3_999 - i)).trim_end_matches(',')
                ),
            )
        }),
        bomb("a union of many headers", "too-large statements", {
            let types = format!(
                "header T {{ bit<8> x; }} header_union U {{ {} }}\nstruct H {{ U u; }} struct M {{ bit<8> x; }}",
                each(8_000, |i| format!("T a{i};"))
            );
            ingress(&types, "", &each(8_000, |i| format!("h.u.a{i}.setValid();")))
        }),
        bomb("a stack of unions", None, {
            let types = format!(
                "header T {{ bit<8> x; }} header_union U {{ {} }}\nstruct H {{ U[20] u; }} struct M {{ bit<8> x; }}",
                each(200, |i| format!("T a{i};"))
            );
            ingress(&types, "", "h.u.push_front(1); h.u[m.x].a1.setValid();")
        }),
        bomb("structs that double", "too-large", {
            let structs = doubling("struct S0 { bit<8> x; }\n", 60, |i, j| {
                format!("struct S{i} {{ S{j} a; S{j} b; }}")
            });
            structs + "control c() { S60 big; apply {} }"
        }),
        bomb("empty structs that double", "too-large", {
            let structs = doubling("struct S0 {}\n", 60, |i, j| format!("struct S{i} {{ S{j} a; S{j} b; }}"));
            structs + "control c() { S60 big; apply {} }"
        }),
        bomb(
            "structs in one another",
            "too-large",
            doubling("struct S0 { bit<8> x; }\n", 20_000, |i, j| format!("struct S{i} {{ S{j} a; }}")),
        ),
        bomb(
            "tuples that double",
            "too-large",
            doubling("typedef tuple<> T0;\n", 60, |i, j| format!("typedef tuple<T{j}, T{j}> T{i};")),
        ),
        bomb(
            "type arguments that double",
            "too-large",
            doubling("struct S<A, B> {}\nstruct O {}\ntypedef O T0;\n", 60, |i, j| {
                format!("typedef S<T{j}, T{j}> T{i};")
            }),
        ),
        bomb(
            "new types in a row",
            "too-large",
            doubling("typedef bit<8> T0;\n", 40_000, |i, j| format!("type T{j} T{i};")),
        ),
        bomb("many type parameters", None, {
            let params = each(20_000, |i| format!("T{i},"));
            format!("extern X<{}> {{ X(); }}", params.trim_end_matches(','))
        }),
        bomb("unknown names", "unknown-name", {
            let known = each(30_000, |i| format!("const int name{i}=1;"));
            known + &each(300, |i| format!("const int z{i}=nme{i};"))
        }),
        bomb("errors in one control", "unknown-name", ingress("", "", &"a=1;".repeat(200_000))),
        bomb("warnings", None, ingress("", "", &"m.x=300;".repeat(60_000))),
        bomb("a table of many entries", None, {
            let entries = each(20_000, |i| format!("{i}:a();"));
            ingress(
                "",
                &format!(
                    "bit<32> k; action a() {{}} table t {{ key = {{ k: exact; }} actions = {{ a; }} const entries = {{ {entries} }} }}"
                ),
                "k = 0; t.apply();",
            )
        }),
        bomb("a table of many actions", "too-large work", {
            let actions = each(20_000, |i| format!("action a{i}(){{}}"));
            let listed = each(20_000, |i| format!("a{i};"));
            ingress(
                "",
                &format!("{actions} table t {{ key = {{ m.x: exact; }} actions = {{ {listed} }} }}"),
                "t.apply();",
            )
        }),
        bomb("a switch of many labels", None, {
            let cases = each(30_000, |i| format!("{i}:{{}}"));
            ingress("", "bit<32> k;", &format!("k = 0; switch (k) {{ {cases} }}"))
        }),
        bomb("loops in one another", None, {
            let mut body = String::from("m.x = 1;");
            for i in 0..60 {
                body = format!("for (bit<8> i{i} in 0..1) {{ {body} }}");
            }
            ingress("", "", &body)
        }),
        bomb("conditions and variables that may be unset", None, {
            let variables = each(250, |i| format!("bit<8> v{i};"));
            ingress("", &variables, &each(15_000, |i| format!("if (m.x == 1) {{ v{} = 1; }}", i % 250)))
        }),
    ]
}

fn inlining() -> Vec<Bomb> {
    let functions = doubling("void f0(inout bit<8> x) { x = x + 1; }\n", 40, |i, j| {
        format!("void f{i}(inout bit<8> x) {{ f{j}(x); f{j}(x); }}")
    });
    let controls = doubling("control c0(inout bit<8> x) { apply { x = x + 1; } }\n", 60, |i, j| {
        format!("control c{i}(inout bit<8> x) {{ c{j}() a; c{j}() b; apply {{ a.apply(x); b.apply(x); }} }}")
    });
    let applied = doubling("control c0(inout bit<8> x) { apply { x = x + 1; } }\n", 60, |i, j| {
        format!("control c{i}(inout bit<8> x) {{ apply {{ c{j}.apply(x); c{j}.apply(x); }} }}")
    });
    let parsers = doubling("parser p0(packet_in p) { state start { transition accept; } }\n", 60, |i, j| {
        format!(
            "parser p{i}(packet_in p) {{ p{j}() a; state start {{ a.apply(p); a.apply(p); transition accept; }} }}"
        )
    });
    let row = doubling("control c0(inout bit<8> x) { apply { x = x + 1; } }\n", 9_000, |i, j| {
        format!("control c{i}(inout bit<8> x) {{ c{j}() a; apply {{ a.apply(x); }} }}")
    });
    let blocks = doubling("void f0(inout bit<8> x) { x = x + 1; }\n", 100, |i, j| {
        format!("void f{i}(inout bit<8> x) {{ {} f{j}(x); {} }}", "if (x == 1) {".repeat(60), "}".repeat(60))
    });
    let top_parser = |before: String, body: &str| {
        let text = ingress(&before, "", "");
        text.replace(
            "{ state start { transition accept; } }\ncontrol V",
            &format!("{{ state start {{ {body} transition accept; }} }}\ncontrol V"),
        )
    };
    let states = |count: usize| {
        let states = each(count, |i| {
            let (zero, other) = ((i + 1) % count, (i * 7 + 3) % count);
            format!(
                "state s{i} {{ transition select(m.x) {{ 0: s{zero}; 1: accept; default: s{other}; }} }}\n"
            )
        });
        top_parser(String::new(), "").replace(
            "transition accept; } }\ncontrol V",
            &format!("transition s0; }} {states} }}\ncontrol V"),
        )
    };
    vec![
        bomb("functions that double", "too-large statements", ingress(&functions, "", "f40(m.x);")),
        bomb("actions that double", "too-large statements", {
            let actions = doubling("action f0() { m.x = m.x + 1; }\n", 40, |i, j| {
                format!("action f{i}() {{ f{j}(); f{j}(); }}")
            });
            ingress("", &actions, "f40();")
        }),
        bomb("controls that double", "too-large instances", ingress(&controls, "c60() c;", "c.apply(m.x);")),
        bomb(
            "controls that double when applied",
            "too-large instances",
            ingress(&applied, "", "c60.apply(m.x);"),
        ),
        bomb("controls in one another", "too-large", ingress(&row, "c9000() c;", "c.apply(m.x);")),
        bomb("parsers that double", "too-large states", top_parser(parsers, "p60.apply(p);")),
        bomb("blocks in inlined calls", "too-large", ingress(&blocks, "", "f100(m.x);")),
        bomb("states that go to one another", None, states(3_990)),
        bomb("more states than may be", "too-large states", states(10_000)),
        bomb("states that go everywhere", None, {
            let cases = each(200, |i| format!("{i}: s{i};"));
            let states = each(200, |i| format!("state s{i} {{ transition select(m.x) {{ {cases} }} }}\n"));
            let text = top_parser(String::new(), "");
            text.replace(
                "transition accept; } }\ncontrol V",
                &format!("transition s0; }} {states} }}\ncontrol V"),
            )
        }),
        bomb("a loop over a list", "too-large statements", {
            let list = "1,".repeat(600);
            let body = format!(
                "for (bit<8> a in {{ {0}1 }}) {{ for (bit<8> b in {{ {0}1 }}) {{ m.x = m.x + a; }} }}",
                list
            );
            ingress("", "", &body)
        }),
        bomb("comparisons of large structs", "too-large expressions", {
            let types = format!(
                "struct T {{ {} }}\nstruct H {{}} struct M {{ bit<8> x; T a; T b; }}",
                each(5_000, |i| format!("bit<8> f{i};"))
            );
            ingress(&types, "", &"if (m.a == m.b) { m.x = 1; }".repeat(20_000))
        }),
        bomb("hashes of large structs", "too-large expressions", {
            let types = format!(
                "struct T {{ {} }}\nstruct H {{}} struct M {{ bit<8> x; T a; }}",
                each(5_000, |i| format!("bit<8> f{i};"))
            );
            ingress(
                &types,
                "bit<16> r;",
                &"hash(r, HashAlgorithm.crc16, 16w0, { m.a }, 16w100);".repeat(10_000),
            )
        }),
        bomb("calls that pass a large struct", None, {
            let types = format!(
                "struct T {{ {} }}\nstruct H {{}} struct M {{ bit<8> x; T a; }}\ncontrol c(inout T t) {{ apply {{ t.f1 = 1; }} }}",
                each(7_000, |i| format!("bit<8> f{i};"))
            );
            ingress(&types, "", &"c.apply(m.a);".repeat(5_000))
        }),
        bomb("copies of a large struct", "too-large statements", {
            let types = format!(
                "struct T {{ {} }}\nstruct H {{}} struct M {{ bit<8> x; T a; T b; }}",
                each(20_000, |i| format!("bit<8> f{i};"))
            );
            ingress(&types, "", &"m.a = m.b;".repeat(10_000))
        }),
        bomb("elements of a stack of large headers", "too-large work", {
            let types = format!(
                "header T {{ {} }}\nstruct H {{ T[2] t; }} struct M {{ bit<8> x; }}",
                each(10_000, |i| format!("bit<8> f{i};"))
            );
            ingress(&types, "", &each(10_000, |i| format!("h.t[m.x].f{i} = m.x;")))
        }),
        bomb("calls that pass two large structs", "too-large work", {
            let types = format!(
                "struct T {{ {} }}\nstruct H {{}} struct M {{ bit<8> x; T a; T b; }}\ncontrol c(inout T t, inout T u) {{ apply {{ t.f1 = 1; }} }}",
                each(3_000, |i| format!("bit<8> f{i};"))
            );
            ingress(&types, "", &"c.apply(m.a, m.b);".repeat(45_000))
        }),
        bomb("a union copied to itself", "too-large work", {
            let types = format!(
                "header T {{ bit<8> x; }} header_union U {{ {} }}\nstruct H {{ U u; }} struct M {{ bit<8> x; }}",
                each(8_000, |i| format!("T a{i};"))
            );
            ingress(&types, "", &"h.u = h.u;".repeat(60_000))
        }),
        bomb("fields of no width", "too-large work", {
            let types = format!(
                "struct T {{ {} }}\nstruct H {{}} struct M {{ bit<8> x; T a; T b; }}",
                each(20_000, |i| format!("bit<0> f{i};"))
            );
            ingress(&types, "", &"m.a = m.b;".repeat(50_000))
        }),
        bomb("wide constants in inlined functions", "too-large work", {
            let product = "w * w % ".repeat(300);
            let f = format!("void f(in bit<65535> w, inout bit<8> x) {{ x = (bit<8>)({product} w); }}");
            ingress(&f, "", &"f((65535w1 << 65000) - 7, m.x);".repeat(2_000))
        }),
        bomb("annotations in many instances", "too-large instances", {
            let note = format!("@note(\"{}\")", "x".repeat(200_000));
            let inner = format!(
                "control c(inout bit<8> x) {{ action a() {{}} {note} table t {{ key = {{ x: exact; }} actions = {{ a; }} }} apply {{ t.apply(); }} }}"
            );
            let twice = doubling(
                &(inner
                    + "\ncontrol c0(inout bit<8> x) { c() a; c() b; apply { a.apply(x); b.apply(x); } }\n"),
                12,
                |i, j| {
                    format!(
                        "control c{i}(inout bit<8> x) {{ c{j}() a; c{j}() b; apply {{ a.apply(x); b.apply(x); }} }}"
                    )
                },
            );
            ingress(&twice, "c12() c;", "c.apply(m.x);")
        }),
    ]
}

fn sizes() -> Vec<Bomb> {
    let register = |n: u64, width: u32| {
        ingress(
            "",
            &format!("register<bit<{width}>>({n}) r;"),
            &format!("bit<{width}> v; r.read(v, 0); m.x = (bit<8>)v;"),
        )
    };
    vec![
        bomb("a large register", "state-limit state_bytes", register(1 << 28, 64)),
        bomb("a large register of wide cells", "state-limit state_bytes", register(1 << 28, 65_535)),
        bomb(
            "a large meter",
            "state-limit state_bytes",
            ingress("", "meter(1 << 28, MeterType.bytes) t;", "t.execute_meter(0, m.x);"),
        ),
        bomb(
            "a large counter",
            "state-limit state_bytes",
            ingress("", "counter(1 << 28, CounterType.bytes) t;", "t.count(0);"),
        ),
        bomb("a large table", "state-limit state_bytes", {
            ingress(
                "",
                "action a() {} table t { key = { m.x: exact; } actions = { a; } size = 0x4000000000000000; }",
                "t.apply();",
            )
        }),
        bomb("many registers", "state-limit state_bytes", {
            ingress(
                "",
                &each(40, |i| format!("register<bit<64>>(1 << 22) r{i};")),
                &each(40, |i| format!("r{i}.write(0, 1);")),
            )
        }),
        bomb("a large digest", "state-limit state_bytes", {
            let types = format!(
                "struct H {{}} struct M {{ bit<8> x; {} }}",
                each(2_000, |i| format!("bit<64> f{i};"))
            );
            ingress(&types, "", "digest(1, m);")
        }),
        bomb("a large frame", "frame-limit frame_bytes", {
            let types = format!(
                "struct H {{}} struct M {{ bit<8> x; {} }}",
                each(10_000, |i| format!("bit<65535> f{i};"))
            );
            ingress(&types, "", "")
        }),
        bomb("an array that is large by its type argument", "too-large variables", {
            let types = format!(
                "header L {{ {} }} control G<T>(inout T x) {{ T[4096] v; apply {{ x = v[0]; }} }}",
                each(400, |i| format!("bit<8> f{i};"))
            );
            ingress(&types, "G<L>() g; L l;", "g.apply(l);")
        }),
        bomb("a header that is large by its type arguments", "too-large variables", {
            let types = doubling("struct S0<T> { T a; T b; }\n", 7, |i, j| {
                format!("struct S{i}<T> {{ S{j}<T> a; S{j}<T> b; }}")
            });
            let control = "header L<T> { S7<T> s; } control G<T>(inout T x) { L<T> v; apply { x = v.s.a.a.a.a.a.a.a.a; } }
                control F<T>(inout T x) { G<S7<T>>() g; S7<T> s; apply { g.apply(s); } }";
            ingress(&(types + control), "F<S7<bit<8>>>() f; S7<bit<8>> s;", "f.apply(s);")
        }),
        bomb("a register that fits", None, register(1 << 24, 64)),
    ]
}

fn all() -> Vec<Bomb> {
    [preprocessing(), expressions(), declarations(), inlining(), sizes()].into_iter().flatten().collect()
}

#[test]
fn each_ends_within_its_budget() {
    let directory = std::env::var("TIDEGATE_BOMBS").ok();
    // Less than by default, to take less time.
    let limits = Limits { work: 50_000_000, analysis: 5_000_000, ..Limits::default() };
    let options = Options { limits: limits.clone(), ..Options::default() };
    let allowed: std::collections::HashMap<_, _> = limits.all().into_iter().collect();
    let mut wrong = String::new();
    for bomb in all() {
        if let Some(directory) = &directory {
            let path = format!("{directory}/{}.p4", bomb.name.replace([' ', ','], "_"));
            std::fs::write(path, &bomb.text).unwrap();
            continue;
        }
        let compiled = compile_str("bomb.p4", &bomb.text, None, &options);
        let errors: Vec<_> = compiled.diagnostics.iter().filter(|d| d.severity == Severity::Error).collect();
        let found = match bomb.code {
            Some(code) => errors.iter().any(|d| d.code == code && named(d) == bomb.limit),
            None => errors.is_empty(),
        };
        if !found {
            let first = errors.first().map(|d| format!("{} {:?}: {}", d.code, named(d), d.message));
            let _ = writeln!(wrong, "{}: wanted {:?} {:?}, got {first:?}", bomb.name, bomb.code, bomb.limit);
        }
        for error in errors.iter().filter(|d| Some(d.code) == bomb.code) {
            if error.help.is_none() && matches!(error.code, "too-large" | "macro-limit" | "nesting") {
                let _ = writeln!(wrong, "{}: no cure for `{}`", bomb.name, error.message);
            }
        }
        assert!(compiled.diagnostics.len() <= 2_500, "{}", bomb.name);
        for (name, used) in compiled.used {
            // The last step goes over by what it takes itself.
            if used > 5 * allowed[name] {
                let _ = writeln!(wrong, "{}: used {used} of {name}", bomb.name);
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

/// A small program that takes something of each limit.
const SMALL: &str = "
#include <core.p4>
#include <v1model.p4>
#define TWICE(x) x + x
header T { bit<8> x; }
struct H { T t; } struct M { bit<8> x; }
parser P(packet_in p, out H h, inout M m, inout standard_metadata_t s) {
    state start { p.extract(h.t); transition accept; }
}
control V(inout H h, inout M m) { apply {} }
control I(inout H h, inout M m, inout standard_metadata_t s) {
    register<bit<64>>(1) r;
    bit<8> v;
    apply { v = m.x; m.x = TWICE(TWICE(v)); }
}
control E(inout H h, inout M m, inout standard_metadata_t s) { apply {} }
control D(packet_out p, in H h) { apply { p.emit(h.t); } }
V1Switch(P(), V(), I(), E(), V(), D()) main;
";

/// With each limit at 1, the program is refused, and the message names that limit.
#[test]
fn each_limit_is_named_by_what_goes_beyond_it() {
    let compile = |limits: &Limits| {
        compile_str("small.p4", SMALL, None, &Options { limits: limits.clone(), ..Options::default() })
    };
    let compiled = compile(&Limits::default());
    assert!(compiled.program.is_some() && compiled.diagnostics.is_empty(), "{:?}", compiled.diagnostics);
    for (name, _) in Limits::default().all() {
        let mut limits = Limits::default();
        // More of it takes more of the state; beyond it packets are dropped.
        let (value, expected) = if name == "queue_bytes" { (1 << 40, "state_bytes") } else { (1, name) };
        assert!(limits.set(name, value));
        let compiled = compile(&limits);
        let found: Vec<_> = compiled.diagnostics.iter().filter_map(named).collect();
        assert!(found.contains(&expected), "{name}: {:?}", compiled.diagnostics);
        // Without the search there is a warning, and a program.
        assert_eq!(compiled.program.is_some(), name == "analysis", "{name}");
    }
}

#[test]
fn a_file_that_includes_itself_is_refused() {
    let path = std::env::temp_dir().join(format!("tidegate-includes-{}.p4", std::process::id()));
    std::fs::write(&path, format!("#include {:?}\n", path.file_name().unwrap())).unwrap();
    let compiled = compile_file(&path, &Options::default());
    std::fs::remove_file(&path).unwrap();
    let diagnostics = compiled.unwrap().diagnostics;
    assert!(diagnostics.iter().any(|d| d.code == "include-depth"), "{diagnostics:?}");
}

/// Work is counted in steps of the text's own: not by a clock, and not by an order that a hash's seed, new for each map, decides.
#[test]
fn the_same_work_is_counted_each_time() {
    let limits = Limits { work: 200_000, analysis: 50_000, ..Limits::default() };
    let options = Options { limits, ..Options::default() };
    for bomb in all().into_iter().filter(|bomb| bomb.text.len() < 200_000) {
        let mut known = None;
        for _ in 0..2 {
            let compiled = compile_str("bomb.p4", &bomb.text, None, &options);
            let told: Vec<_> = compiled.diagnostics.iter().map(|d| (d.code, d.message.clone())).collect();
            let used: std::collections::BTreeMap<_, _> = compiled.used.into_iter().collect();
            let found = (told, used);
            assert!(
                *known.get_or_insert_with(|| found.clone()) == found,
                "{}: {known:?} {found:?}",
                bomb.name
            );
        }
    }
}
