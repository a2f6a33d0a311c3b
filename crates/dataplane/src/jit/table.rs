//! Tables: exact keys of one word are searched in place, others by one call of the table's lookup; actions are chosen by index and
//! compiled in place.
//!
//! A lookup gives the address of the row that the key leads to. Where a hit has to be recorded, or leads to an action by way of a
//! profile, a helper that knows the table does all of that, and gives its result on the stack.

use std::mem::offset_of;

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{I8, I32, I64};
use cranelift_codegen::ir::{InstBuilder, Value};
use cranelift_frontend::Switch;
use p4lang::ir::{MatchKind, Place, TableId, ValueSetId, VarId};

use super::JitError;
use super::compile::TableShape;
use super::function::{Gen, Limbs, Region};
use super::native::{Native, Outcome, vec_pointer};
use super::services;
use crate::state::slots::{MULTIPLIER, Slot};
use crate::state::table::{Searched, TableState, prioritised};

impl Gen<'_, '_> {
    pub fn apply(
        &mut self,
        id: TableId,
        hit: Option<VarId>,
        action_run: Option<VarId>,
    ) -> Result<(), JitError> {
        let table = &self.program[id];
        self.stmts(&table.prelude)?;
        if !self.alive {
            return Ok(());
        }
        let mut key = Limbs::new();
        for part in &table.keys {
            key.extend(self.limbs(&part.expr));
        }
        let tracked = TableShape::tracked(table);
        if table.implementation.is_none() && !tracked {
            let row = self.row(id, &key);
            let found = self.load(I64, Region::State, row, 0);
            let was_hit = self.shr_const(found, 32);
            let action = self.and_const(found, u64::from(u32::MAX));
            let args = self.add_const(row, 8);
            self.told(hit, was_hit, action_run, action);
            return self.run_action(id, action, args);
        }
        let key = self.spill(&key);
        let slot = self.stack(size_of::<Outcome>() as u64);
        let outcome = self.stack_addr(slot);
        let ctx = self.ctx;
        let index = self.iconst(u64::from(id.0));
        let hash = match table.implementation.and_then(|profile| self.program[profile].selector.as_ref()) {
            Some(selector) => {
                let hash = self.checksum(selector.algorithm, &table.selector, false);
                self.truncate(hash, selector.output_width)
            }
            None => self.iconst(0),
        };
        self.call(services::lookup as *const u8, &[ctx, index, key, outcome, hash], false);
        if prioritised(table) {
            self.unless_exhausted();
        }
        let field = |g: &mut Self, offset: usize| {
            let value = g.load(I32, Region::Scratch, outcome, offset as i32);
            g.extend(value)
        };
        let was_hit = field(self, offset_of!(Outcome, hit));
        let action = field(self, offset_of!(Outcome, action));
        let args = self.load(I64, Region::Scratch, outcome, offset_of!(Outcome, args) as i32);
        if let Some(meter) = &table.direct_meter
            && let Some(dst) = &meter.dst
        {
            let colour = field(self, offset_of!(Outcome, colour));
            self.when(was_hit, |g| {
                let limbs = g.extended_to(colour, dst);
                g.write(dst, &limbs);
            });
        }
        self.told(hit, was_hit, action_run, action);
        self.run_action(id, action, args)
    }

    /// Writes what the program asks of a lookup.
    fn told(&mut self, hit: Option<VarId>, was_hit: Value, action_run: Option<VarId>, action: Value) {
        if let Some(hit) = hit {
            self.write(&Place::Var(hit), &[was_hit]);
        }
        if let Some(action_run) = action_run {
            self.write(&Place::Var(action_run), &[action]);
        }
    }

    /// The address of the row that a key leads to.
    fn row(&mut self, id: TableId, key: &[Value]) -> Value {
        let ctx = self.ctx;
        let tables = self.load(I64, Region::Context, ctx, offset_of!(Native, tables) as i32);
        let table = self.add_const(tables, (id.index() * size_of::<TableState>()) as i64);
        let searched = Searched::new(vec_pointer::<Slot>(), vec_pointer::<u64>());
        let exact = self.program[id].keys.iter().all(|key| key.kind == MatchKind::Exact);
        match key {
            // Without a key there are no entries.
            [] => return self.load(I64, Region::State, table, searched.rows as i32),
            [word] if exact => return self.search(table, &searched, *word),
            _ => {}
        }
        let words = self.iconst(key.len() as u64);
        let key = self.spill(key);
        if prioritised(&self.program[id]) {
            let row = self.call_value(services::dear_row as *const u8, &[ctx, table, key, words]);
            self.unless_exhausted();
            return row;
        }
        self.call_value(services::row as *const u8, &[table, key, words])
    }

    /// The address of the row for an exact key of one word: see [`crate::state::slots`].
    fn search(&mut self, table: Value, searched: &Searched, key: Value) -> Value {
        let slots = self.load(I64, Region::State, table, searched.slots as i32);
        let shift = self.load(I64, Region::State, table, searched.shift as i32);
        let rows = self.load(I64, Region::State, table, searched.rows as i32);
        let high = self.shr_const(key, 32);
        let spread = self.b.ins().bxor(key, high);
        let multiplier = self.iconst(MULTIPLIER);
        let product = self.b.ins().imul(spread, multiplier);
        let first = self.b.ins().ushr(product, shift);
        let place = self.b.declare_var(I64);
        self.b.def_var(place, first);
        let [look, other, next, found] = [(); 4].map(|()| self.block());
        self.jump(look);
        self.start(look);
        let at = self.b.use_var(place);
        let offset = self.b.ins().imul_imm_u(at, size_of::<Slot>() as i64);
        let slot = self.b.ins().iadd(slots, offset);
        let taken = self.load(I64, Region::State, slot, 0);
        let row = self.load(I64, Region::State, slot, 8);
        let same = self.b.ins().icmp(IntCC::Equal, taken, key);
        self.branch(same, found, other);
        self.start(other);
        // The number of a free slot is the offset of the default's row.
        self.branch(row, next, found);
        self.start(next);
        let behind = self.add_const(at, 1);
        let ones = self.iconst(u64::MAX);
        let mask = self.b.ins().ushr(ones, shift);
        let behind = self.b.ins().band(behind, mask);
        self.b.def_var(place, behind);
        self.jump(look);
        self.start(found);
        self.b.ins().iadd(rows, row)
    }

    /// Chooses among the table's actions.
    fn run_action(&mut self, id: TableId, action: Value, args: Value) -> Result<(), JitError> {
        let table = &self.program[id];
        let done = self.block();
        let blocks: Vec<_> = table.actions.iter().map(|_| self.block()).collect();
        match blocks[..] {
            [] => return Err(JitError::Malformed("table without actions")),
            [only] => self.jump(only),
            [first, second] => self.branch(action, second, first),
            _ => {
                let mut switch = Switch::new();
                for (index, block) in blocks.iter().enumerate().skip(1) {
                    switch.set_entry(index as u128, *block);
                }
                switch.emit(&mut self.b, action, blocks[0]);
                self.alive = false;
            }
        }
        for (candidate, block) in table.actions.iter().zip(blocks) {
            self.start(block);
            let action = &self.program[candidate.action];
            let mut offset = 0;
            for param in &action.params {
                let limbs = self.program[param.var].width.div_ceil(64);
                let value = self.load_limbs(Region::State, args, offset, limbs);
                self.write(&Place::Var(param.var), &value);
                offset += limbs as i32 * 8;
            }
            // Labels are the action's own.
            let outer = std::mem::take(&mut self.labels);
            self.stmts(&action.body)?;
            self.labels = outer;
            if self.alive {
                self.jump(done);
            }
        }
        self.start(done);
        Ok(())
    }

    /// A small number as a value of the place's width.
    pub fn extended_to(&mut self, value: Value, place: &Place) -> Limbs {
        let (Place::Var(var) | Place::Elem { var, .. }) = place;
        let width = self.program[*var].width;
        let mut limbs = self.zero_limbs(width);
        limbs[0] = self.truncate(value, width);
        limbs
    }

    /// Whether a member of a value set has these values in these fields.
    pub fn value_set(&mut self, set: ValueSetId, fields: &[(u32, &Limbs)]) -> Value {
        let declared = &self.program[set].fields;
        let mut limbs = Limbs::new();
        let slot = self.stack(declared.len() as u64);
        let named = self.stack_addr(slot);
        for (index, (_, width, _)) in declared.iter().enumerate() {
            let given = fields.iter().find(|(field, _)| *field as usize == index);
            let flag = self.b.ins().iconst(I8, i64::from(given.is_some()));
            self.store(Region::Scratch, flag, named, index as i32);
            match given {
                Some((_, value)) => limbs.extend(value.iter().copied()),
                None => limbs.extend(self.zero_limbs(*width)),
            }
        }
        let key = self.spill(&limbs);
        let ctx = self.ctx;
        let set = self.iconst(u64::from(set.0));
        let member = self.call_value(services::value_set as *const u8, &[ctx, set, key, named]);
        self.unless_exhausted();
        self.b.ins().ireduce(cranelift_codegen::ir::types::I8, member)
    }
}
