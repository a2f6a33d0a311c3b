//! What one operation does while packets wait: members are counted, not time.

use std::sync::Arc;

use control::{Answer, Kind, MOST_COMPARED, Match, Op, Target as _, ValueSetOp};
use dataplane::pipeline::Pipeline;
use units::Time;

const PROGRAM: &str = r#"
#include <core.p4>
#include <v1model.p4>
header h_t { bit<32> a; bit<32> b; }
struct H { h_t h; }
struct M {}
struct pair_t { bit<32> a; bit<32> b; }
parser P(packet_in p, out H hdr, inout M m, inout standard_metadata_t sm) {
    value_set<bit<32>>(65536) one;
    value_set<pair_t>(65536) two;
    value_set<bit<32>>(10) small;
    state start {
        p.extract(hdr.h);
        transition select(hdr.h.a, hdr.h.b) { two: accept; default: more; }
    }
    state more { transition select(hdr.h.a) { one: accept; small: accept; default: accept; } }
}
control I(inout H hdr, inout M m, inout standard_metadata_t sm) {
    direct_counter(CounterType.packets_and_bytes) hits;
    action to(bit<9> port) { sm.egress_spec = port; }
    table t {
        key = { hdr.h.a: exact; } actions = { to; NoAction; }
        counters = hits; size = 20000; support_timeout = true;
    }
    table other { key = { hdr.h.a: exact; } actions = { to; NoAction; } size = 8; }
    apply { t.apply(); other.apply(); }
}
control V(inout H hdr, inout M m) { apply {} }
control E(inout H hdr, inout M m, inout standard_metadata_t sm) { apply {} }
control C(inout H hdr, inout M m) { apply {} }
control D(packet_out p, in H hdr) { apply { p.emit(hdr); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
"#;

fn pipeline() -> Pipeline {
    let compiled = p4lang::compile_str("holds.p4", PROGRAM, None, &p4lang::Options::default());
    let program = compiled.program.unwrap_or_else(|| panic!("{:?}", compiled.diagnostics));
    Pipeline::interpreted(Arc::new(program), 0).unwrap()
}

fn fill(
    pipeline: &mut Pipeline,
    set: &str,
    members: impl Iterator<Item = u64>,
    fields: usize,
) -> Result<(), Kind> {
    let members = members.map(|member| vec![Match::Exact(member.into()); fields]).collect();
    let op = Op::from(ValueSetOp::Set { value_set: set.into(), members });
    pipeline.act(Time::ZERO, &op).map(|_| ()).map_err(|error| error.kind)
}

fn members(pipeline: &mut Pipeline, set: &str) -> usize {
    match pipeline.act(Time::ZERO, &ValueSetOp::Read { value_set: set.into() }.into()).unwrap() {
        Answer::Matches(members) => members.len(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_value_set_has_no_more_members_than_a_packet_may_be_compared_with() {
    let most = MOST_COMPARED as u64;
    let mut p = pipeline();
    assert_eq!(fill(&mut p, "one", 0..most, 1), Ok(()));
    assert_eq!(fill(&mut p, "one", 0..most + 1, 1), Err(Kind::Full));
    assert_eq!(members(&mut p, "one"), MOST_COMPARED, "what is refused changes nothing");
    let member = vec![Match::Exact((most + 9).into())];
    let refused = p.act(Time::ZERO, &ValueSetOp::Add { value_set: "one".into(), member }.into()).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "value set `P.one` is full: packets are compared with 4096 members at most"
    );
    assert_eq!(fill(&mut p, "two", 0..most / 2, 2), Ok(()));
    assert_eq!(fill(&mut p, "two", 0..most / 2 + 1, 2), Err(Kind::Full));
    assert_eq!(fill(&mut p, "small", 0..11, 1), Err(Kind::Full));
    assert_eq!(fill(&mut p, "small", (0..3).chain(1..2), 1), Err(Kind::Exists));
    assert_eq!(members(&mut p, "small"), 0);
    assert_eq!(fill(&mut p, "one", 5..7, 1), Ok(()));
    assert_eq!(members(&mut p, "one"), 2);
}
