//! Every operator at widths around every boundary that the generator knows, on values around theirs.

use num_bigint::{BigInt, BigUint};
use num_traits::{CheckedDiv, ToPrimitive};
use p4lang::ir::*;
use proptest::prelude::*;

use super::{Builder, all_ones, compile, read, run};

const WIDTHS: [u32; 18] = [1, 3, 7, 8, 9, 16, 31, 32, 33, 48, 63, 64, 65, 100, 127, 128, 129, 256];

const OPERATORS: [BinOp; 21] = [
    BinOp::Add,
    BinOp::Sub,
    BinOp::Mul,
    BinOp::Div,
    BinOp::Mod,
    BinOp::And,
    BinOp::Or,
    BinOp::Xor,
    BinOp::Shl,
    BinOp::Shr,
    BinOp::Sar,
    BinOp::AddSatU,
    BinOp::AddSatS,
    BinOp::SubSatU,
    BinOp::SubSatS,
    BinOp::Eq,
    BinOp::Ne,
    BinOp::LtU,
    BinOp::LeU,
    BinOp::LtS,
    BinOp::LeS,
];

/// What a shape makes of two operands.
type Expected = Box<dyn Fn(&BigUint, &BigUint) -> BigUint>;

fn signed(value: &BigUint, width: u32) -> BigInt {
    let value = BigInt::from(value.clone());
    if value.bit(u64::from(width) - 1) { value - (BigInt::from(1) << width) } else { value }
}

fn wrapped(value: BigInt, width: u32) -> BigUint {
    let modulus = BigInt::from(1) << width;
    let rest = ((value % &modulus) + &modulus) % &modulus;
    rest.to_biguint().expect("not negative")
}

/// What the language says.
fn expected(op: BinOp, a: &BigUint, b: &BigUint, width: u32) -> BigUint {
    let (ia, ib) = (BigInt::from(a.clone()), BigInt::from(b.clone()));
    let (sa, sb) = (signed(a, width), signed(b, width));
    let max = BigInt::from(all_ones(width));
    let half: BigInt = BigInt::from(1) << (width - 1);
    let saturated = |value: BigInt| wrapped(value.clamp(-half.clone(), half.clone() - 1), width);
    let by = b.to_u64().unwrap_or(u64::MAX).min(u64::from(width));
    let truth = |value: bool| BigUint::from(u8::from(value));
    match op {
        BinOp::Add => wrapped(ia + ib, width),
        BinOp::Sub => wrapped(ia - ib, width),
        BinOp::Mul => wrapped(ia * ib, width),
        BinOp::Div => a.checked_div(b).unwrap_or_default(),
        BinOp::Mod if *b == BigUint::ZERO => BigUint::ZERO,
        BinOp::Mod => a % b,
        BinOp::And => a & b,
        BinOp::Or => a | b,
        BinOp::Xor => a ^ b,
        BinOp::Shl => wrapped(ia << by, width),
        BinOp::Shr => a >> by,
        BinOp::Sar => wrapped(sa >> by, width),
        BinOp::AddSatU => wrapped((ia + ib).min(max), width),
        BinOp::SubSatU => wrapped((ia - ib).max(BigInt::ZERO), width),
        BinOp::AddSatS => saturated(sa + sb),
        BinOp::SubSatS => saturated(sa - sb),
        BinOp::Eq => truth(a == b),
        BinOp::Ne => truth(a != b),
        BinOp::LtU => truth(a < b),
        BinOp::LeU => truth(a <= b),
        BinOp::LtS => truth(sa < sb),
        BinOp::LeS => truth(sa <= sb),
    }
}

fn truncated(value: BigUint, width: u32) -> BigUint {
    value & all_ones(width)
}

/// Values at which something changes, and a few in between.
fn values(width: u32, seed: u64) -> Vec<BigUint> {
    let mut state = seed | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let one = BigUint::from(1u8);
    let mut values = vec![
        BigUint::ZERO,
        one.clone(),
        all_ones(width),
        one.clone() << (width - 1),
        all_ones(width) >> 1u32,
        truncated(BigUint::from(width), width),
        truncated(BigUint::from(width - 1), width),
        truncated(BigUint::from(0x100u32), width),
    ];
    for _ in 0..4 {
        let words: Vec<u32> = (0..width.div_ceil(32)).map(|_| next() as u32).collect();
        values.push(truncated(BigUint::new(words), width));
    }
    values
}

fn binary(op: BinOp, left: Box<Expr>, right: Box<Expr>) -> Expr {
    let width = match op {
        BinOp::Eq | BinOp::Ne | BinOp::LtU | BinOp::LeU | BinOp::LtS | BinOp::LeS => 1,
        _ => left.width,
    };
    Expr { width, kind: ExprKind::Binary(op, left, right) }
}

/// All operators at one width, operands in words, results in words; and with a constant on the right.
#[test]
fn operators() {
    for width in WIDTHS {
        let samples = values(width, 0x9e37_79b9_7f4a_7c15);
        let constant = samples[9].clone();
        let small = truncated(BigUint::from(5u8), width);
        let mut builder = Builder::default();
        let a = builder.var(width, VarHome::Global);
        let b = builder.var(width, VarHome::Global);
        let mut body = Vec::new();
        let mut checks = Vec::new();
        for op in OPERATORS {
            let fixed = [None, Some(constant.clone()), Some(small.clone()), Some(BigUint::ZERO)];
            for right in fixed {
                let operand = match &right {
                    None => read(b, width),
                    Some(value) => Box::new(Expr { width, kind: ExprKind::Const(value.clone()) }),
                };
                let src = binary(op, read(a, width), operand);
                let dst = builder.var(src.width, VarHome::Global);
                body.push(Stmt::Assign { dst: Place::Var(dst), src });
                checks.push((op, right, dst));
            }
        }
        let mut compiled = compile(builder.program(Default::default(), body));
        let layout = compiled.layout.clone();
        for left in &samples {
            for right in &samples {
                let mut frame = layout.frame();
                layout.set(&mut frame, a, left);
                layout.set(&mut frame, b, right);
                run(&mut compiled, &mut frame);
                for (op, fixed, dst) in &checks {
                    let right = fixed.as_ref().unwrap_or(right);
                    assert_eq!(
                        layout.get(&frame, *dst),
                        expected(*op, left, right, width),
                        "{left} {op} {right} at width {width}, constant: {}",
                        fixed.is_some()
                    );
                }
            }
        }
    }
}

#[test]
fn shifts_by_amounts_of_another_width() {
    for (width, amount) in [(8, 3), (16, 64), (64, 8), (100, 7), (64, 128), (128, 256), (33, 65)] {
        let mut builder = Builder::default();
        let a = builder.var(width, VarHome::Global);
        let b = builder.var(amount, VarHome::Global);
        let mut body = Vec::new();
        let operators = [BinOp::Shl, BinOp::Shr, BinOp::Sar];
        let results = operators.map(|op| {
            let dst = builder.var(width, VarHome::Global);
            body.push(Stmt::Assign {
                dst: Place::Var(dst),
                src: binary(op, read(a, width), read(b, amount)),
            });
            dst
        });
        let mut compiled = compile(builder.program(Default::default(), body));
        let layout = compiled.layout.clone();
        for left in values(width, 77) {
            for right in values(amount, 78) {
                let mut frame = layout.frame();
                layout.set(&mut frame, a, &left);
                layout.set(&mut frame, b, &right);
                run(&mut compiled, &mut frame);
                for (op, dst) in operators.into_iter().zip(results) {
                    assert_eq!(
                        layout.get(&frame, dst),
                        expected(op, &left, &right, width),
                        "{left} {op} {right}"
                    );
                }
            }
        }
    }
}

/// Unary operators, concatenation, slices, extensions, selection.
#[test]
fn shapes() {
    for width in WIDTHS {
        for other in [1, 8, 31, 64, 65, 128] {
            let mut builder = Builder::default();
            let a = builder.var(width, VarHome::Global);
            let b = builder.var(other, VarHome::Global);
            let mut body = Vec::new();
            let mut checks: Vec<(VarId, Expected)> = Vec::new();
            let mut add = |builder: &mut Builder, width: u32, kind: ExprKind, value: Expected| {
                let dst = builder.var(width, VarHome::Global);
                body.push(Stmt::Assign { dst: Place::Var(dst), src: Expr { width, kind } });
                checks.push((dst, value));
            };
            let (ra, rb) = (|| read(a, width), || read(b, other));
            add(&mut builder, width, ExprKind::Not(ra()), Box::new(move |a, _| a ^ all_ones(width)));
            add(
                &mut builder,
                width,
                ExprKind::Neg(ra()),
                Box::new(move |a, _| wrapped(-BigInt::from(a.clone()), width)),
            );
            add(
                &mut builder,
                width + other,
                ExprKind::Concat(ra(), rb()),
                Box::new(move |a, b| (a << other) | b),
            );
            for (hi, lo) in [(width - 1, width / 2), (width / 2, width / 3), (width - 1, width - 1), (0, 0)] {
                let part = hi - lo + 1;
                add(
                    &mut builder,
                    part,
                    ExprKind::Slice { base: ra(), hi, lo },
                    Box::new(move |a, _| truncated(a >> lo, part)),
                );
                // Of something that is not in memory.
                let base = Box::new(Expr { width, kind: ExprKind::Not(ra()) });
                add(
                    &mut builder,
                    part,
                    ExprKind::Slice { base, hi, lo },
                    Box::new(move |a, _| truncated((a ^ all_ones(width)) >> lo, part)),
                );
            }
            let more = width + other;
            add(&mut builder, more, ExprKind::ZeroExtend(ra()), Box::new(|a, _| a.clone()));
            add(
                &mut builder,
                more,
                ExprKind::SignExtend(ra()),
                Box::new(move |a, _| wrapped(signed(a, width), more)),
            );
            let bit = Box::new(Expr { width: 1, kind: ExprKind::Slice { base: rb(), hi: 0, lo: 0 } });
            let not = Box::new(Expr { width, kind: ExprKind::Not(ra()) });
            add(
                &mut builder,
                width,
                ExprKind::Select(bit, ra(), not),
                Box::new(move |a, b| if b.bit(0) { a.clone() } else { a ^ all_ones(width) }),
            );
            let mut compiled = compile(builder.program(Default::default(), body));
            let layout = compiled.layout.clone();
            for left in values(width, 5) {
                for right in values(other, 6) {
                    let mut frame = layout.frame();
                    layout.set(&mut frame, a, &left);
                    layout.set(&mut frame, b, &right);
                    run(&mut compiled, &mut frame);
                    for (index, (dst, value)) in checks.iter().enumerate() {
                        assert_eq!(
                            layout.get(&frame, *dst),
                            value(&left, &right),
                            "shape {index} of {left} and {right} at widths {width} and {other}"
                        );
                    }
                }
            }
        }
    }
}

/// A header type with fields of the given widths.
fn header_type(widths: &[u32]) -> HeaderType {
    let mut at = 0;
    let fields = widths
        .iter()
        .map(|width| {
            let field = HeaderField { name: format!("f{at}"), width: *width, varbit: false, bit_offset: at };
            at += width;
            field
        })
        .collect();
    HeaderType { name: "h".into(), fields, fixed_bits: at, varbit: None }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// Fields of random widths at whatever offsets that gives: copied from one header to another, element by element of
    /// a stack with an index that may be out of range; nothing else changes.
    #[test]
    fn packed_fields(
        widths in prop::collection::vec(1u32..140, 1..8),
        contents in prop::collection::vec(any::<u8>(), 256),
        index in 0u64..5,
    ) {
        let ty = header_type(&widths);
        let mut builder = Builder::default();
        let mut headers = Vec::new();
        for header in 0..4u32 {
            let first_field = VarId(builder.vars.len() as u32);
            for (field, width) in widths.iter().enumerate() {
                builder.var(*width, VarHome::Field { header: HeaderId(header), field: field as u32 });
            }
            let valid = builder.var(1, VarHome::Valid(HeaderId(header)));
            headers.push(Header { name: "h".into(), ty: HeaderTypeId(0), first_field, valid, local: false });
        }
        let next = builder.var(32, VarHome::NextIndex(StackId(0)));
        let stack = Stack {
            plain: false,
            name: "s".into(),
            len: 3,
            first_header: HeaderId(1),
            header_stride: 1,
            var_stride: widths.len() as u32 + 1,
            next,
        };
        let which = builder.var(32, VarHome::Global);
        let mut body = Vec::new();
        let mut copies = Vec::new();
        for (field, width) in widths.iter().enumerate() {
            let elem = Place::Elem {
                stack: StackId(0),
                var: VarId(headers[1].first_field.0 + field as u32),
                index: read(which, 32),
            };
            let copy = builder.var(*width, VarHome::Global);
            let local = builder.var(*width, VarHome::Local);
            let kind = ExprKind::Read(elem.clone());
            body.push(Stmt::Assign { dst: Place::Var(local), src: Expr { width: *width, kind } });
            body.push(Stmt::Assign { dst: Place::Var(copy), src: *read(local, *width) });
            let src = *read(VarId(headers[0].first_field.0 + field as u32), *width);
            body.push(Stmt::Assign { dst: elem, src });
            copies.push(copy);
        }
        let stride = widths.len() as u32 + 1;
        let mut compiled = compile(builder.program((vec![ty], headers.clone(), vec![stack]), body));
        let layout = compiled.layout.clone();
        let mut frame = layout.frame();
        let mut before = Vec::new();
        for (number, header) in headers.iter().enumerate() {
            for (field, width) in widths.iter().enumerate() {
                let start = (number * 61 + field * 17) % 200;
                let value = truncated(BigUint::from_bytes_be(&contents[start..start + 20]), *width);
                layout.set(&mut frame, VarId(header.first_field.0 + field as u32), &value);
                before.push(value);
            }
        }
        layout.set_u64(&mut frame, which, index);
        run(&mut compiled, &mut frame);
        for (number, header) in headers.iter().enumerate() {
            for field in 0..widths.len() {
                let from = if number as u64 == index + 1 { 0 } else { number };
                let value = layout.get(&frame, VarId(header.first_field.0 + field as u32));
                prop_assert_eq!(&value, &before[from * widths.len() + field], "header {} field {}", number, field);
            }
        }
        for (field, copy) in copies.iter().enumerate() {
            let expected = match index {
                0..3 => before[(index as usize + 1) * widths.len() + field].clone(),
                _ => BigUint::ZERO,
            };
            prop_assert_eq!(layout.get(&frame, *copy), expected);
        }
        prop_assert_eq!(stride as usize, widths.len() + 1);
    }
}
