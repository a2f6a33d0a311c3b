//! Checksums that a sender on this machine left to its network card, and that no card has filled in.
//!
//! In such a packet the field holds the sum of the pseudo header only (RFC 9293 section 3.1, RFC 768); what remains is to sum
//! from the transport header to the end, that field included, and to put the complement there.

/// The one's complement sum of bytes as 16-bit words in network order (RFC 1071), folded.
pub fn sum(bytes: &[u8]) -> u16 {
    let mut total = 0u64;
    let mut words = bytes.chunks_exact(8);
    for word in &mut words {
        let word =
            u64::from_be_bytes([word[0], word[1], word[2], word[3], word[4], word[5], word[6], word[7]]);
        let (next, carry) = total.overflowing_add(word);
        total = next + u64::from(carry);
    }
    let mut last = [0; 8];
    last[..words.remainder().len()].copy_from_slice(words.remainder());
    let (next, carry) = total.overflowing_add(u64::from_be_bytes(last));
    total = next + u64::from(carry);
    while total >> 16 != 0 {
        total = (total & 0xffff) + (total >> 16);
    }
    total as u16
}

/// The sum of the pseudo header of a packet whose IP header, without extension headers, begins at `ip`: addresses, protocol and
/// the length of what is above (RFC 9293 section 3.1, RFC 8200 section 8.1).
pub fn pseudo(frame: &[u8], ip: usize, protocol: u8, length: usize) -> u16 {
    let addresses = if frame[ip] >> 4 == 4 { ip + 12..ip + 20 } else { ip + 8..ip + 40 };
    let total = u32::from(sum(&frame[addresses]))
        + u32::from(protocol)
        + (length & 0xffff) as u32
        + (length >> 16) as u32;
    let total = (total & 0xffff) + (total >> 16);
    ((total & 0xffff) + (total >> 16)) as u16
}

/// Completes a checksum at `offset` behind `start` over the bytes from `start` on. False: they are not in the frame.
pub fn complete(frame: &mut [u8], start: usize, offset: usize) -> bool {
    if start + offset + 2 > frame.len() {
        return false;
    }
    let check = !sum(&frame[start..]);
    // UDP has no checksum where there are zeros; for TCP both are the same.
    let check = if check == 0 { 0xffff } else { check };
    frame[start + offset..start + offset + 2].copy_from_slice(&check.to_be_bytes());
    true
}

/// Where the IP header begins: behind Ethernet and its VLAN tags. `None`: there is none.
pub fn network(frame: &[u8]) -> Option<usize> {
    let mut at = 12;
    while matches!(frame.get(at..at + 2)?, [0x81, 0] | [0x88, 0xa8]) {
        at += 4;
    }
    matches!(frame.get(at..at + 2)?, [0x08, 0] | [0x86, 0xdd]).then_some(at + 2)
}

/// Completes the checksum of a TCP or UDP packet that has only its pseudo header's sum, where nobody says whether it has. A packet
/// that is right and happens to have that number there stays as it is. Gives whether it was one.
pub fn complete_partial(frame: &mut [u8]) -> bool {
    partial(frame).is_some_and(|(end, start, offset)| complete(&mut frame[..end], start, offset))
}

/// Of a packet with such a checksum: where it ends, where its transport header begins, where in there the checksum is.
fn partial(frame: &[u8]) -> Option<(usize, usize, usize)> {
    let ip = network(frame)?;
    let header = frame.get(ip..ip + 20)?;
    let (start, total, protocol) = match header[0] >> 4 {
        // Not of a fragment.
        4 if (header[6] & 0x3f, header[7]) == (0, 0) => {
            let total = usize::from(u16::from_be_bytes([header[2], header[3]]));
            (ip + usize::from(header[0] & 15) * 4, total, header[9])
        }
        6 if frame.len() >= ip + 40 => {
            let above = usize::from(u16::from_be_bytes([header[4], header[5]]));
            (ip + 40, 40 + above, header[6])
        }
        _ => return None,
    };
    let offset = match protocol {
        6 => 16,
        17 => 6,
        _ => return None,
    };
    let end = ip + total;
    let field = frame.get(..end)?.get(start + offset..start + offset + 2)?;
    let there = u16::from_be_bytes([field[0], field[1]]);
    (there == pseudo(frame, ip, protocol, end - start)).then_some((end, start, offset))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums() {
        // The example of RFC 1071 section 3.
        assert_eq!(sum(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]), 0xddf2);
        assert_eq!(sum(&[0x01]), 0x0100);
        assert_eq!(sum(&[0xff; 4096]), 0xffff);
    }

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
        let whole = u32::from(sum(&frame[34..47])) + u32::from(pseudo);
        assert_eq!((whole & 0xffff) + (whole >> 16), 0xffff);
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
        let total = u32::from(sum(&frame[20..])) + u32::from(pseudo);
        assert_eq!((total & 0xffff) + (total >> 16), 0xffff);
        assert!(!complete(&mut frame, 59, 1));
    }
}
