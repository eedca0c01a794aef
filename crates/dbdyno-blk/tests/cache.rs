//! What the page cache does by the rules of each kernel.

#![allow(clippy::unwrap_used)]

mod bench;

use bench::{SECOND_NS, watched};
use dbdyno_blk::kernel::{Kernel, Settings};
use dbdyno_blk::layer::Layer;
use dbdyno_blk::run;
use dbdyno_blk::source::{
    Act, Application, BufferedJobs, CacheConfig, Cached, Data, Files, Filesystem, Ingest, IngestConfig, Job, Page,
    Pattern,
};
use dbdyno_common::random::Random;
use dbdyno_device::Kind;
use proptest::prelude::*;

/// A process that does as it is told, and then nothing more.
struct Script {
    file_pages: u32,
    acts: std::vec::IntoIter<Act>,
    /// When each act began.
    at_ns: Vec<u64>,
}

impl Application for Script {
    fn processes(&self) -> u32 {
        1
    }

    fn begin(&mut self, files: &mut Files) {
        files.add(self.file_pages);
        files.load(0);
    }

    fn act(&mut self, now_ns: u64, _process: u32) -> Act {
        self.at_ns.push(now_ns);
        self.acts.next().unwrap_or(Act::Exit)
    }
}

fn write(page: u32) -> Act {
    Act::Write { page: Page { file: 0, page }, whole: true }
}

fn ext3() -> CacheConfig {
    CacheConfig {
        memory_bytes: 1 << 30,
        mapped_bytes: 0,
        filesystem: Filesystem::Ext3,
        barrier: false,
        ..CacheConfig::default()
    }
}

struct Done {
    load: Cached<Script>,
    layer: Layer,
    /// Time, page of the file or what lies before it, and length in pages of each write.
    writes: Vec<(u64, i64, u64)>,
}

fn done(kernel: &str, cache: &CacheConfig, nr_requests: usize, acts: Vec<Act>, seconds: u64) -> Done {
    let kernel = Kernel::named(kernel).unwrap();
    let (drive, commands) = watched("ideal(latency_us=1000)");
    let settings =
        Settings { scheduler: Some("noop"), nr_requests: Some(nr_requests), depth: Some(1), ..Settings::default() };
    let mut layer = kernel.layer(&settings, drive).unwrap();
    let script = Script { file_pages: 100_000, acts: acts.into_iter(), at_ns: Vec::new() };
    let mut load = Cached::new(&kernel, cache, script).unwrap();
    run(&mut layer, &mut load, 0, seconds * SECOND_NS);
    // The journal of 32 MiB lies before the file, behind the first group's head of 2 MiB.
    let page = |bytes: u64| (bytes.cast_signed() - (34 << 20)) / 4096;
    let commands = commands.lock().unwrap();
    let all = commands.iter().filter(|(_, command)| command.kind == Kind::Write);
    let writes = all.map(|(at_ns, write)| (*at_ns, page(write.offset_bytes), write.length_bytes / 4096)).collect();
    Done { load, layer, writes }
}

fn data(done: &Done) -> Vec<i64> {
    done.writes.iter().filter(|(_, page, _)| *page >= 0).map(|(_, page, _)| *page).collect()
}

#[test]
fn an_ordered_commit_writes_pages_in_the_order_of_their_change_and_then_the_journal() {
    let done = done("2.6.18", &ext3(), 128, [900, 30, 500, 30, 7].map(write).to_vec(), 20);
    let pages: Vec<_> = done.writes.iter().map(|(_, page, _)| *page).collect();
    // A descriptor and the inode, which lie behind each other, and the commit block.
    assert_eq!(pages, [900, 30, 500, 7, -8192, -8190]);
    let (first_ns, last_ns) = (done.writes[0].0, done.writes[5].0);
    assert_eq!(first_ns, 5 * SECOND_NS);
    assert!(last_ns >= first_ns + 5_000_000, "{last_ns}");
    assert_eq!((done.load.commits(), done.load.changed_pages(0)), (1, 0));
    // Writeback has yet to see that there is nothing to do.
    assert_eq!(done.load.dirty_pages(), (4, 0));
}

#[test]
fn without_order_data_waits_for_writeback_which_goes_by_page() {
    let cache = CacheConfig { data: Data::Writeback, ..ext3() };
    for kernel in ["2.6.18", "2.6.32", "3.10"] {
        let done = done(kernel, &cache, 128, [900, 30, 500, 30, 7].map(write).to_vec(), 60);
        assert_eq!(data(&done), [7, 30, 500, 900], "{kernel}");
        assert!((30 * SECOND_NS..=40 * SECOND_NS).contains(&done.writes.last().unwrap().0));
        assert_eq!((done.load.changed_pages(0), done.load.dirty_pages()), (0, (0, 0)));
    }
}

#[test]
fn ext4_orders_new_pages_only() {
    let cache = CacheConfig { filesystem: Filesystem::Ext4, ..ext3() };
    let done = done("4.4", &cache, 128, [900, 100_000, 30].map(write).to_vec(), 20);
    let pages = data(&done);
    assert!(pages.len() == 1 && pages[0] >= 100_000, "{pages:?}");
}

#[test]
fn who_writes_to_a_page_that_the_commit_has_yet_to_submit_writes_it_and_waits() {
    // With 4 requests the commit can't submit its second batch for long.
    let pages: Vec<Act> = (0..2000).map(|page| write(page * 7 % 2000)).collect();
    let changed_again = |page| {
        let mut acts = pages.clone();
        acts.extend([Act::Compute(5 * SECOND_NS + SECOND_NS / 10), write(page), Act::Compute(1)]);
        let done = done("2.6.18", &ext3(), 4, acts, 20);
        let at_ns = &done.load.application().at_ns;
        at_ns[2002] - at_ns[2001]
    };
    // In the first batch of 512: submitted, or as good as that.
    assert_eq!(changed_again(7 * 400), 0);
    // Up to 6 requests of 1 ms each are before it, and those of others that wait for one.
    let waited_ns = changed_again(7 * 1500 % 2000);
    assert!((3_000_000..=12_000_000).contains(&waited_ns), "{waited_ns}");
}

#[test]
fn limits_are_those_of_each_version() {
    let limits = |kernel, mapped_bytes, percent| {
        let cache = CacheConfig { memory_bytes: 4 << 30, mapped_bytes, dirty_percent: percent, ..ext3() };
        done(kernel, &cache, 128, Vec::new(), 1).load.dirty_limits()
    };
    let pages = (4 << 30) / 4096;
    let percent = |dirty, background| (pages * dirty / 100, pages * background / 100);
    assert_eq!(limits("2.6.18", 0, None), percent(40, 10));
    // 70 of 100 are mapped: half of the rest; 85: half of the rest is less than the background.
    assert_eq!(limits("2.6.18", (4 << 30) / 100 * 71, None), percent(15, 10));
    assert_eq!(limits("2.6.18", (4 << 30) / 100 * 86, None), percent(7, 3));
    assert_eq!(limits("2.6.18", (4 << 30) / 100 * 95, None), percent(5, 2));
    assert_eq!(limits("2.6.32", 0, None), percent(20, 10));
    assert_eq!(limits("3.10", 2 << 30, Some(30)), (pages / 2 * 30 / 100, pages / 2 / 10));
}

#[test]
fn a_writer_over_the_limit_is_held_to_the_drive() {
    // 1 ms a page, one at a time, where nothing merges: 1000 pages a second.
    let scattered = |page: u32| write(page * 7919 % 100_000);
    for kernel in ["2.6.9", "2.6.18", "2.6.32", "3.10", "4.4"] {
        let cache =
            CacheConfig { memory_bytes: 64 << 20, data: Data::Writeback, filesystem: Filesystem::Ext4, ..ext3() };
        let acts = (0..60_000).flat_map(|page| [Act::Compute(1000), scattered(page)]).collect();
        let done = done(kernel, &cache, 128, acts, 30);
        let acts = done.load.application().at_ns.len() / 2;
        let (limit, _) = done.load.dirty_limits();
        let most = 30_000 + limit as usize + 2000;
        assert!((25_000..=most).contains(&acts), "{kernel}: {acts}, limit {limit}");
    }
}

#[test]
fn pdflush_stops_at_congestion_and_a_flusher_does_not() {
    let cache = CacheConfig { data: Data::Writeback, dirty_background_percent: 1, ..ext3() };
    for (kernel, least, most) in [("2.6.18", 102, 113), ("2.6.32", 128, 192)] {
        let acts = (0..20_000).flat_map(|page| [Act::Compute(1000), write(page * 7919 % 100_000)]).collect();
        let done = done(kernel, &cache, 128, acts, 6);
        let queued = done.layer.statistics().queued();
        assert!((least..=most).contains(&queued), "{kernel}: {queued}");
    }
}

#[test]
fn fsync_waits_for_the_commit() {
    for (kernel, filesystem) in [("2.6.18", Filesystem::Ext3), ("2.6.32", Filesystem::Ext4), ("4.4", Filesystem::Ext4)]
    {
        let cache = CacheConfig { filesystem, ..ext3() };
        let done = done(kernel, &cache, 128, vec![write(5), write(3), Act::Fsync(0), Act::Compute(1)], 2);
        assert_eq!(data(&done)[..2], [3, 5], "{kernel}");
        // Pages, blocks of the journal, commit block: one behind the other.
        let took_ns = done.load.application().at_ns[3];
        assert!((4_000_000..=100_000_000).contains(&took_ns), "{kernel}: {took_ns}");
        assert_eq!(done.load.commits(), 1);
    }
}

#[test]
fn errors_name_the_field() {
    let kernel = Kernel::named("4.4").unwrap();
    let refused = |cache: CacheConfig, ingest: IngestConfig| {
        Ingest::cached(&kernel, &cache, ingest, 1).err().unwrap().to_string()
    };
    let fine = CacheConfig::default();
    assert_eq!(
        refused(CacheConfig { filesystem: Filesystem::Ext3, ..fine.clone() }, IngestConfig::default()),
        "filesystem = ext3 exists in kernels up to 4.2; later ones mount it as ext4"
    );
    assert_eq!(
        refused(CacheConfig { commit_ms: 0, ..fine.clone() }, IngestConfig::default()),
        "commit_ms = 0 is not between 10 and 86400000"
    );
    let greedy = IngestConfig { key_buffer_bytes: 8 << 30, ..IngestConfig::default() };
    assert!(refused(fine, greedy).starts_with("key_buffer_bytes = 8589934592 leaves less than 4 MiB"));
}

fn job() -> impl Strategy<Value = Job> {
    let shape = (1..4_u32, any::<bool>(), 0..=100_u32, prop_oneof![Just(512_u64), Just(4096), Just(10_000)]);
    let rest = (prop_oneof![Just(0_u32), 1..40_u32], 1..300_u64, 1..2000_u64);
    (shape, rest).prop_map(|(shape, rest)| Job {
        processes: shape.0,
        pattern: if shape.1 { Pattern::Sequential } else { Pattern::Random },
        read_percent: shape.2,
        size_bytes: shape.3,
        fsync_every: rest.0,
        ios: rest.1,
        range_bytes: rest.2 * 40_000,
        ..Job::default()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn every_change_reaches_the_drive_and_the_seed_decides_all(
        jobs in prop::collection::vec(job(), 1..3),
        nr_requests in 4..200_usize,
        memory_mib in 16..64_u64,
        ext3 in any::<bool>(),
        ordered in any::<bool>(),
    ) {
        for kernel in Kernel::ALL {
            let cache = CacheConfig {
                memory_bytes: memory_mib << 20,
                mapped_bytes: 0,
                filesystem: if ext3 && !matches!(kernel.name, "4.4" | "6.x") { Filesystem::Ext3 } else { Filesystem::Ext4 },
                data: if ordered { Data::Ordered } else { Data::Writeback },
                ..CacheConfig::default()
            };
            let run_once = || {
                let (drive, commands) = watched("ssd-sata");
                let settings = Settings { nr_requests: Some(nr_requests), ..Settings::default() };
                let settings = if kernel.name == "6.x" { Settings::default() } else { settings };
                let mut layer = kernel.layer(&settings, drive).unwrap();
                let mut load = BufferedJobs::cached(kernel, &cache, jobs.clone(), 3).unwrap();
                run(&mut layer, &mut load, 0, 600 * SECOND_NS);
                let commands = std::mem::take(&mut *commands.lock().unwrap());
                (layer, load, commands)
            };
            let (layer, load, commands) = run_once();
            prop_assert!(load.have_ended(), "{}", kernel.name);
            let wanted: u64 = jobs.iter().map(|job| job.ios * u64::from(job.processes)).sum();
            prop_assert_eq!(load.application().operations(), wanted);
            let changed: u64 = (0..jobs.len() as u32).map(|file| load.changed_pages(file)).sum();
            prop_assert_eq!((changed, load.dirty_pages()), (0, (0, 0)), "{}", kernel.name);
            let statistics = layer.statistics();
            prop_assert_eq!((layer.pools().allocated(), statistics.queued()), (0, 0));
            prop_assert_eq!(statistics.queue_ns(), statistics.left().1);
            prop_assert_eq!(commands, run_once().2, "{}", kernel.name);
        }
    }
}

#[test]
fn random_pages_of_density_p_come_in_runs_of_one_over_one_minus_p() {
    for dense in [1_u64, 5, 8] {
        // Writeback goes by page, and what lies together merges.
        let mut random = Random::new(dense);
        let pages = (0..20_000).filter(|_| random.below(10) < dense).map(write);
        let cache = CacheConfig { data: Data::Writeback, ..ext3() };
        let done = done("2.6.32", &cache, 100_000, pages.collect(), 60);
        let data: Vec<_> = done.writes.iter().filter(|(_, page, _)| *page >= 0).collect();
        let mean = data.iter().map(|(_, _, pages)| *pages as f64).sum::<f64>() / data.len() as f64;
        let expected = 1.0 / (1.0 - dense as f64 / 10.0);
        assert!((mean / expected - 1.0).abs() < 0.05, "{dense}: {mean}, expected {expected}");
    }
}

#[test]
fn rows_change_the_pages_they_must() {
    // Without a limit and without a commit, after 60 s everything is on the drive once.
    let kernel = Kernel::named("2.6.18").unwrap();
    let (drive, commands) = watched("ideal(latency_us=10)");
    let mut layer = kernel.layer(&Settings::default(), drive).unwrap();
    let cache = CacheConfig { data: Data::Writeback, ..ext3() };
    let config = IngestConfig { rows: 10_000, initial_rows: 1_000_000, key_buffer_bytes: 0, ..IngestConfig::default() };
    let mut load = Ingest::cached(&kernel, &cache, config, 1).unwrap();
    run(&mut layer, &mut load, 0, 90 * SECOND_NS);
    assert_eq!((load.application().rows(), load.have_ended()), (1_010_000, true));
    let bytes: u64 = commands.lock().unwrap().iter().map(|(_, command)| command.length_bytes).sum();
    // 30,000 of 14,160 pages: each but e^-2.1 of them; 156 pages of rows, and some of the journal.
    let expected = 14_160.0 * (1.0 - (-30_000.0_f64 / 14_160.0).exp()) + 156.0 + 142.0;
    assert!((bytes as f64 / 4096.0 / expected - 1.0).abs() < 0.02, "{bytes}, expected {expected} pages");
    assert_eq!(load.file_bytes(1) / 4096, 1 + 1_010_000 * 58 / 4096 + 1);
    // Pieces of 4 MiB, 14 of the index and 16 of the rows: the last 7 in the second group, behind its head of 2 MiB.
    assert_eq!(load.end_bytes(), (128 + 2 + 7 * 4) << 20);
}
