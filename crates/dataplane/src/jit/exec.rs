//! The executor: runs a compiled program's blocks on a context.

use std::sync::Arc;

use p4lang::ir::{ControlId, ParserId, Program};

use super::JitError;
use super::compile::{BlockFn, Compiled, Processor};
use super::flat::{Arrival, Bytes, Flat, Passage};
use super::function::NativePath;
use super::native::drop_reason;
use crate::context::{Context, DropReason};
use crate::executor::{Executor, View};
use crate::layout::Layout;

/// A program as native code.
pub struct Jit {
    compiled: Arc<Compiled>,
}

impl Jit {
    /// Compiles a program block by block. `layout` is that of the program.
    ///
    /// # Errors
    /// The program has no native code.
    pub fn new(program: Arc<Program>, layout: Arc<Layout>) -> Result<Jit, JitError> {
        Jit::with_path(program, layout, None)
    }

    /// As [`Jit::new`], and the path of ordinary packets as it is in the program's architecture.
    pub(crate) fn with_path(
        program: Arc<Program>,
        layout: Arc<Layout>,
        path: Option<(NativePath, View)>,
    ) -> Result<Jit, JitError> {
        Ok(Jit { compiled: Arc::new(Compiled::new(program, layout, path, Processor::This)?) })
    }

    /// As [`Jit::with_path`], for the instructions that all processors have.
    #[cfg(test)]
    pub(crate) fn portable(
        program: Arc<Program>,
        layout: Arc<Layout>,
        path: Option<(NativePath, View)>,
    ) -> Result<Jit, JitError> {
        Ok(Jit { compiled: Arc::new(Compiled::new(program, layout, path, Processor::Any)?) })
    }

    /// Runs a block on what it sees of a context: the parser's error, if nothing drops the packet.
    fn run(&self, ctx: &mut Context<'_>, block: BlockFn) -> Result<u32, DropReason> {
        let on = Passage {
            frame: ctx.frame,
            cursor: ctx.cursor,
            state: ctx.state,
            rng: ctx.rng,
            requests: &mut ctx.requests,
            now: ctx.now,
            wire_len: ctx.wire_len,
            work: ctx.work,
        };
        let (bytes, at) = (Bytes::Read(ctx.packet), Arrival::default());
        let (cursor, error, dropped, work) =
            self.compiled.enter((on, ctx.out), bytes, at, std::ptr::null(), |native| {
                // SAFETY: `enter` fills the structure in for the program's blocks.
                unsafe { block(native) };
                (native.cursor as usize, native.parser_error, native.dropped, native.work)
            });
        (ctx.cursor, ctx.work) = (cursor, work);
        drop_reason(dropped).map(|()| error)
    }
}

impl Executor for Jit {
    fn parse(&self, ctx: &mut Context<'_>, parser: ParserId) -> Result<u32, DropReason> {
        ctx.cursor = 0;
        self.run(ctx, self.compiled.parsers[parser.index()])
    }

    fn control(&self, ctx: &mut Context<'_>, control: ControlId) -> Result<(), DropReason> {
        self.run(ctx, self.compiled.controls[control.index()]).map(|_| ())
    }

    fn is_native(&self) -> bool {
        true
    }

    fn flat(&self) -> Option<Flat> {
        Some(Flat { paths: self.compiled.paths?, compiled: self.compiled.clone() })
    }
}
