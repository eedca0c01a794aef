//! What can be measured, and the steps it is measured in.

use serde_json::Value;

use crate::error::DiskError;
use crate::times::Times;

/// What one request of a step is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// A write to a log and then fdatasync: what a durable commit waits for.
    Fsync,
    /// A read at a random place.
    RandomRead,
    /// A write at a random place.
    RandomWrite,
}

impl Operation {
    /// As fio calls it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Fsync => "fsync",
            Self::RandomRead => "randread",
            Self::RandomWrite => "randwrite",
        }
    }

    /// `InnoDB` writes its log in small pieces and its data in pages of 16 KiB.
    pub fn bytes(self) -> u64 {
        match self {
            Self::Fsync => 4096,
            Self::RandomRead | Self::RandomWrite => 16384,
        }
    }
}

/// One operation with this many requests outstanding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    pub operation: Operation,
    pub depth: u64,
}

/// What was done of one step in one round.
pub struct Done {
    pub operations: u64,
    pub elapsed_ns: u64,
    pub times: Times,
}

/// The first, sequential writing of the region that the steps then use.
pub struct Fill {
    pub bytes: u64,
    pub elapsed_ns: u64,
}

/// Something that can be measured.
pub trait Target {
    /// What it is called in the result.
    fn name(&self) -> String;
    /// Writes the region once; `None` if nothing is written to this target.
    fn fill(&mut self) -> Result<Option<Fill>, DiskError>;
    /// Whether this operation says something of the drive, and may be done.
    fn can(&self, operation: Operation) -> bool;
    /// Does a step for the time that was asked for.
    fn run(&mut self, step: Step, seed: u64) -> Result<Done, DiskError>;
    /// Facts of it that belong beside the figures.
    fn facts(&self) -> Value;
}
