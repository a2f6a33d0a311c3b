//! Calls to the architecture's externs: registers in place, checksums in place where the algorithm allows, everything else
//! through a helper that gets the call's address in the program and the values of its operands.

use std::mem::offset_of;

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::I64;
use cranelift_codegen::ir::{InstBuilder, Value};
use num_traits::ToPrimitive;
use p4lang::ir::{CloneKind, CounterId, Expr, ExprKind, ExternCall, HashAlgorithm, Place, RegisterId};

use super::JitError;
use super::function::{Gen, Limbs, Region, mask};
use super::native::{self, Native, vec_pointer};
use super::services;
use crate::state::places::Place as Lies;
use crate::state::registers::Registers;
use crate::state::{CounterCell, State};

impl Gen<'_, '_> {
    pub fn extern_call(&mut self, call: &ExternCall) -> Result<(), JitError> {
        match call {
            ExternCall::RegisterRead { register, index, dst } => self.register_read(*register, index, dst),
            ExternCall::RegisterWrite { register, index, value } => {
                self.register_write(*register, index, value)
            }
            ExternCall::Hash { dst, algorithm, base, data, max } => {
                self.hash(dst, *algorithm, base, data, max)
            }
            ExternCall::VerifyChecksum { flag, cond, data, checksum, algorithm, payload } => {
                let cond = self.cond(cond);
                self.when(cond, |g| {
                    let expected = g.limbs(checksum);
                    let sum = g.checksum(*algorithm, data, *payload);
                    let sum = g.wide_as(sum, checksum.width);
                    let differs = g.differ(&sum, &expected);
                    let Some(flag) = *flag else { return };
                    g.when(differs, |g| {
                        let width = g.program[flag].width;
                        let mut one = g.zero_limbs(width);
                        one[0] = g.iconst(1);
                        g.write(&Place::Var(flag), &one);
                    });
                });
            }
            ExternCall::UpdateChecksum { cond, data, dst, algorithm, payload } => {
                let cond = self.cond(cond);
                self.when(cond, |g| {
                    let sum = g.checksum(*algorithm, data, *payload);
                    let value = g.extended_to(sum, dst);
                    g.write(dst, &value);
                });
            }
            ExternCall::CounterCount { counter, index } => self.count(*counter, index),
            ExternCall::MeterExecute { index, dst, .. } => {
                let index = self.saturated(index);
                let colour = self.slow(call, &[index]);
                let value = self.extended_to(colour, dst);
                self.write(dst, &value);
            }
            ExternCall::Random { dst, lo, hi } => {
                let lo = self.saturated(lo);
                let hi = self.saturated(hi);
                let value = self.slow(call, &[lo, hi]);
                let value = self.extended_to(value, dst);
                self.write(dst, &value);
            }
            ExternCall::Digest { receiver, fields, .. } => {
                let mut values = self.limbs(receiver);
                for field in fields {
                    values.extend(self.item(field));
                }
                self.slow(call, &values);
            }
            ExternCall::Clone { kind, session, .. } => {
                self.asks = true;
                self.in_place.clones |= *kind == CloneKind::EgressToEgress;
                let session = self.saturated(session);
                self.slow(call, &[session]);
            }
            ExternCall::Resubmit { .. } | ExternCall::Recirculate { .. } => {
                self.asks = true;
                self.slow(call, &[]);
            }
            ExternCall::Truncate { bytes } => {
                self.asks = true;
                let bytes = self.saturated(bytes);
                self.slow(call, &[bytes]);
            }
            // Messages are for the trace, which only the interpreter makes.
            ExternCall::LogMsg { .. } => {}
            ExternCall::Assert { cond, .. } => self.check(cond, native::ASSERTION),
            ExternCall::Assume { cond, .. } => self.check(cond, native::ASSUMPTION),
        }
        Ok(())
    }

    /// Has the helper make the call with these operands.
    fn slow(&mut self, call: &ExternCall, operands: &[Value]) -> Value {
        let operands = self.spill(operands);
        // The program outlives its code, see `Compiled`.
        let call = self.address(std::ptr::from_ref(call));
        let ctx = self.ctx;
        self.call_value(services::extern_call as *const u8, &[ctx, call, operands])
    }

    /// Drops the packet unless the condition holds.
    fn check(&mut self, cond: &Expr, reason: u64) {
        let cond = self.cond(cond);
        let good = self.block();
        let bad = self.cold_block();
        self.branch(cond, good, bad);
        self.start(bad);
        self.drop_packet(reason);
        self.start(good);
    }

    /// Address of element `index` of an array of `size` elements, and whether there is one.
    fn element_at(&mut self, elements: Value, index: &Expr, size: u64, bytes: u64) -> (Value, Option<Value>) {
        if let ExprKind::Const(index) = &index.kind
            && let Some(index) = index.to_u64()
            && index < size
        {
            return (self.add_const(elements, (index * bytes) as i64), None);
        }
        let declared = index.width;
        let index = self.saturated(index);
        if let Some(index) = self.within(index, declared, size) {
            let offset = self.b.ins().imul_imm_u(index, bytes as i64);
            return (self.b.ins().iadd(elements, offset), None);
        }
        let size = self.iconst(size);
        let exists = self.b.ins().icmp(IntCC::UnsignedLessThan, index, size);
        let offset = self.b.ins().imul_imm_u(index, bytes as i64);
        (self.b.ins().iadd(elements, offset), Some(exists))
    }

    /// The same index, if the instructions that make it show that it is less than `size`. Where only its width says so, a mask
    /// that changes nothing is one of them: what variables and memory hold is not relied on.
    fn within(&mut self, index: Value, width: u32, size: u64) -> Option<Value> {
        let fits = |bits: u32| bits < u64::BITS && 1 << bits <= size;
        if fits(self.shown_bits(index)) {
            return Some(index);
        }
        let bits = self.bits(index).min(width);
        fits(bits).then(|| self.b.ins().band_imm_u(index, mask(bits) as i64))
    }

    /// Address of a register's cell and whether there is one.
    fn cell(&mut self, register: RegisterId, index: &Expr) -> (Value, Option<Value>) {
        let declared = &self.program[register];
        let Lies { start, stride } = self.places[register.index()];
        let cells = self.elements(offset_of!(State, registers) + offset_of!(Registers, address));
        let (at, exists) = self.element_at(cells, index, declared.size, (stride * size_of::<u64>()) as u64);
        // Behind the index, which other registers in the same line have as well.
        (self.add_const(at, (start * size_of::<u64>()) as i64), exists)
    }

    fn count(&mut self, counter: CounterId, index: &Expr) {
        let size = self.program[counter].size;
        let all = self.elements(offset_of!(State, counters) + vec_pointer::<Vec<CounterCell>>());
        let offset = counter.index() * size_of::<Vec<CounterCell>>() + vec_pointer::<CounterCell>();
        let cells = self.load_fixed(I64, Region::State, all, offset as i32);
        let (at, exists) = self.element_at(cells, index, size, size_of::<CounterCell>() as u64);
        let add = |g: &mut Self| {
            let region = Region::Counter(counter);
            let one = g.iconst(1);
            let bytes = g.load_ctx_fixed(offset_of!(Native, wire_len));
            for (offset, amount) in
                [(offset_of!(CounterCell, packets), one), (offset_of!(CounterCell, bytes), bytes)]
            {
                let count = g.load(I64, region, at, offset as i32);
                let count = g.b.ins().iadd(count, amount);
                g.store(region, count, at, offset as i32);
            }
        };
        match exists {
            Some(exists) => self.when(exists, add),
            None => add(self),
        }
    }

    fn register_read(&mut self, register: RegisterId, index: &Expr, dst: &Place) {
        let width = self.program[register].width;
        let count = width.div_ceil(64);
        let (at, exists) = self.cell(register, index);
        let Some(exists) = exists else {
            let value = self.load_limbs(Region::Register(register), at, 0, count);
            self.write(dst, &value);
            return;
        };
        let value: Vec<_> = (0..count).map(|_| self.variable()).collect();
        for variable in &value {
            let zero = self.iconst(0);
            self.b.def_var(*variable, zero);
        }
        self.when(exists, |g| {
            let cell = g.load_limbs(Region::Register(register), at, 0, count);
            for (variable, limb) in value.iter().zip(&cell) {
                g.b.def_var(*variable, *limb);
            }
        });
        let value: Limbs = value.iter().map(|variable| self.b.use_var(*variable)).collect();
        self.write(dst, &value);
    }

    fn register_write(&mut self, register: RegisterId, index: &Expr, value: &Expr) {
        let value = self.limbs(value);
        let (at, exists) = self.cell(register, index);
        let store = |g: &mut Self| {
            for (k, limb) in value.iter().enumerate() {
                g.store(Region::Register(register), *limb, at, k as i32 * 8);
            }
        };
        match exists {
            Some(exists) => self.when(exists, store),
            None => store(self),
        }
    }

    /// The hash or checksum of a data list, at most 64 bits.
    pub fn checksum(&mut self, algorithm: HashAlgorithm, data: &[Expr], payload: bool) -> Value {
        if algorithm == HashAlgorithm::Csum16 {
            return self.csum16(data, payload);
        }
        self.sum_of_list(algorithm, data, payload)
    }

    fn hash(&mut self, dst: &Place, algorithm: HashAlgorithm, base: &Expr, data: &[Expr], max: &Expr) {
        let (Place::Var(var) | Place::Elem { var, .. }) = dst;
        let dst_width = self.program[*var].width;
        let width = dst_width.max(max.width).max(base.width);
        let hash = self.checksum(algorithm, data, false);
        if width <= 64 {
            let base = self.narrow(base);
            let max = self.narrow(max);
            let none = self.is_zero(max);
            let one = self.iconst(1);
            let by = self.b.ins().select(none, one, max);
            let rest = self.b.ins().urem(hash, by);
            // With `by` 1 the remainder is 0 and only the base is left.
            let value = self.b.ins().iadd(base, rest);
            let value = self.truncate(value, dst_width);
            self.write(dst, &[value]);
            return;
        }
        let base = self.limbs(base);
        let base = self.resized(base, width);
        let max = self.limbs(max);
        let max = self.resized(max, width);
        let count = width.div_ceil(64);
        let base = self.spill(&base);
        let max = self.spill(&max);
        let slot = self.stack(u64::from(count) * 8);
        let at = self.stack_addr(slot);
        let width = self.iconst(u64::from(width));
        self.call(services::hash_wide as *const u8, &[at, hash, base, max, width], false);
        let value = self.load_limbs(Region::Scratch, at, 0, dst_width.div_ceil(64));
        let value = self.truncate_limbs(value, dst_width);
        self.write(dst, &value);
    }

    fn resized(&mut self, mut value: Limbs, width: u32) -> Limbs {
        while value.len() < width.div_ceil(64) as usize {
            value.push(self.iconst(0));
        }
        value
    }

    /// A value of at most 64 bits as one of `width` bits.
    fn wide_as(&mut self, value: Value, width: u32) -> Limbs {
        let mut limbs = self.zero_limbs(width);
        limbs[0] = self.truncate(value, width);
        limbs
    }

    fn differ(&mut self, a: &[Value], b: &[Value]) -> Value {
        let width = a.len() as u32 * 64;
        self.compare_limbs(p4lang::ir::BinOp::Ne, a, b, width)
    }
}
