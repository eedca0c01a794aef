//! A trace replayed: at its times, or with its waits.

use dbdyno_blk::kernel::{Kernel, Settings};
use dbdyno_blk::layer::Layer;
use dbdyno_blk::queue::{Bio, Direction};
use dbdyno_blk::run;
use dbdyno_blk::source::{Pace, Replay, Source, Step};
use dbdyno_blk::trace::Record;
use proptest::prelude::*;

const FOREVER: u64 = u64::MAX / 4;

fn layer(drive: &str, nr_requests: Option<usize>) -> Layer {
    let drive = dbdyno_device::model(drive, 4 << 30, 1).expect("a drive of the catalogue");
    let settings = Settings { nr_requests, ..Settings::default() };
    Kernel::named("2.6.18").and_then(|kernel| kernel.layer(&settings, drive)).expect("settings of that kernel")
}

fn read(process: u32, at_ns: u64, response_ns: u64) -> Record {
    Record {
        process,
        response_ns: Some(response_ns),
        ..Record::new(at_ns, Direction::Read, at_ns / 1000 * 8 % 1_000_000, 8)
    }
}

/// What a replay asked for and when, and when that was finished.
#[derive(Default)]
struct Seen {
    submitted: Vec<(u64, Bio)>,
    finished: Vec<(u64, Bio)>,
}

struct Watched<S>(S, Seen);

impl<S: Source> Source for Watched<S> {
    fn next_due(&self) -> Option<u64> {
        self.0.next_due()
    }
    fn step(&mut self, now_ns: u64) -> Option<Step> {
        let step = self.0.step(now_ns);
        if let Some(Step::Submit(bio)) = step {
            self.1.submitted.push((now_ns, bio));
        }
        step
    }
    fn asleep(&mut self, process: u32) {
        self.0.asleep(process);
    }
    fn awake(&mut self, process: u32) {
        self.0.awake(process);
    }
    fn finished(&mut self, now_ns: u64, bio: &Bio) {
        self.1.finished.push((now_ns, *bio));
        self.0.finished(now_ns, bio);
    }
}

fn replayed(layer: &mut Layer, records: Vec<Record>, pace: Pace) -> (Seen, u64) {
    let mut watched = Watched(Replay::new(records.into_iter(), pace), Seen::default());
    run(layer, &mut watched, 0, FOREVER);
    (watched.1, watched.0.late_ns_max())
}

#[test]
fn an_open_replay_keeps_recorded_times_however_slow_the_drive_is() {
    let records: Vec<_> = (0..2000).map(|n| read(n % 3, 5_000_000 + u64::from(n) * 100_000, 50_000)).collect();
    for speed in [1.0, 2.0, 0.5] {
        let (seen, late_ns) = replayed(&mut layer("hdd-7200", Some(100_000)), records.clone(), Pace::Open { speed });
        let submitted_ns: Vec<_> = seen.submitted.iter().map(|(at_ns, _)| *at_ns).collect();
        let meant: Vec<_> = (0..2000).map(|n| (f64::from(n) * 100_000.0 / speed) as u64).collect();
        assert_eq!((submitted_ns, late_ns, seen.finished.len()), (meant, 0, 2000));
    }
    // A pool of four requests: who finds none sleeps, and is late with what follows.
    let (seen, late_ns) = replayed(&mut layer("hdd-7200", Some(4)), records, Pace::Open { speed: 1.0 });
    assert!(seen.finished.len() == 2000 && late_ns > 1_000_000_000, "{late_ns}");
}

#[test]
fn a_closed_replay_waits_for_what_was_waited_for() {
    // Each read comes 300 us after the one before has ended, as of a process that computes between reads.
    let records: Vec<_> = (0..500).map(|n| read(9, n * 10_300_000, 10_000_000)).collect();
    let (seen, _) = replayed(&mut layer("ssd-sata", None), records, Pace::Closed);
    assert_eq!(seen.finished.len(), 500);
    for (before, after) in seen.finished.iter().zip(&seen.submitted[1..]) {
        assert_eq!(after.0, before.0 + 300_000);
    }
    assert!(seen.finished[499].0 < 500 * 2_000_000, "ten times as fast a drive must end sooner");
}

#[test]
fn reads_that_went_out_together_still_do() {
    // Pairs 40 us apart, both outstanding for 5 ms; the next pair 1 ms after both have ended.
    let pair = |n: u64| [read(1, n * 6_040_000, 5_000_000), read(1, n * 6_040_000 + 40_000, 5_000_000)];
    let (seen, _) = replayed(&mut layer("hdd-15k", None), (0..100).flat_map(pair).collect(), Pace::Closed);
    for (submissions, ended) in seen.submitted.chunks(2).zip(seen.finished.chunks(2)) {
        assert_eq!(submissions[1].0 - submissions[0].0, 40_000);
        assert!(ended[0].0 >= submissions[0].0);
    }
    for (ended, submissions) in seen.finished.chunks(2).zip(seen.submitted.chunks(2).skip(1)) {
        assert_eq!(submissions[0].0, ended.iter().map(|completion| completion.0).max().unwrap_or(0) + 1_000_000);
    }
}

#[test]
fn what_nobody_waited_for_holds_nobody_up_and_long_requests_are_cut() {
    let write = |at_ns| Record {
        sync: false,
        response_ns: Some(90_000_000),
        ..Record::new(at_ns, Direction::Write, 8192, 5000)
    };
    let records = vec![write(0), read(0, 1_000_000, 2_000_000), write(3_500_000), read(0, 4_000_000, 1_000_000)];
    let (seen, _) = replayed(&mut layer("hdd-7200", None), records, Pace::Closed);
    let sizes: Vec<_> = seen.submitted.iter().map(|(_, bio)| bio.sectors).collect();
    assert_eq!(sizes, [2048, 2048, 904, 8, 2048, 2048, 904, 8]);
    assert_eq!(seen.submitted[3].0, 1_000_000, "the read follows the write's beginning, not its end");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn every_request_of_a_trace_is_asked_for_once_in_its_process_order(
        requests in prop::collection::vec((0_u32..5, 0_u64..3_000_000, 0_u64..5_000_000, any::<bool>(), any::<bool>(), 0_u64..1000), 0..300),
        is_open: bool,
        nr_requests in 4_usize..200,
    ) {
        let mut at_ns = 0;
        let records: Vec<_> = requests.into_iter().map(|(process, gap_ns, response_ns, sync, known, place)| {
            at_ns += gap_ns;
            let direction = if sync { Direction::Read } else { Direction::Write };
            Record { process, sync, response_ns: known.then_some(response_ns), ..Record::new(at_ns, direction, place * 8, 8) }
        }).collect();
        let pace = if is_open { Pace::Open { speed: 1.5 } } else { Pace::Closed };
        let (seen, _) = replayed(&mut layer("ssd-sata", Some(nr_requests)), records.clone(), pace);
        prop_assert_eq!(seen.finished.len(), records.len());
        let mut numbers: Vec<u32> = Vec::new();
        for record in &records {
            if !numbers.contains(&record.process) {
                numbers.push(record.process);
            }
        }
        for (number, process) in numbers.iter().enumerate() {
            let meant: Vec<_> = records.iter().filter(|record| record.process == *process).map(|record| record.start_sector).collect();
            let did: Vec<_> = seen.submitted.iter().filter(|(_, bio)| bio.process == number as u32).map(|(_, bio)| bio.start_sector).collect();
            prop_assert_eq!(meant, did);
        }
        prop_assert!(seen.submitted.iter().all(|(now_ns, bio)| bio.intended_ns <= *now_ns));
    }
}
