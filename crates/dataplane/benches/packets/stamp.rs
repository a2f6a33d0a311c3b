//! Queue-occupancy stamping (`systems/stamping/stamp.p4`, its default format) beside the same written by hand: packets whose only
//! option is the stamp, and packets without options. There is no queue here, so packets have waited for no time.

use dataplane::hash::csum16;
use dataplane::pipeline::Pipeline;
use p4lang::ir::EntryMatch;

use crate::by_hand::{be16, be48};
use crate::map::Exact;
use crate::{BATCH, Figure, check, drive, drive_by_hand, race, setup};

const MAC: u64 = 0x0200_0000_0001;
const PORT: u32 = 1;
const STAMP: u8 = 30;
/// A code is a microsecond.
const SCALE: (u32, u8) = (1 << 31, 31);

/// Frames of 64 bytes, with the stamp if they are to have it.
fn packets(stamped: bool) -> Vec<Vec<u8>> {
    let mut packets = setup::packets(&setup::routes());
    if stamped {
        for (number, packet) in packets.iter_mut().enumerate() {
            packet[14] = 0x46;
            packet[34..38].copy_from_slice(&[STAMP, 4, number as u8, (number % 5) as u8]);
            packet[24..26].fill(0);
            let sum = csum16(&packet[14..38]) as u16;
            packet[24..26].copy_from_slice(&sum.to_be_bytes());
        }
    }
    packets
}

/// Where the stamp's data is, or the number of the counter that says why there is none of use.
fn find(frame: &[u8], start: usize) -> Result<Option<usize>, usize> {
    let end = start + usize::from(frame[start] & 15) * 4;
    if frame.len() < end {
        return Err(0);
    }
    let (mut at, mut found) = (start + 20, None);
    while at < end && frame[at] != 0 {
        if frame[at] == 1 {
            at += 1;
            continue;
        }
        if frame[at] == STAMP && found.is_some() {
            return Err(1);
        }
        let length = if at + 1 < end { usize::from(frame[at + 1]) } else { 0 };
        if length < 2 || at + length > end {
            return Err(0);
        }
        if frame[at] == STAMP {
            if length != 4 {
                return Err(0);
            }
            found = Some(at + 2);
        }
        at += length;
    }
    Ok(found)
}

struct Hand {
    forward: Exact,
    wires: Exact,
    ports: Exact,
    scales: Vec<(u32, u8)>,
    unstamped: [u64; 4],
}

impl Hand {
    fn forward(&mut self, port: u64, waited: u32, frame: &[u8], out: &mut Vec<u8>) -> Option<u32> {
        if frame.len() < 14 {
            return None;
        }
        let to = self.forward.get(&[be48(frame, 0)]).or_else(|| self.wires.get(&[port]))?;
        out.extend_from_slice(frame);
        let mut start = 14;
        let mut kind = be16(frame, 12);
        if kind == 0x8100 && frame.len() >= 18 {
            (start, kind) = (18, be16(frame, 16));
        }
        if kind != 0x0800 || frame.len() < start + 20 || frame[start] >> 4 != 4 || frame[start] & 15 <= 5 {
            return Some(to);
        }
        let found = find(frame, start);
        if found == Ok(None) {
            return Some(to);
        }
        let Some(scale) = self.ports.get(&[to.into()]) else { return Some(to) };
        let at = match found {
            Ok(Some(at)) if frame[at + 1] >> 6 == 0 => at,
            Ok(_) => {
                self.unstamped[3] += 1;
                return Some(to);
            }
            Err(reason) => {
                self.unstamped[reason] += 1;
                return Some(to);
            }
        };
        let (multiplier, shift) = self.scales[scale as usize];
        let code = ((u64::from(waited) * u64::from(multiplier)) >> shift).min(255) as u8;
        let (value, hops) = (frame[at].max(code), (frame[at + 1] + 1).min(63));
        let (before, after) = (be16(frame, at), u16::from_be_bytes([value, hops]));
        let mut change = u32::from(!before) + u32::from(after);
        change = (change & 0xffff) + (change >> 16);
        if (at - start) % 2 == 1 {
            change = u32::from((change as u16).swap_bytes());
        }
        let sum = u32::from(!be16(frame, start + 10)) + change;
        let sum = (sum & 0xffff) + (sum >> 16);
        out[at..at + 2].copy_from_slice(&after.to_be_bytes());
        out[start + 10..start + 12].copy_from_slice(&(!(sum as u16)).to_be_bytes());
        Some(to)
    }
}

fn contenders() -> (Pipeline, Hand) {
    let program = setup::program("../../python/tidegate/systems/stamping/stamp.p4");
    let mut jit = Pipeline::compiled(program, 1).expect("the program compiles");
    let exact = |value: u64| vec![EntryMatch::Exact(value.into())];
    let (multiplier, shift) = SCALE;
    setup::add(&mut jit, "forward", exact(MAC), "to_port", &[PORT.into()]);
    setup::add(
        &mut jit,
        "ports",
        exact(PORT.into()),
        "stamp",
        &[multiplier.into(), shift.into(), 1514, 0, 0],
    );
    let mut hand = Hand {
        forward: Exact::new(&[48]),
        wires: Exact::new(&[9]),
        ports: Exact::new(&[9]),
        scales: vec![SCALE],
        unstamped: [0; 4],
    };
    hand.forward.insert(&[MAC], PORT);
    hand.ports.insert(&[PORT.into()], 0);
    (jit, hand)
}

pub fn measure(figures: &mut Vec<Figure>) {
    let names = [
        (
            true,
            ["stamping, native code", "stamping, by hand", "stamping, native code / by hand"],
            Some(("at most", 1.5)),
        ),
        (
            false,
            [
                "stamping of nothing, native code",
                "stamping of nothing, by hand",
                "stamping of nothing, native code / by hand",
            ],
            None,
        ),
    ];
    for (stamped, [native, by_hand, ratio], goal) in names {
        let packets = packets(stamped);
        let (mut jit, mut hand) = contenders();
        let waited = std::hint::black_box(0);
        check(&mut jit, &packets, |bytes, out| hand.forward(0, waited, bytes, out));
        let mut a = Vec::new();
        let (mut out, mut pool) = (Vec::new(), Vec::new());
        let times = race(&mut [&mut || drive(&mut jit, &packets, &mut a, BATCH), &mut || {
            drive_by_hand(&packets, (&mut out, &mut pool), |_, bytes, out| {
                hand.forward(0, waited, bytes, out)
            })
        }]);
        let (jit, hand) = (times[0], times[1]);
        figures.extend([
            Figure { name: native, value: jit, unit: "ns/packet", goal: None },
            Figure { name: by_hand, value: hand, unit: "ns/packet", goal: None },
            Figure { name: ratio, value: jit / hand, unit: "x", goal },
        ]);
    }
}
