//! The commands of `tidegate`: each gives back the JSON text of its answer, or raises `TidegateError` with one message.

use std::collections::HashMap;
use std::path::PathBuf;

use commands::load::{Engine, Source};
use commands::{Failure, stf as testing};
use pyo3::prelude::*;

use crate::{TidegateError, raise};

pub(crate) fn engine(name: &str) -> PyResult<Engine> {
    name.parse().map_err(TidegateError::new_err)
}

/// Runs `work` without the interpreter lock, with a check for Ctrl-C that work asks for now and then.
pub(crate) fn interruptible<T: Send>(
    py: Python<'_>,
    work: impl FnOnce(&mut dyn FnMut() -> commands::Result<()>) -> commands::Result<T> + Send,
) -> PyResult<T> {
    let mut signal: Option<PyErr> = None;
    let result = py.detach(|| {
        work(&mut || {
            Python::attach(|py| py.check_signals()).map_err(|e| {
                signal = Some(e);
                Failure("interrupted".into())
            })
        })
    });
    if let (Some(error), Err(_)) = (signal, &result) {
        return Err(error);
    }
    py.check_signals()?;
    result.map_err(raise)
}

/// Limits of the compiler, by name.
#[pyfunction]
pub fn default_limits() -> Vec<(&'static str, u64)> {
    p4lang::Limits::default().all()
}

#[pyfunction]
pub fn check(
    py: Python<'_>,
    path: PathBuf,
    includes: Vec<PathBuf>,
    defines: Vec<String>,
    limits: HashMap<String, u64>,
    p4info: Option<PathBuf>,
    color: bool,
) -> PyResult<String> {
    let limits = commands::load::limits(limits).map_err(raise)?;
    let source = Source { path, includes, defines, limits };
    let answer = py.detach(|| commands::check::check(&source, p4info.as_deref(), color)).map_err(raise)?;
    Ok(answer.to_string())
}

#[pyfunction]
#[pyo3(signature = (path, test, includes, defines, engine, trace, seed))]
#[allow(clippy::too_many_arguments)]
pub fn stf(
    py: Python<'_>,
    path: PathBuf,
    test: PathBuf,
    includes: Vec<PathBuf>,
    defines: Vec<String>,
    engine: &str,
    trace: bool,
    seed: u64,
) -> PyResult<String> {
    let source = Source { path, includes, defines, ..Source::default() };
    let options = testing::Options { engine: self::engine(engine)?, trace, seed };
    let answer = interruptible(py, |interrupt| testing::run(source.program()?, &test, options, interrupt))?;
    Ok(answer.to_string())
}
