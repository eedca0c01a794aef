//! What a drive is asked while its parameters are looked for: the one contract of a real device and of a model.

use dbdyno_common::random::Random;
use dbdyno_device::Kind;

use crate::error::DiskError;

/// When a request was sent and when its answer came, in nanoseconds of one clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answer {
    pub sent_ns: u64,
    pub done_ns: u64,
}

impl Answer {
    pub fn latency_ns(self) -> f64 {
        (self.done_ns - self.sent_ns) as f64
    }
}

/// Requests with so many outstanding.
#[derive(Debug, Clone, Copy)]
pub struct Load {
    pub kind: Kind,
    pub bytes: u64,
    pub depth: u64,
    /// One after the other from the beginning of the range; else at random places of it.
    pub sequential: bool,
    /// Where.
    pub range: (u64, u64),
    /// It ends after so many requests, or so much time.
    pub requests: u64,
    pub limit_ns: u64,
    pub seed: u64,
}

/// What came of a load: the latency of each request in ns, and in what time all were done.
#[derive(Debug, Clone, Default)]
pub struct Loaded {
    pub latencies_ns: Vec<f64>,
    pub elapsed_ns: u64,
}

impl Loaded {
    /// Requests a second.
    pub fn rate(&self) -> f64 {
        self.latencies_ns.len() as f64 * 1e9 / self.elapsed_ns.max(1) as f64
    }
}

/// A drive that answers requests, one at a time or many.
pub trait Bench {
    /// Bytes of the device.
    fn size_bytes(&self) -> u64;
    /// Whether its content may be lost.
    fn may_write(&self) -> bool;
    /// Does one request; a FLUSH has neither place nor length.
    fn ask(&mut self, kind: Kind, offset_bytes: u64, bytes: u64) -> Result<Answer, DiskError>;
    /// Does many.
    fn load(&mut self, load: &Load) -> Result<Loaded, DiskError>;
    /// Leaves the drive alone.
    fn pause(&mut self, ns: u64);
    /// Nanoseconds since the beginning.
    fn now_ns(&self) -> u64;
    /// Whether the kernel says that it is a disk that turns.
    fn is_said_to_turn(&self) -> bool {
        false
    }
}

impl Load {
    /// Where its `index`-th request goes.
    pub fn place(&self, index: u64, random: &mut Random) -> u64 {
        let places = ((self.range.1 - self.range.0) / self.bytes).max(1);
        let place = if self.sequential { index % places } else { random.below(places) };
        self.range.0 + place * self.bytes
    }
}
