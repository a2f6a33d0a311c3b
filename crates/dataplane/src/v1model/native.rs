//! The path of an ordinary packet as one function, or as two with a queue between: from the first bit of the parser to the last of
//! the deparser, with the standard metadata set as the pipeline does.
//!
//! Where the packet turns out not to be ordinary (dropped, to be cloned, multicast, resubmitted...) the function returns, and the
//! pipeline goes on from there. [`stage`] says where that is.

use std::collections::HashSet;
use std::mem::offset_of;

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{I8X16, I64};
use cranelift_codegen::ir::{InstBuilder, MemFlagsData, Value};
use p4lang::ir::{ControlId, ExternCall, HeaderId, Place, Program, Stmt, VarHome, VarId};
use p4lang::lower::v1model::{StandardMetadata, V1Model};

use super::DROP_PORT;
use crate::cost::{blocks, each_stmt};
use crate::executor::{Part, View};
use crate::jit::JitError;
use crate::jit::function::{Gen, Region};
use crate::jit::native::{Departing, Native, stage};
use crate::jit::{helpers, packet};
use crate::layout::Slot;
use crate::reads::reads_of;

/// Persistent parts up to this size are zeroed in place.
const INLINE_ZERO: u32 = 1024;

/// Fills a function's body in.
pub(super) fn build(g: &mut Gen<'_, '_>, view: &View, part: Part) -> Result<(), JitError> {
    let Some(v1) = view.downcast_ref::<V1Model>() else {
        return Err(JitError::Malformed("the program is not for v1model"));
    };
    match part {
        Part::Through => g.through(v1),
        Part::Receive => g.receive(v1),
        Part::Depart => g.depart(v1),
    }
}

/// Statements and parser states of a program whose global variables native code keeps in registers; in longer ones that takes the
/// compiler more time than there is for a program.
const SHORT: usize = 3000;

fn is_short(program: &Program) -> bool {
    let mut count = program.parsers.iter().map(|parser| parser.states.len()).sum::<usize>();
    blocks(program).for_each(|block| each_stmt(block, &mut |_| count += 1));
    count <= SHORT
}

impl Gen<'_, '_> {
    /// The body of the function for the whole path.
    fn through(&mut self, v1: &V1Model) -> Result<(), JitError> {
        // Where the whole path is one function, and nothing but a drop leads away from it, nobody reads the frame after it.
        if is_short(self.program) && self.stays(v1) {
            (self.from_zero, self.in_frame) = (true, Some(HashSet::new()));
        }
        self.first_half(v1)?;
        if !self.alive {
            return Ok(());
        }
        let standard = &v1.standard;
        let zero = self.iconst(0);
        for var in [
            standard.egress_rid,
            standard.instance_type,
            standard.deq_timedelta,
            standard.enq_qdepth,
            standard.deq_qdepth,
        ] {
            self.set_standard(standard, var, zero);
        }
        let now = self.load_ctx_fixed(offset_of!(Native, now));
        self.set_standard(standard, standard.enq_timestamp, now);
        self.second_half(v1)?;
        if self.alive { self.deparse(v1, true) } else { Ok(()) }
    }

    /// The body of the function for ingress alone.
    fn receive(&mut self, v1: &V1Model) -> Result<(), JitError> {
        self.from_zero = is_short(self.program);
        if self.from_zero && self.stays(v1) {
            self.in_frame = Some(reads_of(self.program, &[v1.egress, v1.compute_checksum, v1.deparser]));
        }
        self.first_half(v1)?;
        if !self.alive {
            return Ok(());
        }
        if let Some(priority) = v1.standard.priority {
            let priority = self.standard(priority);
            self.store_ctx(offset_of!(Native, priority), 4, priority);
        }
        self.set_stage(stage::QUEUE);
        Ok(())
    }

    /// The body of the function for a packet that leaves its queue.
    fn depart(&mut self, v1: &V1Model) -> Result<(), JitError> {
        let standard = &v1.standard;
        let departing = self.load_ctx_fixed(offset_of!(Native, departing));
        for (var, offset) in [
            (standard.egress_rid, offset_of!(Departing, rid)),
            (standard.instance_type, offset_of!(Departing, instance)),
            (standard.enq_timestamp, offset_of!(Departing, enqueued)),
            (standard.deq_timedelta, offset_of!(Departing, waited)),
            (standard.enq_qdepth, offset_of!(Departing, enq_qdepth)),
            (standard.deq_qdepth, offset_of!(Departing, deq_qdepth)),
        ] {
            if var.is_some() {
                let value = self.load_fixed(I64, Region::Context, departing, offset as i32);
                self.set_standard(standard, var, value);
            }
        }
        self.second_half(v1)?;
        if self.alive { self.deparse(v1, false) } else { Ok(()) }
    }

    /// Whether nothing that the program does leads off the path but a drop.
    fn stays(&self, v1: &V1Model) -> bool {
        let mut stays = v1.standard.mcast_grp.is_none_or(|group| !self.written.contains(&group));
        blocks(self.program).for_each(|block| {
            each_stmt(block, &mut |stmt| {
                let asks = matches!(
                    stmt,
                    Stmt::Extern(
                        ExternCall::Clone { .. }
                            | ExternCall::Resubmit { .. }
                            | ExternCall::Recirculate { .. }
                            | ExternCall::Truncate { .. }
                    )
                );
                stays &= !asks;
            });
        });
        stays
    }

    /// Up to where the packet is for a queue, its port in [`Native::port`].
    fn first_half(&mut self, v1: &V1Model) -> Result<(), JitError> {
        let standard = &v1.standard;
        self.zero_frame(standard);
        self.set_stage(stage::INGRESS);
        let port = self.load_ctx(offset_of!(Native, port), 8);
        let length = self.load_ctx_fixed(offset_of!(Native, wire_len));
        let now = self.load_ctx_fixed(offset_of!(Native, now));
        self.set_standard(standard, standard.ingress_port, port);
        self.set_standard(standard, standard.packet_length, length);
        self.set_standard(standard, standard.ingress_global_timestamp, now);
        self.parser(&self.program[v1.parser])?;
        let error = self.load_ctx(offset_of!(Native, parser_error), 4);
        self.set_standard(standard, standard.parser_error, error);
        self.control(v1.verify_checksum)?;
        self.control(v1.ingress)?;
        if !self.alive {
            return Ok(());
        }
        self.unless_requested();
        if let Some(group) = standard.mcast_grp {
            let group = self.standard(group);
            let none = self.is_zero(group);
            self.go_on_if(none);
        }
        self.set_stage(stage::DECIDED);
        let spec = match standard.egress_spec {
            Some(spec) => self.standard(spec),
            None => self.iconst(0),
        };
        // As the pipeline does with what it reads.
        let spec = self.truncate(spec, 32);
        let kept = self.b.ins().icmp_imm_s(IntCC::NotEqual, spec, i64::from(DROP_PORT));
        self.go_on_if(kept);
        self.store_ctx(offset_of!(Native, port), 8, spec);
        Ok(())
    }

    /// From where the packet has left its queue up to the deparser; what egress learns of the queue is set already.
    fn second_half(&mut self, v1: &V1Model) -> Result<(), JitError> {
        let standard = &v1.standard;
        self.set_stage(stage::EGRESS);
        let port = self.load_ctx(offset_of!(Native, port), 8);
        let now = self.load_ctx_fixed(offset_of!(Native, now));
        let zero = self.iconst(0);
        self.set_standard(standard, standard.egress_port, port);
        self.set_standard(standard, standard.egress_spec, zero);
        self.set_standard(standard, standard.egress_global_timestamp, now);
        self.control(v1.egress)?;
        if !self.alive {
            return Ok(());
        }
        self.unless_requested();
        if let Some(spec) = standard.egress_spec {
            self.set_stage(stage::REFUSED);
            let spec = self.standard(spec);
            let spec = self.truncate(spec, 32);
            let kept = self.b.ins().icmp_imm_s(IntCC::NotEqual, spec, i64::from(DROP_PORT));
            self.go_on_if(kept);
        }
        self.set_stage(stage::DEPARSE);
        self.control(v1.compute_checksum)
    }

    /// The deparser of a path whose end is the output of all headers and, for the `whole` path, the payload.
    ///
    /// If all that it does is to emit headers of whole bytes, it is known at once how many bytes they come to.
    fn deparse(&mut self, v1: &V1Model, whole: bool) -> Result<(), JitError> {
        let body = &self.program[v1.deparser].body;
        let Some(headers) = self.plain(body) else {
            return self.append(v1, whole);
        };
        let parsed = match self.parsed {
            Some(parsed) => self.b.use_var(parsed),
            None => {
                let cursor = self.load_ctx(offset_of!(Native, cursor), 8);
                let cursor = self.add_const(cursor, 7);
                self.shr_const(cursor, 3)
            }
        };
        let len = self.load_ctx_fixed(offset_of!(Native, packet_len));
        let parsed = self.b.ins().umin(parsed, len);
        let packet = self.load_ctx_fixed(offset_of!(Native, packet));
        let payload = self.b.ins().iadd(packet, parsed);
        if whole {
            let total = self.emitted(&headers);
            let behind = self.b.ins().isub(len, parsed);
            let all = self.b.ins().iadd(total, behind);
            let at = self.room(all);
            self.emit_all(&headers, at);
            let to = self.b.ins().iadd(at, total);
            self.copy_some((to, Region::Output), (payload, Region::Packet), behind);
            self.set_stage(stage::OUT);
            return Ok(());
        }
        let done = self.block();
        let list: Vec<HeaderId> = headers.iter().map(|header| header.id).collect();
        if let Some(changed) = self.may_stay(&self.program[v1.parser], &list) {
            let (same, other) = (self.block(), self.block());
            self.branch(changed, other, same);
            self.start(same);
            self.store_ctx(offset_of!(Native, front), 8, parsed);
            self.set_stage(stage::REPLACED);
            self.jump(done);
            self.start(other);
        }
        let total = self.emitted(&headers);
        let front = self.load_ctx(offset_of!(Native, front), 8);
        let room = self.b.ins().iadd(front, parsed);
        let fits = self.b.ins().icmp(IntCC::UnsignedLessThanOrEqual, total, room);
        let (replace, append) = (self.block(), self.cold_block());
        self.branch(fits, replace, append);
        self.start(append);
        self.append(v1, whole)?;
        let out = self.out;
        self.jump(out);
        self.start(replace);
        let at = self.b.ins().isub(payload, total);
        self.emit_all(&headers, at);
        self.store_ctx(offset_of!(Native, front), 8, total);
        self.set_stage(stage::REPLACED);
        self.jump(done);
        self.start(done);
        Ok(())
    }

    /// A deparser whose headers are appended to the output one by one.
    fn append(&mut self, v1: &V1Model, whole: bool) -> Result<(), JitError> {
        self.control(v1.deparser)?;
        if !self.alive {
            return Ok(());
        }
        self.set_stage(stage::OUT);
        if whole {
            let ctx = self.ctx;
            self.call(packet::append_payload as *const u8, &[ctx], false);
        }
        Ok(())
    }

    /// What somebody may read of the persistent part of the frame. No region: it is all of them.
    fn zero_frame(&mut self, standard: &StandardMetadata) {
        let frame = self.frame;
        let bytes = self.layout.persistent_len as u32;
        if bytes > INLINE_ZERO {
            let bytes = self.iconst(u64::from(bytes));
            self.call(helpers::zero as *const u8, &[frame, bytes], false);
            return;
        }
        let flags = MemFlagsData::new().with_notrap();
        let narrow = self.iconst(0);
        let byte = self.narrow_to(narrow, 1);
        let wide = self.b.ins().splat(I8X16, byte);
        let mut done = 0;
        for (from, to) in self.kept(standard) {
            done = done.max(from);
            while done < to {
                // Bytes behind that nobody reads may be zero, too.
                let size = if bytes - done >= 16 { 16 } else { 1 << (bytes - done).ilog2() };
                if size == 16 {
                    self.b.ins().store(flags, wide, frame, done as i32);
                } else {
                    let value = self.narrow_to(narrow, size as usize);
                    self.b.ins().store(flags, value, frame, done as i32);
                }
                done += size;
            }
        }
    }

    /// Where in the persistent part of the frame something is that is read, in order. Of a varbit the length says how much that is.
    fn kept(&mut self, standard: &StandardMetadata) -> Vec<(u32, u32)> {
        let mut kept = Vec::new();
        for (index, var) in self.program.vars.iter().enumerate() {
            let id = VarId(index as u32);
            if self.only_in_register(id) {
                continue;
            }
            match (var.home, self.layout.slot(id)) {
                (VarHome::Global, Slot::Varbit { base, .. }) => kept.push((base, base + 4)),
                (VarHome::Global, Slot::Words { base, width }) if self.looked_at(standard, id) => {
                    kept.push((base, base + width.div_ceil(64) * 8));
                }
                (VarHome::NextIndex(_), Slot::U32 { base }) => kept.push((base, base + 4)),
                _ => {}
            }
        }
        for (index, header) in self.program.headers.iter().enumerate() {
            let slot = self.layout.header_slot(HeaderId(index as u32));
            if !header.local {
                kept.push((slot.base, slot.valid + 1));
                kept.extend(slot.varbit.map(|(base, _)| (base, base + 4)));
            }
        }
        kept.sort_unstable();
        kept
    }

    /// Whether the program or the pipeline reads a variable.
    fn looked_at(&self, standard: &StandardMetadata, var: VarId) -> bool {
        let pipeline = [standard.egress_spec, standard.mcast_grp, standard.priority];
        self.read.contains(&var) || pipeline.contains(&Some(var))
    }

    /// Stored where the function ends.
    fn set_stage(&mut self, stage: u64) {
        let stage = self.iconst(stage);
        let variable = *self.stage.get_or_insert_with(|| self.b.declare_var(I64));
        self.b.def_var(variable, stage);
    }

    /// Sets metadata that somebody reads.
    fn set_standard(&mut self, standard: &StandardMetadata, var: Option<VarId>, value: Value) {
        if let Some(var) = var
            && self.looked_at(standard, var)
        {
            let place = Place::Var(var);
            let value = self.extended_to(value, &place);
            self.write(&place, &value);
        }
    }

    fn standard(&mut self, var: VarId) -> Value {
        let width = self.program[var].width.min(64);
        self.read_bits(&Place::Var(var), width - 1, 0)
    }

    fn control(&mut self, id: ControlId) -> Result<(), JitError> {
        if !self.alive {
            return Ok(());
        }
        // Labels are the control's own.
        self.labels.clear();
        self.stmts(&self.program[id].body)
    }

    /// Returns to the pipeline unless the condition holds.
    fn go_on_if(&mut self, cond: Value) {
        let next = self.block();
        let out = self.out;
        self.branch(cond, next, out);
        self.start(next);
    }

    /// Returns to the pipeline if the program asked for something.
    fn unless_requested(&mut self) {
        if !self.asks {
            return;
        }
        let requested = self.load_ctx(offset_of!(Native, requested), 8);
        let none = self.is_zero(requested);
        self.go_on_if(none);
    }
}
