//! Prints what a drive model does under plain loads, in virtual time: `cargo run --example figures -- hdd-7200 SIZE`.
//! For fitting a drive file to measured figures.

#[path = "../tests/bench/mod.rs"]
mod bench;

use bench::Bench;
use dbdyno_device::DriveState;

/// CPU time of this thread so far, seconds.
fn cpu_seconds() -> f64 {
    let times = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    times.split(' ').next().and_then(|ns| ns.parse::<f64>().ok()).unwrap_or(0.0) / 1e9
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let drive = arguments.next().unwrap_or_else(|| "hdd-7200".into());
    let size: u64 = arguments.next().and_then(|size| size.parse().ok()).unwrap_or(4 << 30);
    println!("{drive}, {size} bytes");
    for depth in [1, 2, 4, 8, 16, 32, 64, 128] {
        let random = Bench::new(&drive, size, 1).random_reads(depth, 3000);
        let write = Bench::new(&drive, size, 1).random_writes(depth, 20_000);
        println!("  4 KiB random, depth {depth:3}: {random:9.1} reads/s {write:9.1} writes/s");
    }
    println!("  sequential 128 KiB reads, depth 1: {:.1} MB/s", Bench::new(&drive, size, 1).sequential_reads(4000));
    println!("  sequential 128 KiB writes, depth 1: {:.1} MB/s", Bench::new(&drive, size, 1).sequential_writes(8000));
    println!("  4 KiB log write and flush: {:.1} a second", Bench::new(&drive, size, 1).log_writes(500));
    for depth in [1, 32, 128] {
        for (what, write) in [("reads", false), ("writes", true)] {
            let mut bench = Bench::new(&drive, size, 1);
            let start = cpu_seconds();
            let _ = if write { bench.random_writes(depth, 1_000_000) } else { bench.random_reads(depth, 1_000_000) };
            println!("  simulated {what} per CPU-second, depth {depth:3}: {:.0}", 1e6 / (cpu_seconds() - start));
        }
    }
    let start = cpu_seconds();
    let mut steady = Bench::with(&drive, size, 1, DriveState::Steady);
    let made = cpu_seconds();
    let rate = steady.random_writes(32, 300_000);
    println!("  made steady in {:.2} CPU-seconds; then {rate:.0} writes/s,", made - start);
    println!("  simulated at {:.0} per CPU-second", 3e5 / (cpu_seconds() - made));
    for writes in [1, 8, 64, 512] {
        let flush_ms = Bench::new(&drive, size, 1).flush_after(writes, 20);
        println!("  flush after {writes:3} scattered writes: {flush_ms:.2} ms");
    }
}
