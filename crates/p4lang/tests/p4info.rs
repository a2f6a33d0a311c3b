//! P4Info where the program says something about ids and widths (P4Runtime 1.4, sections 6.4, 6.5 and 8.4.6).

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
    for name in ["I.hits", "colour", "I.members", "I.u.counters"] {
        assert!(text.contains(&format!("    name: \"{name}\"\n")), "{name}: {text}");
    }
    // 0x13 is the type of a direct counter.
    assert!(text.contains("    id: 318767181\n    name: \"I.hits\"\n"), "{text}");
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
        r#"pkg_info { name: "told.p4" version: "3" doc { description: "what it does" } arch: "v1model" }"#,
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
