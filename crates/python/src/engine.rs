//! Programs and pipelines as Python objects.

use std::path::PathBuf;
use std::sync::Arc;

use commands::cli::Session;
use commands::load::Source;
use dataplane::pipeline;
use p4lang::ir;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::control::{self, refused};
use crate::raise;
use crate::reads;
use crate::writes::{self, Match, Writes};

/// A compiled program. Immutable.
#[pyclass(frozen, module = "tidegate._core")]
pub struct Program(pub(crate) Arc<ir::Program>);

#[pymethods]
impl Program {
    #[new]
    fn new(py: Python<'_>, path: PathBuf, includes: Vec<PathBuf>, defines: Vec<String>) -> PyResult<Program> {
        let source = Source { path, includes, defines };
        py.detach(|| source.program()).map(Program).map_err(raise)
    }

    /// Compiles text that comes from elsewhere: it can include nothing but the architecture's declarations.
    #[staticmethod]
    fn from_text(py: Python<'_>, name: &str, text: &str) -> PyResult<Program> {
        py.detach(|| commands::load::program_from_text(name, text)).map(Program).map_err(raise)
    }

    /// P4Info in protobuf text form.
    fn p4info(&self) -> String {
        p4lang::p4info::p4info(&self.0)
    }

    /// Direction of each controller header, with names and widths of its fields.
    fn controller_headers(&self) -> Vec<(String, Vec<(String, u32)>)> {
        let header = |h: &ir::ControllerHeader| {
            (h.direction.clone(), h.fields.iter().map(|f| (f.name.clone(), f.width)).collect())
        };
        self.0.controller_headers.iter().map(header).collect()
    }

    /// What is in it, as JSON text.
    fn summary(&self) -> String {
        commands::check::summary(&self.0).to_string()
    }
}

/// One switch.
#[pyclass(module = "tidegate._core")]
pub struct Pipeline {
    inner: pipeline::Pipeline,
    outputs: Vec<pipeline::Output>,
    now: u64,
}

impl Pipeline {
    pub(crate) fn of(inner: pipeline::Pipeline) -> Pipeline {
        Pipeline { inner, outputs: Vec::new(), now: 0 }
    }

    pub(crate) fn engine(&mut self) -> &mut pipeline::Pipeline {
        &mut self.inner
    }

    pub(crate) fn set_now(&mut self, now: u64) {
        self.now = now;
    }

    /// What runs here, which begins anew.
    pub(crate) fn take(&mut self) -> pipeline::Pipeline {
        let fresh = self.inner.another(0);
        std::mem::replace(&mut self.inner, fresh)
    }
}

/// Ports, and the packets that leave by them.
type Sent<'py> = Vec<(u32, Bound<'py, PyBytes>)>;

/// Ports have nine bits.
fn demand_port(port: u32) -> PyResult<()> {
    if port > pipeline::DROP_PORT {
        let last = pipeline::DROP_PORT;
        return Err(refused(format!("{port} is not a port's number: give a whole number from 0 to {last}")));
    }
    Ok(())
}

#[pymethods]
impl Pipeline {
    #[new]
    fn new(py: Python<'_>, program: &Program, engine: &str, seed: u64) -> PyResult<Pipeline> {
        let engine = engine.parse().map_err(refused)?;
        let made = py.detach(|| commands::load::pipeline(program.0.clone(), engine, seed));
        let (inner, _) = made.map_err(raise)?;
        Ok(Pipeline::of(inner))
    }

    /// Picoseconds: the time of the last packet, or what was said since.
    fn now(&self) -> u64 {
        self.now
    }

    /// Runs one packet at a time in picoseconds; gives ports and packets.
    fn process<'py>(&mut self, py: Python<'py>, now: u64, port: u32, packet: &[u8]) -> PyResult<Sent<'py>> {
        demand_port(port)?;
        self.now = now;
        self.inner.process(now, port, packet, &mut self.outputs);
        let mut out = Vec::with_capacity(self.outputs.len());
        for output in self.outputs.drain(..) {
            out.push((output.port, PyBytes::new(py, &output.bytes)));
            self.inner.recycle(output.bytes);
        }
        Ok(out)
    }

    /// As `process`, and the steps as text.
    fn trace<'py>(
        &mut self,
        py: Python<'py>,
        now: u64,
        port: u32,
        packet: &[u8],
    ) -> PyResult<(Sent<'py>, String)> {
        demand_port(port)?;
        self.now = now;
        let mut outputs = Vec::new();
        let trace = self.inner.process_traced(now, port, packet, &mut outputs);
        Ok((outputs.iter().map(|o| (o.port, PyBytes::new(py, &o.bytes))).collect(), trace.to_string()))
    }

    /// One line of the reference switch's command language.
    fn command(&mut self, line: &str) -> PyResult<String> {
        let mut session = Session { pipeline: &mut self.inner, now: self.now };
        session.execute(line).unwrap_or_else(|| Ok(String::new())).map_err(refused)
    }

    /// Cells of a register: 64-bit words, least significant first, and the number of words of a cell.
    fn register_read<'py>(
        &self,
        py: Python<'py>,
        name: &str,
        start: usize,
        count: Option<usize>,
    ) -> PyResult<(Bound<'py, PyBytes>, usize)> {
        let (bytes, words) = control::register_read(&self.inner, name, start, count)?;
        Ok((PyBytes::new(py, &bytes), words))
    }

    /// Sets cells from `start` on.
    fn register_write(&mut self, name: &str, start: usize, words: &[u8]) -> PyResult<()> {
        control::register_write(&mut self.inner, name, start, words)
    }

    /// Packets and bytes of cells of a counter, as 64-bit words.
    fn counter_read<'py>(
        &self,
        py: Python<'py>,
        name: &str,
        start: usize,
        count: Option<usize>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, &control::counter_read(&self.inner, name, start, count)?))
    }

    fn table_entries(&self, name: &str) -> PyResult<Vec<control::Row>> {
        control::table_entries(&self.inner, name)
    }

    fn multicast_set(&mut self, group: u32, copies: Vec<(u32, u32)>) {
        control::multicast_set(&mut self.inner, group, &copies);
    }

    fn multicast_delete(&mut self, group: u32) {
        control::multicast_delete(&mut self.inner, group);
    }

    fn mirror_set(&mut self, session: u32, port: Option<u32>, group: Option<u32>, truncate: Option<u32>) {
        control::mirror_set(&mut self.inner, session, port, group, truncate);
    }

    /// Does writes in order; see `writes.rs`. `None` for each that is done, or why it was refused.
    fn write(&mut self, writes: Writes) -> Vec<writes::Answer> {
        writes::write(&mut self.inner, self.now, writes)
    }

    fn read<'py>(&self, py: Python<'py>, what: &str, name: &str) -> PyResult<Bound<'py, PyAny>> {
        let (program, seen) = reads::read(&self.inner, what, name)?;
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
        reads::entries(&self.inner, self.now, table, start, only)?.page(py)
    }

    /// Entries whose idle timeout has come, with their tables.
    fn take_idle<'py>(&mut self, py: Python<'py>) -> PyResult<Vec<(String, Bound<'py, PyAny>)>> {
        reads::take_idle(&mut self.inner, self.now).named(py)
    }

    /// Runs another pipeline's program from now on, with its state, or with this one's if that is to be kept.
    fn install(&mut self, next: &mut Pipeline, keep_state: bool) -> PyResult<()> {
        self.inner.replace(next.take(), keep_state).map_err(refused)
    }

    /// The time from which on the next writes and reads are.
    fn advance(&mut self, now: u64) {
        self.now = now;
    }

    /// Digests that the program has sent since this was last called.
    fn take_digests(&mut self) -> Vec<control::Digest> {
        let messages: Vec<_> = self.inner.state.digests.drain(..).collect();
        messages.into_iter().map(|m| control::digest(&self.inner, m)).collect()
    }

    /// Digests that were dropped because nobody took them.
    fn digests_lost(&self) -> u64 {
        self.inner.state.digests_lost
    }

    fn table_totals(&self) -> Vec<control::Totals> {
        control::table_totals(&self.inner)
    }

    /// Packets dropped, by reason.
    fn drops(&self) -> Vec<(&'static str, u64)> {
        self.inner.drops().iter().map(|(reason, count)| (reason.name(), *count)).collect()
    }
}
