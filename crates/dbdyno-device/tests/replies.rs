//! A change that only makes a model faster leaves its answers as they are: checksums of the completions of each drive.
//!
//! `tests/drives/replies.txt` has a line for each drive, with a checksum for each stream. After a change that is meant
//! to alter answers, write it anew: `DBDYNO_TEST_REPLIES=write cargo test -p dbdyno-device --test replies`; with
//! `=steady` the drives that are left out below are printed too.
//!
//! Cloud volumes and drives that begin in their steady state are left out: their logarithms and exponentials are of the
//! host's C library, whose last digit may differ.

#![allow(clippy::unwrap_used)]

use std::fmt::Write;

use dbdyno_common::random::Random;
use dbdyno_device::{Command, Completion, DeviceModel, Kind, catalogue, model};

const SIZE_BYTES: u64 = 8 << 30;
const COMMANDS: u64 = 400;
const KEPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/drives/replies.txt");

/// Of the crate, without a folder that differs from host to host.
const EXTRACTED: &str = "extracted.toml";

const VARIANTS: &[&str] = &[
    "hdd-15k(write_cache_bytes=0)",
    "hdd-7200(span=whole)",
    "hdd-7200(queue_depth=4,destage_window=8)",
    "hdd-7200(choose_ms=0,overhead_ms=0)",
    "hdd-10k(read_ahead=never)",
    "hdd-10k(read_ahead=stream,read_ahead_after_hit=true)",
    "hdd-15k(read_ahead=track,watermark=0.5,read_written=true)",
    "hdd-15k(read_before=true,read_on_arrival=true,read_kept_bytes=65536)",
    "hdd-15k(write_segments=8,destage_handicap_ms=0)",
    "hdd-7200(age_weight=1,age_limit_ms=30)",
    "hdd-7200(flush_ignored=true,write_settle_ms=-0.3)",
    "extracted.toml",
    "extracted.toml(write_cache_bytes=0,read_ahead=sequential)",
    "extracted.toml(write_segments=3,read_written=true)",
    "raid1(hdd-7200(span=whole), 2)",
    "raid1(hdd-15k, 4)",
    "raid10(hdd-15k, 4)",
    "raid10(hdd-15k(write_cache_bytes=0), 4, 64KiB, write_cache_bytes=8MiB, destage_depth=4)",
    "raid0(raid1(hdd-15k, 2), 2, write_cache_bytes=1MiB)",
    "raid0(ssd-sata, 3, 16KiB)",
    "raid10(ssd-sata, 4, 16KiB, bus_mb_s=90)",
    "raid1(hdd-15k, 3, bus_mb_s=40, write_cache_bytes=8MiB)",
    "raid1(hdd-15k, 2, bus_mb_s=80)",
    "raid5(hdd-15k, 4)",
    "raid5(hdd-15k(write_cache_bytes=0), 4, write_cache_bytes=8MiB)",
    "raid6(ssd-sata, 6, 16KiB, bus_mb_s=300)",
];

const LEFT_OUT: &[&str] =
    &["ssd-x25e(state=steady)", "ssd-sata(state=steady)", "nvme(state=steady)", "nvme-p4500(state=steady)"];

/// A load: how many commands at a time, how long a host thinks between them, and what it sends.
struct Stream {
    depth: usize,
    pause_ns: u64,
    next: fn(&mut Random, u64) -> (Kind, u64, u64, bool),
}

fn anywhere(random: &mut Random) -> u64 {
    random.below(SIZE_BYTES >> 12) << 12
}

fn kind(random: &mut Random, writes: f64) -> Kind {
    if random.chance(writes) { Kind::Write } else { Kind::Read }
}

const STREAMS: &[Stream] = &[
    // Random reads.
    Stream { depth: 1, pause_ns: 0, next: |random, _| (Kind::Read, anywhere(random), 4096, false) },
    Stream { depth: 32, pause_ns: 0, next: |random, _| (Kind::Read, anywhere(random), 4096, false) },
    Stream { depth: 128, pause_ns: 300, next: |random, _| (Kind::Read, anywhere(random), 4096, false) },
    // Among few, so that caches answer and what was read ahead is wanted.
    Stream { depth: 8, pause_ns: 0, next: |random, _| (Kind::Read, random.below(600) << 12, 4096, false) },
    // Writes that fill caches, and such that overwrite.
    Stream { depth: 32, pause_ns: 0, next: |random, _| (Kind::Write, anywhere(random), 128 << 10, false) },
    Stream { depth: 4, pause_ns: 0, next: |random, _| (Kind::Write, random.below(300) << 11, 6144, false) },
    Stream {
        depth: 32,
        pause_ns: 0,
        next: |random, _| (kind(random, 0.25), anywhere(random), 4096 << random.below(6), false),
    },
    Stream {
        depth: 16,
        pause_ns: 1000,
        next: |random, index| {
            let kind = if index % 20 == 19 { Kind::Flush } else { kind(random, 0.5) };
            (kind, anywhere(random), 4096, false)
        },
    },
    // Three that read on.
    Stream {
        depth: 6,
        pause_ns: 0,
        next: |random, index| (Kind::Read, ((index % 3) << 30) + ((index / 3) << 14), 4096 << random.below(3), false),
    },
    Stream {
        depth: 4,
        pause_ns: 0,
        next: |random, index| (kind(random, 0.7), (random.below(8) + index) << 15, 1 << 15, false),
    },
    // What is forced, forgotten or crosses the end, with time for the drive between.
    Stream {
        depth: 3,
        pause_ns: 2_000_000,
        next: |random, _| {
            let kinds = [Kind::Read, Kind::Write, Kind::Write, Kind::Discard, Kind::Read, Kind::Flush];
            let kind = kinds[random.below(6) as usize];
            (kind, random.below(SIZE_BYTES + 9000), 512 * random.below(300), random.chance(0.4))
        },
    },
    Stream { depth: 32, pause_ns: 0, next: |random, _| (kind(random, 0.6), anywhere(random), 4096, true) },
    Stream { depth: 5, pause_ns: 50_000, next: |random, _| (kind(random, 0.3), anywhere(random), 1 << 20, false) },
];

/// The checksum of all completions of a stream.
fn checksum(device: &mut dyn DeviceModel, stream: &Stream) -> u32 {
    let (mut random, mut now_ns, mut sum) = (Random::new(9), 0, 0_u64);
    let (mut sent, mut outstanding, mut finished) = (0, 0, Vec::new());
    while sent < COMMANDS || outstanding > 0 {
        while sent < COMMANDS && outstanding < stream.depth {
            let (kind, offset_bytes, length_bytes, fua) = (stream.next)(&mut random, sent);
            now_ns += stream.pause_ns * random.below(3);
            device.submit(now_ns, Command { id: sent, kind, offset_bytes, length_bytes, fua });
            (sent, outstanding) = (sent + 1, outstanding + 1);
        }
        now_ns = now_ns.max(device.next_due().unwrap());
        device.poll(now_ns, &mut finished);
        outstanding -= finished.len();
        for Completion { id, at_ns } in finished.drain(..) {
            sum = (sum ^ id ^ at_ns.rotate_left(32)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        }
    }
    (sum >> 32) as u32
}

fn line(drive: &str) -> String {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/drives/");
    let name = if drive.starts_with(EXTRACTED) { format!("{folder}{drive}") } else { drive.to_owned() };
    let mut line = drive.to_owned();
    for stream in STREAMS {
        let mut device = model(&name, SIZE_BYTES, 5).unwrap();
        write!(line, "\t{:08x}", checksum(&mut *device, stream)).unwrap();
    }
    line
}

#[test]
fn drives_answer_as_they_did() {
    let of_catalogue = catalogue().into_iter().filter(|drive| drive.kind != "cloud").map(|drive| drive.name);
    let drives: Vec<String> = of_catalogue.chain(VARIANTS.iter().map(|name| (*name).to_owned())).collect();
    let lines: Vec<String> = drives.iter().map(|drive| line(drive)).collect();
    match std::env::var("DBDYNO_TEST_REPLIES").as_deref() {
        Ok("write") => std::fs::write(KEPT, lines.join("\n") + "\n").unwrap(),
        Ok("steady") => LEFT_OUT.iter().for_each(|drive| eprintln!("{}", line(drive))),
        _ => {}
    }
    let kept = std::fs::read_to_string(KEPT).unwrap();
    let kept: Vec<&str> = kept.lines().collect();
    assert_eq!(kept.len(), lines.len(), "drives have been added or removed: write {KEPT} anew");
    for (kept, line) in kept.iter().zip(&lines) {
        assert_eq!(*kept, line, "this drive answers otherwise than it did");
    }
}
