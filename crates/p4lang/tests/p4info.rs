//! P4Info where the program says something about ids and widths (P4Runtime 1.4, sections 6.4, 6.5 and 8.4.6).

use p4lang::ir::{ExternCall, Program, Stmt};
use p4lang::{Options, compile_str, p4info::p4info};

const PROGRAM: &str = r#"
#include <v1model.p4>
@p4runtime_translation("example/port", string) type bit<9> port_t;
@p4runtime_translation("example/vrf", 32) type bit<12> vrf_t;
struct H {}
struct M { port_t port; vrf_t vrf; }
parser P(packet_in p, out H h, inout M m, inout standard_metadata_t s) { state start { transition accept; } }
control C(inout H h, inout M m) { apply {} }
control I(inout H h, inout M m, inout standard_metadata_t s) {
    action set(@id(2) port_t first, bit<8> second) { m.port = first; s.priority = (bit<3>)second; }
    table t {
        key = { m.port : exact; m.vrf : exact @id(1); s.egress_spec : exact; }
        actions = { set; NoAction; }
    }
    apply { t.apply(); }
}
control E(inout H h, inout M m, inout standard_metadata_t s) { apply {} }
control D(packet_out p, in H h) { apply {} }
V1Switch(P(), C(), I(), E(), C(), D()) main;
"#;

/// The values of `field` in the messages named `message`, in order; `None` where it is left out.
fn values<'a>(text: &'a str, message: &str, field: &str) -> Vec<Option<&'a str>> {
    let (start, field) = (format!("  {message} {{"), format!("    {field}: "));
    let parts = text.split(start.as_str()).skip(1);
    parts.map(|part| part.split("\n  }").next()?.lines().find_map(|l| l.strip_prefix(&field))).collect()
}

#[test]
fn ids_are_distinct_and_widths_are_those_of_the_controller() {
    let compiled = compile_str("p4info.p4", PROGRAM, None, &Options::default());
    let program = compiled.program.unwrap_or_else(|| panic!("{:?}", compiled.diagnostics));
    let text = p4info(&program);
    assert_eq!(values(&text, "match_fields", "id"), [Some("2"), Some("1"), Some("3")], "{text}");
    assert_eq!(values(&text, "match_fields", "bitwidth"), [None, Some("32"), Some("9")], "{text}");
    assert_eq!(values(&text, "params", "id"), [Some("2"), Some("3")], "{text}");
    assert_eq!(values(&text, "params", "bitwidth"), [None, Some("8")], "{text}");
}

const IN_PLACE: &str = r#"
#include <v1model.p4>
struct H {}
struct M { bit<8> x; bit<16> y; }
parser P(packet_in p, out H h, inout M m, inout standard_metadata_t s) { state start { transition accept; } }
control C(inout H h, inout M m) { apply {} }
control I(inout H h, inout M m, inout standard_metadata_t s) {
    table t {
        key = { m.x : exact; m.y & 0x0f_f0 : ternary; m.y[7:4] : exact; }
        actions = { NoAction; }
        @name("hits") @id(77) counters = direct_counter(CounterType.packets);
        @name(".colour") meters = direct_meter<bit<8>>(MeterType.bytes);
    }
    table u {
        key = { m.x : exact; m.y : selector; }
        actions = { NoAction; }
        @name("members") implementation = action_selector(HashAlgorithm.identity, 32w64, 32w10);
        counters = direct_counter(CounterType.bytes);
    }
    apply { t.apply(); u.apply(); }
}
control E(inout H h, inout M m, inout standard_metadata_t s) { apply {} }
control D(packet_out p, in H h) { apply {} }
V1Switch(P(), C(), I(), E(), C(), D()) main;
"#;

#[test]
fn objects_made_in_properties_have_the_names_of_their_annotations() {
    let compiled = compile_str("p4info.p4", IN_PLACE, None, &Options::default());
    let program = compiled.program.unwrap_or_else(|| panic!("{:?}", compiled.diagnostics));
    let text = p4info(&program);
    let keys = [Some("\"m.x\""), Some("\"m.y & 0xff0\""), Some("\"m.y[7:4]\""), Some("\"m.x\"")];
    assert_eq!(values(&text, "match_fields", "name"), keys, "{text}");
    for name in ["hits", "colour", "members", "I.u.counters"] {
        assert!(text.contains(&format!("    name: \"{name}\"\n")), "{name}: {text}");
    }
    // 0x13 is the type of a direct counter.
    assert!(text.contains("    id: 318767181\n    name: \"hits\"\n"), "{text}");
}

#[test]
fn what_annotations_and_types_add() {
    let compiled = compile_str(
        "told.p4",
        r#"
        #include <core.p4>
        #include <v1model.p4>
        enum bit<8> Kind { a = 1 }
        enum bit<8> Unused { a = 1 }
        type bit<9> Port;
        struct told_t { Kind kind; Port port; bool late; }
        header h_t { bit<32> a; Kind kind; }
        @controller_header("packet_in") header in_t { @id(7) Port port; bit<7> pad; }
        struct H { in_t i; h_t h; }
        struct M {}
        parser P(packet_in p, out H hdr, inout M m, inout standard_metadata_t sm) {
            state start { p.extract(hdr.h); transition accept; }
        }
        control V(inout H hdr, inout M m) { apply {} }
        control I(inout H hdr, inout M m, inout standard_metadata_t sm) {
            @max_group_size(20) @selector_size_semantics("sum_of_members") @max_member_weight(4)
            action_selector(HashAlgorithm.crc16, 32w64, 32w16) group;
            @brief("sets a") action set(bit<32> v) {
                hdr.h.a = v;
                digest<told_t>(1, { hdr.h.kind, hdr.i.port, true });
            }
            table t {
                key = { hdr.h.kind : exact; hdr.h.a : selector; }
                actions = { set; NoAction; }
                implementation = group;
            }
            table u { key = { hdr.h.a : exact; } actions = { set; } default_action = set(10); }
            apply { t.apply(); u.apply(); }
        }
        control E(inout H hdr, inout M m, inout standard_metadata_t sm) { apply {} }
        control C(inout H hdr, inout M m) { apply {} }
        control D(packet_out p, in H hdr) { apply { p.emit(hdr); } }
        @pkginfo(name="told.p4", version="3") @description("what it does")
        @platform_property(multicast_group_table_size = 10, multicast_group_table_total_replicas=0x20)
        @platform_property(multicast_group_table_max_replicas_per_entry=4)
        V1Switch(P(), V(), I(), E(), C(), D()) main;
        "#,
        None,
        &Options::default(),
    );
    let program = compiled.program.unwrap_or_else(|| panic!("{:?}", compiled.diagnostics));
    let text = p4info(&program);
    let text: Vec<&str> = text.split_whitespace().collect();
    let text = text.join(" ");
    for expected in [
        r#"pkg_info { name: "told.p4" version: "3" doc { description: "what it does" } arch: "v1model" platform_properties { multicast_group_table_size: 10 multicast_group_table_total_replicas: 32 multicast_group_table_max_replicas_per_entry: 4 } }"#,
        r#"alias: "set" doc { brief: "sets a" }"#,
        r#"arguments { param_id: 1 value: "\000\000\000\n" }"#,
        r#"with_selector: true size: 64 max_group_size: 20 sum_of_members { max_member_weight: 4 }"#,
        r#"metadata { id: 7 name: "port" bitwidth: 9 type_name { name: "Port" } } metadata { id: 2 name: "pad" bitwidth: 7 }"#,
        r#"members { name: "kind" type_spec { serializable_enum { name: "Kind" } } }"#,
        r#"members { name: "port" type_spec { new_type { name: "Port" } } }"#,
        r#"members { name: "late" type_spec { bool { } } }"#,
        r#"serializable_enums { key: "Kind""#,
        r#"new_types { key: "Port""#,
    ] {
        assert!(text.contains(expected), "{expected} is not in {text}");
    }
    assert!(!text.contains("Unused"), "a type that the control plane does not meet");
}

/// P4Info of a v1model program of these declarations, parts of the ingress control and statements, its white space
/// reduced to single spaces.
fn program(declarations: &str, locals: &str, apply: &str) -> Program {
    let source = format!(
        r#"
        #include <core.p4>
        #include <v1model.p4>
        header h_t {{ bit<8> a; bit<8> b; }}
        {declarations}
        struct H {{ h_t h; @name("zz") h_t y; @name(".top") h_t t; }}
        struct M {{ bit<8> x; }}
        parser P(packet_in p, out H hdr, inout M m, inout standard_metadata_t sm) {{
            state start {{ p.extract(hdr.h); p.extract(hdr.y); p.extract(hdr.t); transition accept; }}
        }}
        control V(inout H hdr, inout M m) {{ apply {{}} }}
        control I(inout H hdr, inout M m, inout standard_metadata_t sm) {{ {locals} apply {{ {apply} }} }}
        control E(inout H hdr, inout M m, inout standard_metadata_t sm) {{ apply {{}} }}
        control D(packet_out p, in H hdr) {{ apply {{ p.emit(hdr); }} }}
        V1Switch(P(), V(), I(), E(), V(), D()) main;
        "#
    );
    let compiled = compile_str("shown.p4", &source, None, &Options::default());
    compiled.program.unwrap_or_else(|| panic!("{:?}", compiled.diagnostics))
}

/// P4Info of it in one line.
fn shown(declarations: &str, locals: &str, apply: &str) -> String {
    p4info(&program(declarations, locals, apply)).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The names of all objects of a kind, in order.
fn names<'a>(text: &'a str, kind: &str) -> Vec<&'a str> {
    let start = format!(" {kind} {{ preamble {{ ");
    let mut found: Vec<&str> = text
        .split(start.as_str())
        .skip(1)
        .filter_map(|part| part.split_once("name: \"")?.1.split_once('"').map(|(name, _)| name))
        .collect();
    found.sort_unstable();
    found
}

#[test]
fn digests_have_headers_as_such() {
    let text = shown(
        "enum bit<8> Kind { a = 1 } struct pair_t { bit<4> p; bit<4> q; }
         header k_t { Kind kind; int<8> s; pair_t pair; varbit<32> rest; }
         struct told_t { bit<8> x; h_t h; k_t k; }",
        "",
        "k_t k; k.setInvalid(); digest<told_t>(1, { m.x, hdr.h, k }); digest<h_t>(1, hdr.y);",
    );
    for expected in [
        r#"alias: "told_t" } type_spec { struct { name: "told_t" } }"#,
        r#"alias: "h_t" } type_spec { header { name: "h_t" } }"#,
        r#"members { name: "h" type_spec { header { name: "h_t" } } }"#,
        r#"headers { key: "h_t" value { members { name: "a" type_spec { bit { bitwidth: 8 } } } members { name: "b""#,
        r#"headers { key: "k_t" value { members { name: "kind" type_spec { bit { bitwidth: 8 } } }"#,
        r#"members { name: "s" type_spec { int { bitwidth: 8 } } } members { name: "pair.p" type_spec { bit { bitwidth: 4 }"#,
        r#"members { name: "rest" type_spec { varbit { max_bitwidth: 32 } } }"#,
    ] {
        assert!(text.contains(expected), "{expected} is not in {text}");
    }
    assert_eq!(text.matches("headers {").count(), 2, "{text}");
}

#[test]
fn generic_types_are_one_for_each_list_of_type_arguments() {
    let text = shown(
        "struct G<T> { T v; } struct G_0 { bit<8> x; } header K<T> { T v; } struct pair_t<T, U> { G<T> g; K<U> k; }",
        "",
        "digest<G<bit<8>>>(1, { m.x }); digest<G<bit<16>>>(1, { m.x ++ m.x }); digest<G<bit<8>>>(1, { 1 });
         digest<G_0>(1, { m.x }); digest<pair_t<bit<8>, bit<24>>>(1, { g = { m.x }, ... });",
    );
    assert_eq!(names(&text, "digests"), ["G_0", "G_1", "G_2", "pair_t_0"], "{text}");
    for (name, width) in [("G_1", 8), ("G_2", 16)] {
        let expected = format!(
            r#"structs {{ key: "{name}" value {{ members {{ name: "v" type_spec {{ bitstring {{ bit {{ bitwidth: {width} }} }} }} }} }} }}"#
        );
        assert!(text.contains(&expected), "{expected} is not in {text}");
    }
    for expected in [
        r#"members { name: "g" type_spec { struct { name: "G_1" } } }"#,
        r#"members { name: "k" type_spec { header { name: "K_0" } } }"#,
        r#"headers { key: "K_0" value { members { name: "v" type_spec { bit { bitwidth: 24 } } } } }"#,
    ] {
        assert!(text.contains(expected), "{expected} is not in {text}");
    }
}

#[test]
fn digests_have_all_fields_of_their_types() {
    let program = program(
        "struct pair_t { bit<8> x; bit<16> y; } struct told_t { bit<4> n; pair_t pair; h_t h; bool b; }
         header v_t { bit<8> n; varbit<16> rest; } struct v_s { bit<8> n; v_t v; }",
        "",
        "digest<pair_t>(1, { x = 5, ... });
         digest<told_t>(1, { n = 1, h = (h_t) {#}, ... });
         digest<h_t>(1, (h_t) {#});
         digest<v_s>(1, { n = 1, ... });",
    );
    let mut fields = Vec::new();
    for stmt in program.controls.iter().flat_map(|control| &control.body) {
        if let Stmt::Extern(ExternCall::Digest { digest, fields: values, .. }) = stmt {
            let declared: Vec<(&str, u32)> =
                program[*digest].fields.iter().map(|(name, width)| (name.as_str(), *width)).collect();
            let widths: Vec<u32> = values.iter().map(|value| value.width).collect();
            assert_eq!(widths, declared.iter().map(|(_, width)| *width).collect::<Vec<_>>());
            fields.push(declared);
        }
    }
    let told =
        ["n", "pair.x", "pair.y", "h.$valid$", "h.a", "h.b", "b"].into_iter().zip([4, 8, 16, 1, 8, 8, 1]);
    let expected: [Vec<(&str, u32)>; 4] = [
        vec![("x", 8), ("y", 16)],
        told.collect(),
        vec![("$valid$", 1), ("a", 8), ("b", 8)],
        vec![("n", 8), ("v.$valid$", 1), ("v.n", 8), ("v.rest", 16)],
    ];
    assert_eq!(fields, expected);
}

#[test]
fn value_sets_have_the_new_types_of_their_fields() {
    let compiled = compile_str(
        "sets.p4",
        r#"
        #include <v1model.p4>
        @p4runtime_translation("example/vrf", string) type bit<8> vrf_t;
        type bit<8> port_t;
        header h_t { vrf_t vrf; port_t port; bit<8> x; }
        struct H { h_t h; }
        struct M {}
        struct key_t { port_t port; bit<8> x; }
        parser P(packet_in p, out H hdr, inout M m, inout standard_metadata_t s) {
            value_set<vrf_t>(4) vrfs;
            value_set<key_t>(4) keys;
            state start { p.extract(hdr.h); transition select(hdr.h.vrf) { vrfs: next; default: accept; } }
            state next { transition select(hdr.h.port, hdr.h.x) { keys: accept; default: accept; } }
        }
        control C(inout H hdr, inout M m) { apply {} }
        control I(inout H hdr, inout M m, inout standard_metadata_t s) { apply {} }
        control D(packet_out p, in H hdr) { apply { p.emit(hdr); } }
        V1Switch(P(), C(), I(), I(), C(), D()) main;
        "#,
        None,
        &Options::default(),
    );
    let program = compiled.program.unwrap_or_else(|| panic!("{:?}", compiled.diagnostics));
    let text = p4info(&program).split_whitespace().collect::<Vec<_>>().join(" ");
    for expected in [
        r#"match { id: 1 match_type: EXACT type_name { name: "vrf_t" } }"#,
        r#"match { id: 1 name: "port" bitwidth: 8 match_type: EXACT type_name { name: "port_t" } }"#,
        r#"match { id: 2 name: "x" bitwidth: 8 match_type: EXACT }"#,
        r#"new_types { key: "vrf_t""#,
    ] {
        assert!(text.contains(expected), "{expected} is not in {text}");
    }
}

#[test]
fn a_hidden_action_of_a_table_that_is_shown_is_shown() {
    let text = shown(
        "",
        "@hidden action secret() {} @hidden action deep() {}
         table t { key = { m.x : exact; } actions = { secret; NoAction; } default_action = secret(); }
         @hidden table u { key = { m.x : exact; } actions = { deep; NoAction; } }",
        "t.apply(); u.apply();",
    );
    assert_eq!(names(&text, "actions"), ["I.secret", "NoAction"], "{text}");
    assert!(!text.contains("id: 0 "), "{text}");
}

#[test]
fn actions_that_are_called_are_listed_without_parameters() {
    let text = shown(
        "action top(in bit<8> x) {} action below(inout bit<8> x) { x = 1; } action unused() {}",
        r#"
        action called(in bit<8> x) { hdr.h.a = x; below(hdr.h.a); }
        @hidden action hidden() {}
        action both(bit<8> x) { hdr.h.b = x; }
        action unreachable() {}
        table t { key = { m.x : exact; } actions = { both; NoAction; } }
        "#,
        "called(1); hidden(); top(2); top(3); both(4); t.apply(); if (false) { unreachable(); }
         if (m.x == 1) { exit; unreachable(); } else { return; } unreachable();",
    );
    assert_eq!(names(&text, "actions"), ["I.both", "I.called", "NoAction", "top"], "{text}");
    assert!(text.contains(r#"name: "I.called" alias: "called" } }"#), "{text}");
    assert!(
        text.contains(r#"name: "I.both" alias: "both" } params { id: 1 name: "x" bitwidth: 8 } }"#),
        "{text}"
    );
}

#[test]
fn tables_that_nothing_applies_are_left_out_with_their_actions() {
    let text = shown(
        "",
        r#"
        action only() {}
        table folded { key = { m.x : exact; } actions = { only; } default_action = only; }
        table unused { key = { m.x : exact; } actions = { only; } default_action = only; }
        table t { actions = { NoAction; } default_action = NoAction; }
        "#,
        "t.apply(); if (1 == 2) { folded.apply(); }",
    );
    assert_eq!(names(&text, "tables"), ["I.t"], "{text}");
    assert_eq!(names(&text, "actions"), ["NoAction"], "{text}");
}

#[test]
fn sizes_keys_and_selectors() {
    let text = shown(
        "",
        r#"
        @selector_size_semantics("sum_of_weights") action_selector(HashAlgorithm.crc16, 32w8, 32w8) told;
        action_selector(HashAlgorithm.crc16, 32w8, 32w8) untold;
        table t {
            key = { hdr.y.a : exact; hdr.t.a : exact; hdr.t.isValid() : exact; sm.parser_error : exact; }
            actions = { NoAction; }
            const entries = { (1, 2, true, error.NoError) : NoAction(); }
        }
        table u { key = { m.x : exact; m.x : selector; } actions = { NoAction; } implementation = told; size = 0; }
        table v { key = { m.x : exact; m.x : selector; } actions = { NoAction; } implementation = untold; }
        "#,
        "t.apply(); u.apply(); v.apply();",
    );
    assert_eq!(text.matches("size: 1024").count(), 3, "{text}");
    for expected in [
        r#"name: "hdr.zz.a" bitwidth: 8"#,
        r#"name: "top.a" bitwidth: 8"#,
        r#"name: "top.$valid$" bitwidth: 1"#,
        r#"name: "sm.parser_error" match_type: EXACT"#,
        r#"error { members: "NoError" members: "PacketTooShort""#,
    ] {
        assert!(text.contains(expected), "{expected} is not in {text}");
    }
    assert_eq!(text.matches("sum_of_weights { }").count(), 1, "{text}");
}

#[test]
fn types_of_cells_digests_and_parameters() {
    let text = shown(
        r#"
        enum bit<12> Kind { a = 1, b = 0x800 }
        enum Plain { one, two }
        @p4runtime_translation("u", bit<32>) type bit<9> Wide;
        @said(1) type bit<9> Port;
        struct inner_t { bit<4> c; bit<4> d; }
        @controller_header("packet_in") header in_t { bit<8> x; inner_t y; }
        struct told_t { Plain plain; error e; }
        "#,
        r#"
        register<bool>(4) flags;
        register<Port>(4) ports;
        register<Kind>(4) kinds;
        register<int<8>>(4) signed;
        action set(Plain p, Wide w) { if (p == Plain.one) { m.x = 1; } }
        table t { key = { m.x : exact; } actions = { set; NoAction; } }
        "#,
        r#"
        t.apply();
        digest<told_t>(1, { Plain.two, sm.parser_error });
        digest<bit<8>>(1, m.x);
        digest(1, { (int<8>) 1, m.x });
        "#,
    );
    for expected in [
        r#"alias: "flags" } type_spec { bool { } } size: 4"#,
        r#"alias: "ports" } type_spec { new_type { name: "Port" } } size: 4"#,
        r#"alias: "kinds" } type_spec { serializable_enum { name: "Kind" } } size: 4"#,
        r#"alias: "signed" } type_spec { bitstring { int { bitwidth: 8 } } } size: 4"#,
        r#"params { id: 1 name: "p" type_name { name: "Plain" } }"#,
        r#"params { id: 2 name: "w" bitwidth: 32 type_name { name: "Wide" } }"#,
        r#"metadata { id: 1 name: "x" bitwidth: 8 } metadata { id: 2 name: "y.c" bitwidth: 4 } metadata { id: 3 name: "y.d" bitwidth: 4 }"#,
        r#"type_spec { bitstring { bit { bitwidth: 8 } } }"#,
        r#"type_spec { tuple { members { bitstring { int { bitwidth: 8 } } } members { bitstring { bit { bitwidth: 8 } } } } }"#,
        r#"members { name: "plain" type_spec { enum { name: "Plain" } } } members { name: "e" type_spec { error { } } }"#,
        r#"members { name: "a" value: "\000\001" } members { name: "b" value: "\010\000" }"#,
        r#"enums { key: "Plain" value { members { name: "one" } members { name: "two" } } }"#,
        r#"new_types { key: "Wide" value { translated_type { uri: "u" sdn_bitwidth: 32 } } }"#,
        r#"new_types { key: "Port" value { original_type { bitstring { bit { bitwidth: 9 } } } annotations: "@said(1)" } }"#,
    ] {
        assert!(text.contains(expected), "{expected} is not in {text}");
    }
}

/// P4Runtime 1.4, section 6.1.1.1: the values are in messages of their own, and expressions are computed.
#[test]
fn structured_annotations_have_values() {
    let source = r#"
        #include <core.p4>
        #include <v1model.p4>
        const int LEVELS = 3;
        const string UNIT = "ms";
        header h_t { bit<8> a; }
        struct H { h_t h; }
        struct M {}
        @flat[true] type bit<9> Port;
        @controller_header("packet_in") header in_t { @seen[1] Port port; bit<7> pad; }
        parser P(packet_in p, out H hdr, inout M m, inout standard_metadata_t sm) {
            state start { p.extract(hdr.h); transition accept; }
        }
        control V(inout H hdr, inout M m) { apply {} }
        control I(inout H hdr, inout M m, inout standard_metadata_t sm) {
            const int OWN = LEVELS * 2;
            @cost[] @limits[low=-1, high=(1 << 62) + LEVELS, unit="in " ++ UNIT, strict=LEVELS > 2]
            action set(@range[0, OWN] bit<8> v) { hdr.h.a = v; }
            @free(a, b)
            table t {
                key = { hdr.h.a: exact @key["k\"ey"]; }
                actions = { @only[OWN == 6 ? "t" : "u"] set; @defaultonly NoAction; }
            }
            apply { t.apply(); }
        }
        control E(inout H hdr, inout M m, inout standard_metadata_t sm) { apply {} }
        control D(packet_out p, in H hdr) { apply {} }
        @pkginfo[name="structured.p4", version="2"]
        V1Switch(P(), V(), I(), E(), V(), D()) main;
    "#;
    let compiled = compile_str("structured.p4", source, None, &Options::default());
    let program = compiled.program.unwrap_or_else(|| panic!("{:?}", compiled.diagnostics));
    let text = p4info(&program).split_whitespace().collect::<Vec<_>>().join(" ");
    for expected in [
        r#"pkg_info { name: "structured.p4" version: "2" structured_annotations { name: "pkginfo" kv_pair_list {"#,
        r#"structured_annotations { name: "cost" } structured_annotations { name: "limits" kv_pair_list { kv_pairs { key: "low" value { int64_value: -1 } } kv_pairs { key: "high" value { int64_value: 4611686018427387907 } } kv_pairs { key: "unit" value { string_value: "in ms" } } kv_pairs { key: "strict" value { bool_value: true } } } }"#,
        r#"structured_annotations { name: "range" expression_list { expressions { int64_value: 0 } expressions { int64_value: 6 } } }"#,
        r#"name: "key" expression_list { expressions { string_value: "k\"ey" } }"#,
        r#"name: "only" expression_list { expressions { string_value: "t" } }"#,
        r#"name: "flat" expression_list { expressions { bool_value: true } }"#,
        r#"name: "seen" expression_list { expressions { int64_value: 1 } }"#,
    ] {
        assert!(text.contains(expected), "{expected} is not in {text}");
    }
    assert!(text.contains(r#"annotations: "@free("#), "{text}");
}

#[test]
fn properties_of_a_platform_are_known_and_given_once() {
    for wrong in [
        "",
        "10",
        "tables=10",
        "multicast_group_table_size=ten",
        "multicast_group_table_size=-1",
        "multicast_group_table_size=0x80000000",
        "multicast_group_table_size=1, multicast_group_table_size=1",
    ] {
        let source = format!("@platform_property({wrong}) const bit<8> k = 1;");
        let compiled = compile_str("wrong.p4", &source, None, &Options::default());
        assert_eq!(compiled.diagnostics[0].code, "annotation", "{wrong}");
    }
}

#[test]
fn fields_of_value_sets_have_their_ids_and_names() {
    let source = r#"
        #include <core.p4>
        #include <v1model.p4>
        header h_t { bit<8> a; }
        struct one_t { @id(7) @match(ternary) @said bit<8> only; }
        struct H { h_t h; }
        struct M {}
        parser P(packet_in p, out H hdr, inout M m, inout standard_metadata_t sm) {
            value_set<one_t>(4) one;
            value_set<bit<8>>(4) bare;
            state start { p.extract(hdr.h); transition select(hdr.h.a) { one: accept; bare: accept; _: reject; } }
        }
        control V(inout H hdr, inout M m) { apply {} }
        control I(inout H hdr, inout M m, inout standard_metadata_t sm) { apply {} }
        control D(packet_out p, in H hdr) { apply {} }
        V1Switch(P(), V(), I(), I(), V(), D()) main;
    "#;
    let compiled = compile_str("sets.p4", source, None, &Options::default());
    let program = compiled.program.unwrap_or_else(|| panic!("{:?}", compiled.diagnostics));
    let text = p4info(&program).split_whitespace().collect::<Vec<_>>().join(" ");
    for expected in [
        r#"match { id: 7 name: "only" annotations: "@said" bitwidth: 8 match_type: TERNARY } size: 4"#,
        r#"match { id: 1 bitwidth: 8 match_type: EXACT } size: 4"#,
    ] {
        assert!(text.contains(expected), "{expected} is not in {text}");
    }
}
