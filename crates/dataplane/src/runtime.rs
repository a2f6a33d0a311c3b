//! One switch's instance of a program: its state, the executor that runs it, and the memory that its packets use.
//!
//! What happens to a packet is the architecture's. A [`PacketPath`] decides in which order blocks run, what intrinsic metadata says
//! before and after each, and what becomes of the packet. Time reaches it in picoseconds; the unit of timestamps that programs see
//! is its own; for v1model see [`Clock`].

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use p4lang::ir::{Package, Program};
use wire::packet::{MOST_LARGE, Written};

use crate::budget::Budget;
use crate::clock::Clock;
use crate::context::{Context, DropReason, Requests};
use crate::cost::{Prices, WORK_BUDGET, first_touches};
use crate::drops::Drops;
use crate::executor::{Executor, View};
use crate::foresee::Foresight;
use crate::interp::Interpreter;
use crate::jit::flat::{Flat, Passed};
use crate::jit::function::NativePath;
use crate::layout::Layout;
use crate::pool::Pool;
use crate::replication::Replication;
use crate::state::State;
use crate::state::places::places;
use crate::trace::{Event, Trace};
use crate::work::{Next, Output, QueueInfo, Received, Work};
use units::SplitMix;

/// Packets' memory that is kept for packets to come.
const MAX_PACKETS: usize = 4096;

/// Bytes of frames that are kept for packets to come.
const MAX_FRAMES: usize = 1 << 26;

/// What one pass through the blocks before and after a queue costs.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct PassCosts {
    /// Of ingress, the parser.
    pub parser: u64,
    pub ingress: u64,
    pub egress: u64,
}

impl PassCosts {
    /// Both, with the frame, which is zeroed.
    pub fn pass(self, frame: usize) -> u64 {
        64 + frame as u64 / 16 + self.ingress.saturating_add(self.egress)
    }

    /// Those of a packet's first pass, of which `near` are the ones where all cells are near.
    fn first(self, near: PassCosts) -> PassCosts {
        let (ingress, egress) =
            (first_touches(near.ingress, self.ingress), first_touches(near.egress, self.egress));
        PassCosts { ingress, egress, ..self }
    }
}

pub struct Pipeline {
    pub(crate) program: Arc<Program>,
    pub(crate) layout: Arc<Layout>,
    pub(crate) path: &'static dyn PacketPath,
    pub(crate) view: View,
    pub(crate) executor: Arc<dyn Executor>,
    /// The executor's path of ordinary packets.
    pub(crate) flat: Option<Flat>,
    pub state: State,
    pub replication: Replication,
    /// Bytes that a batch keeps of what was added at run time, to be able to take its changes back.
    pub(crate) kept: u64,
    pub(crate) rng: SplitMix,
    /// What the packet on the path of ordinary packets asks for; nothing, between packets.
    pub(crate) requests: Requests,
    pub(crate) drops: Drops,
    /// What packets are made of that are to come.
    pub(crate) works: Vec<Box<Work>>,
    packets: Vec<Box<Written>>,
    pub(crate) buffers: Pool,
    /// What the deparser has put out.
    pub(crate) headers: Vec<u8>,
    /// Bytes of a packet that the program can look at.
    pub(crate) reach: usize,
    pub(crate) queue: VecDeque<Next>,
    pub(crate) made: u64,
    /// What the packets of one call may cost; less than [`WORK_BUDGET`] where they are interpreted.
    pub(crate) work_budget: u64,
    /// What a packet that comes in pays for its first pass.
    pub(crate) first_pass: u64,
    /// Of all other passes, and of copies.
    pub(crate) costs: PassCosts,
    /// What is left of the budget when a packet that comes in has paid for one pass; nothing, if it cannot.
    pub(crate) first: Option<u64>,
    /// See [`Pipeline::spent`].
    pub(crate) spent: u64,
    /// Of timestamps in v1model.
    pub(crate) clock: Clock,
    pub(crate) foresight: Foresight,
    /// What [`Pipeline::compare`] has found.
    compared: Option<(Arc<Program>, bool)>,
}

/// The path of packets in one architecture. It keeps nothing between packets: what lives longer is in the pipeline.
pub(crate) trait PacketPath: Sync {
    /// The architecture's name in [`Package::architecture`].
    fn name(&self) -> &'static str;

    /// `None` if the package lacks a block or field that the path needs.
    fn view(&self, package: &Package) -> Option<View>;

    /// What a packet pays for a pass through the program's blocks.
    fn costs(&self, prices: Prices<'_>, view: &View) -> PassCosts;

    /// Bytes of a packet, from its start, that the program can look at; `usize::MAX`: all that there are.
    fn reach(&self, program: &Program, view: &View) -> usize {
        let _ = (program, view);
        usize::MAX
    }

    /// See [`Pipeline::process`].
    fn process(
        &self,
        pipeline: &mut Pipeline,
        now: u64,
        port: u32,
        bytes: &[u8],
        outputs: &mut Vec<Output>,
        trace: Option<&mut Trace>,
    );

    /// See [`Pipeline::receive`], without native code of the path; the packet has come by the port.
    fn receive(
        &self,
        pipeline: &mut Pipeline,
        now: u64,
        packet: (u32, Box<Written>),
        pending: &mut Vec<Box<Work>>,
        at_once: &mut dyn FnMut(u32, u32) -> bool,
    ) -> Received;

    /// See [`Pipeline::depart`], as above.
    fn depart(
        &self,
        pipeline: &mut Pipeline,
        now: u64,
        work: Box<Work>,
        queue: QueueInfo,
        pending: &mut Vec<Box<Work>>,
    ) -> Option<Box<Written>>;

    /// A packet that has come by the port has left the path of ordinary packets that [`PacketPath::native`] makes, somewhere between
    /// parser and deparser: what comes of it, as [`PacketPath::receive`].
    fn leave(
        &self,
        pipeline: &mut Pipeline,
        _now: u64,
        (_, packet): (u32, Box<Written>),
        _passed: Passed,
        _pending: &mut Vec<Box<Work>>,
    ) -> Received {
        pipeline.release(packet);
        Received::Other
    }

    /// So has one that has left its queue, with this result of egress.
    fn leave_egress(
        &self,
        pipeline: &mut Pipeline,
        _now: u64,
        work: Box<Work>,
        _result: Result<(), DropReason>,
        _pending: &mut Vec<Box<Work>>,
    ) -> Option<Box<Written>> {
        pipeline.discard(work);
        None
    }

    /// What makes native code of the path of ordinary packets. Without it packets take the blocks one by one.
    fn native(&self) -> Option<NativePath> {
        None
    }
}

impl Pipeline {
    pub(crate) fn of_path(
        (path, view): (&'static dyn PacketPath, View),
        program: Arc<Program>,
        layout: Arc<Layout>,
        executor: Arc<dyn Executor>,
        seed: u64,
    ) -> Pipeline {
        let reach = path.reach(&program, &view);
        let prices = Prices::new(&program, &layout);
        let costs = path.costs(prices, &view);
        let first_pass = costs.first(path.costs(prices.near(), &view)).pass(layout.frame_len);
        let first = WORK_BUDGET.checked_sub(first_pass);
        Pipeline {
            path,
            foresight: Foresight::of(&program, &view),
            view,
            state: State::new(&program),
            program,
            layout,
            flat: executor.flat(),
            executor,
            replication: Replication::default(),
            kept: 0,
            rng: SplitMix::new(seed),
            requests: Requests::default(),
            drops: Drops::default(),
            works: Vec::new(),
            packets: Vec::new(),
            buffers: Pool::default(),
            headers: Vec::new(),
            reach,
            queue: VecDeque::new(),
            made: 0,
            work_budget: WORK_BUDGET,
            first_pass,
            costs,
            first,
            spent: 0,
            clock: Clock::default(),
            compared: None,
        }
    }

    /// A switch of its own that runs the same program, with the same code.
    pub fn another(&self, seed: u64) -> Pipeline {
        let of = (self.path, self.view.clone());
        let (program, layout) = (self.program.clone(), self.layout.clone());
        let mut other = Pipeline::of_path(of, program, layout, self.executor.clone(), seed);
        other.set_work_budget(self.work_budget);
        other
    }

    /// How much work, in units of [`crate::cost`], one packet may cause with all of its passes and copies.
    pub fn set_work_budget(&mut self, budget: u64) {
        self.work_budget = budget;
        self.first = budget.checked_sub(self.first_pass);
    }

    /// Bytes of a packet that waits, beside those that it has on the wire.
    #[inline]
    pub fn waiting_bytes(&self) -> u64 {
        (size_of::<Work>() + size_of::<Written>() + self.layout.frame_len) as u64
    }

    /// What the packet that was last dropped in [`Pipeline::depart`] has cost.
    pub fn spent(&self) -> u64 {
        self.spent
    }

    /// Compares the objects that the control plane sees in `program` with this one's, which takes the longer the more there are, for a
    /// [`Pipeline::replace`] to come in which this one takes the place of `program` with its state. This one is made anew for that if
    /// that one's registers lie elsewhere.
    pub fn compare(&mut self, program: &Arc<Program>) {
        let same = same_objects(program, &self.program);
        if same && places(program) != places(&self.program) {
            let other = program.registers_as.clone().unwrap_or_else(|| program.clone());
            let like = Arc::new(Program { registers_as: Some(other), ..(*self.program).clone() });
            let made = match self.executor.is_native() {
                true => Pipeline::compiled(like, 0).ok(),
                false => Pipeline::interpreted(like, 0).ok(),
            };
            // What could be made once can be made again.
            if let Some(made) = made {
                let (rng, work_budget) = (self.rng.clone(), self.work_budget);
                *self = Pipeline { rng, ..made };
                self.set_work_budget(work_budget);
            }
        }
        self.compared = Some((program.clone(), same));
    }

    /// Runs another program from now on: that of `next`, with its state, or with this one's if the control plane sees the same
    /// objects in both. Packets that are between ingress and egress are of no use any more. Counts of packets go on. A state that is
    /// not kept begins at `now`, in picoseconds. Gives what there was before: to free its memory takes time, for which packets need not
    /// wait.
    ///
    /// # Errors
    /// The state was to be kept, and is of another shape. Nothing is changed then.
    pub fn replace(&mut self, mut next: Pipeline, keep_state: bool, now: u64) -> control::Result<Pipeline> {
        if keep_state {
            let same = match next.compared.take() {
                Some((program, same)) if Arc::ptr_eq(&program, &self.program) => same,
                _ => same_objects(&self.program, &next.program),
            };
            if !same {
                let why = "the state cannot be kept: the programs have different objects";
                return Err(control::Error::invalid(why));
            }
            let (added, room) = (self.added_bytes(), next.program.room);
            if added > room {
                let why = format!(
                    "the state cannot be kept: {added} bytes were added to it at run time, more than {room}"
                );
                return Err(control::Error::new(control::Kind::Full, why).cure("raise `state_bytes`"));
            }
            if !next.state.registers.lie_as(&self.state.registers) {
                let why = "the state cannot be kept: the program was made for another one's state";
                return Err(control::Error::invalid(why).cure("install it again"));
            }
            std::mem::swap(&mut next.state, &mut self.state);
            std::mem::swap(&mut next.replication, &mut self.replication);
        } else {
            next.state.begin(now);
        }
        (next.drops, next.made, next.clock) = (std::mem::take(&mut self.drops), self.made, self.clock);
        Ok(std::mem::replace(self, next))
    }

    /// See [`State::provide`].
    pub fn provide_memory(&mut self) {
        self.state.provide(&self.program);
    }

    /// In what timestamps count from now on.
    pub fn set_clock(&mut self, clock: Clock) {
        self.clock = clock;
    }

    pub fn program(&self) -> &Arc<Program> {
        &self.program
    }

    /// Packets dropped, by reason.
    pub fn drops(&self) -> BTreeMap<DropReason, u64> {
        self.drops.all()
    }

    /// Packets made from others: clones and multicast copies, less the originals that these replace. What came in and this
    /// is what left, was dropped or is held.
    pub fn packets_made(&self) -> u64 {
        self.made
    }

    /// Runs a packet through the whole switch at time `now` (picoseconds). Outputs are appended in the order in which
    /// they leave.
    #[inline]
    pub fn process(&mut self, now: u64, port: u32, bytes: &[u8], outputs: &mut Vec<Output>) {
        let path = self.path;
        path.process(self, now, port, bytes, outputs, None);
    }

    /// Whether it gains to know of packets before their turn: lookups in large tables wait for memory, which can be asked for.
    #[inline]
    pub fn foresees(&self) -> bool {
        self.foresight.gains(&self.state)
    }

    /// Asks for the memory that a packet's lookups in large tables begin with. It comes some packets later; nothing but time depends
    /// on it.
    #[inline]
    pub fn prefetch(&self, bytes: &[u8]) {
        self.foresight.prefetch(&self.state, bytes);
    }

    /// Asks for what they go on with: some packets after [`Pipeline::prefetch`].
    #[inline]
    pub fn prefetch_rows(&self, bytes: &[u8]) {
        self.foresight.prefetch_rows(&self.state, bytes);
    }

    /// As [`Pipeline::process`], recording every step.
    pub fn process_traced(&mut self, now: u64, port: u32, bytes: &[u8], outputs: &mut Vec<Output>) -> Trace {
        let mut trace = Trace::default();
        let interpreter = Arc::new(Interpreter::new(self.program.clone(), self.layout.clone()));
        let executor = std::mem::replace(&mut self.executor, interpreter);
        let path = self.path;
        path.process(self, now, port, bytes, outputs, Some(&mut trace));
        self.executor = executor;
        trace
    }

    /// Gives an output's buffer back, so that the next packet needs no new one.
    #[inline]
    pub fn recycle(&mut self, bytes: Vec<u8>) {
        self.buffers.put(bytes);
    }

    /// An empty buffer for a packet.
    pub fn buffer(&mut self) -> Vec<u8> {
        self.buffers.take()
    }

    /// A packet of these bytes, with `zeros` bytes of payload behind them that are only counted.
    pub fn packet(&mut self, bytes: &[u8], zeros: u32) -> Box<Written> {
        let mut packet = self.spare();
        packet.set_bytes(bytes, zeros);
        packet
    }

    /// Memory for a packet, of one that was dropped if there is.
    pub fn spare(&mut self) -> Box<Written> {
        self.packets.pop().unwrap_or_default()
    }

    pub(crate) fn copy_of(&mut self, packet: &Written) -> Box<Written> {
        let mut copy = self.spare();
        copy.copy_from(packet);
        copy
    }

    /// Gives a packet's memory back, so that the next one needs no new one.
    #[inline]
    pub fn release(&mut self, packet: Box<Written>) {
        if self.packets.len() < if packet.is_large() { MOST_LARGE } else { MAX_PACKETS } {
            self.packets.push(packet);
        }
    }

    /// Gives back what a packet that is thrown away was made of.
    pub fn discard(&mut self, mut work: Box<Work>) {
        if let Some(packet) = work.packet.take() {
            self.release(packet);
        }
        self.keep_work(work);
    }

    /// Keeps a frame for packets to come.
    #[inline]
    pub(crate) fn keep_work(&mut self, work: Box<Work>) {
        if self.works.len() * self.layout.frame_len < MAX_FRAMES {
            self.works.push(work);
        }
    }

    /// A frame to work on, as some packet left it.
    #[inline]
    pub(crate) fn work(&mut self) -> Box<Work> {
        self.works.pop().unwrap_or_else(|| Box::new(Work::new(self.layout.frame())))
    }

    /// A frame to work on, all zero.
    pub(crate) fn empty_work(&mut self) -> Box<Work> {
        let mut work = self.work();
        work.frame.fill(0);
        work
    }

    #[inline(always)]
    pub(crate) fn drop_packet(&mut self, reason: DropReason, trace: Option<&mut Trace>) {
        self.drops.count(reason);
        if let Some(trace) = trace {
            trace.push(Event::Drop { reason });
        }
    }

    /// One pass of the executor over a frame, of a packet that the parser has read as far as `cursor`. What a deparser puts out is
    /// in `headers` then.
    pub(crate) fn pass<T>(
        &mut self,
        now: u64,
        (frame, packet, cursor): (&mut [u8], &Written, usize),
        budget: &mut Budget,
        trace: Option<&mut Trace>,
        f: impl FnOnce(&dyn Executor, &mut Context<'_>) -> Result<T, DropReason>,
    ) -> (Result<T, DropReason>, Requests, usize) {
        self.headers.clear();
        let mut ctx = Context {
            frame,
            packet: packet.bytes(),
            cursor,
            out: &mut self.headers,
            state: &mut self.state,
            now,
            wire_len: packet.wire_len(),
            work: budget.left(),
            requests: Requests::default(),
            rng: &mut self.rng,
            trace,
        };
        let result = f(&*self.executor, &mut ctx);
        self.spent += budget.left().saturating_sub(ctx.work);
        budget.set(ctx.work);
        (result, ctx.requests, ctx.cursor)
    }
}

/// Whether the control plane sees the same objects in both programs, so that one's state serves the other.
fn same_objects(a: &Program, b: &Program) -> bool {
    shape(a) == shape(b)
}

/// What decides what a program's state looks like.
fn shape(program: &Program) -> impl PartialEq {
    let tables = program.tables.iter().map(|t| {
        let keys: Vec<_> = t.keys.iter().map(|key| (&key.name, key.expr.width, key.kind)).collect();
        let actions = t.actions.iter().map(|listed| {
            let action = &program[listed.action];
            let widths: Vec<u32> = action.params.iter().map(|param| program[param.var].width).collect();
            (&action.info.name, widths, listed.default_only, listed.table_only)
        });
        let actions: Vec<_> = actions.collect();
        let entries: Vec<_> =
            t.entries.iter().map(|e| (&e.matches, e.priority, &e.action, e.is_const)).collect();
        let direct = (t.direct_counter.is_some(), t.direct_meter.as_ref().map(|m| m.unit), t.support_timeout);
        (&t.info.name, keys, actions, entries, &t.default_action, t.implementation, direct, t.size)
    });
    let tables: Vec<_> = tables.collect();
    let profiles: Vec<_> =
        program.profiles.iter().map(|p| (&p.info.name, p.size, p.selector.is_some())).collect();
    let counters: Vec<_> = program.counters.iter().map(|c| (&c.info.name, c.size, c.unit)).collect();
    let meters: Vec<_> = program.meters.iter().map(|m| (&m.info.name, m.size, m.unit)).collect();
    let registers: Vec<_> = program.registers.iter().map(|r| (&r.info.name, r.size, r.width)).collect();
    let sets: Vec<_> = program.value_sets.iter().map(|v| (&v.info.name, v.size, &v.fields)).collect();
    let digests: Vec<_> = program.digests.iter().map(|d| (&d.info.name, &d.fields)).collect();
    (tables, profiles, counters, meters, registers, sets, digests)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use p4lang::ir::Program;
    use wire::packet::{MOST_LARGE, Written};

    use super::{MAX_FRAMES, MAX_PACKETS, Pipeline, Work};

    const PROGRAM: &str = "
#include <core.p4>
#include <v1model.p4>
struct H {} struct M { bit<65535> a; bit<65535> b; bit<65535> c; bit<65535> d; bit<65535> e; bit<65535> f; bit<65535> g; }
parser P(packet_in p, out H h, inout M m, inout standard_metadata_t s) { state start { transition accept; } }
control V(inout H h, inout M m) { apply {} }
control I(inout H h, inout M m, inout standard_metadata_t s) { apply { m.a = m.g; } }
control E(inout H h, inout M m, inout standard_metadata_t s) { apply {} }
control D(packet_out p, in H h) { apply {} }
V1Switch(P(), V(), I(), E(), V(), D()) main;
";

    fn pipeline(text: &str) -> Pipeline {
        let compiled = p4lang::compile_str("kept.p4", text, None, &p4lang::Options::default());
        Pipeline::interpreted(Arc::new(compiled.program.unwrap()), 1).unwrap()
    }

    #[test]
    fn programs_are_compared_before_the_state_is_kept() {
        let with_counter =
            PROGRAM.replace("apply { m.a", "counter(4, CounterType.packets) c; apply { c.count(0); m.a");
        let (mut running, mut next) = (pipeline(PROGRAM), pipeline(PROGRAM));
        next.compare(&running.program);
        assert_eq!(next.compared.as_ref().map(|found| found.1), Some(true));
        // What was found is not looked for again.
        next.compared = Some((running.program.clone(), false));
        assert!(running.replace(next, true, 0).is_err());
        // It is, if another program has come to run meanwhile.
        let (mut next, other) = (pipeline(PROGRAM), pipeline(&with_counter));
        next.compare(&running.program);
        running.replace(other, false, 0).unwrap();
        assert!(running.replace(next, true, 0).is_err());
        let mut next = pipeline(&with_counter);
        next.compare(&running.program);
        running.replace(next, true, 0).unwrap();
        assert!(running.compared.is_none());
    }

    #[test]
    fn registers_that_lie_elsewhere_are_kept() {
        let text = |index: &str| {
            let registers =
                "register<bit<64>>(8) r0; register<bit<64>>(8) r1; apply { bit<64> v; r0.read(v, 32w5);
                r0.write((bit<32>) m.a[2:0], v + 1); r1.read(v, 32w5); r1.write(INDEX, v + 2); m.a";
            PROGRAM.replacen("apply { m.a", &registers.replace("INDEX", index), 1)
        };
        let compile = |index: &str| {
            let compiled = p4lang::compile_str("kept.p4", &text(index), None, &p4lang::Options::default());
            Arc::new(compiled.program.unwrap_or_else(|| panic!("{:?}", compiled.diagnostics)))
        };
        let (alike, apart) = (compile("(bit<32>) m.a[2:0]"), compile("(bit<32>) m.b[2:0]"));
        let as_native = |program: &Arc<Program>| Pipeline::compiled(program.clone(), 1).unwrap();
        for (from, to) in [(&alike, &apart), (&apart, &alike)] {
            let (mut running, mut next) = (as_native(from), as_native(to));
            assert!(!next.state.registers.lie_as(&running.state.registers));
            let unprepared = running.replace(as_native(to), true, 0).err().expect("it was not compared");
            assert!(unprepared.to_string().contains("another one's state"), "{unprepared}");
            running.state.registers.set(0, 5, [50]);
            running.state.registers.set(1, 5, [60]);
            next.compare(&running.program);
            running.replace(next, true, 0).unwrap();
            running.process(0, 1, &[0; 20], &mut Vec::new());
            let expected = [[51, 0, 0, 0, 0, 50, 0, 0], [62, 0, 0, 0, 0, 60, 0, 0]];
            assert_eq!([0, 1].map(|register| running.state.registers.get(register).all()), expected);
            // So it is with one that takes the place of that, and has its registers where it would have put them itself.
            let mut last = as_native(from);
            last.compare(&running.program);
            running.replace(last, true, 0).unwrap();
            running.process(0, 1, &[0; 20], &mut Vec::new());
            assert_eq!(running.state.registers.get(0).all()[5], 50);
            // The interpreter has them wherever they are.
            let mut last = Pipeline::interpreted(to.clone(), 1).unwrap();
            last.compare(&running.program);
            running.replace(last, true, 0).unwrap();
            running.process(0, 1, &[0; 20], &mut Vec::new());
            assert_eq!(running.state.registers.get(1).all()[5], 60);
        }
    }

    #[test]
    fn what_is_kept_for_packets_to_come_is_bounded() {
        let mut pipeline = pipeline(PROGRAM);
        let frame = pipeline.layout.frame_len;
        let most = MAX_FRAMES.div_ceil(frame);
        for _ in 0..most + 10 {
            // As large as the frame of a packet, without its memory.
            pipeline.keep_work(Box::new(Work::new(Vec::new().into())));
        }
        assert!(frame > 50_000, "{frame}");
        assert_eq!(pipeline.works.len(), most);

        let kept = pipeline.packets.len();
        for _ in 0..MOST_LARGE + 10 {
            let mut packet = Box::<Written>::default();
            packet.set_bytes(&[7; 20_000], 0);
            assert!(packet.is_large());
            pipeline.release(packet);
        }
        assert_eq!(pipeline.packets.len(), kept.max(MOST_LARGE));
        for _ in 0..MAX_PACKETS + 10 {
            pipeline.release(Box::default());
        }
        assert_eq!(pipeline.packets.len(), MAX_PACKETS);
    }
}
