//! A cloud volume: limits on operations and bytes, burst credits, and a latency.
//!
//! A command waits until its limits allow it, then takes a latency drawn from a lognormal distribution, and its
//! transfer. Operations are counted as Amazon documents it for EBS ("I/O characteristics and monitoring"): a command
//! counts once for each 256 KiB begun, and adjacent sequential commands outstanding together share operations. A volume
//! with credits goes at the burst rate while it has any; each operation costs one, and the baseline earns them.
//! Acknowledged writes are durable: FLUSH has nothing to do.
//!
//! Cannot: limits of the instance the volume is attached to, volumes restored from snapshots (slow first reads), HDD
//! volumes (st1, sc1), a throughput credit bucket of gp2 between 170 and 334 GiB, noisy neighbours beyond the seconds
//! of shortfall.

use dbdyno_common::random::Random;
use serde::Deserialize;

use crate::contract::{Agenda, Command, Completion, DeviceModel, Kind, WriteCache};
use crate::info::{above_zero, fields, within};

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

const SECOND_NS: f64 = 1e9;

/// A token bucket as virtual scheduling ("generic cell rate algorithm", ITU-T I.371): it remembers when the next
/// command would be due if commands came at exactly the limit.
#[derive(Debug, Clone)]
pub(super) struct Bucket {
    due_ns: f64,
    depth_ns: f64,
}

impl Bucket {
    /// `depth_ns`: what may be saved up, as time at the limit.
    pub(super) fn new(depth_ns: f64) -> Self {
        Self { due_ns: 0.0, depth_ns }
    }

    /// When the next command that comes at `now_ns` may go.
    fn grant_ns(&self, now_ns: f64) -> f64 {
        now_ns.max(self.due_ns - self.depth_ns)
    }

    /// Takes `cost_ns`, the command's time at the limit; returns when it may go.
    pub(super) fn take(&mut self, now_ns: f64, cost_ns: f64) -> f64 {
        let grant_ns = self.grant_ns(now_ns);
        self.due_ns = self.due_ns.max(grant_ns) + cost_ns;
        grant_ns
    }
}

/// The limit on operations a second, with burst credits.
#[derive(Debug, Clone)]
pub(super) struct Operations {
    bucket: Bucket,
    /// Baseline or provisioned operations a second.
    pub base: f64,
    burst: f64,
    credits: f64,
    credits_max: f64,
    credited_ns: f64,
}

impl Operations {
    pub(super) fn new(base: f64, burst: f64, credits_max: f64, depth_ns: f64) -> Self {
        Self { bucket: Bucket::new(depth_ns), base, burst, credits: credits_max, credits_max, credited_ns: 0.0 }
    }

    /// Takes `count` operations; returns when they may go. `delivered` is the part of the limit that the volume
    /// delivers at a moment.
    pub(super) fn take(&mut self, now_ns: f64, count: u64, delivered: impl Fn(f64) -> f64) -> f64 {
        let count = count as f64;
        let grant_ns = self.bucket.grant_ns(now_ns);
        self.credits = self.credits_at(grant_ns);
        self.credited_ns = self.credited_ns.max(grant_ns);
        let rate = if self.credits >= count { self.base.max(self.burst) } else { self.base };
        // Below 0 for a moment: what is taken at the baseline earns its own credits until the next is due.
        self.credits -= count;
        self.bucket.take(now_ns, count / (rate * delivered(grant_ns)) * SECOND_NS)
    }

    fn credits_at(&self, now_ns: f64) -> f64 {
        let earned = self.base * (now_ns - self.credited_ns).max(0.0) / SECOND_NS;
        (self.credits + earned).min(self.credits_max)
    }
}

/// What counts as an operation: each started piece of `io_max_bytes`; a command that continues one still outstanding
/// first fills that one's last piece.
#[derive(Debug, Clone)]
pub(super) struct Accounting {
    io_max_bytes: u64,
    merge: bool,
    /// End of the last command, what its last piece holds, and when it completes.
    end_bytes: u64,
    piece_bytes: u64,
    done_ns: u64,
}

impl Accounting {
    pub(super) fn new(io_max_bytes: u64, merge: bool) -> Self {
        Self { io_max_bytes, merge, end_bytes: u64::MAX, piece_bytes: 0, done_ns: 0 }
    }

    /// Operations that a command at `now_ns` costs; 0 if it fits the piece before it.
    pub(super) fn count(&mut self, now_ns: u64, offset_bytes: u64, length_bytes: u64) -> u64 {
        let continues = self.merge && offset_bytes == self.end_bytes && now_ns < self.done_ns;
        let room_bytes = if continues { self.io_max_bytes - self.piece_bytes } else { 0 };
        let rest_bytes = length_bytes.saturating_sub(room_bytes);
        let operations = rest_bytes.div_ceil(self.io_max_bytes);
        self.piece_bytes = match operations {
            0 => self.piece_bytes + length_bytes,
            _ => rest_bytes - (operations - 1) * self.io_max_bytes,
        };
        self.end_bytes = offset_bytes + length_bytes;
        operations
    }

    /// The command counted last completes at this time.
    pub(super) fn completes(&mut self, done_ns: u64) {
        self.done_ns = self.done_ns.max(done_ns);
    }
}

/// The part of its limits that a volume delivers: all of them but in some seconds, chosen by the seed, where it is
/// between `least` and 90 %.
#[derive(Debug, Clone)]
pub(super) struct Delivery {
    pub seed: u64,
    pub shortfall_probability: f64,
    pub least: f64,
}

impl Delivery {
    /// The part delivered at a moment; the same for the same moment, however often it is asked.
    pub(super) fn at(&self, now_ns: f64) -> f64 {
        let second = (now_ns / SECOND_NS) as u64;
        let mut random = Random::new(self.seed ^ second.wrapping_mul(0xD129_0D3B_32F5_5F4B));
        if random.unit() < self.shortfall_probability { self.least + (0.9 - self.least) * random.unit() } else { 1.0 }
    }
}

const GIB: f64 = (1_u64 << 30) as f64;

/// The numbers that make a cloud volume. Each field's unit is in its name.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CloudSpec {
    /// The largest volume, bytes.
    pub capacity_bytes: u64,
    /// Size of the volume as it is paid for, GiB, where rates depend on it; without it that of the disk.
    pub volume_gib: Option<f64>,
    /// Provisioned operations a second; either this or `iops_per_gib`.
    pub iops: Option<f64>,
    /// Baseline operations a second for each GiB.
    pub iops_per_gib: Option<f64>,
    /// Least baseline.
    #[serde(default)]
    pub iops_min: f64,
    /// Largest baseline, or the most that can be provisioned.
    pub iops_max: f64,
    /// The most that can be provisioned for each GiB; looked at where `volume_gib` is given.
    pub iops_per_gib_max: Option<f64>,
    /// A limit of its own for writes; without it reads and writes share one.
    pub write_iops: Option<f64>,
    /// Operations a second while there are credits; 0: no bursts.
    #[serde(default)]
    pub burst_iops: f64,
    /// Credits at the start, and the most there can be; an operation costs one, the baseline earns them.
    #[serde(default)]
    pub burst_credits: f64,
    /// Throughput limit, MiB/s.
    pub throughput_mib_s: f64,
    /// A further limit: this for each operation a second.
    pub throughput_mib_s_per_iops: Option<f64>,
    /// Volumes up to this size, GiB, have `small_volume_mib_s`.
    #[serde(default)]
    pub small_volume_gib: f64,
    /// See `small_volume_gib`, MiB/s.
    pub small_volume_mib_s: Option<f64>,
    /// A command counts as one operation for each started piece of this size, bytes.
    pub io_max_bytes: u64,
    /// Whether adjacent sequential commands that are outstanding together share operations.
    pub merge: bool,
    /// What an idle volume may save up of its limits, ms.
    pub bucket_ms: f64,
    /// How many of the seconds fall short of 90 % of the limit.
    pub shortfall_probability: f64,
    /// What is delivered at worst in such a second, as a part of the limit.
    pub shortfall_least: f64,
    /// Median latency of a read beyond the wait for the limits and the transfer, us.
    pub read_us: f64,
    /// The same for a write.
    pub write_us: f64,
    /// Deviation of the latency's logarithm: the distribution is lognormal.
    pub latency_sigma: f64,
    /// What FLUSH and discard take, us.
    pub flush_us: f64,
    /// Rate at which one command's data is transferred, MB/s.
    pub link_mb_s: f64,
}

impl CloudSpec {
    /// Baseline or provisioned operations a second, of a disk of `size_bytes`.
    pub(super) fn iops(&self, size_bytes: u64) -> f64 {
        let baseline = self.iops_per_gib.unwrap_or(0.0) * self.volume_gib(size_bytes);
        // Not `clamp`, which panics where a file's bounds are the wrong way round.
        self.iops.unwrap_or(baseline.max(self.iops_min).min(self.iops_max))
    }

    /// Throughput limit, MiB/s, of a disk of `size_bytes`.
    fn throughput_mib_s(&self, size_bytes: u64) -> f64 {
        let small = self.volume_gib(size_bytes) <= self.small_volume_gib;
        let limit = self.small_volume_mib_s.filter(|_| small).unwrap_or(self.throughput_mib_s);
        let by_iops = self
            .throughput_mib_s_per_iops
            .map_or(f64::INFINITY, |mib_s_per_iops| mib_s_per_iops * self.iops(size_bytes));
        limit.min(by_iops)
    }

    fn volume_gib(&self, size_bytes: u64) -> f64 {
        self.volume_gib.unwrap_or(size_bytes as f64 / GIB)
    }

    /// Refuses numbers the model cannot work with, naming the first.
    pub(crate) fn check(&self) -> Result<(), String> {
        above_zero(&fields! { self; capacity_bytes, iops_max, throughput_mib_s, io_max_bytes, link_mb_s })?;
        let settings = [
            ("volume_gib", self.volume_gib),
            ("iops", self.iops),
            ("iops_per_gib", self.iops_per_gib),
            ("iops_per_gib_max", self.iops_per_gib_max),
            ("write_iops", self.write_iops),
            ("throughput_mib_s_per_iops", self.throughput_mib_s_per_iops),
            ("small_volume_mib_s", self.small_volume_mib_s),
        ];
        above_zero(&settings.into_iter().filter_map(|(field, value)| Some((field, value?))).collect::<Vec<_>>())?;
        within(
            &(0.0..=1e9),
            &fields! { self;
                iops_min, burst_iops, small_volume_gib, bucket_ms, read_us, write_us, flush_us
            },
        )?;
        within(&(0.0..=1e15), &fields! { self; burst_credits })?;
        within(&(0.0..=1.0), &fields! { self; shortfall_probability })?;
        within(&(0.01..=0.9), &fields! { self; shortfall_least })?;
        within(&(0.0..=3.0), &fields! { self; latency_sigma })?;
        self.check_iops()
    }

    fn check_iops(&self) -> Result<(), String> {
        let Some(iops) = self.iops else {
            return match self.iops_per_gib {
                Some(_) => Ok(()),
                None => Err("iops is missing (or iops_per_gib)".into()),
            };
        };
        if self.iops_per_gib.is_some() {
            return Err(format!("iops = {iops} cannot be given together with iops_per_gib"));
        }
        if iops > self.iops_max {
            return Err(format!("iops = {iops} is more than iops_max = {}", self.iops_max));
        }
        if let (Some(gib), Some(per_gib)) = (self.volume_gib, self.iops_per_gib_max)
            && iops > gib * per_gib
        {
            let most = gib * per_gib;
            return Err(format!("iops = {iops} is more than the {most} a volume of volume_gib = {gib} may have"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIB: u64 = 1024;

    /// Operations of commands that are all outstanding together.
    fn count(commands: &[(u64, u64)]) -> u64 {
        let mut accounting = Accounting::new(256 * KIB, true);
        let mut total = 0;
        for &(offset_kib, length_kib) in commands {
            total += accounting.count(0, offset_kib * KIB, length_kib * KIB);
            accounting.completes(1_000_000);
        }
        total
    }

    #[test]
    fn operations_are_counted_as_the_provider_says() {
        assert_eq!(count(&[(0, 1024)]), 4, "1 MiB");
        assert_eq!(count(&(0..8).map(|i| (i * 32, 32)).collect::<Vec<_>>()), 1, "8 sequential of 32 KiB");
        assert_eq!(count(&(0..8).map(|i| (i * 4096, 32)).collect::<Vec<_>>()), 8, "8 random of 32 KiB");
        assert_eq!(count(&[(0, 200), (200, 100), (300, 212)]), 2, "512 KiB in three");
        assert_eq!(count(&[(0, 257)]), 2, "a piece begun counts");
    }

    #[test]
    fn what_has_completed_is_not_merged_with() {
        let mut accounting = Accounting::new(256 * KIB, true);
        assert_eq!(accounting.count(0, 0, 4 * KIB), 1);
        accounting.completes(500);
        assert_eq!(accounting.count(499, 4 * KIB, 4 * KIB), 0);
        assert_eq!(accounting.count(500, 8 * KIB, 4 * KIB), 1);
    }

    #[test]
    fn a_bucket_saves_up_no_more_than_its_depth() {
        let mut bucket = Bucket::new(10.0);
        let grants: Vec<f64> = (0..15).map(|_| bucket.take(1000.0, 1.0)).collect();
        assert_eq!(grants[..11], [1000.0; 11]);
        assert_eq!(grants[11..], [1001.0, 1002.0, 1003.0, 1004.0]);
    }
}
