//! Where bios come from.

mod contract;
mod job;

pub use self::contract::{Source, Step};
pub use self::job::{Job, JobError, Jobs, Pattern};
