//! Queues around a program: what egress sees of them, priorities, limits, and that no packet is forgotten.

use std::sync::Arc;

use p4lang::{Options, compile_str};
use proptest::prelude::*;
use switch::{Config, PortConfig, QueueLimit, Switch};
use units::{Bytes, Time};

/// The packet says where it goes, with which priority, and whether egress drops or clones it; egress writes what it sees.
const PROGRAM: &str = r#"
#include <core.p4>
#include <v1model.p4>
header order_t { bit<8> port; bit<8> priority; bit<8> what; bit<8> pad; }
header seen_t { bit<32> deq_timedelta; bit<32> enq_qdepth; bit<32> deq_qdepth; bit<32> length; }
struct H { order_t order; seen_t seen; }
struct M {}
parser P(packet_in p, out H h, inout M m, inout standard_metadata_t s) {
    state start { p.extract(h.order); transition accept; }
}
control V(inout H h, inout M m) { apply {} }
control I(inout H h, inout M m, inout standard_metadata_t s) {
    apply {
        s.egress_spec = (bit<9>) h.order.port;
        s.priority = (bit<3>) h.order.priority;
        if (h.order.what == 9) { mark_to_drop(s); }
    }
}
control E(inout H h, inout M m, inout standard_metadata_t s) {
    apply {
        h.seen.setValid();
        h.seen = { s.deq_timedelta, (bit<32>) s.enq_qdepth, (bit<32>) s.deq_qdepth, s.packet_length };
        if (h.order.what == 1) { mark_to_drop(s); }
        if (h.order.what == 2 && s.instance_type == 0) { clone(CloneType.E2E, 5); }
        if (h.order.what == 3) { truncate(30); }
    }
}
control C(inout H h, inout M m) { apply {} }
control D(packet_out p, in H h) { apply { p.emit(h); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
"#;

fn switch(ports: &[&[QueueLimit]]) -> Switch {
    let compiled = compile_str("queues.p4", PROGRAM, None, &Options::default());
    let program = Arc::new(compiled.program.unwrap_or_else(|| panic!("{:?}", compiled.diagnostics)));
    let ports = ports.iter().map(|queues| PortConfig { queues: queues.to_vec() }).collect();
    let mut switch = Switch::new(program, &Config { ports, seed: 0 }).unwrap();
    let mirror = dataplane::replication::Session { port: Some(1), ..Default::default() };
    switch.pipeline().replication.set_session(5, mirror);
    switch
}

fn packets(most: u64) -> QueueLimit {
    QueueLimit { packets: Some(most), bytes: None }
}

fn word(bytes: &[u8], index: usize) -> u32 {
    u32::from_be_bytes(bytes[4 + 4 * index..8 + 4 * index].try_into().unwrap())
}

#[test]
fn egress_sees_the_queue() {
    let mut switch = switch(&[&[packets(10)], &[packets(10)]]);
    for us in [0, 10, 20] {
        switch.receive(Time::from_us(us), 0, &[1, 0, 0, 0], 996);
    }
    assert_eq!(switch.take_ready(), Some(1));
    assert_eq!(switch.take_ready(), None);
    assert_eq!(switch.queue(1, 0).unwrap().0, (3, 3000));
    let mut seen = Vec::new();
    for us in [100, 200, 300] {
        let out = switch.transmit(Time::from_us(us), 1).unwrap();
        assert_eq!((out.port, out.bytes.len(), out.more), (1, 20, 996));
        seen.push([0, 1, 2, 3].map(|i| word(&out.bytes, i)));
    }
    // Microseconds in the queue, packets there when it came and when it left, bytes on the wire.
    assert_eq!(seen, [[100, 0, 2, 1000], [190, 1, 1, 1000], [280, 2, 0, 1000]]);
    assert!(switch.transmit(Time::from_us(400), 1).is_none());
}

#[test]
fn the_highest_priority_goes_first() {
    let mut switch = switch(&[&[packets(10), packets(10), packets(10)]]);
    for priority in [0, 2, 1, 7, 0] {
        switch.receive(Time::ZERO, 0, &[0, priority, 0, 0], 0);
    }
    let order: Vec<u8> =
        std::iter::from_fn(|| switch.transmit(Time::from_us(1), 0)).map(|o| o.bytes[1]).collect();
    assert_eq!(order, [2, 7, 1, 0, 0]);
}

#[test]
fn a_drop_in_egress_makes_way_for_the_next_packet() {
    let mut switch = switch(&[&[packets(10)]]);
    for what in [1, 1, 0] {
        switch.receive(Time::ZERO, 0, &[0, 0, what, what], 0);
    }
    assert_eq!(switch.transmit(Time::from_us(1), 0).unwrap().bytes[2], 0);
    assert_eq!(switch.queue(0, 0).unwrap().1.dropped_in_egress, 2);
}

#[test]
fn truncation_counts_the_payload_that_is_only_counted() {
    let mut switch = switch(&[&[packets(10)]]);
    switch.receive(Time::ZERO, 0, &[0, 0, 3, 0], 100);
    let out = switch.transmit(Time::from_us(1), 0).unwrap();
    assert_eq!((out.bytes.len(), out.more), (20, 10));
}

#[test]
fn limits_in_bytes_and_ports_that_are_not_there() {
    let mut switch = switch(&[&[QueueLimit { packets: None, bytes: Some(Bytes::new(2500)) }]]);
    for _ in 0..3 {
        switch.receive(Time::ZERO, 0, &[0, 0, 0, 0], 996);
    }
    switch.receive(Time::ZERO, 0, &[77, 0, 0, 0], 0);
    let ((depth, bytes), counts) = switch.queue(0, 0).unwrap();
    assert_eq!((depth, bytes, counts.packets, counts.dropped), (2, 2000, 2, 1));
    assert_eq!(switch.no_port(), 1);
}

#[test]
fn what_holds_nothing_is_refused() {
    let compiled = compile_str("queues.p4", PROGRAM, None, &Options::default());
    let program = Arc::new(compiled.program.unwrap());
    for (queues, message) in [
        (vec![], "port 0 has no queue; give it at least one"),
        (vec![packets(0)], "queue 0 of port 0 holds nothing; give it room for a packet"),
    ] {
        let config = Config { ports: vec![PortConfig { queues }], seed: 0 };
        assert_eq!(Switch::new(program.clone(), &config).unwrap_err().to_string(), message);
    }
}

proptest! {
    /// In and cloned = out + dropped, for a counted reason, + held.
    #[test]
    fn no_packet_is_forgotten(
        limits in prop::collection::vec(1u64..6, 2),
        steps in prop::collection::vec((any::<bool>(), 0u8..4, 0u8..4, prop::sample::select(vec![0u8, 1, 2, 3, 9])), 1..120),
    ) {
        let queues = [packets(limits[0]), packets(limits[1])];
        let mut switch = switch(&[&queues, &queues]);
        let (mut came, mut left) = (0, 0);
        for (at, (comes, port, priority, what)) in steps.into_iter().enumerate() {
            let now = Time::from_us(at as u64);
            if comes {
                switch.receive(now, 0, &[port, priority, what, 0], 50);
                came += 1;
            } else if let Some(out) = switch.transmit(now, u32::from(port % 2)) {
                left += 1;
                switch.recycle(out.bytes);
            }
        }
        let (mut held, mut full, mut cloned, mut egress) = (0, 0, 0, 0);
        for (port, queue) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
            let ((depth, _), counts) = switch.queue(port, queue).unwrap();
            held += depth;
            full += counts.dropped;
            egress += counts.dropped_in_egress;
            cloned += counts.packets + counts.dropped;
        }
        let drops: u64 = switch.pipeline().drops().values().sum();
        let ingress_drops = drops - egress;
        // What reached a queue, taken or refused, is what came and was neither dropped in ingress nor for no port, and clones.
        let made = cloned - (came - ingress_drops - switch.no_port());
        prop_assert_eq!(came + made, left + held + full + drops + switch.no_port());
    }
}
