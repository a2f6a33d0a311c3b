//! Compile-time evaluation (P4_16 section 18.1).
//!
//! Values stay exact; results of fixed-width arithmetic are wrapped to their width, as at run time.

use num_bigint::BigInt;
use num_integer::Integer;
use num_traits::{One, Signed, ToPrimitive, Zero};

use crate::ast::{BinaryOp, UnaryOp};
use crate::hir::{DefKind, Expr, ExprKind, Hir, Order, Type};

/// Compile-time integers may grow to this many bits.
const MAX_BITS: u64 = 1 << 17;

pub(crate) fn int_value(expr: &Expr) -> Option<&BigInt> {
    match &expr.kind {
        ExprKind::Int(value) => Some(value),
        _ => None,
    }
}

fn bool_value(expr: &Expr) -> Option<bool> {
    match expr.kind {
        ExprKind::Bool(value) => Some(value),
        _ => None,
    }
}

/// Whether an expression is known at compile time, all the way down.
pub(crate) fn is_const(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::Int(_)
        | ExprKind::Bool(_)
        | ExprKind::Str(_)
        | ExprKind::Error(_)
        | ExprKind::EnumMember(..)
        | ExprKind::Invalid
        | ExprKind::Default => true,
        ExprKind::Struct(items, _) | ExprKind::List(items) => items.iter().flatten().all(is_const),
        ExprKind::Cast(inner) => is_const(inner),
        _ => false,
    }
}

/// What `...` stands for (section 7.3): zero, and of a struct as much for each field. `None` of other types, of which the
/// default value is nothing that could be computed with.
pub(crate) fn default_of(hir: &Hir, ty: &Type) -> Option<ExprKind> {
    Some(match ty {
        Type::Bits { .. } | Type::Int => ExprKind::Int(BigInt::zero()),
        Type::Bool => ExprKind::Bool(false),
        Type::Error => ExprKind::Error(0),
        Type::Tuple(items) => ExprKind::List(vec![None; items.len()]),
        Type::Struct(id, _) | Type::Enum(id) | Type::New(id) => match &hir.def(*id).kind {
            DefKind::Struct(def) => ExprKind::Struct(vec![None; def.fields.len()], Order::default()),
            DefKind::Enum(def) if def.underlying.is_none() && !def.members.is_empty() => {
                ExprKind::EnumMember(*id, 0)
            }
            DefKind::Enum(_) => ExprKind::Int(BigInt::zero()),
            DefKind::NewType { ty } => return default_of(hir, ty),
            _ => return None,
        },
        _ => return None,
    })
}

/// Part `index`, of type `ty`, of a value that is written out, if the part is known.
pub(crate) fn part(hir: &Hir, base: &Expr, index: usize, ty: &Type) -> Option<Expr> {
    let kind = match &base.kind {
        ExprKind::Struct(values, _) | ExprKind::List(values) => match values.get(index)? {
            Some(value) => return is_const(value).then(|| value.clone()),
            None => default_of(hir, ty)?,
        },
        _ => return None,
    };
    Some(Expr { ty: ty.clone(), kind, span: base.span })
}

/// Bytes of a value, about: how much copying it costs.
pub(crate) fn weight(e: &Expr) -> usize {
    const NODE: usize = 64;
    NODE + match &e.kind {
        ExprKind::Int(value) => value.bits() as usize / 8,
        ExprKind::Str(text) => text.len(),
        ExprKind::Struct(items, _) | ExprKind::List(items) => {
            items.iter().map(|item| item.as_ref().map_or(NODE, weight)).sum()
        }
        ExprKind::Cast(e) | ExprKind::Unary(_, e) | ExprKind::Field(e, _) => weight(e),
        ExprKind::Binary(_, a, b) => weight(a) + weight(b),
        ExprKind::Ternary(cond, a, b) => weight(cond) + weight(a) + weight(b),
        _ => 0,
    }
}

/// Steps of work of an operation on two constants.
pub(crate) fn cost(op: BinaryOp, a: &Expr, b: &Expr) -> usize {
    let words = |e: &Expr| match &e.kind {
        ExprKind::Int(value) => value.bits() as usize / 64 + 1,
        ExprKind::Str(text) => text.len() / 64 + 1,
        _ => 1,
    };
    let (a, b) = (words(a), words(b));
    match op {
        BinaryOp::Mul | BinaryOp::Div | BinaryOp::Mod => a * b / 8 + 1,
        _ => (a + b) / 8 + 1,
    }
}

/// A number for a message, cut if it is long.
pub(crate) fn brief(value: &BigInt) -> String {
    if value.bits() > 256 { format!("a number of {} bits", value.bits()) } else { value.to_string() }
}

/// Wraps to the type's width; other types are left alone.
pub(crate) fn wrap(value: BigInt, ty: &Type) -> BigInt {
    let Type::Bits { width, signed } = ty else { return value };
    if *width == 0 {
        return BigInt::zero();
    }
    let modulus = BigInt::one() << *width;
    let value = value.mod_floor(&modulus);
    if *signed && value >= (BigInt::one() << (*width - 1)) { value - modulus } else { value }
}

/// Whether the value is one of the type's.
pub(super) fn fits(value: &BigInt, ty: &Type) -> bool {
    wrap(value.clone(), ty) == *value
}

/// Largest and smallest value of a fixed-width type.
fn bounds(width: u32, signed: bool) -> (BigInt, BigInt) {
    if signed {
        let half = BigInt::one() << width.saturating_sub(1);
        (-half.clone(), half - 1)
    } else {
        (BigInt::zero(), (BigInt::one() << width) - 1)
    }
}

/// The folded form of a unary operation on a constant.
pub(crate) fn unary(op: UnaryOp, operand: &Expr, ty: &Type) -> Option<ExprKind> {
    if let Some(value) = bool_value(operand) {
        return (op == UnaryOp::Not).then_some(ExprKind::Bool(!value));
    }
    let value = int_value(operand)?.clone();
    let value = match op {
        UnaryOp::Neg => -value,
        UnaryOp::Plus => value,
        UnaryOp::Complement => -value - 1,
        UnaryOp::Not => return None,
    };
    Some(ExprKind::Int(wrap(value, ty)))
}

/// The number that a constant is; a member of a serializable enum is its value, which other members may have, too.
fn number<'a>(hir: &'a Hir, expr: &'a Expr) -> Option<&'a BigInt> {
    match &expr.kind {
        ExprKind::EnumMember(id, index) => match &hir.def(*id).kind {
            DefKind::Enum(def) => def.members.get(*index)?.1.as_ref(),
            _ => None,
        },
        _ => int_value(expr),
    }
}

/// The folded form of a binary operation on constants; an error where the operation has no value.
pub(crate) fn binary(
    hir: &Hir,
    op: BinaryOp,
    left: &Expr,
    right: &Expr,
    ty: &Type,
) -> Option<Result<ExprKind, String>> {
    if let (Some(a), Some(b)) = (bool_value(left), bool_value(right)) {
        return Some(Ok(ExprKind::Bool(match op {
            BinaryOp::And => a && b,
            BinaryOp::Or => a || b,
            BinaryOp::Eq => a == b,
            BinaryOp::Ne => a != b,
            _ => return None,
        })));
    }
    // A constant on the left may decide alone.
    match (op, bool_value(left)) {
        (BinaryOp::And, Some(false)) => return Some(Ok(ExprKind::Bool(false))),
        (BinaryOp::Or, Some(true)) => return Some(Ok(ExprKind::Bool(true))),
        _ => {}
    }
    if let (ExprKind::Str(a), ExprKind::Str(b)) = (&left.kind, &right.kind)
        && op == BinaryOp::Concat
    {
        return Some(Ok(ExprKind::Str(format!("{a}{b}"))));
    }
    let compare = |yes: bool| Some(Ok(ExprKind::Bool(yes)));
    let (Some(a), Some(b)) = (number(hir, left), number(hir, right)) else {
        let (a, b) = match (&left.kind, &right.kind) {
            (ExprKind::EnumMember(_, a), ExprKind::EnumMember(_, b)) => (a, b),
            (ExprKind::Error(a), ExprKind::Error(b)) => (a, b),
            _ => return None,
        };
        return match op {
            BinaryOp::Eq => compare(a == b),
            BinaryOp::Ne => compare(a != b),
            _ => None,
        };
    };
    let value = match op {
        BinaryOp::Eq => return compare(a == b),
        BinaryOp::Ne => return compare(a != b),
        BinaryOp::Lt => return compare(a < b),
        BinaryOp::Le => return compare(a <= b),
        BinaryOp::Gt => return compare(a > b),
        BinaryOp::Ge => return compare(a >= b),
        BinaryOp::And | BinaryOp::Or => return None,
        BinaryOp::Add => a + b,
        BinaryOp::Sub => a - b,
        BinaryOp::Mul => {
            if a.bits() + b.bits() > MAX_BITS {
                return Some(Err("this product is too large to compute".into()));
            }
            a * b
        }
        BinaryOp::Div | BinaryOp::Mod => {
            if b.is_zero() {
                return Some(Err("division by zero".into()));
            }
            if op == BinaryOp::Div { a / b } else { a % b }
        }
        BinaryOp::AddSat | BinaryOp::SubSat => {
            let Type::Bits { width, signed } = ty else { return None };
            let (min, max) = bounds(*width, *signed);
            let exact = if op == BinaryOp::AddSat { a + b } else { a - b };
            exact.max(min).min(max)
        }
        BinaryOp::Shl => {
            let limit = match ty {
                Type::Bits { width, .. } => u64::from(*width),
                _ => MAX_BITS,
            };
            match b.to_u64() {
                Some(n) if n < limit && a.bits() + n <= MAX_BITS => a << n,
                _ if a.is_zero() || matches!(ty, Type::Bits { .. }) => BigInt::zero(),
                _ => return Some(Err("this shift makes a number too large to compute".into())),
            }
        }
        BinaryOp::Shr => match b.to_u64() {
            Some(n) if n < MAX_BITS => a >> n,
            _ if a.is_negative() => BigInt::from(-1),
            _ => BigInt::zero(),
        },
        BinaryOp::BitAnd => a & b,
        BinaryOp::BitOr => a | b,
        BinaryOp::BitXor => a ^ b,
        BinaryOp::Concat => {
            let (Type::Bits { width, .. }, true) = (&right.ty, matches!(left.ty, Type::Bits { .. })) else {
                return None;
            };
            let low = b.mod_floor(&(BigInt::one() << *width));
            (a << *width) + low
        }
    };
    Some(Ok(ExprKind::Int(wrap(value, ty))))
}

/// Bits hi..=lo of a value, two's complement.
pub(crate) fn slice(value: &BigInt, hi: u32, lo: u32) -> BigInt {
    (value >> lo).mod_floor(&(BigInt::one() << (hi - lo + 1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrapping() {
        for (value, width, signed, expected) in [
            (256, 8, false, 0),
            (-1, 8, false, 255),
            (128, 8, true, -128),
            (-129, 8, true, 127),
            (5, 0, false, 0),
        ] {
            assert_eq!(wrap(value.into(), &Type::Bits { width, signed }), expected.into());
        }
        assert_eq!(slice(&(-1).into(), 3, 0), 15.into());
    }
}
