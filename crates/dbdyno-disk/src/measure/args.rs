//! The command line of `measure`.

use std::path::PathBuf;

use clap::{Args, value_parser};
use dbdyno_common::size;

/// What `measure` was asked.
#[derive(Debug, Args)]
pub struct MeasureArgs {
    /// A folder, in which a file without a name is made; or a block device, which is only read
    #[arg(long = "on", value_name = "DIR|DEVICE", required_unless_present = "models")]
    pub paths: Vec<PathBuf>,
    /// A drive model, in virtual time
    #[arg(long = "model", value_name = "NAME")]
    pub models: Vec<String>,
    /// How often each step is done, in random order
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
