//! The fair meter (`systems/meter/fair.p4`) beside the same written by hand: packets of flows that the first table knows, with a meter
//! each or one for all, and packets that only the last table knows. Meters and flows are in the middle of their work: each flow sends
//! some 24 packets a round trip, 5 % more than its share, and is told so again and again.

mod by_hand;

use dataplane::pipeline::Pipeline;
use p4lang::ir::EntryMatch;

use self::by_hand::{Config, Hand};
use crate::by_hand::{be16, be32};
use crate::{BATCH, Figure, drive_by_hand, race_for, rounds, setup};

const FLOWS: usize = 4096;
const MAC: u64 = 0x0200_0000_0001;
const PORT: u32 = 1;
/// Packets arrive 0.1 us after each other.
const PS: u64 = 100_000;
/// Of IP bytes. A flow sends 976 kbit/s.
const RATE_BPS: u64 = 930_000;
/// Ticks (1/65536 us) of 2^20 us: a burst of 1 s, as the controller rounds it.
const LIMIT: u64 = 1 << 36;
/// Packets at the target that both contenders have to treat alike.
const CHECKED: usize = 64 * FLOWS;
/// From a flow's SYN to its next packet.
const RTT_PS: u64 = 10_000_000_000;

#[derive(Clone, Copy, PartialEq)]
enum Case {
    /// Each flow has a meter.
    Each,
    /// All flows, which the first table knows, have one.
    Shared,
    /// All flows have one, which the last table knows.
    Port,
}

impl Case {
    fn meter(self, flow: usize) -> usize {
        if self == Case::Each { flow } else { 0 }
    }

    fn config(self) -> Config {
        let rate = if self == Case::Each { RATE_BPS } else { RATE_BPS * FLOWS as u64 };
        let share = |percent: u64| LIMIT / 100 * percent;
        Config {
            per_byte: (8_000_000u64 << 32).div_ceil(rate),
            limit: LIMIT,
            // 300 ms.
            peak_limit: (300_000 << 16) / 128 * 85,
            begin: LIMIT / 1000 * 715,
            begin_own: share(58),
            target: share(70),
            middle: share(85),
            most: share(95),
            fill_shift: 32,
            first: 0,
            mask: if self == Case::Each { 7 } else { (1 << 15) - 1 },
        }
    }
}

/// TCP frames of 64 bytes of as many flows, a quarter of them with each code point.
fn packets(syn: bool) -> Vec<Vec<u8>> {
    let mut packets = setup::packets(&setup::routes());
    packets.truncate(FLOWS);
    for (number, packet) in packets.iter_mut().enumerate() {
        packet[15] = (number % 4) as u8;
        packet[23] = 6;
        packet[34..36].copy_from_slice(&(1024 + number as u16).to_be_bytes());
        packet[36..38].copy_from_slice(&443u16.to_be_bytes());
        packet[46] = 0x50;
        packet[47] = if syn { 2 } else { 16 };
        setup::set_checksum(packet);
    }
    packets
}

/// Source, destination, protocol, ports.
fn flow(packet: &[u8]) -> [u64; 5] {
    let ports = [be16(packet, 34), be16(packet, 36)].map(u64::from);
    [be32(packet, 26).into(), be32(packet, 30).into(), packet[23].into(), ports[0], ports[1]]
}

/// The program and the loop by hand with the same entries.
fn contenders(packets: &[Vec<u8>], case: Case) -> (Pipeline, Hand) {
    let program = setup::program("../../python/tidegate/systems/meter/fair.p4");
    let mut jit = Pipeline::compiled(program, 1).expect("the fair meter compiles");
    let mut hand = Hand::new();
    let exact = |values: &[u64]| values.iter().map(|value| EntryMatch::Exact((*value).into())).collect();
    setup::add(&mut jit, "forward", exact(&[MAC]), "to_port", &[PORT.into()]);
    hand.forward.insert(&[MAC], PORT);
    if case == Case::Port {
        setup::add(&mut jit, "ports", exact(&[0]), "use", &[0]);
        hand.ports.insert(&[0], 0);
    }
    for (number, packet) in packets.iter().enumerate() {
        let [source, target, protocol, from, to] = flow(packet);
        // Flows that do not come have another port.
        let to = if case == Case::Port { 80 } else { to };
        let meter = case.meter(number) as u64;
        setup::add(&mut jit, "flows4", exact(&[source, target, protocol, from, to]), "use", &[meter]);
        hand.flows.insert(&[source << 32 | target, protocol << 32 | from << 16 | to], meter as u32);
    }
    // Prefixes in 127.0.0.0/8.
    for number in 0..1000u64 {
        let value = 0x7f00_0000 | number << 8;
        for (table, trie) in [("sources4", &mut hand.sources), ("targets4", &mut hand.targets)] {
            let prefix = EntryMatch::Lpm { value: value.into(), prefix_len: 24 };
            setup::add(&mut jit, table, vec![prefix], "use", &[number]);
            trie.insert(&[value], 24, number as u32);
        }
    }
    for meter in 0..=case.meter(FLOWS - 1) {
        let config = case.config();
        let config = Config { first: meter as u32 * (config.mask + 1), ..config };
        setup::add(&mut jit, "meters", exact(&[meter as u64]), "configure", &config.values());
        hand.meters.insert(&[meter as u64], meter as u32);
        hand.configs.push(config);
    }
    (jit, hand)
}

/// Sends packets through both, which must do the same; returns those that leave and those of them that were marked.
fn same(
    (jit, hand): (&mut Pipeline, &mut Hand),
    packets: &[Vec<u8>],
    start: u64,
    count: usize,
) -> (usize, usize) {
    let (mut left, mut marked) = (0, 0);
    let (mut outputs, mut bytes) = (Vec::new(), Vec::new());
    for at in 0..count {
        let packet = &packets[at % packets.len()];
        let now = start + at as u64 * PS;
        jit.process(now, 0, packet, &mut outputs);
        bytes.clear();
        let port = hand.forward(now / 1_000_000, 0, packet, &mut bytes);
        let by_hand = port.map(|port| (port, &bytes[..]));
        assert_eq!(outputs.first().map(|out| (out.port, &out.bytes[..])), by_hand, "packet {at}");
        left += outputs.len();
        marked += usize::from(port.is_some() && bytes[15] != packet[15]);
        outputs.drain(..).for_each(|output| jit.recycle(output.bytes));
    }
    let cells = |name: &str| {
        let register = jit.register_index(name).expect("the fair meter has the register");
        jit.state.registers.get(register).all()
    };
    assert!(hand.metered.iter().map(|meter| meter.total).eq(cells("total")), "queues of meters");
    assert!(hand.queues.iter().map(|flow| flow.finish).eq(cells("finish")), "queues of flows");
    (left, marked)
}

/// Has flows and meters at their target: three quarters of the limit.
fn fill(jit: &mut Pipeline, hand: &mut Hand, now_us: u64) {
    let end = (now_us << 16) + LIMIT / 4 * 3;
    for name in ["total", "finish"] {
        let register = jit.register_index(name).expect("the fair meter has the register");
        let cells = jit.state.registers.get(register).all();
        jit.state.registers.set(register, 0, cells.into_iter().map(|cell| if cell == 0 { 0 } else { end }));
    }
    hand.fill(end);
}

pub fn measure(figures: &mut Vec<Figure>) {
    let names = [
        (
            Case::Each,
            [
                "fair meter of flows, native code",
                "fair meter of flows, by hand",
                "fair meter of flows, native / by hand",
            ],
        ),
        (
            Case::Shared,
            [
                "fair meter of all flows, native code",
                "fair meter of all flows, by hand",
                "fair meter of all flows, native / by hand",
            ],
        ),
        (
            Case::Port,
            [
                "fair meter of a port, native code",
                "fair meter of a port, by hand",
                "fair meter of a port, native / by hand",
            ],
        ),
    ];
    let (syns, packets) = (packets(true), packets(false));
    for (case, [native, by_hand, ratio]) in names {
        let (mut jit, mut hand) = contenders(&packets, case);
        same((&mut jit, &mut hand), &syns, RTT_PS, FLOWS);
        same((&mut jit, &mut hand), &packets, 2 * RTT_PS, FLOWS);
        let start = 2 * RTT_PS + FLOWS as u64 * PS;
        fill(&mut jit, &mut hand, start / 1_000_000);
        let (left, marked) = same((&mut jit, &mut hand), &packets, start, CHECKED);
        assert!(left * 10 > CHECKED * 9, "most packets are forwarded");
        assert!(marked * 8 > CHECKED, "many are marked");
        let start = start + CHECKED as u64 * PS;
        let (mut now_jit, mut now_hand) = (start, start);
        let mut outputs = Vec::new();
        let (mut out, mut pool) = (Vec::new(), Vec::new());
        // What is used is larger than a core's cache, so turns without others in the shared cache are rare.
        let times = race_for(
            4 * rounds(),
            &mut [
                &mut || {
                    for at in 0..BATCH {
                        now_jit += PS;
                        jit.process(now_jit, 0, &packets[at % packets.len()], &mut outputs);
                        for output in outputs.drain(..) {
                            std::hint::black_box(&output.bytes);
                            jit.recycle(output.bytes);
                        }
                    }
                },
                &mut || {
                    drive_by_hand(&packets, (&mut out, &mut pool), |_, bytes, out| {
                        now_hand += PS;
                        hand.forward(now_hand / 1_000_000, 0, bytes, out)
                    })
                },
            ],
        );
        let (jit, hand) = (times[0], times[1]);
        figures.extend([
            Figure { name: native, value: jit, unit: "ns/packet", goal: None },
            Figure { name: native, value: 1e3 / jit, unit: "Mpps", goal: Some(("at least", 5.0)) },
            Figure { name: by_hand, value: hand, unit: "ns/packet", goal: None },
            Figure { name: ratio, value: jit / hand, unit: "x", goal: Some(("at most", 1.3)) },
        ]);
    }
}
