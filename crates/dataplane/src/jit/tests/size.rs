//! Large programs: compiled, or refused with a reason.

use std::sync::Arc;

use p4lang::ir::*;

use units::SplitMix;

use super::{Builder, Jit, compile, read, run};
use crate::context::{Context, Requests};
use crate::executor::Executor;
use crate::interp::Interpreter;
use crate::jit::JitError;
use crate::layout::Layout;
use crate::refused::{MAX_DEPTH, Refused, check_depth};
use crate::state::State;

/// As many additions to a variable.
fn additions(count: usize) -> (Program, VarId) {
    let mut builder = Builder::default();
    let sum = builder.var(32, VarHome::Global);
    let term = builder.var(32, VarHome::Global);
    let src = Expr { width: 32, kind: ExprKind::Binary(BinOp::Add, read(sum, 32), read(term, 32)) };
    let body = vec![Stmt::Assign { dst: Place::Var(sum), src }; count];
    (builder.program(Default::default(), body), sum)
}

#[test]
fn thousands_of_statements_compile() {
    let (program, sum) = additions(5_000);
    let mut bench = compile(program);
    let mut frame = bench.layout.frame();
    let layout = bench.layout.clone();
    layout.set_u64(&mut frame, VarId(1), 3);
    run(&mut bench, &mut frame);
    assert_eq!(layout.get_u64(&frame, sum), 15_000);
}

#[test]
fn too_much_is_refused() {
    let (program, _) = additions(1_000_000);
    let layout = Arc::new(Layout::new(&program).unwrap());
    let error = Jit::new(Arc::new(program), layout).err().expect("too large");
    assert_eq!(error, JitError::TooLarge);
    assert!(error.to_string().contains("use the interpreter"));
}

/// Very many jumps to the end of a block, and to the beginning of a loop: in native code some go together.
#[test]
fn many_ways_to_one_place_lead_there() {
    let mut builder = Builder::default();
    let [number, found, rounds] = [(); 3].map(|()| builder.var(32, VarHome::Global));
    let last = builder.var(32, VarHome::Local);
    let number_is = |value: u32| {
        let value = Box::new(Expr { width: 32, kind: ExprKind::Const(value.into()) });
        Expr { width: 1, kind: ExprKind::Binary(BinOp::Eq, read(number, 32), value) }
    };
    let set = |dst: VarId, src: Expr| Stmt::Assign { dst: Place::Var(dst), src };
    let constant = |value: u32| Expr { width: 32, kind: ExprKind::Const(value.into()) };
    let sum =
        |a: VarId, b: Expr| Expr { width: 32, kind: ExprKind::Binary(BinOp::Add, read(a, 32), Box::new(b)) };
    let when = |cond, then| Stmt::If { cond, then, otherwise: Vec::new() };
    let (outer, inner) = (LabelId(0), LabelId(1));
    // Each number below 1000 is found after it has been one more once.
    let mut again = vec![set(rounds, sum(rounds, constant(1)))];
    again.extend((1000..2000).map(|value| {
        let next =
            vec![set(last, constant(value)), set(number, constant(value - 999)), Stmt::Continue(inner)];
        when(number_is(value), next)
    }));
    again.push(Stmt::Break(inner));
    let mut body = vec![set(last, constant(7)), Stmt::Loop { label: inner, body: again }];
    body.extend(
        (0..1000).map(|value| when(number_is(value), vec![set(found, constant(value)), Stmt::Break(outer)])),
    );
    let program = builder.program(
        Default::default(),
        vec![Stmt::Labeled { label: outer, body }, set(found, sum(found, *read(last, 32)))],
    );
    let mut bench = compile(program);
    for (given, rounds_taken, expected) in [
        (0, 1, 7),
        (63, 1, 70),
        (64, 1, 71),
        (65, 1, 72),
        (999, 1, 1006),
        (1000, 2, 1001),
        (1500, 2, 2001),
        (5000, 1, 7),
    ] {
        let layout = bench.layout.clone();
        let mut frame = layout.frame();
        layout.set_u64(&mut frame, number, given);
        run(&mut bench, &mut frame);
        assert_eq!(layout.get_u64(&frame, rounds), rounds_taken, "{given}");
        assert_eq!(layout.get_u64(&frame, found), expected, "{given}");
    }
}

/// Many variables and many blocks multiply: what the code generator keeps of them is bounded.
#[test]
fn variables_that_are_set_in_many_blocks_are_refused() {
    let setting = |count: u32| {
        let mut builder = Builder::default();
        let number = builder.var(32, VarHome::Global);
        let constant = |value: u32| Expr { width: 32, kind: ExprKind::Const(value.into()) };
        let body = (0..count).map(|value| {
            let local = builder.var(32, VarHome::Local);
            let equal = ExprKind::Binary(BinOp::Eq, read(number, 32), Box::new(constant(value)));
            let cond = Expr { width: 1, kind: equal };
            let then = vec![Stmt::Assign { dst: Place::Var(local), src: constant(value) }];
            let within = vec![Stmt::If { cond: cond.clone(), then, otherwise: Vec::new() }];
            Stmt::If { cond, then: within, otherwise: Vec::new() }
        });
        let body = body.collect();
        let program = builder.program(Default::default(), body);
        let layout = Arc::new(Layout::new(&program).unwrap());
        Jit::new(Arc::new(program), layout).err()
    };
    assert_eq!(setting(2_000), None);
    // So many fit in a frame.
    assert_eq!(setting(8_000), Some(JitError::TooLarge));
}

/// The more limbs there are at a time, the longer the register allocator takes for each.
#[test]
fn many_operations_on_very_wide_values_are_refused() {
    let doubling = |width: u32, count: usize| {
        let mut builder = Builder::default();
        let var = builder.var(width, VarHome::Global);
        let src = Expr { width, kind: ExprKind::Binary(BinOp::Add, read(var, width), read(var, width)) };
        let body = vec![Stmt::Assign { dst: Place::Var(var), src }; count];
        let program = builder.program(Default::default(), body);
        let layout = Arc::new(Layout::new(&program).unwrap());
        Jit::new(Arc::new(program), layout).err()
    };
    for (width, most) in [(65_535, 1), (8_192, 50)] {
        assert_eq!(doubling(width, most), None, "{width}");
        assert_eq!(doubling(width, 2 * most), Some(JitError::TooLarge), "{width}");
    }
    assert_eq!(doubling(512, 300), None);
}

/// A program with a counter of as many cells.
fn counting(size: u64) -> Program {
    let (mut program, _) = additions(1);
    let info = Info::default();
    program.counters.push(Counter { info, size, unit: CounterUnit::Packets, index_type_name: None });
    program
}

#[test]
#[should_panic(expected = "the state is that of the program")]
fn a_state_of_another_program_is_refused() {
    let mut bench = compile(counting(2));
    bench.state = State::new(&counting(1));
    let mut frame = bench.layout.frame();
    run(&mut bench, &mut frame);
}

/// A list whose length in bits does not fit in 32 bits.
#[test]
fn a_list_that_wraps_around_is_refused() {
    let mut builder = Builder::default();
    let varbit = builder.var(65_528, VarHome::Local);
    builder.vars[varbit.index()].varbit = true;
    let dst = Place::Var(builder.var(32, VarHome::Global));
    let zero = || Expr { width: 32, kind: ExprKind::Const(0u8.into()) };
    let data = vec![*read(varbit, 65_528); 65_545];
    let algorithm = HashAlgorithm::Crc32;
    let call = ExternCall::Hash { dst, algorithm, base: zero(), data, max: zero() };
    let program = builder.program(Default::default(), vec![Stmt::Extern(call)]);
    let layout = Arc::new(Layout::new(&program).unwrap());
    let error = Jit::new(Arc::new(program), layout).err().expect("too large");
    assert!(matches!(error, JitError::Refused(Refused::Stack(bytes)) if bytes > 1 << 29), "{error}");
}

/// What is nested is refused before anything recurses over it.
#[test]
fn deep_expressions_are_refused() {
    for (depth, fits) in [(MAX_DEPTH - 10, true), (MAX_DEPTH + 10, false)] {
        let mut builder = Builder::default();
        let var = builder.var(32, VarHome::Global);
        let mut src = *read(var, 32);
        for _ in 0..depth {
            src = Expr { width: 32, kind: ExprKind::Neg(Box::new(src)) };
        }
        let program = builder.program(Default::default(), vec![Stmt::Assign { dst: Place::Var(var), src }]);
        assert_eq!(check_depth(&program).is_ok(), fits);
    }
}

/// What is nested as deep as it may be, on a stack like that of the thread of a live network. A stack that is too small would end the
/// process.
#[test]
fn the_deepest_expressions_run_on_the_stack_of_a_live_network() {
    let deep = || {
        let mut builder = Builder::default();
        let var = builder.var(32, VarHome::Global);
        let mut src = *read(var, 32);
        for _ in 0..MAX_DEPTH - 10 {
            src = Expr { width: 32, kind: ExprKind::Neg(Box::new(src)) };
        }
        let program = builder.program(Default::default(), vec![Stmt::Assign { dst: Place::Var(var), src }]);
        assert!(check_depth(&program).is_ok());
        let layout = Arc::new(Layout::new(&program).unwrap());
        let program = Arc::new(program);
        let interpreter = Interpreter::new(program.clone(), layout.clone());
        let mut frame = layout.frame();
        layout.set_u64(&mut frame, var, 5);
        let mut ctx = Context {
            frame: &mut frame,
            packet: &[],
            cursor: 0,
            out: &mut Vec::new(),
            state: &mut State::new(&program),
            now: 0,
            wire_len: 0,
            work: u64::MAX,
            requests: Requests::default(),
            rng: &mut SplitMix::new(0),
            trace: None,
        };
        interpreter.control(&mut ctx, ControlId(0)).expect("nothing drops the packet");
        layout.get_u64(&frame, var)
    };
    let thread = std::thread::Builder::new().stack_size(1 << 24).spawn(deep).expect("a thread");
    assert_eq!(
        thread.join().expect("it ends"),
        if MAX_DEPTH.is_multiple_of(2) { 5 } else { u64::from(5u32.wrapping_neg()) }
    );
}
