//! `tidegate monitor`.

use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use ::live::{Heard, InOrder, Sniffer};
use ::monitor::{Failure, Options, Packet, Rule, SecondTap, Side, Watch, watch};
use pyo3::prelude::*;

use crate::TidegateError;

/// A second tap: captures or interfaces; nanoseconds that are added to its times, and after which a packet is lost; a file for delays.
type Second = (Vec<PathBuf>, i64, u64, Option<PathBuf>);

fn second_tap((files, offset, patience, delays): Second) -> SecondTap {
    SecondTap { files, offset, patience, delays }
}

/// Watches captures; gives the answer as JSON text. `progress` gets the number of packets now and then. With `partial`, an interrupt
/// ends it with what was read until then.
#[pyfunction]
#[allow(clippy::too_many_arguments)]
#[pyo3(signature = (files, rule, most_flows, rtt_bytes, samples, second, partial, progress))]
pub fn monitor(
    py: Python<'_>,
    files: Vec<PathBuf>,
    rule: &str,
    most_flows: usize,
    rtt_bytes: u64,
    samples: Option<PathBuf>,
    second: Option<Second>,
    partial: bool,
    progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    let Some(rule) = Rule::named(rule) else {
        let known = Rule::NAMES.join(", ");
        return Err(TidegateError::new_err(format!("there is no RTT rule `{rule}`; known: {known}")));
    };
    let second = second.map(second_tap);
    let options = Options { files, rule, most_flows, rtt_bytes, samples, second };
    let mut signal: Option<PyErr> = None;
    let mut interrupt = |packets: u64| {
        Python::attach(|py| {
            py.check_signals()?;
            match &progress {
                Some(progress) => progress.call1(py, (packets,)).map(drop),
                None => Ok(()),
            }
        })
        .map_err(|e| {
            signal = Some(e);
            Failure("interrupted".into())
        })
    };
    let watched = py.detach(|| watch(&options, &mut interrupt)).map_err(|e| TidegateError::new_err(e.0))?;
    match signal {
        Some(error) if !partial => Err(error),
        _ => Ok(watched.answer(&options).to_string()),
    }
}

/// Nanoseconds without a packet after which a connection makes room for others, where there is little.
const IDLE: u64 = 60_000_000_000;
/// What is read of a packet: all headers, with many tags and options.
const SNAP: usize = 256;

/// Watches interfaces as packets come.
#[pyclass(module = "tidegate._core", name = "InterfaceMonitor")]
pub struct InterfaceMonitor {
    /// None when it has ended.
    sniffers: Option<InOrder>,
    watch: Option<Watch>,
    options: Options,
    forgotten: usize,
}

fn wall() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_nanos() as u64)
}

/// `first`: interfaces of the first tap, if there is a second.
fn see(watch: &mut Watch, first: Option<usize>, heard: Heard<'_>) -> Result<(), Failure> {
    let Heard { time, bytes, wire_len, link_type, interface } = heard;
    let Some(first) = first else { return watch.packet(link_type, bytes, wire_len, time).map(drop) };
    let side = if interface < first { Side::Before } else { Side::After };
    watch.at_tap(side, &Packet { time, behind: 0, wire_len, link_type }, bytes).map(drop)
}

impl InterfaceMonitor {
    fn of_first_tap(&self) -> Option<usize> {
        self.options.second.as_ref().map(|_| self.options.files.len())
    }
}

fn refused(why: impl ToString) -> PyErr {
    TidegateError::new_err(why.to_string())
}

#[pymethods]
impl InterfaceMonitor {
    #[new]
    fn new(
        interfaces: Vec<String>,
        rule: &str,
        most_flows: usize,
        rtt_bytes: u64,
        samples: Option<PathBuf>,
        second: Option<Second>,
    ) -> PyResult<InterfaceMonitor> {
        let Some(rule) = Rule::named(rule) else {
            return Err(refused(format!("there is no RTT rule `{rule}`; known: {}", Rule::NAMES.join(", "))));
        };
        let open = |name: &String| Sniffer::open(name, SNAP).map_err(refused);
        let second = second.map(second_tap);
        let files: Vec<_> = interfaces.into_iter().map(PathBuf::from).collect();
        let all = files.iter().chain(second.iter().flat_map(|tap| &tap.files));
        let sniffers = all.map(|name| open(&name.display().to_string())).collect::<PyResult<_>>()?;
        let sniffers = Some(InOrder::new(sniffers));
        let options = Options { files, rule, most_flows, rtt_bytes, samples, second };
        let watch = Some(Watch::new(&options, wall()).map_err(refused)?);
        Ok(InterfaceMonitor { sniffers, watch, options, forgotten: 0 })
    }

    /// Watches for so many milliseconds.
    fn run(&mut self, py: Python<'_>, milliseconds: u64) -> PyResult<()> {
        let first = self.of_first_tap();
        let InterfaceMonitor { sniffers, watch, forgotten, .. } = self;
        let (Some(sniffers), Some(watch)) = (sniffers, watch) else { return Ok(()) };
        py.detach(|| -> Result<(), String> {
            let until = Instant::now() + Duration::from_millis(milliseconds);
            loop {
                let mut failure = None;
                let came =
                    sniffers.receive(|heard| failure = failure.take().or(see(watch, first, heard).err()));
                let came = came.map_err(|e| e.0)?;
                if let Some(failure) = failure {
                    return Err(failure.0);
                }
                let left = until.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    break;
                }
                if came == 0 {
                    sniffers.wait(left);
                }
            }
            watch.passed(wall());
            *forgotten += watch.make_room(IDLE);
            Ok(())
        })
        .map_err(refused)
    }

    /// The answer up to now, as JSON text; with `most` flows, those with the most bytes, of the ones that have `text` in protocol, address
    /// or port.
    #[pyo3(signature = (most=None, text=None))]
    fn answer(&mut self, py: Python<'_>, most: Option<usize>, text: Option<&str>) -> PyResult<String> {
        let InterfaceMonitor { sniffers, watch, options, forgotten } = self;
        let (Some(sniffers), Some(watch)) = (sniffers, watch) else {
            return Err(refused("the monitor has ended"));
        };
        let dropped = sniffers.dropped();
        let most = most.unwrap_or(usize::MAX);
        let mut answer = py.detach(|| watch.seen().answer_of(options, most, text));
        if let Some(fields) = answer.as_object_mut() {
            let interfaces = fields.remove("files").unwrap_or_default();
            fields.insert("interfaces".into(), interfaces);
            if let Some(after) = fields.remove("after_files") {
                fields.insert("after_interfaces".into(), after);
            }
            fields.insert("dropped_packets".into(), dropped.into());
            fields.insert("forgotten_flows".into(), (*forgotten).into());
        }
        Ok(answer.to_string())
    }

    /// Takes what is held back, and decides of two taps what is lost, as at the end of captures.
    fn settle(&mut self) -> PyResult<()> {
        let first = self.of_first_tap();
        let (Some(sniffers), Some(watch)) = (&mut self.sniffers, &mut self.watch) else { return Ok(()) };
        let mut failure = None;
        sniffers.rest(|heard| failure = failure.take().or(see(watch, first, heard).err()));
        watch.settle();
        failure.map_or(Ok(()), |failure| Err(refused(failure)))
    }

    /// Ends it; gives what makes its figures doubtful.
    fn end(&mut self) -> PyResult<Vec<String>> {
        let first = self.of_first_tap();
        let (Some(mut sniffers), Some(mut watch)) = (self.sniffers.take(), self.watch.take()) else {
            return Ok(Vec::new());
        };
        let dropped = sniffers.dropped();
        let mut failure = None;
        sniffers.rest(|heard| failure = failure.take().or(see(&mut watch, first, heard).err()));
        if let Some(failure) = failure {
            return Err(refused(failure.0));
        }
        let mut seen = watch.end().map_err(refused)?;
        seen.warn();
        if dropped > 0 {
            seen.warnings
                .push(format!("{dropped} packets came faster than they were taken; they are left out"));
        }
        if self.forgotten > 0 {
            seen.warnings.push(format!(
                "{} connections without a packet for a minute made room for others; give a larger number with --max-flows or --rtt-memory",
                self.forgotten
            ));
        }
        Ok(seen.warnings)
    }
}
