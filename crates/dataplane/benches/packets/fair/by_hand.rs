//! The fair meter as one would write it in Rust, for IPv4: what a flow has stands together, and so does what a meter has.

use dataplane::state::lpm::Lpm;

use crate::by_hand::{be16, be32, be48};
use crate::crc::Crc;
use crate::map::Exact;

const METERS: usize = 1 << 16;
const QUEUES: usize = 1 << 20;
const TCP: u8 = 6;
const UDP: u8 = 17;

const IDLE: u64 = 1 << 36;
const TIMEOUT: u32 = 150_000;
const STALL: u64 = (TIMEOUT as u64) << 16;
const PAUSE: u32 = 786_432;
const UNKNOWN_RTT: u32 = 100_000;
const LEAST_RTT: u32 = 50;
const MOST_RTT: u32 = 400_000;
const LONG_RTT: u32 = 24_000;

const WATCHING: u8 = 0;
const COOLING_1: u8 = 1;
const COOLING_3: u8 = 3;
const TELLING: u8 = 4;
const TOLD: u8 = 5;
const STALLED: u8 = 6;

const NOT_ECT: u8 = 0;
const ECT1: u8 = 1;
const CE: u8 = 3;

/// Factor and shift by sixteenths of the limit.
const PRESSURES: [(u8, u8); 32] = {
    let mut all = [(1, 0); 32];
    (all[0], all[1], all[2], all[3]) = ((1, 3), (1, 3), (1, 3), (1, 3));
    (all[4], all[5], all[6]) = ((1, 2), (1, 1), (3, 2));
    (all[14], all[15], all[16]) = ((9, 3), (4, 0), (128, 0));
    all
};

#[derive(Clone, Copy)]
pub struct Config {
    pub per_byte: u64,
    pub limit: u64,
    pub peak_limit: u64,
    pub begin: u64,
    pub begin_own: u64,
    pub target: u64,
    pub middle: u64,
    pub most: u64,
    pub fill_shift: u8,
    pub first: u32,
    pub mask: u32,
}

impl Config {
    /// What the action `configure` takes.
    pub fn values(&self) -> [u64; 11] {
        let Config { per_byte, limit, peak_limit, begin, begin_own, target, middle, most, .. } = *self;
        let [shift, first, mask] = [self.fill_shift.into(), self.first.into(), self.mask.into()];
        [per_byte, limit, peak_limit, begin, begin_own, target, middle, most, shift, first, mask]
    }
}

#[derive(Clone, Copy, Default)]
pub struct Meter {
    pub total: u64,
    peak: u64,
    slot: u16,
    next: u16,
    here: u16,
    past: u16,
    pub passed: (u64, u64),
    pub dropped: (u64, u64),
    marked: u64,
    told: u64,
}

#[derive(Clone, Copy, Default)]
pub struct Flow {
    pub finish: u64,
    begin: u32,
    rtt: u32,
    lowest: u32,
    reference: u32,
    amount: u32,
    slot: u8,
    phase: u8,
    young: bool,
    opening: bool,
}

pub struct Hand {
    pub forward: Exact,
    wires: Exact,
    pub flows: Exact,
    pub sources: Lpm,
    pub targets: Lpm,
    pub ports: Exact,
    pub meters: Exact,
    pub configs: Vec<Config>,
    pub metered: Vec<Meter>,
    pub queues: Vec<Flow>,
    crc32: Crc,
}

impl Hand {
    /// Without entries.
    pub fn new() -> Hand {
        Hand {
            forward: Exact::new(&[48]),
            wires: Exact::new(&[9]),
            flows: Exact::new(&[64, 56]),
            sources: Lpm::new(32),
            targets: Lpm::new(32),
            ports: Exact::new(&[9]),
            meters: Exact::new(&[16]),
            configs: Vec::new(),
            metered: vec![Meter::default(); METERS],
            queues: vec![Flow::default(); QUEUES],
            crc32: Crc::new(0xedb8_8320, u32::MAX),
        }
    }

    /// Lets the queues of all meters and flows that are in use end at a time.
    pub fn fill(&mut self, end: u64) {
        let totals = self.metered.iter_mut().map(|meter| &mut meter.total);
        let all = totals.chain(self.queues.iter_mut().map(|flow| &mut flow.finish));
        all.filter(|cell| **cell != 0).for_each(|cell| *cell = end);
    }

    pub fn forward(&mut self, now_us: u64, port: u64, frame: &[u8], out: &mut Vec<u8>) -> Option<u32> {
        if frame.len() < 14 {
            return None;
        }
        let to = self.forward.get(&[be48(frame, 0)]).or_else(|| self.wires.get(&[port]))?;
        let (mut start, mut kind) = (14, be16(frame, 12));
        if kind == 0x8100 && frame.len() >= 18 {
            (start, kind) = (18, be16(frame, 16));
        }
        if kind != 0x0800 || frame.len() < start + 20 {
            out.extend_from_slice(frame);
            return Some(to);
        }
        let (source, target) = (be32(frame, start + 12), be32(frame, start + 16));
        let protocol = frame[start + 9];
        let whole = frame[start] & 15 == 5 && be16(frame, start + 6) & 0x1fff == 0;
        let has_ports = whole && matches!(protocol, TCP | UDP) && frame.len() >= start + 24;
        let (mut known, mut ports) = (None, 0);
        if has_ports {
            ports = be32(frame, start + 20);
            let ends = u64::from(source) << 32 | u64::from(target);
            known = self.flows.get(&[ends, u64::from(protocol) << 32 | u64::from(ports)]);
        }
        let known = known
            .or_else(|| self.sources.lookup(&[source.into()]))
            .or_else(|| self.targets.lookup(&[target.into()]))
            .or_else(|| self.ports.get(&[port]));
        let config = known.and_then(|meter| self.meters.get(&[meter.into()]));
        let (Some(number), Some(config)) = (known, config) else {
            out.extend_from_slice(frame);
            return Some(to);
        };
        let config = &self.configs[config as usize];
        let mut key = [0; 13];
        key[..8].copy_from_slice(&frame[start + 12..start + 20]);
        key[8] = protocol;
        key[9..].copy_from_slice(&ports.to_be_bytes());
        let place = config.first.wrapping_add(self.crc32.sum(&key) & config.mask);
        let ecn = frame[start + 1] & 3;
        let tcp = has_ports && protocol == TCP && frame.len() >= start + 40;
        let syn = tcp.then(|| frame[start + 33] & 2 != 0);
        let length = (frame.len() - start) as u64;
        let meter = &mut self.metered[number as usize];
        let Some(flow) = self.queues.get_mut(place as usize) else {
            unreachable!("ranges are of the queues")
        };
        match decide(config, meter, flow, now_us, length, ecn, syn) {
            None => {
                meter.dropped.0 += 1;
                meter.dropped.1 += frame.len() as u64;
                None
            }
            Some(marks) => {
                out.extend_from_slice(frame);
                if marks {
                    let sum = u32::from(!be16(frame, start + 10)) + u32::from(CE - ecn);
                    let sum = !((sum & 0xffff) + (sum >> 16)) as u16;
                    out[start + 10..start + 12].copy_from_slice(&sum.to_be_bytes());
                    out[start + 1] |= CE;
                    meter.marked += 1;
                }
                meter.passed.0 += 1;
                meter.passed.1 += frame.len() as u64;
                Some(to)
            }
        }
    }
}

/// Whether a packet is marked, or `None` if it is dropped; `syn` is `None` if it is not TCP.
#[inline]
fn decide(
    config: &Config,
    meter: &mut Meter,
    flow: &mut Flow,
    now_us: u64,
    length: u64,
    ecn: u8,
    syn: Option<bool>,
) -> Option<bool> {
    let (tcp, syn) = (syn.is_some(), syn == Some(true));
    let cost = (length.wrapping_mul(config.per_byte).wrapping_add(0xffff)) >> 16;
    let now_32 = now_us as u32;
    let now = now_us << 16;

    let fresh = meter.total == 0 || meter.total + IDLE < now;
    let mut all = if fresh { config.begin } else { meter.total.saturating_sub(now) };
    let mut burst = meter.peak.saturating_sub(now);
    let busy = all > config.limit >> 3;
    let (factor, shift) = PRESSURES[(all >> config.fill_shift) as usize & 31];

    let mut own = flow.finish.saturating_sub(now);
    if fresh {
        own = own.max(config.begin_own);
    }
    let level = (own >> 8) as u32;
    let elapsed = now_32.wrapping_sub(flow.begin);
    let flags = flow.young || flow.opening;
    let unseen = !flags && flow.slot == 0 && flow.phase == 0 && flow.rtt == 0 && flow.begin == 0;

    let present = (now_us >> 18) as u16;
    if meter.slot != present {
        let follows = meter.slot.wrapping_add(1) == present;
        meter.past = if follows { meter.here } else { 0 };
        meter.here = if follows { meter.next } else { 0 };
        meter.next = 0;
        meter.slot = present;
    }
    let following = present.wrapping_add(1) as u8;
    if own > 0 && flow.slot != present as u8 && flow.slot != following {
        flow.slot = present as u8;
        meter.here = meter.here.saturating_add(1);
    }
    let count = u64::from(meter.here.max(meter.past).max(1));
    let even = cost.wrapping_mul(count);
    let charge = even.wrapping_mul(factor.into()) >> shift;
    let behind = all > config.limit >> 1 && own + (config.limit >> 5) < all && (tcp || ecn != NOT_ECT);
    let floor = match (own < all, behind) {
        (false, _) => cost,
        (true, false) => even,
        (true, true) => even + (even >> 4),
    };
    let charge = charge.max(floor).min(config.limit);
    let charge_us = (charge >> 8) as u32;

    let mut drops = false;
    let mut marks = false;
    let mut trip = if flow.rtt == 0 { UNKNOWN_RTT } else { flow.rtt };
    let small = charge_us << 1 > trip << 8;
    if syn || flow.opening || elapsed > PAUSE || unseen {
        if syn || !flow.opening {
            flow.young = tcp || ecn != NOT_ECT;
            flow.phase = WATCHING;
        }
        if syn {
            flow.rtt = 0;
        } else if flow.opening {
            flow.rtt = elapsed.clamp(LEAST_RTT, MOST_RTT);
        }
        flow.opening = syn;
        flow.begin = now_32;
        (flow.lowest, flow.reference, flow.amount) = (level, level, 0);
    } else if flow.phase == STALLED {
        if own <= config.most.saturating_sub(STALL) {
            flow.phase = WATCHING;
            flow.begin = now_32;
            (flow.lowest, flow.reference, flow.amount) = (level, level, 0);
        }
    } else {
        let long = trip > LONG_RTT;
        if small && ecn == NOT_ECT {
            trip <<= match trip {
                0..400 => 5,
                400..3000 => 4,
                _ => 2,
            };
        }
        let mut tells = false;
        flow.lowest = flow.lowest.min(level);
        if elapsed >= trip - (trip >> 3) {
            let reached = if long { flow.lowest } else { level };
            let before = flow.reference;
            let rises = reached > before;
            let wide = u64::from(reached);
            if matches!(flow.phase, TELLING | TOLD) {
                flow.phase = if long { COOLING_3 } else { COOLING_1 };
            } else {
                flow.phase = flow.phase.saturating_sub(1);
                let again = flow.phase != COOLING_3 && rises && wide > config.target >> 8;
                if busy && (flow.phase == WATCHING || again) {
                    let rise = reached.saturating_sub(before);
                    let expected = wide + (u64::from(rise) << if long { 2 } else { 3 });
                    tells = rises && expected > config.target >> 8 && wide > config.target >> 10
                        || wide > config.middle >> 8 && reached.wrapping_add(trip << 5) > before;
                }
            }
            flow.reference = if !long {
                reached
            } else if rises {
                before + ((reached - before) >> 1)
            } else {
                before - ((before - reached) >> 1)
            };
            flow.lowest = level;
            flow.begin = now_32;
            flow.amount = 0;
        }
        flow.amount = flow.amount.saturating_add(charge_us);
        if flow.phase == WATCHING {
            tells |= if flow.young {
                let first = if ecn == ECT1 {
                    (trip << 8).wrapping_add(trip << 7)
                } else {
                    (trip << 8).wrapping_sub(trip << 6)
                };
                flow.amount > first
            } else {
                flow.amount > (trip << 9).wrapping_add(charge_us << 1) && own > config.target >> 1
            };
        }
        let again = small && ecn == NOT_ECT && elapsed > trip + TIMEOUT;
        if tells && !again {
            flow.phase = TELLING;
            flow.young = false;
            flow.begin = now_32;
            flow.amount = 0;
        }
        if flow.phase == TELLING {
            if ecn == NOT_ECT {
                flow.phase = TOLD;
                drops = true;
            } else {
                let until = if long { trip - (trip >> 2) } else { trip };
                marks = ecn != CE && now_32.wrapping_sub(flow.begin) <= until;
            }
        }
        if small && busy && own + charge > config.most {
            flow.phase = STALLED;
        }
    }

    if flow.phase == STALLED && flow.slot == present as u8 {
        flow.slot = following;
        meter.next = meter.next.saturating_add(1);
    }

    let peak_cost = (cost >> 1) + (cost >> 3) + (cost >> 5) + (cost >> 7);
    let stays = all + cost > config.limit
        || burst + peak_cost > config.peak_limit
        || flow.phase == STALLED
        || busy && own + charge > config.most
        || own + charge > (config.limit.saturating_sub(all) << 4).wrapping_mul(count)
        || own + charge > config.peak_limit.saturating_sub(burst) << 5;
    let goes = !stays && !drops;
    if goes {
        all += cost;
        burst += peak_cost;
        own = (own + charge).min(config.most);
    } else if !stays {
        meter.told += 1;
    }
    meter.total = now + all;
    meter.peak = now + burst;
    flow.finish = now + own;
    goes.then_some(marks)
}
