//! Queues around a program: what egress sees of them, priorities, limits, and that no packet is forgotten.

use std::sync::Arc;

use p4lang::{Options, compile_str};
use proptest::prelude::*;
use switch::{
    Config, Departure, Generator, Passed, PortConfig, QueueConfig, QueueLimit, Scheduler, Shaping, Switch,
};
use units::{Bytes, Rate, Time};

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
        if (h.order.what == 4) { s.mcast_grp = 3; }
        if (h.order.what == 5) { s.mcast_grp = 4; }
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
    let ports = ports.iter().map(|queues| Some(PortConfig::new(queues.to_vec()))).collect();
    let mut switch = Switch::new(program, &Config { ports, ..Config::default() }).unwrap();
    let mirror = dataplane::replication::Session { port: Some(1), ..Default::default() };
    switch.pipeline().replication.set_session(5, mirror);
    switch
}

/// As [`switch`], where all packets that wait have so many bytes.
fn bounded(ports: &[&[QueueLimit]], most: u64) -> control::Result<Switch> {
    let compiled = compile_str("queues.p4", PROGRAM, None, &Options::default());
    let ports = ports.iter().map(|queues| Some(PortConfig::new(queues.to_vec()))).collect();
    let config = Config { ports, cpu_port: Some(100), most_waiting: Some(most), ..Config::default() };
    Switch::new(Arc::new(compiled.program.unwrap()), &config)
}

/// What is set of one queue holds for itself; beyond the bound of the switch a packet is dropped, and counted by that reason.
#[test]
fn packets_that_wait_are_within_the_bound_of_the_switch() {
    let most = 64 << 10;
    let mut switch = bounded(&[&[packets(4)], &[QueueLimit { packets: None, bytes: None }]], most).unwrap();
    let each = 1000 + switch.pipeline().waiting_bytes();
    let fits = most / each;
    assert!(fits > 8);
    let send = |switch: &mut Switch, port: u8, count: u64| {
        for _ in 0..count {
            switch.receive(Time::ZERO, 0, &[&[port, 0, 0, 0][..], &[7; 996]].concat(), 0);
        }
    };
    let dropped = |switch: &Switch| switch.statistics().dropped;
    send(&mut switch, 1, fits + 3);
    assert_eq!(dropped(&switch), [("queue memory", 3)]);
    assert_eq!(switch.statistics().held, fits);
    // It is for all ports, and for packets to the controller.
    send(&mut switch, 0, 1);
    send(&mut switch, 100, 1);
    assert_eq!(dropped(&switch), [("queue memory", 4), ("too many packet-ins", 1)]);
    // What leaves makes room.
    while switch.transmit(Time::ZERO, 1).is_some() {}
    send(&mut switch, 0, 4);
    send(&mut switch, 100, 1);
    assert!(switch.take_packet_in().is_some());
    send(&mut switch, 1, fits - 4);
    assert_eq!(dropped(&switch), [("queue memory", 4), ("too many packet-ins", 1)]);
    send(&mut switch, 1, 1);
    assert_eq!(dropped(&switch)[0], ("queue memory", 5));
    // Another program throws away what waits.
    let next = dataplane::pipeline::Pipeline::interpreted(switch.program().clone(), 0).unwrap();
    switch.replace_program(Time::ZERO, next, false).unwrap();
    send(&mut switch, 1, fits);
    assert_eq!(dropped(&switch)[0], ("queue memory", 5));
}

#[test]
fn queues_that_promise_more_than_the_bound_are_refused() {
    let most = 256 << 20;
    let huge = packets(u64::from(u32::MAX));
    let why = bounded(&[&[huge; 256], &[huge; 256]], most).err().unwrap().to_string();
    for part in ["full queues of 2 ports take", "`queue_bytes` is 268435456", "fewer or shorter queues"] {
        assert!(why.contains(part), "{why}");
    }
    let bytes = |bytes| QueueLimit { packets: None, bytes: Some(Bytes::new(bytes)) };
    assert!(bounded(&[&[bytes(most)]], most).is_err());
    let both = QueueLimit { packets: Some(1000), bytes: Some(Bytes::new(most)) };
    let mut switch = bounded(&[&[packets(1000); 8], &[both]], most).unwrap();
    // Nor can they be set so.
    let config = PortConfig::new(vec![huge]);
    assert!(switch.configure_port(1, &config).unwrap_err().to_string().contains("`queue_bytes`"));
    switch.configure_port(1, &PortConfig::new(vec![packets(2000)])).unwrap();
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
        assert_eq!((out.queue, out.packet.bytes().len(), out.packet.zeros()), (0, 20, 996));
        assert_eq!(out.waited.as_us(), u64::from(word(out.packet.bytes(), 0)));
        seen.push([0, 1, 2, 3].map(|i| word(out.packet.bytes(), i)));
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
        std::iter::from_fn(|| switch.transmit(Time::from_us(1), 0)).map(|o| o.packet.bytes()[1]).collect();
    assert_eq!(order, [2, 7, 1, 0, 0]);
}

#[test]
fn a_drop_in_egress_makes_way_for_the_next_packet() {
    let mut switch = switch(&[&[packets(10)]]);
    for what in [1, 1, 0] {
        switch.receive(Time::ZERO, 0, &[0, 0, what, what], 0);
    }
    assert_eq!(switch.transmit(Time::from_us(1), 0).unwrap().packet.bytes()[2], 0);
    assert_eq!(switch.queue(0, 0).unwrap().1.dropped_in_egress, 2);
}

#[test]
fn truncation_counts_the_payload_that_is_only_counted() {
    let mut switch = switch(&[&[packets(10)]]);
    switch.receive(Time::ZERO, 0, &[0, 0, 3, 0], 100);
    let out = switch.transmit(Time::from_us(1), 0).unwrap();
    assert_eq!((out.packet.bytes().len(), out.packet.zeros()), (20, 10));
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
    assert_eq!(switch.statistics().dropped, [("queue full", 1), ("no such port", 1)]);
}

#[test]
fn what_holds_nothing_is_refused() {
    let compiled = compile_str("queues.p4", PROGRAM, None, &Options::default());
    let program = Arc::new(compiled.program.unwrap());
    for (queues, message) in [
        (vec![], "port 0 has no queue; give it at least one"),
        (vec![packets(0)], "queue 0 of port 0 holds nothing; give it room for a packet"),
    ] {
        let config = Config { ports: vec![Some(PortConfig::new(queues))], ..Config::default() };
        assert_eq!(Switch::new(program.clone(), &config).unwrap_err().to_string(), message);
    }
}

/// Sends at the given rate until nothing is left; gives the first byte after the header's of each packet, and when it left.
fn drain(switch: &mut Switch, port: u32, mut now: Time, per_packet: Time) -> Vec<(u8, Time)> {
    let mut out = Vec::new();
    while let Some(at) = switch.next_transmit(port) {
        now = now.max(at);
        if let Some(left) = switch.transmit(now, port) {
            out.push((left.packet.bytes()[3], now));
            now += per_packet;
        }
    }
    out
}

fn share(left: &[(u8, Time)], of: u8) -> usize {
    left.iter().filter(|(mark, _)| *mark == of).count()
}

#[test]
fn deficit_round_robin_shares_bytes_by_weight() {
    let mut port = PortConfig::new([packets(1000), packets(1000)]);
    port.scheduler = Scheduler::DeficitRoundRobin { quantum: Bytes::new(500) };
    port.queues[1].weight = 9;
    let mut switch = of(vec![port]);
    // Packets of 1000 bytes in queue 0, of 250 in queue 1: of 10 000 bytes 1000 are queue 0's.
    for _ in 0..400 {
        switch.receive(Time::ZERO, 0, &[0, 0, 0, 0], 996);
        switch.receive(Time::ZERO, 0, &[0, 1, 0, 1], 246);
    }
    let left: Vec<_> = (0..370).map(|_| switch.transmit(Time::ZERO, 0).unwrap().packet.bytes()[3]).collect();
    let zero = left.iter().filter(|mark| **mark == 0).count();
    assert_eq!((zero, left.len() - zero), (10, 360));
    // Alone, a queue has the whole port, and is owed nothing for it later.
    let mut switch = switch_of_one(Scheduler::DeficitRoundRobin { quantum: Bytes::new(1000) });
    for _ in 0..10 {
        switch.receive(Time::ZERO, 0, &[0, 0, 0, 0], 996);
    }
    (0..5).for_each(|_| assert!(switch.transmit(Time::ZERO, 0).is_some()));
    for _ in 0..10 {
        switch.receive(Time::ZERO, 0, &[0, 1, 0, 1], 996);
    }
    let left = drain(&mut switch, 0, Time::ZERO, Time::from_us(1));
    assert_eq!(share(&left[..6], 0), 3, "{left:?}");
}

fn of(ports: Vec<PortConfig>) -> Switch {
    let compiled = compile_str("queues.p4", PROGRAM, None, &Options::default());
    let program = Arc::new(compiled.program.unwrap_or_else(|| panic!("{:?}", compiled.diagnostics)));
    let config =
        Config { ports: ports.into_iter().map(Some).collect(), cpu_port: Some(100), ..Config::default() };
    let mut switch = Switch::new(program, &config).unwrap();
    let mirror = dataplane::replication::Session { port: Some(1), ..Default::default() };
    switch.pipeline().replication.set_session(5, mirror);
    switch
}

fn switch_of_one(scheduler: Scheduler) -> Switch {
    let mut port = PortConfig::new([packets(1000), packets(1000)]);
    port.scheduler = scheduler;
    of(vec![port])
}

#[test]
fn a_packet_dropped_in_egress_costs_its_queue_nothing() {
    let mut switch = switch_of_one(Scheduler::DeficitRoundRobin { quantum: Bytes::new(1000) });
    for index in 0..20 {
        // Every other packet of queue 0 is dropped.
        switch.receive(Time::ZERO, 0, &[0, 0, index % 2, 0], 996);
        switch.receive(Time::ZERO, 0, &[0, 1, 0, 1], 996);
    }
    let left = drain(&mut switch, 0, Time::ZERO, Time::from_us(1));
    assert_eq!(share(&left[..20], 0), 10, "{left:?}");
}

/// Queue 1 with 15 times the weight of queue 0, and 1000 bytes a packet.
fn switch_of_l_and_c() -> Switch {
    let mut port = PortConfig::new([packets(1000), packets(1000)]);
    port.scheduler = Scheduler::WeightedRoundRobin { quantum: Bytes::new(1000) };
    port.queues[1].weight = 15;
    of(vec![port])
}

#[test]
fn the_weighted_round_robin_leaves_the_other_queue_its_share() {
    let mut switch = switch_of_l_and_c();
    for _ in 0..60 {
        switch.receive(Time::ZERO, 0, &[0, 0, 0, 0], 996);
        switch.receive(Time::ZERO, 0, &[0, 1, 0, 1], 996);
    }
    let left: Vec<u8> =
        drain(&mut switch, 0, Time::ZERO, Time::from_us(1)).into_iter().map(|(mark, _)| mark).collect();
    // Fifteen of queue 1, one of queue 0, and so on; then what is left of queue 0.
    let turns: Vec<usize> =
        left.iter().take(64).enumerate().filter(|(_, m)| **m == 0).map(|(i, _)| i).collect();
    assert_eq!(turns, [15, 31, 47, 63]);
    assert!(left[64..].iter().all(|mark| *mark == 0) && left.len() == 120, "{left:?}");
}

#[test]
fn credit_changes_only_while_packets_wait_in_both_queues() {
    let mut switch = switch_of_l_and_c();
    for _ in 0..100 {
        switch.receive(Time::ZERO, 0, &[0, 0, 0, 0], 996);
    }
    let mut turns = Vec::new();
    for at in 1..60 {
        switch.receive(Time::from_us(at), 0, &[0, 1, 0, 1], 996);
        let queue = switch.transmit(Time::from_us(at), 0).map(|out| out.queue);
        if queue == Some(0) {
            turns.push(at);
            assert_eq!(switch.transmit(Time::from_us(at), 0).map(|out| out.queue), Some(1));
        }
        // What queue 0 sends alone is not set against its share.
        for _ in 0..usize::from(at == 20) * 3 {
            assert_eq!(switch.transmit(Time::from_us(at), 0).map(|out| out.queue), Some(0));
        }
    }
    assert_eq!(turns, [16, 31, 46]);
}

#[test]
fn credit_begins_anew_when_nothing_waits_and_costs_nothing_for_what_egress_drops() {
    let mut switch = switch_of_l_and_c();
    let mut first_turn = |dropped: u8| {
        for _ in 0..40 {
            switch.receive(Time::ZERO, 0, &[0, 0, 0, 0], 996);
        }
        for index in 0..40 {
            // Some of queue 1 are dropped before queue 0 has its turn.
            switch.receive(Time::ZERO, 0, &[0, 1, u8::from(index < dropped), 1], 996);
        }
        let left = drain(&mut switch, 0, Time::ZERO, Time::from_us(1));
        left.iter().position(|(mark, _)| *mark == 0)
    };
    assert_eq!(first_turn(0), Some(15));
    assert_eq!(first_turn(7), Some(15));
}

#[test]
fn the_weighted_round_robin_is_for_two_queues() {
    let mut port = PortConfig::new([packets(10)]);
    port.scheduler = Scheduler::WeightedRoundRobin { quantum: Bytes::new(1000) };
    let compiled = compile_str("queues.p4", PROGRAM, None, &Options::default());
    let config = Config { ports: vec![Some(port)], ..Config::default() };
    let refused = Switch::new(Arc::new(compiled.program.unwrap()), &config).unwrap_err().to_string();
    assert_eq!(refused, "port 0 has 1 queues; the weighted round robin is for two");
}

#[test]
fn the_time_shifted_fifo_goes_by_age() {
    let mut port = PortConfig::new([packets(100), packets(100)]);
    port.scheduler = Scheduler::TimeShiftedFifo;
    port.queues[1].time_shift = Time::from_us(50);
    let mut switch = of(vec![port]);
    for us in [0, 10, 20, 90] {
        switch.receive(Time::from_us(us), 0, &[0, 0, 0, us as u8], 0);
    }
    for us in [55, 60, 65, 130] {
        switch.receive(Time::from_us(us), 0, &[0, 1, 0, us as u8], 0);
    }
    // Those of queue 1 count as 50 us older: 5, 10, 15 and 80.
    let left = drain(&mut switch, 0, Time::from_us(200), Time::ZERO);
    let order: Vec<u8> = left.iter().map(|(mark, _)| *mark).collect();
    assert_eq!(order, [0, 55, 60, 10, 65, 20, 130, 90]);
}

#[test]
fn shapers_hold_back_to_the_picosecond() {
    let mut port = PortConfig::new([packets(100), packets(100)]);
    // 8 Mbit/s: 1000 bytes a millisecond; as egress puts 16 bytes on, 1016 are charged.
    port.queues[0].shaping = Some(Shaping { rate: Rate::from_mbps(8), burst: Bytes::new(1000) });
    let mut switch = of(vec![port]);
    for _ in 0..4 {
        switch.receive(Time::ZERO, 0, &[0, 0, 0, 0], 996);
    }
    assert!(switch.transmit(Time::ZERO, 0).is_some());
    assert!(switch.transmit(Time::ZERO, 0).is_none());
    assert_eq!(switch.next_transmit(0), Some(Time::from_us(1016)));
    assert_eq!(switch.take_ready(), Some(0));
    // The other queue is not held back, and says so.
    switch.receive(Time::from_us(5), 0, &[0, 1, 0, 1], 996);
    assert_eq!(switch.take_ready(), Some(0));
    assert_eq!(switch.transmit(Time::from_us(5), 0).unwrap().queue, 1);
    let left = drain(&mut switch, 0, Time::from_us(5), Time::ZERO);
    assert_eq!(left.iter().map(|(_, at)| at.as_us()).collect::<Vec<_>>(), [1016, 2032, 3048]);
}

#[test]
fn a_port_that_is_shaped_lets_its_rate_through() {
    let mut port = PortConfig::new([packets(1000), packets(1000)]);
    port.shaping = Some(Shaping { rate: Rate::from_mbps(8), burst: Bytes::new(2032) });
    let mut switch = of(vec![port]);
    for index in 0..100 {
        switch.receive(Time::ZERO, 0, &[0, index % 2, 0, index % 2], 996);
    }
    let left = drain(&mut switch, 0, Time::ZERO, Time::ZERO);
    // Two at once, for the burst; the other 98 each take 1016 us. A smaller packet may go as soon as it fits.
    let last = left.last().unwrap().1;
    assert!(last <= Time::from_us(98 * 1016) && last > Time::from_us(98 * 1016 - 32), "{last}");
    assert_eq!(left.len(), 100);
}

#[test]
fn ports_are_set_anew_while_they_run() {
    let mut switch = switch_of_one(Scheduler::StrictPriority);
    for priority in [0, 1, 1, 0] {
        switch.receive(Time::ZERO, 0, &[0, priority, 0, priority], 0);
    }
    let mut config = switch.port_config(0).unwrap();
    assert_eq!(config, PortConfig::new([packets(1000), packets(1000)]));
    config.queues.pop();
    config.queues[0].limit = packets(3);
    switch.configure_port(0, &config).unwrap();
    assert_eq!(switch.port_config(0).unwrap(), config);
    // What was in the queue that is gone comes last; nothing was lost, though more waits than would be taken now.
    switch.receive(Time::ZERO, 0, &[0, 0, 0, 7], 0);
    let left = drain(&mut switch, 0, Time::ZERO, Time::ZERO);
    assert_eq!(left.iter().map(|(mark, _)| *mark).collect::<Vec<_>>(), [0, 0, 1, 1]);
    assert_eq!(switch.queue(0, 0).unwrap().1.dropped, 1);
    config.queues[0].weight = 0;
    let refused = switch.configure_port(0, &config).unwrap_err().to_string();
    assert_eq!(refused, "queue 0 of port 0 has the weight 0; give it one above 0");
    let refused = switch.configure_port(9, &PortConfig::new([packets(1)])).unwrap_err().to_string();
    assert_eq!(refused, "there is no port 9; the ports are 0");
}

#[test]
fn a_generator_keeps_its_period_and_changes_it() {
    let mut switch = switch_of_one(Scheduler::StrictPriority);
    let make = |us| Generator { port: 0, template: vec![0, 0, 0, 4], period: Time::from_us(us) };
    assert_eq!(switch.next_wakeup(), None);
    switch.set_generator(Time::from_us(100), 1, Some(make(10))).unwrap();
    let mut due = Vec::new();
    for _ in 0..3 {
        let at = switch.next_wakeup().unwrap();
        switch.advance(at);
        due.push(at.as_us());
    }
    assert_eq!(due, [110, 120, 130]);
    // In the middle of a period a longer one begins: the next packet is 25 us after the last.
    switch.set_generator(Time::from_us(135), 1, Some(make(25))).unwrap();
    assert_eq!(switch.next_wakeup(), Some(Time::from_us(155)));
    // Late by three periods: all are made.
    switch.advance(Time::from_us(210));
    assert_eq!(switch.statistics().generated, 6);
    assert_eq!(switch.generator(1), Some(&make(25)));
    switch.set_generator(Time::from_us(211), 1, None).unwrap();
    assert_eq!(switch.next_wakeup(), None);
    let refused = switch.set_generator(Time::ZERO, 1, Some(make(0))).unwrap_err().to_string();
    assert_eq!(refused, "generator 1 has a period of 0; give it one above 0");
}

#[test]
fn the_controller_gets_packets_and_sends_some() {
    let mut switch = switch_of_one(Scheduler::StrictPriority);
    switch.receive(Time::from_us(7), 0, &[100, 0, 0, 42], 10);
    assert!(switch.has_pending());
    let packet = switch.take_packet_in().unwrap();
    assert_eq!((packet.at, packet.bytes[3], packet.more), (Time::from_us(7), 42, 10));
    assert!(!switch.has_pending());
    switch.packet_out(Time::from_us(8), &[0, 0, 0, 43]).unwrap();
    assert_eq!(switch.transmit(Time::from_us(8), 0).unwrap().packet.bytes()[3], 43);
    for _ in 0..switch::MAX_PACKET_INS + 5 {
        switch.receive(Time::from_us(9), 0, &[100, 0, 0, 0], 0);
    }
    assert_eq!(switch.statistics().dropped, [("too many packet-ins", 5)]);
    let mut without = self::switch(&[&[packets(1)]]);
    let refused = without.packet_out(Time::ZERO, &[0]).unwrap_err().to_string();
    assert_eq!(refused, "this switch has no port for the controller; give it a cpu_port");
}

fn scheduler() -> impl Strategy<Value = Scheduler> {
    prop_oneof![
        Just(Scheduler::StrictPriority),
        (1u64..3000).prop_map(|quantum| Scheduler::DeficitRoundRobin { quantum: Bytes::new(quantum) }),
        (1u64..3000).prop_map(|quantum| Scheduler::WeightedRoundRobin { quantum: Bytes::new(quantum) }),
        Just(Scheduler::TimeShiftedFifo),
    ]
}

fn shaping() -> impl Strategy<Value = Option<Shaping>> {
    prop::option::of(
        (1u64..1000, 1u64..3000)
            .prop_map(|(mbps, burst)| Shaping { rate: Rate::from_mbps(mbps), burst: Bytes::new(burst) }),
    )
}

prop_compose! {
    fn port()(
        scheduler in scheduler(),
        shaping in shaping(),
        queues in prop::collection::vec((1u64..6, 1u32..20, 0u64..100, shaping()), 1..4),
    ) -> PortConfig {
        let queues = queues.into_iter().map(|(limit, weight, shift, shaping)| QueueConfig {
            limit: packets(limit),
            weight,
            time_shift: Time::from_us(shift),
            shaping,
        });
        let mut port = PortConfig { scheduler, shaping, ..PortConfig::new(queues) };
        if matches!(scheduler, Scheduler::WeightedRoundRobin { .. }) {
            port.queues.resize(2, QueueConfig::from(packets(3)));
        }
        port
    }
}

/// Sends what the ready ports have while their wires are free.
fn serve(switch: &mut Switch, now: Time, free: &mut [bool; 2], sent: &mut Vec<(u32, Departure)>) {
    while let Some(number) = switch.take_ready() {
        if std::mem::take(&mut free[number as usize]) {
            sent.extend(switch.transmit(now, number).map(|out| (number, out)));
        }
    }
}

proptest! {
    /// A packet that leaves at once leaves as it would through its queue, and counts as it would there.
    #[test]
    fn at_once_as_through_the_queue(
        ports in prop::collection::vec(port(), 2),
        steps in prop::collection::vec(
            (0u8..3, 0u8..4, prop::sample::select(vec![0u8, 0, 1, 2, 3, 4, 9]), any::<[bool; 2]>()), 1..100),
    ) {
        let (mut queued, mut passed) = (of(ports.clone()), of(ports));
        for switch in [&mut queued, &mut passed] {
            switch.pipeline().replication.create_group(3);
            let node = switch.pipeline().replication.create_node(0, vec![0, 1]);
            switch.pipeline().replication.associate(3, node);
        }
        for (at, (port, priority, what, wires)) in steps.into_iter().enumerate() {
            let now = Time::from_us(at as u64 * 2);
            let packet = vec![if port == 2 { 100 } else { port }, priority, what, 0];
            let (mut expected, mut seen) = (Vec::new(), Vec::new());
            let mut free = wires;
            queued.receive(now, 0, &packet, 50);
            serve(&mut queued, now, &mut free, &mut expected);
            let mut free = wires;
            let packet = passed.pipeline().packet(&packet, 50);
            if let Some(Passed { port, queue, packet }) = passed.forward(now, 0, packet, |n| wires[n as usize]) {
                prop_assert!(std::mem::take(&mut free[port as usize]));
                seen.push((port, Departure { packet, queue, waited: Time::ZERO }));
            }
            serve(&mut passed, now, &mut free, &mut seen);
            prop_assert_eq!(expected, seen);
            prop_assert_eq!(queued.statistics(), passed.statistics());
            for port in 0..2 {
                let at = |switch: &Switch| switch.queue(port, 0).map(|(depth, counts)| (depth, *counts));
                prop_assert_eq!(at(&queued), at(&passed));
                let next = passed.next_transmit(port);
                prop_assert_eq!(queued.next_transmit(port), next);
                // Now and then what waits is sent.
                if wires[port as usize] && next.is_some() {
                    prop_assert_eq!(queued.transmit(now, port), passed.transmit(now, port));
                }
            }
        }
    }

    /// What came in or was made is what went out, was dropped for a counted reason, or is held: with any ports, changed while they run.
    #[test]
    fn no_packet_is_forgotten(
        ports in prop::collection::vec(port(), 2),
        other in port(),
        steps in prop::collection::vec(
            (0u8..12, 0u8..5, 0u8..4, prop::sample::select(vec![0u8, 1, 2, 3, 4, 5, 9])), 1..150),
    ) {
        let mut switch = of(ports);
        switch.pipeline().replication.create_group(3);
        for port in [0, 1, 100] {
            let node = switch.pipeline().replication.create_node(0, vec![port]);
            switch.pipeline().replication.associate(3, node);
        }
        let mut left = 0;
        for (at, (step, port, priority, what)) in steps.into_iter().enumerate() {
            let now = Time::from_us(at as u64 * 3);
            let to = if port == 4 { 100 } else { port };
            match step {
                0..=5 => switch.receive(now, 0, &[to, priority, what, 0], 50),
                6 => switch.packet_out(now, &[to, priority, what, 0]).unwrap(),
                7 => switch.advance(now),
                8 => {
                    let made = Generator { port: 0, template: vec![to, priority, what, 0], period: Time::from_us(7) };
                    switch.set_generator(now, 0, (what > 0).then_some(made)).unwrap();
                }
                9 if what == 9 => switch.configure_port(u32::from(port % 2), &other).unwrap(),
                10 => drop(switch.take_packet_in()),
                _ => if let Some(out) = switch.transmit(now, u32::from(port % 2)) {
                    left += 1;
                    switch.recycle(out.packet);
                }
            }
        }
        let s = switch.statistics();
        let dropped: u64 = s.dropped.iter().map(|(_, count)| count).sum();
        prop_assert_eq!(s.transmitted, left);
        prop_assert_eq!(
            s.received + s.generated + s.packet_outs + s.made,
            s.transmitted + s.packet_ins + dropped + s.held,
            "{:?}", s
        );
        // What is held can be sent, sooner or later.
        for port in 0..2 {
            drain(&mut switch, port, Time::from_ms(1), Time::ZERO);
        }
        prop_assert_eq!(switch.statistics().held, 0);
    }
}

#[test]
fn what_waits_when_another_program_comes_is_dropped_and_counted() {
    let mut switch = switch(&[&[packets(10)], &[packets(10)]]);
    for us in [0, 10, 20] {
        switch.receive(Time::from_us(us), 0, &[1, 0, 0, 0], 996);
    }
    assert!(switch.transmit(Time::from_us(30), 1).is_some());
    let program = switch.pipeline().program().clone();
    let next = dataplane::pipeline::Pipeline::interpreted(program, 0).unwrap();
    switch.replace_program(Time::from_us(30), next, true).unwrap();
    let counts = switch.statistics();
    assert_eq!((counts.received, counts.transmitted, counts.held), (3, 1, 0));
    assert_eq!(counts.dropped, [("program replaced", 2)]);
    assert!(switch.transmit(Time::from_us(40), 1).is_none());
    switch.receive(Time::from_us(50), 0, &[1, 0, 0, 0], 996);
    assert!(switch.transmit(Time::from_us(60), 1).is_some());
}

#[test]
fn what_waits_for_the_controller_when_another_program_comes_is_dropped_and_counted() {
    let mut switch = switch_of_one(Scheduler::StrictPriority);
    for us in [0, 10] {
        switch.receive(Time::from_us(us), 0, &[100, 0, 0, 0], 20);
    }
    assert!(switch.take_packet_in().is_some());
    let program = switch.pipeline().program().clone();
    let next = dataplane::pipeline::Pipeline::interpreted(program, 0).unwrap();
    switch.replace_program(Time::from_us(30), next, true).unwrap();
    assert!(switch.take_packet_in().is_none());
    let counts = switch.statistics();
    assert_eq!((counts.received, counts.packet_ins), (2, 1));
    assert_eq!(counts.dropped, [("program replaced", 1)]);
}

/// Packets that egress drops after much work are not all tried at once, and none is forgotten.
#[test]
fn a_port_whose_packets_are_dropped_in_egress_is_held_back() {
    let dear = "if (h.order.what == 1) { for (bit<32> i in 0..100000) { h.order.pad = h.order.pad + 1; } mark_to_drop(s); }";
    let source = PROGRAM.replace("if (h.order.what == 1) { mark_to_drop(s); }", dear);
    let compiled = compile_str("queues.p4", &source, None, &Options::default());
    let program = Arc::new(compiled.program.unwrap_or_else(|| panic!("{:?}", compiled.diagnostics)));
    let ports = vec![Some(PortConfig::new(vec![packets(100)]))];
    let mut switch = Switch::new(program, &Config { ports, ..Config::default() }).unwrap();
    for _ in 0..20 {
        switch.receive(Time::ZERO, 0, &[0, 0, 1, 0], 60);
    }
    let mut now = Time::ZERO;
    let mut asked = 0;
    while let Some(at) = switch.next_transmit(0) {
        now = now.max(at);
        assert!(switch.transmit(now, 0).is_none());
        asked += 1;
    }
    assert!(asked > 3, "20 packets were tried in {asked} turns");
    assert!(now > Time::from_ms(4), "the port was held back until {now}");
    assert_eq!(switch.statistics().dropped.iter().map(|(_, count)| count).sum::<u64>(), 20);
}

#[test]
fn generators_make_a_limited_number_of_packets() {
    let mut switch = switch(&[&[packets(10)]]);
    let make = |period| Some(Generator { port: 0, template: vec![0; 4], period });
    let refused = switch.set_generator(Time::ZERO, 1, make(Time::from_ps(1))).unwrap_err().to_string();
    assert!(
        refused.starts_with("the generators of a switch make at most 10000000 packets a second"),
        "{refused}"
    );
    switch.set_generator(Time::ZERO, 1, make(Time::from_ns(200))).unwrap();
    switch.set_generator(Time::ZERO, 1, make(Time::from_ns(100))).unwrap();
    switch.set_generator(Time::ZERO, 2, make(Time::from_ns(100))).unwrap_err();
}

#[test]
fn a_packet_out_is_no_longer_than_packets_are() {
    let mut one = switch_of_l_and_c();
    let refused = one.packet_out(Time::ZERO, &vec![0; switch::LONGEST_OUT + 1]).unwrap_err();
    assert!(refused.to_string().contains("is longer than any packet"), "{refused}");
    assert_eq!(one.statistics().packet_outs, 0);
}
