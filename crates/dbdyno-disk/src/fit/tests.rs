//! Drives whose drive files are known must be given back.

use proptest::prelude::*;

use super::drive_file::DriveFile;
use super::estimate::Estimate;
use super::hdd::{Hdd, hdd, hit_limit_ns};
use super::model_bench::ModelBench;
use super::rotation::{hit_ns, revolution};
use super::ssd::{Ssd, ssd};
use super::*;

fn found(name: &str, size_bytes: u64, write: bool) -> Hdd {
    let model = dbdyno_device::model(name, size_bytes, 5).unwrap();
    let mut bench = ModelBench::new(model, size_bytes, write);
    let hit = hit_ns(&mut bench, PROBE_BYTES, 1).unwrap().unwrap();
    let turning = revolution(&mut bench, hit_limit_ns(hit), (MODEL_NS, 1)).unwrap().unwrap();
    hdd(&mut bench, turning, hit, (MODEL_NS, 1), &mut |_| Ok(())).unwrap().unwrap()
}

/// The value of a field of the fitted drive file.
fn field(found: &Hdd, size_bytes: u64, field: &str) -> f64 {
    let figures = hdd_file::file_of(found, size_bytes).figures();
    let figure = figures.iter().find(|figure| figure["field"] == field).unwrap();
    assert_ne!(figure["source"], "default", "{figure}");
    figure["text"].as_str().unwrap().parse().unwrap()
}

fn near(estimate: Estimate, wanted: f64, part: f64, more: f64) -> bool {
    (estimate.value - wanted).abs() <= part * wanted + more
}

/// What the drive files say: name, capacity, rpm, heads, outer and inner MB/s, zones, skews, and the seek curve.
struct Known {
    name: &'static str,
    bytes: u64,
    rpm: f64,
    heads: u64,
    mb_s: (f64, f64),
    zones: usize,
    skews_ms: (f64, f64),
    seek: (f64, f64, f64, f64, f64),
    segments: u64,
}

const DRIVES: [Known; 2] = [
    Known {
        name: "hdd-7200",
        bytes: 2_000_398_934_016,
        rpm: 7200.0,
        heads: 4,
        mb_s: (247.0, 120.0),
        zones: 24,
        skews_ms: (0.9, 1.2),
        seek: (40_000.0, 1.0, 0.053, 9.75, 0.000_038),
        segments: 16,
    },
    Known {
        name: "hdd-15k",
        bytes: 299_999_997_952,
        rpm: 15_000.0,
        heads: 4,
        mb_s: (200.0, 131.0),
        zones: 20,
        skews_ms: (0.6, 0.7),
        seek: (15_000.0, 0.2, 0.0196, 2.0, 0.000_04),
        segments: 32,
    },
];

#[test]
fn a_drive_of_the_catalogue_gives_back_its_drive_file() {
    for known in DRIVES {
        let found = found(known.name, known.bytes, true);
        let turn_ms = 60e3 / known.rpm;
        assert!(near(found.revolution_ns, turn_ms * 1e6, 1e-5, 0.0), "{}: {:?}", known.name, found.revolution_ns);
        assert_eq!(found.layout.heads, known.heads);
        assert_eq!(found.layout.zones.len(), known.zones, "{}", known.name);
        let rate = |index: usize| found.layout.zones[index].track_bytes.map(|bytes| bytes / turn_ms / 1e3);
        assert!(near(rate(0), known.mb_s.0, 0.005, 0.0), "{:?}", rate(0));
        assert!(near(rate(known.zones - 1), known.mb_s.1, 0.005, 0.0), "{:?}", rate(known.zones - 1));
        let skews = found.skews.as_ref().unwrap();
        assert!(near(skews.track.map(|turns| turns * turn_ms), known.skews_ms.0, 0.01, 0.0), "{skews:?}");
        assert!(near(skews.cylinder.unwrap().map(|turns| turns * turn_ms), known.skews_ms.1, 0.01, 0.0), "{skews:?}");
        assert_eq!(found.cache.segments.unwrap().value as u64, known.segments);
        let (short, a, b, c, e) = known.seek;
        let without = found.without_seek.unwrap().same_track.value;
        for reach in &found.curve {
            let cylinders = reach.cylinders as f64;
            let wanted = if cylinders < short { a + b * cylinders.sqrt() } else { c + e * cylinders };
            let seek = reach.ns.map(|ns| (ns - without) / 1e6);
            // Below the change of a cylinder's number by one, and up to what the edges of zones are not known by.
            assert!(near(seek, wanted, 0.03, 0.05), "{}: {cylinders} cylinders, {wanted} ms: {seek:?}", known.name);
        }
    }
}

#[test]
fn what_only_writes_show_is_a_default_of_a_disk_that_is_only_read() {
    let found = found("hdd-7200", 8 << 30, false);
    let file = hdd_file::file_of(&found, 8 << 30);
    for field in ["flush_ms", "write_settle_ms", "write_cache_bytes"] {
        let figures = file.figures();
        let figure = figures.iter().find(|figure| figure["field"] == field).unwrap();
        assert_eq!(figure["source"], "default");
        assert!(figure["why"].as_str().unwrap().contains("only read"), "{figure}");
    }
    assert!(dbdyno_device::model_of_text(&DriveFile { title: "x".into(), ..file }.text(), 8 << 30, 1).is_ok());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 8, ..ProptestConfig::default() })]
    #[test]
    fn a_drive_of_other_numbers_gives_them_back(
        rpm in 4000.0..16_000.0_f64, heads in 2..7_u64, segments in 1..40_u64, seek in 0.3..3.0_f64,
        // With more overhead a write is on the medium before FLUSH comes.
        flush in 0.5..12.0_f64, settle in 0.2..2.0_f64, overhead in 0.02..0.3_f64,
    ) {
        let size = 64 << 30;
        let name = format!(
            "hdd-7200(rpm={rpm:.3},heads={heads},read_segments={segments},seek_a_ms={seek:.4},flush_ms={flush:.3},\
             write_settle_ms={settle:.3},overhead_ms={overhead:.4},choose_ms=0.6)"
        );
        let found = found(&name, size, true);
        let field = |name: &str| field(&found, size, name);
        prop_assert!((field("rpm") / rpm - 1.0).abs() < 1e-5);
        prop_assert_eq!(field("heads") as u64, heads);
        prop_assert_eq!(field("read_segments") as u64, segments);
        prop_assert!((field("flush_ms") - flush).abs() < 0.1, "{} for {flush}", field("flush_ms"));
        prop_assert!((field("write_settle_ms") - settle).abs() < 0.25, "{} for {settle}", field("write_settle_ms"));
        prop_assert!((field("overhead_ms") - overhead).abs() < 0.001);
        prop_assert!((field("choose_ms") - 0.6).abs() < 0.02 + 600.0 / rpm, "{}", field("choose_ms"));
        prop_assert!((field("write_cache_bytes") / 33_554_432.0 - 1.0).abs() < 0.1);
        let far = found.curve.iter().find(|reach| reach.cylinders > 1000).unwrap();
        let wanted = seek + 0.053 * (far.cylinders as f64).sqrt();
        let without = found.without_seek.unwrap().same_track.value;
        prop_assert!(near(far.ns.map(|ns| (ns - without) / 1e6), wanted, 0.02, 0.05), "{far:?} for {wanted}");
    }
}

/// A solid-state drive, and the model of the drive file that was made of it, asked the same.
fn there_and_back(name: &str, size_bytes: u64) -> (Ssd, Ssd) {
    let model = dbdyno_device::model(name, size_bytes, 5).unwrap();
    let mut bench = ModelBench::new(model, size_bytes, true);
    let found = ssd(&mut bench, (MODEL_NS, 1), &mut |_| Ok(())).unwrap();
    let mut file = ssd_file::file_of(&found, size_bytes);
    ssd_file::fit_build(&mut file, &found, (size_bytes, 1)).unwrap();
    let back = ssd_file::model_of(&file, size_bytes, true, 2).unwrap();
    (found, back)
}

#[test]
fn a_solid_state_drive_comes_back_with_the_same_times() {
    for name in ["ssd-sata", "nvme", "nvme-980pro"] {
        let (drive, model) = there_and_back(name, 16 << 30);
        let close = |what: &str, one: f64, other: f64, part: f64| {
            assert!((one / other).ln().abs() < part, "{name}, {what}: {one} for {other}");
        };
        for ((bytes, wanted), (_, got)) in drive.read_latency.iter().zip(&model.read_latency) {
            let part = if *bytes <= 16_384 { 0.02 } else { 0.35 };
            close(&format!("read of {bytes}"), got.value, wanted.value, part);
        }
        for ((depth, wanted), (_, got)) in drive.read_rate.iter().zip(&model.read_rate) {
            close(&format!("reads at depth {depth}"), got.value, wanted.value, 0.15);
        }
        close("sequential read", model.sequential_read.value, drive.sequential_read.value, 0.1);
        let (wanted, got) = (drive.writes.unwrap(), model.writes.unwrap());
        close("write", got.write_latency.unwrap().value, wanted.write_latency.unwrap().value, 0.03);
        close("flush", got.flush.unwrap().value, wanted.flush.unwrap().value, 0.1);
        close("writes at depth 32", got.write_rate.value, wanted.write_rate.value, 0.1);
    }
}

#[test]
fn a_drive_that_keeps_its_writes_without_power_is_seen() {
    let figure = |name: &str| {
        let (drive, _) = there_and_back(name, 4 << 30);
        let figures = ssd_file::file_of(&drive, 4 << 30).figures();
        figures.into_iter().find(|figure| figure["field"] == "power_loss_protected").unwrap()["text"].clone()
    };
    assert_eq!((figure("ssd-s4600"), figure("ssd-sata")), ("true".into(), "false".into()));
}
