//! The flags that every verb has for how its load is offered and measured, the plan of one run that follows from them,
//! and the part of a load that one process offers, where several do together.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use crate::error::Error;
use crate::flags::{Flag, Group};
use crate::values::{Values, number};

/// Most connections of one run.
pub const CLIENTS_MAX: usize = 100_000;

/// The shortest that a warm-up until steady can be: the intervals of `steady` that its rule needs.
pub const STEADY_SHORTEST: Duration = Duration::from_secs(6);

/// Most threads for them.
const IO_THREADS_MAX: usize = 1024;

/// The flags, as a group of every verb's.
pub const GROUP: Group = Group { title: "How the load is offered and measured", flags: FLAGS };

const FLAGS: &[Flag] = &[
    Flag::value("clients", "connections, or a list, one run each: 10,50").short('c'),
    Flag::value("duration", "length of a run: 10, 500ms, 2m; 0: until --events, or until it is interrupted"),
    Flag::value("events", "events of all clients together, instead of a duration"),
    Flag::value("rate", "open loop: events offered per second, or a list, one run each; 0: closed loop"),
    Flag::value("arrivals", "open loop: arrivals poisson or fixed"),
    Flag::value("think-time", "closed loop: pause of a client between events"),
    Flag::value("think-distribution", "closed loop: pauses exponential or fixed"),
    Flag::value("warmup", "length of the same load before measuring, or steady: until its rate no longer drifts"),
    Flag::value("warmup-max", "longest warm-up of --warmup=steady (60)"),
    Flag::value("seed", "seed of all random choices"),
    Flag::value("max-errors", "refused statements after which the run ends"),
    Flag::value("ignore-errors", "error codes that do not count towards --max-errors: 1213,1205, or all"),
    Flag::value("reconnect", "how long to try to replace a lost connection; 0: a loss ends the run"),
    Flag::value("share", "this process's part of clients, rate and events if several offer one load: 2/3"),
    Flag::value(
        "start-file",
        "after the warm-up, print ready and wait until this file names the start: ns of CLOCK_MONOTONIC",
    ),
    Flag::value("io", "io_uring, epoll or auto"),
    Flag::value("io-threads", "threads that share the connections"),
    Flag::value("report-interval", "print a line this often while running; 0: never"),
    Flag::value("interval", "length of an interval of --series and --hlog (1, or --report-interval)"),
    Flag::value("json", "write the result here"),
    Flag::value("series", "write a line per interval here; JSON lines if it ends in .jsonl, else CSV"),
    Flag::value("hlog", "write an HdrHistogram log here: events, and a tag per kind of statement"),
    Flag::switch("silent", "print nothing").short('s'),
    Flag::switch("verbose", "print each step").short('v'),
    Flag::switch("help", "this text").short('?'),
    Flag::switch("version", "version").short('V'),
];

/// Times between the events of an open loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spacing {
    /// As in a Poisson process.
    Exponential,
    /// All the same.
    Fixed,
}

/// When a client starts an event.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Loop {
    /// A pause after the one before.
    Closed {
        /// Mean pause; zero for none.
        think: Duration,
        /// Its distribution.
        spacing: Spacing,
    },
    /// When it is due, or as soon after that as a client is free.
    Open {
        /// Events per second of all clients together.
        rate: f64,
        /// Times between them.
        spacing: Spacing,
    },
    /// When it came in a log, or as soon after that as its session is free.
    Logged {
        /// Times as fast as in the log; 0: without waiting.
        speed: f64,
    },
}

/// How sockets are waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Io {
    /// io_uring where the kernel allows it, else epoll.
    Auto,
    /// io_uring or an error.
    Uring,
    /// epoll.
    Epoll,
}

/// How long the same load runs before measuring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Warmup {
    /// So long; zero for not at all.
    For(Duration),
    /// Until the rate no longer drifts, at most so long.
    Steady(Duration),
}

impl Warmup {
    /// Whether there is none.
    pub fn is_zero(self) -> bool {
        self.most().is_zero()
    }

    /// How long at most.
    pub fn most(self) -> Duration {
        let (Self::For(most) | Self::Steady(most)) = self;
        most
    }
}

/// Errors that do not count towards the greatest number allowed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Ignore {
    /// None.
    #[default]
    Nothing,
    /// Those with these codes.
    Codes(BTreeSet<u16>),
    /// Every error.
    All,
}

impl Ignore {
    /// Whether `code` is ignored.
    pub fn has(&self, code: u16) -> bool {
        match self {
            Self::Nothing => false,
            Self::Codes(codes) => codes.contains(&code),
            Self::All => true,
        }
    }
}

/// How a load is offered and measured.
#[derive(Debug, Clone)]
#[allow(missing_docs)]
pub struct RunOptions {
    /// Connections: one run for each number.
    pub clients: Vec<usize>,
    /// One run for each.
    pub loops: Vec<Loop>,
    pub duration: Option<Duration>,
    /// Events of all clients together.
    pub events: Option<u64>,
    pub warmup: Warmup,
    pub seed: u64,
    pub errors_max: u64,
    pub ignore: Ignore,
    /// How long a lost connection is tried for again; zero: its loss ends the run.
    pub reconnect: Duration,
    /// The part of all of it that this process offers.
    pub share: Share,
    /// Names when measuring starts; without it, at once.
    pub start_file: Option<PathBuf>,
    pub io: Io,
    pub io_threads: usize,
    pub report_interval: Option<Duration>,
    /// A line every so many rows.
    pub report_rows: Option<u64>,
    pub interval: Duration,
    pub json: Option<PathBuf>,
    pub series: Option<PathBuf>,
    pub hlog: Option<PathBuf>,
    pub silent: bool,
    pub verbose: bool,
}

impl RunOptions {
    /// Reads them.
    ///
    /// # Errors
    /// A value that is none, or two that contradict each other.
    pub fn read(values: &Values<'_>) -> Result<Self, Error> {
        let positive = |name: &str| {
            let duration = values.text(name).map(|_| values.duration(name, Duration::ZERO)).transpose()?;
            Ok::<_, Error>(duration.filter(|duration| !duration.is_zero()))
        };
        let report_interval = positive("report-interval")?;
        let interval = positive("interval")?.or(report_interval).unwrap_or(Duration::from_secs(1));
        if interval < Duration::from_millis(1) {
            return Err(Error::Usage("--interval and --report-interval: at least 1ms".into()));
        }
        if report_interval.is_some_and(|report| report < interval) {
            return Err(Error::Usage("--report-interval: at least --interval, because it is made of intervals".into()));
        }
        Ok(Self {
            clients: values.list("clients", 1, 1, CLIENTS_MAX)?,
            loops: loops(values)?,
            duration: positive("duration")?,
            events: values.number("events", 0).map(|events| Some(events).filter(|events| *events > 0))?,
            warmup: warmup(values)?,
            seed: values.number("seed", 1)?,
            errors_max: values.number("max-errors", 0)?,
            ignore: ignore(values)?,
            reconnect: values.duration("reconnect", Duration::ZERO)?,
            share: Share::read(values)?,
            start_file: values.path("start-file"),
            io: values.choice("io", &[("auto", Io::Auto), ("io_uring", Io::Uring), ("epoll", Io::Epoll)], Io::Auto)?,
            io_threads: io_threads(values)?,
            report_interval,
            report_rows: values.number("report-rows", 0).map(|rows| Some(rows).filter(|rows| *rows > 0))?,
            interval,
            json: values.path("json"),
            series: values.path("series"),
            hlog: values.path("hlog"),
            silent: values.has("silent"),
            verbose: values.has("verbose"),
        })
    }
}

fn loops(values: &Values<'_>) -> Result<Vec<Loop>, Error> {
    const RATE_MAX: f64 = 1e8;
    let spacings = |fixed| [(fixed, Spacing::Exponential), ("fixed", Spacing::Fixed)];
    let think = values.duration("think-time", Duration::ZERO)?;
    let pause = values.choice("think-distribution", &spacings("exponential"), Spacing::Exponential)?;
    let arrivals = values.choice("arrivals", &spacings("poisson"), Spacing::Exponential)?;
    let rates = values.list("rate", 0.0, 0.0, RATE_MAX)?;
    if !think.is_zero() && rates.iter().any(|rate| *rate > 0.0) {
        return Err(Error::Usage("--rate and --think-time: in an open loop clients do not think; give one".into()));
    }
    for (flag, with) in [("arrivals", "rate"), ("think-distribution", "think-time")] {
        if values.has(flag) && !values.has(with) {
            return Err(Error::Usage(format!("--{flag} means nothing without --{with}")));
        }
    }
    let loops = rates.into_iter().map(|rate| match rate {
        0.0 => Loop::Closed { think, spacing: pause },
        rate => Loop::Open { rate, spacing: arrivals },
    });
    Ok(loops.collect())
}

fn warmup(values: &Values<'_>) -> Result<Warmup, Error> {
    const MOST: Duration = Duration::from_secs(60);
    if values.text("warmup") != Some("steady") {
        if values.has("warmup-max") {
            return Err(Error::Usage("--warmup-max means nothing without --warmup=steady".into()));
        }
        return values.duration("warmup", Duration::ZERO).map(Warmup::For);
    }
    let most = values.duration("warmup-max", MOST)?;
    if most < STEADY_SHORTEST {
        let least = STEADY_SHORTEST.as_secs();
        return Err(Error::Usage(format!("--warmup-max: at least {least} s, because fewer seconds show no drift")));
    }
    Ok(Warmup::Steady(most))
}

fn ignore(values: &Values<'_>) -> Result<Ignore, Error> {
    let name = "ignore-errors";
    match values.text(name) {
        None | Some("" | "none") => Ok(Ignore::Nothing),
        Some("all") => Ok(Ignore::All),
        Some(text) => {
            let codes = text.split(',').map(|code| Ok(number::<u16>(name, Some(code))?.unwrap_or(0)));
            Ok(Ignore::Codes(codes.collect::<Result<_, Error>>()?))
        }
    }
}

fn io_threads(values: &Values<'_>) -> Result<usize, Error> {
    match values.number("io-threads", 1)? {
        threads @ 1..=IO_THREADS_MAX => Ok(threads),
        threads => Err(Error::Usage(format!("--io-threads={threads}: 1 to {IO_THREADS_MAX}"))),
    }
}

/// What sets this run apart from the others of an invocation.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The verb.
    pub verb: &'static str,
    /// From 0 over all.
    pub number: usize,
    /// From 1 for the same engine and number of clients.
    pub iteration: u32,
    /// How many runs there were on the same data before.
    pub step: u64,
    /// Connections of this process.
    pub clients: usize,
    /// The part of the load that is this process's.
    pub share: Share,
    /// Number of its first connection among those of all processes.
    pub first_client: usize,
    /// Connections of all processes.
    pub clients_of_all: usize,
    /// When the events of all processes start.
    pub pace: Loop,
    /// Storage engine as asked for.
    pub engine_choice: Option<String>,
    /// Storage engine as the server reports it.
    pub engine: Option<String>,
    /// No event starts after this time.
    pub duration: Option<Duration>,
    /// Events of all clients of this process together.
    pub events: Option<u64>,
    /// Queries that the workload means to send; `None` where only the bounds above hold.
    pub queries_planned: Option<u64>,
    /// Queries that an even split among the clients left out.
    pub queries_dropped: u64,
}

/// One of several equal parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    /// Which, from 0.
    pub index: usize,
    /// How many there are.
    pub of: usize,
}

impl Share {
    /// All of it.
    pub const ALL: Self = Self { index: 0, of: 1 };

    /// From the flag `--share`: `2/3`.
    ///
    /// # Errors
    /// It is no such part.
    pub fn read(values: &Values<'_>) -> Result<Self, Error> {
        let Some(text) = values.text("share") else { return Ok(Self::ALL) };
        let parts = text.split_once('/').and_then(|(index, of)| Some((index.parse().ok()?, of.parse().ok()?)));
        match parts {
            Some((index, of)) if (1..=of).contains(&index) && of <= 1000 => Ok(Self { index: index - 1, of }),
            _ => Err(Error::Usage(format!("--share={text}: a part and how many there are, such as 2/3"))),
        }
    }

    /// Of `all` that are dealt out evenly, the number of the first here, and how many; the first parts have one more.
    pub fn part(self, all: usize) -> (usize, usize) {
        let (length, more) = (all / self.of, all % self.of);
        (self.index * length + self.index.min(more), length + usize::from(self.index < more))
    }

    /// As people write it.
    pub fn text(self) -> String {
        format!("{}/{}", self.index + 1, self.of)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(flags: &[(&'static str, &'static str)]) -> Result<RunOptions, String> {
        RunOptions::read(&Values::of(flags)).map_err(|error| error.to_string())
    }

    #[test]
    fn a_warm_up_has_a_length_or_a_bound() {
        let warmup = |flags: &[(&'static str, &'static str)]| read(flags).map(|options| options.warmup);
        assert_eq!(warmup(&[]), Ok(Warmup::For(Duration::ZERO)));
        assert_eq!(warmup(&[("warmup", "500ms")]), Ok(Warmup::For(Duration::from_millis(500))));
        assert_eq!(warmup(&[("warmup", "steady")]), Ok(Warmup::Steady(Duration::from_secs(60))));
        let bound = [("warmup", "steady"), ("warmup-max", "2m")];
        assert_eq!(warmup(&bound), Ok(Warmup::Steady(Duration::from_secs(120))));
        assert!(warmup(&[("warmup", "steady"), ("warmup-max", "5s")]).unwrap_err().contains("at least 6 s"));
        assert!(warmup(&[("warmup", "1s"), ("warmup-max", "9s")]).unwrap_err().contains("without --warmup=steady"));
        assert!(warmup(&[("warmup", "steadily")]).unwrap_err().contains("--warmup=steadily"));
    }

    #[test]
    fn a_list_of_rates_is_a_list_of_loops() {
        let options = read(&[("rate", "0,100"), ("arrivals", "fixed")]).unwrap();
        let closed = Loop::Closed { think: Duration::ZERO, spacing: Spacing::Exponential };
        assert_eq!(options.loops, [closed, Loop::Open { rate: 100.0, spacing: Spacing::Fixed }]);
        assert!(read(&[("rate", "-1")]).unwrap_err().contains("--rate"));
        assert!(read(&[("rate", "5"), ("think-time", "1")]).unwrap_err().contains("give one"));
        assert!(read(&[("arrivals", "fixed")]).unwrap_err().contains("without --rate"));
        assert!(read(&[("think-distribution", "fixed")]).unwrap_err().contains("without --think-time"));
    }

    #[test]
    fn lines_are_made_of_intervals() {
        let interval = |flags: &[_]| read(flags).map(|options| options.interval.as_millis());
        assert_eq!(interval(&[]), Ok(1000));
        assert_eq!(interval(&[("report-interval", "0.2")]), Ok(200));
        assert_eq!(interval(&[("report-interval", "10"), ("interval", "100ms")]), Ok(100));
        assert!(
            interval(&[("report-interval", "0.2"), ("interval", "1")]).unwrap_err().contains("at least --interval")
        );
    }

    #[test]
    fn ignored_errors_are_codes_or_all() {
        assert!(read(&[("ignore-errors", "1213,1205")]).unwrap().ignore.has(1205));
        assert!(!read(&[("ignore-errors", "1213")]).unwrap().ignore.has(1205));
        assert!(read(&[("ignore-errors", "all")]).unwrap().ignore.has(7));
        assert!(read(&[("ignore-errors", "deadlock")]).is_err());
    }

    #[test]
    fn a_share_is_read() {
        let read = |text| Share::read(&Values::of(&[("share", text)])).map_err(|error| error.to_string());
        assert_eq!(read("2/3"), Ok(Share { index: 1, of: 3 }));
        assert_eq!(Share::read(&Values::of(&[])).unwrap(), Share::ALL);
        for wrong in ["0/3", "4/3", "1", "a/b", "1/0", "/"] {
            assert!(read(wrong).unwrap_err().contains("--share"), "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn parts_are_the_whole(all in 0_usize..10_000, of in 1_usize..100) {
            let mut next = 0;
            for index in 0..of {
                let (first, count) = Share { index, of }.part(all);
                prop_assert_eq!(first, next);
                prop_assert!(count == all / of || count == all / of + 1);
                next += count;
            }
            prop_assert_eq!(next, all);
        }
    }
}
