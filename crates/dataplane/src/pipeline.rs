//! One v1model switch: a program with its state, and the path of a packet through it as the reference switch has it.
//!
//! Ingress and egress are separate steps with a [`Pending`] packet between them, so that a switch may put queues there;
//! [`Pipeline::process`] runs the whole path without queues. Every packet that comes in leaves, is dropped with a counted
//! reason, or is turned into others.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use p4lang::ir::{
    Architecture, CloneKind, Program, StandardMetadata, Table, TableAction, V1Model, VarHome, VarId,
};

use crate::context::{Context, DropReason, Requests};
use crate::control::{ControlError, refuse};
use crate::executor::{Departure, Executor, Through};
use crate::interp::Interpreter;
use crate::jit::{Jit, JitError};
use crate::layout::Layout;
use crate::replication::{Mirror, Replication};
use crate::rng::Rng;
use crate::state::State;
use crate::trace::{Event, Trace};

/// The port that drops.
pub const DROP_PORT: u32 = 511;
/// Resubmissions and recirculations that one packet may make.
pub const MAX_PASSES: u32 = 64;
/// Buffers that are kept for packets to come.
const MAX_BUFFERS: usize = 4096;
/// Packets that one packet may turn into.
pub const MAX_COPIES: u32 = 4096;

/// `standard_metadata.instance_type`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum Instance {
    Normal = 0,
    IngressClone = 1,
    EgressClone = 2,
    Recirculated = 4,
    Replicated = 5,
    Resubmitted = 6,
}

impl Instance {
    pub fn name(self) -> &'static str {
        match self {
            Instance::Normal => "normal",
            Instance::IngressClone => "ingress clone",
            Instance::EgressClone => "egress clone",
            Instance::Recirculated => "recirculated",
            Instance::Replicated => "replicated",
            Instance::Resubmitted => "resubmitted",
        }
    }
}

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
pub struct Incoming {
    pub port: u32,
    pub bytes: Vec<u8>,
    more: u32,
    instance: Instance,
    /// Frame whose listed fields are kept, and the list.
    kept: Option<(Box<[u8]>, u32)>,
    passes: u32,
}

/// A packet between ingress and egress.
#[derive(Debug)]
pub struct Pending {
    pub port: u32,
    /// Queue that the program chose.
    pub priority: u32,
    bytes: Vec<u8>,
    more: u32,
    cursor: usize,
    frame: Box<[u8]>,
    instance: Instance,
    rid: u32,
    truncate: Option<u32>,
    passes: u32,
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

/// What the state of a program looks like: the same text, the same state.
fn shape(program: &Program) -> String {
    let action = |action: &TableAction| {
        let declared = &program[action.action];
        let widths: Vec<u32> = declared.params.iter().map(|param| program[param.var].width).collect();
        (declared.info.name.clone(), widths, action.default_only, action.table_only)
    };
    let table = |t: &Table| {
        let keys: Vec<_> = t.keys.iter().map(|key| (key.name.clone(), key.expr.width, key.kind)).collect();
        let actions: Vec<_> = t.actions.iter().map(action).collect();
        let entries: Vec<_> =
            t.entries.iter().map(|e| (&e.matches, e.priority, &e.action, e.is_const)).collect();
        let direct = (t.direct_counter.is_some(), t.direct_meter.as_ref().map(|m| m.unit), t.support_timeout);
        format!(
            "{} {keys:?} {actions:?} {entries:?} {:?} {:?} {direct:?} {}",
            t.info.name, t.default_action, t.implementation, t.size
        )
    };
    let tables: Vec<String> = program.tables.iter().map(table).collect();
    let profiles: Vec<_> =
        program.profiles.iter().map(|p| (&p.info.name, p.size, p.selector.is_some())).collect();
    let counters: Vec<_> = program.counters.iter().map(|c| (&c.info.name, c.size, c.unit)).collect();
    let meters: Vec<_> = program.meters.iter().map(|m| (&m.info.name, m.size, m.unit)).collect();
    let registers: Vec<_> = program.registers.iter().map(|r| (&r.info.name, r.size, r.width)).collect();
    let sets: Vec<_> = program.value_sets.iter().map(|v| (&v.info.name, v.size, &v.fields)).collect();
    let digests: Vec<_> = program.digests.iter().map(|d| (&d.info.name, &d.fields)).collect();
    format!("{tables:?} {profiles:?} {counters:?} {meters:?} {registers:?} {sets:?} {digests:?}")
}

fn wire_len(bytes: &[u8], more: u32) -> u64 {
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
enum Next {
    Ingress(Incoming),
    Egress(Pending),
    Out(Output),
}

pub struct Pipeline {
    program: Arc<Program>,
    layout: Arc<Layout>,
    v1: V1Model,
    executor: Arc<dyn Executor>,
    pub state: State,
    pub replication: Replication,
    rng: Rng,
    drops: BTreeMap<DropReason, u64>,
    frames: Vec<Box<[u8]>>,
    buffers: Vec<Vec<u8>>,
    queue: VecDeque<Next>,
    copies: u32,
    made: u64,
}

impl Pipeline {
    /// A switch that runs the program with the interpreter. `seed` is for `random`.
    pub fn interpreted(program: Arc<Program>, seed: u64) -> Pipeline {
        let layout = Arc::new(Layout::new(&program));
        let executor = Arc::new(Interpreter::new(program.clone(), layout.clone()));
        Pipeline::with_executor(program, layout, executor, seed)
    }

    /// A switch that runs the program as native code.
    pub fn compiled(program: Arc<Program>, seed: u64) -> Result<Pipeline, JitError> {
        let layout = Arc::new(Layout::new(&program));
        let executor = Arc::new(Jit::new(program.clone(), layout.clone())?);
        Ok(Pipeline::with_executor(program, layout, executor, seed))
    }

    pub fn with_executor(
        program: Arc<Program>,
        layout: Arc<Layout>,
        executor: Arc<dyn Executor>,
        seed: u64,
    ) -> Pipeline {
        let Architecture::V1Model(v1) = &program.arch;
        Pipeline {
            v1: v1.clone(),
            state: State::new(&program),
            program,
            layout,
            executor,
            replication: Replication::default(),
            rng: Rng::new(seed),
            drops: BTreeMap::new(),
            frames: Vec::new(),
            buffers: Vec::new(),
            queue: VecDeque::new(),
            copies: 0,
            made: 0,
        }
    }

    /// A switch of its own that runs the same program, with the same code.
    pub fn another(&self, seed: u64) -> Pipeline {
        Pipeline::with_executor(self.program.clone(), self.layout.clone(), self.executor.clone(), seed)
    }

    /// Runs another program from now on: that of `next`, with its state, or with this one's if the control plane sees the same
    /// objects in both. Packets that are between ingress and egress are of no use any more. Counts of packets go on.
    ///
    /// # Errors
    /// The state was to be kept, and is of another shape. Nothing is changed then.
    pub fn replace(&mut self, mut next: Pipeline, keep_state: bool) -> Result<(), ControlError> {
        if keep_state {
            if shape(&self.program) != shape(&next.program) {
                return refuse("the state cannot be kept: the programs have different objects");
            }
            std::mem::swap(&mut next.state, &mut self.state);
            std::mem::swap(&mut next.replication, &mut self.replication);
        }
        (next.drops, next.made) = (std::mem::take(&mut self.drops), self.made);
        *self = next;
        Ok(())
    }

    pub fn program(&self) -> &Arc<Program> {
        &self.program
    }

    /// Packets dropped, by reason.
    pub fn drops(&self) -> &BTreeMap<DropReason, u64> {
        &self.drops
    }

    /// Packets made from others: clones and multicast copies, less the originals that these replace. What came in and this
    /// is what left, was dropped or is held.
    pub fn packets_made(&self) -> u64 {
        self.made
    }

    /// Runs a packet through the whole switch at time `now` (picoseconds). Outputs are appended in the order in which
    /// they leave.
    pub fn process(&mut self, now: u64, port: u32, bytes: &[u8], outputs: &mut Vec<Output>) {
        self.run(now, port, bytes, outputs, None);
    }

    /// As [`Pipeline::process`], recording every step.
    pub fn process_traced(&mut self, now: u64, port: u32, bytes: &[u8], outputs: &mut Vec<Output>) -> Trace {
        let mut trace = Trace::default();
        let interpreter = Arc::new(Interpreter::new(self.program.clone(), self.layout.clone()));
        let executor = std::mem::replace(&mut self.executor, interpreter);
        self.run(now, port, bytes, outputs, Some(&mut trace));
        self.executor = executor;
        trace
    }

    fn run(
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

    /// Ingress alone, for a switch with queues: an ordinary packet is given back for its queue; whatever else is for queues
    /// is appended to `pending`. The packet has `more` bytes behind `bytes` that are zero: they count for lengths and are
    /// carried along, but cannot be parsed. Where `at_once` says that a packet for this port and of this priority need not
    /// wait, egress follows at once. `bytes` are taken, or replaced by those that have left.
    pub fn receive(
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
        let came = self.executor.receive(&mut ctx, port, at_once);
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

    /// Egress of a packet that has left its queue; what leaves, if anything. Clones and what goes through ingress once more
    /// are appended to `pending`.
    pub fn depart(
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
            enqueued: packet.enqueued,
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

    /// Gives back what a packet that is thrown away was made of.
    pub fn discard(&mut self, packet: Pending) {
        self.frames.push(packet.frame);
        self.recycle(packet.bytes);
    }

    /// The path of ordinary packets in one go, without copies and queues, if the executor has it; from where a packet
    /// leaves that path it goes on as any other. False: nothing was done.
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
        let came = self.executor.through(&mut ctx, port);
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

    /// Gives an output's buffer back, so that the next packet needs no new one.
    pub fn recycle(&mut self, mut bytes: Vec<u8>) {
        if self.buffers.len() < MAX_BUFFERS {
            bytes.clear();
            self.buffers.push(bytes);
        }
    }

    /// An empty buffer for a packet.
    pub fn buffer(&mut self) -> Vec<u8> {
        self.buffers.pop().unwrap_or_default()
    }

    fn frame(&mut self) -> Box<[u8]> {
        match self.frames.pop() {
            Some(mut frame) => {
                frame.fill(0);
                frame
            }
            None => self.layout.frame(),
        }
    }

    fn drop_packet(&mut self, reason: DropReason, trace: Option<&mut Trace>) {
        *self.drops.entry(reason).or_default() += 1;
        if let Some(trace) = trace {
            trace.push(Event::Drop { reason });
        }
    }

    fn set(&self, frame: &mut [u8], var: impl Fn(&StandardMetadata) -> Option<VarId>, value: u64) {
        if let Some(var) = var(&self.v1.standard) {
            let width = self.program[var].width;
            let value = if width < 64 { value & ((1 << width) - 1) } else { value };
            self.layout.set_u64(frame, var, value);
        }
    }

    fn get(&self, frame: &[u8], var: impl Fn(&StandardMetadata) -> Option<VarId>) -> u32 {
        var(&self.v1.standard).map_or(0, |v| self.layout.get_u64(frame, v) as u32)
    }

    /// Copies the fields of list `index` from one frame to another.
    fn keep(&self, from: &[u8], to: &mut [u8], index: u32) {
        let Some(list) = self.program.field_lists.iter().find(|l| l.index == index) else { return };
        for var in &list.vars {
            if self.program[*var].varbit {
                let slot = self.layout.slot(*var);
                let (bits, bytes) = slot.varbit(from);
                slot.set_varbit(to, bits, bytes);
            } else {
                self.layout.set(to, *var, &self.layout.get(from, *var));
            }
        }
        for header in &list.headers {
            let slot = self.layout.header_slot(*header);
            let range = slot.base as usize..(slot.base + slot.extent) as usize;
            to[range.clone()].copy_from_slice(&from[range]);
        }
    }

    /// One pass of the executor over `frame`.
    fn pass<T>(
        &mut self,
        (now, frame, bytes, more, cursor): (u64, &mut [u8], &[u8], u32, usize),
        out: &mut Vec<u8>,
        trace: Option<&mut Trace>,
        f: impl FnOnce(&dyn Executor, &mut Context<'_>, &V1Model) -> Result<T, DropReason>,
    ) -> (Result<T, DropReason>, Requests, usize) {
        let mut ctx = Context {
            frame,
            packet: bytes,
            cursor,
            out,
            state: &mut self.state,
            now,
            wire_len: wire_len(bytes, more),
            loop_budget: 0,
            requests: Requests::default(),
            rng: &mut self.rng,
            trace,
        };
        let result = f(&*self.executor, &mut ctx, &self.v1);
        (result, ctx.requests, ctx.cursor)
    }

    fn ingress(&mut self, now: u64, incoming: Incoming, mut trace: Option<&mut Trace>) {
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
        self.set(&mut frame, |s| s.ingress_global_timestamp, now / 1_000_000);
        let parser_error = self.v1.standard.parser_error;
        let layout = self.layout.clone();
        let mut out = self.buffer();
        let (result, requests, cursor) =
            self.pass((now, &mut frame, &bytes, more, 0), &mut out, trace.as_deref_mut(), |e, ctx, v1| {
                let error = e.parse(ctx, v1.parser)?;
                if let Some(var) = parser_error {
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
    fn after_ingress(
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

    /// Whether the packet may turn into one more; if not, that and the copies after it are counted as one drop.
    fn may_copy(&mut self, trace: Option<&mut Trace>) -> bool {
        self.made += 1;
        if self.copies >= MAX_COPIES {
            self.drop_packet(DropReason::Copies, trace);
            return false;
        }
        self.copies += 1;
        true
    }

    fn kept(&mut self, frame: Box<[u8]>, list: Option<u32>) -> Option<(Box<[u8]>, u32)> {
        match list {
            Some(list) => Some((frame, list)),
            None => {
                self.frames.push(frame);
                None
            }
        }
    }

    /// A clone's metadata, standard metadata too: the fields of the list as they are in `original`, all else zero, as in
    /// the reference switch. It tells egress only the packet's length, and what the queue says.
    fn forget_metadata(&self, copy: &mut [u8], original: &[u8], list: Option<u32>, length: u64) {
        for (index, var) in self.program.vars.iter().enumerate() {
            if var.home == VarHome::Global && !var.varbit {
                self.layout.set(copy, VarId(index as u32), &Default::default());
            }
        }
        if let Some(list) = list {
            self.keep(original, copy, list);
        }
        self.set(copy, |s| s.packet_length, length);
    }

    /// An ingress clone: the packet as it came, parsed again, for the session's ports.
    fn clone_to_egress(
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
            let mut copy = self.frame();
            self.set(&mut copy, |s| s.ingress_port, u64::from(port));
            self.set(&mut copy, |s| s.packet_length, wire_len(bytes, more));
            let mut out = self.buffer();
            let (result, _, cursor) =
                self.pass((now, &mut copy, bytes, more, 0), &mut out, None, |e, ctx, v1| {
                    e.parse(ctx, v1.parser)
                });
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

    fn egress(&mut self, now: u64, mut pending: Pending, queue: QueueInfo, mut trace: Option<&mut Trace>) {
        let Pending { port, cursor, instance, rid, enqueued, .. } = pending;
        let mut frame = std::mem::take(&mut pending.frame);
        self.set(&mut frame, |s| s.egress_port, u64::from(port));
        self.set(&mut frame, |s| s.egress_spec, 0);
        self.set(&mut frame, |s| s.egress_rid, u64::from(rid));
        self.set(&mut frame, |s| s.instance_type, instance as u64);
        self.set(&mut frame, |s| s.enq_timestamp, enqueued / 1_000_000);
        self.set(&mut frame, |s| s.deq_timedelta, now.saturating_sub(enqueued) / 1_000_000);
        self.set(&mut frame, |s| s.enq_qdepth, u64::from(queue.enq_qdepth));
        self.set(&mut frame, |s| s.deq_qdepth, u64::from(queue.deq_qdepth));
        self.set(&mut frame, |s| s.egress_global_timestamp, now / 1_000_000);
        let mut out = self.buffer();
        let (result, requests, cursor) = self.pass(
            (now, &mut frame, &pending.bytes, pending.more, cursor),
            &mut out,
            trace.as_deref_mut(),
            |e, ctx, v1| e.control(ctx, v1.egress),
        );
        pending.frame = frame;
        self.after_egress(now, pending, out, (result, requests, cursor), trace);
    }

    /// What becomes of a packet whose egress has run. `out`: a buffer for the deparser.
    fn after_egress(
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
        let (result, _, cursor) = self.pass(
            (now, &mut frame, &bytes, more, cursor),
            &mut out,
            trace.as_deref_mut(),
            |e, ctx, v1| {
                e.control(ctx, v1.compute_checksum)?;
                e.control(ctx, v1.deparser)
            },
        );
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

    /// An egress clone: headers as they are now, metadata but for the list as at the start.
    fn clone_in_egress(
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

fn note(trace: &mut Option<&mut Trace>, what: impl FnOnce() -> String) {
    if let Some(trace) = trace {
        trace.push(Event::Copy { what: what() });
    }
}
