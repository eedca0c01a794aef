//! I/O schedulers: one contract, one file each.

mod anticipation;
mod anticipatory;
mod bfq;
mod bfq_queue;
mod catalogue;
mod cfq_rounds;
mod cfq_slices;
mod cfq_trees;
mod cfq_tunables;
mod contract;
mod deadline;
mod drive_depth;
mod error;
mod habits;
mod kyber;
mod mq_deadline;
mod none;
mod noop;
mod process_queue;
mod rotation;
mod served;
mod service_tree;
mod tunables;

pub use self::catalogue::{SchedulerName, scheduler};
pub(crate) use self::cfq_rounds::NR_REQUESTS as CFQ_ROUNDS_NR_REQUESTS;
pub use self::contract::{May, Scheduler};
pub use self::error::SchedulerError;
pub use self::tunables::{Tunable, Unit};

#[cfg(test)]
mod contract_tests;
