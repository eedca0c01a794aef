//! Jobs in fio's words through the page cache (`direct=0`): each has a file, at first on the drive alone.
//!
//! A process does one after the other (`depth` is 1, as for fio's `psync`). Sequential reads take more at a time, from 4 pages
//! doubling to 128 KiB, and the process waits for all of them.

use std::ops::Range;

use dbdyno_common::random::Random;

use super::cache::{Act, Application, CacheConfig, CacheError, Cached, Files, Page, unless};
use super::job::{Job, Rates};
use super::walk::{Pattern, Walk};
use crate::kernel::Kernel;

const PAGE_BYTES: u64 = 4096;
/// Pages of the first read-ahead, and of the largest.
const AHEAD_PAGES: [u32; 2] = [4, 32];

/// One process of a job.
#[derive(Debug)]
struct Process {
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
    processes: Vec<Process>,
    page_cpu_ns: u64,
    done: u64,
}

impl BufferedJobs {
    /// Jobs on the page cache of a kernel. The seed decides offsets, and which are reads. `offset_bytes`, `asynchronous`,
    /// `class` and `priority` of a job mean nothing here.
    ///
    /// # Errors
    /// [`CacheError`] names the field, what was given and what must hold.
    pub fn cached(kernel: &Kernel, cache: &CacheConfig, jobs: Vec<Job>, seed: u64) -> Result<Cached<Self>, CacheError> {
        let mut seeds = Random::new(seed);
        let mut processes = Vec::new();
        for (at, job) in jobs.iter().enumerate() {
            Self::check(job)?;
            processes.extend((0..u64::from(job.processes)).map(|rank| Process {
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

impl Process {
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
