//! Files written during a run: the series (CSV or JSON lines) and the histogram log.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use dbdyno_common::summary::Summary;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::V2DeflateSerializer;
use hdrhistogram::serialization::interval_log::{
    IntervalLogWriter, IntervalLogWriterBuilder, IntervalLogWriterError, Tag,
};
use serde_json::{Value, json};

use crate::clock::wall;
use crate::error::Error;
use crate::measure::Interval;
use crate::statements::Kind;

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

/// A standard histogram log, values in nanoseconds: for each interval a line of all events, without a tag, which readers
/// take where no tag is asked for, then one for each kind of statement.
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
        for (tag, histogram) in [(None, events)].into_iter().chain(kinds).filter(|(_, one)| !one.is_empty()) {
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
    use base64::prelude::{BASE64_STANDARD, Engine as _};
    use hdrhistogram::serialization::Deserializer;
    use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};

    use super::*;
    use crate::clock::now_ns;
    use crate::measure::{IntervalSink, Latencies, Recorder, Terms};
    use crate::statements::Statement;

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
        let (mut found, mut order) = (BTreeMap::new(), Vec::new());
        for entry in IntervalLogIterator::new(&file) {
            if let LogEntry::Interval(line) = entry.unwrap() {
                let tag = line.tag().map(|tag| tag.as_str().to_owned());
                order.push(tag.clone());
                let (lines, sum) = found.entry(tag).or_insert_with(|| (0, Histogram::<u64>::new(3).unwrap()));
                *lines += 1;
                sum.add(histogram(line.encoded_histogram())).unwrap();
            }
        }
        // Who asks for no tag reads the events alone, so their line comes without one, and first.
        let tags = [None, Some("insert".to_owned()), Some("buy._item".to_owned())];
        assert!(order.chunks(tags.len()).all(|interval| interval == tags), "{order:?}");
        for (tag, latencies) in tags.iter().zip([&totals.tally.events].into_iter().chain(&totals.tally.kinds)) {
            let (lines, sum) = &found[tag];
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
