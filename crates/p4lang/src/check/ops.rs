//! Operators: which types they take and give (P4_16 sections 8.1, 8.5 to 8.12).

use num_traits::{Signed, ToPrimitive, Zero};

use super::{Checker, consts};
use crate::ast::{self, BinaryOp, UnaryOp};
use crate::diag::Diagnostic;
use crate::hir::{DefKind, Expr, ExprKind, Type};
use crate::source::Span;

fn symbol(op: BinaryOp) -> &'static str {
    match op {
        BinaryOp::Mul => "*",
        BinaryOp::Div => "/",
        BinaryOp::Mod => "%",
        BinaryOp::Add => "+",
        BinaryOp::Sub => "-",
        BinaryOp::AddSat => "|+|",
        BinaryOp::SubSat => "|-|",
        BinaryOp::Shl => "<<",
        BinaryOp::Shr => ">>",
        BinaryOp::Lt => "<",
        BinaryOp::Le => "<=",
        BinaryOp::Gt => ">",
        BinaryOp::Ge => ">=",
        BinaryOp::Eq => "==",
        BinaryOp::Ne => "!=",
        BinaryOp::BitAnd => "&",
        BinaryOp::BitXor => "^",
        BinaryOp::BitOr => "|",
        BinaryOp::Concat => "++",
        BinaryOp::And => "&&",
        BinaryOp::Or => "||",
    }
}

impl Checker {
    pub(super) fn unary(
        &mut self,
        op: UnaryOp,
        operand: &ast::Expr,
        expected: Option<&Type>,
        span: Span,
    ) -> Expr {
        let expected = expected.filter(|t| matches!(t, Type::Bits { .. } | Type::Bool));
        let operand = self.expr(operand, expected);
        let operand = self.numeric(operand);
        let good = match (&operand.ty, op) {
            (Type::Unknown, _) => return Self::unknown(span),
            (Type::Bool, UnaryOp::Not) => true,
            (Type::Bits { .. }, UnaryOp::Neg | UnaryOp::Plus | UnaryOp::Complement) => true,
            (Type::Int, UnaryOp::Neg | UnaryOp::Plus) => true,
            _ => false,
        };
        if !good {
            let shown = self.show(&operand.ty);
            let sign = match op {
                UnaryOp::Not => "!",
                UnaryOp::Complement => "~",
                UnaryOp::Neg => "-",
                UnaryOp::Plus => "+",
            };
            let diagnostic =
                self.error("bad-operand", span, format!("`{sign}` cannot be applied to `{shown}`"));
            if op == UnaryOp::Not && matches!(operand.ty, Type::Bits { .. }) {
                diagnostic.help = Some("use `~` for bits, or compare with 0".into());
            } else if op == UnaryOp::Complement && operand.ty == Type::Int {
                diagnostic.help = Some("give the number a width, as in `8w5`".into());
            }
            return Self::unknown(span);
        }
        let ty = operand.ty.clone();
        let kind = consts::unary(op, &operand, &ty).unwrap_or_else(|| ExprKind::Unary(op, Box::new(operand)));
        Expr { ty, kind, span }
    }

    /// A serializable enum where a number is wanted turns into one (section 8.12.2).
    pub(super) fn numeric(&mut self, expr: Expr) -> Expr {
        if let Type::Enum(id) = expr.ty
            && let DefKind::Enum(def) = &self.def(id).kind
            && let Some(under) = def.underlying.clone()
        {
            return self.cast_to(expr, &under);
        }
        expr
    }

    pub(super) fn binary(&mut self, op: BinaryOp, left: &ast::Expr, right: &ast::Expr, span: Span) -> Expr {
        let shift = matches!(op, BinaryOp::Shl | BinaryOp::Shr);
        let brace = |e: &ast::Expr| {
            matches!(
                e.kind,
                ast::ExprKind::List { .. } | ast::ExprKind::StructInit { .. } | ast::ExprKind::Invalid
            )
        };
        // A list gets its type from the other side; so do literals, but later.
        let beside = |checker: &mut Self, e: &ast::Expr, other: &Expr| {
            if !brace(e) || other.ty == Type::Unknown {
                return checker.expr(e, None);
            }
            let value = checker.expr(e, Some(&other.ty));
            checker.coerce(value, &other.ty)
        };
        let (left, right) = if brace(left) && !brace(right) {
            let right = self.expr(right, None);
            (beside(self, left, &right), right)
        } else {
            let left = self.expr(left, None);
            let right = beside(self, right, &left);
            (left, right)
        };
        if left.ty == Type::Unknown || right.ty == Type::Unknown {
            return Self::unknown(span);
        }
        if shift {
            return self.shift(op, left, right, span);
        }
        self.combine(op, left, right, span)
    }

    pub(super) fn shift(&mut self, op: BinaryOp, left: Expr, right: Expr, span: Span) -> Expr {
        let (left, mut right) = (self.numeric(left), self.numeric(right));
        // The specification wants a cast here; the reference compiler does not.
        while let Type::New(id) = right.ty
            && self.is_number(&right.ty)
        {
            let base = self.underlying(id).unwrap_or(Type::Unknown);
            if matches!(base, Type::Bits { .. }) {
                let message = "a new type becomes a shift's amount without a cast";
                let help = format!("cast it: `({}) ...`", self.show(&base));
                self.report(Diagnostic::warning("implicit-cast", right.span, message).help(help));
            }
            right = self.cast_to(right, &base);
        }
        let amount = match &right.ty {
            Type::Bits { signed: false, .. } => true,
            Type::Bits { signed: true, .. } | Type::Int => match consts::int_value(&right) {
                Some(value) if value.is_negative() => {
                    self.error("bad-shift", right.span, "a shift by a negative amount").help =
                        Some("shift the other way".into());
                    return Self::unknown(span);
                }
                Some(_) => true,
                None => right.ty == Type::Int,
            },
            _ => false,
        };
        if !amount || !matches!(left.ty, Type::Bits { .. } | Type::Int) {
            return self.mismatch(op, &left, &right, span);
        }
        if left.ty == Type::Int
            && matches!(right.ty, Type::Bits { .. })
            && consts::int_value(&right).is_none()
        {
            self.error(
                "bad-shift",
                left.span,
                "a number without a width cannot be shifted by a run-time amount",
            )
            .help = Some("give it a width, as in `8w1 << n`".into());
            return Self::unknown(span);
        }
        if consts::int_value(&right).is_some_and(|n| n.to_i32().is_none()) {
            self.error("bad-shift", right.span, "this amount is too large for a shift").help =
                Some("it must be less than 2147483648".into());
            return Self::unknown(span);
        }
        if let (Type::Bits { width, .. }, Some(value)) = (&left.ty, consts::int_value(&right))
            && value.to_u64().is_none_or(|n| n >= u64::from(*width))
        {
            let message = format!("shifting {} bits by {} leaves nothing", width, consts::brief(value));
            self.report(Diagnostic::warning("shift-overflow", span, message));
        }
        let ty = left.ty.clone();
        self.fold(op, left, right, ty, span)
    }

    fn fold(&mut self, op: BinaryOp, left: Expr, right: Expr, ty: Type, span: Span) -> Expr {
        if self.stop(span, consts::cost(op, &left, &right)) {
            return Self::unknown(span);
        }
        let kind = match consts::binary(&self.hir, op, &left, &right, &ty) {
            None => ExprKind::Binary(op, Box::new(left), Box::new(right)),
            Some(Ok(kind)) => kind,
            Some(Err(why)) => {
                self.error("bad-constant", span, why);
                return Self::unknown(span);
            }
        };
        Expr { ty, kind, span }
    }

    fn mismatch(&mut self, op: BinaryOp, left: &Expr, right: &Expr, span: Span) -> Expr {
        let (l, r) = (self.show(&left.ty), self.show(&right.ty));
        let diagnostic =
            self.error("bad-operand", span, format!("`{}` cannot be applied to `{l}` and `{r}`", symbol(op)));
        diagnostic.help = match (&left.ty, &right.ty) {
            (Type::Bits { .. }, Type::Bits { .. }) => Some(format!("cast one side, as in `({l}) ...`")),
            (Type::Bool, Type::Bits { .. }) | (Type::Bits { .. }, Type::Bool) => {
                Some("compare with 0 or cast to bool".into())
            }
            (Type::New(_), _) | (_, Type::New(_)) => Some("cast the new type to what it is made of".into()),
            _ => None,
        };
        Self::unknown(span)
    }

    /// Operators whose operands have one type.
    pub(super) fn combine(&mut self, op: BinaryOp, left: Expr, right: Expr, span: Span) -> Expr {
        use BinaryOp::*;
        if matches!(op, Eq | Ne) {
            return self.equality(op, left, right, span);
        }
        if matches!(op, And | Or) {
            return match (&left.ty, &right.ty) {
                (Type::Bool, Type::Bool) => self.fold(op, left, right, Type::Bool, span),
                _ => self.mismatch(op, &left, &right, span),
            };
        }
        if op == Concat && left.ty == Type::String && right.ty == Type::String {
            return self.fold(op, left, right, Type::String, span);
        }
        let (left, right) = (self.numeric(left), self.numeric(right));
        if op == Concat {
            let (Type::Bits { width: a, signed }, Type::Bits { width: b, .. }) = (&left.ty, &right.ty) else {
                return self.mismatch(op, &left, &right, span);
            };
            let (width, most) = (a + b, super::types::MAX_WIDTH);
            if width > most {
                self.error("bad-size", span, format!("this is {width} bits wide; {most} is the most"));
                return Self::unknown(span);
            }
            let ty = Type::Bits { width, signed: *signed };
            return self.fold(op, left, right, ty, span);
        }
        if matches!(op, Div | Mod)
            && [&left, &right].iter().any(|e| consts::int_value(e).is_some_and(Signed::is_negative))
        {
            return self.signed_division(op, span);
        }
        let Some((left, right)) = self.same_width(left, right) else { return Self::unknown(span) };
        let ty = left.ty.clone();
        let numbers = matches!(ty, Type::Bits { .. } | Type::Int) && left.ty == right.ty;
        let good = numbers
            && match op {
                AddSat | SubSat => matches!(ty, Type::Bits { .. }),
                _ => true,
            };
        if !good {
            return self.mismatch(op, &left, &right, span);
        }
        if matches!(op, Div | Mod) {
            if consts::int_value(&right).is_some_and(Zero::is_zero) {
                self.error("bad-constant", right.span, "division by zero");
                return Self::unknown(span);
            }
            if matches!(ty, Type::Bits { signed: true, .. }) {
                return self.signed_division(op, span);
            }
        }
        let result = if matches!(op, Lt | Le | Gt | Ge) { Type::Bool } else { ty };
        self.fold(op, left, right, result, span)
    }

    fn signed_division(&mut self, op: BinaryOp, span: Span) -> Expr {
        self.error("bad-operand", span, format!("`{}` is not defined for signed numbers", symbol(op)));
        Self::unknown(span)
    }

    /// A number without a width takes the other side's type.
    fn same_width(&mut self, left: Expr, right: Expr) -> Option<(Expr, Expr)> {
        match (&left.ty, &right.ty) {
            (Type::Int, Type::Bits { .. }) => {
                let ty = right.ty.clone();
                let left = self.coerce(left, &ty);
                (left.ty != Type::Unknown).then_some((left, right))
            }
            (Type::Bits { .. }, Type::Int) => {
                let ty = left.ty.clone();
                let right = self.coerce(right, &ty);
                (right.ty != Type::Unknown).then_some((left, right))
            }
            _ => Some((left, right)),
        }
    }

    fn equality(&mut self, op: BinaryOp, left: Expr, right: Expr, span: Span) -> Expr {
        let (left, right) =
            if left.ty == right.ty { (left, right) } else { (self.numeric(left), self.numeric(right)) };
        let Some((left, right)) = self.same_width(left, right) else { return Self::unknown(span) };
        let tuples = matches!((&left.ty, &right.ty), (Type::Tuple(a), Type::Tuple(b)) if a.len() == b.len());
        let right = if tuples && left.ty != right.ty {
            let ty = left.ty.clone();
            self.coerce(right, &ty)
        } else {
            right
        };
        let comparable = left.ty == right.ty
            && (self.storable(&left.ty) || left.ty == Type::Int)
            && !matches!(left.ty, Type::Unknown | Type::Param(_));
        if !comparable {
            return self.mismatch(op, &left, &right, span);
        }
        self.fold(op, left, right, Type::Bool, span)
    }
}
