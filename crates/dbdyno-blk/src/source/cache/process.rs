//! Applications, and their processes: each reads, writes, meets limits and commits, and waits.

use super::config::{Page, Writeback, flag};
use super::flusher::{Pass, PassStep};
use super::machine::{Machine, Next, Pages, Purpose, Wait};
use crate::queue::{Bio, Direction};

/// How long a writer waits for fewer requests, or sleeps to keep to the drive's pace.
const CONGESTION_WAIT_NS: u64 = 100_000_000;
const PAUSE_MOST_NS: f64 = 200e6;
/// Pages between looks at the limits: over the limit, and where writers are paced.
const CHECK_OVER: u64 = 8;
const CHECK_PACED: u64 = 32;

/// What it is at.
#[derive(Debug)]
pub(super) enum Doing {
    Asking,
    Write {
        page: Page,
        whole: bool,
    },
    Read {
        page: Page,
        pages: u32,
    },
    /// Looks at the limits, and writes itself.
    Balance {
        pass: Option<Pass>,
        written: u64,
        was_over: bool,
    },
    Fsync {
        file: u32,
        pass: Option<Pass>,
        commit: Option<u64>,
    },
}

/// One process.
#[derive(Debug)]
pub(super) struct Process {
    pub doing: Doing,
    /// Pages it wrote to since it last looked at the limits.
    unchecked: u64,
    /// What it submitted and must wait for.
    sent: Option<Page>,
}

impl Process {
    pub(super) fn new() -> Self {
        Self { doing: Doing::Asking, unchecked: 0, sent: None }
    }

    pub(super) fn begin(&mut self, machine: &Machine, act: Act) {
        self.doing = match act {
            Act::Write { page, whole } => Doing::Write { page, whole },
            Act::Read { page, pages } => Doing::Read { page, pages },
            Act::Fsync(file) => Doing::Fsync { file, pass: Some(Pass::of_file(machine, file)), commit: None },
            Act::Compute(_) | Act::Exit => Doing::Asking,
        }
    }

    /// What it does next; `None` if it is done with what it was at.
    pub(super) fn step(&mut self, now_ns: u64, machine: &mut Machine) -> Option<Next> {
        if let Some(page) = self.sent.take() {
            return Some(Next::Wait(Wait::Page(page)));
        }
        match self.doing {
            Doing::Asking => None,
            Doing::Write { page, whole } => {
                let next = write(now_ns, machine, page, whole);
                if next.is_none() {
                    return self.written(now_ns, machine);
                }
                self.sent = matches!(next, Some(Next::Submit(_))).then_some(page);
                next
            }
            Doing::Read { page, pages } => {
                let next = read(machine, page, pages);
                self.sent = next.is_some().then_some(page);
                if next.is_none() {
                    self.doing = Doing::Asking;
                }
                next
            }
            Doing::Balance { .. } => self.balance(now_ns, machine),
            Doing::Fsync { .. } => self.fsync(now_ns, machine),
        }
    }

    /// It wrote to a page, and may have to look at the limits.
    fn written(&mut self, now_ns: u64, machine: &mut Machine) -> Option<Next> {
        self.unchecked += 1;
        self.doing = Doing::Asking;
        if self.unchecked < check_pages(machine) {
            return None;
        }
        if machine.rules.writeback == Writeback::Paced {
            return self.keep_pace(now_ns, machine);
        }
        self.unchecked = 0;
        self.doing = Doing::Balance { pass: None, written: 0, was_over: false };
        self.balance(now_ns, machine)
    }

    /// Writes back itself, one and a half times what it wrote, while too much is dirty.
    fn balance(&mut self, now_ns: u64, machine: &mut Machine) -> Option<Next> {
        let Doing::Balance { pass, written, was_over } = &mut self.doing else { return None };
        let chunk = machine.config.check_pages() * 3 / 2;
        loop {
            if let Some(own) = pass {
                match own.step(now_ns, machine) {
                    PassStep::Submit(bio) => return Some(Next::Submit(bio)),
                    PassStep::Locked(page) => return Some(Next::Wait(Wait::Page(page))),
                    PassStep::Done => {}
                }
                *written += chunk - own.left;
                *pass = None;
                if !machine.is_over() || *written >= chunk {
                    break;
                }
                return Some(Next::Wait(Wait::Clear(now_ns + CONGESTION_WAIT_NS)));
            }
            let once =
                !*was_over && machine.congested && machine.load() > u64::midpoint(machine.background, machine.limit);
            if !machine.is_over() && !once {
                break;
            }
            *was_over = true;
            machine.exceeded |= machine.is_over();
            if machine.pages.dirty == 0 {
                return Some(Next::Wait(Wait::Clear(now_ns + CONGESTION_WAIT_NS)));
            }
            *pass = Some(Pass::new(machine, chunk, true, None));
        }
        machine.exceeded &= machine.is_over();
        if machine.pages.dirty > machine.background {
            machine.want_background();
        }
        self.doing = Doing::Asking;
        None
    }

    /// Sleeps so long that it writes as fast as the drive: the more, the nearer the limit.
    fn keep_pace(&mut self, now_ns: u64, machine: &mut Machine) -> Option<Next> {
        let load = machine.load();
        let free = u64::midpoint(machine.background, machine.limit);
        if machine.pages.dirty > machine.background {
            machine.want_background();
        }
        if load <= free {
            self.unchecked = 0;
            return None;
        }
        let goal = (free + machine.limit) as f64 / 2.0;
        let position = (1.0 + ((goal - load as f64) / (machine.limit as f64 - goal).max(1.0)).powi(3)).clamp(0.0, 2.0);
        let rate = machine.bandwidth.pages_per_s(now_ns) / f64::from(machine.processes) * position;
        let pause_ns = (self.unchecked as f64 / rate.max(1e-3) * 1e9).min(PAUSE_MOST_NS);
        self.unchecked = 0;
        Some(Next::Wait(Wait::Until(now_ns + pause_ns as u64)))
    }

    fn fsync(&mut self, now_ns: u64, machine: &mut Machine) -> Option<Next> {
        let Doing::Fsync { file, pass, commit } = &mut self.doing else { return None };
        if let Some(own) = pass {
            match own.step(now_ns, machine) {
                PassStep::Submit(bio) => return Some(Next::Submit(bio)),
                PassStep::Locked(page) => return Some(Next::Wait(Wait::Page(page))),
                PassStep::Done => *pass = None,
            }
            // What is not in the running transaction is in the one before.
            let running = machine.journal.started_ns.is_some();
            let number = machine.journal.number - u64::from(!running);
            *commit = Some(number);
            machine.journal.requested = machine.journal.requested.max(number);
            machine.wakes.push(machine.journal_thread());
        }
        let is_committed = commit.is_none_or(|number| machine.journal.committed >= number);
        if is_committed && machine.pages.files[*file as usize].in_flight == 0 {
            self.doing = Doing::Asking;
            return None;
        }
        Some(Next::Wait(Wait::Event))
    }
}

impl Machine {
    /// Pages that count against the limit.
    fn load(&self) -> u64 {
        self.pages.dirty + self.pages.in_writeback
    }

    fn is_over(&self) -> bool {
        self.load() > self.limit
    }
}

fn check_pages(machine: &Machine) -> u64 {
    match machine.rules.writeback {
        Writeback::Paced => CHECK_PACED,
        _ if machine.exceeded => CHECK_OVER,
        _ => machine.config.check_pages(),
    }
}

fn read(machine: &mut Machine, page: Page, pages: u32) -> Option<Next> {
    let file = &machine.pages.files[page.file as usize];
    if page.page >= file.pages() {
        return None;
    }
    if machine.pages.is(page, flag::RESIDENT) {
        machine.pages.touch(page);
        return None;
    }
    let most = pages.min(file.pages() - page.page).min(file.pages_in_piece(page.page));
    let is_absent = |number: &u32| file.flags[*number as usize] & flag::RESIDENT == 0;
    let pages = (page.page..page.page + most).take_while(is_absent).count() as u32;
    Some(Next::Submit(machine.pages.bio(Direction::Read, Purpose::Read, page, pages)))
}

/// Writes to a page; `None` when that is done.
fn write(now_ns: u64, machine: &mut Machine, page: Page, whole: bool) -> Option<Next> {
    let old_pages = machine.pages.files[page.file as usize].pages();
    let is_new = page.page >= old_pages;
    if is_new {
        machine.pages.grow(page.file, page.page + 1);
    } else if !whole && !machine.pages.is(page, flag::RESIDENT) {
        return read(machine, page, 1);
    }
    if machine.config.stable_pages && machine.pages.is(page, flag::IN_FLIGHT) {
        return Some(Next::Wait(Wait::Page(page)));
    }
    let committing = machine.journal.committing_flag();
    if machine.pages.is(page, committing) && machine.pages.is(page, flag::CHANGED) {
        // The commit has not submitted it: the process does, and waits.
        if machine.pages.is(page, flag::IN_FLIGHT) {
            return Some(Next::Wait(Wait::Page(page)));
        }
        let bio = machine.pages.send(Purpose::Buffer, page, 1);
        return Some(Next::Submit(Bio { sync: machine.rules.marks_sync, ..bio }));
    }
    machine.pages.clear(page, committing);
    machine.forgo(page);
    let new_pages = u64::from(page.page + 1).saturating_sub(u64::from(old_pages));
    machine.begin_change(now_ns, page.file, new_pages);
    if is_new || machine.rules.orders_overwrites {
        machine.file_page(now_ns, page);
    }
    machine.pages.change(now_ns, page);
    None
}

/// What a process does next; the next question comes when that is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Act {
    /// Writes to a page; `whole` if all of it, so that it need not be read first. Beyond the end the file grows.
    Write {
        /// Which.
        page: Page,
        /// All of its bytes.
        whole: bool,
    },
    /// Reads a page. If it is not in memory, it is read with the pages behind it, to the file's end at most.
    Read {
        /// Which.
        page: Page,
        /// How many pages are read, this one and read-ahead included.
        pages: u32,
    },
    /// Waits until all that was written to a file is on the drive, and what its commit holds.
    Fsync(u32),
    /// Computes, or pauses, so many nanoseconds.
    Compute(u64),
    /// Ends.
    Exit,
}

/// Processes that use files through the page cache.
pub trait Application {
    /// How many processes there are.
    fn processes(&self) -> u32;

    /// Creates its files; called once, at time 0.
    fn begin(&mut self, files: &mut Files);

    /// What a process does next. `Exit` is the last.
    fn act(&mut self, now_ns: u64, process: u32) -> Act;
}

/// The files that an application begins with.
pub struct Files<'a>(pub(super) &'a mut Pages);

impl Files<'_> {
    /// A new file of so many pages; files are numbered from 0.
    pub fn add(&mut self, pages: u32) -> u32 {
        let file = self.0.add_file();
        self.0.grow(file, pages);
        file
    }

    /// Makes a file longer, at least so long; files that are made longer in turn lie mixed, as those that grow at once.
    pub fn grow(&mut self, file: u32, pages: u32) {
        self.0.grow(file, pages);
    }

    /// The first pages of a file, as many as there is room for, are in memory.
    pub fn load(&mut self, file: u32) {
        self.0.preload(file);
    }
}
