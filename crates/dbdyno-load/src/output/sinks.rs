//! All that intervals go to during a run.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write as _};

use hdrhistogram::serialization::V2DeflateSerializer;

use super::files::{HistogramLog, Names, Series, create};
use super::progress::Progress;
use crate::error::Error;
use crate::measure::{Interval, IntervalSink};
use crate::run_options::RunOptions;

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
    let log = log_file.as_mut().map(|file| HistogramLog::new(file, &mut serializer, names)).transpose();
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
