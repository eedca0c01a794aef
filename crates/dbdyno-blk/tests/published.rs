//! What was published of old kernels, run again.
//!
//! `cargo test --release -p dbdyno-blk --test published -- --nocapture` prints the tables of
//! `docs/simulate-validation.md`.
//!
//! - What Andrew Morton measured of three schedulers (LKML, 20 February 2003). Kernel 2.6.9 stands for 2.5.61, ext3
//!   with `data=writeback` for ext2, and a disk of today, slowed down, for one of then.
//! - Two reports on `InnoDB`: which scheduler (2012), and whether a longer queue helps (2009).
//! - A report on `MyISAM`: whether a longer queue helps (2009). The line that is calibrated, and what its explanation
//!   says must change it; `cargo run --release -p dbdyno-blk --example ingest` has the others.
//! - The pathologies that old kernels are known for.

#![allow(clippy::unwrap_used)]

use dbdyno_blk::kernel::{Kernel, Settings};
use dbdyno_blk::queue::{Direction, Limits};
use dbdyno_blk::run;
use dbdyno_blk::source::{
    Act, Application, BufferedJobs, CacheConfig, Cached, Data, Files, Filesystem, Ingest, IngestConfig, Innodb,
    InnodbLoad, InnodbSettings, InnodbVersion, Job, Page, Pattern,
};
use dbdyno_common::results::Columns;

use self::bench::{ran, watched};

const SECOND_NS: u64 = 1_000_000_000;
const MIB_PAGES: u32 = 256;
/// CPU of a page that is read or written, nanoseconds.
const PAGE_NS: u64 = 10_000;
/// Files of a kernel tree, and pages of each.
const TREE_FILES: u32 = 12_000;
const TREE_PAGES: u32 = 3;

/// What a process does with a file of its own.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Role {
    /// Reads it, with so much read ahead at most.
    Read {
        pages: u32,
        ahead_pages: u32,
    },
    /// Reads the files of a tree: an inode block for every 32 of them, elsewhere.
    Tree,
    /// Writes it and calls fsync.
    WriteSync {
        pages: u32,
    },
    /// Reads and writes by turns, and calls fsync.
    Copy {
        pages: u32,
    },
    /// Beside the others, until they have ended.
    StreamRead,
    StreamWrite,
}

impl Role {
    fn is_background(self) -> bool {
        matches!(self, Self::StreamRead | Self::StreamWrite)
    }

    fn pages(self) -> u32 {
        match self {
            Self::Read { pages, .. } | Self::WriteSync { pages } | Self::Copy { pages } => pages,
            Self::Tree => TREE_FILES * TREE_PAGES,
            Self::StreamRead | Self::StreamWrite => 6 * 1024 * MIB_PAGES,
        }
    }
}

#[derive(Debug, Clone, Copy, Default)]
struct Progress {
    file: u32,
    /// The second file that a tree or a copy has.
    other: u32,
    page: u32,
    ahead_pages: u32,
    computed: bool,
    turn: u32,
    synced: bool,
}

struct Morton {
    roles: Vec<Role>,
    at: Vec<Progress>,
    left: usize,
    /// When the last of those that are timed ended.
    ended_ns: u64,
}

impl Morton {
    fn new(roles: Vec<Role>) -> Self {
        let left = roles.iter().filter(|role| !role.is_background()).count();
        Self { at: vec![Progress { ahead_pages: 4, ..Progress::default() }; roles.len()], roles, left, ended_ns: 0 }
    }

    fn next(&mut self, process: usize) -> Act {
        let (role, at) = (self.roles[process], &mut self.at[process]);
        let page = |file, page| Page { file, page };
        let now = at.page % role.pages();
        match role {
            Role::Read { ahead_pages: most, .. } => {
                let pages = at.ahead_pages.min(most);
                at.ahead_pages = (pages * 2).min(most);
                at.page += pages;
                Act::Read { page: page(at.file, now), pages }
            }
            Role::StreamRead => {
                at.page += 32;
                Act::Read { page: page(at.file, now), pages: 32 }
            }
            Role::Tree => {
                let nth = at.page / TREE_PAGES;
                if at.turn == nth / 32 {
                    at.turn += 1;
                    return Act::Read { page: page(at.other, nth / 32), pages: 1 };
                }
                at.page += TREE_PAGES;
                Act::Read { page: page(at.file, now), pages: TREE_PAGES }
            }
            Role::WriteSync { .. } | Role::StreamWrite => {
                at.page += 1;
                Act::Write { page: page(at.file, now), whole: true }
            }
            Role::Copy { .. } => {
                // A window is read, then its pages are written.
                if at.turn == 0 {
                    at.turn = 32;
                    return Act::Read { page: page(at.file, now), pages: 32 };
                }
                at.turn -= 1;
                at.page += 1;
                Act::Write { page: page(at.other, now), whole: true }
            }
        }
    }
}

impl Application for Morton {
    fn processes(&self) -> u32 {
        self.roles.len() as u32
    }

    fn begin(&mut self, files: &mut Files) {
        for (role, at) in self.roles.iter().zip(&mut self.at) {
            at.file = files.add(role.pages());
            at.other = match role {
                Role::Tree => files.add(TREE_FILES / 32),
                Role::Copy { pages } => files.add(*pages),
                _ => at.file,
            };
        }
    }

    fn act(&mut self, now_ns: u64, process: u32) -> Act {
        let process = process as usize;
        let role = self.roles[process];
        if !std::mem::replace(&mut self.at[process].computed, true) {
            return Act::Compute(PAGE_NS);
        }
        self.at[process].computed = false;
        let is_over = if role.is_background() { self.left == 0 } else { self.at[process].page >= role.pages() };
        if !is_over {
            return self.next(process);
        }
        let writes = matches!(role, Role::WriteSync { .. } | Role::Copy { .. });
        if writes && !std::mem::replace(&mut self.at[process].synced, true) {
            return Act::Fsync(self.at[process].other);
        }
        if !role.is_background() {
            self.left -= 1;
            self.ended_ns = now_ns;
        }
        Act::Exit
    }
}

/// Seconds until all that are timed have ended; an hour at most.
fn seconds(scheduler: &str, roles: &[Role]) -> f64 {
    // IDE disks took 256 sectors at a time.
    let kernel = Kernel { limits: Limits { sectors: 256, segments: 128 }, ..Kernel::named("2.6.9").unwrap() };
    let drive = dbdyno_device::model("hdd-7200(outer_mb_s=45,inner_mb_s=25)", 40 << 30, 1).unwrap();
    let settings = Settings { scheduler: Some(scheduler), depth: Some(1), ..Settings::default() };
    let mut layer = kernel.layer(&settings, drive).unwrap();
    let cache = CacheConfig {
        memory_bytes: 256 << 20,
        mapped_bytes: 32 << 20,
        processors: 1,
        filesystem: Filesystem::Ext3,
        data: Data::Writeback,
        barrier: false,
        page_cpu_ns: PAGE_NS,
        ..CacheConfig::default()
    };
    let mut load = Cached::new(&kernel, &cache, Morton::new(roles.to_vec())).unwrap();
    let (mut now_ns, step_ns) = (0, SECOND_NS);
    while load.application().left > 0 && now_ns < 3600 * SECOND_NS {
        run(&mut layer, &mut load, now_ns, now_ns + step_ns);
        now_ns += step_ns;
    }
    if load.application().left > 0 { f64::INFINITY } else { load.application().ended_ns as f64 / 1e9 }
}

const READ: Role = Role::Read { pages: 100 * MIB_PAGES, ahead_pages: 32 };
const READ_NARROW: Role = Role::Read { pages: 100 * MIB_PAGES, ahead_pages: 2 };

#[test]
fn the_table_of_2003() {
    let write = Role::WriteSync { pages: 100 * MIB_PAGES };
    let copy = Role::Copy { pages: 1024 * MIB_PAGES };
    // Seconds published of deadline, cfq, anticipatory.
    let rows: [(&str, Vec<Role>, [f64; 3]); 9] = [
        ("tree alone", vec![Role::Tree], [7.9, 7.9, 7.9]),
        ("100 MB read beside streaming write", vec![READ, Role::StreamWrite], [48.0, 27.0, 3.8]),
        ("tree beside streaming write", vec![Role::Tree, Role::StreamWrite], [447.0, 595.0, 17.0]),
        ("tree beside streaming read", vec![Role::Tree, Role::StreamRead], [219.0, 307.0, 17.0]),
        ("100 MB write and fsync beside streaming read", vec![write, Role::StreamRead], [7.7, 8.4, 11.9]),
        ("ten readers of 100 MB", vec![READ; 10], [133.0, 92.0, 35.0]),
        ("the same, 8 KB read ahead", vec![READ_NARROW; 10], [500.0, 500.0, 29.0]),
        ("six trees", vec![Role::Tree; 6], [237.0, 351.0, 53.0]),
        ("1 GB copy and sync", vec![copy], [71.0, 86.0, 82.0]),
    ];
    for (name, roles, published) in rows {
        let simulated = ["deadline", "cfq", "anticipatory"].map(|scheduler| seconds(scheduler, &roles));
        println!("| {name} | {published:?} | {simulated:.1?} |");
        // Nothing is calibrated: a third to three and a half times of each.
        for (simulated, published) in simulated.iter().zip(published) {
            let ratio = simulated / published;
            assert!((0.3..3.5).contains(&ratio), "{name}: {simulated} s, published {published} s");
        }
        // Reads that deadline and cfq starve, anticipatory saves; where no read waits for another it cannot.
        let saves = published[0] > 3.0 * published[2];
        assert_eq!(saves, simulated[0] > 2.0 * simulated[2], "{name}: {simulated:?}");
    }
}

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

mod bench;

/// Reads finished in 20 s under a scheduler of 2.6.18.
fn reads(scheduler: &str, drive: &str, depth: usize, jobs: &[Job]) -> u64 {
    let settings = Settings { scheduler: Some(scheduler), depth: Some(depth), ..Settings::default() };
    let kernel = Kernel::named("2.6.18").unwrap();
    ran(&kernel, &settings, drive, jobs, 20).layer.statistics().of(Direction::Read).bios
}

#[test]
fn a_read_beside_a_streaming_write_starves_under_deadline_and_not_under_anticipatory() {
    // As Morton measured in 2003: 48 s against 3.8 s for 100 MB.
    let reader = Job { pattern: Pattern::Sequential, size_bytes: 16 << 10, think_ns: 100_000, ..Job::default() };
    let writer = Job {
        pattern: Pattern::Sequential,
        read_percent: 0,
        size_bytes: 4096,
        depth: 4096,
        offset_bytes: 4 << 30,
        asynchronous: true,
        ..Job::default()
    };
    let drive = "hdd-7200(write_cache_bytes=0)";
    let [deadline, anticipatory] =
        ["deadline", "anticipatory"].map(|scheduler| reads(scheduler, drive, 1, &[reader.clone(), writer.clone()]));
    assert!(anticipatory > 4 * deadline, "{anticipatory} with anticipatory, {deadline} with deadline");
}

#[test]
fn cfq_idles_on_a_fast_drive_and_loses_to_noop() {
    let job = Job { processes: 8, ..Job::default() };
    let [cfq, noop] = ["cfq", "noop"].map(|scheduler| reads(scheduler, "ssd-x25e", 32, std::slice::from_ref(&job)));
    println!("2.6.18, eight readers of ssd-x25e: {} reads/s with cfq, {} with noop", cfq / 20, noop / 20);
    assert!(cfq * 2 < noop, "{cfq} with cfq, {noop} with noop");
}

#[test]
fn later_cfq_does_not_idle_on_a_drive_without_heads_that_queues() {
    // Eight processes with four each: the drive shows that it takes several commands.
    let job = Job { processes: 8, depth: 4, ..Job::default() };
    let rate = |kernel: &str, scheduler| {
        let settings = Settings { scheduler: Some(scheduler), non_rotational: true, ..Settings::default() };
        let ran = ran(&Kernel::named(kernel).unwrap(), &settings, "ssd-x25e", std::slice::from_ref(&job), 5);
        ran.layer.statistics().of(Direction::Read).bios
    };
    for kernel in ["2.6.32", "3.10"] {
        let (cfq, noop) = (rate(kernel, "cfq"), rate(kernel, "noop"));
        println!("{kernel}, eight readers of four each: {} with cfq, {} with noop", cfq / 5, noop / 5);
        assert!(cfq * 10 > noop * 8, "{kernel}: {cfq} with cfq, {noop} with noop");
    }
}

#[test]
fn a_sequential_read_grows_to_128_kib() {
    let job = Job { pattern: Pattern::Sequential, size_bytes: 4096, ios: 256, ..Job::default() };
    let kernel = Kernel::named("2.6.18").unwrap();
    let (drive, commands) = watched("hdd-7200");
    let mut layer = kernel.layer(&Settings::default(), drive).unwrap();
    let mut load = BufferedJobs::cached(&kernel, &CacheConfig::default(), vec![job], 1).unwrap();
    run(&mut layer, &mut load, 0, SECOND_NS);
    let reads: Vec<_> = commands.lock().unwrap().iter().map(|(_, read)| read.length_bytes >> 10).collect();
    assert_eq!(reads[..6], [16, 32, 64, 128, 128, 128]);
}
