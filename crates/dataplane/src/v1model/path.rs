//! Where packets come in and leave: the whole path without queues, and its two halves with a queue between where they are not those of
//! ordinary packets.

use wire::packet::Written;

use crate::budget::Budget;
use crate::drops::DropReason;
use crate::jit::flat::{Arrival, Passage, Passed, Through};
use crate::runtime::Pipeline;
use crate::trace::{Event, Trace};
use crate::work::{Incoming, Next, Output, Pass, QueueInfo, Received, Work};

impl Pipeline {
    /// [`Pipeline::process`].
    #[inline(always)]
    pub(super) fn v1_process(
        &mut self,
        now: u64,
        port: u32,
        bytes: &[u8],
        outputs: &mut Vec<Output>,
        trace: Option<&mut Trace>,
    ) {
        if trace.is_none() && self.through(now, port, bytes, outputs) {
            return;
        }
        let packet = self.packet(bytes, 0);
        let first = Incoming::new(port, packet, Budget::new(self.work_budget));
        self.queue.push_back(Next::Ingress(first));
        self.drain(now, outputs, trace);
    }

    /// [`Pipeline::receive`], block by block.
    pub(super) fn v1_receive(
        &mut self,
        now: u64,
        port: u32,
        mut packet: Box<Written>,
        pending: &mut Vec<Box<Work>>,
    ) -> Received {
        packet.reach(self.reach);
        let budget = Budget::new(self.work_budget);
        self.ingress(now, Incoming::new(port, packet, budget), None);
        self.drain_to_queues(now, pending).map_or(Received::Other, Received::Out)
    }

    /// A packet has left the path of ordinary packets in [`Pipeline::receive`]; its headers are in the work that was last given back.
    pub(super) fn v1_leave(
        &mut self,
        now: u64,
        (port, packet): (u32, Box<Written>),
        Passed { came, cursor, work: left }: Passed,
        pending: &mut Vec<Box<Work>>,
    ) -> Received {
        let requests = std::mem::take(&mut self.requests);
        let mut work = self.work();
        match came {
            Through::Egress { port: to, result } => {
                work.take(packet, to, now, port, (cursor, Budget::new(left)));
                work.pass = Pass::default();
                self.after_egress(now, work, (result, requests), None);
            }
            Through::Ingress(result) => {
                let incoming = Incoming::new(port, packet, Budget::new(left));
                self.after_ingress(now, incoming, work, (result, requests, cursor), None);
            }
            // These are no ways off the path.
            Through::Dropped
            | Through::Refused
            | Through::Queue { .. }
            | Through::Out { .. }
            | Through::Replaced { .. } => {
                self.keep_work(work);
                self.release(packet);
            }
        }
        self.drain_to_queues(now, pending).map_or(Received::Other, Received::Out)
    }

    /// So has one in [`Pipeline::depart`], in or behind egress.
    pub(super) fn v1_leave_egress(
        &mut self,
        now: u64,
        work: Box<Work>,
        result: Result<(), DropReason>,
        pending: &mut Vec<Box<Work>>,
    ) -> Option<Box<Written>> {
        let requests = std::mem::take(&mut self.requests);
        self.after_egress(now, work, (result, requests), None);
        self.drain_to_queues(now, pending)
    }

    /// [`Pipeline::depart`], block by block.
    pub(super) fn v1_depart(
        &mut self,
        now: u64,
        work: Box<Work>,
        queue: QueueInfo,
        pending: &mut Vec<Box<Work>>,
    ) -> Option<Box<Written>> {
        self.egress(now, work, queue, None);
        self.drain_to_queues(now, pending)
    }

    fn drain_to_queues(&mut self, now: u64, pending: &mut Vec<Box<Work>>) -> Option<Box<Written>> {
        let mut out = None;
        while let Some(next) = self.queue.pop_front() {
            match next {
                Next::Ingress(incoming) => self.ingress(now, incoming, None),
                Next::Egress(work) => pending.push(work),
                Next::Out(_, packet) => out = Some(packet),
            }
        }
        out
    }

    /// The path of ordinary packets in one go, without copies and queues, if the executor has it; from where a packet
    /// leaves that path it goes on as any other. False: the executor has no such path.
    #[inline(always)]
    fn through(&mut self, now: u64, port: u32, bytes: &[u8], outputs: &mut Vec<Output>) -> bool {
        let Some(flat) = &self.flat else { return false };
        let Some(first) = self.first else { return false };
        if self.works.is_empty() {
            self.works.push(Box::new(Work::new(self.layout.frame())));
        }
        let Some(work) = self.works.last_mut() else { return false };
        let on = Passage {
            frame: &mut work.frame,
            cursor: 0,
            state: &mut self.state,
            rng: &mut self.rng,
            requests: &mut self.requests,
            now,
            wire_len: bytes.len() as u64,
            work: first,
        };
        let at = Arrival { port, now: self.clock.of(now) };
        let out = self.buffers.take();
        let (Passed { came, cursor, work: left }, out) = flat.through(on, out, bytes, at);
        if let Through::Out { port } = came {
            outputs.push(Output { port, bytes: out, zero_len: 0 });
            return true;
        }
        self.recycle(out);
        let dropped = match came {
            Through::Dropped => Some(DropReason::Ingress),
            Through::Refused => Some(DropReason::Egress),
            _ => None,
        };
        if let Some(reason) = dropped {
            self.drop_packet(reason, None);
            return true;
        }
        self.leave(now, (port, bytes), Passed { came, cursor, work: left });
        self.drain(now, outputs, None);
        true
    }

    /// A packet has left the path of ordinary packets; its headers are in the work that was last given back.
    #[inline(never)]
    fn leave(&mut self, now: u64, (port, bytes): (u32, &[u8]), passed: Passed) {
        let Passed { came, cursor, work: left } = passed;
        let requests = std::mem::take(&mut self.requests);
        let mut work = self.work();
        let packet = self.packet(bytes, 0);
        match came {
            Through::Ingress(result) => {
                let incoming = Incoming::new(port, packet, Budget::new(left));
                self.after_ingress(now, incoming, work, (result, requests, cursor), None);
            }
            Through::Egress { port: to, result } => {
                work.take(packet, to, now, port, (cursor, Budget::new(left)));
                work.pass = Pass::default();
                self.after_egress(now, work, (result, requests), None);
            }
            // The whole path leads to no queue, and its end is no way off it.
            Through::Dropped
            | Through::Refused
            | Through::Queue { .. }
            | Through::Out { .. }
            | Through::Replaced { .. } => self.keep_work(work),
        }
    }

    fn drain(&mut self, now: u64, outputs: &mut Vec<Output>, mut trace: Option<&mut Trace>) {
        while let Some(next) = self.queue.pop_front() {
            match next {
                Next::Ingress(incoming) => self.ingress(now, incoming, trace.as_deref_mut()),
                Next::Egress(work) => self.egress(now, work, QueueInfo::default(), trace.as_deref_mut()),
                Next::Out(port, packet) => {
                    let mut bytes = self.buffer();
                    bytes.extend_from_slice(packet.bytes());
                    let zero_len = packet.zeros();
                    self.release(packet);
                    if let Some(trace) = trace.as_deref_mut() {
                        trace.push(Event::Transmit { port, bytes: bytes.len() });
                    }
                    outputs.push(Output { port, bytes, zero_len });
                }
            }
        }
    }
}
