//! One pass of a packet through ingress or egress, and what becomes of the packet after it.

use p4lang::ir::CloneKind;

use super::path::{Incoming, Next, Output, Pending, QueueInfo, wire_len};
use super::{DROP_PORT, Instance, MAX_PASSES, micros};
use crate::context::{DropReason, Requests};
use crate::runtime::Pipeline;
use crate::trace::{Event, Trace, note};

impl Pipeline {
    pub(crate) fn ingress(&mut self, now: u64, incoming: Incoming, mut trace: Option<&mut Trace>) {
        let Incoming { port, bytes, more, instance, kept, passes } = incoming;
        if let Some(trace) = trace.as_deref_mut() {
            trace.push(Event::Receive { port, bytes: bytes.len(), instance: instance.name() });
        }
        let mut frame = self.frame();
        if let Some((from, list)) = kept {
            self.keep(&from, &mut frame, list);
            self.frames.push(from);
        }
        self.set(&mut frame, |s| s.ingress_port, u64::from(port));
        self.set(&mut frame, |s| s.instance_type, instance as u64);
        self.set(&mut frame, |s| s.packet_length, wire_len(&bytes, more));
        self.set(&mut frame, |s| s.ingress_global_timestamp, micros(now));
        let v1 = *self.v1();
        let layout = self.layout.clone();
        let mut out = self.buffer();
        let (result, requests, cursor) =
            self.pass((now, &mut frame, &bytes, more, 0), &mut out, trace.as_deref_mut(), |e, ctx| {
                let error = e.parse(ctx, v1.parser)?;
                if let Some(var) = v1.standard.parser_error {
                    layout.set_u64(ctx.frame, var, u64::from(error));
                }
                e.control(ctx, v1.verify_checksum)?;
                e.control(ctx, v1.ingress)
            });
        self.recycle(out);
        let incoming = Incoming { port, bytes, more, instance, kept: None, passes };
        self.after_ingress(now, incoming, frame, (result, requests, cursor), trace);
    }

    /// What becomes of a packet whose ingress has run.
    pub(crate) fn after_ingress(
        &mut self,
        now: u64,
        incoming: Incoming,
        frame: Box<[u8]>,
        (result, requests, cursor): (Result<(), DropReason>, Requests, usize),
        mut trace: Option<&mut Trace>,
    ) {
        let Incoming { port, bytes, more, passes, .. } = incoming;
        if let Err(reason) = result {
            self.drop_packet(reason, trace);
            self.frames.push(frame);
            self.recycle(bytes);
            return;
        }
        if let Some((CloneKind::IngressToEgress, session, list)) = requests.clone {
            self.clone_to_egress(
                now,
                (port, &bytes, more, &frame, passes),
                session,
                list,
                trace.as_deref_mut(),
            );
        }
        if let Some(list) = requests.resubmit {
            if passes >= MAX_PASSES {
                self.drop_packet(DropReason::Recirculation, trace);
                self.frames.push(frame);
                self.recycle(bytes);
                return;
            }
            note(&mut trace, || "resubmitted to ingress".into());
            let kept = self.kept(frame, list);
            self.queue.push_back(Next::Ingress(Incoming {
                port,
                bytes,
                more,
                instance: Instance::Resubmitted,
                kept,
                passes: passes + 1,
            }));
            return;
        }
        let group = self.get(&frame, |s| s.mcast_grp);
        let spec = self.get(&frame, |s| s.egress_spec);
        let priority = self.get(&frame, |s| s.priority);
        let truncate = requests.truncate;
        if group != 0 {
            let copies = self.replication.copies(group);
            note(&mut trace, || format!("multicast group {group}: {} copies", copies.len()));
            if copies.is_empty() {
                self.drop_packet(DropReason::EmptyGroup, trace.as_deref_mut());
            }
            let replaced = u64::from(!copies.is_empty());
            for (rid, to) in copies {
                if !self.may_copy(trace.as_deref_mut()) {
                    break;
                }
                let mut copy = self.frame();
                copy.copy_from_slice(&frame);
                let mut data = self.buffer();
                data.extend_from_slice(&bytes);
                self.queue.push_back(Next::Egress(Pending {
                    port: to,
                    priority,
                    bytes: data,
                    more,
                    cursor,
                    frame: copy,
                    instance: Instance::Replicated,
                    rid,
                    truncate,
                    passes,
                    enqueued: now,
                    ingress_port: port,
                }));
            }
            // The copies take the original's place.
            self.made -= replaced;
            self.frames.push(frame);
            self.recycle(bytes);
            return;
        }
        if spec == DROP_PORT {
            self.drop_packet(DropReason::Ingress, trace);
            self.frames.push(frame);
            self.recycle(bytes);
            return;
        }
        // Where the packet came from shows in ingress only: the reference switch sets this before it queues a packet.
        self.queue.push_back(Next::Egress(Pending {
            port: spec,
            priority,
            bytes,
            more,
            cursor,
            frame,
            instance: Instance::Normal,
            rid: 0,
            truncate,
            passes,
            enqueued: now,
            ingress_port: port,
        }));
    }

    pub(crate) fn egress(
        &mut self,
        now: u64,
        mut pending: Pending,
        queue: QueueInfo,
        mut trace: Option<&mut Trace>,
    ) {
        let Pending { port, cursor, instance, rid, enqueued, .. } = pending;
        let mut frame = std::mem::take(&mut pending.frame);
        self.set(&mut frame, |s| s.egress_port, u64::from(port));
        self.set(&mut frame, |s| s.egress_spec, 0);
        self.set(&mut frame, |s| s.egress_rid, u64::from(rid));
        self.set(&mut frame, |s| s.instance_type, instance as u64);
        self.set(&mut frame, |s| s.enq_timestamp, micros(enqueued));
        self.set(&mut frame, |s| s.deq_timedelta, micros(now.saturating_sub(enqueued)));
        self.set(&mut frame, |s| s.enq_qdepth, u64::from(queue.enq_qdepth));
        self.set(&mut frame, |s| s.deq_qdepth, u64::from(queue.deq_qdepth));
        self.set(&mut frame, |s| s.egress_global_timestamp, micros(now));
        let mut out = self.buffer();
        let v1 = *self.v1();
        let (result, requests, cursor) = self.pass(
            (now, &mut frame, &pending.bytes, pending.more, cursor),
            &mut out,
            trace.as_deref_mut(),
            |e, ctx| e.control(ctx, v1.egress),
        );
        pending.frame = frame;
        self.after_egress(now, pending, out, (result, requests, cursor), trace);
    }

    /// What becomes of a packet whose egress has run. `out`: a buffer for the deparser.
    pub(crate) fn after_egress(
        &mut self,
        now: u64,
        pending: Pending,
        mut out: Vec<u8>,
        (result, requests, cursor): (Result<(), DropReason>, Requests, usize),
        mut trace: Option<&mut Trace>,
    ) {
        let Pending { port, bytes, mut more, mut frame, truncate, passes, ingress_port, .. } = pending;
        if let Err(reason) = result {
            self.drop_packet(reason, trace);
            self.frames.push(frame);
            self.recycle(bytes);
            self.recycle(out);
            return;
        }
        if let Some((CloneKind::EgressToEgress, session, list)) = requests.clone {
            self.clone_in_egress(
                now,
                (ingress_port, &bytes, more, cursor, &frame, passes),
                session,
                list,
                &mut trace,
            );
        }
        if self.get(&frame, |s| s.egress_spec) == DROP_PORT {
            self.drop_packet(DropReason::Egress, trace);
            self.frames.push(frame);
            self.recycle(bytes);
            self.recycle(out);
            return;
        }
        let v1 = *self.v1();
        let (result, _, cursor) =
            self.pass((now, &mut frame, &bytes, more, cursor), &mut out, trace.as_deref_mut(), |e, ctx| {
                e.control(ctx, v1.compute_checksum)?;
                e.control(ctx, v1.deparser)
            });
        if let Err(reason) = result {
            self.drop_packet(reason, trace);
            self.frames.push(frame);
            self.recycle(bytes);
            self.recycle(out);
            return;
        }
        out.extend_from_slice(bytes.get(cursor.div_ceil(8)..).unwrap_or(&[]));
        self.recycle(bytes);
        if let Some(limit) = requests.truncate.or(truncate) {
            more = more.min(limit.saturating_sub(out.len() as u32));
            out.truncate(limit as usize);
        }
        match requests.recirculate {
            Some(_) if passes >= MAX_PASSES => {
                self.drop_packet(DropReason::Recirculation, trace);
                self.frames.push(frame);
                self.recycle(out);
            }
            Some(list) => {
                note(&mut trace, || "recirculated to ingress".into());
                let kept = self.kept(frame, list);
                self.queue.push_back(Next::Ingress(Incoming {
                    port: ingress_port,
                    bytes: out,
                    more,
                    instance: Instance::Recirculated,
                    kept,
                    passes: passes + 1,
                }));
            }
            None => {
                self.frames.push(frame);
                self.queue.push_back(Next::Out(Output { port, bytes: out, more }));
            }
        }
    }
}
