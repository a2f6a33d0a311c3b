//! What compiled code calls for memory and wide arithmetic: plain functions on addresses that the generated code passes.
//!
//! # Safety
//!
//! Each is called by generated code only, which passes the addresses of frame, stack slot or packet memory that is large
//! enough for the sizes it passes; nothing else refers to that memory during the call.

use num_bigint::BigUint;

/// Copies `len` bytes between memory that may overlap.
pub unsafe extern "C" fn copy(dst: *mut u8, src: *const u8, len: usize) {
    // SAFETY: see the module's comment.
    unsafe { std::ptr::copy(src, dst, len) }
}

pub unsafe extern "C" fn zero(dst: *mut u8, len: usize) {
    // SAFETY: see the module's comment.
    unsafe { std::ptr::write_bytes(dst, 0, len) }
}

/// The varbit at an address: length in bits, at most `max` whatever is there, and bytes. A null address (no such stack
/// element) is an empty one.
///
/// # Safety
///
/// `at` is null or the address of a varbit in a frame that has room for `max` bits.
pub unsafe fn varbit<'a>(at: *const u8, max: u64) -> (u32, &'a [u8]) {
    if at.is_null() {
        return (0, &[]);
    }
    // SAFETY: as the caller promises.
    unsafe {
        let bits = at.cast::<u32>().read_unaligned().min(max as u32);
        (bits, std::slice::from_raw_parts(at.add(4), bits.div_ceil(8) as usize))
    }
}

/// Whether two varbits, each with the most bits that it may hold, are equal in length and bits.
pub unsafe extern "C" fn varbit_eq(left: *const u8, most: u64, right: *const u8, other_most: u64) -> u64 {
    // SAFETY: see the module's comment. Unused bits of the last byte are zero in both.
    unsafe { u64::from(varbit(left, most) == varbit(right, other_most)) }
}

/// Copies a varbit, at most `most` bits of it, into one that may hold `max` bits, which are as many or more. A null source
/// is an empty one.
pub unsafe extern "C" fn varbit_copy(dst: *mut u8, src: *const u8, max: usize, most: u64) {
    // SAFETY: see the module's comment; `dst` has room for `max` bits, and `src`, which may be `dst`, is copied as if by
    // way of a buffer.
    unsafe {
        let (bits, bytes) = varbit(src, most);
        let used = bits.div_ceil(8) as usize;
        std::ptr::copy(bytes.as_ptr(), dst.add(4), used);
        std::ptr::write_bytes(dst.add(4 + used), 0, max.div_ceil(8) - used);
        dst.cast::<u32>().write_unaligned(bits);
    }
}

/// # Safety
///
/// `at` is the address of the limbs of a value `width` bits wide.
unsafe fn read(at: *const u64, width: usize) -> BigUint {
    // SAFETY: as the caller promises.
    let limbs = unsafe { std::slice::from_raw_parts(at, width.div_ceil(64)) };
    let mut digits = Vec::with_capacity(limbs.len() * 2);
    for limb in limbs {
        digits.push(*limb as u32);
        digits.push((limb >> 32) as u32);
    }
    BigUint::new(digits)
}

/// Stores the low `width` bits.
///
/// # Safety
///
/// `at` is the address of room for the limbs of a value `width` bits wide.
unsafe fn write(at: *mut u64, width: usize, value: &BigUint) {
    // SAFETY: as the caller promises.
    let limbs = unsafe { std::slice::from_raw_parts_mut(at, width.div_ceil(64)) };
    let mut digits = value.iter_u64_digits();
    for limb in limbs.iter_mut() {
        *limb = digits.next().unwrap_or(0);
    }
    if let Some(top) = limbs.last_mut()
        && !width.is_multiple_of(64)
    {
        *top &= (1 << (width % 64)) - 1;
    }
}

fn all_ones(width: usize) -> BigUint {
    (BigUint::from(1u8) << width) - 1u8
}

/// Adds half of the range, so that the order of signed numbers becomes that of unsigned ones.
fn biased(value: &BigUint, width: usize) -> BigUint {
    let half = BigUint::from(1u8) << (width - 1);
    (value + half) & all_ones(width)
}

macro_rules! wide {
    ($($(#[$doc:meta])* $name:ident = |$a:ident, $b:ident, $width:ident| $value:expr;)*) => {$(
        $(#[$doc])*
        pub unsafe extern "C" fn $name(dst: *mut u64, a: *const u64, b: *const u64, $width: usize) {
            // SAFETY: see the module's comment.
            unsafe {
                let $a = read(a, $width);
                let $b = read(b, $width);
                let value: BigUint = $value;
                write(dst, $width, &value);
            }
        }
    )*};
}

/// Limbs of factors that are multiplied in place; longer ones are numbers of any width.
const SHORT: usize = 16;

/// The low `width` bits of a product.
pub unsafe extern "C" fn wide_mul(dst: *mut u64, a: *const u64, b: *const u64, width: usize) {
    let count = width.div_ceil(64);
    // SAFETY: see the module's comment.
    unsafe {
        if count > SHORT {
            return write(dst, width, &(read(a, width) * read(b, width)));
        }
        let product =
            short_product(std::slice::from_raw_parts(a, count), std::slice::from_raw_parts(b, count));
        let dst = std::slice::from_raw_parts_mut(dst, count);
        dst.copy_from_slice(&product[..count]);
        if let Some(top) = dst.last_mut() {
            *top &= u64::MAX >> (64 * count - width);
        }
    }
}

/// The product of two numbers of as many limbs, at most [`SHORT`]; those above are 0.
fn short_product(a: &[u64], b: &[u64]) -> [u64; SHORT] {
    let mut sums = [0; SHORT];
    for (from, factor) in a.iter().enumerate() {
        let mut carry = 0;
        for (sum, other) in sums[from..a.len()].iter_mut().zip(b) {
            // At most 2^128 - 1: neither addition goes beyond.
            let all = u128::from(*factor) * u128::from(*other) + u128::from(*sum) + u128::from(carry);
            (*sum, carry) = (all as u64, (all >> 64) as u64);
        }
    }
    sums
}

wide! {
    /// By zero: 0.
    wide_div = |a, b, width| if b == BigUint::ZERO { b } else { a / b };
    wide_mod = |a, b, width| if b == BigUint::ZERO { b } else { a % b };
    wide_add_sat_u = |a, b, width| (a + b).min(all_ones(width));
    wide_sub_sat_u = |a, b, width| if a < b { BigUint::ZERO } else { a - b };
    wide_add_sat_s = |a, b, width| {
        // Biased operands add up to the sum plus twice the bias.
        let half = BigUint::from(1u8) << (width - 1);
        let sum = biased(&a, width) + biased(&b, width);
        let sum = if sum < half { BigUint::ZERO } else { (sum - &half).min(all_ones(width)) };
        biased(&sum, width)
    };
    wide_sub_sat_s = |a, b, width| {
        let half = BigUint::from(1u8) << (width - 1);
        let plus = biased(&a, width) + half;
        let minus = biased(&b, width);
        let difference = if plus < minus { BigUint::ZERO } else { (plus - minus).min(all_ones(width)) };
        biased(&difference, width)
    };
}

macro_rules! shift {
    ($($name:ident = |$a:ident, $by:ident, $width:ident| $value:expr;)*) => {$(
        /// The amount is less than the width or gives what shifting everything out gives.
        pub unsafe extern "C" fn $name(dst: *mut u64, a: *const u64, by: u64, $width: usize) {
            // SAFETY: see the module's comment.
            unsafe {
                let $a = read(a, $width);
                let $by = by.min($width as u64);
                let value: BigUint = $value;
                write(dst, $width, &value);
            }
        }
    )*};
}

shift! {
    wide_shl = |a, by, width| a << by;
    wide_shr = |a, by, width| a >> by;
    wide_sar = |a, by, width| {
        if a.bit(width as u64 - 1) {
            // Shifting the complement brings in zeros, so shifting the value brings in ones.
            all_ones(width) ^ ((all_ones(width) ^ a) >> by)
        } else {
            a >> by
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::SplitMix;

    #[test]
    fn short_and_long_products_are_those_of_numbers() {
        let mut rng = SplitMix::new(1);
        for width in [65, 100, 127, 128, 129, 192, 256, 1000, 1023, 1024, 1025, 2000] {
            // Fewer under Miri, which is some thousand times slower.
            for _ in 0..if cfg!(miri) { 2 } else { 50 } {
                let mut value = || {
                    let limbs = (0..usize::div_ceil(width, 64)).map(|_| match rng.next_u64() % 3 {
                        0 => 0,
                        1 => u64::MAX,
                        _ => rng.next_u64(),
                    });
                    let mut limbs: Vec<u64> = limbs.collect();
                    if let Some(top) = limbs.last_mut() {
                        *top &= u64::MAX >> (width.next_multiple_of(64) - width);
                    }
                    limbs
                };
                let (a, b) = (value(), value());
                let mut product = vec![7; a.len()];
                // SAFETY: all three have the limbs of the width.
                let expected = unsafe {
                    wide_mul(product.as_mut_ptr(), a.as_ptr(), b.as_ptr(), width);
                    (read(a.as_ptr(), width) * read(b.as_ptr(), width)) & all_ones(width)
                };
                let mut digits = expected.iter_u64_digits();
                let expected: Vec<u64> = a.iter().map(|_| digits.next().unwrap_or(0)).collect();
                assert_eq!(product, expected, "{width}");
            }
        }
    }
}
