//! Files written during a run: the series (CSV or JSON lines) and the histogram log.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use hdrhistogram::serialization::V2DeflateSerializer;
use hdrhistogram::serialization::interval_log::{
    IntervalLogWriter, IntervalLogWriterBuilder, IntervalLogWriterError, Tag,
};
use serde::Serialize;

use crate::clock::{now_ns, wall};
use crate::error::Error;
use crate::measure::Interval;
use crate::statements::Kind;

const SERIES_HEADER: &str = "run,t_ns,phase,events,queries,rows,errors,reconnects,backlog,latency_ns_mean,\
                             latency_ns_p50,latency_ns_p95,latency_ns_p99,latency_ns_max";

/// Opens `path` for writing.
///
/// # Errors
/// The file cannot be made.
pub fn create(path: &Path) -> Result<BufWriter<File>, Error> {
    let file = File::create(path).map_err(|error| Error::File(PathBuf::from(path), error))?;
    Ok(BufWriter::new(file))
}

/// A line of a series. An interval in which no event ended has no latency.
#[derive(Debug, Serialize)]
struct Row {
    run: usize,
    t_ns: u64,
    phase: String,
    events: u64,
    queries: u64,
    rows: u64,
    errors: u64,
    reconnects: u64,
    backlog: u64,
    latency_ns_mean: Option<u64>,
    latency_ns_p50: Option<u64>,
    latency_ns_p95: Option<u64>,
    latency_ns_p99: Option<u64>,
    latency_ns_max: Option<u64>,
}

impl Row {
    fn csv(&self) -> String {
        let latencies =
            [self.latency_ns_mean, self.latency_ns_p50, self.latency_ns_p95, self.latency_ns_p99, self.latency_ns_max];
        let mut line = format!(
            "{},{},{},{},{},{},{},{},{}",
            self.run,
            self.t_ns,
            self.phase,
            self.events,
            self.queries,
            self.rows,
            self.errors,
            self.reconnects,
            self.backlog
        );
        for latency in latencies {
            line.push(',');
            line.extend(latency.map(|ns| ns.to_string()));
        }
        line
    }
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
    pub fn new(mut file: W, json: bool, names: Names) -> io::Result<Self> {
        if !json {
            writeln!(file, "{SERIES_HEADER}")?;
        }
        Ok(Self { file, json, names })
    }

    fn row(&self, interval: &Interval) -> Row {
        let tally = &interval.tally;
        let summary = tally.events.summary();
        let phases = self.names.phases.iter().enumerate();
        let phases: Vec<&str> =
            phases.filter(|(number, _)| tally.phases >> number & 1 == 1).map(|(_, name)| *name).collect();
        Row {
            run: interval.run,
            t_ns: interval.end_ns,
            phase: phases.join("+"),
            events: tally.events.count(),
            queries: tally.queries(&self.names.kinds),
            rows: tally.rows,
            errors: tally.errors,
            reconnects: tally.reconnects,
            backlog: interval.gauges.backlog,
            latency_ns_mean: summary.mean.map(|mean| mean.round() as u64),
            latency_ns_p50: summary.p50,
            latency_ns_p95: summary.p95,
            latency_ns_p99: summary.p99,
            latency_ns_max: summary.max,
        }
    }

    /// Writes a line.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn write(&mut self, interval: &Interval) -> io::Result<()> {
        let row = self.row(interval);
        let line = if self.json { serde_json::to_string(&row)? } else { row.csv() };
        writeln!(self.file, "{line}")?;
        self.file.flush()
    }
}

/// Nanoseconds in the unit of a log's "maximum" column, milliseconds, as other tools write it.
const MAX_VALUE_DIVISOR: f64 = 1e6;

/// A standard histogram log: one line per interval and kind of statement, values in nanoseconds.
pub struct HistogramLog<'a, W: Write> {
    writer: IntervalLogWriter<'a, 'a, W, V2DeflateSerializer>,
    started_ns: u64,
    tags: Vec<String>,
}

impl<'a, W: Write> HistogramLog<'a, W> {
    /// Starts the log; its times count from now.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn new(file: &'a mut W, serializer: &'a mut V2DeflateSerializer, names: &Names) -> io::Result<Self> {
        let now = UNIX_EPOCH + wall();
        let started_ns = now_ns();
        let writer = IntervalLogWriterBuilder::new()
            .add_comment("[Histogram log format version 1.3]")
            .add_comment("[values in nanoseconds, one tag per kind of statement]")
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
        let start = Duration::from_nanos(interval.start_ns.saturating_sub(self.started_ns));
        let length = Duration::from_nanos(interval.end_ns - interval.start_ns);
        for (name, latencies) in self.tags.iter().zip(&interval.tally.kinds) {
            if latencies.count() == 0 {
                continue;
            }
            let tag = Tag::new(name);
            self.writer.write_histogram(&latencies.histogram, start, length, tag).map_err(|error| match error {
                IntervalLogWriterError::IoError(error) => error,
                IntervalLogWriterError::SerializeError(error) => io::Error::other(error),
            })?;
        }
        Ok(())
    }
}

/// A name as a log's tag, which ends at a comma or white space.
fn tag(name: &str) -> String {
    name.chars().map(|c| if c == ',' || c.is_whitespace() || c.is_control() { '_' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use base64_of_log::histogram;
    use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};

    use super::*;
    use crate::measure::{IntervalSink, Recorder, Terms};
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
    mod base64_of_log {
        use hdrhistogram::Histogram;
        use hdrhistogram::serialization::Deserializer;

        pub fn histogram(text: &str) -> Histogram<u64> {
            let bytes = decode(text);
            Deserializer::new().deserialize(&mut bytes.as_slice()).unwrap()
        }

        fn decode(text: &str) -> Vec<u8> {
            const DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
            let mut bytes = Vec::new();
            let (mut bits, mut width) = (0u32, 0);
            for digit in text.bytes().filter(|digit| *digit != b'=') {
                let value = DIGITS.iter().position(|d| *d == digit).unwrap();
                bits = bits << 6 | value as u32;
                width += 6;
                if width >= 8 {
                    width -= 8;
                    bytes.push((bits >> width) as u8);
                }
            }
            bytes
        }
    }

    #[test]
    fn a_log_gives_back_what_was_recorded() {
        let mut file = Vec::new();
        let mut serializer = V2DeflateSerializer::new();
        let log = HistogramLog::new(&mut file, &mut serializer, &names()).unwrap();
        let start = log.started_ns;
        let mut only_log = OnlyLog(log);
        let mut recorder = recorder(1_000_000, &mut only_log);
        recorder.start(start);
        for i in 0..5_000 {
            recorder.pass_time(start + i * 1000);
            recorder.answered(Statement::alone(i as u16 % 2), start + i * 1000 - 1000 - i, start + i * 1000);
        }
        recorder.finish(start + 5_000_000);
        let totals = recorder.into_totals();
        assert!(totals.sink_error.is_none());
        drop(only_log);
        let mut found = BTreeMap::new();
        for entry in IntervalLogIterator::new(&file) {
            if let LogEntry::Interval(line) = entry.unwrap() {
                let tag = line.tag().unwrap().as_str().to_owned();
                let (lines, sum) =
                    found.entry(tag).or_insert_with(|| (0, hdrhistogram::Histogram::<u64>::new(3).unwrap()));
                *lines += 1;
                sum.add(histogram(line.encoded_histogram())).unwrap();
            }
        }
        for (number, tag) in ["insert", "buy._item"].into_iter().enumerate() {
            let (lines, sum) = &found[tag];
            assert_eq!(*lines, 5);
            assert_eq!(sum, &totals.tally.kinds[number].histogram);
        }
        assert_eq!(found.len(), 2);
    }

    #[test]
    fn a_series_has_a_line_per_interval() {
        let mut interval = Interval { end_ns: 7, ..Interval::default() };
        interval.tally.kinds = vec![crate::latency::Latencies::default(); 2];
        interval.tally.kinds[0].record(5);
        interval.tally.phases = 3;
        let mut files = [Vec::new(), Vec::new()];
        for (json, file) in files.iter_mut().enumerate() {
            let mut series = Series::new(file, json == 1, names()).unwrap();
            series.write(&interval).unwrap();
            interval.tally.events.record(9);
        }
        let [csv, json] = files.map(|file| String::from_utf8(file).unwrap());
        assert_eq!(csv, format!("{SERIES_HEADER}\n0,7,load+index,0,1,0,0,0,0,,,,,\n"));
        let value: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!(value["phase"], "load+index");
        assert_eq!(value["latency_ns_p50"], 9);
        let columns: Vec<&str> = SERIES_HEADER.split(',').collect();
        assert!(columns.iter().all(|column| value.get(column).is_some()));
        assert_eq!(value.as_object().unwrap().len(), columns.len());
    }
}
