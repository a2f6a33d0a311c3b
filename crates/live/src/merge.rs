//! Segments of one TCP flow that leave together, handed to the kernel as one packet: what Linux itself does with traffic that it
//! forwards, by receive offload on the way in and segmentation offload on the way out. A link of some rate has packets leave one by one;
//! there is nothing to put together then.
//!
//! The rules are those of the kernel's receive offload (`net/ipv4/tcp_offload.c`): the headers are the same but for what counts up,
//! the segments are of one size, but for the last, and in sequence, and their checksums are right.

use crate::segment::{TCP_V4, TCP_V6};
use wire::checksum::Sum;
use wire::offload::pseudo;
use wire::packet::Written;
use wire::vlan;

/// Bytes of `struct virtio_net_hdr`.
pub const VNET_HEADER: usize = 10;
/// Longest headers: Ethernet with two VLAN tags, IPv6, TCP with all options.
const HEADERS: usize = 22 + 40 + 60;
/// An IP packet has at most so many bytes.
const LONGEST: usize = 65_535;

const ACK: u8 = 0x10;
const PUSH: u8 = 0x08;
/// Flags that a segment may have to be put together with others: those of accurate ECN too.
const HARMLESS: u8 = ACK | PUSH | 0x40 | 0x80;

/// What is put in front of the payloads: `struct virtio_net_hdr` and the headers from Ethernet on.
#[derive(Debug, Clone, Copy)]
pub struct Head {
    bytes: [u8; VNET_HEADER + HEADERS],
    length: usize,
}

impl Head {
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

/// Where the parts of a TCP segment are.
#[derive(Debug, Clone, Copy)]
struct Segment {
    ip: usize,
    tcp: usize,
    payload: usize,
    end: usize,
}

/// A segment with payload and a right checksum, that others may follow.
fn segment(frame: &[u8]) -> Option<Segment> {
    let ip = vlan::ip(frame)?;
    let header = frame.get(ip..ip + 40)?;
    let v4 = header[0] >> 4 == 4;
    let (tcp, end) = if v4 {
        // No options, no fragment.
        let plain = header[0] == 0x45 && header[9] == 6 && header[6] & 0x3f == 0 && header[7] == 0;
        (ip + 20, plain.then(|| ip + usize::from(u16::from_be_bytes([header[2], header[3]])))?)
    } else {
        let plain = header[0] >> 4 == 6 && header[6] == 6;
        (ip + 40, plain.then(|| ip + 40 + usize::from(u16::from_be_bytes([header[4], header[5]])))?)
    };
    let payload = tcp + usize::from(frame.get(tcp + 12)? >> 4) * 4;
    let flags = *frame.get(tcp + 13)?;
    // A frame that is padded is too short to be worth it.
    let good = end == frame.len()
        && payload >= tcp + 20
        && payload < end
        && flags & !HARMLESS == 0
        && flags & ACK != 0;
    if !good || (v4 && Sum::of(&frame[ip..ip + 20]).fold() != 0xffff) {
        return None;
    }
    let whole = u32::from(pseudo(frame, ip, 6, end - tcp)) + u32::from(Sum::of(&frame[tcp..]).fold());
    ((whole & 0xffff) + (whole >> 16) == 0xffff).then_some(Segment { ip, tcp, payload, end })
}

fn number(frame: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([frame[at], frame[at + 1], frame[at + 2], frame[at + 3]])
}

/// How many frames from the first on make one packet; at least one.
pub fn together(frames: &[Box<Written>]) -> usize {
    let Some(first) = frames.first().filter(|_| frames.len() > 1) else { return 1 };
    // What can be seen at a glance comes before the sums.
    let Some(of) = frames.get(1).filter(|next| next.len() <= first.len()).and_then(|_| segment(first)) else {
        return 1;
    };
    if first[of.tcp + 13] & PUSH != 0 {
        return 1;
    }
    let size = of.end - of.payload;
    let mut length = first.len() - of.ip;
    let mut count = 1;
    for next in &frames[1..] {
        let fits = next.len() > of.payload
            && next.len() <= first.len()
            && length + next.len() - of.payload <= LONGEST;
        if !fits || !follows(first, next, of, count) || segment(next).is_none() {
            break;
        }
        count += 1;
        length += next.len() - of.payload;
        if next[of.tcp + 13] & PUSH != 0 || next.len() - of.payload < size {
            break;
        }
    }
    count
}

/// Whether a frame has the first one's headers, as the one number `count` behind it.
fn follows(first: &[u8], next: &[u8], of: Segment, count: usize) -> bool {
    let Segment { ip, tcp, payload, end } = of;
    let v4 = first[ip] >> 4 == 4;
    let same = |from: usize, to: usize| first[from..to] == next[from..to];
    let network = if v4 {
        let id = |frame: &[u8]| u16::from_be_bytes([frame[ip + 4], frame[ip + 5]]);
        // Where nothing may fragment it, the identification means nothing (RFC 6864).
        let counts = first[ip + 6] & 0x40 != 0 || id(next) == id(first).wrapping_add(count as u16);
        counts && same(0, ip + 2) && same(ip + 6, ip + 10) && same(ip + 12, ip + 20)
    } else {
        same(0, ip + 4) && same(ip + 6, ip + 40)
    };
    let sequence = number(first, tcp + 4).wrapping_add((count * (end - payload)) as u32);
    network
        && number(next, tcp + 4) == sequence
        && same(tcp, tcp + 4)
        && same(tcp + 8, tcp + 13)
        && first[tcp + 13] == next[tcp + 13] & !PUSH
        && same(tcp + 14, tcp + 16)
        && same(tcp + 18, payload)
}

/// The head of frames that are put together, and where in each of them the payload begins.
pub fn head(frames: &[Box<Written>]) -> Option<(Head, usize)> {
    let (first, last) = (frames.first()?, frames.last()?);
    let of = vlan::ip(first).and_then(|ip| {
        let tcp = ip + if first[ip] >> 4 == 4 { 20 } else { 40 };
        let payload = tcp + usize::from(first.get(tcp + 12)? >> 4) * 4;
        Some(Segment { ip, tcp, payload, end: first.len() })
    })?;
    let more: usize = frames[1..].iter().map(|frame| frame.len() - of.payload).sum();
    let length = VNET_HEADER + of.payload;
    let mut bytes = [0; VNET_HEADER + HEADERS];
    let (vnet, headers) = bytes.get_mut(..length)?.split_at_mut(VNET_HEADER);
    headers.copy_from_slice(&first[..of.payload]);
    let Segment { ip, tcp, payload, end } = of;
    let v4 = headers[ip] >> 4 == 4;
    vnet[0] = 1;
    vnet[1] = if v4 { TCP_V4 } else { TCP_V6 };
    for (at, value) in [(2, payload), (4, end - payload), (6, tcp), (8, 16)] {
        vnet[at..at + 2].copy_from_slice(&(value as u16).to_ne_bytes());
    }
    let total = end + more - ip;
    if v4 {
        headers[ip + 2..ip + 4].copy_from_slice(&(total as u16).to_be_bytes());
        headers[ip + 10..ip + 12].fill(0);
        let check = Sum::of(&headers[ip..ip + 20]).check();
        headers[ip + 10..ip + 12].copy_from_slice(&check.to_be_bytes());
    } else {
        headers[ip + 4..ip + 6].copy_from_slice(&((total - 40) as u16).to_be_bytes());
    }
    headers[tcp + 13] |= last[tcp + 13] & PUSH;
    let check = pseudo(headers, ip, 6, end + more - tcp);
    headers[tcp + 16..tcp + 18].copy_from_slice(&check.to_be_bytes());
    Some((Head { bytes, length }, payload))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::segment::Large;

    /// A packet, and the segments that it is cut into.
    fn cut(v4: bool, tagged: bool, payload: usize, flags: u8) -> (Vec<u8>, Vec<Box<Written>>) {
        let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1];
        if tagged {
            frame.extend_from_slice(&[0x81, 0, 0, 7]);
        }
        if v4 {
            frame.extend_from_slice(&[
                8, 0, 0x45, 2, 0, 0, 0xff, 0xfe, 0x40, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2,
            ]);
        } else {
            frame.extend_from_slice(&[0x86, 0xdd, 0x60, 0x20, 0, 0, 0, 0, 6, 64]);
            frame.extend((0..32).map(|n| n as u8 * 7));
        }
        let transport = frame.len();
        frame.extend_from_slice(&[0x13, 0x88, 0x14, 0x51, 0xff, 0xff, 0xff, 0xf0]);
        frame.extend_from_slice(&[0, 0, 0, 9, 0x80, flags, 1, 0, 0, 0, 0, 0]);
        frame.extend_from_slice(&[1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2]);
        frame.extend((0..payload).map(|n| (n * n) as u8));
        let kind = if v4 { TCP_V4 } else { TCP_V6 };
        let (mut out, mut parts) = (Vec::new(), Vec::new());
        let large = Large { frame: &frame, kind, size: 1000, transport };
        large.cut(&mut out, |start, length| parts.push((start, length))).unwrap();
        let packet = |(start, length)| Box::new(Written::from(&out[start..start + length]));
        (frame, parts.into_iter().map(packet).collect())
    }

    #[test]
    fn what_was_cut_is_put_together_again() {
        for (v4, tagged) in [(true, false), (true, true), (false, false), (false, true)] {
            let (_, frames) = cut(v4, tagged, 4321, ACK | PUSH);
            assert_eq!(frames.len(), 5);
            assert_eq!(together(&frames), 5);
            let (head, payload) = head(&frames).unwrap();
            let mut whole = head.bytes()[VNET_HEADER..].to_vec();
            frames.iter().for_each(|frame| whole.extend_from_slice(&frame[payload..]));
            let number =
                |at: usize| usize::from(u16::from_ne_bytes([head.bytes()[at], head.bytes()[at + 1]]));
            assert_eq!((head.bytes()[0], number(2), number(4), number(8)), (1, payload, 1000, 16));
            // The kernel would cut it into the same segments.
            let large = Large { frame: &whole, kind: head.bytes()[1], size: number(4), transport: number(6) };
            let (mut out, mut again) = (Vec::new(), Vec::new());
            large.cut(&mut out, |start, length| again.push((start, length))).unwrap();
            let again: Vec<_> = again
                .iter()
                .map(|(start, length)| Box::new(Written::from(&out[*start..start + length])))
                .collect();
            assert_eq!(again, frames);
            // And its checksum, once complete, is right.
            assert!(wire::offload::complete_partial(&mut whole));
            assert!(segment(&whole).is_some());
        }
    }

    #[test]
    fn only_what_belongs_together_is() {
        let (_, frames) = cut(true, false, 5000, ACK);
        assert_eq!(together(&frames), 5);
        assert_eq!(together(&frames[..1]), 1);
        assert_eq!(together(&[]), 1);
        // A segment is missing; they come out of order; a short one is not the last.
        assert_eq!(together(&[frames[0].clone(), frames[2].clone()]), 1);
        assert_eq!(together(&[frames[1].clone(), frames[0].clone()]), 1);
        let (_, short) = cut(true, false, 1500, ACK);
        assert_eq!(together(&[short[1].clone(), frames[1].clone()]), 1);
        // Any bit of a header or of the payload that is changed parts them, but for a flow label, a time to live, ... that
        // changes in all of them.
        for at in 0..frames[1].len() {
            let mut changed = frames[..3].to_vec();
            changed[1][at] ^= 1;
            assert_eq!(together(&changed), 1, "{at}");
        }
        // PSH ends it; FIN, RST and SYN are left alone.
        let (_, pushed) = cut(true, false, 3000, ACK | PUSH);
        let more = [&pushed[..], &frames[3..]].concat();
        assert_eq!(together(&more), 3);
        for flag in [0x01, 0x02, 0x04, 0x20] {
            let (_, other) = cut(true, false, 2000, ACK | flag);
            assert!(together(&other[1..]) == 1 && together(&other) <= 2);
        }
    }

    #[test]
    fn a_packet_has_an_end() {
        let (_, frames) = cut(true, false, 65_000, ACK);
        let mut sequence = frames.clone();
        sequence.extend(frames);
        let count = together(&sequence);
        assert_eq!(count, 65);
        assert!(head(&sequence[..count]).is_some());
    }
}
