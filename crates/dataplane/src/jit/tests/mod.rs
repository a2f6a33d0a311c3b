//! Native code against the IR's definition, without packets: expressions of every kind at many widths.

mod actions;
#[expect(unsafe_code, reason = "calls of code")]
pub(super) mod claims;
mod expr;
mod lookups;
mod malformed;
#[expect(unsafe_code, reason = "called as code calls")]
mod memory;
#[expect(unsafe_code, reason = "called as code calls")]
mod services;
mod size;
mod sums;

use std::sync::Arc;

use num_bigint::BigUint;
use p4lang::ir::*;

use super::Jit;
use crate::context::{Context, Requests};
use crate::executor::Executor;
use crate::interp::Interpreter;
use crate::layout::Layout;
use crate::state::State;
use units::SplitMix;

/// Builds small programs by hand.
#[derive(Default)]
struct Builder {
    vars: Vec<Var>,
}

impl Builder {
    fn var(&mut self, width: u32, home: VarHome) -> VarId {
        let name = format!("v{}", self.vars.len());
        self.vars.push(Var { name, width, varbit: false, home });
        VarId(self.vars.len() as u32 - 1)
    }

    /// A program of no architecture, with a parser and a control that is `body`.
    fn program(self, headers: (Vec<HeaderType>, Vec<Header>, Vec<Stack>), body: Block) -> Program {
        let accept = p4lang::ir::State {
            name: "start".into(),
            body: Vec::new(),
            next: Transition::Direct(StateRef::Accept),
        };
        let parser = Parser { name: "parser".into(), states: vec![accept], start: StateRef::State(0) };
        let core = [
            "NoError",
            "PacketTooShort",
            "NoMatch",
            "StackOutOfBounds",
            "HeaderTooShort",
            "ParserTimeout",
            "ParserInvalidArgument",
        ];
        let (header_types, headers, stacks) = headers;
        Program {
            vars: self.vars,
            header_types,
            headers,
            stacks,
            errors: core.map(String::from).to_vec(),
            parsers: vec![parser],
            controls: vec![Control { name: "body".into(), body }],
            ..Default::default()
        }
    }
}

/// A compiled program and what it runs on.
struct Bench {
    layout: Arc<Layout>,
    jit: Jit,
    interpreter: Interpreter,
    state: State,
}

/// Runs the control of a program; the interpreter must make the same of the frame.
fn run(bench: &mut Bench, frame: &mut [u8]) {
    let mut other = frame.to_vec();
    let executors: [(&dyn Executor, &mut [u8]); 2] = [(&bench.jit, frame), (&bench.interpreter, &mut other)];
    for (executor, frame) in executors {
        let mut ctx = Context {
            frame,
            packet: &[],
            cursor: 0,
            out: &mut Vec::new(),
            state: &mut bench.state,
            now: 0,
            wire_len: 0,
            work: u64::MAX,
            requests: Requests::default(),
            rng: &mut SplitMix::new(0),
            trace: None,
        };
        executor.control(&mut ctx, ControlId(0)).expect("nothing drops the packet");
    }
    let kept = bench.layout.persistent_len;
    assert_eq!(frame[..kept], other[..kept]);
}

fn compile(program: Program) -> Bench {
    let layout = Arc::new(Layout::new(&program).unwrap());
    let program = Arc::new(program);
    Bench {
        state: State::new(&program),
        jit: Jit::new(program.clone(), layout.clone()).expect("the program compiles"),
        interpreter: Interpreter::new(program, layout.clone()),
        layout,
    }
}

fn read(var: VarId, width: u32) -> Box<Expr> {
    Box::new(Expr { width, kind: ExprKind::Read(Place::Var(var)) })
}

fn all_ones(width: u32) -> BigUint {
    (BigUint::from(1u8) << width) - 1u8
}
