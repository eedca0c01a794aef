//! The destinations of intervals during a run: files (the series as CSV or JSON lines, and the histogram log), and
//! lines on the terminal in the manner of sysbench.
//!
//! A file or a terminal may make its writer wait. No client may wait with it, so a relay takes intervals from the
//! threads that measure to the one that writes.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::{Duration, UNIX_EPOCH};

use dbdyno_common::histogram::Summary;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::V2DeflateSerializer;
use hdrhistogram::serialization::interval_log::{
    IntervalLogWriter, IntervalLogWriterBuilder, IntervalLogWriterError, Tag,
};
use serde_json::{Value, json};

use super::print;
use crate::clock::{now_ns, wall};
use crate::error::Error;
use crate::measure::{Interval, IntervalSink};
use crate::run_options::RunOptions;
use crate::statements::Kind;

/// Files and terminal; each may be absent.
pub struct Sinks<'a> {
    series: Option<Series<BufWriter<File>>>,
    log: Option<HistogramLog<'a, BufWriter<File>>>,
    progress: Option<Progress>,
}

impl Sinks<'_> {
    /// A run of so many clients comes.
    pub fn starting(&mut self, clients: usize) {
        if let Some(progress) = &mut self.progress {
            progress.set_clients(clients);
        }
    }
}

impl IntervalSink for Sinks<'_> {
    fn interval(&mut self, interval: &Interval) -> io::Result<()> {
        if let Some(series) = &mut self.series {
            series.write(interval)?;
        }
        if let Some(log) = &mut self.log {
            log.lines(interval)?;
        }
        if let Some(progress) = &mut self.progress {
            progress.interval(interval);
        }
        Ok(())
    }

    fn rows(&mut self, rows: u64, start_ns: u64, now_ns: u64) -> io::Result<()> {
        if let Some(progress) = &self.progress {
            progress.rows(rows, start_ns, now_ns);
        }
        Ok(())
    }
}

/// Sees that all files can be written, before a server is touched; what they hold stays.
///
/// # Errors
/// One cannot.
pub fn check_files(options: &RunOptions) -> Result<(), Error> {
    for path in [&options.json, &options.series, &options.hlog].into_iter().flatten() {
        // Who reads a pipe would take this for its end.
        if path.metadata().is_ok_and(|there| !there.is_file() && !there.is_dir()) {
            continue;
        }
        let opened = OpenOptions::new().append(true).create(true).open(path);
        opened.map_err(|error| Error::File(path.clone(), error))?;
    }
    Ok(())
}

/// Opens what the options ask for, lets `work` write to it, and closes it.
///
/// # Errors
/// A file cannot be made or written.
pub fn with_sinks<T>(options: &RunOptions, names: &Names, work: impl FnOnce(&mut Sinks<'_>) -> T) -> Result<T, Error> {
    let failed = |error| Error::Failed(format!("cannot write: {error}"));
    let mut log_file = options.hlog.as_deref().map(create).transpose()?;
    let mut serializer = V2DeflateSerializer::new();
    let log = log_file.as_mut().map(|file| HistogramLog::new(file, &mut serializer, names, now_ns())).transpose();
    let series = options.series.as_deref().map(|path| {
        let json = path.extension().is_some_and(|name| name == "jsonl");
        Series::new(create(path)?, json, names.clone()).map_err(failed)
    });
    let progress = options.report_interval.is_some() || options.report_rows.is_some();
    let mut sinks = Sinks {
        series: series.transpose()?,
        log: log.map_err(failed)?,
        progress: (progress && !options.silent).then(|| Progress::new(names.clone(), options.report_interval)),
    };
    let done = work(&mut sinks);
    drop(sinks);
    log_file.map_or(Ok(()), |mut file| file.flush().map_err(failed))?;
    Ok(done)
}

/// Prints a line every so often.
pub struct Progress {
    names: Names,
    every_ns: Option<u64>,
    clients: usize,
    run: usize,
    started_ns: u64,
    /// Intervals since the last line.
    since: Option<Interval>,
}

impl Progress {
    /// A line every `every`, if that is given, and for rows as they come.
    pub fn new(names: Names, every: Option<Duration>) -> Self {
        let every_ns = every.map(|every| every.as_nanos() as u64);
        Self { names, every_ns, clients: 0, run: usize::MAX, started_ns: 0, since: None }
    }

    /// The number of clients of the run that comes.
    pub fn set_clients(&mut self, clients: usize) {
        self.clients = clients;
    }

    /// Takes an interval.
    pub fn interval(&mut self, interval: &Interval) {
        let Some(every_ns) = self.every_ns else { return };
        if self.run != interval.run {
            (self.run, self.started_ns, self.since) = (interval.run, interval.start_ns, None);
        }
        let mut since = match self.since.take() {
            None => interval.clone(),
            Some(mut since) => {
                since.tally.add(&interval.tally);
                (since.end_ns, since.gauges) = (interval.end_ns, interval.gauges);
                since
            }
        };
        // The last interval of a run may be a short one.
        if since.end_ns - since.start_ns + 1_000_000 < every_ns {
            since.gauges = interval.gauges;
            self.since = Some(since);
            return;
        }
        print(&format!("{}\n", self.line(&since)));
    }

    fn line(&self, since: &Interval) -> String {
        let tally = &since.tally;
        let seconds = (since.end_ns - since.start_ns) as f64 / 1e9;
        let rate = |count: u64| count as f64 / seconds;
        let ms = |ns: Option<u64>| ns.map_or_else(|| "-".to_owned(), |ns| format!("{:.2}", ns as f64 / 1e6));
        let summary = tally.events.summary();
        let decimals = usize::from(!self.every_ns.unwrap_or_default().is_multiple_of(1_000_000_000));
        let mut line = format!(
            "[ {:.decimals$}s ] thds: {} tps: {:.2} qps: {:.2} lat (ms, 50/95/99/max): {}/{}/{}/{} err/s: {:.2} reconn/s: {:.2}",
            (since.end_ns - self.started_ns) as f64 / 1e9,
            self.clients,
            rate(tally.events.count()),
            rate(tally.queries(&self.names.kinds)),
            ms(summary.p50()),
            ms(summary.p95()),
            ms(summary.p99()),
            ms(summary.max),
            rate(tally.errors),
            rate(tally.reconnects),
        );
        // Writing to a string cannot fail.
        if tally.rows > 0 {
            let _ = write!(line, " rows/s: {:.0}", rate(tally.rows));
        }
        if since.gauges.offered > 0 {
            let _ = write!(line, " queue: {}", since.gauges.backlog);
        }
        line
    }

    /// Takes note of rows.
    pub fn rows(&self, rows: u64, start_ns: u64, now_ns: u64) {
        let seconds = now_ns.saturating_sub(start_ns) as f64 / 1e9;
        print(&format!("{rows} rows after {seconds:.1} s ({:.0} rows/s)\n", rows as f64 / seconds.max(1e-9)));
    }
}

/// Messages on their way, at most: some seconds of a slow disk, some ten MB.
const WAITING_MAX: usize = 256;

/// What a thread sends of its run as it goes on.
enum Message {
    Interval(Box<Interval>),
    Rows {
        rows: u64,
        start_ns: u64,
        now_ns: u64,
    },
    /// It has sent so many intervals and is done.
    Over(u64),
}

/// A sender for each of `threads` threads that measure, and the receiver of all.
pub fn relay(threads: usize) -> (Vec<IntervalSender>, IntervalReceiver) {
    let (messages, received) = sync_channel(WAITING_MAX);
    let senders = (0..threads).map(|_| IntervalSender { messages: messages.clone(), sent: 0 }).collect();
    (senders, IntervalReceiver { messages: received, threads })
}

/// One thread's end; it is over when this is dropped.
pub struct IntervalSender {
    messages: SyncSender<Message>,
    sent: u64,
}

impl IntervalSender {
    fn send(&self, message: Message) -> io::Result<()> {
        self.messages.send(message).map_err(|_| io::ErrorKind::BrokenPipe.into())
    }
}

impl IntervalSink for IntervalSender {
    fn interval(&mut self, interval: &Interval) -> io::Result<()> {
        self.sent += 1;
        self.send(Message::Interval(Box::new(interval.clone())))
    }

    fn rows(&mut self, rows: u64, start_ns: u64, now_ns: u64) -> io::Result<()> {
        self.send(Message::Rows { rows, start_ns, now_ns })
    }
}

impl Drop for IntervalSender {
    fn drop(&mut self) {
        // Without a receiver the run is over.
        let _ = self.send(Message::Over(self.sent));
    }
}

/// Receives from all threads.
pub struct IntervalReceiver {
    messages: Receiver<Message>,
    threads: usize,
}

impl IntervalReceiver {
    /// Puts the intervals of all threads together until all are over. An interval goes to `sink` when every thread has
    /// sent its part of it that was not over before.
    ///
    /// # Errors
    /// The first of the sink's; what comes after it is passed over.
    pub fn write_to(self, sink: &mut dyn IntervalSink) -> io::Result<()> {
        let mut open = BTreeMap::<u64, (Interval, usize)>::new();
        let mut over = Vec::with_capacity(self.threads);
        let mut outcome = Ok(());
        for message in self.messages {
            match message {
                Message::Rows { rows, start_ns, now_ns } => {
                    outcome = outcome.and_then(|()| sink.rows(rows, start_ns, now_ns));
                }
                Message::Interval(interval) => add(&mut open, &interval),
                Message::Over(sent) => over.push(sent),
            }
            let missing = |number: u64| self.threads - over.iter().filter(|sent| **sent <= number).count();
            while let Some(first) = open.first_entry().filter(|first| first.get().1 >= missing(*first.key())) {
                let (whole, _) = first.remove();
                outcome = outcome.and_then(|()| sink.interval(&whole));
            }
        }
        outcome
    }
}

/// Adds one thread's interval to the others' of its number.
fn add(open: &mut BTreeMap<u64, (Interval, usize)>, interval: &Interval) {
    let (sum, sent) = open.entry(interval.number).or_default();
    (sum.run, sum.number, sum.start_ns) = (interval.run, interval.number, interval.start_ns);
    sum.end_ns = sum.end_ns.max(interval.end_ns);
    sum.tally.add(&interval.tally);
    sum.gauges.add(interval.gauges);
    *sent += 1;
}

/// Opens `path` for writing.
///
/// # Errors
/// The file cannot be made.
pub fn create(path: &Path) -> Result<BufWriter<File>, Error> {
    let file = File::create(path).map_err(|error| Error::File(PathBuf::from(path), error))?;
    Ok(BufWriter::new(file))
}

/// What a series and a log know of the workload.
#[derive(Debug, Clone)]
pub struct Names {
    /// Kinds of statement.
    pub kinds: Vec<Kind>,
    /// Phases.
    pub phases: &'static [&'static str],
}

/// A file with a line per interval: CSV, or JSON where the name ends in `.jsonl`.
pub struct Series<W> {
    file: W,
    json: bool,
    names: Names,
}

impl<W: Write> Series<W> {
    /// Starts the file.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn new(file: W, json: bool, names: Names) -> io::Result<Self> {
        let mut series = Self { file, json, names };
        if !json {
            let header = Row::default().cells().map(|(name, _)| name).join(",");
            writeln!(series.file, "{header}")?;
        }
        Ok(series)
    }

    /// Writes the line of an interval.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn write(&mut self, interval: &Interval) -> io::Result<()> {
        let tally = &interval.tally;
        let phases = self.names.phases.iter().enumerate();
        let phases: Vec<&str> =
            phases.filter(|(number, _)| tally.phases >> number & 1 == 1).map(|(_, name)| *name).collect();
        self.write_row(&Row {
            run: interval.run,
            t_ns: interval.end_ns,
            phase: phases.join("+"),
            counts: [
                tally.events.count(),
                tally.queries(&self.names.kinds),
                tally.rows,
                tally.errors,
                tally.reconnects,
                interval.gauges.backlog,
            ],
            latency_ns: tally.events.summary(),
        })
    }

    /// Writes a line.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn write_row(&mut self, row: &Row) -> io::Result<()> {
        let cells = row.cells();
        let line = if self.json {
            json!(BTreeMap::from(cells)).to_string()
        } else {
            let text = |(_, value): (_, Value)| match value {
                Value::Null => String::new(),
                Value::String(text) => text,
                number => number.to_string(),
            };
            cells.map(text).join(",")
        };
        writeln!(self.file, "{line}")?;
        self.file.flush()
    }
}

/// What is counted in an interval, in the order of [`Row::counts`].
pub const COUNTS: [&str; 6] = ["events", "queries", "rows", "errors", "reconnects", "backlog"];

/// A line of a series. An interval in which no event ended has no latency.
#[derive(Debug, Clone, Default)]
pub struct Row {
    /// Number of the run in its invocation.
    pub run: usize,
    /// The interval's end.
    pub t_ns: u64,
    /// Phases in which statements were answered.
    pub phase: String,
    /// See [`COUNTS`].
    pub counts: [u64; COUNTS.len()],
    /// Of the events that ended in it.
    pub latency_ns: Summary,
}

impl Row {
    fn cells(&self) -> [(&'static str, Value); 14] {
        let [events, queries, rows, errors, reconnects, backlog] = self.counts;
        let latency = &self.latency_ns;
        [
            ("run", json!(self.run)),
            ("t_ns", json!(self.t_ns)),
            ("phase", json!(self.phase)),
            ("events", json!(events)),
            ("queries", json!(queries)),
            ("rows", json!(rows)),
            ("errors", json!(errors)),
            ("reconnects", json!(reconnects)),
            ("backlog", json!(backlog)),
            ("latency_ns_mean", json!(latency.mean.map(|mean| mean.round() as u64))),
            ("latency_ns_p50", json!(latency.p50())),
            ("latency_ns_p95", json!(latency.p95())),
            ("latency_ns_p99", json!(latency.p99())),
            ("latency_ns_max", json!(latency.max)),
        ]
    }
}

/// Nanoseconds in the unit of a log's "maximum" column, milliseconds, as other tools write it.
const MAX_VALUE_DIVISOR: f64 = 1e6;

/// A standard histogram log, values in nanoseconds: for each interval a line of all events, without a tag, which
/// readers take where no tag is asked for, then one for each kind of statement.
pub struct HistogramLog<'a, W: Write> {
    writer: IntervalLogWriter<'a, 'a, W, V2DeflateSerializer>,
    started_ns: u64,
    tags: Vec<String>,
}

impl<'a, W: Write> HistogramLog<'a, W> {
    /// Starts the log; its times count from `started_ns`.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn new(
        file: &'a mut W,
        serializer: &'a mut V2DeflateSerializer,
        names: &Names,
        started_ns: u64,
    ) -> io::Result<Self> {
        let now = UNIX_EPOCH + wall();
        let writer = IntervalLogWriterBuilder::new()
            .add_comment("[Histogram log format version 1.3]")
            .add_comment("[values in nanoseconds; no tag: events, tags: kinds of statement]")
            .add_comment(&format!("[StartMonotonic: {started_ns} ns]"))
            .with_start_time(now)
            .with_base_time(now)
            .with_max_value_divisor(MAX_VALUE_DIVISOR)
            .begin_log_with(file, serializer)?;
        Ok(Self { writer, started_ns, tags: names.kinds.iter().map(|kind| tag(&kind.name)).collect() })
    }

    /// Writes the lines of an interval.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn lines(&mut self, interval: &Interval) -> io::Result<()> {
        let kinds: Vec<_> = interval.tally.kinds.iter().map(|latencies| &latencies.histogram).collect();
        self.histograms(interval.start_ns..interval.end_ns, &interval.tally.events.histogram, &kinds)
    }

    /// Writes a line of events and one of each kind, in the order of their names, if anything was counted.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn histograms(
        &mut self,
        time_ns: Range<u64>,
        events: &Histogram<u64>,
        kinds: &[&Histogram<u64>],
    ) -> io::Result<()> {
        let start = Duration::from_nanos(time_ns.start.saturating_sub(self.started_ns));
        let length = Duration::from_nanos(time_ns.end - time_ns.start);
        let kinds = self.tags.iter().map(|name| Tag::new(name)).zip(kinds.iter().copied());
        for (tag, histogram) in [(None, events)].into_iter().chain(kinds).filter(|(_, histogram)| !histogram.is_empty())
        {
            self.writer.write_histogram(histogram, start, length, tag).map_err(|error| match error {
                IntervalLogWriterError::IoError(error) => error,
                IntervalLogWriterError::SerializeError(error) => io::Error::other(error),
            })?;
        }
        Ok(())
    }
}

/// A name as a log's tag, which ends at a comma or white space.
pub fn tag(name: &str) -> String {
    name.chars().map(|c| if c == ',' || c.is_whitespace() || c.is_control() { '_' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Sender, channel};
    use std::thread;

    use base64::prelude::{BASE64_STANDARD, Engine as _};
    use hdrhistogram::serialization::Deserializer;
    use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};

    use super::*;
    use crate::measure::{Latencies, Recorder, Terms};
    use crate::statements::Statement;

    /// Tells the test of each interval: its number, its end, and the rows counted in it.
    struct Passed(Sender<(u64, u64, u64)>);

    impl IntervalSink for Passed {
        fn interval(&mut self, interval: &Interval) -> io::Result<()> {
            self.0.send((interval.number, interval.end_ns, interval.tally.rows)).map_err(io::Error::other)
        }
    }

    fn interval(number: u64, end_ns: u64) -> Interval {
        let mut interval = Interval { number, end_ns, ..Interval::default() };
        interval.tally.rows = 1;
        interval
    }

    #[test]
    fn an_interval_waits_for_all_threads_but_for_none_that_is_over() {
        let (senders, receiver) = relay(2);
        let [mut first, mut second] = <[IntervalSender; 2]>::try_from(senders).ok().unwrap();
        let (passed, seen) = channel();
        let writer = thread::spawn(move || receiver.write_to(&mut Passed(passed)));
        let soon = || seen.recv_timeout(Duration::from_secs(5));
        first.interval(&interval(0, 10)).unwrap();
        second.interval(&interval(0, 10)).unwrap();
        assert_eq!(soon(), Ok((0, 10, 2)));
        second.interval(&interval(1, 20)).unwrap();
        second.interval(&interval(2, 30)).unwrap();
        first.interval(&interval(1, 15)).unwrap();
        assert_eq!(soon(), Ok((1, 20, 2)));
        drop(first);
        assert_eq!(soon(), Ok((2, 30, 1)));
        drop(second);
        writer.join().unwrap().unwrap();
    }

    struct OnlyLog<'a>(HistogramLog<'a, Vec<u8>>);

    impl IntervalSink for OnlyLog<'_> {
        fn interval(&mut self, interval: &Interval) -> io::Result<()> {
            self.0.lines(interval)
        }
    }

    fn names() -> Names {
        Names { kinds: vec![Kind::query("insert"), Kind::query("buy. item")], phases: &["load", "index"] }
    }

    fn recorder(interval_ns: u64, sink: &mut dyn IntervalSink) -> Recorder<'_> {
        let terms = Terms { run: 0, kinds: names().kinds.into(), phases: 2, interval_ns, report_rows: None };
        Recorder::new(terms, Some(sink))
    }

    /// What a reader of such logs does with a line's payload.
    fn histogram(text: &str) -> Histogram<u64> {
        let bytes = BASE64_STANDARD.decode(text).unwrap();
        Deserializer::new().deserialize(&mut bytes.as_slice()).unwrap()
    }

    #[test]
    fn a_log_gives_back_what_was_recorded() {
        let mut file = Vec::new();
        let mut serializer = V2DeflateSerializer::new();
        let log = HistogramLog::new(&mut file, &mut serializer, &names(), now_ns()).unwrap();
        let start = log.started_ns;
        let mut only_log = OnlyLog(log);
        let mut recorder = recorder(1_000_000, &mut only_log);
        recorder.start(start);
        for i in 0..5_000 {
            recorder.pass_time(start + i * 1000);
            recorder.answered(Statement::alone(i as u16 % 2), start + i * 1000 - 1000 - i, start + i * 1000);
            recorder.event(2000 + 3 * i, None);
        }
        recorder.finish(start + 5_000_000);
        let totals = recorder.into_totals();
        assert!(totals.sink_error.is_none());
        drop(only_log);
        let (mut sums, mut order) = (BTreeMap::new(), Vec::new());
        for entry in IntervalLogIterator::new(&file) {
            if let LogEntry::Interval(line) = entry.unwrap() {
                let tag = line.tag().map(|tag| tag.as_str().to_owned());
                order.push(tag.clone());
                let (lines, sum) = sums.entry(tag).or_insert_with(|| (0, Histogram::<u64>::new(3).unwrap()));
                *lines += 1;
                sum.add(histogram(line.encoded_histogram())).unwrap();
            }
        }
        // Who asks for no tag reads the events alone, so their line comes without one, and first.
        let tags = [None, Some("insert".to_owned()), Some("buy._item".to_owned())];
        assert!(order.chunks(tags.len()).all(|interval| interval == tags), "{order:?}");
        for (tag, latencies) in tags.iter().zip([&totals.tally.events].into_iter().chain(&totals.tally.kinds)) {
            let (lines, sum) = &sums[tag];
            assert_eq!(*lines, 5);
            assert_eq!(sum, &latencies.histogram);
        }
    }

    #[test]
    fn an_interval_without_events_has_no_line_of_them() {
        let mut file = Vec::new();
        let mut serializer = V2DeflateSerializer::new();
        let mut log = HistogramLog::new(&mut file, &mut serializer, &names(), now_ns()).unwrap();
        let mut interval = Interval { end_ns: 7, ..Interval::default() };
        interval.tally.kinds = vec![Latencies::default(); 2];
        interval.tally.kinds[1].record(5);
        log.lines(&interval).unwrap();
        drop(log);
        let lines = String::from_utf8(file).unwrap();
        let lines: Vec<_> = lines.lines().filter(|line| !line.starts_with(['#', '"'])).collect();
        assert!(lines.len() == 1 && lines[0].starts_with("Tag=buy._item,"), "{lines:?}");
    }

    #[test]
    fn a_series_has_a_line_per_interval() {
        let mut interval = Interval { end_ns: 7, ..Interval::default() };
        interval.tally.kinds = vec![Latencies::default(); 2];
        interval.tally.kinds[0].record(5);
        interval.tally.phases = 3;
        let mut files = [Vec::new(), Vec::new()];
        for (json, file) in files.iter_mut().enumerate() {
            let mut series = Series::new(file, json == 1, names()).unwrap();
            series.write(&interval).unwrap();
            interval.tally.events.record(9);
        }
        let [csv, json] = files.map(|file| String::from_utf8(file).unwrap());
        let header = "run,t_ns,phase,events,queries,rows,errors,reconnects,backlog,latency_ns_mean,latency_ns_p50,\
                      latency_ns_p95,latency_ns_p99,latency_ns_max";
        assert_eq!(csv, format!("{header}\n0,7,load+index,0,1,0,0,0,0,,,,,\n"));
        let value: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!(value["phase"], "load+index");
        assert_eq!(value["latency_ns_p50"], 9);
        let columns: Vec<&str> = header.split(',').collect();
        assert!(columns.iter().all(|column| value.get(column).is_some()));
        assert_eq!(value.as_object().unwrap().len(), columns.len());
    }
}
