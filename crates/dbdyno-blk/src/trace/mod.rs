//! Traces of block I/O that others wrote: read as a stream, oddities counted and named, nothing guessed at.

mod blkparse;
mod blktrace;
mod block_event;
mod columns;
mod contents;
mod disk;
mod disksim;
mod findings;
mod fio;
mod format;
mod headings;
mod lines;
mod number;
mod reader;
mod record;
mod units;

pub use self::block_event::Begin;
pub use self::contents::{Contents, Kind, Process};
pub use self::findings::{Damaged, Findings};
pub use self::format::Format;
pub use self::headings::Lacking;
pub use self::reader::{Ask, Trace, TraceError};
pub use self::record::Record;
pub use self::units::Doubt;
