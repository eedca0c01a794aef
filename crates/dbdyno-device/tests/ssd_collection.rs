//! Garbage collection against the formula for greedy collection of uniform random writes, in virtual time.

mod bench;

use bench::Bench;
use dbdyno_device::{DriveState, Kind};

/// A drive with this spare area, on a disk of 1 GiB.
fn with_spare(spare: f64, state: DriveState) -> Bench {
    Bench::with(&format!("nvme(over_provisioning={spare})"), 1 << 30, 1, state)
}

/// Write amplification of `writes` random writes.
fn amplification(bench: &mut Bench, writes: u64) -> f64 {
    let written = |bench: &Bench| (bench.gauge("host_written_bytes"), bench.gauge("flash_written_bytes"));
    let before = written(bench);
    bench.random_writes(64, writes);
    let after = written(bench);
    (after.1 - before.1) / (after.0 - before.0)
}

/// A = (1 + r) / (1 + r + W0(-(1 + r) exp(-(1 + r)))), with W0 by Newton's method.
fn greedy(spare: f64) -> f64 {
    let (r, x) = (1.0 + spare, -(1.0 + spare) * (-(1.0 + spare)).exp());
    let mut w = -0.5;
    for _ in 0..100 {
        let e = f64::exp(w);
        w -= (w * e - x) / (e * (w + 1.0));
    }
    r / (r + w)
}

#[test]
fn a_steady_drive_amplifies_writes_as_the_formula_says() {
    for spare in [0.07, 0.12, 0.28, 0.30] {
        let got = amplification(&mut with_spare(spare, DriveState::Steady), 300_000);
        println!("spare {spare}: {got:.3}, formula {:.3}", greedy(spare));
        assert!((got / greedy(spare) - 1.0).abs() < 0.05, "spare {spare}: {got}, formula {}", greedy(spare));
    }
}

#[test]
fn a_fresh_drive_comes_to_the_same_once_it_is_full() {
    let mut bench = with_spare(0.28, DriveState::Fresh);
    bench.sequential(Kind::Write, 8, 8192);
    assert!(amplification(&mut bench, 50_000) < 1.1, "there are free blocks yet");
    bench.random_writes(64, 1_000_000);
    let got = amplification(&mut bench, 250_000);
    assert!((got / greedy(0.28) - 1.0).abs() < 0.05, "{got}, formula {}", greedy(0.28));
}

#[test]
fn a_steady_drive_collects_no_more_than_it_has_to() {
    for drive in ["ssd-sata", "ssd-x25e", "ssd-s510", "ssd-860pro", "nvme", "nvme-760p", "nvme-980pro"] {
        let mut bench = Bench::with(drive, 16 << 30, 1, DriveState::Steady);
        bench.random_writes(1, 4);
        // The 760p empties its cache, which is full of data, by and by.
        bench.now_ns += if drive == "nvme-760p" { 10_000_000 } else { 60_000_000_000 };
        bench.one(Kind::Read, 0, 4096);
        let collected_bytes = bench.gauge("collected_bytes");
        assert!(collected_bytes < 16e6, "{drive}: {collected_bytes} for four writes");
    }
}

#[test]
fn a_steady_drive_amplifies_the_first_writes_as_the_later_ones() {
    for drive in ["ssd-x25e", "ssd-s510", "ssd-860pro", "nvme"] {
        // In all a quarter of the disk is written, and of a smaller one as much in fewer writes.
        let mut bench = Bench::with(drive, 6 << 30, 1, DriveState::Steady);
        let short = amplification(&mut bench, 40_000);
        let long = amplification(&mut bench, 400_000);
        println!("{drive}: {short:.3} then {long:.3}");
        assert!((0.8..1.1).contains(&(short / long)), "{drive}: {short} at first, then {long}");
    }
}

#[test]
fn what_the_host_overwrites_in_the_buffer_is_written_by_the_host() {
    for drive in ["ssd-sata", "nvme"] {
        let mut bench = Bench::with(drive, 1 << 30, 1, DriveState::Fresh);
        (0..1000).for_each(|_| _ = bench.one(Kind::Write, 8192, 4096));
        (0..1000).for_each(|_| _ = bench.one(Kind::Write, 8192 + 512, 1024));
        assert!((bench.gauge("host_written_bytes") - 1000.0 * 5120.0).abs() < 0.5, "{drive}");
        bench.one(Kind::Flush, 0, 0);
        assert!(bench.gauge("write_amplification") < 0.2, "{drive}: {}", bench.gauge("write_amplification"));
    }
}

#[test]
fn the_cache_of_a_steady_drive_is_full_until_the_host_pauses() {
    for drive in ["ssd-sata", "nvme-760p", "nvme-980pro"] {
        let mut bench = Bench::with(drive, 4 << 30, 1, DriveState::Steady);
        assert!(bench.gauge("slc_cache_free_bytes") < 1.0, "{drive}");
        bench.one(Kind::Write, 0, 4096);
        bench.now_ns += 30_000_000_000;
        bench.one(Kind::Read, 0, 4096);
        assert!(bench.gauge("slc_cache_free_bytes") > 20e6, "{drive}: {}", bench.gauge("slc_cache_free_bytes"));
    }
}

#[test]
fn every_drive_collects_for_ever() {
    for drive in ["ssd-sata", "ssd-x25e", "ssd-s510", "ssd-860pro", "nvme", "nvme-760p", "nvme-980pro"] {
        for size_bytes in [1 << 20, 24 << 20, 64 << 20, (200 << 20) + 512] {
            for state in [DriveState::Fresh, DriveState::Steady] {
                let mut bench = Bench::with(drive, size_bytes, 1, state);
                let writes = (2 * size_bytes / 4096).max(4000);
                bench.random_writes(32, writes);
                assert!(bench.gauge("free_bytes") > 0.0, "{drive} of {size_bytes}");
            }
        }
    }
}

#[test]
#[allow(clippy::disallowed_methods)] // How long it takes is a matter of real time.
fn a_large_steady_drive_is_made_in_no_time() {
    // The time asked for is 2 s in a release build on a quiet machine; this is to notice that it has become minutes.
    let start = std::time::Instant::now();
    let bench = Bench::with("nvme-980pro", 64 << 30, 1, DriveState::Steady);
    assert!((bench.gauge("mapped_bytes") / (64_u64 << 30) as f64 - 1.0).abs() < 1e-9);
    assert!(start.elapsed().as_secs() < 60, "{:?}", start.elapsed());
}
