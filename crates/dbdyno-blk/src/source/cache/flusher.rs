//! Threads of writeback: pdflush's two (to 2.6.31), or the one flusher of a device.

use super::machine::{Machine, Next, Wait};
use super::pass::{Pass, PassStep};
use super::writeback::Writeback;

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
