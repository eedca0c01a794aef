//! The drives that are known by name, and how a name becomes a model.

use std::path::Path;

use serde::Deserialize;

use crate::DeviceModel;
use crate::drive::Drive;

/// The drives that come with this crate: name and drive file.
const DRIVES: &[(&str, &str)] = &[
    ("hdd-7200", include_str!("../drives/hdd-7200.toml")),
    ("hdd-15k", include_str!("../drives/hdd-15k.toml")),
    ("hdd-10k", include_str!("../drives/hdd-10k.toml")),
    ("ssd-sata", include_str!("../drives/ssd-sata.toml")),
    ("ssd-x25e", include_str!("../drives/ssd-x25e.toml")),
    ("ssd-s510", include_str!("../drives/ssd-s510.toml")),
    ("ssd-860pro", include_str!("../drives/ssd-860pro.toml")),
    ("nvme", include_str!("../drives/nvme.toml")),
    ("nvme-760p", include_str!("../drives/nvme-760p.toml")),
    ("nvme-980pro", include_str!("../drives/nvme-980pro.toml")),
    ("ebs-gp2", include_str!("../drives/ebs-gp2.toml")),
    ("ebs-gp3", include_str!("../drives/ebs-gp3.toml")),
    ("ebs-io1", include_str!("../drives/ebs-io1.toml")),
    ("ebs-io2", include_str!("../drives/ebs-io2.toml")),
    ("nvme-local", include_str!("../drives/nvme-local.toml")),
    ("raid1-hdd-15k", include_str!("../drives/raid1-hdd-15k.toml")),
    ("raid0-s510", include_str!("../drives/raid0-s510.toml")),
    ("ideal", include_str!("../drives/ideal.toml")),
];

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
    /// What its maker publishes, if its file says so.
    pub published: Option<Published>,
}

/// What the maker publishes of a drive, as `[published]` of its file: what the model is held to, not what it is made of.
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
    pub random_write_state: State,
    /// Random 4 KiB commands a second, one at a time, where published.
    pub read_iops_depth_1: Option<u64>,
    /// As above.
    pub write_iops_depth_1: Option<u64>,
}

/// Why there is no such model.
#[derive(Debug, thiserror::Error)]
pub enum ModelError {
    /// No drive has this name.
    #[error("no drive model is called {given:?}; known are {} (or give the path of a drive file ending in .toml)", known.join(", "))]
    Unknown {
        /// The name asked for.
        given: String,
        /// The names there are, the most similar first.
        known: Vec<String>,
    },
    /// The name is not of the form of one, or asks for what cannot be.
    #[error("the drive name {given:?} {reason}")]
    Misnamed {
        /// The name asked for.
        given: String,
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
pub enum State {
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
    pub state: State,
}

/// Every drive that comes with dbdyno.
#[must_use]
pub fn catalogue() -> Vec<DriveInfo> {
    // One that does not load would be missing here; the tests of this crate rule that out.
    DRIVES.iter().filter_map(|(name, _)| Drive::load(name, Path::new("")).ok()).map(|drive| drive.info()).collect()
}

/// What a drive is, by any name that [`model`] takes, if a disk of `size_bytes` fits it.
///
/// # Errors
/// As [`model`].
pub fn drive(name: &str, size_bytes: u64) -> Result<DriveInfo, ModelError> {
    let drive = Drive::load(name, Path::new(""))?;
    drive.check_size(size_bytes)?;
    Ok(drive.info())
}

/// The model of a drive as a disk of `size_bytes`, idle and with empty caches. `seed` decides what a real drive leaves
/// to chance, such as the angle of the platters at time 0.
///
/// The name is one of the [`catalogue`], or the path of a drive file (ending in `.toml`). Numbers of the drive file can be
/// replaced, as in `ebs-io1(iops=20000)`, and drives combined, as in `raid1(hdd-15k, 2)`; a solid-state drive can start
/// `(state=steady)`.
///
/// # Errors
/// [`ModelError`] names what was given and what is possible.
pub fn model(name: &str, size_bytes: u64, seed: u64) -> Result<Box<dyn DeviceModel + Send>, ModelError> {
    model_with(name, size_bytes, seed, &ModelOptions::default())
}

/// As [`model`], with options. What the name itself says goes first.
///
/// # Errors
/// As [`model`].
pub fn model_with(
    name: &str,
    size_bytes: u64,
    seed: u64,
    options: &ModelOptions,
) -> Result<Box<dyn DeviceModel + Send>, ModelError> {
    let drive = Drive::load(name, Path::new(""))?;
    drive.check_size(size_bytes)?;
    Ok(drive.model(size_bytes, seed, options))
}

/// The drive file of a name.
pub(crate) fn text(name: &str) -> Result<&'static str, ModelError> {
    let found = DRIVES.iter().find(|(known, _)| *known == name).map(|(_, text)| *text);
    found.ok_or_else(|| ModelError::Unknown { given: name.to_owned(), known: nearest_first(name) })
}

/// The names of the drives, those that differ least from `given` first.
fn nearest_first(given: &str) -> Vec<String> {
    let mut names: Vec<String> = DRIVES.iter().map(|(name, _)| (*name).to_owned()).collect();
    names.sort_by_key(|name| edit_distance(given, name));
    names
}

/// Levenshtein's distance in characters.
fn edit_distance(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().collect();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (i, l) in left.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, r) in right.iter().enumerate() {
            let substituted = diagonal + usize::from(l != *r);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_drive_file_parses_and_is_listed() {
        let listed = catalogue();
        assert_eq!(listed.len(), DRIVES.len());
        for drive in listed {
            model(&drive.name, 1 << 30, 1).map(|_| ()).unwrap();
        }
    }

    #[test]
    fn an_unknown_name_lists_the_nearest_first() {
        let message = model("hdd-7300", 1 << 30, 1).err().unwrap().to_string();
        assert!(message.contains("\"hdd-7300\"; known are hdd-7200, "), "{message}");
    }

    #[test]
    fn a_disk_larger_than_the_drive_is_refused() {
        let message = model("hdd-15k", 1 << 50, 1).err().unwrap().to_string();
        assert!(message.contains("larger than the drive hdd-15k"), "{message}");
    }

    #[test]
    fn a_malformed_drive_file_names_the_field() {
        let path = std::env::temp_dir().join(format!("dbdyno-drive-{}.toml", std::process::id()));
        std::fs::write(&path, "title = 'x'\n[ideal]\nlatency_us = -1.0\n").unwrap();
        let message = model(path.to_str().unwrap(), 1 << 30, 1).err().unwrap().to_string();
        std::fs::remove_file(&path).unwrap();
        assert!(message.contains("latency_us = -1"), "{message}");
    }
}
