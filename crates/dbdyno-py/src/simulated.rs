//! Simulated points, during which the GIL is released, and what is in a trace.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::time::{Duration, Instant};

use dbdyno_blk::kernel::Kernel;
use dbdyno_blk::point::{self, Point, PointError};
use dbdyno_blk::trace::{Contents, ReadOptions, Trace};
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
        let outcome = Python::attach(|py| {
            py.check_signals()?;
            self.callback.as_ref().map_or(Ok(()), |callback| callback.call1(py, done).map(|_| ()))
        });
        self.raised = outcome.err();
        self.raised.is_none()
    }

    /// The result as JSON.
    fn json(self, result: Result<impl Serialize, PointError>) -> PyResult<String> {
        match (self.raised, result) {
            (Some(raised), _) => Err(raised),
            (None, Err(error)) => Err(PyValueError::new_err(error.to_string())),
            (None, Ok(value)) => {
                serde_json::to_string(&value).map_err(|error| PyValueError::new_err(error.to_string()))
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
        let result = Point::parse(point).and_then(|point| {
            point::simulate(&point, &mut |progress| watch.go_on((progress.now_ns as f64 / 1e9, progress.requests)))
        });
        watch.json(result)
    })
}

/// What a trace holds.
#[pyfunction]
#[pyo3(signature = (load, watch=None))]
pub fn trace_summary(py: Python<'_>, load: &str, watch: Option<Py<PyAny>>) -> PyResult<String> {
    py.detach(|| {
        let mut watch = Watch::new(watch);
        let result = point::summary(load, &mut |requests| watch.go_on((0.0, requests)));
        watch.json(result)
    })
}

/// The kernels there are, with their schedulers and tunables.
#[pyfunction]
pub fn kernels(py: Python<'_>) -> PyResult<Vec<Bound<'_, PyDict>>> {
    let mut kernels = Vec::new();
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
        kernels.push(dict);
    }
    Ok(kernels)
}

/// How much is read at once.
const BUFFER_BYTES: usize = 1 << 18;

/// What is asked of a trace, by the names that users give.
pub struct TraceNames<'a> {
    pub format: Option<&'a str>,
    pub time_unit: Option<&'a str>,
    pub length_unit: Option<&'a str>,
}

/// Contents as JSON; an error is a sentence that begins with the file, or with what is asked.
pub fn contents(files: &[String], names: &TraceNames<'_>, go_on: &mut dyn FnMut() -> bool) -> Result<String, String> {
    let all = files.join(", ");
    let in_file = |error: &dyn std::fmt::Display| format!("{all}: {error}");
    let ask = ReadOptions::default()
        .by_names(names.format, names.time_unit, names.length_unit)
        .map_err(|(_, message)| message)?;
    let open = |path: &String| -> Result<Box<dyn BufRead>, String> {
        let file = File::open(path).map_err(|error| format!("{path}: {error}"))?;
        Ok(Box::new(BufReader::with_capacity(BUFFER_BYTES, file)))
    };
    let opened = files.iter().map(open).collect::<Result<Vec<_>, _>>()?;
    let trace = Trace::open(opened, ask).map_err(|error| in_file(&error))?;
    let contents = Contents::of(trace, go_on).map_err(|error| in_file(&error))?;
    serde_json::to_string(&contents).map_err(|error| in_file(&error))
}
