//! A block device as the kernel's filters know it.

use std::fs;
use std::path::Path;

use super::event::Step;
use crate::error::ProbeError;

/// Whether each of a device's sectors is meant, or a partition's alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Partition {
    start_sector: u64,
    end_sector: u64,
}

/// A whole disk, or a partition of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Device {
    /// Its name in /sys.
    pub name: String,
    /// Its own number, as `8,1`.
    pub number: String,
    /// Its length.
    pub sectors: u64,
    /// The whole disk's number first, then those that a bio may carry: each major * 2^20 + minor as inside the kernel.
    numbers: Vec<u64>,
    partition: Option<Partition>,
}

impl Device {
    /// Finds a disk or partition by its name or its path.
    pub fn find(given: &Path) -> Result<Self, ProbeError> {
        let path = if given.is_absolute() { given.to_owned() } else { Path::new("/dev").join(given) };
        let real = fs::canonicalize(&path).map_err(ProbeError::at(&path))?;
        let name = real.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let found = fs::canonicalize(Path::new("/sys/class/block").join(&name)).ok();
        let found = found.and_then(|folder| Self::at(&folder, name));
        found.ok_or_else(|| ProbeError::Usage(format!("{} is not a block device", given.display())))
    }

    /// By its folder in /sys, below which a disk's partitions have theirs.
    fn at(folder: &Path, name: String) -> Option<Self> {
        let own = dev_of(folder)?;
        let sectors = number_in(folder, "size")?;
        let number = format!("{},{}", own >> 20, own & 0xf_ffff);
        if folder.join("partition").exists() {
            let start_sector = number_in(folder, "start")?;
            let partition = Some(Partition { start_sector, end_sector: start_sector + sectors });
            return Some(Self { name, number, sectors, numbers: vec![dev_of(folder.parent()?)?, own], partition });
        }
        let parts = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
        let parts = parts.filter(|part| part.join("partition").exists()).filter_map(|part| dev_of(&part));
        Some(Self { name, number, sectors, numbers: std::iter::once(own).chain(parts).collect(), partition: None })
    }

    /// A partition that begins there.
    #[cfg(test)]
    pub fn for_tests(number: &str, start_sector: u64) -> Self {
        let partition = Some(Partition { start_sector, end_sector: u64::MAX });
        Self { name: "a".into(), number: number.into(), sectors: 1 << 20, numbers: vec![1], partition }
    }

    /// The first sector on the whole disk.
    pub fn start_sector(&self) -> u64 {
        self.partition.map_or(0, |partition| partition.start_sector)
    }

    /// Which of the kernel's events are of this device. Newer kernels name the partition in events of bios, and no
    /// kernel in those of requests; sectors count from the whole disk's first in both, and a flush has none.
    pub(super) fn filter(&self, step: Step) -> String {
        let numbers = if step.is_of_bio() { &self.numbers[..] } else { &self.numbers[..1] };
        let device: Vec<_> = numbers.iter().map(|number| format!("dev == {number}")).collect();
        let device = device.join(" || ");
        match self.partition {
            None => device,
            Some(Partition { start_sector, end_sector }) => {
                let inside = format!("sector >= {start_sector} && sector < {end_sector}");
                format!("({device}) && ({inside} || nr_sector == 0)")
            }
        }
    }
}

fn dev_of(folder: &Path) -> Option<u64> {
    number(&fs::read_to_string(folder.join("dev")).ok()?)
}

fn number_in(folder: &Path, name: &str) -> Option<u64> {
    fs::read_to_string(folder.join(name)).ok()?.trim().parse().ok()
}

/// `7:1` as the kernel's own number.
fn number(text: &str) -> Option<u64> {
    let (major, minor) = text.trim().split_once(':')?;
    Some((major.parse::<u64>().ok()? << 20) | minor.parse::<u64>().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_inside_the_kernel() {
        assert_eq!(number("7:1\n"), Some(7 * 1_048_576 + 1));
        assert_eq!(number("7"), None);
    }

    #[test]
    fn what_is_no_block_device_is_refused() {
        let message = Device::find(Path::new("/dev/null")).unwrap_err().to_string();
        assert!(message.starts_with("/dev/null is not a block device"), "{message}");
        assert!(Device::find(Path::new("/dev/no-such-disk")).unwrap_err().to_string().contains("/dev/no-such-disk"));
    }

    #[test]
    fn a_partition_has_its_own_sectors_and_every_flush() {
        let folder = std::env::temp_dir().join(format!("dbdyno-probe-device-{}", std::process::id()));
        let (disk, part) = (folder.join("sdz"), folder.join("sdz/sdz1"));
        fs::create_dir_all(&part).unwrap();
        let files = [("dev", "8:1"), ("size", "100"), ("start", "2048"), ("partition", "1")];
        for (name, text) in files {
            fs::write(part.join(name), text).unwrap();
        }
        fs::write(disk.join("dev"), "8:0").unwrap();
        fs::write(disk.join("size"), "4096").unwrap();
        let device = Device::at(&part, "sdz1".into()).unwrap();
        assert_eq!((device.number.as_str(), device.sectors, device.start_sector()), ("8,1", 100, 2048));
        let inside = "(sector >= 2048 && sector < 2148 || nr_sector == 0)";
        assert_eq!(device.filter(Step::Issue), format!("(dev == 8388608) && {inside}"));
        assert_eq!(device.filter(Step::Queue), format!("(dev == 8388608 || dev == 8388609) && {inside}"));
        let whole = Device::at(&disk, "sdz".into()).unwrap();
        assert_eq!((whole.filter(Step::Issue).as_str(), whole.start_sector()), ("dev == 8388608", 0));
        assert_eq!(whole.filter(Step::BackMerge), "dev == 8388608 || dev == 8388609");
        fs::remove_dir_all(folder).unwrap();
    }
}
