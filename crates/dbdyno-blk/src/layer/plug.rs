//! Plugging: requests are held back for a moment, so that what follows can join them.
//!
//! To 2.6.38 an empty queue is plugged by the first request and unplugged by the fourth, by a process that waits, or after 3 ms.
//! From 2.6.39 every process collects in a list of its own, which goes to the scheduler when it is long enough or the
//! process sleeps: to 5.15 sorted, and a bio may join any request of it; later as it came, and a bio may join the last.

use crate::queue::{Bio, Fifo, Queue, RequestId};

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
        let Some(held) = self.lists.get(process as usize) else {
            return false;
        };
        let last = held.backwards(&queue.requests).next();
        held.len() >= most || last.is_some_and(|id| queue.requests[id].sectors >= long)
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

    /// Takes what a process held back, in the order in which it goes to the scheduler; give the list back with [`Plug::keep`].
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
