//! Scans of hard disks and of arrays of them with commands queued, alone and beside other work, in virtual time.

#![allow(clippy::unwrap_used)]

mod bench;

use std::collections::BTreeMap;

use bench::Bench;
use dbdyno_device::{Command, DeviceModel, Kind, model};
use proptest::prelude::*;

const SIZE_BYTES: u64 = 64 << 30;

const DISKS: [&str; 4] = ["hdd-7200", "hdd-15k", "hdd-10k", "hdd-7200(write_cache_bytes=0)"];

const ARRAYS: [&str; 6] = [
    "raid1-hdd-15k",
    "raid0(hdd-7200, 4)",
    "raid0(hdd-15k, 3, 1MiB)",
    "raid1(hdd-7200, 3)",
    "raid10(hdd-10k, 4, 16KiB)",
    "raid0(raid1(hdd-15k, 2), 2, write_cache_bytes=1MiB)",
];

/// Somebody who always has `depth` commands of one length outstanding.
#[derive(Debug, Clone, Copy)]
struct Client {
    kind: Kind,
    depth: u64,
    length_bytes: u64,
    /// Where it begins to go on from; everywhere if `None`.
    from_bytes: Option<u64>,
}

/// What a client got done.
#[derive(Debug, Clone, Copy, Default)]
struct Done {
    mb_s: f64,
    per_s: f64,
    longest_ms: f64,
}

fn scan(depth: u64, length_bytes: u64, from_bytes: u64) -> Client {
    Client { kind: Kind::Read, depth, length_bytes, from_bytes: Some(from_bytes) }
}

const RANDOM_READER: Client = Client { kind: Kind::Read, depth: 1, length_bytes: 4096, from_bytes: None };

/// Lets clients have the drive for `seconds`.
fn share(drive: &str, clients: &[Client], seconds: f64) -> Vec<Done> {
    let mut device = model(drive, SIZE_BYTES, 1).unwrap();
    let (mut sent, mut done) = (vec![0_u64; clients.len()], vec![Done::default(); clients.len()]);
    let (mut begun_ns, mut random) = (BTreeMap::new(), 0_u64);
    let mut submit = |device: &mut dyn DeviceModel, now_ns: u64, of: usize| -> u64 {
        let client = clients[of];
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let next_bytes = |from: u64| from + sent[of] * client.length_bytes;
        let offset_bytes = client.from_bytes.map_or_else(|| (random >> 20) % (SIZE_BYTES / 4096) * 4096, next_bytes);
        let id = sent[of] * clients.len() as u64 + of as u64;
        sent[of] += 1;
        let (kind, length_bytes) = (client.kind, client.length_bytes);
        device.submit(now_ns, Command { id, kind, offset_bytes, length_bytes, fua: false });
        id
    };
    for of in (0..clients.len()).flat_map(|of| (0..clients[of].depth).map(move |_| of)) {
        begun_ns.insert(submit(&mut *device, 0, of), 0);
    }
    let (mut now_ns, mut finished) = (0, Vec::new());
    while (now_ns as f64) < seconds * 1e9 {
        now_ns = device.next_due().unwrap().max(now_ns);
        device.poll(now_ns, &mut finished);
        for completion in finished.drain(..) {
            let of = completion.id as usize % clients.len();
            let took_ms = (completion.at_ns - begun_ns.remove(&completion.id).unwrap()) as f64 / 1e6;
            done[of].longest_ms = done[of].longest_ms.max(took_ms);
            done[of].mb_s += clients[of].length_bytes as f64 / 1e6 / seconds;
            done[of].per_s += 1.0 / seconds;
            begun_ns.insert(submit(&mut *device, now_ns, of), now_ns);
        }
    }
    done
}

/// 4 KiB to 4 MiB, powers of two and all between.
fn lengths() -> impl Strategy<Value = u64> {
    prop_oneof![(0..=10_u32).prop_map(|power| 4096 << power), (1..=1024_u64).prop_map(|pages| pages * 4096)]
}

fn any_drive() -> impl Strategy<Value = &'static str> {
    prop::sample::select([&DISKS[..], &ARRAYS[..]].concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn a_scan_is_no_slower_with_commands_queued(
        drive in any_drive(), depth in 2..=64_u64, length_bytes in lengths(), from in 0..SIZE_BYTES / 8192,
    ) {
        let rate = |depth| share(drive, &[scan(depth, length_bytes, from * 4096)], 2.0)[0].mb_s;
        let (one, queued) = (rate(1), rate(depth));
        prop_assert!(queued >= 0.9 * one, "{drive}: {one:.1} MB/s one at a time, {queued:.1} with {depth} queued");
    }

    #[test]
    fn a_random_reader_beside_a_scan_gets_its_turn_and_costs_the_scan_time(
        drive in prop::sample::select(&DISKS[..]), depth in 1..=32_u64, length_bytes in lengths(),
    ) {
        let scan = scan(depth, length_bytes, 0);
        let (scan_alone, reader_alone) = (share(drive, &[scan], 4.0)[0], share(drive, &[RANDOM_READER], 4.0)[0]);
        let both = share(drive, &[scan, RANDOM_READER], 4.0);
// Every turn takes the arm away for more than 2 ms; the last commands may or may not have ended.
        let (lost_mb, in_flight_mb) = (4.0 * (scan_alone.mb_s - both[0].mb_s), 2.0 * length_bytes as f64 / 1e6);
        let turns_mb = 4.0 * both[1].per_s * 0.002 * scan_alone.mb_s;
        prop_assert!(lost_mb > turns_mb - in_flight_mb, "{drive}: {scan_alone:?} alone, {both:?}");
        prop_assert!((0.5..=1.05 * reader_alone.per_s).contains(&both[1].per_s), "{drive}: {reader_alone:?}, {both:?}");
        // Its age weighs more than the way there by then, and what was begun before it ends first.
        prop_assert!(both[1].longest_ms < 1500.0, "{drive}: {both:?}");
        if depth * length_bytes >= 1 << 20 {
            prop_assert!(both[0].mb_s > 0.3 * scan_alone.mb_s, "{drive}: {scan_alone:?} alone, {both:?}");
        }
    }

    #[test]
    fn scans_share_a_disk(
        drive in prop::sample::select(&DISKS[..]), depth in 2..=16_u64, length_bytes in lengths(), scans in 2..=4_u64,
    ) {
        let of = |index| scan(depth, length_bytes, index * (SIZE_BYTES / 4));
        let alone = share(drive, &[of(0)], 8.0)[0].mb_s;
        let shares = share(drive, &(0..scans).map(of).collect::<Vec<_>>(), 8.0);
        let all: f64 = shares.iter().map(|share| share.mb_s).sum();
        prop_assert!(all <= 1.01 * alone, "{drive}: {alone:.1} MB/s alone, {shares:?}");
        // What one leaves in the cache is answered at once, which may end its turn.
        let least = all / scans as f64 / 3.0;
        prop_assert!(shares.iter().all(|share| share.mb_s > least), "{drive}: {alone:.1} MB/s alone, {shares:?}");
    }

    #[test]
    fn writes_beside_a_scan_get_their_turn(
        drive in any_drive(), depth in 1..=32_u64, length_bytes in lengths(),
    ) {
        let writer = Client { kind: Kind::Write, ..scan(1, length_bytes, SIZE_BYTES / 2) };
        let both = share(drive, &[scan(depth, length_bytes, 0), writer], 4.0);
        prop_assert!(both.iter().all(|done| done.per_s > 1.0 && done.longest_ms < 2500.0), "{drive}: {both:?}");
    }
}

#[test]
fn what_was_read_ahead_and_then_written_is_read_anew() {
    const PIECE_BYTES: u64 = 64 << 10;
    let mut bench = Bench::new("hdd-7200(write_cache_bytes=0)", SIZE_BYTES, 1);
    let revolution_ns = 60_000_000_000 / 7200;
    bench.one(Kind::Read, 0, PIECE_BYTES);
    bench.now_ns += 2 * revolution_ns;
    assert!(bench.one(Kind::Read, PIECE_BYTES, PIECE_BYTES) < 1_000_000, "it was read ahead");
    bench.one(Kind::Write, 2 * PIECE_BYTES, PIECE_BYTES);
    let anew_ns = bench.one(Kind::Read, 2 * PIECE_BYTES, PIECE_BYTES);
    assert!(anew_ns > revolution_ns / 2, "{anew_ns} ns");
}

#[test]
fn what_was_read_on_while_a_write_waited_is_read_anew() {
    const PIECE_BYTES: u64 = 64 << 10;
    for drive in ["hdd-7200", "hdd-7200(write_cache_bytes=0)"] {
        let mut bench = Bench::new(drive, SIZE_BYTES, 1);
        // While the head is on its way to the first, the second is queued and the third written.
        bench.submit(Kind::Read, 0, PIECE_BYTES);
        bench.now_ns += 400_000;
        bench.submit(Kind::Read, PIECE_BYTES, PIECE_BYTES);
        bench.submit(Kind::Write, 2 * PIECE_BYTES, PIECE_BYTES);
        while bench.device.next_due().is_some() {
            bench.wait();
        }
        bench.one(Kind::Flush, 0, 0);
        let anew_ns = bench.one(Kind::Read, 2 * PIECE_BYTES, PIECE_BYTES);
        assert!(anew_ns > 2_000_000, "{drive}: {anew_ns} ns");
    }
}
