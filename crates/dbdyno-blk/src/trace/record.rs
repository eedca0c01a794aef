//! One request of a trace, whatever wrote it, and what was odd about the trace: it is reported, never guessed at.
//!
//! The kernel's block tracing, be it by blktrace, by blkparse or by tracefs, tells events; requests are made of them
//! here.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io::{self, Read};

use serde::Serialize;

use crate::queue::Direction;

/// Reads a record of fixed length; returns how many bytes there were, fewer than that at the end of a file.
pub fn read_whole(from: &mut (impl Read + ?Sized), record: &mut [u8]) -> io::Result<usize> {
    let mut read = 0;
    while read < record.len() {
        match from.read(&mut record[read..])? {
            0 => break,
            more => read += more,
        }
    }
    Ok(read)
}

/// A request as its format tells of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record {
    /// When it was asked for, nanoseconds since whatever the trace counts from.
    pub at_ns: u64,
    /// How long it took, where the trace says so.
    pub response_ns: Option<u64>,
    /// Who asked, where the trace says so: a process, or a host's number.
    pub process: u32,
    /// Which of the trace's devices, from 0 in the order met; see [`Findings::devices`](super::Findings::devices).
    pub device: u16,
    /// Which way the data goes.
    pub direction: Direction,
    /// First sector of 512 bytes.
    pub start_sector: u64,
    /// Length in sectors; 0 for a bare flush.
    pub sectors: u32,
    /// A process waits for it, as far as the trace tells: every read, and writes marked so.
    pub sync: bool,
    /// The drive's cache must be written out before the data.
    pub flush: bool,
    /// The data must be on the medium when it is finished.
    pub fua: bool,
}

impl Record {
    /// A read or write; reads are synchronous.
    pub fn new(at_ns: u64, direction: Direction, start_sector: u64, sectors: u32) -> Self {
        Self {
            at_ns,
            response_ns: None,
            process: 0,
            device: 0,
            direction,
            start_sector,
            sectors,
            sync: direction == Direction::Read,
            flush: false,
            fua: false,
        }
    }
}

/// Kinds of things that are kept by name, such as devices; more than these are counted as one.
const NAMES_MOST: usize = 64;

/// Processes that are kept by name.
const PROCESSES_MOST: usize = 4096;

/// Damaged lines that are named.
const DAMAGED_NAMED: usize = 8;

/// A line or record that could not be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Damaged {
    /// Its number in the file, from 1.
    pub line: u64,
    /// What is wrong.
    pub why: String,
}

/// What a reader met besides requests.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Findings {
    /// Lines, or records of a binary format, that were read.
    pub lines: u64,
    /// Requests that were handed on.
    pub requests: u64,
    /// Lines that could not be read.
    pub damaged: u64,
    /// The first of them.
    pub first_damaged: Vec<Damaged>,
    /// Requests that stand before an earlier one's time.
    pub backwards: u64,
    /// By how much at most, nanoseconds.
    pub backwards_ns_max: u64,
    /// Requests that end beyond the device and were left out.
    pub beyond_device: u64,
    /// Requests that end beyond the device and were folded onto it.
    pub folded: u64,
    /// Lines of text before the first event.
    pub text_before: u64,
    /// How the trace was read where its format leaves that open, a sentence each.
    pub notes: Vec<String>,
    /// Requests whose end the trace lacks, in formats that tell of ends.
    pub without_end: u64,
    /// Actions, operations and kinds that are not known, and those that are no I/O, by name.
    pub passed_over: BTreeMap<String, u64>,
    /// Events that were lost, by what the trace itself says.
    pub lost_events: u64,
    /// It says so itself: the recording never came to its end.
    pub cut_off: bool,
    #[serde(skip)]
    /// Names of processes by number, where the trace has them; the first of each.
    pub processes: BTreeMap<u32, String>,
    /// Names of devices in the order met; [`Record::device`](super::Record::device) is a place here.
    pub devices: Vec<String>,
}

impl Findings {
    /// Counts a line that could not be read.
    pub(super) fn damage(&mut self, why: impl Into<String>) {
        self.damaged += 1;
        if self.first_damaged.len() < DAMAGED_NAMED {
            self.first_damaged.push(Damaged { line: self.lines, why: why.into() });
        }
    }

    /// Counts what is no request.
    pub(super) fn pass_over(&mut self, name: &str) {
        if let Some(count) = self.passed_over.get_mut(name) {
            *count += 1;
        } else {
            let kept = if self.passed_over.len() < NAMES_MOST { name } else { "others" };
            *self.passed_over.entry(kept.chars().take(32).collect()).or_default() += 1;
        }
    }

    /// Keeps the first name of a process.
    pub(super) fn name_process<'a>(&mut self, process: u32, name: impl FnOnce() -> Option<&'a str>) {
        if self.processes.len() >= PROCESSES_MOST || self.processes.contains_key(&process) {
            return;
        }
        if let Some(name) = name() {
            self.processes.insert(process, name.chars().take(32).collect());
        }
    }

    /// The number of a device; the last one's where there are more than can be told from each other.
    pub(super) fn device(&mut self, name: &str) -> u16 {
        let place = self.devices.iter().position(|known| known == name);
        let place = place.unwrap_or_else(|| {
            if self.devices.len() < NAMES_MOST {
                self.devices.push(name.chars().take(64).collect());
            }
            self.devices.len() - 1
        });
        place as u16
    }
}

/// Which of a request's moments is its beginning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Begin {
    /// As a process asked for it (Q): for what another scheduler would make of it.
    #[default]
    Queued,
    /// As it went to the drive (D): for what another drive would make of it. Merges are done, and the scheduler's
    /// order.
    Issued,
}

impl Begin {
    /// The moments that a request may begin with, the one that is meant first, then those next to it. A trace of ends
    /// alone has requests as they ended.
    pub fn moments(self) -> [Action; 4] {
        match self {
            Self::Queued => [Action::Queued, Action::Inserted, Action::Issued, Action::Completed],
            Self::Issued => [Action::Issued, Action::Inserted, Action::Queued, Action::Completed],
        }
    }
}

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    Queued,
    /// It came into the scheduler.
    Inserted,
    Issued,
    Requeued,
    Completed,
}

impl Action {
    /// What a request's beginning is called in a sentence.
    pub fn words(self) -> &'static str {
        match self {
            Self::Queued => "asked for (Q)",
            Self::Inserted => "given to the scheduler (I)",
            Self::Issued | Self::Requeued => "issued to the drive (D)",
            Self::Completed => "completed (C)",
        }
    }
}

/// One event; what is done to which sectors.
#[derive(Debug, Clone, Copy)]
pub struct BlockEvent {
    pub action: Action,
    pub what: Record,
}

/// Letters of blktrace's RWBS column. `None` where they are no read, write or flush.
pub fn with_letters(letters: &str, record: Record) -> Option<Record> {
    let (flush, rest) = match letters.strip_prefix('F') {
        Some(rest) => (true, rest),
        None => (false, letters),
    };
    let (direction, marks) = match rest.as_bytes().first() {
        Some(b'R') => (Direction::Read, &rest[1..]),
        Some(b'W') => (Direction::Write, &rest[1..]),
        _ if flush => (Direction::Write, rest),
        _ => return None,
    };
    let sync = direction == Direction::Read || flush || marks.contains('S');
    Some(Record { direction, flush, fua: marks.contains('F'), sync, ..record })
}

/// Requests whose ends are awaited; what began before all of these is without one.
const WAITING_MOST: usize = 1 << 16;

struct Waiting {
    record: Record,
    settled: bool,
    dropped: bool,
}

/// Finds for each beginning its end, and hands on requests in the order of their beginnings.
pub struct Pairing {
    begin: Action,
    waiting: VecDeque<Waiting>,
    first: u64,
    places: BTreeSet<(u16, u64, u64)>,
}

impl Pairing {
    /// Of requests that begin with this event.
    pub fn new(begin: Action) -> Self {
        Self { begin, waiting: VecDeque::new(), first: 0, places: BTreeSet::new() }
    }

    /// Takes an event.
    pub fn take(&mut self, event: &BlockEvent) {
        match event.action {
            Action::Completed if self.begin == Action::Completed => self.open_ended(event.what),
            Action::Completed => self.close(&event.what, |waiting, end| {
                waiting.record.response_ns = Some(end.at_ns.saturating_sub(waiting.record.at_ns));
            }),
            Action::Requeued if self.begin == Action::Issued => {
                self.close(&event.what, |waiting, _| waiting.dropped = true);
            }
            action if action == self.begin => self.open(event.what),
            _ => {}
        }
    }

    /// A request of which nothing but the end is known.
    fn open_ended(&mut self, record: Record) {
        self.waiting.push_back(Waiting { record, settled: true, dropped: false });
    }

    fn open(&mut self, record: Record) {
        let number = self.first + self.waiting.len() as u64;
        self.places.insert((record.device, record.start_sector, number));
        self.waiting.push_back(Waiting { record, settled: false, dropped: false });
    }

    /// Settles those within the sectors of `end`: a request may carry many bios. A flush without data is the oldest
    /// one.
    fn close(&mut self, end: &Record, settle: impl Fn(&mut Waiting, &Record)) {
        let last = end.start_sector + u64::from(end.sectors.max(1)) - 1;
        let range = (end.device, end.start_sector, 0)..=(end.device, last, u64::MAX);
        let within: Vec<_> = self.places.range(range).copied().collect();
        for place in within {
            let waiting = &mut self.waiting[(place.2 - self.first) as usize];
            let ours = &waiting.record;
            let fits = ours.direction == end.direction && (ours.sectors == 0) == (end.sectors == 0);
            if fits && ours.start_sector + u64::from(ours.sectors) <= last + 1 {
                settle(waiting, end);
                waiting.settled = true;
                self.places.remove(&place);
                if end.sectors == 0 {
                    break;
                }
            }
        }
    }

    /// The next request; `all` at the trace's end, when nothing more can settle one.
    pub fn next(&mut self, all: bool, findings: &mut Findings) -> Option<Record> {
        loop {
            let front = self.waiting.front()?;
            if !front.settled && !all && self.waiting.len() < WAITING_MOST {
                return None;
            }
            let completed = self.waiting.pop_front()?;
            if !completed.settled {
                self.places.remove(&(completed.record.device, completed.record.start_sector, self.first));
                findings.without_end += 1;
            }
            self.first += 1;
            if !completed.dropped {
                return Some(completed.record);
            }
        }
    }
}
