//! Captures that are replayed: steps of a replay for Python, which runs controllers in between.

use std::path::PathBuf;
use std::sync::Arc;

use commands::replay;
use parking_lot::Mutex;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::engine::{Alone, Program};
use crate::errors::refused;
use crate::raise;
use crate::target::Target;
use crate::tasks::{engine, interruptible};

/// Captures on their way through a pipeline. Times are picoseconds since the first packet.
#[pyclass(module = "tidegate._core")]
pub struct Replay {
    /// `None`: it is finished.
    replay: Option<replay::Replay>,
    alone: Arc<Mutex<Alone>>,
}

impl Replay {
    fn open(&mut self) -> PyResult<&mut replay::Replay> {
        self.replay.as_mut().ok_or_else(|| refused("the replay is finished"))
    }
}

#[pymethods]
impl Replay {
    #[new]
    #[pyo3(signature = (program, inputs, out, commands, engine, trace, seed, cpu_port))]
    #[allow(clippy::too_many_arguments)]
    fn new(
        py: Python<'_>,
        program: &Program,
        inputs: Vec<(u32, PathBuf)>,
        out: PathBuf,
        commands: Option<PathBuf>,
        engine: &str,
        trace: u64,
        seed: u64,
        cpu_port: Option<u32>,
    ) -> PyResult<Replay> {
        let engine = self::engine(engine)?;
        let options = replay::Options { engine, inputs, out, commands, trace, seed, cpu_port };
        let program = program.0.clone();
        let (replay, pipeline) = interruptible(py, |_| replay::Replay::open(program, options))?;
        Ok(Replay { replay: Some(replay), alone: Alone::shared(pipeline) })
    }

    /// What its control plane can ask of the switch that the packets go through.
    #[getter]
    fn control(&self) -> Target {
        Target::alone(self.alone.clone())
    }

    /// Runs the packets that came until a time (`None`: all), if `pausing` no further than to the first with a message for the
    /// controller; gives the time reached. `progress` gets the number of packets now and then.
    #[pyo3(signature = (until, pausing, progress))]
    fn advance(
        &mut self,
        py: Python<'_>,
        until: Option<u64>,
        pausing: bool,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<u64> {
        let alone = self.alone.clone();
        let mut alone = alone.lock();
        let mut tell = move |count: u64| {
            if let Some(progress) = &progress {
                // Someone who cannot be told how far it is does not stop the work.
                Python::attach(|py| {
                    progress.call1(py, (count,)).map_err(|e| e.write_unraisable(py, None)).ok()
                });
            }
        };
        let (replay, pipeline) = (self.open()?, &mut alone.pipeline);
        let reached = interruptible(py, |interrupt| {
            replay.advance(pipeline, until.unwrap_or(u64::MAX), pausing, interrupt, &mut tell)
        })?;
        alone.now = reached;
        Ok(reached)
    }

    /// Whether the captures have ended.
    #[getter]
    fn done(&self) -> bool {
        self.replay.as_ref().is_none_or(replay::Replay::done)
    }

    /// The next packet for the controller: when it came, its bytes, and how many bytes of it were not captured.
    fn take_packet_in<'py>(&mut self, py: Python<'py>) -> PyResult<Option<(u64, Bound<'py, PyBytes>, u32)>> {
        let packet = self.open()?.take_packet_in();
        Ok(packet.map(|p| (p.at, PyBytes::new(py, &p.bytes), p.more)))
    }

    /// A packet of the controller's, which comes in by its port.
    fn packet_out(&mut self, packet: &[u8]) -> PyResult<()> {
        let alone = self.alone.clone();
        let mut alone = alone.lock();
        self.open()?.packet_out(&mut alone.pipeline, packet).map_err(raise)
    }

    /// Ends it without captures: what is written of them goes away at once, whoever still holds on to this.
    fn abandon(&mut self) {
        self.replay = None;
    }

    /// Gives the captures their names, and the answer as JSON text.
    fn finish(&mut self) -> PyResult<String> {
        let replay = self.replay.take().ok_or_else(|| refused("the replay is finished"))?;
        let answer = replay.finish(&mut self.alone.lock().pipeline).map_err(raise)?;
        Ok(answer.to_string())
    }
}
