//! Programs that are not run: they ask for more than a packet may have.

use p4lang::ir::{Block, Expr, ExprKind, ExternCall, HeaderRef, Match, Place, Program, Stmt, Transition};

use crate::layout::MAX_FRAME;

/// Stack that one function of native code may use, in bytes: well below what any thread has.
pub const MAX_STACK: u64 = 1 << 18;

/// Expressions and statements within each other. Executors recurse over them.
pub const MAX_DEPTH: usize = 4096;

/// Why a program cannot be run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// Bytes of a frame.
    #[error(
        "the program cannot be run: the headers and variables of one packet take {0} bytes, and may take {MAX_FRAME}; \
         use fewer or narrower ones"
    )]
    Frame(u64),
    /// Bytes that a function of native code has on the stack.
    #[error(
        "the program cannot be run: a parser or control needs {0} bytes of the stack, and may use {MAX_STACK}; \
         use fewer or narrower values in lists of data and in arithmetic"
    )]
    Stack(u64),
    #[error(
        "the program cannot be run: expressions or statements are nested more than {MAX_DEPTH} deep; \
         store parts of them in variables"
    )]
    Depth,
    /// Where there is more it may have native code: it is not interpreted instead.
    #[error("the program cannot be run: there is no memory for its native code")]
    Memory,
}

/// Whether nothing in the program is nested too deep.
///
/// # Errors
/// [`Refused::Depth`].
pub(crate) fn check_depth(program: &Program) -> Result<(), Refused> {
    let states = program.parsers.iter().flat_map(|parser| &parser.states);
    let mut blocks = states
        .clone()
        .map(|state| &state.body)
        .chain(program.controls.iter().map(|control| &control.body))
        .chain(program.actions.iter().map(|action| &action.body))
        .chain(program.tables.iter().map(|table| &table.prelude));
    let keys = program.tables.iter().flat_map(|t| t.keys.iter().map(|key| &key.expr).chain(&t.selector));
    let selects = states.flat_map(|state| match &state.next {
        Transition::Direct(_) => Vec::new(),
        Transition::Select { keys, cases } => {
            let matches = cases.iter().flat_map(|case| &case.matches);
            keys.iter().chain(matches.flat_map(of_match)).collect()
        }
    });
    let fine = blocks.all(|block| block_fits(block, 0)) && keys.chain(selects).all(|expr| expr_fits(expr, 0));
    if fine { Ok(()) } else { Err(Refused::Depth) }
}

fn of_match(matched: &Match) -> Vec<&Expr> {
    match matched {
        Match::Any | Match::ValueSet { .. } => Vec::new(),
        Match::Value(value) => vec![value],
        Match::Mask { value: a, mask: b } | Match::Range { lo: a, hi: b, .. } => vec![a, b],
    }
}

fn block_fits(block: &Block, depth: usize) -> bool {
    depth < MAX_DEPTH && block.iter().all(|stmt| stmt_fits(stmt, depth + 1))
}

fn stmt_fits(stmt: &Stmt, depth: usize) -> bool {
    let expr = |expr: &Expr| expr_fits(expr, depth);
    let exprs = |exprs: &[Expr]| exprs.iter().all(expr);
    let place = |place: &Place| place_fits(place, depth);
    let block = |block: &Block| block_fits(block, depth);
    match stmt {
        Stmt::Assign { dst, src } => place(dst) && expr(src),
        Stmt::CopyVarbit { dst, src } => place(dst) && place(src),
        Stmt::CopyHeader { dst, src } => header_fits(dst, depth) && header_fits(src, depth),
        Stmt::ResetHeader(header) | Stmt::Emit(header) => header_fits(header, depth),
        Stmt::If { cond, then, otherwise } => expr(cond) && block(then) && block(otherwise),
        Stmt::Switch { on, cases, default } => {
            expr(on) && cases.iter().all(|(_, body)| block(body)) && block(default)
        }
        Stmt::Labeled { body, .. } | Stmt::Loop { body, .. } => block(body),
        Stmt::Break(_) | Stmt::Continue(_) | Stmt::Apply { .. } => true,
        Stmt::Extract { header, varbit_bits } => header_fits(header, depth) && varbit_bits.iter().all(expr),
        Stmt::Lookahead { into } => into.iter().all(place),
        Stmt::Advance { bits } => expr(bits),
        Stmt::Verify { cond, error } => expr(cond) && expr(error),
        Stmt::Extern(call) => match call {
            ExternCall::CounterCount { index, .. } => expr(index),
            ExternCall::MeterExecute { index, dst, .. } | ExternCall::RegisterRead { index, dst, .. } => {
                expr(index) && place(dst)
            }
            ExternCall::RegisterWrite { index, value, .. } => expr(index) && expr(value),
            ExternCall::Random { dst, lo, hi } => place(dst) && expr(lo) && expr(hi),
            ExternCall::Hash { dst, base, data, max, .. } => {
                place(dst) && expr(base) && exprs(data) && expr(max)
            }
            ExternCall::VerifyChecksum { cond, data, checksum, .. } => {
                expr(cond) && exprs(data) && expr(checksum)
            }
            ExternCall::UpdateChecksum { cond, data, dst, .. } => expr(cond) && exprs(data) && place(dst),
            ExternCall::Digest { receiver, fields, .. } => expr(receiver) && exprs(fields),
            ExternCall::Clone { session: operand, .. } | ExternCall::Truncate { bytes: operand } => {
                expr(operand)
            }
            ExternCall::Resubmit { .. } | ExternCall::Recirculate { .. } => true,
            ExternCall::LogMsg { args, .. } => args.iter().all(|(arg, _)| expr(arg)),
            ExternCall::Assert { cond, .. } | ExternCall::Assume { cond, .. } => expr(cond),
        },
    }
}

fn expr_fits(expr: &Expr, depth: usize) -> bool {
    if depth >= MAX_DEPTH {
        return false;
    }
    let inner = |expr: &Expr| expr_fits(expr, depth + 1);
    match &expr.kind {
        ExprKind::Const(_) | ExprKind::PacketLength => true,
        ExprKind::Read(place) => place_fits(place, depth),
        ExprKind::VarbitEq(a, b) => place_fits(a, depth) && place_fits(b, depth),
        ExprKind::Not(a) | ExprKind::Neg(a) | ExprKind::ZeroExtend(a) | ExprKind::SignExtend(a) => inner(a),
        ExprKind::Slice { base, .. } => inner(base),
        ExprKind::Binary(_, a, b) | ExprKind::Concat(a, b) => inner(a) && inner(b),
        ExprKind::Select(cond, a, b) => inner(cond) && inner(a) && inner(b),
    }
}

fn place_fits(place: &Place, depth: usize) -> bool {
    match place {
        Place::Var(_) => true,
        Place::Elem { index, .. } => expr_fits(index, depth + 1),
    }
}

fn header_fits(header: &HeaderRef, depth: usize) -> bool {
    match header {
        HeaderRef::Header(_) => true,
        HeaderRef::Elem { index, .. } => expr_fits(index, depth + 1),
    }
}
