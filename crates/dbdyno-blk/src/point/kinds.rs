//! The kinds of load there are.

use serde_json::{Map, Value};

use super::error::PointError;
use super::load::Load;
use super::spec::Point;
use super::{commits, ingest, jobs, trace};

type Make = fn(&Point, Map<String, Value>) -> Result<Box<dyn Load>, PointError>;

/// The kinds there are.
pub const KINDS: &[(&str, Make)] =
    &[("commits", commits::load), ("ingest", ingest::load), ("jobs", jobs::load), ("trace", trace::load)];

/// The load of a point.
pub(super) fn load(point: &Point) -> Result<Box<dyn Load>, PointError> {
    let mut fields = point.load.clone();
    let known = || KINDS.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
    let kind = match fields.remove("kind") {
        Some(Value::String(kind)) => kind,
        Some(other) => return Err(PointError::new("load.kind", format!("{other} is no name; known are {}", known()))),
        None => return Err(PointError::new("load.kind", format!("is lacking; known are {}", known()))),
    };
    let Some((_, make)) = KINDS.iter().find(|(name, _)| *name == kind) else {
        return Err(PointError::new("load.kind", format!("no load is called \"{kind}\"; known are {}", known())));
    };
    let load = make(point, fields)?;
    if point.duration_s.is_none() && !load.ends() {
        return Err(PointError::new("duration_s", "is lacking, and this load does not end by itself"));
    }
    Ok(load)
}
