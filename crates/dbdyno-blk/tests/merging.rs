//! What becomes one request.

#![allow(clippy::unwrap_used)]

mod bench;

use bench::{ran, stacks, watched};
use dbdyno_blk::kernel::{Kernel, Settings};
use dbdyno_blk::queue::{Bio, Direction};
use dbdyno_blk::scheduler::SchedulerName;
use dbdyno_blk::source::{Job, Pattern};
use dbdyno_common::random::Random;

/// Sectors of a request, on the mean, of pages that are written in ascending order, each with this probability.
fn mean_sectors(kernel: &Kernel, scheduler: &str, density: f64) -> f64 {
    let settings = Settings { scheduler: Some(scheduler), nr_requests: Some(100_000), ..Settings::default() };
    let mut layer = kernel.layer(&settings, watched("ideal").0).unwrap();
    let mut random = Random::new(3);
    for page in (0..100_000).filter(|_| random.chance(density)) {
        layer.submit(0, Bio { sync: false, ..Bio::new(0, Direction::Write, page * 8, 8) });
    }
    layer.unplug(0, 0);
    while let Some(due_ns) = layer.next_due() {
        layer.advance(due_ns);
    }
    let writes = layer.statistics().of(Direction::Write);
    writes.sectors as f64 / writes.requests as f64
}

#[test]
fn the_mean_run_of_random_pages_is_1_in_1_minus_their_density() {
    for kernel in Kernel::ALL.iter().filter(|kernel| kernel.schedulers[0].sysfs() != "none") {
        // Old noop stops at the first gap, and the oldest cfq lets one process have 128 requests.
        let stops = [SchedulerName::NoopOld, SchedulerName::CfqRounds];
        for scheduler in kernel.schedulers.iter().filter(|scheduler| !stops.contains(scheduler)) {
            for density in [0.01, 0.3, 0.63] {
                let (mean, expected) = (mean_sectors(kernel, scheduler.sysfs(), density), 8.0 / (1.0 - density));
                assert!((mean / expected - 1.0).abs() < 0.02, "{} {scheduler:?} {density}: {mean}", kernel.name);
            }
        }
    }
}

#[test]
fn a_stream_becomes_requests_of_the_limit() {
    let job = Job {
        pattern: Pattern::Sequential,
        read_percent: 0,
        depth: 4096,
        batch: 4096,
        ios: 40_000,
        asynchronous: true,
        ..Job::default()
    };
    for (kernel, scheduler) in stacks().filter(|(_, scheduler)| *scheduler != "none") {
        let settings =
            Settings { scheduler: Some(scheduler), nr_requests: Some(64), depth: Some(1), ..Settings::default() };
        let ran = ran(kernel, &settings, "hdd-7200", std::slice::from_ref(&job), 3600);
        let most = ran.commands.iter().map(|(_, command)| command.length_bytes / 512).max().unwrap();
        let by_segments = u64::from(kernel.limits.segments) * 8;
        assert_eq!(most, by_segments.min(kernel.limits.sectors.into()), "{} {scheduler}", kernel.name);
    }
}
