//! A server with `InnoDB`: clients that send statements, a redo log with group commit, a buffer pool, page flushing.
//!
//! A statement takes CPU, then reads the pages that are not in the buffer pool, changes them, and at the end of its
//! transaction waits for the log. One of those who wait writes and flushes it for all who waited when it began. A page
//! is written after its log, first to the doublewrite buffer. Pages that are being written can't be changed meanwhile.
//! Writes through the page cache are taken as written when `fsync` is called, by file offset.
//!
//! ```
//! use dbdyno_blk::kernel::{Kernel, Settings};
//! use dbdyno_blk::source::{Innodb, InnodbSettings};
//!
//! let settings = InnodbSettings { clients: 4, statements_per_client: 100, ..InnodbSettings::default() };
//! let mut server = Innodb::new(settings, 1)?;
//! let drive = dbdyno_device::model("ssd-sata", 8 << 30, 1)?;
//! assert!(server.end_bytes() <= 8 << 30);
//! let mut layer = Kernel::named("3.10")?.layer(&Settings::default(), drive)?;
//! dbdyno_blk::run(&mut layer, &mut server, 0, 3_600_000_000_000);
//! assert_eq!((server.counts().commits, server.counts().ended_ns.is_some()), (400, true));
//! assert!(server.counts().log_flushes < 400);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Cannot
//! The change buffer: pages of secondary indexes are read for every insert that misses. Locks of rows, undo and purge,
//! inner pages of indexes, read-ahead, table scans, the wait for room in the log buffer, flushing while the server is
//! idle. A binary log with `sync_binlog = 0` is never written out; one transaction group counts as one for
//! `sync_binlog`. The filesystem's journal is a ring at the start, without checkpoints of its own.

mod flushing;
mod layout;
mod pool;
mod server;
mod settings;

pub use self::server::{Innodb, InnodbCounts};
pub use self::settings::{FlushMethod, InnodbError, InnodbLoad, InnodbSettings, InnodbVersion};
