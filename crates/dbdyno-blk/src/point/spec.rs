//! The description of a point, as JSON, and the errors in it.

use std::collections::BTreeMap;
use std::fmt::Display;

use dbdyno_device::{DriveInfo, ModelError};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::kernel::{Kernel, KernelError, Settings};
use crate::layer::Layer;
use crate::scheduler::SchedulerError;

/// What is simulated.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Point {
    /// The drive, by any name that [`dbdyno_device::model`] takes.
    pub device: String,
    /// Its size, bytes.
    pub size_bytes: u64,
    /// The kernel, one of [`Kernel::ALL`].
    pub kernel: String,
    /// The scheduler's name in sysfs; the kernel's default if there is none.
    pub scheduler: Option<String>,
    /// Tunables of the scheduler by their names in sysfs.
    #[serde(default)]
    pub tunables: BTreeMap<String, u64>,
    /// Requests of a pool; the kernel's default if there is none.
    pub nr_requests: Option<usize>,
    /// Commands that the drive takes at once, 1 to 256; 32 if there is none.
    pub queue_depth: Option<usize>,
    /// Target of writeback throttling, microseconds, 0 for none; the kernel's default if there is none.
    pub wbt_lat_usec: Option<u64>,
    /// Decides what is left to chance.
    #[serde(default = "default_seed")]
    pub seed: u64,
    /// Nothing is counted before this time, seconds.
    #[serde(default)]
    pub warm_up_s: f64,
    /// How long is counted from then on, seconds; until the load ends if there is none.
    pub duration_s: Option<f64>,
    /// Length of an interval of the series, seconds; doubled while there would be more than [`Point::intervals_most`].
    #[serde(default = "one_second")]
    pub interval_s: f64,
    /// Intervals of the series, or one more.
    #[serde(default = "intervals_most")]
    pub intervals_most: usize,
    /// Commands of the sample at most.
    #[serde(default = "sample_most")]
    pub sample_most: usize,
    /// What is asked of it: its kind, and the fields of this kind.
    pub load: Map<String, Value>,
}

/// A year: longer than anybody simulates, and far from the end of what 64 bits count.
const SECONDS_MOST: f64 = 3.2e7;

fn default_seed() -> u64 {
    1
}

fn one_second() -> f64 {
    1.0
}

fn intervals_most() -> usize {
    600
}

fn sample_most() -> usize {
    3000
}

/// Seconds as nanoseconds.
fn ns(seconds: f64) -> u64 {
    (seconds * 1e9).round() as u64
}

impl Point {
    /// Reads a description.
    ///
    /// # Errors
    /// [`PointError`] names the field, what was given and what is allowed.
    pub fn parse(json: &str) -> Result<Self, PointError> {
        let value = serde_json::from_str(json).map_err(|error| PointError::new("point", error))?;
        let point: Self = typed("", value)?;
        let lengths = [
            ("warm_up_s", point.warm_up_s, 0.0),
            ("duration_s", point.duration_s.unwrap_or(1.0), 1e-9),
            ("interval_s", point.interval_s, 1e-6),
        ];
        for (field, value, least) in lengths {
            if !(least..=SECONDS_MOST).contains(&value) {
                return Err(PointError::new(field, format!("{value} is not between {least} and {SECONDS_MOST}")));
            }
        }
        for (field, value, least) in
            [("intervals_most", point.intervals_most, 1), ("sample_most", point.sample_most, 0)]
        {
            if !(least..=1_000_000).contains(&value) {
                return Err(PointError::new(field, format!("{value} is not between {least} and 1000000")));
            }
        }
        Ok(point)
    }

    pub(super) fn warm_up_ns(&self) -> u64 {
        ns(self.warm_up_s)
    }

    pub(super) fn interval_ns(&self) -> u64 {
        ns(self.interval_s)
    }

    /// When it ends at the latest.
    pub(super) fn end_ns(&self) -> Option<u64> {
        self.duration_s.map(|seconds| self.warm_up_ns() + ns(seconds))
    }

    /// Sectors of the device.
    pub(super) fn sectors(&self) -> u64 {
        self.size_bytes / 512
    }

    pub(super) fn kernel(&self) -> Result<Kernel, PointError> {
        Kernel::named(&self.kernel).map_err(|error| PointError::new("kernel", error))
    }

    pub(super) fn drive(&self) -> Result<DriveInfo, PointError> {
        if self.size_bytes == 0 || !self.size_bytes.is_multiple_of(4096) {
            return Err(PointError::new(
                "size_bytes",
                format!("{} is not a positive multiple of 4096", self.size_bytes),
            ));
        }
        dbdyno_device::drive(&self.device, self.size_bytes).map_err(model_error)
    }

    /// Its block layer, over a model of the drive that `wrap` may put something around.
    pub(super) fn layer(&self, wrap: impl FnOnce(Model) -> Model) -> Result<Layer, PointError> {
        let kernel = self.kernel()?;
        let drive = self.drive()?;
        let model = dbdyno_device::model(&self.device, self.size_bytes, self.seed).map_err(model_error)?;
        let tunables: Vec<_> = self.tunables.iter().map(|(name, value)| (name.as_str(), *value)).collect();
        let settings = Settings {
            scheduler: self.scheduler.as_deref(),
            tunables: &tunables,
            nr_requests: self.nr_requests,
            depth: self.queue_depth,
            non_rotational: !drive.rotational,
            wbt_lat_usec: self.wbt_lat_usec,
            ..Settings::default()
        };
        kernel.layer(&settings, wrap(model)).map_err(|error| PointError::new(field_of(&error), error))
    }
}

/// A drive model as layers take it.
pub(super) type Model = Box<dyn dbdyno_device::DeviceModel + Send>;

fn model_error(error: ModelError) -> PointError {
    let field = if matches!(error, ModelError::TooLarge { .. }) { "size_bytes" } else { "device" };
    PointError::new(field, error)
}

fn field_of(error: &KernelError) -> String {
    match error {
        KernelError::Scheduler(SchedulerError::Tunable { name, .. }) => format!("tunables.{name}"),
        KernelError::Scheduler(SchedulerError::Value { tunable, .. }) => format!("tunables.{tunable}"),
        KernelError::Scheduler(SchedulerError::Unknown { .. }) => "scheduler".to_owned(),
        KernelError::Unthrottled { .. } => "wbt_lat_usec".to_owned(),
        KernelError::Value { field: "depth", .. } => "queue_depth".to_owned(),
        KernelError::Value { field, .. } => (*field).to_owned(),
        KernelError::Unknown { .. } => "kernel".to_owned(),
    }
}

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
