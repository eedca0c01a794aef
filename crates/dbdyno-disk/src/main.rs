//! An emulated disk: one file, served through FUSE, that takes as long as a given drive would.
//!
//! A request travels: kernel -> [`filesystem`] -> [`faults`] (what is done to it on purpose) -> [`content`] (its data) ->
//! [`engine`] (its time, from the model) -> kernel, and into the [`trace`]. [`control`] is how others steer the disk while
//! it runs, [`steer`] what they can have it do.
//!
//! Cannot: a loop device waits for a FLUSH before it passes on anything behind it, so a drive that queues FLUSH with
//! other commands (`NVMe`) shows no such overlap here. The path through FUSE and the loop device adds its own time to
//! every request; measure it with the model `ideal`.

mod cli;
mod content;
mod control;
mod engine;
mod error;
mod faults;
mod filesystem;
mod measure;
mod pending;
mod process;
mod serve;
mod stats;
mod steer;
mod times;
mod trace;

use std::io::Write;
use std::process::ExitCode;

use cli::Action;
use error::DiskError;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // If standard error is gone there is nobody to tell.
            let _ = writeln!(std::io::stderr(), "dbdyno-disk: {error}");
            ExitCode::from(error.exit_code())
        }
    }
}

fn run() -> Result<(), DiskError> {
    match cli::parse(lexopt::Parser::from_env())? {
        Action::Help => print(cli::HELP),
        Action::Version => print(concat!("dbdyno-disk ", env!("CARGO_PKG_VERSION"), "\n")),
        Action::Models { json } => print(&models(json)),
        Action::Measure(args) => measure::measure(&args),
        Action::Serve(args) => serve::serve(&args),
    }
}

fn print(text: &str) -> Result<(), DiskError> {
    std::io::stdout().write_all(text.as_bytes()).map_err(|source| DiskError::Announce { source })
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
