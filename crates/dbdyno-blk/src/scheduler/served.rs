//! A queue of cfq from 2.6.32, and what is known of who fills it.

use super::habits::{Fading, Seeks};
use super::process_queue::ProcessQueue;
use super::service_tree::Service;
use crate::queue::{Class, Queue, Request};

/// Milliseconds are what think times are kept in.
const TICK_NS: u64 = 1_000_000;
/// A jump of more sectors counts as a seek.
const JUMP: u64 = 800;
/// On a drive without heads a request of fewer sectors does.
const SMALL: u32 = 64;
/// So many of the last 32 make a queue seeky.
const SEEKS_MOST: u32 = 4;
/// To 2.6.32 a mean distance above this did, sectors.
const DISTANCE_MOST: u64 = 8192;
/// Requests at once from which on a queue is worth idling for although it seeks.
const DEEP: usize = 4;

/// A queue with its place in the trees.
#[derive(Debug)]
#[allow(clippy::struct_excessive_bools)] // each stands for something of its own
pub(super) struct Served {
    pub held: ProcessQueue,
    pub sync: bool,
    pub class: Class,
    pub priority: u8,
    /// The tree and key it waits with.
    pub waits: Option<(i64, Class, Service)>,
    /// Dispatched and not finished.
    pub in_flight: usize,
    /// In this slice.
    pub dispatched: u64,
    /// Set by the slice's first completion.
    pub slice_end_ns: Option<u64>,
    /// What was left of the last slice, negative if it was overrun.
    pub residue_ns: i64,
    pub looked: bool,
    pub idles: bool,
    pub has_exited: bool,
    is_deep: bool,
    think: Fading,
    seeks: Seeks,
    jumps: u32,
    pub last_end_ns: u64,
}

impl Served {
    pub fn new(sync: bool, class: Class, priority: u8) -> Self {
        Self {
            held: ProcessQueue::default(),
            sync,
            class,
            priority,
            waits: None,
            in_flight: 0,
            dispatched: 0,
            slice_end_ns: None,
            residue_ns: 0,
            looked: false,
            idles: sync && class != Class::Idle,
            has_exited: false,
            is_deep: false,
            think: Fading::default(),
            seeks: Seeks::default(),
            jumps: 0,
            last_end_ns: 0,
        }
    }

    /// Which tree it belongs in.
    pub fn service(&self, one_tree: bool) -> Service {
        match self.sync {
            _ if one_tree => Service::Sync,
            false => Service::Async,
            true if self.idles => Service::Sync,
            true => Service::NoIdle,
        }
    }

    pub fn is_seeky(&self, by_distance: bool) -> bool {
        if by_distance { self.seeks.mean() > DISTANCE_MOST } else { self.jumps.count_ones() > SEEKS_MOST }
    }

    pub fn think_ns(&self) -> u64 {
        if self.think.samples() > 0 { self.think.mean() * TICK_NS } else { 0 }
    }

    /// Learns from a request that arrives, and decides whether the drive is to idle for the queue.
    pub fn learn(&mut self, queue: &Queue, request: &Request, idle_ns: u64, by_distance: bool) {
        if !self.sync || self.class == Class::Idle {
            return;
        }
        let think_ns = (queue.now_ns - self.last_end_ns).min(2 * idle_ns);
        self.think.add(think_ns / TICK_NS);
        let is_far = request.start_sector.abs_diff(self.seeks.last_end()) > JUMP;
        let jumped = if queue.rotational { is_far } else { request.sectors < SMALL };
        self.jumps = self.jumps << 1 | u32::from(jumped);
        self.seeks.add(request.start_sector, request.end_sector());
        self.is_deep |= self.held.fifo.len() >= DEEP;
        let is_seeky = self.is_seeky(by_distance) && (by_distance || !self.is_deep);
        if idle_ns == 0 || self.has_exited || is_seeky || (request.no_idle && !by_distance) {
            self.idles = false;
        } else if self.think.samples() > 80 {
            self.idles = self.think.mean() * TICK_NS <= idle_ns;
        }
    }

    /// The drive idled for it, and no request came.
    pub fn came_too_late(&mut self) {
        self.is_deep = false;
    }
}
