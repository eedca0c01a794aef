//! A trace as a load, and what a trace holds.

use std::cell::RefCell;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::rc::Rc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::load::Load;
use super::spec::{Point, PointError, typed};
use crate::queue::Bio;
use crate::source::{Pace, Replay, Source, Step};
use crate::trace::{Begin, Findings, ReadOptions, Record, Trace};

/// Which trace, and how it is replayed.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TraceSpec {
    /// Paths of its files; several are those of blktrace, one a CPU.
    files: Vec<String>,
    /// One of [`Format::ALL`]; by how it begins if there is none.
    format: Option<String>,
    /// Unit of its times, where its format leaves that open: `s`, `ms`, `us`, `100ns` or `ns`.
    time_unit: Option<String>,
    /// Unit of its places and lengths, likewise: `sectors` or `bytes`.
    length_unit: Option<String>,
    /// What ends beyond the device is folded onto it instead of left out.
    #[serde(default)]
    fold: bool,
    /// Which moment of a request is its beginning, in formats that tell of several.
    #[serde(default)]
    begin: BeginName,
    /// Which of the trace's devices; needed where it holds several.
    device: Option<String>,
    /// What becomes of recorded times.
    #[serde(default)]
    replay: PaceName,
    /// Recorded times are divided by it, in an open replay.
    speed: Option<f64>,
    /// Only what was asked for between these two recorded times, seconds; all of it if there are none.
    window_s: Option<(f64, f64)>,
}

#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum BeginName {
    #[default]
    Queued,
    Issued,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum PaceName {
    #[default]
    Open,
    Closed,
}

impl TraceSpec {
    fn open(&self, device_sectors: Option<u64>) -> Result<Trace, PointError> {
        let begin = match self.begin {
            BeginName::Queued => Begin::Queued,
            BeginName::Issued => Begin::Issued,
        };
        let ask = ReadOptions { begin, device_sectors, fold: self.fold, ..ReadOptions::default() }
            .by_names(self.format.as_deref(), self.time_unit.as_deref(), self.length_unit.as_deref())
            .map_err(|(field, problem)| PointError::new(format!("load.{field}"), problem))?;
        let open = |(at, path): (usize, &String)| -> Result<Box<dyn BufRead>, PointError> {
            let file = File::open(path)
                .map_err(|error| PointError::new(format!("load.files[{at}]"), format!("{path}: {error}")))?;
            Ok(Box::new(BufReader::with_capacity(1 << 18, file)))
        };
        let files = self.files.iter().enumerate().map(open).collect::<Result<Vec<_>, _>>()?;
        Trace::open(files, ask)
            .map_err(|error| PointError::new("load.files", format!("{}: {error}", self.files.join(", "))))
    }

    /// Whether a request of this recorded time is replayed.
    fn holds(&self, at_ns: u64) -> bool {
        let asked_s = at_ns as f64 / 1e9;
        self.window_s.is_none_or(|(from_s, until_s)| (from_s..until_s).contains(&asked_s))
    }

    fn pace(&self) -> Result<Pace, PointError> {
        match (self.replay, self.speed) {
            (PaceName::Closed, None) => Ok(Pace::Closed),
            (PaceName::Closed, Some(_)) => Err(PointError::new("load.speed", "is for an open replay; leave it out")),
            (PaceName::Open, speed) => {
                let speed = speed.unwrap_or(1.0);
                if !(1e-6..=1e6).contains(&speed) {
                    return Err(PointError::new("load.speed", format!("{speed} is not between 0.000001 and 1000000")));
                }
                Ok(Pace::Open { speed })
            }
        }
    }
}

/// The trace as both the replay and the outcome see it.
struct Reading {
    trace: Trace,
    spec: TraceSpec,
    passed_by: u64,
    failure: Option<PointError>,
}

impl Reading {
    /// The next request of the chosen device; `None` at the end, or where there is nothing to go on with.
    fn next(&mut self) -> Option<Record> {
        while self.failure.is_none() {
            let record = match self.trace.next()? {
                Ok(record) => record,
                Err(error) => {
                    self.failure = Some(PointError::new("load.files", error));
                    return None;
                }
            };
            let devices = &self.trace.findings().devices;
            match &self.spec.device {
                Some(wanted) if devices.get(usize::from(record.device)) != Some(wanted) => self.passed_by += 1,
                None if devices.len() > 1 => {
                    let problem = format!("the trace has several devices ({}); choose one", devices.join("; "));
                    self.failure = Some(PointError::new("load.device", problem));
                }
                _ if self.spec.holds(record.at_ns) => return Some(record),
                _ => {}
            }
        }
        None
    }
}

struct Records(Rc<RefCell<Reading>>);

impl Iterator for Records {
    type Item = Record;

    fn next(&mut self) -> Option<Record> {
        self.0.borrow_mut().next()
    }
}

/// A trace that is replayed.
struct Replayed {
    replay: Replay<Records>,
    reading: Rc<RefCell<Reading>>,
}

impl Source for Replayed {
    fn next_due(&self) -> Option<u64> {
        self.replay.next_due()
    }

    fn step(&mut self, now_ns: u64) -> Option<Step> {
        self.replay.step(now_ns)
    }

    fn asleep(&mut self, process: u32) {
        self.replay.asleep(process);
    }

    fn awake(&mut self, process: u32) {
        self.replay.awake(process);
    }

    fn finished(&mut self, now_ns: u64, bio: &Bio) {
        self.replay.finished(now_ns, bio);
    }
}

impl Load for Replayed {
    fn ends(&self) -> bool {
        true
    }

    fn remarks(&self) -> Map<String, Value> {
        let reading = self.reading.borrow();
        let remarks = json!({
            "replay": reading.spec.replay,
            "speed": reading.spec.speed.unwrap_or(1.0),
            "late_ns_max": self.replay.late_ns_max(),
            "without_wait": self.replay.without_wait(),
            "of_other_devices": reading.passed_by,
            "findings": findings_json(reading.trace.findings()),
        });
        if let Value::Object(remarks) = remarks { remarks } else { Map::new() }
    }

    fn failure(&self) -> Option<PointError> {
        self.reading.borrow().failure.clone()
    }
}

fn findings_json(findings: &Findings) -> Value {
    let damaged: Vec<_> =
        findings.first_damaged.iter().map(|damaged| json!({"line": damaged.line, "why": damaged.why})).collect();
    json!({
        "lines": findings.lines,
        "requests": findings.requests,
        "damaged": findings.damaged,
        "first_damaged": damaged,
        "backwards": findings.backwards,
        "backwards_ns_max": findings.backwards_ns_max,
        "beyond_device": findings.beyond_device,
        "folded": findings.folded,
        "text_before": findings.text_before,
        "notes": findings.notes,
        "without_end": findings.without_end,
        "passed_over": findings.passed_over,
        "devices": findings.devices,
    })
}

/// Makes the load of its fields.
pub(super) fn load(point: &Point, fields: Map<String, Value>) -> Result<Box<dyn Load>, PointError> {
    let spec: TraceSpec = typed("load", fields.into())?;
    let pace = spec.pace()?;
    let trace = spec.open(Some(point.sectors()))?;
    let reading = Reading { trace, spec, passed_by: 0, failure: None };
    let reading = Rc::new(RefCell::new(reading));
    let replay = Replay::new(Records(Rc::clone(&reading)), pace);
    Ok(Box::new(Replayed { replay, reading }))
}

/// What a trace holds.
#[derive(Debug, Default, Serialize)]
pub struct TraceSummary {
    /// Requests of the chosen device, or of all.
    pub requests: u64,
    /// Time from the first to the last, seconds.
    pub span_s: f64,
    /// First sector behind all of them.
    pub end_sector: u64,
    /// Requests of each device, by its name; empty where the trace names none.
    pub devices: Vec<(String, u64)>,
    /// What was odd.
    pub findings: Value,
}

/// Reads a trace once, to its end. `go_on` is asked every so many requests.
///
/// # Errors
/// [`PointError`] names the field; [`io::Error`]s of reading are those of `load.files`.
pub fn summary(load: &str, go_on: &mut dyn FnMut(u64) -> bool) -> Result<TraceSummary, PointError> {
    let fields = serde_json::from_str(load).map_err(|error| PointError::new("load", error))?;
    let spec: TraceSpec = typed("load", fields)?;
    let mut trace = spec.open(None)?;
    let (mut summary, mut counts) = (TraceSummary::default(), Vec::new());
    let (mut first_ns, mut last_ns, mut read) = (None, 0, 0_u64);
    while let Some(record) = trace.next() {
        let record = record.map_err(|error: io::Error| PointError::new("load.files", error))?;
        let place = usize::from(record.device);
        counts.resize(counts.len().max(place + 1), 0);
        counts[place] += 1;
        read += 1;
        if read.is_multiple_of(1 << 16) && !go_on(read) {
            return Err(PointError::new("load.files", "was not read to its end"));
        }
        let name = trace.findings().devices.get(place);
        if (spec.device.is_some() && spec.device.as_ref() != name) || !spec.holds(record.at_ns) {
            continue;
        }
        summary.requests += 1;
        first_ns = Some(first_ns.unwrap_or(record.at_ns).min(record.at_ns));
        last_ns = last_ns.max(record.at_ns);
        summary.end_sector = summary.end_sector.max(record.start_sector.saturating_add(record.sectors.into()));
    }
    summary.span_s = (last_ns - first_ns.unwrap_or(last_ns)) as f64 / 1e9;
    summary.devices = trace.findings().devices.iter().cloned().zip(counts).collect();
    summary.findings = findings_json(trace.findings());
    Ok(summary)
}
