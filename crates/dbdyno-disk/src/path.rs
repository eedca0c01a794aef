//! The way of a request to the model and of its answer back, by which answers leave earlier.

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};

use dbdyno_device::Kind;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
use serde_json::{Map, Value};

/// What an answer takes at first, until many have been seen.
const AFTER_NS: u64 = 8_000;

/// More than that, and a nanosecond for each byte that comes along, is no answer's own time.
const AFTER_NS_MAX: u64 = 50_000;

/// What one answer can change by at most is a share of this and of a quarter of what is known: so stalls count little.
const CLIP_NS: u64 = 8_000;
const STEP_SHARE: i64 = 32;

/// Longer ones count as this.
const LONGEST_NS: u64 = 1_000_000_000;

/// Up to which size a read or write belongs to a class. The last is for all that is larger.
const CLASS_BYTES: [u64; 5] = [4 << 10, 16 << 10, 64 << 10, 256 << 10, u64::MAX];
const CLASSES: usize = CLASS_BYTES.len();

/// What is known of the way.
#[derive(Debug)]
pub struct Path {
    /// All of it, of a request whose start is not known.
    estimated_ns: AtomicU64,
    /// From when an answer may leave to when the block layer has it: reads by size, writes by size, and what has no
    /// data.
    after: [After; 2 * CLASSES + 1],
}

/// Of one class of requests.
#[derive(Debug)]
struct After {
    ns: AtomicU64,
    ns_max: u64,
    seen: AtomicU64,
}

impl Path {
    pub fn new() -> Self {
        let sizes = [4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20];
        let after = std::array::from_fn(|class| After {
            ns: AtomicU64::new(AFTER_NS),
            ns_max: AFTER_NS_MAX + if class < 2 * CLASSES { sizes[class % CLASSES] } else { 0 },
            seen: AtomicU64::new(0),
        });
        Self { estimated_ns: AtomicU64::new(0), after }
    }

    pub fn estimate(&self, estimated_ns: u64) {
        self.estimated_ns.store(estimated_ns, Ordering::Relaxed);
    }

    pub fn estimated_ns(&self) -> u64 {
        self.estimated_ns.load(Ordering::Relaxed)
    }

    /// How long before the model's time an answer should leave, whose request took so long to come.
    pub fn ahead_ns(&self, kind: Kind, bytes: u64, before_ns: Option<u64>) -> u64 {
        before_ns.map_or_else(|| self.estimated_ns(), |before_ns| before_ns + self.after_ns(kind, bytes))
    }

    pub fn after_ns(&self, kind: Kind, bytes: u64) -> u64 {
        self.after[class(kind, bytes)].ns.load(Ordering::Relaxed)
    }

    /// An answer took so long from when it was to leave to when the block layer had it. What is known follows by a part
    /// of the difference, and by no more where that is large (Huber 1964): it ends near the mean of what is no stall.
    /// It goes by the way itself, not by how late the answer was for the model: what was known when a request came
    /// decided that, and a hundred answers may have come since, so that each would correct the same mistake once more.
    pub fn came(&self, kind: Kind, bytes: u64, took_ns: u64) {
        let After { ns, ns_max, seen } = &self.after[class(kind, bytes)];
        let after_ns = ns.load(Ordering::Relaxed);
        let clip_ns = (CLIP_NS + after_ns / 4).cast_signed();
        let off_ns = took_ns.min(LONGEST_NS).cast_signed() - after_ns.cast_signed();
        let next_ns = after_ns.saturating_add_signed(off_ns.clamp(-clip_ns, clip_ns) / STEP_SHARE);
        // Two threads at once lose a step, which does not matter.
        ns.store(next_ns.min(*ns_max), Ordering::Relaxed);
        seen.fetch_add(1, Ordering::Relaxed);
    }

    /// What is known of the answers' way: by kind, and by size up to a number of bytes; nothing of what was not seen.
    pub fn after_json(&self) -> Value {
        let of = |class: usize| {
            let After { ns, seen, .. } = &self.after[class];
            (seen.load(Ordering::Relaxed) > 0).then(|| ns.load(Ordering::Relaxed))
        };
        let by_size = |first: usize| -> Map<String, Value> {
            let name = |at: usize| CLASS_BYTES.get(at).filter(|bytes| **bytes < u64::MAX);
            let known = (0..CLASSES).filter_map(|at| Some((at, of(first + at)?)));
            known.map(|(at, ns)| (name(at).map_or("more".into(), u64::to_string), ns.into())).collect()
        };
        serde_json::json!({"read": by_size(0), "write": by_size(CLASSES), "without_data": of(2 * CLASSES)})
    }
}

fn class(kind: Kind, bytes: u64) -> usize {
    let size = CLASS_BYTES.iter().position(|limit| bytes <= *limit).unwrap_or(CLASSES - 1);
    match kind {
        Kind::Read => size,
        Kind::Write => CLASSES + size,
        Kind::Flush | Kind::Discard => 2 * CLASSES,
    }
}

/// Runs the second half of an answer at once: the kernel ends a loop device's request in a soft interrupt.
///
/// One that a thread raises waits for `ksoftirqd`, which has no real-time priority and the thread's own processor:
/// behind a burst of answers for hundreds of microseconds. The kernel also runs what is pending whenever a thread
/// enables soft interrupts again, which it does after each lock of a socket (`__local_bh_enable_ip` in
/// kernel/softirq.c).
pub struct SoftInterrupts(Option<OwnedFd>);

impl SoftInterrupts {
    /// Without a socket they run when the kernel comes to it.
    pub fn new() -> Self {
        Self(socket_with(AddressFamily::UNIX, SocketType::DGRAM, SocketFlags::CLOEXEC, None).ok())
    }

    /// Runs the soft interrupts that this thread has raised, by setting an option of a socket that nothing else uses.
    pub fn run(&self) {
        if let Some(socket) = &self.0 {
            // If it failed, they would run when the kernel comes to it.
            let _ = rustix::net::sockopt::set_socket_reuseaddr(socket, true);
        }
    }
}

#[cfg(test)]
mod tests {
    use dbdyno_common::random::Random;
    use proptest::prelude::*;

    use super::*;

    const KINDS: [Kind; 4] = [Kind::Read, Kind::Write, Kind::Flush, Kind::Discard];

    /// A way that is mostly 12 to 16 us, one in eight 16 to 24: 14.75 us in the mean.
    fn way_ns(random: &mut Random) -> u64 {
        12_000 + if random.below(8) == 0 { 4_000 + random.below(8_000) } else { random.below(4_000) }
    }

    #[test]
    fn answers_come_in_time_in_the_mean_at_any_depth() {
        for depth in [1, 32, 128] {
            let (path, mut random) = (Path::new(), Random::new(depth));
            // What each request in flight was given when it came.
            let mut ahead: std::collections::VecDeque<u64> = (0..depth).map(|_| AFTER_NS).collect();
            let (mut sum_ns, mut worst_ns) = (0, 0);
            for round in 0..20_000 {
                let took_ns = way_ns(&mut random);
                path.came(Kind::Read, 4096, took_ns);
                ahead.push_back(path.after_ns(Kind::Read, 4096));
                let given_ns = ahead.pop_front().unwrap_or_default();
                if round >= 2_000 {
                    sum_ns += took_ns.cast_signed() - given_ns.cast_signed();
                    worst_ns = worst_ns.max(given_ns.abs_diff(14_750));
                }
            }
            assert!((sum_ns / 18_000).abs() < 300, "depth {depth}: {sum_ns}");
            assert!(worst_ns < 3_000, "depth {depth}: it swings by {worst_ns}");
        }
    }

    #[test]
    fn a_stall_now_and_then_hardly_moves_it() {
        let path = Path::new();
        for round in 0..10_000 {
            path.came(Kind::Write, 16_384, if round % 100 == 0 { 40_000_000 } else { 12_000 });
        }
        assert!((11_900..13_000).contains(&path.after_ns(Kind::Write, 16_384)));
    }

    #[test]
    fn stalls_take_it_no_further_than_an_answer_takes() {
        for (kind, bytes, most_ns) in [(Kind::Read, 4096, AFTER_NS_MAX + 4096), (Kind::Flush, 0, AFTER_NS_MAX)] {
            let path = Path::new();
            (0..100_000).for_each(|_| path.came(kind, bytes, 40_000_000));
            assert_eq!(path.after_ns(kind, bytes), most_ns);
            (0..100_000).for_each(|_| path.came(kind, bytes, 0));
            assert!(path.after_ns(kind, bytes) < STEP_SHARE.unsigned_abs());
        }
    }

    #[test]
    fn a_request_without_a_start_has_the_estimate() {
        let path = Path::new();
        path.estimate(70_000);
        let ahead_ns = |before_ns| path.ahead_ns(Kind::Read, 4096, before_ns);
        assert_eq!((ahead_ns(None), ahead_ns(Some(30_000))), (70_000, 30_000 + AFTER_NS));
    }

    #[test]
    fn only_what_was_seen_is_said() {
        let path = Path::new();
        assert_eq!(path.after_json(), serde_json::json!({"read": {}, "write": {}, "without_data": null}));
        path.came(Kind::Read, 5_000, AFTER_NS);
        path.came(Kind::Write, 1 << 20, AFTER_NS);
        let known = serde_json::json!({"read": {"16384": AFTER_NS}, "write": {"more": AFTER_NS}, "without_data": null});
        assert_eq!(path.after_json(), known);
    }

    proptest! {
        /// Whatever comes, one class learns nothing of another, and steps are small.
        #[test]
        fn classes_are_apart(
            answers in prop::collection::vec((0..4_usize, 0..2_000_000_u64, any::<u64>()), 1..200),
        ) {
            let path = Path::new();
            let ways = |path: &Path| path.after.each_ref().map(|after| after.ns.load(Ordering::Relaxed));
            for (kind, bytes, took_ns) in answers {
                let before = ways(&path);
                path.came(KINDS[kind], bytes, took_ns);
                for (at, (was_ns, is_ns)) in before.into_iter().zip(ways(&path)).enumerate() {
                    let step_ns = is_ns.cast_signed() - was_ns.cast_signed();
                    if at == class(KINDS[kind], bytes) {
                        let towards = (took_ns > was_ns) == (step_ns > 0) || step_ns == 0;
                        prop_assert!(towards && step_ns.unsigned_abs() <= (CLIP_NS + was_ns / 4) / 32);
                    } else {
                        prop_assert_eq!(step_ns, 0);
                    }
                    prop_assert!(is_ns <= path.after[at].ns_max);
                }
            }
        }

        /// Larger requests are never in the class of smaller ones, and a read is in none of a write.
        #[test]
        fn classes_go_by_size(kind in 0..4_usize, first_bytes in 0..4_000_000_u64, second_bytes in 0..4_000_000_u64) {
            let of = |bytes| class(KINDS[kind], bytes);
            prop_assert!(of(first_bytes.min(second_bytes)) <= of(first_bytes.max(second_bytes)));
            prop_assert!(class(Kind::Read, first_bytes) != class(Kind::Write, second_bytes));
        }
    }
}
