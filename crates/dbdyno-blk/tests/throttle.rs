//! Writeback throttling: reads beside writes of the page cache.

#![allow(clippy::unwrap_used)]

mod bench;

use bench::{SECOND_NS, SIZE_BYTES, ran, watched};
use dbdyno_blk::kernel::{Kernel, Settings};
use dbdyno_blk::queue::Direction;
use dbdyno_blk::run;
use dbdyno_blk::source::{BufferedJobs, CacheConfig, Job, Pattern};

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
        let found = Kernel::named(kernel).unwrap().layer(&settings(scheduler, Some(2000)), drive);
        found.err().unwrap().to_string()
    };
    for (kernel, scheduler) in [("4.4", "cfq"), ("6.x", "bfq")] {
        let text = format!("kernel {kernel} with {scheduler} has no writeback throttling (it needs 4.10, and not bfq)");
        assert_eq!(refused(kernel, scheduler), format!("{text}: leave wbt_lat_usec out"));
    }
}
