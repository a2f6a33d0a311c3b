//! Large programs: compiled, or refused with a reason.

use std::sync::Arc;

use p4lang::ir::*;

use super::{Builder, Jit, compile, read, run};
use crate::jit::JitError;
use crate::layout::Layout;
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
    let layout = Arc::new(Layout::new(&program));
    let error = Jit::new(Arc::new(program), layout).err().expect("too large");
    assert_eq!(error, JitError::TooLarge);
    assert!(error.to_string().contains("use the interpreter"));
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
