//! The commands of `tidegate`: each gives back the JSON text of its answer, or raises `TidegateError` with one message.

use std::path::PathBuf;

use pyo3::prelude::*;
use tools::Failure;
use tools::load::Source;

use crate::TidegateError;

fn raise(failure: Failure) -> PyErr {
    TidegateError::new_err(failure.0)
}

fn source(path: PathBuf, includes: Vec<PathBuf>, defines: Vec<String>) -> Source {
    Source { path, includes, defines }
}

#[pyfunction]
pub fn check(
    py: Python<'_>,
    path: PathBuf,
    includes: Vec<PathBuf>,
    defines: Vec<String>,
    p4info: Option<PathBuf>,
    color: bool,
) -> PyResult<String> {
    let source = source(path, includes, defines);
    let answer = py.detach(|| tools::check::check(&source, p4info.as_deref(), color)).map_err(raise)?;
    Ok(answer.to_string())
}
