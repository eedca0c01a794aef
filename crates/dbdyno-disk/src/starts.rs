//! When the block layer handed each request to the loop device: the moment from which a user of the disk counts.
//!
//! Between it and the request's arrival here lie the loop device's queue and FUSE's. The trace point `block_rq_issue`
//! has the time; a request is known again by its first byte.
//!
//! Sources: `perf_event_open(2)`; `linux/perf_event.h`; `Documentation/trace/events.rst` for the filter. Tracefs says
//! which number a trace point has and where its fields lie; it is mounted for this process alone, at no place.
//!
//! Cannot: distinguish two requests in flight that begin at the same byte (the earlier start counts for the first to
//! come).

use std::collections::VecDeque;
use std::fs::read_to_string;
use std::io::{Error, ErrorKind, Read, Result};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use rustix::fs::{Mode, OFlags, openat};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen};
use rustix::param::page_size;

const SECTOR_BYTES: u64 = 512;

/// More than a loop device has in flight; what is beyond never came here.
const WAITING_MAX: usize = 1024;

/// What has not come by then has failed in between.
const WAITING_NS_MAX: u64 = 1_000_000_000;

/// The starts of one loop device's requests.
pub struct Starts {
    rings: Vec<Ring>,
    sector_at: usize,
    bytes_at: usize,
    issued: Issued,
}

impl Starts {
    /// Begins to follow a block device. It needs `CAP_PERFMON` or `CAP_SYS_ADMIN`.
    pub fn of(device: &Path) -> Result<Self> {
        let metadata = device.metadata()?;
        if !metadata.file_type().is_block_device() {
            return Err(Error::new(ErrorKind::InvalidInput, format!("{} is not a block device", device.display())));
        }
        let number = kernel_number(metadata.rdev());
        let point = TracePoint::find("block/block_rq_issue")?;
        let rings = processors()?
            .into_iter()
            .map(|processor| Ring::open(&point, processor, &format!("dev == {number}")))
            .collect::<Result<_>>()?;
        Ok(Self {
            rings,
            sector_at: point.field("sector", 8)?,
            bytes_at: point.field("bytes", 4)?,
            issued: Issued::default(),
        })
    }

    /// When a request was handed over that arrived at `arrived_ns`; one without bytes is a FLUSH. `None` if it did not
    /// come through the device.
    pub fn start_ns(&mut self, offset_bytes: u64, length_bytes: u64, arrived_ns: u64) -> Option<u64> {
        let Self { rings, sector_at, bytes_at, issued } = self;
        for ring in rings {
            ring.drain(|at_ns, event| {
                let offset_bytes = u64_at(event, *sector_at).saturating_mul(SECTOR_BYTES);
                issued.add(Start { offset_bytes, length_bytes: u64::from(u32_at(event, *bytes_at)), at_ns });
            });
        }
        issued.take(offset_bytes, length_bytes, arrived_ns)
    }
}

/// The loop device that is followed, if one is.
#[derive(Default)]
pub struct Following {
    /// Whether one is, readable without the lock.
    on: AtomicBool,
    starts: Mutex<Option<Starts>>,
}

impl Following {
    /// Begins to follow this device. It follows none if the host does not allow that, which is the error.
    pub fn follow(&self, device: &Path) -> Result<()> {
        let (starts, result) = match Starts::of(device) {
            Ok(starts) => (Some(starts), Ok(())),
            Err(error) => (None, Err(error)),
        };
        self.on.store(starts.is_some(), Ordering::Release);
        *self.starts.lock().unwrap_or_else(PoisonError::into_inner) = starts;
        result
    }

    pub fn on(&self) -> bool {
        self.on.load(Ordering::Acquire)
    }

    /// As [`Starts::start_ns`].
    pub fn start_ns(&self, offset_bytes: u64, length_bytes: u64, arrived_ns: u64) -> Option<u64> {
        if !self.on() {
            return None;
        }
        let mut starts = self.starts.lock().unwrap_or_else(PoisonError::into_inner);
        starts.as_mut()?.start_ns(offset_bytes, length_bytes, arrived_ns)
    }
}

/// How the kernel numbers a device inside: 12 bits of the major number, 20 of the minor (`linux/kdev_t.h`).
fn kernel_number(device: u64) -> u32 {
    rustix::fs::major(device) << 20 | rustix::fs::minor(device)
}

/// What was handed to the device and has not arrived, about in order. A FLUSH has no bytes and no place.
#[derive(Default)]
struct Issued(VecDeque<Start>);

struct Start {
    offset_bytes: u64,
    length_bytes: u64,
    at_ns: u64,
}

impl Issued {
    fn add(&mut self, start: Start) {
        if self.0.len() == WAITING_MAX {
            self.0.pop_front();
        }
        self.0.push_back(start);
    }

    fn take(&mut self, offset_bytes: u64, length_bytes: u64, arrived_ns: u64) -> Option<u64> {
        while self.0.front().is_some_and(|start| arrived_ns.saturating_sub(start.at_ns) > WAITING_NS_MAX) {
            self.0.pop_front();
        }
        let flush = length_bytes == 0;
        let candidate = self
            .0
            .iter_mut()
            .enumerate()
            .find(|(_, start)| (start.length_bytes == 0) == flush && (flush || start.offset_bytes == offset_bytes));
        let (place, start) = candidate?;
        let at_ns = start.at_ns;
        if start.length_bytes > length_bytes {
            // FUSE split it: the rest has the same start.
            start.offset_bytes += length_bytes;
            start.length_bytes -= length_bytes;
        } else {
            self.0.remove(place);
        }
        Some(at_ns)
    }
}

const TRACE_POINT: u32 = 2; // PERF_TYPE_TRACEPOINT
const TIME_AND_RAW: u64 = 1 << 2 | 1 << 10; // PERF_SAMPLE_TIME, PERF_SAMPLE_RAW
const DISABLED_OWN_CLOCK: u64 = 1 | 1 << 25; // the bits `disabled` and `use_clockid`
const ENABLE: libc::c_ulong = 0x2400; // PERF_EVENT_IOC_ENABLE
const SET_FILTER: libc::c_ulong = 0x4008_2406; // PERF_EVENT_IOC_SET_FILTER
const CLOSE_ON_EXEC: libc::c_ulong = 8; // PERF_FLAG_FD_CLOEXEC
const SAMPLE: u32 = 9; // PERF_RECORD_SAMPLE

/// Places in the first page (`struct perf_event_mmap_page`).
const HEAD_AT: usize = 1024;
const TAIL_AT: usize = 1032;

/// Events of some 100 bytes: more than twice of the 128 that a loop device has in flight, should one processor send
/// all.
const DATA_BYTES: usize = 32 << 10;
/// A longer record is none that was asked for.
const RECORD_BYTES_MAX: usize = 512;
/// Of a record: its header, the time and the length of what follows.
const HEADER_BYTES: usize = 8;
const RAW_AT: usize = HEADER_BYTES + 8 + 4;

/// `struct perf_event_attr` up to the fields of version 5 (Linux 4.1).
#[repr(C)]
#[derive(Default)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup_events: u32,
    breakpoint_type: u32,
    config1: u64,
    config2: u64,
    branch_sample_type: u64,
    sample_registers_user: u64,
    sample_stack_user: u32,
    clock: i32,
    sample_registers_interrupt: u64,
    aux_watermark: u32,
    sample_max_stack: u16,
    reserved: u16,
}

/// A trace point of the running kernel.
pub struct TracePoint {
    number: u64,
    format: String,
}

impl TracePoint {
    /// By its place below `events` of tracefs, such as `block/block_rq_issue`.
    pub fn find(place: &str) -> Result<Self> {
        let fs = fsopen("tracefs", FsOpenFlags::FSOPEN_CLOEXEC)?;
        fsconfig_create(&fs)?;
        let root = fsmount(&fs, FsMountFlags::FSMOUNT_CLOEXEC, MountAttrFlags::MOUNT_ATTR_RDONLY)?;
        let read = |name: &str| -> Result<String> {
            let path = format!("events/{place}/{name}");
            let file = openat(&root, path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
            let mut text = String::new();
            std::fs::File::from(file).take(1 << 16).read_to_string(&mut text)?;
            Ok(text)
        };
        let number = read("id")?.trim().parse().map_err(|_| Error::from(ErrorKind::InvalidData))?;
        Ok(Self { number, format: read("format")? })
    }

    /// Where a field of so many bytes begins in an event.
    pub fn field(&self, name: &str, bytes: usize) -> Result<usize> {
        field(&self.format, name, bytes).ok_or_else(|| {
            Error::new(ErrorKind::InvalidData, format!("the event has no field {name} of {bytes} bytes"))
        })
    }
}

fn field(format: &str, name: &str, bytes: usize) -> Option<usize> {
    let line =
        format.lines().find(|line| line.split(';').next().is_some_and(|words| words.ends_with(&format!(" {name}"))))?;
    let value = |key: &str| line.split_once(key)?.1.split(';').next()?.parse::<usize>().ok();
    value("offset:").filter(|_| value("size:") == Some(bytes))
}

/// The processors that are there, as the kernel lists them: `0-3,8`.
pub fn processors() -> Result<Vec<u32>> {
    let listed = read_to_string("/sys/devices/system/cpu/online")?;
    parsed(listed.trim())
        .ok_or_else(|| Error::new(ErrorKind::InvalidData, format!("not a list of processors: {listed:?}")))
}

fn parsed(listed: &str) -> Option<Vec<u32>> {
    let mut processors = Vec::new();
    for part in listed.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        processors.extend(first.parse::<u32>().ok()?..=last.parse().ok()?);
    }
    Some(processors)
}

/// The events of one processor.
pub struct Ring {
    map: NonNull<u8>,
    /// Of the page in front of the data.
    page_bytes: usize,
    data_bytes: usize,
    /// Open for as long as there are to be events.
    _event: OwnedFd,
}

// SAFETY: the mapping belongs to this value alone and is read and written through `&mut self` only.
unsafe impl Send for Ring {}

impl Ring {
    /// Of those events that the filter lets through.
    pub fn open(point: &TracePoint, processor: u32, filter: &str) -> Result<Self> {
        let attributes = Attributes {
            kind: TRACE_POINT,
            size: size_of::<Attributes>() as u32,
            config: point.number,
            sample_period: 1,
            sample_type: TIME_AND_RAW,
            flags: DISABLED_OWN_CLOCK,
            clock: libc::CLOCK_MONOTONIC,
            ..Attributes::default()
        };
        // SAFETY: the pointer is to a live value of the type and size that it says; the rest are integers: no process
        // (-1), the processor, no group (-1).
        let event = unsafe {
            libc::syscall(libc::SYS_perf_event_open, &raw const attributes, -1, processor, -1, CLOSE_ON_EXEC)
        };
        if event < 0 {
            return Err(Error::last_os_error());
        }
        // SAFETY: the kernel has just given this descriptor, which nothing else owns.
        let event = unsafe { OwnedFd::from_raw_fd(event as i32) };
        let filter = std::ffi::CString::new(filter)?;
        let page_bytes = page_size();
        let data_bytes = DATA_BYTES.max(page_bytes);
        let (bytes, access) = (page_bytes + data_bytes, ProtFlags::READ | ProtFlags::WRITE);
        // SAFETY: a null address lets the kernel choose; nothing else knows of the mapping.
        let map = unsafe { mmap(ptr::null_mut(), bytes, access, MapFlags::SHARED, &event, 0) }?;
        let map = NonNull::new(map.cast()).ok_or(ErrorKind::OutOfMemory)?;
        // SAFETY: the filter is a live string with a zero at its end; enabling takes an integer.
        let taken = unsafe {
            libc::ioctl(event.as_raw_fd(), SET_FILTER, filter.as_ptr()) == 0
                && libc::ioctl(event.as_raw_fd(), ENABLE, 0) == 0
        };
        let refused = Error::last_os_error();
        let ring = Self { map, page_bytes, data_bytes, _event: event };
        if taken { Ok(ring) } else { Err(refused) }
    }

    /// Hands over what has come since: time, `CLOCK_MONOTONIC`, and the event as the trace point's format describes it.
    pub fn drain(&mut self, mut take: impl FnMut(u64, &[u8])) {
        // SAFETY: both places are aligned words of the mapping's first page, which the kernel reads and writes as such.
        let (head, tail) = unsafe {
            (
                AtomicU64::from_ptr(self.map.add(HEAD_AT).cast().as_ptr()),
                AtomicU64::from_ptr(self.map.add(TAIL_AT).cast().as_ptr()),
            )
        };
        let (end, mut at) = (head.load(Ordering::Acquire), tail.load(Ordering::Relaxed));
        let mut record = [0; RECORD_BYTES_MAX];
        while at < end {
            self.copy(at, &mut record[..HEADER_BYTES]);
            let (kind, bytes) = (u32_at(&record, 0), usize::from(u16::from_ne_bytes([record[6], record[7]])));
            if kind == SAMPLE && (RAW_AT..=RECORD_BYTES_MAX).contains(&bytes) {
                self.copy(at, &mut record[..bytes]);
                let raw_bytes = (u32_at(&record, RAW_AT - 4) as usize).min(bytes - RAW_AT);
                take(u64_at(&record, HEADER_BYTES), &record[RAW_AT..RAW_AT + raw_bytes]);
            }
            // A record without a length would keep this here for ever.
            at += bytes.max(HEADER_BYTES) as u64;
        }
        tail.store(at, Ordering::Release);
    }

    fn copy(&self, at: u64, into: &mut [u8]) {
        let start = at as usize % self.data_bytes;
        let first = into.len().min(self.data_bytes - start);
        // SAFETY: both parts lie in the mapping's data, which the kernel does not write between tail and head.
        unsafe {
            let data = self.map.add(self.page_bytes).as_ptr();
            ptr::copy_nonoverlapping(data.add(start), into.as_mut_ptr(), first);
            ptr::copy_nonoverlapping(data, into.as_mut_ptr().add(first), into.len() - first);
        }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: the mapping was made with this length and nothing refers to it any more.
        let _ = unsafe { munmap(self.map.as_ptr().cast(), self.page_bytes + self.data_bytes) };
    }
}

/// The number at a place of an event; 0 where the event ends before.
pub fn u32_at(event: &[u8], at: usize) -> u32 {
    event.get(at..at + 4).map_or(0, |bytes| u32::from_ne_bytes(bytes.try_into().unwrap_or_default()))
}

/// The same of 8 bytes.
pub fn u64_at(event: &[u8], at: usize) -> u64 {
    event.get(at..at + 8).map_or(0, |bytes| u64::from_ne_bytes(bytes.try_into().unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn issued(starts: &[(u64, u64, u64)]) -> Issued {
        let mut issued = Issued::default();
        for &(offset_bytes, length_bytes, at_ns) in starts {
            issued.add(Start { offset_bytes, length_bytes, at_ns });
        }
        issued
    }

    #[test]
    fn a_request_is_known_by_its_first_byte() {
        let mut issued = issued(&[(4096, 4096, 10), (0, 0, 20), (4096, 4096, 30)]);
        assert_eq!(issued.take(8192, 4096, 40), None);
        assert_eq!(issued.take(0, 0, 40), Some(20), "a FLUSH");
        assert_eq!((issued.take(4096, 4096, 40), issued.take(4096, 4096, 50)), (Some(10), Some(30)));
        assert_eq!((issued.take(4096, 4096, 60), issued.0.len()), (None, 0));
    }

    #[test]
    fn all_parts_of_a_split_request_have_its_start() {
        let mut issued = issued(&[(0, 1280 << 10, 10)]);
        assert_eq!(issued.take(0, 1 << 20, 20), Some(10));
        assert_eq!(issued.take(1 << 20, 256 << 10, 25), Some(10));
        assert_eq!(issued.0.len(), 0);
    }

    #[test]
    fn what_never_arrives_is_forgotten() {
        let mut late = issued(&[(0, 4096, 10), (0, 4096, 5_000_000_000)]);
        assert_eq!(late.take(0, 4096, 5_000_000_100), Some(5_000_000_000));
        let many: Vec<_> = (0..10 * WAITING_MAX as u64).map(|number| (number * 4096, 4096, number)).collect();
        assert_eq!(issued(&many).0.len(), WAITING_MAX);
    }

    const FORMAT: &str = "name: block_rq_issue\nID: 2104\nformat:\n\tfield:dev_t dev;\toffset:8;\tsize:4;\tsigned:0;\n\
    \tfield:sector_t sector;\toffset:16;\tsize:8;\tsigned:0;\n\tfield:unsigned int nr_sector;\toffset:24;\tsize:4;\n\
    \nprint fmt: \"%d sector\", REC->sector\n";

    #[test]
    fn fields_are_found_by_name_and_size() {
        assert_eq!(field(FORMAT, "sector", 8), Some(16));
        assert_eq!(field(FORMAT, "nr_sector", 4), Some(24));
        for (name, bytes) in [("sector", 4), ("bytes", 4), ("", 8)] {
            assert_eq!(field(FORMAT, name, bytes), None, "{name} {bytes}");
        }
    }

    #[test]
    fn lists_of_processors_are_understood() {
        assert_eq!(parsed("0-3,8"), Some(vec![0, 1, 2, 3, 8]));
        assert_eq!(parsed("5"), Some(vec![5]));
        assert!(["", "a", "1-", "1,,2"].iter().all(|wrong| parsed(wrong).is_none()));
        assert!(!processors().unwrap().is_empty());
    }
}
