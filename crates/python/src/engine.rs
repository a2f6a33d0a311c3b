//! Programs and pipelines as Python objects.

use std::any::Any;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, LazyLock};

use commands::load::Source;
use dataplane::pipeline;
use p4lang::ir;
use parking_lot::Mutex;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::errors::refused;
use crate::raise;

/// A compiled program. Immutable.
#[pyclass(frozen, module = "tidegate._core")]
pub struct Program(pub(crate) Arc<ir::Program>);

#[pymethods]
impl Program {
    #[new]
    fn new(
        py: Python<'_>,
        path: PathBuf,
        includes: Vec<PathBuf>,
        defines: Vec<String>,
        limits: HashMap<String, u64>,
    ) -> PyResult<Program> {
        let limits = commands::load::limits(limits).map_err(raise)?;
        let source = Source { path, includes, defines, limits };
        py.detach(|| source.program()).map(Program).map_err(raise)
    }

    /// Compiles text that comes from elsewhere: it can include nothing but the architecture's declarations.
    #[staticmethod]
    fn from_text(py: Python<'_>, name: &str, text: &str, limits: HashMap<String, u64>) -> PyResult<Program> {
        let limits = commands::load::limits(limits).map_err(raise)?;
        py.detach(|| commands::load::program_from_text(name, text, limits)).map(Program).map_err(raise)
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

/// In place of a program that runs elsewhere now.
const NOTHING: &str = "
#include <v1model.p4>
struct H {} struct M {}
parser P(packet_in p, out H h, inout M m, inout standard_metadata_t s) { state start { transition accept; } }
control V(inout H h, inout M m) { apply {} }
control I(inout H h, inout M m, inout standard_metadata_t s) { apply {} }
control D(packet_out p, in H h) { apply {} }
V1Switch(P(), V(), I(), I(), V(), D()) main;
";

static NO_PROGRAM: LazyLock<Arc<ir::Program>> = LazyLock::new(|| {
    let compiled = p4lang::compile_str("nothing.p4", NOTHING, None, &p4lang::Options::default());
    Arc::new(compiled.program.expect("it is a program"))
});

/// A pipeline without ports and queues around it, and its time.
pub struct Alone {
    pub pipeline: pipeline::Pipeline,
    outputs: Vec<pipeline::Output>,
    /// Picoseconds.
    pub now: u64,
}

impl Alone {
    pub fn shared(pipeline: pipeline::Pipeline) -> Arc<Mutex<Alone>> {
        Arc::new(Mutex::new(Alone { pipeline, outputs: Vec::new(), now: 0 }))
    }
}

/// A pipeline that packets are run through one by one.
#[pyclass(frozen, module = "tidegate._core")]
pub struct Pipeline(Arc<Mutex<Alone>>);

impl Pipeline {
    pub(crate) fn shared(&self) -> Arc<Mutex<Alone>> {
        self.0.clone()
    }

    /// What runs here; nothing does afterwards. It takes the same time for each program.
    pub(crate) fn take(&self) -> pipeline::Pipeline {
        let nothing = pipeline::Pipeline::interpreted(NO_PROGRAM.clone(), 0).expect("it can be run");
        std::mem::replace(&mut self.0.lock().pipeline, nothing)
    }
}

/// What is not in use any more: to free it takes time, for which nobody need wait.
#[pyclass(frozen, module = "tidegate._core")]
pub struct Leftover(Mutex<Option<Box<dyn Any + Send>>>);

impl Leftover {
    pub(crate) fn new(left: impl Any + Send) -> Leftover {
        Leftover(Mutex::new(Some(Box::new(left))))
    }
}

#[pymethods]
impl Leftover {
    /// Frees it. Other threads of Python go on meanwhile.
    fn free(&self, py: Python<'_>) {
        py.detach(|| drop(self.0.lock().take()));
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
        let (pipeline, _) = made.map_err(raise)?;
        Ok(Pipeline(Alone::shared(pipeline)))
    }

    /// Runs nothing any more; gives what it had.
    fn give_up(&self, py: Python<'_>) -> Leftover {
        Leftover::new(py.detach(|| self.take()))
    }

    /// Runs one packet at a time in picoseconds; gives ports and packets.
    fn process<'py>(&self, py: Python<'py>, now: u64, port: u32, packet: &[u8]) -> PyResult<Sent<'py>> {
        demand_port(port)?;
        let mut alone = self.0.lock();
        let Alone { pipeline, outputs, now: time } = &mut *alone;
        *time = now;
        pipeline.process(now, port, packet, outputs);
        let mut out = Vec::with_capacity(outputs.len());
        for output in outputs.drain(..) {
            out.push((output.port, PyBytes::new(py, &output.bytes)));
            pipeline.recycle(output.bytes);
        }
        Ok(out)
    }

    /// As `process`, and the steps as text.
    fn trace<'py>(
        &self,
        py: Python<'py>,
        now: u64,
        port: u32,
        packet: &[u8],
    ) -> PyResult<(Sent<'py>, String)> {
        demand_port(port)?;
        let mut alone = self.0.lock();
        alone.now = now;
        let mut outputs = Vec::new();
        let trace = alone.pipeline.process_traced(now, port, packet, &mut outputs);
        Ok((outputs.iter().map(|o| (o.port, PyBytes::new(py, &o.bytes))).collect(), trace.to_string()))
    }

    /// The time from which on the next writes and reads are.
    fn advance(&self, now: u64) {
        self.0.lock().now = now;
    }
}
