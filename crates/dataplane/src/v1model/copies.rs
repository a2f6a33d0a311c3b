//! Clones and multicast copies.

use super::path::{Next, Pending, wire_len};
use super::{Instance, MAX_COPIES, MAX_PASSES};
use crate::context::DropReason;
use crate::replication::Mirror;
use crate::runtime::Pipeline;
use crate::trace::{Trace, note};

impl Pipeline {
    /// Whether the packet may turn into one more; if not, that and the copies after it are counted as one drop.
    pub(crate) fn may_copy(&mut self, trace: Option<&mut Trace>) -> bool {
        self.made += 1;
        if self.copies >= MAX_COPIES {
            self.drop_packet(DropReason::Copies, trace);
            return false;
        }
        self.copies += 1;
        true
    }

    /// An ingress clone: the packet as it came, parsed again, for the session's ports.
    pub(crate) fn clone_to_egress(
        &mut self,
        now: u64,
        (port, bytes, more, frame, passes): (u32, &[u8], u32, &[u8], u32),
        session: u32,
        list: Option<u32>,
        mut trace: Option<&mut Trace>,
    ) {
        let targets = self.replication.mirror(session);
        note(&mut trace, || format!("clone to session {session}: {} copies", targets.len()));
        for Mirror { rid, port: to, priority, truncate } in targets {
            if !self.may_copy(trace.as_deref_mut()) {
                return;
            }
            let parser = self.v1().parser;
            let mut copy = self.frame();
            self.set(&mut copy, |s| s.ingress_port, u64::from(port));
            self.set(&mut copy, |s| s.packet_length, wire_len(bytes, more));
            let mut out = self.buffer();
            let (result, _, cursor) =
                self.pass((now, &mut copy, bytes, more, 0), &mut out, None, |e, ctx| e.parse(ctx, parser));
            self.recycle(out);
            self.forget_metadata(&mut copy, frame, list, wire_len(bytes, more));
            if let Err(reason) = result {
                self.drop_packet(reason, trace.as_deref_mut());
                self.frames.push(copy);
                continue;
            }
            let mut data = self.buffer();
            data.extend_from_slice(bytes);
            self.queue.push_back(Next::Egress(Pending {
                port: to,
                priority,
                bytes: data,
                more,
                cursor,
                frame: copy,
                instance: Instance::IngressClone,
                rid,
                truncate,
                passes,
                enqueued: now,
                ingress_port: port,
            }));
        }
    }

    /// An egress clone: headers as they are now, metadata but for the list as at the start.
    pub(crate) fn clone_in_egress(
        &mut self,
        now: u64,
        (ingress_port, bytes, more, cursor, frame, passes): (u32, &[u8], u32, usize, &[u8], u32),
        session: u32,
        list: Option<u32>,
        trace: &mut Option<&mut Trace>,
    ) {
        let targets = self.replication.mirror(session);
        note(trace, || format!("clone to session {session}: {} copies", targets.len()));
        for Mirror { rid, port: to, priority, truncate } in targets {
            // A clone that clones itself ends here.
            if passes >= MAX_PASSES {
                self.made += 1;
                self.drop_packet(DropReason::Recirculation, trace.as_deref_mut());
                return;
            }
            if !self.may_copy(trace.as_deref_mut()) {
                return;
            }
            let mut copy = self.frame();
            copy.copy_from_slice(frame);
            self.forget_metadata(&mut copy, frame, list, wire_len(bytes, more));
            let mut data = self.buffer();
            data.extend_from_slice(bytes);
            self.queue.push_back(Next::Egress(Pending {
                port: to,
                priority,
                bytes: data,
                more,
                cursor,
                frame: copy,
                instance: Instance::EgressClone,
                rid,
                truncate,
                passes: passes + 1,
                enqueued: now,
                ingress_port,
            }));
        }
    }
}
