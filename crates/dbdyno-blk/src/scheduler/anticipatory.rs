//! anticipatory (to 2.6.32): after a read it waits a moment for the same process's next, which is likely to be near.
//!
//! Synchronous and asynchronous requests are served in batches limited by time; a change of batch first lets everything
//! dispatched finish. In a synchronous batch the drive is left idle for `antic_expire` after a process's request,
//! unless its habits (think time, distances) speak against it, or another's request lies close by.
//!
//! Cannot: HZ below 1000 (times are not rounded to longer ticks), the states of exited processes that share a context.

use super::contract::{May, Scheduler, SchedulerError, Settings, Tunable, Unit};
use super::process::{Fading, Nearness, Seeks};
use crate::queue::{Bio, Direction, Fifo, Queue, Request, RequestId, Side, Sorted};

pub(super) const TUNABLES: &[Tunable] = &[
    Tunable::new("read_expire", 125, Unit::Milliseconds),
    Tunable::new("write_expire", 250, Unit::Milliseconds),
    Tunable::new("read_batch_expire", 500, Unit::Milliseconds),
    Tunable::new("write_batch_expire", 125, Unit::Milliseconds),
    Tunable::new("antic_expire", 6, Unit::Milliseconds),
];

const NEARNESS: Nearness = Nearness { back_most: 1_048_576, penalty: 2 };
const SYNC: usize = 0;
const ASYNC: usize = 1;

#[derive(Default)]
struct Waiting {
    fifo: Fifo,
    sorted: Sorted,
    next: Option<RequestId>,
    /// When the head of the list was last looked at for its age.
    looked_ns: u64,
    /// Where the last one dispatched ends.
    last_end: u64,
}

/// The batch that is served.
struct Batch {
    kind: usize,
    /// Everything dispatched before it must finish first.
    drains: bool,
    /// Its time begins with its first completion.
    is_new: bool,
    ends_ns: u64,
    /// Requests left of an asynchronous one.
    writes_left: u64,
    /// What the next one may have.
    writes: u64,
    /// No reads waited meanwhile, so its length says nothing.
    idled: bool,
}

pub(super) struct Anticipatory {
    expire_ns: [u64; 2],
    batch_ns: [u64; 2],
    waiting: [Waiting; 2],
    batch: Batch,
    /// Dispatched and not finished.
    dispatched: usize,
    anticipation: Anticipation,
}

fn kind(sync: bool) -> usize {
    if sync { SYNC } else { ASYNC }
}

impl Anticipatory {
    pub(super) fn new(overrides: &[(&str, u64)]) -> Result<Self, SchedulerError> {
        let settings = Settings::new("anticipatory", TUNABLES, overrides)?;
        let batch_ns = [settings.ns("read_batch_expire"), settings.ns("write_batch_expire")];
        let writes = (settings.get("write_batch_expire") / 10).max(2);
        Ok(Self {
            expire_ns: [settings.ns("read_expire"), settings.ns("write_expire")],
            batch_ns,
            waiting: Default::default(),
            batch: Batch {
                kind: SYNC,
                drains: false,
                is_new: false,
                ends_ns: batch_ns[SYNC],
                writes_left: writes,
                writes,
                idled: false,
            },
            dispatched: 0,
            anticipation: Anticipation::new(settings.ns("antic_expire")),
        })
    }

    /// The better of what lies behind a request that leaves, wrapping, and before it.
    fn follower(&self, queue: &Queue, of: &Request, kind: usize) -> Option<RequestId> {
        let sorted = &self.waiting[kind].sorted;
        let after = sorted.successor(of).or_else(|| sorted.first());
        let Some(before) = sorted.predecessor(of) else { return after };
        let Some(after) = after else { return Some(before) };
        let start = |id: RequestId| queue.requests[id].start_sector;
        let head = self.waiting[kind].last_end;
        Some(if NEARNESS.prefers(head, start(before), start(after)) { before } else { after })
    }

    fn forget(&mut self, queue: &mut Queue, id: RequestId) {
        let of = kind(queue.requests[id].sync);
        self.waiting[of].sorted.remove(&queue.requests, id);
        self.waiting[of].fifo.remove(&mut queue.requests, id);
        if self.waiting[of].next == Some(id) {
            self.waiting[of].next = self.follower(queue, &queue.requests[id], of);
        }
    }

    /// The oldest request, if it is too old; looked at once in each interval.
    fn expired(&mut self, queue: &Queue, of: usize) -> Option<RequestId> {
        let waiting = &mut self.waiting[of];
        if queue.now_ns < waiting.looked_ns + self.expire_ns[of] {
            return None;
        }
        waiting.looked_ns = queue.now_ns;
        waiting.fifo.head().filter(|id| queue.requests[*id].expires_ns < queue.now_ns)
    }

    fn batch_is_over(&self, now_ns: u64) -> bool {
        let batch = &self.batch;
        !batch.drains && !batch.is_new && (now_ns > batch.ends_ns || (batch.kind == ASYNC && batch.writes_left == 0))
    }

    /// Goes on with the batch: what to dispatch, or that it waits, or that there is nothing of this kind.
    fn choose_in_batch(&mut self, queue: &Queue) -> Choice {
        let of = self.batch.kind;
        let next = self.waiting[of].next;
        if of == SYNC {
            if let Some(id) = self.expired(queue, SYNC) {
                return Choice::Take(id);
            }
            let candidate = next.map(|id| &queue.requests[id]);
            if self.anticipation.begin(queue.now_ns, candidate, self.waiting[SYNC].last_end) {
                return Choice::Wait;
            }
        }
        let Some(id) = next else { return Choice::Nothing };
        if self.waiting[ASYNC].fifo.is_empty() {
            self.batch.ends_ns = queue.now_ns + self.batch_ns[SYNC];
        }
        Choice::Take(self.expired(queue, of).unwrap_or(id))
    }

    /// Begins a batch, of the other kind if both wait.
    fn choose_in_new_batch(&mut self, queue: &Queue) -> Option<RequestId> {
        let [reads, writes] = &self.waiting;
        let turns_to_writes = !writes.fifo.is_empty() && (reads.fifo.is_empty() || self.batch.kind == SYNC);
        let of = if turns_to_writes { ASYNC } else { SYNC };
        let head = self.waiting[of].fifo.head()?;
        self.batch.drains |= self.batch.kind != of;
        if of == ASYNC {
            self.batch.is_new = false;
            self.batch.writes_left = self.batch.writes;
            self.batch.idled = false;
        }
        self.batch.kind = of;
        self.waiting[of].looked_ns = queue.now_ns;
        Some(head)
    }

    /// Everything of the batch before is finished.
    fn start_batch(&mut self, now_ns: u64) {
        self.batch.drains = false;
        self.batch.ends_ns = now_ns + self.batch_ns[self.batch.kind];
        self.batch.is_new = self.batch.kind == SYNC;
    }

    /// How many writes the next batch may have, from how long the last took.
    fn adapt_writes(&mut self, now_ns: u64) {
        let allowed_ns = self.batch_ns[ASYNC];
        let took_ns = (now_ns + allowed_ns).saturating_sub(self.batch.ends_ns);
        let batch = &mut self.batch;
        if took_ns > allowed_ns && !batch.idled {
            batch.writes = if took_ns > allowed_ns * 3 { batch.writes / 2 } else { batch.writes - 1 };
        } else if took_ns < allowed_ns && batch.writes_left == 0 {
            batch.writes = if allowed_ns > took_ns * 3 { batch.writes * 2 } else { batch.writes + 1 };
        }
        batch.writes = batch.writes.clamp(1, 1 << 20);
    }

    fn give(&mut self, queue: &mut Queue, id: RequestId) {
        let request = &queue.requests[id];
        let of = kind(request.sync);
        self.waiting[of].last_end = request.end_sector();
        self.waiting[of].next = Some(id);
        self.anticipation.dispatched(request);
        if of == ASYNC {
            self.batch.writes_left = self.batch.writes_left.saturating_sub(1);
        }
        self.dispatched += 1;
        self.forget(queue, id);
        queue.dispatch_sorted(id);
    }
}

enum Choice {
    Take(RequestId),
    /// On purpose.
    Wait,
    Nothing,
}

impl Scheduler for Anticipatory {
    fn insert(&mut self, queue: &mut Queue, id: RequestId) {
        let of = kind(queue.requests[id].sync);
        queue.requests[id].expires_ns = queue.now_ns + self.expire_ns[of];
        let waiting = &mut self.waiting[of];
        waiting.fifo.push(&mut queue.requests, id);
        waiting.sorted.insert(&queue.requests, id);
        let request = &queue.requests[id];
        let start = |id: RequestId| queue.requests[id].start_sector;
        let is_better = |old| NEARNESS.prefers(waiting.last_end, request.start_sector, start(old));
        if waiting.next.is_none_or(is_better) {
            waiting.next = Some(id);
        }
        self.anticipation.arrived(queue.now_ns, request, self.waiting[SYNC].last_end);
    }

    fn find_merge(&self, queue: &Queue, bio: &Bio) -> Option<(RequestId, Side)> {
        queue.find_last_merge(bio).or_else(|| queue.find_back(bio, |_| true)).or_else(|| {
            let id = self.waiting[kind(bio.sync)].sorted.starts_at(bio.end_sector())?;
            Some((id, queue.side(id, bio)?))
        })
    }

    fn merged(&mut self, queue: &mut Queue, id: RequestId, old_start: u64) {
        if queue.requests[id].start_sector != old_start {
            self.waiting[kind(queue.requests[id].sync)].sorted.moved(&queue.requests, id, old_start);
        }
    }

    fn neighbour(&self, queue: &Queue, id: RequestId, side: Side) -> Option<RequestId> {
        let request = &queue.requests[id];
        let sorted = &self.waiting[kind(request.sync)].sorted;
        match side {
            Side::Back => sorted.successor(request),
            Side::Front => sorted.predecessor(request),
        }
    }

    fn absorbed(&mut self, queue: &mut Queue, id: RequestId, gone: RequestId) {
        let earlier_ns = queue.requests[gone].expires_ns;
        self.anticipation.absorbed(&queue.requests[gone]);
        if earlier_ns < queue.requests[id].expires_ns {
            queue.requests[id].expires_ns = earlier_ns;
            let fifo = &mut self.waiting[kind(queue.requests[gone].sync)].fifo;
            // Put the older one, which leaves, where the other stood.
            fifo.remove(&mut queue.requests, id);
            fifo.insert_after(&mut queue.requests, gone, id);
        }
        self.forget(queue, gone);
    }

    fn dispatch(&mut self, queue: &mut Queue) -> bool {
        let (has_reads, has_writes) = (!self.waiting[SYNC].fifo.is_empty(), !self.waiting[ASYNC].fifo.is_empty());
        self.batch.idled |= self.batch.kind == ASYNC && !has_reads;
        if !(has_reads || has_writes) || self.anticipation.waits() || self.batch.drains {
            return false;
        }
        let mut chosen = None;
        if !(has_reads && has_writes && self.batch_is_over(queue.now_ns)) {
            match self.choose_in_batch(queue) {
                Choice::Take(id) => chosen = Some(id),
                Choice::Wait => return false,
                Choice::Nothing => {}
            }
        }
        let Some(id) = chosen.or_else(|| self.choose_in_new_batch(queue)) else { return false };
        if self.batch.drains {
            if self.dispatched > 0 {
                return false;
            }
            self.start_batch(queue.now_ns);
        }
        self.give(queue, id);
        true
    }

    fn drain(&mut self, queue: &mut Queue) {
        for of in [SYNC, ASYNC] {
            while let Some(id) = self.waiting[of].fifo.head() {
                self.give(queue, id);
            }
        }
    }

    fn started(&mut self, queue: &mut Queue, id: RequestId) {
        self.anticipation.started(&queue.requests[id]);
    }

    fn completed(&mut self, queue: &mut Queue, request: &Request) {
        self.dispatched -= 1;
        if self.batch.drains && self.dispatched == 0 {
            self.start_batch(queue.now_ns);
        } else if self.batch.is_new && kind(request.sync) == SYNC {
            self.adapt_writes(queue.now_ns);
            self.batch.ends_ns = queue.now_ns + self.batch_ns[SYNC];
            self.batch.is_new = false;
        }
        self.anticipation.completed(queue.now_ns, request);
    }

    fn next_due(&self) -> Option<u64> {
        self.anticipation.next_due()
    }

    fn timer(&mut self, _queue: &mut Queue) {
        self.anticipation.time_is_over();
    }

    fn may_queue(&self, _queue: &Queue, bio: &Bio) -> May {
        let is_awaited = self.anticipation.waits() && self.anticipation.process() == Some(bio.process);
        if is_awaited && self.anticipation.status() != Status::Off { May::Must } else { May::Yes }
    }

    fn exited(&mut self, _queue: &mut Queue, process: u32) {
        self.anticipation.exited(process);
    }

    fn len(&self) -> usize {
        self.waiting.iter().map(|waiting| waiting.fifo.len()).sum()
    }
}

/// Nanoseconds of the unit in which think times are kept, a tick of HZ 1000.
const TICK_NS: u64 = 1_000_000;
/// Longer thinking counts as this, ticks.
const THINK_MOST: u64 = 19;
/// Sectors around the head that count as close at first; twice as many after each tick of waiting.
const CLOSE: u64 = 8192;

/// Where the waiting is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Status {
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
struct Anticipation {
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

    fn status(&self) -> Status {
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
            self.habits_mut(process).queued += 1;
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
            self.habits_mut(request.process).queued -= 1;
        }
    }

    /// A request goes to the dispatch list.
    pub(super) fn dispatched(&mut self, request: &Request) {
        self.status = Status::Off;
        self.is_finished = false;
        self.process = request.sync.then_some(request.process);
        if request.sync {
            let habits = self.habits_mut(request.process);
            habits.queued -= 1;
            habits.dispatched += 1;
        }
    }

    /// The driver took it.
    pub(super) fn started(&mut self, request: &Request) {
        if request.sync {
            self.habits_mut(request.process).dispatched -= 1;
        }
    }

    /// The drive finished it.
    pub(super) fn completed(&mut self, now_ns: u64, request: &Request) {
        if !request.sync {
            return;
        }
        self.habits_mut(request.process).last_end_ns = now_ns;
        if self.process == Some(request.process) {
            self.is_finished = true;
            self.since_ns = now_ns;
            if self.status == Status::Request {
                self.status = Status::Next;
            }
        }
    }

    /// It did not come.
    fn time_is_over(&mut self) {
        let Some(process) = self.process.filter(|_| self.waits()) else { return };
        self.status = Status::Finished;
        let habits = *self.habits_mut(process);
        if habits.think.samples() == 0 {
            self.exit_chance = (7 * self.exit_chance + 256) / 8;
        }
        if habits.has_exited {
            self.alone_chance = (7 * self.alone_chance + 256) / 8;
        }
    }

    pub(super) fn exited(&mut self, process: u32) {
        self.habits_mut(process).has_exited = true;
    }

    /// Nothing is gained by waiting any longer, or this candidate is as good as what would come.
    fn is_over(&mut self, now_ns: u64, candidate: Option<&Request>, head: u64) -> bool {
        let Some(process) = self.process else { return true };
        let habits = *self.habits_mut(process);
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
        let habits = self.habits_mut(request.process);
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
        self.habits_mut(request.process).seeks.add(request.start_sector, request.end_sector());
    }

    fn habits_mut(&mut self, process: u32) -> &mut Habits {
        let process = process as usize;
        if process >= self.habits.len() {
            self.habits.resize(process + 1, Habits::default());
        }
        &mut self.habits[process]
    }
}
