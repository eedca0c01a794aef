//! How the name of a drive becomes a model.

use std::path::Path;

use crate::catalogue::DRIVES;
use crate::contract::DeviceModel;
use crate::drive::Drive;
use crate::info::{DriveInfo, ModelError, ModelOptions};

/// Every drive that comes with dbdyno.
#[must_use]
pub fn catalogue() -> Vec<DriveInfo> {
    // One that does not load would be missing here; the tests of this crate rule that out.
    DRIVES.iter().filter_map(|(name, _)| Drive::load(name, Path::new("")).ok()).map(|drive| drive.info(None)).collect()
}

/// What a drive is, by any name that [`model`] takes, if a disk of `size_bytes` fits it.
///
/// # Errors
/// As [`model`].
pub fn drive(name: &str, size_bytes: u64) -> Result<DriveInfo, ModelError> {
    let drive = Drive::load(name, Path::new(""))?;
    drive.check_size(size_bytes)?;
    Ok(drive.info(Some(size_bytes)))
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

/// As [`model`], of a drive file's text.
///
/// # Errors
/// As [`model`].
pub fn model_of_text(text: &str, size_bytes: u64, seed: u64) -> Result<Box<dyn DeviceModel + Send>, ModelError> {
    let drive = Drive::of_text(text)?;
    drive.check_size(size_bytes)?;
    Ok(drive.model(size_bytes, seed, &ModelOptions::default()))
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
