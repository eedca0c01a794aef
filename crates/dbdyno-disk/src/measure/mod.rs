//! `dbdyno-disk measure`: how long a drive takes for what a database does to it, and how many of that it does a second.
//!
//! A [`Target`] is measured in [`Step`]s, every step in every round and in random order, so that what changes on the host
//! meanwhile meets all of them. Several targets take turns within a round: the rounds are pairs.

mod file;
mod model;
mod target;

use dbdyno_common::random::Random;
use rustix::time::{ClockId, clock_gettime};
use serde_json::{Value, json};

pub use self::target::MeasureArgs;
use crate::error::DiskError;
use crate::process::print_line;
use crate::stats::Times;

use file::FileTarget;
use model::ModelTarget;
use target::{Fill, Operation, Step, Target};

const DEPTHS: [u64; 3] = [1, 8, 32];

/// The figures of one step of one target, over all rounds.
struct Figures {
    step: Step,
    rounds: Vec<(u64, u64)>,
    times: Times,
}

struct Measured {
    target: Box<dyn Target>,
    fill: Option<Fill>,
    steps: Vec<Figures>,
}

/// Measures all targets and prints a line of JSON after each round, and the result as the last one.
pub fn measure(args: &MeasureArgs) -> Result<(), DiskError> {
    let mut all = Vec::new();
    for path in &args.paths {
        all.push(begin(Box::new(FileTarget::open(path, args)?))?);
    }
    for name in &args.models {
        all.push(begin(Box::new(ModelTarget::new(name, args)?))?);
    }
    let mut random = Random::new(args.seed);
    for round in 1..=args.rounds {
        one_round(&mut all, &mut random)?;
        print_line(&json!({"round": round, "rounds": args.rounds}))?;
    }
    let targets: Vec<_> = all.iter().map(Measured::json).collect();
    let cpu = clock_gettime(ClockId::ProcessCPUTime);
    let cpu_seconds = cpu.tv_sec as f64 + cpu.tv_nsec as f64 / 1e9;
    print_line(&json!({"seed": args.seed, "rounds": args.rounds, "cpu_seconds": cpu_seconds, "targets": targets}))
}

fn begin(mut target: Box<dyn Target>) -> Result<Measured, DiskError> {
    let fill = target.fill()?;
    let steps = [Operation::Fsync, Operation::RandomRead, Operation::RandomWrite]
        .into_iter()
        .filter(|operation| target.can(*operation))
        .flat_map(|operation| DEPTHS.map(|depth| Step { operation, depth }))
        .map(|step| Figures { step, rounds: Vec::new(), times: Times::new() })
        .collect();
    Ok(Measured { target, fill, steps })
}

/// Every step of every target once; the targets take turns, each step in an order of its own.
fn one_round(all: &mut [Measured], random: &mut Random) -> Result<(), DiskError> {
    let mut steps: Vec<Step> = all.iter().flat_map(|one| one.steps.iter().map(|figures| figures.step)).collect();
    let mut once = Vec::new();
    steps.retain(|step| {
        !once.contains(step) && {
            once.push(*step);
            true
        }
    });
    random.shuffle(&mut steps);
    let mut turns: Vec<usize> = (0..all.len()).collect();
    for step in steps {
        random.shuffle(&mut turns);
        for turn in &turns {
            all[*turn].run(step, random.bits())?;
        }
    }
    Ok(())
}

impl Measured {
    fn run(&mut self, step: Step, seed: u64) -> Result<(), DiskError> {
        if let Some(figures) = self.steps.iter_mut().find(|figures| figures.step == step) {
            let done = self.target.run(step, seed)?;
            figures.rounds.push((done.operations, done.elapsed_ns));
            figures.times.add(&done.times);
        }
        Ok(())
    }

    fn json(&self) -> Value {
        let steps: Vec<_> = self.steps.iter().map(Figures::json).collect();
        let fill = self.fill.as_ref().map(|fill| json!({"bytes": fill.bytes, "elapsed_ns": fill.elapsed_ns}));
        json!({"target": self.target.name(), "facts": self.target.facts(), "fill": fill, "steps": steps})
    }
}

impl Figures {
    fn json(&self) -> Value {
        let rounds: Vec<_> = self
            .rounds
            .iter()
            .map(|(operations, elapsed_ns)| json!({"operations": operations, "elapsed_ns": elapsed_ns}))
            .collect();
        json!({
            "operation": self.step.operation.name(),
            "bytes": self.step.operation.bytes(),
            "depth": self.step.depth,
            "rounds": rounds,
            "latency_ns": self.times.summary(),
        })
    }
}
