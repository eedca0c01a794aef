//! Jobs in fio's words as a load.

use serde::Deserialize;
use serde_json::{Map, Value};

use super::error::{PointError, typed};
use super::load::Load;
use super::spec::Point;
use crate::queue::Class;
use crate::source::{Job, Jobs, Pattern};

/// Jobs that run beside each other.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct JobsSpec {
    jobs: Vec<JobSpec>,
}

/// One of them; what is not given is as in [`Job::default`].
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct JobSpec {
    processes: u32,
    pattern: PatternName,
    read_percent: u32,
    block_bytes: u64,
    depth: u32,
    batch: u32,
    think_us: u64,
    fsync_every: u32,
    offset_bytes: u64,
    /// To the end of the device if there is none.
    range_bytes: Option<u64>,
    ios: u64,
    asynchronous: bool,
    class: ClassName,
    priority: u8,
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
            depth: job.depth,
            batch: job.batch,
            think_us: 0,
            fsync_every: 0,
            offset_bytes: 0,
            range_bytes: None,
            ios: 0,
            asynchronous: false,
            class: ClassName::BestEffort,
            priority: job.priority,
        }
    }
}

impl JobSpec {
    fn job(&self, size_bytes: u64) -> Result<Job, (&'static str, String)> {
        let range_bytes = self.range_bytes.unwrap_or_else(|| size_bytes.saturating_sub(self.offset_bytes));
        if self.offset_bytes.checked_add(range_bytes).is_none_or(|end_bytes| end_bytes > size_bytes) {
            let given = format!("{} and range_bytes {range_bytes}", self.offset_bytes);
            return Err(("offset_bytes", format!("{given} end beyond the device of {size_bytes} bytes")));
        }
        Ok(Job {
            processes: self.processes,
            pattern: match self.pattern {
                PatternName::Sequential => Pattern::Sequential,
                PatternName::Random => Pattern::Random,
            },
            read_percent: self.read_percent,
            size_bytes: self.block_bytes,
            depth: self.depth,
            batch: self.batch,
            think_ns: self.think_us.saturating_mul(1000).min(u64::MAX / 4),
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
}

impl Load for Jobs {
    fn ends(&self) -> bool {
        self.offered().iter().all(|job| job.ios > 0)
    }
}

/// Makes the load of its fields.
pub(super) fn load(point: &Point, fields: Map<String, Value>) -> Result<Box<dyn Load>, PointError> {
    let spec: JobsSpec = typed("load", fields.into())?;
    if spec.jobs.is_empty() {
        return Err(PointError::new("load.jobs", "holds no job"));
    }
    let job = |(at, job): (usize, &JobSpec)| {
        job.job(point.size_bytes)
            .map_err(|(field, problem)| PointError::new(format!("load.jobs[{at}].{field}"), problem))
    };
    let jobs = spec.jobs.iter().enumerate().map(job).collect::<Result<Vec<_>, _>>()?;
    match Jobs::new(jobs, point.seed) {
        Ok(jobs) => Ok(Box::new(jobs)),
        Err(error) => {
            let field = if error.field == "size_bytes" { "block_bytes" } else { error.field };
            let field = format!("load.jobs[{}].{field}", error.job - 1);
            Err(PointError::new(field, format!("{} {}", error.given, error.problem)))
        }
    }
}
