//! Where bios come from.

mod cache;
mod contract;
mod ingest;
mod innodb;
mod job;
mod replay;
mod walk;

pub use self::cache::{Act, Application, CacheConfig, CacheError, Cached, Data, Files, Filesystem, Page, Writeback};
pub use self::contract::{Source, Step};
pub use self::ingest::{Ingest, IngestConfig};
pub use self::innodb::{FlushMethod, Innodb, InnodbCounts, InnodbError, InnodbLoad, InnodbSettings, InnodbVersion};
pub use self::job::{BufferedJobs, Job, JobError, Jobs, Rates};
pub use self::replay::{Pace, Replay};
pub use self::walk::{Pattern, Sizes, Spread};
