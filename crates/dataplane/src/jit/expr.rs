//! Expressions of at most 64 bits, and conditions.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::I8;
use cranelift_codegen::ir::{InstBuilder, Value};
use num_traits::ToPrimitive;
use p4lang::ir::{BinOp, Expr, ExprKind, Place};

use super::function::{Gen, Limbs, mask};
use super::helpers;
use super::native::Native;

impl Gen<'_, '_> {
    /// A value of any width.
    pub fn limbs(&mut self, expr: &Expr) -> Limbs {
        if expr.width <= 64 {
            let value = self.narrow(expr);
            Limbs::from_slice(&[value])
        } else {
            self.wide(expr)
        }
    }

    /// A value of any width as `u64`, too large ones as `u64::MAX`.
    pub fn saturated(&mut self, expr: &Expr) -> Value {
        if expr.width <= 64 {
            return self.narrow(expr);
        }
        let limbs = self.wide(expr);
        let mut high = limbs[1];
        for limb in &limbs[2..] {
            high = self.b.ins().bor(high, *limb);
        }
        let fits = self.is_zero(high);
        let max = self.iconst(u64::MAX);
        self.b.ins().select(fits, limbs[0], max)
    }

    /// A 1-bit value as something to branch on.
    pub fn cond(&mut self, expr: &Expr) -> Value {
        match &expr.kind {
            ExprKind::Const(value) => {
                let bit = i64::from(value.bit(0));
                self.b.ins().iconst(I8, bit)
            }
            ExprKind::Not(inner) => {
                let inner = self.cond(inner);
                self.b.ins().bxor_imm_u(inner, 1)
            }
            ExprKind::Binary(op, left, right) => {
                if let Some(cond) = self.comparison(*op, left, right) {
                    return cond;
                }
                match op {
                    BinOp::And | BinOp::Or | BinOp::Xor => {
                        let left = self.cond(left);
                        let right = self.cond(right);
                        match op {
                            BinOp::And => self.b.ins().band(left, right),
                            BinOp::Or => self.b.ins().bor(left, right),
                            _ => self.b.ins().bxor(left, right),
                        }
                    }
                    _ => self.cond_of_value(expr),
                }
            }
            _ => self.cond_of_value(expr),
        }
    }

    fn cond_of_value(&mut self, expr: &Expr) -> Value {
        let value = self.narrow(expr);
        self.b.ins().ireduce(I8, value)
    }

    fn comparison(&mut self, op: BinOp, left: &Expr, right: &Expr) -> Option<Value> {
        let (cc, signed) = match op {
            BinOp::Eq => (IntCC::Equal, false),
            BinOp::Ne => (IntCC::NotEqual, false),
            BinOp::LtU => (IntCC::UnsignedLessThan, false),
            BinOp::LeU => (IntCC::UnsignedLessThanOrEqual, false),
            BinOp::LtS => (IntCC::SignedLessThan, true),
            BinOp::LeS => (IntCC::SignedLessThanOrEqual, true),
            _ => return None,
        };
        let width = left.width;
        if width > 64 {
            let left = self.limbs(left);
            let right = self.limbs(right);
            return Some(self.compare_limbs(op, &left, &right, width));
        }
        let mut left = self.narrow(left);
        let mut right = self.narrow(right);
        if signed {
            left = self.shl_const(left, 64 - width);
            right = self.shl_const(right, 64 - width);
        }
        Some(self.b.ins().icmp(cc, left, right))
    }

    /// A value of at most 64 bits, zero-extended.
    pub fn narrow(&mut self, expr: &Expr) -> Value {
        let width = expr.width;
        match &expr.kind {
            ExprKind::Const(value) => {
                let value = value.to_u64().unwrap_or(0);
                self.iconst(value)
            }
            ExprKind::Read(place) => self.read_bits(place, width - 1, 0),
            ExprKind::Not(inner) => {
                let inner = self.narrow(inner);
                if width == 64 {
                    self.b.ins().bnot(inner)
                } else {
                    self.b.ins().bxor_imm_u(inner, mask(width) as i64)
                }
            }
            ExprKind::Neg(inner) => {
                let inner = self.narrow(inner);
                let value = self.b.ins().ineg(inner);
                self.truncate(value, width)
            }
            ExprKind::Binary(op, left, right) => {
                if let Some(cond) = self.comparison(*op, left, right) {
                    return self.extend(cond);
                }
                self.binary(*op, left, right, width)
            }
            ExprKind::Concat(high, low) => {
                let shift = low.width;
                let high = self.narrow(high);
                let low = self.narrow(low);
                let high = self.shl_const(high, shift);
                self.b.ins().bor(high, low)
            }
            ExprKind::Slice { base, hi, lo } => self.slice(base, *hi, *lo),
            ExprKind::ZeroExtend(inner) => self.narrow(inner),
            ExprKind::SignExtend(inner) => {
                let from = inner.width;
                let inner = self.narrow(inner);
                let value = self.sign_extended(inner, from);
                self.truncate(value, width)
            }
            ExprKind::Select(cond, then, otherwise) => {
                let cond = self.cond(cond);
                let then = self.narrow(then);
                let otherwise = self.narrow(otherwise);
                self.b.ins().select(cond, then, otherwise)
            }
            ExprKind::VarbitEq(left, right) => self.varbit_eq(left, right),
            ExprKind::PacketLength => self.load_ctx_fixed(std::mem::offset_of!(Native, packet_len)),
        }
    }

    fn slice(&mut self, base: &Expr, hi: u32, lo: u32) -> Value {
        if let ExprKind::Read(place) = &base.kind {
            return self.read_bits(place, hi, lo);
        }
        let limbs = self.limbs(base);
        self.bits_of(&limbs, hi, lo)
    }

    /// The bits `hi..=lo`, at most 64.
    pub fn bits_of(&mut self, limbs: &[Value], hi: u32, lo: u32) -> Value {
        let first = (lo / 64) as usize;
        let shift = lo % 64;
        let mut value = self.shr_const(limbs[first], shift);
        if (hi / 64) as usize > first {
            let high = self.shl_const(limbs[first + 1], 64 - shift);
            value = self.b.ins().bor(value, high);
        }
        self.truncate(value, hi - lo + 1)
    }

    /// Fills the bits above `width` with the sign.
    pub fn sign_extended(&mut self, value: Value, width: u32) -> Value {
        if width >= 64 {
            return value;
        }
        let up = self.shl_const(value, 64 - width);
        self.b.ins().sshr_imm_u(up, i64::from(64 - width))
    }

    fn binary(&mut self, op: BinOp, left: &Expr, right: &Expr, width: u32) -> Value {
        if let BinOp::Shl | BinOp::Shr | BinOp::Sar = op {
            return self.shift(op, left, right, width);
        }
        let constant = match &right.kind {
            ExprKind::Const(value) => value.to_u64(),
            _ => None,
        };
        let a = self.narrow(left);
        let b = self.narrow(right);
        match op {
            BinOp::Add => {
                let value = self.b.ins().iadd(a, b);
                self.truncate(value, width)
            }
            BinOp::Sub => {
                let value = self.b.ins().isub(a, b);
                self.truncate(value, width)
            }
            BinOp::Mul => {
                let value = self.b.ins().imul(a, b);
                self.truncate(value, width)
            }
            BinOp::And => self.b.ins().band(a, b),
            BinOp::Or => self.b.ins().bor(a, b),
            BinOp::Xor => self.b.ins().bxor(a, b),
            BinOp::Div | BinOp::Mod => {
                let divide = |g: &mut Self, by| match op {
                    BinOp::Div => g.b.ins().udiv(a, by),
                    _ => g.b.ins().urem(a, by),
                };
                match constant {
                    Some(0) => self.iconst(0),
                    Some(_) => divide(self, b),
                    None => {
                        let zero = self.iconst(0);
                        let one = self.iconst(1);
                        let none = self.is_zero(b);
                        let by = self.b.ins().select(none, one, b);
                        let value = divide(self, by);
                        self.b.ins().select(none, zero, value)
                    }
                }
            }
            BinOp::AddSatU | BinOp::SubSatU => self.saturate_unsigned(op, a, b, width),
            BinOp::AddSatS | BinOp::SubSatS => self.saturate_signed(op, a, b, width),
            BinOp::Shl
            | BinOp::Shr
            | BinOp::Sar
            | BinOp::Eq
            | BinOp::Ne
            | BinOp::LtU
            | BinOp::LeU
            | BinOp::LtS
            | BinOp::LeS => unreachable!("shifts and comparisons are taken care of above"),
        }
    }

    fn saturate_unsigned(&mut self, op: BinOp, a: Value, b: Value, width: u32) -> Value {
        if op == BinOp::SubSatU {
            let zero = self.iconst(0);
            let below = self.b.ins().icmp(IntCC::UnsignedLessThan, a, b);
            let difference = self.b.ins().isub(a, b);
            return self.b.ins().select(below, zero, difference);
        }
        let sum = self.b.ins().iadd(a, b);
        let max = self.iconst(mask(width));
        let over = if width == 64 {
            self.b.ins().icmp(IntCC::UnsignedLessThan, sum, a)
        } else {
            self.b.ins().icmp(IntCC::UnsignedGreaterThan, sum, max)
        };
        self.b.ins().select(over, max, sum)
    }

    /// In the top bits of 64, where overflow is that of 64-bit numbers.
    fn saturate_signed(&mut self, op: BinOp, a: Value, b: Value, width: u32) -> Value {
        let up = 64 - width;
        let a = self.shl_const(a, up);
        let b = self.shl_const(b, up);
        let (value, same) = if op == BinOp::AddSatS {
            (self.b.ins().iadd(a, b), b)
        } else {
            let not = self.b.ins().bnot(b);
            (self.b.ins().isub(a, b), not)
        };
        // Overflow: both operands (the second negated in a subtraction) have a sign that the result has not.
        let left = self.b.ins().bxor(a, value);
        let right = self.b.ins().bxor(same, value);
        let both = self.b.ins().band(left, right);
        let over = self.b.ins().icmp_imm_s(IntCC::SignedLessThan, both, 0);
        let sign = self.b.ins().sshr_imm_u(a, 63);
        let limit = self.b.ins().bxor_imm_u(sign, i64::MAX);
        let value = self.b.ins().select(over, limit, value);
        self.shr_const(value, up)
    }

    fn shift(&mut self, op: BinOp, left: &Expr, right: &Expr, width: u32) -> Value {
        let a = self.narrow(left);
        if let ExprKind::Const(by) = &right.kind {
            let by = by.to_u64().unwrap_or(u64::MAX).min(u64::from(width)) as u32;
            return match op {
                BinOp::Sar => {
                    let value = self.sign_extended(a, width);
                    let value = self.b.ins().sshr_imm_u(value, i64::from(by.min(63)));
                    self.truncate(value, width)
                }
                _ if by == width => self.iconst(0),
                BinOp::Shl => {
                    let value = self.shl_const(a, by);
                    self.truncate(value, width)
                }
                _ => self.shr_const(a, by),
            };
        }
        let by = self.saturated(right);
        if op == BinOp::Sar {
            let most = self.iconst(63);
            let by = self.b.ins().umin(by, most);
            let value = self.sign_extended(a, width);
            let value = self.b.ins().sshr(value, by);
            return self.truncate(value, width);
        }
        let less = self.b.ins().icmp_imm_u(IntCC::UnsignedLessThan, by, i64::from(width));
        let value = match op {
            BinOp::Shl => {
                let value = self.b.ins().ishl(a, by);
                self.truncate(value, width)
            }
            _ => self.b.ins().ushr(a, by),
        };
        let zero = self.iconst(0);
        self.b.ins().select(less, value, zero)
    }

    /// Address of a varbit's length and the number of bits that it may hold; null for a missing element.
    pub fn varbit(&mut self, place: &Place) -> (Value, u32) {
        match self.place(place) {
            Some((base, slot)) => {
                let (offset, width) = match slot {
                    crate::layout::Slot::Varbit { base, width } => (base, width),
                    _ => (0, 0),
                };
                let at = self.add_const(base.at, i64::from(offset));
                let at = match base.exists {
                    Some(exists) => {
                        let null = self.iconst(0);
                        self.b.ins().select(exists, at, null)
                    }
                    None => at,
                };
                (at, width)
            }
            None => (self.iconst(0), 0),
        }
    }

    fn varbit_eq(&mut self, left: &Place, right: &Place) -> Value {
        let (left, width) = self.varbit(left);
        let (right, other) = self.varbit(right);
        let [width, other] = [width, other].map(|bits| self.iconst(u64::from(bits)));
        self.call_value(helpers::varbit_eq as *const u8, &[left, width, right, other])
    }

    pub fn zero_limbs(&mut self, width: u32) -> Limbs {
        (0..width.div_ceil(64)).map(|_| self.iconst(0)).collect()
    }
}
