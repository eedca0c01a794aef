//! One measured run: connect, warm up, release all clients, count.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::clock::{Cpu, now_ns};
use crate::drive::{Clients, End, Limits};
use crate::error::Error;
use crate::measure::{IntervalSink, Operation, Recorder};
use crate::output::result::{Clock, RunResult};
use crate::protocol::session::Session;
use crate::random::Random;
use crate::stop::Stop;

use super::list::{PerClient, Walk};
use super::options::{Bound, Options, Source};
use super::sql::Statement;

/// Threads that log clients in; they end before anything is measured.
const LOGIN_THREADS: usize = 8;

/// What tells this run from the others of an invocation.
pub struct Which<'a> {
    /// From 0 over all.
    pub number: usize,
    /// From 1 for the same engine and number of clients.
    pub iteration: u32,
    /// Connections.
    pub clients: usize,
    /// As asked for.
    pub engine_asked: Option<&'a str>,
    /// As found.
    pub engine: Option<String>,
}

/// The list that all clients walk.
pub fn statements(options: &Options) -> Vec<Statement> {
    match &options.source {
        Source::Generated { load, shape, unique_queries, .. } => {
            // Other literals than the initial rows have.
            let mut random = Random::new(options.seed ^ u64::MAX);
            shape.statements(*load, *unique_queries, &mut random)
        }
        Source::Given { query, .. } => query
            .iter()
            .map(|text| Statement { operation: Operation::of(text), text: text.clone(), keyed: false })
            .collect(),
    }
}

/// Runs the load once.
///
/// # Errors
/// Only what happens before anything is measured; later trouble is in the result.
pub fn run(
    options: &Options,
    which: Which<'_>,
    keys: &Arc<[String]>,
    sink: Option<&mut dyn IntervalSink>,
    stop: &Stop,
) -> Result<(RunResult, End), Error> {
    let connect_start_ns = now_ns();
    let sessions = log_in_all(options, which.clients, stop)?;
    let server_version = sessions.first().map_or_else(String::new, |session| session.server_version().to_owned());
    let mut clients = Clients::new(sessions, options.endpoint.place())?;
    let connect_ns = now_ns() - connect_start_ns;

    let list = statements(options);
    let (per_client, queries_dropped) = options.per_client(which.clients, list.len());
    // The warm-up draws other keys than the measured run, which would otherwise read what was just cached.
    let warm_walk = |per_client| Walk::new(&list, Arc::clone(keys), which.clients, per_client, !options.seed);

    let warmup_start_ns = now_ns();
    let (warmup_queries, mut end) = warm_up(options, &mut clients, &warm_walk, stop);
    let warmup_ns = if options.warmup.is_zero() { 0 } else { now_ns() - warmup_start_ns };

    let mut recorder = Recorder::new(which.number, options.interval.as_nanos() as u64, sink);
    let cpu_start = Cpu::spent();
    let measure_start_ns = now_ns();
    recorder.start(measure_start_ns);
    if end == End::Finished {
        let deadline_ns = match options.bound {
            Bound::Time(duration) => Some(measure_start_ns + duration.as_nanos() as u64),
            _ => None,
        };
        let limits = limits(options, deadline_ns);
        let mut walk = Walk::new(&list, Arc::clone(keys), which.clients, per_client, options.seed);
        end = clients.drive(&mut walk, &mut recorder, limits, stop);
    }
    let measure_end_ns = now_ns();
    let cpu = Cpu::spent().since(cpu_start);
    clients.quit();
    recorder.finish(measure_end_ns);
    let (operations, errors, sink_error) = recorder.into_totals();
    if let Some(error) = sink_error {
        end = End::Aborted(format!("cannot write the series or the histogram log: {error}"));
    }
    let result = RunResult {
        kind: "slap",
        load: options.load_name().to_owned(),
        engine: which.engine,
        engine_asked: which.engine_asked.map(str::to_owned),
        iteration: which.iteration,
        clients: which.clients,
        queries_planned: per_client.queries.map(|each| each * which.clients as u64),
        queries_dropped,
        warmup_queries,
        errors: errors.list(),
        aborted: match &end {
            End::Finished => None,
            End::Aborted(cause) => Some(cause.clone()),
            End::Interrupted => Some("interrupted".into()),
        },
        clock: Clock { source: "CLOCK_MONOTONIC", measure_start_ns, measure_end_ns, connect_ns, warmup_ns },
        cpu,
        operations,
        server_version,
    };
    Ok((result, end))
}

fn limits(options: &Options, deadline_ns: Option<u64>) -> Limits {
    Limits { deadline_ns, errors_max: options.errors_max, stall_ns: options.endpoint.stall_timeout.as_nanos() as u64 }
}

/// The same load for a while, uncounted; all replies are in when it returns.
fn warm_up(options: &Options, clients: &mut Clients, walk: &impl Fn(PerClient) -> Walk, stop: &Stop) -> (u64, End) {
    if options.warmup.is_zero() {
        return (0, End::Finished);
    }
    let mut recorder = Recorder::new(0, u64::MAX / 2, None);
    recorder.start(now_ns());
    let deadline_ns = now_ns() + options.warmup.as_nanos() as u64;
    let endless = PerClient { queries: None, commit_every: options.commit_every };
    let limits = limits(options, Some(deadline_ns));
    let end = clients.drive(&mut walk(endless), &mut recorder, limits, stop);
    recorder.finish(now_ns());
    let (operations, _, _) = recorder.into_totals();
    let counted = Operation::ALL.iter().zip(&operations);
    let queries = counted.filter(|(operation, _)| operation.is_query()).map(|(_, latencies)| latencies.count()).sum();
    let end = match end {
        End::Aborted(cause) => End::Aborted(format!("in the warm-up: {cause}")),
        end => end,
    };
    (queries, end)
}

/// Connects and logs in all clients, several at a time.
fn log_in_all(options: &Options, clients: usize, stop: &Stop) -> Result<Vec<Session>, Error> {
    allow_files(clients)?;
    let taken = AtomicUsize::new(0);
    let work = || {
        let mut sessions = Vec::new();
        while taken.fetch_add(1, Ordering::Relaxed) < clients {
            match log_in(options, stop) {
                Ok(session) => sessions.push(session),
                Err(error) => {
                    taken.store(clients, Ordering::Relaxed);
                    return Err(error);
                }
            }
        }
        Ok(sessions)
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..LOGIN_THREADS.min(clients)).map(|_| scope.spawn(work)).collect();
        let mut sessions = Vec::with_capacity(clients);
        for thread in threads {
            match thread.join() {
                Ok(some) => sessions.extend(some?),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        Ok(sessions)
    })
}

fn log_in(options: &Options, stop: &Stop) -> Result<Session, Error> {
    let mut session = Session::connect(&options.endpoint, Some(&options.schema), stop)?;
    if options.commit_every.is_some() {
        session.execute("SET AUTOCOMMIT=0")?;
    }
    Ok(session)
}

/// Raises the limit of open files to what the clients need.
fn allow_files(clients: usize) -> Result<(), Error> {
    const OTHER_FILES: u64 = 64;
    let needed = clients as u64 + OTHER_FILES;
    let limit = getrlimit(Resource::Nofile);
    let enough = |limit: Option<u64>| limit.is_none_or(|limit| limit >= needed);
    if enough(limit.current) {
        return Ok(());
    }
    let raised = Rlimit { current: Some(needed), maximum: limit.maximum };
    if enough(limit.maximum) && setrlimit(Resource::Nofile, raised).is_ok() {
        return Ok(());
    }
    Err(Error::Failed(format!(
        "{clients} clients need {needed} open files, this process may have {}: raise ulimit -n",
        limit.maximum.unwrap_or(0)
    )))
}
