//! The monitor's work as one would write it in Rust: what is measured of a direction stands together, and so does a cell that waits.

use num_bigint::BigUint;

use crate::by_hand::{be16, be32};
use crate::crc::Crc;

const PLACES: usize = 1 << 12;
const CELLS: usize = 1 << 16;
const SKETCH: usize = 1 << 14;

const TRACKS: u8 = 1;
const COUNTS: u8 = 2;
const LEAVES: u8 = 4;
const OFFERS: u8 = 8;

const FIN: u8 = 1;
const SYN: u8 = 2;
const RST: u8 = 4;
const ACKS: u8 = 16;
const TCP: u8 = 6;
const UDP: u8 = 17;
const HOP_BY_HOP: u8 = 0;
const ROUTING: u8 = 43;
const FRAGMENT: u8 = 44;
const AUTHENTICATION: u8 = 51;
const DESTINATION: u8 = 60;
/// Extension headers that are walked.
const MOST_EXTENSIONS: u32 = 6;
const STAMP_TIME: u32 = 2_000_000;
/// In place of a cell's time from tap to tap, while the second tap has not seen the packet.
const NOT_LEFT: u32 = u32::MAX;

#[derive(Clone, Copy, Default)]
struct Place {
    signature: u32,
    seen: u32,
}

#[derive(Clone, Copy, Default)]
struct Cell {
    signature: u32,
    time: u32,
    queued: u32,
}

#[derive(Clone, Copy, Default)]
struct Direction {
    bytes: u64,
    rtt_sum: u64,
    left: u32,
    right: u32,
    packets: u32,
    stamp: u32,
    stamp_time: u32,
    stamp_seen: u32,
    stamp_least: u32,
    rtt_least: u32,
    rtt_base: u32,
    rtt_last: u32,
    rtt_samples: u32,
    /// The last acknowledgment number, and below it the window.
    acks: u64,
    ended: u8,
    resent: u32,
    offered: u64,
    queued_sum: u64,
    queued_last: u32,
    queued_samples: u32,
}

/// A flow that has a place now, as it is told to a controller.
pub struct Found {
    place: usize,
    low: u128,
    high: u128,
    ports: (u16, u16),
    protocol: u8,
    six: bool,
}

impl Found {
    /// As in the program's digest.
    pub fn fields(&self) -> Vec<BigUint> {
        let Found { place, low, high, ports: (low_port, high_port), protocol, six } = *self;
        let ports = [low_port, high_port].map(BigUint::from);
        let ends = [place.into(), low.into(), high.into()];
        ends.into_iter().chain(ports).chain([protocol.into(), u8::from(six).into()]).collect()
    }
}

struct Tcp {
    seq: u32,
    ack: u32,
    flags: u8,
    window: u16,
    takes: u32,
    stamps: Option<(u32, u32)>,
    has_sack: bool,
}

pub struct Hand {
    /// By port.
    pub taps: Vec<u8>,
    crc32: Crc,
    crc16: Crc,
    places: [Vec<Place>; 2],
    directions: Vec<Direction>,
    waiting: [Vec<Cell>; 2],
    sketch: [Vec<u32>; 3],
    sketched: u64,
    no_place: u32,
    too_many_headers: u32,
    no_cell: u32,
    long_bytes: u32,
    idle_time: u32,
    waiting_time: u32,
    pub found: Vec<Found>,
}

impl Hand {
    pub fn new(sees: u8, long_bytes: u32, idle_time: u32, waiting_time: u32) -> Hand {
        Hand {
            taps: vec![sees; 512],
            crc32: Crc::new(0xedb8_8320, u32::MAX),
            crc16: Crc::new(0xa001, 0),
            places: [vec![Place::default(); PLACES], vec![Place::default(); PLACES]],
            directions: vec![Direction::default(); 4 * PLACES],
            waiting: [vec![Cell::default(); CELLS], vec![Cell::default(); CELLS]],
            sketch: [vec![0; SKETCH], vec![0; SKETCH], vec![0; SKETCH]],
            sketched: 0,
            no_place: 0,
            too_many_headers: 0,
            no_cell: 0,
            long_bytes,
            idle_time,
            waiting_time,
            found: Vec::new(),
        }
    }

    /// A copy that a tap has made; `now` in picoseconds. Whether its flow has a place.
    pub fn see(&mut self, now: u64, port: usize, frame: &[u8]) -> bool {
        let sees = self.taps[port];
        if sees == 0 || frame.len() < 14 {
            return false;
        }
        let now = (now / 1_000_000) as u32;
        let (mut at, mut kind) = (14, be16(frame, 12));
        for _ in 0..2 {
            if matches!(kind, 0x8100 | 0x88a8) && frame.len() >= at + 4 {
                kind = be16(frame, at + 2);
                at += 4;
            }
        }
        let (low, high, length, mut payload, protocol, six);
        let above;
        match kind {
            0x0800 if frame.len() >= at + 20 => {
                let header = usize::from(frame[at] & 15) * 4;
                length = u32::from(be16(frame, at + 2));
                payload = length.wrapping_sub(header as u32);
                protocol = frame[at + 9];
                six = false;
                (low, high) = (u128::from(be32(frame, at + 12)), u128::from(be32(frame, at + 16)));
                above =
                    if header >= 20 && be16(frame, at + 6) & 0x1fff == 0 { Some(at + header) } else { None };
            }
            0x86dd if frame.len() >= at + 40 => {
                let address = |at: usize| {
                    (0..4).fold(0u128, |all, word| all << 32 | u128::from(be32(frame, at + 4 * word)))
                };
                payload = u32::from(be16(frame, at + 4));
                length = payload + 40;
                six = true;
                (low, high) = (address(at + 8), address(at + 24));
                let inner;
                (protocol, inner, above) = self.behind_ipv6(frame, at + 40, frame[at + 6], sees);
                // The rest of what was walked is no payload.
                payload = payload.wrapping_sub((inner - at - 40) as u32);
            }
            _ => return false,
        }
        let (mut tcp, mut ports) = (None, (0, 0));
        match above {
            Some(at) if protocol == TCP && frame.len() >= at + 20 => {
                let header = u32::from(frame[at + 12] >> 4) * 4;
                payload = payload.wrapping_sub(header);
                let stamps = header >= 32 && frame.len() >= at + 32 && be32(frame, at + 20) == 0x0101_080a;
                let flags = frame[at + 13];
                ports = (be16(frame, at), be16(frame, at + 2));
                tcp = Some(Tcp {
                    seq: be32(frame, at + 4),
                    ack: be32(frame, at + 8),
                    flags,
                    window: be16(frame, at + 14),
                    takes: payload.wrapping_add(u32::from(flags & (SYN | FIN) != 0)),
                    stamps: stamps.then(|| (be32(frame, at + 24), be32(frame, at + 28))),
                    has_sack: header > if stamps { 32 } else { 20 },
                });
            }
            Some(at) if protocol == UDP && frame.len() >= at + 4 => {
                ports = (be16(frame, at), be16(frame, at + 2));
            }
            _ => {}
        }
        let backwards = (low, ports.0) > (high, ports.1);
        let (low, high, ports) = if backwards { (high, low, (ports.1, ports.0)) } else { (low, high, ports) };
        let signature = Hand::sum(&self.crc32, low, high, ports, protocol, six).max(1);
        let one = signature as usize % PLACES;
        let place = if self.places[0][one].signature == signature {
            one
        } else {
            let other = Hand::sum(&self.crc16, low, high, ports, protocol, six);
            let two = other as usize % PLACES;
            if self.places[1][two].signature == signature {
                two + PLACES
            } else {
                if !self.is_long(signature, other, length, sees & COUNTS != 0) {
                    return false;
                }
                let free = |at: Place| {
                    at.signature == 0 && at.seen == 0 || now.wrapping_sub(at.seen) > self.idle_time
                };
                let place = if free(self.places[0][one]) {
                    one
                } else if free(self.places[1][two]) {
                    two + PLACES
                } else {
                    self.no_place += 1;
                    return false;
                };
                self.directions[2 * place..2 * place + 2].fill(Direction::default());
                self.found.push(Found { place, low, high, ports, protocol, six });
                place
            }
        };
        self.places[place / PLACES][place % PLACES] = Place { signature, seen: now };
        let forth = 2 * place + usize::from(backwards);
        let direction = &mut self.directions[forth];
        if sees & COUNTS != 0 {
            direction.bytes += u64::from(length);
            direction.packets = direction.packets.wrapping_add(1);
        }
        let Some(tcp) = tcp else {
            if sees & OFFERS != 0 && protocol != TCP {
                direction.offered += u64::from(length);
            }
            return true;
        };
        if sees & TRACKS != 0 {
            if tcp.flags & (SYN | FIN | RST) != 0 {
                direction.ended = u8::from(tcp.flags & SYN == 0);
                if tcp.flags & RST != 0 {
                    self.directions[forth ^ 1].ended = 1;
                }
            }
            let queued = if sees & (OFFERS | COUNTS) == OFFERS { NOT_LEFT } else { 0 };
            self.numbers(now, signature, forth, &tcp, queued);
            if let Some(stamps) = tcp.stamps {
                self.timestamps(now, forth, tcp.flags, stamps);
            }
        }
        if sees & LEAVES != 0 && tcp.takes != 0 {
            self.between(now, signature, forth, &tcp);
        }
        true
    }

    /// Walks extension headers from the first on: the protocol behind them, where it begins, and the same if ports are there.
    fn behind_ipv6(
        &mut self,
        frame: &[u8],
        mut at: usize,
        mut protocol: u8,
        sees: u8,
    ) -> (u8, usize, Option<usize>) {
        for walked in 0.. {
            if !matches!(protocol, HOP_BY_HOP | ROUTING | FRAGMENT | AUTHENTICATION | DESTINATION) {
                return (protocol, at, Some(at));
            }
            if walked == MOST_EXTENSIONS {
                self.too_many_headers += u32::from(sees & COUNTS != 0);
                break;
            }
            if frame.len() < at + 4 {
                break;
            }
            let length = usize::from(frame[at + 1]);
            let size = match protocol {
                FRAGMENT => 8,
                AUTHENTICATION => 4 * (length + 2),
                _ => 8 * (length + 1),
            };
            if frame.len() < at + size {
                break;
            }
            let later = protocol == FRAGMENT && be16(frame, at + 2) >> 3 != 0;
            (protocol, at) = (frame[at], at + size);
            if later {
                break;
            }
        }
        (protocol, at, None)
    }

    #[inline]
    fn sum(crc: &Crc, low: u128, high: u128, ports: (u16, u16), protocol: u8, six: bool) -> u32 {
        if six {
            let mut data = [0; 37];
            data[..16].copy_from_slice(&low.to_be_bytes());
            data[16..32].copy_from_slice(&high.to_be_bytes());
            data[32..34].copy_from_slice(&ports.0.to_be_bytes());
            data[34..36].copy_from_slice(&ports.1.to_be_bytes());
            data[36] = protocol;
            return crc.sum(&data);
        }
        let mut data = [0; 13];
        data[..4].copy_from_slice(&(low as u32).to_be_bytes());
        data[4..8].copy_from_slice(&(high as u32).to_be_bytes());
        data[8..10].copy_from_slice(&ports.0.to_be_bytes());
        data[10..12].copy_from_slice(&ports.1.to_be_bytes());
        data[12] = protocol;
        crc.sum(&data)
    }

    fn is_long(&mut self, signature: u32, other: u32, length: u32, counted: bool) -> bool {
        if self.long_bytes == 0 || !counted {
            return self.long_bytes == 0;
        }
        let cells = [signature as usize % SKETCH, (signature >> 18) as usize, other as usize % SKETCH];
        let mut least = u32::MAX;
        for (row, cell) in self.sketch.iter_mut().zip(cells) {
            row[cell] = row[cell].saturating_add(length);
            least = least.min(row[cell]);
        }
        self.sketched += u64::from(length);
        least >= self.long_bytes
    }

    #[inline]
    fn first_cell(&self, flow: u32, direction: usize, number: u32) -> (u32, usize) {
        let signature = self.crc32.sum(&waiting_key(flow, direction, number)).max(1);
        (signature, signature.wrapping_add(flow).wrapping_add(direction as u32) as usize % CELLS)
    }

    #[inline]
    fn second_cell(&self, flow: u32, direction: usize, number: u32) -> usize {
        self.crc16.sum(&waiting_key(flow, direction, number)) as usize % CELLS
    }

    /// Where a number waits.
    #[inline]
    fn waits(&mut self, flow: u32, direction: usize, number: u32) -> Option<&mut Cell> {
        let (signature, one) = self.first_cell(flow, direction, number);
        if self.waiting[0][one].signature == signature {
            return Some(&mut self.waiting[0][one]);
        }
        let two = self.second_cell(flow, direction, number);
        Some(&mut self.waiting[1][two]).filter(|cell| cell.signature == signature)
    }

    fn numbers(&mut self, now: u32, flow: u32, forth: usize, tcp: &Tcp, queued: u32) {
        let Tcp { seq, ack, flags, window, takes, has_sack, .. } = *tcp;
        if takes != 0 && flags & RST == 0 {
            let end = seq.wrapping_add(takes);
            let direction = &mut self.directions[forth];
            let known = direction.left != 0 || direction.right != 0;
            let ahead = seq.wrapping_sub(direction.right);
            let opens = flags & SYN != 0 && direction.right.wrapping_sub(seq).wrapping_sub(1) >= 0x1_0000;
            if opens || !known || ahead < 1 << 31 {
                if !known || ahead != 0 || opens {
                    direction.left = seq;
                }
                direction.right = end;
                let patience = self.waiting_time;
                let (signature, one) = self.first_cell(flow, forth & 1, end);
                let free = |cell: &Cell| {
                    cell.signature == signature
                        || cell.signature == 0 && cell.time == 0
                        || now.wrapping_sub(cell.time) > patience
                };
                let cell = Cell { signature, time: now, queued };
                if free(&self.waiting[0][one]) {
                    self.waiting[0][one] = cell;
                } else {
                    let two = self.second_cell(flow, forth & 1, end);
                    if free(&self.waiting[1][two]) {
                        self.waiting[1][two] = cell;
                    } else {
                        self.no_cell += 1;
                    }
                }
            } else {
                if end.wrapping_sub(direction.right) < 1 << 31 {
                    direction.right = end;
                }
                direction.left = direction.right;
                direction.resent += 1;
                if let Some(cell) = self.waits(flow, forth & 1, end) {
                    (cell.signature, cell.time) = (0, 0);
                }
            }
        }
        if flags & ACKS == 0 || flags & RST != 0 {
            return;
        }
        let acks = u64::from(ack) << 16 | u64::from(window);
        let before = std::mem::replace(&mut self.directions[forth].acks, acks);
        let back = &mut self.directions[forth ^ 1];
        if back.left == 0 && back.right == 0 {
            return;
        }
        let (more, all) = (ack.wrapping_sub(back.left), back.right.wrapping_sub(back.left));
        if more != 0 && more <= all {
            back.left = ack;
            if let Some(cell) = self.waits(flow, (forth ^ 1) & 1, ack) {
                let (took, queued) = (now.wrapping_sub(cell.time), cell.queued);
                (cell.signature, cell.time) = (0, 0);
                self.directions[forth ^ 1].sample(took, queued);
            }
        } else if more == 0 && all != 0 && takes == 0 && (before == acks || has_sack) {
            back.left = back.right;
        }
    }

    fn timestamps(&mut self, now: u32, forth: usize, flags: u8, (value, echo): (u32, u32)) {
        let back = &mut self.directions[forth ^ 1];
        let waits = back.stamp != 0 || back.stamp_time != 0;
        let beyond = echo.wrapping_sub(back.stamp);
        if waits && flags & ACKS != 0 && beyond < 1 << 31 {
            if beyond == 0 {
                let took = now.wrapping_sub(back.stamp_time).max(1);
                if back.stamp_least == 0 || took < back.stamp_least {
                    back.stamp_least = took;
                }
            }
            (back.stamp, back.stamp_time) = (0, 0);
        }
        let own = &mut self.directions[forth];
        let ahead = value.wrapping_sub(own.stamp_seen);
        if ahead != 0 && (ahead < 1 << 31 || own.stamp_seen == 0 || flags & SYN != 0) {
            let is_first = own.stamp_seen != 0 || flags & SYN != 0;
            own.stamp_seen = value;
            let none = own.stamp == 0 && own.stamp_time == 0;
            if is_first && (none || now.wrapping_sub(own.stamp_time) > STAMP_TIME) {
                (own.stamp, own.stamp_time) = (value, now);
            }
        }
    }

    fn between(&mut self, now: u32, flow: u32, forth: usize, tcp: &Tcp) {
        if let Some(cell) = self.waits(flow, forth & 1, tcp.seq.wrapping_add(tcp.takes)) {
            cell.queued = now.wrapping_sub(cell.time);
            let queued = cell.queued;
            let direction = &mut self.directions[forth];
            direction.queued_last = queued;
            direction.queued_sum += u64::from(queued);
            direction.queued_samples += 1;
        }
    }

    pub fn samples(&self) -> u64 {
        self.directions.iter().map(|direction| u64::from(direction.rtt_samples)).sum()
    }

    /// What the program's registers of these names must have.
    pub fn registers(&self) -> Vec<(&'static str, Vec<u64>)> {
        let pair = |high: u32, low: u32| u64::from(high) << 32 | u64::from(low);
        let of = |get: fn(&Direction) -> u64| self.directions.iter().map(get).collect();
        let places = |stage: usize| self.places[stage].iter().map(|at| pair(at.signature, at.seen)).collect();
        let cells = |stage: usize| self.waiting[stage].iter().map(|at| pair(at.signature, at.time)).collect();
        let row = |row: usize| self.sketch[row].iter().map(|cell| u64::from(*cell)).collect();
        vec![
            ("flows_1", places(0)),
            ("flows_2", places(1)),
            ("waiting_1", cells(0)),
            ("waiting_2", cells(1)),
            ("sketch_1", row(0)),
            ("sketch_2", row(1)),
            ("sketch_3", row(2)),
            ("sketched", vec![self.sketched]),
            ("no_place", vec![self.no_place.into()]),
            ("too_many_headers", vec![self.too_many_headers.into()]),
            ("no_cell", vec![self.no_cell.into()]),
            ("bytes", of(|at| at.bytes)),
            ("packets", of(|at| at.packets.into())),
            ("ended", of(|at| at.ended.into())),
            ("offered", of(|at| at.offered)),
            ("resent", of(|at| at.resent.into())),
            ("ranges", of(|at| u64::from(at.left) << 32 | u64::from(at.right))),
            ("acks", of(|at| at.acks)),
            ("rtt_least", of(|at| at.rtt_least.into())),
            ("rtt_base", of(|at| at.rtt_base.into())),
            ("rtt_last", of(|at| at.rtt_last.into())),
            ("rtt_sum", of(|at| at.rtt_sum)),
            ("rtt_samples", of(|at| at.rtt_samples.into())),
            ("stamps", of(|at| u64::from(at.stamp) << 32 | u64::from(at.stamp_time))),
            ("stamp_seen", of(|at| at.stamp_seen.into())),
            ("stamp_least", of(|at| at.stamp_least.into())),
            ("queued_sum", of(|at| at.queued_sum)),
            ("queued_last", of(|at| at.queued_last.into())),
            ("queued_samples", of(|at| at.queued_samples.into())),
        ]
    }
}

/// What a waiting number is found by.
fn waiting_key(flow: u32, direction: usize, number: u32) -> [u8; 12] {
    let mut data = [0; 12];
    data[..4].copy_from_slice(&flow.to_be_bytes());
    data[7] = direction as u8;
    data[8..].copy_from_slice(&number.to_be_bytes());
    data
}

impl Direction {
    fn sample(&mut self, took: u32, queued: u32) {
        let time = took.max(1);
        if self.rtt_least == 0 || time < self.rtt_least {
            self.rtt_least = time;
        }
        if queued != NOT_LEFT {
            let rest = if took > queued { took - queued } else { 1 };
            if self.rtt_base == 0 || rest < self.rtt_base {
                self.rtt_base = rest;
            }
        }
        self.rtt_last = time;
        self.rtt_sum += u64::from(time);
        self.rtt_samples += 1;
    }
}
