//! What compiled code calls where headers do not lie on whole bytes or have a varbit field, and for data lists of unknown length.
//!
//! # Safety
//!
//! As for [`super::helpers`]; `native` is the structure that the running block was called with, whose pointers are valid for
//! its lengths.

use std::mem::ManuallyDrop;

use p4lang::ir::HeaderId;

use super::helpers::varbit;
use super::native::Native;
use crate::bits::{copy_bits, get_bits};

/// Reads a header from the packet at the cursor and moves on. `place` is the header's address in the frame, null for an
/// element that does not exist. Gives the error's code, 0 for none.
pub unsafe extern "C" fn extract(native: *mut Native, place: *mut u8, header: u64, varbit_bits: u64) -> u64 {
    // SAFETY: see the module's comment.
    unsafe {
        let native = &mut *native;
        let compiled = &*native.compiled;
        let id = HeaderId(header as u32);
        let ty = &compiled.program[compiled.program[id].ty];
        let slot = compiled.layout.header_slot(id);
        let packet = std::slice::from_raw_parts(native.packet, native.packet_len as usize);
        let left = native.packet_len * 8 - native.cursor;
        // A length for a header without a varbit field has no meaning.
        let varbit_bits = if slot.varbit.is_some() { varbit_bits } else { 0 };
        // The length is at most 2^32 - 1, so this cannot overflow.
        let total = u64::from(ty.fixed_bits) + varbit_bits;
        if slot.varbit.is_some() && total % 8 != 0 {
            return compiled.errors.invalid_argument;
        }
        if total > left {
            return compiled.errors.too_short;
        }
        if let Some((_, max)) = slot.varbit
            && varbit_bits > u64::from(max)
        {
            return compiled.errors.header_too_short;
        }
        if place.is_null() {
            native.cursor += total;
            return 0;
        }
        let bytes = std::slice::from_raw_parts_mut(place, slot.extent as usize);
        bytes.fill(0);
        let start = native.cursor as usize;
        let fixed = ty.fixed_bits as usize;
        // Where the varbit field stands, in bits from the start of the header.
        let split = match ty.varbit {
            Some(field) => ty.fields[field as usize].bit_offset as usize,
            None => fixed,
        };
        copy_bits(bytes, 0, packet, start, split);
        if let Some((offset, _)) = slot.varbit {
            let at = (offset - slot.base) as usize;
            bytes[at..at + 4].copy_from_slice(&(varbit_bits as u32).to_ne_bytes());
            copy_bits(bytes, (at + 4) * 8, packet, start + split, varbit_bits as usize);
        }
        let behind = start + split + varbit_bits as usize;
        copy_bits(bytes, split, packet, behind, fixed - split);
        bytes[(slot.valid - slot.base) as usize] = 1;
        native.cursor += total;
        0
    }
}

/// Reads `bits` bits of the packet from bit `from` as limbs.
pub unsafe extern "C" fn peek(native: *const Native, from: u64, bits: u64, dst: *mut u64) {
    // SAFETY: see the module's comment; the caller has checked that the packet has the bits.
    unsafe {
        let native = &*native;
        let packet = std::slice::from_raw_parts(native.packet, native.packet_len as usize);
        let limbs = std::slice::from_raw_parts_mut(dst, bits.div_ceil(64) as usize);
        for (k, limb) in limbs.iter_mut().enumerate() {
            let low = 64 * k;
            let width = (bits as usize - low).min(64);
            *limb = get_bits(packet, from as usize + bits as usize - low - width, width);
        }
    }
}

/// Appends a header that is not whole bytes or has a varbit field to the output.
pub unsafe extern "C" fn emit(native: *mut Native, place: *const u8, header: u64) {
    // SAFETY: see the module's comment.
    unsafe {
        let compiled = &*(*native).compiled;
        let id = HeaderId(header as u32);
        let ty = &compiled.program[compiled.program[id].ty];
        let slot = compiled.layout.header_slot(id);
        let bytes = std::slice::from_raw_parts(place, slot.extent as usize);
        let fixed = ty.fixed_bits as usize;
        let (bits, content) = match slot.varbit {
            Some((offset, max)) => varbit(place.add((offset - slot.base) as usize), u64::from(max)),
            None => (0, &[][..]),
        };
        let bits = bits as usize;
        let split = match ty.varbit {
            Some(field) => ty.fields[field as usize].bit_offset as usize,
            None => fixed,
        };
        let total = (fixed + bits).div_ceil(8);
        if (*native).out_len + total as u64 > (*native).out_capacity {
            grow(native, total as u64);
        }
        let native = &mut *native;
        let room = native.out.add(native.out_len as usize);
        std::ptr::write_bytes(room, 0, total);
        let out = std::slice::from_raw_parts_mut(room, total);
        copy_bits(out, 0, bytes, 0, split);
        copy_bits(out, split, content, 0, bits);
        copy_bits(out, split + bits, bytes, split, fixed - split);
        native.out_len += total as u64;
    }
}

/// Makes room for `bytes` more bytes of output.
pub unsafe extern "C" fn grow(native: *mut Native, bytes: u64) {
    // SAFETY: see the module's comment; what is written so far is initialised and within the capacity.
    unsafe {
        let native = &mut *native;
        let mut out = ManuallyDrop::new(native.output());
        out.reserve((bytes as usize).max(256));
        native.out = out.as_mut_ptr();
        native.out_capacity = out.capacity() as u64;
    }
}

/// Appends the bytes of the packet that no header was made of to the output.
pub unsafe extern "C" fn append_payload(native: *mut Native) {
    // SAFETY: see the module's comment.
    unsafe {
        let from = (*native).cursor.div_ceil(8).min((*native).packet_len);
        let bytes = (*native).packet_len - from;
        if (*native).out_len + bytes > (*native).out_capacity {
            grow(native, bytes);
        }
        let native = &mut *native;
        let payload = native.packet.add(from as usize);
        let room = native.out.add(native.out_len as usize);
        std::ptr::copy_nonoverlapping(payload, room, bytes as usize);
        native.out_len += bytes;
    }
}

/// Appends `width` bits given as limbs to a data list that has `bit` bits; gives the new length.
pub unsafe extern "C" fn append(list: *mut u8, bit: u64, value: *const u64, width: u64) -> u64 {
    // SAFETY: see the module's comment; the list has room for the longest contents.
    unsafe {
        let end = bit + width;
        let list = std::slice::from_raw_parts_mut(list, end.div_ceil(8) as usize);
        let limbs = std::slice::from_raw_parts(value, width.div_ceil(64) as usize);
        let (mut at, mut left) = (bit, width);
        for limb in limbs.iter().rev() {
            // The highest has what is beside whole ones.
            let count = (left - 1) % 64 + 1;
            let bits = u128::from(limb << (64 - count)) << 64 >> (at % 8);
            for (to, from) in list[(at / 8) as usize..].iter_mut().zip(bits.to_be_bytes()) {
                *to |= from;
            }
            (at, left) = (at + count, left - count);
        }
        end
    }
}

/// The bits of a varbit that may hold `max` as a number.
pub unsafe extern "C" fn varbit_value(dst: *mut u64, at: *const u8, max: u64) {
    // SAFETY: see the module's comment; `dst` has room for the limbs.
    unsafe {
        let (bits, content) = varbit(at, max);
        let bits = bits as usize;
        let words = max.div_ceil(64) as usize;
        for (k, limb) in std::slice::from_raw_parts_mut(dst, words).iter_mut().enumerate() {
            let low = 64 * k;
            let count = bits.saturating_sub(low).min(64);
            *limb = if count == 0 { 0 } else { get_bits(content, bits - low - count, count) };
        }
    }
}

/// As [`append`], for a varbit that may hold `max` bits.
pub unsafe extern "C" fn append_varbit(list: *mut u8, bit: u64, value: *const u8, max: u64) -> u64 {
    // SAFETY: see the module's comment; the list has room for the longest contents.
    unsafe {
        let (bits, content) = varbit(value, max);
        let end = bit + u64::from(bits);
        let list = std::slice::from_raw_parts_mut(list, end.div_ceil(8) as usize);
        copy_bits(list, bit as usize, content, 0, bits as usize);
        end
    }
}
