//! Packets that a sender on this machine made larger than its link, to be cut up by a network card that is not there: TCP
//! segmentation offload, UDP's, and what the kernel has put together on receiving.
//!
//! Cut as the kernel cuts them (Documentation/networking/segmentation-offloads.rst): the headers go in front of each part; the IPv4
//! identification counts up, TCP's sequence number moves on, FIN and PSH stay with the last part, and CWR of classic ECN (RFC 3168)
//! with the first.

use wire::checksum::Sum;
use wire::offload::pseudo;
use wire::vlan;

/// What the parts are, as `struct virtio_net_hdr` has it.
pub const TCP_V4: u8 = 1;
pub const TCP_V6: u8 = 4;
const UDP: u8 = 5;
const ECN: u8 = 0x80;

const PROTOCOL_TCP: u8 = 6;
const PROTOCOL_UDP: u8 = 17;
const FIN: u8 = 0x01;
const PUSH: u8 = 0x08;
const CWR: u8 = 0x80;

/// Segments of one packet; TCP's shortest of 64 KiB are 745.
const MOST_PARTS: usize = 1024;

/// A packet that is to be cut.
#[derive(Debug, Clone, Copy)]
pub struct Large<'a> {
    /// From Ethernet on.
    pub frame: &'a [u8],
    /// `gso_type` of its `virtio_net_hdr`.
    pub kind: u8,
    /// Bytes of payload of each part.
    pub size: usize,
    /// Where the transport header begins.
    pub transport: usize,
}

impl Large<'_> {
    /// Appends the parts to `out` and calls `each` with where each of them is and how long. `None`: it makes no sense, or is of
    /// another kind; nothing is appended.
    pub fn cut(&self, out: &mut Vec<u8>, mut each: impl FnMut(usize, usize)) -> Option<()> {
        let &Large { frame, kind, size, transport } = self;
        let ip = vlan::ip(frame)?;
        let v4 = frame.get(ip)? >> 4 == 4;
        let protocol = match kind & !ECN {
            TCP_V4 | TCP_V6 => PROTOCOL_TCP,
            UDP => PROTOCOL_UDP,
            _ => return None,
        };
        let shortest = if v4 { usize::from(frame[ip] & 15).max(5) * 4 } else { 40 };
        if transport < ip + shortest {
            return None;
        }
        let header = match protocol {
            PROTOCOL_TCP => usize::from(frame.get(transport + 12)? >> 4) * 4,
            _ => 8,
        };
        let (headers, payload) = frame.split_at_checked(transport + header)?;
        if size == 0 || (protocol == PROTOCOL_TCP && header < 20) {
            return None;
        }
        let parts = payload.len().div_ceil(size);
        if parts > MOST_PARTS {
            return None;
        }
        let sequence = u32::from_be_bytes(frame[transport + 4..transport + 8].try_into().ok()?);
        for (number, part) in payload.chunks(size).enumerate() {
            let start = out.len();
            out.extend_from_slice(headers);
            out.extend_from_slice(part);
            let made = &mut out[start..];
            let length = made.len() - transport;
            if v4 {
                put16(made, ip + 2, made.len() - ip);
                let id = usize::from(u16::from_be_bytes([made[ip + 4], made[ip + 5]])) + number;
                put16(made, ip + 4, id);
                put16(made, ip + 10, 0);
                let check = Sum::of(&made[ip..ip + usize::from(made[ip] & 15) * 4]).check();
                put16(made, ip + 10, usize::from(check));
            } else {
                put16(made, ip + 4, made.len() - ip - 40);
            }
            let check_at = if protocol == PROTOCOL_TCP {
                let moved = sequence.wrapping_add((number * size) as u32);
                made[transport + 4..transport + 8].copy_from_slice(&moved.to_be_bytes());
                let flags = &mut made[transport + 13];
                if number + 1 < parts {
                    *flags &= !(FIN | PUSH);
                }
                if number > 0 && kind & ECN != 0 {
                    *flags &= !CWR;
                }
                transport + 16
            } else {
                put16(made, transport + 4, length);
                transport + 6
            };
            let start_sum = pseudo(made, ip, protocol, length);
            put16(made, check_at, usize::from(start_sum));
            let check = Sum::of(&made[transport..]).check();
            put16(made, check_at, usize::from(if check == 0 { 0xffff } else { check }));
            each(start, made.len());
        }
        Some(())
    }
}

fn put16(bytes: &mut [u8], at: usize, value: usize) {
    bytes[at..at + 2].copy_from_slice(&(value as u16).to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A packet of TCP or UDP with `payload` bytes, tagged or not.
    fn packet(v4: bool, protocol: u8, tagged: bool, payload: usize) -> (Vec<u8>, usize) {
        let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1];
        if tagged {
            frame.extend_from_slice(&[0x81, 0, 0, 7]);
        }
        let header = if protocol == PROTOCOL_TCP { 32 } else { 8 };
        if v4 {
            frame.extend_from_slice(&[8, 0, 0x45, 0, 0, 0, 0xff, 0xff, 0x40, 0, 64, protocol, 0, 0]);
            frame.extend_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2]);
        } else {
            frame.extend_from_slice(&[0x86, 0xdd, 0x60, 0, 0, 0, 0, 0, protocol, 64]);
            frame.extend((0..32).map(|n| n as u8 * 7));
        }
        let transport = frame.len();
        frame.extend_from_slice(&[0x13, 0x88, 0x14, 0x51, 0xff, 0xff, 0xff, 0xf0]);
        if header == 32 {
            frame.extend_from_slice(&[0, 0, 0, 9, 0x80, CWR | 0x10 | PUSH | FIN, 1, 0, 0, 0, 0, 0]);
            frame.extend_from_slice(&[1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2]);
        }
        frame.extend((0..payload).map(|n| (n * n) as u8));
        (frame, transport)
    }

    #[test]
    fn parts_are_packets_of_their_own() {
        for (v4, protocol, kind, tagged) in [
            (true, PROTOCOL_TCP, TCP_V4 | ECN, false),
            (true, PROTOCOL_TCP, TCP_V4, true),
            (false, PROTOCOL_TCP, TCP_V6 | ECN, true),
            (true, PROTOCOL_UDP, UDP, false),
            (false, PROTOCOL_UDP, UDP, false),
        ] {
            let (frame, transport) = packet(v4, protocol, tagged, 3001);
            let header = if protocol == PROTOCOL_TCP { 32 } else { 8 };
            let (mut out, mut parts) = (vec![0xee; 5], Vec::new());
            let large = Large { frame: &frame, kind, size: 1000, transport };
            large.cut(&mut out, |start, length| parts.push((start, length))).unwrap();
            assert_eq!(parts.len(), 4);
            let many = Large { frame: &frame, kind, size: 2, transport };
            assert!(many.cut(&mut Vec::new(), |_, _| panic!("of so many nothing is made")).is_none());
            let mut payload = Vec::new();
            for (number, (start, length)) in parts.into_iter().enumerate() {
                let part = &out[start..start + length];
                let ip = vlan::ip(part).unwrap();
                let whole = u32::from(pseudo(part, ip, protocol, length - transport))
                    + u32::from(Sum::of(&part[transport..]).fold());
                assert_eq!((whole & 0xffff) + (whole >> 16), 0xffff, "{number}");
                if v4 {
                    assert_eq!(Sum::of(&part[ip..ip + 20]).fold(), 0xffff);
                    assert_eq!(usize::from(part[ip + 2]) << 8 | usize::from(part[ip + 3]), length - ip);
                    assert_eq!(part[ip + 4..ip + 6], (0xffffu16.wrapping_add(number as u16)).to_be_bytes());
                } else {
                    assert_eq!(usize::from(part[ip + 4]) << 8 | usize::from(part[ip + 5]), length - ip - 40);
                }
                if protocol == PROTOCOL_TCP {
                    let sequence = u32::from_be_bytes(part[transport + 4..transport + 8].try_into().unwrap());
                    assert_eq!(sequence, 0xffff_fff0u32.wrapping_add(1000 * number as u32));
                    let flags = part[transport + 13];
                    assert_eq!(flags & (FIN | PUSH) != 0, number == 3);
                    assert_eq!(flags & CWR != 0, number == 0 || kind & ECN == 0);
                } else {
                    assert_eq!(
                        part[transport + 4..transport + 6],
                        ((length - transport) as u16).to_be_bytes()
                    );
                }
                payload.extend_from_slice(&part[transport + header..]);
            }
            assert_eq!(payload, frame[transport + header..]);
        }
    }

    #[test]
    fn more_parts_than_may_be_are_none() {
        for (payload, parts) in [(MOST_PARTS * 20, Some(MOST_PARTS)), (MOST_PARTS * 20 + 1, None)] {
            let (frame, transport) = packet(true, PROTOCOL_UDP, false, payload);
            let (mut out, mut count) = (Vec::new(), 0);
            let large = Large { frame: &frame, kind: UDP, size: 20, transport };
            let cut = large.cut(&mut out, |_, _| count += 1);
            assert_eq!(cut.map(|()| count), parts);
            assert!(parts.is_some() || out.is_empty());
        }
    }

    #[test]
    fn nonsense_is_not_cut() {
        let (frame, transport) = packet(true, PROTOCOL_TCP, false, 100);
        for length in 0..frame.len() {
            for transport in [0, transport, length, 1 << 16] {
                for (kind, size) in [(TCP_V4, 10), (UDP, 10), (TCP_V4, 0), (3, 10)] {
                    let mut out = Vec::new();
                    let large = Large { frame: &frame[..length], kind, size, transport };
                    let cut = large.cut(&mut out, |_, _| ());
                    assert!(cut.is_some() || out.is_empty(), "{length} {transport} {kind}");
                }
            }
        }
    }
}
