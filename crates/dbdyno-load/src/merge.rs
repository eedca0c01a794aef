//! `dbdyno-load merge`: one load of what several hosts measured at the same time.
//!
//! Every host's intervals begin at the common start and are equally long, so the same number of interval is the same
//! time everywhere. What is counted lies in intervals that are whole on all hosts, from the latest start to the
//! earliest end; the rest is warm-up. Histograms are added up count by count, so that a percentile is that of all
//! events together.
//!
//! The hosts are not trusted: what they wrote is read in bounded room, and what is not whole is an error that names the
//! host.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs;
use std::io::Write as _;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Duration;

use dbdyno_common::bounded;
use dbdyno_common::histogram::{Exact, Summary, decode};
use dbdyno_common::results::{ClientHost, ClientNetwork, ErrorCount, LoadClock, LoadFile, LoadRun, ThreadTime};
use hdrhistogram::Histogram;
use hdrhistogram::serialization::V2DeflateSerializer;
use lexopt::{Arg, Parser, ValueExt as _};
use serde::Deserialize;

use crate::error::Error;
use crate::measure::Latencies;
use crate::output::print;
use crate::output::result::write_json;
use crate::output::sinks::{COUNTS, HistogramLog, Names, Row, Series, create, tag};
use crate::statements::Kind;
use crate::values::duration;

/// By which a host may start later than agreed, and its first interval still counts.
const TOLERATED_NS: u64 = 500_000;
/// Stands for the lines of a log without a tag, which are of events.
const EVENTS: &str = "";
/// The files of a host, as `--json`, `--series` and `--hlog` have written them.
const FILES: [&str; 3] = ["load.json", "load.csv", "latency.hlog"];
/// Longest file of a host.
const FILE_BYTES_MAX: u64 = 1 << 30;
const INTERVAL: Duration = Duration::from_millis(100);
/// Most kinds of statements of a host.
const KINDS_MAX: usize = 1000;

const HELP: &str = "usage: dbdyno-load merge FOLDER... --into=FOLDER [flags]
Merges the loads that several hosts offered from a common start (--start-file). Each folder is named after its host.
A folder holds load.json, load.csv and latency.hlog, as --json, --series and --hlog wrote them; so does the new one.

  --into=FOLDER     the folder of the three merged files; it is made
  --interval=TIME   length of an interval, as the hosts had it [default: 100ms]
  --start=NS        the common start on this machine's CLOCK_MONOTONIC [default: the first host's]
  --clocks=FILE     JSON of the hosts' clock offsets before and after the load; adds each host's figures
  --help            this text
";

/// The flags of the command line.
#[derive(Debug, Default)]
struct Flags {
    folders: Vec<PathBuf>,
    into: PathBuf,
    interval_ns: u64,
    start_ns: Option<u64>,
    clocks: Option<PathBuf>,
}

/// Merges the folders and returns the exit code.
///
/// # Errors
/// A flag is unknown, or a host's files are not whole.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> Result<u8, Error> {
    let Some(flags) = read_flags(arguments)? else {
        print(HELP);
        return Ok(0);
    };
    let parts =
        flags.folders.iter().map(|folder| Part::read(folder, flags.interval_ns)).collect::<Result<Vec<_>, _>>()?;
    let start_ns = flags.start_ns.unwrap_or(parts[0].start_ns);
    let mut merged = Merged::new(&parts, start_ns, flags.interval_ns)?;
    if let Some(path) = &flags.clocks {
        let text = bounded::read_text(path, FILE_BYTES_MAX).map_err(|error| Error::File(path.clone(), error))?;
        let clocks: BothClocks =
            serde_json::from_str(&text).map_err(|error| Error::Failed(format!("{}: {error}", path.display())))?;
        merged.run.client_hosts = Some(client_hosts(&parts, &merged.window, &clocks, start_ns, flags.interval_ns)?);
    }
    merged.write(&parts, &flags.into)?;
    Ok(0)
}

/// The flags; `None` if help is asked for.
fn read_flags(arguments: impl IntoIterator<Item = OsString>) -> Result<Option<Flags>, Error> {
    let wrong = |error: lexopt::Error| Error::Usage(format!("merge: {error}"));
    let mut flags = Flags { interval_ns: INTERVAL.as_nanos() as u64, ..Flags::default() };
    let mut parser = Parser::from_args(arguments);
    while let Some(argument) = parser.next().map_err(wrong)? {
        match argument {
            Arg::Value(folder) => flags.folders.push(folder.into()),
            Arg::Long("into") => flags.into = parser.value().map_err(wrong)?.into(),
            Arg::Long("clocks") => flags.clocks = Some(parser.value().map_err(wrong)?.into()),
            Arg::Long("start") => flags.start_ns = Some(parser.value().and_then(|value| value.parse()).map_err(wrong)?),
            Arg::Long("interval") => {
                let text = parser.value().map_err(wrong)?.string().map_err(wrong)?;
                flags.interval_ns = (duration("interval", &text)?.as_nanos() as u64).max(1);
            }
            Arg::Long("help") | Arg::Short('h' | '?') => return Ok(None),
            other => return Err(wrong(other.unexpected())),
        }
    }
    if flags.folders.is_empty() || flags.into.as_os_str().is_empty() {
        return Err(Error::Usage(format!("merge needs a folder for each host, and --into\n{HELP}")));
    }
    Ok(Some(flags))
}

/// What one host came to, its times on its own clock.
#[derive(Debug)]
struct Part {
    name: String,
    run: LoadRun,
    /// The common start.
    start_ns: u64,
    /// What each interval counted, the last of them cut off by the end.
    rows: Vec<[u64; COUNTS.len()]>,
    /// How many of these are whole.
    whole: usize,
    /// By tag and number of interval.
    log: BTreeMap<String, BTreeMap<usize, String>>,
}

impl Part {
    fn read(folder: &Path, interval_ns: u64) -> Result<Self, Error> {
        let name = folder.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
        let text = |file: &str| {
            let path = folder.join(file);
            bounded::read_text(&path, FILE_BYTES_MAX).map_err(|error| Error::File(path, error))
        };
        let [json, series, log] = FILES;
        let (json, series, log) = (text(json)?, text(series)?, text(log)?);
        Self::parse(&name, &json, &series, &log, interval_ns)
            .map_err(|why| Error::Failed(format!("{name}: the output of its load generator is not complete: {why}")))
    }

    fn parse(name: &str, json: &str, series: &str, log: &str, interval_ns: u64) -> Result<Self, String> {
        let file: LoadFile = serde_json::from_str(json).map_err(|error| format!("load.json: {error}"))?;
        let run = file.runs.into_iter().next().ok_or("load.json: it has no run")?;
        let start_ns = run.clock.start_asked_ns.ok_or("load.json: its run had no common start")?;
        let (ends, rows) = parse_series(series).map_err(|why| format!("load.csv: {why}"))?;
        let due = (1..).map(|number| start_ns.saturating_add(interval_ns.saturating_mul(number)));
        let whole = ends.iter().zip(due).take_while(|(end, due)| *end == due).count();
        if run.operations.len() > KINDS_MAX {
            return Err(format!("load.json: it has more than {KINDS_MAX} kinds of statements"));
        }
        let log = parse_log(log, start_ns, interval_ns).map_err(|why| format!("latency.hlog: {why}"))?;
        Ok(Self { name: name.to_owned(), run, start_ns, rows, whole, log })
    }

    /// How long after the common start all of its clients had started.
    fn late_ns(&self) -> u64 {
        self.run.clock.measure_start_ns.saturating_sub(self.start_ns)
    }

    fn counted(&self, window: &Range<usize>) -> &[[u64; COUNTS.len()]] {
        &self.rows[window.clone()]
    }
}

/// A table of numbers, a column each by its name, and the rows' ends and counts of it.
fn parse_series(series: &str) -> Result<(Vec<u64>, Vec<[u64; COUNTS.len()]>), String> {
    let mut lines = series.lines();
    let names: Vec<_> = lines.next().unwrap_or_default().split(',').collect();
    let place = |name: &str| names.iter().position(|known| *known == name).ok_or(format!("it has no column {name}"));
    let end = place("t_ns")?;
    let counts = COUNTS.map(place);
    let (mut ends, mut rows) = (Vec::new(), Vec::new());
    for (number, line) in lines.enumerate() {
        let cells: Vec<_> = line.split(',').collect();
        let cell = |place: usize| {
            let text = cells.get(place).copied().unwrap_or_default();
            text.parse::<u64>()
                .map_err(|_| format!("line {}: {:?} is not a count", number + 2, crate::text::shown(text)))
        };
        ends.push(cell(end)?);
        let mut row = [0; COUNTS.len()];
        for (value, place) in row.iter_mut().zip(&counts) {
            *value = cell(place.clone()?)?;
        }
        rows.push(row);
    }
    Ok((ends, rows))
}

/// A log's histograms by tag and number of interval; its times are in seconds after its own beginning.
fn parse_log(log: &str, start_ns: u64, interval_ns: u64) -> Result<BTreeMap<String, BTreeMap<usize, String>>, String> {
    let mut begun_ns = 0_u64;
    let mut histograms = BTreeMap::<String, BTreeMap<usize, String>>::new();
    for (at, line) in log.lines().enumerate() {
        let why = || format!("line {} does not belong to a log of histograms", at + 1);
        if let Some(rest) = line.strip_prefix("#[StartMonotonic: ") {
            begun_ns = rest.split(' ').next().and_then(|word| word.parse().ok()).ok_or_else(why)?;
        } else if !line.is_empty() && !line.starts_with(['#', '"']) {
            let (tag, rest) = match line.strip_prefix("Tag=") {
                Some(rest) => rest.split_once(',').ok_or_else(why)?,
                None => (EVENTS, line),
            };
            let mut cells = rest.splitn(4, ',');
            let seconds: f64 = cells.next().and_then(|word| word.parse().ok()).ok_or_else(why)?;
            let payload = cells.nth(2).ok_or_else(why)?;
            // Milliseconds are kept, of intervals of 100.
            let since_start_ns = begun_ns as f64 + seconds * 1e9 - start_ns as f64;
            let number = (since_start_ns / interval_ns as f64).round();
            if number >= 0.0 && number.is_finite() {
                histograms.entry(tag.to_owned()).or_default().insert(number as usize, payload.to_owned());
            }
        }
    }
    Ok(histograms)
}

/// The intervals that are whole on all hosts.
fn common_window(parts: &[Part], interval_ns: u64) -> Result<Range<usize>, Error> {
    let latest = parts.iter().map(|part| part.late_ns().saturating_sub(TOLERATED_NS)).max().unwrap_or(0);
    let first = latest.div_ceil(interval_ns) as usize;
    let end = parts.iter().map(|part| part.whole).min().unwrap_or(0);
    if end <= first {
        let ends: Vec<_> = parts.iter().map(|part| format!("{} {}", part.name, part.whole)).collect();
        let whole = format!("complete ones: {}", ends.join(", "));
        return Err(Error::Failed(format!("no interval is complete on all client hosts ({whole}); measure longer")));
    }
    Ok(first..end)
}

/// How often each latency was met on these hosts, in the window.
fn sum_histograms<'a>(
    parts: impl IntoIterator<Item = &'a Part>,
    window: &Range<usize>,
    tag: &str,
) -> Result<Histogram<u64>, Error> {
    let mut sum = Latencies::default().histogram;
    for part in parts {
        for (number, payload) in part.log.get(tag).into_iter().flat_map(|log| log.range(window.clone())) {
            let not_whole =
                |why: String| Error::Failed(format!("{}: interval {number} has no valid histogram: {why}", part.name));
            let histogram = decode(payload).map_err(|error| not_whole(error.to_string()))?;
            sum.add(&histogram).map_err(|error| not_whole(error.to_string()))?;
        }
    }
    Ok(sum)
}

/// The largest latency that any of the hosts met, exactly; of events, or of one kind of statement.
fn largest<'a>(parts: impl IntoIterator<Item = &'a Part>, of: impl Fn(&LoadRun) -> Option<&Summary>) -> Exact {
    let max = parts.into_iter().filter_map(|part| of(&part.run)?.max).max();
    Exact { max, ..Exact::default() }
}

/// One load of all hosts, on this machine's clock.
struct Merged {
    window: Range<usize>,
    interval_ns: u64,
    run: LoadRun,
    rows: Vec<Row>,
    kinds: Vec<String>,
}

impl Merged {
    fn new(parts: &[Part], start_ns: u64, interval_ns: u64) -> Result<Self, Error> {
        let window = common_window(parts, interval_ns)?;
        let at = |number: usize| start_ns.saturating_add(interval_ns.saturating_mul(number as u64));
        let (first_ns, last_ns) = (at(window.start), at(window.end));
        let kinds: Vec<String> = parts
            .iter()
            .flat_map(|part| part.run.operations.keys())
            .collect::<BTreeSet<_>>()
            .into_iter()
            .cloned()
            .collect();
        let everything = largest(parts, |run| Some(&run.latency_ns));
        let mut rows = Vec::new();
        for number in window.clone() {
            let events = sum_histograms(parts, &(number..number + 1), EVENTS)?;
            let mut row = Row {
                t_ns: at(number + 1),
                latency_ns: Summary::from_histogram(&events, everything),
                ..Row::default()
            };
            for counts in parts.iter().map(|part| part.rows[number]) {
                for (sum, count) in row.counts.iter_mut().zip(counts) {
                    *sum = sum.saturating_add(count);
                }
            }
            rows.push(row);
        }
        let mut run = merge_runs(parts, first_ns, last_ns, &rows);
        run.latency_ns = Summary::from_histogram(&sum_histograms(parts, &window, EVENTS)?, everything);
        for name in &kinds {
            let exact = largest(parts, |run| run.operations.get(name));
            run.operations
                .insert(name.clone(), Summary::from_histogram(&sum_histograms(parts, &window, &tag(name))?, exact));
        }
        Ok(Self { window, interval_ns, run, rows, kinds })
    }

    /// Histograms are added up an interval at a time: those of a long load take gigabytes together.
    fn write(self, parts: &[Part], into: &Path) -> Result<(), Error> {
        let [json, series, log] = FILES.map(|file| into.join(file));
        fs::create_dir_all(into).map_err(|error| Error::File(into.to_owned(), error))?;
        let names = Names { kinds: self.kinds.iter().map(|name| Kind::query(name)).collect(), phases: &[] };
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |error| Error::File(path.clone(), error)
        };
        let mut lines = Series::new(create(&series)?, false, names.clone()).map_err(failed(&series))?;
        for row in &self.rows {
            lines.write_row(row).map_err(failed(&series))?;
        }
        let (mut file, mut serializer) = (create(&log)?, V2DeflateSerializer::new());
        let first_ns = self.run.clock.measure_start_ns;
        let mut histograms = HistogramLog::new(&mut file, &mut serializer, &names, first_ns).map_err(failed(&log))?;
        for (number, row) in self.window.clone().zip(&self.rows) {
            let interval = number..number + 1;
            let events = sum_histograms(parts, &interval, EVENTS)?;
            let kinds = self
                .kinds
                .iter()
                .map(|name| sum_histograms(parts, &interval, &tag(name)))
                .collect::<Result<Vec<_>, _>>()?;
            let time_ns = row.t_ns.saturating_sub(self.interval_ns)..row.t_ns;
            histograms.histograms(time_ns, &events, &kinds.iter().collect::<Vec<_>>()).map_err(failed(&log))?;
        }
        drop(histograms);
        file.flush().map_err(failed(&log))?;
        let kind = self.run.kind.clone();
        write_json(&json, &kind, vec![self.run])
    }
}

/// What all hosts came to, but for its latencies.
fn merge_runs(parts: &[Part], first_ns: u64, last_ns: u64, rows: &[Row]) -> LoadRun {
    let seconds = last_ns.saturating_sub(first_ns).max(1) as f64 / 1e9;
    let count = |place: usize| rows.iter().map(|row| row.counts[place]).fold(0, u64::saturating_add);
    let [events, queries, added, _, reconnects, _] = std::array::from_fn(count);
    let runs = || parts.iter().map(|part| &part.run);
    let sum = |of: fn(&LoadRun) -> Option<u64>| {
        runs().map(of).try_fold(0, |sum: u64, value| Some(sum.saturating_add(value?)))
    };
    // Of a host's CPU time what lies in the window, which is nearly all that was measured there.
    let cpu = |of: fn(&LoadRun) -> f64| -> f64 {
        let inside = |run: &LoadRun| if run.seconds_real > 0.0 { (seconds / run.seconds_real).min(1.0) } else { 0.0 };
        runs().map(|run| of(run) * inside(run)).sum()
    };
    let longest = |of: fn(&LoadClock) -> u64| runs().map(|run| of(&run.clock)).max().unwrap_or(0);
    let steady = runs().map(|run| run.warmup_steady).try_fold(true, |all, is_steady| Some(all && is_steady?));
    // The lateness of the host that started its events latest: a mean of percentiles is none.
    let latest = runs().filter_map(|run| run.start_lateness_ns).max_by_key(Summary::p99);
    LoadRun {
        clients: sum(|run| Some(run.clients)).unwrap_or(0),
        offered: sum(|run| run.offered),
        offered_per_second: runs().map(|run| run.offered_per_second).sum(),
        achieved_per_second: events as f64 / seconds,
        backlog_max: sum(|run| run.backlog_max),
        backlog_end: sum(|run| run.backlog_end),
        start_lateness_ns: latest,
        events,
        queries,
        rows: added,
        warmup_queries: sum(|run| Some(run.warmup_queries)).unwrap_or(0),
        warmup_steady: steady,
        errors: merge_errors(parts),
        reconnects,
        clock: LoadClock {
            source: "CLOCK_MONOTONIC".into(),
            start_asked_ns: None,
            measure_start_ns: first_ns,
            measure_end_ns: last_ns,
            connect_ns: longest(|clock| clock.connect_ns),
            warmup_ns: longest(|clock| clock.warmup_ns),
        },
        seconds_real: seconds,
        seconds_user: cpu(|run| run.seconds_user),
        seconds_sys: cpu(|run| run.seconds_sys),
        share: None,
        threads: Vec::new(),
        network: None,
        ..parts[0].run.clone()
    }
}

/// How often each error was met, by code and kind of statement, over all that the hosts measured.
fn merge_errors(parts: &[Part]) -> Vec<ErrorCount> {
    let mut sums = BTreeMap::<(u16, &str), ErrorCount>::new();
    for error in parts.iter().flat_map(|part| &part.run.errors) {
        let entry = sums.entry((error.code, &error.operation));
        let sum = entry.or_insert_with(|| ErrorCount { count: 0, ..error.clone() });
        sum.count = sum.count.saturating_add(error.count);
    }
    sums.into_values().collect()
}

// What is known of each client host: its part of the load, its clock, what held it up, its network.

/// What the hosts' clocks were before the load and after it.
#[derive(Debug, Deserialize)]
struct BothClocks {
    before: Clocks,
    after: Clocks,
}

/// The hosts' `CLOCK_MONOTONIC` less this machine's, at one moment of the latter.
#[derive(Debug, Deserialize)]
struct Clocks {
    at_ns: i64,
    offsets: BTreeMap<String, Offset>,
}

#[derive(Debug, Deserialize)]
struct Offset {
    offset_ns: i64,
    bound_ns: f64,
}

impl BothClocks {
    fn offsets(&self, host: &str) -> Result<(&Offset, &Offset), Error> {
        let both = self.before.offsets.get(host).zip(self.after.offsets.get(host));
        both.ok_or_else(|| Error::Failed(format!("--clocks: the clock of {host} is missing")))
    }

    /// A host's time on this machine's clock, where the offset went evenly from one to the other.
    fn ours_ns(&self, time_ns: u64, host: &str) -> Result<f64, Error> {
        let (old, new) = self.offsets(host)?;
        let (time_ns, old_ns) = (time_ns as f64, old.offset_ns as f64);
        // Which moment it is, is known to within the offset's change, which is nothing beside the time between both.
        let between_ns = (self.after.at_ns.saturating_sub(self.before.at_ns)).max(1) as f64;
        let passed = (time_ns - old_ns - self.before.at_ns as f64) / between_ns;
        Ok(time_ns - (old_ns + (new.offset_ns.saturating_sub(old.offset_ns)) as f64 * passed))
    }
}

/// The figures of each host, in the order that they were given in.
fn client_hosts(
    parts: &[Part],
    window: &Range<usize>,
    clocks: &BothClocks,
    start_ns: u64,
    interval_ns: u64,
) -> Result<Vec<ClientHost>, Error> {
    let seconds = window.len() as f64 * interval_ns as f64 / 1e9;
    // Each host's histograms are added up once: what the others have is what all have less its own.
    let own = parts.iter().map(|part| sum_histograms([part], window, EVENTS)).collect::<Result<Vec<_>, _>>()?;
    let total = sum_histograms(parts, window, EVENTS)?;
    let p99_ms = |histogram: &Histogram<u64>, parts: &[&Part]| {
        Summary::from_histogram(histogram, largest(parts.iter().copied(), |run| Some(&run.latency_ns))).in_ms().p99()
    };
    parts
        .iter()
        .zip(&own)
        .map(|(part, own)| {
            let others: Vec<_> = parts.iter().filter(|other| other.name != part.name).collect();
            let mut of_others = total.clone();
            of_others.subtract(own).map_err(|error| Error::Failed(format!("{}: {error}", part.name)))?;
            let rate = |place: usize| part.counted(window).iter().map(|row| row[place] as f64).sum::<f64>() / seconds;
            let (run, (before, after)) = (&part.run, clocks.offsets(&part.name)?);
            let started_ns = clocks.ours_ns(run.clock.measure_start_ns, &part.name)?;
            let ended_ns = clocks.ours_ns(run.clock.measure_end_ns, &part.name)?;
            let real = run.seconds_real.max(1e-9);
            let busiest = |of: fn(&ThreadTime) -> Option<f64>| run.threads.iter().filter_map(of).reduce(f64::max);
            Ok(ClientHost {
                host: part.name.clone(),
                clients: run.clients,
                events_per_second: rate(0),
                queries_per_second: rate(1),
                latency_ms_p99: p99_ms(own, &[part]),
                latency_ms_p99_of_others: p99_ms(&of_others, &others),
                start_off_us: (started_ns - start_ns as f64) / 1e3,
                clock_bound_us: before.bound_ns.max(after.bound_ns) / 1e3,
                clock_drift_us: after.offset_ns.saturating_sub(before.offset_ns) as f64 / 1e3,
                seconds: (ended_ns - started_ns) / 1e9,
                thread_cpu_share: busiest(|thread| Some(thread.cpu_seconds)).map(|used| used / real),
                thread_wait_share: busiest(|thread| thread.wait_seconds).map(|waited| waited / real),
                start_lateness_ms_p99: run.start_lateness_ns.and_then(|late| late.in_ms().p99()),
                network: network_figures(run),
            })
        })
        .collect()
}

/// Of a host's connections, where they are by TCP.
fn network_figures(run: &LoadRun) -> Option<ClientNetwork> {
    let network = run.network.as_ref()?;
    let busier = network.received_bytes.unwrap_or(0).max(network.sent_bytes.unwrap_or(0));
    let share = |megabits: u64| busier as f64 * 8.0 / run.seconds_real.max(1e-9) / (megabits as f64 * 1e6);
    Some(ClientNetwork {
        rtt_ms_median: f64::from(network.rtt_us_median) / 1e3,
        rtt_ms_min: network.rtt_us_min.map(|least| f64::from(least) / 1e3),
        retransmits: network.retransmits,
        interface: network.interface.clone(),
        interface_share: network.interface_megabits.filter(|megabits| *megabits > 0).map(share),
    })
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use dbdyno_common::histogram::encode;
    use dbdyno_common::results::LoadNetwork;
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    const INTERVAL_NS: u64 = 100_000_000;
    const START_NS: u64 = 1_000_000_000_000;

    fn histogram(samples: &[u64]) -> Histogram<u64> {
        let mut histogram = Latencies::default().histogram;
        for sample in samples {
            histogram.record(*sample).unwrap();
        }
        histogram
    }

    /// What a host wrote whose samples of each interval are these; after the whole intervals comes a part of one.
    fn written(intervals: &[Vec<u64>], start_ns: u64, late_ns: u64) -> [String; 3] {
        let counts = |n: usize| format!("{n},{},0,0,0,0", 2 * n);
        let mut series = String::from("run,t_ns,phase,events,queries,rows,errors,reconnects,backlog,latency_ns_p99\n");
        let begun_ns = start_ns - 3_217_400_000;
        let mut log = format!("#[StartMonotonic: {begun_ns} ns]\n\"StartTimestamp\",\"Interval_Length\"\n");
        for (number, samples) in intervals.iter().enumerate() {
            let start_of_ns = start_ns + number as u64 * INTERVAL_NS;
            let _ = writeln!(series, "0,{},,{},", start_of_ns + INTERVAL_NS, counts(samples.len()));
            let seconds = (start_of_ns - begun_ns) as f64 / 1e9;
            if !samples.is_empty() {
                let payload = encode(&histogram(samples)).unwrap();
                let _ =
                    writeln!(log, "{seconds:.3},0.100,1.0,{payload}\nTag=order_by,{seconds:.3},0.100,1.0,{payload}");
            }
        }
        let whole = intervals.len() as u64;
        let end_ns = start_ns + whole * INTERVAL_NS + 7000;
        let _ = writeln!(series, "0,{end_ns},,{},", counts(0));
        let all: Vec<u64> = intervals.concat();
        let exact = Exact { max: all.iter().max().copied(), ..Exact::default() };
        let summary = Summary::from_histogram(&histogram(&all), exact);
        let late = Summary::from_histogram(&histogram(&[late_ns]), Exact::default());
        let run = json!({
            "version": 2, "kind": "oltp", "load": "read_only", "engine": "InnoDB", "iteration": 1, "clients": 2,
            "loop": {"kind": "closed", "think_seconds": 0.0, "spacing": "fixed"}, "offered": null, "offered_per_second": null,
            "achieved_per_second": 1.0, "backlog_max": null, "backlog_end": null, "start_lateness_ns": late,
            "events": all.len(), "queries": 2 * all.len(), "rows": 0, "queries_planned": null, "queries_dropped": 0,
            "warmup_queries": 5, "warmup_steady": null, "reconnects": 0, "aborted": null,
            "errors": [{"code": 1213, "sqlstate": "40001", "operation": "select", "message": "deadlock", "count": 3}],
            "clock": {"source": "CLOCK_MONOTONIC", "start_asked_ns": start_ns, "measure_start_ns": start_ns + late_ns,
                      "measure_end_ns": end_ns, "connect_ns": 1, "warmup_ns": 2},
            "seconds_real": whole as f64 / 10.0, "seconds_user": 0.25, "seconds_sys": 0.05,
            "share": {"part": "1/2", "clients_of_all": 4}, "io": "epoll", "io_threads": 1,
            "threads": [{"cpu_seconds": 0.09, "wait_seconds": 0.03}], "network": null, "latency_ns": summary,
            "operations": {"order by": summary}, "phases": [], "server_version": "10.11",
        });
        [json!({"version": 2, "kind": "oltp", "runs": [run]}).to_string(), series, log]
    }

    fn part(name: &str, intervals: &[Vec<u64>], start_ns: u64, late_ns: u64) -> Part {
        let [json, series, log] = written(intervals, start_ns, late_ns);
        Part::parse(name, &json, &series, &log, INTERVAL_NS).unwrap()
    }

    fn samples() -> impl Strategy<Value = Vec<Vec<u64>>> {
        prop::collection::vec(prop::collection::vec(1_u64..10_000_000_000, 0..40), 3)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]
        #[test]
        fn what_is_merged_is_what_was_pooled(hosts in prop::collection::vec(samples(), 1..4)) {
            let parts: Vec<_> = hosts
                .iter()
                .enumerate()
                .map(|(n, own)| part(&format!("c{n}"), own, START_NS + n as u64 * 12_345_678_901, 1000))
                .collect();
            let merged = Merged::new(&parts, 5 * START_NS, INTERVAL_NS).unwrap();
            let pooled: Vec<u64> = hosts.concat().concat();
            let exact = Exact { max: pooled.iter().max().copied(), ..Exact::default() };
            let expected = Summary::from_histogram(&histogram(&pooled), exact);
            prop_assert_eq!(merged.run.latency_ns, expected);
            prop_assert_eq!(merged.run.operations["order by"], expected);
            prop_assert_eq!(merged.run.events as usize, pooled.len());
            for (number, row) in merged.rows.iter().enumerate() {
                let here: Vec<u64> = hosts.iter().flat_map(|host| host[number].clone()).collect();
                prop_assert_eq!(row.counts[0] as usize, here.len());
                let bucket_max = (!here.is_empty()).then(|| histogram(&here).max().min(exact.max.unwrap()));
                prop_assert_eq!(row.latency_ns.max, bucket_max);
                prop_assert_eq!(row.latency_ns.p99(), Summary::from_histogram(&histogram(&here), exact).p99());
            }
        }

        #[test]
        fn whatever_a_host_wrote_is_refused_or_read(
            place in 0..3_usize, at in 0..2000_usize, bytes in "[0-9,.a-z\"{}:\\[\\]=#\\n -]{0,12}",
        ) {
            let mut texts = written(&[vec![5, 6], vec![7]], START_NS, 1000);
            let text = &mut texts[place];
            let at = at % text.len();
            let end = (at + bytes.len()).min(text.len());
            text.replace_range(at..end, &bytes);
            let [json, series, log] = &texts;
            if let Ok(part) = Part::parse("c1", json, series, log, INTERVAL_NS) {
                let _ = Merged::new(&[part], START_NS, INTERVAL_NS);
            }
        }
    }

    #[test]
    fn what_not_all_measured_is_warm_up() {
        // One starts later than is tolerated: its first interval does not count.
        let late = part("c2", &[vec![10], vec![20], vec![30], vec![40]], START_NS, 700_000);
        let short = part("c1", &[vec![1], vec![2], vec![3]], START_NS, 1000);
        let parts = [short, late];
        let merged = Merged::new(&parts, START_NS, INTERVAL_NS).unwrap();
        assert_eq!(merged.window, 1..3);
        let run = &merged.run;
        assert_eq!((run.events, run.queries, run.clients, run.warmup_queries), (4, 8, 4, 10));
        assert_eq!(
            run.clock.measure_start_ns..run.clock.measure_end_ns,
            START_NS + INTERVAL_NS..START_NS + 3 * INTERVAL_NS
        );
        assert!((run.achieved_per_second - 20.0).abs() < 1e-9);
        assert_eq!(run.errors.iter().map(|error| error.count).collect::<Vec<_>>(), [6]);
        assert_eq!(run.start_lateness_ns.unwrap().max, Some(700_415));
        assert_eq!((run.share.clone(), run.threads.len(), run.network.clone()), (None, 0, None));
        let in_time = part("c2", &[vec![10], vec![20], vec![30], vec![40]], START_NS, 400_000);
        assert_eq!(common_window(&[parts.into_iter().next().unwrap(), in_time], INTERVAL_NS).unwrap(), 0..3);
    }

    #[test]
    fn hosts_that_were_never_at_it_together_give_no_figure() {
        let parts = [part("c1", &[vec![1], vec![2], vec![3]], START_NS, 0), part("c2", &[], START_NS, 0)];
        let message = Merged::new(&parts, START_NS, INTERVAL_NS).err().unwrap().to_string();
        assert!(
            message.contains("no interval is complete on all client hosts (complete ones: c1 3, c2 0)"),
            "{message}"
        );
        assert!(Part::parse("c1", "{}", "", "", INTERVAL_NS).unwrap_err().starts_with("load.json: missing field"));
    }

    #[test]
    fn each_host_has_its_figures_and_its_start_on_our_clock() {
        let second_ns = 1_000_000_000;
        let mut parts = [
            part("c1", &[vec![1_000_000], vec![1_000_000]], 5 * second_ns, 30_000),
            part("c2", &[vec![9_000_000], vec![9_000_000]], 4 * second_ns, 50_000),
        ];
        parts[0].run.network = Some(LoadNetwork {
            connections: 2,
            rtt_us_median: 250,
            rtt_us_max: 300,
            rtt_us_min: Some(100),
            retransmits: 3,
            interface: Some("eth0".into()),
            interface_megabits: Some(1000),
            received_bytes: Some(12_500_000),
            sent_bytes: Some(5),
        });
        let clocks = |at_ns: u64, c1: i64| {
            json!({"at_ns": at_ns, "offsets": {
                "c1": {"offset_ns": c1, "bound_ns": 25_000.0, "round_trip_ns_min": 1}, "c2": {"offset_ns": 0, "bound_ns": 25_000.0},
            }})
        };
        // Half of the time between both looks at the clock has passed, and with it half of its drift of 4 us.
        let both =
            json!({"before": clocks(3 * second_ns, 1_000_000_000), "after": clocks(5 * second_ns, 1_000_004_000)});
        let both: BothClocks = serde_json::from_value(both).unwrap();
        let hosts = client_hosts(&parts, &(0..2), &both, 4 * second_ns, INTERVAL_NS).unwrap();
        assert!((hosts[0].start_off_us - 28.0).abs() < 0.01, "{:?}", hosts[0]);
        assert!((hosts[1].start_off_us - 50.0).abs() < 0.01, "{:?}", hosts[1]);
        assert_eq!((hosts[0].clock_bound_us, hosts[0].clock_drift_us), (25.0, 4.0));
        assert!((hosts[0].latency_ms_p99.unwrap() - 1.0).abs() < 1e-3);
        assert!((hosts[0].latency_ms_p99_of_others.unwrap() - 9.0).abs() < 1e-2);
        assert!((hosts[0].events_per_second - 10.0).abs() < 1e-9);
        assert!((hosts[0].thread_cpu_share.unwrap() - 0.45).abs() < 1e-9);
        assert!((hosts[0].thread_wait_share.unwrap() - 0.15).abs() < 1e-9);
        let network = hosts[0].network.as_ref().unwrap();
        assert!((network.interface_share.unwrap() - 0.5).abs() < 1e-9, "{network:?}");
        assert_eq!(hosts[1].network, None);
    }

    #[test]
    fn a_merged_load_is_written_as_any_other() {
        let folder = std::env::temp_dir().join(format!("dbdyno-merge-{}", std::process::id()));
        for (host, own) in [("c1", vec![vec![5_u64], vec![6]]), ("c2", vec![vec![7], vec![8]])] {
            fs::create_dir_all(folder.join(host)).unwrap();
            for (file, text) in FILES.iter().zip(written(&own, START_NS, 1000)) {
                fs::write(folder.join(host).join(file), text).unwrap();
            }
        }
        let path = |name: &str| folder.join(name).into_os_string();
        let into = format!("--into={}", folder.join("all").display());
        assert_eq!(main([path("c1"), path("c2"), into.clone().into()]).unwrap(), 0);
        let text = |file: &str| fs::read_to_string(folder.join("all").join(file)).unwrap();
        let read: LoadFile = serde_json::from_str(&text("load.json")).unwrap();
        assert_eq!((read.runs[0].events, read.runs[0].latency_ns.count), (4, 4));
        assert!(text("load.csv").starts_with("run,t_ns,phase,events,"), "{}", text("load.csv"));
        // A merged load can be merged again, but for its start, which was asked of its hosts alone.
        let message = main([path("all"), into.into()]).unwrap_err().to_string();
        assert!(
            message.contains("all: the output of its load generator is not complete: load.json: its run had no"),
            "{message}"
        );
        assert_eq!(text("latency.hlog").lines().filter(|line| line.starts_with("Tag=order_by,")).count(), 2);
        fs::remove_dir_all(folder).unwrap();
        assert!(matches!(main([]), Err(Error::Usage(_))));
    }
}
