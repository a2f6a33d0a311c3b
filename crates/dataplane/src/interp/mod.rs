//! The interpreter: the definition of what a lowered program means (see [`p4lang::ir`]).
//!
//! Plain recursion over the IR, one function per construct, values as whole numbers of any width. It is not meant to be
//! fast.

mod eval;
mod externs;
mod parser;
mod stmt;

use std::collections::HashMap;
use std::sync::Arc;

use num_bigint::BigUint;
use p4lang::ir::{ControlId, HeaderRef, LabelId, ParserId, Place, Program, Stmt};

use crate::context::{Context, DropReason};
use crate::cost::{Prices, blocks, each_stmt};
use crate::executor::Executor;
use crate::layout::{HeaderSlot, Layout, Slot};
use crate::trace::Event;

pub struct Interpreter {
    program: Arc<Program>,
    layout: Arc<Layout>,
    known: Known,
}

/// What is found out of a program once, so that looking for it costs nothing when a packet comes.
struct Known {
    /// By parser, see [`Prices::transitions`].
    transitions: Vec<Vec<u64>>,
    /// See [`Prices::loops`].
    loops: HashMap<usize, u64>,
    /// By the address of a `switch` statement's cases, which case a value leads to.
    switches: HashMap<usize, HashMap<BigUint, usize>>,
}

impl Known {
    fn of(program: &Program, layout: &Layout) -> Known {
        let prices = Prices::new(program, layout);
        let mut switches = HashMap::new();
        blocks(program).for_each(|block| {
            each_stmt(block, &mut |stmt| {
                if let Stmt::Switch { cases, .. } = stmt {
                    let each = cases.iter().enumerate().rev();
                    // Of a label that is there twice the first counts.
                    let labels =
                        each.flat_map(|(case, (labels, _))| labels.iter().map(move |l| (l.clone(), case)));
                    switches.insert(cases.as_ptr().addr(), labels.collect());
                }
            });
        });
        let transitions = program.parsers.iter().map(|parser| prices.transitions(parser)).collect();
        Known { transitions, loops: prices.loops(), switches }
    }
}

/// How a statement ends.
enum Flow {
    Next,
    Break(LabelId),
    Continue(LabelId),
    /// Parser error code; to reject.
    Error(u32),
    Drop(DropReason),
}

/// One block's run.
struct Run<'r, 'c> {
    program: &'r Program,
    layout: &'r Layout,
    known: &'r Known,
    ctx: &'r mut Context<'c>,
}

impl Interpreter {
    pub fn new(program: Arc<Program>, layout: Arc<Layout>) -> Interpreter {
        let known = Known::of(&program, &layout);
        Interpreter { program, layout, known }
    }
}

impl Executor for Interpreter {
    fn parse(&self, ctx: &mut Context<'_>, parser: ParserId) -> Result<u32, DropReason> {
        ctx.cursor = 0;
        let costs = &self.known.transitions[parser.index()];
        let mut run = Run { program: &self.program, layout: &self.layout, known: &self.known, ctx };
        run.parser(&self.program[parser], costs)
    }

    fn control(&self, ctx: &mut Context<'_>, control: ControlId) -> Result<(), DropReason> {
        let control = &self.program[control];
        if let Some(trace) = &mut ctx.trace {
            trace.push(Event::Block { name: control.name.clone() });
        }
        let mut run = Run { program: &self.program, layout: &self.layout, known: &self.known, ctx };
        match run.block(&control.body) {
            Flow::Drop(reason) => Err(reason),
            _ => Ok(()),
        }
    }
}

impl Run<'_, '_> {
    fn trace(&mut self, event: impl FnOnce(&Self) -> Event) {
        if self.ctx.trace.is_some() {
            let event = event(self);
            if let Some(trace) = &mut self.ctx.trace {
                trace.push(event);
            }
        }
    }

    /// Where a place is now; `None` for an element out of range.
    fn slot(&self, place: &Place) -> Option<Slot> {
        match place {
            Place::Var(var) => Some(self.layout.slot(*var)),
            Place::Elem { stack, var, index } => self.layout.elem(*stack, *var, self.index(index)),
        }
    }

    fn header(&self, header: &HeaderRef) -> Option<HeaderSlot> {
        match header {
            HeaderRef::Header(id) => Some(self.layout.header_slot(*id)),
            HeaderRef::Elem { stack, header, index } => {
                self.layout.elem_header(*stack, *header, self.index(index))
            }
        }
    }

    /// A number as an index; what does not fit in 64 bits is out of every range.
    fn index(&self, e: &p4lang::ir::Expr) -> u64 {
        small(&self.eval(e))
    }

    fn write(&mut self, place: &Place, value: &BigUint) {
        if let Some(slot) = self.slot(place) {
            slot.set(self.ctx.frame, value);
        }
    }
}

/// A number, or the largest if it has more than 64 bits.
fn small(value: &BigUint) -> u64 {
    u64::try_from(value).unwrap_or(u64::MAX)
}
