//! Emission: the headers' bytes one after the other into the output.

use std::mem::offset_of;

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{I8, I8X16, I64};
use cranelift_codegen::ir::{InstBuilder, Value};
use p4lang::ir::{ExprKind, HeaderId, HeaderRef, Stmt};

use super::function::{Gen, Region, int};
use super::native::Native;
use super::packet;
use super::place::Base;
use super::written::pieces;
use crate::layout::HeaderSlot;

/// A header of whole bytes that is emitted if it is valid.
pub(crate) struct Plain {
    pub id: HeaderId,
    base: Base,
    slot: HeaderSlot,
}

impl Gen<'_, '_> {
    /// Appends a header if it is valid.
    pub fn emit(&mut self, header: &HeaderRef) {
        let (HeaderRef::Header(id) | HeaderRef::Elem { header: id, .. }) = header;
        let fixed_bits = self.program[self.program[*id].ty].fixed_bits;
        let Some((base, slot)) = self.header(header) else {
            return;
        };
        let valid = self.load(I8, base.region, base.at, slot.valid as i32);
        let valid = match base.exists {
            Some(exists) => self.b.ins().band(valid, exists),
            None => valid,
        };
        self.when(valid, |g| {
            if slot.varbit.is_some() || !fixed_bits.is_multiple_of(8) {
                let place = g.add_const(base.at, i64::from(slot.base));
                let id = g.iconst(u64::from(id.0));
                let ctx = g.ctx;
                g.call(packet::emit as *const u8, &[ctx, place, id], false);
                return;
            }
            let bytes = g.iconst(u64::from(slot.len));
            let to = g.room(bytes);
            g.emit_bytes(&Plain { id: *id, base, slot }, to);
        });
    }

    /// The headers that a deparser emits, if it does nothing else, and each is an element that is known and whole bytes.
    pub fn plain(&mut self, body: &[Stmt]) -> Option<Vec<Plain>> {
        let mut found = Vec::new();
        for stmt in body {
            let Stmt::Emit(header) = stmt else { return None };
            let id = match header {
                HeaderRef::Elem { index, .. } if !matches!(index.kind, ExprKind::Const(_)) => return None,
                HeaderRef::Header(id) | HeaderRef::Elem { header: id, .. } => *id,
            };
            // An element that there is not is not emitted.
            let Some((base, slot)) = self.header(header) else { continue };
            if slot.varbit.is_some() || !self.program[self.program[id].ty].fixed_bits.is_multiple_of(8) {
                return None;
            }
            found.push(Plain { id, base, slot });
        }
        Some(found)
    }

    /// Bytes of those that are valid.
    pub fn emitted(&mut self, headers: &[Plain]) -> Value {
        let zero = self.iconst(0);
        headers.iter().fold(zero, |sum, header| {
            let valid = self.load(I8, header.base.region, header.base.at, header.slot.valid as i32);
            let len = self.iconst(u64::from(header.slot.len));
            let len = self.b.ins().select(valid, len, zero);
            self.b.ins().iadd(sum, len)
        })
    }

    /// Writes those that are valid one behind the other, from an address on where there is room for all.
    pub fn emit_all(&mut self, headers: &[Plain], at: Value) {
        let next = self.variable();
        self.b.def_var(next, at);
        for header in headers {
            let valid = self.load(I8, header.base.region, header.base.at, header.slot.valid as i32);
            self.when(valid, |g| {
                let to = g.b.use_var(next);
                g.emit_bytes(header, to);
                let behind = g.add_const(to, i64::from(header.slot.len));
                g.b.def_var(next, behind);
            });
        }
    }

    fn emit_bytes(&mut self, header: &Plain, to: Value) {
        let Plain { id, base, slot } = *header;
        if slot.len > 256 {
            self.copy((to, Region::Output, 0), (base.at, base.region, slot.base as i32), slot.len);
            return;
        }
        for (offset, size) in pieces(self.program, self.written, id) {
            let ty = if size == 16 { I8X16 } else { int(size as usize) };
            let piece = self.load(ty, base.region, base.at, (slot.base + offset) as i32);
            self.store(Region::Output, piece, to, offset as i32);
        }
    }

    /// The address of the next `bytes` bytes of the output, which are then taken.
    pub fn room(&mut self, bytes: Value) -> Value {
        let len = self.load_ctx(offset_of!(Native, out_len), 8);
        let capacity = self.load_ctx(offset_of!(Native, out_capacity), 8);
        let behind = self.b.ins().iadd(len, bytes);
        let fits = self.b.ins().icmp(IntCC::UnsignedLessThanOrEqual, behind, capacity);
        let good = self.block();
        let full = self.cold_block();
        self.branch(fits, good, full);
        self.start(full);
        let ctx = self.ctx;
        self.call(packet::grow as *const u8, &[ctx, bytes], false);
        self.jump(good);
        self.start(good);
        self.store_ctx(offset_of!(Native, out_len), 8, behind);
        let ctx = self.ctx;
        let out = self.load(I64, Region::Context, ctx, offset_of!(Native, out) as i32);
        self.b.ins().iadd(out, len)
    }
}
