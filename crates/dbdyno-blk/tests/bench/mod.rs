//! A drive that writes down what it is asked, and loads of one's own choice.

#![allow(dead_code, clippy::unwrap_used)]

use std::sync::{Arc, Mutex};

use dbdyno_blk::kernel::{Kernel, Settings};
use dbdyno_blk::layer::Layer;
use dbdyno_blk::queue::Bio;
use dbdyno_blk::run;
use dbdyno_blk::source::{Job, Jobs, Source, Step};
use dbdyno_device::{Command, Completion, DeviceModel, WriteCache, model};

pub const SIZE_BYTES: u64 = 8 << 30;
pub const SECOND_NS: u64 = 1_000_000_000;

/// Commands with the times of their submission.
pub type Commands = Arc<Mutex<Vec<(u64, Command)>>>;

struct Watched {
    model: Box<dyn DeviceModel + Send>,
    commands: Commands,
}

impl DeviceModel for Watched {
    fn submit(&mut self, now_ns: u64, command: Command) {
        self.commands.lock().unwrap().push((now_ns, command));
        self.model.submit(now_ns, command);
    }

    fn next_due(&self) -> Option<u64> {
        self.model.next_due()
    }

    fn poll(&mut self, now_ns: u64, finished: &mut Vec<Completion>) {
        self.model.poll(now_ns, finished);
    }

    fn write_cache(&self) -> WriteCache {
        self.model.write_cache()
    }
}

/// A drive of the catalogue, and what it is asked.
pub fn watched(drive: &str) -> (Box<dyn DeviceModel + Send>, Commands) {
    let commands = Commands::default();
    let model = model(drive, SIZE_BYTES, 1).unwrap();
    (Box::new(Watched { model, commands: Arc::clone(&commands) }), commands)
}

/// Every scheduler of every kernel.
pub fn stacks() -> impl Iterator<Item = (&'static Kernel, &'static str)> {
    Kernel::ALL.iter().flat_map(|kernel| kernel.schedulers.iter().map(move |scheduler| (kernel, scheduler.sysfs())))
}

/// Jobs, and every bio that was finished, with its time.
pub struct Counted {
    pub jobs: Jobs,
    pub finished: Vec<(u64, Bio)>,
}

impl Source for Counted {
    fn next_due(&self) -> Option<u64> {
        self.jobs.next_due()
    }

    fn step(&mut self, now_ns: u64) -> Option<Step> {
        self.jobs.step(now_ns)
    }

    fn asleep(&mut self, process: u32) {
        self.jobs.asleep(process);
    }

    fn awake(&mut self, process: u32) {
        self.jobs.awake(process);
    }

    fn finished(&mut self, now_ns: u64, bio: &Bio) {
        self.finished.push((now_ns, *bio));
        self.jobs.finished(now_ns, bio);
    }
}

/// What came of a run to the end of its jobs, or for `seconds`.
pub struct Ran {
    pub layer: Layer,
    pub finished: Vec<(u64, Bio)>,
    pub commands: Vec<(u64, Command)>,
    pub end_ns: u64,
    pub have_ended: bool,
}

pub fn ran(kernel: &Kernel, settings: &Settings, drive: &str, jobs: &[Job], seconds: u64) -> Ran {
    let (model, commands) = watched(drive);
    let mut layer = kernel.layer(settings, model).unwrap();
    let mut source = Counted { jobs: Jobs::new(jobs.to_vec(), 5).unwrap(), finished: Vec::new() };
    let end_ns = run(&mut layer, &mut source, 0, seconds * SECOND_NS);
    let have_ended = source.jobs.have_ended();
    let commands = std::mem::take(&mut *commands.lock().unwrap());
    Ran { layer, finished: source.finished, commands, end_ns, have_ended }
}
