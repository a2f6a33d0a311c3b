//! Expressions wider than 64 bits, limb by limb. What has no short limb form (products of more than two limbs, quotients, shifts by an unknown
//! amount, saturation) is computed by a helper on limbs in memory.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, Value};
use num_traits::ToPrimitive;
use p4lang::ir::{BinOp, Expr, ExprKind};

use super::function::{Gen, Limbs, Region};
use super::helpers;

/// Limbs that native code computes at a time are spilled, but for some that registers hold; each costs the register allocator
/// more, the more there are.
fn crowding(expr: &Expr) -> u64 {
    use ExprKind::{Binary, Const, Read, ZeroExtend};
    match &expr.kind {
        // What is in memory, or what a helper puts there.
        Const(_) | Read(_) | ZeroExtend(_) | Binary(BinOp::Mul | BinOp::Div | BinOp::Mod, ..) => 0,
        _ => {
            let limbs = u64::from(expr.width.div_ceil(64));
            limbs * limbs * 3 / 16
        }
    }
}

impl Gen<'_, '_> {
    pub fn wide(&mut self, expr: &Expr) -> Limbs {
        let width = expr.width;
        let count = width.div_ceil(64);
        if self.full() {
            let zero = self.iconst(0);
            return Limbs::from_elem(zero, count as usize);
        }
        self.crowding += crowding(expr);
        match &expr.kind {
            ExprKind::Const(value) => {
                let mut digits = value.iter_u64_digits();
                (0..count).map(|_| self.iconst(digits.next().unwrap_or(0))).collect()
            }
            ExprKind::Read(place) => self.read_limbs(place, width),
            ExprKind::Not(inner) => {
                let inner = self.limbs(inner);
                let value = inner.iter().map(|limb| self.b.ins().bnot(*limb)).collect();
                self.truncate_limbs(value, width)
            }
            ExprKind::Neg(inner) => {
                let zero = self.zero_limbs(width);
                let inner = self.limbs(inner);
                let (value, _) = self.subtract(&zero, &inner);
                self.truncate_limbs(value, width)
            }
            ExprKind::Binary(op, left, right) => self.wide_binary(*op, left, right, width),
            ExprKind::Concat(high, low) => {
                let shift = low.width;
                let high = self.limbs(high);
                let low = self.limbs(low);
                let high = self.shl_limbs(&high, shift, count);
                (0..count as usize)
                    .map(|k| match low.get(k) {
                        Some(low) => self.b.ins().bor(high[k], *low),
                        None => high[k],
                    })
                    .collect()
            }
            ExprKind::Slice { base, hi, lo } => {
                let base = self.limbs(base);
                (0..count).map(|k| self.bits_of(&base, (lo + 64 * k + 63).min(*hi), lo + 64 * k)).collect()
            }
            ExprKind::ZeroExtend(inner) => {
                let mut value = self.limbs(inner);
                value.truncate(count as usize);
                while value.len() < count as usize {
                    value.push(self.iconst(0));
                }
                value
            }
            ExprKind::SignExtend(inner) => {
                let from = inner.width;
                let mut value = self.limbs(inner);
                let top = value.len() - 1;
                value[top] = self.sign_extended(value[top], from - 64 * top as u32);
                let sign = self.b.ins().sshr_imm_u(value[top], 63);
                value.resize(count as usize, sign);
                self.truncate_limbs(value, width)
            }
            ExprKind::Select(cond, then, otherwise) => {
                let cond = self.cond(cond);
                let then = self.limbs(then);
                let otherwise = self.limbs(otherwise);
                then.iter()
                    .zip(&otherwise)
                    .map(|(then, otherwise)| self.b.ins().select(cond, *then, *otherwise))
                    .collect()
            }
            // Both are never wider than 64 bits.
            ExprKind::VarbitEq(..) | ExprKind::PacketLength => {
                let mut value = self.zero_limbs(width);
                value[0] = self.narrow(expr);
                value
            }
        }
    }

    fn wide_binary(&mut self, op: BinOp, left: &Expr, right: &Expr, width: u32) -> Limbs {
        let count = width.div_ceil(64);
        if let BinOp::Shl | BinOp::Shr | BinOp::Sar = op {
            let a = self.limbs(left);
            if op != BinOp::Sar
                && let ExprKind::Const(by) = &right.kind
            {
                let by = by.to_u64().unwrap_or(u64::MAX).min(u64::from(width)) as u32;
                if by == width {
                    return self.zero_limbs(width);
                }
                if op == BinOp::Shl {
                    let value = self.shl_limbs(&a, by, count);
                    return self.truncate_limbs(value, width);
                }
                let mut value: Limbs = (0..(width - by).div_ceil(64))
                    .map(|k| self.bits_of(&a, (by + 64 * k + 63).min(width - 1), by + 64 * k))
                    .collect();
                while value.len() < count as usize {
                    value.push(self.iconst(0));
                }
                return value;
            }
            let by = self.saturated(right);
            return self.wide_helper(op, &a, by, width);
        }
        let a = self.limbs(left);
        let b = self.limbs(right);
        let bitwise = |g: &mut Self, f: fn(&mut Self, Value, Value) -> Value| {
            a.iter().zip(&b).map(|(a, b)| f(g, *a, *b)).collect()
        };
        match op {
            BinOp::And => bitwise(self, |g, a, b| g.b.ins().band(a, b)),
            BinOp::Or => bitwise(self, |g, a, b| g.b.ins().bor(a, b)),
            BinOp::Xor => bitwise(self, |g, a, b| g.b.ins().bxor(a, b)),
            BinOp::Add => {
                let value = self.add_limbs(&a, &b);
                self.truncate_limbs(value, width)
            }
            BinOp::Sub => {
                let (value, _) = self.subtract(&a, &b);
                self.truncate_limbs(value, width)
            }
            BinOp::Mul if count == 2 => {
                let value = self.multiply(&a, &b);
                self.truncate_limbs(value, width)
            }
            _ => {
                let b = self.spill(&b);
                self.wide_helper(op, &a, b, width)
            }
        }
    }

    /// `second`: the address of the other operand's limbs, or the amount of a shift.
    fn wide_helper(&mut self, op: BinOp, a: &[Value], second: Value, width: u32) -> Limbs {
        let count = width.div_ceil(64);
        let function = match op {
            BinOp::Mul => helpers::wide_mul as *const u8,
            BinOp::Div => helpers::wide_div as *const u8,
            BinOp::Mod => helpers::wide_mod as *const u8,
            BinOp::Shl => helpers::wide_shl as *const u8,
            BinOp::Shr => helpers::wide_shr as *const u8,
            BinOp::Sar => helpers::wide_sar as *const u8,
            BinOp::AddSatU => helpers::wide_add_sat_u as *const u8,
            BinOp::AddSatS => helpers::wide_add_sat_s as *const u8,
            BinOp::SubSatU => helpers::wide_sub_sat_u as *const u8,
            BinOp::SubSatS => helpers::wide_sub_sat_s as *const u8,
            BinOp::Add
            | BinOp::Sub
            | BinOp::And
            | BinOp::Or
            | BinOp::Xor
            | BinOp::Eq
            | BinOp::Ne
            | BinOp::LtU
            | BinOp::LeU
            | BinOp::LtS
            | BinOp::LeS => unreachable!("done in place, or no wider than one bit"),
        };
        let a = self.spill(a);
        let slot = self.stack(u64::from(count) * 8);
        let dst = self.stack_addr(slot);
        let width = self.iconst(u64::from(width));
        self.call(function, &[dst, a, second, width], false);
        self.load_limbs(Region::Scratch, dst, 0, count)
    }

    /// Zeroes the bits from `width` on.
    pub fn truncate_limbs(&mut self, mut value: Limbs, width: u32) -> Limbs {
        let top = value.len() - 1;
        value[top] = self.truncate(value[top], width - 64 * top as u32);
        value
    }

    pub fn shl_limbs(&mut self, a: &[Value], by: u32, count: u32) -> Limbs {
        let skip = (by / 64) as usize;
        let shift = by % 64;
        (0..count as usize)
            .map(|k| {
                let Some(from) = k.checked_sub(skip) else {
                    return self.iconst(0);
                };
                let low = a.get(from).map(|limb| self.shl_const(*limb, shift));
                let carried = match from.checked_sub(1).and_then(|below| a.get(below)) {
                    Some(below) if shift != 0 => Some(self.shr_const(*below, 64 - shift)),
                    _ => None,
                };
                match (low, carried) {
                    (Some(low), Some(carried)) => self.b.ins().bor(low, carried),
                    (Some(value), None) | (None, Some(value)) => value,
                    (None, None) => self.iconst(0),
                }
            })
            .collect()
    }

    fn add_limbs(&mut self, a: &[Value], b: &[Value]) -> Limbs {
        let mut carry: Option<Value> = None;
        a.iter()
            .zip(b)
            .map(|(a, b)| {
                let sum = self.b.ins().iadd(*a, *b);
                let over = self.b.ins().icmp(IntCC::UnsignedLessThan, sum, *a);
                let over = self.extend(over);
                match carry {
                    None => {
                        carry = Some(over);
                        sum
                    }
                    Some(before) => {
                        let with = self.b.ins().iadd(sum, before);
                        let again = self.b.ins().icmp(IntCC::UnsignedLessThan, with, sum);
                        let again = self.extend(again);
                        carry = Some(self.b.ins().bor(over, again));
                        with
                    }
                }
            })
            .collect()
    }

    /// The low two limbs of a product of two.
    fn multiply(&mut self, a: &[Value], b: &[Value]) -> Limbs {
        let low = self.b.ins().imul(a[0], b[0]);
        let carried = self.b.ins().umulhi(a[0], b[0]);
        let left = self.b.ins().imul(a[1], b[0]);
        let right = self.b.ins().imul(a[0], b[1]);
        let high = self.b.ins().iadd(left, right);
        let high = self.b.ins().iadd(high, carried);
        Limbs::from_slice(&[low, high])
    }

    /// a - b and the borrow (0 or 1).
    fn subtract(&mut self, a: &[Value], b: &[Value]) -> (Limbs, Value) {
        let mut borrow = self.iconst(0);
        let value = a
            .iter()
            .zip(b)
            .map(|(a, b)| {
                let difference = self.b.ins().isub(*a, *b);
                let under = self.b.ins().icmp(IntCC::UnsignedLessThan, *a, *b);
                let with = self.b.ins().isub(difference, borrow);
                let again = self.b.ins().icmp(IntCC::UnsignedLessThan, difference, borrow);
                let either = self.b.ins().bor(under, again);
                borrow = self.extend(either);
                with
            })
            .collect();
        (value, borrow)
    }

    /// A comparison of values of the same width, as something to branch on.
    pub fn compare_limbs(&mut self, op: BinOp, a: &[Value], b: &[Value], width: u32) -> Value {
        match op {
            BinOp::Eq | BinOp::Ne => {
                let mut all = None;
                for (a, b) in a.iter().zip(b) {
                    let differ = self.b.ins().bxor(*a, *b);
                    all = Some(match all {
                        None => differ,
                        Some(all) => self.b.ins().bor(all, differ),
                    });
                }
                let all = match all {
                    Some(all) => all,
                    None => self.iconst(0),
                };
                let cc = if op == BinOp::Eq { IntCC::Equal } else { IntCC::NotEqual };
                self.b.ins().icmp_imm_s(cc, all, 0)
            }
            _ => {
                let signed = matches!(op, BinOp::LtS | BinOp::LeS);
                let mut a = Limbs::from_slice(a);
                let mut b = Limbs::from_slice(b);
                if signed {
                    // Flipping the sign bits makes the order of signed numbers that of unsigned ones.
                    let top = a.len() - 1;
                    let sign = self.iconst(1 << ((width - 1) % 64));
                    a[top] = self.b.ins().bxor(a[top], sign);
                    b[top] = self.b.ins().bxor(b[top], sign);
                }
                let less = matches!(op, BinOp::LtU | BinOp::LtS);
                // a < b is a borrow in a - b; a <= b is no borrow in b - a.
                let (_, borrow) = if less { self.subtract(&a, &b) } else { self.subtract(&b, &a) };
                let cc = if less { IntCC::NotEqual } else { IntCC::Equal };
                self.b.ins().icmp_imm_s(cc, borrow, 0)
            }
        }
    }
}
