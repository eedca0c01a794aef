//! Jobs in fio's words, past the page cache.
//!
//! Cannot: rates, several block sizes in a job, random maps (an offset may come twice).

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use dbdyno_common::random::Random;
use thiserror::Error;

use super::contract::{Source, Step};
use crate::queue::{Bio, Class, Direction};

const SECTOR_BYTES: u64 = 512;

/// The order of offsets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Pattern {
    /// One behind the other, from the start of the job's range; each process has its part of it.
    Sequential,
    /// Uniform over the range.
    Random,
}

/// A job as fio has it.
#[derive(Debug, Clone, PartialEq)]
pub struct Job {
    /// How many processes do the same (`numjobs`).
    pub processes: u32,
    /// Order of offsets (`rw`).
    pub pattern: Pattern,
    /// Percent of reads (`rwmixread`).
    pub read_percent: u32,
    /// Size of each, bytes, a multiple of 512 (`bs`).
    pub size_bytes: u64,
    /// How many a process has outstanding (`iodepth`).
    pub depth: u32,
    /// How many go to the kernel in one call (`iodepth_batch`); only these may be joined before the scheduler has them.
    pub batch: u32,
    /// Pause of a process after each that finishes (`thinktime`), nanoseconds.
    pub think_ns: u64,
    /// A flush after so many writes, when those are finished (`fsync`); 0 for none.
    pub fsync_every: u32,
    /// Where the range begins (`offset`), bytes.
    pub offset_bytes: u64,
    /// How long it is (`size`), bytes.
    pub range_bytes: u64,
    /// A process ends after so many (`number_ios`); 0 for never.
    pub ios: u64,
    /// Writes count as such that nobody waits for, as those of the page cache.
    pub asynchronous: bool,
    /// Class of the I/O priority (`prioclass`).
    pub class: Class,
    /// Priority in it (`prio`).
    pub priority: u8,
}

impl Default for Job {
    fn default() -> Self {
        Self {
            processes: 1,
            pattern: Pattern::Random,
            read_percent: 100,
            size_bytes: 4096,
            depth: 1,
            batch: 1,
            think_ns: 0,
            fsync_every: 0,
            offset_bytes: 0,
            range_bytes: 1 << 30,
            ios: 0,
            asynchronous: false,
            class: Class::BestEffort,
            priority: 4,
        }
    }
}

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

impl Job {
    fn check(&self, job: usize) -> Result<(), JobError> {
        let (size, range) = (self.size_bytes, self.range_bytes);
        let checks = [
            (
                "processes",
                u64::from(self.processes),
                (1..=PROCESSES_MOST).contains(&self.processes.into()),
                "is not 1 to 100000",
            ),
            ("read_percent", u64::from(self.read_percent), self.read_percent <= 100, "is over 100"),
            ("size_bytes", size, size > 0 && size.is_multiple_of(SECTOR_BYTES), "is no multiple of 512"),
            ("size_bytes", size, size <= 1 << 20, "is over 1 MiB"),
            ("depth", u64::from(self.depth), (1..=1 << 20).contains(&self.depth), "is not 1 to 1048576"),
            ("batch", u64::from(self.batch), self.batch > 0, "is not 1 or more"),
            (
                "offset_bytes",
                self.offset_bytes,
                self.offset_bytes.is_multiple_of(SECTOR_BYTES),
                "is no multiple of 512",
            ),
            (
                "range_bytes",
                range,
                range / u64::from(self.processes.max(1)) >= size,
                "holds less than one for each process",
            ),
            ("priority", u64::from(self.priority), self.priority < 8, "is over 7"),
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
    /// Its place in the job.
    rank: u32,
    random: Random,
    outstanding: u32,
    /// When those that it has not begun were meant to begin: all it may have outstanding at first, then one for each that
    /// finished.
    intended_ns: VecDeque<u64>,
    begun: u64,
    /// Of the call that it is in.
    in_call: u32,
    /// Where it goes on, sequentially, bytes from the start of its part.
    at_bytes: u64,
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
                let problem = "makes over 100000 with the jobs before";
                return Err(JobError { job: at + 1, field: "processes", given: job.processes.into(), problem });
            }
            processes.extend((0..job.processes).map(|rank| Process {
                job: at as u32,
                rank,
                random: Random::new(seeds.bits()),
                outstanding: 0,
                intended_ns: std::iter::repeat_n(0, job.depth as usize).collect(),
                begun: 0,
                in_call: 0,
                at_bytes: 0,
                unflushed: 0,
                state: State::Ready,
            }));
        }
        let ready = (0..processes.len() as u32).collect();
        Ok(Self { offered: jobs, processes, ready, thinking: BinaryHeap::new() })
    }

    /// The jobs.
    pub fn offered(&self) -> &[Job] {
        &self.offered
    }

    /// Whether all have ended.
    pub fn have_ended(&self) -> bool {
        self.processes.iter().all(|process| process.state == State::Ended)
    }

    fn next_bio(&mut self, at: u32) -> Bio {
        let process = &mut self.processes[at as usize];
        let job = &self.offered[process.job as usize];
        let is_read = job.read_percent == 100 || process.random.below(100) < u64::from(job.read_percent);
        let direction = if is_read { Direction::Read } else { Direction::Write };
        let offset_bytes = match job.pattern {
            Pattern::Random => process.random.below(job.range_bytes / job.size_bytes) * job.size_bytes,
            Pattern::Sequential => {
                let part_bytes = job.range_bytes / u64::from(job.processes) / job.size_bytes * job.size_bytes;
                let offset_bytes = process.at_bytes;
                process.at_bytes = (offset_bytes + job.size_bytes) % part_bytes;
                u64::from(process.rank) * part_bytes + offset_bytes
            }
        };
        process.outstanding += 1;
        process.begun += 1;
        process.in_call += 1;
        process.unflushed += u32::from(!is_read);
        Bio {
            sync: is_read || !job.asynchronous,
            class: job.class,
            priority: job.priority,
            intended_ns: process.intended_ns.pop_front().unwrap_or_default(),
            token: process.begun,
            ..Bio::new(
                at,
                direction,
                (job.offset_bytes + offset_bytes) / SECTOR_BYTES,
                (job.size_bytes / SECTOR_BYTES) as u32,
            )
        }
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
        (!process.intended_ns.is_empty() && !must_flush && !is_last).then(|| Step::Submit(self.next_bio(at)))
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
        self.thinking.peek().map(|Reverse((at_ns, _))| *at_ns)
    }

    fn step(&mut self, now_ns: u64) -> Option<Step> {
        while let Some(&Reverse((at_ns, at))) = self.thinking.peek().filter(|Reverse((at_ns, _))| *at_ns <= now_ns) {
            self.thinking.pop();
            self.processes[at as usize].intended_ns.push_back(at_ns);
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
        // Whoever took the last step is the first of the list.
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
        let think_ns = self.offered[process.job as usize].think_ns;
        process.outstanding -= 1;
        if bio.sectors == 0 {
            process.state = State::Waiting;
        } else if think_ns > 0 {
            self.thinking.push(Reverse((now_ns + think_ns, bio.process)));
        } else {
            process.intended_ns.push_back(now_ns);
        }
        self.make_ready(bio.process);
    }
}
