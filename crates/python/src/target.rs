//! What a control plane can ask of a program that runs: on a switch of a network, simulated or live, or on a pipeline alone.

use std::cell::OnceCell;
use std::path::PathBuf;
use std::sync::Arc;

use commands::cli::{Script, Session, answer_text, operation, operation_words};
use control::{Answer, FixedOp, MOST_AT_A_TIME, Op, StateOp, TableOp, Target as _};
use network::{Network, NodeId};
use p4lang::ir;
use parking_lot::Mutex;
use pyo3::prelude::*;
use units::Time;

use crate::answers::{self, Entries};
use crate::engine::{Alone, Leftover, Pipeline};
use crate::errors::{raise, refused};
use crate::simulation::Simulation;
use crate::source::{PythonSource, Runs};

/// Where the program runs.
enum Of {
    Switch { simulation: Py<Simulation>, node: NodeId },
    Alone(Arc<Mutex<Alone>>),
}

/// It, between packets.
enum Held<'a> {
    Switch(&'a mut Network, NodeId),
    Alone(&'a mut Alone),
}

impl Held<'_> {
    fn act(&mut self, op: &Op) -> control::Result<Answer> {
        match self {
            Held::Switch(network, node) => network.act(*node, op),
            Held::Alone(alone) => alone.pipeline.act(Time::from_ps(alone.now), op),
        }
    }

    /// As an operation, with so many pages of a table's entries as packets may wait for.
    fn act_on_pages(&mut self, op: &Op) -> control::Result<Answer> {
        if let Op::Table(op) = op
            && let Ok((pipeline, now)) = self.pipeline()
        {
            return pipeline.act_on_pages(Time::from_ps(now), op);
        }
        self.act(op)
    }

    fn act_all(&mut self, ops: &[Op]) -> Result<Vec<Answer>, (usize, control::Error)> {
        match self {
            Held::Switch(network, node) => network.act_all(*node, ops),
            Held::Alone(alone) => alone.pipeline.act_all(Time::from_ps(alone.now), ops),
        }
    }

    /// Does what a line of commands says. `op` has all operations of a switch, the other commands those of its program.
    fn line(&mut self, line: &str) -> PyResult<Option<commands::cli::Answer>> {
        let Some(words) = operation_words(line) else {
            let (pipeline, now) = self.pipeline()?;
            return Ok((Session { pipeline, now }).execute(line));
        };
        let op = operation(self.pipeline()?.0.program(), &words);
        let done = op.and_then(|op| self.act(&op).map_err(|error| error.to_string()));
        Ok(Some(done.map(|answer| answer_text(&answer))))
    }

    /// The pipeline, and what time it is.
    fn pipeline(&mut self) -> PyResult<(&mut dataplane::pipeline::Pipeline, u64)> {
        Ok(match self {
            Held::Switch(network, node) => {
                let now = network.now().as_ps();
                (network.pipeline(*node).map_err(refused)?, now)
            }
            Held::Alone(alone) => (&mut alone.pipeline, alone.now),
        })
    }
}

/// A switch as its control plane sees it.
#[pyclass(frozen, module = "tidegate._core", name = "SwitchControl")]
pub struct Target {
    of: Of,
}

impl Target {
    pub fn alone(alone: Arc<Mutex<Alone>>) -> Target {
        Target { of: Of::Alone(alone) }
    }

    /// Does something between packets. Other threads of Python go on meanwhile.
    fn with<T: Send>(&self, py: Python<'_>, act: impl FnOnce(Held<'_>) -> T + Send) -> T {
        py.detach(|| self.between(act))
    }

    /// As [`Target::with`], for a thread that is detached from Python already.
    fn between<T>(&self, act: impl FnOnce(Held<'_>) -> T) -> T {
        match &self.of {
            Of::Switch { simulation, node } => {
                simulation.get().between(|network| act(Held::Switch(network, *node)))
            }
            Of::Alone(alone) => act(Held::Alone(&mut alone.lock())),
        }
    }

    /// Does operations, as many at a time as packets may wait for; the answer of each.
    fn do_each(&self, ops: &[&Op]) -> Vec<control::Result<Answer>> {
        let mut done = Vec::with_capacity(ops.len());
        while done.len() < ops.len() {
            self.between(|mut held| {
                let mut parts = 0;
                for op in &ops[done.len()..] {
                    let own = held.pipeline().map_or(0, |(pipeline, _)| pipeline.parts_of(op));
                    if parts > 0 && parts + own > MOST_AT_A_TIME {
                        break;
                    }
                    parts += own;
                    done.push(held.act(op));
                }
            });
        }
        done
    }

    fn do_one(&self, py: Python<'_>, op: Op) -> PyResult<Answer> {
        self.with(py, |mut held| held.act(&op)).map_err(|error| raise(py, &error))
    }
}

impl Runs for Target {
    fn program(&self, py: Python<'_>) -> PyResult<Arc<ir::Program>> {
        self.with(py, |mut held| Ok(held.pipeline()?.0.program().clone()))
    }
}

#[pymethods]
impl Target {
    /// The control surface of a switch of a network. To be called when all links are there.
    #[staticmethod]
    fn of_switch(simulation: &Bound<'_, Simulation>, node: u32) -> PyResult<Target> {
        let held = simulation.get();
        let node = held.node(node)?;
        held.with(simulation.py(), |network| network.pipeline(node).map(|_| ())).map_err(refused)?;
        Ok(Target { of: Of::Switch { simulation: simulation.clone().unbind(), node } })
    }

    /// The control surface of a pipeline alone.
    #[staticmethod]
    fn of_pipeline(pipeline: &Pipeline) -> Target {
        Target::alone(pipeline.shared())
    }

    /// Picoseconds.
    fn now(&self, py: Python<'_>) -> u64 {
        self.with(py, |held| match held {
            Held::Switch(network, _) => network.now().as_ps(),
            Held::Alone(alone) => alone.now,
        })
    }

    /// Does an operation; gives its answer.
    fn act<'py>(&self, py: Python<'py>, op: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let op = PythonSource::read(op, self, &OnceCell::new())?;
        answers::into_python(py, self.do_one(py, op)?)
    }

    /// Reads entries as a `table_read` of several does, up to `slices` times in a row, with packets in between; gives them,
    /// and the handle from which to go on. A slice is as many as are copied in half a millisecond: whoever waits for the data plane
    /// waits longer for its turn than for them.
    fn table_entries(
        &self,
        py: Python<'_>,
        op: &Bound<'_, PyAny>,
        slices: u32,
    ) -> PyResult<(Entries, Option<u32>)> {
        let mut op = PythonSource::read(op, self, &OnceCell::new())?;
        let read = py.detach(|| {
            let mut entries = Vec::new();
            for _ in 0..slices {
                let Answer::Rows { rows, next } = self.between(|mut held| held.act_on_pages(&op))? else {
                    return Ok((entries, None));
                };
                entries.extend(rows);
                let (Op::Table(TableOp::Read { start, .. }), Some(next)) = (&mut op, next) else {
                    return Ok((entries, None));
                };
                *start = next;
            }
            let Op::Table(TableOp::Read { start, .. }) = op else { return Ok((entries, None)) };
            Ok((entries, Some(start)))
        });
        read.map(|(rows, next)| (Entries { rows }, next)).map_err(|error| raise(py, &error))
    }

    /// Does operations in order, whatever comes of each; gives for each its answer, or the error that `act` would have raised. Packets
    /// go between them where they would wait for too much.
    fn act_each<'py>(
        &self,
        py: Python<'py>,
        ops: Vec<Bound<'py, PyAny>>,
    ) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let program = OnceCell::new();
        let ops: Vec<PyResult<Op>> = ops.iter().map(|op| PythonSource::read(op, self, &program)).collect();
        let read: Vec<&Op> = ops.iter().filter_map(|op| op.as_ref().ok()).collect();
        let mut done = py.detach(|| self.do_each(&read)).into_iter();
        let each = ops.iter().map(|op| match op {
            Err(error) => Ok(error.value(py).clone().into_any()),
            Ok(_) => match done.next() {
                Some(Ok(answer)) => answers::into_python(py, answer),
                Some(Err(error)) => Ok(raise(py, &error).value(py).clone().into_any()),
                None => Err(refused("an operation was not done")),
            },
        });
        each.collect()
    }

    /// Does all operations, or none; gives their answers. The error has the number of the operation as `index`.
    fn act_all<'py>(&self, py: Python<'py>, ops: Vec<Bound<'py, PyAny>>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let program = OnceCell::new();
        let at = |index: usize, error: PyErr| -> PyErr {
            error.value(py).setattr("index", index).err().unwrap_or(error)
        };
        let read = ops
            .iter()
            .enumerate()
            .map(|(index, op)| PythonSource::read(op, self, &program).map_err(|error| at(index, error)));
        let ops: Vec<Op> = read.collect::<PyResult<_>>()?;
        let done = self.with(py, |mut held| held.act_all(&ops));
        let answers = done.map_err(|(index, error)| at(index, raise(py, &error)))?;
        answers.into_iter().map(|answer| answers::into_python(py, answer)).collect()
    }

    /// Name, match kind and width of each key of a table.
    fn table_keys(&self, py: Python<'_>, table: &str) -> PyResult<Vec<(String, &'static str, u32)>> {
        let program = self.program(py)?;
        let id = control::Name::from(table).table(&program).map_err(|error| raise(py, &error))?;
        let key = |key: &ir::Key| (key.name.clone(), answers::kind_name(key.kind), key.expr.width);
        Ok(program[id].keys.iter().map(key).collect())
    }

    /// Does what one line of the reference switch's command language says; gives its answer.
    fn command(&self, py: Python<'_>, line: &str) -> PyResult<String> {
        let answer = self.with(py, |mut held| held.line(line))?;
        answer.unwrap_or_else(|| Ok(String::new())).map_err(refused)
    }

    /// Runs a file of commands; gives notes on those that have no effect.
    fn script(&self, py: Python<'_>, path: PathBuf) -> PyResult<Vec<String>> {
        let script = Script::read(&path).map_err(crate::raise)?;
        self.with(py, |mut held| {
            for (line, text) in script.lines() {
                if let Some(Err(why)) = held.line(text)? {
                    return Err(crate::raise(script.refused(line, &why)));
                }
            }
            Ok(script.notes())
        })
    }

    /// Runs a pipeline's program from now on, with its state, or with this one's if that is to be kept. Gives what it takes the place
    /// of, which is to be freed where nobody waits for that.
    fn install(&self, py: Python<'_>, next: &Pipeline, keep_state: bool) -> PyResult<Leftover> {
        let mut next = py.detach(|| next.take());
        if keep_state {
            let program = self.program(py)?;
            py.detach(|| next.compare(&program));
        } else {
            py.detach(|| next.provide_memory());
        }
        py.detach(|| {
            let before = self.between(|held| match held {
                Held::Switch(network, node) => network
                    .control(node, |switch, now| switch.replace_program(now, next, keep_state))
                    .map(|before| before.map(|before| (Some(before), None)))
                    .map_err(refused),
                Held::Alone(alone) => {
                    Ok(alone.pipeline.replace(next, keep_state, alone.now).map(|before| (None, Some(before))))
                }
            })?;
            before.map(Leftover::new).map_err(refused)
        })
    }

    /// Digests that the program has sent since they were last taken: `act(DigestsTake())`.
    fn take_digests<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        answers::into_python(py, self.do_one(py, StateOp::TakeDigests {}.into())?)
    }

    /// Entries whose idle timeout has come, with their tables, some at a time: `act(TableIdleTake())`, again as long as it finds none
    /// though there may be some, with packets in between.
    fn take_idle<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        const TIMES: usize = 16;
        let taken = py.detach(|| {
            let (op, mut entries) = (TableOp::TakeIdle {}.into(), Vec::new());
            for _ in 0..TIMES {
                let more = self.between(|mut held| {
                    if let Answer::Idle(rows) = held.act(&op)? {
                        entries = rows;
                    }
                    let due = held.pipeline().map(|(pipeline, now)| pipeline.is_due(Time::from_ps(now)));
                    Ok(entries.is_empty() && due.unwrap_or(false))
                })?;
                if !more {
                    break;
                }
            }
            Ok(entries)
        });
        answers::into_python(py, Answer::Idle(taken.map_err(|error: control::Error| raise(py, &error))?))
    }

    /// The next packet for the controller: `act(PacketTake())`; a pipeline alone has none.
    fn take_packet_in<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        match self.of {
            Of::Switch { .. } => answers::into_python(py, self.do_one(py, FixedOp::TakePacket {}.into())?),
            Of::Alone(_) => Ok(py.None().into_bound(py)),
        }
    }
}
