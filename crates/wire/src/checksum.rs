//! The Internet checksum (RFC 1071): in full, of pseudo headers, and updated for a changed field (RFC 1624).
//!
//! Zero bytes do not change a one's complement sum, so the checksum of a packet whose payload is zeros can be computed from its
//! headers alone.

/// A one's complement sum that grows. Parts of odd length may only come last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sum(u64);

impl Sum {
    /// The sum of bytes as 16-bit words; an odd byte at the end is the upper half of a word.
    #[inline]
    pub fn of(bytes: &[u8]) -> Sum {
        Sum::default().with(bytes)
    }

    /// Adds bytes. Words are summed in the order of this machine, which `fold` corrects (RFC 1071 section 2 (B)); 2^32 words of 32
    /// bits fit.
    #[inline]
    #[must_use]
    pub fn with(self, bytes: &[u8]) -> Sum {
        let mut total = self.0;
        let mut words = bytes.chunks_exact(4);
        for word in &mut words {
            total += u64::from(u32::from_ne_bytes([word[0], word[1], word[2], word[3]]));
        }
        let rest = words.remainder();
        if !rest.is_empty() {
            let mut last = [0; 4];
            last[..rest.len()].copy_from_slice(rest);
            total += u64::from(u32::from_ne_bytes(last));
        }
        Sum(total)
    }

    /// Adds a number of 32 bits, as if it stood in the packet.
    #[inline]
    #[must_use]
    pub fn with_u32(self, value: u32) -> Sum {
        Sum(self.0 + u64::from(value.to_be()))
    }

    /// The sum in 16 bits.
    #[inline]
    pub fn fold(self) -> u16 {
        // The upper half of a number plus the same with its halves exchanged is the sum of both, with the carry.
        let words = (self.0.wrapping_add(self.0.rotate_left(32)) >> 32) as u32;
        let word = (words.wrapping_add(words.rotate_left(16)) >> 16) as u16;
        u16::from_be(word)
    }

    /// What the checksum field has to hold. Over bytes that include a right checksum it is 0.
    #[inline]
    pub fn check(self) -> u16 {
        !self.fold()
    }

    /// As [`Sum::check`], for UDP: a checksum of 0 would say that there is none, so all ones take its place (RFC 768).
    #[inline]
    pub fn check_udp(self) -> u16 {
        match self.check() {
            0 => 0xffff,
            check => check,
        }
    }
}

/// The sum of the pseudo header: both addresses, of IPv4 or IPv6, the protocol and the length of what is above IP (RFC 9293
/// section 3.1, RFC 8200 section 8.1).
#[inline]
pub fn pseudo(from: &[u8], to: &[u8], protocol: u8, length: u32) -> Sum {
    Sum::of(from).with(to).with_u32(u32::from(protocol)).with_u32(length)
}

/// The checksum after a word that it covers has changed (RFC 1624, equation 3).
#[inline]
pub fn update(check: u16, before: u16, after: u16) -> u16 {
    let sum = u32::from(!check) + u32::from(!before) + u32::from(after);
    let sum = (sum & 0xffff) + (sum >> 16);
    !((sum & 0xffff) + (sum >> 16)) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_sums() {
        // The example of RFC 1071 section 3.
        assert_eq!(Sum::of(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]).fold(), 0xddf2);
        assert_eq!(Sum::of(&[0x01]).fold(), 0x0100);
        assert_eq!(Sum::of(&[0xff; 4096]).fold(), 0xffff);
        assert_eq!(Sum::of(&[]).check(), 0xffff);
        assert_eq!(Sum::of(&[0xff, 0xff]).check_udp(), 0xffff);
        // Each length has a sum of its own, with carries from the first half of the number to the second.
        for words in 1..2000_u64 {
            let bytes = [0xff, 0xfe, 0xff, 0xff].repeat(words as usize);
            // Modulo 2^16 - 1, where 0 is all ones.
            let sum = (words * 0xfffe + 0xfffe) % 0xffff + 1;
            assert_eq!(u64::from(Sum::of(&bytes).fold()), sum, "{words}");
        }
        assert_eq!(Sum::default().with_u32(0x0001_f203).with(&[0xf4, 0xf5, 0xf6, 0xf7]).fold(), 0xddf2);
    }

    #[test]
    fn updated_checksums() {
        // The example of RFC 1624 section 4, where equation 2 gives 0xffff.
        assert_eq!(update(0xdd2f, 0x5555, 0x3285), 0x0000);
        assert_eq!(update(0x1234, 7, 7), 0x1234);
    }
}
