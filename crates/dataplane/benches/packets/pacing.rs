//! Switch-driven pacing (`systems/pacing/pacing.p4`) beside the same written by hand: data of 4096 members of a managed link, and
//! packets to a port that is not managed. Joins, leaves and notices are rare, and not measured.

use control::At;
use dataplane::pipeline::Pipeline;
use p4lang::ir::EntryMatch;

use crate::by_hand::{be16, be32, be48};
use crate::map::Exact;
use crate::{BATCH, Figure, check, drive, drive_by_hand, race, setup};

const MAC: u64 = 0x0200_0000_0001;
const PORT: u32 = 1;
const SYN: u8 = 2;
const ACK: u8 = 16;
const CAPACITY: u32 = 99_750;
/// A join with weight 1: type, length, version and kind, link, rate, weight, sequence, check.
const JOIN: [u8; 12] = [94, 12, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0];
const WAY: usize = 65_536;

/// TCP frames of 64 bytes of as many flows, without payload.
fn packets(flags: u8, option: Option<[u8; 12]>) -> Vec<Vec<u8>> {
    let mut packets = setup::packets(&setup::routes());
    for (number, packet) in packets.iter_mut().enumerate() {
        packet[23] = 6;
        packet[34..36].copy_from_slice(&(number as u16 + 1024).to_be_bytes());
        packet[36..38].copy_from_slice(&80u16.to_be_bytes());
        packet[46] = 0x50;
        packet[47] = flags;
        if let Some(option) = option {
            packet.splice(34..34, option);
            packet[14] = 0x48;
            packet[16..18].copy_from_slice(&62u16.to_be_bytes());
        }
        setup::set_checksum(packet);
    }
    packets
}

/// What it is when nothing happens: a member sends.
struct Hand {
    forward: Exact,
    wires: Exact,
    capacity: Vec<u32>,
    source: Vec<u64>,
    target: Vec<u32>,
    member: Vec<u32>,
    seen: Vec<u64>,
    other_bytes: Vec<u32>,
    backlog: Vec<u32>,
    table: [u32; 256],
}

impl Hand {
    fn crc32(&self, source: u64, target: u32) -> u32 {
        let mut sum = !0u32;
        for byte in source.to_be_bytes().into_iter().chain(target.to_be_bytes()) {
            sum = sum >> 8 ^ self.table[usize::from(sum as u8 ^ byte)];
        }
        !sum
    }

    fn place(&self, source: u64, target: u32) -> Option<usize> {
        let spread = self.crc32(source, target) as usize;
        let places = [
            spread & 0xffff,
            WAY + (spread >> 16),
            2 * WAY + ((((spread >> 7) * 0x9e37) as u32 >> 3) as usize & 0xffff),
        ];
        places.into_iter().find(|at| self.source[*at] == source && self.target[*at] == target)
    }

    /// `None` for what does not go anywhere; panics for what is rare.
    fn forward(&mut self, now: u64, frame: &[u8], out: &mut Vec<u8>) -> Option<u32> {
        if frame.len() < 14 {
            return None;
        }
        let to = self.forward.get(&[be48(frame, 0)]).or_else(|| self.wires.get(&[0]))?;
        out.extend_from_slice(frame);
        let mut start = 14;
        let mut kind = be16(frame, 12);
        if kind == 0x8100 && frame.len() >= 18 {
            (start, kind) = (18, be16(frame, 16));
        }
        if kind != 0x0800 || frame.len() < start + 20 || frame[start] >> 4 != 4 {
            return Some(to);
        }
        let waits = &mut self.backlog[to as usize];
        if *waits == 0 || 1 < *waits {
            *waits = 1;
        }
        let managed = self.capacity[to as usize] != 0;
        let header = usize::from(frame[start] & 15) * 4;
        let tcp = start + header;
        let is_tcp = frame[start + 9] == 6 && be16(frame, start + 6) & 0x1fff == 0 && frame.len() >= tcp + 20;
        if !is_tcp {
            self.other_bytes[to as usize] += if managed { frame.len() as u32 } else { 0 };
            return Some(to);
        }
        let flags = frame[tcp + 13];
        let answers = flags & 0x12 == 0x12 || flags & 4 != 0;
        if answers && self.capacity[0] != 0 {
            unreachable!("no resets and answers are sent");
        }
        if !managed {
            return Some(to);
        }
        let source = u64::from(be32(frame, start + 12)) << 32 | u64::from(be32(frame, tcp));
        let Some(place) = self.place(source, be32(frame, start + 16)) else {
            self.other_bytes[to as usize] += frame.len() as u32;
            return Some(to);
        };
        self.seen[place] = now;
        let was = self.member[place];
        let changes = flags & 5 != 0 || header > 20 || was >> 25 & 3 != 2 || was & 0x1ff != to;
        if changes {
            unreachable!("nothing changes");
        }
        Some(to)
    }
}

fn contenders(managed: bool) -> (Pipeline, Hand) {
    let program = setup::program("../../python/tidegate/systems/pacing/pacing.p4");
    let mut jit = Pipeline::compiled(program, 1).expect("the program compiles");
    let exact = |value: u64| vec![EntryMatch::Exact(value.into())];
    setup::add(&mut jit, "forward", exact(MAC), "to_port", &[PORT.into()]);
    let mut table = [0u32; 256];
    for (byte, entry) in table.iter_mut().enumerate() {
        *entry = (0..8).fold(byte as u32, |sum, _| sum >> 1 ^ if sum & 1 == 1 { 0xedb8_8320 } else { 0 });
    }
    let mut hand = Hand {
        forward: Exact::new(&[48]),
        wires: Exact::new(&[9]),
        capacity: vec![0; 512],
        source: vec![0; 3 * WAY],
        target: vec![0; 3 * WAY],
        member: vec![0; 3 * WAY],
        seen: vec![0; 3 * WAY],
        other_bytes: vec![0; 512],
        backlog: vec![0; 512],
        table,
    };
    hand.forward.insert(&[MAC], PORT);
    if managed {
        let capacity = jit.register_index("capacity").expect("the program has it");
        jit.register_write(capacity, At::Index(PORT), &CAPACITY.into()).expect("it fits");
        hand.capacity[PORT as usize] = CAPACITY;
        let mut out = Vec::new();
        for packet in packets(SYN, Some(JOIN)).iter().chain(&packets(ACK, None)) {
            jit.process(0, 0, packet, &mut out);
        }
        for (register, cells) in [("member_dst", &mut hand.target), ("member", &mut hand.member)] {
            let register = jit.register_index(register).expect("the program has it");
            for (cell, value) in cells.iter_mut().zip(jit.state.registers.get(register).all()) {
                *cell = value as u32;
            }
        }
        let register = jit.register_index("member_src").expect("the program has it");
        hand.source.copy_from_slice(&jit.state.registers.get(register).all());
    }
    (jit, hand)
}

pub fn measure(figures: &mut Vec<Figure>) {
    let names = [
        (
            true,
            ["pacing, native code", "pacing, by hand", "pacing, native code / by hand"],
            Some(("at most", 1.5)),
        ),
        (
            false,
            [
                "pacing, port not managed, native code",
                "pacing, port not managed, by hand",
                "pacing, port not managed, native code / by hand",
            ],
            None,
        ),
    ];
    for (managed, [native, by_hand, ratio], goal) in names {
        let packets = packets(ACK, None);
        let (mut jit, mut hand) = contenders(managed);
        let mut now = 0;
        check(&mut jit, &packets, |bytes, out| {
            now += 1;
            hand.forward(now, bytes, out)
        });
        let mut a = Vec::new();
        let (mut out, mut pool) = (Vec::new(), Vec::new());
        let times = race(&mut [&mut || drive(&mut jit, &packets, &mut a, BATCH), &mut || {
            drive_by_hand(&packets, (&mut out, &mut pool), |now, bytes, out| hand.forward(now, bytes, out))
        }]);
        let (jit, hand) = (times[0], times[1]);
        figures.extend([
            Figure { name: native, value: jit, unit: "ns/packet", goal: None },
            Figure { name: by_hand, value: hand, unit: "ns/packet", goal: None },
            Figure { name: ratio, value: jit / hand, unit: "x", goal },
        ]);
    }
}
