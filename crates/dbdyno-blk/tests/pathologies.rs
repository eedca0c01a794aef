//! What old kernels are known for.

#![allow(clippy::unwrap_used)]

mod bench;

use bench::{SECOND_NS, ran, watched};
use dbdyno_blk::kernel::{Kernel, Settings};
use dbdyno_blk::queue::Direction;
use dbdyno_blk::run;
use dbdyno_blk::source::{BufferedJobs, CacheConfig, Job, Pattern};

/// Reads finished in 20 s under a scheduler of 2.6.18.
fn reads(scheduler: &str, drive: &str, depth: usize, jobs: &[Job]) -> u64 {
    let settings = Settings { scheduler: Some(scheduler), depth: Some(depth), ..Settings::default() };
    let kernel = Kernel::named("2.6.18").unwrap();
    ran(&kernel, &settings, drive, jobs, 20).layer.statistics().of(Direction::Read).bios
}

#[test]
fn a_read_beside_a_streaming_write_starves_under_deadline_and_not_under_anticipatory() {
    // As Morton measured in 2003: 48 s against 3.8 s for 100 MB.
    let reader = Job { pattern: Pattern::Sequential, size_bytes: 16 << 10, think_ns: 100_000, ..Job::default() };
    let writer = Job {
        pattern: Pattern::Sequential,
        read_percent: 0,
        size_bytes: 4096,
        depth: 4096,
        offset_bytes: 4 << 30,
        asynchronous: true,
        ..Job::default()
    };
    let drive = "hdd-7200(write_cache_bytes=0)";
    let [deadline, anticipatory] =
        ["deadline", "anticipatory"].map(|scheduler| reads(scheduler, drive, 1, &[reader.clone(), writer.clone()]));
    assert!(anticipatory > 4 * deadline, "{anticipatory} with anticipatory, {deadline} with deadline");
}

#[test]
fn cfq_idles_on_a_fast_drive_and_loses_to_noop() {
    let job = Job { processes: 8, ..Job::default() };
    let [cfq, noop] = ["cfq", "noop"].map(|scheduler| reads(scheduler, "ssd-x25e", 32, std::slice::from_ref(&job)));
    println!("2.6.18, eight readers of ssd-x25e: {} reads/s with cfq, {} with noop", cfq / 20, noop / 20);
    assert!(cfq * 2 < noop, "{cfq} with cfq, {noop} with noop");
}

#[test]
fn later_cfq_does_not_idle_on_a_drive_without_heads_that_queues() {
    // Eight processes with four each: the drive shows that it takes several commands.
    let job = Job { processes: 8, depth: 4, ..Job::default() };
    let rate = |kernel: &str, scheduler| {
        let settings = Settings { scheduler: Some(scheduler), non_rotational: true, ..Settings::default() };
        let ran = ran(&Kernel::named(kernel).unwrap(), &settings, "ssd-x25e", std::slice::from_ref(&job), 5);
        ran.layer.statistics().of(Direction::Read).bios
    };
    for kernel in ["2.6.32", "3.10"] {
        let (cfq, noop) = (rate(kernel, "cfq"), rate(kernel, "noop"));
        println!("{kernel}, eight readers of four each: {} with cfq, {} with noop", cfq / 5, noop / 5);
        assert!(cfq * 10 > noop * 8, "{kernel}: {cfq} with cfq, {noop} with noop");
    }
}

#[test]
fn a_sequential_read_grows_to_128_kib() {
    let job = Job { pattern: Pattern::Sequential, size_bytes: 4096, ios: 256, ..Job::default() };
    let kernel = Kernel::named("2.6.18").unwrap();
    let (drive, commands) = watched("hdd-7200");
    let mut layer = kernel.layer(&Settings::default(), drive).unwrap();
    let mut load = BufferedJobs::cached(&kernel, &CacheConfig::default(), vec![job], 1).unwrap();
    run(&mut layer, &mut load, 0, SECOND_NS);
    let reads: Vec<_> = commands.lock().unwrap().iter().map(|(_, read)| read.length_bytes >> 10).collect();
    assert_eq!(reads[..6], [16, 32, 64, 128, 128, 128]);
}
