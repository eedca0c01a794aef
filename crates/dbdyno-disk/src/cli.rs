//! The command line.

use std::path::PathBuf;

use dbdyno_common::size;
use dbdyno_device::DriveState;
use lexopt::prelude::{Long, Short, Value, ValueExt};

use crate::engine::Mode;
use crate::error::DiskError;
use crate::measure::{self, MeasureArgs};
use crate::serve::ServeArgs;

pub const HELP: &str = "\
An emulated disk: a file served through FUSE that takes as long as a given drive would.

Usage:
  dbdyno-disk serve --model NAME|FILE.toml --size BYTES --mount DIR --control SOCKET [options]
  dbdyno-disk models [--json]
  dbdyno-disk measure --on DIR|DEVICE | --model NAME [more of them] [options]

serve mounts a filesystem with the one file DIR/disk.img and stays in the foreground. When the
file is there it prints one line of JSON. Make a block device of it with
  losetup --find --show --direct-io=on -b 4096 DIR/disk.img

measure does what a database does (a write of 4 KiB and fdatasync; reads and writes of 16 KiB at random
places, past the page cache), 1, 8 and 32 at a time, and prints JSON: a line a round, the figures last. In
a folder it makes a file without a name, which is gone afterwards; a device is only read; a model answers
in virtual time. Several take turns.

Options of measure:
  --rounds N              how often each step is done, in random order [default: 8]
  --step-ms N             how long each step takes [default: 400]
  --region BYTES          how much of the folder's disk is used [default: 1G]
  --fill-ms N             how long writing it may take; what is written by then is used [default: 6000]
  --seed N                seed of places and order [default: 1]

Options of serve:
  --model NAME|FILE.toml  a drive that `dbdyno-disk models` lists, or a drive file of your own
  --size BYTES            size of the disk, a multiple of 4096; K, M, G, T (powers of 1024) allowed
  --mount DIR             an existing directory on which nothing is mounted
  --control SOCKET        where to listen for commands: one JSON object a line
  --seed N                seed of the model's chances [default: 1]
  --mode instant|model    answer at once, or when the drive would [default: model]
  --state fresh|steady    a solid-state drive as new, or after a long time of writes [default: fresh]
  --content memory|FILE   where the content lies; a new sparse file, or one of that size [default: memory]
  --max-content BYTES     memory and file the content may take, snapshots included [default: twice the size]

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
Exit status: 0 ended as asked, 1 the host refused, 2 a mistake on the command line.
";

/// What the command line asks for.
#[derive(Debug)]
pub enum Action {
    Help,
    Version,
    Models { json: bool },
    Measure(MeasureArgs),
    Serve(ServeArgs),
}

/// Reads the command line.
pub fn parse(mut parser: lexopt::Parser) -> Result<Action, DiskError> {
    let usage = |error: lexopt::Error| DiskError::Usage(error.to_string());
    match parser.next().map_err(usage)? {
        Some(Value(verb)) if verb == "serve" => parse_serve(parser),
        Some(Value(verb)) if verb == "models" => parse_models(parser),
        Some(Value(verb)) if verb == "measure" => Ok(measure::parse(parser)?.map_or(Action::Help, Action::Measure)),
        Some(Value(verb)) => {
            Err(DiskError::Usage(format!("there is no verb {}; there are serve, models and measure", verb.display())))
        }
        Some(Long("help") | Short('h')) => Ok(Action::Help),
        Some(Long("version") | Short('V')) => Ok(Action::Version),
        Some(other) => Err(usage(other.unexpected())),
        None => Err(DiskError::Usage("a verb is missing: serve, models or measure".into())),
    }
}

fn parse_models(mut parser: lexopt::Parser) -> Result<Action, DiskError> {
    let usage = |error: lexopt::Error| DiskError::Usage(error.to_string());
    let mut json = false;
    while let Some(argument) = parser.next().map_err(usage)? {
        match argument {
            Long("json") => json = true,
            Long("help") | Short('h') => return Ok(Action::Help),
            other => return Err(usage(other.unexpected())),
        }
    }
    Ok(Action::Models { json })
}

fn parse_serve(mut parser: lexopt::Parser) -> Result<Action, DiskError> {
    let usage = |error: lexopt::Error| DiskError::Usage(error.to_string());
    let (mut model, mut size_bytes, mut mount, mut control) = (None, None, None, None);
    let (mut seed, mut mode, mut max_content_bytes) = (1, Mode::Model, None);
    let (mut state, mut content) = (DriveState::Fresh, None);
    while let Some(argument) = parser.next().map_err(usage)? {
        match argument {
            Long("model") => model = Some(text(&mut parser)?),
            Long("size") => size_bytes = Some(bytes("--size", &text(&mut parser)?)?),
            Long("mount") => mount = Some(PathBuf::from(parser.value().map_err(usage)?)),
            Long("control") => control = Some(PathBuf::from(parser.value().map_err(usage)?)),
            Long("seed") => seed = parser.value().and_then(|value| value.parse()).map_err(usage)?,
            Long("max-content") => max_content_bytes = Some(bytes("--max-content", &text(&mut parser)?)?),
            Long("content") => {
                content =
                    Some(PathBuf::from(parser.value().map_err(usage)?)).filter(|file| file.as_os_str() != "memory");
            }
            Long("state") => {
                state = match text(&mut parser)?.as_str() {
                    "fresh" => DriveState::Fresh,
                    "steady" => DriveState::Steady,
                    other => return Err(DiskError::Usage(format!("--state is fresh or steady, not {other:?}"))),
                }
            }
            Long("mode") => {
                mode = match text(&mut parser)?.as_str() {
                    "instant" => Mode::Instant,
                    "model" => Mode::Model,
                    other => return Err(DiskError::Usage(format!("--mode is instant or model, not {other:?}"))),
                }
            }
            Long("help") | Short('h') => return Ok(Action::Help),
            other => return Err(usage(other.unexpected())),
        }
    }
    let missing = |option: &str| DiskError::Usage(format!("serve needs {option}"));
    let size_bytes = size_bytes.ok_or_else(|| missing("--size BYTES"))?;
    if size_bytes == 0 || size_bytes % 4096 != 0 || size_bytes > i64::MAX as u64 {
        return Err(DiskError::Usage(format!("--size {size_bytes} is not a positive multiple of 4096 below 2^63")));
    }
    Ok(Action::Serve(ServeArgs {
        model: model.ok_or_else(|| missing("--model NAME|FILE.toml"))?,
        size_bytes,
        mount: mount.ok_or_else(|| missing("--mount DIR"))?,
        control: control.ok_or_else(|| missing("--control SOCKET"))?,
        seed,
        state,
        mode,
        content,
        // A snapshot and a live image that differ everywhere: nothing a disk does with one snapshot can exceed it.
        max_content_bytes: max_content_bytes.unwrap_or(size_bytes.saturating_mul(2)),
    }))
}

fn text(parser: &mut lexopt::Parser) -> Result<String, DiskError> {
    parser.value().and_then(ValueExt::string).map_err(|error| DiskError::Usage(error.to_string()))
}

fn bytes(option: &str, given: &str) -> Result<u64, DiskError> {
    size::bytes(given).ok_or_else(|| {
        DiskError::Usage(format!("{option} {given:?} is not a number of bytes, such as 4294967296 or 4GiB"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Action, String> {
        parse(lexopt::Parser::from_args(line.split_whitespace())).map_err(|error| error.to_string())
    }

    #[test]
    fn a_full_line_is_understood() {
        let line = "serve --model ssd-sata --size 2GiB --mount /m --control /s --seed 7 --mode instant";
        let Ok(Action::Serve(args)) = parsed(line) else { panic!("not understood") };
        assert_eq!((args.size_bytes, args.seed, args.mode), (2 << 30, 7, Mode::Instant));
        assert_eq!(args.max_content_bytes, 4 << 30);
    }

    #[test]
    fn mistakes_name_what_was_given() {
        for (line, expected) in [
            ("", "a verb is missing"),
            ("sreve", "no verb sreve"),
            ("serve --size 5000 --model x", "--size 5000 is not a positive multiple of 4096"),
            ("serve --size 1X", "--size \"1X\" is not a number of bytes"),
            ("serve --size 99999999999T", "is not a number of bytes"),
            ("serve --mode fast", "not \"fast\""),
            ("serve --size 1M --mount /m --control /s", "serve needs --model"),
            ("serve --seed x", "\"x\""),
            ("models --xml", "--xml"),
            ("measure", "measure needs --on DIR"),
            ("measure --on /tmp --rounds 0", "--rounds \"0\" is not a number from 1 to 1000"),
            ("measure --on /tmp --region 1M", "--region \"1M\" is not a number of bytes of at least 32M"),
        ] {
            let message = parsed(line).unwrap_err();
            assert!(message.contains(expected), "{line}: {message}");
        }
    }
}
