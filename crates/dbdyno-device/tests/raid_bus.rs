//! Members that share one bus: never more together than it carries, and no less where it is faster than they are.

#![allow(clippy::unwrap_used)]

mod bench;

use bench::Bench;
use dbdyno_device::{Command, Completion, Kind, model};
use proptest::prelude::*;

const SIZE_BYTES: u64 = 8 << 30;

/// MB/s of reads or writes of 128 KiB from the beginning on, 32 at a time.
fn rate(drive: &str, kind: Kind) -> f64 {
    Bench::new(drive, SIZE_BYTES, 1).sequential(kind, 32, 3000)
}

/// Nanoseconds each of 300 commands took, one at a time, on the first member of an array.
fn alone(drive: &str, kind: Kind, length_bytes: u64) -> Vec<u64> {
    let mut bench = Bench::new(drive, SIZE_BYTES, 1);
    (0..300)
        .map(|_| {
            let row = bench.random_offset() / (4 << 20) * (4 << 20);
            bench.one(kind, row, length_bytes)
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
        let found = rate(array, kind);
        assert!((found * share / 300.0 - 1.0).abs() < 0.02, "{array}, {kind:?}: {found} MB/s");
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
    let found = rate(array, Kind::Write);
    assert!((found / 200.0 - 1.0).abs() < 0.05, "{found} MB/s");
    assert!(rate(array, Kind::Read) < 201.0);
}

#[test]
fn a_rate_that_cannot_be_is_refused_with_its_line() {
    let path = std::env::temp_dir().join(format!("dbdyno-bus-{}.toml", std::process::id()));
    let text = "title = 'x'\n[raid]\nlevel = 0\nmembers = ['ideal', 'ideal']\nbus_mb_s = 0\n";
    std::fs::write(&path, text).unwrap();
    let message = model(path.to_str().unwrap(), SIZE_BYTES, 1).err().unwrap().to_string();
    std::fs::remove_file(&path).unwrap();
    assert!(message.contains("line 5: bus_mb_s = 0 is not between 0.001 and"), "{message}");
    for (name, wanted) in [
        ("raid1(ideal, 2, bus_mb_s=-3)", "bus_mb_s = -3 is not between"),
        ("raid1(ideal, 2, bus_mb_s=nan)", "bus_mb_s = NaN is not between"),
        ("raid1(ideal, 2, bus_mb_s=fast)", "expected f64"),
    ] {
        let message = model(name, SIZE_BYTES, 1).err().unwrap().to_string();
        assert!(message.contains(wanted), "{message}");
    }
}

/// When a command comes after the one before, whether it writes, which block, how many.
type Step = (u64, bool, u64, u64);

/// Runs all steps to their end.
fn completions(drive: &str, steps: &[Step]) -> Vec<Completion> {
    let mut device = model(drive, SIZE_BYTES, 1).unwrap();
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
    prop::collection::vec((gap_ns, any::<bool>(), 0..SIZE_BYTES / 4096 - 512, 1..512_u64), 1..80)
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
        // Whatever came from any moment on and is done by another has crossed the bus between.
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
