//! A switch of a network, as its control plane sees it.

use std::path::PathBuf;

use commands::cli::Session;
use dataplane::pipeline;
use network::NodeId;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use switch::{Generator, PortConfig, QueueConfig, Scheduler, Shaping, Switch};
use units::{Bytes, Rate, Time};

use crate::control::{self, refused};
use crate::engine::Pipeline;
use crate::reads;
use crate::simulation::Simulation;
use crate::writes::{self, Match, Writes};

/// A shaper: bit/s and bytes.
type ShaperSpec = Option<(u64, u64)>;

fn shaping(spec: ShaperSpec) -> Option<Shaping> {
    spec.map(|(rate, burst)| Shaping { rate: Rate::from_bps(rate), burst: Bytes::new(burst) })
}

fn shaper_spec(shaping: Option<Shaping>) -> ShaperSpec {
    shaping.map(|s| (s.rate.as_bps(), s.burst.get()))
}

/// A queue: limit in packets, in bytes, weight, time shift in picoseconds, shaper.
type QueueSpec = (Option<u64>, Option<u64>, u32, u64, ShaperSpec);

/// A port: scheduler, quantum in bytes (of the round robins), shaper, queues.
type PortSpec = (String, u64, ShaperSpec, Vec<QueueSpec>);

fn port_config((scheduler, quantum, shaper, queues): PortSpec) -> PyResult<PortConfig> {
    let scheduler = Scheduler::named(&scheduler, Bytes::new(quantum)).map_err(refused)?;
    let queues = queues.into_iter().map(|(packets, bytes, weight, shift, shaper)| QueueConfig {
        limit: switch::QueueLimit { packets, bytes: bytes.map(Bytes::new) },
        weight,
        time_shift: Time::from_ps(shift),
        shaping: shaping(shaper),
    });
    Ok(PortConfig { scheduler, shaping: shaping(shaper), queues: queues.collect() })
}

fn port_spec(config: &PortConfig) -> PortSpec {
    let queue = |q: &QueueConfig| -> QueueSpec {
        let bytes = q.limit.bytes.map(Bytes::get);
        (q.limit.packets, bytes, q.weight, q.time_shift.as_ps(), shaper_spec(q.shaping))
    };
    let (scheduler, quantum) = (config.scheduler.name().to_owned(), config.scheduler.quantum().get());
    (scheduler, quantum, shaper_spec(config.shaping), config.queues.iter().map(queue).collect())
}

/// A switch of a network, as its control plane sees it.
#[pyclass(frozen, module = "tidegate._core")]
pub struct SwitchControl {
    pub simulation: Py<Simulation>,
    pub node: NodeId,
}

impl SwitchControl {
    fn pipeline<T: Send>(
        &self,
        py: Python<'_>,
        act: impl FnOnce(&mut pipeline::Pipeline) -> PyResult<T> + Send,
    ) -> PyResult<T> {
        self.simulation.get().with(py, |network| act(network.pipeline(self.node).map_err(refused)?))
    }

    fn switch<T: Send>(
        &self,
        py: Python<'_>,
        act: impl FnOnce(&mut Switch, Time) -> T + Send,
    ) -> PyResult<T> {
        self.simulation.get().with(py, |network| network.control(self.node, act)).map_err(refused)
    }
}

#[pymethods]
impl SwitchControl {
    /// Picoseconds.
    fn now(&self, py: Python<'_>) -> u64 {
        self.simulation.get().with(py, |network| network.now()).as_ps()
    }

    /// A line of the command language of `simple_switch_CLI`; gives its answer.
    fn command(&self, py: Python<'_>, line: &str) -> PyResult<String> {
        let now = self.now(py);
        self.pipeline(py, |pipeline| match (Session { pipeline, now }).execute(line) {
            None => Ok(String::new()),
            Some(answer) => answer.map_err(refused),
        })
    }

    fn register_read<'py>(
        &self,
        py: Python<'py>,
        name: &str,
        start: usize,
        count: Option<usize>,
    ) -> PyResult<(Bound<'py, PyBytes>, usize)> {
        let (bytes, words) =
            self.pipeline(py, |pipeline| control::register_read(pipeline, name, start, count))?;
        Ok((PyBytes::new(py, &bytes), words))
    }

    fn register_write(&self, py: Python<'_>, name: &str, start: usize, words: &[u8]) -> PyResult<()> {
        self.pipeline(py, |pipeline| control::register_write(pipeline, name, start, words))
    }

    fn counter_read<'py>(
        &self,
        py: Python<'py>,
        name: &str,
        start: usize,
        count: Option<usize>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = self.pipeline(py, |pipeline| control::counter_read(pipeline, name, start, count))?;
        Ok(PyBytes::new(py, &bytes))
    }

    fn table_entries(&self, py: Python<'_>, name: &str) -> PyResult<Vec<control::Row>> {
        self.pipeline(py, |pipeline| control::table_entries(pipeline, name))
    }

    fn table_totals(&self, py: Python<'_>) -> PyResult<Vec<control::Totals>> {
        self.pipeline(py, |pipeline| Ok(control::table_totals(pipeline)))
    }

    /// Runs a file of commands; gives notes on those that have no effect.
    fn script(&self, py: Python<'_>, path: PathBuf) -> PyResult<Vec<String>> {
        let now = self.now(py);
        self.pipeline(py, |pipeline| control::script(pipeline, now, &path))
    }

    fn multicast_set(&self, py: Python<'_>, group: u32, copies: Vec<(u32, u32)>) -> PyResult<()> {
        self.pipeline(py, |pipeline| {
            control::multicast_set(pipeline, group, &copies);
            Ok(())
        })
    }

    fn multicast_delete(&self, py: Python<'_>, group: u32) -> PyResult<()> {
        self.pipeline(py, |pipeline| {
            control::multicast_delete(pipeline, group);
            Ok(())
        })
    }

    fn mirror_set(
        &self,
        py: Python<'_>,
        session: u32,
        port: Option<u32>,
        group: Option<u32>,
        truncate: Option<u32>,
    ) -> PyResult<()> {
        self.pipeline(py, |pipeline| {
            control::mirror_set(pipeline, session, port, group, truncate);
            Ok(())
        })
    }

    /// Packets dropped so far, by reason; those of the queues too.
    fn drops(&self, py: Python<'_>) -> PyResult<Vec<(&'static str, u64)>> {
        self.switch(py, |switch, _| switch.statistics().dropped)
    }

    /// Where every packet is.
    fn statistics<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let s = self.switch(py, |switch, _| switch.statistics())?;
        let out = PyDict::new(py);
        out.set_item("received", s.received)?;
        out.set_item("generated", s.generated)?;
        out.set_item("packet_outs", s.packet_outs)?;
        out.set_item("made", s.made)?;
        out.set_item("transmitted", s.transmitted)?;
        out.set_item("packet_ins", s.packet_ins)?;
        out.set_item("dropped", s.dropped.iter().map(|(_, count)| count).sum::<u64>())?;
        out.set_item("held", s.held)?;
        Ok(out)
    }

    /// Does writes in order; see `writes.rs`. `None` for each that is done, or why it was refused.
    fn write(&self, py: Python<'_>, writes: Writes) -> PyResult<Vec<writes::Answer>> {
        let now = self.now(py);
        self.pipeline(py, |pipeline| Ok(writes::write(pipeline, now, writes)))
    }

    fn read<'py>(&self, py: Python<'py>, what: &str, name: &str) -> PyResult<Bound<'py, PyAny>> {
        let (program, seen) = self.pipeline(py, |pipeline| reads::read(pipeline, what, name))?;
        seen.into_python(py, &program)
    }

    #[allow(clippy::type_complexity)]
    fn entries<'py>(
        &self,
        py: Python<'py>,
        table: &str,
        start: u32,
        only: Option<(Vec<Match>, u32)>,
    ) -> PyResult<(Vec<Bound<'py, PyAny>>, Option<u32>)> {
        let now = self.now(py);
        self.pipeline(py, |pipeline| reads::entries(pipeline, now, table, start, only))?.page(py)
    }

    /// Entries whose idle timeout has come, with their tables.
    fn take_idle<'py>(&self, py: Python<'py>) -> PyResult<Vec<(String, Bound<'py, PyAny>)>> {
        let now = self.now(py);
        self.pipeline(py, |pipeline| Ok(reads::take_idle(pipeline, now)))?.named(py)
    }

    /// Runs a pipeline's program from now on, with its state, or with this one's if that is to be kept.
    fn install(&self, py: Python<'_>, next: &mut Pipeline, keep_state: bool) -> PyResult<()> {
        let next = next.take();
        self.switch(py, |switch, _| switch.replace_program(next, keep_state))?.map_err(refused)
    }

    fn take_digests(&self, py: Python<'_>) -> PyResult<Vec<control::Digest>> {
        self.switch(py, |switch, _| {
            let messages = switch.take_digests();
            let pipeline = switch.pipeline();
            messages.into_iter().map(|m| control::digest(pipeline, m)).collect()
        })
    }

    /// Digests that were dropped because nobody took them.
    fn digests_lost(&self, py: Python<'_>) -> PyResult<u64> {
        self.pipeline(py, |pipeline| Ok(pipeline.state.digests_lost))
    }

    /// The next packet for the controller: when it came, its bytes, and how many bytes of payload are only counted.
    fn take_packet_in<'py>(&self, py: Python<'py>) -> PyResult<Option<(u64, Bound<'py, PyBytes>, u32)>> {
        let packet = self.switch(py, |switch, _| switch.take_packet_in())?;
        Ok(packet.map(|p| (p.at.as_ps(), PyBytes::new(py, &p.bytes), p.more)))
    }

    fn packet_out(&self, py: Python<'_>, bytes: &[u8]) -> PyResult<()> {
        self.switch(py, |switch, now| switch.packet_out(now, bytes))?.map_err(refused)
    }

    fn port_read(&self, py: Python<'_>, port: u32) -> PyResult<PortSpec> {
        let config = self.switch(py, |switch, _| switch.port_config(port))?.map_err(refused)?;
        Ok(port_spec(&config))
    }

    fn port_write(&self, py: Python<'_>, port: u32, spec: PortSpec) -> PyResult<()> {
        let config = port_config(spec)?;
        self.switch(py, |switch, _| switch.configure_port(port, &config))?.map_err(refused)
    }

    /// What waits in a queue, its counts, and how long the first packet has waited.
    fn queue_read<'py>(&self, py: Python<'py>, port: u32, queue: usize) -> PyResult<Bound<'py, PyDict>> {
        let found = self.switch(py, |switch, now| {
            let wait = switch.head_wait(now, port, queue).map_or(0, Time::as_ps);
            switch.queue(port, queue).map(|(depth, counts)| (depth, *counts, wait))
        })?;
        let Some((depth, counts, wait)) = found else {
            return Err(refused(format!("there is no queue {queue} of port {port}")));
        };
        let out = queue_dict(py, depth, &counts)?;
        out.set_item("head_wait", wait)?;
        Ok(out)
    }

    /// Starts a packet generator or changes it: ingress port, packet, period in picoseconds. `None` stops it.
    fn generator_set(&self, py: Python<'_>, id: u32, generator: Option<(u32, Vec<u8>, u64)>) -> PyResult<()> {
        let generator = generator.map(|(port, template, period)| Generator {
            port,
            template,
            period: Time::from_ps(period),
        });
        self.switch(py, |switch, now| switch.set_generator(now, id, generator))?.map_err(refused)
    }

    fn generator<'py>(&self, py: Python<'py>, id: u32) -> PyResult<Option<(u32, Bound<'py, PyBytes>, u64)>> {
        let found = self.switch(py, |switch, _| switch.generator(id).cloned())?;
        Ok(found.map(|g| (g.port, PyBytes::new(py, &g.template), g.period.as_ps())))
    }
}

/// What waits in a queue, and what it has counted.
pub fn queue_dict<'py>(
    py: Python<'py>,
    (packets, bytes): (u64, u64),
    counts: &switch::QueueStatistics,
) -> PyResult<Bound<'py, PyDict>> {
    let out = PyDict::new(py);
    out.set_item("waiting_packets", packets)?;
    out.set_item("waiting_bytes", bytes)?;
    out.set_item("packets", counts.packets)?;
    out.set_item("bytes", counts.bytes)?;
    out.set_item("dropped", counts.dropped)?;
    out.set_item("dropped_in_egress", counts.dropped_in_egress)?;
    out.set_item("wait_sum", counts.wait_ps as f64)?;
    out.set_item("wait_max", counts.wait_max_ps)?;
    Ok(out)
}
