//! When the block layer handed each request to the loop device: the moment from which a user of the disk counts.
//!
//! Between it and the request's arrival here lie the loop device's queue and FUSE's. The trace point `block_rq_issue` has
//! the time; a request is known again by its first byte.
//!
//! Cannot: distinguish two requests in flight that begin at the same byte (the earlier start counts for the first to come).

use std::collections::VecDeque;
use std::io::{Error, ErrorKind, Result};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::kernel_ring::{Ring, TracePoint, processors, u32_at, u64_at};

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
    /// Follows a block device from now on. It needs `CAP_PERFMON` or `CAP_SYS_ADMIN`.
    pub fn of(device: &Path) -> Result<Self> {
        let found = device.metadata()?;
        if !found.file_type().is_block_device() {
            return Err(Error::new(ErrorKind::InvalidInput, format!("{} is not a block device", device.display())));
        }
        let number = kernel_number(found.rdev());
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
    /// Follows this device from now on, or none if the host does not allow it, which is the error.
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
        let found = self
            .0
            .iter_mut()
            .enumerate()
            .find(|(_, start)| (start.length_bytes == 0) == flush && (flush || start.offset_bytes == offset_bytes));
        let (place, start) = found?;
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
}
