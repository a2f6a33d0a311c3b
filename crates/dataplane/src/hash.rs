//! Hash and checksum algorithms of v1model, with the reference switch's results.
//!
//! All take whole bytes; data that ends within a byte is padded with zero bits.

use std::fmt;
use std::sync::{Arc, LazyLock};

use p4lang::ir::HashAlgorithm;

/// A cyclic redundancy check of up to 32 bits, in the usual parameters (Rocksoft model).
pub use control::CrcParameters;

/// CRC-16/ARC, v1model's `crc16`.
pub const CRC16: CrcParameters = CrcParameters {
    width: 16,
    polynomial: 0x8005,
    initial: 0,
    final_xor: 0,
    reflect_data: true,
    reflect_remainder: true,
};
/// CRC-32 of IEEE 802.3, v1model's `crc32`.
pub const CRC32: CrcParameters = CrcParameters {
    width: 32,
    polynomial: 0x04c1_1db7,
    initial: 0xffff_ffff,
    final_xor: 0xffff_ffff,
    reflect_data: true,
    reflect_remainder: true,
};

/// Bytes whose steps are made at once.
pub(crate) const AT_ONCE: usize = 8;

/// A CRC with its table of byte steps, and tables of what a byte comes to one step later and more. Clones share them.
#[derive(Clone)]
pub struct Crc {
    parameters: CrcParameters,
    tables: Arc<[[u32; 256]; AT_ONCE]>,
    /// Where the tables are. Native code reads it: as a constant the compiler would have it anew at each use.
    address: usize,
}

/// Its tables follow from the parameters; where they are is not the same for two that are equal.
impl fmt::Debug for Crc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Crc").field("parameters", &self.parameters).finish_non_exhaustive()
    }
}

impl Crc {
    pub fn new(parameters: CrcParameters) -> Crc {
        let top = 1u64 << (parameters.width - 1);
        let mask = (top << 1) - 1;
        let mut table = [0u32; 256];
        for (byte, entry) in table.iter_mut().enumerate() {
            let mut remainder = (byte as u64) << (parameters.width - 8);
            for _ in 0..8 {
                let carry = remainder & top != 0;
                remainder = (remainder << 1) & mask;
                if carry {
                    remainder ^= u64::from(parameters.polynomial);
                }
            }
            *entry = remainder as u32;
        }
        let mut tables = [table; AT_ONCE];
        if parameters.reflect_data && parameters.reflect_remainder {
            // Bytes and remainder are reflected throughout, and nothing is to be turned around.
            for byte in 0..256 {
                let forward = table[usize::from((byte as u8).reverse_bits())];
                let mut remainder = forward.reverse_bits() >> (32 - parameters.width);
                tables[0][byte] = remainder;
                for later in &mut tables[1..] {
                    let low = usize::from((remainder as u8).reverse_bits());
                    remainder = remainder >> 8 ^ table[low].reverse_bits() >> (32 - parameters.width);
                    later[byte] = remainder;
                }
            }
        }
        let tables = Arc::new(tables);
        Crc { parameters, address: tables.as_ptr().expose_provenance(), tables }
    }

    /// v1model's `crc16` or `crc32`, which nobody can set.
    pub fn standard(algorithm: HashAlgorithm) -> Option<&'static Crc> {
        match algorithm {
            HashAlgorithm::Crc16 => Some(&STANDARD.0),
            HashAlgorithm::Crc32 => Some(&STANDARD.1),
            _ => None,
        }
    }

    pub fn parameters(&self) -> CrcParameters {
        self.parameters
    }

    /// Of a CRC that is reflected throughout: the address of its table, behind which are those of one step later and more.
    pub(crate) fn steps(&self) -> &usize {
        debug_assert!(self.reflects_all());
        &self.address
    }

    fn reflects_all(&self) -> bool {
        self.parameters.reflect_data && self.parameters.reflect_remainder
    }

    pub fn sum(&self, data: &[u8]) -> u64 {
        let p = &self.parameters;
        let mask = ((1u64 << p.width) - 1) as u32;
        if self.reflects_all() {
            let mut remainder = (p.initial & mask).reverse_bits() >> (32 - p.width);
            let [last, third, second, first, ..] = &*self.tables;
            let (words, rest) = data.as_chunks::<4>();
            // Four bytes at once: a CRC is linear, so each byte's part comes from the table of the steps that follow it.
            for word in words {
                let [a, b, c, d] = (remainder ^ u32::from_le_bytes(*word)).to_le_bytes().map(usize::from);
                remainder = first[a] ^ second[b] ^ third[c] ^ last[d];
            }
            for byte in rest {
                remainder = remainder >> 8 ^ last[usize::from(remainder as u8 ^ byte)];
            }
            return u64::from((remainder ^ p.final_xor) & mask);
        }
        let mut remainder = p.initial & mask;
        for byte in data {
            let byte = if p.reflect_data { byte.reverse_bits() } else { *byte };
            let index = ((remainder >> (p.width - 8)) as u8) ^ byte;
            remainder = (((u64::from(remainder)) << 8) as u32 & mask) ^ self.tables[0][usize::from(index)];
        }
        if p.reflect_remainder {
            remainder = remainder.reverse_bits() >> (32 - p.width);
        }
        u64::from((remainder ^ p.final_xor) & mask)
    }
}

static STANDARD: LazyLock<(Crc, Crc)> = LazyLock::new(|| (Crc::new(CRC16), Crc::new(CRC32)));

/// The algorithms of one switch; the custom ones can be set.
#[derive(Debug, Clone)]
pub struct Hashes {
    crc16: Crc,
    crc32: Crc,
    pub crc16_custom: Crc,
    pub crc32_custom: Crc,
}

impl Default for Hashes {
    fn default() -> Self {
        let (crc16, crc32) = STANDARD.clone();
        Hashes { crc16_custom: crc16.clone(), crc32_custom: crc32.clone(), crc16, crc32 }
    }
}

impl Hashes {
    /// The hash of `data`; `payload` follows it (for checksums with payload). `random` is a number for the algorithm of that name.
    pub fn sum(&self, algorithm: HashAlgorithm, data: &[u8], random: impl FnOnce() -> u64) -> u64 {
        match algorithm {
            HashAlgorithm::Crc16 => self.crc16.sum(data),
            HashAlgorithm::Crc32 => self.crc32.sum(data),
            HashAlgorithm::Crc16Custom => self.crc16_custom.sum(data),
            HashAlgorithm::Crc32Custom => self.crc32_custom.sum(data),
            HashAlgorithm::Csum16 => csum16(data),
            HashAlgorithm::Xor16 => xor16(data),
            HashAlgorithm::Identity => identity(data),
            HashAlgorithm::Random => random(),
        }
    }
}

fn words(data: &[u8]) -> impl Iterator<Item = u16> + '_ {
    let pairs = data.chunks_exact(2);
    let odd = pairs.remainder().first().map(|b| u16::from(*b) << 8);
    pairs.map(|p| u16::from_be_bytes([p[0], p[1]])).chain(odd)
}

/// The Internet checksum (RFC 1071): complement of the ones' complement sum of 16-bit words.
pub fn csum16(data: &[u8]) -> u64 {
    let mut sum: u64 = words(data).map(u64::from).sum();
    while sum >> 16 != 0 {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !sum & 0xffff
}

/// Exclusive or of all 16-bit words.
pub fn xor16(data: &[u8]) -> u64 {
    u64::from(words(data).fold(0, |x, w| x ^ w))
}

/// The first eight bytes as a number.
pub fn identity(data: &[u8]) -> u64 {
    data.iter().take(8).fold(0, |value, byte| (value << 8) | u64::from(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_ones_are_shown_alike_wherever_their_tables_are() {
        assert_eq!(format!("{:?}", Crc::new(CRC16)), format!("{:?}", Crc::new(CRC16)));
        assert_ne!(format!("{:?}", Crc::new(CRC16)), format!("{:?}", Crc::new(CRC32)));
    }

    #[test]
    fn published_check_values() {
        let data = b"123456789";
        assert_eq!(Crc::new(CRC16).sum(data), 0xbb3d);
        assert_eq!(Crc::new(CRC32).sum(data), 0xcbf4_3926);
        let ccitt = CrcParameters {
            polynomial: 0x1021,
            initial: 0xffff,
            reflect_data: false,
            reflect_remainder: false,
            ..CRC16
        };
        assert_eq!(Crc::new(ccitt).sum(data), 0x29b1);
        let bzip2 = CrcParameters { reflect_data: false, reflect_remainder: false, ..CRC32 };
        assert_eq!(Crc::new(bzip2).sum(data), 0xfc89_1918);
    }

    /// Bit by bit, as the Rocksoft model defines it.
    fn by_bits(p: CrcParameters, data: &[u8]) -> u64 {
        let mask = ((1u64 << p.width) - 1) as u32;
        let mut remainder = p.initial & mask;
        for byte in data {
            let byte = if p.reflect_data { byte.reverse_bits() } else { *byte };
            for bit in (0..8).rev() {
                let carry = (remainder >> (p.width - 1) ^ u32::from(byte) >> bit) & 1;
                remainder = (u64::from(remainder) << 1) as u32 & mask ^ (carry * p.polynomial);
            }
        }
        if p.reflect_remainder {
            remainder = remainder.reverse_bits() >> (32 - p.width);
        }
        u64::from((remainder ^ p.final_xor) & mask)
    }

    #[test]
    fn tables_are_as_bits_at_any_length() {
        let data: Vec<u8> = (0u32..67).map(|at| (at * at * 31 + at * 7) as u8).collect();
        let castagnoli = CrcParameters { polynomial: 0x1edc_6f41, ..CRC32 };
        let narrow = CrcParameters { width: 8, polynomial: 0x07, initial: 0x5a, final_xor: 0x11, ..CRC16 };
        let forward = CrcParameters { reflect_data: false, reflect_remainder: false, ..CRC32 };
        let mixed = CrcParameters { reflect_data: true, reflect_remainder: false, ..CRC16 };
        for parameters in [CRC16, CRC32, castagnoli, narrow, forward, mixed] {
            let crc = Crc::new(parameters);
            for length in 0..data.len() {
                let data = &data[..length];
                assert_eq!(crc.sum(data), by_bits(parameters, data), "{parameters:?}, {length} bytes");
            }
        }
    }

    #[test]
    fn rfc_1071_section_3() {
        assert_eq!(csum16(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]), 0x220d);
        assert_eq!(csum16(&[0x01]), 0xfeff);
    }

    #[test]
    fn xor_and_identity() {
        assert_eq!(xor16(&[0x12, 0x34, 0x56, 0x78, 0x9a]), 0x1234 ^ 0x5678 ^ 0x9a00);
        assert_eq!(identity(&[1, 2, 3]), 0x010203);
        assert_eq!(identity(&[1, 2, 3, 4, 5, 6, 7, 8, 9]), 0x0102_0304_0506_0708);
    }
}
