//! The limits of a volume: token buckets for operations and bytes, credits, and what counts as an operation.

use dbdyno_common::random::Random;

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

    pub(super) fn credits_at(&self, now_ns: f64) -> f64 {
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
