//! The ebpf_model architecture: parser, filter, and the packet as it came if both accept it. It leaves by the port that it came
//! in by; there is no egress, no deparser and no copy.

use std::sync::Arc;

use p4lang::ir::Package;
use p4lang::lower::ebpf::{Filter, NAME};
use wire::packet::Written;

use crate::budget::Budget;
use crate::cost::Prices;
use crate::drops::DropReason;
use crate::executor::View;
use crate::runtime::{PacketPath, PassCosts, Pipeline};
use crate::trace::{Event, Trace};
use crate::work::{Output, QueueInfo, Received, Work};

const REJECTED: DropReason = DropReason::Own("rejected by the parser");
const NOT_ACCEPTED: DropReason = DropReason::Own("not accepted by the filter");

/// The path of ebpf_model's packets.
pub(crate) struct Path;

impl PacketPath for Path {
    fn name(&self) -> &'static str {
        NAME
    }

    fn view(&self, package: &Package) -> Option<View> {
        Some(Arc::new(Filter::of(package)?))
    }

    fn costs(&self, prices: Prices<'_>, view: &View) -> PassCosts {
        let of = |filter: &Filter| prices.parser(filter.parser) + prices.control(filter.filter);
        PassCosts { ingress: view.downcast_ref().map_or(0, of), ..PassCosts::default() }
    }

    fn process(
        &self,
        pipeline: &mut Pipeline,
        now: u64,
        port: u32,
        bytes: &[u8],
        outputs: &mut Vec<Output>,
        mut trace: Option<&mut Trace>,
    ) {
        let packet = pipeline.packet(bytes, 0);
        let work = accepted(pipeline, now, (port, &packet), trace.as_deref_mut());
        pipeline.release(packet);
        let Some(work) = work else { return };
        pipeline.keep_work(work);
        let mut copy = pipeline.buffer();
        copy.extend_from_slice(bytes);
        if let Some(trace) = trace {
            trace.push(Event::Transmit { port, bytes: copy.len() });
        }
        outputs.push(Output { port, bytes: copy, zero_len: 0 });
    }

    fn receive(
        &self,
        pipeline: &mut Pipeline,
        now: u64,
        (port, mut packet): (u32, Box<Written>),
        _pending: &mut Vec<Box<Work>>,
        at_once: &mut dyn FnMut(u32, u32) -> bool,
    ) -> Received {
        packet.reach(pipeline.reach);
        let Some(mut work) = accepted(pipeline, now, (port, &packet), None) else {
            pipeline.release(packet);
            return Received::Other;
        };
        if at_once(port, 0) {
            pipeline.keep_work(work);
            return Received::Out(packet);
        }
        work.take(packet, port, now, port, (0, Budget::default()));
        Received::Queue(work)
    }

    fn depart(
        &self,
        pipeline: &mut Pipeline,
        _now: u64,
        mut work: Box<Work>,
        _queue: QueueInfo,
        _pending: &mut Vec<Box<Work>>,
    ) -> Option<Box<Written>> {
        let packet = work.packet.take();
        pipeline.keep_work(work);
        packet
    }
}

/// Runs both blocks; the packet's frame, to work on, if they accept it. Otherwise the packet is counted as dropped.
fn accepted(
    pipeline: &mut Pipeline,
    now: u64,
    (port, packet): (u32, &Written),
    mut trace: Option<&mut Trace>,
) -> Option<Box<Work>> {
    // A pipeline with this path has this view.
    let filter = *pipeline.view.downcast_ref::<Filter>()?;
    if let Some(trace) = trace.as_deref_mut() {
        trace.push(Event::Receive { port, bytes: packet.bytes().len(), instance: "normal" });
    }
    let layout = pipeline.layout.clone();
    let dear = pipeline.first.is_none();
    let mut work = pipeline.empty_work();
    let mut budget = Budget::new(pipeline.first.unwrap_or(0));
    let (result, ..) = pipeline.pass(
        now,
        (&mut work.frame, packet, 0),
        &mut budget,
        trace.as_deref_mut(),
        |executor, ctx| {
            if dear {
                return Err(DropReason::WorkBudget);
            }
            executor.parse(ctx, filter.parser)?;
            if layout.get_u64(ctx.frame, filter.parsed) == 0 {
                return Err(REJECTED);
            }
            executor.control(ctx, filter.filter)?;
            if layout.get_u64(ctx.frame, filter.accept) == 0 { Err(NOT_ACCEPTED) } else { Ok(()) }
        },
    );
    match result {
        Ok(()) => Some(work),
        Err(reason) => {
            pipeline.drop_packet(reason, trace);
            pipeline.keep_work(work);
            None
        }
    }
}
