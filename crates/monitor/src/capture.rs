//! Watches the packets of capture files.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use serde_json::Value;
use wire::pcap::{Packet, plain};

use crate::Failure;
use crate::input::Input;
use crate::packet::{Endpoint, Unseen, any, mark, read, usual};
use crate::report;
use crate::rtt::Rule;
use crate::table::{Sample, Table};
use crate::taps::{Delay, Side, Taps};

/// Nanoseconds: a stamp that is before the last one by no more is taken for that of a packet that another processor was slow with; by
/// more, the clock was set back.
const DISORDER: u64 = 100_000;
/// Where one packet in so many was seen at the second tap alone, there is a warning.
const UNANNOUNCED: u64 = 100;
/// Packets between two looks at whether somebody wants to stop.
const SLICE: u64 = 65_536;

#[derive(Debug, Clone)]
pub struct Options {
    /// `-` is standard input.
    pub files: Vec<PathBuf>,
    pub rule: Rule,
    /// Connections that are watched at most.
    pub most_flows: usize,
    /// Bytes for segments that wait and for samples, of all connections together.
    pub rtt_bytes: u64,
    /// A file that gets each sample, as CSV.
    pub samples: Option<PathBuf>,
    pub second: Option<SecondTap>,
}

/// The tap on the other side of a router. Its packets are paired with those of the first, and count for nothing else.
#[derive(Debug, Clone)]
pub struct SecondTap {
    pub files: Vec<PathBuf>,
    /// Nanoseconds that are added to the times of its packets.
    pub offset: i64,
    /// Nanoseconds after which a packet that has not come to the other tap is lost.
    pub patience: u64,
    /// A file that gets each delay, as CSV.
    pub delays: Option<PathBuf>,
}

/// What was watched.
#[derive(Debug)]
pub struct Watched {
    pub table: Table,
    pub taps: Option<Box<Taps>>,
    pub packets: u64,
    /// Packets that are neither TCP nor UDP, and those whose headers were not there.
    pub others: u64,
    pub cut: u64,
    /// Nanoseconds of the first and the last packet.
    pub first: u64,
    pub last: u64,
    /// Packets that were stamped before the one before them in their file, and of these those of a clock that was set back.
    pub backwards: u64,
    pub set_back: u64,
    /// Packets of a second tap whose clock was set back.
    pub set_back_after: u64,
    /// [`SecondTap::offset`].
    pub after_offset: i64,
    pub warnings: Vec<String>,
    /// Somebody has stopped it before the end.
    pub interrupted: bool,
}

impl Watched {
    /// The command's `--json` answer.
    pub fn answer(&self, options: &Options) -> Value {
        report::answer(self, options, usize::MAX, None)
    }

    /// The same with so many flows: those with the most bytes, of the ones that have a text in protocol, address or port.
    pub fn answer_of(&self, options: &Options, most: usize, text: Option<&str>) -> Value {
        report::answer(self, options, most, text)
    }
}

#[derive(Debug)]
struct Samples(Option<(PathBuf, BufWriter<File>)>);

impl Samples {
    fn create(path: Option<&Path>, columns: &str) -> Result<Samples, Failure> {
        let Some(path) = path else { return Ok(Samples(None)) };
        // Where others can write, a link would lead to any file of this user's.
        let nofollow = rustix::fs::OFlags::NOFOLLOW.bits() as i32;
        let mut how = File::options();
        let file = how.write(true).create(true).truncate(true).custom_flags(nofollow).open(path);
        let file = file.map_err(|e| match path.is_symlink() {
            true => Failure(format!("{}: it is a symbolic link; give the file itself", path.display())),
            false => unwritable(path, &e),
        })?;
        let mut samples = Samples(Some((path.to_owned(), BufWriter::new(file))));
        samples.line(columns)?;
        Ok(samples)
    }

    fn line(&mut self, line: &str) -> Result<(), Failure> {
        match &mut self.0 {
            Some((path, out)) => writeln!(out, "{line}").map_err(|e| unwritable(path, &e)),
            None => Ok(()),
        }
    }

    #[inline]
    fn add(&mut self, sample: Option<Sample>) -> Result<(), Failure> {
        match sample {
            Some(sample) if self.0.is_some() => self.write(&sample),
            _ => Ok(()),
        }
    }

    fn write(&mut self, sample: &Sample) -> Result<(), Failure> {
        let rest = format!("{},{}", sample.ack, sample.rtt as f64 / 1e6);
        self.row(sample.time, sample.from, sample.to, &rest)
    }

    fn add_delay(&mut self, delay: Option<Delay>) -> Result<(), Failure> {
        match delay {
            Some(delay) if self.0.is_some() => {
                self.row(delay.time, delay.from, delay.to, &(delay.took as f64 / 1e6).to_string())
            }
            _ => Ok(()),
        }
    }

    fn row(&mut self, time: u64, from: Endpoint, to: Endpoint, rest: &str) -> Result<(), Failure> {
        let (seconds, part) = (time / 1_000_000_000, time % 1_000_000_000);
        self.line(&format!(
            "{seconds}.{part:09},{},{},{},{},{rest}",
            from.address(),
            from.port,
            to.address(),
            to.port,
        ))
    }

    /// Removes the file, of which there is only a part.
    fn discard(&mut self) {
        if let Some((path, _)) = self.0.take()
            && path.symlink_metadata().is_ok_and(|found| found.is_file())
        {
            // What goes wrong here is less than what is being reported.
            let _ = fs::remove_file(path);
        }
    }

    fn finish(&mut self) -> Result<(), Failure> {
        match &mut self.0 {
            Some((path, out)) => out.flush().map_err(|e| unwritable(path, &e)),
            None => Ok(()),
        }
    }
}

fn unwritable(path: &Path, error: &std::io::Error) -> Failure {
    Failure(format!("{}: cannot be written: {}", path.display(), plain(error)))
}

/// Watches captures to their end, in the order of their packets' times. `interrupt` is asked now and then, with the number of packets; what was
/// watched until then is given back if it says so. Of what fails, no files of samples or delays are left.
///
/// # Errors
/// A file that cannot be read or written, that is no capture, or that has no packets but those of link types that are not known.
pub fn watch(
    options: &Options,
    interrupt: &mut dyn FnMut(u64) -> Result<(), Failure>,
) -> Result<Watched, Failure> {
    let mut input = Input::open(options)?;
    let mut watch = Watch::new(options, input.begin())?;
    let warnings = match watch.captures(&mut input, options, interrupt) {
        Ok(warnings) => warnings,
        Err(error) => {
            watch.discard();
            return Err(error);
        }
    };
    watch.settle();
    let mut seen = watch.end()?;
    seen.warnings = warnings;
    for reader in input.readers() {
        if let Some(why) = reader.cut() {
            let (path, count) = (reader.path().display(), reader.packets);
            seen.warnings.push(format!("{path}: {why}; its first {count} packets were read"));
        }
    }
    seen.warn();
    seen.warn_of_others();
    Ok(seen)
}

/// A warning for each file with packets of link types that are not known, of which `unknown` has the numbers.
///
/// # Errors
/// A file has no others.
fn unknown_links(input: &Input, unknown: &BTreeMap<(usize, u32), u64>) -> Result<Vec<String>, Failure> {
    const READ: &str = "the monitor reads Ethernet (1), raw IP (12, 14, 101, 228, 229), Linux cooked captures (113, 276) and loopback (0, 108)";
    let mut warnings = Vec::new();
    for (file, reader) in input.readers().iter().enumerate() {
        let here = || unknown.range((file, 0)..=(file, u32::MAX));
        let count: u64 = here().map(|(_, count)| count).sum();
        let links: Vec<String> = here().map(|((_, link), _)| link.to_string()).take(8).collect();
        let Some(first) = links.first() else { continue };
        let path = reader.path().display();
        if count == reader.packets {
            return Err(Failure(format!("{path}: packets of link type {first}; {READ}")));
        }
        let kinds = if here().count() > links.len() { ", among others," } else { "" };
        let links = links.join(", ");
        warnings.push(format!("{path}: {count} packets of link type {links}{kinds} are left out; {READ}"));
    }
    Ok(warnings)
}

/// Watches packets as they come.
#[derive(Debug)]
pub struct Watch {
    seen: Watched,
    /// The latest stamp.
    latest: u64,
    samples: Samples,
    delays: Samples,
}

impl Watch {
    /// `begin` is when it begins, in nanoseconds.
    ///
    /// # Errors
    /// A file of samples that cannot be written.
    pub fn new(options: &Options, begin: u64) -> Result<Watch, Failure> {
        let columns = "time_s,src,src_port,dst,dst_port";
        let mut samples = Samples::create(options.samples.as_deref(), &format!("{columns},ack,rtt_ms"))?;
        let delays = options.second.as_ref().and_then(|tap| tap.delays.as_deref());
        let delays = Samples::create(delays, &format!("{columns},queue_delay_ms"));
        let delays = delays.inspect_err(|_| samples.discard())?;
        let taps = options
            .second
            .as_ref()
            .map(|tap| Box::new(Taps::new(tap.patience, options.most_flows, options.rtt_bytes)));
        let seen = Watched {
            table: Table::new(options.rule, options.most_flows, options.rtt_bytes),
            taps,
            packets: 0,
            others: 0,
            cut: 0,
            first: begin,
            last: 0,
            backwards: 0,
            set_back: 0,
            set_back_after: 0,
            after_offset: options.second.as_ref().map_or(0, |tap| tap.offset),
            warnings: Vec::new(),
            interrupted: false,
        };
        Ok(Watch { seen, latest: 0, samples, delays })
    }

    /// Takes all packets of captures; gives warnings about those of link types that are not known.
    fn captures(
        &mut self,
        input: &mut Input,
        options: &Options,
        interrupt: &mut dyn FnMut(u64) -> Result<(), Failure>,
    ) -> Result<Vec<String>, Failure> {
        let mut unknown = BTreeMap::new();
        // Packets of the second tap.
        let mut after = 0;
        loop {
            let (file, packet, bytes) = match input.next() {
                Ok(Some(found)) => found,
                Ok(None) => break,
                Err(_) if interrupt(self.seen.packets).is_err() => {
                    self.seen.interrupted = true;
                    break;
                }
                Err(error) => return Err(error),
            };
            let link = match options.second {
                None => {
                    if packet.behind > 0 {
                        self.went_back(packet.time, packet.behind);
                    }
                    self.packet(packet.link_type, bytes, packet.wire_len, packet.time)?
                }
                Some(_) => {
                    let side = if file < options.files.len() { Side::Before } else { Side::After };
                    after += u64::from(side == Side::After);
                    self.at_tap(side, &packet, bytes)?
                }
            };
            if let Some(link) = link {
                *unknown.entry((file, link)).or_default() += 1;
            }
            let count = self.seen.packets + after;
            if count.is_multiple_of(SLICE) && interrupt(self.seen.packets).is_err() {
                self.seen.interrupted = true;
                break;
            }
        }
        unknown_links(input, &unknown)
    }

    /// Notes that the next packet's stamp is before another by so many nanoseconds, and that it counts at that one's time.
    #[cold]
    pub fn went_back(&mut self, time: u64, by: u64) {
        self.seen.backwards += 1;
        if by > DISORDER {
            self.seen.set_back += 1;
            self.seen.table.doubt(time);
        }
    }

    /// Takes a packet; gives its link type if that is not known. One that is stamped earlier than those before it counts at their time.
    ///
    /// # Errors
    /// The file of samples cannot be written.
    #[inline]
    pub fn packet(
        &mut self,
        link_type: u32,
        bytes: &[u8],
        wire_len: u32,
        time: u64,
    ) -> Result<Option<u32>, Failure> {
        if time < self.latest {
            self.went_back(self.latest, self.latest - time);
        }
        let time = time.max(self.latest);
        self.latest = time;
        self.seen.packets += 1;
        self.seen.last = time;
        // Apart from others, so that what it says stays in registers: in memory it would be written in pieces, and reading it whole waits.
        match usual(link_type, bytes, time) {
            Some(found) => self.samples.add(self.seen.table.packet(&found)).map(|()| None),
            None => self.unusual(link_type, bytes, wire_len, time),
        }
    }

    #[inline(never)]
    fn unusual(
        &mut self,
        link_type: u32,
        bytes: &[u8],
        wire_len: u32,
        time: u64,
    ) -> Result<Option<u32>, Failure> {
        let seen = &mut self.seen;
        match &any(link_type, bytes, wire_len, time) {
            Ok(found) => self.samples.add(seen.table.packet(found))?,
            Err(Unseen::Other) => seen.others += 1,
            Err(Unseen::Cut) => seen.cut += 1,
            Err(Unseen::Link(link)) => {
                seen.others += 1;
                return Ok(Some(*link));
            }
        }
        Ok(None)
    }

    /// Takes a packet of one of two taps, as [`Watch::packet`] does; those of the second are paired alone. `packet.behind`: as in
    /// [`Watch::went_back`].
    ///
    /// # Errors
    /// A file of samples or delays cannot be written.
    #[inline(never)]
    pub fn at_tap(&mut self, side: Side, packet: &Packet, bytes: &[u8]) -> Result<Option<u32>, Failure> {
        let time = packet.time.max(self.latest);
        let behind = packet.behind.max(time - packet.time);
        self.latest = time;
        let Packet { wire_len, link_type, .. } = *packet;
        if side == Side::Before {
            if behind > 0 {
                self.went_back(time, behind);
            }
            self.seen.packets += 1;
            self.seen.last = time;
            if let Some(link) = self.unusual(link_type, bytes, wire_len, time)? {
                return Ok(Some(link));
            }
        } else if behind > 0 {
            self.seen.backwards += 1;
            self.seen.set_back_after += u64::from(behind > DISORDER);
        }
        let Some(taps) = &mut self.seen.taps else { return Ok(None) };
        match read(link_type, bytes, wire_len, time) {
            Ok(found) => {
                let stamp = if behind > DISORDER { time } else { time - behind };
                let delay = taps.packet(side, stamp, &found, &mark(link_type, bytes, &found));
                self.delays.add_delay(delay)?;
            }
            Err(Unseen::Link(link)) => return Ok(Some(link)),
            Err(Unseen::Cut) if side == Side::After => self.seen.cut += 1,
            Err(_) => {}
        }
        Ok(None)
    }

    /// Both taps have ended; see [`Taps::settle`].
    pub fn settle(&mut self) {
        if let Some(taps) = &mut self.seen.taps {
            taps.settle();
        }
    }

    /// What was watched up to now.
    pub fn seen(&self) -> &Watched {
        &self.seen
    }

    /// It ends at a time: what came after that, or nothing, does not make it shorter.
    pub fn passed(&mut self, time: u64) {
        self.seen.last = self.seen.last.max(time);
    }

    /// Where there is room for few more connections, or there was too little for their round-trip times, forgets those without a packet for so many nanoseconds; gives how many.
    pub fn make_room(&mut self, idle: u64) -> usize {
        let taps_are = self.seen.taps.as_mut().is_some_and(|taps| taps.is_crowded());
        if !self.seen.table.is_crowded() && !taps_are {
            return 0;
        }
        let since = self.seen.last.saturating_sub(idle);
        if let Some(taps) = &mut self.seen.taps {
            taps.forget(since);
        }
        self.seen.table.forget(since)
    }

    fn discard(&mut self) {
        self.samples.discard();
        self.delays.discard();
    }

    /// # Errors
    /// The file of samples cannot be written.
    pub fn end(mut self) -> Result<Watched, Failure> {
        self.samples.finish()?;
        self.delays.finish()?;
        Ok(self.seen)
    }
}

impl Watched {
    /// Says what makes the figures doubtful.
    pub fn warn(&mut self) {
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
        if self.set_back > 0 {
            self.warnings.push(format!(
                "{} of them by more than {} ms: the clock was set back; until it had caught up, RTT rule exact and QUIC's spin bit give no \
                 round-trip times",
                self.set_back,
                DISORDER as f64 / 1e6
            ));
        }
        if self.table.untracked > 0 {
            self.warnings.push(format!(
                "{} packets are of connections beyond the largest number that is watched; give a larger one with --max-flows",
                self.table.untracked
            ));
        }
        let room = &self.table.room;
        if room.unsampled > 0 {
            self.warnings.push(format!(
                "{} segments give no round-trip time, as there was no memory to keep them; give more with --rtt-memory",
                room.unsampled
            ));
        }
        if room.without_detail > 0 {
            self.warnings.push(format!(
                "{} round-trip times are in `rtt_samples` and the least, but not in p50, p95 and p99, as there was no memory to keep \
                 them; give more with --rtt-memory",
                room.without_detail
            ));
        }
        self.warn_of_taps();
        if self.table.one_way() {
            self.warnings.push(
                "each TCP connection was seen in one direction alone, and round-trip times need both; capture both, and give the files \
                 together"
                    .into(),
            );
        }
    }

    /// Of a whole capture; an interface may have had nothing but neighbour discovery for a while.
    fn warn_of_others(&mut self) {
        if self.others > 0 && self.others == self.packets {
            self.warnings.push(format!(
                "none of the packets ({}) is TCP or UDP over IP that the monitor reads; what is inside of other headers (GRE, IP in IP, \
                 MPLS, PPPoE) is not looked at",
                self.others
            ));
        }
    }

    fn warn_of_taps(&mut self) {
        let Some(taps) = &self.taps else { return };
        let warnings = &mut self.warnings;
        if self.set_back_after > 0 {
            warnings.push(format!(
                "{} packets of the second tap are stamped more than {} ms before another: its clock was set back; queue delays are wrong \
                 until it had caught up",
                self.set_back_after,
                DISORDER as f64 / 1e6
            ));
        }
        if taps.pairs == 0 && taps.packets.iter().all(|packets| *packets > 0) {
            warnings.push(
                "no packet of one tap was found at the other: the router changes addresses or ports (NAT), of which queue delays are not \
                 known; or other connections go through it; or the clocks are further apart than --lost-after, and need --after-offset"
                    .into(),
            );
        }
        let negative: u64 = taps.passages().map(|one| one.negative).sum();
        let least = taps.passages().filter(|one| one.negative > 0).map(|one| one.least).min();
        if let Some(least) = least {
            let better = self.after_offset - taps.ahead();
            warnings.push(format!(
                "{negative} queue delays are below 0, down to {:.3} ms, and count as 0: the clocks of the taps differ; give --after-offset \
                 {:.3} (ms), with which the least delays are 0 or the same in both directions",
                least as f64 / 1e6,
                better as f64 / 1e6
            ));
        }
        let unannounced: u64 = taps.passages().map(|one| one.unannounced()).sum();
        if unannounced > 0 && unannounced * UNANNOUNCED >= taps.pairs {
            warnings.push(format!(
                "{unannounced} packets came to the second tap without having been seen at the first, and {} to both: a capture missed \
                 packets, or they are joined or split in between (GRO, TSO; `ethtool -K IFACE gro off tso off gso off`); lost_at_router is \
                 wrong",
                taps.pairs
            ));
        }
        if taps.hurried > 0 {
            warnings.push(format!(
                "{} packets could not wait for their copies, as too many did; give a shorter time with --lost-after",
                taps.hurried
            ));
        }
        if taps.room.without_detail > 0 {
            warnings.push(format!(
                "{} queue delays count, but are not in p50, p95 and p99, as there was no memory to keep them; give more with --rtt-memory",
                taps.room.without_detail
            ));
        }
    }
}
