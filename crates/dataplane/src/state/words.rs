//! Numbers as words: `ceil(width / 64)` of them, least significant first.

use std::hash::Hasher;

use num_bigint::BigUint;

/// Words that a width takes.
pub fn words(width: u32) -> usize {
    width.div_ceil(64) as usize
}

/// Appends the words of a value.
pub fn limbs(value: &BigUint, width: u32, out: &mut Vec<u64>) {
    let mut digits = value.iter_u64_digits();
    out.extend((0..words(width)).map(|_| digits.next().unwrap_or(0)));
}

/// The value of words.
pub fn number(words: &[u64]) -> BigUint {
    BigUint::new(words.iter().flat_map(|w| [*w as u32, (*w >> 32) as u32]).collect())
}

/// Clears the low `bits` bits.
pub(super) fn clear_low(value: &mut [u64], bits: u32) {
    let whole = (bits / 64) as usize;
    value[..whole].fill(0);
    if !bits.is_multiple_of(64) {
        value[whole] &= u64::MAX << (bits % 64);
    }
}

/// A quick hasher for keys of whole words, from outside of an attacker's reach only through table entries, which the
/// control plane writes.
#[derive(Debug, Clone, Copy, Default)]
pub struct WordHasher(u64);

impl Hasher for WordHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.write_u64(u64::from_le_bytes(word));
        }
    }

    fn write_u64(&mut self, word: u64) {
        let product = u128::from(self.0 ^ word ^ 0x2545_f491_4f6c_dd1d) * 0x9e37_79b9_7f4a_7c15;
        self.0 = (product as u64) ^ ((product >> 64) as u64);
    }

    fn write_usize(&mut self, _length: usize) {
        // All keys of a table have one length.
    }
}
