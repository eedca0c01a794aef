//! One job on one simulated stack, as `benches/simulate.py` compares it with a real kernel.
//!
//! `cargo run --release -p dbdyno-blk --example jobs -- drive=hdd-7200 kernel=6.x scheduler=none iodepth=8 ...`: what is not given is
//! the default. Prints a line of JSON: rates, mean latency and merges after `warm_up` seconds of `seconds`.

#![allow(clippy::unwrap_used)]

use std::collections::HashMap;

use dbdyno_blk::kernel::{Kernel, Settings};
use dbdyno_blk::queue::Direction;
use dbdyno_blk::run;
use dbdyno_blk::source::{Job, Jobs, Pattern};
use dbdyno_blk::statistics::Statistics;

/// Bios, their latencies' sum in nanoseconds, requests, merges.
fn sums(statistics: &Statistics) -> [f64; 4] {
    let each = Direction::ALL.map(|direction| {
        let counts = statistics.of(direction);
        let latencies_ns = counts.latencies.mean() * counts.bios as f64;
        [counts.bios as f64, latencies_ns, counts.requests as f64, counts.merges as f64]
    });
    std::array::from_fn(|at| each[0][at] + each[1][at])
}

fn main() {
    let given: Vec<String> = std::env::args().skip(1).collect();
    let mut given: HashMap<&str, &str> = given.iter().map(|word| word.split_once('=').unwrap()).collect();
    let mut word = |name, default| given.remove(name).unwrap_or(default);
    let (drive, kernel, scheduler) = (word("drive", "hdd-7200"), word("kernel", "6.x"), word("scheduler", "none"));
    let pattern = if word("pattern", "random") == "random" { Pattern::Random } else { Pattern::Sequential };
    let mut number = |name, default| given.remove(name).map_or(default, |value| value.parse::<u64>().unwrap());
    let size_bytes = number("size", 4 << 30);
    let [warm_up_ns, end_ns] = [number("warm_up", 0), number("seconds", 20)].map(|seconds| seconds * 1_000_000_000);
    let job = Job {
        processes: number("processes", 1) as u32,
        pattern,
        read_percent: number("read", 100) as u32,
        size_bytes: number("bs", 4096),
        depth: number("iodepth", 1) as u32,
        batch: number("batch", 1) as u32,
        think_ns: number("think_ns", 0),
        range_bytes: size_bytes,
        ..Job::default()
    };
    let mut optional = |name| given.remove(name).map(|value| value.parse::<usize>().unwrap());
    let settings = Settings {
        scheduler: Some(scheduler),
        nr_requests: optional("nr_requests"),
        depth: optional("depth"),
        max_sectors: optional("max_sectors").map(|value| value as u32),
        max_segments: optional("max_segments").map(|value| value as u32),
        ..Settings::default()
    };
    assert!(given.is_empty(), "unknown: {given:?}");
    let model = dbdyno_device::model(drive, size_bytes, 1).unwrap();
    let mut layer = Kernel::named(kernel).unwrap().layer(&settings, model).unwrap();
    let mut jobs = Jobs::new(vec![job], 7).unwrap();
    run(&mut layer, &mut jobs, 0, warm_up_ns);
    let before = sums(layer.statistics());
    run(&mut layer, &mut jobs, warm_up_ns, end_ns);
    let after = sums(layer.statistics());
    let [bios, latencies_ns, requests, merges] = std::array::from_fn(|at| after[at] - before[at]);
    let seconds = (end_ns - warm_up_ns) as f64 / 1e9;
    println!(
        "{{\"ios_per_s\": {}, \"latency_ms\": {}, \"requests_per_s\": {}, \"merges_per_s\": {}}}",
        bios / seconds,
        latencies_ns / bios / 1e6,
        requests / seconds,
        merges / seconds
    );
}
