//! Slices of a fixed width, `e[lo +: width]` (P4_16 section 8.6). With a `lo` that is known only at run time they are shifts
//! and masks; bits beyond the value are zero when read and lost when written.

use num_bigint::BigInt;
use num_traits::{One, ToPrimitive};

use super::{Checker, consts, walk};
use crate::ast::{self, BinaryOp, UnaryOp};
use crate::hir::{Block, Callee, DefKind, Expr, ExprKind, Stmt, StmtKind, Type};
use crate::source::Span;

/// What a slice at a run-time position is of, and that position.
pub(super) struct RunTimeSlice {
    base: Expr,
    lo: Expr,
}

/// The parts of what [`Checker::plus_slice`] made, if its position is known only at run time.
pub(super) fn place(slice: &Expr) -> Option<RunTimeSlice> {
    let ExprKind::Slice { base, lo: 0, .. } = &slice.kind else { return None };
    let ExprKind::Binary(BinaryOp::Shr, base, lo) = &base.kind else { return None };
    let base = match &base.kind {
        // The cast that takes away the sign stands for the whole slice; one that is written is a part of it.
        ExprKind::Cast(signed) if base.span == slice.span => signed,
        _ => base,
    };
    Some(RunTimeSlice { base: (**base).clone(), lo: (**lo).clone() })
}

impl Checker {
    pub(super) fn plus_slice(
        &mut self,
        base: &ast::Expr,
        lo: &ast::Expr,
        width: &ast::Expr,
        span: Span,
    ) -> Expr {
        let base = self.expr(base, None);
        let base = self.numeric(base);
        let at = self.expr(lo, None);
        let at = self.numeric(at);
        let Some(size) = self.const_int(width) else { return Self::unknown(span) };
        if base.ty == Type::Unknown || at.ty == Type::Unknown {
            return Self::unknown(span);
        }
        if let Some(at) = consts::int_value(&at) {
            let hi = at + &size - 1;
            return self.slice_of(base, &hi, at, span);
        }
        let (Type::Bits { width: limit, .. }, Type::Bits { signed: false, .. }) = (&base.ty, &at.ty) else {
            let (of, by) = (self.show(&base.ty), self.show(&at.ty));
            self.error("bad-operand", span, format!("`{of}` cannot be sliced at a `{by}`")).help =
                Some("both are numbers of a fixed width, the position one without a sign".into());
            return Self::unknown(span);
        };
        let limit = *limit;
        let Some(size) = size.to_u32().filter(|size| (1..=limit).contains(size)) else {
            let what = format!("a slice of {} bits cannot lie in {limit} bits", consts::brief(&size));
            self.error("bad-slice", width.span, what);
            return Self::unknown(span);
        };
        // A shift of a signed number would repeat its sign.
        let ty = Type::Bits { width: limit, signed: false };
        let base = if base.ty == ty {
            base
        } else {
            Expr { ty: ty.clone(), kind: ExprKind::Cast(Box::new(base)), span }
        };
        let kind = ExprKind::Binary(BinaryOp::Shr, Box::new(base), Box::new(at));
        let shifted = Box::new(Expr { ty, kind, span });
        let kind = ExprKind::Slice { base: shifted, hi: size - 1, lo: 0 };
        Expr { ty: Type::Bits { width: size, signed: false }, kind, span }
    }

    /// `base[lo +: width] = value` as `base = base & ~(ones << lo) | value << lo`.
    pub(super) fn assign_run_time_slice(
        &mut self,
        RunTimeSlice { mut base, mut lo }: RunTimeSlice,
        slice: &Expr,
        (op, right): (Option<BinaryOp>, &ast::Expr),
        span: Span,
    ) -> Option<StmtKind> {
        self.require_writable(&base);
        if calls(&base) || calls(&lo) {
            self.error("unsupported", lo.span, "the place of a slice that is assigned to has a call in it")
                .help = Some("put the result of the call into a variable first".into());
            return None;
        }
        let mut value = match op {
            None => self.expr_as(right, &slice.ty),
            Some(op) => {
                let right = self.expr(right, None);
                let right = if matches!(op, BinaryOp::Shl | BinaryOp::Shr) {
                    self.numeric(right)
                } else {
                    self.coerce(right, &slice.ty)
                };
                self.combine(op, slice.clone(), right, span)
            }
        };
        let (Type::Bits { width, .. }, Type::Bits { width: size, .. }) = (&base.ty, &slice.ty) else {
            return None;
        };
        if value.ty == Type::Unknown {
            return None;
        }
        let wide = Type::Bits { width: *width, signed: false };
        // A call on the right side might change the place.
        let mut stmts = Vec::new();
        if calls(&value) {
            self.hold_indices(&mut base, &mut stmts);
            self.hold(&mut lo, &mut stmts);
            self.hold(&mut value, &mut stmts);
        }
        let ones = (BigInt::one() << *size) - 1;
        let make = |kind| Expr { ty: wide.clone(), kind, span };
        let binary = |op, a, b| make(ExprKind::Binary(op, Box::new(a), Box::new(b)));
        let cast = |e: Expr| if e.ty == wide { e } else { make(ExprKind::Cast(Box::new(e))) };
        let hole = binary(BinaryOp::Shl, make(ExprKind::Int(ones)), lo.clone());
        let rest = make(ExprKind::Unary(UnaryOp::Complement, Box::new(hole)));
        let kept = binary(BinaryOp::BitAnd, cast(base.clone()), rest);
        let placed = binary(BinaryOp::Shl, cast(value), lo);
        let mut right = binary(BinaryOp::BitOr, kept, placed);
        if base.ty != wide {
            right = Expr { ty: base.ty.clone(), kind: ExprKind::Cast(Box::new(right)), span };
        }
        let assign = StmtKind::Assign { left: base, op: None, right };
        if stmts.is_empty() {
            return Some(assign);
        }
        stmts.push(Stmt { kind: assign, span });
        Some(StmtKind::Block(Block { stmts, annotations: Vec::new(), span }))
    }

    /// Puts what `e` is now into a variable, which takes its place.
    fn hold(&mut self, e: &mut Expr, stmts: &mut Vec<Stmt>) {
        let (ty, span) = (e.ty.clone(), e.span);
        let of = Expr { ty: ty.clone(), kind: ExprKind::DontCare, span };
        let init = Some(std::mem::replace(e, of));
        let id = self.define("held".into(), span, &[], DefKind::Variable { ty, init });
        stmts.push(Stmt { kind: StmtKind::Decl(id), span });
        e.kind = ExprKind::Ref(id);
    }

    /// The same for each run-time index of an l-value.
    fn hold_indices(&mut self, e: &mut Expr, stmts: &mut Vec<Stmt>) {
        match &mut e.kind {
            ExprKind::Field(base, _) | ExprKind::Slice { base, .. } => self.hold_indices(base, stmts),
            ExprKind::Index(base, index) => {
                self.hold_indices(base, stmts);
                if consts::int_value(index).is_none() {
                    self.hold(index, stmts);
                }
            }
            _ => {}
        }
    }
}

/// Whether evaluating it calls anything that could change a variable.
fn calls(e: &Expr) -> bool {
    let call = |e: &Expr| match &e.kind {
        ExprKind::Call(call) => !matches!(call.callee, Callee::IsValid(_)),
        kind => matches!(kind, ExprKind::TableHit { .. }),
    };
    walk::find(e, &call).is_some()
}
