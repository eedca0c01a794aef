//! Where things lie: areas of the drive, and the rows of a table in pages of the clustered index and the secondary
//! ones.
//!
//! An index takes space by 64 pages; so the indexes of a table that grows lie between each other.

use dbdyno_common::random::Random;

use super::pool::AREA;
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

/// How full pages are that rows are appended to, and those that random keys split.
const FILLED: [f64; 2] = [15.0 / 16.0, 0.69];

#[derive(Debug)]
struct Index {
    entries_per_page: u64,
    pages: u64,
    /// Its parts of 64 pages.
    extents: Vec<u32>,
}

#[derive(Debug)]
pub(super) struct Table {
    pub rows: u64,
    /// The clustered one first.
    indexes: Vec<Index>,
    extents: u32,
    extents_most: u32,
}

impl Table {
    pub fn new(settings: &InnodbSettings) -> Self {
        let extents_most = (settings.space_bytes / PAGE_BYTES / u64::from(AREA)) as u32;
        let index = |bytes: u32, filled: f64| Index {
            entries_per_page: (PAGE_BYTES as f64 * filled / f64::from(bytes)) as u64,
            pages: 0,
            extents: Vec::with_capacity(extents_most as usize),
        };
        let mut indexes = vec![index(settings.row_bytes, FILLED[0])];
        indexes.extend((0..settings.secondary_indexes).map(|_| index(settings.index_entry_bytes, FILLED[1])));
        Self { rows: 0, indexes, extents: 0, extents_most }
    }

    pub fn indexes(&self) -> usize {
        self.indexes.len()
    }

    /// Pages there is room for.
    pub fn pages_most(&self) -> usize {
        (self.extents_most * AREA) as usize
    }

    /// Pages in use, index by index.
    pub fn pages(&self) -> impl Iterator<Item = u32> + Clone {
        self.indexes.iter().flat_map(|index| (0..index.pages).map(|nth| index.page(nth)))
    }

    /// Makes room for rows, if there is some.
    pub fn grow(&mut self, rows: u64) -> bool {
        let all = self.rows + rows;
        for index in &mut self.indexes {
            // The page of the row that is next is there, too.
            while index.extents.len() as u64 * u64::from(AREA) <= all / index.entries_per_page {
                if self.extents == self.extents_most {
                    return false;
                }
                index.extents.push(self.extents);
                self.extents += 1;
            }
        }
        true
    }

    /// Adds rows that were there before the load.
    pub fn fill(&mut self, rows: u64) -> bool {
        let has_room = self.grow(rows);
        if has_room {
            self.rows = rows;
            self.indexes.iter_mut().for_each(|index| index.pages = rows.div_ceil(index.entries_per_page));
        }
        has_room
    }

    /// The page of an index that the row being inserted goes to, and whether it is new.
    pub fn insert(&mut self, at: usize, random: &mut Random) -> (u32, bool) {
        if at == 0 {
            self.rows += 1;
        }
        let index = &mut self.indexes[at];
        if self.rows > index.pages * index.entries_per_page {
            index.pages += 1;
            return (index.page(index.pages - 1), true);
        }
        let nth = if at == 0 { index.pages - 1 } else { random.below(index.pages) };
        (index.page(nth), false)
    }

    /// The page of a random row.
    pub fn random_row(&self, random: &mut Random) -> u32 {
        let clustered = &self.indexes[0];
        clustered.page(random.below(self.rows) / clustered.entries_per_page)
    }
}

impl Index {
    fn page(&self, nth: u64) -> u32 {
        let area = u64::from(AREA);
        self.extents[(nth / area) as usize] * AREA + (nth % area) as u32
    }
}
