//! The command line.

use std::path::PathBuf;
use std::time::Duration;

use dbdyno_common::size;
use lexopt::prelude::{Long, Short, Value, ValueExt};

use crate::error::ProbeError;

pub const HELP: &str = "\
What a block device is asked to do: time in the queue and in the device, distances, sorted runs.

Usage:
  dbdyno-probe block DEV [options]     from the kernel's block trace, until Ctrl-C; needs root and tracefs
  dbdyno-probe disk FILE [options]     from a trace that `dbdyno disk trace` wrote

Options of both:
  --json FILE       figures of the whole trace; - is standard output [default: -]
  --series FILE     a line for each tenth of a second, as CSV
Options of block:
  --for SECONDS     how long
  --requests FILE   a line for each request, as CSV; times are ns of CLOCK_MONOTONIC
  --buffer BYTES    the kernel's buffer for each processor; K, M, G (powers of 1024) allowed [default: 8M,
                    but 64M for all of them, and no less than 1M]
  --instance NAME   name of the trace instance in tracefs [default: dbdyno-PID]
  --tracefs DIR     where tracefs is mounted [default: /sys/kernel/tracing, /sys/kernel/debug/tracing]
  --control         be steered by lines on standard input, and answer each by a line of JSON:
                      stop               the trace ends
                      summary START END  figures of that window, ns of CLOCK_MONOTONIC, and the series
                      figures START END  the figures alone
                    It ends when standard input does.
Options of disk:
  --window START,END  figures of that window only

Exit status: 0 done, 1 the host refused, 2 a mistake on the command line or in a trace.
";

/// What the command line asks for.
#[derive(Debug)]
pub enum Action {
    Help,
    Version,
    Block(BlockArgs),
    Disk(DiskArgs),
}

/// `dbdyno-probe block`.
#[derive(Debug, Default)]
pub struct BlockArgs {
    pub device: PathBuf,
    pub json: Option<PathBuf>,
    pub series: Option<PathBuf>,
    pub requests: Option<PathBuf>,
    pub lasting: Option<Duration>,
    pub buffer_bytes: Option<u64>,
    pub instance: Option<String>,
    pub tracefs: Option<PathBuf>,
    pub control: bool,
}

/// `dbdyno-probe disk`.
#[derive(Debug, Default)]
pub struct DiskArgs {
    pub file: PathBuf,
    pub json: Option<PathBuf>,
    pub series: Option<PathBuf>,
    pub window_ns: Option<(u64, u64)>,
}

/// Reads the command line.
pub fn parse(mut parser: lexopt::Parser) -> Result<Action, ProbeError> {
    match parser.next()? {
        Some(Value(verb)) if verb == "block" => block(parser),
        Some(Value(verb)) if verb == "disk" => disk(parser),
        Some(Value(verb)) => Err(wrong(format!("there is no verb {}; there are block and disk", verb.display()))),
        Some(Long("help") | Short('h')) => Ok(Action::Help),
        Some(Long("version") | Short('V')) => Ok(Action::Version),
        Some(other) => Err(other.unexpected().into()),
        None => Err(wrong("a verb is missing: block or disk".into())),
    }
}

fn block(mut parser: lexopt::Parser) -> Result<Action, ProbeError> {
    let (mut args, mut device) = (BlockArgs::default(), None);
    while let Some(argument) = parser.next()? {
        match argument {
            Value(given) if device.is_none() => device = Some(given.into()),
            Long("json") => args.json = Some(path(&mut parser)?),
            Long("series") => args.series = Some(path(&mut parser)?),
            Long("requests") => args.requests = Some(path(&mut parser)?),
            Long("for") => args.lasting = Some(seconds(&text(&mut parser)?)?),
            Long("buffer") => args.buffer_bytes = Some(bytes(&text(&mut parser)?)?),
            Long("instance") => args.instance = Some(instance(text(&mut parser)?)?),
            Long("tracefs") => args.tracefs = Some(path(&mut parser)?),
            Long("control") => args.control = true,
            Long("help") | Short('h') => return Ok(Action::Help),
            other => return Err(other.unexpected().into()),
        }
    }
    args.device = device.ok_or_else(|| wrong("block needs a device, such as /dev/loop0".into()))?;
    Ok(Action::Block(args))
}

fn disk(mut parser: lexopt::Parser) -> Result<Action, ProbeError> {
    let (mut args, mut file) = (DiskArgs::default(), None);
    while let Some(argument) = parser.next()? {
        match argument {
            Value(given) if file.is_none() => file = Some(given.into()),
            Long("json") => args.json = Some(path(&mut parser)?),
            Long("series") => args.series = Some(path(&mut parser)?),
            Long("window") => args.window_ns = Some(window(&text(&mut parser)?)?),
            Long("help") | Short('h') => return Ok(Action::Help),
            other => return Err(other.unexpected().into()),
        }
    }
    args.file = file.ok_or_else(|| wrong("disk needs the file that `dbdyno disk trace` wrote".into()))?;
    Ok(Action::Disk(args))
}

fn wrong(text: String) -> ProbeError {
    ProbeError::Usage(text)
}

fn text(parser: &mut lexopt::Parser) -> Result<String, ProbeError> {
    parser.value().and_then(ValueExt::string).map_err(ProbeError::from)
}

fn path(parser: &mut lexopt::Parser) -> Result<PathBuf, ProbeError> {
    Ok(PathBuf::from(parser.value()?))
}

fn seconds(given: &str) -> Result<Duration, ProbeError> {
    let number = given.strip_suffix('s').unwrap_or(given).parse().ok();
    let found = number.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    found.ok_or_else(|| wrong(format!("--for {given:?} is not a number of seconds, such as 10 or 0.5s")))
}

fn bytes(given: &str) -> Result<u64, ProbeError> {
    size::bytes(given).ok_or_else(|| wrong(format!("--buffer {given:?} is not a number of bytes, such as 8M")))
}

/// A name in tracefs that can be nothing but an instance.
fn instance(given: String) -> Result<String, ProbeError> {
    let good = |letter: char| letter.is_ascii_alphanumeric() || letter == '-' || letter == '_';
    if given.is_empty() || !given.chars().all(good) {
        return Err(wrong(format!("--instance {given:?} may have letters, digits, - and _ only")));
    }
    Ok(given)
}

/// `START,END` in nanoseconds.
pub fn window(given: &str) -> Result<(u64, u64), ProbeError> {
    let parts = given.split_once([',', ' ']).and_then(|(start, end)| {
        Some((start.trim().parse::<u64>().ok()?, end.trim().parse::<u64>().ok()?)).filter(|(start, end)| start < end)
    });
    parts.ok_or_else(|| wrong(format!("the window {given:?} is not START,END in nanoseconds")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Action, String> {
        parse(lexopt::Parser::from_args(line.split_whitespace())).map_err(|error| error.to_string())
    }

    #[test]
    fn a_full_line_is_understood() {
        let line = "block /dev/loop0 --for 1.5s --buffer 2M --json x --series y --requests z --instance a-1 --control";
        let Ok(Action::Block(args)) = parsed(line) else { panic!("not understood") };
        assert_eq!((args.lasting, args.buffer_bytes), (Some(Duration::from_millis(1500)), Some(2 << 20)));
        assert_eq!((args.device, args.instance.as_deref()), ("/dev/loop0".into(), Some("a-1")));
        let Ok(Action::Disk(args)) = parsed("disk t.csv --window 5,9") else { panic!("not understood") };
        assert_eq!((args.file, args.window_ns), ("t.csv".into(), Some((5, 9))));
    }

    #[test]
    fn mistakes_name_what_was_given() {
        for (line, expected) in [
            ("", "a verb is missing"),
            ("blokc", "no verb blokc"),
            ("block", "block needs a device"),
            ("block a b", "\"b\""),
            ("block a --for -1", "--for \"-1\""),
            ("block a --for inf", "--for \"inf\""),
            ("block a --buffer 1X", "--buffer \"1X\""),
            ("block a --instance ../x", "--instance \"../x\""),
            ("disk", "disk needs the file"),
            ("disk a --window 9,5", "the window \"9,5\""),
        ] {
            let message = parsed(line).unwrap_err();
            assert!(message.contains(expected), "{line}: {message}");
        }
    }
}
