//! Jobs in fio's words: past the page cache, or through it.
//!
//! Each job through the page cache (`direct=0`) has a file, at first on the drive alone. A process does one after the
//! other (`depth` is 1, as for fio's `psync`). Sequential reads take more at a time, from 4 pages doubling to 128 KiB,
//! and the process waits for all of them.
//!
//! Cannot: random maps (an offset may come twice), trims, checks of what was written.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::ops::Range;

use dbdyno_common::random::Random;
use thiserror::Error;

use super::cache::{Act, Application, CacheConfig, CacheError, Cached, Files, Page, unless};
use super::contract::{Source, Step};
use super::walk::{Access, Pattern, Sizes, Walk};
use crate::kernel::Kernel;
use crate::queue::{Bio, Direction};

pub use super::walk::{Job, Rates};

const SECTOR_BYTES: u64 = 512;

/// What is wrong with a job.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("job {job}: {field} = {value} {problem}")]
pub struct JobError {
    /// Which one, from 1.
    pub job: usize,
    /// Its field.
    pub field: &'static str,
    /// What was given.
    pub value: u64,
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
            Some((field, value, _, problem)) => Err(JobError { job, field, value, problem }),
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
    /// When those that it has not begun were meant to begin: all it may have outstanding at first, then one for each
    /// that finished.
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
                return Err(JobError { job: at + 1, field: "processes", value: job.processes.into(), problem });
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

const PAGE_BYTES: u64 = 4096;
/// Pages of the first read-ahead, and of the largest.
const AHEAD_PAGES: [u32; 2] = [4, 32];

/// One process of a job.
#[derive(Debug)]
struct BufferedProcess {
    job: u32,
    walk: Walk,
    begun: u64,
    unflushed: u32,
    /// Pages that its last read-ahead covered, and how many the next takes.
    ahead: Range<u32>,
    ahead_pages: u32,
    /// What is left of the read or write that it is at, bytes of the file.
    is_read: bool,
    from_bytes: u64,
    to_bytes: u64,
    size_bytes: u64,
    has_paused: bool,
}

/// Jobs through the page cache.
#[derive(Debug)]
pub struct BufferedJobs {
    jobs: Vec<Job>,
    processes: Vec<BufferedProcess>,
    page_cpu_ns: u64,
    done: u64,
}

impl BufferedJobs {
    /// Jobs on the page cache of a kernel. The seed decides offsets, and which are reads. `offset_bytes`,
    /// `asynchronous`, `class` and `priority` of a job mean nothing here.
    ///
    /// # Errors
    /// [`CacheError`] names the field, what was given and what must hold.
    pub fn cached(kernel: &Kernel, cache: &CacheConfig, jobs: Vec<Job>, seed: u64) -> Result<Cached<Self>, CacheError> {
        let mut seeds = Random::new(seed);
        let mut processes = Vec::new();
        for (at, job) in jobs.iter().enumerate() {
            Self::check(job)?;
            processes.extend((0..u64::from(job.processes)).map(|rank| BufferedProcess {
                job: at as u32,
                walk: Walk::new(rank, Random::new(seeds.bits())),
                begun: 0,
                unflushed: 0,
                ahead: 0..0,
                ahead_pages: AHEAD_PAGES[0],
                is_read: false,
                from_bytes: 0,
                to_bytes: 0,
                size_bytes: 0,
                has_paused: true,
            }));
        }
        Cached::new(kernel, cache, Self { jobs, processes, page_cpu_ns: cache.page_cpu_ns, done: 0 })
    }

    /// Refuses a job that can't be buffered.
    ///
    /// # Errors
    /// [`CacheError`] names the field, what was given and what must hold.
    pub fn check(job: &Job) -> Result<(), CacheError> {
        let (size, range) = (job.size_bytes, job.range_bytes);
        unless((1..=100_000).contains(&job.processes), "processes", job.processes, "is not between 1 and 100000")?;
        unless(job.read_percent <= 100, "read_percent", job.read_percent, "is more than 100")?;
        unless((1..=1 << 20).contains(&size), "size_bytes", size, "is not between 1 and 1048576")?;
        let all = job.read_sizes.0.iter().chain(&job.write_sizes.0);
        for (bytes, _) in all {
            unless((1..=1 << 20).contains(bytes), "sizes", *bytes, "is not between 1 and 1048576")?;
        }
        unless(job.rates == Rates::default(), "rates", 1, "are for jobs with direct = true")?;
        unless(job.start_ns == 0, "start_us", job.start_ns / 1000, "is for jobs with direct = true")?;
        unless(job.think_every == 1, "think_every", job.think_every, "is for jobs with direct = true")?;
        unless(job.depth == 1, "depth", job.depth, "is not 1: a buffered job sends one request at a time")?;
        unless(range <= 1 << 40, "range_bytes", range, "is more than 1 TiB")?;
        let holds = range / u64::from(job.processes) >= size.max(job.largest_bytes());
        unless(holds, "range_bytes", range, "has no room for a request of each process")
    }

    /// Reads and writes that have ended.
    pub fn operations(&self) -> u64 {
        self.done
    }
}

impl BufferedProcess {
    /// Chooses the next read or write.
    fn begin(&mut self, job: &Job) {
        let ask = self.walk.next(job);
        self.is_read = ask.is_read;
        self.from_bytes = ask.offset_bytes;
        self.to_bytes = ask.offset_bytes + ask.size_bytes;
        self.size_bytes = ask.size_bytes;
        self.begun += 1;
        self.unflushed += u32::from(!self.is_read);
        self.has_paused = false;
    }

    /// The next page of what it is at.
    fn next_page(&mut self, job: &Job) -> Act {
        let page = Page { file: self.job, page: (self.from_bytes / PAGE_BYTES) as u32 };
        let end_bytes = u64::from(page.page + 1) * PAGE_BYTES;
        let whole = self.from_bytes.is_multiple_of(PAGE_BYTES) && self.to_bytes >= end_bytes;
        let left = (self.to_bytes - u64::from(page.page) * PAGE_BYTES).div_ceil(PAGE_BYTES) as u32;
        self.from_bytes = self.to_bytes.min(end_bytes);
        if !self.is_read {
            return Act::Write { page, whole };
        }
        let mut pages = left;
        if job.pattern == Pattern::Sequential && !self.ahead.contains(&page.page) {
            pages = pages.max(self.ahead_pages);
            self.ahead = page.page..page.page + pages;
            self.ahead_pages = (self.ahead_pages * 2).min(AHEAD_PAGES[1]);
        }
        Act::Read { page, pages }
    }
}

impl Application for BufferedJobs {
    fn processes(&self) -> u32 {
        self.processes.len() as u32
    }

    fn begin(&mut self, files: &mut Files) {
        for job in &self.jobs {
            files.add(job.range_bytes.div_ceil(PAGE_BYTES) as u32);
        }
    }

    fn act(&mut self, _now_ns: u64, process: u32) -> Act {
        let process = &mut self.processes[process as usize];
        let job = &self.jobs[process.job as usize];
        if process.from_bytes < process.to_bytes {
            return process.next_page(job);
        }
        if job.fsync_every > 0 && process.unflushed >= job.fsync_every {
            process.unflushed = 0;
            return Act::Fsync(process.job);
        }
        if !std::mem::replace(&mut process.has_paused, true) {
            self.done += 1;
            return Act::Compute(job.think_ns + process.size_bytes.div_ceil(PAGE_BYTES) * self.page_cpu_ns);
        }
        if job.ios > 0 && process.begun >= job.ios {
            return Act::Exit;
        }
        process.begin(job);
        process.next_page(job)
    }
}
