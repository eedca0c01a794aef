//! What a drive file may add to an SSD, each off if it is not given: reading ahead, retries, a FLUSH that is ignored.

mod bench;

use bench::Bench;
use dbdyno_device::{DriveState, Kind, WriteCache, model};

const SIZE_BYTES: u64 = 1 << 30;
const RETRY: &str = "read_retry.probability=1.0, read_retry.retries=3";

fn fresh(drive: &str) -> Bench {
    Bench::new(drive, SIZE_BYTES, 1)
}

#[test]
fn reading_ahead_makes_reads_in_order_fast_and_others_no_faster() {
    let rate = |drive: &str| fresh(drive).sequential_by(Kind::Read, 16_384, 1, 20_000);
    let (without, with) = (rate("nvme"), rate("nvme(read_ahead_bytes=524_288)"));
    assert!(with > 2.0 * without, "{without} and {with} MB/s");
    let random = |drive: &str| fresh(drive).random_reads(4, 20_000);
    assert!((random("nvme") / random("nvme(read_ahead_bytes=524_288)") - 1.0).abs() < 0.02);
}

#[test]
fn what_was_read_ahead_needs_no_flash_until_it_is_written() {
    let mut bench = fresh("nvme(read_ahead_bytes=131_072)");
    let missed_ns = bench.one(Kind::Read, 0, 4096);
    bench.one(Kind::Read, 4096, 4096);
    bench.now_ns += 1_000_000;
    let ahead_ns = bench.one(Kind::Read, 8192, 4096);
    assert!(ahead_ns * 2 < missed_ns, "{ahead_ns} and {missed_ns} ns");
    // Parts of a page are served from it until its end was read.
    let half_ns = bench.one(Kind::Read, 12_288, 2048);
    let other_half_ns = bench.one(Kind::Read, 14_336, 2048);
    assert!(half_ns * 2 < missed_ns && other_half_ns * 2 < missed_ns, "{half_ns} {other_half_ns} {missed_ns}");
    bench.one(Kind::Write, 16_384, 4096);
    bench.one(Kind::Flush, 0, 0);
    bench.now_ns += 10_000_000;
    let written_ns = bench.one(Kind::Read, 16_384, 4096);
    assert!(written_ns * 3 > missed_ns * 2, "{written_ns} and {missed_ns} ns");
}

#[test]
fn a_read_that_comes_while_its_page_is_fetched_waits_for_that() {
    let mut bench = fresh("nvme(read_ahead_bytes=131_072)");
    let missed_ns = bench.one(Kind::Read, 0, 16_384);
    bench.one(Kind::Read, 16_384, 16_384);
    let coming_ns = bench.one(Kind::Read, 32_768, 16_384);
    assert!(coming_ns < missed_ns && coming_ns > 0, "{coming_ns} and {missed_ns} ns");
}

#[test]
fn many_readers_in_order_are_followed_and_all_commands_complete() {
    let mut bench = fresh("nvme(read_ahead_bytes=262_144)");
    for index in 0..2000 {
        for reader in 0..12 {
            bench.submit(Kind::Read, reader * (64 << 20) + index * 12_288, 12_288);
        }
        if index % 7 == 0 {
            bench.submit(Kind::Write, (index % 12) * (64 << 20) + index * 12_288 + 40_960, 65_536);
            bench.submit(Kind::Discard, (index % 5) * (64 << 20) + index * 12_288 + 90_112, 65_536);
        }
    }
    let mut finished = 0;
    while bench.device.next_due().is_some() {
        finished += bench.wait();
    }
    assert_eq!(finished, 24_000 + 2 * 286);
}

#[test]
fn retries_of_worn_pages_take_as_long_again_each() {
    let read_ns =
        |drive: &str| (0..500).map(|place| fresh(drive).one(Kind::Read, place << 16, 4096)).sum::<u64>() / 500;
    let plain_ns = read_ns("ssd-x25e");
    // One kind of page of 25 us.
    assert_eq!(read_ns(&format!("ssd-x25e({RETRY})")) - plain_ns, 75_000);
    assert_eq!(read_ns(&format!("ssd-x25e({RETRY}, read_retry.retry_us=40.0)")) - plain_ns, 120_000);
    assert_eq!(read_ns(&format!("ssd-x25e({})", RETRY.replace("retries=3", "retries=0"))), plain_ns);
}

#[test]
fn retries_are_as_frequent_as_the_drive_file_says() {
    let drive = "nvme(read_retry.worn_blocks=0.5, read_retry.probability=0.4, read_retry.retries=2)";
    let mut bench = fresh(drive);
    bench.random_reads(1, 20_000);
    let part = bench.gauge("read_retried_pages") / 20_000.0;
    assert!((0.17..0.23).contains(&part), "{part}");
}

#[test]
fn an_ignored_flush_takes_no_program_and_is_said_to_be_ignored() {
    let flush_ns = |drive: &str| {
        let mut bench = fresh(drive);
        bench.one(Kind::Write, 0, 4096);
        (bench.one(Kind::Flush, 0, 0), bench.device.ignores_flush(), bench.device.write_cache())
    };
    for drive in ["nvme", "ssd-sata", "hdd-7200"] {
        let (honest_ns, ..) = flush_ns(drive);
        let (ignored_ns, is_ignored, cache) = flush_ns(&format!("{drive}(flush_ignored=true)"));
        assert!(is_ignored && ignored_ns * 5 < honest_ns, "{drive}: {ignored_ns} and {honest_ns} ns");
        assert_eq!(cache, WriteCache::Volatile);
    }
    let ignores = |drive: &str| model(drive, SIZE_BYTES, 1).unwrap().ignores_flush();
    assert!(ignores("raid1(hdd-15k(flush_ignored=true), 2)"));
    assert!(!ignores("raid1(hdd-15k(flush_ignored=true), 2, write_cache_bytes=1MiB)"));
    assert!(!ignores("hdd-7200"));
}

#[test]
fn what_cannot_be_is_refused_by_field() {
    for (drive, field) in [
        ("nvme(flush_ignored=true, power_loss_protected=true)", "flush_ignored"),
        ("hdd-7200(flush_ignored=true, write_cache_bytes=0)", "flush_ignored"),
        ("nvme(read_retry.probability=1.5, read_retry.retries=1)", "read_retry.probability"),
        ("nvme(read_retry.probability=0.5, read_retry.retries=1, read_retry.retry_us=-1.0)", "read_retry.retry_us"),
        ("nvme(read_ahead_bytes=2_000_000_000)", "read_ahead_bytes"),
    ] {
        let error = model(drive, SIZE_BYTES, 1).err().unwrap().to_string();
        assert!(error.contains(field), "{error}");
    }
}

#[test]
fn what_is_not_programmed_yet_is_read_from_the_buffer() {
    for state in [DriveState::Fresh, DriveState::Steady] {
        let mut bench = Bench::with("nvme", SIZE_BYTES, 1, state);
        let flash_ns = bench.one(Kind::Read, 1 << 20, 4096);
        bench.one(Kind::Write, 1 << 20, 4096);
        let buffered_ns = bench.one(Kind::Read, 1 << 20, 4096);
        assert!(buffered_ns * 2 < flash_ns, "{buffered_ns} and {flash_ns} ns");
        bench.one(Kind::Flush, 0, 0);
        bench.now_ns += 10_000_000;
        assert!(bench.one(Kind::Read, 1 << 20, 4096) > 2 * buffered_ns, "it is on the flash now");
    }
}
