//! The drive and its own queue.

use dbdyno_device::{Command, Completion, DeviceModel, Kind, WriteCache};

use crate::queue::{Direction, FlushStep, Request, RequestId};

/// Bytes of a sector.
const SECTOR_BYTES: u64 = 512;

/// A drive model with the commands it has.
pub struct Drive {
    model: Box<dyn DeviceModel + Send>,
    depth: usize,
    in_flight: usize,
    finished: Vec<Completion>,
}

impl Drive {
    /// A drive that takes `depth` commands at once, 1 to 256.
    pub fn new(model: Box<dyn DeviceModel + Send>, depth: usize) -> Self {
        Self { model, depth: depth.clamp(1, 256), in_flight: 0, finished: Vec::new() }
    }

    pub(super) fn has_room(&self) -> bool {
        self.in_flight < self.depth
    }

    /// Commands that it takes at once.
    pub(super) fn depth(&self) -> usize {
        self.depth
    }

    pub(super) fn has_write_cache(&self) -> bool {
        self.model.write_cache() == WriteCache::Volatile
    }

    pub(super) fn next_due(&self) -> Option<u64> {
        self.model.next_due()
    }

    pub(super) fn submit(&mut self, now_ns: u64, id: RequestId, request: &Request) {
        let kind = match request.direction {
            _ if request.flush || request.step != FlushStep::Data => Kind::Flush,
            Direction::Read => Kind::Read,
            Direction::Write => Kind::Write,
        };
        self.in_flight += 1;
        self.model.submit(
            now_ns,
            Command {
                id: u64::from(id),
                kind,
                offset_bytes: request.start_sector * SECTOR_BYTES,
                length_bytes: u64::from(request.sectors) * SECTOR_BYTES,
                fua: request.fua,
            },
        );
    }

    /// Reads which commands have been finished; give the list back with [`Drive::keep`].
    pub(super) fn poll(&mut self, now_ns: u64) -> Vec<Completion> {
        let mut finished = std::mem::take(&mut self.finished);
        self.model.poll(now_ns, &mut finished);
        self.in_flight -= finished.len();
        finished
    }

    pub(super) fn keep(&mut self, mut finished: Vec<Completion>) {
        finished.clear();
        self.finished = finished;
    }
}
