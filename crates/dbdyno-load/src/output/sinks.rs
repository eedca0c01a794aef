//! The destinations of intervals during a run: files, and lines on the terminal in the manner of sysbench.
//!
//! A file or a terminal may make its writer wait. No client may wait with it, so a relay takes intervals from the threads that
//! measure to the one that writes.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write as _};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use hdrhistogram::serialization::V2DeflateSerializer;

use super::files::{HistogramLog, Names, Series, create};
use super::print;
use crate::clock::now_ns;
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

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Sender, channel};
    use std::thread;
    use std::time::Duration;

    use super::*;

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
}
