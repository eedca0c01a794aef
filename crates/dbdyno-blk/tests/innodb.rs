//! Commits, logs, flushing and the buffer pool of the simulated server.

#![allow(clippy::unwrap_used)]

mod bench;

use bench::{Commands, SECOND_NS, watched};
use dbdyno_blk::kernel::{Kernel, Settings};
use dbdyno_blk::layer::Layer;
use dbdyno_blk::queue::Direction;
use dbdyno_blk::run;
use dbdyno_blk::source::{FlushMethod, Innodb, InnodbError, InnodbLoad, InnodbSettings, InnodbVersion};
use dbdyno_device::Kind;
use proptest::prelude::*;

/// A scheduler that adds nothing of its own.
const NOOP: Settings = Settings {
    max_sectors: None,
    max_segments: None,
    scheduler: Some("noop"),
    tunables: &[],
    nr_requests: None,
    depth: None,
    non_rotational: false,
    wbt_lat_usec: None,
    no_fua: false,
};

struct Served {
    server: Innodb,
    layer: Layer,
    commands: Commands,
}

fn served_on(drive: &str, settings: InnodbSettings, seconds: u64) -> Served {
    let (model, commands) = watched(drive);
    let mut layer = Kernel::named("3.10").unwrap().layer(&NOOP, model).unwrap();
    let mut server = Innodb::new(settings, 3).unwrap();
    assert!(server.end_bytes() <= bench::SIZE_BYTES);
    run(&mut layer, &mut server, 0, seconds * SECOND_NS);
    Served { server, layer, commands }
}

/// On a drive where everything takes 100 us.
fn served(settings: InnodbSettings, seconds: u64) -> Served {
    served_on("ideal(latency_us=100)", settings, seconds)
}

impl Served {
    fn sent(&self, kind: Kind) -> usize {
        self.commands.lock().unwrap().iter().filter(|(_, command)| command.kind == kind).count()
    }
}

/// Inserts that take next to no CPU, and a log whose flush is one write and one FLUSH.
fn inserts(clients: u32, statements: u64) -> InnodbSettings {
    InnodbSettings {
        clients,
        statements_per_client: statements,
        cpu_us: 1.0,
        cores: 1024,
        journal_blocks: 0,
        ..InnodbSettings::default()
    }
}

#[test]
fn one_client_flushes_the_log_for_each_commit() {
    let served = served(inserts(1, 500), 60);
    let counts = served.server.counts();
    assert_eq!((counts.commits, counts.statements, counts.rows, counts.log_flushes), (500, 500, 500, 500));
    // One write and one flush of 100 us each, and the CPU.
    let each_ns = counts.ended_ns.unwrap() / 500;
    assert!((200_000..202_000).contains(&each_ns), "{each_ns} ns");
    assert_eq!(counts.log_bytes, 500 * 400);
    assert_eq!(served.layer.statistics().flushes, 500);
}

#[test]
fn all_who_wait_share_the_next_flush() {
    // The first to come flushes alone; then all others together, who meanwhile wait; it comes too late for theirs.
    for clients in [2, 10, 50] {
        let counts = served(inserts(clients, 1), 60).server.counts().clone();
        assert_eq!((counts.commits, counts.log_flushes), (u64::from(clients), 2), "{clients} clients");
        // And so on by turns: two flushes for one commit of each client.
        let counts = served(inserts(clients, 100), 60).server.counts().clone();
        assert_eq!(counts.commits, 100 * u64::from(clients));
        assert!((199..=201).contains(&counts.log_flushes), "{} of {clients} clients", counts.log_flushes);
    }
}

#[test]
fn without_flush_at_commit_the_log_is_flushed_once_a_second() {
    for flush_log_at_commit in [0, 2] {
        let settings = InnodbSettings { flush_log_at_commit, cpu_us: 1000.0, ..inserts(4, 0) };
        let served = served(settings, 10);
        let counts = served.server.counts();
        assert!((39_000..41_000).contains(&counts.commits), "{}", counts.commits);
        // The last flush is not finished; pages that are flushed may have asked for one more.
        assert!((9..=12).contains(&counts.log_flushes), "{}", counts.log_flushes);
    }
}

#[test]
fn a_transaction_of_more_statements_flushes_once() {
    let served = served(InnodbSettings { statements_per_transaction: 10, ..inserts(1, 500) }, 60);
    let counts = served.server.counts();
    assert_eq!((counts.commits, counts.statements, counts.log_flushes), (50, 500, 50));
}

#[test]
fn the_binary_log_shares_flushes_from_5_6_on() {
    let of = |version, sync_binlog| {
        let settings = InnodbSettings { version, sync_binlog: Some(sync_binlog), ..inserts(20, 50) };
        let counts = served(settings, 60).server.counts().clone();
        assert_eq!(counts.commits, 1000);
        (counts.log_flushes, counts.binlog_flushes)
    };
    // One by one: prepare, binary log, commit.
    let (log, binlog) = of(InnodbVersion::V51, 1);
    assert_eq!(binlog, 1000);
    assert!((1900..=2000).contains(&log), "{log}");
    let (log, binlog) = of(InnodbVersion::V56, 1);
    assert!(log <= 110 && binlog == log, "{log} {binlog}");
    assert_eq!(of(InnodbVersion::V56, 0).1, 0);
    let (log, binlog) = of(InnodbVersion::V56, 10);
    assert_eq!(binlog, log / 10);
}

#[test]
fn the_journal_adds_its_blocks_and_one_flush() {
    let served = served(InnodbSettings { journal_blocks: 3, ..inserts(1, 100) }, 60);
    let counts = served.server.counts();
    assert_eq!((counts.log_flushes, counts.journal_commits), (100, 100));
    assert_eq!((served.sent(Kind::Write), served.sent(Kind::Flush)), (300, 100));
    // Log, two blocks in one write, flush and commit block, one after the other.
    assert!((400_000..402_000).contains(&(counts.ended_ns.unwrap() / 100)));
}

const LOG_BYTES: u64 = 4 << 20;

/// Updates of so many rows that pages must be flushed.
fn updates() -> InnodbSettings {
    InnodbSettings {
        load: InnodbLoad::Update,
        rows: 2_000_000,
        log_bytes: Some(LOG_BYTES),
        buffer_pool_bytes: 512 << 20,
        ..inserts(8, 3000)
    }
}

#[test]
fn a_log_that_is_full_has_pages_flushed_first() {
    let settings = updates();
    let (model, _) = watched("ideal(latency_us=100)");
    let mut layer = Kernel::named("3.10").unwrap().layer(&NOOP, model).unwrap();
    let mut server = Innodb::new(settings.clone(), 3).unwrap();
    let (mut now_ns, mut oldest) = (0, 0);
    while server.counts().ended_ns.is_none() {
        now_ns += SECOND_NS / 100;
        run(&mut layer, &mut server, now_ns - SECOND_NS / 100, now_ns);
        oldest = oldest.max(server.checkpoint_age_bytes());
    }
    let counts = server.counts();
    // 9.6 MB of log in files of 4 MB: it went round, never over itself.
    assert_eq!(counts.commits, 24_000);
    assert!(oldest < LOG_BYTES && oldest > LOG_BYTES / 2, "{oldest}");
    assert!(counts.pages_written > 1000 && counts.checkpoints > 2, "{} {}", counts.pages_written, counts.checkpoints);
    let wide = served(InnodbSettings { log_bytes: Some(1 << 30), ..settings }, 60).server;
    assert_eq!((wide.counts().log_waits, wide.counts().pages_written), (0, 0));
    assert!(counts.log_waits > 0);
}

#[test]
fn doublewrite_writes_every_page_twice() {
    let bytes = |doublewrite| {
        let served = served(InnodbSettings { doublewrite, ..updates() }, 600);
        let counts = served.server.counts().clone();
        let twice = if doublewrite { counts.pages_written } else { 0 };
        assert_eq!(counts.doublewrite_pages, twice);
        let log_sectors = 8 * (counts.log_flushes + counts.checkpoints + counts.log_bytes / 4096);
        let page_sectors = 32 * (counts.pages_written + counts.doublewrite_pages);
        let sectors = served.layer.statistics().of(Direction::Write).sectors;
        // Each log write rewrites the block that it begins in: one more at most, none if it begins where one ends.
        assert!(
            sectors >= page_sectors && sectors <= page_sectors + log_sectors,
            "{sectors} {page_sectors} {log_sectors}"
        );
        counts.ended_ns.unwrap()
    };
    assert!(bytes(true) > bytes(false));
}

#[test]
fn a_pool_that_is_too_small_reads_and_one_that_is_large_does_not() {
    let settings = InnodbSettings { load: InnodbLoad::Key, rows: 2_000_000, ..inserts(8, 2000) };
    let of = |buffer_pool_bytes| {
        let served = served(InnodbSettings { buffer_pool_bytes, ..settings.clone() }, 60);
        let counts = served.server.counts().clone();
        assert_eq!((counts.statements, counts.commits, counts.log_flushes), (16_000, 0, 0));
        assert_eq!(served.layer.statistics().of(Direction::Read).bios, counts.pages_read);
        counts.pages_read
    };
    assert_eq!(of(512 << 20), 0);
    // 13,333 pages of 153 rows; a quarter of them fit.
    let misses = of(13_333 / 4 * (16 << 10)) as f64 / 16_000.0;
    assert!((0.70..0.80).contains(&misses), "{misses}");
}

#[test]
fn changes_in_a_small_pool_are_written_before_their_frames_are_taken() {
    let settings = InnodbSettings { buffer_pool_bytes: 5 << 20, log_bytes: Some(1 << 30), ..updates() };
    let counts = served(settings, 600).server.counts().clone();
    assert_eq!(counts.commits, 24_000);
    assert!(counts.pages_read > 20_000, "{}", counts.pages_read);
    // What is not in the pool at the end was written.
    assert!(counts.pages_written + 320 >= counts.pages_read / 2, "{} {}", counts.pages_written, counts.pages_read);
}

#[test]
fn what_is_sent_is_finished_and_obeys_little_s_law() {
    for (method, depth) in [(FlushMethod::Fsync, 256), (FlushMethod::Direct, 4)] {
        let settings =
            InnodbSettings { flush_method: method, write_depth: depth, secondary_indexes: 2, ..inserts(20, 2000) };
        let settings = InnodbSettings { load: InnodbLoad::Mixed, log_bytes: Some(2 << 20), rows: 100_000, ..settings };
        let served = served_on("hdd-15k", settings, 3600);
        let (counts, statistics) = (served.server.counts(), served.layer.statistics());
        assert_eq!((counts.statements, counts.commits, counts.latencies.len()), (40_000, 20_000, 40_000));
        assert_eq!(served.server.rows(), 120_000);
        assert_eq!((served.layer.pools().allocated(), statistics.queued()), (0, 0));
        assert_eq!(statistics.queue_ns(), statistics.left().1);
        let sum_ns = counts.latencies.mean() * 40_000.0;
        let clients = sum_ns / counts.ended_ns.unwrap() as f64;
        // Twenty clients that never pause; the last of them ends a little after the others.
        assert!((19.0..20.1).contains(&clients), "{clients}");
    }
}

#[test]
fn the_same_seed_gives_the_same_commands() {
    let once = || {
        let served = served_on("ssd-x25e", InnodbSettings { secondary_indexes: 3, ..inserts(16, 500) }, 600);
        let commands = std::mem::take(&mut *served.commands.lock().unwrap());
        (commands, served.server.counts().ended_ns)
    };
    assert_eq!(once(), once());
}

#[test]
fn a_table_that_is_full_ends_its_clients() {
    let settings = InnodbSettings { space_bytes: 2 << 20, row_bytes: 8000, ..inserts(4, 0) };
    let served = served(settings, 60);
    assert!(served.server.counts().is_full && served.server.counts().ended_ns.is_some());
    // Two parts of 64 pages with one row each, but for the page that is next.
    assert_eq!(served.server.rows(), 127);
}

#[test]
fn a_wrong_setting_is_named() {
    let wrong = |settings| Innodb::new(settings, 1).unwrap_err().to_string();
    let settings = InnodbSettings::default();
    assert_eq!(wrong(InnodbSettings { clients: 0, ..settings.clone() }), "clients = 0 is not between 1 and 10000");
    assert_eq!(
        wrong(InnodbSettings { flush_log_at_commit: 3, ..settings.clone() }),
        "flush_log_at_commit = 3 is not 0, 1 or 2"
    );
    assert_eq!(wrong(InnodbSettings { cpu_us: f64::NAN, ..settings.clone() }), "cpu_us = NaN is not between 1 and 1e9");
    let wrong_for = |version, io_capacity_max| {
        wrong(InnodbSettings { version, io_capacity_max: Some(io_capacity_max), ..InnodbSettings::default() })
    };
    assert_eq!(wrong_for(InnodbVersion::V56, 150), "io_capacity_max = 150 is less than io_capacity");
    assert_eq!(wrong_for(InnodbVersion::V51, 50), "io_capacity_max = 50 is less than io_capacity");
    let crowded = InnodbSettings { rows: 1 << 40, ..settings };
    let problem = "do not fit into space_bytes";
    assert_eq!(
        Innodb::new(crowded, 1).unwrap_err(),
        InnodbError { field: "rows", value: (1_u64 << 40) as f64, problem }
    );
}

/// What was flushed in 20 s of 4,000 updates a second, and what is dirty then.
fn flushed(settings: &InnodbSettings) -> (u64, usize, u64) {
    let settings = InnodbSettings {
        clients: 4,
        statements_per_client: 0,
        cpu_us: 1000.0,
        flush_log_at_commit: 2,
        ..settings.clone()
    };
    let server = served(settings, 20).server;
    assert!((79_000..81_000).contains(&server.counts().commits));
    (server.counts().pages_written, server.dirty_pages(), server.counts().log_waits)
}

#[test]
fn the_master_thread_of_5_1_goes_by_dirty_pages() {
    let settings = InnodbSettings { version: InnodbVersion::V51, log_bytes: Some(1 << 30), ..updates() };
    // A tenth of io_capacity every ten seconds, the second at the end; nothing else while few are dirty.
    assert_eq!(flushed(&settings).0, 10);
    // A tenth of 32,768 may be dirty: after that all are flushed that are changed.
    let (written, dirty, _) = flushed(&InnodbSettings { max_dirty_percent: Some(10.0), ..settings });
    assert!(written > 10_000 && (3_000..7_300).contains(&dirty), "{written} {dirty}");
}

#[test]
fn the_page_cleaner_of_5_6_goes_by_the_age_of_the_log() {
    // 32 MB of log: a little of 1 GiB, much of 64 MiB.
    let of = |log_bytes| flushed(&InnodbSettings { log_bytes: Some(log_bytes), ..updates() });
    assert_eq!(of(1 << 30).0, 0);
    let (written, _, waits) = of(64 << 20);
    assert!(written > 2_000 && waits == 0, "{written} {waits}");
    assert!(of(48 << 20).0 > written);
}

fn any_server() -> impl Strategy<Value = InnodbSettings> {
    let load =
        prop_oneof![Just(InnodbLoad::Write), Just(InnodbLoad::Update), Just(InnodbLoad::Key), Just(InnodbLoad::Mixed)];
    let clients = (load, 1..30_u32, 1..4_u32, 1..6_u32, 1..5_u32, any::<bool>());
    let data = (1..400_000_u64, 0..4_u32, 5..40_u64, any::<bool>());
    let log = (0..3_u32, 2..12_u64, 1..5000_u32, prop::option::of(0..4_u32), any::<bool>(), any::<bool>());
    let pages = (any::<bool>(), any::<bool>(), any::<bool>(), 1..200_u32, 0..4_u32, any::<bool>(), 1..99_u32);
    (clients, data, log, pages).prop_map(|(clients, data, log, pages)| InnodbSettings {
        load: clients.0,
        clients: clients.1,
        statements_per_transaction: clients.2,
        rows_per_statement: clients.3,
        cores: clients.4,
        think_us: if clients.5 { 0.0 } else { 700.0 },
        statements_per_client: 60,
        rows: data.0,
        secondary_indexes: data.1,
        buffer_pool_bytes: data.2 << 20,
        warm: data.3,
        flush_log_at_commit: log.0,
        log_bytes: Some(log.1 << 20),
        log_bytes_per_change: log.2,
        sync_binlog: log.3,
        log_write_bytes: if log.4 { 512 } else { 4096 },
        version: if log.5 { InnodbVersion::V51 } else { InnodbVersion::V56 },
        doublewrite: pages.0,
        flush_neighbours: pages.1,
        flush_method: if pages.2 { FlushMethod::Fsync } else { FlushMethod::Direct },
        write_depth: pages.3,
        journal_blocks: pages.4,
        barriers: pages.5,
        max_dirty_percent: Some(pages.6.into()),
        ..InnodbSettings::default()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20))]

    #[test]
    fn every_statement_is_answered_whatever_is_set(settings in any_server(), nr in 4..200_usize) {
        let transactions = match settings.load {
            InnodbLoad::Key => 0,
            InnodbLoad::Mixed => 30 / settings.statements_per_transaction,
            _ => 60 / settings.statements_per_transaction,
        };
        for (kernel, scheduler) in bench::stacks() {
            let nr_requests = (scheduler != "none").then_some(nr);
            let chosen = Settings { scheduler: Some(scheduler), nr_requests, ..NOOP };
            let (model, _) = watched("ssd-sata");
            let mut layer = kernel.layer(&chosen, model).unwrap();
            let mut server = Innodb::new(settings.clone(), 3).unwrap();
            run(&mut layer, &mut server, 0, 3600 * SECOND_NS);
            let counts = server.counts();
            let name = format!("{} {scheduler}", kernel.name);
            prop_assert!(counts.ended_ns.is_some(), "{}", &name);
            prop_assert_eq!(counts.statements, u64::from(settings.clients) * 60, "{}", &name);
            prop_assert_eq!(counts.commits, u64::from(settings.clients * transactions), "{}", &name);
            prop_assert_eq!((layer.pools().allocated(), layer.statistics().queued()), (0, 0), "{}", &name);
            prop_assert!(Some(server.checkpoint_age_bytes()) < settings.log_bytes);
        }
    }
}

#[test]
fn every_setting_is_documented_with_its_default() {
    let page = include_str!("../../../docs/simulate-commits.md");
    let serde_json::Value::Object(fields) = serde_json::to_value(InnodbSettings::default()).unwrap() else { panic!() };
    for (name, value) in fields {
        let default = match value {
            serde_json::Value::Null => String::new(),
            serde_json::Value::Number(number) => number.to_string().trim_end_matches(".0").to_owned(),
            other => other.to_string(),
        };
        let row = page.lines().find(|line| line.starts_with(&format!("| `{name}` |"))).unwrap_or_default();
        assert_eq!(row.split('|').nth(2).map(str::trim), Some(default.as_str()), "{name}: {row}");
    }
}
