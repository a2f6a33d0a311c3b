//! Constructors of IR expressions that fold what is constant.

use num_bigint::{BigInt, BigUint};
use num_integer::Integer;
use num_traits::{One, ToPrimitive, Zero};

use crate::ir::{BinOp, Expr, ExprKind, Place};

pub(super) fn constant(value: impl Into<BigUint>, width: u32) -> Expr {
    let value = value.into() % (BigUint::one() << width);
    Expr { width, kind: ExprKind::Const(value) }
}

/// Two's complement of a signed value.
pub(super) fn signed_constant(value: &BigInt, width: u32) -> Expr {
    let modulus = BigInt::one() << width;
    let value = value.mod_floor(&modulus).to_biguint().unwrap_or_default();
    Expr { width, kind: ExprKind::Const(value) }
}

pub(super) fn bit(value: bool) -> Expr {
    constant(u8::from(value), 1)
}

pub(super) fn read(place: Place, width: u32) -> Expr {
    Expr { width, kind: ExprKind::Read(place) }
}

fn value(e: &Expr) -> Option<&BigUint> {
    match &e.kind {
        ExprKind::Const(value) => Some(value),
        _ => None,
    }
}

fn is_value(e: &Expr, wanted: bool) -> bool {
    value(e).is_some_and(|v| if wanted { v.is_one() } else { v.is_zero() })
}

pub(super) fn not(e: Expr) -> Expr {
    match e.kind {
        ExprKind::Const(v) => {
            Expr { width: e.width, kind: ExprKind::Const(((BigUint::one() << e.width) - 1u8) ^ v) }
        }
        ExprKind::Not(inner) => *inner,
        _ => Expr { width: e.width, kind: ExprKind::Not(Box::new(e)) },
    }
}

pub(super) fn neg(e: Expr) -> Expr {
    match value(&e) {
        Some(v) => constant((BigUint::one() << e.width) - v, e.width),
        None => Expr { width: e.width, kind: ExprKind::Neg(Box::new(e)) },
    }
}

pub(super) fn and(a: Expr, b: Expr) -> Expr {
    if is_value(&a, true) || is_value(&b, false) && b.width == 1 {
        return b;
    }
    if is_value(&b, true) || is_value(&a, false) && a.width == 1 {
        return a;
    }
    binary(BinOp::And, a, b)
}

pub(super) fn or(a: Expr, b: Expr) -> Expr {
    if is_value(&a, false) {
        return b;
    }
    if is_value(&b, false) {
        return a;
    }
    binary(BinOp::Or, a, b)
}

/// All joined by `op`, which is associative, as a tree that is not deeper than it must be; nothing if there are none.
pub(super) fn balanced(mut all: Vec<Expr>, op: fn(Expr, Expr) -> Expr) -> Option<Expr> {
    while all.len() > 1 {
        let mut pairs = Vec::with_capacity(all.len().div_ceil(2));
        let mut rest = all.into_iter();
        while let Some(left) = rest.next() {
            pairs.push(match rest.next() {
                Some(right) => op(left, right),
                None => left,
            });
        }
        all = pairs;
    }
    all.pop()
}

pub(super) fn binary(op: BinOp, a: Expr, b: Expr) -> Expr {
    let width = match op {
        BinOp::Eq | BinOp::Ne | BinOp::LtU | BinOp::LeU | BinOp::LtS | BinOp::LeS => 1,
        _ => a.width,
    };
    if let (Some(x), Some(y)) = (value(&a), value(&b)) {
        return Expr { width, kind: ExprKind::Const(fold(op, x, y, a.width)) };
    }
    Expr { width, kind: ExprKind::Binary(op, Box::new(a), Box::new(b)) }
}

fn signed(v: &BigUint, width: u32) -> BigInt {
    let v = BigInt::from(v.clone());
    if v >= BigInt::one() << (width - 1) { v - (BigInt::one() << width) } else { v }
}

/// The value of an operation on two constants whose operands are `width` wide.
fn fold(op: BinOp, a: &BigUint, b: &BigUint, width: u32) -> BigUint {
    let modulus = BigUint::one() << width;
    let wrap = |v: BigInt| v.mod_floor(&BigInt::from(modulus.clone())).to_biguint().unwrap_or_default();
    let clamp = |v: BigInt| {
        let half = BigInt::one() << (width - 1);
        wrap(v.max(-half.clone()).min(half - 1))
    };
    let truth = |yes: bool| BigUint::from(u8::from(yes));
    let (sa, sb) = (signed(a, width), || signed(b, width));
    match op {
        BinOp::Add => (a + b) % modulus,
        BinOp::Sub => (a + &modulus - b) % modulus,
        BinOp::Mul => (a * b) % modulus,
        BinOp::Div => {
            if b.is_zero() {
                BigUint::zero()
            } else {
                a / b
            }
        }
        BinOp::Mod => {
            if b.is_zero() {
                BigUint::zero()
            } else {
                a % b
            }
        }
        BinOp::And => a & b,
        BinOp::Or => a | b,
        BinOp::Xor => a ^ b,
        BinOp::Shl => match b.to_u64().filter(|n| *n < u64::from(width)) {
            Some(n) => (a << n) % modulus,
            None => BigUint::zero(),
        },
        BinOp::Shr => match b.to_u64().filter(|n| *n < u64::from(width)) {
            Some(n) => a >> n,
            None => BigUint::zero(),
        },
        BinOp::Sar => wrap(sa >> b.to_u64().unwrap_or(u64::MAX).min(u64::from(width))),
        BinOp::AddSatU => (a + b).min(modulus - 1u8),
        BinOp::SubSatU => {
            if a > b {
                a - b
            } else {
                BigUint::zero()
            }
        }
        BinOp::AddSatS => clamp(sa + sb()),
        BinOp::SubSatS => clamp(sa - sb()),
        BinOp::Eq => truth(a == b),
        BinOp::Ne => truth(a != b),
        BinOp::LtU => truth(a < b),
        BinOp::LeU => truth(a <= b),
        BinOp::LtS => truth(sa < sb()),
        BinOp::LeS => truth(sa <= sb()),
    }
}

pub(super) fn slice(base: Expr, hi: u32, lo: u32) -> Expr {
    let width = hi - lo + 1;
    if width == base.width {
        return base;
    }
    match base.kind {
        ExprKind::Const(v) => constant(v >> lo, width),
        // A slice of a slice is a slice.
        ExprKind::Slice { base: inner, lo: below, .. } => slice(*inner, hi + below, lo + below),
        ExprKind::ZeroExtend(inner) if hi < inner.width => slice(*inner, hi, lo),
        _ => Expr { width, kind: ExprKind::Slice { base: Box::new(base), hi, lo } },
    }
}

pub(super) fn concat(a: Expr, b: Expr) -> Expr {
    let width = a.width + b.width;
    match (value(&a), value(&b)) {
        (Some(x), Some(y)) => Expr { width, kind: ExprKind::Const((x << b.width) | y) },
        _ => Expr { width, kind: ExprKind::Concat(Box::new(a), Box::new(b)) },
    }
}

/// To `width`: cut off high bits, or widen with zeros or the sign.
pub(super) fn resize(e: Expr, width: u32, sign: bool) -> Expr {
    if width <= e.width {
        return slice(e, width - 1, 0);
    }
    match (value(&e), sign) {
        (Some(v), false) => constant(v.clone(), width),
        (Some(v), true) => signed_constant(&signed(v, e.width), width),
        (None, false) => Expr { width, kind: ExprKind::ZeroExtend(Box::new(e)) },
        (None, true) => Expr { width, kind: ExprKind::SignExtend(Box::new(e)) },
    }
}

pub(super) fn select(cond: Expr, a: Expr, b: Expr) -> Expr {
    match value(&cond) {
        Some(v) if v.is_one() => a,
        Some(_) => b,
        None => Expr { width: a.width, kind: ExprKind::Select(Box::new(cond), Box::new(a), Box::new(b)) },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folds() {
        let c = |v: u32, w| constant(v, w);
        for (op, a, b, width, expected) in [
            (BinOp::Add, 250, 10, 8, 4),
            (BinOp::Sub, 1, 2, 8, 255),
            (BinOp::Sar, 0x80, 3, 8, 0xf0),
            (BinOp::Sar, 0x80, 9, 8, 0xff),
            (BinOp::AddSatU, 250, 10, 8, 255),
            (BinOp::AddSatS, 0x7f, 1, 8, 0x7f),
            (BinOp::SubSatS, 0x80, 1, 8, 0x80),
            (BinOp::LtS, 0xff, 1, 8, 1),
            (BinOp::Div, 7, 0, 8, 0),
            (BinOp::Shl, 1, 8, 8, 0),
        ] {
            assert_eq!(
                value(&binary(op, c(a, width), c(b, width))),
                Some(&BigUint::from(expected as u32)),
                "{op}"
            );
        }
        assert_eq!(resize(c(0x80, 8), 16, true), c(0xff80, 16));
    }
}
