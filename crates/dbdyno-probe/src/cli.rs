//! The command line.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};
use dbdyno_common::size;

/// The kernel has none with a higher number (`CPU_SETSIZE`).
const CPUS_MAX: usize = 1024;
const STEERING: &str = "\
Commands on standard input with --control, one per line:
  stop               the trace ends
  summary START END  figures of that window, ns of CLOCK_MONOTONIC, and the series
  figures START END  the figures alone
  recorded           what the file of --record has come to
The program ends when standard input does.";

/// What a block device is asked to do: time in the queue and in the device, distances, sorted runs. And what keeps the
/// host's processors awake meanwhile.
///
/// Exit status: 0 done, 1 the host refused, 2 a mistake on the command line or in a trace.
#[derive(Debug, Parser)]
#[command(version, args_override_self = true)] // the last of a flag counts, as in sysbench
pub struct CommandLine {
    #[command(subcommand)]
    pub verb: Verb,
}

#[derive(Debug, Subcommand)]
pub enum Verb {
    /// From the kernel's block trace, until Ctrl-C; needs root and tracefs
    #[command(after_help = STEERING)]
    Block(BlockArgs),
    /// From a trace that `dbdyno disk trace` wrote
    Disk(DiskArgs),
    /// Keep processors from halting until standard input ends, or the process that started it does
    Awake(AwakeArgs),
    /// What wake-ups, timers, the clock, memory and a disk take here, a line of JSON each
    Host(HostArgs),
}

#[derive(Debug, Args)]
pub struct HostArgs {
    /// Time for each measurement
    #[arg(long = "each", value_name = "SECONDS", value_parser = seconds, default_value = "1")]
    pub duration: Duration,
    /// A block device such as /dev/loop0, which is only read
    #[arg(long, value_name = "DEVICE")]
    pub device: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct AwakeArgs {
    /// How they are kept awake
    #[arg(long, value_enum, value_name = "MEANS")]
    pub by: Means,
    /// Processors, such as 0-3,8; pollers only [default: all that this process may use]
    #[arg(long, value_name = "LIST", value_parser = cpu_list)]
    pub cpus: Option<CpuList>,
    /// A control group with cpu.idle = 1, which the pollers join first
    #[arg(long, value_name = "DIR")]
    pub cgroup: Option<PathBuf>,
    /// The process that starts it; if that has ended already, nothing is begun
    #[arg(long, value_name = "PID")]
    pub parent: Option<i32>,
}

/// What keeps processors from halting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Means {
    /// The kernel's idle loop polls: `/dev/cpu_dma_latency` held at 0; needs root and an idle state POLL
    Kernel,
    /// A thread of the class `SCHED_IDLE` on each processor
    Pollers,
}

impl Means {
    pub fn word(self) -> &'static str {
        match self {
            Self::Kernel => "kernel",
            Self::Pollers => "pollers",
        }
    }
}

/// Numbers of processors, ascending.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CpuList(pub Vec<usize>);

#[derive(Debug, Args)]
pub struct Outputs {
    /// Figures of the whole trace; - is standard output
    #[arg(long, value_name = "FILE", default_value = "-")]
    pub json: PathBuf,
    /// A line for each tenth of a second, as CSV
    #[arg(long, value_name = "FILE")]
    pub series: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct BlockArgs {
    /// The block device, such as /dev/loop0
    pub device: PathBuf,
    #[command(flatten)]
    pub outputs: Outputs,
    /// Length of the trace [default: until it is stopped]
    #[arg(long = "for", value_name = "SECONDS", value_parser = seconds)]
    pub lasting: Option<Duration>,
    /// A line for each request, as CSV; times are ns of `CLOCK_MONOTONIC`
    #[arg(long, value_name = "FILE")]
    pub requests: Option<PathBuf>,
    /// A line for each event, in blkparse's format, into a new file
    #[arg(long, value_name = "FILE")]
    pub record: Option<PathBuf>,
    /// How large that file may grow; K, M, G (powers of 1024) allowed
    #[arg(long = "record-most", value_name = "BYTES", value_parser = bytes, default_value = "1G")]
    pub record_bytes: u64,
    /// The kernel's buffer for each processor; K, M, G (powers of 1024) allowed [default: 8M, but at most
    /// 64M for all and at least 1M for each]
    #[arg(long = "buffer", value_name = "BYTES", value_parser = bytes)]
    pub buffer_bytes: Option<u64>,
    /// Name of the trace instance in tracefs [default: dbdyno-PID]
    #[arg(long, value_name = "NAME", value_parser = instance)]
    pub instance: Option<String>,
    /// The folder where tracefs is mounted [default: /sys/kernel/tracing, /sys/kernel/debug/tracing]
    #[arg(long, value_name = "DIR")]
    pub tracefs: Option<PathBuf>,
    /// Take commands on standard input, and answer each with a line of JSON
    #[arg(long)]
    pub control: bool,
}

#[derive(Debug, Args)]
pub struct DiskArgs {
    /// The trace, as CSV or in the compact format
    pub file: PathBuf,
    #[command(flatten)]
    pub outputs: Outputs,
    /// Figures of that window only, ns
    #[arg(long = "window", value_name = "START,END", value_parser = window)]
    pub window_ns: Option<(u64, u64)>,
}

fn seconds(text: &str) -> Result<Duration, String> {
    let number = text.strip_suffix('s').unwrap_or(text).parse().ok();
    let duration = number.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    duration.ok_or_else(|| "not a number of seconds, such as 10 or 0.5s".into())
}

fn bytes(text: &str) -> Result<u64, String> {
    size::bytes(text).ok_or_else(|| "not a number of bytes, such as 8M".into())
}

/// `0-3,8`, as the kernel and taskset write sets of processors.
fn cpu_list(text: &str) -> Result<CpuList, String> {
    let mut processors = BTreeSet::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let ends = first.parse::<usize>().ok().zip(last.parse::<usize>().ok());
        let Some((first, last)) = ends.filter(|&(first, last)| first <= last && last < CPUS_MAX) else {
            return Err("not a list of processors, such as 0-3,8".into());
        };
        processors.extend(first..=last);
    }
    Ok(CpuList(processors.into_iter().collect()))
}

/// A name in tracefs that can be nothing but an instance.
fn instance(text: &str) -> Result<String, String> {
    let good = |letter: char| letter.is_ascii_alphanumeric() || letter == '-' || letter == '_';
    let is_name = !text.is_empty() && text.chars().all(good);
    is_name.then(|| text.to_owned()).ok_or_else(|| "letters, digits, - and _ only".into())
}

/// `START,END` in nanoseconds.
pub fn window(text: &str) -> Result<(u64, u64), String> {
    let parts = text.split_once([',', ' ']).and_then(|(start, end)| {
        Some((start.trim().parse::<u64>().ok()?, end.trim().parse::<u64>().ok()?)).filter(|(start, end)| start < end)
    });
    parts.ok_or_else(|| format!("the window {text:?} is not START,END in nanoseconds"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Verb, String> {
        let words = ["dbdyno-probe"].into_iter().chain(line.split_whitespace());
        CommandLine::try_parse_from(words).map(|parsed| parsed.verb).map_err(|error| error.to_string())
    }

    #[test]
    fn a_full_line_is_understood() {
        let line = "block /dev/loop0 --for 1.5s --buffer 2M --json x --series y --requests z --instance a-1 --control";
        let Ok(Verb::Block(args)) = parsed(line) else { panic!("not understood") };
        assert_eq!((args.lasting, args.buffer_bytes), (Some(Duration::from_millis(1500)), Some(2 << 20)));
        assert_eq!((args.device, args.instance.as_deref()), ("/dev/loop0".into(), Some("a-1")));
        let Ok(Verb::Disk(args)) = parsed("disk t.csv --window 5,9") else { panic!("not understood") };
        assert_eq!((args.file, args.window_ns), ("t.csv".into(), Some((5, 9))));
        let Ok(Verb::Awake(args)) = parsed("awake --by pollers --cpus 8,0-2 --parent 7 --cgroup /g") else {
            panic!("not understood")
        };
        assert_eq!((args.by.word(), args.parent, args.cgroup), ("pollers", Some(7), Some("/g".into())));
        assert_eq!(args.cpus, Some(CpuList(vec![0, 1, 2, 8])));
    }

    #[test]
    fn mistakes_name_what_was_given() {
        for (line, expected) in [
            ("", "block"),
            ("blokc", "'blokc'"),
            ("block", "<DEVICE>"),
            ("block a b", "'b'"),
            ("block a --for -1", "-1"),
            ("block a --for inf", "'inf' for '--for <SECONDS>': not a number of seconds"),
            ("block a --buffer 1X", "'1X' for '--buffer <BYTES>'"),
            ("block a --instance ../x", "'../x' for '--instance <NAME>'"),
            ("disk", "<FILE>"),
            ("awake", "--by"),
            ("awake --by magic", "'magic'"),
            ("awake --by kernel --cpus 3-1", "'3-1' for '--cpus <LIST>': not a list of processors"),
            ("awake --by kernel --cpus 0-4096", "not a list of processors"),
            ("disk a --window 9,5", "the window \"9,5\""),
        ] {
            let message = parsed(line).unwrap_err();
            assert!(message.contains(expected), "{line}: {message}");
        }
    }
}
