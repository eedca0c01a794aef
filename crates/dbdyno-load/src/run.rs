//! One measured run: connect, warm up, release all clients, count; all at one moment with other processes, which may be
//! on other hosts. Beside it stands what the kernel gave each thread: CPU time, and the time that it waited for a
//! processor.
//!
//! A warm-up was long enough when the rate of events no longer drifts. The rule: the line that fits the last half of
//! the intervals best in least squares rises or falls from its first interval to its last by no more than 3 % of their
//! mean, and by no more than 10 % with 95 % certainty (Student's t of the slope, residuals taken as independent). The
//! 10 % are those of SNIA's Solid State Storage Performance Test Specification 2.0, 2.1.24, which asks them of the line
//! alone, as fio's `steadystate=iops_slope` does; with the interval of the slope a rate that is too noisy to tell goes
//! on instead of passing. The last half, and not a window of some length, since how slow a drift is to be looked for
//! grows with how long it has lasted already.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::Path;
use std::sync::{Arc, Barrier, Mutex, PoisonError};
use std::thread::{self, sleep};
use std::time::Duration;

use dbdyno_common::results::{LoadClock, Phase, ThreadTime};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;

use crate::clock::{Cpu, now_ns};
use crate::endpoint::Endpoint;
use crate::error::Error;
use crate::event_loop::dial::Dialer;
use crate::event_loop::{Connections, End, Limits, Shared};
use crate::measure::{Interval, IntervalSink, Recorder, Span, Terms, Totals};
use crate::network::{self, NetworkState};
use crate::output::print;
use crate::output::result::RunResult;
use crate::output::sinks::{IntervalSender, relay};
use crate::protocol::session::Connection;
use crate::run_options::{Plan, RunOptions, Warmup};
use crate::statements::Kind;
use crate::stop::Stop;
use crate::text::shown;
use crate::workload::{Portion, Workload};

/// What the threads of a run work by.
struct Context<'a> {
    options: &'a RunOptions,
    plan: &'a Plan,
    workload: &'a dyn Workload,
    dialer: Dialer,
    stall_ns: u64,
    reply_ns: u64,
    kinds: Arc<[Kind]>,
    stop: &'a Stop,
    /// Of the warm-up, and of the measured run.
    warming: &'a Shared,
    watch: Watch<'a>,
    shared: Shared,
    /// All threads pass it together.
    gate: Barrier,
    marks: Mutex<Marks>,
}

/// Times and CPU that one thread takes for all.
#[derive(Debug, Default, Clone, Copy)]
struct Marks {
    /// When all were to start, and when the last thread did.
    start_ns: u64,
    started_ns: u64,
    end_ns: u64,
    cpu_start: Cpu,
    cpu_end: Cpu,
}

/// What one thread came to.
struct Worked {
    totals: Totals,
    warmup_queries: u64,
    warmup_ns: u64,
    io: &'static str,
    note: Option<String>,
    end: End,
    scheduled: ThreadTime,
    /// At the start, and at the end.
    seen: (NetworkState, NetworkState),
}

/// Runs the load once; intervals go to `sink`.
///
/// # Errors
/// Only what happens before anything is measured; later trouble is in the result.
pub fn run(
    options: &RunOptions,
    endpoint: &Endpoint,
    workload: &dyn Workload,
    plan: &Plan,
    sink: &mut dyn IntervalSink,
    stop: &Stop,
) -> Result<(RunResult, End), Error> {
    let connect_start_ns = now_ns();
    let dialer = Dialer::new(endpoint, workload, stop);
    let (connections, server_version) = dialer.connect_all(plan.clients)?;
    let connect_ns = now_ns() - connect_start_ns;
    let threads = options.io_threads.min(plan.clients);
    let warming = Shared::new(None);
    let context = Context {
        options,
        plan,
        workload,
        dialer,
        stall_ns: endpoint.stall_timeout.as_nanos() as u64,
        reply_ns: endpoint.reply_timeout.as_nanos() as u64,
        kinds: workload.kinds().into(),
        stop,
        warming: &warming,
        watch: Watch::new(&warming, threads),
        shared: Shared::new(plan.events),
        gate: Barrier::new(threads),
        marks: Mutex::default(),
    };
    let worked = context.work_together(threads, connections, sink)?;
    Ok(context.result(worked, connect_ns, server_version))
}

impl Context<'_> {
    /// Has all threads work, and writes their intervals meanwhile.
    fn work_together(
        &self,
        threads: usize,
        mut connections: Vec<Connection>,
        sink: &mut dyn IntervalSink,
    ) -> Result<Vec<Worked>, Error> {
        let (senders, receiver) = relay(threads);
        thread::scope(|scope| {
            let mut workers = Vec::new();
            for (number, sender) in senders.into_iter().enumerate().rev() {
                // An even split; the first threads have one more.
                let first = number * (self.plan.clients / threads) + number.min(self.plan.clients % threads);
                let own = connections.split_off(first);
                workers.push(scope.spawn(move || self.work(number, first, own, sender)));
            }
            let written = receiver.write_to(sink);
            let joined =
                workers.into_iter().map(|worker| worker.join().unwrap_or_else(|p| std::panic::resume_unwind(p)));
            let mut worked = joined.collect::<Result<Vec<_>, _>>()?;
            if let (Err(error), Some(first)) = (written, worked.first_mut()) {
                first.totals.sink_error = Some(error);
            }
            Ok(worked)
        })
    }

    /// The work of one thread: its connections, from client `first` on.
    fn work(
        &self,
        thread: usize,
        first: usize,
        connections: Vec<Connection>,
        mut sender: IntervalSender,
    ) -> Result<Worked, Error> {
        let portion = self.portion(first, connections.len());
        // Whatever goes wrong, the others at the gate must not wait for this thread for ever.
        let warmed = unless_panicked(|| {
            let mut connections = Connections::new(connections, &self.dialer, self.options.io)?;
            let statements = self.workload.statements(portion)?;
            let warmup_start_ns = now_ns();
            let (queries, end) = self.warm_up(thread, portion, &mut connections)?;
            let seen = connections.network_state();
            Ok((connections, statements, queries, now_ns() - warmup_start_ns, end, seen))
        });
        if warmed.is_err() {
            self.give_up();
        }
        let (start_ns, scheduled, warmed) = self.start(warmed);
        let mut recorder = Recorder::new(self.terms(self.options.interval), Some(&mut sender));
        recorder.start(start_ns);
        let driven =
            warmed.and_then(|(mut connections, mut statements, warmup_queries, warmup_ns, mut end, before)| {
                if end == End::Finished {
                    let limits = self.limits(thread, self.plan.duration, start_ns, self.seed());
                    end = unless_panicked(|| {
                        Ok(connections.drive(&mut *statements, &mut recorder, limits, &self.shared, self.stop))
                    })?;
                }
                Ok((connections, warmup_queries, warmup_ns, end, before))
            });
        if driven.is_err() {
            self.give_up();
        }
        let end_ns = now_ns();
        recorder.finish(end_ns);
        let scheduled = between(scheduled, thread_time());
        let totals = recorder.into_totals();
        // The others' intervals need not wait for this thread any more.
        drop(sender);
        {
            let mut marks = self.marks();
            marks.end_ns = marks.end_ns.max(end_ns);
        }
        if self.gate.wait().is_leader() {
            self.marks().cpu_end = Cpu::spent();
        }
        let (mut connections, warmup_queries, warmup_ns, end, before) = driven?;
        let (io, note, seen) = (connections.io(), connections.note.take(), (before, connections.network_state()));
        connections.quit();
        Ok(Worked { totals, warmup_queries, warmup_ns, io, note, end, scheduled, seen })
    }

    /// What this process's clients are from `first` on.
    fn portion(&self, first: usize, clients: usize) -> Portion {
        let (first, of) = (self.plan.first_client + first, self.plan.clients_of_all);
        Portion { first, clients, of, seed: self.seed(), warmup: false }
    }

    /// Waits for all threads, and for the common start where there is one; gives its time, and what the thread had
    /// had of a processor then.
    fn start<T>(&self, mut warmed: Result<T, Error>) -> (u64, ThreadTime, Result<T, Error>) {
        let scheduled = thread_time();
        if self.gate.wait().is_leader() {
            let start_ns = match &self.options.start_file {
                Some(path) if !self.shared.is_given_up() => read_start_time(path, self.stop).unwrap_or_else(|error| {
                    self.give_up();
                    warmed = Err(error);
                    now_ns()
                }),
                _ => now_ns(),
            };
            let mut marks = self.marks();
            (marks.cpu_start, marks.start_ns, marks.started_ns) = (Cpu::spent(), start_ns, start_ns);
        }
        self.gate.wait();
        let start_ns = self.marks().start_ns;
        if self.options.start_file.is_none() {
            return (start_ns, scheduled, warmed);
        }
        let scheduled = thread_time();
        let started_ns = wait_until(start_ns);
        let mut marks = self.marks();
        marks.started_ns = marks.started_ns.max(started_ns);
        (start_ns, scheduled, warmed)
    }

    /// When things happened.
    fn clock(&self, marks: Marks, connect_ns: u64, warmup_ns: u64) -> LoadClock {
        LoadClock {
            source: "CLOCK_MONOTONIC".into(),
            start_asked_ns: self.options.start_file.is_some().then_some(marks.start_ns),
            measure_start_ns: marks.started_ns,
            measure_end_ns: marks.end_ns,
            connect_ns,
            warmup_ns: if self.options.warmup.is_zero() { 0 } else { warmup_ns },
        }
    }

    /// Has all threads end early, warming up or measuring.
    fn give_up(&self) {
        self.warming.give_up();
        self.shared.give_up();
    }

    /// The same load for a while, uncounted; all replies are in when it returns.
    fn warm_up(&self, thread: usize, portion: Portion, connections: &mut Connections) -> Result<(u64, End), Error> {
        if self.options.warmup.is_zero() {
            return Ok((0, End::Finished));
        }
        // It draws other keys than the measured run, which would otherwise read what was just cached.
        let seed = !self.seed();
        let mut statements = self.workload.statements(Portion { warmup: true, seed, ..portion })?;
        let until_steady = matches!(self.options.warmup, Warmup::Steady(_));
        let terms = self.terms(if until_steady { INTERVAL } else { Duration::MAX });
        let mut watcher = Watcher(&self.watch);
        let sink = until_steady.then_some(&mut watcher as &mut dyn IntervalSink);
        let mut recorder = Recorder::new(Terms { report_rows: None, ..terms }, sink);
        let start_ns = now_ns();
        recorder.start(start_ns);
        let limits = self.limits(thread, Some(self.options.warmup.most()), start_ns, seed);
        let end = connections.drive(&mut *statements, &mut recorder, limits, self.warming, self.stop);
        recorder.finish(now_ns());
        let queries = recorder.into_totals().tally.queries(&self.kinds);
        Ok(match end {
            End::Aborted(cause) => {
                self.give_up();
                (queries, End::Aborted(format!("in the warm-up: {cause}")))
            }
            end => (queries, end),
        })
    }

    /// A run that follows others on the same data draws other keys than they did, which are cached;
    /// one on fresh data, as every iteration of slap, draws the same.
    fn seed(&self) -> u64 {
        self.options.seed.wrapping_add(self.plan.step << 32)
    }

    fn terms(&self, interval: Duration) -> Terms {
        Terms {
            run: self.plan.number,
            kinds: Arc::clone(&self.kinds),
            phases: self.workload.phases().len(),
            interval_ns: u64::try_from(interval.as_nanos()).unwrap_or(u64::MAX),
            report_rows: self.options.report_rows,
        }
    }

    fn limits(&self, thread: usize, duration: Option<Duration>, start_ns: u64, seed: u64) -> Limits<'_> {
        Limits {
            start_ns,
            deadline_ns: duration.map(|duration| start_ns.saturating_add(duration.as_nanos() as u64)),
            errors_max: self.options.errors_max,
            ignore: &self.options.ignore,
            stall_ns: self.stall_ns,
            reply_ns: self.reply_ns,
            reconnect_ns: self.options.reconnect.as_nanos() as u64,
            expects_loss: self.workload.expects_loss(),
            pace: self.plan.pace,
            // No process has so many threads: the times of an open loop differ between all.
            seed: seed.wrapping_add(thread as u64 + ((self.plan.share.index as u64) << 16)),
            thread,
            threads: self.options.io_threads.min(self.plan.clients),
            share: self.plan.share,
        }
    }

    fn marks(&self) -> std::sync::MutexGuard<'_, Marks> {
        self.marks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn result(&self, worked: Vec<Worked>, connect_ns: u64, server_version: String) -> (RunResult, End) {
        let (plan, marks) = (self.plan, *self.marks());
        let io_threads = worked.len();
        let (mut totals, mut end, mut io) = (Totals::default(), End::Finished, "");
        let (mut warmup_queries, mut warmup_ns, mut note) = (0, 0, None);
        let (mut threads, mut before, mut after) = (Vec::new(), NetworkState::default(), NetworkState::default());
        for thread in worked {
            totals.add(thread.totals);
            // A cause says more than that a thread was stopped.
            if end == End::Finished || matches!(thread.end, End::Aborted(_)) {
                end = thread.end;
            }
            threads.push(thread.scheduled);
            before.add(thread.seen.0);
            after.add(thread.seen.1);
            warmup_queries += thread.warmup_queries;
            warmup_ns = warmup_ns.max(thread.warmup_ns);
            if note.is_none() {
                // One thread without io_uring is reported, whatever the others have.
                (io, note) = (thread.io, thread.note);
            }
        }
        if let Some(error) = totals.sink_error.take() {
            end = End::Aborted(format!("cannot write the series, the histogram log or the report: {error}"));
        }
        let names = self.workload.phases().iter().zip(&totals.spans);
        let result = RunResult {
            plan: Plan { engine: plan.engine.as_deref().map(shown), ..plan.clone() },
            load: self.workload.load().to_owned(),
            kinds: Arc::clone(&self.kinds),
            warmup_queries,
            warmup_steady: matches!(self.options.warmup, Warmup::Steady(_)).then(|| self.watch.was_steady()),
            gauges: totals.gauges,
            lateness: totals.lateness,
            behind: totals.behind,
            particulars: self.workload.particulars(),
            errors: totals.errors.list(&self.kinds),
            aborted: match &end {
                End::Finished => None,
                End::Aborted(cause) => Some(cause.clone()),
                End::Interrupted => Some("interrupted".into()),
            },
            clock: self.clock(marks, connect_ns, warmup_ns),
            cpu: marks.cpu_end.since(marks.cpu_start),
            threads,
            network: network::between(&before, &after),
            phases: names
                .filter_map(|(name, span)| {
                    span.map(|Span { start_ns, end_ns }| Phase { name: (*name).into(), start_ns, end_ns })
                })
                .collect(),
            tally: totals.tally,
            io,
            io_note: note,
            io_threads,
            server_version,
        };
        (result, end)
    }
}

/// Makes an error of a panic, which has said on the terminal what it was.
fn unless_panicked<T>(work: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
    outcome.unwrap_or_else(|_| Err(Error::Failed("the load generator failed: this is a bug in it".into())))
}

/// Between two looks for the file.
const LOOK_AGAIN: Duration = Duration::from_micros(500);

/// How long the moment is waited for: others may still warm up.
const WAIT_MOST_NS: u64 = 3_600_000_000_000;

/// So long before the start a thread stops sleeping and spins.
const SPIN_NS: u64 = 2_000_000;

/// Says that all is ready, and waits for the moment that the file names: nanoseconds of `CLOCK_MONOTONIC`, and a line's
/// end.
///
/// The program that starts all load processes names the moment on this host's own clock. Every thread spins until then,
/// as a sleep ends some tens of microseconds late.
///
/// # Errors
/// The moment is over or is none, or did not come.
fn read_start_time(path: &Path, stop: &Stop) -> Result<u64, Error> {
    let ready_ns = now_ns();
    print(&format!("ready {ready_ns}\n"));
    loop {
        match fs::read_to_string(path) {
            // Without the end of the line it is still being written.
            Ok(text) if text.ends_with('\n') => return moment(path, text.trim(), now_ns()),
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(Error::File(path.to_owned(), error)),
            _ => {}
        }
        if stop.is_requested() {
            return Err(Error::Interrupted);
        }
        if now_ns() - ready_ns > WAIT_MOST_NS {
            let hours = WAIT_MOST_NS / 3_600_000_000_000;
            return Err(Error::Failed(format!("{}: no start appeared in it for {hours} h", path.display())));
        }
        sleep(LOOK_AGAIN);
    }
}

fn moment(path: &Path, text: &str, now: u64) -> Result<u64, Error> {
    let path = path.display();
    let start: u64 = text.parse().map_err(|_| {
        Error::Usage(format!("{path}: {text:?} is not a time; it must be nanoseconds of this host's CLOCK_MONOTONIC"))
    })?;
    match start.checked_sub(now) {
        None => Err(Error::Failed(format!(
            "the start is over: it was {:.3} ms ago when {path} was read",
            (now - start) as f64 / 1e6
        ))),
        Some(left) if left > WAIT_MOST_NS => Err(Error::Usage(format!(
            "{path}: the start is {} s from now; is it of another host's clock?",
            left / 1_000_000_000
        ))),
        Some(_) => Ok(start),
    }
}

/// Comes back at `start_ns`, or as soon after it as the kernel lets this thread; gives the time.
pub fn wait_until(start_ns: u64) -> u64 {
    loop {
        let now = now_ns();
        match start_ns.checked_sub(now) {
            None | Some(0) => return now,
            Some(left) if left > SPIN_NS => sleep(Duration::from_nanos(left - SPIN_NS)),
            Some(_) => std::hint::spin_loop(),
        }
    }
}

/// What the calling thread has had since it was made.
fn thread_time() -> ThreadTime {
    let text = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    parse_schedstat(&text).unwrap_or_else(|| {
        let used = getrusage(UsageWho::RUSAGE_THREAD)
            .map_or(0, |usage| usage.user_time().num_microseconds() + usage.system_time().num_microseconds());
        ThreadTime { cpu_seconds: used as f64 / 1e6, wait_seconds: None }
    })
}

/// Nanoseconds run, nanoseconds waited, and how often it was given a processor.
fn parse_schedstat(text: &str) -> Option<ThreadTime> {
    let mut numbers = text.split_whitespace().map(|word| word.parse::<u64>().ok());
    let (ran, waited) = (numbers.next()??, numbers.next()??);
    // A kernel without these statistics shows zeros.
    (ran > 0).then(|| ThreadTime { cpu_seconds: ran as f64 / 1e9, wait_seconds: Some(waited as f64 / 1e9) })
}

/// What came between two moments of a thread.
pub fn between(earlier: ThreadTime, later: ThreadTime) -> ThreadTime {
    let waited = later.wait_seconds.zip(earlier.wait_seconds).map(|(now, then)| (now - then).max(0.0));
    ThreadTime { cpu_seconds: (later.cpu_seconds - earlier.cpu_seconds).max(0.0), wait_seconds: waited }
}

/// Length of an interval.
pub const INTERVAL: Duration = Duration::from_millis(500);

/// Fewest intervals that a line is fitted to; also the shortest warm-up, which `run_options` knows.
const LEAST: usize = 12;

/// Largest drift over the intervals looked at, of their mean: of the line, and of the far end of its interval.
const DRIFT_MAX: f64 = 0.03;
const DRIFT_END_MAX: f64 = 0.1;

/// Whether the rate no longer drifts, after intervals of one length with so many events.
pub fn is_steady(events: &[u64]) -> bool {
    if events.len() < LEAST {
        return false;
    }
    let looked_at = &events[events.len() - LEAST.max(events.len() / 2)..];
    let n = looked_at.len() as f64;
    let mean = looked_at.iter().sum::<u64>() as f64 / n;
    if mean <= 0.0 {
        return false; // a server that answers nothing is not steady
    }
    let centred = || looked_at.iter().enumerate().map(|(i, count)| (i as f64 - (n - 1.0) / 2.0, *count as f64 - mean));
    let squares = n * (n * n - 1.0) / 12.0;
    let slope = centred().map(|(x, y)| x * y).sum::<f64>() / squares;
    let residual = centred().map(|(x, y)| (y - slope * x).powi(2)).sum::<f64>() / (n - 2.0);
    let uncertainty = student_975(n - 2.0) * (residual / squares).sqrt();
    let drift = |slope: f64| slope * (n - 1.0) / mean;
    drift(slope.abs()) <= DRIFT_MAX && drift(slope.abs() + uncertainty) <= DRIFT_END_MAX
}

/// The 97.5 % point of Student's t, to .01 from 10 degrees of freedom on (Abramowitz and Stegun 26.7.5, two terms).
fn student_975(freedom: f64) -> f64 {
    1.95996 + 2.37227 / freedom + 2.8225 / (freedom * freedom)
}

/// Adds up what all threads counted, and ends the warm-up when it was long enough.
#[derive(Debug)]
pub struct Watch<'a> {
    warming: &'a Shared,
    threads: usize,
    /// Events of each interval, and how many threads told of it.
    counted: Mutex<(Vec<(u64, usize)>, bool)>,
}

impl<'a> Watch<'a> {
    /// Of a warm-up by so many threads.
    pub fn new(warming: &'a Shared, threads: usize) -> Self {
        Self { warming, threads, counted: Mutex::default() }
    }

    /// Whether the rate was steady at some moment.
    pub fn was_steady(&self) -> bool {
        self.counted.lock().unwrap_or_else(PoisonError::into_inner).1
    }

    fn count(&self, number: usize, events: u64) {
        let mut counted = self.counted.lock().unwrap_or_else(PoisonError::into_inner);
        let (intervals, steady) = &mut *counted;
        if intervals.len() <= number {
            intervals.resize(number + 1, (0, 0));
        }
        intervals[number].0 += events;
        intervals[number].1 += 1;
        if intervals[number].1 < self.threads || *steady {
            return;
        }
        let whole: Vec<u64> =
            intervals.iter().take_while(|(_, threads)| *threads == self.threads).map(|(events, _)| *events).collect();
        *steady = is_steady(&whole);
        if *steady {
            self.warming.end();
        }
    }
}

/// One thread's part of a [`Watch`].
#[derive(Debug)]
pub struct Watcher<'a>(pub &'a Watch<'a>);

impl IntervalSink for Watcher<'_> {
    fn interval(&mut self, interval: &Interval) -> io::Result<()> {
        // The one that is open at the end is shorter.
        if u128::from(interval.end_ns - interval.start_ns) >= INTERVAL.as_nanos() {
            self.0.count(interval.number as usize, interval.tally.events.count());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use dbdyno_common::random::Random;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_moment_is_to_come() {
        let read = |text, now| moment(Path::new("start"), text, now).map_err(|error| error.to_string());
        assert_eq!(read("100", 99), Ok(100));
        assert!(read("1000000", 3_500_000).unwrap_err().contains("2.500 ms ago"));
        assert!(read("soon", 0).unwrap_err().contains("is not a time"));
        assert!(read(&(2 * WAIT_MOST_NS).to_string(), 0).unwrap_err().contains("another host's clock"));
    }

    #[test]
    fn no_thread_is_early() {
        let start = now_ns() + 3_000_000;
        assert!(wait_until(start) >= start);
        assert!(wait_until(1) > 1);
    }

    #[test]
    fn schedstat_is_read() {
        let read = parse_schedstat("2000000000 500000000 7\n");
        assert_eq!(read, Some(ThreadTime { cpu_seconds: 2.0, wait_seconds: Some(0.5) }));
        for none in ["", "0 0 0", "ran waited"] {
            assert_eq!(parse_schedstat(none), None);
        }
    }

    #[test]
    fn a_thread_that_spins_has_used_cpu() {
        let before = thread_time();
        let until = now_ns() + 20_000_000;
        while now_ns() < until {}
        let spent = between(before, thread_time());
        // Others may have the processor for part of the time, which is then waited for.
        assert!(spent.cpu_seconds > 0.001 && spent.cpu_seconds < 0.1, "{spent:?}");
    }

    /// After how many intervals a warm-up ends whose rate is `rate(i)`, with noise of `noise` to either side; `None`:
    /// later.
    fn ends_after(most: usize, noise: f64, seed: u64, rate: impl Fn(usize) -> f64) -> Option<usize> {
        let mut random = Random::new(seed);
        let mut events = Vec::new();
        (1..=most).find(|i| {
            let either = 2.0 * random.unit() - 1.0;
            events.push((rate(*i) * (1.0 + noise * either)).round() as u64);
            is_steady(&events)
        })
    }

    #[test]
    fn student_s_t_is_that_of_the_tables() {
        for (freedom, t) in [(10.0, 2.228), (12.0, 2.179), (20.0, 2.086), (60.0, 2.000), (1e9, 1.960)] {
            assert!((student_975(freedom) - t).abs() < 0.01, "{freedom}: {}", student_975(freedom));
        }
    }

    #[test]
    fn the_shortest_warm_up_is_that_of_the_flags() {
        assert_eq!(INTERVAL * LEAST as u32, crate::run_options::STEADY_SHORTEST);
    }

    #[test]
    fn a_rate_that_does_not_change_is_steady_at_once() {
        assert_eq!(ends_after(100, 0.0, 1, |_| 500.0), Some(LEAST));
    }

    #[test]
    fn a_server_that_answers_nothing_is_not_steady() {
        assert_eq!(ends_after(1000, 0.0, 1, |_| 0.0), None);
    }

    #[test]
    fn a_warm_up_ends_when_the_last_thread_has_told_of_steady_intervals() {
        let warming = Shared::new(None);
        let watch = Watch::new(&warming, 2);
        for number in 0..LEAST {
            watch.count(number, 50);
        }
        assert!(!watch.was_steady());
        for number in 0..LEAST {
            assert!(!warming.is_ended());
            watch.count(number, 150);
        }
        assert!(watch.was_steady() && warming.is_ended());
    }

    #[test]
    fn two_threads_that_drift_against_each_other_are_steady_together() {
        let warming = Shared::new(None);
        let watch = Watch::new(&warming, 2);
        for number in 0..LEAST {
            watch.count(number, 100 * number as u64);
            watch.count(number, 100 * (LEAST - number) as u64);
        }
        assert!(watch.was_steady());
    }

    proptest! {
        #[test]
        fn a_rate_that_only_fluctuates_is_steady_soon(seed: u64, rate in 200.0..1e6, noise in 0.0..0.05) {
            // Uniform, so the standard deviation is .58 of the noise.
            let ended = ends_after(60, noise, seed, |_| rate);
            prop_assert!(ended.is_some(), "not within 30 s");
        }

        #[test]
        fn a_ramp_is_not_steady_before_it_flattens(
            seed: u64, start in 0.05..0.5, top in 12usize..60, noise in 0.0..0.03, falls: bool,
        ) {
            let ended = ends_after(4 * top, noise, seed, |i| {
                let part = (i as f64 / top as f64).min(1.0);
                1e4 * if falls { 1.0 - (1.0 - start) * part } else { start + (1.0 - start) * part }
            });
            prop_assert!(ended.is_none_or(|i| i >= top), "{ended:?} of {top}");
        }

        #[test]
        fn no_series_is_steady_before_the_shortest_warm_up(events in prop::collection::vec(0u64..1000, 0..LEAST)) {
            prop_assert!(!is_steady(&events));
        }

        #[test]
        fn a_rate_that_nears_its_end_slowly_is_within_five_percent_of_it(seed: u64, slow in 12.0..100.0_f64, start in 0.1..0.5_f64) {
            let rate = |i: usize| 1e4 * (1.0 - (1.0 - start) * f64::exp(-(i as f64) / slow));
            let ended = ends_after(20 * slow as usize, 0.01, seed, rate);
            prop_assert!(ended.is_some_and(|i| rate(i) > 0.95e4), "{ended:?} of {slow}");
        }
    }
}
