//! A published report on `MyISAM`, run again: whether a longer queue helps (2009). The line that is calibrated, and what its
//! explanation says must change it; `cargo run --release -p dbdyno-blk --example ingest` has the others.

#![allow(clippy::unwrap_used)]

use dbdyno_blk::kernel::{Kernel, Settings};
use dbdyno_blk::run;
use dbdyno_blk::source::{CacheConfig, Data, Filesystem, Ingest, IngestConfig};
use dbdyno_common::results::Columns;

const MINUTE_NS: u64 = 60_000_000_000;
/// Rows when the published line was taken, of the table as simulated.
const ROWS: u64 = 12_800_000;

/// The calibrated stack, as `docs/simulate-validation.md` has it: what was counted, and rows a second.
fn of(data: Data, filesystem: Filesystem, minutes: u64) -> (Columns, f64) {
    let drive = dbdyno_device::model("raid1(hdd-15k(destage_window=8), 2)", 100 << 30, 1).unwrap();
    let kernel = Kernel::named("2.6.18").unwrap();
    let settings = Settings { scheduler: Some("deadline"), ..Settings::default() };
    let mut layer = kernel.layer(&settings, drive).unwrap();
    let gap_bytes = 60 << 20;
    let cache = CacheConfig { filesystem, data, barrier: false, gap_bytes, ..CacheConfig::default() };
    let config = IngestConfig { initial_rows: ROWS, cpu_us_per_row: 100.0, ..IngestConfig::default() };
    let mut load = Ingest::cached(&kernel, &cache, config, 1).unwrap();
    run(&mut layer, &mut load, 0, minutes * MINUTE_NS);
    let rows = (load.application().rows() - ROWS) as f64;
    (layer.statistics().columns(minutes * MINUTE_NS), rows / (minutes * 60) as f64)
}

fn assert_near(what: &str, value: f64, published: f64, share: f64) {
    assert!((value / published - 1.0).abs() < share, "{what}: {value}, published {published}");
}

#[test]
fn the_calibrated_line_is_as_published() {
    let (columns, _) = of(Data::Ordered, Filesystem::Ext3, 10);
    assert_near("w/s", columns.writes_per_s, 575.6, 0.05);
    assert_near("avgrq-sz", columns.request_sectors_mean, 8.01, 0.02);
    assert_near("avgqu-sz", columns.queue_requests_mean, 142.44, 0.02);
    assert_near("await", columns.wait_ms_mean, 247.0, 0.05);
}

#[test]
fn a_commit_that_waits_for_no_data_lifts_it() {
    let (_, ordered) = of(Data::Ordered, Filesystem::Ext3, 3);
    for (data, filesystem) in [(Data::Writeback, Filesystem::Ext3), (Data::Ordered, Filesystem::Ext4)] {
        let (_, rows_per_s) = of(data, filesystem, 3);
        assert!(rows_per_s > 5.0 * ordered, "{data:?} {filesystem:?}: {rows_per_s} rows/s, ordered {ordered}");
    }
}
