//! Simulated requests a CPU-second: `cargo run --release -p dbdyno-blk --example simulate_speed`.
//!
//! Prints `[{"name", "value", "limit", "met"}]`.

#![allow(clippy::unwrap_used)]

use dbdyno_blk::kernel::{Kernel, Settings};
use dbdyno_blk::queue::Direction;
use dbdyno_blk::run;
use dbdyno_blk::source::{Job, Jobs};

/// CPU time of this thread so far, seconds.
fn cpu_seconds() -> f64 {
    let times = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    times.split(' ').next().and_then(|ns| ns.parse::<f64>().ok()).unwrap_or(0.0) / 1e9
}

/// Requests simulated a CPU-second, at random over a drive of `size_gib`, `depth` outstanding of 32 at the drive.
fn rate((drive, size_gib): (&str, u64), read_percent: u32, depth: u32, total: u64) -> f64 {
    let (model, scheduler) = (dbdyno_device::model(drive, size_gib << 30, 1).unwrap(), "deadline");
    let nr_requests = Some(depth as usize * 2);
    let settings = Settings { scheduler: Some(scheduler), nr_requests, ..Settings::default() };
    let mut layer = Kernel::named("2.6.18").unwrap().layer(&settings, model).unwrap();
    let job = Job { depth, read_percent, range_bytes: size_gib << 30, ios: total, ..Job::default() };
    let mut jobs = Jobs::new(vec![job], 1).unwrap();
    let start = cpu_seconds();
    run(&mut layer, &mut jobs, 0, u64::MAX);
    let requests: u64 = Direction::ALL.iter().map(|direction| layer.statistics().of(*direction).requests).sum();
    requests as f64 / (cpu_seconds() - start)
}

fn main() {
    let rows = [
        ("simulate_hdd_deadline_128_per_cpu_s", ("hdd-15k", 64), 50, 128, 1_000_000, 1e6),
        ("simulate_hdd_deadline_100000_per_cpu_s", ("hdd-15k", 64), 50, 100_000, 1_000_000, 300e3),
        ("simulate_ssd_collecting_deadline_128_per_cpu_s", ("ssd-x25e(state=steady)", 16), 0, 128, 1_000_000, 500e3),
        ("simulate_ideal_deadline_128_per_cpu_s", ("ideal", 64), 50, 128, 2_000_000, 1e6),
        ("simulate_ideal_deadline_100000_per_cpu_s", ("ideal", 64), 50, 100_000, 2_000_000, 300e3),
    ];
    let lines: Vec<_> = rows
        .iter()
        .map(|&(name, drive, read_percent, depth, total, limit)| {
            let value = rate(drive, read_percent, depth, total);
            let met = value >= limit;
            format!("{{\"name\": \"{name}\", \"value\": {value:.0}, \"limit\": {limit}, \"met\": {met}}}")
        })
        .collect();
    println!("[{}]", lines.join(",\n "));
}
