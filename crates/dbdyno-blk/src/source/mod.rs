//! Where bios come from.

mod contract;
mod job;
mod replay;

pub use self::contract::{Source, Step};
pub use self::job::{Job, JobError, Jobs, Pattern};
pub use self::replay::{Pace, Replay};
