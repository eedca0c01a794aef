//! The command line of `fit`.

use std::path::PathBuf;

use clap::{Args, value_parser};
use dbdyno_common::size;

/// What `fit` was asked.
#[derive(Debug, Args)]
pub struct FitArgs {
    /// A block device, which is only read
    #[arg(long, value_name = "DEVICE", required_unless_present_any = ["model", "trace"])]
    pub on: Option<PathBuf>,
    /// A drive model instead, in virtual time
    #[arg(long, value_name = "NAME", conflicts_with = "on")]
    pub model: Option<String>,
    /// A trace that says how long requests took, instead; several files are those of blktrace, one a processor
    #[arg(long, value_name = "FILE", num_args = 1.., conflicts_with_all = ["on", "model", "write"])]
    pub trace: Vec<PathBuf>,
    /// Format of the trace; by how it begins, if not given
    #[arg(long, value_name = "FORMAT", requires = "trace")]
    pub format: Option<String>,
    /// Size of the model's disk, or of the trace's; else that of its drive, or the end of the trace's farthest request
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
