//! The executor: runs a compiled program's blocks on a context.

use std::sync::Arc;

use p4lang::ir::{ControlId, LOOP_BUDGET, ParserId, Program};

use super::JitError;
use super::compile::{BlockFn, Compiled};
use super::function::NativePath;
use super::native::{Departing, Native, drop_reason, stage};
use crate::context::{Context, DropReason};
use crate::executor::{Arrival, Departure, Executor, Through, View};
use crate::layout::Layout;

/// A program as native code.
pub struct Jit {
    compiled: Compiled,
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
        Ok(Jit { compiled: Compiled::new(program, layout, path)? })
    }

    #[inline]
    fn run(&self, ctx: &mut Context<'_>, block: BlockFn, at: Arrival, departing: Departing) -> Native {
        self.run_with(ctx, at, departing, |native| {
            // SAFETY: `run_with` fills the structure in for the program's blocks.
            unsafe { block(native) }
        })
    }

    /// Lets `blocks` run blocks on what they see of a context.
    #[inline(always)]
    fn run_with(
        &self,
        ctx: &mut Context<'_>,
        at: Arrival,
        departing: Departing,
        blocks: impl FnOnce(&mut Native),
    ) -> Native {
        let program = &self.compiled.program;
        assert!(
            ctx.state.registers.len() == program.registers.len()
                && ctx.state.counters.len() == program.counters.len()
                && ctx.state.tables.len() == program.tables.len(),
            "the state is that of the program"
        );
        debug_assert!(
            ctx.state
                .registers
                .iter()
                .zip(&program.registers)
                .all(|(r, declared)| r.len() as u64 == declared.size)
        );
        assert!(ctx.frame.len() >= self.compiled.layout.frame_len, "the frame is laid out for the program");
        let mut native = Native {
            frame: ctx.frame.as_mut_ptr(),
            packet: ctx.packet.as_ptr(),
            packet_len: ctx.packet.len() as u64,
            cursor: ctx.cursor as u64,
            parser_error: 0,
            dropped: 0,
            loop_budget: u64::from(LOOP_BUDGET),
            out: ctx.out.as_mut_ptr(),
            out_len: ctx.out.len() as u64,
            out_capacity: ctx.out.capacity() as u64,
            wire_len: ctx.wire_len,
            requested: 0,
            port: u64::from(at.port),
            now: at.now,
            stage: 0,
            priority: 0,
            departing,
            registers: ctx.state.registers.as_ptr(),
            counters: ctx.state.counters.as_ptr(),
            tables: ctx.state.tables.as_ptr(),
            compiled: &self.compiled,
            context: std::ptr::from_mut(ctx).cast(),
        };
        // The frame has the layout that the code was compiled for, the state is that of the program, and all pointers are
        // valid while the context is borrowed, which it is until this function returns.
        blocks(&mut native);
        // SAFETY: what the blocks appended is initialised and within the capacity.
        unsafe { ctx.out.set_len(native.out_len as usize) };
        native
    }
}

impl Executor for Jit {
    fn parse(&self, ctx: &mut Context<'_>, parser: ParserId) -> Result<u32, DropReason> {
        ctx.cursor = 0;
        let native =
            self.run(ctx, self.compiled.parsers[parser.index()], Arrival::default(), Departing::default());
        ctx.cursor = native.cursor as usize;
        drop_reason(native.dropped)?;
        Ok(native.parser_error)
    }

    fn control(&self, ctx: &mut Context<'_>, control: ControlId) -> Result<(), DropReason> {
        let native =
            self.run(ctx, self.compiled.controls[control.index()], Arrival::default(), Departing::default());
        drop_reason(native.dropped)
    }

    fn through(&self, ctx: &mut Context<'_>, arrival: Arrival) -> Through {
        let Some(paths) = &self.compiled.paths else {
            return Through::Unsupported;
        };
        ctx.cursor = 0;
        self.path(ctx, paths.through, arrival, Departing::default())
    }

    fn receive(
        &self,
        ctx: &mut Context<'_>,
        arrival: Arrival,
        at_once: &mut dyn FnMut(u32, u32) -> bool,
    ) -> Through {
        let Some(paths) = &self.compiled.paths else {
            return Through::Unsupported;
        };
        ctx.cursor = 0;
        let native = self.run_with(ctx, arrival, Departing::default(), |native| {
            // SAFETY: `run_with` fills the structure in for the program's blocks, and the first half leaves it as the second
            // expects it.
            unsafe {
                (paths.receive)(native);
                if u64::from(native.stage) == stage::QUEUE && at_once(native.port as u32, native.priority) {
                    native.departing.enqueued = native.now;
                    (paths.depart)(native);
                }
            }
        });
        left(ctx, &native)
    }

    fn depart(&self, ctx: &mut Context<'_>, departure: &Departure) -> Through {
        let Some(paths) = &self.compiled.paths else {
            return Through::Unsupported;
        };
        let departing = Departing {
            rid: u64::from(departure.rid),
            instance: u64::from(departure.instance),
            enqueued: departure.enqueued,
            waited: departure.waited,
            enq_qdepth: u64::from(departure.enq_qdepth),
            deq_qdepth: u64::from(departure.deq_qdepth),
        };
        let at = Arrival { port: departure.port, now: departure.now };
        self.path(ctx, paths.depart, at, departing)
    }
}

impl Jit {
    /// Runs a path, and says where the packet left it.
    fn path(&self, ctx: &mut Context<'_>, block: BlockFn, at: Arrival, departing: Departing) -> Through {
        let native = self.run(ctx, block, at, departing);
        left(ctx, &native)
    }
}

/// Where the packet left a path.
#[inline(always)]
fn left(ctx: &mut Context<'_>, native: &Native) -> Through {
    ctx.cursor = native.cursor as usize;
    let port = native.port as u32;
    match u64::from(native.stage) {
        stage::OUT => Through::Out { port },
        stage::QUEUE => Through::Queue { port, priority: native.priority },
        stage::INGRESS => Through::Ingress(drop_reason(native.dropped)),
        stage::EGRESS => Through::Egress { port, result: drop_reason(native.dropped) },
        // After egress only a drop ends the path.
        _ => Through::Egress {
            port,
            result: Err(drop_reason(native.dropped).err().unwrap_or(DropReason::LoopBudget)),
        },
    }
}
