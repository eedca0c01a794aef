//! Traces of block I/O that others wrote: read as a stream, oddities counted and named, nothing guessed at.

mod blkparse;
mod blktrace;
mod columns;
mod contents;
mod disk;
mod disksim;
mod fio;
mod format;
mod headings;
mod reader;
mod record;
mod units;

pub use self::contents::{Contents, Kind, Process};
pub use self::format::Format;
pub use self::headings::Lacking;
pub use self::reader::{ReadOptions, Trace, TraceError};
pub use self::record::{Begin, Damaged, Findings, Record};
pub use self::units::Doubt;
