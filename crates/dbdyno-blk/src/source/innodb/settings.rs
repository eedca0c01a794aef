//! What a user says of a server.

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Bytes of a page.
pub(super) const PAGE_BYTES: u64 = 16 << 10;

/// The rules by which pages are flushed and the binary log is committed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum InnodbVersion {
    /// The master thread flushes `io_capacity` pages when too many are dirty; with a binary log, transactions commit
    /// one by one.
    #[serde(rename = "5.1")]
    V51,
    /// The page cleaner follows the age of the log; transactions share a flush of the binary log.
    #[serde(rename = "5.6")]
    V56,
}

/// Statements, in mysqlslap's words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum InnodbLoad {
    /// Inserts with an ascending primary key; secondary keys are random.
    Write,
    /// Updates of rows by a random primary key.
    Update,
    /// Selects by a random primary key.
    Key,
    /// An insert and a select by turns.
    Mixed,
}

/// How pages of tables are written (`innodb_flush_method`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum FlushMethod {
    /// Into the page cache, then `fsync`.
    #[serde(rename = "fsync")]
    Fsync,
    /// Past the page cache.
    #[serde(rename = "O_DIRECT")]
    Direct,
}

/// A server with its load. The default is version 5.6 as it comes, with ten clients that insert.
// Switches of the server, each by itself.
#[allow(clippy::struct_excessive_bools)]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct InnodbSettings {
    /// Rules of flushing.
    pub version: InnodbVersion,
    /// What clients do.
    pub load: InnodbLoad,
    /// Connections, each of which sends the next statement when the last is answered.
    pub clients: u32,
    /// A client ends after so many; 0 for never.
    pub statements_per_client: u64,
    /// Statements that change rows between two commits.
    pub statements_per_transaction: u32,
    /// Rows that a statement inserts, changes or selects.
    pub rows_per_statement: u32,
    /// Pause of a client between an answer and the next statement, microseconds.
    pub think_us: f64,
    /// CPU of a statement, microseconds; each takes between half and one and a half of it.
    pub cpu_us: f64,
    /// Processors that statements share.
    pub cores: u32,
    /// Rows before the load.
    pub rows: u64,
    /// Bytes of a row in the clustered index.
    pub row_bytes: u32,
    /// Secondary indexes, all of random values.
    pub secondary_indexes: u32,
    /// Bytes of an entry of these.
    pub index_entry_bytes: u32,
    /// Room for tables, bytes; when it is used up clients end.
    pub space_bytes: u64,
    /// `innodb_buffer_pool_size`, bytes.
    pub buffer_pool_bytes: u64,
    /// The buffer pool holds what it has room for, by chance, before the load; else nothing.
    pub warm: bool,
    /// `innodb_flush_log_at_trx_commit`: 0, 1 or 2.
    pub flush_log_at_commit: u32,
    /// All files of the redo log, bytes; unset: 10 MiB in 5.1, 96 MiB in 5.6.
    pub log_bytes: Option<u64>,
    /// Redo log of a page that is changed for a row, bytes.
    pub log_bytes_per_change: u32,
    /// Log writes are multiples of this: 4096 through the page cache, 512 past it.
    pub log_write_bytes: u64,
    /// Binary log: absent for none, else `sync_binlog`.
    pub sync_binlog: Option<u32>,
    /// Binary log of a row, bytes.
    pub binlog_bytes_per_row: u32,
    /// `innodb_doublewrite`.
    pub doublewrite: bool,
    /// `innodb_flush_neighbors`: dirty pages of the same 64 are written together.
    pub flush_neighbours: bool,
    /// `innodb_flush_method`.
    pub flush_method: FlushMethod,
    /// Page writes that are outstanding at once with `O_DIRECT`.
    pub write_depth: u32,
    /// `innodb_io_capacity`, pages a second; unset: 100 in 5.1, 200 in 5.6.
    pub io_capacity: Option<u32>,
    /// `innodb_io_capacity_max` of 5.6, pages a second; unset: twice `io_capacity`, and 2000 at least.
    pub io_capacity_max: Option<u32>,
    /// `innodb_max_dirty_pages_pct`; unset: 90 in 5.1, 75 in 5.6.
    pub max_dirty_percent: Option<f64>,
    /// `innodb_lru_scan_depth`, pages.
    pub lru_scan_depth: u32,
    /// The filesystem flushes the drive's cache for `fsync` (mount option `barrier`).
    pub barriers: bool,
    /// Blocks of 4 KiB that an `fsync` has the filesystem's journal write, the commit block included; 0 for none.
    pub journal_blocks: u32,
    /// Where it all begins on the drive, bytes.
    pub offset_bytes: u64,
}

impl Default for InnodbSettings {
    fn default() -> Self {
        Self {
            version: InnodbVersion::V56,
            load: InnodbLoad::Write,
            clients: 10,
            statements_per_client: 0,
            statements_per_transaction: 1,
            rows_per_statement: 1,
            think_us: 0.0,
            cpu_us: 100.0,
            cores: 4,
            rows: 100,
            row_bytes: 100,
            secondary_indexes: 0,
            index_entry_bytes: 20,
            space_bytes: 4 << 30,
            buffer_pool_bytes: 128 << 20,
            warm: true,
            flush_log_at_commit: 1,
            log_bytes: None,
            log_bytes_per_change: 400,
            log_write_bytes: 4096,
            sync_binlog: None,
            binlog_bytes_per_row: 200,
            doublewrite: true,
            flush_neighbours: true,
            flush_method: FlushMethod::Fsync,
            write_depth: 256,
            io_capacity: None,
            io_capacity_max: None,
            max_dirty_percent: None,
            lru_scan_depth: 1024,
            barriers: true,
            journal_blocks: 3,
            offset_bytes: 0,
        }
    }
}

/// What is wrong with settings.
#[derive(Debug, Error, PartialEq)]
#[error("{field} = {value} {problem}")]
pub struct InnodbError {
    /// The field.
    pub field: &'static str,
    /// What was given.
    pub value: f64,
    /// What must hold.
    pub problem: &'static str,
}

impl InnodbSettings {
    fn by_version<T>(&self, setting: Option<T>, v51: T, v56: T) -> T {
        setting.unwrap_or(if self.version == InnodbVersion::V51 { v51 } else { v56 })
    }

    pub(super) fn log_bytes(&self) -> u64 {
        self.by_version(self.log_bytes, 10 << 20, 96 << 20)
    }

    pub(super) fn io_capacity(&self) -> u32 {
        self.by_version(self.io_capacity, 100, 200)
    }

    pub(super) fn io_capacity_max(&self) -> u32 {
        self.io_capacity_max.unwrap_or_else(|| self.io_capacity().saturating_mul(2).max(2000))
    }

    pub(super) fn max_dirty_percent(&self) -> f64 {
        self.by_version(self.max_dirty_percent, 90.0, 75.0)
    }

    /// Whether all can be simulated.
    ///
    /// # Errors
    /// [`InnodbError`] names the first field that is wrong, what was given and what must hold.
    pub fn check(&self) -> Result<(), InnodbError> {
        let whole = |field, value: u64, least: u64, most: u64, problem| {
            (field, value as f64, (least..=most).contains(&value), problem)
        };
        let real = |field, value: f64, least: f64, most: f64, problem| {
            (field, value, (least..=most).contains(&value), problem)
        };
        let checks = [
            whole("clients", self.clients.into(), 1, 10_000, "is not between 1 and 10000"),
            whole(
                "statements_per_transaction",
                self.statements_per_transaction.into(),
                1,
                1 << 20,
                "is not between 1 and 1048576",
            ),
            whole("rows_per_statement", self.rows_per_statement.into(), 1, 1 << 20, "is not between 1 and 1048576"),
            real("think_us", self.think_us, 0.0, 1e12, "is not between 0 and 1e12"),
            real("cpu_us", self.cpu_us, 1.0, 1e9, "is not between 1 and 1e9"),
            whole("cores", self.cores.into(), 1, 1024, "is not between 1 and 1024"),
            whole("rows", self.rows, 1, 1 << 40, "is not between 1 and 2^40"),
            whole("row_bytes", self.row_bytes.into(), 16, 8000, "is not between 16 and 8000"),
            whole("secondary_indexes", self.secondary_indexes.into(), 0, 64, "is not between 0 and 64"),
            whole("index_entry_bytes", self.index_entry_bytes.into(), 8, 3000, "is not between 8 and 3000"),
            whole("space_bytes", self.space_bytes, 1 << 20, 1 << 40, "is not between 1 MiB and 1 TiB"),
            whole("buffer_pool_bytes", self.buffer_pool_bytes, 5 << 20, 1 << 40, "is not between 5 MiB and 1 TiB"),
            whole("flush_log_at_commit", self.flush_log_at_commit.into(), 0, 2, "is not 0, 1 or 2"),
            whole("log_bytes", self.log_bytes(), 2 << 20, 1 << 39, "is not between 2 MiB and 512 GiB"),
            whole("log_bytes_per_change", self.log_bytes_per_change.into(), 1, 100_000, "is not between 1 and 100000"),
            (
                "log_write_bytes",
                self.log_write_bytes as f64,
                matches!(self.log_write_bytes, 512 | 4096),
                "is not 512 or 4096",
            ),
            whole("binlog_bytes_per_row", self.binlog_bytes_per_row.into(), 1, 1 << 20, "is not between 1 and 1048576"),
            whole("write_depth", self.write_depth.into(), 1, 1 << 20, "is not between 1 and 1048576"),
            whole("io_capacity", self.io_capacity().into(), 100, 1 << 30, "is not between 100 and 2^30"),
            (
                "io_capacity_max",
                self.io_capacity_max().into(),
                self.io_capacity_max() >= self.io_capacity(),
                "is less than io_capacity",
            ),
            real("max_dirty_percent", self.max_dirty_percent(), 1.0, 99.0, "is not between 1 and 99"),
            whole("lru_scan_depth", self.lru_scan_depth.into(), 100, 1 << 30, "is not between 100 and 2^30"),
            whole("journal_blocks", self.journal_blocks.into(), 0, 128, "is not between 0 and 128"),
            (
                "offset_bytes",
                self.offset_bytes as f64,
                self.offset_bytes.is_multiple_of(4096),
                "is not a multiple of 4096",
            ),
        ];
        match checks.into_iter().find(|(_, _, holds, _)| !holds) {
            Some((field, value, _, problem)) => Err(InnodbError { field, value, problem }),
            None => Ok(()),
        }
    }
}
