//! What every scheduler promises, which tunables one has by their names in sysfs, and how a choice of a scheduler can
//! be wrong.

use dbdyno_common::similar;
use thiserror::Error;

use crate::queue::{Bio, Queue, Request, RequestId, Side};

/// Whether a process may have a request, apart from how many there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum May {
    /// Like anyone else.
    Yes,
    /// Even if the pool is full: the scheduler waits for it.
    Must,
    /// Not now.
    No,
}

/// Decides what the drive gets next.
///
/// Every request that is inserted is dispatched exactly once, or absorbed by another; none waits for ever while the
/// drive serves others; while a scheduler has requests it dispatches one when asked, unless it waits on purpose, and
/// then [`Scheduler::next_due`] says until when or a completion ends it. The same calls give the same order.
pub trait Scheduler {
    /// Takes a request. It is in no list, and is held until it is dispatched.
    fn insert(&mut self, queue: &mut Queue, id: RequestId);

    /// A request held here that a bio may join.
    fn find_merge(&self, queue: &Queue, bio: &Bio) -> Option<(RequestId, Side)>;

    /// A bio joined a request held here; before, it started at `old_start`.
    fn merged(&mut self, queue: &mut Queue, id: RequestId, old_start: u64) {
        let _ = (queue, id, old_start);
    }

    /// What lies next to a request held here, behind it or before it, and could become one with it.
    fn neighbour(&self, queue: &Queue, id: RequestId, side: Side) -> Option<RequestId> {
        let _ = (queue, id, side);
        None
    }

    /// Forgets `gone`, which becomes a part of `id`; both are held here.
    fn absorbed(&mut self, queue: &mut Queue, id: RequestId, gone: RequestId) {
        let _ = (queue, id, gone);
    }

    /// Moves at least one request to the dispatch list; false if there is none to move, or it waits on purpose.
    fn dispatch(&mut self, queue: &mut Queue) -> bool;

    /// Moves all requests to the dispatch list, without waiting for any: a barrier comes behind them.
    fn drain(&mut self, queue: &mut Queue) {
        while self.dispatch(queue) {}
    }

    /// The driver issued a request.
    fn started(&mut self, queue: &mut Queue, id: RequestId) {
        let _ = (queue, id);
    }

    /// The drive finished a request, which is about to go.
    fn completed(&mut self, queue: &mut Queue, request: &Request) {
        let _ = (queue, request);
    }

    /// When [`Scheduler::timer`] is to be called.
    fn next_due(&self) -> Option<u64> {
        None
    }

    /// The time of [`Scheduler::next_due`] has come; the driver will ask for a request afterwards.
    fn timer(&mut self, queue: &mut Queue) {
        let _ = queue;
    }

    /// Whether the process of a bio may have a request for it.
    fn may_queue(&self, queue: &Queue, bio: &Bio) -> May {
        let _ = (queue, bio);
        May::Yes
    }

    /// Most tags of the device that may be in use for this bio to get one.
    fn tag_limit(&self, bio: &Bio, tags: usize) -> usize {
        let _ = bio;
        tags
    }

    /// A process is gone for good.
    fn exited(&mut self, queue: &mut Queue, process: u32) {
        let _ = (queue, process);
    }

    /// Requests held here.
    fn len(&self) -> usize;

    /// None is.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// What a tunable's number counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Requests, sectors' multiples, or whatever the name says.
    Count,
    /// Milliseconds.
    Milliseconds,
    /// Microseconds.
    Microseconds,
    /// Nanoseconds.
    Nanoseconds,
    /// KiB.
    Kibibytes,
    /// 0 or 1.
    Switch,
}

impl Unit {
    /// As people write it; empty for a plain number.
    pub fn symbol(self) -> &'static str {
        match self {
            Self::Count => "",
            Self::Milliseconds => "ms",
            Self::Microseconds => "us",
            Self::Nanoseconds => "ns",
            Self::Kibibytes => "KiB",
            Self::Switch => "0 or 1",
        }
    }
}

/// One file of `/sys/block/DEVICE/queue/iosched`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tunable {
    /// The file's name.
    pub name: &'static str,
    /// Its default.
    pub default: u64,
    /// What it counts.
    pub unit: Unit,
    /// Least value that the kernel keeps.
    pub least: u64,
    /// Largest value that the kernel keeps.
    pub most: u64,
}

impl Tunable {
    pub(super) const fn new(name: &'static str, default: u64, unit: Unit) -> Self {
        let most = match unit {
            Unit::Switch => 1,
            _ => i32::MAX as u64,
        };
        Self { name, default, unit, least: 0, most }
    }
}

/// The tunables of one scheduler with their values.
#[derive(Debug)]
pub(super) struct Settings {
    tunables: &'static [Tunable],
    values: Vec<u64>,
}

impl Settings {
    /// The defaults, with some replaced.
    pub(super) fn new(
        scheduler: &'static str,
        tunables: &'static [Tunable],
        overrides: &[(&str, u64)],
    ) -> Result<Self, SchedulerError> {
        let mut values: Vec<u64> = tunables.iter().map(|tunable| tunable.default).collect();
        for &(name, value) in overrides {
            let Some(at) = tunables.iter().position(|tunable| tunable.name == name) else {
                return Err(unknown(scheduler, tunables, name));
            };
            let Tunable { name, least, most, .. } = tunables[at];
            if !(least..=most).contains(&value) {
                return Err(SchedulerError::Value { scheduler, tunable: name, value, least, most });
            }
            values[at] = value;
        }
        Ok(Self { tunables, values })
    }

    /// The value of a tunable of this scheduler.
    pub(super) fn get(&self, name: &str) -> u64 {
        let at = self.tunables.iter().position(|tunable| tunable.name == name);
        debug_assert!(at.is_some(), "{name} is no tunable");
        at.map_or(0, |at| self.values[at])
    }

    /// The same in nanoseconds, of one that is a time.
    pub(super) fn ns(&self, name: &str) -> u64 {
        let unit = self.tunables.iter().find(|tunable| tunable.name == name).map(|tunable| tunable.unit);
        let factor = match unit {
            Some(Unit::Milliseconds) => 1_000_000,
            Some(Unit::Microseconds) => 1_000,
            _ => 1,
        };
        self.get(name) * factor
    }
}

fn unknown(scheduler: &'static str, tunables: &[Tunable], name: &str) -> SchedulerError {
    let known: Vec<_> = tunables.iter().map(|tunable| tunable.name).collect();
    let hint = if known.is_empty() {
        "; it has none".to_owned()
    } else {
        let near = similar::did_you_mean(name, known.iter().copied());
        format!("; its tunables are {}{near}", known.join(", "))
    };
    SchedulerError::Tunable { scheduler, name: name.to_owned(), hint }
}

/// What is wrong with a choice of a scheduler.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum SchedulerError {
    /// No such tunable.
    #[error("scheduler {scheduler} has no tunable \"{name}\"{hint}")]
    Tunable {
        /// The scheduler.
        scheduler: &'static str,
        /// What was given.
        name: String,
        /// What may have been meant.
        hint: String,
    },
    /// A value outside of what the kernel keeps.
    #[error("scheduler {scheduler}: {tunable} = {value} is not between {least} and {most}")]
    Value {
        /// The scheduler.
        scheduler: &'static str,
        /// Its tunable.
        tunable: &'static str,
        /// What was given.
        value: u64,
        /// Least.
        least: u64,
        /// Most.
        most: u64,
    },
    /// No such scheduler in this kernel.
    #[error("kernel {kernel} has no scheduler \"{name}\"; it has {known}{hint}")]
    Unknown {
        /// The kernel.
        kernel: &'static str,
        /// What was given.
        name: String,
        /// What may have been meant.
        hint: String,
        /// All that it has.
        known: String,
    },
}

impl SchedulerError {
    pub(crate) fn unknown(kernel: &'static str, name: &str, known: &[&'static str]) -> Self {
        let hint = similar::did_you_mean(name, known.iter().copied());
        Self::Unknown { kernel, name: name.to_owned(), hint, known: known.join(", ") }
    }
}

#[cfg(test)]
mod tests {
    //! Schedulers by themselves, without a drive.

    use proptest::prelude::*;

    use super::*;
    use crate::queue::{Bio, Direction, Limits, Queue};
    use crate::scheduler::{SchedulerName, scheduler};

    const LIMITS: Limits = Limits { sectors: 1024, segments: 128 };
    const SECOND_NS: u64 = 1_000_000_000;

    fn insert(scheduler: &mut dyn Scheduler, queue: &mut Queue, bio: Bio) -> u32 {
        let id = queue.requests.allocate(queue.now_ns, bio);
        scheduler.insert(queue, id);
        queue.list(id);
        id
    }

    /// Start of the next request, which the drive takes and finishes at once.
    fn serve(scheduler: &mut dyn Scheduler, queue: &mut Queue) -> Option<u64> {
        if queue.dispatch().is_empty() && !scheduler.dispatch(queue) {
            return None;
        }
        let id = queue.peek().unwrap();
        queue.start(id);
        scheduler.started(queue, id);
        queue.in_driver -= 1;
        let request = queue.requests[id].clone();
        scheduler.completed(queue, &request);
        while queue.requests.take_bio(id).is_some() {}
        Some(request.start_sector)
    }

    fn write(start_sector: u64) -> Bio {
        Bio::new(0, Direction::Write, start_sector, 8)
    }

    /// Sectors of 4 KiB pages that no two of are neighbours.
    fn apart() -> impl Strategy<Value = Vec<u64>> {
        prop::collection::hash_set(0..100_000_u64, 1..200)
            .prop_map(|pages| pages.into_iter().map(|page| page * 16).collect())
    }

    /// The order in which writes are served that came at 0 s, at a later time.
    fn order_after(name: SchedulerName, starts: &[u64], now_ns: u64) -> Vec<u64> {
        let (mut scheduler, mut queue) = (scheduler(name, &[]).unwrap(), Queue::new(LIMITS, true));
        for start in starts {
            insert(&mut *scheduler, &mut queue, write(*start));
        }
        queue.now_ns = now_ns;
        std::iter::from_fn(|| serve(&mut *scheduler, &mut queue)).collect()
    }

    proptest! {
        #[test]
        fn deadline_to_2_6_24_serves_what_is_older_than_5_s_in_order_of_arrival(starts in apart()) {
            prop_assert_eq!(order_after(SchedulerName::DeadlineOld, &starts, 5 * SECOND_NS + 1), starts);
        }

        #[test]
        fn deadline_serves_what_is_younger_ascending_from_the_first(starts in apart()) {
            let order = order_after(SchedulerName::DeadlineOld, &starts, SECOND_NS);
            let descents = order.windows(2).filter(|pair| pair[0] > pair[1]).count();
            // At the end of the tree the oldest request begins the next sweep.
            prop_assert_eq!(order[0], starts[0]);
            let oldest_left = |at: usize| starts.iter().find(|start| !order[..at].contains(start)).copied();
            for at in 1..order.len() {
                prop_assert!(order[at] > order[at - 1] || Some(order[at]) == oldest_left(at), "{} descents", descents);
            }
        }

        #[test]
        fn later_deadline_goes_on_for_16_from_each_that_is_too_old(starts in apart()) {
            for name in [SchedulerName::Deadline, SchedulerName::MqDeadline] {
                let order = order_after(name, &starts, 5 * SECOND_NS + 1);
                for (batch, at) in order.chunks(16).zip((0..).step_by(16)) {
                    if batch.is_sorted() {
                        let oldest = starts.iter().find(|start| !order[..at].contains(start));
                        prop_assert_eq!(batch.first(), oldest);
                    } else {
                        // The end of the tree came before the sixteenth; all later batches are displaced.
                        break;
                    }
                }
            }
        }

        #[test]
        fn a_scheduler_that_has_requests_dispatches_one_when_asked(bios in prop::collection::vec((0..4_u32, any::<bool>(), 0..5000_u64, 0..5_000_000_u64), 1..200)) {
            for name in SchedulerName::ALL {
                let (mut scheduler, mut queue) = (scheduler(name, &[]).unwrap(), Queue::new(LIMITS, true));
                for &(process, is_read, page, gap_ns) in &bios {
                    let direction = if is_read { Direction::Read } else { Direction::Write };
                    insert(&mut *scheduler, &mut queue, Bio::new(process, direction, page * 16, 8));
                    queue.now_ns += gap_ns;
                    if page % 3 == 0 {
                        let had = scheduler.len();
                        let served = serve(&mut *scheduler, &mut queue);
                        // Who waits on purpose says until when.
                        prop_assert!(had == 0 || served.is_some() || scheduler.next_due().is_some(), "{:?}", name);
                    }
                }
                while !scheduler.is_empty() || !queue.dispatch().is_empty() {
                    if serve(&mut *scheduler, &mut queue).is_none() {
                        queue.now_ns = scheduler.next_due().unwrap();
                        scheduler.timer(&mut queue);
                    }
                }
                prop_assert!(queue.requests.is_empty());
            }
        }
    }

    #[test]
    fn reads_go_first_and_writes_get_their_turn_after_two_batches() {
        let (mut scheduler, mut queue) =
            (scheduler(SchedulerName::Deadline, &[("fifo_batch", 1)]).unwrap(), Queue::new(LIMITS, true));
        for at in 0..6 {
            insert(&mut *scheduler, &mut queue, Bio::new(0, Direction::Read, at * 16, 8));
            insert(&mut *scheduler, &mut queue, write(1000 + at * 16));
        }
        let order: Vec<_> = std::iter::from_fn(|| serve(&mut *scheduler, &mut queue)).collect();
        let reads: Vec<_> = order.iter().map(|start| *start < 1000).collect();
        assert_eq!(reads[..9], [true, true, false, true, true, false, true, true, false]);
    }

    #[test]
    fn old_noop_stops_merging_a_stream_that_came_to_a_gap() {
        let merged = |name| {
            let (mut scheduler, mut queue) = (scheduler(name, &[]).unwrap(), Queue::new(LIMITS, true));
            insert(&mut *scheduler, &mut queue, write(0));
            insert(&mut *scheduler, &mut queue, write(160));
            scheduler.find_merge(&queue, &write(168)).is_some()
        };
        assert_eq!([SchedulerName::NoopOld, SchedulerName::Noop].map(merged), [false, true]);
    }

    #[test]
    fn wrong_tunables_are_refused_with_the_nearest_name() {
        let message = |name, tunable| scheduler(name, &[tunable]).err().unwrap().to_string();
        assert_eq!(
            message(SchedulerName::Deadline, ("read_expires", 3)),
            "scheduler deadline has no tunable \"read_expires\"; its tunables are read_expire, write_expire, writes_starved, \
             front_merges, fifo_batch. Did you mean \"read_expire\"?"
        );
        assert_eq!(
            message(SchedulerName::Deadline, ("front_merges", 2)),
            "scheduler deadline: front_merges = 2 is not between 0 and 1"
        );
        assert_eq!(
            message(SchedulerName::Noop, ("quantum", 4)),
            "scheduler noop has no tunable \"quantum\"; it has none"
        );
    }
}
