//! The command line of `measure`, what can be measured, and the steps in which it is measured.

use std::path::PathBuf;

use clap::{Args, value_parser};
use dbdyno_common::size;
use serde_json::Value;

use crate::error::DiskError;
use crate::stats::Times;

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
pub struct StepResult {
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
    fn run(&mut self, step: Step, seed: u64) -> Result<StepResult, DiskError>;
    /// Facts of it that belong beside the figures.
    fn facts(&self) -> Value;
}

/// What `measure` was asked.
#[derive(Debug, Args)]
pub struct MeasureArgs {
    /// A folder, in which an unnamed file is made, or a block device, which is only read
    #[arg(long = "on", value_name = "DIR|DEVICE", required_unless_present = "models")]
    pub paths: Vec<PathBuf>,
    /// A drive model, in virtual time
    #[arg(long = "model", value_name = "NAME")]
    pub models: Vec<String>,
    /// How often each step is run, in random order
    #[arg(long, default_value_t = 8, value_parser = value_parser!(u64).range(1..=1000))]
    pub rounds: u64,
    /// Seed of places and order
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// How much of a folder's disk or of a model is used
    #[arg(long = "region", value_name = "BYTES", default_value = "1G", value_parser = region)]
    pub region_bytes: u64,
    /// How long each step takes
    #[arg(long, default_value_t = 400, value_parser = value_parser!(u64).range(1..=60_000))]
    pub step_ms: u64,
    /// How long writing the region may take; what is written by then is used
    #[arg(long, default_value_t = 6000, value_parser = value_parser!(u64).range(1..=600_000))]
    pub fill_ms: u64,
}

/// The 32 connections of the deepest step write a log of 1 MiB each.
pub const REGION_BYTES_MIN: u64 = 32 << 20;

fn region(given: &str) -> Result<u64, String> {
    let bytes = size::bytes(given).filter(|bytes| *bytes >= REGION_BYTES_MIN);
    bytes.ok_or_else(|| "not a number of bytes of at least 32M".into())
}
