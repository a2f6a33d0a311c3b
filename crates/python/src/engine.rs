//! Programs and pipelines as Python objects.

use std::path::PathBuf;
use std::sync::Arc;

use dataplane::control::resolve;
use dataplane::pipeline;
use p4lang::ir;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use tools::commands::Session;
use tools::load::Source;

use crate::{TidegateError, raise};

fn refused(why: impl ToString) -> PyErr {
    TidegateError::new_err(why.to_string())
}

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

    /// P4Info in protobuf text form.
    fn p4info(&self) -> String {
        p4lang::p4info::p4info(&self.0)
    }

    /// What is in it, as JSON text.
    fn summary(&self) -> String {
        tools::check::summary(&self.0).to_string()
    }
}

/// One switch. Belongs to the thread that made it.
#[pyclass(unsendable, module = "tidegate._core")]
pub struct Pipeline {
    inner: pipeline::Pipeline,
    outputs: Vec<pipeline::Output>,
}

#[pymethods]
impl Pipeline {
    #[new]
    fn new(program: &Program, engine: &str, seed: u64) -> PyResult<Pipeline> {
        let engine = engine.parse().map_err(refused)?;
        let (inner, _) = tools::load::pipeline(program.0.clone(), engine, seed).map_err(raise)?;
        Ok(Pipeline { inner, outputs: Vec::new() })
    }

    /// Runs one packet at a time in picoseconds; gives ports and packets.
    fn process<'py>(
        &mut self,
        py: Python<'py>,
        now: u64,
        port: u32,
        packet: &[u8],
    ) -> Vec<(u32, Bound<'py, PyBytes>)> {
        self.inner.process(now, port, packet, &mut self.outputs);
        let mut out = Vec::with_capacity(self.outputs.len());
        for output in self.outputs.drain(..) {
            out.push((output.port, PyBytes::new(py, &output.bytes)));
            self.inner.recycle(output.bytes);
        }
        out
    }

    /// As `process`, and the steps as text.
    fn trace<'py>(
        &mut self,
        py: Python<'py>,
        now: u64,
        port: u32,
        packet: &[u8],
    ) -> (Vec<(u32, Bound<'py, PyBytes>)>, String) {
        let mut outputs = Vec::new();
        let trace = self.inner.process_traced(now, port, packet, &mut outputs);
        (outputs.iter().map(|o| (o.port, PyBytes::new(py, &o.bytes))).collect(), trace.to_string())
    }

    /// One line of the reference switch's command language.
    fn command(&mut self, now: u64, line: &str) -> PyResult<String> {
        let mut session = Session { pipeline: &mut self.inner, now };
        session.execute(line).unwrap_or_else(|| Ok(String::new())).map_err(refused)
    }

    /// All cells of a register: 64-bit words, least significant first, and the number of words of a cell.
    fn register_read<'py>(&self, py: Python<'py>, name: &str) -> PyResult<(Bound<'py, PyBytes>, usize)> {
        let index = self.inner.register_index(name).map_err(refused)?;
        let register = &self.inner.state.registers[index];
        let bytes: Vec<u8> = register.cells.iter().flat_map(|word| word.to_le_bytes()).collect();
        Ok((PyBytes::new(py, &bytes), register.words_per_cell))
    }

    /// Sets cells from `start` on.
    fn register_write(&mut self, name: &str, start: usize, words: &[u8]) -> PyResult<()> {
        let index = self.inner.register_index(name).map_err(refused)?;
        let register = &mut self.inner.state.registers[index];
        let per_cell = register.words_per_cell;
        let words: Vec<u64> = words
            .chunks_exact(8)
            .map(|c| c.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte)))
            .collect();
        if !words.len().is_multiple_of(per_cell) {
            return Err(refused(format!("a cell of register `{name}` has {per_cell} words of 64 bits")));
        }
        let top_bits = register.width - 64 * (per_cell as u32 - 1);
        if top_bits < 64 && words.chunks(per_cell).any(|cell| cell[per_cell - 1] >> top_bits != 0) {
            return Err(refused(format!(
                "a value does not fit in the {} bits of register `{name}`",
                register.width
            )));
        }
        let at = start.checked_mul(per_cell);
        let cells = register.cells.len() / per_cell;
        match at.and_then(|at| register.cells.get_mut(at..at.checked_add(words.len())?)) {
            Some(slot) => {
                slot.copy_from_slice(&words);
                Ok(())
            }
            None => Err(refused(format!(
                "register `{name}` has {cells} cells; {} from {start} on are too many",
                words.len() / per_cell
            ))),
        }
    }

    /// Packets and bytes of all cells of a counter, as 64-bit words.
    fn counter_read<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyBytes>> {
        let infos = self.inner.program().counters.iter().map(|c| &c.info);
        let index = resolve("counter", name, infos).map_err(refused)?;
        let cells = &self.inner.state.counters[index];
        let bytes: Vec<u8> =
            cells.iter().flat_map(|c| [c.packets, c.bytes]).flat_map(|word| word.to_le_bytes()).collect();
        Ok(PyBytes::new(py, &bytes))
    }

    /// Packets dropped, by reason.
    fn drops(&self) -> Vec<(&'static str, u64)> {
        self.inner.drops().iter().map(|(reason, count)| (reason.name(), *count)).collect()
    }
}
