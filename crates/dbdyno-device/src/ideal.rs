//! A device that takes the same time for everything: what is measured on it is the cost of everything else.
//!
//! Cannot: a rate of its own (any number of commands are done at once), a queue, a cache, a power cut that takes
//! anything.

use serde::Deserialize;

use crate::contract::{Agenda, Command, Completion, DeviceModel, WriteCache};
use crate::info::{fields, within};

/// `[ideal]` of a drive file.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct IdealSpec {
    /// Time from submission to completion of every command, microseconds.
    latency_us: f64,
}

impl IdealSpec {
    pub(crate) fn check(&self) -> Result<(), String> {
        within(&(0.0..=1e9), &fields! { self; latency_us })
    }
}

pub(crate) struct Ideal {
    latency_ns: u64,
    latest_ns: u64,
    done: Agenda<u64>,
}

impl Ideal {
    pub(crate) fn new(spec: &IdealSpec) -> Self {
        Self { latency_ns: (spec.latency_us * 1e3) as u64, latest_ns: 0, done: Agenda::new() }
    }
}

impl DeviceModel for Ideal {
    fn submit(&mut self, now_ns: u64, command: Command) {
        self.latest_ns = self.latest_ns.max(now_ns);
        self.done.push(self.latest_ns + self.latency_ns, command.id);
    }

    fn next_due(&self) -> Option<u64> {
        self.done.next_ns()
    }

    fn poll(&mut self, now_ns: u64, finished: &mut Vec<Completion>) {
        self.done.finish(now_ns, finished);
    }

    fn take_certain(&mut self, finished: &mut Vec<Completion>) {
        self.done.finish(u64::MAX, finished);
    }

    fn write_cache(&self) -> WriteCache {
        WriteCache::None
    }
}
