//! How often a hard disk has to be polled: a poll is a call at `next_due`, each of which costs an emulated disk a wake-up.

mod bench;

use bench::Bench;
use dbdyno_device::Kind;

/// Beside the one that completes a request: for a choice that hangs on what the head reads until it is made; and where
/// reads and cached writes are mixed, for dirty sectors that are written before a read which waits already. Of an array that
/// is so for each member.
const POLLS_MAX: f64 = 1.05;
const MIXED_POLLS_MAX: f64 = 1.3;
const COUNT: u64 = 4000;

/// Polls a request of `depth` requests at a time; `writes` of ten are writes.
fn polls(drive: &str, depth: u64, writes: u64) -> f64 {
    let mut bench = Bench::new(drive, 100 << 30, 1);
    bench.closed_loop_of(depth, COUNT, |bench, index| {
        (if index % 10 < writes { Kind::Write } else { Kind::Read }, bench.random_offset(), 4096)
    });
    bench.polls as f64 / COUNT as f64
}

#[test]
fn a_request_takes_one_poll() {
    for drive in ["hdd-7200", "hdd-15k", "hdd-10k", "hdd-exos18", "hdd-15k(write_cache_bytes=0)", "raid1(hdd-15k, 4)"] {
        for depth in [1, 4, 32, 128] {
            for writes in if drive.starts_with("raid") { vec![0, 10] } else { vec![0, 3, 10] } {
                let polls = polls(drive, depth, writes);
                let limit = if writes % 10 == 0 { POLLS_MAX } else { MIXED_POLLS_MAX };
                assert!(polls < limit, "{drive}, depth {depth}, {writes} writes of ten: {polls:.3} polls a request");
            }
        }
    }
}
