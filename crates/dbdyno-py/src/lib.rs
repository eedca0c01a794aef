//! What Python needs from Rust in its own process; the only crate that knows Python.

mod lines;

use pyo3::prelude::*;

/// The native part of dbdyno, see `python/dbdyno/_native.pyi`.
#[pymodule]
mod _native {
    use std::collections::HashMap;

    use pyo3::exceptions::PyValueError;

    use super::{PyResult, lines, pyfunction};

    /// Line (from 1) of every key and array element of a TOML text, by dotted path.
    #[pyfunction]
    fn toml_lines(text: &str) -> PyResult<HashMap<String, usize>> {
        lines::lines(text).map_err(|error| PyValueError::new_err(error.to_string()))
    }
}
