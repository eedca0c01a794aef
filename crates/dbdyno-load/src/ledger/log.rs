//! Writes the ledger's file while the load goes on: each thread fills a buffer of its own, which is appended when it is full.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::error::Error;

use super::record::{Header, Line, RECORD_SIZE, begin};

/// Bytes that a thread gathers before it writes them: 2,048 transactions.
const BUFFER_SIZE: usize = 2048 * RECORD_SIZE;

#[derive(Debug)]
struct Sheet {
    /// None once it could not be written: what is there then has no end mark.
    file: Option<File>,
    error: Option<io::Error>,
}

/// The file.
#[derive(Debug)]
pub struct Log {
    sheet: Mutex<Sheet>,
}

impl Log {
    /// Begins the file, in place of one that is there.
    ///
    /// # Errors
    /// It can't be written.
    pub fn begin(path: &Path, header: &Header) -> Result<Arc<Self>, Error> {
        let failed = |error| Error::File(path.into(), error);
        let mut file = File::create(path).map_err(failed)?;
        begin(&mut file, header).map_err(failed)?;
        let sheet = Mutex::new(Sheet { file: Some(file), error: None });
        Ok(Arc::new(Self { sheet }))
    }

    /// What kept it from being written, if anything did.
    pub fn trouble(&self) -> Option<io::Error> {
        self.locked().error.take()
    }

    /// Notes trouble of another kind, which ends the run as a failure and leaves the file as it is.
    pub fn fail(&self, error: io::Error) {
        self.locked().error.get_or_insert(error);
    }

    fn append(&self, bytes: &[u8]) {
        let mut sheet = self.locked();
        if let Some(Err(error)) = sheet.file.as_mut().map(|file| file.write_all(bytes)) {
            (sheet.file, sheet.error) = (None, Some(error));
        }
    }

    fn locked(&self) -> MutexGuard<'_, Sheet> {
        self.sheet.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Log {
    /// All threads have written what they had, unless something failed: then it must not look whole.
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.append(&Line::End.encode());
        }
    }
}

/// What one thread writes with.
#[derive(Debug)]
pub struct Pen {
    log: Arc<Log>,
    buffer: Vec<u8>,
}

impl Pen {
    /// For one thread.
    pub fn new(log: &Arc<Log>) -> Self {
        Self { log: Arc::clone(log), buffer: Vec::with_capacity(BUFFER_SIZE) }
    }

    /// Takes a line.
    #[inline]
    pub fn write(&mut self, line: Line) {
        self.buffer.extend_from_slice(&line.encode());
        if self.buffer.len() >= BUFFER_SIZE {
            self.flush();
        }
    }

    /// Appends what was gathered.
    pub fn flush(&mut self) {
        self.log.append(&self.buffer);
        self.buffer.clear();
    }
}

impl Drop for Pen {
    fn drop(&mut self) {
        self.flush();
    }
}

#[cfg(test)]
mod tests {
    use super::super::content::{Content, Key};
    use super::super::record::{End, Reader, Record};
    use super::*;

    const LINES: u64 = 20_000;

    fn header() -> Header {
        let content = Content { seed: 1, payload_bytes: 9, blob_bytes: 20_000, blob_percent: 5, accounts: 9, parts: 2 };
        Header {
            version: Header::current(),
            schema: "s".into(),
            engine: "InnoDB".into(),
            transactional: true,
            first_connection: 1,
            connections: 2,
            content,
            ddl: false,
        }
    }

    fn line(connection: u32, sequence: u64) -> Line {
        let end = End::Acked(sequence + 7);
        Line::Transaction(Record { key: Key { connection, sequence }, invoke_ns: sequence, end })
    }

    #[test]
    fn threads_write_whole_lines() {
        let path = std::env::temp_dir().join(format!("dbdyno-log-{}", std::process::id()));
        let log = Log::begin(&path, &header()).unwrap();
        std::thread::scope(|scope| {
            for connection in [1, 2] {
                let mut pen = Pen::new(&log);
                scope.spawn(move || (1..=LINES).for_each(|sequence| pen.write(line(connection, sequence))));
            }
        });
        assert!(log.trouble().is_none());
        drop(log);
        let mut reader = Reader::open(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        let mut last = [0; 2];
        let mut is_whole = false;
        while let Some(found) = reader.next().unwrap() {
            match found {
                Line::Transaction(Record { key, .. }) => {
                    let of = &mut last[key.connection as usize - 1];
                    assert_eq!(found, line(key.connection, *of + 1));
                    *of += 1;
                }
                Line::Ddl(_) => panic!("there was none"),
                Line::End => is_whole = true,
            }
        }
        assert!(is_whole && last == [LINES; 2]);
    }

    #[test]
    fn a_file_that_could_not_be_written_has_no_end_mark() {
        let log = Log::begin(Path::new("/dev/full"), &header());
        assert!(matches!(log, Err(Error::File(..))), "the header is written at once");
        let path = std::env::temp_dir().join(format!("dbdyno-full-{}", std::process::id()));
        let log = Log::begin(&path, &header()).unwrap();
        log.locked().file = Some(File::create("/dev/full").unwrap());
        let mut pen = Pen::new(&log);
        pen.write(line(1, 1));
        drop(pen);
        assert!(log.trouble().is_some() && log.locked().file.is_none());
        drop(log);
        assert!(Reader::open(&path).unwrap().next().unwrap().is_none());
        std::fs::remove_file(&path).unwrap();
    }
}
