//! What a drive did, and what the model of its drive file does when it is asked the same.

use serde_json::{Value, json};

use super::estimate::Estimate;
use super::hdd::Hdd;
use super::ssd::Ssd;

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
pub fn of_hdd(drive: &Hdd, model: &[(u64, Estimate)]) -> Vec<Value> {
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
pub fn of_ssd(drive: &Ssd, model: &Ssd) -> Vec<Value> {
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
