//! cfq of 2.6.9: one queue per process and no slices. A round takes the lowest sector of every busy queue, again and
//! again until it has `quantum` requests. The kernel sets `nr_requests` to 8192, and each process may have its share of
//! them.
//!
//! Cannot: queues by user or group (`key_type`), the ages of requests.

use std::collections::VecDeque;

use super::contract::{May, Scheduler, SchedulerError, Settings, Tunable, Unit};
use crate::queue::{Bio, Fifo, Queue, Request, RequestId, Side, Sorted};

pub(super) const TUNABLES: &[Tunable] =
    &[Tunable::new("quantum", 4, Unit::Count), Tunable::new("queued", 8, Unit::Count)];

/// What the kernel sets `nr_requests` to.
pub(crate) const NR_REQUESTS: usize = 8192;
/// Requests of a process at least and at most.
const SHARE: (usize, usize) = (3, 128);

#[derive(Debug, Default)]
struct OfProcess {
    fifo: Fifo,
    sorted: Sorted,
    /// Requests that it has anywhere.
    allocated: usize,
}

pub(super) struct CfqRounds {
    quantum: usize,
    spared: usize,
    processes: Vec<OfProcess>,
    /// Processes with requests, in the order of their turns.
    busy: VecDeque<u32>,
    length: usize,
}

impl CfqRounds {
    pub(super) fn new(overrides: &[(&str, u64)]) -> Result<Self, SchedulerError> {
        let settings = Settings::new("cfq", TUNABLES, overrides)?;
        Ok(Self {
            quantum: settings.get("quantum").max(1) as usize,
            spared: settings.get("queued") as usize,
            processes: Vec::new(),
            busy: VecDeque::new(),
            length: 0,
        })
    }

    fn of(&mut self, process: u32) -> &mut OfProcess {
        let process = process as usize;
        if process >= self.processes.len() {
            self.processes.resize_with(process + 1, OfProcess::default);
        }
        &mut self.processes[process]
    }

    fn forget(&mut self, queue: &mut Queue, id: RequestId) {
        let process = queue.requests[id].process;
        let own = self.of(process);
        own.sorted.remove(&queue.requests, id);
        own.fifo.remove(&mut queue.requests, id);
        if own.fifo.is_empty() {
            self.busy.retain(|other| *other != process);
        }
        self.length -= 1;
    }
}

impl Scheduler for CfqRounds {
    fn insert(&mut self, queue: &mut Queue, id: RequestId) {
        let process = queue.requests[id].process;
        let own = self.of(process);
        own.allocated += 1;
        own.fifo.push(&mut queue.requests, id);
        own.sorted.insert(&queue.requests, id);
        if own.fifo.len() == 1 {
            self.busy.push_back(process);
        }
        self.length += 1;
    }

    fn find_merge(&self, queue: &Queue, bio: &Bio) -> Option<(RequestId, Side)> {
        queue.find_last_merge(bio).or_else(|| queue.find_back(bio, |_| true)).or_else(|| {
            let id = self.processes.get(bio.process as usize)?.sorted.starts_at(bio.end_sector())?;
            Some((id, queue.side(id, bio)?))
        })
    }

    fn merged(&mut self, queue: &mut Queue, id: RequestId, old_start: u64) {
        if queue.requests[id].start_sector != old_start {
            self.of(queue.requests[id].process).sorted.moved(&queue.requests, id, old_start);
        }
    }

    fn neighbour(&self, queue: &Queue, id: RequestId, side: Side) -> Option<RequestId> {
        let request = &queue.requests[id];
        let sorted = &self.processes[request.process as usize].sorted;
        match side {
            Side::Back => sorted.successor(request),
            Side::Front => sorted.predecessor(request),
        }
    }

    fn absorbed(&mut self, queue: &mut Queue, _id: RequestId, gone: RequestId) {
        let process = queue.requests[gone].process;
        self.forget(queue, gone);
        self.of(process).allocated -= 1;
    }

    fn dispatch(&mut self, queue: &mut Queue) -> bool {
        let mut taken = 0;
        while taken < self.quantum && !self.busy.is_empty() {
            // One pass; a queue that becomes empty leaves the list.
            for _ in 0..self.busy.len() {
                let Some(process) = self.busy.pop_front() else { break };
                self.busy.push_back(process);
                let Some(lowest) = self.of(process).sorted.first() else { continue };
                self.forget(queue, lowest);
                queue.dispatch_sorted(lowest);
                taken += 1;
            }
        }
        taken > 0
    }

    fn completed(&mut self, _queue: &mut Queue, request: &Request) {
        self.of(request.process).allocated -= 1;
    }

    fn may_queue(&self, _queue: &Queue, bio: &Bio) -> May {
        let Some(own) = self.processes.get(bio.process as usize) else { return May::Yes };
        let share = NR_REQUESTS.saturating_sub(self.spared) / self.busy.len().max(1);
        if own.allocated < share.clamp(SHARE.0, SHARE.1) { May::Yes } else { May::No }
    }

    fn len(&self) -> usize {
        self.length
    }
}
