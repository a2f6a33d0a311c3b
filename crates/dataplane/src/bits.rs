//! Bit strings in network order: bit 0 is the most significant bit of the first byte.

/// Bits `from .. from + count` (at most 64) as a number.
pub fn get_bits(bytes: &[u8], from: usize, count: usize) -> u64 {
    let end = from + count;
    let mut value: u128 = 0;
    for byte in &bytes[from / 8..end.div_ceil(8)] {
        value = value << 8 | u128::from(*byte);
    }
    let value = (value >> (end.next_multiple_of(8) - end)) as u64;
    if count >= 64 { value } else { value & ((1 << count) - 1) }
}

/// Copies `count` bits from bit `from` of one string to bit `to` of another.
pub fn copy_bits(dst: &mut [u8], to: usize, src: &[u8], from: usize, count: usize) {
    if to.is_multiple_of(8) && from.is_multiple_of(8) && count.is_multiple_of(8) {
        let bytes = count / 8;
        dst[to / 8..to / 8 + bytes].copy_from_slice(&src[from / 8..from / 8 + bytes]);
        return;
    }
    let mut done = 0;
    while done < count {
        // Up to the end of the byte that is written.
        let at = to + done;
        let room = 8 - at % 8;
        let now = room.min(count - done);
        let value = get_bits(src, from + done, now) as u8;
        let shift = room - now;
        let mask = (((1u16 << now) - 1) as u8) << shift;
        let byte = &mut dst[at / 8];
        *byte = *byte & !mask | value << shift & mask;
        done += now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_at_every_offset() {
        let src: Vec<u8> = (0..16).map(|k| (k * 37 + 11) as u8).collect();
        // Fewer under Miri, which is some thousand times slower.
        let step = if cfg!(miri) { 5 } else { 1 };
        for from in (0..17).step_by(step) {
            for to in (0..17).step_by(step) {
                for count in (0..40).step_by(step) {
                    let mut dst = vec![0xa5; 16];
                    copy_bits(&mut dst, to, &src, from, count);
                    for bit in 0..128 {
                        let expected = if (to..to + count).contains(&bit) {
                            get_bits(&src, bit - to + from, 1)
                        } else {
                            get_bits(&[0xa5; 16], bit, 1)
                        };
                        assert_eq!(get_bits(&dst, bit, 1), expected);
                    }
                }
            }
        }
    }
}
