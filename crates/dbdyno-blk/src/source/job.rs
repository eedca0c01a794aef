//! Jobs in fio's words, past the page cache.
//!
//! Cannot: random maps (an offset may come twice), trims, checks of what was written.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use dbdyno_common::random::Random;
use thiserror::Error;

use super::contract::{Source, Step};
use super::walk::{Access, Sizes, Walk};
pub use super::walk::{Job, Rates};
use crate::queue::{Bio, Direction};

const SECTOR_BYTES: u64 = 512;

/// What is wrong with a job.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("job {job}: {field} = {given} {problem}")]
pub struct JobError {
    /// Which one, from 1.
    pub job: usize,
    /// Its field.
    pub field: &'static str,
    /// What was given.
    pub given: u64,
    /// What must hold.
    pub problem: &'static str,
}

/// Most processes of all jobs.
const PROCESSES_MOST: u64 = 100_000;

fn is_possible(bytes: u64) -> bool {
    bytes > 0 && bytes.is_multiple_of(SECTOR_BYTES) && bytes <= 1 << 20
}

impl Job {
    /// The largest size of all that it asks for.
    pub(super) fn largest_bytes(&self) -> u64 {
        let largest = |sizes: &Sizes| sizes.bounds().map_or(self.size_bytes, |(_, most)| most);
        largest(&self.read_sizes).max(largest(&self.write_sizes))
    }

    fn check(&self, job: usize) -> Result<(), JobError> {
        let (size, range) = (self.size_bytes, self.range_bytes);
        let all = self.read_sizes.0.iter().chain(&self.write_sizes.0);
        let wrong = all.map(|(bytes, _)| *bytes).find(|bytes| !is_possible(*bytes));
        let largest = self.largest_bytes();
        let checks = [
            (
                "processes",
                u64::from(self.processes),
                (1..=PROCESSES_MOST).contains(&self.processes.into()),
                "is not between 1 and 100000",
            ),
            ("read_percent", u64::from(self.read_percent), self.read_percent <= 100, "is more than 100"),
            ("size_bytes", size, size > 0 && size.is_multiple_of(SECTOR_BYTES), "is not a multiple of 512"),
            ("size_bytes", size, size <= 1 << 20, "is more than 1 MiB"),
            ("depth", u64::from(self.depth), (1..=1 << 20).contains(&self.depth), "is not between 1 and 1048576"),
            ("batch", u64::from(self.batch), self.batch > 0, "is less than 1"),
            (
                "offset_bytes",
                self.offset_bytes,
                self.offset_bytes.is_multiple_of(SECTOR_BYTES),
                "is not a multiple of 512",
            ),
            ("sizes", wrong.unwrap_or(0), wrong.is_none(), "is not a positive multiple of 512 up to 1 MiB"),
            ("random_percent", self.random_percent.into(), self.random_percent <= 100, "is more than 100"),
            ("run", self.run.into(), self.run > 0, "is less than 1"),
            ("think_every", self.think_every.into(), self.think_every > 0, "is less than 1"),
            ("gap_bytes", self.gap_bytes.unsigned_abs(), self.gap_bytes % 512 == 0, "is not a multiple of 512"),
            (
                "range_bytes",
                range,
                range / u64::from(self.processes.max(1)) >= size.max(largest),
                "has no room for a request of each process",
            ),
            ("priority", u64::from(self.priority), self.priority < 8, "is more than 7"),
        ];
        match checks.into_iter().find(|(_, _, holds, _)| !holds) {
            Some((field, given, _, problem)) => Err(JobError { job, field, given, problem }),
            None => Ok(()),
        }
    }
}

/// One process of a job.
#[derive(Debug)]
struct Process {
    job: u32,
    walk: Walk,
    /// What it asks for next, drawn and held back by its rate.
    waiting: Option<Access>,
    /// When the next is due by its rate: of reads, of writes.
    due_ns: [u64; 2],
    finished: u64,
    outstanding: u32,
    /// When those that it has not begun were meant to begin: all it may have outstanding at first, then one for each that
    /// finished.
    intended_ns: VecDeque<u64>,
    begun: u64,
    /// Of the call that it is in.
    in_call: u32,
    unflushed: u32,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// It is not in the list of those who take a step.
    Waiting,
    /// It is.
    Ready,
    /// It has no request.
    Asleep,
    /// It waits for its flush.
    Flushing,
    Ended,
}

/// Jobs that run beside each other.
#[derive(Debug)]
pub struct Jobs {
    offered: Vec<Job>,
    processes: Vec<Process>,
    ready: VecDeque<u32>,
    thinking: BinaryHeap<Reverse<(u64, u32)>>,
    /// Processes that have not begun, or that their rate holds back, and until when.
    waking: BinaryHeap<Reverse<(u64, u32)>>,
}

impl Jobs {
    /// Jobs that all begin at time 0. The seed decides offsets, and which are reads.
    ///
    /// # Errors
    /// [`JobError`] names the job, its field, what was given and what must hold.
    pub fn new(jobs: Vec<Job>, seed: u64) -> Result<Self, JobError> {
        let mut seeds = Random::new(seed);
        let mut processes = Vec::new();
        for (at, job) in jobs.iter().enumerate() {
            job.check(at + 1)?;
            let all = processes.len() as u64 + u64::from(job.processes);
            if all > PROCESSES_MOST {
                let problem = "makes more than 100000 with the jobs before";
                return Err(JobError { job: at + 1, field: "processes", given: job.processes.into(), problem });
            }
            processes.extend((0..job.processes).map(|rank| Process {
                job: at as u32,
                walk: Walk::new(rank.into(), Random::new(seeds.bits())),
                waiting: None,
                due_ns: [job.start_ns; 2],
                finished: 0,
                outstanding: 0,
                intended_ns: std::iter::repeat_n(job.start_ns, job.depth as usize).collect(),
                begun: 0,
                in_call: 0,
                unflushed: 0,
                state: if job.start_ns > 0 { State::Waiting } else { State::Ready },
            }));
        }
        let all = 0..processes.len() as u32;
        let (ready, later): (Vec<u32>, Vec<u32>) = all.partition(|at| processes[*at as usize].state == State::Ready);
        let start_ns = |at: u32| jobs[processes[at as usize].job as usize].start_ns;
        let waking = later.into_iter().map(|at| Reverse((start_ns(at), at))).collect();
        Ok(Self { offered: jobs, processes, ready: ready.into(), thinking: BinaryHeap::new(), waking })
    }

    /// The jobs.
    pub fn offered(&self) -> &[Job] {
        &self.offered
    }

    /// Whether all have ended.
    pub fn have_ended(&self) -> bool {
        self.processes.iter().all(|process| process.state == State::Ended)
    }

    /// What a process asks for next; `None` until its rate lets it.
    fn next_bio(&mut self, now_ns: u64, at: u32) -> Option<Bio> {
        let process = &mut self.processes[at as usize];
        let job = &self.offered[process.job as usize];
        let mut ask = process.waiting.take().unwrap_or_else(|| process.walk.next(job));
        // As in fio, a mix goes on with the other direction while that of one is held back by its rate.
        let is_mix = (1..100).contains(&job.read_percent) && job.read_sizes == job.write_sizes;
        let [held_ns, other_ns] = [ask.is_read, !ask.is_read].map(|is_read| process.due_ns[usize::from(!is_read)]);
        if is_mix && held_ns > now_ns && other_ns < held_ns {
            ask.is_read = !ask.is_read;
        }
        let direction = if ask.is_read { Direction::Read } else { Direction::Write };
        let mut intended_ns = process.intended_ns.front().copied().unwrap_or_default();
        if !job.rates.is_none() {
            let due_ns = &mut process.due_ns[usize::from(!ask.is_read)];
            if *due_ns > now_ns {
                process.waiting = Some(ask);
                self.waking.push(Reverse((*due_ns, at)));
                return None;
            }
            intended_ns = intended_ns.max(*due_ns);
            *due_ns += job.rates.gap_ns(ask, &mut process.walk.random);
        }
        process.intended_ns.pop_front();
        process.outstanding += 1;
        process.begun += 1;
        process.in_call += 1;
        process.unflushed += u32::from(!ask.is_read);
        Some(Bio {
            sync: ask.is_read || !job.asynchronous,
            class: job.class,
            priority: job.priority,
            intended_ns,
            token: process.begun,
            ..Bio::new(
                at,
                direction,
                (job.offset_bytes + ask.offset_bytes) / SECTOR_BYTES,
                (ask.size_bytes / SECTOR_BYTES) as u32,
            )
        })
    }

    /// What a process that is awake does next.
    fn step_of(&mut self, now_ns: u64, at: u32) -> Option<Step> {
        let process = &mut self.processes[at as usize];
        let job = &self.offered[process.job as usize];
        let must_flush = job.fsync_every > 0 && process.unflushed >= job.fsync_every;
        let is_last = job.ios > 0 && process.begun >= job.ios;
        if must_flush && process.outstanding == 0 {
            process.state = State::Flushing;
            process.unflushed = 0;
            process.outstanding = 1;
            return Some(Step::Submit(Bio {
                flush: true,
                intended_ns: now_ns,
                ..Bio::new(at, Direction::Write, 0, 0)
            }));
        }
        if is_last && process.outstanding == 0 {
            process.state = State::Ended;
            return Some(Step::Exit(at));
        }
        if process.intended_ns.is_empty() || must_flush || is_last {
            return None;
        }
        self.next_bio(now_ns, at).map(Step::Submit)
    }

    fn make_ready(&mut self, at: u32) {
        let process = &mut self.processes[at as usize];
        if process.state == State::Waiting {
            process.state = State::Ready;
            self.ready.push_back(at);
        }
    }
}

impl Source for Jobs {
    fn next_due(&self) -> Option<u64> {
        if !self.ready.is_empty() {
            return Some(0);
        }
        [&self.thinking, &self.waking].into_iter().filter_map(|heap| heap.peek().map(|first| first.0.0)).min()
    }

    fn step(&mut self, now_ns: u64) -> Option<Step> {
        while let Some(&Reverse((at_ns, at))) = self.thinking.peek().filter(|Reverse((at_ns, _))| *at_ns <= now_ns) {
            self.thinking.pop();
            self.processes[at as usize].intended_ns.push_back(at_ns);
            self.make_ready(at);
        }
        while let Some(&Reverse((_, at))) = self.waking.peek().filter(|Reverse((at_ns, _))| *at_ns <= now_ns) {
            self.waking.pop();
            self.make_ready(at);
        }
        let at = *self.ready.front()?;
        let process = &mut self.processes[at as usize];
        if process.in_call >= self.offered[process.job as usize].batch {
            process.in_call = 0;
            return Some(Step::Unplug(at));
        }
        if self.processes[at as usize].state == State::Ready
            && let Some(step) = self.step_of(now_ns, at)
        {
            return Some(step);
        }
        // It has nothing more to ask for now.
        self.ready.pop_front();
        let process = &mut self.processes[at as usize];
        process.in_call = 0;
        if process.state == State::Ended {
            return self.step(now_ns);
        }
        if process.state == State::Ready {
            process.state = State::Waiting;
        }
        Some(Step::Unplug(at))
    }

    fn asleep(&mut self, process: u32) {
        // The process that took the last step is the first of the list.
        self.ready.pop_front();
        let process = &mut self.processes[process as usize];
        if process.state == State::Ready {
            process.state = State::Asleep;
        }
    }

    fn awake(&mut self, process: u32) {
        let sleeper = &mut self.processes[process as usize];
        if sleeper.state == State::Asleep {
            sleeper.state = State::Waiting;
            self.make_ready(process);
        } else {
            // Its flush was what it slept for.
            self.ready.push_back(process);
        }
    }

    fn finished(&mut self, now_ns: u64, bio: &Bio) {
        let process = &mut self.processes[bio.process as usize];
        let job = &self.offered[process.job as usize];
        process.outstanding -= 1;
        if bio.sectors == 0 {
            process.state = State::Waiting;
        } else {
            process.finished += 1;
            if job.think_ns > 0 && process.finished.is_multiple_of(job.think_every.into()) {
                self.thinking.push(Reverse((now_ns + job.think_ns, bio.process)));
            } else {
                process.intended_ns.push_back(now_ns);
            }
        }
        self.make_ready(bio.process);
    }
}
