//! A drive model, measured in virtual time by the same steps as a real drive.

use std::collections::HashMap;

use dbdyno_common::random::Random;
use dbdyno_device::{Completion, Kind};
use serde_json::{Value, json};

use super::target::{Fill, MeasureArgs, Operation, Step, StepResult, Target};
use crate::error::DiskError;
use crate::stats::Times;
use crate::virtual_drive::VirtualDrive;

/// The disk that is made of the drive; the steps use its beginning, as a file on a new filesystem would.
const DISK_BYTES: u64 = 16 << 30;
/// More requests say no more of a model, which has no noise but its own.
const OPERATIONS_MAX: u64 = 20_000;
const FILL_COMMAND_BYTES: u64 = 1 << 20;
const FILL_DEPTH: u64 = 4;

pub struct ModelTarget {
    name: String,
    drive: VirtualDrive,
    region_bytes: u64,
    step_ns: u64,
}

impl ModelTarget {
    pub fn new(name: &str, args: &MeasureArgs) -> Result<Self, DiskError> {
        let disk_bytes = DISK_BYTES.max(args.region_bytes);
        Ok(Self {
            name: name.to_owned(),
            drive: VirtualDrive::new(dbdyno_device::model(name, disk_bytes, args.seed)?),
            region_bytes: args.region_bytes,
            step_ns: args.step_ms * 1_000_000,
        })
    }

    fn idle(&mut self) {
        while !self.drive.wait().is_empty() {}
    }
}

impl Target for ModelTarget {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn fill(&mut self) -> Result<Option<Fill>, DiskError> {
        let commands = self.region_bytes / FILL_COMMAND_BYTES;
        let (began_ns, mut sent, mut outstanding) = (self.drive.now_ns(), 0, 0);
        while sent < commands || outstanding > 0 {
            while sent < commands && outstanding < FILL_DEPTH {
                self.drive.submit(Kind::Write, sent * FILL_COMMAND_BYTES, FILL_COMMAND_BYTES);
                (sent, outstanding) = (sent + 1, outstanding + 1);
            }
            outstanding -= self.drive.wait().len() as u64;
        }
        self.drive.submit(Kind::Flush, 0, 0);
        self.idle();
        Ok(Some(Fill { bytes: commands * FILL_COMMAND_BYTES, elapsed_ns: self.drive.now_ns() - began_ns }))
    }

    fn can(&self, _: Operation) -> bool {
        true
    }

    fn run(&mut self, step: Step, seed: u64) -> Result<StepResult, DiskError> {
        let began_ns = self.drive.now_ns();
        let mut clients = Clients::new(step, self.region_bytes, seed);
        for client in 0..step.depth {
            clients.begin(self, client);
        }
        while clients.operations < OPERATIONS_MAX && self.drive.now_ns() - began_ns < self.step_ns {
            for completion in self.drive.wait() {
                for client in clients.completed(self, completion) {
                    clients.begin(self, client);
                }
            }
        }
        let elapsed_ns = (self.drive.now_ns() - began_ns).max(1);
        let done = StepResult { operations: clients.operations, elapsed_ns, times: clients.times };
        // What is cached is written back before the next step, as the pause between two steps on a drive allows.
        self.idle();
        self.drive.submit(Kind::Flush, 0, 0);
        self.idle();
        Ok(done)
    }

    fn facts(&self) -> Value {
        json!({"kind": "model", "region_bytes": self.region_bytes})
    }
}

/// A client's request: who waits for it, and since when.
#[derive(Clone, Copy)]
struct Waiting {
    client: u64,
    since_ns: u64,
}

/// The clients of one step, each with one request.
struct Clients {
    step: Step,
    region_bytes: u64,
    random: Random,
    /// By the command that each waits for.
    waiting: HashMap<u64, Waiting>,
    /// The FLUSH in flight and those that wait for its end. The kernel has one in flight and gathers what comes meanwhile
    /// for the next.
    flush: Option<(u64, Vec<Waiting>)>,
    next_flush: Vec<Waiting>,
    log_writes: u64,
    operations: u64,
    times: Times,
}

impl Clients {
    fn new(step: Step, region_bytes: u64, seed: u64) -> Self {
        Self {
            step,
            region_bytes,
            random: Random::new(seed),
            waiting: HashMap::new(),
            flush: None,
            next_flush: Vec::new(),
            log_writes: 0,
            operations: 0,
            times: Times::new(),
        }
    }

    fn begin(&mut self, target: &mut ModelTarget, client: u64) {
        let bytes = self.step.operation.bytes();
        let (kind, offset_bytes) = match self.step.operation {
            Operation::Fsync => {
                self.log_writes += 1;
                let log_bytes = self.region_bytes / self.step.depth / bytes * bytes;
                (Kind::Write, client * log_bytes + self.log_writes * bytes % log_bytes)
            }
            Operation::RandomRead => (Kind::Read, self.random.below(self.region_bytes / bytes) * bytes),
            Operation::RandomWrite => (Kind::Write, self.random.below(self.region_bytes / bytes) * bytes),
        };
        let id = target.drive.submit(kind, offset_bytes, bytes);
        self.waiting.insert(id, Waiting { client, since_ns: target.drive.now_ns() });
    }

    /// The clients that a completion leaves without a request.
    fn completed(&mut self, target: &mut ModelTarget, completion: Completion) -> Vec<u64> {
        let mut ended = Vec::new();
        if let Some(waiting) = self.waiting.remove(&completion.id) {
            let then = if self.step.operation == Operation::Fsync { &mut self.next_flush } else { &mut ended };
            then.push(waiting);
        }
        if self.flush.as_ref().is_some_and(|(id, _)| *id == completion.id) {
            ended = self.flush.take().map(|(_, all)| all).unwrap_or_default();
        }
        if self.flush.is_none() && !self.next_flush.is_empty() {
            let id = target.drive.submit(Kind::Flush, 0, 0);
            self.flush = Some((id, std::mem::take(&mut self.next_flush)));
        }
        self.operations += ended.len() as u64;
        for waiting in &ended {
            self.times.record(completion.at_ns - waiting.since_ns);
        }
        ended.iter().map(|waiting| waiting.client).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(name: &str) -> ModelTarget {
        let args = MeasureArgs {
            paths: Vec::new(),
            models: Vec::new(),
            rounds: 1,
            seed: 1,
            region_bytes: 256 << 20,
            step_ms: 2000,
            fill_ms: 1,
        };
        ModelTarget::new(name, &args).unwrap()
    }

    fn a_second(name: &str, operation: Operation, depth: u64) -> f64 {
        let mut target = target(name);
        target.fill().unwrap();
        let done = target.run(Step { operation, depth }, 7).unwrap();
        done.operations as f64 * 1e9 / done.elapsed_ns as f64
    }

    #[test]
    fn a_commit_on_a_hard_disk_waits_for_a_turn_and_clients_share_a_flush() {
        let alone = a_second("hdd-7200", Operation::Fsync, 1);
        assert!((30.0..200.0).contains(&alone), "{alone}");
        assert!(a_second("hdd-7200", Operation::Fsync, 32) > 1.5 * alone);
    }

    #[test]
    fn a_solid_state_drive_reads_more_at_depth() {
        let alone = a_second("ssd-sata", Operation::RandomRead, 1);
        assert!(a_second("ssd-sata", Operation::RandomRead, 32) > 3.0 * alone);
    }

    #[test]
    fn the_same_seed_gives_the_same_figures() {
        let step = Step { operation: Operation::RandomWrite, depth: 8 };
        let all = [target("nvme"), target("nvme")].map(|mut target| target.run(step, 3).unwrap().elapsed_ns);
        assert_eq!(all[0], all[1]);
    }
}
