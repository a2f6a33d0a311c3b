//! The ebpf_model architecture: parser, filter, and the packet as it came if both accept it. It leaves by the port that it came
//! in by; there is no egress, no deparser and no copy.

use std::sync::Arc;

use p4lang::ir::Package;
use p4lang::lower::ebpf::{Filter, NAME};

use crate::drops::DropReason;
use crate::path::{PacketPath, View};
use crate::pipeline::{Instance, Output, Pending, Pipeline, QueueInfo, Received};
use crate::trace::{Event, Trace};

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

    fn process(
        &self,
        pipeline: &mut Pipeline,
        now: u64,
        port: u32,
        bytes: &[u8],
        outputs: &mut Vec<Output>,
        mut trace: Option<&mut Trace>,
    ) {
        let Some(frame) = accepted(pipeline, now, (port, bytes, 0), trace.as_deref_mut()) else { return };
        pipeline.frames.push(frame);
        let mut copy = pipeline.buffer();
        copy.extend_from_slice(bytes);
        if let Some(trace) = trace {
            trace.push(Event::Transmit { port, bytes: copy.len() });
        }
        outputs.push(Output { port, bytes: copy, more: 0 });
    }

    fn receive(
        &self,
        pipeline: &mut Pipeline,
        now: u64,
        (port, bytes, more): (u32, &mut Vec<u8>, u32),
        _pending: &mut Vec<Pending>,
        at_once: &mut dyn FnMut(u32, u32) -> bool,
    ) -> Received {
        let Some(frame) = accepted(pipeline, now, (port, bytes, more), None) else {
            pipeline.recycle(std::mem::take(bytes));
            return Received::Other;
        };
        let priority = 0;
        if at_once(port, priority) {
            pipeline.frames.push(frame);
            return Received::Out { more };
        }
        Received::Queue(Pending {
            port,
            priority,
            bytes: std::mem::take(bytes),
            more,
            cursor: 0,
            frame,
            instance: Instance::Normal,
            rid: 0,
            truncate: None,
            passes: 0,
            enqueued: now,
            ingress_port: port,
        })
    }

    fn depart(
        &self,
        pipeline: &mut Pipeline,
        _now: u64,
        packet: Pending,
        _queue: QueueInfo,
        _pending: &mut Vec<Pending>,
    ) -> Option<Output> {
        pipeline.frames.push(packet.frame);
        Some(Output { port: packet.port, bytes: packet.bytes, more: packet.more })
    }
}

/// Runs both blocks; the packet's frame if they accept it. Otherwise the packet is counted as dropped.
fn accepted(
    pipeline: &mut Pipeline,
    now: u64,
    (port, bytes, more): (u32, &[u8], u32),
    mut trace: Option<&mut Trace>,
) -> Option<Box<[u8]>> {
    // A pipeline with this path has this view.
    let filter = *pipeline.view.downcast_ref::<Filter>()?;
    if let Some(trace) = trace.as_deref_mut() {
        trace.push(Event::Receive { port, bytes: bytes.len(), instance: Instance::Normal.name() });
    }
    let layout = pipeline.layout.clone();
    let mut frame = pipeline.frame();
    let mut out = pipeline.buffer();
    let packet = (now, &mut frame[..], bytes, more, 0);
    let (result, ..) = pipeline.pass(packet, &mut out, trace.as_deref_mut(), |executor, ctx| {
        executor.parse(ctx, filter.parser)?;
        if layout.get_u64(ctx.frame, filter.parsed) == 0 {
            return Err(REJECTED);
        }
        executor.control(ctx, filter.filter)?;
        if layout.get_u64(ctx.frame, filter.accept) == 0 { Err(NOT_ACCEPTED) } else { Ok(()) }
    });
    pipeline.recycle(out);
    match result {
        Ok(()) => Some(frame),
        Err(reason) => {
            pipeline.drop_packet(reason, trace);
            pipeline.frames.push(frame);
            None
        }
    }
}
