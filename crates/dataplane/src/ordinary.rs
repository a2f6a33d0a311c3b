//! Where packets come into a switch with queues, and leave it. Ordinary ones take native code from the first bit of the parser to the
//! queue, or to the last bit of the deparser, and all of that is inlined into the switch. What leaves their path goes on in the
//! architecture's ([`PacketPath`]).
//!
//! [`PacketPath`]: crate::runtime::PacketPath

use wire::packet::Written;

use crate::budget::Budget;
use crate::context::DropReason;
use crate::jit::flat::{Arrival, Departure, Passage, Passed, Through};
use crate::runtime::Pipeline;
use crate::work::{Pass, QueueInfo, Received, Work};

impl Pipeline {
    /// Ingress alone, for a switch with queues: an ordinary packet is given back for its queue; whatever else is for queues
    /// is appended to `pending`. Payload of the packet that is only counted cannot be parsed. Where `at_once` says that a packet
    /// for this port and of this priority need not wait, egress follows at once.
    #[inline]
    pub fn receive(
        &mut self,
        now: u64,
        port: u32,
        mut packet: Box<Written>,
        pending: &mut Vec<Box<Work>>,
        at_once: &mut impl FnMut(u32, u32) -> bool,
    ) -> Received {
        let (Some(flat), Some(first)) = (&self.flat, self.first) else {
            let path = self.path;
            return path.receive(self, now, (port, packet), pending, at_once);
        };
        packet.reach(self.reach);
        // It stays where it is for a packet that goes through.
        if self.works.is_empty() {
            self.works.push(Box::new(Work::new(self.layout.frame())));
        }
        let Some(work) = self.works.last_mut() else { return Received::Other };
        self.headers.clear();
        let on = Passage {
            frame: &mut work.frame,
            cursor: 0,
            state: &mut self.state,
            rng: &mut self.rng,
            requests: &mut self.requests,
            now,
            wire_len: packet.wire_len(),
            work: first,
        };
        let at = Arrival { port, now: self.clock.of(now) };
        let on = (on, &mut self.headers);
        let passed = flat.receive(on, packet.room(), at, at_once);
        let Passed { came, cursor, work: left } = passed;
        match came {
            Through::Replaced { headers, .. } => {
                packet.replaced_front(cursor.div_ceil(8), headers);
                Received::Out(packet)
            }
            Through::Out { .. } => {
                packet.replace_front(cursor.div_ceil(8), &self.headers);
                Received::Out(packet)
            }
            Through::Queue { port: to, priority } => {
                let mut work = self.work();
                work.take(packet, to, now, port, (cursor, Budget::new(left)));
                work.pass = Pass::default();
                work.priority = priority;
                Received::Queue(work)
            }
            Through::Dropped => {
                self.drop_packet(DropReason::Ingress, None);
                self.release(packet);
                Received::Other
            }
            Through::Refused => {
                self.drop_packet(DropReason::Egress, None);
                self.release(packet);
                Received::Other
            }
            Through::Egress { .. } | Through::Ingress(_) => {
                let path = self.path;
                path.leave(self, now, (port, packet), passed, pending)
            }
        }
    }

    /// Egress of a packet that has left its queue; what leaves, if anything. Clones and what goes through ingress once more
    /// are appended to `pending`.
    #[inline]
    pub fn depart(
        &mut self,
        now: u64,
        mut work: Box<Work>,
        queue: QueueInfo,
        pending: &mut Vec<Box<Work>>,
    ) -> Option<Box<Written>> {
        self.spent = self.costs.egress;
        if let Some(flat) = &self.flat
            && work.pass.truncate.is_none()
        {
            let before = work.budget.left();
            let packet = work.packet.as_deref_mut()?;
            self.headers.clear();
            let on = Passage {
                frame: &mut work.frame,
                cursor: work.cursor,
                state: &mut self.state,
                rng: &mut self.rng,
                requests: &mut self.requests,
                now,
                wire_len: packet.wire_len(),
                work: before,
            };
            let departure = Departure {
                port: work.port,
                rid: work.pass.rid,
                instance: work.pass.instance,
                now: self.clock.of(now),
                enqueued: self.clock.of(work.enqueued),
                waited: self.clock.of(now.saturating_sub(work.enqueued)),
                enq_qdepth: queue.enq_qdepth,
                deq_qdepth: queue.deq_qdepth,
            };
            let on = (on, &mut self.headers);
            let Passed { came, cursor, work: left } = flat.depart(on, packet.room(), &departure);
            // What it has cost is not there for those that share the budget, wherever it ended.
            if left != before {
                self.spent += before - left;
                work.budget.set(left);
            }
            match came {
                Through::Replaced { headers, .. } => {
                    let mut packet = work.packet.take()?;
                    self.keep_work(work);
                    packet.replaced_front(cursor.div_ceil(8), headers);
                    return Some(packet);
                }
                Through::Out { .. } => {
                    let mut packet = work.packet.take()?;
                    self.keep_work(work);
                    packet.replace_front(cursor.div_ceil(8), &self.headers);
                    return Some(packet);
                }
                Through::Refused => {
                    self.drop_packet(DropReason::Egress, None);
                    self.discard(work);
                    return None;
                }
                Through::Egress { result, .. } => {
                    let path = self.path;
                    return path.leave_egress(self, now, work, result, pending);
                }
                // The second half begins at egress.
                Through::Ingress(_) | Through::Dropped | Through::Queue { .. } => {}
            }
        }
        let path = self.path;
        path.depart(self, now, work, queue, pending)
    }
}
