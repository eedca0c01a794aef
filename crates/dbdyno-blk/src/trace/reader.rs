//! Requests of a trace, one after the other: a file of any length takes the same memory.

use std::io::{self, BufRead};

use super::block_event::{Begin, BlockEvent, Pairing};
use super::columns::Lacking;
use super::findings::Findings;
use super::format::{Format, Parser};
use super::lines::Lines;
use super::record::Record;
use super::{blkparse, blktrace, disk, disksim};

/// How much of a file says which format it has.
const HEAD_BYTES: usize = 16 << 10;

/// A request so long after the first is none: 100 years, so that times add up in 64 bits.
const SPAN_NS_MOST: u64 = 100 * 366 * 86_400 * 1_000_000_000;

/// Sectors of the longest request that is believed, 1 GiB.
const SECTORS_MOST: u32 = 1 << 21;

/// Why a trace can't be read.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// The file could not be read.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// It is compressed.
    #[error("it is compressed by {0}; unpack it first: {0} -dc FILE > trace")]
    Compressed(&'static str),
    /// It is like no format.
    #[error("it begins like no format of a trace; name one of: {}", names())]
    Unknown,
    /// A CSV without a column that is needed.
    #[error(transparent)]
    Columns(#[from] Lacking),
    /// Only blktrace writes several files.
    #[error("a trace of several files must be blktrace's, a file for each CPU")]
    Several,
}

/// The program that packed a file, by how it begins.
fn compressed_by(head: &[u8]) -> Option<&'static str> {
    let known: [(&[u8], &str); 4] =
        [(b"\x1f\x8b", "gzip"), (b"\x28\xb5\x2f\xfd", "zstd"), (b"\xfd7zXZ\0", "xz"), (b"BZh", "bzip2")];
    known.iter().find(|(magic, _)| head.starts_with(magic)).map(|(_, name)| *name)
}

fn names() -> String {
    Format::ALL.map(|(name, _)| name).join(", ")
}

/// What is asked of a trace.
#[derive(Debug, Clone, Copy, Default)]
pub struct Ask {
    /// Its format; by how it begins, if none is named.
    pub format: Option<Format>,
    /// Which moment of a request is its beginning, in formats that tell of several.
    pub begin: Begin,
    /// Sectors of the device; what ends beyond is counted and left out.
    pub device_sectors: Option<u64>,
}

/// A trace that is being read.
pub struct Trace {
    from: From,
    pairing: Pairing,
    device_sectors: Option<u64>,
    format: Option<Format>,
    first_ns: Option<u64>,
    latest_ns: u64,
    findings: Findings,
}

enum From {
    Lines(Lines<Box<dyn BufRead>>, Parser),
    Blktrace(blktrace::Files),
    Disk(Box<dyn BufRead>),
    Ended,
}

/// What a step of reading gave.
enum Item {
    Event(BlockEvent),
    Record(Record),
    Nothing,
    End,
}

impl Trace {
    /// Begins to read; several files are those of blktrace, one a CPU.
    pub fn open(mut files: Vec<Box<dyn BufRead>>, ask: Ask) -> Result<Self, TraceError> {
        let mut findings = Findings::default();
        let format = match (ask.format, files.first_mut()) {
            (Some(format), _) => Some(format),
            (None, Some(first)) => {
                let head = first.fill_buf()?;
                let head = &head[..head.len().min(HEAD_BYTES)];
                if let Some(by) = compressed_by(head) {
                    return Err(TraceError::Compressed(by));
                }
                if head.is_empty() { None } else { Some(Format::of(head).ok_or(TraceError::Unknown)?) }
            }
            (None, None) => None,
        };
        let from = match format {
            None => From::Ended,
            Some(Format::Blktrace) => From::Blktrace(blktrace::Files::new(files)),
            Some(_) if files.len() > 1 => return Err(TraceError::Several),
            Some(format) => text_or_disk(format, files.remove(0), &mut findings)?,
        };
        Ok(Self {
            from,
            pairing: Pairing::new(ask.begin),
            device_sectors: ask.device_sectors,
            format,
            first_ns: None,
            latest_ns: 0,
            findings,
        })
    }

    /// Which format it is read as; none of an empty file.
    pub fn format(&self) -> Option<Format> {
        self.format
    }

    /// What was met so far besides requests.
    pub fn findings(&self) -> &Findings {
        &self.findings
    }

    fn read(&mut self) -> io::Result<Option<Record>> {
        loop {
            let ended = matches!(self.from, From::Ended);
            let found = match self.pairing.next(ended, &mut self.findings) {
                Some(record) => Some(record),
                None if ended => return Ok(None),
                None => match self.step()? {
                    Item::Event(event) => {
                        self.pairing.take(&event);
                        None
                    }
                    Item::Record(record) => Some(record),
                    Item::Nothing => None,
                    Item::End => {
                        self.from = From::Ended;
                        None
                    }
                },
            };
            if let Some(record) = found.and_then(|record| self.counted(record)) {
                return Ok(Some(record));
            }
        }
    }

    fn step(&mut self) -> io::Result<Item> {
        let findings = &mut self.findings;
        Ok(match &mut self.from {
            From::Ended => Item::End,
            From::Blktrace(files) => match files.next(findings)? {
                None => Item::End,
                Some(event) => Item::Event(event),
            },
            From::Disk(file) => match disk::next(&mut **file, findings)? {
                None => Item::End,
                Some(record) => Item::Record(record),
            },
            From::Lines(lines, parser) => match lines.next()? {
                None => Item::End,
                Some(line) => {
                    findings.lines += 1;
                    match line {
                        Ok(line) => parser.item(line, findings),
                        Err(why) => {
                            findings.damage(why);
                            Item::Nothing
                        }
                    }
                }
            },
        })
    }

    fn counted(&mut self, record: Record) -> Option<Record> {
        if record.sectors == 0 && !record.flush {
            self.findings.pass_over("without data");
            return None;
        }
        if self.device_sectors.is_some_and(|all| record.start_sector + u64::from(record.sectors) > all) {
            self.findings.beyond_device += 1;
            return None;
        }
        if record.sectors > SECTORS_MOST {
            self.findings.damage("asks for more than 1 GiB at once");
            return None;
        }
        let first_ns = *self.first_ns.get_or_insert(record.at_ns);
        if record.at_ns.saturating_sub(first_ns) > SPAN_NS_MOST {
            self.findings.damage("comes 100 years after the first request");
            return None;
        }
        if record.at_ns < self.latest_ns {
            self.findings.backwards += 1;
            self.findings.backwards_ns_max = self.findings.backwards_ns_max.max(self.latest_ns - record.at_ns);
        }
        self.latest_ns = self.latest_ns.max(record.at_ns);
        self.findings.requests += 1;
        Some(Record { response_ns: record.response_ns.map(|response_ns| response_ns.min(SPAN_NS_MOST)), ..record })
    }
}

/// Requests in the order of the trace.
impl Iterator for Trace {
    type Item = io::Result<Record>;

    fn next(&mut self) -> Option<Self::Item> {
        self.read().transpose()
    }
}

fn text_or_disk(format: Format, mut file: Box<dyn BufRead>, findings: &mut Findings) -> Result<From, TraceError> {
    if format == Format::Disk {
        disk::past_magic(&mut *file)?;
        return Ok(From::Disk(file));
    }
    let mut lines = Lines::new(file);
    let mut first = String::new();
    if format.has_heading() {
        findings.lines += 1;
        lines.next()?.and_then(Result::ok).unwrap_or_default().clone_into(&mut first);
    }
    let parser = format.parser(&first)?;
    Ok(From::Lines(lines, parser))
}

impl Parser {
    fn item(&mut self, line: &str, findings: &mut Findings) -> Item {
        let event = |event: Option<BlockEvent>| event.map_or(Item::Nothing, Item::Event);
        let record = |record: Option<Record>| record.map_or(Item::Nothing, Item::Record);
        if line.trim().is_empty() {
            return Item::Nothing;
        }
        match self {
            Self::Blkparse => event(blkparse::blkparse(line, findings)),
            Self::Tracefs => event(blkparse::tracefs(line, findings)),
            Self::Fio(log) => record(log.record(line, findings)),
            Self::Disksim => record(disksim::record(line, findings)),
            Self::Columns(columns) => record(columns.record(line, findings)),
        }
    }
}
