//! One measured run: connect, warm up, release all clients, count; all at one moment with other processes, which may be on other
//! hosts. Beside it stands what the kernel gave each thread: CPU time, and the time that it waited for a processor.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::{Arc, Barrier, Mutex, PoisonError};
use std::thread::{self, sleep};
use std::time::Duration;

use dbdyno_common::results::{LoadClock, Phase, ThreadTime};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;

use crate::clock::{Cpu, now_ns};
use crate::drive::dial::Dialer;
use crate::drive::{Connections, End, Limits, Shared};
use crate::endpoint::Endpoint;
use crate::error::Error;
use crate::measure::{IntervalSink, Recorder, Span, Terms, Totals};
use crate::network::{self, NetworkState};
use crate::output::print;
use crate::output::result::RunResult;
use crate::output::sinks::{IntervalSender, relay};
use crate::protocol::session::Connection;
use crate::run_options::{Plan, RunOptions, Warmup};
use crate::statements::Kind;
use crate::steady::{self, Watch, Watcher};
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
            let seen = connections.seen();
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
        let (io, note, seen) = (connections.io(), connections.note.take(), (before, connections.seen()));
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
        let terms = self.terms(if until_steady { steady::INTERVAL } else { Duration::MAX });
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
        for one in worked {
            totals.add(one.totals);
            // A cause says more than that a thread was stopped.
            if end == End::Finished || matches!(one.end, End::Aborted(_)) {
                end = one.end;
            }
            threads.push(one.scheduled);
            before.add(one.seen.0);
            after.add(one.seen.1);
            warmup_queries += one.warmup_queries;
            warmup_ns = warmup_ns.max(one.warmup_ns);
            if note.is_none() {
                // One thread without io_uring is reported, whatever the others have.
                (io, note) = (one.io, one.note);
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

/// Says that all is ready, and waits for the moment that the file names: nanoseconds of `CLOCK_MONOTONIC`, and a line's end.
///
/// The program that starts all load processes names the moment on this host's own clock. Every thread spins until then, as
/// a sleep ends some tens of microseconds late.
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
pub fn thread_time() -> ThreadTime {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::now_ns;

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
}
