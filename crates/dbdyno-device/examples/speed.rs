//! How fast the models are simulated: `cargo run --release -p dbdyno-device --example speed -- [ROUNDS [WORD]]`.
//!
//! One line for each load, whose name has the word: name, requests per CPU-second (the best of the rounds), polls per
//! request, and a checksum of all completions, which a change that only makes a model faster leaves as it is.

#[path = "../tests/bench/mod.rs"]
mod bench;

use bench::Bench;
use dbdyno_device::{DriveState, Kind};

/// What a closed loop sends.
#[derive(Clone, Copy)]
enum Load {
    Reads,
    Writes,
    /// One write to three reads.
    Mixed,
    SequentialReads,
    SequentialWrites,
}

/// A load on a drive: `depth` requests at a time, `before` of them uncounted, and `count` that are.
struct Case {
    drive: &'static str,
    size_gib: u64,
    state: DriveState,
    load: Load,
    depth: u64,
    before: u64,
    count: u64,
}

const fn case(drive: &'static str, size_gib: u64, load: Load, depth: u64) -> Case {
    Case { drive, size_gib, state: DriveState::Fresh, load, depth, before: 20_000, count: 300_000 }
}

const fn collecting(drive: &'static str, size_gib: u64, load: Load, depth: u64) -> Case {
    Case { state: DriveState::Steady, ..case(drive, size_gib, load, depth) }
}

const CASES: &[Case] = &[
    case("hdd-15k", 100, Load::Reads, 1),
    case("hdd-15k", 100, Load::Reads, 32),
    case("hdd-15k", 100, Load::Reads, 128),
    case("hdd-15k", 4, Load::Writes, 32),
    case("hdd-15k", 100, Load::Writes, 32),
    case("hdd-15k", 100, Load::Mixed, 32),
    case("hdd-15k", 100, Load::SequentialReads, 1),
    case("hdd-15k", 100, Load::SequentialReads, 32),
    case("hdd-15k", 100, Load::SequentialWrites, 32),
    case("hdd-15k(write_cache_bytes=0)", 100, Load::Writes, 32),
    case("hdd-10k", 100, Load::Writes, 32),
    case("hdd-7200", 100, Load::Reads, 1),
    case("hdd-7200", 100, Load::Reads, 32),
    case("hdd-7200", 4, Load::Writes, 32),
    case("hdd-7200", 1000, Load::Writes, 32),
    case("hdd-7200", 100, Load::Mixed, 32),
    case("hdd-exos18", 4, Load::Writes, 32),
    case("hdd-exos18", 1000, Load::Writes, 32),
    case("raid1-hdd-15k", 100, Load::Writes, 32),
    case("raid1(hdd-15k, 4)", 100, Load::Reads, 32),
    case("raid1(hdd-15k, 4)", 100, Load::Writes, 32),
    case("raid10(hdd-15k, 4)", 100, Load::Reads, 32),
    case("raid10(hdd-15k, 4)", 100, Load::Writes, 32),
    case("raid10(hdd-15k, 4, write_cache_bytes=64MiB)", 100, Load::Writes, 32),
    case("ssd-sata", 8, Load::Reads, 32),
    case("ssd-sata", 8, Load::Writes, 32),
    collecting("ssd-sata", 8, Load::Writes, 32),
    collecting("ssd-x25e", 16, Load::Writes, 32),
    collecting("nvme", 8, Load::Writes, 32),
    collecting("nvme", 8, Load::Mixed, 32),
    case("nvme", 8, Load::Reads, 32),
    case("ebs-gp3", 100, Load::Mixed, 32),
];

impl Case {
    fn name(&self) -> String {
        let load = match self.load {
            Load::Reads => "random reads",
            Load::Writes => "random writes",
            Load::Mixed => "3 random reads to a write",
            Load::SequentialReads => "sequential reads",
            Load::SequentialWrites => "sequential writes",
        };
        let state = if self.state == DriveState::Steady { " collecting" } else { "" };
        format!("{} of {} GiB{state}, {load}, depth {}", self.drive, self.size_gib, self.depth)
    }

    /// Requests per CPU-second, polls per request, and the checksum.
    fn run(&self) -> (f64, f64, u64) {
        let mut bench = Bench::with(self.drive, self.size_gib << 30, 1, self.state);
        self.send(&mut bench, self.before);
        let (start, before) = (cpu_seconds(), bench.polls);
        self.send(&mut bench, self.count);
        let count = self.count as f64;
        (count / (cpu_seconds() - start), (bench.polls - before) as f64 / count, bench.checksum)
    }

    fn send(&self, bench: &mut Bench, count: u64) {
        let all = bench.size_bytes >> 12;
        bench.closed_loop_of(self.depth, count, |bench, index| match self.load {
            Load::Reads => (Kind::Read, bench.random_offset(), 4096),
            Load::Writes => (Kind::Write, bench.random_offset(), 4096),
            Load::Mixed => (if index % 4 == 0 { Kind::Write } else { Kind::Read }, bench.random_offset(), 4096),
            Load::SequentialReads => (Kind::Read, (index % all) << 12, 4096),
            Load::SequentialWrites => (Kind::Write, (index % all) << 12, 4096),
        });
    }
}

/// CPU time of this thread so far, seconds.
fn cpu_seconds() -> f64 {
    let times = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    times.split(' ').next().and_then(|ns| ns.parse::<f64>().ok()).unwrap_or(0.0) / 1e9
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let rounds: u64 = arguments.next().and_then(|rounds| rounds.parse().ok()).unwrap_or(3);
    let word = arguments.next().unwrap_or_default();
    for case in CASES.iter().filter(|case| case.name().contains(&word)) {
        let runs: Vec<_> = (0..rounds.max(1)).map(|_| case.run()).collect();
        let best = runs.iter().map(|(rate, ..)| *rate).fold(0.0, f64::max);
        println!("{}\t{best:.0}\t{:.3}\t{:016x}", case.name(), runs[0].1, runs[0].2);
    }
}
