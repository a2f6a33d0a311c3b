//! The paper's meter (`systems/meter/meter.p4`) beside the same written by hand, for IPv4: packets that are known as flows, and
//! packets that only the last table knows. Refill by the time, early marking, second chance.

use dataplane::pipeline::Pipeline;
use dataplane::state::lpm::Lpm;
use p4lang::ir::EntryMatch;
use units::SplitMix;

use crate::by_hand::{be16, be32, be48};
use crate::map::Exact;
use crate::{BATCH, Figure, check, drive, drive_by_hand, race, setup};

const FLOWS: usize = 4096;
const METERS: usize = 1 << 16;
const BURST: u64 = 128 << 26;
/// 100 bytes a microsecond.
const RATE: u64 = 100 << 16;
const PROBABILITY: u64 = 65536 / 5;
const MAC: u64 = 0x0200_0000_0001;
const CE: u8 = 3;

/// 64-byte frames of as many flows, ECT(0).
fn packets() -> Vec<Vec<u8>> {
    let mut packets = setup::packets(&setup::routes());
    packets.truncate(FLOWS);
    for (number, packet) in packets.iter_mut().enumerate() {
        packet[15] = 2;
        packet[34..36].copy_from_slice(&(1024 + number as u16).to_be_bytes());
        packet[36..38].copy_from_slice(&443u16.to_be_bytes());
        setup::set_checksum(packet);
    }
    packets
}

/// What a packet's flow is: addresses, protocol, ports.
fn flow(packet: &[u8]) -> [u64; 5] {
    let ports = [be16(packet, 34), be16(packet, 36)].map(u64::from);
    [be32(packet, 26).into(), be32(packet, 30).into(), packet[23].into(), ports[0], ports[1]]
}

struct Hand {
    forward: Exact,
    flows: Exact,
    sources: Lpm,
    targets: Lpm,
    ports: Exact,
    meters: Exact,
    configs: Vec<Config>,
    level: Vec<u64>,
    updated: Vec<u64>,
    rate: Vec<u32>,
    passed: Vec<(u64, u64)>,
    dropped: Vec<(u64, u64)>,
    marked: Vec<u64>,
    spared: Vec<u64>,
    rng: SplitMix,
}

#[derive(Clone, Copy)]
struct Config {
    burst: u64,
    mark_below: u64,
    mark_probability: u64,
    marks: bool,
    second_chance: bool,
}

impl Hand {
    fn forward(&mut self, now: u64, port: u64, frame: &[u8], out: &mut Vec<u8>) -> Option<u32> {
        if frame.len() < 14 {
            return None;
        }
        let to = self.forward.get(&[be48(frame, 0)])?;
        out.extend_from_slice(frame);
        if be16(frame, 12) != 0x0800 || frame.len() < 34 {
            return Some(to);
        }
        let ecn = frame[15] & 3;
        let (source, target) = (u64::from(be32(frame, 26)), u64::from(be32(frame, 30)));
        let mut known = None;
        let whole = frame[14] & 15 == 5 && be16(frame, 20) & 0x1fff == 0;
        if whole && matches!(frame[23], 6 | 17) && frame.len() >= 38 {
            let ports = u64::from(be32(frame, 34));
            known = self.flows.get(&[source << 32 | target, u64::from(frame[23]) << 32 | ports]);
        }
        let known = known
            .or_else(|| self.sources.lookup(&[source]))
            .or_else(|| self.targets.lookup(&[target]))
            .or_else(|| self.ports.get(&[port]));
        let Some(meter) = known else { return Some(to) };
        let Some(config) = self.meters.get(&[meter.into()]) else { return Some(to) };
        let config = self.configs[config as usize];
        let meter = meter as usize;
        let elapsed = (now.wrapping_sub(self.updated[meter]) & 0xffff_ffff_ffff).min(0x7fff_ffff);
        self.updated[meter] = now;
        let more = elapsed * u64::from(self.rate[meter]);
        let mut tokens = (self.level[meter] + more).min(config.burst);
        let mut marks = false;
        if config.marks && matches!(ecn, 1 | 2) {
            let drawn = self.rng.between(0, 65535);
            marks = tokens < config.mark_below && drawn < config.mark_probability;
        }
        let cost = (frame.len() as u64 - 14) << 16;
        let mut green = tokens >= cost;
        if green {
            tokens -= cost;
        } else if config.second_chance && (marks || ecn == CE) && tokens > cost >> 1 {
            green = true;
            tokens = 0;
            self.spared[meter] += 1;
        }
        self.level[meter] = tokens;
        let count = if green { &mut self.passed[meter] } else { &mut self.dropped[meter] };
        count.0 += 1;
        count.1 += frame.len() as u64;
        if !green {
            out.clear();
            return None;
        }
        if marks {
            self.marked[meter] += 1;
            let sum = u32::from(!be16(frame, 24)) + u32::from(CE - ecn);
            let sum = !((sum & 0xffff) + (sum >> 16)) as u16;
            out[24..26].copy_from_slice(&sum.to_be_bytes());
            out[15] |= CE;
        }
        Some(to)
    }
}

/// The program and the loop by hand with the same entries: of the flows if `by_flow`, else of the port.
fn contenders(packets: &[Vec<u8>], by_flow: bool) -> (Pipeline, Hand) {
    let program = setup::program("../../python/tidegate/systems/meter/meter.p4");
    let mut jit = Pipeline::compiled(program, 1).expect("the meter compiles");
    let mut hand = Hand {
        forward: Exact::new(&[48]),
        flows: Exact::new(&[64, 56]),
        sources: Lpm::new(32),
        targets: Lpm::new(32),
        ports: Exact::new(&[9]),
        meters: Exact::new(&[16]),
        configs: Vec::new(),
        level: vec![0; METERS],
        updated: vec![0; METERS],
        rate: vec![0; METERS],
        passed: vec![(0, 0); METERS],
        dropped: vec![(0, 0); METERS],
        marked: vec![0; METERS],
        spared: vec![0; METERS],
        rng: SplitMix::new(1),
    };
    let exact = |values: &[u64]| values.iter().map(|value| EntryMatch::Exact((*value).into())).collect();
    setup::add(&mut jit, "forward", exact(&[MAC]), "to_port", &[1]);
    hand.forward.insert(&[MAC], 1);
    if !by_flow {
        setup::add(&mut jit, "ports", exact(&[0]), "use", &[0]);
        hand.ports.insert(&[0], 0);
    }
    for (meter, packet) in packets.iter().enumerate() {
        let key = flow(packet);
        // Flows that do not come have another port.
        let own = if by_flow { key[4] } else { 80 };
        let [source, target, protocol, from, _] = key;
        setup::add(&mut jit, "flows4", exact(&[source, target, protocol, from, own]), "use", &[meter as u64]);
        hand.flows.insert(&[source << 32 | target, protocol << 32 | from << 16 | own], meter as u32);
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
    let config = Config {
        burst: BURST,
        mark_below: BURST / 2,
        mark_probability: PROBABILITY,
        marks: true,
        second_chance: true,
    };
    for meter in 0..FLOWS {
        let values = [BURST, BURST / 2, PROBABILITY, 6, 1, 1, 0, 0];
        setup::add(&mut jit, "meters", exact(&[meter as u64]), "configure", &values);
        hand.meters.insert(&[meter as u64], meter as u32);
        hand.configs.push(config);
        for (register, cell) in [("level", BURST), ("rate", RATE)] {
            let register = jit.register_index(register).expect("the meter has the register");
            jit.state.registers.set(register, meter, [cell]);
        }
        (hand.level[meter], hand.rate[meter]) = (BURST, RATE as u32);
    }
    (jit, hand)
}

pub fn measure(figures: &mut Vec<Figure>) {
    let packets = packets();
    let names = [
        (
            true,
            [
                "paper's meter of flows, native code",
                "paper's meter of flows, by hand",
                "paper's meter of flows, native / by hand",
            ],
        ),
        (
            false,
            [
                "paper's meter of a port, native code",
                "paper's meter of a port, by hand",
                "paper's meter of a port, native / by hand",
            ],
        ),
    ];
    for (by_flow, [native, by_hand, ratio]) in names {
        let (mut jit, mut hand) = contenders(&packets, by_flow);
        let mut now = 0;
        check(&mut jit, &packets, |bytes, out| {
            now += 1;
            hand.forward(now - 1, 0, bytes, out)
        });
        let mut a = Vec::new();
        let (mut out, mut pool) = (Vec::new(), Vec::new());
        let times = race(&mut [&mut || drive(&mut jit, &packets, &mut a, BATCH), &mut || {
            drive_by_hand(&packets, (&mut out, &mut pool), |now, bytes, out| hand.forward(now, 0, bytes, out))
        }]);
        let (jit, hand) = (times[0], times[1]);
        figures.extend([
            Figure { name: native, value: jit, unit: "ns/packet", goal: None },
            Figure { name: native, value: 1e3 / jit, unit: "Mpps", goal: Some(("at least", 5.0)) },
            Figure { name: by_hand, value: hand, unit: "ns/packet", goal: None },
            Figure { name: ratio, value: jit / hand, unit: "x", goal: Some(("at most", 1.3)) },
        ]);
    }
}
