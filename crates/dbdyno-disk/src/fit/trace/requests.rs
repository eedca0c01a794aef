//! The requests of a trace that say how long they took, in order, with how many were outstanding.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;

use dbdyno_blk::queue::Direction;
use dbdyno_blk::trace::{Ask, Begin, Format, Record, Trace};
use dbdyno_device::Kind;

use crate::error::DiskError;

/// More are not looked at.
const REQUESTS_MAX: usize = 2_000_000;
/// Fewer show nothing.
const REQUESTS_MIN: usize = 500;
const SECTOR_BYTES: u64 = 512;

/// A request and its end; times in ns from the beginning of the trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    pub at_ns: u64,
    pub done_ns: u64,
    pub kind: Kind,
    pub offset_bytes: u64,
    pub bytes: u64,
    pub fua: bool,
    /// How many were outstanding once it was sent, itself included.
    pub depth: u32,
    /// None was outstanding when it was sent, and none was sent until it was done.
    pub alone: bool,
}

impl Request {
    pub fn latency_ns(&self) -> f64 {
        (self.done_ns - self.at_ns) as f64
    }

    pub fn end_bytes(&self) -> u64 {
        self.offset_bytes + self.bytes
    }

    /// A write that the drive may keep in its cache.
    pub fn is_plain_write(&self) -> bool {
        self.kind == Kind::Write && !self.fua
    }
}

/// What is looked at of a trace.
#[derive(Debug)]
pub struct Requests {
    /// In the order in which they were sent.
    pub all: Vec<Request>,
    /// First byte behind all of them.
    pub end_bytes: u64,
    /// What the drive file says of the trace: which device, and what was left out.
    pub notes: Vec<String>,
}

/// Reads a trace of one file, or of blktrace's one for each processor.
pub fn read(paths: &[PathBuf], format: Option<Format>, size_bytes: Option<u64>) -> Result<Requests, DiskError> {
    let name = paths.first().map_or_else(String::new, |path| path.display().to_string());
    let wrong = |what: String| DiskError::Usage(format!("{name}: {what}"));
    let mut files: Vec<Box<dyn BufRead>> = Vec::new();
    for path in paths {
        let file = File::open(path).map_err(|source| DiskError::Measure { path: path.clone(), source })?;
        files.push(Box::new(BufReader::with_capacity(1 << 18, file)));
    }
    let device_sectors = size_bytes.map(|bytes| bytes / SECTOR_BYTES);
    // The drive's own time begins when a request is issued to it.
    let mut trace = Trace::open(files, Ask { format, begin: Begin::Issued, device_sectors, ..Ask::default() })
        .map_err(|error| wrong(error.to_string()))?;
    let (mut records, mut without_end) = (Vec::new(), 0_u64);
    for record in trace.by_ref() {
        let record = record.map_err(|error| wrong(error.to_string()))?;
        if record.response_ns.is_none() {
            without_end += 1;
        } else if records.len() < REQUESTS_MAX {
            records.push(record);
        } else {
            break;
        }
    }
    let findings = trace.findings();
    if records.len() < REQUESTS_MIN {
        let more = if without_end > 0 { format!("; {without_end} others don't") } else { String::new() };
        return Err(wrong(format!(
            "{} requests say how long they took{more}; {REQUESTS_MIN} are needed",
            records.len()
        )));
    }
    let mut notes = Vec::new();
    if records.len() == REQUESTS_MAX {
        notes.push(format!("Of the trace the first {REQUESTS_MAX} requests."));
    }
    let device = most_used(&records);
    let others = records.iter().filter(|record| record.device != device).count();
    if others > 0 {
        let named = findings.devices.get(usize::from(device)).map_or("", String::as_str);
        notes.push(format!("Device {named} of the trace; {others} requests of others were left out."));
        records.retain(|record| record.device == device);
    }
    if findings.beyond_device > 0 {
        notes.push(format!("{} requests beyond the size that was given were left out.", findings.beyond_device));
    }
    Ok(of_records(&records, notes))
}

fn most_used(records: &[Record]) -> u16 {
    let mut counts = std::collections::BTreeMap::<u16, usize>::new();
    for record in records {
        *counts.entry(record.device).or_default() += 1;
    }
    counts.into_iter().max_by_key(|(device, count)| (*count, Reverse(*device))).map_or(0, |(device, _)| device)
}

fn of_records(records: &[Record], notes: Vec<String>) -> Requests {
    let first_ns = records.iter().map(|record| record.at_ns).min().unwrap_or(0);
    let mut all: Vec<Request> = records.iter().map(|record| of_record(record, first_ns)).collect();
    all.sort_by_key(|request| request.at_ns);
    count_outstanding(&mut all);
    let end_bytes = all.iter().map(Request::end_bytes).max().unwrap_or(0);
    Requests { all, end_bytes, notes }
}

fn of_record(record: &Record, first_ns: u64) -> Request {
    let kind = match (record.sectors, record.direction) {
        (0, _) => Kind::Flush,
        (_, Direction::Read) => Kind::Read,
        (_, Direction::Write) => Kind::Write,
    };
    let at_ns = record.at_ns - first_ns;
    Request {
        at_ns,
        done_ns: at_ns + record.response_ns.unwrap_or(0),
        kind,
        offset_bytes: record.start_sector * SECTOR_BYTES,
        bytes: u64::from(record.sectors) * SECTOR_BYTES,
        // A write with a flush before it is no single one either.
        fua: record.fua || record.flush,
        depth: 0,
        alone: false,
    }
}

fn count_outstanding(all: &mut [Request]) {
    let mut ends = BinaryHeap::new();
    for index in 0..all.len() {
        let at_ns = all[index].at_ns;
        while ends.peek().is_some_and(|Reverse(end_ns)| *end_ns <= at_ns) {
            ends.pop();
        }
        ends.push(Reverse(all[index].done_ns));
        let next_ns = all.get(index + 1).map_or(u64::MAX, |next| next.at_ns);
        let request = &mut all[index];
        request.depth = ends.len() as u32;
        request.alone = ends.len() == 1 && next_ns >= request.done_ns;
    }
}
