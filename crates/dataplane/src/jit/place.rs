//! Loads and stores of places: packed header fields, words, validity, next indices, elements of stacks.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{I8, I16, I32, I64};
use cranelift_codegen::ir::{InstBuilder, Value};
use num_traits::ToPrimitive;
use p4lang::ir::{Expr, ExprKind, HeaderRef, Place, StackId};

use super::function::{Gen, Limbs, Region, int, mask};
use crate::layout::{HeaderSlot, Slot};

/// A base address and, for an element whose index is only known at run time, whether it exists.
#[derive(Clone, Copy)]
pub(crate) struct Base {
    pub at: Value,
    pub region: Region,
    /// `i8`; the address is that of element 0 if it is false.
    pub exists: Option<Value>,
}

/// What an index of a stack comes to.
enum Element {
    Missing,
    Known(u64),
    Dynamic { offset: Value, exists: Value },
}

impl Gen<'_, '_> {
    fn element(&mut self, stack: StackId, index: &Expr) -> Element {
        let len = u64::from(self.program[stack].len);
        if let ExprKind::Const(index) = &index.kind {
            return match index.to_u64() {
                Some(index) if index < len => Element::Known(index),
                _ => Element::Missing,
            };
        }
        if len == 0 {
            return Element::Missing;
        }
        let index = self.saturated(index);
        let exists = self.b.ins().icmp_imm_u(IntCC::UnsignedLessThan, index, len as i64);
        let zero = self.iconst(0);
        let index = self.b.ins().select(exists, index, zero);
        let stride = self.layout.stack_stride(stack) as i64;
        let offset = self.b.ins().imul_imm_u(index, stride);
        Element::Dynamic { offset, exists }
    }

    /// Where a place is; `None` for an element that cannot exist.
    pub fn place(&mut self, place: &Place) -> Option<(Base, Slot)> {
        match place {
            Place::Var(var) => {
                let base = Base { at: self.frame, region: self.region_of_var(*var), exists: None };
                Some((base, self.layout.slot(*var)))
            }
            Place::Elem { stack, var, index } => {
                let (base, known) = self.elem_base(*stack, index)?;
                let slot = self.layout.elem(*stack, *var, known)?;
                Some((base, slot))
            }
        }
    }

    /// Where a header is; `None` for an element that cannot exist.
    pub fn header(&mut self, header: &HeaderRef) -> Option<(Base, HeaderSlot)> {
        match header {
            HeaderRef::Header(header) => {
                let base = Base { at: self.frame, region: self.region_of_header(*header), exists: None };
                Some((base, self.layout.header_slot(*header)))
            }
            HeaderRef::Elem { stack, header, index } => {
                let (base, known) = self.elem_base(*stack, index)?;
                let slot = self.layout.elem_header(*stack, *header, known)?;
                Some((base, slot))
            }
        }
    }

    /// The base that, with the slot of the given element, is the element meant.
    fn elem_base(&mut self, stack: StackId, index: &Expr) -> Option<(Base, u64)> {
        let region = Region::Stack(stack);
        match self.element(stack, index) {
            Element::Missing => None,
            Element::Known(index) => Some((Base { at: self.frame, region, exists: None }, index)),
            Element::Dynamic { offset, exists } => {
                let at = self.b.ins().iadd(self.frame, offset);
                Some((Base { at, region, exists: Some(exists) }, 0))
            }
        }
    }

    /// Runs `body` if the element exists.
    pub fn if_exists(&mut self, base: Base, body: impl FnOnce(&mut Self)) {
        match base.exists {
            Some(exists) => self.when(exists, body),
            None => body(self),
        }
    }

    /// 0 instead of the value of a missing element.
    fn or_zero(&mut self, base: Base, value: Value) -> Value {
        match base.exists {
            Some(exists) => {
                let zero = self.iconst(0);
                self.b.ins().select(exists, value, zero)
            }
            None => value,
        }
    }

    /// The bits `hi..=lo` of a place, at most 64 of them.
    pub fn read_bits(&mut self, place: &Place, hi: u32, lo: u32) -> Value {
        if let Place::Var(var) = place
            && let Some(limbs) = self.known_limbs(*var)
        {
            return self.bits_of(&limbs, hi, lo);
        }
        let Some((base, slot)) = self.place(place) else {
            return self.iconst(0);
        };
        let value = self.load_bits(base, slot, hi, lo);
        self.or_zero(base, value)
    }

    pub fn read_limbs(&mut self, place: &Place, width: u32) -> Limbs {
        if let Place::Var(var) = place
            && let Some(limbs) = self.known_limbs(*var)
        {
            return limbs;
        }
        let Some((base, slot)) = self.place(place) else {
            return self.zero_limbs(width);
        };
        (0..width.div_ceil(64))
            .map(|k| {
                let value = self.load_bits(base, slot, (64 * k + 63).min(width - 1), 64 * k);
                self.or_zero(base, value)
            })
            .collect()
    }

    fn load_bits(&mut self, base: Base, slot: Slot, hi: u32, lo: u32) -> Value {
        let Base { at, region, .. } = base;
        match slot {
            Slot::Field { base, bit, width: field } => {
                self.load_packed(at, region, base, bit + field - 1 - hi, hi - lo + 1)
            }
            Slot::Bool { base } => {
                let value = self.load(I8, region, at, base as i32);
                self.b.ins().uextend(I64, value)
            }
            Slot::U32 { base } => {
                let value = self.load(I32, region, at, base as i32);
                let value = self.b.ins().uextend(I64, value);
                let value = self.shr_const(value, lo);
                self.truncate(value, hi - lo + 1)
            }
            Slot::Words { base, width } => {
                let first = lo / 64;
                let shift = lo % 64;
                let low = self.load(I64, region, at, (base + 8 * first) as i32);
                let low = self.limited(low, (width - 64 * first).min(64));
                let mut value = self.shr_const(low, shift);
                if hi / 64 > first {
                    let high = self.load(I64, region, at, (base + 8 * first + 8) as i32);
                    let high = self.limited(high, (width - 64 * first - 64).min(64));
                    let high = self.shl_const(high, 64 - shift);
                    value = self.b.ins().bor(value, high);
                }
                self.truncate(value, hi - lo + 1)
            }
            // The IR reads varbits only where the callers take care of them.
            Slot::Varbit { .. } => self.iconst(0),
        }
    }

    /// Reads `width` (at most 64) bits, `bit` bits after the start of the packed bytes at `offset`.
    pub fn load_packed(&mut self, at: Value, region: Region, offset: u32, bit: u32, width: u32) -> Value {
        let first = bit / 8;
        let last = (bit + width).div_ceil(8);
        let behind = last * 8 - (bit + width);
        let at_first = (offset + first) as i32;
        let bytes = (last - first) as usize;
        if bytes > 8 {
            // 57 to 64 bits that start within a byte: the last byte apart.
            let high = self.load_be(at, region, at_first, 8);
            let low = self.load_be(at, region, at_first + 8, 1);
            let high = self.shl_const(high, 8 - behind);
            let low = self.shr_const(low, behind);
            let value = self.b.ins().bor(high, low);
            return self.truncate(value, width);
        }
        let loaded = bytes.next_power_of_two();
        let value = self.load_be(at, region, at_first, loaded);
        let value = self.shr_const(value, behind + (loaded - bytes) as u32 * 8);
        self.truncate(value, width)
    }

    /// 1, 2, 4 or 8 bytes in network order.
    pub fn load_be(&mut self, at: Value, region: Region, offset: i32, bytes: usize) -> Value {
        let value = self.load(int(bytes), region, at, offset);
        match bytes {
            1 => self.b.ins().uextend(I64, value),
            8 => self.b.ins().bswap(value),
            _ => {
                let value = self.b.ins().bswap(value);
                self.b.ins().uextend(I64, value)
            }
        }
    }

    /// Stores a value of the place's width.
    pub fn write(&mut self, place: &Place, value: &[Value]) {
        if let Place::Var(var) = place
            && let Some(variables) = self.local(*var)
        {
            for (variable, limb) in variables.iter().zip(value) {
                self.b.def_var(*variable, *limb);
            }
            return;
        }
        if let Place::Var(var) = place
            && let Some(variable) = self.global(*var)
        {
            self.b.def_var(variable, value[0]);
            if self.only_in_register(*var) {
                return;
            }
        }
        let Some((base, slot)) = self.place(place) else {
            return;
        };
        self.if_exists(base, |g| g.store_slot(base, slot, value));
    }

    fn store_slot(&mut self, base: Base, slot: Slot, value: &[Value]) {
        let Base { at, region, .. } = base;
        match slot {
            Slot::Field { base, bit, width } => {
                for (k, limb) in value.iter().enumerate() {
                    let low = 64 * k as u32;
                    let piece = (width - low).min(64);
                    self.store_packed(at, region, base, bit + width - low - piece, piece, *limb);
                }
            }
            Slot::Bool { base } => {
                let value = self.b.ins().ireduce(I8, value[0]);
                self.store(region, value, at, base as i32);
            }
            Slot::U32 { base } => {
                let value = self.b.ins().ireduce(I32, value[0]);
                self.store(region, value, at, base as i32);
            }
            Slot::Words { base, .. } => {
                for (k, limb) in value.iter().enumerate() {
                    self.store(region, *limb, at, (base + 8 * k as u32) as i32);
                }
            }
            // The IR writes varbits only by the statements made for them.
            Slot::Varbit { .. } => {}
        }
    }

    /// Stores `width` (at most 64) bits, `bit` bits after the start of the packed bytes at `offset`, and touches no byte
    /// that holds none of them.
    pub fn store_packed(
        &mut self,
        at: Value,
        region: Region,
        offset: u32,
        bit: u32,
        width: u32,
        value: Value,
    ) {
        let end = bit + width;
        let mut first = bit / 8;
        let last = end.div_ceil(8);
        while first < last {
            let left = last - first;
            // The largest power of two that fits.
            let bytes = (1 << left.ilog2()).min(8u32);
            let next = first + bytes;
            // How far the value's lowest bit lies left (positive) or right of this piece's end.
            let shift = i64::from(next * 8) - i64::from(end);
            let piece = if shift >= 0 {
                self.shl_const(value, shift as u32)
            } else {
                self.shr_const(value, (-shift) as u32)
            };
            let from = bit.max(first * 8);
            let to = end.min(next * 8);
            let bits = mask(to - from) << (next * 8 - to);
            let whole = mask(bytes * 8);
            let piece = if bits == whole {
                piece
            } else {
                let new = self.and_const(piece, bits);
                let old = self.load_be(at, region, (offset + first) as i32, bytes as usize);
                let old = self.and_const(old, whole & !bits);
                self.b.ins().bor(old, new)
            };
            let piece = self.narrow_to(piece, bytes as usize);
            let piece = match bytes {
                1 => piece,
                _ => self.b.ins().bswap(piece),
            };
            self.store(region, piece, at, (offset + first) as i32);
            first = next;
        }
    }

    /// Copies bytes between memory that does not overlap, or is the same.
    pub fn copy(&mut self, to: (Value, Region, i32), from: (Value, Region, i32), bytes: u32) {
        self.writes(to.1);
        if bytes > 256 {
            let dst = self.add_const(to.0, i64::from(to.2));
            let src = self.add_const(from.0, i64::from(from.2));
            let len = self.iconst(u64::from(bytes));
            self.call(super::helpers::copy as *const u8, &[dst, src, len], false);
            return;
        }
        // All loads of up to 64 bytes first: the two may be the same memory in part (elements of one stack).
        let mut done = 0;
        while done < bytes {
            let mut pieces = Vec::new();
            while done < bytes && pieces.len() < 4 {
                let size = match bytes - done {
                    16.. => 16,
                    left => 1 << left.ilog2(),
                };
                let ty = match size {
                    16 => cranelift_codegen::ir::types::I8X16,
                    8 => I64,
                    4 => I32,
                    2 => I16,
                    _ => I8,
                };
                pieces.push((self.load(ty, from.1, from.0, from.2 + done as i32), done));
                done += size;
            }
            for (piece, offset) in pieces {
                self.store(to.1, piece, to.0, to.2 + offset as i32);
            }
        }
    }

    /// Copies so many bytes as are known at run time alone, between memory that does not overlap.
    pub fn copy_some(&mut self, to: (Value, Region), from: (Value, Region), bytes: Value) {
        let [pieces, next, piece, last, call, done] = [(); 6].map(|()| self.block());
        // From 16 bytes up to 256: 16 at a time, the last ones once more or for the first time.
        let end = self.add_const(bytes, -16);
        let medium = self.b.ins().icmp_imm_u(IntCC::UnsignedLessThanOrEqual, end, 256 - 16);
        self.branch(medium, pieces, call);
        self.start(pieces);
        let at = self.variable();
        let start = self.iconst(0);
        self.b.def_var(at, start);
        self.jump(next);
        self.start_open(next);
        let offset = self.b.use_var(at);
        let more = self.b.ins().icmp(IntCC::UnsignedLessThan, offset, end);
        self.branch(more, piece, last);
        let copy = |g: &mut Self, offset: Value| {
            let (to_at, from_at) = (g.b.ins().iadd(to.0, offset), g.b.ins().iadd(from.0, offset));
            let bytes = g.load(cranelift_codegen::ir::types::I8X16, from.1, from_at, 0);
            g.store(to.1, bytes, to_at, 0);
        };
        self.start(piece);
        copy(self, offset);
        let behind = self.add_const(offset, 16);
        self.b.def_var(at, behind);
        self.jump(next);
        self.seal(next);
        self.start(last);
        copy(self, end);
        self.jump(done);
        self.start(call);
        self.call(super::helpers::copy as *const u8, &[to.0, from.0, bytes], false);
        self.jump(done);
        self.start(done);
    }

    /// Zeroes bytes.
    pub fn zero(&mut self, at: Value, region: Region, offset: i32, bytes: u32) {
        self.writes(region);
        if bytes > 256 {
            let at = self.add_const(at, i64::from(offset));
            let len = self.iconst(u64::from(bytes));
            self.call(super::helpers::zero as *const u8, &[at, len], false);
            return;
        }
        let zero = self.iconst(0);
        let mut done = 0;
        while done < bytes {
            let size = (1 << (bytes - done).ilog2()).min(8u32);
            let value = self.narrow_to(zero, size as usize);
            self.store(region, value, at, offset + done as i32);
            done += size;
        }
    }
}
