use proptest::prelude::*;

use super::*;

fn write(process: u32) -> Bio {
    Bio::new(process, Direction::Write, 0, 8)
}

/// Takes requests for new processes, none of which is a batcher, and gives them back; where it becomes congested and clear.
fn thresholds(nr_requests: usize) -> (usize, usize) {
    let mut pools = Pools::new(Sharing::Direction, nr_requests);
    let mut on = 0;
    while !pools.is_congested(Direction::Write, false) {
        assert!(pools.take(0, &write(0), May::Yes, 0));
        on += 1;
    }
    let mut off = on;
    while pools.is_congested(Direction::Write, false) {
        pools.give_back(Direction::Write.index());
        off -= 1;
    }
    (on, off + 1)
}

#[test]
fn congestion_begins_and_ends_at_the_kernel_s_thresholds() {
    // The kernel is clear when the count is below the second.
    assert_eq!(thresholds(128), (113, 103));
    assert_eq!(thresholds(100_000), (87_501, 81_249));
}

#[test]
fn who_fills_a_pool_takes_a_batch_and_others_sleep() {
    let mut pools = Pools::new(Sharing::Direction, 128);
    let mut take = |process, now_ns| pools.take(now_ns, &write(process), May::Yes, 0);
    for taken in 0..127 {
        assert!(take(taken, 0));
    }
    assert!(take(7, 0), "who fills the pool gets its last request");
    assert!(!take(8, 0), "who comes later sleeps");
    let batch = (0..100).take_while(|_| take(7, 1)).count();
    assert_eq!(batch, 31, "32 with the one that filled it");
}

#[test]
fn a_batch_ends_after_20_ms() {
    let mut pools = Pools::new(Sharing::Direction, 4);
    let mut take = |now_ns| pools.take(now_ns, &write(1), May::Yes, 0);
    assert!((0..5).all(|_| take(0)));
    assert!(!take(BATCH_NS));
}

#[test]
fn no_batch_takes_more_than_one_and_a_half_times_the_pool() {
    let mut pools = Pools::new(Sharing::Direction, 20);
    assert_eq!((0..100).take_while(|_| pools.take(0, &write(1), May::Yes, 0)).count(), 30);
    assert!(pools.take(0, &Bio::new(1, Direction::Read, 0, 8), May::Yes, 0), "reads have their own");
}

#[test]
fn synchronous_writes_share_with_reads_in_later_kernels() {
    let mut pools = Pools::new(Sharing::Sync, 4);
    let asynchronous = Bio { sync: false, ..write(2) };
    assert_eq!((0..9).take_while(|_| pools.take(0, &write(1), May::Yes, 0)).count(), 6);
    assert!(!pools.take(0, &Bio::new(2, Direction::Read, 0, 8), May::Yes, 0));
    assert!(pools.take(0, &asynchronous, May::Yes, 0));
}

proptest! {
    #[test]
    fn sleepers_are_woken_in_the_order_they_came(nr in 4_usize..200, sleepers in 1_u32..100) {
        let mut pools = Pools::new(Sharing::Direction, nr);
        while pools.take(0, &write(0), May::Yes, 0) {}
        for process in 1..=sleepers {
            prop_assert!(!pools.take(0, &write(process), May::Yes, 0));
            pools.sleep(write(process));
        }
        let mut woken = Vec::new();
        while pools.sleepers() > 0 {
            pools.give_back(Direction::Write.index());
            woken.extend(pools.wake(0, Direction::Write.index(), May::Yes, 0).map(|bio| bio.process));
            prop_assert!(pools.allocated() <= nr * 3 / 2);
        }
        prop_assert_eq!(woken, (1..=sleepers).collect::<Vec<_>>());
    }

    #[test]
    fn tags_are_never_more_than_there_are(nr in 1_usize..64, tries in 0_usize..200) {
        let mut pools = Pools::new(Sharing::Tags, nr);
        let taken = (0..tries).filter(|at| pools.take(0, &write(*at as u32), May::Yes, nr)).count();
        prop_assert_eq!(taken, tries.min(nr));
    }
}
