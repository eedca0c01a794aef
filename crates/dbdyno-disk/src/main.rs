//! An emulated disk: one file, served through FUSE, that takes as long as a given drive would.
//!
//! A request travels: kernel -> [`filesystem`] -> [`faults`] (what is done to it on purpose) -> [`content`] (its data)
//! -> [`engine`] (its time, from the model) -> kernel, and into the [`trace`]. [`control`] is how others steer the disk
//! while it runs, [`steer`] what they can have it do.
//!
//! Cannot: a loop device waits for a FLUSH before it passes on anything behind it, so a drive that queues FLUSH with
//! other commands (`NVMe`) shows no such overlap here. The path through FUSE and the loop device adds its own time to
//! every request; measure it with the model `ideal`.

use std::io::Write;
use std::process::ExitCode;

use clap::Parser as _;
use cli::{CommandLine, Verb};
use error::DiskError;

mod cli;
mod content;
mod control;
mod engine;
mod error;
mod faults;
mod fit;
mod measure;
mod path;
mod pending;
mod process;
mod serve;
mod starts;
mod stats;
mod steer;
mod trace;
mod virtual_drive;
mod wake_margin;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Without standard error there is no other place to write to.
            let _ = writeln!(std::io::stderr(), "dbdyno-disk: {error}");
            ExitCode::from(error.exit_code())
        }
    }
}

fn run() -> Result<(), DiskError> {
    match CommandLine::parse().verb {
        Verb::Serve(args) => serve::serve(&args),
        Verb::Measure(args) => measure::measure(&args),
        Verb::Fit(args) => fit::fit(&args),
        Verb::Models { json } => {
            let listed = std::io::stdout().write_all(models(json).as_bytes());
            listed.map_err(|source| DiskError::Announce { source })
        }
    }
}

fn models(json: bool) -> String {
    let drives = dbdyno_device::catalogue();
    if json {
        let list: Vec<_> = drives
            .iter()
            .map(|drive| {
                serde_json::json!({
                    "name": drive.name, "kind": drive.kind, "title": drive.title, "rotational": drive.rotational,
                })
            })
            .collect();
        return format!("{}\n", serde_json::Value::Array(list));
    }
    drives.iter().fold(String::new(), |text, drive| text + &format!("{:10} {}\n", drive.name, drive.title))
}
