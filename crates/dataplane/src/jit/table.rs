//! Tables: a lookup gives the address of the row that the key leads to; where a hit has to be recorded, or leads to an action by way
//! of a profile, a helper follows. Actions are chosen by index and compiled in place.

use std::mem::offset_of;

use cranelift_codegen::ir::types::{I8, I32, I64};
use cranelift_codegen::ir::{InstBuilder, Value};
use cranelift_frontend::Switch;
use p4lang::ir::{Place, TableId, ValueSetId, VarId};

use super::JitError;
use super::compile::TableShape;
use super::function::{Gen, Limbs, Region};
use super::given::Given;
use super::native::Outcome;
use super::services;
use crate::state::rows::{Rows, Shape};

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
        let hash = match table.implementation.and_then(|profile| self.program[profile].selector.as_ref()) {
            Some(selector) => {
                let hash = self.checksum(selector.algorithm, &table.selector, false);
                self.truncate(hash, selector.output_width)
            }
            None => self.iconst(0),
        };
        let row = self.row(id, &key);
        let at = Shape::of(self.program, table).key as i32 * 8;
        let found = self.load_fixed(I64, Region::State, row, at);
        let was_hit = self.shr_const(found, 32);
        let was_hit = match table.implementation {
            Some(_) => self.and_const(was_hit, 1),
            None => was_hit,
        };
        let mut action = self.and_const(found, u64::from(u32::MAX));
        let mut args = self.add_const(row, i64::from(at) + 8);
        if TableShape::tracked(table) {
            self.when(was_hit, |g| {
                let (ctx, index) = (g.ctx, g.iconst(u64::from(id.0)));
                let colour = g.call_value(services::record as *const u8, &[ctx, index, row]);
                if let Some(dst) = table.direct_meter.as_ref().and_then(|meter| meter.dst.as_ref()) {
                    let limbs = g.extended_to(colour, dst);
                    g.write(dst, &limbs);
                }
            });
        }
        if table.implementation.is_some() {
            let chosen = [action, args].map(|known| {
                let variable = self.variable();
                self.b.def_var(variable, known);
                variable
            });
            let indirect = self.b.ins().band_imm_s(found, Rows::INDIRECT as i64);
            self.when(indirect, |g| {
                let slot = g.stack(size_of::<Outcome>() as u64);
                let outcome = g.stack_addr(slot);
                let (ctx, index) = (g.ctx, g.iconst(u64::from(id.0)));
                g.call(services::resolve as *const u8, &[ctx, index, row, hash, outcome], false);
                let action = g.load(I32, Region::Scratch, outcome, offset_of!(Outcome, action) as i32);
                let action = g.extend(action);
                let args = g.load(I64, Region::Scratch, outcome, offset_of!(Outcome, args) as i32);
                g.b.def_var(chosen[0], action);
                g.b.def_var(chosen[1], args);
            });
            [action, args] = chosen.map(|variable| self.b.use_var(variable));
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
        let mut given = Given::new(self, table);
        for (candidate, block) in table.actions.iter().zip(blocks) {
            self.start(block);
            let action = &self.program[candidate.action];
            let mut offset = 0;
            for param in &action.params {
                let limbs = self.program[param.var].width.div_ceil(64);
                let value = self.load_fixed_limbs(Region::State, args, offset, limbs);
                if let [value] = value[..] {
                    self.data.insert(value, (args, offset));
                }
                self.write(&Place::Var(param.var), &value);
                offset += limbs as i32 * 8;
            }
            // Labels are the action's own.
            let outer = std::mem::take(&mut self.labels);
            self.stmts(&action.body)?;
            self.labels = outer;
            if self.alive {
                given.end(self, args);
                self.jump(done);
            }
        }
        self.start(done);
        given.read(self);
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
        // As many words for each as whoever reads them takes.
        for (index, (_, width, _)) in declared.iter().enumerate() {
            let given = fields.iter().find(|(field, _)| *field as usize == index);
            let flag = self.b.ins().iconst(I8, i64::from(given.is_some()));
            self.store(Region::Scratch, flag, named, index as i32);
            let mut words = self.zero_limbs(*width);
            let value = given.map_or(&[][..], |(_, value)| value);
            words.iter_mut().zip(value).for_each(|(word, limb)| *word = *limb);
            limbs.extend(words);
        }
        let key = self.spill(&limbs);
        let ctx = self.ctx;
        let set = self.iconst(u64::from(set.0));
        self.tell_work();
        let member = self.call_value(services::value_set as *const u8, &[ctx, set, key, named]);
        self.unless_exhausted();
        self.b.ins().ireduce(cranelift_codegen::ir::types::I8, member)
    }
}
