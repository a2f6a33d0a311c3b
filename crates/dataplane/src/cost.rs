//! What parts of a program cost, in units of [`WORK_BUDGET`]: about a nanosecond of native code each.
//!
//! Costs are computed from the program alone, for both executors alike, and are upper bounds: of branches the dearest counts,
//! and lengths that depend on the packet count as long as they can be. What runs at most once in a pass is charged when the
//! pass begins, iterations of loops and transitions of parsers with cycles when they happen. Only lookups that may have to
//! look at many entries say what they have cost ([`crate::state::table::TableState::search`]).

use std::collections::HashMap;

use p4lang::ir::{
    ActionId, Block, ControlId, Expr, ExprKind, ExternCall, HashAlgorithm, HeaderRef, Match, MatchKind,
    Parser, ParserId, Place, Program, State, Stmt, TableId, Transition,
};

use p4lang::sizes::trie_width;

use crate::layout::Layout;
use crate::parser_shape::cyclic;

/// Work that one packet may cause, with all of its passes and copies, before it is dropped.
pub const WORK_BUDGET: u64 = 1 << 22;

/// A call out of native code, with what it does at least.
const CALL: u64 = 32;

/// A look into a map of prefixes of one length.
const LENGTH: u64 = 32;

/// Members of a value set are compared as numbers of any width.
const MEMBER_FIELD: u64 = 64;

/// What a lookup in a value set of so many members and fields costs.
pub const fn value_set(members: usize, fields: usize) -> u64 {
    CALL + MEMBER_FIELD * members as u64 * fields as u64
}

// A packet can be looked for in several sets that are full.
const _: () = assert!(8 * value_set(control::MOST_COMPARED, 1) <= WORK_BUDGET);

/// What a hash or checksum of so many bytes of payload costs, beside that of its list.
pub fn payload(algorithm: HashAlgorithm, bytes: usize) -> u64 {
    let bytes = bytes as u64;
    match algorithm {
        HashAlgorithm::Identity | HashAlgorithm::Random | HashAlgorithm::Csum16 => bytes / 2,
        HashAlgorithm::Xor16 => 2 * bytes,
        _ => 4 * bytes,
    }
}

/// Bytes of registers, counters and meters in all whose memory a live switch has before packets come: see [`State::provide`]. In
/// simulations and replays, which keep no other packets waiting, the system provides it when it is first touched.
///
/// [`State::provide`]: crate::state::State::provide
pub const NEAR: u64 = 64 << 20;

/// An access to a register, counter or meter, where they are larger in all: the system provides a page of memory when it is first
/// touched, which takes up to two microseconds.
const FAR: u64 = 1000;

/// Accesses of each half of a packet's first pass, beside loops, that cost no more than near ones. Most of an ordinary packet's are
/// not the first ones of their pages; if all of them are, they take half a millisecond more than the budget has.
const FREE: u64 = 150;

/// Whether a program's registers, counters and meters take no more than [`NEAR`].
pub fn is_near(program: &Program) -> bool {
    let registers = program.registers.iter().map(|r| r.size.saturating_mul(8 * limbs(r.width)));
    let counters = program.counters.iter().map(|c| c.size.saturating_mul(16));
    let meters = program.meters.iter().map(|m| m.size.saturating_mul(80));
    registers.chain(counters).chain(meters).fold(0, u64::saturating_add) <= NEAR
}

/// What half of a packet's first pass costs, of what it would if all cells were near, and if each were far.
pub fn first_touches(near: u64, far: u64) -> u64 {
    near + far.saturating_sub(near).saturating_sub(FREE * FAR)
}

/// Prices parts of a program.
#[derive(Clone, Copy)]
pub struct Prices<'a> {
    program: &'a Program,
    layout: &'a Layout,
    /// Of touching a cell.
    touch: u64,
}

/// Blocks of statements that are not part of other ones.
pub fn blocks(program: &Program) -> impl Iterator<Item = &Block> {
    let states = program.parsers.iter().flat_map(|parser| &parser.states).map(|state| &state.body);
    let controls = program.controls.iter().map(|control| &control.body);
    let actions = program.actions.iter().map(|action| &action.body);
    states.chain(controls).chain(actions).chain(program.tables.iter().map(|table| &table.prelude))
}

/// Calls `f` for every statement of a block, those within others too.
pub fn each_stmt<'p>(block: &'p [Stmt], f: &mut impl FnMut(&'p Stmt)) {
    for stmt in block {
        f(stmt);
        match stmt {
            Stmt::If { then, otherwise, .. } => {
                each_stmt(then, f);
                each_stmt(otherwise, f);
            }
            Stmt::Switch { cases, default, .. } => {
                cases.iter().for_each(|(_, body)| each_stmt(body, f));
                each_stmt(default, f);
            }
            Stmt::Labeled { body, .. } | Stmt::Loop { body, .. } => each_stmt(body, f),
            _ => {}
        }
    }
}

fn limbs(width: u32) -> u64 {
    u64::from(width.div_ceil(64))
}

/// As many bytes copied or zeroed.
fn bytes(count: u32) -> u64 {
    u64::from(count.div_ceil(16))
}

impl<'a> Prices<'a> {
    pub fn new(program: &'a Program, layout: &'a Layout) -> Prices<'a> {
        Prices { program, layout, touch: if is_near(program) { 0 } else { FAR } }
    }

    /// Where all cells are near.
    pub fn near(self) -> Prices<'a> {
        Prices { touch: 0, ..self }
    }

    /// One iteration of a loop.
    pub fn iteration(&self, body: &[Stmt]) -> u64 {
        2 + self.block(body)
    }

    /// One iteration of each loop of the program, by the address of the loop's body.
    pub fn loops(&self) -> HashMap<usize, u64> {
        let mut found = HashMap::new();
        blocks(self.program).for_each(|block| {
            each_stmt(block, &mut |stmt| {
                if let Stmt::Loop { body, .. } = stmt {
                    found.insert(body.as_ptr().addr(), self.iteration(body));
                }
            });
        });
        found
    }

    /// One pass through a control.
    pub fn control(&self, id: ControlId) -> u64 {
        1 + self.block(&self.program[id].body)
    }

    /// One pass through a parser, without what its transitions cost if it has a cycle.
    pub fn parser(&self, id: ParserId) -> u64 {
        let parser = &self.program[id];
        if cyclic(parser) { 1 } else { 1 + parser.states.iter().map(|state| self.state(state)).sum::<u64>() }
    }

    /// For each state of a parser with a cycle, a transition to it; of any other parser nothing.
    pub fn transitions(&self, parser: &Parser) -> Vec<u64> {
        let states = if cyclic(parser) { &parser.states[..] } else { &[] };
        states.iter().map(|state| self.state(state)).collect()
    }

    fn state(&self, state: &State) -> u64 {
        let next = match &state.next {
            Transition::Direct(_) => 0,
            Transition::Select { keys, cases } => {
                let matches = cases.iter().flat_map(|case| &case.matches);
                self.exprs(keys) + matches.map(|matched| self.matched(matched)).sum::<u64>()
            }
        };
        2 + self.block(&state.body) + next
    }

    fn matched(&self, matched: &Match) -> u64 {
        match matched {
            Match::Any => 0,
            Match::Value(value) => limbs(value.width) + self.expr(value),
            Match::Mask { value: a, mask: b } | Match::Range { lo: a, hi: b, .. } => {
                2 * limbs(a.width) + self.expr(a) + self.expr(b)
            }
            // Charged by its members when it is looked at.
            Match::ValueSet { .. } => 0,
        }
    }

    fn block(&self, block: &[Stmt]) -> u64 {
        block.iter().fold(0, |sum, stmt| sum.saturating_add(self.stmt(stmt)))
    }

    fn stmt(&self, stmt: &Stmt) -> u64 {
        match stmt {
            Stmt::Assign { dst, src } => 1 + self.expr(src) + limbs(src.width) + self.place(dst),
            Stmt::CopyVarbit { dst, src } => {
                CALL + bytes(self.width(src) / 8) + self.place(dst) + self.place(src)
            }
            Stmt::CopyHeader { dst, src } => 2 + self.header(dst) + self.header(src),
            Stmt::ResetHeader(header) => 1 + self.header(header),
            Stmt::If { cond, then, otherwise } => {
                1 + self.expr(cond) + self.block(then).max(self.block(otherwise))
            }
            Stmt::Switch { on, cases, default } => {
                // Labels of a wide value are compared one by one.
                let labels: usize = cases.iter().map(|(labels, _)| labels.len()).sum();
                let choice = if on.width <= 64 { 8 } else { labels as u64 * limbs(on.width) };
                let bodies = cases.iter().map(|(_, body)| self.block(body)).max();
                self.expr(on) + choice + bodies.unwrap_or(0).max(self.block(default))
            }
            Stmt::Labeled { body, .. } => self.block(body),
            // Its iterations are charged when they begin.
            Stmt::Loop { .. } | Stmt::Break(_) | Stmt::Continue(_) => 1,
            Stmt::Apply { table, .. } => self.apply(*table),
            Stmt::Extern(call) => self.call(call),
            Stmt::Extract { header, varbit_bits } => {
                let unaligned = !self.fixed_bits(header).is_multiple_of(8) || varbit_bits.is_some();
                let helper = if unaligned { CALL + 8 * self.header(header) } else { 2 };
                helper + self.header(header) + varbit_bits.as_ref().map_or(0, |bits| self.expr(bits))
            }
            Stmt::Lookahead { into } => {
                2 + into.iter().map(|place| 4 * limbs(self.width(place)) + self.place(place)).sum::<u64>()
            }
            Stmt::Advance { bits } => 2 + self.expr(bits),
            Stmt::Verify { cond, error } => 1 + self.expr(cond) + self.expr(error),
            Stmt::Emit(header) => {
                let unaligned = !self.fixed_bits(header).is_multiple_of(8);
                let helper = if unaligned { CALL + 8 * self.header(header) } else { 4 };
                helper + self.header(header)
            }
        }
    }

    fn apply(&self, id: TableId) -> u64 {
        let table = &self.program[id];
        let key: u64 = table.keys.iter().map(|key| self.expr(&key.expr) + limbs(key.expr.width)).sum();
        let words: u64 = table.keys.iter().map(|key| limbs(key.expr.width)).sum();
        let lpm = table.keys.iter().find(|key| key.kind == MatchKind::Lpm).map(|key| key.expr.width);
        let lookup = match (trie_width(&table.kinds()), lpm) {
            // A trie takes a step for each byte of the key; without one, a map is looked into for each length.
            (Some(width), _) => CALL + 2 * words + u64::from(width.div_ceil(8)) * 4,
            (None, Some(width)) => CALL + (u64::from(width) + 1) * (LENGTH + 2 * words),
            (None, None) => CALL + 2 * words,
        };
        let chosen = table.implementation.and_then(|profile| self.program[profile].selector.as_ref());
        let selector = chosen.map_or(0, |s| self.sum(s.algorithm, &table.selector));
        let meter = table.direct_meter.as_ref().map_or(0, |_| CALL);
        let action = |id: ActionId| {
            let action = &self.program[id];
            let data = action.params.iter().map(|param| limbs(self.program[param.var].width));
            data.sum::<u64>() + self.block(&action.body)
        };
        let actions = table.actions.iter().map(|listed| action(listed.action)).max();
        self.block(&table.prelude) + key + lookup + selector + meter + actions.unwrap_or(0)
    }

    fn call(&self, call: &ExternCall) -> u64 {
        match call {
            ExternCall::CounterCount { index, .. } => 4 + self.touch + self.expr(index),
            ExternCall::MeterExecute { index, dst, .. } => {
                CALL + self.touch + self.expr(index) + self.place(dst)
            }
            ExternCall::RegisterRead { register, index, dst } => {
                let width = limbs(self.program[*register].width);
                2 + self.touch + width + self.expr(index) + self.place(dst)
            }
            ExternCall::RegisterWrite { index, value, .. } => {
                2 + self.touch + limbs(value.width) + self.expr(index) + self.expr(value)
            }
            ExternCall::Random { dst, lo, hi } => CALL + self.expr(lo) + self.expr(hi) + self.place(dst),
            ExternCall::Hash { dst, algorithm, base, data, max } => {
                let width = self.width(dst).max(max.width).max(base.width);
                // The remainder of a number of 64 bits.
                let result = if width <= 64 { 8 } else { CALL + 16 * limbs(width) };
                result + self.sum(*algorithm, data) + self.expr(base) + self.expr(max) + self.place(dst)
            }
            ExternCall::VerifyChecksum { cond, data, checksum, algorithm, .. } => {
                2 + self.expr(cond) + self.sum(*algorithm, data) + self.expr(checksum)
            }
            ExternCall::UpdateChecksum { cond, data, dst, algorithm, .. } => {
                2 + self.expr(cond) + self.sum(*algorithm, data) + self.place(dst)
            }
            // Numbers of the message are allocated.
            ExternCall::Digest { receiver, fields, .. } => {
                let of = |expr: &Expr| CALL + 2 * limbs(expr.width) + self.expr(expr);
                2 * CALL + of(receiver) + fields.iter().map(of).sum::<u64>()
            }
            ExternCall::Clone { session: operand, .. } | ExternCall::Truncate { bytes: operand } => {
                CALL + self.expr(operand)
            }
            ExternCall::Resubmit { .. } | ExternCall::Recirculate { .. } => CALL,
            // Native code leaves it out; the interpreter looks at it in traces only.
            ExternCall::LogMsg { .. } => 0,
            ExternCall::Assert { cond, .. } | ExternCall::Assume { cond, .. } => 1 + self.expr(cond),
        }
    }

    /// A hash or checksum of a data list, and putting the list together. The payload pays for itself.
    fn sum(&self, algorithm: HashAlgorithm, items: &[Expr]) -> u64 {
        let list: u64 = items.iter().map(|item| 4 + self.expr(item) + 8 * limbs(item.width)).sum();
        let bits: u64 = items.iter().map(|item| u64::from(item.width)).sum();
        let bytes = bits.div_ceil(8);
        let hashed = match algorithm {
            HashAlgorithm::Identity | HashAlgorithm::Random => bytes / 8,
            HashAlgorithm::Csum16 | HashAlgorithm::Xor16 => bytes,
            // The reflected ones of 16 and 32 bits are quicker than a custom one may be.
            _ => 4 * bytes,
        };
        CALL + list + hashed
    }

    fn exprs(&self, exprs: &[Expr]) -> u64 {
        exprs.iter().map(|expr| self.expr(expr)).sum()
    }

    fn expr(&self, expr: &Expr) -> u64 {
        let own = limbs(expr.width);
        match &expr.kind {
            ExprKind::Const(_) => own - 1,
            ExprKind::Read(place) => own + self.place(place),
            ExprKind::Not(a) | ExprKind::Neg(a) | ExprKind::ZeroExtend(a) | ExprKind::SignExtend(a) => {
                own + self.expr(a)
            }
            ExprKind::Slice { base, .. } => own + self.expr(base),
            ExprKind::Binary(op, a, b) => operation(*op, limbs(a.width)) + self.expr(a) + self.expr(b),
            ExprKind::Concat(a, b) => own + self.expr(a) + self.expr(b),
            ExprKind::Select(cond, a, b) => own + self.expr(cond) + self.expr(a) + self.expr(b),
            ExprKind::VarbitEq(a, b) => {
                CALL + bytes(self.width(a).max(self.width(b)) / 8) + self.place(a) + self.place(b)
            }
            ExprKind::PacketLength => 1,
        }
    }

    fn place(&self, place: &Place) -> u64 {
        match place {
            Place::Var(_) => 0,
            Place::Elem { index, .. } => 4 + self.expr(index),
        }
    }

    fn width(&self, place: &Place) -> u32 {
        let (Place::Var(var) | Place::Elem { var, .. }) = place;
        self.program[*var].width
    }

    fn fixed_bits(&self, header: &HeaderRef) -> u32 {
        let (HeaderRef::Header(id) | HeaderRef::Elem { header: id, .. }) = header;
        self.program[self.program[*id].ty].fixed_bits
    }

    /// Copying or zeroing a header.
    fn header(&self, header: &HeaderRef) -> u64 {
        match header {
            HeaderRef::Header(id) => bytes(self.layout.header_slot(*id).extent),
            HeaderRef::Elem { header, index, .. } => {
                4 + self.expr(index) + bytes(self.layout.header_slot(*header).extent)
            }
        }
    }
}

/// An operation on operands of so many limbs.
fn operation(op: p4lang::ir::BinOp, limbs: u64) -> u64 {
    use p4lang::ir::BinOp::*;
    match op {
        Mul | Div | Mod if limbs > 1 => CALL * 4 + 16 * limbs + limbs * limbs,
        Shl | Shr | Sar | AddSatU | AddSatS | SubSatU | SubSatS if limbs > 1 => CALL * 4 + 16 * limbs,
        Div | Mod => 8,
        _ => limbs,
    }
}
