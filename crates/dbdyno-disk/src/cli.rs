//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use dbdyno_common::size;
use dbdyno_device::DriveState;
use serde::Deserialize;
use serde::de::IntoDeserializer;
use serde::de::value::Error as UnknownWord;

use crate::engine::Mode;
use crate::fit::FitArgs;
use crate::measure::MeasureArgs;

const COMMANDS: &str = "\
Commands on the socket, each answered by {\"ok\":true,...} or {\"ok\":false,\"error\":\"...\"}:
  {\"op\":\"ping\"}
  {\"op\":\"mode\",\"mode\":\"instant\"}      or \"model\", which starts idle with empty caches
  {\"op\":\"model\",\"name\":\"ssd-sata\",\"seed\":1}   another drive, while the disk is idle
  {\"op\":\"snapshot\",\"name\":\"prepared\"}   keep the content; shares memory
  {\"op\":\"restore\",\"name\":\"prepared\"}    the content as it was; unmount and detach first
  {\"op\":\"forget\",\"name\":\"prepared\"}     drop a snapshot
  {\"op\":\"clear\"}                        all zeros
  {\"op\":\"stats\",\"reset\":true}         counts and times in ns, since the last reset
  {\"op\":\"gauges\"}                       the drive's inside as it is now
  {\"op\":\"trace\",\"file\":\"/t.csv\"}   every request into a file; \"format\":\"binary\" is compact
  {\"op\":\"trace-stop\"}                   records and drops
  {\"op\":\"power-cut\",\"seed\":1}         and \"sector_bytes\": 512 or 4096; then \"power-on\"
  {\"op\":\"fault\",\"spec\":{...}}         \"kind\": latency, eio or stuck; see docs/disk.md
  {\"op\":\"fault-gone\"}                   the drive is pulled out
  {\"op\":\"fault-clear\"}                  ends all faults
  {\"op\":\"stop\"}                         refused while in use, unless \"force\":true

It ends on `stop`, SIGTERM, SIGINT or SIGHUP: unmounts, removes the socket, exits 0.
Exit status: 0 ended as asked, 1 the host refused, 2 a mistake on the command line.";

/// An emulated disk: a file served through FUSE that takes as long as a given drive would.
#[derive(Debug, Parser)]
#[command(version, args_override_self = true)] // the last of a flag counts, as in sysbench
pub struct CommandLine {
    #[command(subcommand)]
    pub verb: Verb,
}

#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Mount a filesystem with the one file DIR/disk.img and stay in the foreground
    ///
    /// When the file is there it prints one line of JSON. Make a block device of it with
    /// `losetup --find --show --direct-io=on -b 4096 DIR/disk.img`.
    #[command(after_help = COMMANDS)]
    Serve(ServeArgs),
    /// Do what a database does, and print JSON: a line a round, the figures last
    ///
    /// A write of 4 KiB and fdatasync; reads and writes of 16 KiB at random places, past the page cache; 1, 8 and 32 at
    /// a time. In a folder it makes a file without a name, which is gone afterwards; a device is only read; a model
    /// answers in virtual time. Several take turns.
    Measure(MeasureArgs),
    /// Find a drive's parameters by timing requests, and print JSON: a line for each stage, then the figures and a
    /// drive file
    ///
    /// A device is only read, unless --write; a model answers in virtual time.
    Fit(FitArgs),
    /// List the drives that come with dbdyno
    Models {
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, Args)]
pub struct ServeArgs {
    /// A drive that `dbdyno-disk models` lists, or a drive file of your own
    #[arg(long, value_name = "NAME|FILE.toml")]
    pub model: String,
    /// Size of the disk, a multiple of 4096; K, M, G, T (powers of 1024) allowed
    #[arg(long = "size", value_name = "BYTES", value_parser = disk_size)]
    pub size_bytes: u64,
    /// An existing directory on which nothing is mounted
    #[arg(long, value_name = "DIR")]
    pub mount: PathBuf,
    /// The socket for commands: one JSON object per line
    #[arg(long, value_name = "SOCKET")]
    pub control: PathBuf,
    /// Seed of the model's chances
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// A solid-state drive as new (fresh), or after a long time of writes (steady)
    #[arg(long, default_value = "fresh", value_parser = word::<DriveState>)]
    pub state: DriveState,
    /// Answer at once (instant), or when the drive would (model)
    #[arg(long, default_value = "model", value_parser = word::<Mode>)]
    pub mode: Mode,
    /// Keep the content in memory, or in a sparse file, which is made or has that size already
    #[arg(long, value_name = "memory|FILE", default_value = "memory")]
    pub content: PathBuf,
    /// Most memory and file space for the content, snapshots included [default: twice the size]
    #[arg(long = "max-content", value_name = "BYTES", value_parser = bytes)]
    pub max_content_bytes: Option<u64>,
}

/// A word that the control socket takes, too.
fn word<T: for<'de> Deserialize<'de>>(text: &str) -> Result<T, UnknownWord> {
    T::deserialize(text.into_deserializer())
}

fn bytes(text: &str) -> Result<u64, String> {
    size::bytes(text).ok_or_else(|| "not a number of bytes, such as 4294967296 or 4GiB".into())
}

fn disk_size(text: &str) -> Result<u64, String> {
    bytes(text).and_then(|size| match size {
        1..=0x7fff_ffff_ffff_ffff if size % 4096 == 0 => Ok(size),
        _ => Err("not a positive multiple of 4096 below 2^63".into()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Verb, String> {
        let words = ["dbdyno-disk"].into_iter().chain(line.split_whitespace());
        CommandLine::try_parse_from(words).map(|parsed| parsed.verb).map_err(|error| error.to_string())
    }

    #[test]
    fn a_full_line_is_understood() {
        let line = "serve --model ssd-sata --size 2GiB --mount /m --control /s --seed 7 --mode instant --state=steady";
        let Ok(Verb::Serve(args)) = parsed(line) else { panic!("not understood") };
        assert_eq!((args.size_bytes, args.seed, args.mode), (2 << 30, 7, Mode::Instant));
        assert_eq!((args.state, args.max_content_bytes), (DriveState::Steady, None));
    }

    #[test]
    fn mistakes_name_what_was_given() {
        for (line, expected) in [
            ("", "serve"),
            ("sreve", "'sreve'"),
            ("serve --size 5000 --model x", "'5000' for '--size <BYTES>': not a positive multiple of 4096"),
            ("serve --size 1X", "'1X' for '--size <BYTES>': not a number of bytes"),
            ("serve --size 99999999999T", "not a number of bytes"),
            ("serve --mode fast", "`fast`, expected `instant` or `model`"),
            ("serve --size 1M --mount /m --control /s", "--model <NAME|FILE.toml>"),
            ("serve --seed x", "'x'"),
            ("models --xml", "--xml"),
        ] {
            let message = parsed(line).unwrap_err();
            assert!(message.contains(expected), "{line}: {message}");
        }
    }
}
