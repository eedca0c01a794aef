//! The block layer: what becomes one request, what the drive gets of writes that ask for flushes, by version, and
//! writeback throttling: reads beside writes of the page cache.
#![allow(clippy::unwrap_used)]

use dbdyno_blk::kernel::{Kernel, Settings};
use dbdyno_blk::layer::{Flushing, Layer, Submitted};
use dbdyno_blk::queue::{Bio, Direction};
use dbdyno_blk::run;
use dbdyno_blk::scheduler::SchedulerName;
use dbdyno_blk::source::{BufferedJobs, CacheConfig, Job, Pattern};
use dbdyno_common::random::Random;
use dbdyno_device::Kind;

use self::bench::{SECOND_NS, SIZE_BYTES, ran, stacks, watched};

mod bench;

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

fn write(at: u64) -> Bio {
    Bio { token: at, ..Bio::new(0, Direction::Write, at * 1000, 8) }
}

/// Commands as letters: F flush, W write, U write with FUA; a space where the time goes on. And bios in the order they
/// ended.
fn sent(kernel: &str, no_fua: bool, bios: &[Bio]) -> (String, Vec<u64>) {
    let (drive, commands) = watched("ideal(latency_us=100)");
    let settings = Settings { scheduler: Some("noop"), no_fua, ..Settings::default() };
    let mut layer = Kernel::named(kernel).unwrap().layer(&settings, drive).unwrap();
    for bio in bios {
        assert_eq!(layer.submit(0, *bio), Submitted::Queued);
        layer.unplug(0, bio.process);
    }
    let ended = to_the_end(&mut layer);
    let (mut letters, mut then_ns) = (String::new(), 0);
    for (at_ns, command) in commands.lock().unwrap().iter() {
        if *at_ns > then_ns {
            letters.push(' ');
        }
        then_ns = *at_ns;
        letters.push(match command.kind {
            Kind::Flush => 'F',
            _ if command.fua => 'U',
            _ => 'W',
        });
    }
    (letters, ended)
}

fn to_the_end(layer: &mut Layer) -> Vec<u64> {
    while let Some(due_ns) = layer.next_due() {
        layer.advance(due_ns);
        while let Some(process) = layer.next_woken() {
            layer.unplug(due_ns, process);
        }
    }
    assert_eq!((layer.pools().allocated(), layer.statistics().queued()), (0, 0));
    std::iter::from_fn(|| layer.next_finished()).map(|bio| bio.token).collect()
}

#[test]
fn a_barrier_is_alone_at_the_drive_and_nothing_passes_it() {
    let barrier = Bio { flush: true, ..write(3) };
    let bios = [write(5), write(4), barrier, write(1), write(2)];
    assert_eq!(sent("2.6.18", false, &bios), ("WW F W F WW".into(), vec![5, 4, 3, 1, 2]));
    let with_fua = Bio { fua: true, ..barrier };
    assert_eq!(sent("2.6.32", false, &[write(5), with_fua, write(1)]).0, "W F U W");
    assert_eq!(sent("2.6.32", true, &[write(5), with_fua, write(1)]).0, "W F W F W");
}

#[test]
fn a_sequence_lets_others_pass() {
    let sequence = Bio { flush: true, fua: true, ..write(3) };
    assert_eq!(sent("3.10", false, &[write(5), sequence, write(1)]), ("WFW U".into(), vec![5, 1, 3]));
    assert_eq!(sent("3.10", true, &[write(5), sequence, write(1)]).0, "WFW W F");
    let fua = Bio { fua: true, ..write(3) };
    assert_eq!(sent("4.4", false, &[fua]).0, "U");
    assert_eq!(sent("4.4", true, &[fua]).0, "W F");
}

#[test]
fn one_flush_serves_all_who_wait_for_one() {
    let flush = |token| Bio { flush: true, token, ..Bio::new(0, Direction::Write, 0, 0) };
    let bios = [flush(1), flush(2), flush(3), flush(4)];
    assert_eq!(sent("3.10", false, &bios), ("F F".into(), vec![1, 2, 3, 4]));
    assert_eq!(sent("2.6.18", false, &bios).0, "F F F F");
}

#[test]
fn a_bare_flush_is_a_barrier_of_one_step() {
    let flush = Bio { flush: true, token: 3, ..Bio::new(0, Direction::Write, 0, 0) };
    let bios = [write(5), flush, write(1)];
    assert_eq!(sent("2.6.32", false, &bios), ("W F W".into(), vec![5, 3, 1]));
    assert_eq!(sent("3.10", false, &bios).0, "WFW");
}

#[test]
fn a_barrier_drains_every_scheduler() {
    for (kernel, scheduler) in bench::stacks() {
        let (drive, _) = watched("ssd-sata");
        let settings = Settings { scheduler: Some(scheduler), depth: Some(4), ..Settings::default() };
        let mut layer = kernel.layer(&settings, drive).unwrap();
        for at in 0..60 {
            let bio = Bio { process: at as u32 % 5, sync: at % 3 == 0, flush: at % 20 == 19, ..write(at) };
            layer.submit(0, bio);
            layer.unplug(0, bio.process);
        }
        let ended = to_the_end(&mut layer);
        assert_eq!(ended.len(), 60, "{} {scheduler}", kernel.name);
        if kernel.flushing == Flushing::Barrier {
            let ended: Vec<_> = ended.chunks(20).map(|chunk| chunk.iter().all(|at| at / 20 == chunk[0] / 20)).collect();
            assert_eq!(ended, [true, true, true], "{} {scheduler}", kernel.name);
        }
    }
}

const SSD: &str = "ssd-sata";

fn settings(scheduler: &'static str, wbt_lat_usec: Option<u64>) -> Settings<'static> {
    Settings { scheduler: Some(scheduler), wbt_lat_usec, non_rotational: true, ..Settings::default() }
}

fn kernel() -> Kernel {
    Kernel::named("6.x").unwrap()
}

fn reader() -> Job {
    Job { think_ns: 1_000_000, ..Job::default() }
}

fn writer(asynchronous: bool) -> Job {
    let size_bytes = 64 << 10;
    Job { read_percent: 0, size_bytes, depth: 256, batch: 16, offset_bytes: 2 << 30, asynchronous, ..Job::default() }
}

/// The 99th percentile of reads beside a writer, milliseconds, and how many bytes are written a second.
fn reads_beside(scheduler: &'static str, wbt_lat_usec: Option<u64>, writer: Job) -> (f64, f64) {
    let ran = ran(&kernel(), &settings(scheduler, wbt_lat_usec), SSD, &[reader(), writer], 5);
    let of = |direction| ran.layer.statistics().of(direction);
    let p99_ns = of(Direction::Read).latencies.value_at_quantile(0.99);
    (p99_ns as f64 / 1e6, of(Direction::Write).sectors as f64 * 512.0 / 5.0)
}

#[test]
fn reads_beside_asynchronous_writes_keep_their_latency() {
    for scheduler in ["none", "mq-deadline", "kyber"] {
        let ((with_ms, _), (without_ms, _)) =
            (reads_beside(scheduler, None, writer(true)), reads_beside(scheduler, Some(0), writer(true)));
        println!("{scheduler}: p99 of reads {with_ms:.2} ms with wbt, {without_ms:.2} ms without");
        assert!(with_ms * 2.0 < without_ms, "{scheduler}: {with_ms} ms with, {without_ms} ms without");
    }
}

#[test]
fn direct_writes_are_not_held_back() {
    let [with, without] = [None, Some(0)].map(|target| reads_beside("none", target, writer(false)));
    assert_eq!(with, without);
}

#[test]
fn writes_alone_are_not_slowed_down() {
    let rate = |target| {
        let ran = ran(&kernel(), &settings("none", target), SSD, &[writer(true)], 5);
        ran.layer.statistics().of(Direction::Write).sectors as f64
    };
    let (with, without) = (rate(None), rate(Some(0)));
    assert!(with > 0.9 * without, "{with} sectors with, {without} without");
}

#[test]
fn a_streaming_buffered_write_is_held_back_for_reads_and_loses_nothing() {
    let of = |target| {
        let (drive, commands) = watched(SSD);
        let mut layer = kernel().layer(&settings("none", target), drive).unwrap();
        let stream = Job {
            read_percent: 0,
            pattern: Pattern::Sequential,
            size_bytes: 1 << 20,
            range_bytes: 2 << 30,
            ..Job::default()
        };
        let stream = Job { ios: 2048, ..stream };
        let cache = CacheConfig { memory_bytes: 512 << 20, mapped_bytes: 64 << 20, ..CacheConfig::default() };
        let mut load = BufferedJobs::cached(&kernel(), &cache, vec![Job { ios: 2000, ..reader() }, stream], 1).unwrap();
        run(&mut layer, &mut load, 0, 60 * SECOND_NS);
        assert_eq!((layer.statistics().queued(), layer.pools().sleepers()), (0, 0));
        assert!(commands.lock().unwrap().iter().all(|(_, command)| command.offset_bytes < SIZE_BYTES));
        let written = layer.statistics().of(Direction::Write).sectors;
        let p99_ns = layer.statistics().of(Direction::Read).latencies.value_at_quantile(0.99);
        (p99_ns as f64 / 1e6, written)
    };
    let ((with_ms, with), (without_ms, without)) = (of(None), of(Some(0)));
    println!(
        "buffered stream: p99 of reads {with_ms:.2} ms with wbt, {without_ms:.2} ms without; sectors {with}, {without}"
    );
    assert!(with >= (2 << 30) / 512 && without >= (2 << 30) / 512);
    assert!(with_ms * 1.5 < without_ms, "{with_ms} ms with, {without_ms} ms without");
}

#[test]
fn where_there_is_none_it_can_not_be_set() {
    let refused = |kernel: &str, scheduler| {
        let drive = watched(SSD).0;
        let layer = Kernel::named(kernel).unwrap().layer(&settings(scheduler, Some(2000)), drive);
        layer.err().unwrap().to_string()
    };
    for (kernel, scheduler) in [("4.4", "cfq"), ("6.x", "bfq")] {
        let text = format!("kernel {kernel} with {scheduler} has no writeback throttling (it needs 4.10, and not bfq)");
        assert_eq!(refused(kernel, scheduler), format!("{text}: leave wbt_lat_usec out"));
        let off = Kernel::named(kernel).unwrap().layer(&settings(scheduler, Some(0)), watched(SSD).0);
        assert!(off.is_ok(), "it is off there");
    }
}
