//! Statements of controls, actions and parser states.

use num_bigint::BigUint;
use p4lang::ir::{ActionId, HeaderRef, Stmt, Table, TableId, VarId};

use super::{Flow, Run};
use crate::state::table::Target;
use crate::state::words::{limbs, number, words};
use crate::trace::{Event, hex};

impl Run<'_, '_> {
    pub(super) fn block(&mut self, block: &[Stmt]) -> Flow {
        for stmt in block {
            match self.stmt(stmt) {
                Flow::Next => {}
                other => return other,
            }
        }
        Flow::Next
    }

    fn stmt(&mut self, stmt: &Stmt) -> Flow {
        match stmt {
            Stmt::Assign { dst, src } => {
                let value = self.eval(src);
                self.write(dst, &value);
                Flow::Next
            }
            Stmt::CopyVarbit { dst, src } => {
                let (bits, bytes) = match self.slot(src) {
                    Some(slot) => {
                        let (bits, bytes) = slot.varbit(self.ctx.frame);
                        (bits, bytes.to_vec())
                    }
                    None => (0, Vec::new()),
                };
                if let Some(slot) = self.slot(dst) {
                    slot.set_varbit(self.ctx.frame, bits, &bytes);
                }
                Flow::Next
            }
            Stmt::CopyHeader { dst, src } => self.copy_header(dst, src),
            Stmt::ResetHeader(header) => {
                if let Some(slot) = self.header(header) {
                    slot.reset(self.ctx.frame);
                }
                Flow::Next
            }
            Stmt::If { cond, then, otherwise } => self.block(if self.holds(cond) { then } else { otherwise }),
            Stmt::Switch { on, cases, default } => {
                let value = self.eval(on);
                let labels = self.known.switches.get(&cases.as_ptr().addr());
                let case = labels.and_then(|labels| cases.get(*labels.get(&value)?));
                self.block(case.map_or(default, |(_, body)| body))
            }
            Stmt::Labeled { label, body } => match self.block(body) {
                Flow::Break(to) if to == *label => Flow::Next,
                other => other,
            },
            Stmt::Loop { label, body } => {
                let cost = self.known.loops.get(&body.as_ptr().addr()).copied().unwrap_or(u64::MAX);
                loop {
                    if let Err(reason) = self.ctx.charge(cost) {
                        return Flow::Drop(reason);
                    }
                    match self.block(body) {
                        Flow::Next => {}
                        Flow::Break(to) if to == *label => return Flow::Next,
                        Flow::Continue(to) if to == *label => {}
                        other => return other,
                    }
                }
            }
            Stmt::Break(label) => Flow::Break(*label),
            Stmt::Continue(label) => Flow::Continue(*label),
            Stmt::Apply { table, hit, action_run } => self.apply(*table, *hit, *action_run),
            Stmt::Extern(call) => self.extern_call(call),
            Stmt::Extract { header, varbit_bits } => self.extract(header, varbit_bits.as_ref()),
            Stmt::Lookahead { into } => self.lookahead(into),
            Stmt::Advance { bits } => self.advance(bits),
            Stmt::Verify { cond, error } => {
                if self.holds(cond) {
                    Flow::Next
                } else {
                    Flow::Error(self.index(error) as u32)
                }
            }
            Stmt::Emit(header) => self.emit(header),
        }
    }

    /// An element out of range reads as a header that is invalid and zero.
    fn copy_header(&mut self, dst: &HeaderRef, src: &HeaderRef) -> Flow {
        if let Some(to) = self.header(dst) {
            match self.header(src) {
                Some(from) => to.copy_from(self.ctx.frame, from),
                None => to.reset(self.ctx.frame),
            }
        }
        Flow::Next
    }

    fn set_var(&mut self, var: VarId, value: u64) {
        self.layout.set_u64(self.ctx.frame, var, value);
    }

    fn apply(&mut self, id: TableId, hit: Option<VarId>, action_run: Option<VarId>) -> Flow {
        let program = self.program;
        let table = &program[id];
        match self.block(&table.prelude) {
            Flow::Next => {}
            other => return other,
        }
        let mut key = Vec::new();
        let mut shown = Vec::new();
        for part in &table.keys {
            let value = self.eval(&part.expr);
            if self.ctx.trace.is_some() {
                shown.push((part.name.clone(), format!("{value:#x}")));
            }
            limbs(&value, part.expr.width, &mut key);
        }
        let selector = self.selector_hash(table);
        let found = self.ctx.state.tables[id.index()].lookup(&key);
        let (entry, target, work) = (found.entry, found.target.clone(), found.work);
        if let Err(reason) = self.ctx.charge(work) {
            return Flow::Drop(reason);
        }
        let (action, args) = self.resolve(id, &target, selector);
        if let Some(handle) = entry {
            let (now, bytes) = (self.ctx.now, self.ctx.wire_len);
            let state = self.ctx.state.tables.for_packet(id.index());
            state.count_hit(handle, now, bytes);
            if let Some(meter) = &table.direct_meter {
                let amount = if meter.unit == p4lang::ir::MeterUnit::Bytes { bytes } else { 1 };
                let color = state.meter_hit(handle, now, amount);
                if let Some(dst) = &meter.dst {
                    self.write(dst, &BigUint::from(color as u8));
                }
            }
        }
        self.trace(|_| Event::Apply {
            table: table.info.name.clone(),
            keys: shown,
            hit: entry.is_some(),
            entry,
        });
        if let Some(var) = hit {
            self.set_var(var, u64::from(entry.is_some()));
        }
        if let Some(var) = action_run {
            self.set_var(var, u64::from(action));
        }
        self.action(table.actions[action as usize].action, &args)
    }

    fn selector_hash(&mut self, table: &Table) -> u64 {
        let Some(selector) = table.implementation.and_then(|p| self.program[p].selector.as_ref()) else {
            return 0;
        };
        let hash = self.hash(selector.algorithm, &table.selector, false);
        if selector.output_width < 64 { hash & ((1 << selector.output_width) - 1) } else { hash }
    }

    /// The action that a lookup's target comes to. What leads nowhere (an empty group) runs the default action.
    fn resolve(&mut self, id: TableId, target: &Target, selector: u64) -> (u32, Vec<u64>) {
        let state = &*self.ctx.state;
        let table = &state.tables[id.index()];
        let found = match (target, self.program[id].implementation) {
            (Target::Action { action, args }, _) => Some((*action, args.to_vec())),
            (_, Some(profile)) => state.profiles[profile.index()]
                .resolve(target, || selector)
                .map(|(a, args)| (a, args.to_vec())),
            (_, None) => None,
        };
        found.unwrap_or_else(|| match table.default_target() {
            Target::Action { action, args } => (*action, args.to_vec()),
            _ => (self.program[id].default_action.action, Vec::new()),
        })
    }

    fn action(&mut self, id: ActionId, args: &[u64]) -> Flow {
        let program = self.program;
        let action = &program[id];
        let mut at = 0;
        let mut shown = Vec::new();
        for param in &action.params {
            let count = words(program[param.var].width);
            let value = number(args.get(at..at + count).unwrap_or(&[]));
            at += count;
            if self.ctx.trace.is_some() {
                shown.push((param.name.clone(), format!("{value:#x}")));
            }
            self.layout.set(self.ctx.frame, param.var, &value);
        }
        self.trace(|_| Event::Action { name: action.info.name.clone(), args: shown });
        self.block(&action.body)
    }

    fn emit(&mut self, header: &HeaderRef) -> Flow {
        let Some(slot) = self.header(header) else { return Flow::Next };
        if !slot.is_valid(self.ctx.frame) {
            return Flow::Next;
        }
        let (HeaderRef::Header(id) | HeaderRef::Elem { header: id, .. }) = header;
        let ty = &self.program[self.program[*id].ty];
        let mut bits = super::externs::Bits::default();
        let start = self.ctx.out.len();
        // The header's fields as on the wire, a varbit in its place.
        let first = self.program[*id].first_field;
        for (index, field) in ty.fields.iter().enumerate() {
            let var = VarId(first.0 + index as u32);
            let slot = match header {
                HeaderRef::Header(_) => Some(self.layout.slot(var)),
                HeaderRef::Elem { stack, index, .. } => self.layout.elem(*stack, var, self.index(index)),
            };
            let Some(slot) = slot else { continue };
            if field.varbit {
                let (length, bytes) = slot.varbit(self.ctx.frame);
                bits.push_bytes(bytes, length);
            } else {
                bits.push(&slot.get(self.ctx.frame), field.width);
            }
        }
        self.ctx.out.extend(bits.into_bytes());
        let name = self.program[*id].name.clone();
        self.trace(|r| Event::Emit { header: name, bytes: hex(&r.ctx.out[start..]) });
        Flow::Next
    }
}
