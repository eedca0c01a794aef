//! The file of a run's transactions, `--ledger=FILE`: when each was sent and when it was acknowledged.
//!
//! It begins with [`MAGIC`], the length of the header (4 bytes) and the header as JSON; then come records of 32 bytes,
//! all numbers little-endian. A file without an end mark, cut off anywhere, is read up to its last whole record: of
//! what may be missing from it nothing is concluded.
//!
//! Everything that a transaction holds follows from the seed, its connection and its number, so that a verifier can
//! tell what must be there without having kept it.

use std::fs::File;
use std::io::{self, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dbdyno_common::random::Random;
use serde::{Deserialize, Serialize};

use crate::error::Error;

/// The first bytes.
const MAGIC: &[u8; 8] = b"dbdynoLG";

/// Version of the format.
const VERSION: u32 = 1;

/// Longest header that is read.
const HEADER_MAX: usize = 64 << 10;

/// Bytes of a record.
const RECORD_SIZE: usize = 32;

/// What a file is of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    /// Of the format.
    pub version: u32,
    /// Where the tables are.
    pub schema: String,
    /// Storage engine, as the server reported it.
    pub engine: String,
    /// Whether it has transactions: else a statement is the unit.
    pub transactional: bool,
    /// Number of the first connection.
    pub first_connection: u32,
    /// How many there are, those of a warm-up included.
    pub connections: u32,
    /// What the transactions hold.
    pub content: Content,
    /// Whether DDL was sent, too.
    pub ddl: bool,
}

impl Header {
    /// With the version of this program.
    pub fn current() -> u32 {
        VERSION
    }
}

/// What came of a transaction, or of a DDL statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// Its acknowledgement was read, at this time.
    Acked(u64),
    /// No answer came, or one that says neither.
    Unanswered,
    /// The server refused it.
    Refused,
    /// It was given up before its COMMIT was sent.
    Unsent,
}

/// What happened to one of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record {
    /// Which.
    pub key: Key,
    /// When it was sent, just before (`CLOCK_MONOTONIC`, ns).
    pub invoke_ns: u64,
    /// What came of it.
    pub end: End,
}

/// A line of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Line {
    /// A transaction.
    Transaction(Record),
    /// A DDL statement; `sequence` is its number, from 1.
    Ddl(Record),
    /// Nothing is missing.
    End,
}

const ACKED: u8 = 1;
const UNANSWERED: u8 = 2;
const REFUSED: u8 = 3;
const UNSENT: u8 = 4;
const DDL: u8 = 0x10;
const WHOLE: u8 = 0x20;

impl Line {
    /// As bytes.
    pub fn encode(self) -> [u8; RECORD_SIZE] {
        let (flag, record) = match self {
            Self::Transaction(record) => (0, Some(record)),
            Self::Ddl(record) => (DDL, Some(record)),
            Self::End => (WHOLE, None),
        };
        let mut out = [0; RECORD_SIZE];
        let Some(Record { key, invoke_ns, end }) = record else {
            out[0] = flag;
            return out;
        };
        let (kind, ack_ns) = match end {
            End::Acked(ack_ns) => (ACKED, ack_ns),
            End::Unanswered => (UNANSWERED, 0),
            End::Refused => (REFUSED, 0),
            End::Unsent => (UNSENT, 0),
        };
        out[0] = flag | kind;
        out[4..8].copy_from_slice(&key.connection.to_le_bytes());
        out[8..16].copy_from_slice(&key.sequence.to_le_bytes());
        out[16..24].copy_from_slice(&invoke_ns.to_le_bytes());
        out[24..].copy_from_slice(&ack_ns.to_le_bytes());
        out
    }

    /// What `bytes` stand for; `None` if they are no line.
    pub fn decode(bytes: &[u8; RECORD_SIZE]) -> Option<Self> {
        let number = |at: usize| bytes[at..].first_chunk().map(|eight| u64::from_le_bytes(*eight));
        let connection = u32::from_le_bytes(*bytes[4..].first_chunk()?);
        let end = match bytes[0] & !DDL {
            ACKED => End::Acked(number(24)?),
            UNANSWERED => End::Unanswered,
            REFUSED => End::Refused,
            UNSENT => End::Unsent,
            WHOLE if bytes[0] == WHOLE => return Some(Self::End),
            _ => return None,
        };
        let record = Record { key: Key { connection, sequence: number(8)? }, invoke_ns: number(16)?, end };
        Some(if bytes[0] & DDL == 0 { Self::Transaction(record) } else { Self::Ddl(record) })
    }
}

/// Begins a file.
///
/// # Errors
/// It can't be written.
pub fn begin(out: &mut impl Write, header: &Header) -> io::Result<()> {
    let text = serde_json::to_vec(header)?;
    out.write_all(MAGIC)?;
    out.write_all(&(text.len() as u32).to_le_bytes())?;
    out.write_all(&text)
}

/// A file that is read.
pub struct Reader {
    path: PathBuf,
    file: BufReader<File>,
    /// What it is of.
    pub header: Header,
}

impl Reader {
    /// Opens a file and reads its header.
    ///
    /// # Errors
    /// It can't be read, or is no such file.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let file = File::open(path).map_err(|error| Error::File(path.into(), error))?;
        let mut file = BufReader::with_capacity(1 << 20, file);
        let header = header(&mut file).map_err(|why| Error::Usage(format!("{}: {why}", path.display())))?;
        Ok(Self { path: path.into(), file, header })
    }

    /// The next line; `None` at the end, be it that of a record cut short.
    ///
    /// # Errors
    /// It can't be read, or a record is none.
    pub fn next(&mut self) -> Result<Option<Line>, Error> {
        let mut bytes = [0; RECORD_SIZE];
        match self.file.read_exact(&mut bytes) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
            Err(error) => return Err(Error::File(self.path.clone(), error)),
        }
        let line = Line::decode(&bytes);
        let line = line.ok_or_else(|| self.broken("has a record that dbdyno ledger run did not write"))?;
        Ok(Some(line))
    }

    /// The error for a file that can't be used.
    pub fn broken(&self, why: &str) -> Error {
        Error::Usage(format!("{}: {why}: run the load again", self.path.display()))
    }
}

fn header(file: &mut impl Read) -> Result<Header, String> {
    const NONE: &str = "is not a ledger: give the file that dbdyno ledger run wrote with --ledger";
    let mut start = [0; 12];
    file.read_exact(&mut start).map_err(|_| NONE)?;
    let (magic, length) = start.split_at(MAGIC.len());
    let length = length.first_chunk().map_or(0, |four| u32::from_le_bytes(*four) as usize);
    if magic != MAGIC || length > HEADER_MAX {
        return Err(NONE.into());
    }
    let mut text = vec![0; length];
    file.read_exact(&mut text).map_err(|_| "is cut off in its header: the load ended before it began")?;
    let value: serde_json::Value = serde_json::from_slice(&text).map_err(|_| NONE)?;
    match value["version"].as_u64() {
        Some(version) if version == u64::from(VERSION) => serde_json::from_value(value).map_err(|_| NONE.into()),
        version => Err(format!(
            "has version {} of the format, this program reads {VERSION}: use the one that wrote it",
            version.map_or("?".into(), |version| version.to_string())
        )),
    }
}

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

/// Most accounts of a transfer.
pub const PARTS_MAX: usize = 16;

/// Which transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// Number of the connection, unique over all runs on the same tables.
    pub connection: u32,
    /// Its number on that connection, from 1.
    pub sequence: u64,
}

/// A part of a transfer: what one account gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Part {
    /// From 1.
    pub account: u32,
    /// Less than zero for the account that pays.
    pub amount: i64,
}

/// The sizes and the seed of all transactions of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Content {
    /// Of all content.
    pub seed: u64,
    /// Bytes of every row.
    pub payload_bytes: usize,
    /// Bytes of a blob.
    pub blob_bytes: usize,
    /// Percent of the rows that have one.
    pub blob_percent: u64,
    /// How many there are.
    pub accounts: u32,
    /// Accounts that a transfer changes.
    pub parts: usize,
}

/// Streams of random numbers of one transaction.
#[derive(Debug, Clone, Copy)]
enum Stream {
    Row,
    Payload,
    Blob,
    Transfer,
}

impl Content {
    fn random(&self, key: Key, stream: Stream) -> Random {
        let connection = Random::new(self.seed ^ u64::from(key.connection).rotate_left(32)).bits();
        let transaction = Random::new(connection.wrapping_add(key.sequence)).bits();
        Random::new(transaction.wrapping_add(stream as u64))
    }

    /// The indexed number of a row, and whether it has a blob.
    pub fn row(&self, key: Key) -> (i64, bool) {
        let mut random = self.random(key, Stream::Row);
        ((random.bits() >> 1) as i64, random.below(100) < self.blob_percent)
    }

    /// Puts the payload into `out`.
    pub fn payload(&self, key: Key, out: &mut Vec<u8>) {
        put_text(self.random(key, Stream::Payload), self.payload_bytes, out);
    }

    /// Puts the blob into `out`.
    pub fn blob(&self, key: Key, out: &mut Vec<u8>) {
        put_text(self.random(key, Stream::Blob), self.blob_bytes, out);
    }

    /// The parts of the transfer: accounts that differ, amounts that come to nothing.
    pub fn transfer(&self, key: Key, out: &mut [Part; PARTS_MAX]) -> usize {
        let mut random = self.random(key, Stream::Transfer);
        let mut paid = 0;
        for number in 0..self.parts {
            let account = loop {
                let drawn = random.below(u64::from(self.accounts)) as u32 + 1;
                if out[..number].iter().all(|part| part.account != drawn) {
                    break drawn;
                }
            };
            let amount = random.below(100) as i64 + 1;
            paid += if number > 0 { amount } else { 0 };
            out[number] = Part { account, amount };
        }
        out[0].amount = -paid;
        self.parts
    }
}

/// Printable ASCII, which no character set changes, six bits of chance a byte.
fn put_text(mut random: Random, length: usize, out: &mut Vec<u8>) {
    out.clear();
    while out.len() < length {
        let eight = (random.bits() & 0x3f3f_3f3f_3f3f_3f3f) + 0x3030_3030_3030_3030;
        out.extend_from_slice(&eight.to_le_bytes());
    }
    out.truncate(length);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn lines() -> impl Strategy<Value = Line> {
        let end = prop_oneof![
            any::<u64>().prop_map(End::Acked),
            Just(End::Unanswered),
            Just(End::Refused),
            Just(End::Unsent)
        ];
        let record =
            (any::<u32>(), any::<u64>(), any::<u64>(), end).prop_map(|(connection, sequence, invoke_ns, end)| Record {
                key: Key { connection, sequence },
                invoke_ns,
                end,
            });
        prop_oneof![record.clone().prop_map(Line::Transaction), record.prop_map(Line::Ddl), Just(Line::End)]
    }

    fn sample() -> Header {
        let content = Content { seed: 1, payload_bytes: 10, blob_bytes: 20, blob_percent: 5, accounts: 9, parts: 2 };
        Header {
            version: VERSION,
            schema: "s".into(),
            engine: "InnoDB".into(),
            transactional: true,
            first_connection: 1,
            connections: 2,
            content,
            ddl: false,
        }
    }

    proptest! {
        #[test]
        fn a_line_is_read_as_it_was_written(line in lines()) {
            prop_assert_eq!(Line::decode(&line.encode()), Some(line));
        }

        #[test]
        fn a_file_that_is_cut_off_is_read_up_to_its_last_record(lines in prop::collection::vec(lines(), 0..20), cut in 0_usize..700) {
            let mut bytes = Vec::new();
            begin(&mut bytes, &sample()).unwrap();
            let start = bytes.len();
            bytes.extend(lines.iter().flat_map(|line| line.encode()));
            bytes.truncate(start + cut);
            let path = std::env::temp_dir().join(format!("dbdyno-ledger-{}-{cut}", std::process::id()));
            std::fs::write(&path, &bytes).unwrap();
            let mut reader = Reader::open(&path).unwrap();
            std::fs::remove_file(&path).unwrap();
            prop_assert_eq!(&reader.header, &sample());
            let mut read = Vec::new();
            while let Some(line) = reader.next().unwrap() {
                read.push(line);
            }
            prop_assert_eq!(&read[..], &lines[..lines.len().min(cut / RECORD_SIZE)]);
        }
    }

    #[test]
    fn what_is_no_ledger_is_refused() {
        let refused = |bytes: &[u8]| header(&mut &*bytes).unwrap_err();
        assert!(refused(b"").contains("is not a ledger") && refused(&[7; 90]).contains("is not a ledger"));
        let mut bytes = Vec::new();
        begin(&mut bytes, &Header { version: 9, ..sample() }).unwrap();
        assert!(refused(&bytes).contains("has version 9 of the format, this program reads 1"));
        assert!(refused(&bytes[..40]).contains("cut off in its header"));
        assert_eq!(Line::decode(&[0x40; RECORD_SIZE]), None);
    }

    const LINES: u64 = 20_000;

    fn logged_header() -> Header {
        let content = Content { payload_bytes: 9, blob_bytes: 20_000, ..sample().content };
        Header { content, ..sample() }
    }

    fn line(connection: u32, sequence: u64) -> Line {
        let end = End::Acked(sequence + 7);
        Line::Transaction(Record { key: Key { connection, sequence }, invoke_ns: sequence, end })
    }

    #[test]
    fn threads_write_whole_lines() {
        let path = std::env::temp_dir().join(format!("dbdyno-log-{}", std::process::id()));
        let log = Log::begin(&path, &logged_header()).unwrap();
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
        while let Some(entry) = reader.next().unwrap() {
            match entry {
                Line::Transaction(Record { key, .. }) => {
                    let of = &mut last[key.connection as usize - 1];
                    assert_eq!(entry, line(key.connection, *of + 1));
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
        let log = Log::begin(Path::new("/dev/full"), &logged_header());
        assert!(matches!(log, Err(Error::File(..))), "the header is written at once");
        let path = std::env::temp_dir().join(format!("dbdyno-full-{}", std::process::id()));
        let log = Log::begin(&path, &logged_header()).unwrap();
        log.locked().file = Some(File::create("/dev/full").unwrap());
        let mut pen = Pen::new(&log);
        pen.write(line(1, 1));
        drop(pen);
        assert!(log.trouble().is_some() && log.locked().file.is_none());
        drop(log);
        assert!(Reader::open(&path).unwrap().next().unwrap().is_none());
        std::fs::remove_file(&path).unwrap();
    }

    fn content(seed: u64) -> Content {
        Content { seed, payload_bytes: 100, blob_bytes: 20_000, blob_percent: 5, accounts: 50, parts: 4 }
    }

    #[test]
    fn all_follows_from_seed_and_key() {
        let key = Key { connection: 3, sequence: 9 };
        let payload = |seed, key| {
            let mut out = Vec::new();
            content(seed).payload(key, &mut out);
            out
        };
        assert_eq!(payload(1, key), payload(1, key));
        for (seed, other) in [
            (2, key),
            (1, Key { connection: 4, ..key }),
            (1, Key { sequence: 10, ..key }),
            (1, Key { connection: 2, sequence: 10 }),
        ] {
            assert_ne!(payload(1, key), payload(seed, other));
            assert_ne!(content(1).row(key), content(seed).row(other));
        }
        assert!(payload(1, key).len() == 100 && payload(1, key).iter().all(u8::is_ascii_graphic));
    }

    #[test]
    fn transfers_come_to_nothing_and_blobs_to_their_share() {
        let mut blobs = 0;
        for sequence in 1..=10_000 {
            let key = Key { connection: 1, sequence };
            let mut parts = [Part::default(); PARTS_MAX];
            let parts = content(7).transfer(key, &mut parts).min(PARTS_MAX);
            let mut drawn = [Part::default(); PARTS_MAX];
            content(7).transfer(key, &mut drawn);
            assert_eq!(drawn[..parts].iter().map(|part| part.amount).sum::<i64>(), 0);
            let mut accounts: Vec<u32> = drawn[..parts].iter().map(|part| part.account).collect();
            accounts.sort_unstable();
            accounts.dedup();
            assert!(accounts.len() == 4 && accounts[0] >= 1 && accounts[3] <= 50, "{accounts:?}");
            blobs += u64::from(content(7).row(key).1);
        }
        assert!((400..600).contains(&blobs), "{blobs}");
    }
}
