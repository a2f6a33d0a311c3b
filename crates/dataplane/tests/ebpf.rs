//! A filter between ports: what it accepts is queued and leaves as it came, what it drops is counted by reason.

use std::sync::Arc;

use dataplane::pipeline::{Pipeline, QueueInfo, Received};
use p4lang::{Options, compile_str};
use proptest::prelude::*;

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

/// A parser that gives up in all the ways there are, and what becomes of a packet.
const ROUGH: &str = "
#include <ebpf_model.p4>
header one_t { bit<8> kind; bit<8> value; }
header rest_t { bit<8> size; varbit<32> data; }
struct headers { one_t first; one_t[2] stack; rest_t rest; }
parser P(packet_in p, out headers hdr) {
    state start {
        p.extract(hdr.first);
        transition select(hdr.first.kind) { 0: accept; 1: deny; 2: check; 3: stack; 4: rest; 5: peek; 6: skip; 7..9: accept; }
    }
    state deny { transition reject; }
    state check { verify(hdr.first.value > 9, error.NoMatch); transition accept; }
    state stack { p.extract(hdr.stack.next); transition select(hdr.stack.last.kind) { 0: accept; default: stack; } }
    state rest { bit<8> bits = p.lookahead<bit<8>>(); p.extract(hdr.rest, (bit<32>) bits); transition accept; }
    state peek { transition select(p.lookahead<bit<24>>()) { 0: reject; default: accept; } }
    state skip { p.advance((bit<32>) hdr.first.value * 8); transition accept; }
}
control C(inout headers hdr, out bool even) { apply { even = hdr.first.value[0:0] == 0; } }
ebpfFilter(P(), C()) main;";

/// Whether the parser of `ROUGH` rejects the packet.
fn rejects(packet: &[u8]) -> bool {
    let &[kind, value, ref rest @ ..] = packet else { return true };
    match kind {
        0 | 7..=9 => false,
        2 => value <= 9,
        // Two more fit into the stack.
        3 => {
            let end = rest.chunks(2).position(|one| one.len() < 2 || one[0] == 0);
            !end.is_some_and(|at| at < 2 && rest.len() >= 2 * at + 2)
        }
        // So many bits: whole bytes, and no more than 32.
        4 => !rest
            .first()
            .is_some_and(|&bits| bits <= 32 && bits % 8 == 0 && rest.len() > usize::from(bits) / 8),
        5 => rest.len() < 3 || rest[..3] == [0; 3],
        6 => rest.len() < usize::from(value),
        _ => true,
    }
}

proptest! {
    /// Each packet that does not leave is counted once, under its reason.
    #[test]
    fn a_packet_is_rejected_for_whatever_reason_and_counted_so(
        packets in prop::collection::vec(
            (0u8..12, prop_oneof![0u8..12, any::<u8>()], prop::collection::vec(prop_oneof![0u8..4, Just(8), Just(16), any::<u8>()], 0..9)),
            1..40),
        cut in 0usize..3,
    ) {
        static COMPILED: std::sync::LazyLock<Arc<p4lang::ir::Program>> = std::sync::LazyLock::new(|| {
            Arc::new(compile_str("rough.p4", ROUGH, None, &Options::default()).program.expect("it can be run"))
        });
        let program = COMPILED.clone();
        let both = [Pipeline::interpreted(program.clone(), 0).unwrap(), Pipeline::compiled(program, 0).unwrap()];
        for mut filter in both {
            let (mut rejected, mut refused, mut outputs) = (0, 0, Vec::new());
            for (kind, value, rest) in &packets {
                let mut packet = vec![*kind, *value];
                packet.extend(rest);
                packet.truncate(if rest.is_empty() { cut } else { packet.len() });
                outputs.clear();
                filter.process(0, 0, &packet, &mut outputs);
                let leaves = !rejects(&packet) && value % 2 == 0;
                rejected += u64::from(rejects(&packet));
                refused += u64::from(!rejects(&packet) && !leaves);
                prop_assert_eq!(outputs.len(), usize::from(leaves), "{:02x?}", packet);
            }
            let count = |name| filter.drops().iter().filter(|(r, _)| r.name() == name).map(|(_, n)| *n).sum::<u64>();
            prop_assert_eq!(count("rejected by the parser"), rejected);
            prop_assert_eq!(count("not accepted by the filter"), refused);
            prop_assert_eq!(filter.drops().values().sum::<u64>(), rejected + refused);
        }
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
