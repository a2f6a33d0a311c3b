//! What the checker accepts, and what it rejects and where.

use p4lang::{Options, check::check, parse_str};

fn findings(text: &str) -> Vec<(String, u32, &'static str)> {
    let (sources, program, diagnostics) = parse_str("t.p4", text, None, &Options::default());
    let program = program.unwrap_or_else(|| panic!("{diagnostics:?}"));
    let (_, diagnostics) = check(&program, &Default::default());
    diagnostics.into_iter().map(|d| (d.message.clone(), sources.line_column(d.span).0, d.code)).collect()
}

#[test]
fn a_whole_program() {
    let text = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/router.p4")).unwrap();
    assert_eq!(findings(&text), []);
}

/// Each program is wrong in one way; the first finding must say so.
#[test]
fn rejected() {
    for (text, expected) in [
        (r#"parser p() { state start { transition next; } }"#, r#"there is no state `next`"#),
        (
            r#"parser p() { state start { transition accept; } state start { transition accept; } }"#,
            r#"`start` is declared twice in this parser"#,
        ),
        (
            r#"control c(inout bit<32> x) { action a(inout bit<32> b, bit<32> d) { b = d; } table t { actions = { a(x, 0); } default_action = a(x, 0); } apply { t.apply(); } }"#,
            r#"parameters without a direction get their values from the control plane"#,
        ),
        (
            r#"control c(inout bit<32> x) { action a(inout bit<32> b, bit<32> d) { b = d; } table t { actions = { a; } default_action = a(x, 0); } apply { t.apply(); } }"#,
            r#"`a` needs 1 argument here, one for each parameter with a direction, not 0"#,
        ),
        (
            r#"control c(inout bit<32> x) { action a(inout bit<32> b, bit<32> d) { b = d; } table t { actions = { a(x); } default_action = a(0); } apply { t.apply(); } }"#,
            r#"`a` needs all of its 2 arguments here"#,
        ),
        (r#"control c(inout bit<32> x) { apply { x = y; } }"#, r#"`y` is not declared"#),
        (r#"control c(in bit<32> x) { apply { x = 1; } }"#, r#"cannot assign: `x` is an `in` parameter"#),
        (
            r#"const bit<8> k = 3; control c() { apply { k = 4; } }"#,
            r#"cannot assign: this is a value, not a place"#,
        ),
        (r#"const bool x = (bool)8w3;"#, r#"cannot cast `bit<8>` to `bool`"#),
        (r#"const int<8> x = (int<8>)16w3;"#, r#"cannot cast `bit<16>` to `int<8>`"#),
        (r#"const bit<8> x = 8w1 + 8s1;"#, r#"`+` cannot be applied to `bit<8>` and `int<8>`"#),
        (r#"const bit<8> x = 8w1 + 16w1;"#, r#"`+` cannot be applied to `bit<8>` and `bit<16>`"#),
        (r#"const bit<8> x = 8w1 << -1;"#, r#"a shift by a negative amount"#),
        (r#"const int x = 1 / 0;"#, r#"division by zero"#),
        (r#"enum E { A, A }"#, r#"member `A` is declared twice"#),
        (r#"enum E { A } const E x = E.B;"#, r#"`E` has no member `B`"#),
        (r#"enum bit<8> E { A, B = 1 }"#, r#"member `A` needs a value"#),
        (r#"struct S { bit<8> a; bit<8> a; }"#, r#"field `a` is declared twice"#),
        (r#"header A { bit<8> a; } header B { A a; }"#, r#"a header cannot have a field of type `A`"#),
        (r#"struct A { varbit<8> a; } struct B { A[3] a; }"#, r#"an array of `A` is not possible"#),
        (r#"struct B { bit<8> a[3][2]; }"#, r#"an array of `bit<8>[3]` is not possible"#),
        (
            r#"control c(inout bit<8>[3] a) { apply { a.push_front(1); } }"#,
            r#"`bit<8>[3]` has no method `push_front`"#,
        ),
        (
            r#"parser p(inout bit<8>[3] a) { state start { a.next = 1; transition accept; } }"#,
            r#"an array of `bit<8>` has no `next`"#,
        ),
        (r#"header_union U { bit<8> a; }"#, r#"a header union cannot have a field of type `bit<8>`"#),
        (r#"struct S { bit<8> a; } control c(inout S s) { apply { s.b = 1; } }"#, r#"`S` has no field `b`"#),
        (r#"void f(in bit<8> a) {} control c() { apply { f(); } }"#, r#"no argument for parameter `a`"#),
        (
            r#"void f(in bit<8> a) {} control c() { apply { f(true); } }"#,
            r#"expected `bit<8>`, found `bool`"#,
        ),
        (
            r#"void f(out bit<8> a) { a = 1; } control c() { apply { f(3); } }"#,
            r#"an `out` argument must be exactly `bit<8>`, this is `int`"#,
        ),
        (r#"bit<8> f(in bit<8> a) { return f(a); }"#, r#"`f` may not refer to itself"#),
        (
            r#"bit<8> f(in bit<8> a) { if (a == 1) { return 2; } }"#,
            r#"`f` does not return a value on every path"#,
        ),
        (r#"void f() { return 3; }"#, r#"nothing can be returned here"#),
        (r#"bit<8> f() { return true; }"#, r#"expected `bit<8>`, found `bool`"#),
        (r#"void f() { exit; }"#, r#"`exit` is allowed only in controls and actions"#),
        (r#"action a(bit<8> x, in bit<8> y) {}"#, r#"parameters without a direction must come last"#),
        (
            r#"control c(inout bit<8> x) { table t { key = { x : foo; } actions = { NoAction; } } apply {} }"#,
            r#"there is no match kind `foo`"#,
        ),
        (
            r#"control c(inout bit<8> x) { table t { key = { x : exact; } } apply {} }"#,
            r#"the table `t` has no `actions`"#,
        ),
        (
            r#"control c(inout bit<8> x) { action a() {} table t { actions = { NoAction; } default_action = a(); } apply {} }"#,
            r#"`a` is not among the table's actions"#,
        ),
        (
            r#"control c(inout bit<8> x) { action a() {} table t { key = { x : exact; } actions = { a; } const entries = { (1, 2) : a(); } } apply {} }"#,
            r#"expected 1 key, found 2"#,
        ),
        (
            r#"control c(inout bit<8> x) { action a() {} table t { actions = { a; a; } } apply {} }"#,
            r#"an action `a` is listed twice"#,
        ),
        (
            r#"control c(inout bit<8> x) { table t { actions = { NoAction; } } action a() { t.apply(); } apply {} }"#,
            r#"a table may be applied only in a control's `apply` block"#,
        ),
        (
            r#"control c(inout bit<8> x) { apply { if (x) {} } }"#,
            r#"a condition must be `bool`, not `bit<8>`"#,
        ),
        (
            r#"control c(inout bit<8> x) { action a() {} table t { actions = { a; } } apply { switch (t.apply().action_run) { b: {} } } }"#,
            r#"`b` is not an action of this table"#,
        ),
        (
            r#"control c(inout bit<8> x) { apply { switch (x) { 1: {} 1: {} } } }"#,
            r#"this label is there twice"#,
        ),
        (
            r#"control c(inout bit<8> x) { apply { switch (x) { default: {} 1: {} } } }"#,
            r#"`default` must be the last case"#,
        ),
        (r#"control c() { apply { break; } }"#, r#"there is no loop around this to leave or continue"#),
        (
            r#"header h { bit<8> x; } control c(inout h[3] s) { apply { s.next.setValid(); } }"#,
            r#"`next` of a stack exists only in parsers"#,
        ),
        (r#"parser p() { state foo { transition accept; } }"#, r#"the parser `p` has no state `start`"#),
        (
            r#"struct s { bit<8> a; } parser p(packet_in b, out s x) { state start { b.extract(x); transition accept; } }"#,
            r#"`extract` fills a header, not `s`"#,
        ),
        (
            r#"parser p(packet_in b, in bit<8> x) { state start { transition select(x) { true: accept; } } }"#,
            r#"expected `bit<8>`, found `bool`"#,
        ),
        (
            r#"parser p(packet_in b, in bit<8> x) { state start { transition select(x, x) { 1: accept; } } }"#,
            r#"expected 2 keys, found 1"#,
        ),
        (r#"control c(inout foo x) { apply {} }"#, r#"`foo` is not declared"#),
        (r#"control c() { bit<8> a; bit<8> a; apply {} }"#, r#"`a` is declared twice in this scope"#),
        (r#"control c() { apply {} } control c() { apply {} }"#, r#"`c` is declared twice in this scope"#),
        (
            r#"extern E { E(); } action a() { E() e; }"#,
            r#"instances cannot be made in actions and functions"#,
        ),
        (
            r#"control d(inout bit<8> x)(bit<8> n) { apply {} } control c() { d() q; apply {} }"#,
            r#"no argument for parameter `n`"#,
        ),
        (
            r#"control A(in bit<8> x); package P(A a); control B(inout bit<8> x) { apply {} } P(B()) main;"#,
            r#"expected `A`, found `B`"#,
        ),
        (
            r#"control c(inout bit<8> x) { apply { x = (bit<8>)x[8:0]; } }"#,
            r#"the slice [8:0] reaches outside of the 8 bits"#,
        ),
        (
            r#"control c(inout bit<8> x) { apply { x = (bit<8>)x[0:3]; } }"#,
            r#"the slice [0:3] ends before it starts"#,
        ),
        (r#"control c() { apply { int x; } }"#, r#"a variable cannot be a `int`"#),
        (r#"control c() { apply { void x; } }"#, r#"a variable cannot be a `void`"#),
        (r#"control c() { apply { string x; } }"#, r#"a variable cannot be a `string`"#),
        (
            r#"header h { bit<8> x; } control c(inout h x) { apply { x.foo(); } }"#,
            r#"`h` has no method `foo`"#,
        ),
        (
            r#"header h { bit<8> x; } control c(in h x) { apply { x.setValid(); } }"#,
            r#"cannot assign: `x` is an `in` parameter"#,
        ),
        (r#"struct S { bit<8> a; bit<8> b; } const S s = { 1 };"#, r#"`S` takes 2 values, not 1"#),
        (r#"struct S { bit<8> a; bit<8> b; } const S s = { a = 1, c = 2 };"#, r#"`S` has no field `c`"#),
        (
            r#"header h { bit<8> x; } control c(inout h[3] s) { apply { s[3].x = 1; } }"#,
            r#"the stack has 3 elements"#,
        ),
        (
            r#"struct S { bit<8> a; } header h { bit<8> x; } control c(inout h x, inout S s) { apply { if (x == s) {} } }"#,
            r#"`==` cannot be applied to `h` and `S`"#,
        ),
        (r#"const bit<8> x = !8w3;"#, r#"`!` cannot be applied to `bit<8>`"#),
        (r#"const int x = ~3;"#, r#"`~` cannot be applied to `int`"#),
        (r#"struct S<T> { T x; } control c(inout S x) { apply {} }"#, r#"`S` takes 1 type argument, not 0"#),
        (
            r#"control c(in bit<8> w) { apply { bit<(w)> x; } }"#,
            r#"this must be an integer known at compile time"#,
        ),
        (r#"const bit<(-1)> x = 0;"#, r#"the size -1 is out of range"#),
        (
            r#"type bit<8> N; control c(inout N x) { apply { x = x + x; } }"#,
            r#"`+` cannot be applied to `N` and `N`"#,
        ),
        (r#"type bit<8> N; control c(inout N x) { apply { x = 8w3; } }"#, r#"expected `N`, found `bit<8>`"#),
        (r#"type bool N; control c(inout N x) { apply { x = 3; } }"#, r#"expected `N`, found `int`"#),
        (
            r#"parser p() { state start { transition accept; } } control c() { apply { p.apply(); } }"#,
            r#"a parser may be applied only in a parser state"#,
        ),
        (r#"void f(in bit<8> a) {} control c() { apply { f(b = 1); } }"#, r#"there is no parameter `b`"#),
        (r#"control c(inout tuple<bit<8>> t) { apply { bit<8> x = t[1]; } }"#, r#"the tuple has 1 element"#),
        (r#"error { NoError }"#, r#"`error.NoError` is declared twice"#),
        (r#"match_kind { exact }"#, r#"match kind `exact` is declared twice"#),
        (
            r#"const bit<8> x = this;"#,
            r#"`this` may stand only in abstract methods, which no extern of this architecture has"#,
        ),
        (r#"const bool b = static_assert(false, "no");"#, r#"static assertion failed: no"#),
        (
            r#"control c(in bit<8> x) { const bit<8> k = x; apply {} }"#,
            r#"the value of `k` is not known at compile time"#,
        ),
        (r#"const bit<8> x = true ? 8w1 : 16w1;"#, r#"expected `bit<8>`, found `bit<16>`"#),
        (r#"const bit<8> x = 4 ++ 4w1;"#, r#"`++` cannot be applied to `int` and `bit<4>`"#),
        (
            r#"control c(inout bit<8> x) { apply { x = x == 1 ? 1 : 2; } }"#,
            r#"a choice at run time between two numbers without a width"#,
        ),
        (r#"header h { varbit<8> x; varbit<8> y; }"#, r#"the header `h` has a second varbit field"#),
        (r#"const int x = 3 |+| 4;"#, r#"`|+|` cannot be applied to `int` and `int`"#),
        (
            r#"header h { varbit<8> x; } parser p(packet_in b, out h x) { state start { b.extract(x); transition accept; } }"#,
            r#"`h` has a varbit field"#,
        ),
        (r#"extern T f<T>(); control c() { apply { f(); } }"#, r#"cannot tell what type `T` is"#),
        (r#"struct s {} header_union U { s a; }"#, r#"a header union cannot have a field of type `s`"#),
        (
            r#"control d()(bit<8> n) { apply {} } control c(in bit<8> x) { d(x) q; apply {} }"#,
            r#"a constructor's argument must be known at compile time"#,
        ),
        (r#"control c(inout bit<8> x) { apply { x + 1; } }"#, r#"expected `=` or a call, found `+`"#),
        (
            r#"action a() {} parser p() { state start { a(); transition accept; } }"#,
            r#"an action may be called only in a control or another action"#,
        ),
        (
            r#"parser p() { state start { transition accept; } state accept { transition reject; } }"#,
            r#"the state `accept` is built in"#,
        ),
        (r#"package P(int x); P() main;"#, r#"no argument for parameter `x`"#),
        (
            r#"header h { varbit<8> x; } parser p(packet_in b) { state start { h x = b.lookahead<h>(); transition accept; } }"#,
            r#"`lookahead` reads a type of fixed size, not `h`"#,
        ),
        (
            r#"header h { bit<8> x; } header g { bit<8> x; } control c(inout h x, inout g y) { apply { x = y; } }"#,
            r#"expected `h`, found `g`"#,
        ),
        (
            r#"control c(inout bit<8> x) { table t { key = { x : exact; } key = { x : exact; } actions = { NoAction; } } apply {} }"#,
            r#"the property `key` is given twice"#,
        ),
        (
            r#"control c(packet_out p, in bit<8> x) { apply { p.emit(x); } }"#,
            r#"`emit` writes headers, and stacks, unions and structs of them, not `bit<8>`"#,
        ),
    ] {
        let source = format!("#include <core.p4>\n#include <v1model.p4>\n{text}\n");
        let compiled = p4lang::compile_str("t.p4", &source, None, &Options::default());
        let first = compiled.diagnostics.iter().find(|d| d.severity == p4lang::diag::Severity::Error);
        let first = first.unwrap_or_else(|| panic!("accepted: {text}"));
        assert_eq!(first.message, expected, "{text}");
        assert_eq!(compiled.sources.line_column(first.span).0, 3, "{text}");
    }
}

/// What programs written for other versions of v1model, or by beginners, get wrong: the help says what to change.
#[test]
fn the_architecture_is_explained() {
    let head = "#include <core.p4>\n#include <v1model.p4>\nstruct H {} struct M {}
parser P(packet_in p, out H h, inout M m, inout standard_metadata_t s) { state start { transition accept; } }
control V(inout H h, inout M m) { apply {} }
control E(inout H h, inout M m, inout standard_metadata_t s) { apply {} }
control D(packet_out p, in H h) { apply {} }\n";
    for (declared, switch, expected) in [
        (
            "control W(inout H h) { apply {} }",
            "P(), W(), E(), E(), V(), D()",
            "it must have 2 parameters, and has 1",
        ),
        (
            "control W(in H h, inout M m) { apply {} }",
            "P(), W(), E(), E(), V(), D()",
            "its parameter `h` must be `inout`",
        ),
        (
            "control W(inout H h, inout H x) { apply {} }",
            "P(), W(), E(), E(), V(), D()",
            "its parameter `x` must be a `M`",
        ),
        (
            "control W(packet_out p, inout H h) { apply {} }",
            "P(), V(), E(), E(), V(), W()",
            "its parameter `h` must be `in`",
        ),
        (
            "control W(inout H h, inout M m, inout standard_metadata_t s) { apply { s.clone_spec = 1; } }",
            "P(), V(), W(), E(), V(), D()",
            "older versions of v1model.p4 had this field; today's has not",
        ),
        (
            "control W(inout H h, inout M m, inout standard_metadata_t s) { apply { s.egres_spec = 1; } }",
            "P(), V(), W(), E(), V(), D()",
            "did you mean `egress_spec`?",
        ),
        (
            "header A { bit<8> a; } control W(inout H h, inout M m, inout standard_metadata_t s) { A x; apply { x = {1}; if (x.isValid) { s.egress_spec = 1; } } }",
            "P(), V(), W(), E(), V(), D()",
            "it is a method: `isValid()`",
        ),
        (
            "header A { } control W(inout H h, inout M m, inout standard_metadata_t s) { A x; apply { x.setValid(); s.egress_spec = x.b; } }",
            "P(), V(), W(), E(), V(), D()",
            "it has no fields",
        ),
    ] {
        let text = format!("{head}{declared}\nV1Switch({switch}) main;\n");
        let compiled = p4lang::compile_str("t.p4", &text, None, &Options::default());
        let errors: Vec<_> =
            compiled.diagnostics.iter().filter(|d| d.severity == p4lang::diag::Severity::Error).collect();
        assert_eq!(errors.len(), 1, "{text}: {errors:?}");
        assert_eq!(errors[0].help.as_deref(), Some(expected), "{text}");
    }
}

#[test]
fn strings_that_never_end() {
    for text in ["const bit<8> a = 1;\n@x(\"abc) const bit<8> b = 1;\n", "\n@x(\"abc\n#if 1\n\")\n#endif\n"] {
        let compiled = p4lang::compile_str("t.p4", text, None, &Options::default());
        let first = &compiled.diagnostics[0];
        assert_eq!((first.code, first.span.end - first.span.start), ("unterminated-string", 1), "{text}");
        assert_eq!(compiled.sources.line_column(first.span), (2, 4), "{text}");
    }
}

/// What one mistake makes impossible to check gets no message of its own.
#[test]
fn one_message_for_one_mistake() {
    for (text, expected) in [
        // Entries and the default action are of the list's actions, and of the keys.
        (
            "#include <core.p4>\ncontrol c(inout bit<8> x) { action a(inout bit<8> b, bit<8> d) {} table t { key = { x: exact; } actions = { a(); } const entries = { 1: a(x, 1); } default_action = a(x, 0); } apply { t.apply(); } }",
            "`a` needs 1 argument here, one for each parameter with a direction, not 0",
        ),
        (
            "#include <core.p4>\nstruct S { bit<8> f; } control c(in S s, in bit<8> x) { action a() {} table t { key = { s: exact; x: exact; } actions = { a; } const entries = { (1, 2): a(); } default_action = a; } apply { t.apply(); } }",
            "a `S` cannot be a key",
        ),
        (
            "control c() { action a() {} table t { actions = { a; } actions = { a; } default_action = a; } apply { t.apply(); } }",
            "the property `actions` is given twice",
        ),
        ("enum bit<8> E { A = 1, B = A + 4 }", "`A` is not declared"),
        ("control c() { action a(void x) {} apply {} }", "a parameter cannot be a `void`"),
        (
            "#include <core.p4>\nheader H { bit<8> x; } parser p(packet_in b, out H h) { state start { b.extract(h); transition select(h) { {1}: accept; } } }",
            "a `H` cannot be selected on",
        ),
        ("control c() { apply { int x; x = 5; x = x + 1; } }", "a variable cannot be a `int`"),
        ("control c(inout bit<8> x) { apply { 5 = x; } }", "cannot assign: this is a value, not a place"),
        ("bit<8> f() { return; }", "this must return a `bit<8>`"),
        ("const string s = \"abc;\nconst bit<8> x = 4;", "this string never ends"),
        ("#define F(x) x\nconst bit<8> x = F(1;", "the arguments of macro `F` are never closed"),
        (
            "void f(inout bit<8> a) {} control c(inout bit<9> y) { apply { f(y); } }",
            "an `inout` argument must be exactly `bit<8>`, this is `bit<9>`",
        ),
    ] {
        let compiled = p4lang::compile_str("t.p4", text, None, &Options::default());
        let errors: Vec<_> =
            compiled.diagnostics.iter().filter(|d| d.code != "no-main").map(|d| d.message.as_str()).collect();
        assert_eq!(errors, [expected], "{text}");
    }
}

/// Programs that use the language in many ways, all right. Those of `accept` also run, on both executors
/// (`crates/dataplane/tests/differential.rs`).
#[test]
fn accepted() {
    let mut count = 0;
    for folder in ["accept", "valid"] {
        let dir = format!("{}/tests/{folder}", env!("CARGO_MANIFEST_DIR"));
        for entry in std::fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            let compiled = p4lang::compile_file(&path, &Options::default()).unwrap();
            let shown = p4lang::render::render(&compiled.sources, &compiled.diagnostics, false);
            assert!(compiled.program.is_some(), "{}:\n{shown}", path.display());
            count += 1;
        }
    }
    assert!(count >= 80);
}
