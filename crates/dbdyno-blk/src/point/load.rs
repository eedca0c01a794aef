//! The kinds of load that a point may have, and what each promises: jobs in fio's words, a server with `InnoDB`, and,
//! on the page cache, any application and a `MyISAM` table that takes rows. A trace is in `trace`.

use std::fmt::Display;

use dbdyno_common::histogram::{Exact, Summary, SummaryNs, encode};
use dbdyno_common::results::SimulatedLatencies;
use hdrhistogram::Histogram;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::spec::{Point, PointError, typed};
use crate::layer::Pools;
use crate::queue::{Bio, Class};
use crate::source::{
    Application, BufferedJobs, CacheConfig, Cached, Ingest, IngestConfig, Innodb, InnodbSettings, Job, Jobs, Pattern,
    Rates, Sizes, Source, Spread, Step,
};

/// A source of load with what a point asks of it besides.
pub trait Load: Source {
    /// Whether it ends by itself.
    fn ends(&self) -> bool;

    /// Whether it has ended, with so many requests in the queue.
    fn has_ended(&self, queued: u64) -> bool {
        queued == 0 && self.next_due().is_none()
    }

    /// What it counts besides I/O since time 0, by name: rows, commits.
    fn counts(&self) -> Vec<(&'static str, u64)> {
        Vec::new()
    }

    /// How it stands now, by name: dirty pages, age of the log.
    fn gauges(&self) -> Vec<(&'static str, u64)> {
        Vec::new()
    }

    /// What its results must be read with.
    fn remarks(&self) -> Map<String, Value> {
        Map::new()
    }

    /// Why it could not go on, if it couldn't.
    fn failure(&self) -> Option<PointError> {
        None
    }
}

/// What a histogram of latencies comes to, and the histogram itself.
pub(super) fn latencies(histogram: &Histogram<u64>) -> Result<SimulatedLatencies, PointError> {
    let text = encode(histogram).map_err(|error| PointError::new("latencies", error.to_string()))?;
    Ok(SimulatedLatencies { summary: SummaryNs(Summary::from_histogram(histogram, Exact::default())), histogram: text })
}

impl Load for Innodb {
    fn ends(&self) -> bool {
        false
    }

    fn has_ended(&self, _queued: u64) -> bool {
        self.counts().ended_ns.is_some()
    }

    fn counts(&self) -> Vec<(&'static str, u64)> {
        let counts = Self::counts(self);
        vec![
            ("statements", counts.statements),
            ("commits", counts.commits),
            ("rows", counts.rows),
            ("log_flushes", counts.log_flushes),
            ("pages_read", counts.pages_read),
            ("pages_written", counts.pages_written),
        ]
    }

    fn gauges(&self) -> Vec<(&'static str, u64)> {
        vec![("dirty_pages", self.dirty_pages() as u64), ("checkpoint_age_bytes", self.checkpoint_age_bytes())]
    }

    fn remarks(&self) -> Map<String, Value> {
        let counts = Self::counts(self);
        let statements = latencies(&counts.latencies).unwrap_or_default();
        let remarks = json!({
            "statements_since_the_start": statements,
            "log_waits": counts.log_waits,
            "frame_waits": counts.frame_waits,
            "is_full": counts.is_full,
        });
        if let Value::Object(remarks) = remarks { remarks } else { Map::new() }
    }
}

/// Makes the load of its fields.
pub(super) fn commits_load(point: &Point, fields: Map<String, Value>) -> Result<Box<dyn Load>, PointError> {
    let settings: InnodbSettings = typed("load", fields.into())?;
    let server = Innodb::new(settings, point.seed).map_err(|error| {
        PointError::new(format!("load.{}", error.field), format!("{} {}", error.value, error.problem))
    })?;
    if server.end_bytes() > point.size_bytes {
        let problem =
            format!("{} is less than the {} bytes that this load needs", point.size_bytes, server.end_bytes());
        return Err(PointError::new("size_bytes", problem));
    }
    Ok(Box::new(server))
}

/// Jobs that run beside each other.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct JobsSpec {
    jobs: Vec<JobSpec>,
    /// Of jobs that are not direct.
    cache: Option<CacheConfig>,
}

/// One of them; what is not given is as in [`Job::default`].
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct JobSpec {
    processes: u32,
    pattern: PatternName,
    read_percent: u32,
    block_bytes: u64,
    /// Sizes of reads where there are several, and how often each comes relative to the others.
    read_blocks: Vec<(u64, u32)>,
    write_blocks: Vec<(u64, u32)>,
    spread: SpreadName,
    random_percent: u32,
    run: u32,
    gap_bytes: i64,
    depth: u32,
    batch: u32,
    think_us: u64,
    think_every: u32,
    start_us: u64,
    read_rate_bytes: u64,
    read_rate_ios: u64,
    write_rate_bytes: u64,
    write_rate_ios: u64,
    poisson: bool,
    fsync_every: u32,
    offset_bytes: u64,
    /// To the end of the device if there is none; a file of a buffered job has its share of half of the device.
    range_bytes: Option<u64>,
    ios: u64,
    asynchronous: bool,
    class: ClassName,
    priority: u8,
    /// Past the page cache; all jobs or none.
    direct: bool,
}

/// Which offsets are preferred, with what shapes it.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "lowercase")]
enum SpreadName {
    Uniform,
    Zipf(f64),
    Pareto(f64),
    Normal(f64),
    Zones(Vec<(u32, u32)>),
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum PatternName {
    Sequential,
    Random,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum ClassName {
    RealTime,
    BestEffort,
    Idle,
}

impl Default for JobSpec {
    fn default() -> Self {
        let job = Job::default();
        Self {
            processes: job.processes,
            pattern: PatternName::Random,
            read_percent: job.read_percent,
            block_bytes: job.size_bytes,
            read_blocks: Vec::new(),
            write_blocks: Vec::new(),
            spread: SpreadName::Uniform,
            random_percent: job.random_percent,
            run: job.run,
            gap_bytes: 0,
            depth: job.depth,
            batch: job.batch,
            think_us: 0,
            think_every: job.think_every,
            start_us: 0,
            read_rate_bytes: 0,
            read_rate_ios: 0,
            write_rate_bytes: 0,
            write_rate_ios: 0,
            poisson: false,
            fsync_every: 0,
            offset_bytes: 0,
            range_bytes: None,
            ios: 0,
            asynchronous: false,
            class: ClassName::BestEffort,
            priority: job.priority,
            direct: true,
        }
    }
}

/// Higher rates than any drive's, and far from the end of what 64 bits count.
const RATE_MOST: u64 = 1 << 50;
/// fio takes 64 zones.
const ZONES_MOST: usize = 100;
/// All multiples of 512 up to 1 MiB are 2048.
const BLOCKS_MOST: usize = 4096;

fn sizes(field: &'static str, blocks: &[(u64, u32)]) -> Result<Sizes, Wrong> {
    if blocks.len() > BLOCKS_MOST {
        return Err((field, format!("has {} sizes; at most {BLOCKS_MOST} are possible", blocks.len())));
    }
    Ok(Sizes(blocks.to_vec()))
}

/// A field, and what is wrong with it.
type Wrong = (&'static str, String);

impl JobSpec {
    /// The job on a device of so many bytes, whose files are `files` where it is buffered.
    fn job(&self, size_bytes: u64, files: u64) -> Result<Job, Wrong> {
        let range_bytes = self.range_bytes.unwrap_or_else(|| {
            if self.direct {
                size_bytes.saturating_sub(self.offset_bytes)
            } else {
                size_bytes / 2 / files / 4096 * 4096
            }
        });
        if self.offset_bytes.checked_add(range_bytes).is_none_or(|end_bytes| end_bytes > size_bytes) {
            let range = format!("{} with range_bytes {range_bytes}", self.offset_bytes);
            return Err(("offset_bytes", format!("{range} ends beyond the device of {size_bytes} bytes")));
        }
        Ok(Job {
            processes: self.processes,
            pattern: match self.pattern {
                PatternName::Sequential => Pattern::Sequential,
                PatternName::Random => Pattern::Random,
            },
            read_percent: self.read_percent,
            size_bytes: self.block_bytes,
            read_sizes: sizes("read_blocks", &self.read_blocks)?,
            write_sizes: sizes("write_blocks", &self.write_blocks)?,
            spread: self.spread()?,
            random_percent: self.random_percent,
            run: self.run,
            gap_bytes: self.gap_bytes,
            depth: self.depth,
            batch: self.batch,
            think_ns: self.think_us.saturating_mul(1000).min(u64::MAX / 4),
            think_every: self.think_every,
            start_ns: self.start_us.saturating_mul(1000).min(u64::MAX / 4),
            rates: Rates {
                read_bytes: self.read_rate_bytes.min(RATE_MOST),
                read_ios: self.read_rate_ios.min(RATE_MOST),
                write_bytes: self.write_rate_bytes.min(RATE_MOST),
                write_ios: self.write_rate_ios.min(RATE_MOST),
                poisson: self.poisson,
            },
            fsync_every: self.fsync_every,
            offset_bytes: self.offset_bytes,
            range_bytes,
            ios: self.ios,
            asynchronous: self.asynchronous,
            class: match self.class {
                ClassName::RealTime => Class::RealTime,
                ClassName::BestEffort => Class::BestEffort,
                ClassName::Idle => Class::Idle,
            },
            priority: self.priority,
        })
    }

    fn spread(&self) -> Result<Spread, Wrong> {
        let wrong = |value: String, what: &str| Err(("spread", format!("{value} {what}")));
        Ok(match &self.spread {
            SpreadName::Uniform => Spread::Uniform,
            SpreadName::Zipf(theta) if (0.01..=20.0).contains(theta) => Spread::Zipf(*theta),
            SpreadName::Zipf(theta) => return wrong(theta.to_string(), "is not between 0.01 and 20"),
            SpreadName::Pareto(h) if (0.001..=0.999).contains(h) => Spread::Pareto(*h),
            SpreadName::Pareto(h) => return wrong(h.to_string(), "is not between 0.001 and 0.999"),
            SpreadName::Normal(percent) if (0.0..=100.0).contains(percent) => Spread::Normal(*percent),
            SpreadName::Normal(percent) => return wrong(percent.to_string(), "is not between 0 and 100"),
            SpreadName::Zones(zones) => {
                let sums = zones.iter().fold((0_u64, 0_u64), |sums, (accesses, range)| {
                    (sums.0 + u64::from(*accesses), sums.1 + u64::from(*range))
                });
                if sums != (100, 100) || zones.len() > ZONES_MOST {
                    return wrong(format!("zones add up to {} and {} percent", sums.0, sums.1), "instead of 100 each");
                }
                Spread::Zones(zones.clone())
            }
        })
    }

    /// What a buffered job may not say.
    fn buffered(&self, job: &Job) -> Result<(), Wrong> {
        for (field, is_as_it_comes) in [
            ("offset_bytes", self.offset_bytes == 0),
            ("class", matches!(self.class, ClassName::BestEffort)),
            ("priority", self.priority == Job::default().priority),
            ("asynchronous", !self.asynchronous),
        ] {
            if !is_as_it_comes {
                let problem = "is for jobs with direct = true; a buffered job has a file, which the kernel writes";
                return Err((field, problem.to_owned()));
            }
        }
        BufferedJobs::check(job).map_err(|error| (in_words(error.field), format!("{} {}", error.value, error.problem)))
    }
}

/// The name that a field of [`Job`] has in a point.
fn in_words(field: &'static str) -> &'static str {
    match field {
        "size_bytes" => "block_bytes",
        "sizes" => "read_blocks",
        field => field,
    }
}

impl Load for Jobs {
    fn ends(&self) -> bool {
        self.offered().iter().all(|job| job.ios > 0)
    }
}

/// Makes the load of its fields.
pub(super) fn jobs_load(point: &Point, fields: Map<String, Value>) -> Result<Box<dyn Load>, PointError> {
    let spec: JobsSpec = typed("load", fields.into())?;
    if spec.jobs.is_empty() {
        return Err(PointError::new("load.jobs", "has no job"));
    }
    let of_job =
        |at: usize| move |(field, problem): Wrong| PointError::new(format!("load.jobs[{at}].{field}"), problem);
    let is_direct = spec.jobs[0].direct;
    if let Some(at) = spec.jobs.iter().position(|job| job.direct != is_direct) {
        return Err(of_job(at)(("direct", format!("is {}, but {is_direct} in the first job", !is_direct))));
    }
    let mut jobs = Vec::new();
    for (at, job) in spec.jobs.iter().enumerate() {
        jobs.push(job.job(point.size_bytes, spec.jobs.len() as u64).map_err(of_job(at))?);
        if !is_direct {
            job.buffered(&jobs[at]).map_err(of_job(at))?;
        }
    }
    if is_direct {
        if spec.cache.is_some() {
            return Err(PointError::new("load.cache", "is for jobs with direct = false"));
        }
        let jobs = Jobs::new(jobs, point.seed).map_err(|error| {
            let problem = format!("{} {}", error.value, error.problem);
            of_job(error.job - 1)((in_words(error.field), problem))
        })?;
        return Ok(Box::new(jobs));
    }
    buffered(point, &spec.cache.unwrap_or_default(), jobs)
}

fn buffered(point: &Point, cache: &CacheConfig, jobs: Vec<Job>) -> Result<Box<dyn Load>, PointError> {
    let ends = jobs.iter().all(|job| job.ios > 0);
    let cached = BufferedJobs::cached(&point.kernel()?, cache, jobs, point.seed).map_err(|error| {
        PointError::new(format!("load.cache.{}", error.field), format!("{} {}", error.value, error.problem))
    })?;
    let counts = |jobs: &BufferedJobs| vec![("operations", jobs.operations())];
    Ok(Box::new(OnCache::new(point, cached, ends, counts)?))
}

/// What an application counts, by name.
type Counts<A> = Box<dyn Fn(&A) -> Vec<(&'static str, u64)>>;

/// An application on the page cache, on a drive of some size.
pub(super) struct OnCache<A> {
    cached: Cached<A>,
    counts: Counts<A>,
    ends: bool,
    size_bytes: u64,
}

impl<A: Application> OnCache<A> {
    /// Refuses files that end beyond the drive.
    pub(super) fn new(
        point: &Point,
        cached: Cached<A>,
        ends: bool,
        counts: impl Fn(&A) -> Vec<(&'static str, u64)> + 'static,
    ) -> Result<Self, PointError> {
        let size_bytes = point.size_bytes;
        let load = Self { cached, counts: Box::new(counts), ends, size_bytes };
        load.beyond("that its files have at the start").map_or(Ok(load), Err)
    }

    fn beyond(&self, which: impl Display) -> Option<PointError> {
        let (size_bytes, end_bytes) = (self.size_bytes, self.cached.end_bytes());
        let problem = || format!("{size_bytes} is less than the {end_bytes} bytes {which}");
        (end_bytes > size_bytes).then(|| PointError::new("size_bytes", problem()))
    }
}

impl<A: Application> Source for OnCache<A> {
    fn next_due(&self) -> Option<u64> {
        self.cached.next_due()
    }

    fn see(&mut self, pools: &Pools) {
        self.cached.see(pools);
    }

    fn step(&mut self, now_ns: u64) -> Option<Step> {
        self.cached.step(now_ns)
    }

    fn asleep(&mut self, process: u32) {
        self.cached.asleep(process);
    }

    fn awake(&mut self, process: u32) {
        self.cached.awake(process);
    }

    fn finished(&mut self, now_ns: u64, bio: &Bio) {
        self.cached.finished(now_ns, bio);
    }
}

impl<A: Application> Load for OnCache<A> {
    fn ends(&self) -> bool {
        self.ends
    }

    fn has_ended(&self, _queued: u64) -> bool {
        self.cached.have_ended()
    }

    fn counts(&self) -> Vec<(&'static str, u64)> {
        let mut counts = (self.counts)(self.cached.application());
        counts.push(("journal_commits", self.cached.commits()));
        counts
    }

    fn gauges(&self) -> Vec<(&'static str, u64)> {
        vec![("dirty_pages", self.cached.dirty_pages().0)]
    }

    fn failure(&self) -> Option<PointError> {
        self.beyond("that its files grew to; give a larger device or a shorter time")
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct IngestSpec {
    cache: CacheConfig,
    table: IngestConfig,
}

/// Makes the load of its fields: `cache` is a [`CacheConfig`], `table` an [`IngestConfig`].
pub(super) fn ingest_load(point: &Point, fields: Map<String, Value>) -> Result<Box<dyn Load>, PointError> {
    let IngestSpec { cache, table } = typed("load", fields.into())?;
    let (initial_rows, ends) = (table.initial_rows, table.rows > 0);
    let cached = Ingest::cached(&point.kernel()?, &cache, table, point.seed).map_err(|error| {
        PointError::new(format!("load.{}", error.field), format!("{} {}", error.value, error.problem))
    })?;
    let counts = move |table: &Ingest| vec![("rows", table.rows() - initial_rows)];
    Ok(Box::new(OnCache::new(point, cached, ends, counts)?))
}
