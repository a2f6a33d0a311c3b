//! `replay`: captures through a program by their timestamps, one capture out per port.
//!
//! The program's clock starts at 0 with the first packet. A packet leaves at the time at which it came: there are no
//! queues here. A capture that holds only the first bytes of long packets is replayed as it is: the program sees those
//! bytes, and what leaves is marked as cut short by as much.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use dataplane::pipeline::Output;
use p4lang::ir::Program;
use serde_json::{Value, json};

use crate::cli::Script;
use crate::load::{Engine, pipeline};
use crate::{Interrupt, Result, fail};
use wire::pcap::{Merge, Outputs, Reader};

/// Packets between two looks at the interrupt.
const LOOK: u64 = 4096;
const PICOSECONDS: u64 = 1000;

pub struct Options {
    pub engine: Engine,
    pub inputs: Vec<(u32, PathBuf)>,
    pub out: PathBuf,
    pub commands: Option<PathBuf>,
    /// Packets whose steps are recorded, from the first.
    pub trace: u64,
    pub seed: u64,
}

/// What came in by one capture.
#[derive(Default, Clone)]
struct Tally {
    packets: u64,
    bytes: u64,
    /// Packets of which the capture has only the first bytes.
    short: u64,
}

/// How long packets took, in nanoseconds.
struct Times(Vec<u32>);

impl Default for Times {
    fn default() -> Times {
        Times(vec![0; 1 << 16])
    }
}

impl Times {
    fn add(&mut self, time: Duration) {
        let last = self.0.len() - 1;
        let slot = usize::try_from(time.as_nanos()).unwrap_or(last).min(last);
        self.0[slot] = self.0[slot].saturating_add(1);
    }

    /// The median, which does not mind what else the machine did meanwhile.
    fn median(&self) -> Option<usize> {
        let total: u64 = self.0.iter().map(|n| u64::from(*n)).sum();
        let mut seen = 0;
        self.0.iter().position(|n| {
            seen += u64::from(*n);
            seen * 2 >= total && seen > 0
        })
    }
}

/// `progress` gets the number of packets now and then; `text` in the answer is for people.
pub fn run(
    program: Arc<Program>,
    options: &Options,
    interrupt: Interrupt<'_>,
    progress: &mut dyn FnMut(u64),
) -> Result<Value> {
    let script = options.commands.as_deref().map(Script::read).transpose()?;
    let mut readers = Vec::new();
    for (port, path) in &options.inputs {
        if *port >= 1 << 9 || *port == dataplane::pipeline::DROP_PORT {
            return fail(format!("port {port} is not possible: ports are 0 to 510"));
        }
        readers.push((*port, Reader::open(path)?));
    }
    let (mut pipeline, note) = pipeline(program, options.engine, options.seed)?;
    let mut merge = Merge::new(readers)?;
    let mut notes: Vec<String> = note.into_iter().collect();
    let before =
        script.as_ref().map(|s| s.run(&mut pipeline, 0, &mut notes)).transpose()?.unwrap_or_default();

    let mut tallies = vec![Tally::default(); options.inputs.len()];
    let mut out: Option<Outputs> = None;
    let mut link_type = None;
    let mut outputs: Vec<Output> = Vec::new();
    let (mut count, mut start, mut now) = (0u64, 0u64, 0u64);
    let mut traces = Vec::new();
    let mut trace_text = String::new();
    let mut times = Times::default();
    while let Some((input, port, packet, bytes)) = merge.next()? {
        if count == 0 {
            start = packet.time;
            link_type = Some(packet.link_type);
            out = Some(Outputs::new(&options.out, packet.link_type)?);
        } else if link_type != Some(packet.link_type) {
            return fail(format!(
                "{}: its packets are of link type {}, others of {}; all inputs must be alike",
                options.inputs[input].1.display(),
                packet.link_type,
                link_type.unwrap_or_default()
            ));
        }
        // The merge gives no time before the first.
        let Some(time) = (packet.time - start).checked_mul(PICOSECONDS) else {
            return fail("the captures span more than 213 days; replay them in parts".to_owned());
        };
        now = time;
        let tally = &mut tallies[input];
        tally.packets += 1;
        tally.bytes += bytes.len() as u64;
        let missing = packet.wire_len - bytes.len() as u32;
        tally.short += u64::from(missing > 0);
        if count < options.trace {
            let trace = pipeline.process_traced(now, port, bytes, &mut outputs);
            trace_text += &format!("packet {}: {trace}\n", count + 1);
            traces.push(json!({"packet": count + 1, "time_ps": now, "port": port, "events": trace.events}));
        } else {
            // The clock is read for one packet in sixteen: reading it costs as much as a small program.
            if count % 16 == 0 {
                let clock = Instant::now();
                pipeline.process(now, port, bytes, &mut outputs);
                times.add(clock.elapsed());
            } else {
                pipeline.process(now, port, bytes, &mut outputs);
            }
        }
        for output in outputs.drain(..) {
            if let Some(out) = &mut out {
                let wire_len = (output.bytes.len() as u32).saturating_add(missing);
                out.write(output.port, packet.time, &output.bytes, wire_len)?;
            }
            pipeline.recycle(output.bytes);
        }
        count += 1;
        if count % LOOK == 0 {
            interrupt()?;
            progress(count);
        }
    }
    let after = script.as_ref().map(|s| s.look(&mut pipeline, now)).transpose()?.unwrap_or_default();
    let out = match out {
        Some(out) => out,
        None => Outputs::new(&options.out, 1)?,
    };
    let written = out.finish()?;
    for path in Outputs::left_over(&options.out, &written) {
        notes.push(format!("{}: is from an earlier run; this one wrote no packet to it", path.display()));
    }
    let mut inputs = Vec::new();
    for ((port, reader), tally) in merge.inputs().zip(&tallies) {
        let path = reader.path().display().to_string();
        if let Some(why) = reader.cut() {
            notes.push(format!("{path}: {why}; the {} packets before that were replayed", reader.packets));
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
    let readings: Vec<Value> = before
        .iter()
        .zip(&after)
        .map(|(b, a)| json!({"line": b.line, "command": b.command, "before": b.answer, "after": a.answer}))
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
        "packets_in": count,
        "packets_out": written.iter().map(|w| w.packets).sum::<u64>(),
        "duration_ps": now,
        "drops": drops,
        "ns_per_packet": times.median(),
        "readings": readings,
        "notes": notes,
        "trace": traces,
        "trace_text": trace_text,
    }))
}
