//! The solid-state drives against what is published of them, in virtual time.

mod bench;

use bench::Bench;
use dbdyno_device::{DriveState, Kind, Published, catalogue};

/// All are run as disks of this size, at the drive's scale.
const SIZE_BYTES: u64 = 28 << 30;

fn assert_near(what: &str, got: f64, wanted: u64, tolerance: f64) {
    let off = got / wanted as f64 - 1.0;
    println!("{what}: {got:.0} is {:+.1} % off {wanted}", off * 100.0);
    assert!(off.abs() <= tolerance, "{what}: {got:.0} is {:+.1} % off {wanted}", off * 100.0);
}

fn published() -> Vec<(String, Published)> {
    catalogue()
        .into_iter()
        .filter(|drive| drive.kind == "ssd")
        .map(|drive| (drive.name, drive.published.expect("an SSD without published figures")))
        .collect()
}

#[test]
fn sequential_rates_are_those_published() {
    for (drive, published) in published() {
        // Short enough for the cache of the scaled drive.
        let read = Bench::new(&drive, SIZE_BYTES, 1).sequential(Kind::Read, published.queue_depth, 8000);
        assert_near(&format!("{drive}: MB/s read"), read, published.sequential_read_mb_s, 0.10);
        // From the second second on, so to say: the write buffer flatters the beginning.
        let mut bench = Bench::new(&drive, SIZE_BYTES, 1);
        bench.sequential(Kind::Write, published.queue_depth, 2500);
        let write = bench.sequential(Kind::Write, published.queue_depth, 3000);
        assert_near(&format!("{drive}: MB/s written"), write, published.sequential_write_mb_s, 0.10);
    }
}

#[test]
fn random_rates_are_those_published() {
    for (drive, published) in published() {
        let read = Bench::new(&drive, SIZE_BYTES, 1).random_reads(published.queue_depth, 50_000);
        assert_near(&format!("{drive}: reads/s"), read, published.random_read_iops, 0.10);
        let size_bytes = if published.random_write_state == DriveState::Steady { 1 << 30 } else { SIZE_BYTES };
        let mut bench = Bench::with(&drive, size_bytes, 1, published.random_write_state);
        bench.random_writes(published.queue_depth, 20_000);
        let write = bench.random_writes(published.queue_depth, 30_000);
        assert_near(&format!("{drive}: writes/s"), write, published.random_write_iops, 0.10);
    }
}

#[test]
fn one_command_at_a_time_takes_what_is_published() {
    for (drive, published) in published() {
        let read = Bench::new(&drive, SIZE_BYTES, 1).random_reads(1, 5000);
        let write = Bench::new(&drive, SIZE_BYTES, 1).random_writes(1, 5000);
        println!("{drive}: {:.1} us a read, {:.1} us a write", 1e6 / read, 1e6 / write);
        assert!((25e-6..130e-6).contains(&(1.0 / read)), "{drive}: {read} reads/s");
        assert!((10e-6..120e-6).contains(&(1.0 / write)), "{drive}: {write} writes/s");
        if let Some(wanted) = published.read_iops_depth_1 {
            assert_near(&format!("{drive}: reads/s at depth 1"), read, wanted, 0.10);
        }
        if let Some(wanted) = published.write_iops_depth_1 {
            assert_near(&format!("{drive}: writes/s at depth 1"), write, wanted, 0.10);
        }
    }
}
