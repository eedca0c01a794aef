//! Two published reports on `InnoDB`, run again: which scheduler (2012), and whether a longer queue helps (2009).
//!
//! `cargo test --release -p dbdyno-blk --test innodb_reports -- --nocapture` prints the tables of `docs/simulate-validation.md`.

#![allow(clippy::unwrap_used)]

use dbdyno_blk::kernel::{Kernel, Settings};
use dbdyno_blk::run;
use dbdyno_blk::source::{Innodb, InnodbLoad, InnodbSettings, InnodbVersion};

const SECOND_NS: u64 = 1_000_000_000;
const HOUR_NS: u64 = 3600 * SECOND_NS;

/// Seconds that clients take for a thousand statements each, the mean of three iterations. Volumes of this kind are
/// announced as drives without heads.
fn iteration_s(kernel: &str, scheduler: &str, load: InnodbLoad, clients: u32) -> f64 {
    iteration_on_s(true, kernel, scheduler, load, clients)
}

fn iteration_on_s(non_rotational: bool, kernel: &str, scheduler: &str, load: InnodbLoad, clients: u32) -> f64 {
    let seconds = |seed| {
        let drive = dbdyno_device::model("ebs-io1", 16 << 30, seed).unwrap();
        let settings = Settings { scheduler: Some(scheduler), non_rotational, ..Settings::default() };
        let mut layer = Kernel::named(kernel).unwrap().layer(&settings, drive).unwrap();
        // CPU is calibrated on mixed, 50 clients, deadline; all else are defaults of version 5.6 and of the drive.
        let statements_per_client = 1000;
        let settings =
            InnodbSettings { load, clients, statements_per_client, cpu_us: 286.0, ..InnodbSettings::default() };
        let mut server = Innodb::new(settings, seed).unwrap();
        run(&mut layer, &mut server, 0, HOUR_NS);
        server.counts().ended_ns.unwrap() as f64 / 1e9
    };
    (1..4).map(seconds).sum::<f64>() / 3.0
}

/// Load, clients; seconds published under cfq, noop, deadline.
const SCHEDULERS_2012: [(InnodbLoad, u32, [f64; 3]); 4] = [
    (InnodbLoad::Write, 10, [4.426, 4.340, 4.347]),
    (InnodbLoad::Write, 50, [5.948, 5.980, 5.869]),
    (InnodbLoad::Mixed, 10, [2.472, 2.505, 2.404]),
    (InnodbLoad::Mixed, 50, [3.883, 3.781, 3.815]),
];

#[test]
fn schedulers_are_equivalent_for_innodb_on_a_provisioned_volume() {
    for (load, clients, published) in SCHEDULERS_2012 {
        let simulated = ["cfq", "noop", "deadline"].map(|name| iteration_s("3.10", name, load, clients));
        println!("| {load:?}, {clients} | {published:?} | {simulated:.3?} |");
        let (least, most) = simulated.iter().fold((f64::MAX, 0.0), |(a, b): (f64, f64), s| (a.min(*s), b.max(*s)));
        assert!(most / least < 1.05, "{load:?} {clients}: {simulated:?}");
        // One number is calibrated, on one cell; the others come out as near as this.
        for (simulated, published) in simulated.iter().zip(published) {
            assert!((simulated / published - 1.0).abs() < 0.15, "{load:?} {clients}: {simulated} {published}");
        }
    }
}

#[test]
fn anticipation_costs_a_server_that_commits() {
    for (load, clients, _) in SCHEDULERS_2012 {
        let of =
            |kernel| ["cfq", "noop", "deadline", "anticipatory"].map(|name| iteration_s(kernel, name, load, clients));
        let (old, late) = (of("2.6.18"), of("2.6.32"));
        println!("| {load:?}, {clients} | {old:.2?} | {late:.2?} |");
        for [_, noop, deadline, anticipatory] in [old, late] {
            assert!((noop / deadline - 1.0).abs() < 0.05, "{noop} {deadline}");
            assert!(anticipatory > 2.0 * deadline, "{anticipatory} {deadline}");
        }
        // Behind writes of an fsync the later cfq does not idle.
        assert!((late[0] / late[2] - 1.0).abs() < 0.05, "{late:?}");
    }
}

#[test]
fn late_cfq_does_not_idle_behind_commits_whatever_the_drive_is_announced_as() {
    for kernel in ["2.6.32", "3.10", "4.4"] {
        let [cfq, noop] = ["cfq", "noop"].map(|name| iteration_on_s(false, kernel, name, InnodbLoad::Write, 10));
        assert!((cfq / noop - 1.0).abs() < 0.02, "{kernel}: {cfq} s with cfq, {noop} s with noop");
    }
}

/// One thread of 5.1 inserts rows with three random keys: rows a second, and iostat's columns.
fn inserted(drive: &str, size_bytes: u64, nr_requests: usize, buffer_pool_bytes: u64, minutes: u64) -> (f64, String) {
    let model = dbdyno_device::model(drive, size_bytes, 1).unwrap();
    let settings = Settings { scheduler: Some("deadline"), nr_requests: Some(nr_requests), ..Settings::default() };
    let mut layer = Kernel::named("2.6.18").unwrap().layer(&settings, model).unwrap();
    let settings = InnodbSettings {
        version: InnodbVersion::V51,
        clients: 1,
        cpu_us: 50.0,
        rows: 13_000_000,
        row_bytes: 80,
        secondary_indexes: 3,
        space_bytes: 16 << 30,
        buffer_pool_bytes,
        log_bytes_per_change: 150,
        // ext3 of that time: no barriers, and time stamps in whole seconds, so that most fsyncs commit no transaction.
        barriers: false,
        journal_blocks: 0,
        ..InnodbSettings::default()
    };
    let mut server = Innodb::new(settings, 1).unwrap();
    let end_ns = minutes * 60 * SECOND_NS;
    run(&mut layer, &mut server, 0, end_ns);
    let (columns, counts) = (layer.statistics().columns(end_ns), server.counts());
    assert!(!counts.is_full && counts.rows > 0);
    let rows_per_s = counts.rows as f64 / (end_ns as f64 / 1e9);
    let text = format!(
        "{rows_per_s:.0} rows/s | {:.0} r/s | {:.0} w/s | {:.1} sectors | queue {:.1} | await {:.2} ms | {:.0} % |",
        columns.reads_per_s,
        columns.writes_per_s,
        columns.request_sectors_mean,
        columns.queue_requests_mean,
        columns.wait_ms_mean,
        columns.busy_percent
    );
    (rows_per_s, text)
}

#[test]
fn innodb_gains_nothing_from_a_longer_queue() {
    for (drive, size_bytes) in [("raid1-hdd-15k", 64 << 30), ("ssd-x25e", 29 << 30)] {
        // All secondary indexes fit, or half of them.
        for (buffer_pool_bytes, fits) in [(2 << 30, "fit"), (600 << 20, "half fit")] {
            let [(short, a), (long, b)] =
                [128, 100_000].map(|nr_requests| inserted(drive, size_bytes, nr_requests, buffer_pool_bytes, 2));
            println!("| {drive}, indexes {fits} | 128 | {a}\n| | 100,000 | {b}");
            assert!((long / short - 1.0).abs() < 0.02, "{drive}: {short} {long}");
        }
    }
}
