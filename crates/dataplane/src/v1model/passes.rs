//! One pass of a packet through ingress or egress, and what becomes of the packet after it.

use p4lang::ir::CloneKind;

use super::{DROP_PORT, Instance, MAX_PASSES};
use crate::context::Requests;
use crate::drops::DropReason;
use crate::runtime::Pipeline;
use crate::trace::{Event, Trace, note};
use crate::work::{Incoming, Next, Pass, QueueInfo, Work};

impl Pipeline {
    pub(crate) fn ingress(&mut self, now: u64, incoming: Incoming, mut trace: Option<&mut Trace>) {
        let Incoming { port, mut packet, instance, kept, passes, mut budget } = incoming;
        let cost = if passes == 0 { self.first_pass } else { self.costs.pass(self.layout.frame_len) };
        self.spent += cost;
        if !budget.charge(cost) {
            self.drop_packet(DropReason::WorkBudget, trace);
            self.release(packet);
            if let Some((from, _)) = kept {
                self.keep_work(from);
            }
            return;
        }
        packet.reach(self.reach);
        if let Some(trace) = trace.as_deref_mut() {
            trace.push(Event::Receive {
                port,
                bytes: packet.bytes().len(),
                instance: Instance::name_of(instance),
            });
        }
        let mut work = self.empty_work();
        let frame = &mut work.frame;
        if let Some((from, list)) = kept {
            self.keep(&from.frame, frame, list);
            self.keep_work(from);
        }
        self.set(frame, |s| s.instance_type, u64::from(instance));
        self.set(frame, |s| s.packet_length, packet.wire_len());
        // The reference switch sets these when a packet comes in, and clears them for one that comes again.
        if passes == 0 {
            self.set(frame, |s| s.ingress_port, u64::from(port));
            self.set(frame, |s| s.ingress_global_timestamp, self.clock.of(now));
        }
        let v1 = *self.v1();
        let layout = self.layout.clone();
        let (result, requests, cursor) =
            self.pass(now, (frame, &packet, 0), &mut budget, trace.as_deref_mut(), |e, ctx| {
                let error = e.parse(ctx, v1.parser)?;
                if let Some(var) = v1.standard.parser_error {
                    layout.set_u64(ctx.frame, var, u64::from(error));
                }
                e.control(ctx, v1.verify_checksum)?;
                e.control(ctx, v1.ingress)
            });
        let incoming = Incoming { port, packet, instance, kept: None, passes, budget };
        self.after_ingress(now, incoming, work, (result, requests, cursor), trace);
    }

    /// What becomes of a packet whose ingress has run on the frame of `work`.
    pub(crate) fn after_ingress(
        &mut self,
        now: u64,
        incoming: Incoming,
        mut work: Box<Work>,
        (result, requests, cursor): (Result<(), DropReason>, Requests, usize),
        mut trace: Option<&mut Trace>,
    ) {
        let Incoming { port, packet, passes, budget, .. } = incoming;
        work.budget = budget;
        (work.ingress_port, work.enqueued, work.cursor) = (port, now, cursor);
        work.pass = Pass { truncate: requests.truncate, passes, ..Pass::default() };
        if let Err(reason) = result {
            self.drop_packet(reason, trace);
            work.packet = Some(packet);
            self.discard(work);
            return;
        }
        if let Some((CloneKind::IngressToEgress, session, list)) = requests.clone {
            self.clone_to_egress(now, &packet, &mut work, session, list, trace.as_deref_mut());
        }
        if let Some(list) = requests.resubmit {
            if passes >= MAX_PASSES {
                self.drop_packet(DropReason::Recirculation, trace);
                work.packet = Some(packet);
                self.discard(work);
                return;
            }
            note(&mut trace, || "resubmitted to ingress".into());
            let budget = std::mem::take(&mut work.budget);
            let kept = self.kept(work, list);
            self.queue.push_back(Next::Ingress(Incoming {
                port,
                packet,
                instance: Instance::Resubmitted as u32,
                kept,
                passes: passes + 1,
                budget,
            }));
            return;
        }
        let group = self.get(&work.frame, |s| s.mcast_grp);
        let spec = self.get(&work.frame, |s| s.egress_spec);
        work.priority = self.get(&work.frame, |s| s.priority);
        work.packet = Some(packet);
        if group != 0 {
            self.multicast(work, group, trace);
            return;
        }
        if spec == DROP_PORT {
            self.drop_packet(DropReason::Ingress, trace);
            self.discard(work);
            return;
        }
        // Where the packet came from shows in ingress only: the reference switch sets this before it queues a packet.
        work.port = spec;
        self.queue.push_back(Next::Egress(work));
    }

    pub(crate) fn egress(
        &mut self,
        now: u64,
        mut work: Box<Work>,
        queue: QueueInfo,
        mut trace: Option<&mut Trace>,
    ) {
        let v1 = *self.v1();
        let Work { port, cursor, enqueued, pass: Pass { instance, rid, .. }, .. } = *work;
        let Work { frame, packet: Some(packet), budget, .. } = &mut *work else { return };
        self.set(frame, |s| s.egress_port, u64::from(port));
        self.set(frame, |s| s.egress_spec, 0);
        self.set(frame, |s| s.egress_rid, u64::from(rid));
        self.set(frame, |s| s.instance_type, u64::from(instance));
        self.set(frame, |s| s.enq_timestamp, self.clock.of(enqueued));
        self.set(frame, |s| s.deq_timedelta, self.clock.of(now.saturating_sub(enqueued)));
        self.set(frame, |s| s.enq_qdepth, u64::from(queue.enq_qdepth));
        self.set(frame, |s| s.deq_qdepth, u64::from(queue.deq_qdepth));
        self.set(frame, |s| s.egress_global_timestamp, self.clock.of(now));
        let (result, requests, cursor) =
            self.pass(now, (frame, packet, cursor), budget, trace.as_deref_mut(), |e, ctx| {
                e.control(ctx, v1.egress)
            });
        work.cursor = cursor;
        self.after_egress(now, work, (result, requests), trace);
    }

    /// What becomes of a packet whose egress has run.
    pub(crate) fn after_egress(
        &mut self,
        now: u64,
        mut work: Box<Work>,
        (result, requests): (Result<(), DropReason>, Requests),
        mut trace: Option<&mut Trace>,
    ) {
        if let Err(reason) = result {
            self.drop_packet(reason, trace);
            self.discard(work);
            return;
        }
        if let Some((CloneKind::EgressToEgress, session, list)) = requests.clone {
            self.clone_in_egress(now, &mut work, session, list, &mut trace);
        }
        if self.get(&work.frame, |s| s.egress_spec) == DROP_PORT {
            self.drop_packet(DropReason::Egress, trace);
            self.discard(work);
            return;
        }
        let v1 = *self.v1();
        let (cursor, truncate) = (work.cursor, requests.truncate.or(work.pass.truncate));
        let Work { frame, packet: Some(packet), budget, .. } = &mut *work else { return };
        let (result, _, cursor) =
            self.pass(now, (frame, packet, cursor), budget, trace.as_deref_mut(), |e, ctx| {
                e.control(ctx, v1.compute_checksum)?;
                e.control(ctx, v1.deparser)
            });
        if let Err(reason) = result {
            self.drop_packet(reason, trace);
            self.discard(work);
            return;
        }
        packet.replace_front(cursor.div_ceil(8), &self.headers);
        if let Some(limit) = truncate {
            packet.truncate(limit);
        }
        let (port, passes, ingress_port) = (work.port, work.pass.passes, work.ingress_port);
        match requests.recirculate {
            Some(_) if passes >= MAX_PASSES => {
                self.drop_packet(DropReason::Recirculation, trace);
                self.discard(work);
            }
            Some(list) => {
                note(&mut trace, || "recirculated to ingress".into());
                let Some(packet) = work.packet.take() else { return };
                let budget = std::mem::take(&mut work.budget);
                let kept = self.kept(work, list);
                self.queue.push_back(Next::Ingress(Incoming {
                    port: ingress_port,
                    packet,
                    instance: Instance::Recirculated as u32,
                    kept,
                    passes: passes + 1,
                    budget,
                }));
            }
            None => {
                let Some(packet) = work.packet.take() else { return };
                self.keep_work(work);
                self.queue.push_back(Next::Out(port, packet));
            }
        }
    }
}
