//! How far into a packet a program can look. Headers behind that need not be there as bytes: see [`wire::packet`].

use num_traits::ToPrimitive;
use p4lang::ir::{
    Expr, ExprKind, ExternCall, HeaderRef, Match, Parser, Place, Program, StateRef, Stmt, Transition,
};
use p4lang::lower::v1model::V1Model;

/// Bytes from the packet's start that the program can read or measure; `usize::MAX`: all that there are.
pub fn reach(program: &Program, v1: &V1Model) -> usize {
    let checks = [v1.verify_checksum, v1.compute_checksum];
    if checks.into_iter().any(|control| sums_payload(&program[control].body)) {
        return usize::MAX;
    }
    let parser = &program[v1.parser];
    let mut longest = Longest { program, parser, known: vec![Known::Not; parser.states.len()] };
    longest.from(parser.start).map_or(usize::MAX, |bits| bits.div_ceil(8))
}

/// Whether a checksum is of the bytes behind the headers, too.
fn sums_payload(block: &[Stmt]) -> bool {
    block.iter().any(|stmt| match stmt {
        Stmt::Extern(
            ExternCall::VerifyChecksum { payload, .. } | ExternCall::UpdateChecksum { payload, .. },
        ) => *payload,
        Stmt::If { then, otherwise, .. } => sums_payload(then) || sums_payload(otherwise),
        Stmt::Switch { cases, default, .. } => {
            cases.iter().any(|(_, block)| sums_payload(block)) || sums_payload(default)
        }
        Stmt::Labeled { body, .. } | Stmt::Loop { body, .. } => sums_payload(body),
        _ => false,
    })
}

#[derive(Clone, Copy)]
enum Known {
    Not,
    /// On the path that is being followed: coming to it again is a circle.
    Now,
    Bits(Option<usize>),
}

/// The longest path through a parser. Lengths are bits; `None`: without a bound that is known.
struct Longest<'a> {
    program: &'a Program,
    parser: &'a Parser,
    known: Vec<Known>,
}

impl Longest<'_> {
    fn from(&mut self, state: StateRef) -> Option<usize> {
        let StateRef::State(index) = state else { return Some(0) };
        let index = index as usize;
        match self.known[index] {
            Known::Now => return None,
            Known::Bits(bits) => return bits,
            Known::Not => self.known[index] = Known::Now,
        }
        let bits = self.through(index);
        self.known[index] = Known::Bits(bits);
        bits
    }

    fn through(&mut self, index: usize) -> Option<usize> {
        let state = &self.parser.states[index];
        let here = self.block(&state.body)?;
        let behind = match &state.next {
            Transition::Direct(next) => self.from(*next)?,
            Transition::Select { keys, cases } => {
                keys.iter().try_for_each(fixed)?;
                let mut most = 0;
                for case in cases {
                    case.matches.iter().try_for_each(|matched| match matched {
                        Match::Any | Match::ValueSet { .. } => Some(()),
                        Match::Value(value) => fixed(value),
                        Match::Mask { value, mask } => fixed(value).and_then(|()| fixed(mask)),
                        Match::Range { lo, hi, .. } => fixed(lo).and_then(|()| fixed(hi)),
                    })?;
                    most = most.max(self.from(case.next)?);
                }
                most
            }
        };
        Some(here + behind)
    }

    /// At most so much is read by these statements, looking ahead counted as if it moved on.
    fn block(&self, block: &[Stmt]) -> Option<usize> {
        block.iter().try_fold(0, |sum, stmt| Some(sum + self.stmt(stmt)?))
    }

    fn stmt(&self, stmt: &Stmt) -> Option<usize> {
        match stmt {
            Stmt::Extract { header, varbit_bits: None } => {
                let id = match header {
                    HeaderRef::Header(id) => id,
                    HeaderRef::Elem { header, index, .. } => fixed(index).map(|()| header)?,
                };
                Some(self.program[self.program[*id].ty].fixed_bits as usize)
            }
            Stmt::Lookahead { into } => {
                into.iter().try_for_each(place)?;
                Some(into.iter().map(|place| self.width(place)).sum())
            }
            Stmt::Advance { bits } => match &bits.kind {
                ExprKind::Const(bits) => bits.to_usize(),
                _ => None,
            },
            Stmt::Assign { dst, src } => place(dst).and_then(|()| fixed(src)).map(|()| 0),
            Stmt::Verify { cond, error } => fixed(cond).and_then(|()| fixed(error)).map(|()| 0),
            Stmt::If { cond, then, otherwise } => {
                fixed(cond)?;
                Some(self.block(then)?.max(self.block(otherwise)?))
            }
            Stmt::Labeled { body, .. } => self.block(body),
            Stmt::Break(_) => Some(0),
            // Rare in parsers: all that there is.
            _ => None,
        }
    }

    fn width(&self, place: &Place) -> usize {
        let (Place::Var(var) | Place::Elem { var, .. }) = place;
        self.program[*var].width as usize
    }
}

/// Nothing if the expression asks for the packet's length, which counts all headers.
fn fixed(expr: &Expr) -> Option<()> {
    match &expr.kind {
        ExprKind::PacketLength => None,
        ExprKind::Const(_) => Some(()),
        ExprKind::Read(from) => place(from),
        ExprKind::VarbitEq(a, b) => place(a).and_then(|()| place(b)),
        ExprKind::Not(a) | ExprKind::Neg(a) | ExprKind::ZeroExtend(a) | ExprKind::SignExtend(a) => fixed(a),
        ExprKind::Slice { base, .. } => fixed(base),
        ExprKind::Binary(_, a, b) | ExprKind::Concat(a, b) => fixed(a).and_then(|()| fixed(b)),
        ExprKind::Select(a, b, c) => fixed(a).and_then(|()| fixed(b)).and_then(|()| fixed(c)),
    }
}

fn place(place: &Place) -> Option<()> {
    match place {
        Place::Var(_) => Some(()),
        Place::Elem { index, .. } => fixed(index),
    }
}
