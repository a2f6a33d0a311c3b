//! `tidegate monitor`.

use std::path::PathBuf;

use ::monitor::{Failure, Options, Rule, watch};
use pyo3::prelude::*;

use crate::TidegateError;

/// Watches captures; gives the answer as JSON text. `progress` gets the number of packets now and then. With `partial`, an interrupt
/// ends it with what was read until then.
#[pyfunction]
#[pyo3(signature = (files, rule, most_flows, samples, partial, progress))]
pub fn monitor(
    py: Python<'_>,
    files: Vec<PathBuf>,
    rule: &str,
    most_flows: usize,
    samples: Option<PathBuf>,
    partial: bool,
    progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    let Some(rule) = Rule::named(rule) else {
        let known = Rule::NAMES.join(", ");
        return Err(TidegateError::new_err(format!("there is no RTT rule `{rule}`; known: {known}")));
    };
    let options = Options { files, rule, most_flows, samples };
    let mut signal: Option<PyErr> = None;
    let mut interrupt = |packets: u64| {
        Python::attach(|py| {
            py.check_signals()?;
            match &progress {
                Some(progress) => progress.call1(py, (packets,)).map(drop),
                None => Ok(()),
            }
        })
        .map_err(|e| {
            signal = Some(e);
            Failure("interrupted".into())
        })
    };
    let watched = py.detach(|| watch(&options, &mut interrupt)).map_err(|e| TidegateError::new_err(e.0))?;
    match signal {
        Some(error) if !partial => Err(error),
        _ => Ok(watched.answer(&options).to_string()),
    }
}
