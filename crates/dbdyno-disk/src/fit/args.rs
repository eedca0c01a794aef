//! The command line of `fit`.

use std::path::PathBuf;

use clap::{Args, value_parser};
use dbdyno_common::size;

/// What `fit` was asked.
#[derive(Debug, Args)]
pub struct FitArgs {
    /// A block device, which is only read
    #[arg(long, value_name = "DEVICE", required_unless_present = "model")]
    pub on: Option<PathBuf>,
    /// A drive model instead, in virtual time
    #[arg(long, value_name = "NAME", conflicts_with = "on")]
    pub model: Option<String>,
    /// Size of the model's disk; else that of its drive
    #[arg(long = "size", value_name = "BYTES", value_parser = bytes, conflicts_with = "on")]
    pub size_bytes: Option<u64>,
    /// Write to the device, too: its content is lost
    #[arg(long)]
    pub write: bool,
    /// About how long to measure; what is cut short then is named
    #[arg(long, default_value_t = 120, value_parser = value_parser!(u64).range(5..=86_400))]
    pub seconds: u64,
    /// Seed of the random places
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
}

fn bytes(given: &str) -> Result<u64, String> {
    size::bytes(given).filter(|bytes| *bytes > 0).ok_or_else(|| "not a number of bytes, such as 4GiB".into())
}
