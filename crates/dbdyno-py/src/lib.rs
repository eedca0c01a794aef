//! What Python needs from Rust in its own process; the only crate that knows Python.

mod lines;

use pyo3::prelude::*;
use pyo3::types::PyDict;

/// The native part of dbdyno, see `python/dbdyno/_native.pyi`.
#[pymodule]
mod _native {
    use std::collections::HashMap;

    use pyo3::exceptions::PyValueError;

    use super::{Bound, PyDict, PyDictMethods, PyResult, Python, lines, pyfunction};

    /// The smallest disk, which fits every drive.
    const SECTOR_BYTES: u64 = 4096;

    /// Line (from 1) of every key and array element of a TOML text, by dotted path.
    #[pyfunction]
    fn toml_lines(text: &str) -> PyResult<HashMap<String, usize>> {
        lines::lines(text).map_err(|error| PyValueError::new_err(error.to_string()))
    }

    /// The drives that can be emulated; with a drive's name, that drive alone, if a disk of `size_bytes` fits it.
    #[pyfunction]
    #[pyo3(signature = (drive=None, size_bytes=None))]
    fn device_models<'py>(
        py: Python<'py>,
        drive: Option<&str>,
        size_bytes: Option<u64>,
    ) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let found = match drive {
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
        found.into_iter().map(as_dict).collect()
    }
}
