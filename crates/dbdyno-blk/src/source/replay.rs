//! A trace as load: each request at its recorded time (open), or when its process would have asked for it (closed).
//!
//! **Open**: a load that takes no notice of how fast it is served; right only while the drive keeps up, see
//! [`Replay::late_ns_max`]. **Closed**: what a process waited for in the trace it waits for here. A request that began
//! while none of its process was outstanding comes as long after that process's last completion as in the trace; any
//! other, and a write that nobody waited for, as long after its previous request. (Inferred from the trace alone, as
//! hfplayer does: Haghdoost et al., "On the accuracy and scalability of intensive I/O workload replay", FAST 2017.)
//!
//! Cannot: know of waits for locks, other processes or the network; they stay in the gaps.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};

use super::contract::{Source, Step};
use crate::queue::Bio;
use crate::trace::Record;

/// What becomes of recorded times.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Pace {
    /// They hold, divided by `speed`, which is above 0.
    Open {
        /// 2 for twice as fast.
        speed: f64,
    },
    /// Waits and gaps of each process hold.
    Closed,
}

/// Requests of a trace that are read ahead.
const AHEAD_MOST: usize = 1 << 16;

/// Processes that are kept apart; those beyond are taken for the last one.
const PROCESSES_MOST: usize = 100_000;

/// Sectors of a bio; a longer request of a trace is several, one behind the other.
const SECTORS_MOST: u32 = 2048;

/// When a request comes.
#[derive(Debug, Clone, Copy)]
enum When {
    At(u64),
    AfterRequest(u64),
    AfterCompletion(u64),
}

#[derive(Debug, Default)]
struct Process {
    planned: VecDeque<(When, Bio)>,
    /// Of those that its process waits for.
    outstanding: u32,
    last_request_ns: u64,
    last_completion_ns: u64,
    asleep: bool,
    /// It stands among those that are due.
    is_due: bool,
    /// In the trace: when it asked last, and until when something of it was outstanding; `None` where no end is known.
    recorded_ns: u64,
    recorded_end_ns: Option<u64>,
}

/// A trace as it is replayed.
#[derive(Debug)]
pub struct Replay<I> {
    trace: I,
    pace: Pace,
    begin_ns: Option<u64>,
    numbers: HashMap<u32, u32>,
    processes: Vec<Process>,
    ahead: usize,
    due: BinaryHeap<Reverse<(u64, u64, u32)>>,
    token: u64,
    last: Option<u32>,
    unplug: VecDeque<u32>,
    late_ns_max: u64,
    guessed: u64,
}

impl<I: Iterator<Item = Record>> Replay<I> {
    /// Replays from time 0 on, at which the first request comes.
    pub fn new(trace: I, pace: Pace) -> Self {
        let mut replay = Self {
            trace,
            pace,
            begin_ns: None,
            numbers: HashMap::new(),
            processes: Vec::new(),
            ahead: 0,
            due: BinaryHeap::new(),
            token: 0,
            last: None,
            unplug: VecDeque::new(),
            late_ns_max: 0,
            guessed: 0,
        };
        replay.read_ahead();
        replay
    }

    /// By how much a request came later than it should have, as its process still slept for the one before.
    pub fn late_ns_max(&self) -> u64 {
        self.late_ns_max
    }

    /// Requests of a closed replay of which the trace does not tell what they waited for: their gaps to the one before
    /// hold.
    pub fn without_wait(&self) -> u64 {
        self.guessed
    }

    fn read_ahead(&mut self) {
        while self.ahead < AHEAD_MOST {
            let Some(record) = self.trace.next() else { return };
            self.plan(&record);
        }
    }

    fn plan(&mut self, record: &Record) {
        let begin_ns = *self.begin_ns.get_or_insert(record.at_ns);
        let at_ns = record.at_ns.saturating_sub(begin_ns);
        let number = self.number(record.process);
        let when = self.when(number, at_ns, record);
        let mut start = record.start_sector;
        let mut left = record.sectors;
        let mut when = when;
        loop {
            let sectors = left.min(SECTORS_MOST);
            let bio = Bio {
                sync: record.sync,
                flush: record.flush,
                fua: record.fua,
                ..Bio::new(number, record.direction, start, sectors)
            };
            self.processes[number as usize].planned.push_back((when, bio));
            self.ahead += 1;
            (start, left) = (start + u64::from(sectors), left - sectors);
            if left == 0 {
                break;
            }
            if !matches!(when, When::At(_)) {
                when = When::AfterRequest(0);
            }
        }
        self.schedule(number);
    }

    fn number(&mut self, process: u32) -> u32 {
        let next = self.processes.len();
        if next >= PROCESSES_MOST && !self.numbers.contains_key(&process) {
            return next as u32 - 1;
        }
        *self.numbers.entry(process).or_insert_with(|| {
            self.processes.push(Process::default());
            next as u32
        })
    }

    fn when(&mut self, number: u32, at_ns: u64, record: &Record) -> When {
        let process = &mut self.processes[number as usize];
        let is_first = process.planned.is_empty() && process.recorded_end_ns.is_none() && process.recorded_ns == 0;
        let gap_ns = at_ns.saturating_sub(process.recorded_ns);
        let ended_ns = process.recorded_end_ns;
        process.recorded_ns = process.recorded_ns.max(at_ns);
        if record.sync {
            let end_ns = record.response_ns.map(|response_ns| at_ns.saturating_add(response_ns));
            self.guessed += u64::from(end_ns.is_none());
            // An end that is unknown hides whether anything is outstanding, until the next that is known.
            process.recorded_end_ns = end_ns.map(|end_ns| end_ns.max(ended_ns.unwrap_or(0)));
        }
        match (self.pace, ended_ns) {
            (Pace::Open { speed }, _) => When::At((at_ns as f64 / speed) as u64),
            (Pace::Closed, _) if is_first => When::At(at_ns),
            (Pace::Closed, Some(ended_ns)) if record.sync && ended_ns <= at_ns => {
                When::AfterCompletion(at_ns - ended_ns)
            }
            (Pace::Closed, _) => When::AfterRequest(gap_ns),
        }
    }

    /// Puts a process among those that are due, if it can be said when its next request comes.
    fn schedule(&mut self, number: u32) {
        let process = &mut self.processes[number as usize];
        let Some((when, _)) = process.planned.front().filter(|_| !process.asleep && !process.is_due) else { return };
        let at_ns = match when {
            When::At(at_ns) => *at_ns,
            When::AfterRequest(gap_ns) => process.last_request_ns.saturating_add(*gap_ns),
            When::AfterCompletion(_) if process.outstanding > 0 => return,
            When::AfterCompletion(gap_ns) => process.last_completion_ns.saturating_add(*gap_ns),
        };
        process.is_due = true;
        self.token += 1;
        self.due.push(Reverse((at_ns, self.token, number)));
    }

    fn ask(&mut self, now_ns: u64, intended_ns: u64, number: u32) -> Option<Step> {
        let process = &mut self.processes[number as usize];
        process.is_due = false;
        let (_, mut bio) = process.planned.pop_front()?;
        process.last_request_ns = now_ns;
        process.outstanding += u32::from(bio.sync);
        bio.intended_ns = intended_ns;
        bio.token = self.token;
        self.late_ns_max = self.late_ns_max.max(now_ns - intended_ns);
        self.ahead -= 1;
        self.last = Some(number);
        if !self.unplug.contains(&number) {
            self.unplug.push_back(number);
        }
        self.read_ahead();
        Some(Step::Submit(bio))
    }
}

impl<I: Iterator<Item = Record>> Source for Replay<I> {
    fn next_due(&self) -> Option<u64> {
        if self.last.is_some() || !self.unplug.is_empty() {
            return Some(0);
        }
        self.due.peek().map(|Reverse((at_ns, ..))| *at_ns)
    }

    fn step(&mut self, now_ns: u64) -> Option<Step> {
        if let Some(number) = self.last.take() {
            self.schedule(number);
        }
        if let Some(Reverse((at_ns, _, number))) =
            self.due.peek().copied().filter(|Reverse((at_ns, ..))| *at_ns <= now_ns)
        {
            self.due.pop();
            return self.ask(now_ns, at_ns, number);
        }
        self.unplug.pop_front().map(Step::Unplug)
    }

    fn asleep(&mut self, process: u32) {
        self.processes[process as usize].asleep = true;
    }

    fn awake(&mut self, process: u32) {
        self.processes[process as usize].asleep = false;
        if !self.unplug.contains(&process) {
            self.unplug.push_back(process);
        }
        self.schedule(process);
    }

    fn finished(&mut self, now_ns: u64, bio: &Bio) {
        if bio.sync {
            let process = &mut self.processes[bio.process as usize];
            process.outstanding -= 1;
            process.last_completion_ns = now_ns;
            self.schedule(bio.process);
        }
    }
}
