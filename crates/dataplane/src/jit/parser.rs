//! Parsers: states become blocks, transitions jumps; the place in the packet is a Cranelift variable.
//!
//! If every extraction and advance is a whole number of bytes (all programs for the reference switch are so), the place is
//! counted in bytes and known at compile time wherever all paths agree; else it is counted in bits and reads that start
//! within a byte go through a helper.

use std::mem::offset_of;

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{Block, InstBuilder, Value};
use cranelift_frontend::{Switch, Variable};
use num_traits::ToPrimitive;
use p4lang::ir::{
    BinOp, Expr, ExprKind, HeaderRef, Match, PARSER_BUDGET, Parser, Place, Program, SelectCase, StateRef,
    Transition,
};

use super::JitError;
use super::function::{Gen, Limbs, Region};
use super::native::Native;
use super::packet;
use crate::cost::Prices;
use crate::parser_shape::whole_bytes;
use crate::refused::MAX_STACK;

/// What the generator knows while it is in a parser.
pub(crate) struct Parsing {
    /// Place in the packet, in `unit`s of bits.
    cursor: Variable,
    unit: u32,
    packet: Value,
    /// Length of the packet in units.
    end: Value,
    states: Vec<Block>,
    /// Where accept, reject and every error end.
    finish: Block,
    /// Absent if the states make no cycle.
    budget: Option<Budget>,
}

/// Counts transitions.
struct Budget {
    left: Variable,
    /// In front of each state, and of the end.
    entries: Vec<Block>,
    /// Work of a transition to each state.
    costs: Vec<u64>,
}

impl Gen<'_, '_> {
    pub fn parser(&mut self, parser: &Parser) -> Result<(), JitError> {
        let unit = if whole_bytes(self.program, parser) { 8 } else { 1 };
        let packet = self.load_ctx_fixed(offset_of!(Native, packet));
        let len = self.load_ctx_fixed(offset_of!(Native, packet_len));
        let end = if unit == 8 { len } else { self.shl_const(len, 3) };
        let cursor = self.variable();
        let zero = self.iconst(0);
        self.b.def_var(cursor, zero);
        let states: Vec<Block> = parser.states.iter().map(|_| self.block()).collect();
        let costs = Prices::new(self.program, self.layout).transitions(parser);
        // Only parsers with a cycle pay for them.
        let budget = (!costs.is_empty()).then(|| {
            let left = self.variable();
            let start = self.iconst(u64::from(PARSER_BUDGET));
            self.b.def_var(left, start);
            let entries = (0..=states.len()).map(|_| self.block()).collect();
            let work = self.variable();
            let all = self.load_ctx(offset_of!(Native, work), 8);
            self.b.def_var(work, all);
            self.work = Some(work);
            Budget { left, entries, costs }
        });
        let finish = self.block();
        // The start is no transition.
        let start = match parser.start {
            StateRef::State(index) => states[index as usize],
            StateRef::Accept | StateRef::Reject => finish,
        };
        self.parsing = Some(Parsing { cursor, unit, packet, end, states, finish, budget });
        self.jump(start);
        for (index, state) in parser.states.iter().enumerate() {
            let block = self.parsing()?.states[index];
            self.start_open(block);
            self.stmts(&state.body)?;
            if self.alive {
                self.transition(&state.next)?;
            }
        }
        self.budget_blocks()?;
        for index in 0..parser.states.len() {
            let block = self.parsing()?.states[index];
            self.seal(block);
        }
        self.start(finish);
        self.tell_work();
        self.work = None;
        let cursor = self.b.use_var(cursor);
        let up = self.add_const(cursor, i64::from(8 / unit - 1));
        let bytes = self.shr_const(up, 3 - unit.trailing_zeros());
        let parsed = self.variable();
        self.b.def_var(parsed, bytes);
        self.parsed = Some(parsed);
        let cursor = self.shl_const(cursor, unit.trailing_zeros());
        self.store_ctx(offset_of!(Native, cursor), 8, cursor);
        self.parsing = None;
        Ok(())
    }

    fn parsing(&self) -> Result<&Parsing, JitError> {
        self.parsing.as_ref().ok_or(JitError::Malformed("parser statement outside of a parser"))
    }

    /// Where a transition to a state goes: to the state, or first to taking one from the budget.
    fn state_block(&self, state: StateRef) -> Block {
        let Some(parsing) = &self.parsing else {
            return self.out;
        };
        let index = match state {
            StateRef::State(index) => index as usize,
            StateRef::Accept | StateRef::Reject => parsing.states.len(),
        };
        match &parsing.budget {
            Some(budget) => budget.entries[index],
            None => parsing.states.get(index).copied().unwrap_or(parsing.finish),
        }
    }

    /// The blocks that take one transition from the budget.
    fn budget_blocks(&mut self) -> Result<(), JitError> {
        let Parsing { finish, .. } = *self.parsing()?;
        let Some(Budget { left, entries, costs }) = &self.parsing()?.budget else {
            return Ok(());
        };
        let (left, entries, costs) = (*left, entries.clone(), costs.clone());
        for (index, entry) in entries.into_iter().enumerate() {
            let to = self.parsing()?.states.get(index).copied().unwrap_or(finish);
            self.start(entry);
            let count = self.b.use_var(left);
            let any = self.b.ins().icmp_imm_s(IntCC::NotEqual, count, 0);
            self.require(any, "ParserTimeout")?;
            let count = self.add_const(count, -1);
            self.b.def_var(left, count);
            if let Some(cost) = costs.get(index) {
                self.charge(*cost);
            }
            self.jump(to);
        }
        Ok(())
    }

    /// Sets the parser error and rejects.
    fn fail(&mut self, error: &str) -> Result<(), JitError> {
        let code = error_code(self.program, error)?;
        let code = self.iconst(code);
        self.fail_with(code)
    }

    fn fail_with(&mut self, code: Value) -> Result<(), JitError> {
        self.store_ctx(offset_of!(Native, parser_error), 4, code);
        let finish = self.parsing()?.finish;
        self.jump(finish);
        Ok(())
    }

    /// Goes on if `cond`, else fails.
    fn require(&mut self, cond: Value, error: &str) -> Result<(), JitError> {
        let good = self.block();
        let bad = self.cold_block();
        self.branch(cond, good, bad);
        self.start(bad);
        self.fail(error)?;
        self.start(good);
        Ok(())
    }

    fn transition(&mut self, next: &Transition) -> Result<(), JitError> {
        match next {
            Transition::Direct(state) => {
                let block = self.state_block(*state);
                self.jump(block);
                Ok(())
            }
            Transition::Select { keys, cases } => self.select(keys, cases),
        }
    }

    fn select(&mut self, keys: &[Expr], cases: &[SelectCase]) -> Result<(), JitError> {
        let values: Vec<Limbs> = keys.iter().map(|key| self.limbs(key)).collect();
        let mut rest = cases;
        while let Some(case) = rest.first() {
            let run = constant_run(keys, rest);
            if run.len() > 2 {
                let mut switch = Switch::new();
                for (value, state) in &run {
                    if !switch.entries().contains_key(&u128::from(*value)) {
                        switch.set_entry(u128::from(*value), self.state_block(*state));
                    }
                }
                let other = self.block();
                switch.emit(&mut self.b, values[0][0], other);
                self.start(other);
                rest = &rest[run.len()..];
                continue;
            }
            rest = &rest[1..];
            let to = self.state_block(case.next);
            match self.case_matches(keys, &values, case)? {
                None => {
                    self.jump(to);
                    return Ok(());
                }
                Some(matches) => {
                    let next = self.block();
                    self.branch(matches, to, next);
                    self.start(next);
                }
            }
        }
        self.fail("NoMatch")
    }

    /// Whether a case matches; `None` if it matches whatever the keys are.
    fn case_matches(
        &mut self,
        keys: &[Expr],
        values: &[Limbs],
        case: &SelectCase,
    ) -> Result<Option<Value>, JitError> {
        let mut all: Option<Value> = None;
        let mut sets = Vec::new();
        for (index, (key, matched)) in keys.iter().zip(&case.matches).enumerate() {
            let width = key.width;
            let value = &values[index];
            let cond = match matched {
                Match::Any => continue,
                Match::Value(expected) => {
                    let expected = self.limbs(expected);
                    self.compare(BinOp::Eq, value, &expected, width)
                }
                Match::Mask { value: expected, mask } => {
                    let expected = self.limbs(expected);
                    let mask = self.limbs(mask);
                    let masked = self.and_limbs(value, &mask);
                    let expected = self.and_limbs(&expected, &mask);
                    self.compare(BinOp::Eq, &masked, &expected, width)
                }
                Match::Range { lo, hi, signed } => {
                    let op = if *signed { BinOp::LeS } else { BinOp::LeU };
                    let lo = self.limbs(lo);
                    let hi = self.limbs(hi);
                    let above = self.compare(op, &lo, value, width);
                    let below = self.compare(op, value, &hi, width);
                    self.b.ins().band(above, below)
                }
                Match::ValueSet { set, field } => {
                    sets.push((*set, *field, index));
                    continue;
                }
            };
            all = Some(self.and_cond(all, cond));
        }
        while let Some((set, ..)) = sets.first().copied() {
            let members: Vec<(u32, &Limbs)> = sets
                .iter()
                .filter(|(other, ..)| *other == set)
                .map(|(_, field, index)| (*field, &values[*index]))
                .collect();
            let cond = self.value_set(set, &members);
            all = Some(self.and_cond(all, cond));
            sets.retain(|(other, ..)| *other != set);
        }
        Ok(all)
    }

    fn and_cond(&mut self, all: Option<Value>, cond: Value) -> Value {
        match all {
            Some(all) => self.b.ins().band(all, cond),
            None => cond,
        }
    }

    fn and_limbs(&mut self, a: &[Value], b: &[Value]) -> Limbs {
        a.iter().zip(b).map(|(a, b)| self.b.ins().band(*a, *b)).collect()
    }

    /// Fails unless `amount` more units are there; gives the place behind them.
    fn reserve(&mut self, amount: Value) -> Result<Value, JitError> {
        let Parsing { cursor, end, .. } = *self.parsing()?;
        let at = self.b.use_var(cursor);
        let behind = self.b.ins().iadd(at, amount);
        let fits = self.b.ins().icmp(IntCC::UnsignedLessThanOrEqual, behind, end);
        self.require(fits, "PacketTooShort")?;
        Ok(behind)
    }

    /// The address of the packet's byte at the cursor.
    fn packet_at(&mut self) -> Result<Value, JitError> {
        let Parsing { cursor, packet, unit, .. } = *self.parsing()?;
        let at = self.b.use_var(cursor);
        let at = self.shr_const(at, 3 - unit.trailing_zeros());
        Ok(self.b.ins().iadd(packet, at))
    }

    pub fn extract(&mut self, header: &HeaderRef, varbit_bits: Option<&Expr>) -> Result<(), JitError> {
        let Parsing { cursor, unit, .. } = *self.parsing()?;
        let (fixed_bits, id) = match header {
            HeaderRef::Header(id) | HeaderRef::Elem { header: id, .. } => {
                (self.program[self.program[*id].ty].fixed_bits, *id)
            }
        };
        if unit == 8 && varbit_bits.is_none() {
            let amount = self.iconst(u64::from(fixed_bits / 8));
            let behind = self.reserve(amount)?;
            let from = self.packet_at()?;
            if let Some((base, slot)) = self.header(header) {
                self.if_exists(base, |g| {
                    g.copy((base.at, base.region, slot.base as i32), (from, Region::Packet, 0), slot.len);
                    g.set_valid(base, slot.valid);
                    if let Some((varbit, width)) = slot.varbit {
                        g.zero(base.at, base.region, varbit as i32, 4 + width.div_ceil(8));
                    }
                });
            }
            self.b.def_var(cursor, behind);
            return Ok(());
        }
        // The helper does all of it.
        let (place, exists) = match self.header(header) {
            Some((base, slot)) => {
                let at = self.add_const(base.at, i64::from(slot.base));
                (at, base.exists)
            }
            None => (self.iconst(0), None),
        };
        let null = self.iconst(0);
        let place = match exists {
            Some(exists) => self.b.ins().select(exists, place, null),
            None => place,
        };
        let varbit = match varbit_bits {
            Some(bits) => self.saturated(bits),
            None => null,
        };
        let at = self.b.use_var(cursor);
        let at = self.shl_const(at, unit.trailing_zeros());
        self.store_ctx(offset_of!(Native, cursor), 8, at);
        let ctx = self.ctx;
        let id = self.iconst(u64::from(id.0));
        let code = self.call_value(packet::extract as *const u8, &[ctx, place, id, varbit]);
        let failed = self.b.ins().icmp_imm_s(IntCC::NotEqual, code, 0);
        let bad = self.cold_block();
        let good = self.block();
        self.branch(failed, bad, good);
        self.start(bad);
        self.fail_with(code)?;
        self.start(good);
        let behind = self.load_ctx(offset_of!(Native, cursor), 8);
        let behind = self.shr_const(behind, unit.trailing_zeros());
        self.b.def_var(cursor, behind);
        Ok(())
    }

    fn set_valid(&mut self, base: super::place::Base, offset: u32) {
        let one = self.b.ins().iconst(cranelift_codegen::ir::types::I8, 1);
        self.store(base.region, one, base.at, offset as i32);
    }

    pub fn lookahead(&mut self, into: &[Place]) -> Result<(), JitError> {
        let Parsing { cursor, unit, .. } = *self.parsing()?;
        let widths: Vec<u32> = into.iter().map(|place| self.width(place)).collect();
        let total: u64 = widths.iter().map(|width| u64::from(*width)).sum();
        let amount = self.iconst(total.div_ceil(u64::from(unit)));
        self.reserve(amount)?;
        if total > MAX_STACK * 8 {
            // Offsets below are 32 bits wide. Frames are smaller, so that no lookahead needs more.
            return Err(JitError::TooLarge);
        }
        let mut bit = 0;
        if unit == 8 {
            let at = self.packet_at()?;
            let mut values = Vec::new();
            for width in &widths {
                let value: Limbs = (0..width.div_ceil(64))
                    .map(|k| {
                        let piece = (width - 64 * k).min(64);
                        let from = bit + width - 64 * k - piece;
                        self.load_exact(at, from, piece)
                    })
                    .collect();
                values.push(value);
                bit += width;
            }
            for (place, value) in into.iter().zip(&values) {
                self.write(place, value);
            }
            return Ok(());
        }
        let at = self.b.use_var(cursor);
        for (place, width) in into.iter().zip(&widths) {
            let slot = self.stack(u64::from(width.div_ceil(64)) * 8);
            let dst = self.stack_addr(slot);
            let ctx = self.ctx;
            let from = self.add_const(at, i64::from(bit));
            let bits = self.iconst(u64::from(*width));
            self.call(packet::peek as *const u8, &[ctx, from, bits, dst], false);
            let value = self.load_limbs(Region::Scratch, dst, 0, width.div_ceil(64));
            self.write(place, &value);
            bit += width;
        }
        Ok(())
    }

    fn width(&self, place: &Place) -> u32 {
        match place {
            Place::Var(var) | Place::Elem { var, .. } => self.program[*var].width,
        }
    }

    /// As [`Gen::load_packed`] from the packet, reading no byte but those that hold the bits.
    fn load_exact(&mut self, at: Value, bit: u32, width: u32) -> Value {
        let mut first = bit / 8;
        let end = bit + width;
        let last = end.div_ceil(8);
        let mut value = None;
        while first < last {
            let bytes = (1 << (last - first).ilog2()).min(8u32);
            let next = first + bytes;
            let piece = self.load_be(at, Region::Packet, first as i32, bytes as usize);
            let up = i64::from(end) - i64::from(next * 8);
            let piece =
                if up >= 0 { self.shl_const(piece, up as u32) } else { self.shr_const(piece, (-up) as u32) };
            value = Some(match value {
                Some(value) => self.b.ins().bor(value, piece),
                None => piece,
            });
            first = next;
        }
        let value = match value {
            Some(value) => value,
            None => self.iconst(0),
        };
        self.truncate(value, width)
    }

    pub fn advance(&mut self, bits: &Expr) -> Result<(), JitError> {
        let Parsing { cursor, unit, .. } = *self.parsing()?;
        let bits = self.saturated(bits);
        // An amount that exceeds any packet, so that adding it cannot wrap.
        let most = self.iconst(1 << 40);
        let bits = self.b.ins().umin(bits, most);
        let amount = self.shr_const(bits, unit.trailing_zeros());
        let behind = self.reserve(amount)?;
        self.b.def_var(cursor, behind);
        Ok(())
    }

    pub fn verify(&mut self, cond: &Expr, error: &Expr) -> Result<(), JitError> {
        let cond = self.cond(cond);
        let good = self.block();
        let bad = self.cold_block();
        self.branch(cond, good, bad);
        self.start(bad);
        let code = self.narrow(error);
        self.fail_with(code)?;
        self.start(good);
        Ok(())
    }

    fn compare(&mut self, op: BinOp, a: &[Value], b: &[Value], width: u32) -> Value {
        if width > 64 {
            return self.compare_limbs(op, a, b, width);
        }
        let (mut a, mut b) = (a[0], b[0]);
        if op == BinOp::LeS {
            a = self.shl_const(a, 64 - width);
            b = self.shl_const(b, 64 - width);
        }
        let cc = match op {
            BinOp::Eq => IntCC::Equal,
            BinOp::LeS => IntCC::SignedLessThanOrEqual,
            _ => IntCC::UnsignedLessThanOrEqual,
        };
        self.b.ins().icmp(cc, a, b)
    }
}

/// The cases at the start that compare one narrow key with constants.
fn constant_run(keys: &[Expr], cases: &[SelectCase]) -> Vec<(u64, StateRef)> {
    if keys.len() != 1 || keys[0].width > 64 {
        return Vec::new();
    }
    cases
        .iter()
        .map_while(|case| match &case.matches[..] {
            [Match::Value(Expr { kind: ExprKind::Const(value), .. })] => {
                value.to_u64().map(|value| (value, case.next))
            }
            _ => None,
        })
        .collect()
}

pub(super) fn error_code(program: &Program, error: &str) -> Result<u64, JitError> {
    let code = program.errors.iter().position(|name| name == error);
    code.map(|code| code as u64).ok_or(JitError::Malformed("core error codes are missing"))
}
