//! DDL beside the transactions, on a connection of its own (`--ddl=on`): tables made, filled, altered, renamed and dropped,
//! partitions filled and truncated. What each statement does follows from its number ([`steps`]), so that what must be there
//! after a cut follows from how many were acknowledged ([`judge`]).

pub mod judge;
mod runner;
pub mod steps;

pub use runner::{Runner, Running};

#[cfg(test)]
mod judge_tests;
