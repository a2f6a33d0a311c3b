//! What runs a program's blocks: the interpreter, or the JIT's code.

use std::any::Any;
use std::sync::Arc;

use p4lang::ir::{ControlId, ParserId};

use crate::context::{Context, DropReason};
use crate::jit::flat::Flat;

/// Where a program's blocks and intrinsic metadata are, in a form that only its architecture's path knows.
pub(crate) type View = Arc<dyn Any + Send + Sync>;

/// A function that [`Executor`] calls for a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// All blocks in turn.
    Through,
    /// Those before a queue, and those after.
    Receive,
    Depart,
}

/// Runs blocks on a [`Context`]. Both executors behave alike in all that can be observed.
pub trait Executor: Send + Sync {
    /// Runs the parser from its start. Gives the error code (0: none); `Err` if the packet is dropped.
    fn parse(&self, ctx: &mut Context<'_>, parser: ParserId) -> Result<u32, DropReason>;

    /// Runs a control; a deparser's output is appended to `ctx.out`.
    fn control(&self, ctx: &mut Context<'_>, control: ControlId) -> Result<(), DropReason>;

    /// Whether it is native code.
    fn is_native(&self) -> bool {
        false
    }

    /// The path of ordinary packets in one go, if the executor has it.
    fn flat(&self) -> Option<Flat> {
        None
    }
}
