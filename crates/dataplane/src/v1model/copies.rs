//! Clones and multicast copies.

use wire::packet::Written;

use super::{Instance, MAX_COPIES, MAX_PASSES};
use crate::budget::Budget;
use crate::drops::DropReason;
use crate::replication::Mirror;
use crate::runtime::Pipeline;
use crate::trace::{Trace, note};
use crate::work::{Next, Pass, Work};

/// Work of a copy beside its bytes, its frame and its pass through egress.
const COPY: u64 = 256;

impl Pipeline {
    /// Whether the packet may turn into one more, of so many bytes, and the copy's budget then; if not, that and the copies after
    /// it are counted as one drop.
    fn may_copy(&mut self, of: &mut Budget, bytes: u64, trace: Option<&mut Trace>) -> Option<Budget> {
        self.made += 1;
        if of.copies() >= MAX_COPIES {
            self.drop_packet(DropReason::Copies, trace);
            return None;
        }
        let cost = COPY + bytes / 16 + self.layout.frame_len as u64 / 8 + self.costs.egress;
        self.spent += cost;
        if !of.charge(cost) {
            self.drop_packet(DropReason::WorkBudget, trace);
            return None;
        }
        Some(of.copy())
    }

    /// Work of forgetting a clone's metadata.
    fn forgetting(&self) -> u64 {
        4 * self.program.vars.len() as u64
    }

    /// A copy for each member of a group, in the original's place.
    pub(crate) fn multicast(&mut self, mut work: Box<Work>, group: u32, mut trace: Option<&mut Trace>) {
        let Some(packet) = work.packet.take() else { return };
        let copies = self.replication.copies(group);
        note(&mut trace, || format!("multicast group {group}: {} copies", copies.len()));
        if copies.is_empty() {
            self.drop_packet(DropReason::EmptyGroup, trace.as_deref_mut());
        }
        let replaced = u64::from(!copies.is_empty());
        for (rid, to) in copies {
            let of = &mut work.budget;
            let Some(budget) = self.may_copy(of, packet.wire_len(), trace.as_deref_mut()) else { break };
            let mut copy = self.work();
            copy.budget = budget;
            copy.frame.copy_from_slice(&work.frame);
            copy.packet = Some(self.copy_of(&packet));
            (copy.port, copy.priority, copy.cursor) = (to, work.priority, work.cursor);
            (copy.enqueued, copy.ingress_port) = (work.enqueued, work.ingress_port);
            copy.pass = Pass { instance: Instance::Replicated as u32, rid, ..work.pass };
            self.queue.push_back(Next::Egress(copy));
        }
        // The copies take the original's place.
        self.made -= replaced;
        work.packet = Some(packet);
        self.discard(work);
    }

    /// An ingress clone: the packet as it came, parsed again, for the session's ports. `work` has what ingress made of it.
    pub(crate) fn clone_to_egress(
        &mut self,
        now: u64,
        packet: &Written,
        work: &mut Work,
        session: u32,
        list: Option<u32>,
        mut trace: Option<&mut Trace>,
    ) {
        let (port, length, parser) = (work.ingress_port, packet.wire_len(), self.v1().parser);
        let targets = self.replication.mirror(session);
        note(&mut trace, || format!("clone to session {session}: {} copies", targets.len()));
        for Mirror { rid, port: to, priority, truncate } in targets {
            let Some(budget) = self.may_copy(&mut work.budget, length, trace.as_deref_mut()) else { return };
            let mut copy = self.empty_work();
            copy.budget = budget;
            self.set(&mut copy.frame, |s| s.ingress_port, u64::from(port));
            self.set(&mut copy.frame, |s| s.packet_length, length);
            let Work { frame, budget, .. } = &mut *copy;
            if !budget.charge(self.costs.parser + self.forgetting()) {
                self.drop_packet(DropReason::WorkBudget, trace.as_deref_mut());
                self.keep_work(copy);
                return;
            }
            let (result, _, cursor) =
                self.pass(now, (frame, packet, 0), budget, None, |e, ctx| e.parse(ctx, parser));
            self.forget_metadata(&mut copy.frame, &work.frame, list, length);
            if let Err(reason) = result {
                self.drop_packet(reason, trace.as_deref_mut());
                self.keep_work(copy);
                continue;
            }
            copy.packet = Some(self.copy_of(packet));
            (copy.port, copy.priority, copy.cursor) = (to, priority, cursor);
            (copy.enqueued, copy.ingress_port) = (now, port);
            copy.pass =
                Pass { instance: Instance::IngressClone as u32, rid, truncate, passes: work.pass.passes };
            self.queue.push_back(Next::Egress(copy));
        }
    }

    /// An egress clone: headers as they are now, metadata but for the list as at the start.
    pub(crate) fn clone_in_egress(
        &mut self,
        now: u64,
        work: &mut Work,
        session: u32,
        list: Option<u32>,
        trace: &mut Option<&mut Trace>,
    ) {
        let Work { packet: Some(packet), budget, frame, pass, cursor, ingress_port, .. } = work else {
            return;
        };
        let targets = self.replication.mirror(session);
        note(trace, || format!("clone to session {session}: {} copies", targets.len()));
        for Mirror { rid, port: to, priority, truncate } in targets {
            // A clone that clones itself ends here.
            if pass.passes >= MAX_PASSES {
                self.made += 1;
                self.drop_packet(DropReason::Recirculation, trace.as_deref_mut());
                return;
            }
            let bytes = packet.wire_len() + 16 * self.forgetting();
            let Some(of) = self.may_copy(budget, bytes, trace.as_deref_mut()) else { return };
            let mut copy = self.work();
            copy.budget = of;
            copy.frame.copy_from_slice(frame);
            self.forget_metadata(&mut copy.frame, frame, list, packet.wire_len());
            copy.packet = Some(self.copy_of(packet));
            (copy.port, copy.priority, copy.cursor) = (to, priority, *cursor);
            (copy.enqueued, copy.ingress_port) = (now, *ingress_port);
            copy.pass =
                Pass { instance: Instance::EgressClone as u32, rid, truncate, passes: pass.passes + 1 };
            self.queue.push_back(Next::Egress(copy));
        }
    }
}
