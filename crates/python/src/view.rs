//! Looks at a simulation while it runs.

use network::{FLOW_COLUMNS, FlowId, PORT_COLUMNS, PortId};
use parking_lot::Mutex;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::simulation::Simulation;

/// Somebody's view of some ports of a simulation and of its first flows, so many at most.
#[pyclass(frozen, module = "tidegate._core")]
pub struct View {
    simulation: Py<Simulation>,
    view: Mutex<network::View>,
}

#[pymethods]
impl View {
    #[new]
    fn new(simulation: Py<Simulation>, ports: Vec<u32>, flows: usize) -> PyResult<View> {
        let ids: Vec<PortId> =
            ports.into_iter().map(|p| simulation.get().port(p)).collect::<PyResult<_>>()?;
        Ok(View { simulation, view: Mutex::new(network::View::new(ids, flows)) })
    }

    /// Looks at these flows, and in turn at so many of all flows and of the ports. Gives columns: name, and values as 32-bit floats.
    fn look<'py>(
        &self,
        py: Python<'py>,
        flows: Vec<u32>,
        most: usize,
    ) -> PyResult<Vec<(String, Bound<'py, PyBytes>)>> {
        let simulation = self.simulation.get();
        let flows: Vec<FlowId> = flows.into_iter().map(|f| simulation.flow(f)).collect::<PyResult<_>>()?;
        let (flows, ports) = simulation.with(py, |network| network.look(&mut self.view.lock(), &flows, most));
        let named = |kind: &'static str, names: [&'static str; 5], rows: [Vec<f32>; 5]| {
            names.into_iter().zip(rows).map(move |(name, column)| {
                let bytes: Vec<u8> = column.iter().flat_map(|value| value.to_le_bytes()).collect();
                (format!("{kind} {name}"), PyBytes::new(py, &bytes))
            })
        };
        Ok(named("flow", FLOW_COLUMNS, flows).chain(named("queue", PORT_COLUMNS, ports)).collect())
    }
}
