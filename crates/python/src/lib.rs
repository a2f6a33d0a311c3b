//! The Python module `tidegate._core`: a thin skin over [`commands`], the engine and the simulator. No logic of its own.

#![forbid(unsafe_code)]

mod addresses;
mod agents;
mod answers;
mod arrow;
mod engine;
mod errors;
mod live;
mod monitor;
mod replay;
mod routers;
mod simulation;
mod source;
mod specs;
mod target;
mod tasks;
mod values;
mod view;

use commands::Failure;
use pyo3::prelude::*;

pyo3::create_exception!(
    tidegate._core,
    TidegateError,
    pyo3::exceptions::PyException,
    "The input or the run is at fault."
);

fn raise(failure: Failure) -> PyErr {
    TidegateError::new_err(failure.0)
}

/// `tidegate._core`.
#[pymodule]
fn _core(m: &Bound<'_, PyModule>) -> PyResult<()> {
    // A panic reaches Python as an exception with its text; printing it here as well would say it twice.
    std::panic::set_hook(Box::new(|_| {}));
    m.add("__version__", env!("CARGO_PKG_VERSION"))?;
    m.add("TidegateError", m.py().get_type::<TidegateError>())?;
    m.add_class::<engine::Program>()?;
    m.add_class::<engine::Pipeline>()?;
    m.add_class::<engine::Leftover>()?;
    m.add_class::<replay::Replay>()?;
    m.add_class::<simulation::Simulation>()?;
    m.add_class::<agents::HostAgents>()?;
    m.add_class::<view::View>()?;
    m.add_class::<target::Target>()?;
    m.add_class::<answers::Entries>()?;
    m.add_class::<routers::RouterPort>()?;
    m.add_class::<monitor::InterfaceMonitor>()?;
    m.add_class::<arrow::Columns>()?;
    m.add_class::<values::Sizes>()?;
    m.add_function(wrap_pyfunction!(values::parse_value, m)?)?;
    m.add_function(wrap_pyfunction!(values::parse_match, m)?)?;
    m.add_function(wrap_pyfunction!(values::parse_time, m)?)?;
    m.add_function(wrap_pyfunction!(values::parse_rate, m)?)?;
    m.add_function(wrap_pyfunction!(values::parse_size, m)?)?;
    m.add_function(wrap_pyfunction!(values::show_time, m)?)?;
    m.add_function(wrap_pyfunction!(values::show_rate, m)?)?;
    m.add_function(wrap_pyfunction!(values::check_congestion_control, m)?)?;
    m.add_function(wrap_pyfunction!(addresses::host_ipv4, m)?)?;
    m.add_function(wrap_pyfunction!(addresses::host_mac, m)?)?;
    m.add_function(wrap_pyfunction!(addresses::flow_ports, m)?)?;
    m.add_function(wrap_pyfunction!(tasks::default_limits, m)?)?;
    m.add_function(wrap_pyfunction!(tasks::check, m)?)?;
    m.add_function(wrap_pyfunction!(tasks::stf, m)?)?;
    m.add_function(wrap_pyfunction!(monitor::monitor, m)?)?;
    Ok(())
}
