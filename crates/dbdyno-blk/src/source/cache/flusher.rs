//! Threads of writeback: pdflush's two (to 2.6.31) or the one flusher of a device, each in passes over dirty files in
//! the order of their pages.

use super::config::{Page, Writeback, flag};
use super::machine::{Machine, Next, Purpose, Wait};
use crate::queue::Bio;

/// Pages of one turn.
const TURN_PAGES: u64 = 1024;
/// How long who does not wait for requests waits for them to be fewer.
const CONGESTION_WAIT_NS: u64 = 100_000_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Task {
    Background,
    Periodic,
}

/// One thread.
#[derive(Debug)]
pub(super) struct Flusher {
    does_background: bool,
    /// When it looks for old files next, if it does.
    periodic_ns: Option<u64>,
    /// Pages that this look may still write.
    periodic_left: u64,
    pass: Option<(Task, Pass)>,
    task: Option<Task>,
}

/// The threads that a kernel has.
pub(super) fn threads(machine: &Machine) -> Vec<Flusher> {
    let first_ns = Some(machine.config.dirty_writeback_ms * 1_000_000);
    let thread = |does_background, periodic_ns| Flusher {
        does_background,
        periodic_ns,
        periodic_left: 0,
        pass: None,
        task: None,
    };
    if machine.rules.writeback == Writeback::Pdflush {
        vec![thread(true, None), thread(false, first_ns)]
    } else {
        vec![thread(true, first_ns)]
    }
}

impl Flusher {
    /// What the thread does next.
    pub(super) fn step(&mut self, now_ns: u64, machine: &mut Machine) -> Next {
        loop {
            if let Some((task, mut pass)) = self.pass.take() {
                match pass.step(now_ns, machine) {
                    PassStep::Submit(bio) => {
                        self.pass = Some((task, pass));
                        return Next::Submit(bio);
                    }
                    PassStep::Locked(page) => {
                        self.pass = Some((task, pass));
                        return Next::Wait(Wait::Page(page));
                    }
                    PassStep::Done => {
                        if let Some(wait) = self.ended(now_ns, machine, task, &pass) {
                            return Next::Wait(wait);
                        }
                    }
                }
            }
            let Some(task) = self.next_task(now_ns, machine) else {
                return Next::Wait(self.periodic_ns.map_or(Wait::Event, Wait::Until));
            };
            self.task = Some(task);
            let waits = machine.rules.writeback != Writeback::Pdflush;
            let (before_ns, pages) = match task {
                Task::Background => (None, turn_pages(now_ns, machine)),
                Task::Periodic => {
                    let before_ns = now_ns.saturating_sub(machine.config.dirty_expire_ms * 1_000_000);
                    (Some(before_ns), turn_pages(now_ns, machine).min(self.periodic_left))
                }
            };
            self.pass = Some((task, Pass::new(machine, pages, waits, before_ns)));
        }
    }

    fn next_task(&mut self, now_ns: u64, machine: &mut Machine) -> Option<Task> {
        if let Some(at_ns) = self.periodic_ns.filter(|at_ns| *at_ns <= now_ns) {
            self.periodic_ns = Some(at_ns.max(now_ns) + machine.config.dirty_writeback_ms * 1_000_000);
            self.periodic_left = machine.pages.dirty;
            if self.periodic_left > 0 {
                return Some(Task::Periodic);
            }
        }
        if let Some(Task::Periodic) = self.task {
            return self.task;
        }
        if !self.does_background || !machine.wanted {
            return None;
        }
        if machine.pages.dirty < machine.background {
            machine.wanted = false;
            return None;
        }
        Some(Task::Background)
    }

    /// A turn has ended: goes on, or waits, or has no more to do.
    fn ended(&mut self, now_ns: u64, machine: &mut Machine, task: Task, pass: &Pass) -> Option<Wait> {
        let is_used_up = pass.left == 0;
        let clear = Some(Wait::Clear(now_ns + CONGESTION_WAIT_NS));
        match task {
            Task::Periodic => {
                let pages = turn_pages(now_ns, machine).min(self.periodic_left);
                self.periodic_left -= pages.saturating_sub(pass.left);
                if pass.congested {
                    return clear;
                }
                if !is_used_up || self.periodic_left == 0 {
                    self.task = None;
                }
                None
            }
            Task::Background => {
                self.task = None;
                if is_used_up && pass.skipped == 0 {
                    return None;
                }
                if !pass.congested {
                    machine.wanted = false;
                }
                clear
            }
        }
    }
}

/// Half a second's worth of pages where writers are paced.
fn turn_pages(now_ns: u64, machine: &mut Machine) -> u64 {
    if machine.rules.writeback == Writeback::Paced {
        return TURN_PAGES.max(machine.bandwidth.pages_per_s(now_ns) as u64 / 2);
    }
    TURN_PAGES
}

/// What a pass does next.
pub(super) enum PassStep {
    Submit(Bio),
    /// It waits for a page that another task is writing.
    Locked(Page),
    Done,
}

/// Where it is in a file; after the last page it goes on at the first, up to where it began.
#[derive(Debug, Clone, Copy)]
struct At {
    file: u32,
    page: u32,
    end: Option<u32>,
}

/// A pass.
#[derive(Debug)]
pub(super) struct Pass {
    /// Pages that it may still look at.
    pub left: u64,
    /// It waits for requests, and for pages that others have sent.
    waits: bool,
    /// Only files that became dirty before, and those from their first page.
    before_ns: Option<u64>,
    only: Option<u32>,
    files_left: usize,
    at: Option<At>,
    /// It ended because the queue is congested.
    pub congested: bool,
    /// Pages it passed by because others have sent them.
    pub skipped: u64,
    pub sync: bool,
}

impl Pass {
    pub(super) fn new(machine: &Machine, pages: u64, waits: bool, before_ns: Option<u64>) -> Self {
        let files_left = machine.pages.turn.len();
        Self {
            left: pages,
            waits,
            before_ns,
            only: None,
            files_left,
            at: None,
            congested: false,
            skipped: 0,
            sync: false,
        }
    }

    /// Over one file, by a process that waits for it.
    pub(super) fn of_file(machine: &Machine, file: u32) -> Self {
        let mut pass = Self::new(machine, u64::MAX, true, None);
        (pass.only, pass.files_left, pass.sync) = (Some(file), 1, machine.rules.marks_sync);
        pass
    }

    pub(super) fn step(&mut self, now_ns: u64, machine: &mut Machine) -> PassStep {
        loop {
            self.congested = !self.waits && machine.congested;
            if self.left == 0 || self.congested {
                self.leave(now_ns, machine);
                return PassStep::Done;
            }
            let Some(at) = self.at.or_else(|| self.enter(machine)) else { return PassStep::Done };
            self.at = Some(at);
            let file = &machine.pages.files[at.file as usize];
            let next = file.dirty.next_from(at.page).filter(|page| at.end.is_none_or(|end| *page < end));
            match next {
                Some(page) => {
                    if let Some(step) = self.consider(now_ns, machine, at, page) {
                        return step;
                    }
                }
                None if at.end.is_none() && self.before_ns.is_none() && self.only.is_none() => {
                    self.at = Some(At { page: 0, end: Some(file.writeback_from), ..at });
                }
                None => self.leave(now_ns, machine),
            }
        }
    }

    /// Goes to the next file whose turn it is.
    fn enter(&mut self, machine: &mut Machine) -> Option<At> {
        while self.files_left > 0 {
            self.files_left -= 1;
            if let Some(file) = self.only {
                return Some(At { file, page: 0, end: None });
            }
            let file = machine.pages.turn.pop_front()?;
            let file_pages = &machine.pages.files[file as usize];
            match self.before_ns {
                Some(before_ns) if file_pages.dirtied_ns >= before_ns => machine.pages.turn.push_back(file),
                Some(_) => return Some(At { file, page: 0, end: None }),
                None => return Some(At { file, page: file_pages.writeback_from, end: None }),
            }
        }
        None
    }

    /// Leaves a file, which goes behind the others if it is still dirty.
    fn leave(&mut self, now_ns: u64, machine: &mut Machine) {
        let Some(At { file, page, .. }) = self.at.take() else { return };
        if self.only.is_some() {
            return;
        }
        let others = !machine.pages.turn.is_empty();
        let left = &mut machine.pages.files[file as usize];
        if self.before_ns.is_none() {
            left.writeback_from = page;
        }
        if left.dirty.is_empty() {
            left.is_listed = false;
            return;
        }
        if others && self.before_ns.is_none() {
            left.dirtied_ns = now_ns;
        }
        machine.pages.turn.push_back(file);
    }

    fn consider(&mut self, now_ns: u64, machine: &mut Machine, at: At, page: u32) -> Option<PassStep> {
        let here = Page { file: at.file, page };
        let flags = machine.pages.flags(here);
        self.at = Some(At { page: page + 1, ..at });
        if flags & flag::IN_FLIGHT != 0 {
            if self.waits && flags & flag::WRITEBACK == 0 {
                self.at = Some(At { page, ..at });
                return Some(PassStep::Locked(here));
            }
            if flags & flag::WRITEBACK == 0 {
                self.skipped += 1;
                self.left -= 1;
            }
            return None;
        }
        if flags & flag::CHANGED == 0 {
            // A commit has written it already.
            machine.pages.clean(here);
            self.left -= 1;
            return None;
        }
        let pages = run(machine, at, page);
        self.at = Some(At { page: page + pages, ..at });
        self.left -= u64::from(pages).min(self.left);
        for page in page..page + pages {
            let page = Page { file: at.file, page };
            machine.pages.clean(page);
            if machine.rules.orders_overwrites {
                machine.file_page(now_ns, page);
            }
        }
        let bio = machine.pages.send(Purpose::Writeback, here, pages);
        Some(PassStep::Submit(Bio { sync: self.sync, ..bio }))
    }
}

/// How many pages go into one bio that begins with this one.
fn run(machine: &Machine, at: At, page: u32) -> u32 {
    let file = &machine.pages.files[at.file as usize];
    let most = machine.rules.bio_pages.min(file.pages_in_piece(page)).min(at.end.map_or(u32::MAX, |end| end - page));
    let joins_run = |next: &u32| {
        let flags = file.flags.get(*next as usize).copied().unwrap_or(0);
        flags & (flag::CHANGED | flag::IN_FLIGHT) == flag::CHANGED && file.dirty.contains(*next)
    };
    (page..page + most).take_while(joins_run).count() as u32
}
