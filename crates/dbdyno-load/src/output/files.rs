//! Files written while a run is under way: the series (CSV) and the histogram log.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use hdrhistogram::serialization::V2DeflateSerializer;
use hdrhistogram::serialization::interval_log::{
    IntervalLogWriter, IntervalLogWriterBuilder, IntervalLogWriterError, Tag,
};

use crate::clock::{now_ns, wall};
use crate::error::Error;
use crate::measure::{Interval, IntervalSink, Operation};

const SERIES_HEADER: &str = "run,t_ns,queries,errors,latency_ns_mean,latency_ns_p50,\
                             latency_ns_p99,latency_ns_max";

/// Opens `path` for writing.
///
/// # Errors
/// The file cannot be made.
pub fn create(path: &Path) -> Result<BufWriter<File>, Error> {
    let file = File::create(path).map_err(|error| Error::File(PathBuf::from(path), error))?;
    Ok(BufWriter::new(file))
}

/// A CSV file with a line per interval.
pub struct Series<W>(W);

impl<W: Write> Series<W> {
    /// Starts the file.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn new(mut file: W) -> io::Result<Self> {
        writeln!(file, "{SERIES_HEADER}")?;
        Ok(Self(file))
    }

    fn row(&mut self, interval: &Interval<'_>) -> io::Result<()> {
        let summary = interval.queries.summary();
        // An interval without queries has no latency: its fields stay empty.
        let field = |value: Option<u64>| value.map_or_else(String::new, |v| v.to_string());
        let mean = summary.mean.map_or_else(String::new, |v| format!("{v:.0}"));
        writeln!(
            self.0,
            "{},{},{},{},{mean},{},{},{}",
            interval.run,
            interval.end_ns,
            summary.count,
            interval.errors,
            field(summary.p50),
            field(summary.p99),
            field(summary.max)
        )?;
        self.0.flush()
    }
}

/// Nanoseconds in the unit of a log's "maximum" column, milliseconds, as other tools write it.
const MAX_VALUE_DIVISOR: f64 = 1e6;

/// A standard histogram log: one line per interval and operation, values in nanoseconds.
pub struct HistogramLog<'a, W: Write> {
    writer: IntervalLogWriter<'a, 'a, W, V2DeflateSerializer>,
    started_ns: u64,
}

impl<'a, W: Write> HistogramLog<'a, W> {
    /// Starts the log; its times count from now.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn new(file: &'a mut W, serializer: &'a mut V2DeflateSerializer) -> io::Result<Self> {
        let now = UNIX_EPOCH + wall();
        let started_ns = now_ns();
        let writer = IntervalLogWriterBuilder::new()
            .add_comment("[Histogram log format version 1.3]")
            .add_comment("[values in nanoseconds, one tag per operation]")
            .add_comment(&format!("[StartMonotonic: {started_ns} ns]"))
            .with_start_time(now)
            .with_base_time(now)
            .with_max_value_divisor(MAX_VALUE_DIVISOR)
            .begin_log_with(file, serializer)?;
        Ok(Self { writer, started_ns })
    }

    fn lines(&mut self, interval: &Interval<'_>) -> io::Result<()> {
        let start = Duration::from_nanos(interval.start_ns.saturating_sub(self.started_ns));
        let length = Duration::from_nanos(interval.end_ns - interval.start_ns);
        for (operation, latencies) in Operation::ALL.iter().zip(interval.operations) {
            if latencies.count() == 0 {
                continue;
            }
            let tag = Tag::new(operation.name());
            self.writer.write_histogram(&latencies.histogram, start, length, tag).map_err(|error| match error {
                IntervalLogWriterError::IoError(error) => error,
                IntervalLogWriterError::SerializeError(error) => io::Error::other(error),
            })?;
        }
        Ok(())
    }
}

/// Both files, either of which may be absent.
pub struct Files<'a, W: Write> {
    /// The series.
    pub series: Option<Series<BufWriter<File>>>,
    /// The histogram log.
    pub log: Option<HistogramLog<'a, W>>,
}

impl<W: Write> IntervalSink for Files<'_, W> {
    fn interval(&mut self, interval: &Interval<'_>) -> io::Result<()> {
        if let Some(series) = &mut self.series {
            series.row(interval)?;
        }
        if let Some(log) = &mut self.log {
            log.lines(interval)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use base64_of_log::histogram;
    use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};

    use super::*;
    use crate::measure::Recorder;

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
        let log = HistogramLog::new(&mut file, &mut serializer).unwrap();
        let start = log.started_ns;
        let mut files = Files { series: None, log: Some(log) };
        let mut recorder = Recorder::new(0, 1_000_000, Some(&mut files));
        recorder.start(start);
        for i in 0..5_000 {
            let operation = [Operation::Insert, Operation::Select][i as usize % 2];
            recorder.answered(operation, 1000 + i, start + i * 1000);
        }
        recorder.finish(start + 5_000_000);
        let (totals, _, error) = recorder.into_totals();
        assert!(error.is_none());
        drop(files);
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
        for operation in [Operation::Insert, Operation::Select] {
            let (lines, sum) = &found[operation.name()];
            assert_eq!(*lines, 5);
            assert_eq!(sum, &totals[operation as usize].histogram);
        }
        assert_eq!(found.len(), 2);
    }
}
