//! The models against the figures their drive files were fitted to, in virtual time.

mod bench;

use bench::{Bench, assert_near};
use dbdyno_device::{Kind, WriteCache};

/// The whole ST2000DM006: its figures were measured over all of it.
const HDD_BYTES: u64 = 2_000_398_934_016;

#[test]
fn hdd_7200_random_reads_by_queue_depth() {
    for (depth, measured) in [(1, 57.6), (2, 64.5), (4, 71.2), (8, 78.6), (16, 86.3), (32, 93.6)] {
        for seed in 1..4 {
            let iops = Bench::new("hdd-7200", HDD_BYTES, seed).random_reads(depth, 4000);
            assert_near(&format!("reads/s at depth {depth}, seed {seed}"), iops, measured, 0.10);
        }
    }
}

#[test]
fn hdd_exos18_random_reads_are_those_of_its_data_sheet() {
    for seed in 1..4 {
        let iops = Bench::new("hdd-exos18", 18_000_207_937_536, seed).random_reads(16, 4000);
        assert_near(&format!("reads/s at depth 16, seed {seed}"), iops, 170.0, 0.10);
    }
}

#[test]
fn hdd_7200_flush_after_scattered_writes() {
    for (writes, measured_ms) in [(8, 127.0), (64, 630.0)] {
        let flush_ms = Bench::new("hdd-7200", HDD_BYTES, 1).flush_after(writes, 100);
        assert_near(&format!("ms to flush {writes} writes"), flush_ms, measured_ms, 0.20);
    }
}

#[test]
fn flush_costs_its_time_where_anything_was_not_on_the_medium_when_it_came() {
    let flush_ns = |flush_ms: f64, pause_ns: u64| {
        let mut bench = Bench::new(&format!("hdd-7200(flush_ms={flush_ms})"), HDD_BYTES, 1);
        bench.request_ns(Kind::Write, 1 << 40, 4096);
        bench.now_ns += pause_ns;
        bench.request_ns(Kind::Flush, 0, 0)
    };
    // While the drive chooses, while it moves to the sector, and long after that is written.
    for (pause_ns, more_ns) in [(0, 4_000_000), (500_000, 4_000_000), (1_000_000_000, 0)] {
        let [with, without] = [flush_ns(4.0, pause_ns), flush_ns(0.0, pause_ns)];
        assert_eq!(with - without, more_ns, "FLUSH {pause_ns} ns after a write");
    }
}

#[test]
fn hdds_stream_at_their_sustained_rates() {
    let drives = [
        ("hdd-7200", HDD_BYTES, 220.0, 107.0),
        ("hdd-exos18", 18_000_207_937_536, 270.0, 126.0),
        ("hdd-15k", 300_000_000_000, 171.0, 112.0),
        ("hdd-10k", 600_000_000_000, 125.0, 74.0),
    ];
    for (drive, size_bytes, outer_mb_s, inner_mb_s) in drives {
        let rate = |start_bytes| Bench::new(drive, size_bytes, 1).sequential_reads_from(start_bytes, 10_000);
        assert_near(&format!("{drive}, outer edge"), rate(0), outer_mb_s, 0.05);
        assert_near(&format!("{drive}, inner edge"), rate(size_bytes - (10_001 << 17)), inner_mb_s, 0.05);
    }
}

#[test]
fn sequential_writes_stream() {
    for (drive, least_mb_s, most_mb_s) in [("hdd-7200", 190.0, 235.0), ("ssd-sata", 350.0, 560.0)] {
        let mb_s = Bench::new(drive, 100 << 30, 1).sequential_writes(30_000);
        assert!((least_mb_s..most_mb_s).contains(&mb_s), "{drive}: {mb_s}");
    }
}

#[test]
fn a_hdd_commits_a_log_once_a_revolution() {
    assert_near("commits/s", Bench::new("hdd-7200", HDD_BYTES, 1).log_writes(500), 120.0, 0.02);
    assert_near("commits/s at 15k", Bench::new("hdd-15k", 100 << 30, 1).log_writes(500), 250.0, 0.02);
}

#[test]
fn sas_disks_seek_as_their_data_sheets_say() {
    // Seek, half a revolution, and the time to choose.
    for (drive, size_bytes, read_ms, write_ms) in [
        ("hdd-15k", 300_000_000_000, 3.4 + 2.0 + 0.15, 3.9 + 2.0 + 0.15),
        ("hdd-10k", 600_000_000_000, 3.8 + 3.0 + 0.2, 4.4 + 3.0 + 0.2),
    ] {
        let reads = Bench::new(drive, size_bytes, 1).random_reads(1, 4000);
        assert_near(&format!("{drive}: ms a read"), 1e3 / reads, read_ms, 0.05);
        let uncached = format!("{drive}(write_cache_bytes=0)");
        let writes = Bench::new(&uncached, size_bytes, 1).random_writes(1, 4000);
        assert_near(&format!("{drive}: ms a write"), 1e3 / writes, write_ms, 0.05);
    }
    // Twice as many by reordering, and still a revolution each at least on average.
    let deep = Bench::new("hdd-15k", 300_000_000_000, 1).random_reads(32, 4000);
    assert!((320.0..450.0).contains(&deep), "{deep}");
}

#[test]
fn a_short_stroked_hdd_is_faster_unless_it_spans_the_drive() {
    let iops = |drive: &str, size_bytes, depth| Bench::new(drive, size_bytes, 1).random_reads(depth, 4000);
    let short = iops("hdd-7200", 4 << 30, 1);
    assert!((130.0..200.0).contains(&short), "{short}");
    for (drive, whole_bytes) in [("hdd-7200", HDD_BYTES), ("hdd-15k", 300_000_000_000)] {
        let stretched = format!("{drive}(span=whole)");
        for depth in [1, 32] {
            let whole = iops(drive, whole_bytes, depth);
            assert_near(&format!("{stretched}, depth {depth}"), iops(&stretched, 4 << 30, depth), whole, 0.04);
        }
        let outer = |drive: &str, bytes| Bench::new(drive, bytes, 1).sequential_reads(800);
        assert_near(&stretched, outer(&stretched, 4 << 30), outer(drive, whole_bytes), 0.02);
    }
}

#[test]
fn the_cheetah_9lp_under_c_look_is_as_fast_as_measured() {
    let drive = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/drives/cheetah-9lp.toml");
    for (depth, measured) in [(1, 103.7), (32, 157.6), (128, 174.2), (500, 186.8)] {
        let iops = Bench::new(drive, 9_105_018_880, 1).c_look_reads(depth, 6000);
        assert_near(&format!("C-LOOK at depth {depth}"), iops, measured, 0.04);
    }
}

#[test]
fn hdd_writes_complete_into_the_cache_until_it_is_full() {
    let mut bench = Bench::new("hdd-7200", HDD_BYTES, 1);
    assert!(bench.request_ns(Kind::Write, 1 << 40, 4096) < 1_000_000);
    let filled = Bench::new("hdd-7200", HDD_BYTES, 1).random_writes(32, 8_000);
    assert!(filled > 2_000.0, "{filled}");
    let mut bench = Bench::new("hdd-7200", HDD_BYTES, 1);
    bench.random_writes(32, 9_000);
    let sustained = bench.random_writes(32, 2_000);
    assert!((60.0..250.0).contains(&sustained), "{sustained}");
}

#[test]
fn a_write_that_waits_for_room_takes_one_poll() {
    let mut bench = Bench::new("hdd-7200", 4 << 30, 1);
    bench.random_writes(32, 9_000);
    let (mut finished, mut polls) = (0, 0);
    for _ in 0..32 {
        let offset_bytes = bench.random_offset();
        bench.submit(Kind::Write, offset_bytes, 4096);
    }
    while finished < 2_000 {
        let done = bench.wait();
        for _ in 0..done {
            let offset_bytes = bench.random_offset();
            bench.submit(Kind::Write, offset_bytes, 4096);
        }
        (finished, polls) = (finished + done, polls + 1);
    }
    assert!(f64::from(polls) < 1.1 * finished as f64, "{polls} polls for {finished} writes");
}

#[test]
fn a_forced_write_reaches_the_medium_of_a_hdd() {
    let mut bench = Bench::new("hdd-7200", HDD_BYTES, 1);
    assert_eq!(bench.device.write_cache(), WriteCache::Volatile);
    let log_ns: u64 = (0..100).map(|index| bench.forced_write_ns((1 << 30) + index * 4096, 4096)).sum();
    assert_near("ms a forced append", log_ns as f64 / 1e8, 60e3 / 7200.0, 0.02);
    assert!(bench.request_ns(Kind::Flush, 0, 0) < 1_000_000, "there is nothing left to flush");
}
