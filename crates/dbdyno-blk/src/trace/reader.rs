//! Requests of a trace, one after the other: a file of any length takes the same memory.
//!
//! A text is read by lines of bounded length. Those that scripts and programs print as `key=value`, as JSON or with
//! dates and clocks become lines of columns.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::{self, BufRead, Read};

use dbdyno_common::calendar::days_since_1970;
use dbdyno_common::similar::did_you_mean;
use serde_json::Value;

use super::format::{Format, Parser, ParserError, ParserStart, Units, length_scale, time_scale};
use super::headings::Lacking;
use super::record::{Action, Begin, BlockEvent, Findings, Pairing, Record};
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
        let unknown = |what: &str, name: &str, known: String| {
            let hint = did_you_mean(name, known.split(", "));
            format!("there is no {what} {name:?}; choose one of {known}{hint}")
        };
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
            let record = match self.pairing.next(ended, &mut self.findings) {
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
                        Some(reordering) => reordering.push(record),
                        None => Some(record),
                    },
                    Item::Nothing => None,
                    Item::End => {
                        self.from = From::Ended;
                        None
                    }
                },
            };
            if let Some(record) = record.and_then(|record| self.admit(record)) {
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
    let beginning = Format::find(head, ask.format).map_err(|lacking| match sums_in(head) {
        Some(sums) => TraceError::Sums(sums),
        None => lacking.map_or(TraceError::Unknown, TraceError::Columns),
    })?;
    let format = beginning.format;
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
    let lines: Vec<&str> = text.lines().skip(beginning.lines_before).map(|line| line.trim_end_matches('\r')).collect();
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
    Ok(Some(Beginning { format, lines_before: beginning.lines_before, has_heading, columned, parser, moment, notes }))
}

/// How lines are made lines of columns, if they have to be; with the beginning of the file as that makes it, and the
/// place of a line of names that stands for keys.
fn detect_columns(head: &[u8], format: Option<Format>) -> (Option<Columned>, Option<(String, Option<usize>)>) {
    let is_text = !matches!(format, Some(Format::Blktrace | Format::Disk)) && !head.contains(&0);
    let text = if is_text { String::from_utf8_lossy(head) } else { String::new().into() };
    let lines: Vec<&str> = text.trim_start_matches('\u{feff}').lines().collect();
    let Some(mut columned) = Columned::from_beginning(&lines) else { return (None, None) };
    let mut in_columns: Vec<String> = lines.iter().map(|line| columned.line(line).into_owned()).collect();
    let heading = columned.heading();
    let at = heading.map(|(names, at)| {
        in_columns.insert(at, names);
        at
    });
    (Columned::from_beginning(&lines), Some((in_columns.join("\n") + "\n", at)))
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

/// Bytes of a line that is read; a longer one is damaged.
const LINE_BYTES_MOST: u64 = 16 << 10;

/// What some editors put before the first line of a text in UTF-8.
const MARK: &[u8] = "\u{feff}".as_bytes();

/// Most keys of a line.
const KEYS_MOST: usize = 64;

/// Fewest keys that make a line one of keys and values.
const KEYS_LEAST: usize = 4;

/// Lines at the beginning that are looked at.
const LOOKED_AT: usize = 64;

const DAY_S: u64 = 86_400;

/// One line without its end, or that it was too long or no UTF-8.
pub type Line<'a> = Result<&'a str, &'static str>;

/// Reads line by line into one buffer.
pub struct Lines<R> {
    from: R,
    buffer: Vec<u8>,
    begun: bool,
}

impl<R: BufRead> Lines<R> {
    pub fn new(from: R) -> Self {
        Self { from, buffer: Vec::new(), begun: false }
    }

    /// The next line; `None` at the end.
    pub fn next(&mut self) -> io::Result<Option<Line<'_>>> {
        self.buffer.clear();
        if self.from.by_ref().take(LINE_BYTES_MOST).read_until(b'\n', &mut self.buffer)? == 0 {
            return Ok(None);
        }
        if self.buffer.len() as u64 == LINE_BYTES_MOST && self.buffer.last() != Some(&b'\n') {
            self.skip_rest()?;
            return Ok(Some(Err("is longer than 16 KiB")));
        }
        if !std::mem::replace(&mut self.begun, true) && self.buffer.starts_with(MARK) {
            self.buffer.drain(..MARK.len());
        }
        let text = std::str::from_utf8(&self.buffer).map_err(|_| "is not UTF-8");
        Ok(Some(text.map(|text| text.trim_end_matches(['\n', '\r']))))
    }

    fn skip_rest(&mut self) -> io::Result<()> {
        loop {
            let part = self.from.fill_buf()?;
            let (used, ended) = match part.iter().position(|&byte| byte == b'\n') {
                Some(end) => (end + 1, true),
                None => (part.len(), part.is_empty()),
            };
            self.from.consume(used);
            if ended {
                return Ok(());
            }
        }
    }
}

/// What is done to the lines of a trace before their columns are read.
#[derive(Debug, Default)]
pub struct Columned {
    /// Lines stand in what `bpftrace -f json` wraps around each.
    is_wrapped: bool,
    /// The keys of the first line that has some, in its order, and the number of that line, from 0.
    keys: Option<(Vec<String>, usize)>,
    /// Times are dates or clocks.
    has_clocks: bool,
    /// Of clocks without a date: seconds of the time before, and whole days since the first.
    second: u64,
    days: u64,
}

impl Columned {
    /// By the lines at the beginning; `None` if their columns can be read as they are.
    pub fn from_beginning(lines: &[&str]) -> Option<Self> {
        let lines = &lines[..lines.len().min(LOOKED_AT)];
        let is_wrapped = lines.iter().any(|line| unwrap_json(line).is_some());
        let unwrap = |line: &&str| if is_wrapped { unwrap_json(line).unwrap_or_default() } else { (*line).to_owned() };
        let lines: Vec<String> = lines.iter().map(unwrap).collect();
        let keyed = lines.iter().enumerate().find_map(|(number, line)| Some((keyed(line)?, number)));
        let keys = keyed.map(|(pairs, number)| (pairs.into_iter().map(|(key, _)| key).collect(), number));
        let has_clocks = lines.iter().filter(|line| clock(line).is_some()).count() * 2 > lines.len() / 2;
        let columned = Self { is_wrapped, keys, has_clocks, ..Self::default() };
        (columned.is_wrapped || columned.keys.is_some() || columned.has_clocks).then_some(columned)
    }

    /// The line of names that stands for keys, and before which line it belongs.
    pub fn heading(&self) -> Option<(String, usize)> {
        self.keys.as_ref().map(|(keys, number)| (keys.join("\t"), *number))
    }

    /// The line as columns. What is none of the lines that it was made for stays as it is.
    pub fn line<'a>(&mut self, line: &'a str) -> Cow<'a, str> {
        let mut line = Cow::Borrowed(line);
        if self.is_wrapped {
            match unwrap_json(&line) {
                Some(inner) => line = Cow::Owned(inner),
                None => return line,
            }
        }
        if let Some((keys, _)) = &self.keys
            && let Some(pairs) = keyed(&line)
        {
            let value =
                |key: &String| pairs.iter().find(|(known, _)| known == key).map_or("", |(_, value)| value.as_str());
            line = Cow::Owned(keys.iter().map(value).collect::<Vec<_>>().join("\t"));
        }
        if self.has_clocks
            && let Some(clock) = clock(&line)
        {
            let seconds = clock.seconds + if clock.has_date { 0 } else { self.day_of(clock.seconds) * DAY_S };
            line = Cow::Owned(format!("{}{seconds}.{:09}{}", &line[..clock.start], clock.ns, &line[clock.end..]));
        }
        line
    }

    /// The day of a clock that has no date: it is the next one where the clock falls by more than half a day.
    fn day_of(&mut self, second: u64) -> u64 {
        if second + DAY_S / 2 < self.second {
            self.days += 1;
        }
        // What is written a little late, across midnight.
        if self.days > 0 && second > self.second + DAY_S / 2 {
            return self.days - 1;
        }
        self.second = second;
        self.days
    }
}

/// What `bpftrace -f json` wraps: `{"type": "printf", "data": "..."}`; of what it says itself nothing.
fn unwrap_json(line: &str) -> Option<String> {
    let line = line.trim();
    if !line.starts_with('{') || !line.contains("\"type\"") || !line.contains("\"data\"") {
        return None;
    }
    let Value::Object(all) = serde_json::from_str(line).ok()? else { return None };
    all.get("type")?.as_str()?;
    match all.get("data")? {
        Value::String(text) => Some(text.trim_end_matches('\n').replace('\n', " ")),
        _ => Some(String::new()),
    }
}

/// Keys and values of a line, of JSON or as `key=value` with blanks or commas between them.
fn keyed(line: &str) -> Option<Vec<(String, String)>> {
    let line = line.trim();
    if line.starts_with('{') {
        let Value::Object(all) = serde_json::from_str(line).ok()? else { return None };
        let value = |value: Value| match value {
            Value::String(text) => text.replace(['\t', '\n'], " "),
            value => value.to_string(),
        };
        let pairs: Vec<_> = all.into_iter().take(KEYS_MOST).map(|(key, inner)| (key, value(inner))).collect();
        return (pairs.len() >= KEYS_LEAST).then_some(pairs);
    }
    let mut pairs: Vec<(String, String)> = Vec::new();
    let mut words = 0;
    for word in line.split([' ', '\t', ',', ';']).filter(|word| !word.is_empty()) {
        words += 1;
        match word.split_once('=') {
            Some((key, value)) if is_key(key) && pairs.len() < KEYS_MOST => {
                pairs.push((key.to_owned(), value.to_owned()));
            }
            // A process's name may have blanks.
            _ => {
                let (_, value) = pairs.last_mut()?;
                value.push(' ');
                value.push_str(word);
            }
        }
    }
    (pairs.len() >= KEYS_LEAST && pairs.len() * 2 > words).then_some(pairs)
}

fn is_key(key: &str) -> bool {
    key.starts_with(|first: char| first.is_ascii_alphabetic())
        && key.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-()[]".contains(&byte))
}

/// A date or a clock in a line.
#[derive(Debug, PartialEq, Eq)]
struct Clock {
    start: usize,
    end: usize,
    /// Since 1970, or since midnight.
    seconds: u64,
    ns: u64,
    has_date: bool,
}

/// The first date or clock of a line: `2026-11-28T17:56:53.123456Z`, `2026-11-28 17:56:53,123`, `28/Nov/2026:17:56:53`,
/// `Mon Jan  2 15:04:05.123456 2006`, `17:56:53.123456`.
fn clock(line: &str) -> Option<Clock> {
    let bytes = line.as_bytes();
    let is_clock = |at: &usize| {
        let is_of_clock =
            |(place, byte): (usize, &u8)| if place % 3 == 2 { *byte == b':' } else { byte.is_ascii_digit() };
        bytes.get(*at..*at + 8).is_some_and(|clock| clock.iter().enumerate().all(is_of_clock))
            && (*at == 0 || !bytes[at - 1].is_ascii_digit() && bytes[at - 1] != b'.')
    };
    let first = line.find(':')?.saturating_sub(2);
    let at = (first..line.len().min(first + 256)).find(is_clock)?;
    let two = |at: usize| number(&line[at..at + 2]);
    let (hour, minute, second) = (two(at)?, two(at + 3)?, two(at + 6)?);
    if hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let (mut end, mut ns) = (at + 8, 0);
    if let Some(b'.' | b',') = bytes.get(end) {
        let digits = bytes[end + 1..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        // A comma may end the cell instead.
        if bytes[end] == b'.' || digits == 3 || digits == 6 || digits == 9 {
            let kept = digits.min(9);
            ns = number(&line[end + 1..=end + kept]).unwrap_or(0) * 10_u64.pow(9 - kept as u32);
            end += 1 + digits;
        }
    }
    let mut of_day = hour * 3600 + minute * 60 + second;
    if let Some((is_afternoon, behind)) = half_of_day(line, end) {
        of_day = of_day % (DAY_S / 2) + if is_afternoon { DAY_S / 2 } else { 0 };
        end = behind;
    }
    let Some((start, day, behind)) = date_around(line, at, end) else {
        return Some(Clock { start: at, end, seconds: of_day, ns, has_date: false });
    };
    let (end, offset_s) = zone(line, behind);
    let seconds = (day * DAY_S + of_day).checked_add_signed(-offset_s)?;
    Some(Clock { start, end, seconds, ns, has_date: true })
}

/// Whether `PM` stands behind a clock, rather than `AM`, and where it ends.
fn half_of_day(line: &str, end: usize) -> Option<(bool, usize)> {
    let behind = line[end..].strip_prefix(' ').unwrap_or(&line[end..]);
    let half = behind.get(..2)?;
    let is_afternoon = half.eq_ignore_ascii_case("pm");
    let is_word = !behind[2..].starts_with(|letter: char| letter.is_alphanumeric());
    (is_word && (is_afternoon || half.eq_ignore_ascii_case("am")))
        .then(|| (is_afternoon, line.len() - behind.len() + 2))
}

fn number(text: &str) -> Option<u64> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}

/// The date before a clock, or before and behind it: where it begins, its day since 1970, and where all of it ends.
fn date_around(line: &str, at: usize, end: usize) -> Option<(usize, u64, usize)> {
    const MONTHS: [&str; 12] = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
    const DAYS: [&str; 7] = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];
    let before = line[..at].trim_end_matches([' ', 'T', 't', ':', '_']);
    let month =
        |word: &str| MONTHS.iter().position(|month| word.eq_ignore_ascii_case(month)).map(|month| month as u64 + 1);
    // In one word: 2026-11-28, 2026/11/28, 28/Nov/2026.
    let word_at = before.rfind([' ', '\t', ',', '"', '[', '=']).map_or(0, |at| at + 1);
    let parts: Vec<&str> = before[word_at..].split(['-', '/']).collect();
    if let [year, of_year, day] = parts[..] {
        let numbers = |year: &str, month: Option<u64>, day: &str| days_since_1970(number(year)?, month?, number(day)?);
        let iso = numbers(year, number(of_year), day).filter(|_| year.len() == 4);
        let logged = || numbers(day, month(of_year), year).filter(|_| day.len() == 4);
        // In the United States the month stands first.
        let american = || numbers(day, number(year), of_year).filter(|_| day.len() == 4);
        return iso.or_else(logged).or_else(american).map(|days| (word_at, days, end));
    }
    // In several: Mon Jan  2 15:04:05 2006, where a zone may stand before the year.
    let (rest, day) = before.rsplit_once(' ')?;
    let (rest, name) = rest.trim_end().rsplit_once(' ').unwrap_or(("", rest.trim_end()));
    let behind = line[end..].trim_start();
    let behind = behind.trim_start_matches(|letter: char| letter.is_ascii_uppercase()).trim_start();
    let length = behind.bytes().take_while(u8::is_ascii_digit).count();
    let days = days_since_1970(number(&behind[..length]).filter(|_| length == 4)?, month(name)?, number(day)?)?;
    let name_at = rest.len() + usize::from(!rest.is_empty());
    let week = rest
        .trim_end()
        .rsplit([' ', '\t', '"'])
        .next()
        .filter(|word| DAYS.iter().any(|day| word.eq_ignore_ascii_case(day)));
    let start = week.map_or(name_at, |word| rest.trim_end().len() - word.len());
    Some((start, days, line.len() - behind.len() + length))
}

/// Where a zone behind a time ends, and how far it is ahead of UTC, seconds.
fn zone(line: &str, at: usize) -> (usize, i64) {
    match &line.as_bytes()[at..] {
        [b'Z', ..] => (at + 1, 0),
        [sign @ (b'+' | b'-'), rest @ ..] => {
            let digits: Vec<u8> = rest.iter().copied().take(5).filter(u8::is_ascii_digit).take(4).collect();
            let has_colon = rest.get(2) == Some(&b':');
            let [a, b, c, d] = digits[..] else { return (at, 0) };
            let two = |a: u8, b: u8| i64::from(a - b'0') * 10 + i64::from(b - b'0');
            let size = two(a, b) * 3600 + two(c, d) * 60;
            (at + 5 + usize::from(has_colon), if *sign == b'-' { -size } else { size })
        }
        _ => (at, 0),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_date_is_found_with_all_that_belongs_to_it() {
        // By `date -u -d ... +%s`.
        for (text, number) in [
            ("2026-11-28T17:56:53.123456Z,R,8", "1795888613.123456000,R,8"),
            ("x,2026-11-28 17:56:53,R,8", "x,1795888613.000000000,R,8"),
            ("2026-11-28 17:56:53,123 R 8", "1795888613.123000000 R 8"),
            ("2026-11-28T19:56:53.5+02:00 R", "1795888613.500000000 R"),
            ("2026-11-28T12:26:53-0530 R", "1795888613.000000000 R"),
            ("\"2026/11/28 17:56:53\"\tR", "\"1795888613.000000000\"\tR"),
            ("[28/Nov/2026:17:56:53 R", "[1795888613.000000000 R"),
            ("Sat Nov 28 17:56:53.000001 2026 fio R 8", "1795888613.000001000 fio R 8"),
            ("fio Sat Nov  7 17:56:53 UTC 2026 R 8", "fio 1794074213.000000000 R 8"),
            ("17:56:53.123456 fio 7 R", "64613.123456000 fio 7 R"),
            ("11/28/2026 05:56:53.5 PM,R", "1795888613.500000000,R"),
            ("12:00:01 AM,R", "1.000000000,R"),
        ] {
            let mut plain = Columned { has_clocks: true, ..Columned::default() };
            assert_eq!(plain.line(text), number);
        }
        for none in ["8:0 R 8", "a::b", "17:56 R", "25:00:00 R", "1.17:56:53", ""] {
            assert_eq!(clock(none), None, "{none}");
        }
    }

    #[test]
    fn a_clock_goes_past_midnight() {
        let mut plain = Columned { has_clocks: true, ..Columned::default() };
        let lines = ["23:59:59.5 a", "00:00:00.5 a", "23:59:59.9 a", "00:00:01 a", "23:00:00 a", "01:00:00 a"];
        let seconds = lines.map(|line| plain.line(line).split(' ').next().unwrap().parse::<f64>().unwrap() as u64);
        assert_eq!(seconds, [86399, 86400, 86399, 86401, 82800, 90000]);
    }

    #[test]
    fn keys_are_a_heading() {
        let lines = [
            "Attaching 3 probes...",
            "ts=1.5 pid=7 comm=my sql rwbs=WS sector=8 bytes=4096",
            "bytes=512 sector=9 rwbs=R ts=2 x=1",
        ];
        let mut plain = Columned::from_beginning(&lines).unwrap();
        assert_eq!(plain.heading(), Some(("ts\tpid\tcomm\trwbs\tsector\tbytes".to_owned(), 1)));
        assert_eq!(plain.line(lines[1]), "1.5\t7\tmy sql\tWS\t8\t4096");
        assert_eq!(plain.line(lines[2]), "2\t\t\tR\t9\t512");
        let lines = [
            r#"{"type": "attached_probes", "data": {"probes": 3}}"#,
            r#"{"type": "printf", "data": "1.5 7 fio W 8 4096\n"}"#,
        ];
        let mut plain = Columned::from_beginning(&lines).unwrap();
        assert_eq!(
            (plain.line(lines[0]), plain.line(lines[1]), plain.heading()),
            ("".into(), "1.5 7 fio W 8 4096".into(), None)
        );
        assert!(Columned::from_beginning(&["8,0 0 1 0.000001 7 Q R 8 + 8 [x]", "a=b"]).is_none());
    }

    proptest! {
        #[test]
        fn no_line_makes_it_panic(line: String, other in "[0-9:/. TZ+-]{0,40}") {
            let mut plain = Columned { is_wrapped: false, has_clocks: true, keys: Some((vec!["a".into()], 0)), ..Columned::default() };
            plain.line(&line);
            plain.line(&other);
            Columned::from_beginning(&[&line, &other]);
        }
    }
}
