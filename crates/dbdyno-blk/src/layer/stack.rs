//! The block layer of one device in virtual time: what it is made of, flushes, and the drive with its own queue.
//!
//! To 2.6.36 a write that asks for a flush is a *barrier*: all before it is served first, then the flush, the write,
//! and another flush unless the write was sent with FUA; nothing else meanwhile. From 2.6.37 it is a *sequence* of the
//! same steps beside all other requests: one flush at a time serves all sequences that wait for one, and none begins
//! while sequences write their data, for 5 s at most. A bare flush is a barrier, or a sequence, of one step.
//!
//! Plugging holds requests back for a moment, so that what follows can join them. To 2.6.38 an empty queue is plugged
//! by the first request and unplugged by the fourth, by a process that waits, or after 3 ms. From 2.6.39 every process
//! collects in a list of its own, which goes to the scheduler when it is long enough or the process sleeps: to 5.15
//! sorted, and a bio may join any request of it; later as it came, and a bio may join the last.
//!
//! Cannot: split a bio; one that is larger than the largest request goes as it is.

use std::collections::VecDeque;

use dbdyno_device::{Command, Completion, DeviceModel, Kind, WriteCache};

use super::pool::{Pools, Sharing};
use super::throttle::Throttle;
use crate::queue::{Bio, Direction, Fifo, FlushStep, Limits, Queue, Request, RequestId, Side};
use crate::scheduler::Scheduler;
use crate::statistics::Statistics;

/// The block layer of one device.
pub struct Layer {
    queue: Queue,
    scheduler: Box<dyn Scheduler + Send>,
    drive: Drive,
    pools: Pools,
    plug: Plug,
    flushing: Flushing,
    takes_fua: bool,
    flusher: Flusher,
    /// A barrier is at the drive: nothing else is.
    barrier: bool,
    throttle: Option<Throttle>,
    nr_requests: usize,
    statistics: Statistics,
    finished: VecDeque<Bio>,
    woken: VecDeque<u32>,
}

impl Layer {
    /// An idle one at time 0.
    pub fn new(parts: Parts) -> Self {
        let throttle = |target_ns| Throttle::new(target_ns, parts.drive.depth(), parts.drive.has_write_cache());
        Self {
            throttle: parts.throttle_ns.map(throttle),
            queue: Queue::new(parts.limits, parts.rotational),
            scheduler: parts.scheduler,
            drive: parts.drive,
            pools: Pools::new(parts.sharing, parts.nr_requests),
            plug: Plug::new(parts.plugging),
            flushing: parts.flushing,
            takes_fua: parts.takes_fua,
            flusher: Flusher::default(),
            barrier: false,
            nr_requests: parts.nr_requests,
            statistics: Statistics::default(),
            finished: VecDeque::new(),
            woken: VecDeque::new(),
        }
    }

    /// What was counted so far.
    pub fn statistics(&self) -> &Statistics {
        &self.statistics
    }

    /// The request pools.
    pub fn pools(&self) -> &Pools {
        &self.pools
    }

    /// Takes a bio. `now_ns` is never less than in the call before.
    pub fn submit(&mut self, now_ns: u64, bio: Bio) -> Submitted {
        self.queue.now_ns = now_ns;
        if self.plug.merge(&mut self.queue, bio) || self.merge(bio) {
            self.statistics.merged(&bio);
            return Submitted::Queued;
        }
        let admits = self.throttle.as_mut().is_none_or(|throttle| throttle.admits(now_ns, &bio));
        if admits && self.obtain(bio) {
            return Submitted::Queued;
        }
        self.unplug(now_ns, bio.process);
        Submitted::Asleep
    }

    /// A process waits for what it asked for, or returns from the kernel: nothing of it is held back any longer.
    pub fn unplug(&mut self, now_ns: u64, process: u32) {
        self.queue.now_ns = now_ns;
        match self.plug.plugging() {
            Plugging::Device { .. } => self.plug.release(),
            Plugging::Process { .. } => self.flush_plug(process),
        }
        self.run();
    }

    /// A process is gone for good.
    pub fn exit(&mut self, now_ns: u64, process: u32) {
        self.unplug(now_ns, process);
        self.scheduler.exited(&mut self.queue, process);
        self.run();
    }

    /// When to call [`Layer::advance`] next.
    pub fn next_due(&self) -> Option<u64> {
        let throttle = self.throttle.as_ref().and_then(Throttle::next_due);
        let timers = [self.drive.next_due(), self.plug.until_ns(), self.scheduler.next_due(), throttle];
        timers.into_iter().flatten().min()
    }

    /// Lets everything happen that happens at `now_ns`.
    pub fn advance(&mut self, now_ns: u64) {
        self.queue.now_ns = now_ns;
        if self.drive.next_due().is_some_and(|due_ns| due_ns <= now_ns) {
            let finished = self.drive.poll(now_ns);
            for completion in &finished {
                self.complete(completion.id as RequestId);
            }
            self.drive.keep(finished);
        }
        if self.plug.until_ns().is_some_and(|until_ns| until_ns <= now_ns) {
            self.plug.release();
        }
        if self.scheduler.next_due().is_some_and(|due_ns| due_ns <= now_ns) {
            self.scheduler.timer(&mut self.queue);
        }
        if let Some(throttle) = &mut self.throttle {
            throttle.settle(now_ns);
            self.admit();
        }
        self.run();
    }

    /// A bio that is finished.
    pub fn next_finished(&mut self) -> Option<Bio> {
        self.finished.pop_front()
    }

    /// A process that got the request it slept for.
    pub fn next_woken(&mut self) -> Option<u32> {
        self.woken.pop_front()
    }

    /// Tries to add a bio to a queued request.
    fn merge(&mut self, bio: Bio) -> bool {
        if !bio.can_merge() {
            return false;
        }
        let Some((id, side)) = self.scheduler.find_merge(&self.queue, &bio) else { return false };
        let old_start = self.queue.requests[id].start_sector;
        self.queue.join(id, bio, side);
        self.scheduler.merged(&mut self.queue, id, old_start);
        self.join_neighbour(id, side);
        true
    }

    /// A request that grew may have reached the next one.
    fn join_neighbour(&mut self, id: RequestId, side: Side) {
        let Some(other) = self.scheduler.neighbour(&self.queue, id, side) else { return };
        let (first, behind) = if side == Side::Back { (id, other) } else { (other, id) };
        if self.queue.can_absorb(first, behind) {
            self.scheduler.absorbed(&mut self.queue, first, behind);
            self.absorb(first, behind);
        }
    }

    fn absorb(&mut self, id: RequestId, behind: RequestId) {
        let gone = &self.queue.requests[behind];
        let pool = self.pools.index(gone.direction, gone.sync);
        if let Some(throttle) = &mut self.throttle {
            throttle.ended(self.queue.now_ns, behind, gone);
        }
        self.statistics.absorbed(self.queue.now_ns, &self.queue.requests[id], gone);
        self.queue.absorb(id, behind);
        self.pools.give_back(pool);
        self.wake(pool);
    }

    /// Gives a bio the request that was taken for it.
    fn place(&mut self, bio: Bio) {
        let now_ns = self.queue.now_ns;
        let id = self.queue.requests.allocate(now_ns, bio);
        self.statistics.arrived(now_ns);
        let takes_fua = self.takes_fua;
        let request = &mut self.queue.requests[id];
        request.flush_behind = request.fua && !takes_fua;
        request.fua &= takes_fua;
        request.bypasses |= request.flush_behind;
        if request.bypasses {
            self.place_flush(id);
            return self.run();
        }
        match self.plug.plugging() {
            Plugging::Device { threshold, delay_ns } => {
                if self.scheduler.is_empty() && self.queue.dispatch().is_empty() {
                    self.plug.hold(now_ns, delay_ns);
                }
                self.insert(id);
                if self.queue.requests.len() - self.queue.in_driver >= threshold {
                    self.plug.release();
                }
                self.run();
            }
            Plugging::Process { .. } => {
                if self.plug.must_flush(&self.queue, bio.process) {
                    self.flush_plug(bio.process);
                    self.run();
                }
                self.plug.push(&mut self.queue, bio.process, id);
            }
        }
    }

    /// A request that asks for flushes.
    fn place_flush(&mut self, id: RequestId) {
        let request = &mut self.queue.requests[id];
        match self.flushing {
            Flushing::Barrier => {
                // A bio that asked for a flush before its data wants one behind it, too.
                request.flush_behind |= !request.fua && !request.flush;
                self.scheduler.drain(&mut self.queue);
                self.queue.dispatch_last(id);
            }
            Flushing::Sequence if request.flush || request.step == FlushStep::Before => {
                self.flusher.add(&mut self.queue, id);
                self.send_flush();
            }
            Flushing::Sequence => self.write_sequence(id),
        }
    }

    /// Sends the flush that sequences wait for, if it is due.
    fn send_flush(&mut self) {
        if let Some(command) = self.flusher.next_command(&mut self.queue) {
            self.queue.dispatch_last(command);
        }
    }

    /// A sequence comes to its data.
    fn write_sequence(&mut self, id: RequestId) {
        self.queue.requests[id].step = FlushStep::Data;
        self.flusher.writing += 1;
        self.queue.dispatch_last(id);
    }

    /// The flush of sequences is finished.
    fn complete_flush(&mut self, command: RequestId) {
        self.queue.in_driver -= 1;
        self.statistics.flushed();
        self.queue.requests.take_bio(command);
        while let Some(id) = self.flusher.next_flushed(&mut self.queue) {
            if self.queue.requests[id].step == FlushStep::Before {
                self.write_sequence(id);
            } else {
                self.end(id);
            }
        }
        self.send_flush();
    }

    /// A step of a write that asked for flushes is finished.
    fn complete_step(&mut self, id: RequestId) {
        let request = &mut self.queue.requests[id];
        if request.flush || request.step != FlushStep::Data {
            self.statistics.flushed();
        }
        let is_last = request.step == FlushStep::Behind || (request.step == FlushStep::Data && !request.flush_behind);
        if self.flushing == Flushing::Sequence {
            self.queue.in_driver -= 1;
            self.flusher.writing -= 1;
            if is_last {
                self.end(id);
            } else {
                request.step = FlushStep::Behind;
                self.flusher.add(&mut self.queue, id);
            }
            self.send_flush();
        } else if is_last {
            self.barrier = false;
            self.queue.in_driver -= 1;
            self.end(id);
        } else {
            request.step = if request.step == FlushStep::Before { FlushStep::Data } else { FlushStep::Behind };
            self.drive.submit(self.queue.now_ns, id, request);
        }
    }

    fn insert(&mut self, id: RequestId) {
        self.scheduler.insert(&mut self.queue, id);
        self.queue.list(id);
    }

    /// Hands the scheduler what a process held back; where a request continues a queued one, it becomes a part of it.
    fn flush_plug(&mut self, process: u32) {
        let list = self.plug.take(&mut self.queue, process);
        for &(_, _, id) in &list {
            self.insert(id);
            if let Some(before) = self.scheduler.neighbour(&self.queue, id, Side::Front)
                && self.queue.can_absorb(before, id)
            {
                self.scheduler.absorbed(&mut self.queue, before, id);
                self.absorb(before, id);
            }
        }
        self.plug.keep(list);
    }

    /// Gives the drive what it has room for. One request more is chosen and stays so: SCSI looked at it before it
    /// looked for room, and blk-mq takes it from the scheduler before there is a tag for it.
    fn run(&mut self) {
        if self.plug.until_ns().is_some() || self.barrier {
            return;
        }
        while self.drive.has_room() || self.queue.dispatch().is_empty() {
            if self.queue.dispatch().is_empty() && !self.scheduler.dispatch(&mut self.queue) {
                return;
            }
            let Some(id) = self.queue.peek() else { return };
            let request = &self.queue.requests[id];
            let is_barrier = self.flushing == Flushing::Barrier && request.bypasses;
            if !self.drive.has_room() || (is_barrier && self.queue.in_driver > 0) {
                return;
            }
            self.queue.start(id);
            let request = &self.queue.requests[id];
            self.drive.submit(self.queue.now_ns, id, request);
            if let Some(throttle) = &mut self.throttle {
                throttle.issued(self.queue.now_ns, id, request);
            }
            if is_barrier {
                self.barrier = true;
                return;
            }
            if !request.bypasses {
                self.scheduler.started(&mut self.queue, id);
            }
        }
    }

    fn complete(&mut self, id: RequestId) {
        if self.flusher.is_command(id) {
            return self.complete_flush(id);
        }
        let request = &self.queue.requests[id];
        if request.bypasses {
            return self.complete_step(id);
        }
        self.queue.in_driver -= 1;
        let request = request.clone();
        self.scheduler.completed(&mut self.queue, &request);
        self.end(id);
    }

    /// All that a request asked for is done.
    fn end(&mut self, id: RequestId) {
        let request = &self.queue.requests[id];
        let pool = self.pools.index(request.direction, request.sync);
        if let Some(throttle) = &mut self.throttle {
            throttle.ended(self.queue.now_ns, id, request);
        }
        self.statistics.completed(self.queue.now_ns, request);
        while let Some(bio) = self.queue.requests.take_bio(id) {
            self.statistics.finished(self.queue.now_ns, &bio);
            self.finished.push_back(bio);
        }
        self.pools.give_back(pool);
        self.wake(pool);
    }

    /// Takes a request for a bio, or has its process sleep for one.
    fn obtain(&mut self, bio: Bio) -> bool {
        let may = self.scheduler.may_queue(&self.queue, &bio);
        let limit = self.scheduler.tag_limit(&bio, self.nr_requests);
        let obtained = self.pools.take(self.queue.now_ns, &bio, may, limit);
        if obtained {
            self.place(bio);
        } else {
            self.pools.sleep(bio);
        }
        obtained
    }

    /// Wakes those who can have a request of a pool now, in the order they came, then those who are no longer held
    /// back.
    fn wake(&mut self, pool: usize) {
        while let Some(bio) = self.pools.first_sleeper(pool) {
            let may = self.scheduler.may_queue(&self.queue, &bio);
            let limit = self.scheduler.tag_limit(&bio, self.nr_requests);
            let Some(bio) = self.pools.wake(self.queue.now_ns, pool, may, limit) else { break };
            self.woken.push_back(bio.process);
            self.place(bio);
        }
        self.admit();
    }

    /// Lets those ask for a request whom writeback throttling no longer holds back.
    fn admit(&mut self) {
        let now_ns = self.queue.now_ns;
        while let Some(bio) = self.throttle.as_mut().and_then(|throttle| throttle.next_admitted(now_ns)) {
            if self.obtain(bio) {
                self.woken.push_back(bio.process);
            }
        }
    }
}

/// What a layer is made of.
pub struct Parts {
    /// How requests are held back.
    pub plugging: Plugging,
    /// Which requests share a pool.
    pub sharing: Sharing,
    /// Requests of a pool.
    pub nr_requests: usize,
    /// How far requests grow.
    pub limits: Limits,
    /// The drive has heads.
    pub rotational: bool,
    /// How writes that ask for flushes are served.
    pub flushing: Flushing,
    /// The drive takes writes with FUA; else a flush follows them.
    pub takes_fua: bool,
    /// Chooses what the drive gets.
    pub scheduler: Box<dyn Scheduler + Send>,
    /// Target of writeback throttling, nanoseconds; without it nothing is throttled.
    pub throttle_ns: Option<u64>,
    /// Serves it.
    pub drive: Drive,
}

/// What became of a bio.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Submitted {
    /// It is queued.
    Queued,
    /// There is no request for it. Its process sleeps until [`Layer::next_woken`] names it.
    Asleep,
}

/// Bytes of a sector.
const SECTOR_BYTES: u64 = 512;

/// A drive model with the commands it has.
pub struct Drive {
    model: Box<dyn DeviceModel + Send>,
    depth: usize,
    in_flight: usize,
    finished: Vec<Completion>,
}

impl Drive {
    /// A drive that takes `depth` commands at once, 1 to 256.
    pub fn new(model: Box<dyn DeviceModel + Send>, depth: usize) -> Self {
        Self { model, depth: depth.clamp(1, 256), in_flight: 0, finished: Vec::new() }
    }

    pub(super) fn has_room(&self) -> bool {
        self.in_flight < self.depth
    }

    /// Commands that it takes at once.
    pub(super) fn depth(&self) -> usize {
        self.depth
    }

    pub(super) fn has_write_cache(&self) -> bool {
        self.model.write_cache() == WriteCache::Volatile
    }

    pub(super) fn next_due(&self) -> Option<u64> {
        self.model.next_due()
    }

    pub(super) fn submit(&mut self, now_ns: u64, id: RequestId, request: &Request) {
        let kind = match request.direction {
            _ if request.flush || request.step != FlushStep::Data => Kind::Flush,
            Direction::Read => Kind::Read,
            Direction::Write => Kind::Write,
        };
        self.in_flight += 1;
        self.model.submit(
            now_ns,
            Command {
                id: u64::from(id),
                kind,
                offset_bytes: request.start_sector * SECTOR_BYTES,
                length_bytes: u64::from(request.sectors) * SECTOR_BYTES,
                fua: request.fua,
            },
        );
    }

    /// Reads which commands have been finished; give the list back with [`Drive::keep`].
    pub(super) fn poll(&mut self, now_ns: u64) -> Vec<Completion> {
        let mut finished = std::mem::take(&mut self.finished);
        self.model.poll(now_ns, &mut finished);
        self.in_flight -= finished.len();
        finished
    }

    pub(super) fn keep(&mut self, mut finished: Vec<Completion>) {
        finished.clear();
        self.finished = finished;
    }
}

/// How a kernel flushes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Flushing {
    /// To 2.6.36.
    Barrier,
    /// From 2.6.37.
    Sequence,
}

/// A flush waits no longer than this for others' data, nanoseconds.
const PATIENCE_NS: u64 = 5_000_000_000;

/// Sequences that wait for a flush.
#[derive(Debug, Default)]
pub(super) struct Flusher {
    pending: Fifo,
    pending_since_ns: u64,
    /// Those that the flush at the drive is for.
    running: Fifo,
    command: Option<RequestId>,
    /// Sequences that write their data.
    pub writing: usize,
}

impl Flusher {
    /// Has a sequence wait for a flush.
    pub fn add(&mut self, queue: &mut Queue, id: RequestId) {
        if self.pending.is_empty() {
            self.pending_since_ns = queue.now_ns;
        }
        self.pending.push(&mut queue.requests, id);
    }

    /// The flush to send now, if one is due.
    pub fn next_command(&mut self, queue: &mut Queue) -> Option<RequestId> {
        let is_patient = self.writing > 0 && queue.now_ns < self.pending_since_ns + PATIENCE_NS;
        if self.command.is_some() || self.pending.is_empty() || is_patient {
            return None;
        }
        self.running = std::mem::take(&mut self.pending);
        let command = queue.requests.allocate_flush(queue.now_ns);
        self.command = Some(command);
        Some(command)
    }

    /// Whether this is the flush at the drive.
    pub fn is_command(&self, id: RequestId) -> bool {
        self.command == Some(id)
    }

    /// The flush is finished: call until there is none for a sequence that it was for.
    pub fn next_flushed(&mut self, queue: &mut Queue) -> Option<RequestId> {
        let next = self.running.pop(&mut queue.requests);
        if next.is_none() {
            // Only now: a sequence woken meanwhile must not begin the next flush.
            self.command = None;
        }
        next
    }
}

/// How a kernel plugs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Plugging {
    /// The device, to 2.6.38.
    Device {
        /// Requests outside of the driver that end it.
        threshold: usize,
        /// How long it lasts at most, nanoseconds.
        delay_ns: u64,
    },
    /// Each process, from 2.6.39.
    Process {
        /// Requests that are collected at most.
        most: usize,
        /// A last request of this many sectors ends it.
        sectors: u32,
        /// The list is searched and sorted (to 5.15).
        sorts: bool,
    },
}

/// What is plugged now.
#[derive(Debug)]
pub(super) struct Plug {
    kind: Plugging,
    /// When the device is unplugged at the latest, while it is plugged.
    until_ns: Option<u64>,
    lists: Vec<Fifo>,
    /// Room for a list that is taken.
    sorted: Vec<(u64, u64, RequestId)>,
}

impl Plug {
    pub(super) fn new(plugging: Plugging) -> Self {
        Self { kind: plugging, until_ns: None, lists: Vec::new(), sorted: Vec::new() }
    }

    pub(super) fn plugging(&self) -> Plugging {
        self.kind
    }

    pub(super) fn until_ns(&self) -> Option<u64> {
        self.until_ns
    }

    /// Plugs the device.
    pub(super) fn hold(&mut self, now_ns: u64, delay_ns: u64) {
        self.until_ns = self.until_ns.or(Some(now_ns + delay_ns));
    }

    /// Unplugs the device.
    pub(super) fn release(&mut self) {
        self.until_ns = None;
    }

    /// Lets a bio join a request that its process holds back.
    pub(super) fn merge(&self, queue: &mut Queue, bio: Bio) -> bool {
        let Some(list) = self.lists.get(bio.process as usize) else { return false };
        let tried = if self.sorts() { list.len() } else { 1 };
        let candidate = list.backwards(&queue.requests).take(tried).find_map(|id| Some((id, queue.side(id, &bio)?)));
        let Some((id, side)) = candidate else { return false };
        queue.requests.join(id, bio, side);
        true
    }

    /// What a process holds back is long enough: it must go to the scheduler before more is added.
    pub(super) fn must_flush(&self, queue: &Queue, process: u32) -> bool {
        let Plugging::Process { most, sectors: long, .. } = self.kind else { return false };
        let Some(list) = self.lists.get(process as usize) else {
            return false;
        };
        let newest = list.backwards(&queue.requests).next();
        list.len() >= most || newest.is_some_and(|id| queue.requests[id].sectors >= long)
    }

    /// Holds a request back.
    pub(super) fn push(&mut self, queue: &mut Queue, process: u32, id: RequestId) {
        let process = process as usize;
        if process >= self.lists.len() {
            self.lists.resize(process + 1, Fifo::default());
        }
        self.lists[process].push(&mut queue.requests, id);
    }

    fn sorts(&self) -> bool {
        matches!(self.kind, Plugging::Process { sorts: true, .. })
    }

    /// Takes what a process held back, in the order in which it goes to the scheduler; give the list back with
    /// [`Plug::keep`].
    pub(super) fn take(&mut self, queue: &mut Queue, process: u32) -> Vec<(u64, u64, RequestId)> {
        let mut sorted = std::mem::take(&mut self.sorted);
        if let Some(list) = self.lists.get_mut(process as usize) {
            while let Some(id) = list.pop(&mut queue.requests) {
                let request = &queue.requests[id];
                sorted.push((request.start_sector, request.number, id));
            }
            if self.sorts() {
                sorted.sort_unstable();
            }
        }
        sorted
    }

    pub(super) fn keep(&mut self, mut sorted: Vec<(u64, u64, RequestId)>) {
        sorted.clear();
        self.sorted = sorted;
    }
}
