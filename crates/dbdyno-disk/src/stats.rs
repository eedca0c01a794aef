//! What the disk did and how well it kept the model's times.

use dbdyno_device::Kind;
use serde_json::{Value, json};

use crate::times::Times;

/// Counters since the start or the last reset.
pub struct Stats {
    counts: [u64; 4],
    read_bytes: u64,
    write_bytes: u64,
    service: [Times; 4],
    lateness: Times,
    path_taken: Times,
    queue_depth_max: u32,
    enospc_errors: u64,
    /// Failed by kind, for whatever reason.
    errors: [u64; 4],
}

/// How an answer kept the model's time.
#[derive(Debug, Clone, Copy)]
pub struct Timing {
    /// After when it was to leave.
    pub late_ns: u64,
    /// How long before the model's time it was to leave, for the way that it still had to go.
    pub taken_ns: u64,
}

/// What kinds are called in every output, by their [`index`].
pub const NAMES: [&str; 4] = ["read", "write", "flush", "discard"];

/// Number of a kind, also in the compact format of a trace.
pub fn index(kind: Kind) -> usize {
    match kind {
        Kind::Read => 0,
        Kind::Write => 1,
        Kind::Flush => 2,
        Kind::Discard => 3,
    }
}

impl Stats {
    pub fn new() -> Self {
        Self {
            counts: [0; 4],
            read_bytes: 0,
            write_bytes: 0,
            service: std::array::from_fn(|_| Times::new()),
            lateness: Times::new(),
            path_taken: Times::new(),
            queue_depth_max: 0,
            enospc_errors: 0,
            errors: [0; 4],
        }
    }

    pub fn arrived(&mut self, kind: Kind, bytes: u64, queue_depth: u32) {
        self.counts[index(kind)] += 1;
        match kind {
            Kind::Read => self.read_bytes += bytes,
            Kind::Write => self.write_bytes += bytes,
            Kind::Flush | Kind::Discard => {}
        }
        self.queue_depth_max = self.queue_depth_max.max(queue_depth);
    }

    /// `timing` is `None` if no model was asked. What failed is counted apart.
    pub fn answered(&mut self, kind: Kind, service_ns: u64, timing: Option<Timing>, error: bool) {
        if error {
            self.errors[index(kind)] += 1;
            return;
        }
        self.service[index(kind)].record(service_ns);
        if let Some(Timing { late_ns, taken_ns }) = timing {
            self.lateness.record(late_ns);
            self.path_taken.record(taken_ns);
        }
    }

    /// A request that failed on arrival.
    pub fn refused(&mut self, kind: Kind) {
        self.counts[index(kind)] += 1;
        self.errors[index(kind)] += 1;
    }

    pub fn refused_for_space(&mut self) {
        self.enospc_errors += 1;
    }

    pub fn json(&self) -> Value {
        let service: serde_json::Map<_, _> =
            NAMES.iter().zip(&self.service).map(|(name, times)| ((*name).to_owned(), times.json())).collect();
        let errors: serde_json::Map<_, _> =
            NAMES.iter().zip(self.errors).map(|(name, errors)| ((*name).to_owned(), errors.into())).collect();
        json!({
            "reads": self.counts[0],
            "writes": self.counts[1],
            "flushes": self.counts[2],
            "discards": self.counts[3],
            "read_bytes": self.read_bytes,
            "write_bytes": self.write_bytes,
            "service_ns": service,
            "lateness_ns": self.lateness.json(),
            "path_taken_ns": self.path_taken.json(),
            "queue_depth_max": self.queue_depth_max,
            "enospc_errors": self.enospc_errors,
            "errors": errors,
        })
    }
}
