//! What compiled code calls, called from here on memory that has exactly the sizes promised: under Miri (`make miri`), which sees
//! each access beside them, and as a test of the results.

use num_bigint::{BigInt, BigUint};
use p4lang::ir::HashAlgorithm;
use units::SplitMix;

use super::super::helpers::{
    copy, varbit, varbit_copy, varbit_eq, wide_add_sat_s, wide_add_sat_u, wide_div, wide_mod, wide_sar,
    wide_shl, wide_shr, wide_sub_sat_s, wide_sub_sat_u, zero,
};
use super::super::native::{Native, Outcome};
use super::super::packet::{append, append_payload, append_varbit, grow, peek, varbit_value};
use super::super::services::{hash_wide, payload_sum};
use crate::cost;

/// Fewer under Miri, which is some thousand times slower.
const CASES: usize = if cfg!(miri) { 12 } else { 2000 };

pub fn bytes(rng: &mut SplitMix, count: usize) -> Vec<u8> {
    (0..count).map(|_| rng.next_u64() as u8).collect()
}

/// The bits of bytes, from the highest of the first on.
pub fn bits(of: &[u8]) -> Vec<bool> {
    of.iter().flat_map(|byte| (0..8).rev().map(move |bit| byte >> bit & 1 == 1)).collect()
}

fn number(bits: &[bool]) -> BigUint {
    bits.iter().fold(BigUint::ZERO, |sum, bit| (sum << 1u8) + BigUint::from(u8::from(*bit)))
}

fn limbs(of: &BigUint, count: usize) -> Vec<u64> {
    let mut digits = of.iter_u64_digits();
    (0..count).map(|_| digits.next().unwrap_or(0)).collect()
}

/// Memory of a varbit that may hold `max` bits, with `length` random ones; unused bits are zero.
pub fn any_varbit(rng: &mut SplitMix, length: usize, max: usize) -> Vec<u8> {
    let mut made = vec![0; 4 + max.div_ceil(8)];
    made[..4].copy_from_slice(&(length as u32).to_ne_bytes());
    let used = length.div_ceil(8);
    let content = bytes(rng, used);
    made[4..4 + used].copy_from_slice(&content);
    if !length.is_multiple_of(8) {
        made[3 + used] &= 0xff << (8 - length % 8);
    }
    made
}

/// A pass over a packet, without a program.
fn native(packet: &[u8], cursor: u64) -> Native {
    Native {
        frame: std::ptr::null_mut(),
        packet: packet.as_ptr(),
        packet_len: packet.len() as u64,
        cursor,
        parser_error: 0,
        dropped: 0,
        work: 1 << 20,
        requested: 0,
        port: 0,
        now: 0,
        stage: 0,
        priority: 0,
        departing: std::ptr::null(),
        out: std::ptr::NonNull::dangling().as_ptr(),
        out_len: 0,
        out_capacity: 0,
        front: 0,
        wire_len: packet.len() as u64,
        compiled: std::ptr::null(),
        state: std::ptr::null_mut(),
        rng: std::ptr::null_mut(),
        requests: std::ptr::null_mut(),
        picoseconds: 0,
    }
}

#[test]
fn memory_is_copied_and_zeroed_as_far_as_asked() {
    let mut rng = SplitMix::new(1);
    for _ in 0..CASES {
        let size = rng.between(1, 40) as usize;
        let mut memory = bytes(&mut rng, size).into_boxed_slice();
        let mut expected = memory.to_vec();
        let count = rng.between(0, size as u64) as usize;
        let (to, from) = (rng.between(0, (size - count) as u64), rng.between(0, (size - count) as u64));
        let (to, from) = (to as usize, from as usize);
        expected.copy_within(from..from + count, to);
        let at = memory.as_mut_ptr();
        // SAFETY: both parts are within the memory.
        unsafe { copy(at.add(to), at.add(from), count) };
        assert_eq!(*memory, *expected);
        expected[from..from + count].fill(0);
        // SAFETY: as above.
        unsafe { zero(memory.as_mut_ptr().add(from), count) };
        assert_eq!(*memory, *expected);
    }
}

#[test]
fn varbits_are_compared_copied_and_read() {
    let mut rng = SplitMix::new(2);
    for _ in 0..CASES {
        let max = rng.between(1, 200) as usize;
        let length = rng.between(0, max as u64) as usize;
        let source = any_varbit(&mut rng, length, max).into_boxed_slice();
        let all = bits(&source[4..])[..length].to_vec();
        let most = max as u64;
        // SAFETY: a varbit of its length; none.
        let ((found, content), none) =
            unsafe { (varbit(source.as_ptr(), most), varbit(std::ptr::null(), most)) };
        assert_eq!((found as usize, content.len()), (length, length.div_ceil(8)));
        assert_eq!(none, (0, &[][..]));

        // A length that cannot be is as long as there is room.
        let mut wrong = source.clone();
        wrong[..4].copy_from_slice(&u32::MAX.to_ne_bytes());
        // SAFETY: the memory of a varbit.
        assert_eq!(unsafe { varbit(wrong.as_ptr(), most) }, (max as u32, &source[4..]));

        // Longer, as long, and shorter: then what fits is copied.
        let room = rng.between(1, 220) as usize;
        let copied = most.min(room as u64);
        let mut target = bytes(&mut rng, 4 + room.div_ceil(8)).into_boxed_slice();
        // SAFETY: a varbit of at most `max` bits, and room for as many as are said.
        unsafe { varbit_copy(target.as_mut_ptr(), source.as_ptr(), room, copied) };
        let kept = length.min(room);
        assert_eq!(target[..4], (kept as u32).to_ne_bytes());
        assert_eq!(bits(&target[4..])[..kept], all[..kept]);
        assert!(target[4 + kept.div_ceil(8)..].iter().all(|byte| *byte == 0));
        if length <= room {
            // SAFETY: two varbits.
            let same = unsafe { varbit_eq(source.as_ptr(), most, target.as_ptr(), room as u64) };
            assert_eq!(same, 1);
        }
        let before = target.clone();
        let at = target.as_mut_ptr();
        // SAFETY: onto itself; then from none.
        unsafe { varbit_copy(at, at, room, room as u64) };
        assert_eq!(target, before);
        // SAFETY: as above.
        unsafe { varbit_copy(target.as_mut_ptr(), std::ptr::null(), room, 0) };
        assert!(target.iter().all(|byte| *byte == 0));
        // SAFETY: two varbits.
        let same = unsafe { varbit_eq(source.as_ptr(), most, target.as_ptr(), room as u64) };
        assert_eq!(same, u64::from(length == 0));

        let mut value = vec![7; max.div_ceil(64)].into_boxed_slice();
        // SAFETY: room for the words of the longest.
        unsafe { varbit_value(value.as_mut_ptr(), source.as_ptr(), most) };
        assert_eq!(*value, limbs(&number(&all), value.len()));
    }
}

/// Lists that are as long as what is appended to them, from any bit on.
#[test]
fn numbers_and_varbits_are_appended_to_a_list() {
    let mut rng = SplitMix::new(3);
    for _ in 0..CASES {
        let (mut expected, mut parts) = (Vec::new(), Vec::new());
        for _ in 0..rng.between(1, 6) {
            if rng.next_u64().is_multiple_of(3) {
                let length = rng.between(0, 90) as usize;
                let made = any_varbit(&mut rng, length, 90);
                expected.extend(&bits(&made[4..])[..length]);
                parts.push((made, None));
            } else {
                let width = rng.between(1, 150) as usize;
                let all = bits(&bytes(&mut rng, width.div_ceil(8)))[..width].to_vec();
                parts.push((Vec::new(), Some((limbs(&number(&all), width.div_ceil(64)), width as u64))));
                expected.extend(all);
            }
        }
        let mut list = vec![0; expected.len().div_ceil(8)].into_boxed_slice();
        let mut bit = 0;
        for (made, value) in parts {
            // SAFETY: the list has room for all parts.
            bit = unsafe {
                match value {
                    Some((value, width)) => append(list.as_mut_ptr(), bit, value.as_ptr(), width),
                    None => append_varbit(list.as_mut_ptr(), bit, made.as_ptr(), 90),
                }
            };
        }
        assert_eq!(bit as usize, expected.len());
        let found = bits(&list);
        assert_eq!(found[..expected.len()], expected);
        assert!(found[expected.len()..].iter().all(|bit| !bit));
    }
}

#[test]
fn any_bits_of_a_packet_are_read() {
    let mut rng = SplitMix::new(4);
    for _ in 0..CASES {
        let size = rng.between(1, 60) as usize;
        let packet = bytes(&mut rng, size).into_boxed_slice();
        let from = rng.between(0, size as u64 * 8 - 1) as usize;
        let count = rng.between(1, (size * 8 - from) as u64) as usize;
        let mut value = vec![7; count.div_ceil(64)].into_boxed_slice();
        let native = native(&packet, 0);
        // SAFETY: the packet has the bits, and there is room for them.
        unsafe { peek(&raw const native, from as u64, count as u64, value.as_mut_ptr()) };
        assert_eq!(*value, limbs(&number(&bits(&packet)[from..from + count]), value.len()));
    }
}

#[test]
fn output_grows_and_takes_the_payload() {
    let mut rng = SplitMix::new(5);
    for _ in 0..CASES {
        let size = rng.between(0, 600) as usize;
        let packet = bytes(&mut rng, size).into_boxed_slice();
        let mut native = native(&packet, rng.between(0, size as u64 * 8));
        let payload = &packet[(native.cursor.div_ceil(8) as usize)..];
        let mut expected = Vec::new();
        for _ in 0..3 {
            if rng.next_u64().is_multiple_of(2) {
                let before = native.out_capacity;
                // SAFETY: what is written is in the output.
                unsafe { grow(&raw mut native, 300) };
                assert!(native.out_capacity >= native.out_len + 300 && native.out_capacity >= before);
            }
            // SAFETY: as above.
            unsafe { append_payload(&raw mut native) };
            expected.extend(payload);
        }
        // SAFETY: the output was taken apart by `grow`, and is no other's.
        assert_eq!(unsafe { native.output() }, expected);

        let odd = rng.next_u64() % 2;
        let mut padded: Vec<u8> = vec![0; odd as usize];
        padded.extend(payload);
        padded.resize(padded.len().next_multiple_of(2), 0);
        let words = padded.chunks(2).map(|pair| u64::from(pair[0]) << 8 | u64::from(pair[1]));
        // SAFETY: the packet is as long as said.
        assert_eq!(unsafe { payload_sum(&raw mut native, odd) }, words.sum::<u64>());
        native.work = 0;
        // SAFETY: as above.
        let refused = unsafe { payload_sum(&raw mut native, odd) };
        if cost::payload(HashAlgorithm::Csum16, payload.len()) > 0 {
            assert!(refused == 0 && native.dropped != 0);
        }
    }
}

#[test]
fn a_wide_hash_is_within_its_bounds() {
    let mut rng = SplitMix::new(6);
    for _ in 0..CASES {
        let width = rng.between(65, 200) as usize;
        let mut value = |below: usize| number(&bits(&bytes(&mut rng, 25))[..below]);
        let (base, max) =
            (value(width - 2), if width.is_multiple_of(5) { BigUint::ZERO } else { value(width - 2) });
        let (base_limbs, max_limbs) = (limbs(&base, width.div_ceil(64)), limbs(&max, width.div_ceil(64)));
        let mut found = vec![7; base_limbs.len()].into_boxed_slice();
        let hash = rng.next_u64();
        // SAFETY: all three have the words of the width.
        unsafe {
            hash_wide(found.as_mut_ptr(), hash, base_limbs.as_ptr(), max_limbs.as_ptr(), width as u64);
        }
        let expected = if max == BigUint::ZERO { base } else { base + BigUint::from(hash) % max };
        assert_eq!(*found, limbs(&expected, found.len()));
    }
}

#[test]
fn wide_numbers_are_read_and_written_in_their_words() {
    type Two = unsafe extern "C" fn(*mut u64, *const u64, *const u64, usize);
    type Shift = unsafe extern "C" fn(*mut u64, *const u64, u64, usize);
    let mut rng = SplitMix::new(7);
    for _ in 0..CASES {
        let width = rng.between(65, 200) as usize;
        let count = width.div_ceil(64);
        let one = BigInt::from(1);
        let (modulus, half) = (one.clone() << width, one.clone() << (width - 1));
        let signed = |value: &BigInt| if *value >= half { value - &modulus } else { value.clone() };
        let mut value = || BigInt::from(number(&bits(&bytes(&mut rng, 25))[..width]));
        let (a, b) = (value(), value());
        let by = rng.between(0, width as u64 + 3);
        let stored =
            |value: &BigInt| limbs(&value.to_biguint().expect("not negative"), count).into_boxed_slice();
        let (a_words, b_words) = (stored(&a), stored(&b));
        let is = |found: Box<[u64]>, expected: BigInt| {
            assert_eq!(
                found,
                stored(&(((expected % &modulus) + &modulus) % &modulus)),
                "{a}, {b}, {by}, {width}"
            );
        };
        let (sa, sb) = (signed(&a), signed(&b));
        let saturated = |value: BigInt| value.clamp(-half.clone(), &half - 1);
        for (function, expected) in [
            (wide_div as Two, if b == BigInt::ZERO { BigInt::ZERO } else { &a / &b }),
            (wide_mod, if b == BigInt::ZERO { BigInt::ZERO } else { &a % &b }),
            (wide_add_sat_u, (&a + &b).min(&modulus - 1)),
            (wide_sub_sat_u, (&a - &b).max(BigInt::ZERO)),
            (wide_add_sat_s, saturated(&sa + &sb)),
            (wide_sub_sat_s, saturated(&sa - &sb)),
        ] {
            let mut found = vec![7; count].into_boxed_slice();
            // SAFETY: all three have the words of the width.
            unsafe { function(found.as_mut_ptr(), a_words.as_ptr(), b_words.as_ptr(), width) };
            is(found, expected);
        }
        for (function, expected) in
            [(wide_shl as Shift, &a << by), (wide_shr, &a >> by), (wide_sar, &sa >> by)]
        {
            let mut found = vec![7; count].into_boxed_slice();
            // SAFETY: both have the words of the width.
            unsafe { function(found.as_mut_ptr(), a_words.as_ptr(), by, width) };
            is(found, expected);
        }
    }
}

#[test]
fn the_pointer_of_a_vec_is_found() {
    let at = super::super::native::vec_pointer::<Outcome>();
    let list = [Outcome { args: std::ptr::null(), action: 3 }].into_iter().collect::<Vec<_>>();
    // SAFETY: the word of a `Vec` that is its pointer.
    let pointer = unsafe { (&raw const list).cast::<u8>().add(at).cast::<*const Outcome>().read() };
    assert_eq!(pointer, list.as_ptr());
}
