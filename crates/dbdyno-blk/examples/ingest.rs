//! `MyISAM` takes rows on a kernel of one's choice, interval by interval: `cargo run --release -p dbdyno-blk --example
//! ingest nr=128 hours=12`. What is not given is the report's of 2009 (docs/simulate-validation.md).

#![allow(clippy::unwrap_used, clippy::disallowed_methods)] // it says how long it took

use std::collections::HashMap;
use std::time::Instant;

use dbdyno_blk::kernel::{Kernel, Settings};
use dbdyno_blk::layer::Layer;
use dbdyno_blk::queue::Direction;
use dbdyno_blk::run;
use dbdyno_blk::source::{CacheConfig, Cached, Data, Filesystem, Ingest, IngestConfig};

const HOUR_NS: f64 = 3600e9;
const GIB: f64 = (1_u64 << 30) as f64;

struct Arguments(HashMap<String, String>);

impl Arguments {
    fn number(&self, name: &str, default: f64) -> f64 {
        self.0.get(name).map_or(default, |value| value.parse().unwrap())
    }

    fn text<'a>(&'a self, name: &str, default: &'a str) -> &'a str {
        self.0.get(name).map_or(default, |value| value)
    }
}

fn stack(arguments: &Arguments) -> (Layer, Cached<Ingest>) {
    let drive = arguments.text("drive", "raid1-hdd-15k");
    let size_gib = arguments.number("disk", if drive.contains("x25e") { 29.0 } else { 100.0 });
    let model = dbdyno_device::model(drive, (size_gib * GIB) as u64, 1).unwrap();
    let kernel = Kernel::named(arguments.text("kernel", "2.6.18")).unwrap();
    let scheduler = arguments.text("scheduler", "deadline");
    let tunables = [("write_expire", arguments.number("write_expire_ms", 5000.0) as u64)];
    let settings = Settings {
        scheduler: Some(scheduler),
        tunables: if scheduler == "deadline" { &tunables } else { &[] },
        nr_requests: Some(arguments.number("nr", 128.0) as usize),
        depth: Some(arguments.number("depth", 32.0) as usize),
        ..Settings::default()
    };
    let cache = CacheConfig {
        memory_bytes: (arguments.number("memory", 8.0) * GIB) as u64,
        mapped_bytes: (arguments.number("mapped", 1.0) * GIB) as u64,
        filesystem: if arguments.text("fs", "ext3") == "ext3" { Filesystem::Ext3 } else { Filesystem::Ext4 },
        data: if arguments.text("data", "ordered") == "ordered" { Data::Ordered } else { Data::Writeback },
        barrier: arguments.number("barrier", 0.0) > 0.0,
        extent_bytes: (arguments.number("extent_mib", 4.0) as u64) << 20,
        gap_bytes: (arguments.number("gap_mib", 0.0) as u64) << 20,
        ..CacheConfig::default()
    };
    let config = IngestConfig {
        initial_rows: arguments.number("rows", 0.0) as u64,
        cpu_us_per_row: arguments.number("cpu", 50.0),
        ..IngestConfig::default()
    };
    let layer = kernel.layer(&settings, model).unwrap();
    (layer, Ingest::cached(&kernel, &cache, config, arguments.number("seed", 1.0) as u64).unwrap())
}

#[derive(Default)]
struct Counted {
    rows: f64,
    reads: f64,
    writes: f64,
    merges: f64,
    sectors: f64,
    wait_ms: f64,
    queue: f64,
}

fn counted(layer: &Layer, load: &Cached<Ingest>, now_ns: f64) -> Counted {
    let (statistics, writes) = (layer.statistics(), layer.statistics().of(Direction::Write));
    Counted {
        rows: load.application().rows() as f64,
        reads: statistics.of(Direction::Read).requests as f64,
        writes: writes.requests as f64,
        merges: writes.merges as f64,
        sectors: writes.sectors as f64,
        wait_ms: writes.wait_ns as f64 / 1e6,
        queue: statistics.columns(now_ns as u64).queue_requests_mean * now_ns / 1e9,
    }
}

fn main() {
    let pairs = std::env::args().skip(1).map(|argument| {
        let (name, value) = argument.split_once('=').unwrap();
        (name.to_owned(), value.to_owned())
    });
    let arguments = Arguments(pairs.collect());
    let (mut layer, mut load) = stack(&arguments);
    let (hours, interval) = (arguments.number("hours", 12.0), arguments.number("interval", 0.5));
    let begin = Instant::now();
    let mut before = counted(&layer, &load, 0.0);
    println!("    h   M rows rows/s r/s   w/s  wrqm/s avgrq-sz avgqu-sz   await   dirty commits seconds");
    for step in 1..=(hours / interval).round() as u64 {
        let (from_ns, to_ns) = ((step - 1) as f64 * interval * HOUR_NS, step as f64 * interval * HOUR_NS);
        run(&mut layer, &mut load, from_ns as u64, to_ns as u64);
        let now = counted(&layer, &load, to_ns);
        let seconds = interval * 3600.0;
        let writes = now.writes - before.writes;
        println!(
            "{:5.2} {:8.3} {:6.0} {:3.0} {:5.0} {:7.1} {:8.2} {:8.1} {:7.0} {:7} {:7} {:7.0}",
            to_ns / HOUR_NS,
            now.rows / 1e6,
            (now.rows - before.rows) / seconds,
            (now.reads - before.reads) / seconds,
            writes / seconds,
            (now.merges - before.merges) / seconds,
            (now.sectors - before.sectors) / writes,
            (now.queue - before.queue) / seconds,
            (now.wait_ms - before.wait_ms) / writes,
            load.dirty_pages().0,
            load.commits(),
            begin.elapsed().as_secs_f64()
        );
        before = now;
    }
}
