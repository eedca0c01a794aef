//! Arrays against what their members do alone, in virtual time.

mod bench;

use bench::Bench;
use dbdyno_device::{Kind, WriteCache, drive, model};

const SIZE_BYTES: u64 = 200 << 30;

fn reads(drive: &str, depth: u64) -> f64 {
    Bench::new(drive, SIZE_BYTES, 1).random_reads(depth, 3000)
}

fn assert_ratio(what: &str, ratio: f64, wanted: f64, tolerance: f64) {
    assert!((ratio / wanted - 1.0).abs() < tolerance, "{what}: {ratio:.2}, not {wanted}");
}

#[test]
fn mirrors_and_stripes_share_reads() {
    // Members of the same part of the drive used: a stripe's members hold less each, so their seeks are shorter.
    let alone = reads("hdd-15k(span=whole)", 8);
    for (array, members) in [("raid1(hdd-15k(span=whole), 2)", 2.0), ("raid1(hdd-15k(span=whole), 3)", 3.0)] {
        assert_ratio(array, reads(array, 8 * members as u64) / alone, members, 0.06);
    }
    for (array, members) in [("raid0(hdd-15k(span=whole), 4)", 4.0), ("raid10(hdd-15k(span=whole), 4)", 4.0)] {
        assert_ratio(array, reads(array, 8 * members as u64) / alone, members, 0.10);
    }
    // Two arms at random places: the nearer is 5/24 of the stroke away on average, not 1/3.
    let nearer = reads("raid1(hdd-15k(span=whole), 2)", 1) / reads("hdd-15k(span=whole)", 1);
    assert!((1.05..1.25).contains(&nearer), "{nearer}");
}

#[test]
fn a_mirrored_write_waits_for_the_slower_mirror() {
    let uncached = "hdd-15k(write_cache_bytes=0)";
    // Mean over how far the platters happen to be out of step.
    let mean_ms = |drive: &str| {
        let each = (0..24).map(|seed| 1e3 / Bench::new(drive, SIZE_BYTES, seed).random_writes(1, 400));
        each.sum::<f64>() / 24.0
    };
    // The wait for one platter is 1/2 a revolution on average, for the later of two 2/3.
    let revolution_ms = 4.0;
    let slower_ms = mean_ms(&format!("raid1({uncached}, 2)")) - mean_ms(uncached);
    assert_ratio("wait for the other platter", slower_ms, revolution_ms / 6.0, 0.25);
}

#[test]
fn sequential_reads_stay_on_one_mirror_and_use_all_stripes() {
    let rate = |drive: &str| Bench::new(drive, SIZE_BYTES, 1).sequential_reads(4000);
    assert_ratio("mirror", rate("raid1(hdd-15k, 2)") / rate("hdd-15k"), 1.0, 0.05);
    assert!(rate("raid0(hdd-15k, 2, 64KiB)") > 1.3 * rate("hdd-15k"), "{}", rate("raid0(hdd-15k, 2, 64KiB)"));
}

#[test]
fn the_pair_of_the_field_report_is_twice_one_of_it() {
    let size_bytes = 100 << 30;
    let rate = |drive: &str| Bench::new(drive, size_bytes, 1).per_second(Kind::Read, 4096, 64, 1)[0] as f64;
    assert_ratio("reads", rate("raid0-s510") / rate("ssd-s510"), 2.0, 0.15);
}

#[test]
fn a_flush_reaches_every_member() {
    // Eight scattered writes on each of two disks, or all sixteen on both.
    let flush_ms = |drive: &str, writes| Bench::new(drive, SIZE_BYTES, 1).flush_after(writes, 50);
    let alone = flush_ms("hdd-15k", 8);
    let striped = flush_ms("raid0(hdd-15k, 2, 64KiB)", 16);
    let mirrored = flush_ms("raid1(hdd-15k, 2)", 16);
    assert!((0.8..1.5).contains(&(striped / alone)), "{striped} {alone}");
    assert!(mirrored > 1.3 * striped, "{mirrored} {striped}");
}

#[test]
fn a_battery_backed_cache_makes_commits_free_until_it_is_full() {
    let cached = "raid1(hdd-15k(write_cache_bytes=0), 2, write_cache_bytes=8MiB)";
    let plain = "raid1(hdd-15k(write_cache_bytes=0), 2)";
    let commits = |drive: &str| Bench::new(drive, SIZE_BYTES, 1).log_writes(500);
    assert!(commits(plain) < 260.0, "{}", commits(plain));
    assert!(commits(cached) > 5_000.0, "{}", commits(cached));
    let mut bench = Bench::new(cached, SIZE_BYTES, 1);
    let filling = bench.random_writes(32, 2_000);
    assert!(filling > 5_000.0, "{filling}");
    bench.random_writes(32, 4_000);
    let sustained = bench.random_writes(32, 3_000);
    assert!((200.0..800.0).contains(&sustained), "{sustained}");
    assert!(bench.gauge("write_cache_dirty_bytes") > 7e6);
    assert!(bench.one(Kind::Flush, 0, 0) < 1_000_000);
}

#[test]
fn what_a_power_cut_takes_depends_on_the_least_safe_member() {
    for (drive, kind) in [
        ("raid1(hdd-15k, 2)", WriteCache::Volatile),
        ("raid1(hdd-15k(write_cache_bytes=0), 2)", WriteCache::None),
        ("raid1(hdd-15k, 2, write_cache_bytes=1MiB)", WriteCache::Protected),
        ("raid0(ebs-gp3, 2)", WriteCache::None),
    ] {
        assert_eq!(model(drive, SIZE_BYTES, 1).unwrap().write_cache(), kind, "{drive}");
    }
}

#[test]
fn an_array_holds_what_its_members_hold() {
    let fits = |name: &str, size_bytes| drive(name, size_bytes).is_ok();
    let alone = 300_000_000_000;
    assert!(fits("raid1(hdd-15k, 2)", alone) && !fits("raid1(hdd-15k, 2)", alone + 1));
    let striped = alone / 65_536 * 65_536;
    assert!(fits("raid0(hdd-15k, 3)", 3 * striped) && !fits("raid0(hdd-15k, 3)", 3 * striped + 1));
    assert!(fits("raid10(hdd-15k, 4)", 2 * striped) && !fits("raid10(hdd-15k, 4)", 2 * striped + 1));
    assert!(drive("raid1(hdd-15k, 2)", 1 << 30).unwrap().rotational);
}

#[test]
fn members_of_a_file_are_found_beside_it() {
    let folder = std::env::temp_dir().join(format!("dbdyno-raid-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.join(name), text).unwrap();
    write("member.toml", "title = 'x'\n[ideal]\nlatency_us = 5.0\n");
    write("array.toml", "title = 'y'\n[raid]\nlevel = 1\nmembers = ['member.toml', 'ideal']\n");
    write("itself.toml", "title = 'z'\n[raid]\nlevel = 0\nmembers = ['itself.toml', 'itself.toml']\n");
    write("odd.toml", "title = 'w'\n\n[raid]\nlevel = 10\nmembers = ['ideal', 'ideal', 'ideal']\n");
    let path = |name: &str| folder.join(name).display().to_string();
    let time_ns = Bench::new(&path("array.toml"), SIZE_BYTES, 1).one(Kind::Write, 0, 4096);
    let error = |name: &str| model(&path(name), SIZE_BYTES, 1).err().unwrap().to_string();
    let (itself, odd, form) = (error("itself.toml"), error("odd.toml"), error("member.toml(latency_us=-1)"));
    std::fs::remove_dir_all(&folder).unwrap();
    assert_eq!(time_ns, 5_000);
    assert!(itself.contains("is nested in more than"), "{itself}");
    assert!(odd.contains("odd.toml") && odd.contains("line 5: members are 3"), "{odd}");
    assert!(form.contains("latency_us = -1"), "{form}");
}

#[test]
fn an_array_of_solid_state_drives_tells_what_they_write() {
    let written = |drive: &str| {
        let mut bench = Bench::new(drive, 4 << 30, 1);
        bench.random_writes(4, 2000);
        ["host_written_bytes", "flash_written_bytes"].map(|name| bench.gauge(name))
    };
    let [alone, alone_flash] = written("ssd-s510");
    let [striped, striped_flash] = written("raid0(ssd-s510, 2)");
    let [mirrored, _] = written("raid1(ssd-s510, 2)");
    assert_ratio("bytes sent to stripes", striped / alone, 1.0, 0.01);
    assert_ratio("bytes sent to mirrors", mirrored / alone, 2.0, 0.01);
    assert!(striped_flash >= 0.5 * alone_flash && alone_flash > 0.0, "{striped_flash} {alone_flash}");
}
