//! Units and values as text, distributions of flow sizes, and names.

use control::Match;
use network::{SizeDistribution, poisson};
use p4lang::ir::MatchKind;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use units::{Bytes, Rate, Time};

use crate::answers::match_out;
use crate::errors::refused;

/// A distribution of flow sizes; see [`network::SizeDistribution`] for the text's form.
#[pyclass(frozen)]
pub struct Sizes(SizeDistribution);

#[pymethods]
impl Sizes {
    #[new]
    fn new(text: &str) -> PyResult<Sizes> {
        text.parse().map(Sizes).map_err(refused)
    }

    /// In bytes.
    fn mean(&self) -> f64 {
        self.0.mean()
    }

    /// The size in bytes that a share of the flows does not exceed.
    fn quantile(&self, share: f64) -> u64 {
        self.0.quantile(share).get()
    }

    /// Start, size and number of the pair of each flow of a Poisson process with this mean gap.
    fn poisson(&self, gap: u64, start: u64, stop: u64, pairs: u32, seed: u64) -> Vec<(u64, u64, u32)> {
        let [gap, start, stop] = [gap, start, stop].map(Time::from_ps);
        let flows = poisson(&self.0, gap, start, stop, pairs, seed);
        flows.map(|f| (f.start.as_ps(), f.size.get(), f.pair)).collect()
    }
}

/// Reads `20 ms` as picoseconds.
#[pyfunction]
pub fn parse_time(text: &str) -> PyResult<u64> {
    text.parse().map(Time::as_ps).map_err(|e: units::ParseError| refused(e.to_string()))
}

/// Reads `500 Mbit/s` as bit/s.
#[pyfunction]
pub fn parse_rate(text: &str) -> PyResult<u64> {
    text.parse().map(Rate::as_bps).map_err(|e: units::ParseError| refused(e.to_string()))
}

/// Reads `128 KiB` as bytes.
#[pyfunction]
pub fn parse_size(text: &str) -> PyResult<u64> {
    text.parse().map(Bytes::get).map_err(|e: units::ParseError| refused(e.to_string()))
}

/// Writes picoseconds as `20 ms`.
#[pyfunction]
pub fn show_time(ps: u64) -> String {
    Time::from_ps(ps).to_string()
}

/// Writes bit/s as `500 Mbit/s`.
#[pyfunction]
pub fn show_rate(bps: u64) -> String {
    Rate::from_bps(bps).to_string()
}

/// Refuses a congestion control that there is not, and parameters that it does not have.
#[pyfunction]
pub fn check_congestion_control(name: &str, options: Vec<(String, String)>) -> PyResult<()> {
    transport::cc::new(name, &options).map(drop).map_err(refused)
}

/// A value as the reference switch's command line has it, for so many bits.
#[pyfunction]
pub fn parse_value<'py>(py: Python<'py>, text: &str, width: u32) -> PyResult<Bound<'py, PyBytes>> {
    let value = commands::value::cli(text, width).map_err(refused)?;
    Ok(PyBytes::new(py, control::Value::from(&value).bytes()))
}

/// A match as the reference switch's command line has it, of such a kind and for so many bits.
#[pyfunction]
pub fn parse_match<'py>(py: Python<'py>, text: &str, kind: &str, width: u32) -> PyResult<Bound<'py, PyAny>> {
    let kind = match kind {
        "exact" => MatchKind::Exact,
        "lpm" => MatchKind::Lpm,
        "ternary" => MatchKind::Ternary,
        "range" => MatchKind::Range,
        "optional" => MatchKind::Optional,
        other => return Err(refused(format!("there is no match kind `{other}`"))),
    };
    let found = commands::value::cli_match(text, kind, width).map_err(refused)?;
    match_out(py, &Match::canonical(&found, width))
}
