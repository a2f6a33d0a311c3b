//! What runs a program's blocks: the interpreter, or the JIT's code.

use std::any::Any;
use std::sync::Arc;

use p4lang::ir::{ControlId, ParserId};

use crate::context::{Context, DropReason};

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

/// How far a packet came on the path of ordinary packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Through {
    /// The executor has no such path; nothing was done.
    Unsupported,
    /// Parser, checksum verification and ingress ran; the rest is for the caller to decide, or the packet is dropped.
    Ingress(Result<(), DropReason>),
    /// So did egress, for this port.
    Egress { port: u32, result: Result<(), DropReason> },
    /// For this port; the headers are in `ctx.out`, after [`Executor::through`] with the payload behind them.
    Out { port: u32 },
    /// Ingress has run, and the packet is for this port's queue of this priority.
    Queue { port: u32, priority: u32 },
}

/// Where and when a packet comes in.
#[derive(Debug, Clone, Copy, Default)]
pub struct Arrival {
    pub port: u32,
    /// In the unit of the architecture's timestamps.
    pub now: u64,
}

/// What egress learns of a packet that leaves its queue. Times are in the unit of the architecture's timestamps.
#[derive(Debug, Clone, Copy)]
pub struct Departure {
    pub port: u32,
    pub rid: u32,
    /// Which kind of packet it is, in the architecture's numbers.
    pub instance: u32,
    pub now: u64,
    pub enqueued: u64,
    pub waited: u64,
    pub enq_qdepth: u32,
    pub deq_qdepth: u32,
}

/// Runs blocks on a [`Context`]. Both executors behave alike in all that can be observed.
pub trait Executor: Send + Sync {
    /// Runs the parser from its start. Gives the error code (0: none); `Err` if the packet is dropped.
    fn parse(&self, ctx: &mut Context<'_>, parser: ParserId) -> Result<u32, DropReason>;

    /// Runs a control; a deparser's output is appended to `ctx.out`.
    fn control(&self, ctx: &mut Context<'_>, control: ControlId) -> Result<(), DropReason>;

    /// Runs a packet that comes in through all blocks, with the metadata of a packet that meets no
    /// queue, and stops where its path leaves that of ordinary packets. The frame need not be zeroed.
    fn through(&self, ctx: &mut Context<'_>, arrival: Arrival) -> Through {
        let _ = (ctx, arrival);
        Through::Unsupported
    }

    /// The first half of [`Executor::through`], up to a queue. If `at_once` says that a packet for this port and of this
    /// priority need not wait, the second half follows, as of a packet that leaves an empty queue when it comes.
    fn receive(
        &self,
        ctx: &mut Context<'_>,
        arrival: Arrival,
        at_once: &mut dyn FnMut(u32, u32) -> bool,
    ) -> Through {
        let _ = (ctx, arrival, at_once);
        Through::Unsupported
    }

    /// The second half, from a queue on. The frame is as ingress left it.
    fn depart(&self, ctx: &mut Context<'_>, departure: &Departure) -> Through {
        let _ = (ctx, departure);
        Through::Unsupported
    }
}
