//! What is known of a parser before it is compiled: whether it stays at whole bytes, and whether its states make a cycle.

use num_traits::ToPrimitive;
use p4lang::ir::{BinOp, Expr, ExprKind, HeaderRef, Parser, Program, StateRef, Stmt, Transition};

/// Whether the place in the packet is always at a byte.
pub(crate) fn whole_bytes(program: &Program, parser: &Parser) -> bool {
    // A varbit field keeps to whole bytes by itself, else it fails.
    parser.states.iter().all(|state| stmts_whole_bytes(program, &state.body))
}

fn stmts_whole_bytes(program: &Program, block: &[Stmt]) -> bool {
    block.iter().all(|stmt| match stmt {
        Stmt::Extract { header: HeaderRef::Header(header) | HeaderRef::Elem { header, .. }, varbit_bits } => {
            let ty = &program[program[*header].ty];
            varbit_bits.is_some() && ty.varbit.is_some() || ty.fixed_bits.is_multiple_of(8)
        }
        Stmt::Advance { bits } => multiple_of_8(bits),
        Stmt::If { then, otherwise, .. } => {
            stmts_whole_bytes(program, then) && stmts_whole_bytes(program, otherwise)
        }
        Stmt::Switch { cases, default, .. } => {
            cases.iter().all(|(_, block)| stmts_whole_bytes(program, block))
                && stmts_whole_bytes(program, default)
        }
        Stmt::Labeled { body, .. } | Stmt::Loop { body, .. } => stmts_whole_bytes(program, body),
        _ => true,
    })
}

/// Whether a value has three zero bits at its end whatever it is.
fn multiple_of_8(expr: &Expr) -> bool {
    let constant = |expr: &Expr| match &expr.kind {
        ExprKind::Const(value) => value.to_u64(),
        _ => None,
    };
    match &expr.kind {
        ExprKind::Const(value) => !value.bit(0) && !value.bit(1) && !value.bit(2),
        ExprKind::Concat(high, low) => multiple_of_8(low) && (low.width >= 3 || multiple_of_8(high)),
        ExprKind::ZeroExtend(inner) | ExprKind::SignExtend(inner) => multiple_of_8(inner),
        ExprKind::Slice { base, lo: 0, .. } => multiple_of_8(base),
        ExprKind::Select(_, then, otherwise) => multiple_of_8(then) && multiple_of_8(otherwise),
        ExprKind::Binary(BinOp::Shl, value, by) => {
            multiple_of_8(value) || constant(by).is_some_and(|by| by >= 3)
        }
        ExprKind::Binary(BinOp::Mul | BinOp::And, left, right) => multiple_of_8(left) || multiple_of_8(right),
        ExprKind::Binary(BinOp::Add | BinOp::Sub | BinOp::Or | BinOp::Xor, left, right) => {
            multiple_of_8(left) && multiple_of_8(right)
        }
        _ => false,
    }
}

/// Whether a state can follow itself.
pub(crate) fn cyclic(parser: &Parser) -> bool {
    let successors = |index: usize| -> Vec<usize> {
        let refs: Vec<StateRef> = match &parser.states[index].next {
            Transition::Direct(state) => vec![*state],
            Transition::Select { cases, .. } => cases.iter().map(|case| case.next).collect(),
        };
        refs.into_iter()
            .filter_map(|state| match state {
                StateRef::State(index) => Some(index as usize),
                StateRef::Accept | StateRef::Reject => None,
            })
            .collect()
    };
    // Remove states that nothing leads to, again and again; what is left is on or behind a cycle.
    let count = parser.states.len();
    let mut incoming = vec![0usize; count];
    for index in 0..count {
        for next in successors(index) {
            incoming[next] += 1;
        }
    }
    let mut free: Vec<usize> = (0..count).filter(|index| incoming[*index] == 0).collect();
    let mut removed = 0;
    while let Some(index) = free.pop() {
        removed += 1;
        for next in successors(index) {
            incoming[next] -= 1;
            if incoming[next] == 0 {
                free.push(next);
            }
        }
    }
    removed < count
}
