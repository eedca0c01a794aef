//! A machine whose processes use files through the page cache, as a source of load, and the thread of its journal.
//!
//! A commit takes what the running transaction has and leaves a new one running. It submits the pages of an ordered
//! transaction that are still changed, in the order in which they were first written to in it, waits for all of them,
//! then writes its blocks and waits, then the commit block.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use super::config::{CacheConfig, CacheError, Page, Rules, flag};
use super::flusher::{self, Flusher};
use super::machine::{Bandwidth, Journal, Machine, Next, Pages, Phase, Purpose, Wait, decode};
use super::process::{Act, Application, Doing, Files, Process};
use crate::kernel::Kernel;
use crate::layer::Pools;
use crate::queue::{Bio, Direction};
use crate::source::contract::{Source, Step};

#[derive(Debug, Clone, Copy)]
struct Thread {
    wait: Wait,
    /// It submitted something since the queue was last unplugged for it.
    holds_back: bool,
}

/// An application on the page cache of a kernel.
#[derive(Debug)]
pub struct Cached<A> {
    application: A,
    machine: Machine,
    processes: Vec<Process>,
    flushers: Vec<Flusher>,
    /// Processes, then the journal's thread, then those of writeback.
    threads: Vec<Thread>,
    ready: VecDeque<u32>,
    timers: BinaryHeap<Reverse<(u64, u32)>>,
    /// Who waits for which page.
    page_waiters: Vec<(Page, u32)>,
    running: u32,
}

impl<A: Application> Cached<A> {
    /// At time 0, with the files that the application begins with.
    ///
    /// # Errors
    /// [`CacheError`] names the field, what was given and what must hold.
    pub fn new(kernel: &Kernel, config: &CacheConfig, mut application: A) -> Result<Self, CacheError> {
        config.check(kernel)?;
        let rules = Rules::new(kernel, config);
        let mut pages = Pages::new(config);
        application.begin(&mut Files(&mut pages));
        let (limit, background) = config.dirty_limits(rules.writeback);
        let journal = Journal::new(pages.allocator.journal_sector());
        let machine = Machine {
            config: config.clone(),
            rules,
            pages,
            journal,
            bandwidth: Bandwidth::default(),
            congested: false,
            limit,
            background,
            exceeded: false,
            wanted: false,
            wakes: Vec::new(),
            processes: application.processes(),
        };
        let flushers = flusher::threads(&machine);
        let threads = machine.processes + 1 + flushers.len() as u32;
        Ok(Self {
            processes: (0..machine.processes).map(|_| Process::new()).collect(),
            running: machine.processes,
            application,
            flushers,
            machine,
            threads: vec![Thread { wait: Wait::None, holds_back: false }; threads as usize],
            ready: (0..threads).collect(),
            timers: BinaryHeap::new(),
            page_waiters: Vec::new(),
        })
    }

    /// What runs.
    pub fn application(&self) -> &A {
        &self.application
    }

    /// Pages that writeback has to look at, and those that it has sent.
    pub fn dirty_pages(&self) -> (u64, u64) {
        (self.machine.pages.dirty, self.machine.pages.in_writeback)
    }

    /// Transactions that are on the drive.
    pub fn commits(&self) -> u64 {
        self.machine.journal.committed
    }

    /// Pages of a file whose last change is not on its way to the drive.
    pub fn changed_pages(&self, file: u32) -> u64 {
        let flags = &self.machine.pages.files[file as usize].flags;
        flags.iter().filter(|page| **page & flag::CHANGED != 0).count() as u64
    }

    /// Length of a file.
    pub fn file_bytes(&self, file: u32) -> u64 {
        self.machine.pages.bytes(file)
    }

    /// How far the files reach on the drive, which must be larger: nothing tells that it is full.
    pub fn end_bytes(&self) -> u64 {
        self.machine.pages.allocator.end_bytes()
    }

    /// Dirty pages at which writers are held up, and at which writeback begins.
    pub fn dirty_limits(&self) -> (u64, u64) {
        (self.machine.limit, self.machine.background)
    }

    /// Whether all processes have ended.
    pub fn have_ended(&self) -> bool {
        self.running == 0
    }

    fn advance(&mut self, now_ns: u64, thread: u32) -> Next {
        let machine = &mut self.machine;
        if thread == machine.journal_thread() {
            return step_journal(now_ns, machine);
        }
        if let Some(process) = self.processes.get_mut(thread as usize) {
            loop {
                if let Some(next) = process.step(now_ns, machine) {
                    return next;
                }
                if !matches!(process.doing, Doing::Asking) {
                    continue;
                }
                match self.application.act(now_ns, thread) {
                    Act::Compute(ns) => return Next::Wait(Wait::Until(now_ns + ns)),
                    Act::Exit => return Next::Exit,
                    act => process.begin(machine, act),
                }
            }
        }
        self.flushers[(thread - machine.processes - 1) as usize].step(now_ns, machine)
    }

    fn make_ready(&mut self, thread: u32) {
        self.threads[thread as usize].wait = Wait::None;
        self.ready.push_back(thread);
    }

    fn suspend(&mut self, thread: u32, wait: Wait) {
        self.threads[thread as usize].wait = wait;
        match wait {
            Wait::Until(at_ns) | Wait::Clear(at_ns) => self.timers.push(Reverse((at_ns, thread))),
            Wait::Page(page) => self.page_waiters.push((page, thread)),
            Wait::None | Wait::Request | Wait::Event => {}
        }
    }

    fn wake_due(&mut self, now_ns: u64) {
        while let Some(&Reverse((at_ns, thread))) = self.timers.peek().filter(|timer| timer.0.0 <= now_ns) {
            self.timers.pop();
            let wait = self.threads[thread as usize].wait;
            if wait == Wait::Until(at_ns) || wait == Wait::Clear(at_ns) {
                self.make_ready(thread);
            }
        }
    }

    /// Wakes whom others want awake.
    fn wake_wanted(&mut self) {
        while let Some(thread) = self.machine.wakes.pop() {
            let is_kernel = thread >= self.machine.processes;
            match self.threads[thread as usize].wait {
                Wait::Event => self.make_ready(thread),
                Wait::Until(_) if is_kernel => self.make_ready(thread),
                _ => {}
            }
        }
    }

    fn wake_waiters(&mut self, first: Page, pages: u32) {
        let mut at = 0;
        while let Some(&(page, thread)) = self.page_waiters.get(at) {
            if page.file == first.file && (first.page..first.page + pages).contains(&page.page) {
                self.page_waiters.remove(at);
                self.make_ready(thread);
            } else {
                at += 1;
            }
        }
    }
}

impl<A: Application> Source for Cached<A> {
    fn next_due(&self) -> Option<u64> {
        if !self.ready.is_empty() {
            return Some(0);
        }
        self.timers.peek().map(|Reverse((at_ns, _))| *at_ns)
    }

    fn see(&mut self, pools: &Pools) {
        let congested = pools.is_congested(Direction::Write, false);
        if self.machine.congested && !congested {
            for thread in 0..self.threads.len() as u32 {
                if matches!(self.threads[thread as usize].wait, Wait::Clear(_)) {
                    self.make_ready(thread);
                }
            }
        }
        self.machine.congested = congested;
    }

    fn step(&mut self, now_ns: u64) -> Option<Step> {
        self.wake_due(now_ns);
        loop {
            let thread = *self.ready.front()?;
            let next = self.advance(now_ns, thread);
            self.wake_wanted();
            let own = &mut self.threads[thread as usize];
            match next {
                Next::Submit(bio) => {
                    own.holds_back = true;
                    let no_idle = bio.sync && bio.direction == Direction::Write;
                    return Some(Step::Submit(Bio { process: thread, no_idle, intended_ns: now_ns, ..bio }));
                }
                Next::Wait(wait) => {
                    self.ready.pop_front();
                    let held_back = std::mem::take(&mut own.holds_back);
                    self.suspend(thread, wait);
                    if held_back {
                        return Some(Step::Unplug(thread));
                    }
                }
                Next::Exit => {
                    self.ready.pop_front();
                    self.running -= 1;
                    own.wait = Wait::Request;
                    return Some(Step::Exit(thread));
                }
            }
        }
    }

    fn asleep(&mut self, process: u32) {
        // The process that took the last step is the first of the list.
        self.ready.pop_front();
        self.threads[process as usize].wait = Wait::Request;
    }

    fn awake(&mut self, process: u32) {
        self.make_ready(process);
    }

    fn finished(&mut self, _now_ns: u64, bio: &Bio) {
        let (purpose, first) = decode(bio.token);
        let pages = bio.sectors / super::config::PAGE_SECTORS as u32;
        match purpose {
            Purpose::Journal => self.machine.journal_arrived(1),
            Purpose::Read => {
                for page in first.page..first.page + pages {
                    self.machine.pages.touch(Page { page, ..first });
                }
            }
            Purpose::Writeback | Purpose::Buffer => {
                self.machine.bandwidth.written += u64::from(pages);
                let awaited = self.machine.pages.arrived(purpose, first, pages);
                self.machine.journal_arrived(awaited);
                if self.machine.pages.files[first.file as usize].in_flight == 0 {
                    self.machine.wakes.extend(0..self.machine.processes);
                }
            }
        }
        self.wake_waiters(first, pages);
        self.wake_wanted();
    }
}

/// Buffers that a commit takes at once, as many as a descriptor block of 4 KiB lists.
const BATCH: usize = 512;
/// Pages that one block of addresses has room for.
const PAGES_PER_INDIRECT: u64 = 1024;

/// What the journal's thread does next.
fn step_journal(now_ns: u64, machine: &mut Machine) -> Next {
    loop {
        match machine.journal.phase {
            Phase::Idle => match due_ns(machine) {
                Some(at_ns) if at_ns <= now_ns => begin(machine),
                Some(at_ns) => return Next::Wait(Wait::Until(at_ns)),
                None => return Next::Wait(Wait::Event),
            },
            Phase::Data(at) => {
                if let Some(next) = write_data(machine, at) {
                    return next;
                }
            }
            Phase::DataArrives | Phase::BlocksArrive | Phase::CommitBlockArrives if machine.journal.awaited > 0 => {
                return Next::Wait(Wait::Event);
            }
            Phase::DataArrives => machine.journal.phase = Phase::Blocks(machine.journal.blocks),
            Phase::Blocks(0) => machine.journal.phase = Phase::BlocksArrive,
            Phase::Blocks(left) => {
                machine.journal.phase = Phase::Blocks(left - 1);
                let bio = machine.journal.next_block(1);
                return Next::Submit(Bio { sync: machine.rules.marks_sync, ..bio });
            }
            Phase::BlocksArrive => {
                machine.journal.phase = Phase::CommitBlockArrives;
                let asks = machine.config.barrier;
                let bio = machine.journal.next_block(1);
                return Next::Submit(Bio { sync: true, flush: asks, fua: asks, ..bio });
            }
            Phase::CommitBlockArrives => {
                machine.journal.phase = Phase::Idle;
                machine.journal.committed += 1;
                machine.wakes.extend(0..machine.processes);
            }
        }
    }
}

/// When the running transaction is to be committed.
fn due_ns(machine: &Machine) -> Option<u64> {
    let started_ns = machine.journal.started_ns?;
    let is_requested = machine.journal.requested >= machine.journal.number;
    Some(if is_requested { 0 } else { started_ns + machine.config.commit_ms * 1_000_000 })
}

/// The running transaction becomes the one that is committed.
fn begin(machine: &mut Machine) {
    let journal = &mut machine.journal;
    journal.number += 1;
    journal.started_ns = None;
    // A descriptor, an inode for each file, and of new pages a bitmap, a group descriptor and their addresses.
    let new = std::mem::take(&mut journal.new_pages);
    let of_new = if new > 0 { 2 + new.div_ceil(PAGES_PER_INDIRECT) } else { 0 };
    journal.blocks = 1 + journal.files.len() as u32 + of_new as u32;
    for file in journal.files.drain(..) {
        machine.pages.files[file as usize].is_changed = false;
    }
    journal.phase = Phase::Data(0);
}

/// Submits the pages of the transaction in the order they came into it.
fn write_data(machine: &mut Machine, from: usize) -> Option<Next> {
    if let Some(page) = machine.journal.batch.pop() {
        let bio = machine.pages.bio(Direction::Write, Purpose::Buffer, page, 1);
        return Some(Next::Submit(Bio { sync: machine.rules.marks_sync, ..bio }));
    }
    let list = 1 - machine.journal.running();
    let own = machine.journal.committing_flag();
    let mut at = from;
    while at < machine.journal.pages[list].len() && machine.journal.batch.len() < BATCH {
        let page = machine.journal.pages[list][at];
        let flags = machine.pages.flags(page);
        at += 1;
        if flags & own == 0 {
            // It moved to the running transaction.
            continue;
        }
        if flags & flag::IN_FLIGHT != 0 {
            if flags & flag::CHANGED != 0 {
                // It changed while it was on its way: what was collected goes first.
                machine.journal.phase = Phase::Data(at - 1);
                let collected = !machine.journal.batch.is_empty();
                machine.journal.batch.reverse();
                return if collected { write_data(machine, at - 1) } else { Some(Next::Wait(Wait::Page(page))) };
            }
            machine.journal.awaited += 1;
            machine.pages.set(page, flag::AWAITED);
        } else if flags & flag::CHANGED != 0 {
            machine.pages.send(Purpose::Buffer, page, 1);
            machine.pages.set(page, flag::AWAITED);
            machine.journal.awaited += 1;
            machine.journal.batch.push(page);
        }
        machine.pages.clear(page, own);
    }
    machine.journal.batch.reverse();
    let is_end = machine.journal.batch.is_empty() && at == machine.journal.pages[list].len();
    machine.journal.phase = if is_end { Phase::DataArrives } else { Phase::Data(at) };
    if is_end {
        machine.journal.pages[list].clear();
    }
    None
}
