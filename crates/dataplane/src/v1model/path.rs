//! Where packets come in and leave: the whole path without queues, or its two halves with a queue between.

use crate::context::{Context, Requests};
use crate::executor::{Arrival, Departure, Through};
use crate::runtime::Pipeline;
use crate::trace::{Event, Trace};
use crate::v1model::{Instance, micros};

/// A packet that leaves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output {
    pub port: u32,
    pub bytes: Vec<u8>,
    /// Bytes of payload behind `bytes` that are only counted.
    pub more: u32,
}

/// A packet for ingress.
#[derive(Debug)]
pub(crate) struct Incoming {
    pub port: u32,
    pub bytes: Vec<u8>,
    pub(crate) more: u32,
    pub(crate) instance: Instance,
    /// Frame whose listed fields are kept, and the list.
    pub(crate) kept: Option<(Box<[u8]>, u32)>,
    pub(crate) passes: u32,
}

/// A packet between ingress and egress.
#[derive(Debug)]
pub struct Pending {
    pub port: u32,
    /// Queue that the program chose.
    pub priority: u32,
    pub(crate) bytes: Vec<u8>,
    pub(crate) more: u32,
    pub(crate) cursor: usize,
    pub(crate) frame: Box<[u8]>,
    pub(crate) instance: Instance,
    pub(crate) rid: u32,
    pub(crate) truncate: Option<u32>,
    pub(crate) passes: u32,
    /// Picoseconds.
    pub enqueued: u64,
    pub ingress_port: u32,
}

impl Pending {
    /// Bytes on the wire, as the packet came.
    pub fn wire_len(&self) -> u64 {
        wire_len(&self.bytes, self.more)
    }
}

pub(crate) fn wire_len(bytes: &[u8], more: u32) -> u64 {
    bytes.len() as u64 + u64::from(more)
}

/// What a queue tells egress.
#[derive(Debug, Clone, Copy, Default)]
pub struct QueueInfo {
    /// Packets in the queue when the packet came and when it left.
    pub enq_qdepth: u32,
    pub deq_qdepth: u32,
}

/// What came of a packet that a switch with queues took.
#[derive(Debug)]
pub enum Received {
    /// It is for its queue.
    Queue(Pending),
    /// It has left already: its bytes are those that left, and `more` are behind them.
    Out { more: u32 },
    /// It has turned into others, or was dropped.
    Other,
}

/// What came of a pass through ingress or egress.
#[derive(Debug)]
pub(crate) enum Next {
    Ingress(Incoming),
    Egress(Pending),
    Out(Output),
}

impl Pipeline {
    #[inline(always)]
    pub(super) fn v1_process(
        &mut self,
        now: u64,
        port: u32,
        bytes: &[u8],
        outputs: &mut Vec<Output>,
        trace: Option<&mut Trace>,
    ) {
        self.copies = 0;
        if trace.is_none() && self.through(now, port, bytes, outputs) {
            return;
        }
        let mut buffer = self.buffer();
        buffer.extend_from_slice(bytes);
        let first =
            Incoming { port, bytes: buffer, more: 0, instance: Instance::Normal, kept: None, passes: 0 };
        self.queue.push_back(Next::Ingress(first));
        self.drain(now, outputs, trace);
    }

    /// [`Pipeline::receive`]: ingress, and egress if the packet need not wait.
    #[inline(always)]
    pub(super) fn v1_receive(
        &mut self,
        now: u64,
        port: u32,
        bytes: &mut Vec<u8>,
        more: u32,
        pending: &mut Vec<Pending>,
        at_once: &mut dyn FnMut(u32, u32) -> bool,
    ) -> Received {
        self.copies = 0;
        let mut frame = self.frames.pop().unwrap_or_else(|| self.layout.frame());
        let mut out = self.buffer();
        let mut ctx = Context {
            frame: &mut frame,
            packet: bytes,
            cursor: 0,
            out: &mut out,
            state: &mut self.state,
            now,
            wire_len: wire_len(bytes, more),
            loop_budget: 0,
            requests: Requests::default(),
            rng: &mut self.rng,
            trace: None,
        };
        let came = self.executor.receive(&mut ctx, Arrival { port, now: micros(now) }, at_once);
        let Context { requests, cursor, .. } = ctx;
        let queued = |to: u32, priority: u32, bytes: Vec<u8>, frame: Box<[u8]>| Pending {
            port: to,
            priority,
            bytes,
            more,
            cursor,
            frame,
            instance: Instance::Normal,
            rid: 0,
            truncate: None,
            passes: 0,
            enqueued: now,
            ingress_port: port,
        };
        let incoming =
            |bytes| Incoming { port, bytes, more, instance: Instance::Normal, kept: None, passes: 0 };
        match came {
            Through::Out { .. } => {
                self.frames.push(frame);
                std::mem::swap(bytes, &mut out);
                self.recycle(out);
                return Received::Out { more };
            }
            Through::Queue { port: to, priority } => {
                self.recycle(out);
                return Received::Queue(queued(to, priority, std::mem::take(bytes), frame));
            }
            Through::Egress { port: to, result } => {
                out.clear();
                let packet = queued(to, 0, std::mem::take(bytes), frame);
                self.after_egress(now, packet, out, (result, requests, cursor), None);
            }
            Through::Ingress(result) => {
                self.recycle(out);
                let incoming = incoming(std::mem::take(bytes));
                self.after_ingress(now, incoming, frame, (result, requests, cursor), None);
            }
            Through::Unsupported => {
                self.recycle(out);
                self.frames.push(frame);
                self.ingress(now, incoming(std::mem::take(bytes)), None);
            }
        }
        let Some(out) = self.drain_to_queues(now, pending) else { return Received::Other };
        *bytes = out.bytes;
        Received::Out { more: out.more }
    }

    /// [`Pipeline::depart`].
    #[inline(always)]
    pub(super) fn v1_depart(
        &mut self,
        now: u64,
        packet: Pending,
        queue: QueueInfo,
        pending: &mut Vec<Pending>,
    ) -> Option<Output> {
        self.copies = 0;
        if packet.truncate.is_none() {
            return self.depart_whole(now, packet, queue, pending);
        }
        self.egress(now, packet, queue, None);
        self.drain_to_queues(now, pending)
    }

    /// [`Pipeline::depart`] in one go, if the executor has it.
    #[inline(always)]
    fn depart_whole(
        &mut self,
        now: u64,
        mut packet: Pending,
        queue: QueueInfo,
        pending: &mut Vec<Pending>,
    ) -> Option<Output> {
        let mut out = self.buffer();
        let mut ctx = Context {
            frame: &mut packet.frame,
            packet: &packet.bytes,
            cursor: packet.cursor,
            out: &mut out,
            state: &mut self.state,
            now,
            wire_len: wire_len(&packet.bytes, packet.more),
            loop_budget: 0,
            requests: Requests::default(),
            rng: &mut self.rng,
            trace: None,
        };
        let departure = Departure {
            port: packet.port,
            rid: packet.rid,
            instance: packet.instance as u32,
            now: micros(now),
            enqueued: micros(packet.enqueued),
            waited: micros(now.saturating_sub(packet.enqueued)),
            enq_qdepth: queue.enq_qdepth,
            deq_qdepth: queue.deq_qdepth,
        };
        let came = self.executor.depart(&mut ctx, &departure);
        let Context { requests, cursor, .. } = ctx;
        match came {
            Through::Out { port } => {
                let Pending { bytes, more, frame, .. } = packet;
                self.frames.push(frame);
                self.recycle(bytes);
                return Some(Output { port, bytes: out, more });
            }
            Through::Egress { result, .. } => {
                out.clear();
                self.after_egress(now, packet, out, (result, requests, cursor), None);
            }
            _ => {
                self.recycle(out);
                self.egress(now, packet, queue, None);
            }
        }
        self.drain_to_queues(now, pending)
    }

    fn drain_to_queues(&mut self, now: u64, pending: &mut Vec<Pending>) -> Option<Output> {
        let mut out = None;
        while let Some(next) = self.queue.pop_front() {
            match next {
                Next::Ingress(incoming) => self.ingress(now, incoming, None),
                Next::Egress(packet) => pending.push(packet),
                Next::Out(output) => out = Some(output),
            }
        }
        out
    }

    /// The path of ordinary packets in one go, without copies and queues, if the executor has it; from where a packet
    /// leaves that path it goes on as any other. False: nothing was done.
    #[inline(always)]
    fn through(&mut self, now: u64, port: u32, bytes: &[u8], outputs: &mut Vec<Output>) -> bool {
        let mut frame = self.frames.pop().unwrap_or_else(|| self.layout.frame());
        let mut out = self.buffer();
        let mut ctx = Context {
            frame: &mut frame,
            packet: bytes,
            cursor: 0,
            out: &mut out,
            state: &mut self.state,
            now,
            wire_len: bytes.len() as u64,
            loop_budget: 0,
            requests: Requests::default(),
            rng: &mut self.rng,
            trace: None,
        };
        let came = self.executor.through(&mut ctx, Arrival { port, now: micros(now) });
        let Context { requests, cursor, .. } = ctx;
        match came {
            Through::Out { port } => {
                self.frames.push(frame);
                outputs.push(Output { port, bytes: out, more: 0 });
                return true;
            }
            Through::Unsupported | Through::Queue { .. } => {
                self.frames.push(frame);
                self.recycle(out);
                return false;
            }
            Through::Ingress(result) => {
                out.clear();
                out.extend_from_slice(bytes);
                let incoming =
                    Incoming { port, bytes: out, more: 0, instance: Instance::Normal, kept: None, passes: 0 };
                self.after_ingress(now, incoming, frame, (result, requests, cursor), None);
            }
            Through::Egress { port: to, result } => {
                out.clear();
                out.extend_from_slice(bytes);
                let pending = Pending {
                    port: to,
                    priority: 0,
                    bytes: out,
                    more: 0,
                    cursor,
                    frame,
                    instance: Instance::Normal,
                    rid: 0,
                    truncate: None,
                    passes: 0,
                    enqueued: now,
                    ingress_port: port,
                };
                let out = self.buffer();
                self.after_egress(now, pending, out, (result, requests, cursor), None);
            }
        }
        self.drain(now, outputs, None);
        true
    }

    fn drain(&mut self, now: u64, outputs: &mut Vec<Output>, mut trace: Option<&mut Trace>) {
        while let Some(next) = self.queue.pop_front() {
            match next {
                Next::Ingress(incoming) => self.ingress(now, incoming, trace.as_deref_mut()),
                Next::Egress(pending) => {
                    self.egress(now, pending, QueueInfo::default(), trace.as_deref_mut())
                }
                Next::Out(output) => {
                    if let Some(trace) = trace.as_deref_mut() {
                        trace.push(Event::Transmit { port: output.port, bytes: output.bytes.len() });
                    }
                    outputs.push(output);
                }
            }
        }
    }
}
