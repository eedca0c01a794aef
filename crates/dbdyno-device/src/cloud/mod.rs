//! A cloud volume: limits on operations and bytes, burst credits, and a latency.
//!
//! A command waits until its limits allow it, then takes a latency drawn from a lognormal distribution, and its
//! transfer. Operations are counted as Amazon documents it for EBS ("I/O characteristics and monitoring"): a command
//! counts once for each 256 KiB begun, and adjacent sequential commands outstanding together share operations. A volume
//! with credits goes at the burst rate while it has any; each operation costs one, and the baseline earns them.
//! Acknowledged writes are durable: FLUSH has nothing to do.
//!
//! Cannot: limits of the instance the volume is attached to, volumes restored from snapshots (slow first reads), HDD
//! volumes (st1, sc1), a throughput credit bucket of gp2 between 170 and 334 GiB, noisy neighbours beyond the seconds of
//! shortfall.

mod limits;
mod spec;

use self::limits::{Accounting, Bucket, Delivery, Operations};
pub(crate) use self::spec::CloudSpec;
use dbdyno_common::random::Random;

use crate::contract::{Command, Completion, DeviceModel, Kind, WriteCache};
use crate::due::Agenda;

const MIB: f64 = (1 << 20) as f64;

/// One direction's view of the limits.
struct Stream {
    accounting: Accounting,
    /// When its last operation was allowed: a command merged into that one needs no other.
    granted_ns: f64,
    /// Median latency.
    latency_ns: f64,
}

pub(crate) struct Cloud {
    spec: CloudSpec,
    size_bytes: u64,
    now_ns: u64,
    random: Random,
    delivery: Delivery,
    operations: Operations,
    /// Where writes have a limit of their own.
    write_operations: Option<Operations>,
    throughput: Bucket,
    throughput_mib_s: f64,
    reads: Stream,
    writes: Stream,
    counted: u64,
    done: Agenda<u64>,
}

impl Cloud {
    pub(crate) fn new(spec: CloudSpec, size_bytes: u64, seed: u64) -> Self {
        let depth_ns = spec.bucket_ms * 1e6;
        let stream = |latency_us: f64| Stream {
            accounting: Accounting::new(spec.io_max_bytes, spec.merge),
            granted_ns: 0.0,
            latency_ns: latency_us * 1e3,
        };
        let (probability, least) = (spec.shortfall_probability, spec.shortfall_least);
        Self {
            size_bytes,
            now_ns: 0,
            random: Random::new(seed),
            delivery: Delivery { seed, shortfall_probability: probability, least },
            operations: Operations::new(spec.iops(size_bytes), spec.burst_iops, spec.burst_credits, depth_ns),
            write_operations: spec.write_iops.map(|iops| Operations::new(iops, 0.0, 0.0, depth_ns)),
            throughput: Bucket::new(depth_ns),
            throughput_mib_s: spec.throughput_mib_s(size_bytes),
            reads: stream(spec.read_us),
            writes: stream(spec.write_us),
            counted: 0,
            done: Agenda::new(),
            spec,
        }
    }

    /// When a read or write is done.
    fn transfer(&mut self, command: &Command) -> u64 {
        let now_ns = self.now_ns as f64;
        let write = command.kind == Kind::Write;
        let stream = if write { &mut self.writes } else { &mut self.reads };
        let count = stream.accounting.count(self.now_ns, command.offset_bytes, command.length_bytes);
        self.counted += count;
        let operations = match &mut self.write_operations {
            Some(operations) if write => operations,
            _ => &mut self.operations,
        };
        if count > 0 {
            stream.granted_ns = operations.take(now_ns, count, |at_ns| self.delivery.at(at_ns));
        }
        let limit_bytes_ns = self.throughput_mib_s * MIB * self.delivery.at(now_ns) / 1e9;
        let throughput_ns = self.throughput.take(now_ns, command.length_bytes as f64 / limit_bytes_ns);
        let start_ns = now_ns.max(stream.granted_ns).max(throughput_ns);
        let latency_ns = stream.latency_ns * (self.spec.latency_sigma * self.random.normal()).exp();
        let done_ns = (start_ns + latency_ns + command.length_bytes as f64 * 1e3 / self.spec.link_mb_s) as u64;
        stream.accounting.completes(done_ns);
        done_ns
    }
}

impl DeviceModel for Cloud {
    fn submit(&mut self, now_ns: u64, command: Command) {
        self.now_ns = self.now_ns.max(now_ns);
        let command = command.within(self.size_bytes);
        let done_ns = match command.kind {
            Kind::Read | Kind::Write => self.transfer(&command),
            Kind::Flush | Kind::Discard => self.now_ns + (self.spec.flush_us * 1e3) as u64,
        };
        self.done.push(done_ns, command.id);
    }

    fn next_due(&self) -> Option<u64> {
        self.done.next_ns()
    }

    fn poll(&mut self, now_ns: u64, finished: &mut Vec<Completion>) {
        self.now_ns = self.now_ns.max(now_ns);
        self.done.finish(now_ns, finished);
    }

    fn take_certain(&mut self, finished: &mut Vec<Completion>) {
        self.done.finish(u64::MAX, finished);
    }

    fn write_cache(&self) -> WriteCache {
        WriteCache::None
    }

    fn gauges(&self) -> Vec<(&'static str, f64)> {
        let mut gauges = vec![
            ("operations_io", self.counted as f64),
            ("limit_iops", self.operations.base),
            ("limit_throughput_mib_s", self.throughput_mib_s),
        ];
        if self.spec.burst_credits > 0.0 {
            gauges.push(("credits_io", self.operations.credits_at(self.now_ns as f64).max(0.0)));
        }
        gauges
    }
}
