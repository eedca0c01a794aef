//! Latencies by kind, size and depth: of the drive in its trace, and of a model that is sent the same.

use std::collections::BTreeMap;

use dbdyno_device::{DeviceModel, Kind};
use serde_json::Value;

use super::replay::replay;
use super::requests::Request;
use crate::fit::checks::check;
use crate::fit::estimate::Estimate;

/// Fewer requests make no class.
const CLASS_MIN: usize = 30;

/// Requests of one kind, of so many bytes up to less than twice as many, and with so many outstanding up to less than
/// twice as many.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Class {
    /// 0: reads, 1: writes, 2: FLUSH.
    kind: u8,
    pub bytes: u64,
    pub depth: u32,
}

impl Class {
    fn of(request: &Request) -> Self {
        let kind = match request.kind {
            Kind::Read => 0,
            Kind::Write | Kind::Discard => 1,
            Kind::Flush => 2,
        };
        Self { kind, bytes: below(request.bytes), depth: below(u64::from(request.depth)) as u32 }
    }

    pub fn is_read(self) -> bool {
        self.kind == 0
    }

    pub fn is_flush(self) -> bool {
        self.kind == 2
    }

    fn name(self) -> String {
        let Self { bytes, depth, .. } = self;
        let size = if bytes < 1024 { format!("{bytes} bytes") } else { format!("{} KiB", bytes / 1024) };
        match self.kind {
            0 => format!("read of {size}, depth {depth}, us"),
            1 => format!("write of {size}, depth {depth}, us"),
            _ => format!("FLUSH, depth {depth}, us"),
        }
    }
}

/// The power of two at or below.
fn below(number: u64) -> u64 {
    number.checked_ilog2().map_or(0, |bits| 1 << bits)
}

/// Latencies of a class, ns.
#[derive(Debug, Clone, Copy)]
pub struct Latencies {
    /// Without the lowest and highest twentieth.
    pub mean: Estimate,
    /// The 95th percentile: how unevenly those that wait get their turn.
    pub slow: f64,
}

/// By class.
pub type Profile = BTreeMap<Class, Latencies>;

/// What a drive did with its requests.
pub fn of_trace(requests: &[Request]) -> Profile {
    profile(requests, |index| requests[index].latency_ns())
}

/// What a model does with them.
pub fn of_model(model: &mut dyn DeviceModel, requests: &[Request]) -> Profile {
    let took_ns = replay(model, requests);
    profile(requests, |index| took_ns[index])
}

fn profile(requests: &[Request], took_ns: impl Fn(usize) -> f64) -> Profile {
    let mut classes = BTreeMap::<Class, Vec<f64>>::new();
    for (index, request) in requests.iter().enumerate() {
        classes.entry(Class::of(request)).or_default().push(took_ns(index));
    }
    classes.retain(|_, taken| taken.len() >= CLASS_MIN);
    classes.into_iter().filter_map(|(class, taken)| Some((class, latencies(taken)?))).collect()
}

fn latencies(mut taken_ns: Vec<f64>) -> Option<Latencies> {
    taken_ns.sort_by(f64::total_cmp);
    Some(Latencies { mean: Estimate::trimmed_mean(&taken_ns)?, slow: taken_ns[taken_ns.len() * 95 / 100] })
}

/// How far the means and the slow ones of a model are off in the classes that count, as the root of the mean square of
/// logarithms.
pub fn error(drive: &Profile, model: &Profile, counts: impl Fn(Class) -> bool) -> f64 {
    let counting = drive.iter().filter(|(class, _)| counts(**class));
    let pairs = counting.filter_map(|(class, drive)| Some((drive, model.get(class)?)));
    let ratio = |drive: f64, model: f64| (model.max(1.0) / drive.max(1.0)).ln();
    let off = |(drive, model): (&Latencies, &Latencies)| {
        [ratio(drive.mean.value, model.mean.value), ratio(drive.slow, model.slow)]
    };
    let squares: Vec<f64> = pairs.flat_map(off).map(|ratio| ratio * ratio).collect();
    (squares.iter().sum::<f64>() / squares.len().max(1) as f64).sqrt()
}

/// Each class of both.
pub fn checks(drive: &Profile, model: &Profile) -> Vec<Value> {
    let us = |found: &Latencies| found.mean.map(|ns| ns / 1e3);
    let row = |(class, found): (&Class, &Latencies)| {
        check(&class.name(), us(found), model.get(class).map(|model| model.mean.value / 1e3))
    };
    drive.iter().map(row).collect()
}
