//! The contract of a drive whose parameters are looked for, and both that follow it: a block device past the page
//! cache, by threads that wait for each request, and a model in virtual time.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use dbdyno_common::random::Random;
use dbdyno_device::{DeviceModel, Kind};

use crate::error::DiskError;
use crate::process::Buffer;
use crate::virtual_drive::VirtualDrive;

/// When a request was sent and when its answer came, in nanoseconds of one clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answer {
    pub sent_ns: u64,
    pub done_ns: u64,
}

impl Answer {
    pub fn latency_ns(self) -> f64 {
        (self.done_ns - self.sent_ns) as f64
    }
}

/// Requests with so many outstanding.
#[derive(Debug, Clone, Copy)]
pub struct Load {
    pub kind: Kind,
    pub bytes: u64,
    pub depth: u64,
    /// One after the other from the beginning of the range; else at random places of it.
    pub sequential: bool,
    /// Where.
    pub range: (u64, u64),
    /// It ends after so many requests, or so much time.
    pub requests: u64,
    pub limit_ns: u64,
    pub seed: u64,
}

/// What came of a load: the latency of each request in ns, and in what time all were done.
#[derive(Debug, Clone, Default)]
pub struct Loaded {
    pub latencies_ns: Vec<f64>,
    pub elapsed_ns: u64,
}

impl Loaded {
    /// Requests a second.
    pub fn rate(&self) -> f64 {
        self.latencies_ns.len() as f64 * 1e9 / self.elapsed_ns.max(1) as f64
    }
}

/// A drive that answers requests, one at a time or many.
pub trait Bench {
    /// Bytes of the device.
    fn size_bytes(&self) -> u64;
    /// Whether its content may be lost.
    fn may_write(&self) -> bool;
    /// Does one request; a FLUSH has neither place nor length.
    fn ask(&mut self, kind: Kind, offset_bytes: u64, bytes: u64) -> Result<Answer, DiskError>;
    /// Does many.
    fn load(&mut self, load: &Load) -> Result<Loaded, DiskError>;
    /// Leaves the drive alone.
    fn pause(&mut self, ns: u64);
    /// Nanoseconds since the beginning.
    fn now_ns(&self) -> u64;
    /// Whether the kernel says that it is a disk that turns.
    fn is_said_to_turn(&self) -> bool {
        false
    }
}

impl Load {
    /// Where its `index`-th request goes.
    pub fn place(&self, index: u64, random: &mut Random) -> u64 {
        let places = ((self.range.1 - self.range.0) / self.bytes).max(1);
        let place = if self.sequential { index % places } else { random.below(places) };
        self.range.0 + place * self.bytes
    }
}

/// The longest single request, and so the buffer that serves all of them.
const REQUEST_BYTES_MAX: usize = 8 << 20;

pub struct DeviceBench {
    path: PathBuf,
    file: File,
    size_bytes: u64,
    may_write: bool,
    began: Instant,
    buffer: Buffer,
    marks: Random,
}

impl DeviceBench {
    /// Opens it for reading alone, unless it may be written.
    pub fn open(path: &Path, may_write: bool) -> Result<Self, DiskError> {
        let wrong = |source| DiskError::Measure { path: path.to_owned(), source };
        if !std::fs::metadata(path).map_err(wrong)?.file_type().is_block_device() {
            return Err(DiskError::Usage(format!("{} is not a block device", path.display())));
        }
        let mut options = OpenOptions::new();
        // Exclusive: the kernel refuses to write beside a mount.
        let more = if may_write { libc::O_EXCL } else { 0 };
        let file = options.read(true).write(may_write).custom_flags(libc::O_DIRECT | more).open(path).map_err(wrong)?;
        let size_bytes = std::io::Seek::seek(&mut &file, std::io::SeekFrom::End(0)).map_err(wrong)?;
        let buffer = Buffer::new(REQUEST_BYTES_MAX, 1);
        Ok(Self {
            path: path.to_owned(),
            file,
            size_bytes,
            may_write,
            began: Instant::now(),
            buffer,
            marks: Random::new(size_bytes),
        })
    }

    fn wrong(&self, source: std::io::Error) -> DiskError {
        DiskError::Measure { path: self.path.clone(), source }
    }

    /// One of the threads of a load; they share the count of requests.
    fn client(&self, load: &Load, client: u64, sent: &AtomicU64, began: Instant) -> std::io::Result<Vec<f64>> {
        let mut random = Random::new(load.seed ^ (client << 32));
        let mut buffer = Buffer::new(load.bytes as usize, load.seed ^ client);
        let mut latencies = Vec::new();
        loop {
            let index = sent.fetch_add(1, Ordering::Relaxed);
            if index >= load.requests || nanoseconds(began.elapsed()) >= load.limit_ns {
                return Ok(latencies);
            }
            let place = load.place(index, &mut random);
            let start = Instant::now();
            perform(&self.file, load.kind, place, &mut buffer, load.bytes as usize)?;
            latencies.push(nanoseconds(start.elapsed()) as f64);
        }
    }
}

fn perform(file: &File, kind: Kind, place: u64, buffer: &mut Buffer, bytes: usize) -> std::io::Result<()> {
    match kind {
        Kind::Read => file.read_exact_at(&mut buffer.bytes_mut()[..bytes], place),
        Kind::Write => file.write_all_at(&buffer.bytes()[..bytes], place),
        Kind::Flush | Kind::Discard => file.sync_data(),
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

impl Bench for DeviceBench {
    fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    fn may_write(&self) -> bool {
        self.may_write
    }

    fn ask(&mut self, kind: Kind, offset_bytes: u64, bytes: u64) -> Result<Answer, DiskError> {
        if kind == Kind::Write {
            // Nothing is found to be there already.
            let mark = self.marks.bits();
            self.buffer.stamp(mark);
        }
        let sent_ns = self.now_ns();
        perform(&self.file, kind, offset_bytes, &mut self.buffer, bytes as usize).map_err(|error| self.wrong(error))?;
        Ok(Answer { sent_ns, done_ns: self.now_ns() })
    }

    fn load(&mut self, load: &Load) -> Result<Loaded, DiskError> {
        let (this, sent, began) = (&*self, &AtomicU64::new(0), Instant::now());
        let clients: Vec<std::io::Result<Vec<f64>>> = std::thread::scope(|scope| {
            let threads: Vec<_> =
                (0..load.depth).map(|client| scope.spawn(move || this.client(load, client, sent, began))).collect();
            threads
                .into_iter()
                .map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
                .collect()
        });
        let elapsed_ns = nanoseconds(began.elapsed());
        let mut latencies_ns = Vec::new();
        for client in clients {
            latencies_ns.extend(client.map_err(|error| self.wrong(error))?);
        }
        Ok(Loaded { latencies_ns, elapsed_ns })
    }

    fn pause(&mut self, ns: u64) {
        std::thread::sleep(Duration::from_nanos(ns));
    }

    fn now_ns(&self) -> u64 {
        nanoseconds(self.began.elapsed())
    }

    fn is_said_to_turn(&self) -> bool {
        let Ok(number) = self.file.metadata().map(|metadata| metadata.rdev()) else { return false };
        let folder = format!("/sys/dev/block/{}:{}", libc::major(number), libc::minor(number));
        // A partition has the queue of its disk.
        let queues = ["queue", "../queue"].into_iter();
        let rotational =
            queues.flat_map(|queue| std::fs::read_to_string(format!("{folder}/{queue}/rotational"))).next();
        rotational.is_some_and(|text| text.trim() == "1")
    }
}

pub struct ModelBench {
    drive: VirtualDrive,
    size_bytes: u64,
    may_write: bool,
}

impl ModelBench {
    pub fn new(model: Box<dyn DeviceModel + Send>, size_bytes: u64, may_write: bool) -> Self {
        Self { drive: VirtualDrive::new(model), size_bytes, may_write }
    }
}

impl Bench for ModelBench {
    fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    fn may_write(&self) -> bool {
        self.may_write
    }

    fn ask(&mut self, kind: Kind, offset_bytes: u64, bytes: u64) -> Result<Answer, DiskError> {
        let sent_ns = self.drive.now_ns();
        self.drive.submit(kind, offset_bytes, bytes);
        let done_ns = self.drive.wait().first().map_or(self.drive.now_ns(), |completion| completion.at_ns);
        Ok(Answer { sent_ns, done_ns })
    }

    fn load(&mut self, load: &Load) -> Result<Loaded, DiskError> {
        let (began_ns, mut random) = (self.drive.now_ns(), Random::new(load.seed));
        let (mut sent, mut since) = (0, HashMap::new());
        let mut loaded = Loaded::default();
        loop {
            let more = sent < load.requests && self.drive.now_ns() - began_ns < load.limit_ns;
            while more && sent < load.requests && (since.len() as u64) < load.depth {
                let id = self.drive.submit(load.kind, load.place(sent, &mut random), load.bytes);
                since.insert(id, self.drive.now_ns());
                sent += 1;
            }
            if since.is_empty() {
                break;
            }
            for completion in self.drive.wait() {
                if let Some(sent_ns) = since.remove(&completion.id) {
                    loaded.latencies_ns.push((completion.at_ns - sent_ns) as f64);
                }
            }
        }
        loaded.elapsed_ns = self.drive.now_ns() - began_ns;
        Ok(loaded)
    }

    fn pause(&mut self, ns: u64) {
        self.drive.pause(ns);
    }

    fn now_ns(&self) -> u64 {
        self.drive.now_ns()
    }
}
