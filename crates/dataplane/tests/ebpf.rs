//! A filter between ports: what it accepts is queued and leaves as it came, what it drops is counted by reason.

use std::sync::Arc;

use dataplane::pipeline::{Pipeline, QueueInfo, Received};
use p4lang::{Options, compile_str};

const EVEN: &str = "
#include <ebpf_model.p4>
header h_t { bit<8> kind; bit<8> value; }
struct headers { h_t h; }
parser P(packet_in p, out headers hdr) {
    state start { p.extract(hdr.h); transition select(hdr.h.kind) { 1: accept; default: reject; } }
}
control C(inout headers hdr, out bool even) {
    apply { hdr.h.value = hdr.h.value + 1; even = hdr.h.value[0:0] == 1; }
}
ebpfFilter(P(), C()) main;";

fn pipelines() -> [Pipeline; 2] {
    let compiled = compile_str("even.p4", EVEN, None, &Options::default());
    let program = Arc::new(compiled.program.expect("the filter can be run"));
    [
        Pipeline::interpreted(program.clone(), 0).unwrap(),
        Pipeline::compiled(program, 0).expect("the filter compiles"),
    ]
}

#[test]
fn accepted_packets_leave_as_they_came() {
    for mut filter in pipelines() {
        let mut pending = Vec::new();
        let packet = filter.packet(&[1, 4, 9], 100);
        let Received::Queue(work) = filter.receive(5, 7, packet, &mut pending, &mut |_, _| false) else {
            panic!("it is for a queue");
        };
        assert_eq!((work.port, work.enqueued, work.wire_len()), (7, 5, 103));
        let out = filter.depart(9, work, QueueInfo::default(), &mut pending).expect("it leaves");
        assert_eq!((out.bytes(), out.zeros()), (&[1, 4, 9][..], 100));

        let packet = filter.packet(&[1, 6], 2);
        let Received::Out(out) = filter.receive(5, 3, packet, &mut pending, &mut |port, _| port == 3) else {
            panic!("it leaves at once");
        };
        assert_eq!((out.bytes(), out.zeros()), (&[1, 6][..], 2));
        assert!(pending.is_empty() && filter.drops().is_empty());
    }
}

#[test]
fn drops_are_counted_by_reason() {
    for mut filter in pipelines() {
        let mut outputs = Vec::new();
        for packet in [&[1, 3][..], &[1, 5], &[2, 4], &[1], &[]] {
            filter.process(0, 0, packet, &mut outputs);
        }
        assert!(outputs.is_empty());
        let drops: Vec<_> = filter.drops().iter().map(|(reason, count)| (reason.name(), *count)).collect();
        assert_eq!(drops, [("not accepted by the filter", 2), ("rejected by the parser", 3)]);
        assert_eq!(filter.packets_made(), 0);
    }
}

#[test]
fn a_trace_names_the_reason() {
    let [mut filter, _] = pipelines();
    let mut outputs = Vec::new();
    let trace = filter.process_traced(0, 0, &[1, 3], &mut outputs);
    assert!(format!("{trace:?}").contains("not accepted by the filter"));
    let trace = filter.process_traced(0, 0, &[1, 4], &mut outputs);
    assert!(format!("{trace:?}").contains("Transmit"));
}
