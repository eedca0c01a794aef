//! The drives that are known by name, and how a name becomes a model.

use std::path::Path;

use serde::Deserialize;

use crate::DeviceModel;
use crate::hdd::{Hdd, HddSpec};
use crate::ideal::{Ideal, IdealSpec};
use crate::ssd::{Ssd, SsdSpec};

/// The drives that come with this crate: name and drive file.
const DRIVES: [(&str, &str); 5] = [
    ("hdd-7200", include_str!("../drives/hdd-7200.toml")),
    ("hdd-15k", include_str!("../drives/hdd-15k.toml")),
    ("ssd-sata", include_str!("../drives/ssd-sata.toml")),
    ("ssd-nvme", include_str!("../drives/ssd-nvme.toml")),
    ("ideal", include_str!("../drives/ideal.toml")),
];

/// One line of the catalogue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DriveInfo {
    /// What [`model`] takes.
    pub name: String,
    /// `"hdd"`, `"ssd"` or `"ideal"`.
    pub kind: &'static str,
    /// What it stands for, for people.
    pub title: String,
    /// What the kernel's `queue/rotational` should say of it.
    pub rotational: bool,
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

/// A drive file: a title and exactly one of the sections.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct DriveFile {
    title: String,
    hdd: Option<HddSpec>,
    ssd: Option<SsdSpec>,
    ideal: Option<IdealSpec>,
}

enum Spec {
    Hdd(HddSpec),
    Ssd(SsdSpec),
    Ideal(IdealSpec),
}

impl DriveFile {
    fn spec(self) -> Result<Spec, String> {
        match (self.hdd, self.ssd, self.ideal) {
            (Some(hdd), None, None) => hdd.check().map(|()| Spec::Hdd(hdd)),
            (None, Some(ssd), None) => ssd.check().map(|()| Spec::Ssd(ssd)),
            (None, None, Some(ideal)) => ideal.check().map(|()| Spec::Ideal(ideal)),
            _ => Err("it must have exactly one of the sections [hdd], [ssd], [ideal]".into()),
        }
    }
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
    DRIVES.iter().filter_map(|(name, text)| describe(name, text)).collect()
}

/// `None` only for a drive file that does not parse, which the tests of this crate rule out for those in [`DRIVES`].
fn describe(name: &str, text: &str) -> Option<DriveInfo> {
    let file: DriveFile = toml::from_str(text).ok()?;
    let kind = match (&file.hdd, &file.ssd) {
        (Some(_), _) => "hdd",
        (_, Some(_)) => "ssd",
        _ => "ideal",
    };
    Some(DriveInfo { name: name.to_owned(), kind, title: file.title, rotational: kind == "hdd" })
}

/// What a drive is, by its name in the [`catalogue`] or by the path of a drive file, if a disk of `size_bytes` fits it.
///
/// # Errors
/// As [`model`].
pub fn drive(name_or_path: &str, size_bytes: u64) -> Result<DriveInfo, ModelError> {
    model(name_or_path, size_bytes, 0)?;
    let reason = || "it could be read once but not twice".to_owned();
    describe(name_or_path, &drive_text(name_or_path)?)
        .ok_or_else(|| ModelError::Malformed { path: name_or_path.to_owned(), reason: reason() })
}

/// The model of a drive by its name in the [`catalogue`], or by the path of a drive file (ending in `.toml`), as a disk
/// of `size_bytes`, idle and with empty caches. `seed` decides what a real drive leaves to chance, such as the angle
/// of the platters at time 0.
///
/// # Errors
/// [`ModelError`] names what was given and what is possible.
pub fn model(name_or_path: &str, size_bytes: u64, seed: u64) -> Result<Box<dyn DeviceModel + Send>, ModelError> {
    model_with(name_or_path, size_bytes, seed, &ModelOptions::default())
}

/// As [`model`], with options.
///
/// # Errors
/// As [`model`].
pub fn model_with(
    name_or_path: &str,
    size_bytes: u64,
    seed: u64,
    _options: &ModelOptions,
) -> Result<Box<dyn DeviceModel + Send>, ModelError> {
    let malformed = |reason| ModelError::Malformed { path: name_or_path.to_owned(), reason };
    let text = drive_text(name_or_path)?;
    let file: DriveFile = toml::from_str(&text).map_err(|error| malformed(error.to_string()))?;
    let spec = file.spec().map_err(malformed)?;
    let capacity_bytes = match &spec {
        Spec::Hdd(hdd) => hdd.capacity_bytes(),
        Spec::Ssd(ssd) => ssd.capacity_bytes(),
        Spec::Ideal(_) => u64::MAX,
    };
    if size_bytes > capacity_bytes {
        return Err(ModelError::TooLarge { name: name_or_path.to_owned(), size_bytes, capacity_bytes });
    }
    Ok(match spec {
        Spec::Hdd(hdd) => Box::new(Hdd::new(hdd, size_bytes, seed)),
        Spec::Ssd(ssd) => Box::new(Ssd::new(&ssd, size_bytes)),
        Spec::Ideal(ideal) => Box::new(Ideal::new(&ideal)),
    })
}

fn drive_text(name_or_path: &str) -> Result<String, ModelError> {
    if Path::new(name_or_path).extension().is_some_and(|extension| extension == "toml") {
        return std::fs::read_to_string(name_or_path)
            .map_err(|source| ModelError::Unreadable { path: name_or_path.to_owned(), source });
    }
    DRIVES
        .iter()
        .find(|(name, _)| *name == name_or_path)
        .map(|(_, text)| (*text).to_owned())
        .ok_or_else(|| ModelError::Unknown { given: name_or_path.to_owned(), known: nearest_first(name_or_path) })
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
