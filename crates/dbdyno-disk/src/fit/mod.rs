//! `dbdyno-disk fit`: a drive file from a drive, by timing requests.
//!
//! A [`bench::Bench`] answers requests: a device in real time, or a model in virtual time, which must give back what its
//! drive file says. The rest is the same for both: `rotation`, `tracks` and `seek` each time what they need and make
//! estimates of it; `hdd` goes through them in order, `ssd` does so for a drive that does not turn, and both make a drive
//! file of their estimates.
//!
//! Cannot: defects and spare sectors inside a zone, a disk that answers most reads from a cache of flash.

mod bench;
mod drive_file;
mod hdd;
mod outcome;
mod rotation;
mod seek;
mod ssd;
mod tracks;

use serde_json::json;

use self::bench::{Bench, DeviceBench, ModelBench};
use self::outcome::{Lateness, Outcome, SIZE_BYTES_MIN, gb, name_file};
use self::rotation::{PROBE_BYTES, hit_ns, revolution};
use crate::error::DiskError;
use crate::process::print_line;

pub use self::outcome::FitArgs;

/// In virtual time there is as much of it as is needed.
const MODEL_NS: u64 = 24 * 3_600_000_000_000;

/// Fits a drive and prints a line of JSON when a stage begins, and the result as the last one.
pub fn fit(args: &FitArgs) -> Result<(), DiskError> {
    let (mut bench, name, limit_ns) = open(args)?;
    if bench.size_bytes() < SIZE_BYTES_MIN {
        return Err(DiskError::Usage(format!("{name} has {} bytes; at least 256 MiB are needed", bench.size_bytes())));
    }
    let mut late = args.on.is_some().then(Lateness::default);
    late.iter_mut().for_each(Lateness::look);
    let stage = &mut |stage: &str| print_line(&json!({"stage": stage}));
    let mut fitted = fit_drive(&mut *bench, &name, (limit_ns, args.seed), stage)?;
    if let Some(late) = &mut late {
        late.look();
        fitted.add_lateness(late);
    }
    print_line(&fitted.json())
}

fn open(args: &FitArgs) -> Result<(Box<dyn Bench>, String, u64), DiskError> {
    if let Some(path) = &args.on {
        let bench = DeviceBench::open(path, args.write)?;
        return Ok((Box::new(bench), path.display().to_string(), args.seconds * 1_000_000_000));
    }
    let name = args.model.clone().unwrap_or_default();
    let drive = dbdyno_device::drive(&name, 0)?;
    if ["cloud", "ideal"].contains(&drive.kind) {
        let what = "is neither a hard disk nor a solid-state drive, and only these can be fitted";
        return Err(DiskError::Usage(format!("{name} {what}; write a drive file of kind [{}] by hand", drive.kind)));
    }
    let whole = drive.capacity_bytes / PROBE_BYTES * PROBE_BYTES;
    let size_bytes = args.size_bytes.unwrap_or(whole);
    let model = dbdyno_device::model(&name, size_bytes, args.seed)?;
    Ok((Box::new(ModelBench::new(model, size_bytes, args.write)), name, MODEL_NS))
}

/// The drive file and its figures, and what the model that it makes comes to beside the drive.
fn fit_drive(
    bench: &mut dyn Bench,
    name: &str,
    (limit_ns, seed): (u64, u64),
    say: hdd::Say,
) -> Result<Outcome, DiskError> {
    let size_bytes = bench.size_bytes();
    say("rotation")?;
    let none = || DiskError::Usage(format!("{name} answers no reads"));
    let hit = hit_ns(bench, PROBE_BYTES, seed)?.ok_or_else(none)?;
    let Some(turn) = revolution(bench, hdd::hit_limit_ns(hit), (limit_ns / 10, seed))? else {
        let found = ssd::ssd(bench, (limit_ns, seed), say)?;
        say("model")?;
        let mut file = ssd::file_of(&found, size_bytes);
        name_file(&mut file, format!("Solid-state drive fitted from {name}: {}", gb(size_bytes)));
        ssd::fit_build(&mut file, &found, (size_bytes, seed))?;
        let model = ssd::model_of(&file, size_bytes, found.writes.is_some(), seed)?;
        let checks = outcome::ssd_checks(&found, &model);
        let mut notes = Vec::new();
        if bench.is_said_to_turn() {
            notes.push(format!(
                "the kernel says that {name} turns, but response times show no revolution; it is taken for a solid-state \
                 drive. If it is a disk, measure again when nothing else runs, or give more --time"
            ));
        }
        notes.extend(outcome::uneven(&found.reads_ns));
        let shortest = found.read_latency.first().map_or(0.0, |(_, latency)| latency.value);
        let shortest = ("a read of 4 KiB", shortest);
        return Ok(Outcome {
            file,
            checks,
            elapsed_ns: bench.now_ns(),
            cut_short: vec![],
            notes,
            shortest,
            late: None,
        });
    };
    let found = hdd::hdd(bench, turn, hit, (limit_ns, seed), say)?;
    let found = found.ok_or_else(|| DiskError::Usage(no_tracks(name)))?;
    say("model")?;
    let mut file = hdd::file_of(&found, size_bytes);
    let rpm = 60e9 / found.revolution_ns.value;
    name_file(&mut file, format!("Hard disk fitted from {name}: {rpm:.0} rpm, {}", gb(size_bytes)));
    hdd::fit_queue(&mut file, &found, (size_bytes, seed))?;
    let model = hdd::model_queue(&file, size_bytes, seed)?;
    Ok(Outcome {
        checks: outcome::hdd_checks(&found, &model),
        elapsed_ns: bench.now_ns(),
        cut_short: found.cut_short,
        notes: vec![],
        shortest: ("a tenth of a revolution", found.revolution_ns.value / 10.0),
        late: None,
        file,
    })
}

fn no_tracks(name: &str) -> String {
    format!(
        "{name} turns, but its addresses show no tracks: answers come too late and too unevenly. Measure again when nothing \
         else runs on this host or uses the disk, or give more --time"
    )
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::bench::ModelBench;
    use super::drive_file::{DriveFile, Estimate};
    use super::hdd::{Hdd, hdd, hit_limit_ns};
    use super::rotation::{hit_ns, revolution};
    use super::ssd::{Ssd, ssd};
    use super::*;

    fn fit_disk(name: &str, size_bytes: u64, write: bool) -> Hdd {
        let model = dbdyno_device::model(name, size_bytes, 5).unwrap();
        let mut bench = ModelBench::new(model, size_bytes, write);
        let hit = hit_ns(&mut bench, PROBE_BYTES, 1).unwrap().unwrap();
        let turning = revolution(&mut bench, hit_limit_ns(hit), (MODEL_NS, 1)).unwrap().unwrap();
        hdd(&mut bench, turning, hit, (MODEL_NS, 1), &mut |_| Ok(())).unwrap().unwrap()
    }

    /// The value of a field of the fitted drive file.
    fn field(found: &Hdd, size_bytes: u64, field: &str) -> f64 {
        let figures = hdd::file_of(found, size_bytes).figures();
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
            let disk = fit_disk(known.name, known.bytes, true);
            let turn_ms = 60e3 / known.rpm;
            assert!(near(disk.revolution_ns, turn_ms * 1e6, 1e-5, 0.0), "{}: {:?}", known.name, disk.revolution_ns);
            assert_eq!(disk.layout.heads, known.heads);
            assert_eq!(disk.layout.zones.len(), known.zones, "{}", known.name);
            let rate = |index: usize| disk.layout.zones[index].track_bytes.map(|bytes| bytes / turn_ms / 1e3);
            assert!(near(rate(0), known.mb_s.0, 0.005, 0.0), "{:?}", rate(0));
            assert!(near(rate(known.zones - 1), known.mb_s.1, 0.005, 0.0), "{:?}", rate(known.zones - 1));
            let skews = disk.skews.as_ref().unwrap();
            assert!(near(skews.track.map(|turns| turns * turn_ms), known.skews_ms.0, 0.01, 0.0), "{skews:?}");
            assert!(
                near(skews.cylinder.unwrap().map(|turns| turns * turn_ms), known.skews_ms.1, 0.01, 0.0),
                "{skews:?}"
            );
            assert_eq!(disk.cache.segments.unwrap().value as u64, known.segments);
            let (short, a, b, c, e) = known.seek;
            let without = disk.without_seek.unwrap().same_track.value;
            for reach in &disk.curve {
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
        let disk = fit_disk("hdd-7200", 8 << 30, false);
        let file = hdd::file_of(&disk, 8 << 30);
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
            let disk = fit_disk(&name, size, true);
            let field = |name: &str| field(&disk, size, name);
            prop_assert!((field("rpm") / rpm - 1.0).abs() < 1e-5);
            prop_assert_eq!(field("heads") as u64, heads);
            prop_assert_eq!(field("read_segments") as u64, segments);
            prop_assert!((field("flush_ms") - flush).abs() < 0.1, "{} for {flush}", field("flush_ms"));
            prop_assert!((field("write_settle_ms") - settle).abs() < 0.25, "{} for {settle}", field("write_settle_ms"));
            prop_assert!((field("overhead_ms") - overhead).abs() < 0.001);
            prop_assert!((field("choose_ms") - 0.6).abs() < 0.02 + 600.0 / rpm, "{}", field("choose_ms"));
            prop_assert!((field("write_cache_bytes") / 33_554_432.0 - 1.0).abs() < 0.1);
            let far = disk.curve.iter().find(|reach| reach.cylinders > 1000).unwrap();
            let wanted = seek + 0.053 * (far.cylinders as f64).sqrt();
            let without = disk.without_seek.unwrap().same_track.value;
            prop_assert!(near(far.ns.map(|ns| (ns - without) / 1e6), wanted, 0.02, 0.05), "{far:?} for {wanted}");
        }
    }

    /// A solid-state drive, and the model of the drive file that was made of it, asked the same.
    fn there_and_back(name: &str, size_bytes: u64) -> (Ssd, Ssd) {
        let model = dbdyno_device::model(name, size_bytes, 5).unwrap();
        let mut bench = ModelBench::new(model, size_bytes, true);
        let drive = ssd(&mut bench, (MODEL_NS, 1), &mut |_| Ok(())).unwrap();
        let mut file = ssd::file_of(&drive, size_bytes);
        ssd::fit_build(&mut file, &drive, (size_bytes, 1)).unwrap();
        let back = ssd::model_of(&file, size_bytes, true, 2).unwrap();
        (drive, back)
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
            let figures = ssd::file_of(&drive, 4 << 30).figures();
            figures.into_iter().find(|figure| figure["field"] == "power_loss_protected").unwrap()["text"].clone()
        };
        assert_eq!((figure("ssd-s4600"), figure("ssd-sata")), ("true".into(), "false".into()));
    }
}
