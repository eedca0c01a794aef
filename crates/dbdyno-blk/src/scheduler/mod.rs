//! I/O schedulers: one contract, one file each.

mod catalogue;
mod contract;
mod deadline;
mod error;
mod mq_deadline;
mod none;
mod noop;
mod tunables;

pub use self::catalogue::{SchedulerName, scheduler};
pub use self::contract::{May, Scheduler};
pub use self::error::SchedulerError;
pub use self::tunables::{Tunable, Unit};

#[cfg(test)]
mod contract_tests;
