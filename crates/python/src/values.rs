//! Units as text, distributions of flow sizes, and names.

use network::{SizeDistribution, poisson};
use pyo3::prelude::*;
use units::{Bytes, Rate, Time};

use crate::control::refused;

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

/// Names of the congestion controls.
#[pyfunction]
pub fn congestion_controls() -> Vec<&'static str> {
    transport::cc::NAMES.to_vec()
}
