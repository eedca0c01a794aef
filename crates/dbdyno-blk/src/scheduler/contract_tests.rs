//! Schedulers by themselves, without a drive.

use proptest::prelude::*;

use super::*;
use crate::queue::{Bio, Direction, Limits, Queue};

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
    fn whoever_has_requests_dispatches_one_when_asked(bios in prop::collection::vec((0..4_u32, any::<bool>(), 0..5000_u64, 0..5_000_000_u64), 1..200)) {
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
    let message = |name, given| scheduler(name, &[given]).err().unwrap().to_string();
    assert_eq!(
        message(SchedulerName::Deadline, ("read_expires", 3)),
        "scheduler deadline has no tunable \"read_expires\": did you mean read_expire?"
    );
    assert_eq!(
        message(SchedulerName::Deadline, ("front_merges", 2)),
        "scheduler deadline: front_merges = 2 is not between 0 and 1"
    );
    assert_eq!(message(SchedulerName::Noop, ("quantum", 4)), "scheduler noop has no tunable \"quantum\"; it has none");
}
