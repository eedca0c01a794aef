//! `dbdyno-disk fit`: a drive file from a drive, by timing requests.
//!
//! A [`bench::Bench`] answers requests: a device in real time, or a model in virtual time, which must give back what
//! its drive file says. The rest is the same for both: `rotation` and `tracks`, which has the seeks too, each time what
//! they need and make estimates of it; `hdd` goes through them in order, `ssd` does so for a drive that does not turn,
//! and both make a drive file of their estimates. At the end the model is checked against the drive.
//!
//! Cannot: defects and spare sectors inside a zone, a disk that answers most reads from a cache of flash.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::{Args, value_parser};
use dbdyno_common::size;
use serde_json::{Value, json};

use self::bench::{Bench, DeviceBench, ModelBench};
use self::drive_file::{DriveFile, Estimate};
use self::hdd::Hdd;
use self::rotation::{PROBE_BYTES, hit_ns, revolution};
use self::ssd::Ssd;
use crate::error::DiskError;
use crate::process::print_line;

mod bench;
mod drive_file;
mod hdd;
mod rotation;
mod ssd;
mod tracks;

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
        let drive = ssd::ssd(bench, (limit_ns, seed), say)?;
        say("model")?;
        let mut file = ssd::file_of(&drive, size_bytes);
        name_file(&mut file, format!("Solid-state drive fitted from {name}: {}", gb(size_bytes)));
        ssd::fit_build(&mut file, &drive, (size_bytes, seed))?;
        let model = ssd::model_of(&file, size_bytes, drive.writes.is_some(), seed)?;
        let checks = ssd_checks(&drive, &model);
        let mut notes = Vec::new();
        if bench.is_said_to_turn() {
            notes.push(format!(
                "the kernel says that {name} turns, but response times show no revolution; it is taken for a solid-state \
                 drive. If it is a disk, measure again when nothing else runs, or give more --time"
            ));
        }
        notes.extend(uneven(&drive.reads_ns));
        let shortest = drive.read_latency.first().map_or(0.0, |(_, latency)| latency.value);
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
    let drive = hdd::hdd(bench, turn, hit, (limit_ns, seed), say)?;
    let drive = drive.ok_or_else(|| DiskError::Usage(no_tracks(name)))?;
    say("model")?;
    let mut file = hdd::file_of(&drive, size_bytes);
    let rpm = 60e9 / drive.revolution_ns.value;
    name_file(&mut file, format!("Hard disk fitted from {name}: {rpm:.0} rpm, {}", gb(size_bytes)));
    hdd::fit_queue(&mut file, &drive, (size_bytes, seed))?;
    let model = hdd::model_queue(&file, size_bytes, seed)?;
    Ok(Outcome {
        checks: hdd_checks(&drive, &model),
        elapsed_ns: bench.now_ns(),
        cut_short: drive.cut_short,
        notes: vec![],
        shortest: ("a tenth of a revolution", drive.revolution_ns.value / 10.0),
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

/// A smaller device has too few tracks.
const SIZE_BYTES_MIN: u64 = 256 << 20;

fn gb(bytes: u64) -> String {
    format!("{:.1} GB", bytes as f64 / 1e9)
}

fn name_file(file: &mut DriveFile, title: String) {
    file.title = title;
    file.notes.push("Written by dbdyno disk fit. Intervals contain the figure with 95 % confidence.".into());
}

/// What a fit comes to.
pub struct Outcome {
    pub file: DriveFile,
    pub checks: Vec<Value>,
    /// How long the drive was looked at.
    pub elapsed_ns: u64,
    pub cut_short: Vec<&'static str>,
    /// What a reader of the figures must know.
    pub notes: Vec<String>,
    /// The shortest time that was to be measured, and its name.
    pub shortest: (&'static str, f64),
    /// How late the host wakes programs, where it was one that measured.
    pub late: Option<Lateness>,
}

impl Outcome {
    /// How late the host was while it measured.
    pub fn add_lateness(&mut self, late: &Lateness) {
        self.file.notes.push(late.describe());
        self.notes.extend(late.warning(self.shortest.0, self.shortest.1));
        self.late = Some(late.clone());
    }

    /// As it is printed.
    pub fn json(&self) -> Value {
        json!({
            "drive_file": self.file.text(), "figures": self.file.figures(), "checks": self.checks,
            "seconds": self.elapsed_ns as f64 / 1e9, "cut_short": self.cut_short, "notes": self.notes,
            "host": self.late.as_ref().map(Lateness::json),
        })
    }
}

/// One figure of both; that of the model is missing where the model was not asked.
pub fn check(what: &str, drive: Estimate, model: Option<f64>) -> Value {
    let mut check = json!({"what": what, "drive": drive.json()});
    if let (Some(model), Some(check)) = (model, check.as_object_mut()) {
        check.insert("model".into(), model.into());
    }
    check
}

fn exact(value: f64) -> Estimate {
    Estimate::new(value, value, value, 1)
}

/// Of a hard disk: `model` has the reads a second of the model, by depth.
fn hdd_checks(drive: &Hdd, model: &[(u64, Estimate)]) -> Vec<Value> {
    let queue = drive.queue.iter().zip(model);
    let rates = queue.map(|((depth, drive), (_, model))| {
        check(&format!("random reads/s, depth {depth}"), *drive, Some(model.value))
    });
    let mut checks: Vec<Value> = rates.collect();
    checks.push(check("sequential MB/s, beginning", exact(drive.sequential.0 / 1e6), None));
    checks.push(check("sequential MB/s, end", exact(drive.sequential.1 / 1e6), None));
    if let Some(writes) = &drive.writes {
        let named = ["write, us", "FLUSH after a random write, us", "FLUSH after 8 random writes, us"];
        let figures = named.into_iter().zip([writes.write, writes.flush_after[0], writes.flush_after[1]]);
        checks.extend(figures.filter_map(|(what, figure)| Some(check(what, us(figure?), None))));
    }
    checks
}

fn us(estimate: Estimate) -> Estimate {
    estimate.map(|ns| ns / 1e3)
}

/// Of a solid-state drive.
fn ssd_checks(drive: &Ssd, model: &Ssd) -> Vec<Value> {
    let mut checks = Vec::new();
    for ((bytes, latency), (_, model_latency)) in drive.read_latency.iter().zip(&model.read_latency) {
        checks.push(check(&format!("read of {} KiB, us", bytes / 1024), us(*latency), Some(model_latency.value / 1e3)));
    }
    for ((depth, rate), (_, model_rate)) in drive.read_rate.iter().zip(&model.read_rate) {
        checks.push(check(&format!("random reads/s, depth {depth}"), *rate, Some(model_rate.value)));
    }
    let rate = |ssd: &Ssd| ssd.sequential_read.map(|rate| rate / 1e6);
    checks.push(check("sequential read MB/s", rate(drive), Some(rate(model).value)));
    if let (Some(writes), Some(model_writes)) = (&drive.writes, &model.writes) {
        let pairs = [
            ("write of 4 KiB, us", writes.write_latency.map(us), model_writes.write_latency.map(us)),
            ("FLUSH after a write, us", writes.flush.map(us), model_writes.flush.map(us)),
            ("random writes/s, depth 32", Some(writes.write_rate), Some(model_writes.write_rate)),
            ("long write MB/s", mb(writes.after_full), mb(model_writes.after_full)),
        ];
        checks.extend(pairs.into_iter().filter_map(|(what, value, model_value)| {
            Some(check(what, value?, model_value.map(|model_value| model_value.value)))
        }));
    }
    checks
}

fn mb(rate: Option<Estimate>) -> Option<Estimate> {
    rate.map(|rate| rate.map(|rate| rate / 1e6))
}

/// What is slept for, and how often.
const SLEEP: Duration = Duration::from_micros(200);
const SLEEPS: usize = 250;
/// Above this part of the shortest time that is to be measured the host's lateness shows in the figures.
const LATENESS_SHARE_MAX: f64 = 0.1;

/// Single reads of a drive that has nothing else to do, on a host that has nothing else to do, do not differ so much.
const UNEVEN: f64 = 3.0;

/// A warning if latencies of single reads differ as they do where something else is at work.
pub fn uneven(reads_ns: &[f64]) -> Option<String> {
    let mut sorted = reads_ns.to_vec();
    sorted.sort_by(f64::total_cmp);
    let us = |percent: usize| sorted.get(sorted.len() * percent / 100).map(|ns| ns / 1e3);
    let (low, high) = (us(10)?, us(90)?);
    (high > UNEVEN * low).then(|| {
        format!(
            "single reads of 4 KiB took {low:.0} to {high:.0} us (10th and 90th percentile), as if the drive or the host were \
             busy with something else: measure again when nothing else runs"
        )
    })
}

/// How late sleeps ended, ns.
#[derive(Debug, Clone, Default)]
pub struct Lateness(Vec<f64>);

impl Lateness {
    /// Sleeps for a while, and adds how late each sleep ended.
    pub fn look(&mut self) {
        self.0.extend((0..SLEEPS).map(|_| {
            let began = Instant::now();
            std::thread::sleep(SLEEP);
            began.elapsed().saturating_sub(SLEEP).as_nanos() as f64
        }));
        self.0.sort_by(f64::total_cmp);
    }

    fn percentile_us(&self, percent: usize) -> f64 {
        let index = self.0.len() * percent / 100;
        self.0.get(index).map_or(0.0, |ns| ns / 1e3)
    }

    pub fn json(&self) -> Value {
        json!({"late_us_p50": self.percentile_us(50), "late_us_p95": self.percentile_us(95)})
    }

    /// A line for the drive file.
    pub fn describe(&self) -> String {
        let (median, high) = (self.percentile_us(50), self.percentile_us(95));
        format!("The host woke a waiting program {median:.0} us late (median; 95th percentile {high:.0} us).")
    }

    /// A warning, if that is much of the shortest time that is measured.
    pub fn warning(&self, what: &str, shortest_ns: f64) -> Option<String> {
        let (late, shortest) = (self.percentile_us(95), shortest_ns / 1e3);
        (late > LATENESS_SHARE_MAX * shortest).then(|| {
            format!(
                "this host wakes programs up to {late:.0} us late (95th percentile), and {what} takes {shortest:.0} us: \
                 figures and intervals include the host's time; measure again when nothing else runs on it"
            )
        })
    }
}

/// What `fit` was asked.
#[derive(Debug, Args)]
pub struct FitArgs {
    /// A block device, which is only read
    #[arg(long, value_name = "DEVICE", required_unless_present = "model")]
    pub on: Option<PathBuf>,
    /// A drive model instead, in virtual time
    #[arg(long, value_name = "NAME", conflicts_with = "on")]
    pub model: Option<String>,
    /// Size of the model's disk; else that of its drive
    #[arg(long = "size", value_name = "BYTES", value_parser = bytes, conflicts_with = "on")]
    pub size_bytes: Option<u64>,
    /// Write to the device, too: its content is lost
    #[arg(long)]
    pub write: bool,
    /// About how long to measure; stages that this cuts short are named
    #[arg(long, default_value_t = 120, value_parser = value_parser!(u64).range(5..=86_400))]
    pub seconds: u64,
    /// Seed of the random places
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
}

fn bytes(text: &str) -> Result<u64, String> {
    size::bytes(text).filter(|bytes| *bytes > 0).ok_or_else(|| "not a number of bytes, such as 4GiB".into())
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
    fn field(drive: &Hdd, size_bytes: u64, field: &str) -> f64 {
        let figures = hdd::file_of(drive, size_bytes).figures();
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
            let close = |what: &str, value: f64, other: f64, part: f64| {
                assert!((value / other).ln().abs() < part, "{name}, {what}: {value} for {other}");
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

    #[test]
    fn a_host_is_heard_where_it_is_late_by_a_tenth() {
        let late = Lateness((0..100).map(|index| f64::from(index) * 1e3).collect());
        assert_eq!(late.json(), json!({"late_us_p50": 50.0, "late_us_p95": 95.0}));
        assert!(late.warning("a read", 960e3).is_none());
        assert!(
            late.warning("a read", 940e3)
                .is_some_and(|warning| warning.contains("95 us late") && warning.contains("940 us"))
        );
    }

    #[test]
    fn single_reads_that_differ_much_are_said_to() {
        let reads = |slow: f64| [vec![90e3; 80], vec![slow; 20]].concat();
        assert_eq!(uneven(&reads(250e3)), None);
        assert!(uneven(&reads(300e3)).is_some_and(|warning| warning.contains("90 to 300 us")));
        assert_eq!(uneven(&[]), None);
    }

    #[test]
    fn a_sleep_is_looked_at() {
        let mut late = Lateness::default();
        late.look();
        assert_eq!(late.0.len(), SLEEPS);
        assert!(late.0[0] >= 0.0 && late.percentile_us(95) >= late.percentile_us(50));
    }
}
