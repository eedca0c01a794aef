//! A folder's disk or a block device, measured by threads that wait for each request, as a database's do.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt, FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use dbdyno_common::random::Random;
use rustix::fs::OFlags;
use serde_json::{Value, json};

use super::target::{Fill, MeasureArgs, Operation, REGION_BYTES_MIN, Step, StepResult, Target};
use crate::error::DiskError;
use crate::process::Buffer;
use crate::stats::Times;

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
