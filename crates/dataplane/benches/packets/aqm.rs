//! DualPI2 (`systems/aqm/dualpi2.p4`) beside the same written by hand, for IPv4: classification, shared buffer, PI controller in the
//! program, coupled and native signals, statistics. Packets of all code points wait in a queue of 32 between ingress and egress.

use std::collections::VecDeque;

use dataplane::pipeline::{Output, Pipeline, QueueInfo, Received, Work};
use p4lang::ir::EntryMatch;
use units::SplitMix;
use wire::packet::Written;

use crate::by_hand::{be16, be48};
use crate::map::Exact;
use crate::{BATCH, Figure, race, setup};

const WAITING: usize = 32;
const PORT: u32 = 1;
const MAC: u64 = 0x0200_0000_0001;
const SLOTS: usize = 1024;
const BINS: usize = 512;
const ONE: u64 = 1 << 32;
const MTU: u32 = 1514;
/// At how many waiting bytes a packet is still taken.
const ROOM: u32 = 31_250_000 - MTU;
/// Gains of 0, so that p' stays at a tenth; the controller runs every 16 us all the same.
const CONFIG: Config = Config {
    period: 16,
    target: 15,
    alpha: 0,
    beta: 0,
    k: 32,
    one_by_k: 1 << 15,
    p_max: ONE / 2,
    min_th: 10,
    max_th: 74,
    slope: ONE / 64,
    behind: 2,
    dice: false,
    policed: false,
    spared: 2 * MTU,
};
/// From which time on the PI controller counts in units of 1024 us, and bits of the integral's fraction.
const MOST_TIME: u64 = 0xf_ffff;
const ALPHA_SHIFT: u32 = 20;
const LONG_SHIFT: u32 = 10;
const P: u64 = ONE / 10;
const CE: u8 = 3;

#[derive(Clone, Copy)]
struct Config {
    period: u64,
    target: i64,
    alpha: i64,
    beta: i64,
    k: u64,
    one_by_k: u64,
    p_max: u64,
    min_th: u64,
    max_th: u64,
    slope: u64,
    behind: u32,
    dice: bool,
    policed: bool,
    spared: u32,
}

/// What the buffer of a port's queues has.
#[derive(Clone, Copy)]
struct Buffer {
    room: u32,
    l4s: bool,
    classified: bool,
}

/// 64-byte frames of 4096 flows, a quarter of them with each code point.
fn packets() -> Vec<Vec<u8>> {
    let mut packets = setup::packets(&setup::routes());
    for (number, packet) in packets.iter_mut().enumerate() {
        packet[15] = (number % 4) as u8;
        setup::set_checksum(packet);
    }
    packets
}

struct Waiting {
    frame: Vec<u8>,
    low: bool,
    l4s: bool,
    port: u32,
    enqueued: u64,
    enq_qdepth: u32,
}

struct Hand {
    forward: Exact,
    buffers: Exact,
    aqm: Exact,
    backlog: Vec<u32>,
    delay: Vec<u64>,
    since: Vec<u64>,
    p: Vec<u64>,
    previous: Vec<i64>,
    updated: Vec<u64>,
    signals: Vec<u64>,
    delay_sum: Vec<u64>,
    arrived: Vec<(u64, u64)>,
    overflowed: Vec<u64>,
    forwarded: Vec<(u64, u64)>,
    marked: Vec<u64>,
    dropped: [Vec<u64>; 2],
    bins: Vec<u64>,
    /// By what `buffers` and `aqm` lead to.
    shared: Vec<Buffer>,
    configs: Vec<Config>,
    rng: SplitMix,
    waiting: VecDeque<Waiting>,
    pool: Vec<Vec<u8>>,
}

impl Hand {
    fn receive(&mut self, now: u64, frame: &[u8]) {
        if frame.len() < 34 || be16(frame, 12) != 0x0800 {
            return;
        }
        let Some(port) = self.forward.get(&[be48(frame, 0)]) else { return };
        let Some(buffer) = self.buffers.get(&[port.into()]) else { return };
        let Buffer { room, l4s, classified } = self.shared[buffer as usize];
        let ecn = frame[15] & 3;
        // The operator has classified nothing.
        let low = l4s && !classified && ecn & 1 == 1;
        let slot = (port << 1) as usize | usize::from(low);
        let length = frame.len() as u32;
        self.arrived[slot].0 += 1;
        self.arrived[slot].1 += u64::from(length);
        if self.backlog[slot] + self.backlog[slot ^ 1] > room {
            self.overflowed[slot] += 1;
            return;
        }
        if self.backlog[slot] == 0 {
            self.since[slot] = now;
        }
        self.backlog[slot] += length;
        let mut bytes = self.pool.pop().unwrap_or_default();
        bytes.extend_from_slice(frame);
        let enq_qdepth = self.waiting.len() as u32;
        self.waiting.push_back(Waiting { frame: bytes, low, l4s, port, enqueued: now, enq_qdepth });
    }

    #[inline(always)]
    fn linear(&mut self, config: &Config, slot: usize, likelihood: u64) -> bool {
        if config.dice {
            return u64::from(self.rng.next_u64() as u32) < likelihood;
        }
        self.recur(slot, likelihood)
    }

    #[inline(always)]
    fn squared(&mut self, config: &Config, slot: usize, root: u64) -> bool {
        if config.dice {
            let dice = (self.rng.next_u64() as u32, self.rng.next_u64() as u32);
            return u64::from(dice.0.max(dice.1)) < root;
        }
        self.recur(slot, if root == ONE { ONE } else { root.wrapping_mul(root) >> 32 })
    }

    #[inline(always)]
    fn recur(&mut self, slot: usize, likelihood: u64) -> bool {
        let sum = self.signals[slot] + likelihood;
        let due = sum > ONE;
        self.signals[slot] = if due { sum - ONE } else { sum };
        due
    }

    fn depart(&mut self, now: u64) -> Option<Output> {
        let Waiting { mut frame, low, l4s, port, enqueued, enq_qdepth } = self.waiting.pop_front()?;
        let queue = QueueInfo { enq_qdepth, deq_qdepth: self.waiting.len() as u32 };
        let slot = (port << 1) as usize | usize::from(low);
        let time = now - enqueued;
        let length = frame.len() as u32;
        let waiting = self.backlog[slot] + self.backlog[slot ^ 1];
        let mut waited = time;
        if self.backlog[slot ^ 1] != 0 {
            let longer = now.wrapping_sub(self.since[slot ^ 1]) & 0xffff_ffff_ffff;
            waited = if longer > time && longer <= 0xffff_ffff { longer } else { time };
        }
        if queue.deq_qdepth == 0 {
            self.backlog[slot] = 0;
            self.delay[slot] = 0;
        } else {
            self.backlog[slot] = self.backlog[slot].saturating_sub(length);
            self.delay[slot] = time;
            self.since[slot] = now - time;
        }
        self.delay_sum[slot] += time;
        let bin = match time {
            0..2048 => time >> 4,
            2048..32768 => 112 + (time >> 7),
            _ => (352 + (time >> 11)).min(511),
        };
        self.bins[slot * BINS + bin as usize] += 1;
        let ecn = frame[15] & 3;
        let (mut marks, mut drops) = (false, false);
        if let Some(config) = self.aqm.get(&[port.into()]) {
            let config = self.configs[config as usize];
            let port = port as usize;
            let mut base = self.p[port];
            let mut elapsed = now.wrapping_sub(self.updated[port]) & 0xffff_ffff_ffff;
            if config.period != 0 && elapsed >= config.period {
                let mut shift = ALPHA_SHIFT;
                if elapsed > MOST_TIME {
                    elapsed = (elapsed >> LONG_SHIFT).min(MOST_TIME);
                    shift -= LONG_SHIFT;
                }
                let time = waited.min(MOST_TIME) as i64;
                let integral = elapsed as i64 * config.alpha * (time - config.target);
                let next = base as i64 + (integral >> shift) + config.beta * (time - self.previous[port]);
                base = (next.max(0) as u64).min(ONE);
                (self.p[port], self.previous[port], self.updated[port]) = (base, time, now);
            }
            if waiting < config.spared {
                base = 0;
            }
            let coupled = ((base * config.k) >> 4).min(ONE);
            let scalable = l4s && ecn & 1 == 1;
            let capable = ecn & 2 == 2 || scalable;
            if low {
                let native = match time {
                    _ if queue.deq_qdepth < config.behind => 0,
                    time if time >= config.max_th => ONE,
                    time => time.saturating_sub(config.min_th) * config.slope,
                };
                let likelihood = native.max(coupled);
                if coupled >= ONE || base >= config.p_max {
                    drops = self.squared(&config, slot, base);
                    marks = !drops && self.linear(&config, slot, likelihood);
                } else if scalable {
                    marks = self.linear(&config, slot, likelihood);
                } else if capable || !config.policed {
                    let due = self.squared(&config, slot, (likelihood * config.one_by_k) >> 16);
                    (marks, drops) = (due && capable, due && !capable);
                }
            } else if scalable {
                drops = base >= config.p_max && self.squared(&config, slot, base);
                marks = !drops && self.linear(&config, slot, coupled);
            } else if self.squared(&config, slot, base) {
                drops = !capable || base >= config.p_max;
                marks = !drops;
            }
        }
        if drops {
            self.dropped[usize::from(ecn != 0)][slot] += 1;
            frame.clear();
            self.pool.push(frame);
            return None;
        }
        if marks && matches!(ecn, 1 | 2) {
            self.marked[slot] += 1;
            let sum = u32::from(!be16(&frame, 24)) + u32::from(CE - ecn);
            let sum = !((sum & 0xffff) + (sum >> 16)) as u16;
            frame[24..26].copy_from_slice(&sum.to_be_bytes());
            frame[15] |= CE;
        }
        self.forwarded[slot].0 += 1;
        self.forwarded[slot].1 += u64::from(length);
        Some(Output { port, bytes: frame, zero_len: 0 })
    }
}

/// The program with its queue, in which each packet has how many there were when it came.
struct Native {
    pipeline: Pipeline,
    waiting: VecDeque<(Box<Work>, u32)>,
    copies: Vec<Box<Work>>,
}

impl Native {
    fn receive(&mut self, now: u64, frame: &[u8]) {
        let packet = self.pipeline.packet(frame, 0);
        let received = self.pipeline.receive(now * 1_000_000, 0, packet, &mut self.copies, &mut |_, _| false);
        if let Received::Queue(packet) = received {
            self.waiting.push_back((packet, self.waiting.len() as u32));
        }
    }

    fn depart(&mut self, now: u64) -> Option<Box<Written>> {
        let (packet, enq_qdepth) = self.waiting.pop_front()?;
        let queue = QueueInfo { enq_qdepth, deq_qdepth: self.waiting.len() as u32 };
        self.pipeline.depart(now * 1_000_000, packet, queue, &mut self.copies)
    }
}

/// The program and the loop by hand with the same entries.
fn contenders() -> (Native, Hand) {
    let program = setup::program("../../python/tidegate/systems/aqm/dualpi2.p4");
    let mut jit = Pipeline::compiled(program, 1).expect("DualPI2 compiles");
    let mut hand = Hand {
        forward: Exact::new(&[48]),
        buffers: Exact::new(&[9]),
        aqm: Exact::new(&[9]),
        backlog: vec![0; SLOTS],
        delay: vec![0; SLOTS],
        since: vec![0; SLOTS],
        p: vec![0; SLOTS],
        previous: vec![0; SLOTS],
        updated: vec![0; SLOTS],
        signals: vec![0; SLOTS],
        delay_sum: vec![0; SLOTS],
        arrived: vec![(0, 0); SLOTS],
        overflowed: vec![0; SLOTS],
        forwarded: vec![(0, 0); SLOTS],
        marked: vec![0; SLOTS],
        dropped: [vec![0; SLOTS], vec![0; SLOTS]],
        bins: vec![0; SLOTS * BINS],
        shared: vec![Buffer { room: ROOM, l4s: true, classified: false }],
        configs: vec![CONFIG],
        rng: SplitMix::new(1),
        waiting: VecDeque::new(),
        pool: Vec::new(),
    };
    let exact = |value: u64| vec![EntryMatch::Exact(value.into())];
    setup::add(&mut jit, "forward", exact(MAC), "to_port", &[PORT.into()]);
    setup::add(&mut jit, "buffers", exact(PORT.into()), "manage", &[ROOM.into(), 1, 0]);
    let c = &CONFIG;
    let gains = [c.period, c.target as u64, c.alpha as u64, c.beta as u64, c.k, c.one_by_k, c.p_max];
    let values =
        [&gains[..], &[c.min_th, c.max_th, c.slope, c.behind.into(), 0, 0, c.spared.into()]].concat();
    setup::add(&mut jit, "aqm", exact(PORT.into()), "configure", &values);
    hand.forward.insert(&[MAC], PORT);
    hand.buffers.insert(&[PORT.into()], 0);
    hand.aqm.insert(&[PORT.into()], 0);
    let register = jit.register_index("p").expect("DualPI2 has the register");
    jit.state.registers.set(register, PORT as usize, [P]);
    hand.p[PORT as usize] = P;
    (Native { pipeline: jit, waiting: VecDeque::new(), copies: Vec::new() }, hand)
}

pub fn measure(figures: &mut Vec<Figure>) {
    let packets = packets();
    let (mut native, mut hand) = contenders();
    let (mut left, mut marked) = (0, 0);
    for (now, packet) in packets.iter().enumerate() {
        native.receive(now as u64, packet);
        hand.receive(now as u64, packet);
        if now >= WAITING {
            let (a, b) = (native.depart(now as u64), hand.depart(now as u64));
            let bytes = a.as_ref().map(|packet| packet.bytes());
            assert_eq!(bytes, b.as_ref().map(|out| &out.bytes[..]), "packet {now}");
            left += usize::from(bytes.is_some());
            marked += usize::from(bytes.is_some_and(|bytes| bytes[15] & 3 == CE));
        }
    }
    assert!(left * 10 > packets.len() * 9, "most packets are forwarded");
    assert!(marked * 4 > packets.len(), "those that come with CE, and more");
    let (mut now_native, mut now_hand) = (packets.len() as u64, packets.len() as u64);
    let times = race(&mut [
        &mut || {
            for at in 0..BATCH {
                now_native += 1;
                native.receive(now_native, &packets[at % packets.len()]);
                if let Some(packet) = native.depart(now_native) {
                    std::hint::black_box(packet.bytes());
                    native.pipeline.release(packet);
                }
            }
        },
        &mut || {
            for at in 0..BATCH {
                now_hand += 1;
                hand.receive(now_hand, &packets[at % packets.len()]);
                if let Some(mut out) = hand.depart(now_hand) {
                    std::hint::black_box(&out.bytes);
                    out.bytes.clear();
                    hand.pool.push(out.bytes);
                }
            }
        },
    ]);
    let (native, hand) = (times[0], times[1]);
    figures.extend([
        Figure { name: "DualPI2, native code", value: native, unit: "ns/packet", goal: None },
        Figure {
            name: "DualPI2, native code",
            value: 1e3 / native,
            unit: "Mpps",
            goal: Some(("at least", 5.0)),
        },
        Figure { name: "DualPI2, by hand", value: hand, unit: "ns/packet", goal: None },
        Figure {
            name: "DualPI2, native code / by hand",
            value: native / hand,
            unit: "x",
            goal: Some(("at most", 1.5)),
        },
    ]);
}
