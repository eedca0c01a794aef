//! What every device model promises, over every drive of the catalogue, and over arrays of them.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;

use dbdyno_device::{Command, Completion, Kind, catalogue, model};
use proptest::prelude::*;

const SIZE_BYTES: u64 = 2 << 30;

/// How long after the one before a command comes, what it is, offset, length and FUA.
type Step = (u64, Kind, u64, u64, bool);

/// Every drive of the catalogue, and combinations of them.
fn drives() -> Vec<String> {
    let combined = [
        "raid0(ssd-sata, 3, 16KiB)",
        "raid1(hdd-7200(span=whole), 2)",
        "raid10(hdd-15k(write_cache_bytes=0), 4, 64KiB, write_cache_bytes=8MiB, destage_depth=4)",
        "raid0(raid1(hdd-15k, 2), 2, write_cache_bytes=1MiB)",
        "raid0(ebs-gp2, 2)",
        "raid10(ssd-sata, 4, 16KiB, bus_mb_s=90)",
        "raid1(hdd-15k, 3, bus_mb_s=40, write_cache_bytes=8MiB)",
        "raid5(hdd-7200, 3)",
        "raid5(ssd-sata, 5, 16KiB, bus_mb_s=90)",
        "raid5(hdd-15k(write_cache_bytes=0), 4, write_cache_bytes=8MiB, destage_depth=4)",
        "raid6(ebs-gp3, 6, 256KiB)",
        "raid6(ideal, 4, 4KiB, write_cache_bytes=1MiB)",
        concat!(env!("CARGO_MANIFEST_DIR"), "/tests/drives/extracted.toml"),
        concat!(env!("CARGO_MANIFEST_DIR"), "/tests/drives/extracted.toml(write_cache_bytes=0,read_ahead=sequential)"),
    ];
    catalogue().into_iter().map(|drive| drive.name).chain(combined.map(str::to_owned)).collect()
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let gap_ns = prop_oneof![3 => Just(0), 3 => 0..200_000_u64, 1 => 0..50_000_000_u64];
    let kind = prop_oneof![
        6 => Just(Kind::Read),
        6 => Just(Kind::Write),
        1 => Just(Kind::Flush),
        1 => Just(Kind::Discard),
    ];
    let offset = prop_oneof![
        4 => (0..SIZE_BYTES / 4096).prop_map(|block| block * 4096),
        2 => (0..64_u64).prop_map(|block| block * 4096),
        1 => SIZE_BYTES - 8192..SIZE_BYTES + 8192,
        1 => any::<u64>(),
    ];
    let length = prop_oneof![
        4 => Just(4096),
        2 => (0..256_u64).prop_map(|blocks| blocks * 512),
        1 => Just(1 << 20),
        1 => Just(16 << 20),
        1 => Just(u64::MAX / 2),
    ];
    // A transfer of exabytes takes a model as many steps as it has tracks or pages; only a discard may be that long.
    let step = (gap_ns, kind, offset, length, any::<bool>()).prop_map(|(gap_ns, kind, offset, length, fua)| {
        let length = if kind == Kind::Discard { length } else { length.min(64 << 20) };
        (gap_ns, kind, offset, length, fua)
    });
    prop::collection::vec(step, 1..120)
}

/// How a device is asked for what it has finished; nothing of that may change when it finishes what.
#[derive(Clone, Copy, PartialEq)]
enum Polling {
    WhenDue,
    /// Between due times as well.
    Often,
    /// For what is certain to come, as soon as it is.
    InAdvance,
}

/// Runs the steps to the last completion.
fn run(drive: &str, steps: &[Step], polling: Polling) -> (BTreeMap<u64, u64>, Vec<Completion>) {
    let mut device = model(drive, SIZE_BYTES, 7).unwrap();
    let (mut submitted, mut finished) = (BTreeMap::new(), Vec::new());
    let mut now_ns = 1_000;
    for (id, &(gap_ns, kind, offset_bytes, length_bytes, fua)) in (0..).zip(steps) {
        let next_ns = now_ns + gap_ns;
        while let Some(due_ns) = device.next_due().filter(|due_ns| *due_ns <= next_ns) {
            poll(&mut *device, due_ns.max(now_ns), &mut finished);
        }
        if polling == Polling::Often {
            device.poll(now_ns + gap_ns / 2, &mut finished);
        }
        now_ns = next_ns;
        device.submit(now_ns, Command { id, kind, offset_bytes, length_bytes, fua });
        submitted.insert(id, now_ns);
        if polling == Polling::InAdvance {
            device.take_certain(&mut finished);
        }
    }
    while let Some(due_ns) = device.next_due() {
        now_ns = now_ns.max(due_ns);
        poll(&mut *device, now_ns, &mut finished);
        if polling == Polling::InAdvance {
            device.take_certain(&mut finished);
        }
    }
    // Nothing comes after the model says that nothing is outstanding.
    device.poll(now_ns + 3_600_000_000_000, &mut finished);
    (submitted, finished)
}

fn poll(device: &mut dyn dbdyno_device::DeviceModel, now_ns: u64, finished: &mut Vec<Completion>) {
    let before = finished.len();
    device.poll(now_ns, finished);
    assert!(finished[before..].iter().all(|completion| completion.at_ns <= now_ns), "a completion from the future");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(45))]

    /// Each case is for a third of the drives, so that each drive meets fifteen of them, others at every run.
    #[test]
    fn every_command_completes_once_and_the_same_calls_give_the_same_completions(steps in steps(), third in 0..3_usize) {
        for drive in drives().into_iter().skip(third).step_by(3) {
            let (submitted, once) = run(&drive, &steps, Polling::WhenDue);
            let ids: std::collections::BTreeSet<_> = once.iter().map(|completion| completion.id).collect();
            prop_assert_eq!((once.len(), ids.len()), (steps.len(), steps.len()), "{}", &drive);
            for completion in &once {
                prop_assert!(completion.at_ns >= submitted[&completion.id], "{}: {:?}", &drive, completion);
            }
            let (_, again) = run(&drive, &steps, Polling::WhenDue);
            prop_assert_eq!(&once, &again, "{}", &drive);
            let by_id = |mut all: Vec<Completion>| { all.sort_by_key(|completion| completion.id); all };
            let once = by_id(once);
            for polling in [Polling::Often, Polling::InAdvance] {
                let (_, completions) = run(&drive, &steps, polling);
                prop_assert_eq!(&once, &by_id(completions), "{}: how it was asked changed something", &drive);
            }
        }
    }

    #[test]
    fn a_flush_comes_after_every_write_before_it(steps in steps()) {
        // By contract only completed writes count; with none outstanding there can be no excuse.
        for drive in drives().into_iter().filter(|drive| drive.starts_with("hdd")) {
            let (_, finished) = run(&drive, &steps, Polling::WhenDue);
            let at: BTreeMap<u64, u64> = finished.iter().map(|completion| (completion.id, completion.at_ns)).collect();
            for (flush, _) in (0..).zip(&steps).filter(|(_, step)| step.1 == Kind::Flush) {
                for (write, _) in (0..flush).zip(&steps).filter(|(_, step)| step.1 == Kind::Write) {
                    prop_assert!(at[&write] <= at[&flush], "{}: {write} after {flush}", &drive);
                }
            }
        }
    }
}

#[test]
fn time_going_backwards_is_survived() {
    for drive in drives() {
        let mut device = model(&drive, SIZE_BYTES, 1).unwrap();
        let read = |id| Command { id, kind: Kind::Read, offset_bytes: id << 20, length_bytes: 4096, fua: false };
        device.submit(5_000_000, read(1));
        device.submit(1_000_000, read(2));
        let mut finished = Vec::new();
        device.poll(0, &mut finished);
        while let Some(due_ns) = device.next_due() {
            device.poll(due_ns, &mut finished);
        }
        assert_eq!(finished.len(), 2, "{drive}");
        assert!(finished.iter().all(|completion| completion.at_ns >= 5_000_000), "{drive}");
    }
}
