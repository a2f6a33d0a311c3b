//! Expressions.

use num_bigint::{BigInt, BigUint};
use num_traits::{One, Zero};
use p4lang::ir::{BinOp, Expr, ExprKind};

use super::{Run, small};

impl Run<'_, '_> {
    /// The value of an expression, below `2^width`.
    pub(super) fn eval(&self, e: &Expr) -> BigUint {
        match &e.kind {
            ExprKind::Const(value) => value.clone(),
            ExprKind::Read(place) => match self.slot(place) {
                Some(slot) => slot.get(self.ctx.frame),
                None => BigUint::zero(),
            },
            ExprKind::Not(a) => ones(e.width) ^ self.eval(a),
            ExprKind::Neg(a) => wrap((BigUint::one() << e.width) - self.eval(a), e.width),
            ExprKind::Binary(op, a, b) => binary(*op, &self.eval(a), &self.eval(b), a.width),
            ExprKind::Concat(a, b) => (self.eval(a) << b.width) | self.eval(b),
            ExprKind::Slice { base, hi, lo } => wrap(self.eval(base) >> *lo, hi - lo + 1),
            ExprKind::ZeroExtend(a) => self.eval(a),
            ExprKind::SignExtend(a) => unsigned(signed(&self.eval(a), a.width), e.width),
            ExprKind::Select(c, a, b) => {
                if self.holds(c) {
                    self.eval(a)
                } else {
                    self.eval(b)
                }
            }
            ExprKind::VarbitEq(a, b) => {
                let bits = |place| self.slot(place).map_or((0, &[][..]), |s| s.varbit(self.ctx.frame));
                truth(bits(a) == bits(b))
            }
            ExprKind::PacketLength => wrap(BigUint::from(self.ctx.packet.len()), e.width),
        }
    }

    pub(super) fn holds(&self, e: &Expr) -> bool {
        !self.eval(e).is_zero()
    }
}

fn truth(yes: bool) -> BigUint {
    BigUint::from(u8::from(yes))
}

fn ones(width: u32) -> BigUint {
    (BigUint::one() << width) - 1u8
}

fn wrap(value: BigUint, width: u32) -> BigUint {
    if value.bits() <= u64::from(width) { value } else { value & ones(width) }
}

pub(super) fn signed(value: &BigUint, width: u32) -> BigInt {
    let value = BigInt::from(value.clone());
    if value >= BigInt::one() << (width - 1) { value - (BigInt::one() << width) } else { value }
}

fn unsigned(value: BigInt, width: u32) -> BigUint {
    let modulus = BigInt::one() << width;
    let value = ((value % &modulus) + &modulus) % &modulus;
    value.to_biguint().unwrap_or_default()
}

/// Two's complement values that a width can hold, the nearest to `value`.
fn clamp(value: BigInt, width: u32) -> BigUint {
    let half = BigInt::one() << (width - 1);
    unsigned(value.max(-half.clone()).min(half - 1), width)
}

/// An operation on operands `width` wide (the right one of a shift may have any width).
pub(super) fn binary(op: BinOp, a: &BigUint, b: &BigUint, width: u32) -> BigUint {
    let s = |v: &BigUint| signed(v, width);
    match op {
        BinOp::Add => wrap(a + b, width),
        BinOp::Sub => wrap(a + (BigUint::one() << width) - b, width),
        BinOp::Mul => wrap(a * b, width),
        BinOp::Div if b.is_zero() => BigUint::zero(),
        BinOp::Div => a / b,
        BinOp::Mod if b.is_zero() => BigUint::zero(),
        BinOp::Mod => a % b,
        BinOp::And => a & b,
        BinOp::Or => a | b,
        BinOp::Xor => a ^ b,
        BinOp::Shl => match small(b) {
            n if n < u64::from(width) => wrap(a << n, width),
            _ => BigUint::zero(),
        },
        BinOp::Shr => match small(b) {
            n if n < u64::from(width) => a >> n,
            _ => BigUint::zero(),
        },
        BinOp::Sar => unsigned(s(a) >> small(b).min(u64::from(width)), width),
        BinOp::AddSatU => (a + b).min(ones(width)),
        BinOp::AddSatS => clamp(s(a) + s(b), width),
        BinOp::SubSatU => {
            if a > b {
                a - b
            } else {
                BigUint::zero()
            }
        }
        BinOp::SubSatS => clamp(s(a) - s(b), width),
        BinOp::Eq => truth(a == b),
        BinOp::Ne => truth(a != b),
        BinOp::LtU => truth(a < b),
        BinOp::LeU => truth(a <= b),
        BinOp::LtS => truth(s(a) < s(b)),
        BinOp::LeS => truth(s(a) <= s(b)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations() {
        for (op, a, b, width, expected) in [
            (BinOp::Add, 200u32, 100u32, 8, 44u32),
            (BinOp::Sub, 1, 2, 8, 255),
            (BinOp::Mul, 16, 17, 8, 16),
            (BinOp::Div, 7, 0, 8, 0),
            (BinOp::Mod, 7, 0, 8, 0),
            (BinOp::Shl, 1, 7, 8, 128),
            (BinOp::Shl, 1, 8, 8, 0),
            (BinOp::Shr, 128, 8, 8, 0),
            (BinOp::Sar, 128, 1, 8, 192),
            (BinOp::Sar, 128, 100, 8, 255),
            (BinOp::AddSatU, 200, 100, 8, 255),
            (BinOp::SubSatU, 1, 2, 8, 0),
            (BinOp::AddSatS, 127, 1, 8, 127),
            (BinOp::SubSatS, 128, 1, 8, 128),
            (BinOp::LtS, 255, 0, 8, 1),
            (BinOp::LtU, 255, 0, 8, 0),
            (BinOp::LeS, 0, 0, 1, 1),
            (BinOp::LtS, 1, 0, 1, 1),
        ] {
            assert_eq!(binary(op, &a.into(), &b.into(), width), expected.into(), "{a} {op} {b}");
        }
    }
}
