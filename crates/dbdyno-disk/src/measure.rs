//! `dbdyno-disk measure`: how long a drive takes for what a database does to it, and how many of that it does a second.
//!
//! A [`Target`] is measured in [`Step`]s, every step in every round and in random order, so that what changes on the
//! host meanwhile meets all of them. Several targets take turns within a round: the rounds are pairs.
//!
//! A folder's disk or a block device is measured by threads that wait for each request, as a database's do; a drive
//! model in virtual time by the same steps.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt, FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::{Args, value_parser};
use dbdyno_common::random::Random;
use dbdyno_common::size;
use dbdyno_device::{Completion, Kind};
use rustix::fs::OFlags;
use rustix::time::{ClockId, clock_gettime};
use serde_json::{Value, json};

use crate::error::DiskError;
use crate::process::{Buffer, print_line};
use crate::stats::Times;
use crate::virtual_drive::VirtualDrive;

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
    let mut steps: Vec<Step> = all.iter().flat_map(|target| target.steps.iter().map(|figures| figures.step)).collect();
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

/// What one request of a step is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// A write to a log and then fdatasync: what a durable commit waits for.
    Fsync,
    /// A read at a random place.
    RandomRead,
    /// A write at a random place.
    RandomWrite,
}

impl Operation {
    /// As fio calls it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Fsync => "fsync",
            Self::RandomRead => "randread",
            Self::RandomWrite => "randwrite",
        }
    }

    /// `InnoDB` writes its log in small pieces and its data in pages of 16 KiB.
    pub fn bytes(self) -> u64 {
        match self {
            Self::Fsync => 4096,
            Self::RandomRead | Self::RandomWrite => 16384,
        }
    }
}

/// One operation with this many requests outstanding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    pub operation: Operation,
    pub depth: u64,
}

/// What was done of one step in one round.
pub struct StepResult {
    pub operations: u64,
    pub elapsed_ns: u64,
    pub times: Times,
}

/// The first, sequential writing of the region that the steps then use.
pub struct Fill {
    pub bytes: u64,
    pub elapsed_ns: u64,
}

/// Something that can be measured.
pub trait Target {
    /// What it is called in the result.
    fn name(&self) -> String;
    /// Writes the region once; `None` if nothing is written to this target.
    fn fill(&mut self) -> Result<Option<Fill>, DiskError>;
    /// Whether this operation says something of the drive, and may be done.
    fn can(&self, operation: Operation) -> bool;
    /// Does a step for the time that was asked for.
    fn run(&mut self, step: Step, seed: u64) -> Result<StepResult, DiskError>;
    /// Facts of it that belong beside the figures.
    fn facts(&self) -> Value;
}

/// What `measure` was asked.
#[derive(Debug, Args)]
pub struct MeasureArgs {
    /// A folder, in which an unnamed file is made, or a block device, which is only read
    #[arg(long = "on", value_name = "DIR|DEVICE", required_unless_present = "models")]
    pub paths: Vec<PathBuf>,
    /// A drive model, in virtual time
    #[arg(long = "model", value_name = "NAME")]
    pub models: Vec<String>,
    /// How often each step is run, in random order
    #[arg(long, default_value_t = 8, value_parser = value_parser!(u64).range(1..=1000))]
    pub rounds: u64,
    /// Seed of places and order
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// How much of a folder's disk or of a model is used
    #[arg(long = "region", value_name = "BYTES", default_value = "1G", value_parser = region)]
    pub region_bytes: u64,
    /// How long each step takes
    #[arg(long, default_value_t = 400, value_parser = value_parser!(u64).range(1..=60_000))]
    pub step_ms: u64,
    /// How long writing the region may take; what is written by then is used
    #[arg(long, default_value_t = 6000, value_parser = value_parser!(u64).range(1..=600_000))]
    pub fill_ms: u64,
}

/// The 32 connections of the deepest step write a log of 1 MiB each.
const REGION_BYTES_MIN: u64 = 32 << 20;

fn region(text: &str) -> Result<u64, String> {
    let bytes = size::bytes(text).filter(|bytes| *bytes >= REGION_BYTES_MIN);
    bytes.ok_or_else(|| "not a number of bytes of at least 32M".into())
}

const FILL_BYTES: usize = 1 << 20;

pub struct FileTarget {
    path: PathBuf,
    file: File,
    /// Past the page cache, so that the drive is measured and not the memory.
    direct: bool,
    device: bool,
    region_bytes: u64,
    step: Duration,
    fill: Duration,
}

impl FileTarget {
    /// A file without a name in a folder, gone when the process ends; or a block device, opened for reading alone.
    pub fn open(path: &Path, args: &MeasureArgs) -> Result<Self, DiskError> {
        let wrong = |source| DiskError::Measure { path: path.to_owned(), source };
        let about = std::fs::metadata(path).map_err(wrong)?;
        let device = about.file_type().is_block_device();
        if !device && !about.is_dir() {
            return Err(DiskError::Usage(format!("--on {} is neither a folder nor a block device", path.display())));
        }
        let (file, direct) = match open_target(path, device, OFlags::DIRECT) {
            Ok(file) => (file, true),
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) && !device => {
                (open_target(path, device, OFlags::empty()).map_err(wrong)?, false)
            }
            Err(error) => return Err(wrong(error)),
        };
        let region_bytes = if device { size_of(&file).map_err(wrong)? } else { args.region_bytes };
        Ok(Self {
            path: path.to_owned(),
            file,
            direct,
            device,
            region_bytes,
            step: Duration::from_millis(args.step_ms),
            fill: Duration::from_millis(args.fill_ms),
        })
    }

    fn wrong(&self, source: std::io::Error) -> DiskError {
        DiskError::Measure { path: self.path.clone(), source }
    }
}

fn open_target(path: &Path, device: bool, more: OFlags) -> std::io::Result<File> {
    let flags = |flags: OFlags| i32::try_from(flags.bits()).unwrap_or_default();
    if device {
        return OpenOptions::new().read(true).custom_flags(flags(more)).open(path);
    }
    let mut options = OpenOptions::new();
    options.read(true).write(true).mode(0o600);
    match options.custom_flags(flags(more | OFlags::TMPFILE)).open(path) {
        // A filesystem without files without a name: one that loses its name at once.
        Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => {
            let name = path.join(format!(".dbdyno-measure-{}", std::process::id()));
            let file = options.create_new(true).custom_flags(flags(more)).open(&name)?;
            std::fs::remove_file(&name)?;
            Ok(file)
        }
        opened => opened,
    }
}

fn size_of(mut device: &File) -> std::io::Result<u64> {
    std::io::Seek::seek(&mut device, std::io::SeekFrom::End(0))
}

impl Target for FileTarget {
    fn name(&self) -> String {
        self.path.display().to_string()
    }

    /// Ends when the region is full or the time is over; the region is what was written by then.
    fn fill(&mut self) -> Result<Option<Fill>, DiskError> {
        if self.device {
            return Ok(None);
        }
        let mut buffer = Buffer::new(FILL_BYTES, 0);
        let began = Instant::now();
        let mut written = 0;
        while written < self.region_bytes && (began.elapsed() < self.fill || written < REGION_BYTES_MIN) {
            buffer.stamp(written);
            self.file.write_all_at(buffer.bytes(), written).map_err(|error| self.wrong(error))?;
            written += FILL_BYTES as u64;
        }
        self.file.sync_all().map_err(|error| self.wrong(error))?;
        self.region_bytes = written;
        Ok(Some(Fill { bytes: written, elapsed_ns: nanoseconds(began.elapsed()) }))
    }

    fn can(&self, operation: Operation) -> bool {
        match operation {
            Operation::Fsync => !self.device,
            Operation::RandomRead => self.direct,
            Operation::RandomWrite => self.direct && !self.device,
        }
    }

    fn run(&mut self, step: Step, seed: u64) -> Result<StepResult, DiskError> {
        let began = Instant::now();
        let this = &*self;
        let clients: Vec<std::io::Result<(Times, u64)>> = std::thread::scope(|scope| {
            let threads: Vec<_> =
                (0..step.depth).map(|client| scope.spawn(move || this.client(step, client, seed, began))).collect();
            threads
                .into_iter()
                .map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
                .collect()
        });
        let elapsed_ns = nanoseconds(began.elapsed()).max(1);
        let (mut times, mut operations) = (Times::new(), 0);
        for client in clients {
            let (of_client, count) = client.map_err(|error| self.wrong(error))?;
            times.add(&of_client);
            operations += count;
        }
        Ok(StepResult { operations, elapsed_ns, times })
    }

    fn facts(&self) -> Value {
        let kind = if self.device { "device" } else { "directory" };
        json!({"kind": kind, "direct": self.direct, "region_bytes": self.region_bytes})
    }
}

impl FileTarget {
    /// One request after the other until the step's time is over; at least one.
    fn client(&self, step: Step, client: u64, seed: u64, began: Instant) -> std::io::Result<(Times, u64)> {
        let bytes = step.operation.bytes();
        let mut random = Random::new(seed ^ client);
        let mut buffer = Buffer::new(bytes as usize, client);
        let log_bytes = self.region_bytes / step.depth / bytes * bytes;
        let (mut times, mut count) = (Times::new(), 0);
        loop {
            let place = random.below(self.region_bytes / bytes) * bytes;
            let start = Instant::now();
            match step.operation {
                Operation::Fsync => {
                    buffer.stamp(random.bits());
                    self.file.write_all_at(buffer.bytes(), client * log_bytes + count * bytes % log_bytes)?;
                    self.file.sync_data()?;
                }
                Operation::RandomRead => self.file.read_exact_at(buffer.bytes_mut(), place)?,
                Operation::RandomWrite => {
                    buffer.stamp(random.bits());
                    self.file.write_all_at(buffer.bytes(), place)?;
                }
            }
            times.record(nanoseconds(start.elapsed()));
            count += 1;
            if began.elapsed() >= self.step {
                return Ok((times, count));
            }
        }
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

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
    /// The FLUSH in flight and those that wait for its end. The kernel has one in flight and gathers what comes
    /// meanwhile for the next.
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
