//! What the kernel's block tracing tells, be it by blktrace, by blkparse or by tracefs: events, of which requests are made.

use std::collections::{BTreeSet, VecDeque};

use super::record::{Findings, Record};
use crate::queue::Direction;

/// Which of a request's moments is its beginning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Begin {
    /// As a process asked for it (Q): for what another scheduler would make of it.
    #[default]
    Queued,
    /// As it went to the drive (D): for what another drive would make of it. Merges are done, and the scheduler's order.
    Issued,
}

impl Begin {
    /// The moments that a request may begin with, the one that is meant first, then those next to it. A trace of ends alone
    /// has requests as they ended.
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

    /// Settles those within the sectors of `end`: a request may carry many bios. A flush without data is the oldest one.
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
