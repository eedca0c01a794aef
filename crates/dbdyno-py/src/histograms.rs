//! Histograms that programs wrote as text: added up, and what they come to.

use dbdyno_common::histogram::{Exact, Summary, decode, recorded_values};
use hdrhistogram::Histogram;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use zerocopy::IntoBytes;

/// Values and counts, as doubles, and the summary as JSON.
type Recorded<'py> = (Bound<'py, PyBytes>, Bound<'py, PyBytes>, String);

/// The sum of histograms of three digits.
#[pyfunction]
#[pyo3(signature = (payloads, largest=None))]
#[allow(clippy::needless_pass_by_value)] // pyo3 gives it so
pub fn histogram(py: Python<'_>, payloads: Vec<String>, largest: Option<u64>) -> PyResult<Recorded<'_>> {
    let sum = py.detach(|| sum(payloads.iter().map(String::as_str)));
    answer(py, &sum.map_err(PyValueError::new_err)?, largest)
}

/// The sum of a log's histograms of events, which are its lines without a tag.
#[pyfunction]
#[pyo3(signature = (log, largest=None))]
pub fn histogram_log<'py>(py: Python<'py>, log: &str, largest: Option<u64>) -> PyResult<Recorded<'py>> {
    let sum = py.detach(|| {
        let mut sum = empty()?;
        for (number, line) in (1..).zip(log.lines()) {
            if line.trim().is_empty() || line.starts_with(['#', '"']) || line.starts_with("Tag=") {
                continue;
            }
            let payload = line.trim().rsplit(',').next().unwrap_or_default();
            add(&mut sum, payload).map_err(|why| format!("line {number} has no valid histogram: {why}"))?;
        }
        Ok(sum)
    });
    answer(py, &sum.map_err(|why: String| PyValueError::new_err(why))?, largest)
}

fn empty() -> Result<Histogram<u64>, String> {
    Histogram::new(3).map_err(|error| error.to_string())
}

fn add(sum: &mut Histogram<u64>, payload: &str) -> Result<(), String> {
    let histogram = decode(payload).map_err(|error| error.to_string())?;
    sum.add(&histogram).map_err(|error| error.to_string())
}

fn sum<'a>(payloads: impl Iterator<Item = &'a str>) -> Result<Histogram<u64>, String> {
    let mut sum = empty()?;
    for payload in payloads {
        add(&mut sum, payload).map_err(|why| format!("this is not a valid histogram: {why}"))?;
    }
    Ok(sum)
}

fn answer<'py>(py: Python<'py>, sum: &Histogram<u64>, largest: Option<u64>) -> PyResult<Recorded<'py>> {
    let (values, counts) = recorded_values(sum, largest);
    let summary = Summary::from_histogram(sum, Exact { max: largest, ..Exact::default() });
    let json = serde_json::to_string(&summary).map_err(|error| PyValueError::new_err(error.to_string()))?;
    Ok((PyBytes::new(py, values.as_bytes()), PyBytes::new(py, counts.as_bytes()), json))
}
