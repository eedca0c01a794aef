//! The flash: dies that read, program and erase, on channels that carry the data.
//!
//! A plane that can read by itself is a *lane*; a die whose planes cannot has one lane. Reads of the host go before
//! those of collection, and both before programs and erases, which take the whole die. A read of the host suspends a
//! program or an erase that runs, if the flash can do that and has not done it too often.

use std::collections::VecDeque;

use dbdyno_common::random::Random;

use super::ftl::Unit;
use super::geometry::PageAddress;
use super::spec::{ReadRetrySpec, SsdSpec, transfer_ns, us};
use crate::contract::Agenda;

/// A flash page to read.
#[derive(Debug, Clone, Copy)]
pub(super) struct PageRead {
    pub reader: Reader,
    /// What is wanted of the page; only that crosses the channel.
    pub bytes: u64,
    pub read_ns: u64,
}

/// For whom a page is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reader {
    /// The command in this slot.
    Host(usize),
    /// No command yet: pages of the disk are read ahead, beginning with this one.
    Ahead(u32),
    /// Collection, from this page of flash on.
    Moved(u32),
}

/// What takes a whole die.
#[derive(Debug, Clone, Copy)]
pub(super) enum Job {
    Program {
        unit: Unit,
        /// Counts the host's programs in the order they were made; 0 for moved pages.
        sequence: u64,
        /// With the padding.
        bytes: u64,
        program_ns: u64,
    },
    /// This die's part of the block.
    Erase(u32),
}

#[derive(Debug)]
struct Running {
    job: Job,
    ends_ns: u64,
    /// What was left when it was suspended; `None` while it runs.
    left_ns: Option<u64>,
    suspends: u32,
}

#[derive(Debug, Default)]
struct Lane {
    current: Option<PageRead>,
    host: VecDeque<PageRead>,
    moved: VecDeque<PageRead>,
}

#[derive(Debug, Default)]
struct Die {
    lanes: Vec<Lane>,
    lanes_busy: u32,
    host_waiting: u32,
    moved_waiting: u32,
    running: Option<Running>,
    /// Tells the end of a job from one it was meant to have before it was suspended.
    generation: u32,
    host_jobs: VecDeque<Job>,
    moved_jobs: VecDeque<Job>,
    moved_job_is_next: bool,
    /// Reads begun since the last job ended or went on.
    reads_in_a_row: u32,
}

#[derive(Debug)]
pub(super) struct Dies {
    all: Vec<Die>,
    /// When each channel is free.
    channels_free_ns: Vec<u64>,
    channel_mb_s: f64,
    data_read_ns: Vec<u64>,
    data_program_ns: Vec<u64>,
    slc_read_ns: u64,
    slc_program_ns: u64,
    erase_ns: u64,
    suspends_max: u32,
    suspend_ns: u64,
    reads_before_program: u32,
}

impl Dies {
    /// `block_scale` is the size of a block here as a part of the drive's.
    pub(super) fn new(spec: &SsdSpec, block_scale: f64) -> Self {
        let flash = &spec.flash;
        let lanes = if flash.planes_read_apart { flash.planes } else { 1 };
        let die = || Die { lanes: (0..lanes).map(|_| Lane::default()).collect(), ..Die::default() };
        let slc = spec.slc.as_ref();
        Self {
            all: (0..flash.channels * flash.dies_per_channel).map(|_| die()).collect(),
            channels_free_ns: vec![0; flash.channels],
            channel_mb_s: flash.channel_mb_s,
            data_read_ns: flash.read_us.iter().map(|time| us(*time)).collect(),
            data_program_ns: flash.program_us.iter().map(|time| us(*time)).collect(),
            slc_read_ns: us(slc.map_or(0.0, |slc| slc.read_us)),
            slc_program_ns: us(slc.map_or(0.0, |slc| slc.program_us)),
            erase_ns: us(flash.erase_us * block_scale),
            suspends_max: flash.suspends_max,
            suspend_ns: us(flash.suspend_us),
            reads_before_program: flash.reads_before_program,
        }
    }

    pub(super) fn count(&self) -> u32 {
        self.all.len() as u32
    }

    /// Time from cell to page register, by which bit of the cell it is.
    pub(super) fn read_ns(&self, place: PageAddress) -> u64 {
        if place.is_slc { self.slc_read_ns } else { self.data_read_ns[place.level as usize % self.data_read_ns.len()] }
    }

    pub(super) fn program_ns(&self, place: PageAddress) -> u64 {
        if place.is_slc {
            self.slc_program_ns
        } else {
            self.data_program_ns[place.level as usize % self.data_program_ns.len()]
        }
    }

    pub(super) fn add_read(&mut self, place: PageAddress, read: PageRead, now_ns: u64, events: &mut Agenda<Event>) {
        let die = &mut self.all[place.die as usize];
        let lane = place.plane as usize % die.lanes.len();
        if matches!(read.reader, Reader::Moved(_)) {
            die.lanes[lane].moved.push_back(read);
            die.moved_waiting += 1;
        } else {
            die.lanes[lane].host.push_back(read);
            die.host_waiting += 1;
        }
        self.start(place.die, now_ns, events);
    }

    pub(super) fn add_job(&mut self, die: u32, job: Job, now_ns: u64, events: &mut Agenda<Event>) {
        let state = &mut self.all[die as usize];
        if matches!(job, Job::Program { sequence, .. } if sequence > 0) {
            state.host_jobs.push_back(job);
        } else {
            state.moved_jobs.push_back(job);
        }
        self.start(die, now_ns, events);
    }

    /// Takes the read that has just ended off its lane, and when its data is across the channel.
    pub(super) fn read_ended(&mut self, die: u32, lane: u32, now_ns: u64) -> Option<(PageRead, u64)> {
        let state = &mut self.all[die as usize];
        let read = state.lanes[lane as usize].current.take()?;
        state.lanes_busy -= 1;
        Some((read, self.carry(die, now_ns, read.bytes)))
    }

    /// Takes the job that has just ended off the die; `None` if it has been suspended since.
    pub(super) fn job_ended(&mut self, die: u32, generation: u32) -> Option<Job> {
        let state = &mut self.all[die as usize];
        if state.generation != generation {
            return None;
        }
        state.reads_in_a_row = 0;
        state.running.take().map(|running| running.job)
    }

    /// Starts whatever the die can start now.
    pub(super) fn start(&mut self, die: u32, now_ns: u64, events: &mut Agenda<Event>) {
        let state = &mut self.all[die as usize];
        let mut begin_ns = now_ns;
        if let Some(running) = state.running.as_mut().filter(|running| running.left_ns.is_none()) {
            let left_ns = running.ends_ns.saturating_sub(now_ns);
            if state.host_waiting == 0 || running.suspends >= self.suspends_max || left_ns <= self.suspend_ns {
                return;
            }
            running.left_ns = Some(left_ns);
            running.suspends += 1;
            state.generation += 1;
            state.reads_in_a_row = 0;
            begin_ns += self.suspend_ns;
        }
        let job_waits = state.running.is_some() || !state.host_jobs.is_empty() || !state.moved_jobs.is_empty();
        let job_is_due = job_waits && state.reads_in_a_row >= self.reads_before_program;
        if !job_is_due && state.host_waiting + state.moved_waiting > 0 {
            Self::start_reads(state, die, begin_ns, events);
        }
        if job_waits && state.lanes_busy == 0 {
            self.start_job(die, now_ns, events);
        }
    }

    fn start_reads(state: &mut Die, die: u32, begin_ns: u64, events: &mut Agenda<Event>) {
        // While a job is suspended, only those reads go on for which it was.
        let moved_may = state.running.is_none();
        for (index, lane) in state.lanes.iter_mut().enumerate().filter(|(_, lane)| lane.current.is_none()) {
            let read = if let Some(read) = lane.host.pop_front() {
                state.host_waiting -= 1;
                read
            } else if let Some(read) = moved_may.then(|| lane.moved.pop_front()).flatten() {
                state.moved_waiting -= 1;
                read
            } else {
                continue;
            };
            lane.current = Some(read);
            state.lanes_busy += 1;
            state.reads_in_a_row += 1;
            events.push(begin_ns + read.read_ns, Event::Read { die, lane: index as u32 });
        }
    }

    /// Goes on with the suspended job, or takes the next one: the host's and those of collection in turn.
    fn start_job(&mut self, die: u32, now_ns: u64, events: &mut Agenda<Event>) {
        let state = &mut self.all[die as usize];
        if let Some(running) = &mut state.running {
            running.ends_ns = now_ns + running.left_ns.take().unwrap_or(0) + self.suspend_ns;
            events.push(running.ends_ns, Event::Job { die, generation: state.generation });
            return;
        }
        let (first, second) = if state.moved_job_is_next {
            (&mut state.moved_jobs, &mut state.host_jobs)
        } else {
            (&mut state.host_jobs, &mut state.moved_jobs)
        };
        let Some(job) = first.pop_front().or_else(|| second.pop_front()) else { return };
        let is_host = matches!(job, Job::Program { sequence, .. } if sequence > 0);
        state.moved_job_is_next = is_host;
        state.generation += 1;
        let generation = state.generation;
        let ends_ns = match job {
            Job::Program { bytes, program_ns, .. } => self.carry(die, now_ns, bytes) + program_ns,
            Job::Erase(_) => now_ns + self.erase_ns,
        };
        self.all[die as usize].running = Some(Running { job, ends_ns, left_ns: None, suspends: 0 });
        events.push(ends_ns, Event::Job { die, generation });
    }

    /// Moves bytes over the die's channel as soon as it is free; returns when they are across.
    fn carry(&mut self, die: u32, now_ns: u64, bytes: u64) -> u64 {
        let channels = self.channels_free_ns.len();
        let free_ns = &mut self.channels_free_ns[die as usize % channels];
        *free_ns = now_ns.max(*free_ns) + transfer_ns(bytes, self.channel_mb_s);
        *free_ns
    }
}

/// Something that happens inside the drive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Event {
    /// A plane has brought a flash page into its register.
    Read { die: u32, lane: u32 },
    /// A die has programmed or erased, unless it was suspended meanwhile.
    Job { die: u32, generation: u32 },
    /// A command is done; its place is free.
    Finished,
    /// The host may write another page although the cache is being emptied.
    Paced,
    /// The host may have been idle for long enough to empty the cache.
    Idle,
}

/// Reads of worn blocks, which come back with more errors than can be corrected and are tried again with other
/// thresholds.
#[derive(Debug)]
pub(super) struct Retries {
    spec: Option<ReadRetrySpec>,
    seed: u64,
    random: Random,
    /// Flash pages whose read was tried again.
    pub pages: u64,
}

impl Retries {
    pub(super) fn new(spec: Option<ReadRetrySpec>, seed: u64) -> Self {
        Self { spec, seed, random: Random::new(seed), pages: 0 }
    }

    pub(super) fn is_modelled(&self) -> bool {
        self.spec.is_some()
    }

    /// What a read of a flash page of this block takes beyond the `read_ns` of the first try, nanoseconds.
    pub(super) fn more_ns(&mut self, block: u32, read_ns: u64) -> u64 {
        let Some(spec) = &self.spec else { return 0 };
        // Always the same blocks, for a seed.
        let is_worn = Random::new(self.seed ^ u64::from(block)).chance(spec.worn_blocks);
        if !is_worn || !self.random.chance(spec.probability) {
            return 0;
        }
        self.pages += 1;
        u64::from(spec.retries) * spec.retry_us.map_or(read_ns, us)
    }
}
