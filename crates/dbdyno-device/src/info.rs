//! What is known of a drive, what may be chosen of its model, and the limits on its name and on the numbers of a drive
//! file. A message begins with the field at fault.

use std::ops::RangeInclusive;

use serde::Deserialize;

/// One line of the catalogue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DriveInfo {
    /// What [`model`] takes.
    pub name: String,
    /// `"hdd"`, `"ssd"`, `"raid"`, `"cloud"` or `"ideal"`.
    pub kind: &'static str,
    /// What it stands for, for people.
    pub title: String,
    /// What the kernel's `queue/rotational` should say of it.
    pub rotational: bool,
    /// The largest disk there can be of it, bytes; `u64::MAX` where there is no largest.
    pub capacity_bytes: u64,
    /// Its cache of single-bit blocks, if it has one.
    pub fast_cache: Option<FastCacheSize>,
    /// What its maker publishes, if its file says so.
    pub published: Option<Published>,
}

/// How large the cache of single-bit blocks is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FastCacheSize {
    /// On this disk, bytes.
    pub disk_bytes: u64,
    /// On a disk of the whole drive, bytes.
    pub drive_bytes: u64,
}

/// What the maker publishes of a drive, as `[published]` of its file: what the model is held to, not what it is made
/// of.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Published {
    /// Sequential rates with 128 KiB a command, MB/s.
    pub sequential_read_mb_s: u64,
    /// As above.
    pub sequential_write_mb_s: u64,
    /// Random 4 KiB commands a second.
    pub random_read_iops: u64,
    /// As above.
    pub random_write_iops: u64,
    /// Commands outstanding in all four.
    pub queue_depth: u64,
    /// What the random writes found: a new drive, or one that has to collect garbage.
    #[serde(default)]
    pub random_write_state: DriveState,
    /// Random 4 KiB commands a second, one at a time, where published.
    pub read_iops_depth_1: Option<u64>,
    /// As above.
    pub write_iops_depth_1: Option<u64>,
}

/// Why there is no such model.
#[derive(Debug, thiserror::Error)]
pub enum ModelError {
    /// No drive has this name.
    #[error("there is no drive model {name:?}; the models are {} (or give the path of a drive file that ends in .toml){hint}", known.join(", "))]
    Unknown {
        /// The name asked for.
        name: String,
        /// What may have been meant.
        hint: String,
        /// The names there are, the most similar first.
        known: Vec<String>,
    },
    /// The name is not of the form of one, or asks for what cannot be.
    #[error("the drive name {name:?} {reason}")]
    Misnamed {
        /// The name asked for.
        name: String,
        /// What is wrong, to stand after the name.
        reason: String,
    },
    /// The drive file cannot be read.
    #[error("cannot read the drive file {path}: {source}")]
    Unreadable {
        /// The path given.
        path: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// The drive file is not one.
    #[error("{path} is not a drive file: {reason}")]
    Malformed {
        /// The path or name given.
        path: String,
        /// What is wrong, with the line where the TOML parser knows it.
        reason: String,
    },
    /// The disk asked for does not fit the drive.
    #[error("a disk of {size_bytes} bytes is larger than the drive {name} of {capacity_bytes} bytes")]
    TooLarge {
        /// The drive's name.
        name: String,
        /// What was asked for.
        size_bytes: u64,
        /// What the drive has.
        capacity_bytes: u64,
    },
}

/// How a drive is when the model starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DriveState {
    /// As it left the factory: a solid-state drive has nothing written.
    #[default]
    Fresh,
    /// As after a long time of random writes: a solid-state drive has garbage to collect.
    Steady,
}

/// What may be chosen of a model beside its drive, size and seed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ModelOptions {
    /// How the drive is at the start; a kind of drive that has no such history ignores it.
    pub state: DriveState,
}

/// The names and values of fields: `fields! { self; rpm, flash.planes }`.
macro_rules! fields {
    ($spec:expr; $($($field:ident).+),+ $(,)?) => {
        [$((stringify!($($field).+), $spec.$($field).+ as f64)),+]
    };
}

/// Refuses the first of `fields` that is not a number above 0.
pub(crate) fn above_zero(fields: &[(&str, f64)]) -> Result<(), String> {
    match fields.iter().find(|(_, value)| !(*value > 0.0 && value.is_finite())) {
        Some((field, value)) => Err(format!("{field} = {value} is not above 0")),
        None => Ok(()),
    }
}

/// Refuses the first of `fields` outside of `range`.
pub(crate) fn within(range: &RangeInclusive<f64>, fields: &[(&str, f64)]) -> Result<(), String> {
    match fields.iter().find(|(_, value)| !range.contains(value)) {
        Some((field, value)) => {
            Err(format!("{field} = {value} is not between {:?} and {:?}", range.start(), range.end()))
        }
        None => Ok(()),
    }
}

pub(crate) use fields;
