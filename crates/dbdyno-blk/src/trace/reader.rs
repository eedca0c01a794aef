//! Requests of a trace, one after the other: a file of any length takes the same memory.

use std::collections::BTreeMap;
use std::io::{self, BufRead};

use super::block_event::{Action, Begin, BlockEvent, Pairing};
use super::format::{Format, Parser, ParserError, ParserStart, Units, length_scale, time_scale};
use super::headings::Lacking;
use super::lines::{Columned, Lines};
use super::record::{Findings, Record};
use super::units::{Doubt, LENGTHS, TIMES};
use super::{blkparse, blktrace, disk};

/// How much of a file says which format it has, and which units.
const HEAD_BYTES: usize = 64 << 10;

/// Requests that are held back until none can come before them, of traces that stand in the order of ends.
const HELD_MOST: usize = 1 << 16;

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
    /// It is in 16-bit characters.
    #[error("it is UTF-16 text, as PowerShell writes; convert it first: iconv -f UTF-16 -t UTF-8 FILE > trace")]
    Utf16,
    /// It is like no format.
    #[error("its beginning fits no format of traces; name the format, one of: {}", names())]
    Unknown,
    /// It has sums over requests.
    #[error(
        "it has {0}, not the requests themselves: record these, for example with dbdyno trace record, blktrace or biosnoop"
    )]
    Sums(&'static str),
    /// A CSV without a column that is needed.
    #[error(transparent)]
    Columns(#[from] Lacking),
    /// Its numbers may be in several units.
    #[error(transparent)]
    Doubt(#[from] Doubt),
    /// Its numbers have a unit already.
    #[error("{0}")]
    Exact(String),
    /// Only blktrace writes several files.
    #[error("only a trace of blktrace has several files, one for each CPU")]
    Several,
}

impl std::convert::From<ParserError> for TraceError {
    fn from(error: ParserError) -> Self {
        match error {
            ParserError::Lacking(lacking) => Self::Columns(lacking),
            ParserError::Doubt(doubt) => Self::Doubt(doubt),
            ParserError::Exact { .. } => Self::Exact(error.to_string()),
        }
    }
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

/// What sums over requests a text holds, by words that stand in no trace.
fn sums_in(head: &[u8]) -> Option<&'static str> {
    const HISTOGRAM: &str = "a histogram, as biolatency and bitesize print it";
    let known: [(&[&str], &str); 7] = [
        (&["r/s", "w/s"], "figures of iostat"),
        (&["tps", "kB_read"], "figures of iostat"),
        (&["procs", "-memory-"], "figures of vmstat"),
        (&["rd_sec/s"], "figures of sar"),
        (&["All Devices"], "figures of btt"),
        (&["|@"], HISTOGRAM),
        (&["|**", "distribution"], HISTOGRAM),
    ];
    let text = String::from_utf8_lossy(head);
    known.iter().find(|(words, _)| words.iter().all(|word| text.contains(word))).map(|(_, what)| *what)
}

/// What is asked of a trace.
#[derive(Debug, Clone, Copy, Default)]
pub struct ReadOptions {
    /// Its format; by how it begins, if none is named.
    pub format: Option<Format>,
    /// Which moment of a request is its beginning, in formats that tell of several.
    pub begin: Begin,
    /// Sectors of the device; what ends beyond is counted and left out.
    pub device_sectors: Option<u64>,
    /// What ends beyond the device is put at what is left of its place divided by the device's size.
    pub fold: bool,
    /// Nanoseconds of a unit of its times, where its format leaves that open.
    pub time_scale: Option<u64>,
    /// Bytes of a unit of its places and lengths, likewise.
    pub length_scale: Option<u64>,
}

impl ReadOptions {
    /// With a format and units by the names that users give them; an error is a field's name and a sentence.
    pub fn by_names(
        self,
        format: Option<&str>,
        time_unit: Option<&str>,
        length_unit: Option<&str>,
    ) -> Result<Self, (&'static str, String)> {
        let unknown =
            |what: &str, name: &str, known: String| format!("there is no {what} {name:?}; choose one of {known}");
        let list = |units: &[(&'static str, &'static str, u64)]| {
            units.iter().map(|(name, ..)| *name).collect::<Vec<_>>().join(", ")
        };
        let format = format
            .map(|name| Format::by_name(name).ok_or_else(|| ("format", unknown("trace format", name, names()))))
            .transpose()?;
        let time_scale = time_unit
            .map(|name| time_scale(name).ok_or_else(|| ("time_unit", unknown("unit of time", name, list(&TIMES)))))
            .transpose()?;
        let length_scale = length_unit
            .map(|name| {
                length_scale(name).ok_or_else(|| ("length_unit", unknown("unit of length", name, list(&LENGTHS))))
            })
            .transpose()?;
        Ok(Self { format, time_scale, length_scale, ..self })
    }
}

/// A trace that is being read.
pub struct Trace {
    from: From,
    pairing: Pairing,
    device_sectors: Option<u64>,
    fold: bool,
    reordering: Option<Reordering>,
    format: Option<Format>,
    first_ns: Option<u64>,
    latest_ns: u64,
    findings: Findings,
}

enum From {
    Lines(Lines<Box<dyn BufRead>>, Option<Columned>, Parser),
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
    pub fn open(mut files: Vec<Box<dyn BufRead>>, ask: ReadOptions) -> Result<Self, TraceError> {
        let mut findings = Findings::default();
        let several = files.len() > 1;
        let begun = match files.first_mut() {
            Some(first) => detect_beginning(&mut **first, ask, several)?,
            None => None,
        };
        let moment = ask.begin.moments()[0];
        let (format, from, moment) = match begun {
            None => (ask.format, From::Ended, moment),
            Some(Beginning { format: Format::Blktrace, .. }) => {
                (Some(Format::Blktrace), From::Blktrace(blktrace::Files::new(files)), moment)
            }
            Some(_) if several => return Err(TraceError::Several),
            Some(Beginning { format: Format::Disk, .. }) => {
                let mut file = files.remove(0);
                disk::past_magic(&mut *file)?;
                (Some(Format::Disk), From::Disk(file), moment)
            }
            Some(begun) => {
                let mut lines = Lines::new(files.remove(0));
                pass_text(&mut lines, begun.lines_before, begun.has_heading, &mut findings)?;
                findings.notes = begun.notes;
                (Some(begun.format), From::Lines(lines, begun.columned, begun.parser), begun.moment)
            }
        };
        let by_end = matches!(&from, From::Lines(_, _, Parser::Columns(columns)) if columns.by_end());
        Ok(Self {
            from,
            pairing: Pairing::new(moment),
            device_sectors: ask.device_sectors,
            fold: ask.fold,
            reordering: by_end.then(Reordering::default),
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
                None if ended => match self.reordering.as_mut().and_then(Reordering::pop) {
                    Some(record) => Some(record),
                    None => return Ok(None),
                },
                None => match self.step()? {
                    Item::Event(event) => {
                        self.pairing.take(&event);
                        None
                    }
                    Item::Record(record) => match &mut self.reordering {
                        Some(held) => held.push(record),
                        None => Some(record),
                    },
                    Item::Nothing => None,
                    Item::End => {
                        self.from = From::Ended;
                        None
                    }
                },
            };
            if let Some(record) = found.and_then(|record| self.admit(record)) {
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
            From::Lines(lines, columned, parser) => match lines.next()? {
                None => Item::End,
                Some(line) => {
                    findings.lines += 1;
                    match line {
                        Ok(line) => match columned {
                            Some(columned) => parser.item(&columned.line(line), findings),
                            None => parser.item(line, findings),
                        },
                        Err(why) => {
                            findings.damage(why);
                            Item::Nothing
                        }
                    }
                }
            },
        })
    }

    fn admit(&mut self, record: Record) -> Option<Record> {
        if record.sectors == 0 && !record.flush {
            self.findings.pass_over("without data");
            return None;
        }
        let sectors = u64::from(record.sectors);
        let mut start_sector = record.start_sector;
        if let Some(all) = self.device_sectors.filter(|all| start_sector + sectors > *all) {
            if !self.fold || sectors > all {
                self.findings.beyond_device += 1;
                return None;
            }
            // What would lie across the end is put before it.
            start_sector = (start_sector % all).min(all - sectors);
            self.findings.folded += 1;
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
        Some(Record {
            start_sector,
            response_ns: record.response_ns.map(|response_ns| response_ns.min(SPAN_NS_MOST)),
            ..record
        })
    }
}

/// Requests in the order of the trace.
impl Iterator for Trace {
    type Item = io::Result<Record>;

    fn next(&mut self) -> Option<Self::Item> {
        self.read().transpose()
    }
}

/// How a trace begins, and how it is read from there on.
struct Beginning {
    format: Format,
    lines_before: usize,
    has_heading: bool,
    columned: Option<Columned>,
    parser: Parser,
    moment: Action,
    notes: Vec<String>,
}

/// Looks at a file's beginning; `None` of an empty one whose format is not named.
fn detect_beginning(first: &mut dyn BufRead, ask: ReadOptions, several: bool) -> Result<Option<Beginning>, TraceError> {
    let head = first.fill_buf()?;
    let head = &head[..head.len().min(HEAD_BYTES)];
    if ask.format.is_none() {
        if head.is_empty() {
            return Ok(None);
        }
        if let Some(by) = compressed_by(head) {
            return Err(TraceError::Compressed(by));
        }
        if head.starts_with(b"\xff\xfe") || head.starts_with(b"\xfe\xff") {
            return Err(TraceError::Utf16);
        }
    }
    let (columned, in_columns) = detect_columns(head, ask.format);
    let (head, heading_at) = in_columns.as_ref().map_or((head, None), |(text, at)| (text.as_bytes(), *at));
    let found = Format::find(head, ask.format).map_err(|lacking| match sums_in(head) {
        Some(sums) => TraceError::Sums(sums),
        None => lacking.map_or(TraceError::Unknown, TraceError::Columns),
    })?;
    let format = found.format;
    if several && format != Format::Blktrace {
        return Err(TraceError::Several);
    }
    // A line that the beginning does not hold to its end is left out of what is looked at.
    let whole = match head.iter().rposition(|&byte| byte == b'\n') {
        Some(end) if head.len() == HEAD_BYTES || end + 1 < head.len() => &head[..end],
        _ => head,
    };
    let text = if matches!(format, Format::Blktrace | Format::Disk) {
        String::new().into()
    } else {
        String::from_utf8_lossy(whole)
    };
    let lines: Vec<&str> = text.lines().skip(found.lines_before).map(|line| line.trim_end_matches('\r')).collect();
    let units = Units { time_scale: ask.time_scale, length_scale: ask.length_scale };
    let mut begun = format.parser(&lines, units, ask.begin)?;
    let meant = ask.begin.moments()[0];
    let moment = if begun.parser.has_events() { begun.parser.moment(&lines, ask.begin) } else { meant };
    if moment != meant {
        begun.notes.push(format!(
            "requests begin when they were {}: the trace has no event of when they were {}",
            moment.words(),
            meant.words()
        ));
    }
    let ParserStart { parser, has_heading, notes } = begun;
    // The names of keys are no line of the file.
    let has_heading = has_heading && heading_at.is_none();
    Ok(Some(Beginning { format, lines_before: found.lines_before, has_heading, columned, parser, moment, notes }))
}

/// How lines are made lines of columns, if they have to be; with the beginning of the file as that makes it, and the place of a line of
/// names that stands for keys.
fn detect_columns(head: &[u8], format: Option<Format>) -> (Option<Columned>, Option<(String, Option<usize>)>) {
    let is_text = !matches!(format, Some(Format::Blktrace | Format::Disk)) && !head.contains(&0);
    let text = if is_text { String::from_utf8_lossy(head) } else { String::new().into() };
    let lines: Vec<&str> = text.trim_start_matches('\u{feff}').lines().collect();
    let Some(mut columned) = Columned::of_beginning(&lines) else { return (None, None) };
    let mut in_columns: Vec<String> = lines.iter().map(|line| columned.line(line).into_owned()).collect();
    let heading = columned.heading();
    let at = heading.map(|(names, at)| {
        in_columns.insert(at, names);
        at
    });
    (Columned::of_beginning(&lines), Some((in_columns.join("\n") + "\n", at)))
}

/// Reads past what stands before the first event, and past the line that names columns.
fn pass_text(
    lines: &mut Lines<Box<dyn BufRead>>,
    before: usize,
    has_heading: bool,
    findings: &mut Findings,
) -> io::Result<()> {
    for _ in 0..before {
        findings.lines += 1;
        match lines.next()? {
            Some(Ok(line)) if line.starts_with('#') => blkparse::comment(line, findings),
            Some(Ok(line)) if line.trim().is_empty() => {}
            _ => findings.text_before += 1,
        }
    }
    if has_heading {
        findings.lines += 1;
        lines.next()?;
    }
    Ok(())
}

/// Requests that are held back and handed on by their beginnings.
#[derive(Default)]
struct Reordering {
    waiting: BTreeMap<(u64, u64), Record>,
    number: u64,
}

impl Reordering {
    fn push(&mut self, record: Record) -> Option<Record> {
        self.number += 1;
        self.waiting.insert((record.at_ns, self.number), record);
        if self.waiting.len() > HELD_MOST { self.pop() } else { None }
    }

    fn pop(&mut self) -> Option<Record> {
        self.waiting.pop_first().map(|(_, record)| record)
    }
}

impl Parser {
    fn item(&mut self, line: &str, findings: &mut Findings) -> Item {
        let event = |event: Option<BlockEvent>| event.map_or(Item::Nothing, Item::Event);
        let record = |record: Option<Record>| record.map_or(Item::Nothing, Item::Record);
        if line.trim().is_empty() {
            return Item::Nothing;
        }
        match self {
            Self::Blkparse | Self::Tracefs | Self::Own(_) => event(self.event(line, findings)),
            Self::Fio(log) => record(log.record(line, findings)),
            Self::Disksim(form) => record(form.record(line, findings)),
            Self::Columns(columns) => record(columns.record(line, findings)),
        }
    }
}
