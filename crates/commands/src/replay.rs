//! `replay`: captures through a program by their timestamps, one capture out per port.
//!
//! The program's clock starts at 0 with the first packet. A packet leaves at the time at which it came: there are no
//! queues here. A capture that holds only the first bytes of long packets is replayed as it is: the program sees those
//! bytes, and what leaves is marked as cut short by as much.
//!
//! [`Replay`] goes as far as it is told and stops where the program has a message for its controller, so that controllers
//! work in between.

use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use dataplane::pipeline::{Output, Pipeline};
use p4lang::ir::Program;
use serde_json::{Value, json};

use crate::cli::{Reading, Script};
use crate::load::{Engine, pipeline};
use crate::{Interrupt, Result, fail};
use wire::pcap::{Merge, Outputs, Packet, Reader, WHOLE};

/// Between two looks at the interrupt. The time is looked at every few packets, each of which may take the whole of a work budget.
const LOOK: Duration = Duration::from_millis(50);
const PICOSECONDS: u64 = 1000;
/// Link type of captures that hold nothing.
const ETHERNET: u32 = 1;

pub struct Options {
    pub engine: Engine,
    pub inputs: Vec<(u32, PathBuf)>,
    pub out: PathBuf,
    pub commands: Option<PathBuf>,
    /// Packets whose steps are recorded, from the first.
    pub trace: u64,
    pub seed: u64,
    /// Packets for this port are for the controller; those of the controller come in by it.
    pub cpu_port: Option<u32>,
}

/// Packets before its turn, when a packet's lookups ask for memory, and when for their rows. With fewer memory has not come yet, and
/// with more it may be gone again.
const AHEAD: usize = 8;
const ROWS_AHEAD: usize = 4;

/// Packets for the controller that wait; more are dropped, and counted.
const MOST_PACKET_INS: usize = 1 << 16;

/// A packet for the controller: when it came (picoseconds), its bytes, and how many more it had on the wire.
pub struct PacketIn {
    pub at: u64,
    pub bytes: Vec<u8>,
    pub more: u32,
}

/// What came in by one capture.
#[derive(Default, Clone)]
struct Tally {
    packets: u64,
    bytes: u64,
    /// Packets of which the capture has only the first bytes.
    short: u64,
}

/// How long packets took.
struct Times {
    /// By nanoseconds.
    short: Vec<u32>,
    /// Of those that took longer, by microseconds.
    long: BTreeMap<u64, u64>,
}

impl Default for Times {
    fn default() -> Times {
        Times { short: vec![0; 1 << 16], long: BTreeMap::new() }
    }
}

impl Times {
    fn add(&mut self, time: Duration) {
        let nanoseconds = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        match self.short.get_mut(nanoseconds as usize) {
            Some(count) => *count = count.saturating_add(1),
            None => *self.long.entry(nanoseconds / 1000).or_default() += 1,
        }
    }

    /// The median in nanoseconds, which does not mind what else the machine did meanwhile.
    fn median(&self) -> Option<u64> {
        let short = self.short.iter().zip(0..).map(|(count, at)| (at, u64::from(*count)));
        let all = || short.clone().chain(self.long.iter().map(|(at, count)| (at * 1000, *count)));
        let total: u64 = all().map(|(_, count)| count).sum();
        let mut seen = 0;
        all().find_map(|(at, count)| {
            seen += count;
            (seen * 2 >= total && seen > 0).then_some(at)
        })
    }
}

/// When a packet came, in picoseconds since the start (nanoseconds). The merge gives no time before the first.
fn since(start: u64, packet: &Packet) -> Result<u64> {
    match (packet.time - start).checked_mul(PICOSECONDS) {
        Some(now) => Ok(now),
        None => fail("the captures span more than 213 days; replay them in parts".to_owned()),
    }
}

/// Captures on their way through a pipeline.
pub struct Replay {
    options: Options,
    script: Option<Script>,
    merge: Merge,
    out: Outputs,
    link_type: u32,
    /// Nanoseconds: the first packet's time.
    start: u64,
    /// Picoseconds since the start.
    now: u64,
    count: u64,
    tallies: Vec<Tally>,
    times: Times,
    /// When the interrupt was last looked at.
    looked: Instant,
    before: Vec<Reading>,
    notes: Vec<String>,
    traces: Vec<Value>,
    trace_text: String,
    outputs: Vec<Output>,
    /// Packets that left with more bytes than other tools read.
    long: u64,
    packet_ins: VecDeque<PacketIn>,
    packet_ins_taken: u64,
    packet_ins_lost: u64,
    packet_outs: u64,
}

impl Replay {
    /// Opens the captures, makes a switch, runs the commands.
    pub fn open(program: Arc<Program>, options: Options) -> Result<(Replay, Pipeline)> {
        let script = options.commands.as_deref().map(Script::read).transpose()?;
        Outputs::demand_apart(&options.out, options.inputs.iter().map(|(_, path)| path.as_path()))?;
        let mut readers = Vec::new();
        for (port, path) in &options.inputs {
            if *port >= 1 << 9 || *port == dataplane::pipeline::DROP_PORT {
                return fail(format!("{}: port {port} is not possible: ports are 0 to 510", path.display()));
            }
            if options.cpu_port == Some(*port) {
                return fail(format!("port {port} is the controller's; a capture comes in by another one"));
            }
            readers.push((*port, Reader::open(path)?));
        }
        let (mut pipeline, note) = pipeline(program, options.engine, options.seed)?;
        let merge = Merge::new(readers)?;
        let mut notes: Vec<String> = note.into_iter().collect();
        let before =
            script.as_ref().map(|s| s.run(&mut pipeline, 0, &mut notes)).transpose()?.unwrap_or_default();
        let (start, link_type) =
            merge.first().map_or((0, ETHERNET), |packet| (packet.time, packet.link_type));
        let out = Outputs::new(&options.out, link_type)?;
        let replay = Replay {
            script,
            merge,
            out,
            link_type,
            start,
            now: 0,
            count: 0,
            tallies: vec![Tally::default(); options.inputs.len()],
            times: Times::default(),
            looked: Instant::now(),
            before,
            notes,
            traces: Vec::new(),
            trace_text: String::new(),
            outputs: Vec::new(),
            long: 0,
            packet_ins: VecDeque::new(),
            packet_ins_taken: 0,
            packet_ins_lost: 0,
            packet_outs: 0,
            options,
        };
        Ok((replay, pipeline))
    }

    /// Runs the packets that came until `until` (picoseconds), but those only up to the first with a message for the controller
    /// if `pausing`. Gives the time reached: that of the last packet if the captures have ended. `progress` gets the number of
    /// packets now and then.
    pub fn advance(
        &mut self,
        pipeline: &mut Pipeline,
        until: u64,
        pausing: bool,
        interrupt: Interrupt<'_>,
        progress: &mut dyn FnMut(u64),
    ) -> Result<u64> {
        let last = self.start.saturating_add(until / PICOSECONDS);
        loop {
            self.foresee(pipeline);
            let Some((input, port, packet, bytes)) = self.merge.next_until(last)? else { break };
            if self.link_type != packet.link_type {
                return fail(format!(
                    "{}: packet {} is of link type {}, those before it of {}; all packets of all inputs must be alike",
                    self.options.inputs[input].1.display(),
                    self.tallies[input].packets + 1,
                    packet.link_type,
                    self.link_type
                ));
            }
            let now = since(self.start, &packet)?;
            self.now = now;
            let tally = &mut self.tallies[input];
            tally.packets += 1;
            tally.bytes += bytes.len() as u64;
            let missing = packet.wire_len - bytes.len() as u32;
            tally.short += u64::from(missing > 0);
            let outputs = &mut self.outputs;
            // The clock is read for one packet in sixteen: reading it costs as much as a small program.
            let begun = self.count.is_multiple_of(16).then(Instant::now);
            if let Some(begun) = begun
                && begun.duration_since(self.looked) >= LOOK
            {
                self.looked = begun;
                interrupt()?;
                progress(self.count);
            }
            if self.count < self.options.trace {
                let trace = pipeline.process_traced(now, port, bytes, outputs);
                let number = self.count + 1;
                self.trace_text += &format!("packet {number}: {trace}\n");
                let events = trace.events;
                self.traces.push(json!({"packet": number, "time_ps": now, "port": port, "events": events}));
            } else {
                pipeline.process(now, port, bytes, outputs);
                if let Some(begun) = begun {
                    self.times.add(begun.elapsed());
                }
            }
            self.send(pipeline, packet.time, missing)?;
            self.count += 1;
            if pausing && (!pipeline.state.digests.is_empty() || !self.packet_ins.is_empty()) {
                return Ok(now);
            }
        }
        if let Some(packet) = self.merge.first() {
            // It comes later, but not after all time.
            since(self.start, &packet)?;
            self.now = until;
        }
        Ok(self.now)
    }

    /// Has the memory come for lookups of packets a little further on, where there are so many entries that they would wait for it.
    fn foresee(&self, pipeline: &Pipeline) {
        if pipeline.foresees()
            && let Some(mut upcoming) = self.merge.upcoming()
        {
            if let Some(bytes) = upcoming.nth(ROWS_AHEAD - 1) {
                pipeline.prefetch_rows(bytes);
            }
            if let Some(bytes) = upcoming.nth(AHEAD - ROWS_AHEAD - 1) {
                pipeline.prefetch(bytes);
            }
        }
    }

    /// Writes what left the program at a time in nanoseconds; `missing` bytes of each packet are not there.
    fn send(&mut self, pipeline: &mut Pipeline, time: u64, missing: u32) -> Result<()> {
        for output in self.outputs.drain(..) {
            if self.options.cpu_port != Some(output.port) {
                let wire_len = (output.bytes.len() as u32).saturating_add(missing);
                self.long += u64::from(output.bytes.len() > WHOLE as usize);
                self.out.write(output.port, time, &output.bytes, wire_len)?;
                pipeline.recycle(output.bytes);
            } else if self.packet_ins.len() < MOST_PACKET_INS {
                self.packet_ins.push_back(PacketIn { at: self.now, bytes: output.bytes, more: missing });
            } else {
                self.packet_ins_lost += 1;
                pipeline.recycle(output.bytes);
            }
        }
        Ok(())
    }

    /// Whether the captures have ended.
    pub fn done(&self) -> bool {
        self.merge.done()
    }

    /// The next packet for the controller.
    pub fn take_packet_in(&mut self) -> Option<PacketIn> {
        let packet = self.packet_ins.pop_front();
        self.packet_ins_taken += u64::from(packet.is_some());
        packet
    }

    /// A packet of the controller's, which comes in by its port.
    pub fn packet_out(&mut self, pipeline: &mut Pipeline, bytes: &[u8]) -> Result<()> {
        let Some(port) = self.options.cpu_port else {
            return fail("this switch has no port for the controller; give it a cpu_port");
        };
        self.packet_outs += 1;
        pipeline.process(self.now, port, bytes, &mut self.outputs);
        self.send(pipeline, self.start + self.now / PICOSECONDS, 0)
    }

    /// Gives the captures their names, and the answer; `trace_text` in it is for people.
    pub fn finish(self, pipeline: &mut Pipeline) -> Result<Value> {
        let after = self.script.as_ref().map(|s| s.look(pipeline, self.now)).unwrap_or_default();
        let written = self.out.finish()?;
        let mut notes = self.notes;
        for path in Outputs::left_over(&self.options.out, &written) {
            notes.push(format!("{}: is from an earlier run; this one wrote no packet to it", path.display()));
        }
        if self.packet_ins_lost > 0 {
            notes.push(format!(
                "{} packets for the controller were lost: too many waited",
                self.packet_ins_lost
            ));
        }
        if self.long > 0 {
            notes.push(format!(
                "{} packets left with more than {WHOLE} bytes; tshark and others take a capture with such packets for damaged",
                self.long
            ));
        }
        if self.merge.backwards() > 0 {
            notes.push(format!(
                "{} packets were stamped earlier than the one before them in their file; they came at the time of that one",
                self.merge.backwards()
            ));
        }
        let mut inputs = Vec::new();
        for ((port, reader), tally) in self.merge.inputs().zip(&self.tallies) {
            let path = reader.path().display().to_string();
            if let Some(why) = reader.cut() {
                notes
                    .push(format!("{path}: {why}; the {} packets before that were replayed", reader.packets));
            }
            if tally.short > 0 {
                notes.push(format!(
                    "{path}: {} packets were captured only in part; the program saw that part",
                    tally.short
                ));
            }
            inputs.push(json!({
                "port": port,
                "file": path,
                "packets": tally.packets,
                "bytes": tally.bytes,
                "captured_in_part": tally.short,
                "cut": reader.cut(),
            }));
        }
        let drops: serde_json::Map<String, Value> =
            pipeline.drops().iter().map(|(reason, n)| (reason.name().to_owned(), json!(n))).collect();
        let readings: Vec<Value> = self
            .before
            .iter()
            .zip(&after)
            .map(
                |(b, a)| json!({"line": b.line, "command": b.command, "before": b.answer, "after": a.answer}),
            )
            .collect();
        Ok(json!({
            "ok": true,
            "inputs": inputs,
            "outputs": written.iter().map(|w| json!({
                "port": w.port,
                "file": w.path.display().to_string(),
                "packets": w.packets,
                "bytes": w.bytes,
            })).collect::<Vec<_>>(),
            "packets_in": self.count,
            "packets_out": written.iter().map(|w| w.packets).sum::<u64>(),
            "packets_to_controller": self.packet_ins_taken,
            "packets_from_controller": self.packet_outs,
            "duration_ps": self.now,
            "drops": drops,
            "ns_per_packet": self.times.median(),
            "readings": readings,
            "notes": notes,
            "trace": self.traces,
            "trace_text": self.trace_text,
        }))
    }
}
