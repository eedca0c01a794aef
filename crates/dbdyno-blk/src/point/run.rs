//! Runs a point: makes its load, passes commands to a drive that notes them, and gathers the outcome: a sample of the
//! drive's commands for a picture, the distances between them, and the course of time in a bounded number of intervals.

use std::sync::{Arc, Mutex, PoisonError};

use dbdyno_common::random::Random;
use dbdyno_common::results::{DirectionFigures, Outcome, OutcomeSeries, Sample, Seeks};
use dbdyno_device::{Command, Completion, DeviceModel, FastCache, Kind, WriteCache};
use hdrhistogram::Histogram;
use serde_json::{Map, Value};

use super::load::{self, Load, latencies};
use super::spec::{Model, Point, PointError};
use super::trace;
use crate::layer::Layer;
use crate::queue::Direction;
use crate::statistics::{Statistics, Totals, columns_between};

/// How far a simulation is.
#[derive(Debug, Clone, Copy)]
pub struct Progress {
    /// Simulated time, nanoseconds since the load began.
    pub now_ns: u64,
    /// Requests finished.
    pub requests: u64,
}

/// Bios and requests of a slice of time after which one asks whether to go on: some milliseconds of a processor.
const SLICE_EVENTS: u64 = 10_000;

/// The first slice, nanoseconds; later ones adapt to how much happens.
const SLICE_NS: u64 = 1_000_000;

/// Simulates a point. Every so often `go_on` hears how far it is, and may say no.
///
/// # Errors
/// [`PointError`] names the field that is wrong, or `point` where `go_on` said no.
pub fn simulate(point: &Point, go_on: &mut dyn FnMut(Progress) -> bool) -> Result<Outcome, PointError> {
    let mut run = Run::new(point)?;
    let warm_up_ns = point.warm_up_ns();
    run.until(warm_up_ns, go_on)?;
    let start = Start::new(run.layer.statistics(), warm_up_ns, run.load.counts());
    let mut moments = Moments::new(point.interval_ns(), point.intervals_most);
    run.note(&mut moments, warm_up_ns);
    let end_ns = point.end_ns().unwrap_or(u64::MAX);
    while !run.has_ended && run.reached_ns < end_ns {
        run.until(moments.next_ns().min(end_ns), go_on)?;
        let at_ns = run.reached_ns;
        run.note(&mut moments, at_ns);
    }
    run.outcome(&start, &moments)
}

/// Counts at the end of the warm-up.
struct Start {
    totals: Totals,
    latencies: [Histogram<u64>; 2],
    requests: [[u64; 3]; 2],
    flushes: u64,
    counts: Vec<(&'static str, u64)>,
}

impl Start {
    fn new(statistics: &Statistics, at_ns: u64, counts: Vec<(&'static str, u64)>) -> Self {
        Self {
            totals: statistics.totals(at_ns),
            latencies: Direction::ALL.map(|direction| statistics.of(direction).latencies.clone()),
            requests: Direction::ALL.map(|direction| counts_of(statistics, direction)),
            flushes: statistics.flushes,
            counts,
        }
    }
}

fn counts_of(statistics: &Statistics, direction: Direction) -> [u64; 3] {
    let counts = statistics.of(direction);
    [counts.requests, counts.merges, counts.sectors]
}

/// A point that is being simulated.
struct Run {
    /// The drive and the kind of load, for what goes wrong.
    names: [String; 2],
    scheduler: &'static str,
    layer: Layer,
    load: Box<dyn Load>,
    notes: Notes,
    /// The last event.
    now_ns: u64,
    /// Up to when everything has happened.
    reached_ns: u64,
    slice_ns: u64,
    has_ended: bool,
}

impl Run {
    fn new(point: &Point) -> Result<Self, PointError> {
        let notes = Arc::new(Mutex::new(CommandNotes {
            seeks: Distances::default(),
            sampling: Sampling::new(point.seed, point.sample_most),
            from_ns: point.warm_up_ns(),
            commands: 0,
        }));
        let layer = point.layer(|model| note_commands(model, &notes))?;
        let scheduler = point.kernel()?.scheduler(point.scheduler.as_deref());
        let scheduler = scheduler.map_err(|error| PointError::new("scheduler", error))?.sysfs();
        let load = load(point)?;
        let names = [point.device.clone(), point.load["kind"].as_str().unwrap_or_default().to_owned()];
        Ok(Self {
            names,
            scheduler,
            layer,
            load,
            notes,
            now_ns: 0,
            reached_ns: 0,
            slice_ns: SLICE_NS,
            has_ended: false,
        })
    }

    /// Goes on until `end_ns`, or until the load has ended.
    fn until(&mut self, end_ns: u64, go_on: &mut dyn FnMut(Progress) -> bool) -> Result<(), PointError> {
        while !self.has_ended && self.reached_ns < end_ns {
            // Time in which nothing happens is passed over at once.
            let from_ns = self.next_due().unwrap_or(u64::MAX).clamp(self.reached_ns, end_ns);
            let to_ns = from_ns.saturating_add(self.slice_ns).min(end_ns);
            let before = self.events();
            self.now_ns = crate::run(&mut self.layer, &mut *self.load, self.now_ns, to_ns);
            if self.next_due().is_some_and(|due_ns| due_ns <= to_ns) {
                return Err(self.stands_still());
            }
            self.reached_ns = to_ns;
            let passed = self.events() - before;
            if passed > SLICE_EVENTS {
                self.slice_ns = (self.slice_ns / 2).max(1000);
            } else if passed < SLICE_EVENTS / 4 {
                self.slice_ns = (self.slice_ns * 2).min(1 << 30);
            }
            if let Some(failure) = self.load.failure() {
                return Err(failure);
            }
            self.has_ended = self.load.has_ended(self.layer.statistics().queued());
            if self.has_ended {
                self.reached_ns = self.now_ns;
            }
            let requests = Direction::ALL.map(|direction| self.layer.statistics().of(direction).requests);
            if !go_on(Progress { now_ns: self.reached_ns, requests: requests[0] + requests[1] }) {
                return Err(PointError::new("point", "was stopped"));
            }
        }
        Ok(())
    }

    fn next_due(&self) -> Option<u64> {
        [self.layer.next_due(), self.load.next_due()].into_iter().flatten().min()
    }

    fn stands_still(&self) -> PointError {
        let [device, load] = &self.names;
        let at_s = self.now_ns as f64 / 1e9;
        let problem = format!(
            "no virtual time passes: at {at_s} s the drive \"{device}\" takes no time, nor does the load of kind \"{load}\" \
             between its requests, so it would never end; give the drive a latency, such as ideal(latency_us=1), or the load a pause"
        );
        PointError::new("device", problem)
    }

    fn events(&self) -> u64 {
        let statistics = self.layer.statistics();
        Direction::ALL.map(|direction| statistics.of(direction).bios + statistics.of(direction).requests).iter().sum()
    }

    fn note(&self, moments: &mut Moments, at_ns: u64) {
        let statistics = self.layer.statistics();
        moments.add(statistics.totals(at_ns), statistics.queued(), self.load.as_ref());
    }

    fn outcome(&self, start: &Start, moments: &Moments) -> Result<Outcome, PointError> {
        let statistics = self.layer.statistics();
        let end_ns = self.reached_ns.max(start.totals.at_ns);
        let notes = self.notes.lock().unwrap_or_else(PoisonError::into_inner);
        let direction = |direction: Direction| -> Result<DirectionFigures, PointError> {
            let now = counts_of(statistics, direction);
            let [requests, merges, sectors] = std::array::from_fn(|at| now[at] - start.requests[direction.index()][at]);
            let mut histogram = statistics.of(direction).latencies.clone();
            histogram
                .subtract(&start.latencies[direction.index()])
                .map_err(|error| PointError::new("latencies", format!("{error:?}")))?;
            Ok(DirectionFigures { requests, merges, sectors, latency: latencies(&histogram)? })
        };
        let counts = self.load.counts();
        Ok(Outcome {
            scheduler: self.scheduler.into(),
            measured_s: (end_ns - start.totals.at_ns) as f64 / 1e9,
            has_ended: self.has_ended,
            queued: statistics.queued(),
            columns: columns_between(&start.totals, &statistics.totals(end_ns)),
            reads: direction(Direction::Read)?,
            writes: direction(Direction::Write)?,
            flushes: statistics.flushes - start.flushes,
            commands: notes.commands,
            counts: counts
                .iter()
                .zip(&start.counts)
                .map(|((name, now), (_, before))| ((*name).into(), now - before))
                .collect(),
            seeks: notes.seeks.trimmed(),
            series: moments.series(),
            sample: notes.sampling.sample(),
            load: self.load.remarks(),
        })
    }
}

type Make = fn(&Point, Map<String, Value>) -> Result<Box<dyn Load>, PointError>;

/// The kinds there are.
pub const KINDS: &[(&str, Make)] = &[
    ("commits", load::commits_load),
    ("ingest", load::ingest_load),
    ("jobs", load::jobs_load),
    ("trace", trace::load),
];

/// The load of a point.
pub(super) fn load(point: &Point) -> Result<Box<dyn Load>, PointError> {
    let mut fields = point.load.clone();
    let known = || KINDS.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
    let kind = match fields.remove("kind") {
        Some(Value::String(kind)) => kind,
        Some(other) => {
            return Err(PointError::new("load.kind", format!("{other} is not a name; the loads are {}", known())));
        }
        None => return Err(PointError::new("load.kind", format!("is missing; the loads are {}", known()))),
    };
    let Some((_, make)) = KINDS.iter().find(|(name, _)| *name == kind) else {
        return Err(PointError::new("load.kind", format!("there is no load \"{kind}\"; the loads are {}", known())));
    };
    let load = make(point, fields)?;
    if point.duration_s.is_none() && !load.ends() {
        return Err(PointError::new("duration_s", "is missing, and this load does not end by itself"));
    }
    Ok(load)
}

/// What was noted.
#[derive(Debug)]
pub(super) struct CommandNotes {
    pub seeks: Distances,
    pub sampling: Sampling,
    /// Commands before this time do not count.
    pub from_ns: u64,
    pub commands: u64,
}

/// Shared with the model, which the layer owns.
pub(super) type Notes = Arc<Mutex<CommandNotes>>;

struct NotingModel {
    model: Model,
    notes: Notes,
}

/// A model that notes its commands.
fn note_commands(model: Model, notes: &Notes) -> Model {
    Box::new(NotingModel { model, notes: Arc::clone(notes) })
}

impl CommandNotes {
    fn add(&mut self, now_ns: u64, command: &Command) {
        if now_ns < self.from_ns || !matches!(command.kind, Kind::Read | Kind::Write) {
            return;
        }
        let start_sector = command.offset_bytes / 512;
        self.commands += 1;
        self.seeks.add(start_sector, start_sector + command.length_bytes / 512);
        self.sampling.add(now_ns, start_sector, command.kind == Kind::Write);
    }
}

impl DeviceModel for NotingModel {
    fn submit(&mut self, now_ns: u64, command: Command) {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner).add(now_ns, &command);
        self.model.submit(now_ns, command);
    }

    fn next_due(&self) -> Option<u64> {
        self.model.next_due()
    }

    fn poll(&mut self, now_ns: u64, finished: &mut Vec<Completion>) {
        self.model.poll(now_ns, finished);
    }

    fn take_certain(&mut self, finished: &mut Vec<Completion>) {
        self.model.take_certain(finished);
    }

    fn write_cache(&self) -> WriteCache {
        self.model.write_cache()
    }

    fn ignores_flush(&self) -> bool {
        self.model.ignores_flush()
    }

    fn fast_cache(&self) -> Option<FastCache> {
        self.model.fast_cache()
    }

    fn gauges(&self) -> Vec<(&'static str, f64)> {
        self.model.gauges()
    }
}

/// Commands drawn with one probability, halved whenever there are too many.
#[derive(Debug, Clone)]
pub struct Sampling {
    random: Random,
    most: usize,
    /// One of 2^`halvings` is kept.
    halvings: u32,
    /// When, where, whether it is a write, and what was drawn for it.
    kept: Vec<(u64, u64, bool, u64)>,
}

impl Sampling {
    pub(super) fn new(seed: u64, most: usize) -> Self {
        Self { random: Random::new(!seed), most, halvings: 0, kept: Vec::new() }
    }

    pub(super) fn add(&mut self, now_ns: u64, sector: u64, is_write: bool) {
        if self.most == 0 {
            return;
        }
        let drawn = self.random.bits();
        if drawn.trailing_zeros() < self.halvings {
            return;
        }
        self.kept.push((now_ns, sector, is_write, drawn));
        if self.kept.len() > self.most {
            self.halvings += 1;
            let least = self.halvings;
            self.kept.retain(|(.., drawn)| drawn.trailing_zeros() >= least);
        }
    }

    pub(super) fn sample(&self) -> Sample {
        // Microseconds are finer than any picture.
        let at_s = self.kept.iter().map(|(at_ns, ..)| (at_ns / 1000) as f64 / 1e6).collect();
        Sample {
            share: 0.5_f64.powi(self.halvings.cast_signed()),
            at_s,
            sector: self.kept.iter().map(|(_, sector, ..)| *sector).collect(),
            write: self.kept.iter().map(|(.., is_write, _)| u8::from(*is_write)).collect(),
        }
    }
}

/// Distances so far; of each direction a place for every power of two.
#[derive(Debug, Clone)]
pub struct Distances {
    counted: Seeks,
    end_sector: Option<u64>,
}

impl Default for Distances {
    fn default() -> Self {
        let counted = Seeks { contiguous: 0, forward: vec![0; 64], backward: vec![0; 64], ascending_runs: 0 };
        Self { counted, end_sector: None }
    }
}

impl Distances {
    pub(super) fn add(&mut self, start_sector: u64, end_sector: u64) {
        let counted = &mut self.counted;
        match self.end_sector.replace(end_sector) {
            None => counted.ascending_runs = 1,
            Some(last) if last == start_sector => counted.contiguous += 1,
            Some(last) if start_sector > last => counted.forward[(start_sector - last).ilog2() as usize] += 1,
            Some(last) => {
                counted.backward[(last - start_sector).ilog2() as usize] += 1;
                counted.ascending_runs += 1;
            }
        }
    }

    /// Without the empty places at the end.
    pub(super) fn trimmed(&self) -> Seeks {
        let mut seeks = self.counted.clone();
        for counts in [&mut seeks.forward, &mut seeks.backward] {
            let used = counts.iter().rposition(|count| *count > 0).map_or(0, |last| last + 1);
            counts.truncate(used);
        }
        seeks
    }
}

/// What was counted at a moment.
#[derive(Debug, Clone)]
struct Moment {
    totals: Totals,
    queued: u64,
    counts: Vec<(&'static str, u64)>,
    gauges: Vec<(&'static str, u64)>,
}

/// Moments that are one interval apart.
#[derive(Debug)]
pub(super) struct Moments {
    interval_ns: u64,
    most: usize,
    kept: Vec<Moment>,
}

impl Moments {
    pub(super) fn new(interval_ns: u64, most: usize) -> Self {
        Self { interval_ns, most, kept: Vec::new() }
    }

    /// When the next is due.
    pub(super) fn next_ns(&self) -> u64 {
        self.kept.last().map_or(0, |last| last.totals.at_ns.saturating_add(self.interval_ns))
    }

    pub(super) fn add(&mut self, totals: Totals, queued: u64, load: &dyn Load) {
        if self.kept.last().is_some_and(|last| last.totals.at_ns >= totals.at_ns) {
            return;
        }
        self.kept.push(Moment { totals, queued, counts: load.counts(), gauges: load.gauges() });
        let intervals = self.kept.len() - 1;
        if intervals > self.most && intervals.is_multiple_of(2) {
            let mut is_odd = true;
            self.kept.retain(|_| {
                is_odd = !is_odd;
                !is_odd
            });
            self.interval_ns *= 2;
        }
    }

    pub(super) fn series(&self) -> OutcomeSeries {
        let mut series = OutcomeSeries { interval_s: self.interval_ns as f64 / 1e9, ..OutcomeSeries::default() };
        for pair in self.kept.windows(2) {
            let (from, to) = (&pair[0], &pair[1]);
            series.end_s.push(to.totals.at_ns as f64 / 1e9);
            series.columns.push(columns_between(&from.totals, &to.totals));
            series.queued.push(to.queued);
            for (name, value) in &to.gauges {
                series.gauges.entry((*name).into()).or_default().push(*value);
            }
            let passed_s = (to.totals.at_ns - from.totals.at_ns) as f64 / 1e9;
            for ((name, before), (_, after)) in from.counts.iter().zip(&to.counts) {
                let rate = (after - before) as f64 / passed_s;
                series.rates.entry(format!("{name}/s")).or_default().push(rate);
            }
        }
        series
    }
}
