//! What can be wrong with a point.

use std::fmt::Display;

use serde::de::DeserializeOwned;
use serde_json::Value;

/// A field of a point, and what is wrong with it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {problem}")]
pub struct PointError {
    /// Its path, as `load.jobs[0].depth`.
    pub field: String,
    /// What was given and what is allowed.
    pub problem: String,
}

impl PointError {
    /// A problem with a field.
    pub fn new(field: impl Into<String>, problem: impl Display) -> Self {
        Self { field: field.into(), problem: problem.to_string() }
    }
}

/// A value as a type; the error names the field below `path`.
pub(super) fn typed<T: DeserializeOwned>(path: &str, value: Value) -> Result<T, PointError> {
    serde_path_to_error::deserialize(value).map_err(|error| {
        let inner = error.path().to_string();
        let field = match (path, inner.as_str()) {
            ("", ".") => "point".to_owned(),
            (path, ".") => path.to_owned(),
            ("", inner) => inner.to_owned(),
            (path, inner) => format!("{path}.{inner}"),
        };
        PointError::new(field, error.into_inner())
    })
}
