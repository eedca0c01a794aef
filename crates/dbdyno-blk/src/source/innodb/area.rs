//! Areas of the drive.

use super::settings::{InnodbSettings, PAGE_BYTES};
use crate::queue::{Bio, Direction};

const SECTOR_BYTES: u64 = 512;
/// Largest write, as the block layer cuts them.
const PIECE_BYTES: u64 = 512 << 10;
const JOURNAL_BYTES: u64 = 128 << 20;
const DOUBLEWRITE_BYTES: u64 = 2 << 20;
const BINLOG_BYTES: u64 = 1 << 30;

/// Bytes of the drive from one place to another.
#[derive(Debug, Clone, Copy)]
pub(super) struct Area {
    start_bytes: u64,
    length_bytes: u64,
}

impl Area {
    /// Writes of what lies between two positions of an endless file that is written round and round, whole blocks of
    /// `block_bytes`.
    pub fn writes(self, process: u32, from: u64, to: u64, block_bytes: u64) -> impl Iterator<Item = Bio> {
        let end = to.next_multiple_of(block_bytes);
        let mut at = from / block_bytes * block_bytes;
        std::iter::from_fn(move || {
            let place = at % self.length_bytes;
            let length = (end - at).min(PIECE_BYTES).min(self.length_bytes - place);
            at += length;
            (length > 0).then(|| self.bio(process, Direction::Write, place, length))
        })
    }

    pub fn page(self, process: u32, direction: Direction, page: u32) -> Bio {
        self.bio(process, direction, u64::from(page) * PAGE_BYTES, PAGE_BYTES)
    }

    fn bio(self, process: u32, direction: Direction, at: u64, length: u64) -> Bio {
        let (start, sectors) = ((self.start_bytes + at) / SECTOR_BYTES, (length / SECTOR_BYTES) as u32);
        Bio::new(process, direction, start, sectors)
    }
}

/// What lies where: journal, redo log, doublewrite buffer, binary log, tables.
#[derive(Debug, Clone, Copy)]
pub(super) struct Areas {
    pub journal: Area,
    pub log: Area,
    pub doublewrite: Area,
    pub binlog: Area,
    pub table: Area,
}

impl Areas {
    pub fn new(settings: &InnodbSettings) -> Self {
        let mut end_bytes = settings.offset_bytes;
        let mut next = |length_bytes: u64| {
            let start_bytes = end_bytes;
            end_bytes += length_bytes;
            Area { start_bytes, length_bytes }
        };
        Self {
            journal: next(if settings.journal_blocks > 0 { JOURNAL_BYTES } else { 0 }),
            log: next(settings.log_bytes().next_multiple_of(4096)),
            doublewrite: next(if settings.doublewrite { DOUBLEWRITE_BYTES } else { 0 }),
            binlog: next(if settings.sync_binlog.is_some() { BINLOG_BYTES } else { 0 }),
            table: next(settings.space_bytes.next_multiple_of(PAGE_BYTES)),
        }
    }

    pub fn end_bytes(&self) -> u64 {
        self.table.start_bytes + self.table.length_bytes
    }
}
