//! Emission: the headers' bytes one after the other into the output.

use std::mem::offset_of;

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{I8, I8X16, I64};
use cranelift_codegen::ir::{InstBuilder, Value};
use p4lang::ir::HeaderRef;

use super::function::{Gen, Region, int};
use super::native::Native;
use super::packet;
use super::written::pieces;

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
            let to = g.room(slot.len);
            if slot.len > 256 {
                g.copy((to, Region::Output, 0), (base.at, base.region, slot.base as i32), slot.len);
                return;
            }
            for (offset, size) in pieces(g.program, g.written, *id) {
                let ty = if size == 16 { I8X16 } else { int(size as usize) };
                let piece = g.load(ty, base.region, base.at, (slot.base + offset) as i32);
                g.store(Region::Output, piece, to, offset as i32);
            }
        });
    }

    /// The address of the next `bytes` bytes of the output, which are then taken.
    fn room(&mut self, bytes: u32) -> Value {
        let len = self.load_ctx(offset_of!(Native, out_len), 8);
        let capacity = self.load_ctx(offset_of!(Native, out_capacity), 8);
        let behind = self.add_const(len, i64::from(bytes));
        let fits = self.b.ins().icmp(IntCC::UnsignedLessThanOrEqual, behind, capacity);
        let good = self.block();
        let full = self.cold_block();
        self.branch(fits, good, full);
        self.start(full);
        let ctx = self.ctx;
        let bytes = self.iconst(u64::from(bytes));
        self.call(packet::grow as *const u8, &[ctx, bytes], false);
        self.jump(good);
        self.start(good);
        self.store_ctx(offset_of!(Native, out_len), 8, behind);
        let ctx = self.ctx;
        let out = self.load(I64, Region::Context, ctx, offset_of!(Native, out) as i32);
        self.b.ins().iadd(out, len)
    }
}
