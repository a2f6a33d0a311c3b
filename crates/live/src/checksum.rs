//! Checksums that a sender on this machine left to its network card, and that no card has filled in.
//!
//! In such a packet the field holds the sum of the pseudo header only (RFC 9293 section 3.1, RFC 768); what remains is to sum
//! from the transport header to the end, that field included, and to put the complement there.

/// The one's complement sum of bytes as 16-bit words in network order (RFC 1071), folded.
fn sum(bytes: &[u8]) -> u16 {
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
