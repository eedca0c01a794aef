//! The page cache of a kernel in virtual time: dirty pages, who writes them back and when, commits, and writers that
//! wait.
//!
//! [`Cached`] runs an [`Application`] on it. Files lie on the drive in pieces, in block groups with a journal in the
//! first.
//!
//! To 2.6.31 a writer looks at the limits every so many pages: over them it writes one and a half times as much itself
//! and waits for requests. pdflush writes 1024 pages of a file at a turn and never waits: it stops while the queue is
//! congested. Every 5 s it looks for files that are dirty for 30 s. From 2.6.32 a flusher of the device does both and
//! waits for requests; from 3.2 writers sleep at the drive's pace.
//!
//! ext3's ordered commits submit every page that was written to since the last, in the order of the first write to
//! each. A page that a commit wrote stays dirty for writeback, which finds nothing to write. A process that writes to a
//! page that the commit has yet to submit writes it itself, and waits.
//!
//! # Cannot
//! A full drive ([`Cached::end_bytes`] says how far the files reach), memory pressure (pages that are written because
//! memory is scarce), `mmap`, truncation, directories, the write of inodes and bitmaps to their places behind the
//! journal, a full journal, asynchronous read-ahead, delayed allocation, the feedback by which writers are paced from
//! 3.2 on (each gets its share of the drive's estimated rate at once), control groups, memory of several nodes. ext4's
//! commits write new pages only: in truth, from the time that their place is chosen.

mod cached;
mod config;
mod flusher;
mod machine;
mod process;

pub use self::cached::Cached;
pub(super) use self::config::unless;
pub use self::config::{CacheConfig, CacheError, Data, Filesystem, Page, Writeback};
pub use self::process::{Act, Application, Files};
