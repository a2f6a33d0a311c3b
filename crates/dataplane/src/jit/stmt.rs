//! Statements that parsers, controls and actions share.

use std::mem::offset_of;

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, Value};
use cranelift_frontend::Switch;
use num_bigint::BigUint;
use num_traits::ToPrimitive;
use p4lang::ir::{BinOp, Expr, HeaderRef, LabelId, Place, Stmt};

use super::JitError;
use super::function::{Gen, Target};
use super::helpers;
use super::native::{self, Native};
use crate::cost::Prices;
use crate::refused::{MAX_STACK, Refused};

/// Values that one function may have, well below what Cranelift can number; it takes seconds for as many.
const MAX_VALUES: u64 = 1 << 18;

/// What Cranelift may keep of the variables of one function, see [`Gen::of_variables`]; it takes four to eight bytes each.
const MAX_KEPT: u64 = 1 << 26;

impl Gen<'_, '_> {
    pub fn stmts(&mut self, block: &[Stmt]) -> Result<(), JitError> {
        for stmt in block {
            if !self.alive {
                break;
            }
            self.stmt(stmt)?;
            self.small_enough()?;
        }
        Ok(())
    }

    /// Whether the function has come to have too many values, or slots on the stack. What is generated from then on is not used.
    pub fn full(&self) -> bool {
        self.small_enough().is_err()
    }

    pub fn small_enough(&self) -> Result<(), JitError> {
        if self.stack_used > MAX_STACK {
            return Err(Refused::Stack(self.stack_used).into());
        }
        let values = self.b.func.dfg.num_values() as u64 + self.crowding;
        let fits = values <= MAX_VALUES && self.of_variables() <= MAX_KEPT;
        if fits { Ok(()) } else { Err(JitError::TooLarge) }
    }

    fn stmt(&mut self, stmt: &Stmt) -> Result<(), JitError> {
        match stmt {
            Stmt::Assign { dst, src } => {
                let value = self.limbs(src);
                self.write(dst, &value);
            }
            Stmt::CopyVarbit { dst, src } => self.copy_varbit(dst, src),
            Stmt::CopyHeader { dst, src } => self.copy_header(dst, src),
            Stmt::ResetHeader(header) => {
                if let Some((base, slot)) = self.header(header) {
                    self.if_exists(base, |g| {
                        g.zero(base.at, base.region, slot.base as i32, slot.extent);
                    });
                }
            }
            Stmt::If { cond, then, otherwise } => self.if_else(cond, then, otherwise)?,
            Stmt::Switch { on, cases, default } => self.switch(on, cases, default)?,
            Stmt::Labeled { label, body } => {
                let leave = self.block();
                self.labels.insert(*label, Target { leave, again: None });
                self.stmts(body)?;
                if self.alive {
                    self.jump(leave);
                }
                self.start(leave);
            }
            Stmt::Loop { label, body } => self.repeat(*label, body)?,
            Stmt::Break(label) => {
                let to = self.target(*label)?.leave;
                self.jump(to);
            }
            Stmt::Continue(label) => {
                let to = self.target(*label)?.again;
                self.jump(to.ok_or(JitError::Malformed("continue outside of a loop"))?);
            }
            Stmt::Apply { table, hit, action_run } => self.apply(*table, *hit, *action_run)?,
            Stmt::Extern(call) => self.extern_call(call)?,
            Stmt::Extract { header, varbit_bits } => {
                self.in_place.extracting = true;
                self.extract(header, varbit_bits.as_ref())?;
                self.in_place.extracting = false;
            }
            Stmt::Lookahead { into } => self.lookahead(into)?,
            Stmt::Advance { bits } => self.advance(bits)?,
            Stmt::Verify { cond, error } => self.verify(cond, error)?,
            Stmt::Emit(header) => self.emit(header),
        }
        Ok(())
    }

    fn target(&self, label: LabelId) -> Result<Target, JitError> {
        let target = self.labels.get(&label).copied();
        target.ok_or(JitError::Malformed("jump to an unknown label"))
    }

    fn if_else(&mut self, cond: &Expr, then: &[Stmt], otherwise: &[Stmt]) -> Result<(), JitError> {
        let cond = self.cond(cond);
        let yes = self.block();
        let done = self.block();
        let no = if otherwise.is_empty() { done } else { self.block() };
        self.branch(cond, yes, no);
        for (block, body) in [(yes, then), (no, otherwise)] {
            if block == done {
                continue;
            }
            self.start(block);
            self.stmts(body)?;
            if self.alive {
                self.jump(done);
            }
        }
        self.start(done);
        Ok(())
    }

    fn switch(
        &mut self,
        on: &Expr,
        cases: &[(Vec<BigUint>, Vec<Stmt>)],
        default: &[Stmt],
    ) -> Result<(), JitError> {
        let value = self.limbs(on);
        let done = self.block();
        let other = self.block();
        let blocks: Vec<_> = cases.iter().map(|_| self.block()).collect();
        if on.width <= 64 {
            let mut switch = Switch::new();
            let mut seen = std::collections::HashSet::new();
            for ((labels, _), block) in cases.iter().zip(&blocks) {
                for label in labels.iter().filter_map(BigUint::to_u64) {
                    if seen.insert(label) {
                        switch.set_entry(u128::from(label), *block);
                    }
                }
            }
            switch.emit(&mut self.b, value[0], other);
            self.alive = false;
        } else {
            for ((labels, _), block) in cases.iter().zip(&blocks) {
                for label in labels {
                    let mut digits = label.iter_u64_digits();
                    let label: Vec<Value> =
                        value.iter().map(|_| self.iconst(digits.next().unwrap_or(0))).collect();
                    let equal = self.compare_limbs(BinOp::Eq, &value, &label, on.width);
                    let next = self.block();
                    self.branch(equal, *block, next);
                    self.start(next);
                }
            }
            self.jump(other);
        }
        let bodies = cases.iter().map(|(_, body)| body.as_slice());
        for (block, body) in blocks.into_iter().zip(bodies).chain([(other, default)]) {
            self.start(block);
            self.stmts(body)?;
            if self.alive {
                self.jump(done);
            }
        }
        self.start(done);
        Ok(())
    }

    fn repeat(&mut self, label: LabelId, body: &[Stmt]) -> Result<(), JitError> {
        let again = self.block();
        let leave = self.block();
        self.labels.insert(label, Target { leave, again: Some(again) });
        self.jump(again);
        self.start_open(again);
        let prices = Prices::new(self.program, self.layout);
        self.charge(prices.iteration(body));
        self.stmts(body)?;
        if self.alive {
            self.jump(again);
        }
        self.seal(again);
        self.start(leave);
        Ok(())
    }

    /// Takes so much of the packet's work, and drops the packet if that is more than there is.
    pub fn charge(&mut self, cost: u64) {
        let run = self.block();
        let exhausted = self.cold_block();
        let budget = match self.work {
            Some(work) => self.b.use_var(work),
            None => self.load_ctx(offset_of!(Native, work), 8),
        };
        let cost = self.iconst(cost);
        let enough = self.b.ins().icmp(IntCC::UnsignedGreaterThanOrEqual, budget, cost);
        self.branch(enough, run, exhausted);
        self.start(exhausted);
        let none = self.iconst(0);
        self.set_work(none);
        self.drop_packet(native::WORK_BUDGET);
        self.start(run);
        let left = self.b.ins().isub(budget, cost);
        self.set_work(left);
    }

    fn set_work(&mut self, left: Value) {
        match self.work {
            Some(work) => self.b.def_var(work, left),
            None => self.store_ctx(offset_of!(Native, work), 8, left),
        }
    }

    /// For a helper that takes some of the packet's work, or for the end of what has it in a variable.
    pub fn tell_work(&mut self) {
        if let Some(work) = self.work {
            let left = self.b.use_var(work);
            self.store_ctx(offset_of!(Native, work), 8, left);
        }
    }

    /// Ends the block if what was called found the work to be more than is left.
    pub fn unless_exhausted(&mut self) {
        let dropped = self.load_ctx(offset_of!(Native, dropped), 4);
        let none = self.is_zero(dropped);
        let go_on = self.block();
        let out = self.out;
        self.branch(none, go_on, out);
        self.start(go_on);
        if let Some(work) = self.work {
            let left = self.load_ctx(offset_of!(Native, work), 8);
            self.b.def_var(work, left);
        }
    }

    /// Ends the block for this packet.
    pub fn drop_packet(&mut self, reason: u64) {
        self.tell_work();
        let reason = self.iconst(reason);
        self.store_ctx(offset_of!(Native, dropped), 4, reason);
        let out = self.out;
        self.jump(out);
    }

    fn copy_varbit(&mut self, dst: &Place, src: &Place) {
        let (from, width) = self.varbit(src);
        let (to, max) = self.varbit(dst);
        let exists = self.b.ins().icmp_imm_s(IntCC::NotEqual, to, 0);
        if let Some((base, _)) = self.place(dst) {
            self.writes(base.region);
        }
        self.when(exists, |g| {
            let [max, most] = [max, max.min(width)].map(|bits| g.iconst(u64::from(bits)));
            g.call(helpers::varbit_copy as *const u8, &[to, from, max, most], false);
        });
    }

    /// An element that does not exist reads as a header that is invalid and zero; writing it does nothing.
    fn copy_header(&mut self, dst: &HeaderRef, src: &HeaderRef) {
        let Some((to, slot)) = self.header(dst) else {
            return;
        };
        let Some((from, from_slot)) = self.header(src) else {
            self.if_exists(to, |g| g.zero(to.at, to.region, slot.base as i32, slot.extent));
            return;
        };
        self.if_exists(to, |g| {
            let whole = |g: &mut Self| {
                g.copy(
                    (to.at, to.region, slot.base as i32),
                    (from.at, from.region, from_slot.base as i32),
                    slot.extent.min(from_slot.extent),
                );
            };
            let Some(exists) = from.exists else {
                return whole(g);
            };
            let (yes, no, done) = (g.block(), g.block(), g.block());
            g.branch(exists, yes, no);
            g.start(yes);
            whole(g);
            g.jump(done);
            g.start(no);
            g.zero(to.at, to.region, slot.base as i32, slot.extent);
            g.jump(done);
            g.start(done);
        });
    }
}
