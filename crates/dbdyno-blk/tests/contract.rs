//! What holds of every scheduler of every kernel.

#![allow(clippy::unwrap_used)]

mod bench;

use std::collections::BTreeMap;

use bench::{Ran, SECOND_NS, SIZE_BYTES, ran, stacks};
use dbdyno_blk::kernel::Settings;
use dbdyno_blk::queue::{Class, Direction};
use dbdyno_blk::source::{Job, Pattern};
use dbdyno_device::{Command, Kind, catalogue, model};
use proptest::prelude::*;

fn job() -> impl Strategy<Value = Job> {
    let shape = (1..5_u32, any::<bool>(), 0..=100_u32, 0..4_u32, 1..40_u32);
    let pauses = (prop_oneof![3 => Just(0), 1 => 0..20_000_000_u64], prop_oneof![2 => Just(0), 1 => 1..20_u32]);
    let range = (0..3_u64, prop_oneof![Just(1_u64 << 20), Just(64 << 20), Just(1 << 30)], any::<bool>(), 0..8_u8);
    (shape, pauses, range, 1..60_u64).prop_map(|(shape, pauses, range, ios)| Job {
        processes: shape.0,
        pattern: if shape.1 { Pattern::Sequential } else { Pattern::Random },
        read_percent: shape.2,
        size_bytes: 4096 << shape.3,
        depth: shape.4,
        batch: 1 + shape.4 / 3,
        think_ns: pauses.0,
        fsync_every: pauses.1,
        offset_bytes: range.0 << 30,
        range_bytes: range.1,
        asynchronous: range.2,
        class: if range.3 == 0 { Class::RealTime } else { Class::BestEffort },
        priority: range.3,
        ios,
        ..Job::default()
    })
}

fn jobs() -> impl Strategy<Value = Vec<Job>> {
    prop::collection::vec(job(), 1..4)
}

fn settings(scheduler: &'static str, nr_requests: usize, depth: usize) -> Settings<'static> {
    // Without a scheduler, the drive's depth is all there is.
    let nr_requests = (scheduler != "none").then_some(nr_requests);
    Settings { scheduler: Some(scheduler), nr_requests, depth: Some(depth), ..Settings::default() }
}

fn data_bytes(ran: &Ran) -> u64 {
    ran.commands
        .iter()
        .filter(|(_, command)| command.kind != Kind::Flush)
        .map(|(_, command)| command.length_bytes)
        .sum()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(5))]

    #[test]
    fn nothing_is_lost_and_everything_is_served_once(jobs in jobs(), nr in 4..200_usize, depth in 1..40_usize) {
        for (kernel, scheduler) in stacks() {
            let name = format!("{} {scheduler}", kernel.name);
            let ran = ran(kernel, &settings(scheduler, nr, depth), "ssd-sata", &jobs, 3600);
            prop_assert!(ran.have_ended, "{}", name);
            let wanted: u64 = jobs.iter().map(|job| job.ios * u64::from(job.processes)).sum();
            let mut seen = BTreeMap::new();
            let data = ran.finished.iter().filter(|(_, bio)| bio.sectors > 0);
            data.for_each(|(_, bio)| *seen.entry((bio.process, bio.token)).or_insert(0) += 1);
            prop_assert_eq!((seen.len() as u64, seen.values().all(|times| *times == 1)), (wanted, true), "{}", &name);
            let finished: u64 = ran.finished.iter().map(|(_, bio)| u64::from(bio.sectors) * 512).sum();
            prop_assert_eq!(data_bytes(&ran), finished, "{}", &name);
            let counts = Direction::ALL.map(|direction| ran.layer.statistics().of(direction).clone());
            prop_assert_eq!(counts.iter().map(|counts| counts.requests + counts.merges).sum::<u64>(), wanted);
            prop_assert_eq!((ran.layer.pools().allocated(), ran.layer.statistics().queued()), (0, 0));
        }
    }

    #[test]
    fn the_queue_is_its_arrivals_times_their_stay(jobs in jobs(), nr in 4..200_usize, depth in 1..40_usize) {
        // Little's law, to the nanosecond: once the queue is empty the integral over time is the sum of all stays.
        for (kernel, scheduler) in stacks() {
            let ran = ran(kernel, &settings(scheduler, nr, depth), "hdd-7200", &jobs, 3600);
            let statistics = ran.layer.statistics();
            prop_assert_eq!(statistics.queue_ns(), statistics.left().1, "{} {}", kernel.name, scheduler);
            prop_assert!(statistics.busy_ns() <= ran.end_ns);
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_run(jobs in jobs(), nr in 4..200_usize) {
        for (kernel, scheduler) in stacks() {
            let once = || ran(kernel, &settings(scheduler, nr, 8), "hdd-15k", &jobs, 3600);
            let (first, second) = (once(), once());
            prop_assert_eq!(first.commands, second.commands, "{} {}", kernel.name, scheduler);
            prop_assert_eq!(first.finished, second.finished);
        }
    }

    #[test]
    fn no_drive_gets_more_than_its_depth(jobs in jobs(), depth in 1..20_usize) {
        for (kernel, scheduler) in stacks() {
            let ran = ran(kernel, &settings(scheduler, 64, depth), "ideal", &jobs, 3600);
            // What began and had not ended: the ideal drive takes the same time for each command.
            let took_ns = one_takes_ns("ideal");
            for (at, (start_ns, _)) in ran.commands.iter().enumerate().skip(depth) {
                let (before_ns, _) = ran.commands[at - depth];
                prop_assert!(*start_ns >= before_ns + took_ns, "{} {}", kernel.name, scheduler);
            }
        }
    }
}

fn one_takes_ns(drive: &str) -> u64 {
    let mut model = model(drive, SIZE_BYTES, 1).unwrap();
    model.submit(0, Command { id: 0, kind: Kind::Read, offset_bytes: 0, length_bytes: 4096, fua: false });
    model.next_due().unwrap()
}

#[test]
fn one_request_at_a_time_takes_what_the_drive_alone_takes() {
    for drive in catalogue().iter().map(|drive| drive.name.as_str()) {
        for (kernel, scheduler) in stacks() {
            let job = Job { read_percent: 60, ios: 120, fsync_every: 7, ..Job::default() };
            let ran = ran(kernel, &settings(scheduler, 128, 32), drive, &[job], 3600);
            let mut alone = model(drive, SIZE_BYTES, 1).unwrap();
            let (mut now_ns, mut ends) = (0, Vec::new());
            for (_, command) in &ran.commands {
                alone.submit(now_ns, *command);
                let mut finished = Vec::new();
                while finished.is_empty() {
                    now_ns = alone.next_due().unwrap();
                    alone.poll(now_ns, &mut finished);
                }
                ends.push(now_ns);
            }
            let got: Vec<_> = ran.finished.iter().map(|(at_ns, _)| *at_ns).collect();
            assert_eq!(got, ends, "{drive} {} {scheduler}", kernel.name);
        }
    }
}

#[test]
fn nobody_starves_beyond_its_expiry() {
    // A write far away, beside eight readers that never leave a gap.
    let readers = Job { processes: 8, pattern: Pattern::Sequential, depth: 16, range_bytes: 1 << 30, ..Job::default() };
    let writer = Job { read_percent: 0, offset_bytes: 6 << 30, ios: 2, asynchronous: true, ..Job::default() };
    for (kernel, scheduler) in stacks() {
        let ran = ran(kernel, &settings(scheduler, 128, 1), "hdd-7200", &[readers.clone(), writer.clone()], 12);
        let far: Vec<_> = ran.finished.iter().filter(|(_, bio)| bio.direction == Direction::Write).collect();
        assert_eq!(far.len(), 2, "{} {scheduler}", kernel.name);
        for (at_ns, bio) in far {
            let wait_ns = at_ns - bio.intended_ns;
            assert!(wait_ns < 10 * SECOND_NS, "{} {scheduler}: {wait_ns} ns", kernel.name);
        }
    }
}
