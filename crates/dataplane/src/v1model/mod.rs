//! The v1model architecture: the path of a packet through its blocks, as the reference switch has it.
//!
//! Ingress and egress are separate steps with a [`Work`](crate::work::Work) packet between them, so that a switch may put queues there;
//! [`Pipeline::process`](crate::runtime::Pipeline::process) runs the whole path without queues. Every packet that comes in
//! leaves, is dropped with a counted reason, or is turned into others.
//!
//! | file | what |
//! |---|---|
//! | `path` | where packets come in and leave; the path of ordinary packets in one go |
//! | `passes` | one pass through ingress or egress, and what becomes of the packet after it |
//! | `copies` | clones and multicast copies |
//! | `metadata` | standard metadata in a frame, and the fields that a packet keeps from pass to pass |
//! | `reach` | how far into a packet a program can look |
//! | `native` | the path of ordinary packets as native code |

mod copies;
mod metadata;
mod native;
mod passes;
mod path;
mod reach;

use std::sync::Arc;

use p4lang::ir::{ControlId, Package, Program};
use p4lang::lower::v1model::{NAME, V1Model};

use wire::packet::Written;

use crate::context::DropReason;
use crate::cost::Prices;
use crate::executor::View;
use crate::jit::flat::Passed;
use crate::jit::function::NativePath;
use crate::runtime::{PacketPath, PassCosts, Pipeline};
use crate::trace::Trace;
use crate::work::{Output, QueueInfo, Received, Work};
use reach::reach;

/// The port that drops.
pub const DROP_PORT: u32 = 511;
/// Resubmissions and recirculations that one packet may make.
pub const MAX_PASSES: u32 = 64;
/// Packets that one packet may turn into.
pub const MAX_COPIES: u32 = 4096;

/// `standard_metadata.instance_type`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Instance {
    Normal = 0,
    IngressClone = 1,
    EgressClone = 2,
    Recirculated = 4,
    Replicated = 5,
    Resubmitted = 6,
}

impl Instance {
    /// In words, by its number.
    pub(crate) fn name_of(number: u32) -> &'static str {
        const NAMES: [(Instance, &str); 6] = [
            (Instance::Normal, "normal"),
            (Instance::IngressClone, "ingress clone"),
            (Instance::EgressClone, "egress clone"),
            (Instance::Recirculated, "recirculated"),
            (Instance::Replicated, "replicated"),
            (Instance::Resubmitted, "resubmitted"),
        ];
        NAMES.iter().find(|(instance, _)| *instance as u32 == number).map_or("unknown", |(_, name)| name)
    }
}

/// The path of v1model's packets.
pub(crate) struct Path;

impl PacketPath for Path {
    fn name(&self) -> &'static str {
        NAME
    }

    fn view(&self, package: &Package) -> Option<View> {
        Some(Arc::new(V1Model::of(package)?))
    }

    fn costs(&self, prices: Prices<'_>, view: &View) -> PassCosts {
        let Some(v1) = view.downcast_ref::<V1Model>() else { return PassCosts::default() };
        let controls = |ids: &[ControlId]| ids.iter().map(|id| prices.control(*id)).sum::<u64>();
        let parser = prices.parser(v1.parser);
        PassCosts {
            parser,
            ingress: parser + controls(&[v1.verify_checksum, v1.ingress]),
            egress: controls(&[v1.egress, v1.compute_checksum, v1.deparser]),
        }
    }

    fn reach(&self, program: &Program, view: &View) -> usize {
        view.downcast_ref().map_or(usize::MAX, |v1| reach(program, v1))
    }

    fn process(
        &self,
        pipeline: &mut Pipeline,
        now: u64,
        port: u32,
        bytes: &[u8],
        outputs: &mut Vec<Output>,
        trace: Option<&mut Trace>,
    ) {
        pipeline.v1_process(now, port, bytes, outputs, trace);
    }

    fn receive(
        &self,
        pipeline: &mut Pipeline,
        now: u64,
        (port, packet): (u32, Box<Written>),
        pending: &mut Vec<Box<Work>>,
        _at_once: &mut dyn FnMut(u32, u32) -> bool,
    ) -> Received {
        pipeline.v1_receive(now, port, packet, pending)
    }

    fn depart(
        &self,
        pipeline: &mut Pipeline,
        now: u64,
        work: Box<Work>,
        queue: QueueInfo,
        pending: &mut Vec<Box<Work>>,
    ) -> Option<Box<Written>> {
        pipeline.v1_depart(now, work, queue, pending)
    }

    fn leave(
        &self,
        pipeline: &mut Pipeline,
        now: u64,
        packet: (u32, Box<Written>),
        passed: Passed,
        pending: &mut Vec<Box<Work>>,
    ) -> Received {
        pipeline.v1_leave(now, packet, passed, pending)
    }

    fn leave_egress(
        &self,
        pipeline: &mut Pipeline,
        now: u64,
        work: Box<Work>,
        result: Result<(), DropReason>,
        pending: &mut Vec<Box<Work>>,
    ) -> Option<Box<Written>> {
        pipeline.v1_leave_egress(now, work, result, pending)
    }

    fn native(&self) -> Option<NativePath> {
        Some(native::build)
    }
}
