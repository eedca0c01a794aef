//! Hard disks in virtual time: what a drive file can say beyond the short form (zones and seeks as tables, overheads,
//! transfers that overlap with the medium, read-ahead policies), and scans of disks and of arrays of them with commands
//! queued, alone and beside other work.
//!
//! Also how often a hard disk has to be polled: a poll is a call at `next_due`, each of which costs an emulated disk a
//! wake-up.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;

use dbdyno_device::{Command, DeviceModel, Kind, model};
use proptest::prelude::*;

use self::bench::Bench;

mod bench;

const EXTRACTED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/drives/extracted.toml");
const SIZE_BYTES: u64 = 8 << 30;
const SECTOR: u64 = 512;
/// A revolution at 10,000 rpm.
const REVOLUTION_NS: u64 = 6_000_000;
/// The second cylinder begins here, with a track of 420 sectors.
const TRACK: u64 = 640;
const IDLE_NS: u64 = 100_000_000;

fn with(fields: &str) -> String {
    format!("{EXTRACTED}({fields})")
}

/// The drive alone with one command after the other, each after a pause in which the arm comes to rest.
fn disk(fields: &str, seed: u64) -> Bench {
    Bench::new(&with(fields), SIZE_BYTES, seed)
}

fn after_idle(bench: &mut Bench, kind: Kind, sector: u64, sectors: u64) -> u64 {
    bench.now_ns += IDLE_NS;
    bench.request_ns(kind, sector * SECTOR, sectors * SECTOR)
}

/// True if a read needed no medium: its overhead and transfer, and no more.
fn hits(bench: &mut Bench, sector: u64, sectors: u64) -> bool {
    let transfer_ns = sectors * SECTOR * 1000 / 5;
    after_idle(bench, Kind::Read, sector, sectors) <= 210_000 + transfer_ns
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn a_lower_watermark_is_never_slower(sector in 0..16_000_000_u64, sectors in 1..300_u64, seed in 0..99_u64) {
        let of = |watermark: f64| disk(&format!("watermark={watermark},read_on_arrival=false"), seed)
            .request_ns(Kind::Read, sector * SECTOR, sectors * SECTOR);
        let (low, middle, high) = (of(0.0), of(0.5), of(1.0));
        prop_assert!(low <= middle && middle <= high, "{low} {middle} {high}");
        let transfer_ns = sectors * SECTOR * 1000 / 5;
        prop_assert!(low >= transfer_ns);
        // At this rate the transfer is what counts: the medium, five times as fast, hides behind all of it but a
        // sector.
        let late_ns = (sectors - 1) * REVOLUTION_NS / 420;
        prop_assert!(high - low >= late_ns, "{} {late_ns}", high - low);
    }

    #[test]
    fn reading_on_arrival_is_never_slower(sector in 0..16_000_000_u64, sectors in 1..350_u64, seed in 0..99_u64) {
        // At a fast interface only the medium counts.
        let of = |arrival: bool| disk(&format!("interface_mb_s=5000.0,read_on_arrival={arrival}"), seed)
            .request_ns(Kind::Read, sector * SECTOR, sectors * SECTOR);
        prop_assert!(of(true) <= of(false));
    }

    #[test]
    fn a_table_of_one_zone_is_the_short_form(sectors in prop::collection::vec(0..4_000_000_u64, 1..60)) {
        let common = "heads=4,rpm=6000.0,write_cache_bytes=0,watermark=1.0,interface_mb_s=500.0,capacity_bytes=4000000000";
        let zone = "[{first_cylinder=0,last_cylinder=9999,sectors_per_track=256,track_skew_sectors=32.0,\
                    cylinder_skew_sectors=64.0}]";
        let short = include_str!("../drives/hdd-15k.toml").replace("= 20 ", "= 1 ");
        let folder = tempfile(&short, zone);
        let rates = "outer_mb_s=13.10721,inner_mb_s=13.10721,track_skew_ms=1.25,cylinder_skew_ms=2.5";
        let of = |name: String| {
            let mut bench = Bench::new(&name, 2 << 30, 3);
            sectors.iter().map(|sector| bench.request_ns(Kind::Read, sector * SECTOR, 40 * SECTOR)).collect::<Vec<_>>()
        };
        let by_short = of(format!("{}({common},{rates})", folder.0));
        let by_table = of(format!("{}({common})", folder.1));
        for (short_ns, table_ns) in by_short.iter().zip(&by_table) {
            prop_assert!(short_ns.abs_diff(*table_ns) < 1_000, "{by_short:?} {by_table:?}");
        }
    }
}

/// The drive file with one text replaced.
fn variant(from: &str, to: &str) -> String {
    let text = std::fs::read_to_string(EXTRACTED).unwrap();
    assert!(text.contains(from), "{from}");
    let name = format!("variant-{}-{}.toml", std::process::id(), to.replace(|c: char| !c.is_alphanumeric(), "_"));
    let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, text.replacen(from, to, 1)).unwrap();
    path.display().to_string()
}

/// Two drive files: one as given, one with a table of zones instead of the short form.
fn tempfile(short: &str, zone: &str) -> (String, String) {
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR"));
    let is_short = |line: &&str| {
        ["zones", "outer_mb_s", "inner_mb_s", "track_skew_ms", "cylinder_skew_ms"]
            .iter()
            .any(|name| line.starts_with(name))
    };
    let table: Vec<&str> = short.lines().filter(|line| !is_short(line)).collect();
    let (with_short, with_table) = (folder.join("short.toml"), folder.join("table.toml"));
    std::fs::write(&with_short, short).unwrap();
    std::fs::write(&with_table, format!("{}\nzone = {zone}\n", table.join("\n"))).unwrap();
    (with_short.display().to_string(), with_table.display().to_string())
}

#[test]
fn read_ahead_is_as_far_as_its_policy_goes() {
    // (policy, hit after one read, hit after two neighbours, hit on the next track)
    for (policy, after_one, after_two, next_track) in [
        ("never", false, false, false),
        ("sequential", false, true, false),
        ("track", true, true, false),
        ("stream", true, true, true),
        ("always", true, true, false),
    ] {
        let fields = format!("read_ahead={policy},read_before=false,read_on_arrival=false,read_ahead_bytes=16384");
        let fields = format!("{fields},read_kept_bytes=1048576,read_segment_bytes=1048576");
        let mut bench = disk(&fields, 1);
        after_idle(&mut bench, Kind::Read, TRACK + 8, 4);
        assert_eq!(hits(&mut bench, TRACK + 12, 4), after_one, "{policy}, after one");
        assert_eq!(hits(&mut bench, TRACK + 16, 4), after_two, "{policy}, after two");
        let mut bench = disk(&fields, 1);
        after_idle(&mut bench, Kind::Read, TRACK + 400, 4);
        after_idle(&mut bench, Kind::Read, TRACK + 404, 40);
        assert_eq!(hits(&mut bench, TRACK + 420 + 300, 4), next_track, "{policy}, next track");
    }
}

#[test]
fn a_small_segment_is_overrun_by_its_own_read_ahead() {
    let mut bench = disk("read_kept_bytes=32768,read_segment_bytes=32768,read_before=false", 1);
    after_idle(&mut bench, Kind::Read, TRACK + 8, 4);
    assert!(!hits(&mut bench, TRACK + 12, 4), "pushed out by the rest of the track");
    assert!(hits(&mut bench, TRACK + 410, 4), "the end of the track is there");
}

#[test]
fn a_stopped_read_ahead_goes_on_after_a_hit_only_where_the_file_says_so() {
    for resumes in [false, true] {
        let fields =
            format!("read_ahead=always,read_ahead_bytes=8192,read_before=false,read_ahead_after_hit={resumes}");
        let mut bench = disk(&fields, 1);
        after_idle(&mut bench, Kind::Read, 8, 4);
        assert!(hits(&mut bench, 12, 16), "the 16 sectors ahead");
        assert_eq!(hits(&mut bench, 28, 4), resumes);
    }
}

#[test]
fn what_passes_before_the_sectors_asked_for_is_kept() {
    let kept = |fields: &str| {
        let before = |seed| {
            let mut bench = disk(fields, seed);
            after_idle(&mut bench, Kind::Read, 1_000_000, 4);
            hits(&mut bench, 999_992, 8)
        };
        (0..100).filter(|seed| before(*seed)).count()
    };
    assert_eq!(kept("read_before=false"), 0);
    assert!(kept("read_before=true") > 90, "{}", kept("read_before=true"));
}

#[test]
fn what_was_written_can_be_read_where_the_file_says_so() {
    for (written, wanted) in [(true, true), (false, false)] {
        let mut bench = disk(&format!("read_written={written}"), 1);
        after_idle(&mut bench, Kind::Write, 5_000_000, 8);
        assert_eq!(hits(&mut bench, 5_000_000, 8), wanted);
    }
}

#[test]
fn of_a_read_that_is_there_in_part_only_the_rest_is_read() {
    // The first part crosses the slow interface while the arm goes for the rest.
    let fields = "read_ahead=always,read_ahead_bytes=8192,read_before=false,read_on_arrival=false";
    let read_ns = |fields: &str, seed| {
        let mut bench = disk(fields, seed);
        after_idle(&mut bench, Kind::Read, 8, 4);
        after_idle(&mut bench, Kind::Read, 16, 200)
    };
    let all_ns = 100_000 + 200 * SECTOR * 1000 / 5 + 10_000;
    for seed in 0..20 {
        assert_eq!(read_ns(fields, seed), all_ns, "the rest comes before the transfer needs it");
        let bound = read_ns(&format!("{fields},interface_mb_s=5000.0"), seed);
        assert!((2_600_000..2_700_000 + REVOLUTION_NS).contains(&bound), "the arm goes for 188 sectors: {bound}");
    }
}

#[test]
fn a_write_waits_for_its_lead() {
    // The next sectors pass under the head before 10 sectors have come: a revolution more.
    let next_ns = |lead_bytes: u64| {
        let mut bench =
            disk(&format!("write_cache_bytes=0,interface_write_mb_s=40.0,write_lead_bytes={lead_bytes}"), 1);
        bench.request_ns(Kind::Write, 0, 10 * SECTOR);
        bench.request_ns(Kind::Write, 51 * SECTOR, 10 * SECTOR)
    };
    assert_eq!(next_ns(5120) - next_ns(0), REVOLUTION_NS);
}

#[test]
fn one_write_segment_takes_one_run_of_sectors() {
    let second_ns = |segments: u64, sector: u64, seed| {
        let mut bench = disk(&format!("write_segments={segments}"), seed);
        bench.request_ns(Kind::Write, 0, 8 * SECTOR);
        bench.request_ns(Kind::Write, sector * SECTOR, 8 * SECTOR)
    };
    let cached_ns = 250_000 + 8 * SECTOR * 1000 / 4 + 20_000;
    assert_eq!(second_ns(1, 8, 1), cached_ns, "it continues the first");
    assert_eq!(second_ns(2, 9_000_000, 1), cached_ns, "it finds a segment");
    let waits = (0..60).filter(|seed| second_ns(1, 9_000_000, *seed) > cached_ns).count();
    assert!(waits > 30, "{waits} of 60 wait for the first to reach the medium");
}

#[test]
fn overheads_are_by_command_and_by_what_came_before() {
    let transfer_ns = |rate: u64| 8 * SECTOR * 1000 / rate;
    let mut bench = disk("read_before=false", 1);
    assert_eq!(after_idle(&mut bench, Kind::Write, 0, 8), 150_000 + transfer_ns(4) + 20_000, "as after a read");
    assert_eq!(after_idle(&mut bench, Kind::Write, 8, 8), 250_000 + transfer_ns(4) + 20_000);
    assert_eq!(after_idle(&mut bench, Kind::Read, 0, 8), 200_000 + transfer_ns(5) + 10_000);
    assert_eq!(after_idle(&mut bench, Kind::Read, 0, 8), 100_000 + transfer_ns(5) + 10_000);
    // What needs the arm: the same place again, a whole number of revolutions later less what differs.
    let miss = |from, to| Bench::new(&variant(from, to), SIZE_BYTES, 1).request_ns(Kind::Read, SECTOR, 8 * SECTOR);
    let miss_ns = miss("", "");
    assert_eq!(miss("[0.3, 0.4]", "[0.301, 0.4]"), miss_ns, "the head waits for the sector in any case");
    assert_eq!(miss("= 0.03", "= 0.53") - miss_ns, 500_000, "reconnecting comes after the medium");
}

#[test]
fn a_write_without_a_cache_pays_for_its_transfer() {
    for sectors in [8, 64, 200] {
        let mean_ns = |fields: &str| {
            let of = |seed| disk(fields, seed).request_ns(Kind::Write, 8_000_000 * SECTOR, sectors * SECTOR);
            (0..200).map(of).sum::<u64>() / 200
        };
        let fast_ns = mean_ns("write_cache_bytes=0,interface_write_mb_s=5000.0");
        let slow_ns = mean_ns("write_cache_bytes=0,interface_write_mb_s=4.0");
        // The transfer hides behind the seek and the wait for the sector; what is longer costs revolutions.
        assert!(slow_ns >= fast_ns && slow_ns >= sectors * SECTOR * 1000 / 4, "{sectors} sectors: {fast_ns} {slow_ns}");
        if sectors == 200 {
            assert!(slow_ns > fast_ns + REVOLUTION_NS, "{fast_ns} {slow_ns}");
        }
    }
}

#[test]
fn a_settle_below_zero_makes_writes_quicker_to_position() {
    let mean_ns = |settle_ms: f64| {
        let fields = format!("write_cache_bytes=0,interface_write_mb_s=5000.0,write_settle_ms={settle_ms}");
        let mut bench = disk(&fields, 1);
        1e9 / bench.random_writes(1, 4000)
    };
    let gained_ns = mean_ns(0.0) - mean_ns(-0.6);
    assert!((400_000.0..800_000.0).contains(&gained_ns), "{gained_ns}");
}

#[test]
fn a_small_disk_stretched_over_a_table_of_zones_is_as_fast_as_the_drive() {
    let whole_bytes = 9_000_000_000;
    let drive = with("interface_mb_s=500.0,interface_write_mb_s=500.0");
    let stretched = with("span=whole,interface_mb_s=500.0,interface_write_mb_s=500.0");
    let whole = Bench::new(&drive, whole_bytes, 1).random_reads(1, 4000);
    let small = Bench::new(&stretched, 1 << 30, 1).random_reads(1, 4000);
    assert!((small / whole - 1.0).abs() < 0.04, "{small} {whole}");
}

#[test]
fn a_drive_file_with_a_mistake_is_refused_by_field() {
    for (from, to, reason) in [
        (
            "[hdd]",
            "[hdd]\nouter_mb_s = 100.0",
            "outer_mb_s cannot be given together with [[hdd.zone]]; remove one of them",
        ),
        ("[hdd]", "[hdd]\nseek_a_ms = 1.0", "seek_a_ms cannot be given together with seek_table; remove one of them"),
        ("[10, 1.0]", "[2, 1.0]", "seek_table has a distance of 2 after one of 2; they must rise"),
        ("[10, 1.0]", "[10, -1.0]", "seek_table has -1 ms for 10 cylinders; give 0 to 1000000"),
        ("= 0.5\nqueue", "= 1.5\nqueue", "watermark = 1.5 is not between 0.0 and 1.0"),
        ("write_segments        = 1", "write_segments = 0", "write_segments = 0 is not above 0"),
        ("[0.1, 0.2]", "[0.1, -1.0]", "read_hit_ms = -1 is not between"),
        ("= 9_000_000_000", "= 90_000_000_000", "capacity_bytes = 90000000000 is more than the zones hold"),
        ("= 4010", "= 3999", "first_cylinder = 3999 is in the zone before"),
        ("= 8009", "= 4009", "last_cylinder = 4009 is before first_cylinder = 4010"),
        ("= 5000", "= 50_000_000", "spare_sectors = 50000000, each 0 tracks, leave no room for data"),
    ] {
        let error = model(&variant(from, to), SIZE_BYTES, 1).err().unwrap().to_string();
        assert!(error.contains(reason), "{to}: {error}");
    }
}

const SCAN_SIZE_BYTES: u64 = 64 << 30;

const DISKS: [&str; 4] = ["hdd-7200", "hdd-15k", "hdd-10k", "hdd-7200(write_cache_bytes=0)"];

const ARRAYS: [&str; 6] = [
    "raid1-hdd-15k",
    "raid0(hdd-7200, 4)",
    "raid0(hdd-15k, 3, 1MiB)",
    "raid1(hdd-7200, 3)",
    "raid10(hdd-10k, 4, 16KiB)",
    "raid0(raid1(hdd-15k, 2), 2, write_cache_bytes=1MiB)",
];

/// A client that always has `depth` commands of one length outstanding.
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
    let mut device = model(drive, SCAN_SIZE_BYTES, 1).unwrap();
    let (mut sent, mut done) = (vec![0_u64; clients.len()], vec![Done::default(); clients.len()]);
    let (mut begun_ns, mut random) = (BTreeMap::new(), 0_u64);
    let mut submit = |device: &mut dyn DeviceModel, now_ns: u64, of: usize| -> u64 {
        let client = clients[of];
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let next_bytes = |from: u64| from + sent[of] * client.length_bytes;
        let offset_bytes =
            client.from_bytes.map_or_else(|| (random >> 20) % (SCAN_SIZE_BYTES / 4096) * 4096, next_bytes);
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
        let (single, queued) = (rate(1), rate(depth));
        prop_assert!(queued >= 0.9 * single, "{drive}: {single:.1} MB/s one at a time, {queued:.1} with {depth} queued");
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
        let of = |index| scan(depth, length_bytes, index * (SCAN_SIZE_BYTES / 4));
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
        let writer = Client { kind: Kind::Write, ..scan(1, length_bytes, SCAN_SIZE_BYTES / 2) };
        let both = share(drive, &[scan(depth, length_bytes, 0), writer], 4.0);
        prop_assert!(both.iter().all(|done| done.per_s > 1.0 && done.longest_ms < 2500.0), "{drive}: {both:?}");
    }
}

#[test]
fn what_was_read_ahead_and_then_written_is_read_anew() {
    const PIECE_BYTES: u64 = 64 << 10;
    let mut bench = Bench::new("hdd-7200(write_cache_bytes=0)", SCAN_SIZE_BYTES, 1);
    let revolution_ns = 60_000_000_000 / 7200;
    bench.request_ns(Kind::Read, 0, PIECE_BYTES);
    bench.now_ns += 2 * revolution_ns;
    assert!(bench.request_ns(Kind::Read, PIECE_BYTES, PIECE_BYTES) < 1_000_000, "it was read ahead");
    bench.request_ns(Kind::Write, 2 * PIECE_BYTES, PIECE_BYTES);
    let anew_ns = bench.request_ns(Kind::Read, 2 * PIECE_BYTES, PIECE_BYTES);
    assert!(anew_ns > revolution_ns / 2, "{anew_ns} ns");
}

#[test]
fn what_was_read_on_while_a_write_waited_is_read_anew() {
    const PIECE_BYTES: u64 = 64 << 10;
    for drive in ["hdd-7200", "hdd-7200(write_cache_bytes=0)"] {
        let mut bench = Bench::new(drive, SCAN_SIZE_BYTES, 1);
        // While the head is on its way to the first, the second is queued and the third written.
        bench.submit(Kind::Read, 0, PIECE_BYTES);
        bench.now_ns += 400_000;
        bench.submit(Kind::Read, PIECE_BYTES, PIECE_BYTES);
        bench.submit(Kind::Write, 2 * PIECE_BYTES, PIECE_BYTES);
        while bench.device.next_due().is_some() {
            bench.wait();
        }
        bench.request_ns(Kind::Flush, 0, 0);
        let anew_ns = bench.request_ns(Kind::Read, 2 * PIECE_BYTES, PIECE_BYTES);
        assert!(anew_ns > 2_000_000, "{drive}: {anew_ns} ns");
    }
}

/// Beside the one that completes a request: for a choice that hangs on what the head reads until it is made; and where
/// reads and cached writes are mixed, for dirty sectors that are written before a read which waits already. Of an array
/// that is so for each member.
const POLLS_MAX: f64 = 1.05;
const MIXED_POLLS_MAX: f64 = 1.3;
const COUNT: u64 = 4000;

/// Polls a request of `depth` requests at a time; `writes` of ten are writes.
fn polls(drive: &str, depth: u64, writes: u64) -> f64 {
    let mut bench = Bench::new(drive, 100 << 30, 1);
    bench.closed_loop_of(depth, COUNT, |bench, index| {
        (if index % 10 < writes { Kind::Write } else { Kind::Read }, bench.random_offset(), 4096)
    });
    bench.polls as f64 / COUNT as f64
}

#[test]
fn a_request_takes_one_poll() {
    for drive in ["hdd-7200", "hdd-15k", "hdd-10k", "hdd-exos18", "hdd-15k(write_cache_bytes=0)", "raid1(hdd-15k, 4)"] {
        for depth in [1, 4, 32, 128] {
            for writes in if drive.starts_with("raid") { vec![0, 10] } else { vec![0, 3, 10] } {
                let polls = polls(drive, depth, writes);
                let limit = if writes % 10 == 0 { POLLS_MAX } else { MIXED_POLLS_MAX };
                assert!(polls < limit, "{drive}, depth {depth}, {writes} writes of ten: {polls:.3} polls a request");
            }
        }
    }
}
