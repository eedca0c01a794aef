//! The end of a fit: its command line, the checks of the model against the drive, and the share of the host in an answer's time.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::{Args, value_parser};
use dbdyno_common::size;
use serde_json::{Value, json};

use super::drive_file::{DriveFile, Estimate};
use super::hdd::Hdd;
use super::ssd::Ssd;

/// A smaller device has too few tracks.
pub const SIZE_BYTES_MIN: u64 = 256 << 20;

pub fn gb(bytes: u64) -> String {
    format!("{:.1} GB", bytes as f64 / 1e9)
}

pub fn name_file(file: &mut DriveFile, title: String) {
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
pub fn hdd_checks(drive: &Hdd, model: &[(u64, Estimate)]) -> Vec<Value> {
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
pub fn ssd_checks(drive: &Ssd, model: &Ssd) -> Vec<Value> {
    let mut checks = Vec::new();
    for ((bytes, one), (_, other)) in drive.read_latency.iter().zip(&model.read_latency) {
        checks.push(check(&format!("read of {} KiB, us", bytes / 1024), us(*one), Some(other.value / 1e3)));
    }
    for ((depth, one), (_, other)) in drive.read_rate.iter().zip(&model.read_rate) {
        checks.push(check(&format!("random reads/s, depth {depth}"), *one, Some(other.value)));
    }
    let rate = |found: &Ssd| found.sequential_read.map(|rate| rate / 1e6);
    checks.push(check("sequential read MB/s", rate(drive), Some(rate(model).value)));
    if let (Some(one), Some(other)) = (&drive.writes, &model.writes) {
        let pairs = [
            ("write of 4 KiB, us", one.write_latency.map(us), other.write_latency.map(us)),
            ("FLUSH after a write, us", one.flush.map(us), other.flush.map(us)),
            ("random writes/s, depth 32", Some(one.write_rate), Some(other.write_rate)),
            ("long write MB/s", mb(one.after_full), mb(other.after_full)),
        ];
        checks.extend(
            pairs.into_iter().filter_map(|(what, one, other)| Some(check(what, one?, other.map(|other| other.value)))),
        );
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

fn bytes(given: &str) -> Result<u64, String> {
    size::bytes(given).filter(|bytes| *bytes > 0).ok_or_else(|| "not a number of bytes, such as 4GiB".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_heard_where_it_is_late_by_a_tenth() {
        let late = Lateness((0..100).map(|index| f64::from(index) * 1e3).collect());
        assert_eq!(late.json(), json!({"late_us_p50": 50.0, "late_us_p95": 95.0}));
        assert!(late.warning("a read", 960e3).is_none());
        assert!(
            late.warning("a read", 940e3).is_some_and(|said| said.contains("95 us late") && said.contains("940 us"))
        );
    }

    #[test]
    fn single_reads_that_differ_much_are_said_to() {
        let reads = |slow: f64| [vec![90e3; 80], vec![slow; 20]].concat();
        assert_eq!(uneven(&reads(250e3)), None);
        assert!(uneven(&reads(300e3)).is_some_and(|said| said.contains("90 to 300 us")));
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
