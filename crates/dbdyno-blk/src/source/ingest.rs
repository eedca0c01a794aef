//! `MyISAM` takes rows, one after the other.
//!
//! Every row is a statement, at whose end `MyISAM` writes what it changed (`delay_key_write` is off): the row behind
//! the last, the state at the head of the index file, the block of the ascending primary key, and for each secondary
//! key, whose values are random, a block anywhere. Blocks of 1 KiB lie in pages of 4 KiB.
//!
//! The key buffer saves no reads of the drive: a block that it has is written through the page cache, which needs the
//! rest of its page. It takes memory from that. So the drive is read from once index and data outgrow the page cache.
//!
//! ```
//! use dbdyno_blk::kernel::{Kernel, Settings};
//! use dbdyno_blk::run;
//! use dbdyno_blk::source::{Cached, CacheConfig, Ingest, IngestConfig};
//!
//! let kernel = Kernel::named("3.10")?;
//! let mut layer = kernel.layer(&Settings::default(), dbdyno_device::model("hdd-15k", 8 << 30, 1)?)?;
//! let config = IngestConfig { initial_rows: 1_000_000, ..IngestConfig::default() };
//! let mut load = Ingest::cached(&kernel, &CacheConfig::default(), config, 1)?;
//! run(&mut layer, &mut load, 0, 2_000_000_000);
//! assert!(load.application().rows() > 1_000);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Cannot
//! Several sessions, deletes, a row that is larger than a page, `delay_key_write`, bulk inserts.

use dbdyno_common::random::Random;
use serde::{Deserialize, Serialize};

use super::cache::{Act, Application, CacheConfig, CacheError, Cached, Files, Page, unless};
use crate::kernel::Kernel;

const PAGE_BYTES: u64 = 4096;
/// The size of an index block.
const BLOCK_BYTES: u64 = 1024;
const DATA: u32 = 0;
const INDEX: u32 = 1;
/// Most secondary keys: `MyISAM` has 64 keys.
const KEYS_MOST: u32 = 63;

/// A table that takes rows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct IngestConfig {
    /// Rows that are there at first.
    pub initial_rows: u64,
    /// It ends after so many new rows; 0 for never.
    pub rows: u64,
    /// What a row takes of the data file.
    pub row_bytes: u64,
    /// Keys of random values beside the ascending primary key.
    pub secondary_keys: u32,
    /// What a row takes of the index file, all keys, with the room that is free in their blocks.
    pub index_bytes_per_row: u64,
    /// What an entry of the primary key takes, without free room.
    pub primary_key_bytes: u64,
    /// `key_buffer_size`: memory that the page cache does not have.
    pub key_buffer_bytes: u64,
    /// CPU time of a row.
    pub cpu_us_per_row: f64,
}

impl Default for IngestConfig {
    fn default() -> Self {
        Self {
            initial_rows: 0,
            rows: 0,
            row_bytes: 64,
            secondary_keys: 3,
            index_bytes_per_row: 58,
            primary_key_bytes: 10,
            key_buffer_bytes: 2 << 30,
            cpu_us_per_row: 50.0,
        }
    }
}

impl IngestConfig {
    fn check(&self) -> Result<(), CacheError> {
        unless(self.initial_rows <= 10_000_000_000, "initial_rows", self.initial_rows, "is more than 10000000000")?;
        unless((1..=PAGE_BYTES).contains(&self.row_bytes), "row_bytes", self.row_bytes, "is not between 1 and 4096")?;
        unless(self.secondary_keys <= KEYS_MOST, "secondary_keys", self.secondary_keys, "is more than 63")?;
        let (index, key) = (self.index_bytes_per_row, self.primary_key_bytes);
        unless((1..=65_536).contains(&index), "index_bytes_per_row", index, "is not between 1 and 65536")?;
        unless(
            (1..=index.min(BLOCK_BYTES)).contains(&key),
            "primary_key_bytes",
            key,
            "is not between 1 and the lesser of index_bytes_per_row and 1024",
        )?;
        let cpu = self.cpu_us_per_row;
        unless((0.001..=1e9).contains(&cpu), "cpu_us_per_row", cpu, "is not between 0.001 and 1e9")
    }

    fn data_page(&self, rows: u64) -> u32 {
        (rows * self.row_bytes / PAGE_BYTES) as u32
    }

    /// The last page of the index; the first has the state.
    fn index_page(&self, rows: u64) -> u32 {
        1 + (rows * self.index_bytes_per_row / PAGE_BYTES) as u32
    }
}

/// What takes rows.
#[derive(Debug)]
pub struct Ingest {
    config: IngestConfig,
    random: Random,
    rows: u64,
    /// Pages that the row has yet to write to, the last first.
    pages: Vec<Page>,
    /// The block of the primary key that is filled now.
    primary_page: u32,
    has_computed: bool,
}

impl Ingest {
    /// One on the page cache of a kernel. The seed decides where secondary keys go.
    ///
    /// # Errors
    /// [`CacheError`] names the field, what was given and what must hold.
    pub fn cached(
        kernel: &Kernel,
        cache: &CacheConfig,
        config: IngestConfig,
        seed: u64,
    ) -> Result<Cached<Self>, CacheError> {
        config.check()?;
        let mapped_bytes = cache.mapped_bytes.saturating_add(config.key_buffer_bytes);
        let room = cache.memory_bytes.saturating_sub(cache.mapped_bytes);
        let problem = "leaves less than 4 MiB of memory_bytes - mapped_bytes to the page cache";
        unless(config.key_buffer_bytes + (4 << 20) <= room, "key_buffer_bytes", config.key_buffer_bytes, problem)?;
        let cache = CacheConfig { mapped_bytes, ..cache.clone() };
        let own = Self {
            random: Random::new(seed),
            rows: config.initial_rows,
            pages: Vec::new(),
            primary_page: config.index_page(config.initial_rows),
            has_computed: false,
            config,
        };
        Cached::new(kernel, &cache, own)
    }

    /// Rows that the table has.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Chooses the pages of the next row.
    fn next_row(&mut self) {
        let config = &self.config;
        let (row, last) = (self.rows, config.index_page(self.rows));
        let index = |page| Page { file: INDEX, page };
        // Written in the order of their addresses, the state last.
        self.pages.push(index(0));
        let grows =
            (row + 1) * config.index_bytes_per_row / BLOCK_BYTES > row * config.index_bytes_per_row / BLOCK_BYTES;
        if grows {
            self.pages.push(index(config.index_page(row + 1)));
        }
        if row * config.primary_key_bytes % BLOCK_BYTES < config.primary_key_bytes {
            self.primary_page = last;
        }
        self.pages.push(index(self.primary_page));
        for _ in 0..config.secondary_keys {
            self.pages.push(index(1 + self.random.below(last.into()) as u32));
        }
        let keys = self.pages.len();
        self.pages[1..keys].sort_unstable_by(|left, right| right.cmp(left));
        self.pages.push(Page { file: DATA, page: config.data_page(row) });
    }
}

impl Application for Ingest {
    fn processes(&self) -> u32 {
        1
    }

    fn begin(&mut self, files: &mut Files) {
        let config = &self.config;
        files.add(0);
        files.add(0);
        // They grew at once. What was written last is in memory, and of the index as much as there is room for.
        let steps = 1 + config.initial_rows * config.index_bytes_per_row / (1 << 20);
        for step in 1..=steps {
            let rows = (u128::from(config.initial_rows) * u128::from(step) / u128::from(steps)) as u64;
            files.grow(DATA, config.data_page(rows) + 1);
            files.grow(INDEX, config.index_page(rows) + 1);
        }
        files.load(INDEX);
    }

    fn act(&mut self, _now_ns: u64, _process: u32) -> Act {
        if self.pages.is_empty() {
            if !std::mem::replace(&mut self.has_computed, true) {
                let enough = self.config.initial_rows + self.config.rows;
                let is_enough = self.config.rows > 0 && self.rows >= enough;
                let cpu_ns = (self.config.cpu_us_per_row * 1e3) as u64;
                return if is_enough { Act::Exit } else { Act::Compute(cpu_ns) };
            }
            self.has_computed = false;
            self.next_row();
        }
        let Some(page) = self.pages.pop() else { return Act::Exit };
        self.rows += u64::from(self.pages.is_empty());
        Act::Write { page, whole: false }
    }
}
