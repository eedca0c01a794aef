//! Sums over a stretch of time that can be added up.

use serde_json::{Map, Value, json};

use super::latency::Latency;
use crate::requests::{Completed, Issued};
use crate::tracefs::event::Kind;

const KINDS: usize = Kind::ALL.len();

/// What requests of one kind came to.
#[derive(Debug, Clone, Default)]
struct OfKind {
    issued: u64,
    completed: u64,
    bytes: u64,
    errors: u64,
    queue: Latency,
    device: Latency,
}

/// A sum and a maximum of what was met at each issue.
#[derive(Debug, Clone, Copy, Default)]
struct Met {
    sum: u64,
    max: u32,
}

impl Met {
    fn meet(&mut self, value: u32) {
        self.sum += u64::from(value);
        self.max = self.max.max(value);
    }

    fn add(&mut self, other: Self) {
        self.sum += other.sum;
        self.max = self.max.max(other.max);
    }

    fn json(self, count: u64) -> Value {
        json!({"mean": mean(self.sum as f64, count), "max": (count > 0).then_some(self.max)})
    }
}

/// Everything that can be added up.
#[derive(Debug, Clone, Default)]
pub struct Sums {
    kinds: [OfKind; KINDS],
    depth: Met,
    waiting: Met,
    bios: u64,
    /// Requests with an address, and those of them that had one before them.
    moves: u64,
    steps: u64,
    seek_bytes: f64,
    sequential: u64,
    ascending: u64,
}

impl Sums {
    /// A request was handed to the device.
    pub fn issued(&mut self, issued: &Issued) {
        let kind = &mut self.kinds[issued.kind as usize];
        kind.issued += 1;
        kind.bytes += issued.bytes;
        if let Some(queued_ns) = issued.queued_ns {
            kind.queue.record(issued.at_ns.saturating_sub(queued_ns));
        }
        self.depth.meet(issued.depth);
        self.waiting.meet(issued.waiting);
        self.bios += u64::from(issued.bios);
    }

    /// A request with an address began at byte `start`, the one before it (if any) ended and began at `last`.
    pub fn moved(&mut self, last: Option<(u64, u64)>, start: u64) {
        self.moves += 1;
        if let Some((end, began)) = last {
            self.steps += 1;
            self.seek_bytes += start.abs_diff(end) as f64;
            self.sequential += u64::from(start == end);
            self.ascending += u64::from(start >= began);
        }
    }

    /// A request was done.
    pub fn completed(&mut self, completed: &Completed) {
        let kind = &mut self.kinds[completed.issued.kind as usize];
        kind.completed += 1;
        kind.errors += u64::from(completed.failed);
        kind.device.record(completed.at_ns.saturating_sub(completed.issued.at_ns));
    }

    /// Gives up what memory it can: nothing more is likely to come.
    pub fn pack(&mut self) {
        for kind in &mut self.kinds {
            kind.queue.pack();
            kind.device.pack();
        }
    }

    /// Adds another's sums.
    pub fn add(&mut self, other: &Self) {
        for (own, others) in self.kinds.iter_mut().zip(&other.kinds) {
            own.issued += others.issued;
            own.completed += others.completed;
            own.bytes += others.bytes;
            own.errors += others.errors;
            own.queue.add(&others.queue);
            own.device.add(&others.device);
        }
        self.depth.add(other.depth);
        self.waiting.add(other.waiting);
        self.bios += other.bios;
        self.moves += other.moves;
        self.steps += other.steps;
        self.seek_bytes += other.seek_bytes;
        self.sequential += other.sequential;
        self.ascending += other.ascending;
    }

    /// Mean times of reads and writes in ms, mean seek in bytes, mean run in requests, mean depth; requests issued.
    pub fn row(&self) -> (u64, [Option<f64>; 5]) {
        let issued = self.issued_in_all();
        let runs = self.runs();
        let means = [
            self.together(|kind| &kind.queue).mean_ms(),
            self.together(|kind| &kind.device).mean_ms(),
            mean(self.seek_bytes, self.steps),
            mean(self.moves as f64, runs),
            mean(self.depth.sum as f64, issued),
        ];
        (issued, means)
    }

    /// Runs at ascending addresses: one more than there are steps back, and at least one where anything was issued.
    fn runs(&self) -> u64 {
        if self.moves == 0 { 0 } else { self.steps - self.ascending + 1 }
    }

    fn issued_in_all(&self) -> u64 {
        self.kinds.iter().map(|kind| kind.issued).sum()
    }

    /// Reads and writes as one.
    fn together(&self, part: impl Fn(&OfKind) -> &Latency) -> Latency {
        let mut all = part(&self.kinds[Kind::Read as usize]).clone();
        all.add(part(&self.kinds[Kind::Write as usize]));
        all
    }

    /// All figures; what is unknown is null.
    pub fn json(&self) -> Value {
        let by_kind = |part: &dyn Fn(&OfKind) -> Value| -> Map<String, Value> {
            Kind::ALL.iter().map(|(kind, word)| ((*word).to_owned(), part(&self.kinds[*kind as usize]))).collect()
        };
        let times = |part: fn(&OfKind) -> &Latency| -> Map<String, Value> {
            let mut found = by_kind(&|kind| part(kind).json());
            found.retain(|word, _| matches!(word.as_str(), "read" | "write" | "flush"));
            found.insert("all".into(), self.together(part).json());
            found
        };
        let (issued, runs) = (self.issued_in_all(), self.runs());
        json!({
            "requests": by_kind(&|kind| json!(kind.issued)),
            "completed": by_kind(&|kind| json!(kind.completed)),
            "bytes": by_kind(&|kind| json!(kind.bytes)),
            "errors": self.kinds.iter().map(|kind| kind.errors).sum::<u64>(),
            "queue_ms": times(|kind| &kind.queue),
            "device_ms": times(|kind| &kind.device),
            "seek_bytes_mean": mean(self.seek_bytes, self.steps),
            "sequential_ratio": mean(self.sequential as f64, self.steps),
            "ascending_ratio": mean(self.ascending as f64, self.steps),
            "sorted_runs": runs,
            "sorted_run_requests_mean": mean(self.moves as f64, runs),
            "device_depth": self.depth.json(issued),
            "waiting_bios": self.waiting.json(issued),
            "bios": self.bios,
        })
    }
}

fn mean(sum: f64, count: u64) -> Option<f64> {
    (count > 0).then(|| sum / count as f64)
}
