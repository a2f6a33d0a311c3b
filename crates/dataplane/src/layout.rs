//! Where each variable of a program lives: the *frame*, a flat `[u8]` that both executors work on.
//!
//! - A header instance is `ceil(fixed_bits / 8)` bytes packed as on the wire (network order, most significant bit first, each
//!   field at its `bit_offset`, a varbit field counted as zero wide), then its validity (one byte, 0 or 1) and, if it
//!   has one, its varbit field: `u32` length in bits, then the bits, left aligned.
//! - Stack elements are equally spaced: whatever belongs to element `i` is at `base + i * stride`.
//! - A stack's next index is a `u32`.
//! - Any other variable up to 64 bits is one native `u64`, zero-extended; a wider one is `ceil(width / 64)` native `u64` limbs,
//!   least significant first, unused high bits always zero. Global ones that the program reads come first.
//!
//! The first `persistent_len` bytes hold what is kept from ingress to egress and copied with packet copies: global
//! variables, headers of the parsed representation, next indices. They are zeroed at the start of a packet. Locals follow.
//! The last [`SLACK`] bytes hold nothing, so that a wide load of the last field stays inside the frame.

use num_bigint::BigUint;
use p4lang::ir::{Header, HeaderId, Program, StackId, Var, VarHome, VarId};
use p4lang::sizes;

use crate::reads::reads;
use crate::refused::Refused;

/// Unused bytes at the end of the frame.
pub const SLACK: usize = sizes::SLACK as usize;

/// Bytes that a frame may have: each packet that waits in a queue holds one, and all of it is zeroed for each packet.
pub const MAX_FRAME: usize = sizes::MAX_FRAME as usize;

/// Where one scalar is. All offsets are bytes from the start of the frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Slot {
    /// Bits `bit .. bit + width` of the packed bytes at `base`, counted from the most significant bit of the first byte.
    Field { base: u32, bit: u32, width: u32 },
    /// A length in bits (`u32`), at `base + 4` the bits, left aligned; `width` is the maximum in bits.
    Varbit { base: u32, width: u32 },
    /// One byte, 0 or 1.
    Bool { base: u32 },
    /// A native `u32`.
    U32 { base: u32 },
    /// Native `u64` limbs, least significant first.
    Words { base: u32, width: u32 },
}

/// Where one header instance is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeaderSlot {
    /// Offset of the packed bytes.
    pub base: u32,
    /// Number of packed bytes.
    pub len: u32,
    /// Offset of the validity byte.
    pub valid: u32,
    /// Offset of the varbit field's length and its maximum in bits.
    pub varbit: Option<(u32, u32)>,
    /// Bytes from `base` to the end of everything that belongs to the header.
    pub extent: u32,
}

#[derive(Debug, Clone, Copy)]
struct StackSlot {
    len: u32,
    stride: u32,
}

/// The frame's plan for one program.
#[derive(Debug, Clone)]
pub struct Layout {
    slots: Vec<Slot>,
    headers: Vec<HeaderSlot>,
    stacks: Vec<StackSlot>,
    /// Bytes at the start of the frame that live as long as the packet.
    pub persistent_len: usize,
    /// Bytes in all, slack included.
    pub frame_len: usize,
}

impl Layout {
    /// # Errors
    /// A frame of more than [`MAX_FRAME`] bytes.
    pub fn new(program: &Program) -> Result<Layout, Refused> {
        let mut layout = Layout {
            slots: vec![Slot::Words { base: 0, width: 1 }; program.vars.len()],
            headers: vec![
                HeaderSlot { base: 0, len: 0, valid: 0, varbit: None, extent: 0 };
                program.headers.len()
            ],
            stacks: vec![StackSlot { len: 0, stride: 0 }; program.stacks.len()],
            persistent_len: 0,
            frame_len: 0,
        };
        // Offsets are 64 bits wide until the frame is known to be small.
        let mut at = 0;
        let read = reads(program);
        layout.words(program, VarHome::Global, &mut at, |var| read.contains(&var));
        layout.words(program, VarHome::Global, &mut at, |var| !read.contains(&var));
        for (slot, var) in layout.slots.iter_mut().zip(&program.vars) {
            if let VarHome::NextIndex(_) = var.home {
                *slot = Slot::U32 { base: narrow(at) };
                at += 4;
            }
        }
        layout.headers(program, false, &mut at);
        at = align(at, 8);
        let persistent_len = at;
        layout.words(program, VarHome::Local, &mut at, |_| true);
        layout.headers(program, true, &mut at);
        let frame_len = align(at, 8) + SLACK as u64;
        if frame_len > MAX_FRAME as u64 {
            return Err(Refused::Frame(frame_len));
        }
        (layout.persistent_len, layout.frame_len) = (persistent_len as usize, frame_len as usize);
        Ok(layout)
    }

    fn words(&mut self, program: &Program, home: VarHome, at: &mut u64, which: impl Fn(VarId) -> bool) {
        *at = align(*at, 8);
        for (index, (slot, var)) in self.slots.iter_mut().zip(&program.vars).enumerate() {
            if var.home != home || !which(VarId(index as u32)) {
                continue;
            }
            if var.varbit {
                *slot = Slot::Varbit { base: narrow(*at), width: var.width };
                *at += align(4 + u64::from(var.width.div_ceil(8)), 8);
            } else {
                *slot = Slot::Words { base: narrow(*at), width: var.width };
                *at += u64::from(var.width.div_ceil(64)) * 8;
            }
        }
    }

    /// Places the headers that are (or are not) local, those of a stack side by side.
    fn headers(&mut self, program: &Program, local: bool, at: &mut u64) {
        let mut in_stack = vec![false; program.headers.len()];
        for (index, stack) in program.stacks.iter().enumerate() {
            let first = stack.first_header.index();
            let count = (stack.len * stack.header_stride) as usize;
            in_stack[first..first + count].fill(true);
            if count == 0 || program.headers[first].local != local {
                continue;
            }
            *at = align(*at, 8);
            let start = *at;
            for element in 0..stack.len {
                for k in 0..stack.header_stride {
                    self.header(program, first + (element * stack.header_stride + k) as usize, at);
                }
                *at = align(*at, 4);
                if element == 0 {
                    self.stacks[index] = StackSlot { len: stack.len, stride: narrow(*at - start) };
                }
            }
        }
        for (index, header) in program.headers.iter().enumerate() {
            if !in_stack[index] && header.local == local {
                self.header(program, index, at);
            }
        }
    }

    fn header(&mut self, program: &Program, index: usize, at: &mut u64) {
        let header: &Header = &program.headers[index];
        let ty = &program[header.ty];
        *at = align(*at, 4);
        let start = *at;
        // The type's own sum of them has 32 bits.
        let bits: u64 = ty.fields.iter().filter(|f| !f.varbit).map(|f| u64::from(f.width)).sum();
        *at += bits.div_ceil(8) + 1;
        let (base, len, valid) = (narrow(start), ty.fixed_bits.div_ceil(8), narrow(*at - 1));
        let varbit = ty.varbit.map(|field| {
            let width = ty.fields[field as usize].width;
            let start = align(*at, 4);
            *at = start + 4 + u64::from(width.div_ceil(8));
            (narrow(start), width)
        });
        for (k, field) in ty.fields.iter().enumerate() {
            self.slots[header.first_field.index() + k] = match varbit {
                Some((base, width)) if field.varbit => Slot::Varbit { base, width },
                _ => Slot::Field { base, bit: field.bit_offset, width: field.width },
            };
        }
        self.slots[header.valid.index()] = Slot::Bool { base: valid };
        self.headers[index] = HeaderSlot { base, len, valid, varbit, extent: narrow(*at - start) };
    }

    /// A zeroed frame.
    pub fn frame(&self) -> Box<[u8]> {
        vec![0; self.frame_len].into_boxed_slice()
    }

    pub fn slot(&self, var: VarId) -> Slot {
        self.slots[var.index()]
    }

    pub fn header_slot(&self, header: HeaderId) -> HeaderSlot {
        self.headers[header.index()]
    }

    /// Bytes from one element of a stack to the next.
    pub fn stack_stride(&self, stack: StackId) -> usize {
        self.stacks[stack.index()].stride as usize
    }

    /// The variable of element `index` that corresponds to `var` of element 0; `None` if there is no such element.
    pub fn elem(&self, stack: StackId, var: VarId, index: u64) -> Option<Slot> {
        let offset = self.elem_offset(stack, index)?;
        Some(self.slot(var).moved(offset))
    }

    /// The header of element `index` that corresponds to `header` of element 0; `None` if there is no such element.
    pub fn elem_header(&self, stack: StackId, header: HeaderId, index: u64) -> Option<HeaderSlot> {
        let offset = self.elem_offset(stack, index)?;
        Some(self.header_slot(header).moved(offset))
    }

    fn elem_offset(&self, stack: StackId, index: u64) -> Option<u32> {
        let StackSlot { len, stride } = self.stacks[stack.index()];
        (index < u64::from(len)).then(|| index as u32 * stride)
    }

    /// Value of a variable of at most 64 bits.
    pub fn get_u64(&self, frame: &[u8], var: VarId) -> u64 {
        self.slot(var).get_u64(frame)
    }

    pub fn set_u64(&self, frame: &mut [u8], var: VarId, value: u64) {
        self.slot(var).set_u64(frame, value);
    }

    pub fn get(&self, frame: &[u8], var: VarId) -> BigUint {
        self.slot(var).get(frame)
    }

    pub fn set(&self, frame: &mut [u8], var: VarId, value: &BigUint) {
        self.slot(var).set(frame, value);
    }
}

impl Slot {
    /// The same variable `offset` bytes further on.
    fn moved(self, offset: u32) -> Slot {
        match self {
            Slot::Field { base, bit, width } => Slot::Field { base: base + offset, bit, width },
            Slot::Varbit { base, width } => Slot::Varbit { base: base + offset, width },
            Slot::Bool { base } => Slot::Bool { base: base + offset },
            Slot::U32 { base } => Slot::U32 { base: base + offset },
            Slot::Words { base, width } => Slot::Words { base: base + offset, width },
        }
    }

    /// Width in bits; of a varbit the maximum.
    pub fn width(self) -> u32 {
        match self {
            Slot::Field { width, .. } | Slot::Varbit { width, .. } | Slot::Words { width, .. } => width,
            Slot::Bool { .. } => 1,
            Slot::U32 { .. } => 32,
        }
    }

    /// Value of a scalar of at most 64 bits (of a wider one, the low 64 bits).
    pub fn get_u64(self, frame: &[u8]) -> u64 {
        match self {
            Slot::Field { base, bit, width } => {
                let end = bit + width;
                let first = bit.max(end.saturating_sub(64)) / 8;
                let last = end.div_ceil(8);
                let mut value: u128 = 0;
                for &byte in &frame[(base + first) as usize..(base + last) as usize] {
                    value = value << 8 | u128::from(byte);
                }
                low_bits((value >> (last * 8 - end)) as u64, width)
            }
            Slot::Bool { base } => u64::from(frame[base as usize]),
            Slot::U32 { base } => u64::from(read_u32(frame, base)),
            Slot::Words { base, .. } => read_u64(frame, base),
            Slot::Varbit { .. } => {
                debug_assert!(false, "a varbit is not a scalar");
                0
            }
        }
    }

    /// Stores the low bits of `value` as wide as the scalar, zero-extended.
    pub fn set_u64(self, frame: &mut [u8], value: u64) {
        match self {
            Slot::Field { base, bit, width } => {
                if width > 64 {
                    return self.set(frame, &BigUint::from(value));
                }
                let end = bit + width;
                let first = bit / 8;
                let last = end.div_ceil(8);
                let shift = last * 8 - end;
                let mut mask = u128::from(low_bits(u64::MAX, width)) << shift;
                let mut value = u128::from(low_bits(value, width)) << shift;
                let bytes = &mut frame[(base + first) as usize..(base + last) as usize];
                for byte in bytes.iter_mut().rev() {
                    *byte = *byte & !(mask as u8) | value as u8;
                    mask >>= 8;
                    value >>= 8;
                }
            }
            Slot::Bool { base } => frame[base as usize] = (value & 1) as u8,
            Slot::U32 { base } => {
                frame[base as usize..base as usize + 4].copy_from_slice(&(value as u32).to_ne_bytes());
            }
            Slot::Words { base, width } => {
                let limbs = width.div_ceil(64);
                write_u64(frame, base, low_bits(value, width));
                for k in 1..limbs {
                    write_u64(frame, base + 8 * k, 0);
                }
            }
            Slot::Varbit { .. } => debug_assert!(false, "a varbit is not a scalar"),
        }
    }

    /// Value of a scalar of any width; of a varbit, its bits as a number.
    pub fn get(self, frame: &[u8]) -> BigUint {
        match self {
            Slot::Field { base, bit, width } if width > 64 => {
                let end = bit + width;
                let last = end.div_ceil(8);
                let bytes = &frame[(base + bit / 8) as usize..(base + last) as usize];
                let value = BigUint::from_bytes_be(bytes) >> (last * 8 - end);
                truncated(value, width)
            }
            Slot::Words { base, width } if width > 64 => {
                let bytes = &frame[base as usize..(base + width.div_ceil(64) * 8) as usize];
                let limbs =
                    bytes.as_chunks::<8>().0.iter().flat_map(|limb| u64::from_ne_bytes(*limb).to_le_bytes());
                BigUint::from_bytes_le(&limbs.collect::<Vec<_>>())
            }
            Slot::Varbit { .. } => {
                let (bits, bytes) = self.varbit(frame);
                BigUint::from_bytes_be(bytes) >> (bytes.len() as u32 * 8 - bits)
            }
            _ => BigUint::from(self.get_u64(frame)),
        }
    }

    /// Stores the low bits of `value`.
    pub fn set(self, frame: &mut [u8], value: &BigUint) {
        match self {
            Slot::Field { base, bit, width } if width > 64 => {
                let end = bit + width;
                let last = end.div_ceil(8);
                let shift = last * 8 - end;
                let bytes = &mut frame[(base + bit / 8) as usize..(base + last) as usize];
                let field = ((BigUint::from(1u8) << width) - 1u8) << shift;
                let outside = BigUint::from_bytes_be(bytes);
                let kept = &outside ^ (&outside & &field);
                let new = (kept | (truncated(value.clone(), width) << shift)).to_bytes_be();
                let pad = bytes.len() - new.len();
                bytes[..pad].fill(0);
                bytes[pad..].copy_from_slice(&new);
            }
            Slot::Words { base, width } if width > 64 => {
                let value = truncated(value.clone(), width);
                let mut digits = value.iter_u64_digits();
                for k in 0..width.div_ceil(64) {
                    write_u64(frame, base + 8 * k, digits.next().unwrap_or(0));
                }
            }
            _ => self.set_u64(frame, value.iter_u64_digits().next().unwrap_or(0)),
        }
    }

    /// Length in bits and bytes of a varbit; empty for anything else.
    pub fn varbit(self, frame: &[u8]) -> (u32, &[u8]) {
        match self {
            Slot::Varbit { base, width } => {
                let bits = read_u32(frame, base).min(width);
                let start = base as usize + 4;
                (bits, &frame[start..start + bits.div_ceil(8) as usize])
            }
            _ => (0, &[]),
        }
    }

    /// Stores a varbit: `bits` bits, left aligned in `bytes`. Storage beyond them becomes zero.
    pub fn set_varbit(self, frame: &mut [u8], bits: u32, bytes: &[u8]) {
        if let Slot::Varbit { base, width } = self {
            let bits = bits.min(width);
            let start = base as usize + 4;
            let used = bits.div_ceil(8) as usize;
            frame[base as usize..start].copy_from_slice(&bits.to_ne_bytes());
            let storage = &mut frame[start..start + width.div_ceil(8) as usize];
            storage[..used].copy_from_slice(&bytes[..used]);
            storage[used..].fill(0);
            if bits % 8 != 0 {
                storage[used - 1] &= !(0xff >> (bits % 8));
            }
        }
    }
}

impl HeaderSlot {
    fn moved(self, offset: u32) -> HeaderSlot {
        HeaderSlot {
            base: self.base + offset,
            len: self.len,
            valid: self.valid + offset,
            varbit: self.varbit.map(|(base, width)| (base + offset, width)),
            extent: self.extent,
        }
    }

    pub fn is_valid(self, frame: &[u8]) -> bool {
        frame[self.valid as usize] != 0
    }

    pub fn set_valid(self, frame: &mut [u8], valid: bool) {
        frame[self.valid as usize] = u8::from(valid);
    }

    /// The packed bytes.
    pub fn bytes(self, frame: &[u8]) -> &[u8] {
        &frame[self.base as usize..(self.base + self.len) as usize]
    }

    pub fn bytes_mut(self, frame: &mut [u8]) -> &mut [u8] {
        &mut frame[self.base as usize..(self.base + self.len) as usize]
    }

    /// Invalid, all fields zero.
    pub fn reset(self, frame: &mut [u8]) {
        frame[self.base as usize..(self.base + self.extent) as usize].fill(0);
    }

    /// Validity and all fields from a header of the same type.
    pub fn copy_from(self, frame: &mut [u8], src: HeaderSlot) {
        let from = src.base as usize;
        let extent = self.extent.min(src.extent) as usize;
        frame.copy_within(from..from + extent, self.base as usize);
    }
}

/// Words that a value takes in keys, action data and locals.
pub fn limbs(var: &Var) -> u32 {
    var.width.div_ceil(64)
}

fn align(at: u64, to: u64) -> u64 {
    at.next_multiple_of(to)
}

/// An offset in a frame; one that is too large is that of a frame that is refused.
fn narrow(offset: u64) -> u32 {
    u32::try_from(offset).unwrap_or(u32::MAX)
}

fn low_bits(value: u64, width: u32) -> u64 {
    if width >= 64 { value } else { value & ((1 << width) - 1) }
}

fn truncated(value: BigUint, width: u32) -> BigUint {
    if value.bits() <= u64::from(width) { value } else { value & ((BigUint::from(1u8) << width) - 1u8) }
}

fn read_u32(frame: &[u8], at: u32) -> u32 {
    let mut bytes = [0; 4];
    bytes.copy_from_slice(&frame[at as usize..at as usize + 4]);
    u32::from_ne_bytes(bytes)
}

fn read_u64(frame: &[u8], at: u32) -> u64 {
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&frame[at as usize..at as usize + 8]);
    u64::from_ne_bytes(bytes)
}

fn write_u64(frame: &mut [u8], at: u32, value: u64) {
    let at = at as usize;
    frame[at..at + 8].copy_from_slice(&value.to_ne_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every width at every bit offset: what is set is what is got, and nothing around it changes.
    #[test]
    fn fields_are_independent() {
        for width in [1u32, 3, 7, 8, 9, 16, 31, 33, 48, 63, 64, 65, 100, 127, 128, 129, 256] {
            for bit in 0..17 {
                for background in [0u8, 0xff] {
                    let slot = Slot::Field { base: 3, bit, width };
                    let mut frame = vec![background; 80];
                    let pattern = BigUint::from_bytes_be(&[0xa5; 33]);
                    let value = truncated(pattern, width);
                    slot.set(&mut frame, &value);
                    assert_eq!(slot.get(&frame), value, "width {width} bit {bit}");
                    let low = value.iter_u64_digits().next().unwrap_or(0);
                    assert_eq!(slot.get_u64(&frame), low, "width {width} bit {bit}");
                    let all =
                        if background == 0 { BigUint::ZERO } else { (BigUint::from(1u8) << width) - 1u8 };
                    slot.set(&mut frame, &all);
                    assert!(frame.iter().all(|&byte| byte == background));
                }
            }
        }
    }

    #[test]
    fn fields_are_in_network_order() {
        let mut frame = vec![0; 32];
        let version = Slot::Field { base: 0, bit: 0, width: 4 };
        let length = Slot::Field { base: 0, bit: 16, width: 16 };
        version.set_u64(&mut frame, 4);
        length.set_u64(&mut frame, 0x1234);
        assert_eq!(frame[..4], [0x40, 0, 0x12, 0x34]);
    }

    #[test]
    fn words_keep_their_unused_bits_zero() {
        let mut frame = vec![0xff; 32];
        let slot = Slot::Words { base: 0, width: 65 };
        slot.set(&mut frame, &((BigUint::from(1u8) << 70u32) | BigUint::from(5u8)));
        assert_eq!(slot.get(&frame), BigUint::from(5u8));
        assert_eq!(frame[8..16], [0; 8]);
    }

    #[test]
    fn varbits_clear_what_they_do_not_use() {
        let mut frame = vec![0xff; 32];
        let slot = Slot::Varbit { base: 0, width: 64 };
        slot.set_varbit(&mut frame, 12, &[0xab, 0xcd]);
        assert_eq!(slot.varbit(&frame), (12, &[0xab, 0xc0][..]));
        assert_eq!(slot.get(&frame), BigUint::from(0xabcu32));
        assert_eq!(frame[6..12], [0; 6]);
    }
}
