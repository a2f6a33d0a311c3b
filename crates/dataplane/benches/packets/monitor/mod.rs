//! The monitor of flow separation (`systems/separation/monitor.p4`) beside the same written by hand: data of 2048 flows that have a
//! place, the acknowledgments that give a sample for each of them, and packets of flows that only the sketch knows.
//!
//! Frames are copies of a tap that were cut behind TCP's timestamps. Numbers go on from round to round, so that all data is new.

mod by_hand;

use dataplane::pipeline::{Output, Pipeline};
use p4lang::ir::EntryMatch;
use units::SplitMix;

use crate::{Figure, cpu_ns, rounds, setup};
use by_hand::Hand;

const FLOWS: usize = 2048;
/// Segments that wait for their acknowledgments: as many as come in 8 ms.
const BATCH: usize = 1 << 13;
const PAYLOAD: u32 = 1448;
/// A packet comes each microsecond. In picoseconds.
const STEP: u64 = 1_000_000;
/// What each contender is to do with a port's packets: sequence numbers, bytes, what is offered.
const SEES: u8 = 1 | 2 | 8;
const SEQ: usize = 38;
const ACK: usize = 42;
const TIMESTAMPS: usize = 58;

/// Of one flow: data with a window that does not change and timestamps, or its acknowledgment. 66 bytes.
fn frame(flow: u32, data: bool) -> Vec<u8> {
    let mut frame = vec![0u8; 66];
    let ends = [0x0a00_0000 + flow, 0x0b00_0000 + flow.wrapping_mul(77)];
    let ports = [10_000 + flow as u16, 5201];
    let way = usize::from(!data);
    frame[12..24].copy_from_slice(&[8, 0, 0x45, 0, 0, 0, 0, 1, 0x40, 0, 64, 6]);
    let length = 52 + if data { PAYLOAD as u16 } else { 0 };
    frame[16..18].copy_from_slice(&length.to_be_bytes());
    frame[26..30].copy_from_slice(&ends[way].to_be_bytes());
    frame[30..34].copy_from_slice(&ends[1 - way].to_be_bytes());
    frame[34..36].copy_from_slice(&ports[way].to_be_bytes());
    frame[36..38].copy_from_slice(&ports[1 - way].to_be_bytes());
    frame[46..50].copy_from_slice(&[0x80, 0x10, 1, 0]);
    frame[54..58].copy_from_slice(&[1, 1, 8, 10]);
    setup::set_checksum(&mut frame);
    frame
}

/// The same over IPv6, behind so many random extension headers; now and then cut.
fn over_ipv6(frame: &[u8], headers: u32, below: &mut impl FnMut(u64) -> u32) -> Vec<u8> {
    let kinds: Vec<u8> =
        (0..headers).map(|_| [0, 60, 60, 43, 51, 44][below(6) as usize]).chain([frame[23]]).collect();
    let mut chain = Vec::new();
    for pair in kinds.windows(2) {
        let length = below(3) as u8;
        // Mostly whole packets or first fragments.
        let offset = if below(8) == 0 { 1 } else { 0 };
        let (length, size) = match pair[0] {
            44 => (0, 8),
            51 => (length, 4 * (usize::from(length) + 2)),
            _ => (length, 8 * (usize::from(length) + 1)),
        };
        let mut header = vec![0; size];
        (header[0], header[1], header[3]) = (pair[1], length, offset << 3);
        chain.extend(header);
    }
    let address = |at: usize| [[0xfd; 12].as_slice(), &frame[at..at + 4]].concat();
    let above = u16::from_be_bytes([frame[16], frame[17]]) - 20;
    let length = (above + chain.len() as u16).to_be_bytes();
    let head =
        [&[0x60, 0, 0, 0, length[0], length[1], kinds[0], 64], &address(26)[..], &address(30)].concat();
    let mut whole = [&frame[..12], &[0x86, 0xdd], &head, &chain, &frame[34..]].concat();
    if below(8) == 0 {
        let size = whole.len();
        whole.truncate(54 + below(size as u64 - 54) as usize);
    }
    whole
}

/// Data and acknowledgments of a batch: each flow in turn.
struct Packets {
    data: Vec<Vec<u8>>,
    acks: Vec<Vec<u8>>,
}

impl Packets {
    fn of(flows: &[u32]) -> Packets {
        let frames = |data| (0..BATCH).map(|at| frame(flows[at % flows.len()], data)).collect();
        Packets { data: frames(true), acks: frames(false) }
    }

    /// Gives the packets the numbers of a round. Each segment has a timestamp of its own, as at 1 ms and below 10 Mbit/s.
    fn set(&mut self, round: u32, flows: usize) {
        let each = (BATCH / flows) as u32;
        for at in 0..BATCH {
            let number = round * each + (at / flows) as u32;
            let seq = number.wrapping_mul(PAYLOAD);
            let write = |frame: &mut [u8], at: usize, value: u32| {
                frame[at..at + 4].copy_from_slice(&value.to_be_bytes());
            };
            write(&mut self.data[at], SEQ, seq);
            write(&mut self.data[at], TIMESTAMPS, 1 + number);
            write(&mut self.data[at], TIMESTAMPS + 4, 1 + round);
            write(&mut self.acks[at], ACK, seq.wrapping_add(PAYLOAD));
            write(&mut self.acks[at], TIMESTAMPS, 2 + round);
            write(&mut self.acks[at], TIMESTAMPS + 4, 1 + number);
        }
    }
}

fn contenders(long_bytes: u32) -> (Pipeline, Hand) {
    let program = setup::program("../../python/tidegate/systems/separation/monitor.p4");
    let mut jit = Pipeline::compiled(program, 1).expect("the monitor compiles");
    setup::add(&mut jit, "taps", vec![EntryMatch::Exact(0u64.into())], "sees", &[SEES.into()]);
    for (register, value) in [("long_bytes", long_bytes), ("idle_time", 60_000_000), ("waiting_time", 50_000)]
    {
        let register = jit.register_index(register).expect("the monitor has the register");
        jit.state.registers.set(register, 0, [value.into()]);
    }
    (jit, Hand::new(SEES, long_bytes, 60_000_000, 50_000))
}

/// Both must have measured the same, or their times say nothing.
fn check(jit: &Pipeline, hand: &Hand) {
    for (register, cells) in hand.registers() {
        let index = jit.register_index(register).expect("the monitor has the register");
        assert!(jit.state.registers.get(index).all() == cells, "{register}");
    }
    for (message, found) in jit.state.digests.iter().zip(&hand.found) {
        assert_eq!(message.fields, found.fields());
    }
}

/// Packets of few flows with numbers, timestamps and flags that are hardly ever in order, at a tap before a router, one on the way back and
/// one behind it: what is lost, sent again or late is measured the same way, and so is what comes behind extension headers.
fn agree() {
    let (mut jit, mut hand) = contenders(0);
    for (port, sees) in [(1u32, 1u8 | 8), (2, 1), (3, 2 | 4)] {
        setup::add(&mut jit, "taps", vec![EntryMatch::Exact(port.into())], "sees", &[sees.into()]);
        hand.taps[port as usize] = sees;
    }
    let mut rng = SplitMix::new(1);
    let mut below = |end: u64| (rng.next_u64() % end) as u32;
    let mut outputs: Vec<Output> = Vec::new();
    for step in 0..1u32 << 18 {
        let port = 1 + below(3);
        let mut frame = frame(below(8), port != 2);
        // Numbers begin anew in the middle.
        let mut near = |unit: u32| (step >> 8).wrapping_sub(1 << 9).wrapping_add(below(6)).wrapping_mul(unit);
        let words = [(SEQ, near(100)), (ACK, near(100)), (TIMESTAMPS, near(1)), (TIMESTAMPS + 4, near(1))];
        for (at, word) in words {
            frame[at..at + 4].copy_from_slice(&word.to_be_bytes());
        }
        frame[16..18].copy_from_slice(&(52 + 100 * below(2) as u16).to_be_bytes());
        frame[47] = [0x10, 0x10, 0x10, 0x10, 0x11, 0x12, 0x02, 0x14][below(8) as usize];
        setup::set_checksum(&mut frame);
        if below(2) == 0 {
            let headers = below(4) * below(3);
            frame = over_ipv6(&frame, headers, &mut below);
        }
        let now = u64::from(step) * STEP;
        jit.process(now, port, &frame, &mut outputs);
        hand.see(now, port as usize, &frame);
    }
    check(&jit, &hand);
}

/// Least nanoseconds a packet of data and of acknowledgments, native and by hand.
fn race(flows: &[u32], long_bytes: u32) -> ([f64; 2], [f64; 2], u64) {
    let mut packets = Packets::of(flows);
    let (mut jit, mut hand) = contenders(long_bytes);
    let mut best = [[f64::INFINITY; 2]; 2];
    let mut outputs: Vec<Output> = Vec::new();
    let mut now = 0;
    for round in 0..4 * rounds() as u32 {
        packets.set(round, flows.len());
        for (kind, frames) in [&packets.data, &packets.acks].into_iter().enumerate() {
            let mut native = || {
                for (at, frame) in frames.iter().enumerate() {
                    jit.process(now + at as u64 * STEP, 0, frame, &mut outputs);
                }
            };
            let mut by_hand = || {
                for (at, frame) in frames.iter().enumerate() {
                    hand.see(now + at as u64 * STEP, 0, frame);
                }
            };
            let mut timed = |contender: usize, run: &mut dyn FnMut()| {
                let start = cpu_ns();
                run();
                let took = (cpu_ns() - start) / BATCH as f64;
                best[kind][contender] = best[kind][contender].min(took);
            };
            // Who comes first changes: the other finds the packets in the cache.
            if round % 2 == 0 {
                timed(0, &mut native);
                timed(1, &mut by_hand);
            } else {
                timed(1, &mut by_hand);
                timed(0, &mut native);
            }
            now += BATCH as u64 * STEP;
        }
    }
    assert!(outputs.is_empty(), "the monitor drops all that it gets");
    check(&jit, &hand);
    (best[0], best[1], hand.samples())
}

pub fn measure(figures: &mut Vec<Figure>) {
    agree();
    // Flows that find a place at once.
    let mut trial = Hand::new(SEES, 0, 60_000_000, 50_000);
    let flows: Vec<u32> = (0..).filter(|flow| trial.see(0, 0, &frame(*flow, true))).take(FLOWS).collect();
    let (data, acks, samples) = race(&flows, 0);
    let sent = (4 * rounds() * BATCH) as u64;
    assert!(samples * 100 > sent * 99, "nearly each acknowledgment gives a sample");
    let (short, _, samples) = race(&flows, u32::MAX);
    assert_eq!(samples, 0, "no flow is long");
    for ([native, by_hand], names, goal) in [
        (
            data,
            ["monitor, data, native code", "monitor, data, by hand", "monitor, data, native code / by hand"],
            Some(("at most", 1.8)),
        ),
        (
            acks,
            [
                "monitor, ACK with a sample, native code",
                "monitor, ACK with a sample, by hand",
                "monitor, ACK with a sample, native code / by hand",
            ],
            Some(("at most", 1.8)),
        ),
        (
            short,
            [
                "monitor, short flows, native code",
                "monitor, short flows, by hand",
                "monitor, short flows, native code / by hand",
            ],
            None,
        ),
    ] {
        figures.extend([
            Figure { name: names[0], value: native, unit: "ns/packet", goal: None },
            Figure { name: names[1], value: by_hand, unit: "ns/packet", goal: None },
            Figure { name: names[2], value: native / by_hand, unit: "x", goal },
        ]);
    }
}
