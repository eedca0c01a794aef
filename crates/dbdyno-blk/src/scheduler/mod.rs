//! I/O schedulers: one contract, one file each.

mod anticipatory;
mod bfq;
mod catalogue;
mod cfq_rounds;
mod cfq_slices;
mod cfq_trees;
mod contract;
mod deadline;
mod kyber;
mod mq_deadline;
mod none;
mod noop;
mod process;

pub use self::catalogue::{SchedulerName, scheduler};
pub(crate) use self::cfq_rounds::NR_REQUESTS as CFQ_ROUNDS_NR_REQUESTS;
pub use self::contract::{May, Scheduler, SchedulerError, Tunable, Unit};
