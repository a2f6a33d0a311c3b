//! Live networks for Python: the threads that run one belong to its `Simulation`.

use std::sync::Arc;
use std::time::Duration;

use live::{Failure, Live, Settings, Shared, Wiring};
use network::Network;
use parking_lot::Mutex;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use units::Time;

use crate::TidegateError;

/// How often a wait looks for Ctrl-C.
const SLICE: Duration = Duration::from_millis(50);

fn failed(why: Failure) -> PyErr {
    TidegateError::new_err(why.0)
}

/// The thread of a network that is live.
#[derive(Default)]
pub struct Running(Mutex<Option<Live>>);

impl Running {
    /// `None`: the network is not live.
    pub fn shared(&self) -> Option<Arc<Shared>> {
        self.0.lock().as_ref().map(|live| live.shared().clone())
    }

    fn here(&self) -> PyResult<Arc<Shared>> {
        self.shared().ok_or_else(|| TidegateError::new_err("the network is not live; call go_live first"))
    }

    pub fn start(
        &self,
        py: Python<'_>,
        network: &Arc<Mutex<Network>>,
        ports: Vec<Wiring>,
        threads: usize,
        settings: Settings,
    ) -> PyResult<()> {
        py.detach(|| {
            let mut running = self.0.lock();
            if running.is_some() {
                return Err(Failure("the network is live already".to_owned()));
            }
            *running = Some(Live::start(network.clone(), ports, threads, settings)?);
            Ok(())
        })
        .map_err(failed)
    }

    pub fn until(&self, py: Python<'_>, end: Time) -> PyResult<u64> {
        let shared = self.here()?;
        while !py.detach(|| shared.wait(end, SLICE)).map_err(failed)? && shared.now() < end {
            py.check_signals()?;
        }
        Ok(shared.now().min(end).as_ps())
    }

    pub fn statistics<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let shared = self.here()?;
        let (ports, lateness, wakeups) = py.detach(|| shared.status());
        let out = PyDict::new(py);
        out.set_item("wakeups", wakeups)?;
        let late = PyDict::new(py);
        late.set_item("frames", lateness.distribution.total())?;
        for (name, share) in [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p999", 0.999)] {
            // A step of the distribution may reach beyond the latest frame.
            let late_by = lateness.distribution.quantile(share).map(|late| late.min(lateness.most));
            late.set_item(name, late_by.map(Time::as_ps))?;
        }
        late.set_item("max", lateness.most.as_ps())?;
        out.set_item("lateness", late)?;
        let ports = ports.into_iter().map(|port| {
            let row = PyDict::new(py);
            row.set_item("interface", port.interface)?;
            row.set_item("kind", port.kind.to_string())?;
            row.set_item("mtu", port.mtu)?;
            row.set_item("up", port.up)?;
            row.set_item("notice", port.notice)?;
            for (name, count) in port.counts.named() {
                row.set_item(name, count)?;
            }
            Ok(row)
        });
        out.set_item("ports", ports.collect::<PyResult<Vec<_>>>()?)?;
        Ok(out)
    }

    pub fn end(&self, py: Python<'_>) {
        let live = self.0.lock().take();
        py.detach(|| drop(live));
    }
}
