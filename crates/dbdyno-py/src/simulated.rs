//! Simulated points: the GIL is released while one runs.

use std::time::{Duration, Instant};

use dbdyno_blk::kernel::Kernel;
use dbdyno_blk::point::{self, Point, PointError};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde::Serialize;

/// How often Python hears how far it is, and whether a signal came.
const PERIOD: Duration = Duration::from_millis(100);

/// Calls back into Python every so often; what that raises ends the simulation.
struct Watch {
    callback: Option<Py<PyAny>>,
    last: Instant,
    raised: Option<PyErr>,
}

impl Watch {
    fn new(callback: Option<Py<PyAny>>) -> Self {
        Self { callback, last: Instant::now(), raised: None }
    }

    fn go_on(&mut self, done: (f64, u64)) -> bool {
        if self.last.elapsed() < PERIOD {
            return true;
        }
        self.last = Instant::now();
        let asked = Python::attach(|py| {
            py.check_signals()?;
            self.callback.as_ref().map_or(Ok(()), |callback| callback.call1(py, done).map(|_| ()))
        });
        self.raised = asked.err();
        self.raised.is_none()
    }

    /// The result as JSON.
    fn json(self, found: Result<impl Serialize, PointError>) -> PyResult<String> {
        match (self.raised, found) {
            (Some(raised), _) => Err(raised),
            (None, Err(error)) => Err(PyValueError::new_err(error.to_string())),
            (None, Ok(found)) => {
                serde_json::to_string(&found).map_err(|error| PyValueError::new_err(error.to_string()))
            }
        }
    }
}

/// What comes of a point.
#[pyfunction]
#[pyo3(signature = (point, watch=None))]
pub fn simulate(py: Python<'_>, point: &str, watch: Option<Py<PyAny>>) -> PyResult<String> {
    py.detach(|| {
        let mut watch = Watch::new(watch);
        let found = Point::parse(point).and_then(|point| {
            point::simulate(&point, &mut |progress| watch.go_on((progress.now_ns as f64 / 1e9, progress.requests)))
        });
        watch.json(found)
    })
}

/// What a trace holds.
#[pyfunction]
#[pyo3(signature = (load, watch=None))]
pub fn trace_summary(py: Python<'_>, load: &str, watch: Option<Py<PyAny>>) -> PyResult<String> {
    py.detach(|| {
        let mut watch = Watch::new(watch);
        let found = point::summary(load, &mut |requests| watch.go_on((0.0, requests)));
        watch.json(found)
    })
}

/// The kernels there are, with their schedulers and tunables.
#[pyfunction]
pub fn kernels(py: Python<'_>) -> PyResult<Vec<Bound<'_, PyDict>>> {
    let mut found = Vec::new();
    for kernel in Kernel::ALL {
        let schedulers = PyDict::new(py);
        for scheduler in kernel.schedulers {
            let tunables = PyDict::new(py);
            for tunable in scheduler.tunables() {
                let dict = PyDict::new(py);
                dict.set_item("default", tunable.default)?;
                dict.set_item("least", tunable.least)?;
                dict.set_item("most", tunable.most)?;
                dict.set_item("unit", tunable.unit.symbol())?;
                tunables.set_item(tunable.name, dict)?;
            }
            schedulers.set_item(scheduler.sysfs(), tunables)?;
        }
        let dict = PyDict::new(py);
        dict.set_item("name", kernel.name)?;
        dict.set_item("schedulers", schedulers)?;
        found.push(dict);
    }
    Ok(found)
}
