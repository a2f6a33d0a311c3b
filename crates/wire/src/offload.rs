//! Checksums that a sender on this machine left to its network card, and that no card has filled in.
//!
//! In such a packet the field holds the sum of the pseudo header only (RFC 9293 section 3.1, RFC 768); what remains is to sum
//! from the transport header to the end, that field included, and to put the complement there.

use crate::bytes::{be16, put16};
use crate::checksum::{self, Sum};
use crate::{tcp, udp, vlan};

/// The sum of the pseudo header of a packet whose IP header, without extension headers, begins at `ip`.
pub fn pseudo(frame: &[u8], ip: usize, protocol: u8, length: usize) -> u16 {
    let (from, to) = if frame[ip] >> 4 == 4 {
        (&frame[ip + 12..ip + 16], &frame[ip + 16..ip + 20])
    } else {
        (&frame[ip + 8..ip + 24], &frame[ip + 24..ip + 40])
    };
    checksum::pseudo(from, to, protocol, length as u32).fold()
}

/// Completes a checksum at `offset` behind `start` over the bytes from `start` on. False: they are not in the frame.
pub fn complete(frame: &mut [u8], start: usize, offset: usize) -> bool {
    if start + offset + 2 > frame.len() {
        return false;
    }
    // UDP has no checksum where there are zeros; for TCP both are the same.
    let check = Sum::of(&frame[start..]).check_udp();
    put16(frame, start + offset, check);
    true
}

/// Completes the checksum of a TCP or UDP packet that has only its pseudo header's sum, where nobody says whether it has. A packet
/// that is right and happens to have that number there stays as it is. Gives whether it was one.
pub fn complete_partial(frame: &mut [u8]) -> bool {
    partial(frame).is_some_and(|(end, start, offset)| complete(&mut frame[..end], start, offset))
}

/// Of a packet with such a checksum: where it ends, where its transport header begins, where in there the checksum is.
fn partial(frame: &[u8]) -> Option<(usize, usize, usize)> {
    let ip = vlan::ip(frame)?;
    let header = frame.get(ip..ip + 20)?;
    let (start, total, protocol) = match header[0] >> 4 {
        // Not of a fragment.
        4 if (header[6] & 0x3f, header[7]) == (0, 0) => {
            (ip + usize::from(header[0] & 15) * 4, usize::from(be16(header, 2)), header[9])
        }
        6 if frame.len() >= ip + 40 => (ip + 40, 40 + usize::from(be16(header, 4)), header[6]),
        _ => return None,
    };
    let offset = match protocol {
        tcp::PROTOCOL => tcp::CHECKSUM,
        udp::PROTOCOL => udp::CHECKSUM,
        _ => return None,
    };
    let end = ip + total;
    let field = frame.get(..end)?.get(start + offset..start + offset + 2)?;
    (be16(field, 0) == pseudo(frame, ip, protocol, end - start)).then_some((end, start, offset))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An Ethernet frame with a UDP packet of some payload, padded, with a checksum.
    fn udp(checksum: u16) -> Vec<u8> {
        let mut frame = vec![2; 12];
        frame.extend_from_slice(&[
            8, 0, 0x45, 0, 0, 33, 0, 0, 0x40, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2,
        ]);
        frame.extend_from_slice(&[0x13, 0x88, 0x14, 0x51, 0, 13]);
        frame.extend_from_slice(&checksum.to_be_bytes());
        frame.extend_from_slice(b"hello");
        frame.resize(60, 0xee);
        frame
    }

    #[test]
    fn partial_checksums_are_found_and_completed() {
        let pseudo = pseudo(&udp(0), 14, 17, 13);
        let mut frame = udp(pseudo);
        assert!(complete_partial(&mut frame));
        let whole = checksum::pseudo(&frame[26..30], &frame[30..34], 17, 13).with(&frame[34..47]);
        assert_eq!(whole.check(), 0);
        // What is complete, has none, or is wrong stays.
        for other in [frame, udp(0), udp(0x1234)] {
            let mut same = other.clone();
            assert!(!complete_partial(&mut same));
            assert_eq!(same, other);
        }
        // No packet that is cut short or mangled makes trouble.
        let frame = udp(pseudo);
        for length in 0..60 {
            complete_partial(&mut frame[..length].to_vec());
            for value in [0, 0x4f, 0x60, 0xff] {
                let mut mangled = frame.clone();
                mangled[length] = value;
                complete_partial(&mut mangled);
            }
        }
    }

    #[test]
    fn a_completed_checksum_is_right() {
        let mut frame: Vec<u8> = (0..61).collect();
        let pseudo = 0x1234u16;
        frame[36..38].copy_from_slice(&pseudo.to_be_bytes());
        assert!(complete(&mut frame, 20, 16));
        // Pseudo header and packet together sum up to all ones.
        assert_eq!(Sum::of(&frame[20..]).with_u32(u32::from(pseudo)).check(), 0);
        assert!(!complete(&mut frame, 59, 1));
    }
}
