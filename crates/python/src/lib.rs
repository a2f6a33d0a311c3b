//! The Python module `tidegate._core`: a thin skin over [`tools`] and the engine. No logic of its own.

mod commands;

use pyo3::prelude::*;

pyo3::create_exception!(
    _core,
    TidegateError,
    pyo3::exceptions::PyException,
    "The input or the run is at fault."
);

/// `tidegate._core`.
#[pymodule]
fn _core(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add("__version__", env!("CARGO_PKG_VERSION"))?;
    m.add("TidegateError", m.py().get_type::<TidegateError>())?;
    m.add_function(wrap_pyfunction!(commands::check, m)?)?;
    Ok(())
}
