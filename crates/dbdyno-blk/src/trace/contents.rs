//! What is in a trace, read once to its end.

use std::collections::HashMap;
use std::io;

use dbdyno_common::histogram::{Exact, Summary};
use hdrhistogram::Histogram;
use serde::Serialize;

use super::format::Format;
use super::reader::Trace;
use super::record::{Findings, Record};
use crate::queue::Direction;

/// Processes that are told apart; requests of any beyond are counted in the sums alone.
const PROCESSES_MOST: usize = 100_000;
/// Processes that are named, those with most requests first.
const PROCESSES_NAMED: usize = 20;
/// Nanoseconds of the longest time that is told from longer ones: an hour.
const RESPONSE_NS_MOST: u64 = 3_600_000_000_000;

/// Requests of one kind.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Kind {
    /// How many.
    pub requests: u64,
    /// What they move together.
    pub bytes: u64,
    /// Those that a process waits for, as far as the trace tells.
    pub sync: u64,
    /// Those that begin where the one before of this kind ended.
    pub sequential: u64,
    /// How many have which size in bytes, from small to large.
    pub sizes: Vec<(u64, u64)>,
}

/// A process and what it asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Process {
    /// Its number.
    pub process: u32,
    /// Its name; empty where the trace has none.
    pub name: String,
    /// Its requests.
    pub requests: u64,
    /// What they move together.
    pub bytes: u64,
}

/// Sums over a trace.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Contents {
    /// By which format it was read; empty of an empty file.
    pub format: &'static str,
    /// Time from the first request to the last, seconds.
    pub span_s: f64,
    /// First sector behind all of them.
    pub end_sector: u64,
    /// Reads.
    pub reads: Kind,
    /// Writes.
    pub writes: Kind,
    /// Flushes that move no data; those with data are writes.
    pub flushes: u64,
    /// Writes that must be on the medium at their end, or before which the cache is written out.
    pub forced_writes: u64,
    /// Mean time of a request, milliseconds, of those whose end the trace has.
    pub response_ms_mean: Option<f64>,
    /// Its 99th percentile.
    pub response_ms_p99: Option<f64>,
    /// Mean number of requests that are outstanding, over its time (Little's law); none without ends.
    pub outstanding_mean: Option<f64>,
    /// Requests of each device by its name.
    pub devices: Vec<(String, u64)>,
    /// Processes that are told apart.
    pub processes_count: usize,
    /// Those with most requests.
    pub processes: Vec<Process>,
    /// What was odd.
    pub findings: Findings,
}

/// Sizes of requests that are told apart, of one kind; larger ones are rounded up to a power of two.
const SIZES_MOST: usize = 64;

#[derive(Default)]
struct Sums {
    kind: Kind,
    sizes: HashMap<u64, u64>,
    end_sector: Option<u64>,
}

impl Sums {
    fn take(&mut self, record: &Record) {
        let bytes = u64::from(record.sectors) * 512;
        self.kind.requests += 1;
        self.kind.bytes += bytes;
        self.kind.sync += u64::from(record.sync);
        self.kind.sequential += u64::from(self.end_sector == Some(record.start_sector));
        self.end_sector = Some(record.start_sector + u64::from(record.sectors));
        let known = self.sizes.len() < SIZES_MOST || self.sizes.contains_key(&bytes);
        *self.sizes.entry(if known { bytes } else { bytes.next_power_of_two() }).or_default() += 1;
    }

    fn end(self) -> Kind {
        let mut sizes: Vec<_> = self.sizes.into_iter().collect();
        sizes.sort_unstable();
        Kind { sizes, ..self.kind }
    }
}

impl Contents {
    /// Reads a trace to its end; `go_on` is asked every 65,536 requests.
    ///
    /// # Errors
    /// What reading met; [`io::ErrorKind::Interrupted`] where it was not to go on.
    pub fn of(mut trace: Trace, go_on: &mut dyn FnMut() -> bool) -> io::Result<Self> {
        let (mut reads, mut writes) = (Sums::default(), Sums::default());
        let (mut flushes, mut forced, mut end_sector) = (0, 0, 0);
        let (mut first_ns, mut last_ns, mut response_ns) = (u64::MAX, 0, 0_u128);
        let mut processes: HashMap<u32, (u64, u64)> = HashMap::new();
        let mut devices = Vec::new();
        // Its bounds are constants that it takes.
        let mut responses = Histogram::<u64>::new_with_max(RESPONSE_NS_MOST, 2).map_err(io::Error::other)?;
        let mut read = 0_u64;
        for record in trace.by_ref() {
            let record = record?;
            read += 1;
            if read.is_multiple_of(1 << 16) && !go_on() {
                return Err(io::ErrorKind::Interrupted.into());
            }
            (first_ns, last_ns) = (first_ns.min(record.at_ns), last_ns.max(record.at_ns));
            end_sector = end_sector.max(record.start_sector + u64::from(record.sectors));
            forced += u64::from(record.sectors > 0 && (record.flush || record.fua));
            match (record.sectors, record.direction) {
                (0, _) => flushes += 1,
                (_, Direction::Read) => reads.take(&record),
                (_, Direction::Write) => writes.take(&record),
            }
            if let Some(took_ns) = record.response_ns {
                response_ns += u128::from(took_ns);
                responses.saturating_record(took_ns);
            }
            let place = usize::from(record.device);
            devices.resize(devices.len().max(place + 1), 0);
            devices[place] += 1;
            if processes.len() < PROCESSES_MOST || processes.contains_key(&record.process) {
                let counts = processes.entry(record.process).or_default();
                *counts = (counts.0 + 1, counts.1 + u64::from(record.sectors) * 512);
            }
        }
        let span_ns = last_ns.saturating_sub(first_ns);
        let ended = responses.len();
        let mean = |of: u128| (ended > 0).then(|| of as f64 / ended as f64);
        let findings = trace.findings().clone();
        Ok(Self {
            format: trace.format().map_or("", Format::name),
            span_s: span_ns as f64 / 1e9,
            end_sector,
            reads: reads.end(),
            writes: writes.end(),
            flushes,
            forced_writes: forced,
            response_ms_mean: mean(response_ns).map(|ns| ns / 1e6),
            response_ms_p99: Summary::from_histogram(&responses, Exact::default()).in_ms().p99(),
            outstanding_mean: (ended > 0 && span_ns > 0).then(|| response_ns as f64 / span_ns as f64),
            devices: findings.devices.iter().cloned().zip(devices).collect(),
            processes_count: processes.len(),
            processes: most(processes, &findings),
            findings,
        })
    }
}

fn most(counted: HashMap<u32, (u64, u64)>, findings: &Findings) -> Vec<Process> {
    let name = |process| findings.processes.get(&process).cloned().unwrap_or_default();
    let mut processes: Vec<_> = counted
        .into_iter()
        .map(|(process, (requests, bytes))| Process { process, name: name(process), requests, bytes })
        .collect();
    processes.sort_unstable_by_key(|process| (std::cmp::Reverse(process.requests), process.process));
    processes.truncate(PROCESSES_NAMED);
    processes
}
