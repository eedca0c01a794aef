//! A trace instance of our own: its own buffer, events and clock, beside whatever else is traced on the host.

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use super::device::Device;
use super::event::{Decoder, Step};
use super::page::PageLayout;
use crate::error::ProbeError;

/// Where tracefs is mounted, if it is.
const PLACES: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];

/// What all processors' buffers may take together, if each would take more than [`PER_CPU_MIN`].
const ALL_BYTES: u64 = 64 << 20;
const PER_CPU_MIN: u64 = 1 << 20;
const PER_CPU_MAX: u64 = 8 << 20;

/// A running or prepared trace of one device; events end and the instance goes when it is dropped.
#[derive(Debug)]
pub struct Instance {
    path: PathBuf,
    events: &'static [(Step, &'static str)],
    pub decoder: Decoder,
    pub layout: PageLayout,
}

impl Instance {
    /// Makes an instance for a device, with nothing traced yet, in the tracefs at `root` or else at one of its usual
    /// places. `buffer_bytes` is per processor; `merges` are events too, if they are wanted.
    pub fn new(
        root: Option<&Path>,
        name: &str,
        device: &Device,
        buffer_bytes: Option<u64>,
        merges: bool,
    ) -> Result<Self, ProbeError> {
        if cfg!(target_endian = "big") {
            return Err(ProbeError::NoTrace("this processor is big-endian, whose ring buffer is not read".into()));
        }
        let root = root.map_or_else(mounted, |given| Ok(given.to_owned()))?;
        let layout = PageLayout::parse(&read(&root.join("events/header_page"))?);
        let layout = layout.map_err(|reason| odd("its pages", &reason))?;
        let path = root.join("instances").join(name);
        fs::create_dir(&path).map_err(|error| refused("make", &path, &error))?;
        // From here on the instance goes away again, whatever fails.
        let mut made = Self { path, events: Step::events(merges), decoder: Decoder::default(), layout };
        made.prepare(device, buffer_bytes)?;
        Ok(made)
    }

    fn prepare(&mut self, device: &Device, buffer_bytes: Option<u64>) -> Result<(), ProbeError> {
        self.write("tracing_on", "0")?;
        self.write("trace_clock", "mono")?;
        let processors = self.processors()?.len() as u64;
        let bytes = buffer_bytes.unwrap_or((ALL_BYTES / processors.max(1)).clamp(PER_CPU_MIN, PER_CPU_MAX));
        self.write("buffer_size_kb", &(bytes / 1024).max(16).to_string())?;
        // Names of processes are not needed, and noting them costs at every change of process. Not every kernel asks.
        let _ = self.write("options/record-cmd", "0");
        for &(step, event) in self.events {
            let folder = format!("events/block/{event}");
            let format = read(&self.path.join(&folder).join("format"));
            let format = format.map_err(|_| ProbeError::NoTrace(format!("this kernel has no event {event}")))?;
            self.decoder.learn(step, &format).map_err(|reason| odd(event, &reason))?;
            self.write(&format!("{folder}/filter"), &device.filter(step))?;
        }
        Ok(())
    }

    /// Begins or ends tracing.
    pub fn trace(&self, on: bool) -> Result<(), ProbeError> {
        let value = if on { "1" } else { "0" };
        if !on {
            self.write("tracing_on", value)?;
        }
        for (_, event) in self.events {
            self.write(&format!("events/block/{event}/enable"), value)?;
        }
        if on { self.write("tracing_on", value) } else { Ok(()) }
    }

    /// The raw buffers, one file per processor, with its number.
    pub fn buffers(&self) -> Result<Vec<(u16, PathBuf)>, ProbeError> {
        let number = |folder: &Path| folder.file_name()?.to_str()?.strip_prefix("cpu")?.parse().ok();
        let folders = self.processors()?.into_iter();
        Ok(folders.map(|folder| (number(&folder).unwrap_or(0), folder.join("trace_pipe_raw"))).collect())
    }

    /// Events so far that a buffer could not hold.
    pub fn lost(&self) -> Result<u64, ProbeError> {
        let mut lost = 0;
        for folder in self.processors()? {
            lost += lost_of(&read(&folder.join("stats"))?);
        }
        Ok(lost)
    }

    fn processors(&self) -> Result<Vec<PathBuf>, ProbeError> {
        let folder = self.path.join("per_cpu");
        let entries = fs::read_dir(&folder).map_err(ProbeError::at(&folder))?;
        let mut found: Vec<_> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
        found.sort();
        Ok(found)
    }

    fn write(&self, name: &str, value: &str) -> Result<(), ProbeError> {
        let path = self.path.join(name);
        fs::write(&path, value).map_err(|error| refused(&format!("write {value:?} to"), &path, &error))
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        // What can't be taken away now is left to `dbdyno restore`.
        let _ = self.trace(false);
        let _ = fs::remove_dir(&self.path);
    }
}

/// Lines such as `overrun: 3`, `commit overrun: 0`, `dropped events: 0`.
fn lost_of(stats: &str) -> u64 {
    let lines = stats.lines().filter_map(|line| line.split_once(':'));
    lines
        .filter(|(name, _)| matches!(name.trim(), "overrun" | "commit overrun" | "dropped events"))
        .filter_map(|(_, value)| value.trim().parse::<u64>().ok())
        .sum()
}

fn mounted() -> Result<PathBuf, ProbeError> {
    let found = PLACES.iter().map(Path::new).find(|place| place.join("instances").is_dir());
    if let Some(found) = found {
        return Ok(found.to_owned());
    }
    let place = Path::new(PLACES[0]);
    Err(ProbeError::NoTrace(match fs::read_dir(place) {
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
            format!("{} can't be read by this user; run it with sudo", place.display())
        }
        _ => format!("tracefs is not mounted; mount it: mount -t tracefs tracefs {}", place.display()),
    }))
}

fn read(path: &Path) -> Result<String, ProbeError> {
    read_at_once(path).map_err(|error| refused("read", path, &error))
}

/// `events/header_page` is given to the first read only, so that must be a large one.
fn read_at_once(path: &Path) -> std::io::Result<String> {
    let mut file = fs::File::open(path)?;
    let mut bytes = vec![0; 1 << 16];
    let first = file.read(&mut bytes)?;
    bytes.truncate(first);
    file.read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn refused(verb: &str, path: &Path, error: &std::io::Error) -> ProbeError {
    ProbeError::NoTrace(format!("the kernel refuses to {verb} {}: {error}", path.display()))
}

fn odd(what: &str, reason: &str) -> ProbeError {
    ProbeError::NoTrace(format!("this kernel lays out {what} in another way: {reason}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lost_events_of_every_kind_count() {
        let stats = "entries: 5\noverrun: 3\ncommit overrun: 1\nbytes: 99\ndropped events: 2\nread events: 7\n";
        assert_eq!(lost_of(stats), 6);
        assert_eq!(lost_of("overrun: many"), 0);
    }
}
