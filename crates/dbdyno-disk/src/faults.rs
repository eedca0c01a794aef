//! Faults that are put into a disk on purpose: late answers, errors, a request that hangs.

use dbdyno_device::Kind;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use dbdyno_common::random::Random;

/// What a fault does to a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FaultKind {
    /// The answer comes later than the drive would give it. The drive goes on with others meanwhile.
    Latency,
    /// It fails with an I/O error. A write leaves the content as it was.
    Eio,
    /// It is answered only when the fault is cleared or its time is over. Hits one request.
    Stuck,
}

/// Which kinds of request a fault is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FaultTarget {
    /// Reads alone.
    Read,
    /// Writes, and what also changes the medium: FLUSH and discard.
    Write,
    /// Everything.
    #[default]
    All,
}

impl FaultTarget {
    fn takes(self, kind: Kind) -> bool {
        match self {
            Self::All => true,
            Self::Read => kind == Kind::Read,
            Self::Write => kind != Kind::Read,
        }
    }
}

/// A fault as it is asked for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FaultSpec {
    pub kind: FaultKind,
    /// How much later than without it, of a latency.
    #[serde(default)]
    pub extra_ns: u64,
    #[serde(default)]
    pub target: FaultTarget,
    /// First byte and first byte after; requests that touch it are hit. A FLUSH has no place, so none with a range hits
    /// it.
    pub range_bytes: Option<(u64, u64)>,
    /// Hits every nth of the requests it is for.
    pub every: Option<u64>,
    /// Hits each of the requests it is for with this probability.
    pub probability: Option<f64>,
    /// How long it lasts; until it is cleared, if not given.
    pub for_ns: Option<u64>,
    #[serde(default)]
    pub seed: u64,
}

impl FaultSpec {
    /// Whether it makes sense; the error is for people.
    pub fn check(&self) -> Result<(), String> {
        if self.kind == FaultKind::Latency && self.extra_ns == 0 {
            return Err("extra_ns of a latency is missing or 0".into());
        }
        if self.kind != FaultKind::Latency && self.extra_ns != 0 {
            return Err("extra_ns is for a latency only".into());
        }
        if let Some((start, end)) = self.range_bytes.filter(|(start, end)| start >= end) {
            return Err(format!("the range {start}-{end} is empty"));
        }
        if self.every == Some(0) {
            return Err("every 0th request: it is every 1st, 2nd, 3rd, ...".into());
        }
        if let Some(probability) = self.probability.filter(|probability| !(*probability > 0.0 && *probability <= 1.0)) {
            return Err(format!("a probability of {probability} is not above 0 and at most 1"));
        }
        if self.every.is_some() && self.probability.is_some() {
            return Err("every and probability exclude each other".into());
        }
        Ok(())
    }

    fn is_for(&self, kind: Kind, offset_bytes: u64, length_bytes: u64) -> bool {
        self.target.takes(kind)
            && self.range_bytes.is_none_or(|(start, end)| {
                kind != Kind::Flush && offset_bytes < end && offset_bytes.saturating_add(length_bytes) > start
            })
    }
}

/// A fault at work.
struct Fault {
    id: u64,
    spec: FaultSpec,
    until_ns: u64,
    random: Random,
    /// Requests it was for, and those it hit.
    seen: u64,
    hits: u64,
}

impl Fault {
    fn hits(&mut self) -> bool {
        self.seen += 1;
        let hit = match (self.spec.kind, self.spec.every, self.spec.probability) {
            (FaultKind::Stuck, ..) if self.hits > 0 => false,
            (_, Some(every), _) => self.seen.is_multiple_of(every),
            (_, _, Some(probability)) => self.random.chance(probability),
            _ => true,
        };
        self.hits += u64::from(hit);
        hit
    }
}

/// What becomes of one request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FaultDecision {
    pub fails: bool,
    pub extra_ns: u64,
    /// The fault that holds it.
    pub held_by: Option<u64>,
}

/// All faults of a disk.
#[derive(Default)]
pub struct Faults {
    list: Vec<Fault>,
    made: u64,
}

impl Faults {
    pub fn add(&mut self, now_ns: u64, spec: FaultSpec) {
        self.made += 1;
        self.list.push(Fault {
            id: self.made,
            until_ns: spec.for_ns.map_or(u64::MAX, |length_ns| now_ns.saturating_add(length_ns)),
            random: Random::new(spec.seed),
            spec,
            seen: 0,
            hits: 0,
        });
    }

    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    pub fn clear(&mut self) {
        self.list.clear();
    }

    /// Drops what is over by `now_ns`.
    pub fn expire(&mut self, now_ns: u64) {
        self.list.retain(|fault| fault.until_ns > now_ns);
    }

    /// When the next one is over; `u64::MAX` if none ever is.
    pub fn next_expiry_ns(&self) -> u64 {
        self.list.iter().map(|fault| fault.until_ns).min().unwrap_or(u64::MAX)
    }

    /// Whether a fault is still at work.
    pub fn holds(&self, id: u64) -> bool {
        self.list.iter().any(|fault| fault.id == id)
    }

    /// What becomes of a request that arrives now.
    pub fn decision(&mut self, now_ns: u64, kind: Kind, offset_bytes: u64, length_bytes: u64) -> FaultDecision {
        self.expire(now_ns);
        let mut decision = FaultDecision::default();
        for fault in &mut self.list {
            if fault.spec.is_for(kind, offset_bytes, length_bytes) && fault.hits() {
                match fault.spec.kind {
                    FaultKind::Latency => decision.extra_ns = decision.extra_ns.saturating_add(fault.spec.extra_ns),
                    FaultKind::Eio => decision.fails = true,
                    FaultKind::Stuck => decision.held_by = Some(fault.id),
                }
            }
        }
        decision
    }

    pub fn json(&self, now_ns: u64) -> Value {
        let left = |fault: &Fault| fault.spec.for_ns.map(|_| fault.until_ns.saturating_sub(now_ns));
        let list = self.list.iter().map(|fault| {
            let mut described = json!(fault.spec);
            (described["left_ns"], described["seen"], described["hits"]) =
                (json!(left(fault)), fault.seen.into(), fault.hits.into());
            described
        });
        Value::Array(list.collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(text: &str) -> FaultSpec {
        serde_json::from_str(text).unwrap()
    }

    fn hits(text: &str, requests: u64) -> Vec<bool> {
        let mut faults = Faults::default();
        faults.add(0, spec(text));
        (0..requests).map(|at| faults.decision(at, Kind::Read, at * 4096, 4096).fails).collect()
    }

    #[test]
    fn every_nth_and_a_range_hit_exactly_those() {
        let third = hits(r#"{"kind":"eio","every":3}"#, 9);
        assert_eq!(third, [false, false, true, false, false, true, false, false, true]);
        let range = hits(r#"{"kind":"eio","range_bytes":[4097,8193]}"#, 4);
        assert_eq!(range, [false, true, true, false]);
    }

    #[test]
    fn chances_follow_the_seed() {
        let of = |seed: u64| hits(&format!(r#"{{"kind":"eio","probability":0.3,"seed":{seed}}}"#), 10_000);
        assert_eq!(of(1), of(1));
        assert_ne!(of(1), of(2));
        let share = of(1).iter().filter(|hit| **hit).count() as f64 / 1e4;
        assert!((share - 0.3).abs() < 0.02, "{share}");
    }

    #[test]
    fn target_and_end_are_kept() {
        let mut faults = Faults::default();
        faults.add(0, spec(r#"{"kind":"latency","extra_ns":5,"target":"write","for_ns":100}"#));
        assert_eq!(faults.decision(1, Kind::Read, 0, 512), FaultDecision::default());
        assert_eq!(faults.decision(1, Kind::Flush, 0, 0).extra_ns, 5);
        assert_eq!(faults.next_expiry_ns(), 100);
        assert_eq!(faults.decision(100, Kind::Write, 0, 512), FaultDecision::default());
        assert!(faults.is_empty());
    }

    #[test]
    fn only_one_request_gets_stuck() {
        let mut faults = Faults::default();
        faults.add(0, spec(r#"{"kind":"stuck"}"#));
        assert_eq!(faults.decision(1, Kind::Write, 0, 512).held_by, Some(1));
        assert_eq!(faults.decision(1, Kind::Write, 0, 512).held_by, None);
        assert!(faults.holds(1));
        faults.clear();
        assert!(!faults.holds(1));
    }

    #[test]
    fn latencies_without_end_add_up_to_one() {
        let mut faults = Faults::default();
        (0..2).for_each(|_| faults.add(0, spec(r#"{"kind":"latency","extra_ns":18446744073709551615}"#)));
        assert_eq!(faults.decision(1, Kind::Read, 0, 512).extra_ns, u64::MAX);
    }

    #[test]
    fn nonsense_is_named() {
        for (text, words) in [
            (r#"{"kind":"latency"}"#, "extra_ns"),
            (r#"{"kind":"eio","extra_ns":5}"#, "latency only"),
            (r#"{"kind":"eio","range_bytes":[5,5]}"#, "5-5 is empty"),
            (r#"{"kind":"eio","every":0}"#, "0th"),
            (r#"{"kind":"eio","probability":1.5}"#, "1.5"),
            (r#"{"kind":"eio","probability":0.5,"every":2}"#, "exclude"),
        ] {
            let message = spec(text).check().unwrap_err();
            assert!(message.contains(words), "{text}: {message}");
        }
    }
}
