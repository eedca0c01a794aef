//! Where bios come from.

mod contract;
mod innodb;
mod job;
mod replay;

pub use self::contract::{Source, Step};
pub use self::innodb::{FlushMethod, Innodb, InnodbCounts, InnodbError, InnodbLoad, InnodbSettings, InnodbVersion};
pub use self::job::{Job, JobError, Jobs, Pattern};
pub use self::replay::{Pace, Replay};
