//! A trace instance of our own (its buffer, events and clock stand beside whatever else is traced on the host), and
//! what its buffers hold: all processors' pages, read as one stream of events in the order of their time.
//!
//! A page of the ring buffer is what `trace_pipe_raw` gives. Source: `Documentation/trace/ring-buffer-design.rst` and
//! `events/header_event` of tracefs. A page begins with the time of its first event and the length of what follows.
//! Each event begins with 32 bits: 5 of type or length, 27 of nanoseconds since the event before.
//!
//! Filters know a block device by its number.

use std::fs::{self, File};
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

use super::event::{Decoder, Event, Field, Fields, Step};
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
            return Err(ProbeError::NoTrace("this processor is big-endian, and its ring buffer cannot be read".into()));
        }
        let root = root.map_or_else(mounted, |root| Ok(root.to_owned()))?;
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
        let mut folders: Vec<_> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
        folders.sort();
        Ok(folders)
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
    let place_of_ours = PLACES.iter().map(Path::new).find(|place| place.join("instances").is_dir());
    if let Some(place_of_ours) = place_of_ours {
        return Ok(place_of_ours.to_owned());
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

const MISSED: u64 = 1 << 31;
const LENGTH: u64 = (1 << 27) - 1;

const PADDING: u32 = 29;
const TIME_EXTEND: u32 = 30;
const TIME_STAMP: u32 = 31;
/// An absolute time has this many bits; those above are the page's.
const STAMP_BITS: u32 = 59;

/// Where the parts of a page lie.
#[derive(Debug, Clone, Copy)]
pub struct PageLayout {
    timestamp: Field,
    commit: Field,
    data: Field,
}

impl PageLayout {
    /// From `events/header_page`.
    pub fn parse(text: &str) -> Result<Self, String> {
        let fields = Fields::parse(text);
        Ok(Self {
            timestamp: fields.field("timestamp", 8)?,
            commit: fields.field("commit", 8)?,
            data: fields.field("data", 1 << 24)?,
        })
    }

    /// Length of a whole page in bytes.
    pub fn page_bytes(&self) -> usize {
        self.data.offset.saturating_add(self.data.size)
    }
}

/// When a page begins, if events between the one before and that moment were lost.
fn lost_events_until(page: &[u8], layout: &PageLayout) -> Option<u64> {
    let commit = layout.commit.number(page)?;
    layout.timestamp.number(page).filter(|_| commit & MISSED != 0)
}

/// Gives every record of a page with its time in nanoseconds.
///
/// What can't be understood ends the page: nothing behind it can be found.
pub fn records(page: &[u8], layout: &PageLayout, mut visit: impl FnMut(u64, &[u8])) {
    let (Some(mut now), Some(commit)) = (layout.timestamp.number(page), layout.commit.number(page)) else { return };
    let all = page.get(layout.data.offset..).unwrap_or_default();
    let mut rest = &all[..all.len().min((commit & LENGTH) as usize)];
    while let Some((header, after)) = word(rest) {
        let (kind, delta) = (header & 31, u64::from(header >> 5));
        let Some(event) = next(kind, delta, after, &mut now) else { break };
        if let Some(record) = event.record {
            visit(now, record);
        }
        rest = event.rest;
    }
}

struct Next<'a> {
    record: Option<&'a [u8]>,
    rest: &'a [u8],
}

/// Takes one event apart; `after` is what follows its first 32 bits.
fn next<'a>(kind: u32, delta: u64, after: &'a [u8], now: &mut u64) -> Option<Next<'a>> {
    match kind {
        // A page that is not full ends in padding without a length.
        PADDING if delta == 0 => None,
        PADDING => {
            *now = now.wrapping_add(delta);
            let (length, _) = word(after)?;
            Some(Next { record: None, rest: after.get(length as usize..)? }).filter(|_| length >= 4)
        }
        TIME_EXTEND | TIME_STAMP => {
            let (high, rest) = word(after)?;
            let value = (u64::from(high) << 27) | delta;
            *now = if kind == TIME_EXTEND {
                now.wrapping_add(value)
            } else {
                (*now >> STAMP_BITS << STAMP_BITS) | (value & ((1 << STAMP_BITS) - 1))
            };
            Some(Next { record: None, rest })
        }
        _ => {
            *now = now.wrapping_add(delta);
            // A long record's length stands before it, and counts itself.
            let (skipped, length) = if kind == 0 { (4, word(after)?.0 as usize) } else { (0, kind as usize * 4) };
            let end = length.next_multiple_of(4);
            Some(Next { record: Some(after.get(skipped..length)?), rest: after.get(end..)? })
        }
    }
}

fn word(bytes: &[u8]) -> Option<(u32, &[u8])> {
    let (first, rest) = bytes.split_first_chunk::<4>()?;
    Some((u32::from_le_bytes(*first), rest))
}

/// How long after its time an event may still be on its way into a buffer: a virtual processor may pause in between.
const SETTLE_NS: u64 = 5_000_000;

/// Open buffers, and the events that wait until those of other processors are there too.
#[derive(Debug)]
pub struct Reader {
    /// Each with its processor's number and the time of the last event that came out of it.
    buffers: Vec<(File, u16, u64)>,
    page: Vec<u8>,
    waiting: Vec<Event>,
}

impl Reader {
    pub fn new(instance: &Instance) -> Result<Self, ProbeError> {
        let mut buffers = Vec::new();
        for (processor, path) in instance.buffers()? {
            let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
            let handle = rustix::fs::open(&path, flags, rustix::fs::Mode::empty());
            buffers.push((
                File::from(handle.map_err(std::io::Error::from).map_err(ProbeError::at(&path))?),
                processor,
                0,
            ));
        }
        Ok(Self { buffers, page: vec![0; instance.layout.page_bytes()], waiting: Vec::new() })
    }

    /// Lets go of the buffers: an instance whose buffers are open can't go.
    pub fn close(&mut self) {
        self.buffers.clear();
    }

    /// Reads all there is, and gives every event before `now_ns` in order; with `now_ns` at its maximum nothing waits
    /// any longer. Where events were lost, [`Step::Blind`] and [`Step::Seeing`] stand around the gap.
    pub fn drain(&mut self, instance: &Instance, now_ns: u64, visit: impl FnMut(&Event)) -> Result<(), ProbeError> {
        for (buffer, processor, last_ns) in &mut self.buffers {
            loop {
                let length = match buffer.read(&mut self.page) {
                    Ok(0) => break,
                    Ok(length) => length,
                    Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                    Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                    Err(error) => return Err(ProbeError::NoTrace(format!("the buffer can't be read: {error}"))),
                };
                let page = &self.page[..length];
                if let Some(again_ns) = lost_events_until(page, &instance.layout) {
                    self.waiting.push(Event::gap((*last_ns).min(again_ns), Step::Blind));
                    self.waiting.push(Event::gap(again_ns, Step::Seeing));
                }
                records(page, &instance.layout, |at_ns, record| {
                    *last_ns = at_ns;
                    self.waiting.extend(instance.decoder.event(at_ns, *processor, record));
                });
            }
        }
        // Each processor's events are in order already, and what waited is too: merging is cheap, and equal times stay.
        self.waiting.sort_by_key(|event| event.at_ns);
        let settled = now_ns.saturating_sub(SETTLE_NS);
        let ready =
            if now_ns == u64::MAX { self.waiting.len() } else { self.waiting.partition_point(|e| e.at_ns <= settled) };
        self.waiting.drain(..ready).as_slice().iter().for_each(visit);
        Ok(())
    }
}

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
    pub fn find(device_path: &Path) -> Result<Self, ProbeError> {
        let path = if device_path.is_absolute() { device_path.to_owned() } else { Path::new("/dev").join(device_path) };
        let real = fs::canonicalize(&path).map_err(ProbeError::at(&path))?;
        let name = real.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let folder = fs::canonicalize(Path::new("/sys/class/block").join(&name)).ok();
        let device = folder.and_then(|folder| Self::at(&folder, name));
        device.ok_or_else(|| ProbeError::Usage(format!("{} is not a block device", device_path.display())))
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
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn lost_events_of_every_kind_count() {
        let stats = "entries: 5\noverrun: 3\ncommit overrun: 1\nbytes: 99\ndropped events: 2\nread events: 7\n";
        assert_eq!(lost_of(stats), 6);
        assert_eq!(lost_of("overrun: many"), 0);
    }

    const HEADER: &str = "field: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\
    field: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n\
    field: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n\
    field: char data;\toffset:16;\tsize:4080;\tsigned:0;\n";

    fn layout() -> PageLayout {
        PageLayout::parse(HEADER).unwrap()
    }

    fn page(start: u64, flags: u64, words: &[u32]) -> Vec<u8> {
        let mut bytes = start.to_le_bytes().to_vec();
        bytes.extend((flags | (words.len() as u64 * 4)).to_le_bytes());
        bytes.extend(words.iter().flat_map(|word| word.to_le_bytes()));
        bytes.resize(4096, 0xAA);
        bytes
    }

    fn events_of(page: &[u8]) -> Vec<(u64, Vec<u8>)> {
        let mut events = Vec::new();
        records(page, &layout(), |at, record| events.push((at, record.to_vec())));
        events
    }

    #[test]
    fn a_page_is_as_long_as_the_kernel_says() {
        assert_eq!(layout().page_bytes(), 4096);
        assert_eq!(PageLayout::parse("").unwrap_err(), "no field timestamp");
    }

    #[test]
    fn times_add_up() {
        let event = |delta: u32| (delta << 5) | 1;
        let all = events_of(&page(1000, 0, &[event(5), 7, event(0), 8, (3 << 5) | TIME_EXTEND, 1, event(2), 9]));
        let expected = [(1005, 7u32), (1005, 8), (1005 + 3 + (1 << 27) + 2, 9)];
        assert_eq!(all, expected.map(|(at, word)| (at, word.to_le_bytes().to_vec())));
    }

    #[test]
    fn an_absolute_time_keeps_what_is_above_its_bits() {
        let start = (3 << STAMP_BITS) | 0x4d2;
        let all = events_of(&page(start, 0, &[(9 << 5) | TIME_STAMP, 2, 1, 7]));
        assert_eq!(all[0].0, (3 << STAMP_BITS) | (2 << 27) | 9);
    }

    #[test]
    fn a_long_record_tells_its_length_before_it() {
        let all = events_of(&page(0, 0, &[1 << 5, 12, 0x0101_0101, 0x0202_0202, (1 << 5) | 1, 3]));
        assert_eq!(all, [(1, vec![1, 1, 1, 1, 2, 2, 2, 2]), (2, vec![3, 0, 0, 0])]);
    }

    #[test]
    fn what_was_discarded_is_passed_over_with_its_time() {
        let all = events_of(&page(0, 0, &[(4 << 5) | PADDING, 8, 99, (1 << 5) | 1, 3]));
        assert_eq!(all, [(5, vec![3, 0, 0, 0])]);
    }

    #[test]
    fn a_page_behind_lost_events_says_so() {
        assert_eq!(lost_events_until(&page(77, MISSED, &[1, 3]), &layout()), Some(77));
        assert_eq!(lost_events_until(&page(77, 0, &[1, 3]), &layout()), None);
        assert_eq!(lost_events_until(&[1, 2], &layout()), None);
    }

    #[test]
    fn padding_without_a_length_ends_the_page() {
        let all = events_of(&page(0, 0, &[1, 3, PADDING, 0, 1, 3]));
        assert_eq!(all.len(), 1);
    }

    proptest! {
        #[test]
        fn garbage_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
            records(&bytes, &layout(), |_, record| assert!(record.len() < 600));
            let _ = lost_events_until(&bytes, &layout());
        }

        #[test]
        fn garbage_behind_a_good_header_never_panics(
            words in proptest::collection::vec(prop_oneof![any::<u32>(), 0u32..2048], 0..600), flags in any::<u64>()
        ) {
            let mut bytes = page(7, 0, &words);
            bytes[8..16].copy_from_slice(&(flags | 0xff0).to_le_bytes());
            records(&bytes, &layout(), |_, record| assert!(record.len() <= 4080));
        }

        #[test]
        fn every_record_written_is_found(lengths in proptest::collection::vec((1u32..29, 0u32..1 << 27), 0..30)) {
            let mut words = Vec::new();
            for (length, delta) in &lengths {
                words.push((delta << 5) | length);
                words.extend(std::iter::repeat_n(*length, *length as usize));
            }
            let all = events_of(&page(0, 0, &words));
            let mut now = 0;
            prop_assert_eq!(all.len(), lengths.len());
            for ((at, record), (length, delta)) in all.iter().zip(&lengths) {
                now += u64::from(*delta);
                prop_assert_eq!((*at, record.len()), (now, *length as usize * 4));
            }
        }
    }

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
