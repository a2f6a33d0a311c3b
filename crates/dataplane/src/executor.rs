//! What runs a program's blocks: the interpreter, or the JIT's code.

use p4lang::ir::{ControlId, ParserId};

use crate::context::{Context, DropReason};

/// Runs blocks on a [`Context`]. Both executors behave alike in all that can be observed.
pub trait Executor: Send + Sync {
    /// Runs the parser from its start. Gives the error code (0: none); `Err` if the packet is dropped.
    fn parse(&self, ctx: &mut Context<'_>, parser: ParserId) -> Result<u32, DropReason>;

    /// Runs a control; a deparser's output is appended to `ctx.out`.
    fn control(&self, ctx: &mut Context<'_>, control: ControlId) -> Result<(), DropReason>;
}
