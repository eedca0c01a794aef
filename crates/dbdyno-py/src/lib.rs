//! What Python needs from Rust in its own process; the only crate that knows Python.

mod columns;
mod histograms;
mod lines;
mod simulated;

use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyDict};

/// The native part of dbdyno, see `python/dbdyno/_native.pyi`.
#[pymodule]
mod _native {
    use std::collections::HashMap;
    use std::panic;

    use dbdyno_common::option_file::Entry;
    use pyo3::exceptions::PyValueError;
    use pyo3::types::{PyAnyMethods, PyBytesMethods, PyModule};
    use zerocopy::IntoBytes;

    use super::columns::{self, Column, ReadError};
    #[pymodule_export]
    use super::histograms::{histogram, histogram_log};
    #[pymodule_export]
    use super::simulated::{kernels, simulate, trace_summary};
    use super::{
        Bound, PyAny, PyByteArray, PyBytes, PyDict, PyDictMethods, PyErr, PyResult, Python, lines, pyfunction,
        simulated,
    };

    /// The smallest disk, which fits every drive.
    const SECTOR_BYTES: u64 = 4096;

    /// Line (from 1) of every key and array element of a TOML text, by dotted path.
    #[pyfunction]
    fn toml_lines(text: &str) -> PyResult<HashMap<String, usize>> {
        lines::lines(text).map_err(|error| PyValueError::new_err(error.to_string()))
    }

    /// What the lines of an option file say: number (from 1), group, what it is, and its two texts.
    #[pyfunction]
    fn option_lines(text: &str) -> Vec<OptionLine> {
        let lines = dbdyno_common::option_file::lines(text).into_iter();
        lines
            .map(|line| {
                let (what, name, value) = match line.entry {
                    Entry::Group => ("group", line.group.clone(), None),
                    Entry::Option(name, value) => ("option", name, value),
                    Entry::Include(path) => ("include", path, None),
                    Entry::IncludeFolder(path) => ("includedir", path, None),
                    Entry::Unknown(word) => ("unknown", word, None),
                };
                (line.number, line.group, what, name, value)
            })
            .collect()
    }

    /// A line of an option file, see [`option_lines`].
    type OptionLine = (usize, String, &'static str, String, Option<String>);

    /// The drives that can be emulated; with a drive's name, that drive alone, if a disk of `size_bytes` fits it.
    #[pyfunction]
    #[pyo3(signature = (drive=None, size_bytes=None))]
    fn device_models<'py>(
        py: Python<'py>,
        drive: Option<&str>,
        size_bytes: Option<u64>,
    ) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let drives = match drive {
            None => dbdyno_device::catalogue(),
            Some(name) => {
                let size_bytes = size_bytes.unwrap_or(SECTOR_BYTES);
                vec![dbdyno_device::drive(name, size_bytes).map_err(|error| PyValueError::new_err(error.to_string()))?]
            }
        };
        let as_dict = |info: dbdyno_device::DriveInfo| {
            let dict = PyDict::new(py);
            dict.set_item("name", info.name)?;
            dict.set_item("kind", info.kind)?;
            dict.set_item("title", info.title)?;
            dict.set_item("rotational", info.rotational)?;
            let cache = info.fast_cache;
            dict.set_item("fast_cache_bytes", cache.map(|cache| cache.disk_bytes))?;
            dict.set_item("drive_fast_cache_bytes", cache.map(|cache| cache.drive_bytes))?;
            Ok(dict)
        };
        drives.into_iter().map(as_dict).collect()
    }

    /// What is in a block trace, as JSON.
    #[pyfunction]
    #[pyo3(signature = (files, format=None, time_unit=None, length_unit=None))]
    #[allow(clippy::needless_pass_by_value)] // pyo3 gives it so
    fn trace_contents(
        py: Python<'_>,
        files: Vec<String>,
        format: Option<&str>,
        time_unit: Option<&str>,
        length_unit: Option<&str>,
    ) -> PyResult<String> {
        let mut signal = None;
        let mut go_on = || {
            #[allow(clippy::redundant_closure_for_method_calls)] // the method is not general enough over lifetimes
            let check = Python::attach(|py| py.check_signals());
            signal = check.err();
            signal.is_none()
        };
        let contents = py.detach(|| {
            simulated::contents(&files, &simulated::TraceNames { format, time_unit, length_unit }, &mut go_on)
        });
        signal.map_or_else(|| contents.map_err(PyValueError::new_err), Err)
    }

    /// What panics becomes an exception of Python, which says all that would be printed.
    #[pymodule_init]
    #[allow(clippy::unnecessary_wraps)] // pyo3 asks for a result
    fn quiet(_module: &Bound<'_, PyModule>) -> PyResult<()> {
        panic::set_hook(Box::new(|_| {}));
        Ok(())
    }

    impl From<ReadError> for PyErr {
        fn from(error: ReadError) -> Self {
            PyValueError::new_err(error.to_string())
        }
    }

    /// Columns of a Parquet file for which `wanted` is true.
    #[pyfunction]
    fn read_parquet<'py>(
        py: Python<'py>,
        file: &Bound<'py, PyBytes>,
        rows_max: i64,
        wanted: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let bytes = bytes::Bytes::copy_from_slice(file.as_bytes());
        let wanted = |name: &str| wanted.call1((name,))?.is_truthy();
        // The library may panic over a damaged file.
        let read = panic::AssertUnwindSafe(|| columns::read::<PyErr>(bytes, rows_max, wanted));
        let damaged = |_| PyValueError::new_err(columns::NO_PARQUET);
        let dict = PyDict::new(py);
        for (name, values) in panic::catch_unwind(read).map_err(damaged)?? {
            match values {
                Column::Number(values) => dict.set_item(name, PyByteArray::new(py, values.as_slice().as_bytes()))?,
                Column::Text(values) => dict.set_item(name, values)?,
                _ => dict.set_item(name, py.None())?,
            }
        }
        Ok(dict)
    }

    /// A Parquet file of columns of one length: bytes are doubles, else a list of integers, booleans or texts.
    #[pyfunction]
    fn write_parquet<'py>(py: Python<'py>, columns: &Bound<'py, PyDict>) -> PyResult<Bound<'py, PyBytes>> {
        let columns: PyResult<Vec<_>> =
            columns.iter().map(|(name, values)| Ok((name.extract()?, column_of(&values)?))).collect();
        let written = columns::write(&columns?).map_err(|error| PyValueError::new_err(error.to_string()))?;
        Ok(PyBytes::new(py, &written))
    }

    fn column_of(values: &Bound<'_, PyAny>) -> PyResult<Column> {
        if let Ok(bytes) = values.cast::<PyBytes>() {
            let (numbers, _) = bytes.as_bytes().as_chunks::<8>();
            return Ok(Column::Number(numbers.iter().map(|bytes| f64::from_ne_bytes(*bytes)).collect()));
        }
        if let Ok(truths) = values.extract() {
            return Ok(Column::Truth(truths));
        }
        if let Ok(wholes) = values.extract() {
            return Ok(Column::Whole(wholes));
        }
        Ok(Column::Text(values.extract()?))
    }
}
