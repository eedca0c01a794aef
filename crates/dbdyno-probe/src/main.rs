//! What a block device is asked to do, request by request, from the kernel's block trace or an emulated disk's own.
//!
//! An event travels: kernel -> [`tracefs`] (pages of a ring buffer, events) -> [`requests`] (which events are one
//! request) -> [`figures`] (sums and histograms per slice of time) -> [`output`]. A trace of an emulated disk joins at
//! [`figures`] ([`disk_trace`]): there is one definition of every figure.
//!
//! Apart from that, [`awake`] keeps processors from halting while others measure, and [`host`] measures what a host
//! takes.
//!
//! Cannot: see a request between the driver and the medium; say whose request it is; follow a request through stacked
//! devices (dm, md); read the ring buffer of a big-endian kernel.

use std::io::Write;
use std::process::ExitCode;

use clap::Parser as _;
use cli::{CommandLine, Verb};
use error::ProbeError;

mod awake;
mod cli;
mod disk_trace;
mod error;
mod figures;
mod host;
mod output;
mod requests;
mod tracefs;
mod watch;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Without standard error there is no other place to write to.
            let _ = writeln!(std::io::stderr(), "dbdyno-probe: {error}");
            ExitCode::from(error.exit_code())
        }
    }
}

fn run() -> Result<(), ProbeError> {
    match CommandLine::parse().verb {
        Verb::Block(args) => watch::block(&args),
        Verb::Disk(args) => disk_trace::summarise(&args),
        Verb::Host(args) => host::measure(&args),
        Verb::Awake(args) => awake::keep(&args),
    }
}
