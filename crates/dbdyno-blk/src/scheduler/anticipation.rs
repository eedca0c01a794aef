//! Whether it is worth while to wait for a process's next request, from what it did so far.

use super::habits::{Fading, Seeks};
use crate::queue::{Direction, Request};

/// Nanoseconds of the unit in which think times are kept, a tick of HZ 1000.
const TICK_NS: u64 = 1_000_000;
/// Longer thinking counts as this, ticks.
const THINK_MOST: u64 = 19;
/// Sectors around the head that count as close at first; twice as many after each tick of waiting.
const CLOSE: u64 = 8192;

/// Where the waiting is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Status {
    /// It does not wait.
    Off,
    /// For the drive to finish the process's request.
    Request,
    /// For the process to send the next one.
    Next,
    /// It waited after the last request dispatched, and is not to begin again.
    Finished,
}

#[derive(Debug, Clone, Copy, Default)]
struct Habits {
    think: Fading,
    seeks: Seeks,
    /// Synchronous requests that wait to be dispatched.
    queued: u32,
    /// Dispatched and not yet with the drive.
    dispatched: u32,
    last_end_ns: u64,
    has_exited: bool,
}

/// The process waited for, and the habits of all.
#[derive(Debug)]
pub(super) struct Anticipation {
    expire_ns: u64,
    status: Status,
    process: Option<u32>,
    /// The process's request is finished, since `since_ns`.
    is_finished: bool,
    since_ns: u64,
    habits: Vec<Habits>,
    /// First think times of processes.
    new_think: Fading,
    /// How likely a process ends after its first request, and then that nobody else's was close; 256 is certain.
    exit_chance: u64,
    alone_chance: u64,
}

impl Anticipation {
    pub(super) fn new(expire_ns: u64) -> Self {
        Self {
            expire_ns,
            status: Status::Off,
            process: None,
            is_finished: false,
            since_ns: 0,
            habits: Vec::new(),
            new_think: Fading::default(),
            exit_chance: 0,
            alone_chance: 0,
        }
    }

    pub(super) fn status(&self) -> Status {
        self.status
    }

    pub(super) fn process(&self) -> Option<u32> {
        self.process
    }

    /// Nothing is to be dispatched now.
    pub(super) fn waits(&self) -> bool {
        matches!(self.status, Status::Request | Status::Next)
    }

    pub(super) fn next_due(&self) -> Option<u64> {
        (self.status == Status::Next).then_some(self.since_ns + self.expire_ns)
    }

    /// Begins to wait, unless there is no reason to or a candidate is good enough.
    pub(super) fn begin(&mut self, now_ns: u64, candidate: Option<&Request>, head: u64) -> bool {
        if self.process.is_none() || self.status == Status::Finished || self.is_over(now_ns, candidate, head) {
            return false;
        }
        self.status = if self.is_finished { Status::Next } else { Status::Request };
        true
    }

    /// A request was queued; it may be what is waited for, or as good.
    pub(super) fn arrived(&mut self, now_ns: u64, request: &Request, head: u64) {
        let (process, sync) = (request.process, request.sync);
        self.learn(now_ns, request);
        if sync {
            self.of(process).queued += 1;
        }
        if self.waits() && self.is_over(now_ns, Some(request), head) {
            if self.process != Some(process) && sync {
                self.alone_chance = 7 * self.alone_chance / 8;
            }
            self.status = Status::Finished;
        }
    }

    /// A request becomes a part of another.
    pub(super) fn absorbed(&mut self, request: &Request) {
        if request.sync {
            self.of(request.process).queued -= 1;
        }
    }

    /// A request goes to the dispatch list.
    pub(super) fn dispatched(&mut self, request: &Request) {
        self.status = Status::Off;
        self.is_finished = false;
        self.process = request.sync.then_some(request.process);
        if request.sync {
            let habits = self.of(request.process);
            habits.queued -= 1;
            habits.dispatched += 1;
        }
    }

    /// The driver took it.
    pub(super) fn started(&mut self, request: &Request) {
        if request.sync {
            self.of(request.process).dispatched -= 1;
        }
    }

    /// The drive finished it.
    pub(super) fn completed(&mut self, now_ns: u64, request: &Request) {
        if !request.sync {
            return;
        }
        self.of(request.process).last_end_ns = now_ns;
        if self.process == Some(request.process) {
            self.is_finished = true;
            self.since_ns = now_ns;
            if self.status == Status::Request {
                self.status = Status::Next;
            }
        }
    }

    /// It did not come.
    pub(super) fn time_is_over(&mut self) {
        let Some(process) = self.process.filter(|_| self.waits()) else { return };
        self.status = Status::Finished;
        let habits = *self.of(process);
        if habits.think.samples() == 0 {
            self.exit_chance = (7 * self.exit_chance + 256) / 8;
        }
        if habits.has_exited {
            self.alone_chance = (7 * self.alone_chance + 256) / 8;
        }
    }

    pub(super) fn exited(&mut self, process: u32) {
        self.of(process).has_exited = true;
    }

    /// Nothing is gained by waiting any longer, or this candidate is as good as what would come.
    fn is_over(&mut self, now_ns: u64, candidate: Option<&Request>, head: u64) -> bool {
        let Some(process) = self.process else { return true };
        let habits = *self.of(process);
        if candidate.is_some_and(|candidate| candidate.process == process && candidate.sync) {
            return true;
        }
        if self.is_finished && now_ns >= self.since_ns + self.expire_ns {
            return true;
        }
        if habits.queued > 0 || habits.dispatched > 0 {
            return true;
        }
        if candidate.is_some_and(|candidate| candidate.sync && self.is_close(now_ns, candidate, head, &habits)) {
            return true;
        }
        let expire = self.expire_ns / TICK_NS;
        if habits.think.samples() == 0 {
            return self.new_think.mean() > expire || self.exit_chance * self.alone_chance > 128 * 256;
        }
        habits.think.mean() > expire
    }

    fn is_close(&self, now_ns: u64, candidate: &Request, head: u64, habits: &Habits) -> bool {
        let waited = if self.is_finished { (now_ns - self.since_ns) / TICK_NS } else { 0 };
        if waited > 20 {
            return true;
        }
        let width = CLOSE << waited;
        let start = candidate.start_sector;
        if head.saturating_sub(width / 2) <= start && start <= head + width {
            return true;
        }
        habits.seeks.samples() > 0 && habits.seeks.mean() > start.abs_diff(head)
    }

    fn learn(&mut self, now_ns: u64, request: &Request) {
        if !request.sync || request.direction != Direction::Read {
            return;
        }
        let habits = self.of(request.process);
        if habits.last_end_ns > 0 {
            let is_idle = habits.queued == 0 && habits.dispatched == 0;
            let think = if is_idle { ((now_ns - habits.last_end_ns) / TICK_NS).min(THINK_MOST) } else { 0 };
            let is_first = habits.think.samples() == 0;
            habits.think.add(think);
            if is_first {
                self.new_think.add(think);
                self.exit_chance = 7 * self.exit_chance / 8;
            }
        }
        self.of(request.process).seeks.add(request.start_sector, request.end_sector());
    }

    fn of(&mut self, process: u32) -> &mut Habits {
        let process = process as usize;
        if process >= self.habits.len() {
            self.habits.resize(process + 1, Habits::default());
        }
        &mut self.habits[process]
    }
}
