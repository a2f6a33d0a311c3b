//! Watches the packets of capture files.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use serde_json::Value;
use wire::pcap::plain;

use crate::input::Input;
use crate::packet::{Unseen, read};
use crate::report;
use crate::rtt::Rule;
use crate::table::{Sample, Table};
use crate::{Failure, Seen};

/// Packets between two looks at whether somebody wants to stop.
const SLICE: u64 = 65_536;

#[derive(Debug, Clone)]
pub struct Options {
    /// `-` is standard input.
    pub files: Vec<PathBuf>,
    pub rule: Rule,
    /// Connections that are watched at most.
    pub most_flows: usize,
    /// A file that gets each sample, as CSV.
    pub samples: Option<PathBuf>,
}

/// What was watched.
#[derive(Debug)]
pub struct Watched {
    pub table: Table,
    pub packets: u64,
    /// Packets that are neither TCP nor UDP, and those whose headers were not there.
    pub others: u64,
    pub cut: u64,
    /// Nanoseconds of the first and the last packet.
    pub first: u64,
    pub last: u64,
    /// Packets that were stamped before the one before them in their file.
    pub backwards: u64,
    pub warnings: Vec<String>,
    /// Somebody has stopped it before the end.
    pub interrupted: bool,
}

impl Watched {
    /// The command's `--json` answer.
    pub fn answer(&self, options: &Options) -> Value {
        report::answer(self, options)
    }
}

struct Samples(Option<(PathBuf, BufWriter<File>)>);

impl Samples {
    fn create(path: Option<&Path>) -> Result<Samples, Failure> {
        let Some(path) = path else { return Ok(Samples(None)) };
        let file = File::create(path).map_err(|e| unwritable(path, &e))?;
        let mut samples = Samples(Some((path.to_owned(), BufWriter::new(file))));
        samples.line("time_s,src,src_port,dst,dst_port,ack,rtt_ms")?;
        Ok(samples)
    }

    fn line(&mut self, line: &str) -> Result<(), Failure> {
        match &mut self.0 {
            Some((path, out)) => writeln!(out, "{line}").map_err(|e| unwritable(path, &e)),
            None => Ok(()),
        }
    }

    fn add(&mut self, sample: Option<Sample>) -> Result<(), Failure> {
        let (Some(sample), Some(_)) = (sample, &self.0) else { return Ok(()) };
        let (seconds, rest) = (sample.time / 1_000_000_000, sample.time % 1_000_000_000);
        let (from, to) = (sample.from, sample.to);
        self.line(&format!(
            "{seconds}.{rest:09},{},{},{},{},{},{}",
            from.address(),
            from.port,
            to.address(),
            to.port,
            sample.ack,
            sample.rtt as f64 / 1e6
        ))
    }

    fn finish(self) -> Result<(), Failure> {
        match self.0 {
            Some((path, mut out)) => out.flush().map_err(|e| unwritable(&path, &e)),
            None => Ok(()),
        }
    }
}

fn unwritable(path: &Path, error: &std::io::Error) -> Failure {
    Failure(format!("{}: cannot be written: {}", path.display(), plain(error)))
}

/// Watches captures to their end, in the order of their packets' times. `interrupt` is asked now and then, with the number of packets; what was
/// watched until then is given back if it says so.
///
/// # Errors
/// A file that cannot be read or written, that is no capture, or whose link type is not known.
pub fn watch(
    options: &Options,
    interrupt: &mut dyn FnMut(u64) -> Result<(), Failure>,
) -> Result<Watched, Failure> {
    let mut input = Input::open(&options.files)?;
    let mut samples = Samples::create(options.samples.as_deref())?;
    let mut seen = Watched {
        table: Table::new(options.rule, options.most_flows),
        packets: 0,
        others: 0,
        cut: 0,
        first: input.begin(),
        last: 0,
        backwards: 0,
        warnings: Vec::new(),
        interrupted: false,
    };
    loop {
        let (file, packet, bytes) = match input.next() {
            Ok(Some(found)) => found,
            Ok(None) => break,
            Err(_) if interrupt(seen.packets).is_err() => {
                seen.interrupted = true;
                break;
            }
            Err(error) => return Err(error),
        };
        seen.packets += 1;
        seen.last = packet.time;
        match read(packet.link_type, bytes, packet.wire_len, packet.time) {
            Ok(found) => samples.add(seen.take(&found))?,
            Err(Unseen::Other) => seen.others += 1,
            Err(Unseen::Cut) => seen.cut += 1,
            Err(Unseen::Link(link)) => {
                let path = options.files[file].display();
                return Err(Failure(format!(
                    "{path}: packets of link type {link}; the monitor reads Ethernet (1), raw IP (12, 14, 101, 228, 229), Linux cooked \
                     captures (113, 276) and loopback (0, 108)"
                )));
            }
        }
        if seen.packets.is_multiple_of(SLICE) && interrupt(seen.packets).is_err() {
            seen.interrupted = true;
            break;
        }
    }
    samples.finish()?;
    for reader in input.readers() {
        if let Some(why) = reader.cut() {
            let (path, count) = (reader.path().display(), reader.packets);
            seen.warnings.push(format!("{path}: {why}; its first {count} packets were read"));
        }
    }
    seen.backwards = input.backwards();
    seen.warn();
    Ok(seen)
}

impl Watched {
    fn take(&mut self, packet: &Seen) -> Option<Sample> {
        self.table.packet(packet)
    }

    fn warn(&mut self) {
        if self.cut > 0 {
            self.warnings.push(format!(
                "{} packets were captured without all of their headers; they are left out",
                self.cut
            ));
        }
        if self.backwards > 0 {
            self.warnings.push(format!(
                "{} packets are stamped earlier than the one before them; they count at the time of that one",
                self.backwards
            ));
        }
        if self.table.untracked > 0 {
            self.warnings.push(format!(
                "{} packets are of connections beyond the largest number that is watched; give a larger one with --max-flows",
                self.table.untracked
            ));
        }
        if self.table.one_way() {
            self.warnings.push(
                "each TCP connection was seen in one direction alone, and round-trip times need both; capture both, and give the files \
                 together"
                    .into(),
            );
        }
    }
}
