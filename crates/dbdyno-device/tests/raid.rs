//! Arrays against what their members do alone, in virtual time.
//!
//! Members that share one bus carry never more together than it does, and no less where it is faster than they are.
#![allow(clippy::unwrap_used)]

use dbdyno_device::{Command, Completion, Kind, WriteCache, drive, model};
use proptest::prelude::*;

use self::bench::Bench;

mod bench;

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
        let means_ms = (0..24).map(|seed| 1e3 / Bench::new(drive, SIZE_BYTES, seed).random_writes(1, 400));
        means_ms.sum::<f64>() / 24.0
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

/// A member that does so many commands a second, whatever they are and wherever.
const COUNTED: &str = "ebs-io1(iops=1000, merge=false, shortfall_probability=0)";

#[test]
fn small_writes_take_four_commands_with_one_parity_and_six_with_two() {
    let writes = |array: &str| Bench::new(array, SIZE_BYTES, 1).random_writes(256, 20_000);
    let ratio = |array: &str, members: u64| writes(array) / writes(&format!("raid0({COUNTED}, {members})"));
    assert_ratio("raid5 of 4", ratio(&format!("raid5({COUNTED}, 4)"), 4), 1.0 / 4.0, 0.03);
    assert_ratio("raid5 of 8", ratio(&format!("raid5({COUNTED}, 8)"), 8), 1.0 / 4.0, 0.03);
    assert_ratio("raid6 of 6", ratio(&format!("raid6({COUNTED}, 6)"), 6), 1.0 / 6.0, 0.03);
    assert_ratio("raid10 of 4", ratio(&format!("raid10({COUNTED}, 4)"), 4), 1.0 / 2.0, 0.03);
    // Of three members parity is made anew: one unit is read, data and parity are written.
    assert_ratio("raid5 of 3", ratio(&format!("raid5({COUNTED}, 3)"), 3), 1.0 / 3.0, 0.03);
    assert_ratio("raid6 of 4", ratio(&format!("raid6({COUNTED}, 4)"), 4), 1.0 / 4.0, 0.03);
}

#[test]
fn hard_disks_write_back_what_they_have_read_without_seeking() {
    let disk = "hdd-15k(span=whole,write_cache_bytes=0)";
    let writes = |array: &str| Bench::new(array, SIZE_BYTES, 1).random_writes(32, 3_000);
    let ratio = writes(&format!("raid5({disk}, 4)")) / writes(&format!("raid0({disk}, 4)"));
    assert!((0.2..0.4).contains(&ratio), "{ratio:.2}");
}

#[test]
fn reads_use_the_members_of_parity_too() {
    for (array, members) in [("raid5", 4), ("raid6", 6)] {
        let reads = |level: &str| reads(&format!("{level}(hdd-15k(span=whole), {members})"), 8 * members);
        assert_ratio(array, reads(array) / reads("raid0"), 1.0, 0.06);
    }
}

#[test]
fn writes_of_whole_rows_read_nothing() {
    let rate =
        |drive: &str, row_bytes| Bench::new(drive, BUS_SIZE_BYTES, 1).sequential_by(Kind::Write, row_bytes, 32, 3000);
    for (array, striped, row_bytes) in [
        ("raid5(ssd-sata, 4)", "raid0(ssd-sata, 4)", 3 << 16),
        ("raid6(ssd-sata, 6)", "raid0(ssd-sata, 6)", 4 << 16),
        ("raid5(hdd-15k, 4)", "raid0(hdd-15k, 4)", 3 << 16),
    ] {
        let data = if array.starts_with("raid6") { 4.0 / 6.0 } else { 3.0 / 4.0 };
        assert_ratio(array, rate(array, row_bytes) / rate(striped, row_bytes), data, 0.08);
    }
}

#[test]
fn a_battery_backed_cache_gathers_whole_rows() {
    // Writes of 128 KiB and rows of 192.
    let uncached = "hdd-15k(write_cache_bytes=0)";
    let rate = |array: &str| rate(&format!("{array}({uncached}, 4, write_cache_bytes=32MiB)"), Kind::Write);
    assert_ratio("sequential writes", rate("raid5") / rate("raid0"), 3.0 / 4.0, 0.15);
    // Without a cache each needs a read of its own.
    let written = |array: &str| {
        let mut bench = Bench::new(array, BUS_SIZE_BYTES, 1);
        bench.sequential(Kind::Write, 32, 3000);
        bench.gauge("host_written_bytes") / (3000.0 * f64::from(128 << 10))
    };
    let gathered = written("raid5(ssd-sata, 4, write_cache_bytes=32MiB)");
    assert!((1.0..1.45).contains(&gathered), "{gathered} bytes written for each");
}

#[test]
fn a_mirror_of_nothing_and_too_few_members_are_refused() {
    for (name, said) in [
        ("raid5(ideal, 2)", "members are 2; level 5 needs at least 3"),
        ("raid6(ideal, 3)", "members are 3; level 6 needs at least 4"),
        ("raid4(ideal, 4)", "the arrays are raid0, raid1, raid5, raid6 and raid10"),
    ] {
        let message = model(name, SIZE_BYTES, 1).err().unwrap().to_string();
        assert!(message.contains(said), "{message}");
    }
}

#[test]
fn a_row_is_written_by_one_write_at_a_time() {
    // Four writes to one row of members that take 5 us for anything: two reads, two writes; the rest go together.
    let mut bench = Bench::new("raid5(ideal(latency_us=5), 5)", SIZE_BYTES, 1);
    for unit in 0..4 {
        bench.submit(Kind::Write, (unit << 16) + (unit << 13), 4096);
    }
    let mut ends = Vec::new();
    while ends.len() < 4 {
        let finished = bench.wait();
        ends.extend((0..finished).map(|_| bench.now_ns));
    }
    assert_eq!(ends, [10_000, 20_000, 20_000, 20_000]);
    // Another row waits for none.
    bench.submit(Kind::Write, 0, 4096);
    bench.submit(Kind::Write, 4 << 16, 4096);
    while bench.wait() == 0 {}
    assert_eq!(bench.now_ns, 30_000);
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
    assert!(bench.request_ns(Kind::Flush, 0, 0) < 1_000_000);
}

#[test]
fn what_a_power_cut_takes_depends_on_the_least_safe_member() {
    for (drive, kind) in [
        ("raid1(hdd-15k, 2)", WriteCache::Volatile),
        ("raid1(hdd-15k(write_cache_bytes=0), 2)", WriteCache::None),
        ("raid1(hdd-15k, 2, write_cache_bytes=1MiB)", WriteCache::Protected),
        ("raid0(ebs-gp3, 2)", WriteCache::None),
        ("raid5(hdd-15k, 3)", WriteCache::Volatile),
        ("raid6(hdd-15k(write_cache_bytes=0), 4)", WriteCache::None),
        ("raid5(hdd-15k, 3, write_cache_bytes=1MiB)", WriteCache::Protected),
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
    assert!(fits("raid5(hdd-15k, 4)", 3 * striped) && !fits("raid5(hdd-15k, 4)", 3 * striped + 1));
    assert!(fits("raid6(hdd-15k, 4)", 2 * striped) && !fits("raid6(hdd-15k, 4)", 2 * striped + 1));
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
    let time_ns = Bench::new(&path("array.toml"), SIZE_BYTES, 1).request_ns(Kind::Write, 0, 4096);
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

const BUS_SIZE_BYTES: u64 = 8 << 30;

/// MB/s of sequential reads or writes of 128 KiB, 32 at a time, from the first block.
fn rate(drive: &str, kind: Kind) -> f64 {
    Bench::new(drive, BUS_SIZE_BYTES, 1).sequential(kind, 32, 3000)
}

/// Nanoseconds each of 300 commands took, one at a time, on the first member of an array.
fn alone(drive: &str, kind: Kind, length_bytes: u64) -> Vec<u64> {
    let mut bench = Bench::new(drive, BUS_SIZE_BYTES, 1);
    (0..300)
        .map(|_| {
            let row = bench.random_offset() / (4 << 20) * (4 << 20);
            bench.request_ns(kind, row, length_bytes)
        })
        .collect()
}

#[test]
fn an_array_reads_and_writes_at_the_rate_of_its_bus() {
    for (kind, array, share) in [
        (Kind::Read, "raid0(ssd-sata, 4, bus_mb_s=300)", 1.0),
        (Kind::Write, "raid0(ssd-sata, 4, bus_mb_s=300)", 1.0),
        (Kind::Read, "raid1(ssd-sata, 3, bus_mb_s=300)", 1.0),
        // Each mirror is sent the data.
        (Kind::Write, "raid1(ssd-sata, 3, bus_mb_s=300)", 3.0),
        (Kind::Write, "raid10(ssd-sata, 4, bus_mb_s=300)", 2.0),
    ] {
        let mb_s = rate(array, kind);
        assert!((mb_s * share / 300.0 - 1.0).abs() < 0.02, "{array}, {kind:?}: {mb_s} MB/s");
    }
}

#[test]
fn a_fast_bus_takes_nothing_from_all_members_together() {
    for kind in [Kind::Read, Kind::Write] {
        let (without, with) = (rate("raid0(ssd-sata, 4)", kind), rate("raid0(ssd-sata, 4, bus_mb_s=6000)", kind));
        assert!((with / without - 1.0).abs() < 0.03, "{kind:?}: {with} MB/s, {without} without a bus");
    }
}

#[test]
fn the_battery_backed_cache_is_written_out_at_the_rate_of_the_bus() {
    let array = "raid0(ssd-sata, 4, bus_mb_s=200, write_cache_bytes=4MiB)";
    let mb_s = rate(array, Kind::Write);
    assert!((mb_s / 200.0 - 1.0).abs() < 0.05, "{mb_s} MB/s");
    assert!(rate(array, Kind::Read) < 201.0);
}

#[test]
fn a_rate_that_cannot_be_is_refused_with_its_line() {
    let path = std::env::temp_dir().join(format!("dbdyno-bus-{}.toml", std::process::id()));
    let text = "title = 'x'\n[raid]\nlevel = 0\nmembers = ['ideal', 'ideal']\nbus_mb_s = 0\n";
    std::fs::write(&path, text).unwrap();
    let message = model(path.to_str().unwrap(), BUS_SIZE_BYTES, 1).err().unwrap().to_string();
    std::fs::remove_file(&path).unwrap();
    assert!(message.contains("line 5: bus_mb_s = 0 is not between 0.001 and"), "{message}");
    for (name, wanted) in [
        ("raid1(ideal, 2, bus_mb_s=-3)", "bus_mb_s = -3 is not between"),
        ("raid1(ideal, 2, bus_mb_s=nan)", "bus_mb_s = NaN is not between"),
        ("raid1(ideal, 2, bus_mb_s=fast)", "expected f64"),
    ] {
        let message = model(name, BUS_SIZE_BYTES, 1).err().unwrap().to_string();
        assert!(message.contains(wanted), "{message}");
    }
}

/// When a command comes after the one before, whether it writes, which block, how many.
type Step = (u64, bool, u64, u64);

/// Runs all steps to their end.
fn completions(drive: &str, steps: &[Step]) -> Vec<Completion> {
    let mut device = model(drive, BUS_SIZE_BYTES, 1).unwrap();
    let (mut now_ns, mut finished) = (0, Vec::new());
    for (id, &(gap_ns, write, block, blocks)) in (0..).zip(steps) {
        let next_ns = now_ns + gap_ns;
        while let Some(due_ns) = device.next_due().filter(|due_ns| *due_ns <= next_ns) {
            device.poll(due_ns, &mut finished);
        }
        now_ns = next_ns;
        let kind = if write { Kind::Write } else { Kind::Read };
        let (offset_bytes, length_bytes) = (block * 4096, blocks * 4096);
        device.submit(now_ns, Command { id, kind, offset_bytes, length_bytes, fua: false });
    }
    while let Some(due_ns) = device.next_due() {
        device.poll(due_ns, &mut finished);
    }
    finished
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let gap_ns = prop_oneof![3 => Just(0), 2 => 0..100_000_u64, 1 => 0..20_000_000_u64];
    prop::collection::vec((gap_ns, any::<bool>(), 0..BUS_SIZE_BYTES / 4096 - 512, 1..512_u64), 1..80)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn members_together_never_get_or_give_more_than_the_bus_carries(
        steps in steps(), members in 1..4_usize, level in 0..3_usize, mb_s in 20.0..2000.0_f64, kind in 0..3_usize,
    ) {
        let member = ["ideal", "ssd-sata", "hdd-15k"][kind];
        let (level, mirrors) = [("raid0", 1), ("raid1", members as u64 * 2), ("raid10", 2)][level];
        let count = (members * 2).max(if level == "raid10" { 4 } else { 2 });
        let mirrors = if level == "raid1" { count as u64 } else { mirrors };
        let finished = completions(&format!("{level}({member}, {count}, bus_mb_s={mb_s})"), &steps);
        prop_assert_eq!(finished.len(), steps.len());
        let came_ns: Vec<u64> = steps.iter().scan(0, |at_ns, step| { *at_ns += step.0; Some(*at_ns) }).collect();
        let bytes = |id: u64| {
            let (_, write, _, blocks) = steps[id as usize];
            blocks * 4096 * if write { mirrors } else { 1 }
        };
        // All bytes of commands that came after one moment and ended before another crossed the bus between the two.
        for from_ns in came_ns.iter().step_by(7) {
            let since = finished.iter().filter(|done| came_ns[done.id as usize] >= *from_ns);
            let mut ends: Vec<(u64, u64)> = since.map(|done| (done.at_ns, bytes(done.id))).collect();
            ends.sort_unstable();
            let mut carried = 0;
            for (at_ns, bytes) in ends {
                carried += bytes;
                let most = (at_ns - from_ns) as f64 * mb_s / 1e3;
                prop_assert!(carried as f64 <= most + 1.0, "{carried} bytes in {} ns", at_ns - from_ns);
            }
        }
    }

    #[test]
    fn one_command_at_a_time_is_as_fast_as_without_a_slower_bus(
        write in any::<bool>(), blocks in 1..64_u64, kind in 0..3_usize, more in 1.0..4.0_f64,
    ) {
        let (member, mb_s) = [("hdd-15k", 300.0), ("ssd-sata", 550.0), ("hdd-7200(write_cache_bytes=0)", 550.0)][kind];
        let kind = if write { Kind::Write } else { Kind::Read };
        let without = format!("raid0({member}, 2, 1MiB)");
        let with = format!("raid0({member}, 2, 1MiB, bus_mb_s={})", mb_s * more);
        prop_assert_eq!(alone(&with, kind, blocks * 4096), alone(&without, kind, blocks * 4096));
    }
}
