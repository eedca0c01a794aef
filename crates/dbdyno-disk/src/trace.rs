//! Every request with its times, written to a file by a thread of its own, and the names of the kinds of requests.
//!
//! The thread that answers a request only puts a record into a buffer of fixed length. If the writing thread cannot
//! keep up, a record is dropped and counted, so that neither memory nor the disk's own times suffer.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use dbdyno_device::Kind;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Records that may wait to be written, 56 bytes each: .4 s at 150,000 requests a second.
const WAITING_MAX: usize = 64 << 10;

/// How often waiting records are written.
const EVERY: Duration = Duration::from_millis(50);

/// First bytes of the compact format, then records of [`RECORD_BYTES`], little-endian, fields in the order of
/// [`COLUMNS`]: four times u64, u64, u32, u16, u8, u8.
const MAGIC: &[u8; 16] = b"dbdyno-trace-1\n\0";
const RECORD_BYTES: usize = 48;

/// First line of the CSV format.
const COLUMNS: &str = "arrival_ns,dispatch_ns,due_ns,completion_ns,lba,size_bytes,queue_depth,kind,error\n";

/// How a trace is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    #[default]
    Csv,
    Binary,
}

/// One request. Times are nanoseconds of `CLOCK_MONOTONIC`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record {
    /// When it reached this process.
    pub arrival_ns: u64,
    /// When it was handed to the model, its data being moved.
    pub dispatch_ns: u64,
    /// When the model says it ends, faults included; 0 where no model was asked.
    pub due_ns: u64,
    /// When its answer had been given.
    pub completion_ns: u64,
    pub offset_bytes: u64,
    pub size_bytes: u64,
    /// Requests in flight at its arrival, itself included.
    pub queue_depth: u32,
    pub kind: Kind,
    pub error: bool,
}

impl Record {
    fn lba(&self) -> u64 {
        self.offset_bytes / 512
    }

    fn write_csv(&self, to: &mut impl Write) -> std::io::Result<()> {
        let kind = NAMES[index(self.kind)];
        writeln!(
            to,
            "{},{},{},{},{},{},{},{kind},{}",
            self.arrival_ns,
            self.dispatch_ns,
            self.due_ns,
            self.completion_ns,
            self.lba(),
            self.size_bytes,
            self.queue_depth,
            u8::from(self.error)
        )
    }

    fn binary(&self) -> [u8; RECORD_BYTES] {
        let mut bytes = [0; RECORD_BYTES];
        let longs = [self.arrival_ns, self.dispatch_ns, self.due_ns, self.completion_ns, self.lba()];
        for (place, long) in bytes.chunks_exact_mut(8).zip(longs) {
            place.copy_from_slice(&long.to_le_bytes());
        }
        // A discard may be longer than 4 GiB, and is then said to be as long as fits.
        bytes[40..44].copy_from_slice(&u32::try_from(self.size_bytes).unwrap_or(u32::MAX).to_le_bytes());
        bytes[44..46].copy_from_slice(&(self.queue_depth.min(u16::MAX.into()) as u16).to_le_bytes());
        bytes[46] = index(self.kind) as u8;
        bytes[47] = u8::from(self.error);
        bytes
    }
}

#[derive(Default)]
struct Waiting {
    records: Vec<Record>,
    taken: u64,
    dropped: u64,
    ending: bool,
    /// Why the file could not be written; nothing is taken any more.
    failed: Option<String>,
}

#[derive(Default)]
struct Shared {
    waiting: Mutex<Waiting>,
    wake: Condvar,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Running {
    path: PathBuf,
    shared: Arc<Shared>,
    writer: JoinHandle<()>,
}

impl Running {
    fn json(&self, running: bool) -> Value {
        let waiting = self.shared.lock();
        json!({
            "running": running, "file": self.path, "records": waiting.taken, "dropped": waiting.dropped,
            "failed": waiting.failed,
        })
    }
}

/// The trace of a disk, running or not.
#[derive(Default)]
pub struct Trace {
    /// Whether records are wanted, readable without the lock.
    wanted: AtomicBool,
    running: Mutex<Option<Running>>,
}

impl Trace {
    /// Takes a request's record, if there is a trace.
    pub fn take(&self, record: impl FnOnce() -> Record) {
        if !self.wanted.load(Ordering::Relaxed) {
            return;
        }
        let running = self.lock();
        let Some(running) = running.as_ref() else { return };
        let mut waiting = running.shared.lock();
        if waiting.records.len() == WAITING_MAX || waiting.failed.is_some() {
            waiting.dropped += 1;
            return;
        }
        waiting.taken += 1;
        waiting.records.push(record());
    }

    /// Starts a trace into a new file, which replaces what was there.
    pub fn start(&self, path: &Path, format: Format) -> Result<(), String> {
        let mut running = self.lock();
        if let Some(running) = running.as_ref() {
            return Err(format!("a trace into {} is running; stop it first", running.path.display()));
        }
        let refused = |error: std::io::Error| format!("cannot write the trace {}: {error}", path.display());
        let file = File::create(path).map_err(refused)?;
        let shared = Arc::new(Shared::default());
        shared.lock().records = Vec::with_capacity(WAITING_MAX);
        let writer = std::thread::Builder::new().name("trace".into()).spawn({
            let shared = Arc::clone(&shared);
            move || write_all(&shared, file, format)
        });
        *running = Some(Running { path: path.to_owned(), shared, writer: writer.map_err(refused)? });
        drop(running);
        self.wanted.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Ends the trace; returns what came of it, once it is all in the file.
    pub fn stop(&self) -> Result<Value, String> {
        self.wanted.store(false, Ordering::Relaxed);
        let Some(running) = self.lock().take() else { return Err("no trace is running".into()) };
        running.shared.lock().ending = true;
        running.shared.wake.notify_one();
        let outcome = running.json(false);
        if running.writer.join().is_err() {
            return Err(format!("the trace {} ended early", running.path.display()));
        }
        match running.shared.lock().failed.take() {
            Some(error) => Err(format!("the trace {}: {error}", running.path.display())),
            None => Ok(outcome),
        }
    }

    /// The state of the trace; null if none is running.
    pub fn json(&self) -> Value {
        self.lock().as_ref().map_or(Value::Null, |running| running.json(true))
    }

    fn lock(&self) -> MutexGuard<'_, Option<Running>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Writes records until the trace ends.
fn write_all(shared: &Shared, file: File, format: Format) {
    let mut file = BufWriter::with_capacity(1 << 20, file);
    let header: &[u8] = if format == Format::Csv { COLUMNS.as_bytes() } else { MAGIC };
    let mut outcome = file.write_all(header);
    let mut records = Vec::with_capacity(WAITING_MAX);
    let mut ending = false;
    while outcome.is_ok() && !ending {
        let mut waiting = shared.lock();
        if !waiting.ending {
            waiting = shared.wake.wait_timeout(waiting, EVERY).unwrap_or_else(PoisonError::into_inner).0;
        }
        ending = waiting.ending;
        std::mem::swap(&mut records, &mut waiting.records);
        drop(waiting);
        outcome = records.drain(..).try_for_each(|record: Record| match format {
            Format::Csv => record.write_csv(&mut file),
            Format::Binary => file.write_all(&record.binary()),
        });
    }
    if let Err(error) = outcome.and_then(|()| file.flush()) {
        shared.lock().failed = Some(error.to_string());
    }
}

/// What kinds are called in every output, by their [`index`].
pub const NAMES: [&str; 4] = ["read", "write", "flush", "discard"];

/// Number of a kind, also in the compact format of a trace.
pub fn index(kind: Kind) -> usize {
    match kind {
        Kind::Read => 0,
        Kind::Write => 1,
        Kind::Flush => 2,
        Kind::Discard => 3,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(at: u64) -> Record {
        Record {
            arrival_ns: at,
            dispatch_ns: at + 1,
            due_ns: at + 2,
            completion_ns: at + 3,
            offset_bytes: at * 4096,
            size_bytes: 4096,
            queue_depth: 3,
            kind: Kind::Write,
            error: at == 1,
        }
    }

    fn traced(format: Format, records: u64) -> (Vec<u8>, Value) {
        let path = std::env::temp_dir().join(format!("dbdyno-trace-{}-{format:?}-{records}", std::process::id()));
        let trace = Trace::default();
        trace.take(|| panic!("nothing is taken before the start"));
        trace.start(&path, format).unwrap();
        assert!(trace.start(&path, format).unwrap_err().contains("is running"));
        for at in 0..records {
            trace.take(|| record(at));
        }
        let message = trace.stop().unwrap();
        assert!(trace.stop().is_err());
        let bytes = std::fs::read(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        (bytes, message)
    }

    #[test]
    fn csv_has_a_line_a_request() {
        let (bytes, reply) = traced(Format::Csv, 2);
        let text = String::from_utf8(bytes).unwrap();
        assert_eq!(text, format!("{COLUMNS}0,1,2,3,0,4096,3,write,0\n1,2,3,4,8,4096,3,write,1\n"));
        assert_eq!((reply["records"].as_u64(), reply["dropped"].as_u64()), (Some(2), Some(0)));
    }

    #[test]
    fn the_compact_format_has_48_bytes_a_request() {
        let (bytes, _) = traced(Format::Binary, 3);
        assert_eq!(bytes.len(), 16 + 3 * RECORD_BYTES);
        assert_eq!(bytes[16 + 48 + 32..][..16], [8, 0, 0, 0, 0, 0, 0, 0, 0, 16, 0, 0, 3, 0, 1, 1]);
    }

    #[test]
    fn what_does_not_fit_is_counted() {
        let records = 40 * WAITING_MAX as u64;
        let (bytes, reply) = traced(Format::Binary, records);
        let (taken, dropped) = (reply["records"].as_u64().unwrap(), reply["dropped"].as_u64().unwrap());
        assert_eq!(taken + dropped, records);
        assert_eq!(bytes.len() as u64, 16 + taken * RECORD_BYTES as u64);
        assert!(dropped > 0, "2.6 million records in some milliseconds are more than the buffer holds");
    }

    #[test]
    fn a_file_that_cannot_be_made_is_named() {
        let message = Trace::default().start(Path::new("/no/such/folder/trace"), Format::Csv).unwrap_err();
        assert!(message.contains("/no/such/folder/trace"), "{message}");
    }
}
