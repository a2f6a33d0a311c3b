//! Queues by class at a port of a plain router, and the filter in front of them.

use std::cell::OnceCell;
use std::net::Ipv4Addr;
use std::sync::Arc;

use control::{Answer, FixedOp, Op};
use network::{FlowKey, Network, PortId};
use p4lang::ir;
use pyo3::prelude::*;

use crate::answers;
use crate::errors::refused;
use crate::simulation::Simulation;
use crate::source::{PythonSource, Runs};

/// Source, target, protocol, source port, target port.
type FiveTuple = (String, String, u8, u16, u16);

/// A port of a plain router, with queues by class.
#[pyclass(frozen, module = "tidegate._core", name = "RouterPort")]
pub struct RouterPort {
    simulation: Py<Simulation>,
    port: PortId,
}

/// There is no program.
struct Nothing;

impl Runs for Nothing {
    fn program(&self, _: Python<'_>) -> PyResult<Arc<ir::Program>> {
        Err(refused("a plain router runs no program"))
    }
}

fn key((from, to, protocol, port_from, port_to): &FiveTuple) -> PyResult<FlowKey> {
    let address = |text: &str| {
        let parsed: Result<Ipv4Addr, _> = text.parse();
        parsed.map(|a| a.octets()).map_err(|_| refused(format!("{text:?} is no IPv4 address")))
    };
    Ok(FlowKey::new(address(from)?, address(to)?, *protocol, *port_from, *port_to))
}

impl RouterPort {
    fn with<T: Send>(&self, py: Python<'_>, act: impl FnOnce(&mut Network) -> T + Send) -> T {
        self.simulation.get().with(py, act)
    }
}

#[pymethods]
impl RouterPort {
    /// The queues of a port as an operation `PortSet` sets them; makes them if there are none.
    #[new]
    fn new(simulation: &Bound<'_, Simulation>, port: u32, set: &Bound<'_, PyAny>) -> PyResult<RouterPort> {
        let port = simulation.get().port(port)?;
        let made = RouterPort { simulation: simulation.clone().unbind(), port };
        made.act(simulation.py(), set)?;
        Ok(made)
    }

    /// Does `PortSet`, `PortRead` or `QueueRead`; their port is this one, whatever they say.
    fn act<'py>(&self, py: Python<'py>, op: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let port = self.port;
        let answer = match PythonSource::read(op, &Nothing, &OnceCell::new())? {
            Op::Fixed(FixedOp::SetPort { to, .. }) => {
                self.with(py, |network| network.set_classes(port, &to)).map_err(refused)?;
                Answer::Done
            }
            Op::Fixed(FixedOp::ReadPort { .. }) => {
                Answer::Port(self.with(py, |network| network.classes(port)).map_err(refused)?)
            }
            Op::Fixed(FixedOp::ReadQueue { queue, .. }) => {
                let found = self.with(py, |network| network.queue_state(port, queue as usize));
                Answer::Queue(found.ok_or_else(|| refused(format!("this port has no queue {queue}")))?)
            }
            _ => return Err(refused("a router's port has queues, and nothing else that can be asked for")),
        };
        answers::into_python(py, answer)
    }

    /// Puts flows into a queue; with none, back to where unknown flows are.
    fn assign(&self, py: Python<'_>, flows: Vec<FiveTuple>, queue: Option<u32>) -> PyResult<()> {
        let keys = flows.iter().map(key).collect::<PyResult<Vec<_>>>()?;
        self.with(py, |network| network.assign(self.port, &keys, queue)).map_err(refused)
    }
}
