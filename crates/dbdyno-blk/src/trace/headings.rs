//! What the columns of a trace are: by the line that names them, or as those who published it documented them.

use super::columns::{Column, Columns, Role, Separator};
use super::units::{Doubt, Lengths, Times, Unit};

const SECOND: u64 = 1_000_000_000;

/// A format that can be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Binary, a file for each CPU.
    Blktrace,
    /// Text of `blkparse`, in its default format.
    Blkparse,
    /// Text of the kernel's block events: of tracefs, `trace-cmd` and `perf script`.
    Tracefs,
    /// The emulated disk's compact one; its CSV is `Named`.
    Disk,
    /// `fio version 2 iolog`.
    Fio2,
    /// `fio version 3 iolog`.
    Fio3,
    /// Five columns in ASCII.
    Disksim,
    /// MSR Cambridge.
    Msr,
    /// Alibaba block traces of 2020.
    Alibaba,
    /// Tencent block storage of 2018.
    Tencent,
    /// Storage Performance Council, as at the repository of the University of Massachusetts.
    Spc,
    /// A CSV whose first line names its columns.
    Named,
    /// `SYSTOR '17`, of a virtual desktop infrastructure.
    Systor17,
    /// Florida International University: `SRCMap` and I/O deduplication.
    Fiu,
    /// BCC's and libbpf's `biosnoop`.
    Biosnoop,
    /// `blkparse -f` with a form of one's own.
    Own,
}

impl Format {
    /// All, with the names by which users choose one.
    pub const ALL: [(&'static str, Self); 16] = [
        ("blktrace", Self::Blktrace),
        ("blkparse", Self::Blkparse),
        ("tracefs", Self::Tracefs),
        ("disk", Self::Disk),
        ("fio2", Self::Fio2),
        ("fio3", Self::Fio3),
        ("disksim", Self::Disksim),
        ("msr", Self::Msr),
        ("alibaba", Self::Alibaba),
        ("tencent", Self::Tencent),
        ("spc", Self::Spc),
        ("csv", Self::Named),
        ("systor17", Self::Systor17),
        ("fiu", Self::Fiu),
        ("biosnoop", Self::Biosnoop),
        ("blkparse-f", Self::Own),
    ];

    /// By its name.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(known, _)| *known == name).map(|(_, format)| *format)
    }

    /// The name by which users choose it.
    pub fn name(self) -> &'static str {
        Self::ALL[self as usize].0
    }
}

/// Columns with units that may still be open.
#[derive(Debug, Clone)]
pub struct Heading {
    pub format: Format,
    columns: Vec<(Role, Unit)>,
    separator: Separator,
}

/// Why a line of names does not do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line} names no column for {what}; known names are {KNOWN}")]
pub struct Lacking {
    line: usize,
    what: &'static str,
}

/// Nothing is like a heading at all.
impl Default for Lacking {
    fn default() -> Self {
        Self { line: 1, what: "the time" }
    }
}

impl Lacking {
    /// The same of another line, from 1.
    #[must_use]
    pub fn at_line(self, line: usize) -> Self {
        Self { line, ..self }
    }
}

const KNOWN: &str = "time or timestamp (with a unit: at_ns, time_us, arrival_ms, TIME(s)), offset, lba or sector, size, length, \
                     bytes or sectors, op or type, response_ns, _us, _ms, _s or latency, completion_ns, process or pid, device";

/// The columns of formats that are documented: their names as headings have them, in the order of files without one.
const PUBLISHED: &[(Format, &str, Role, Unit)] = {
    use Format::{Alibaba, Biosnoop, Fiu, Msr, Spc, Systor17, Tencent};
    use Role::{At, Device, End, Name, Offset, Operation, Other, Process, Queue, Response, Size};
    use Unit::{Fixed, Open, Usual};
    &[
        (Msr, "timestamp", At, Usual(100)),
        (Msr, "hostname", Other, Open),
        (Msr, "disknumber", Device, Open),
        (Msr, "type", Operation, Open),
        (Msr, "offset", Offset, Fixed(1)),
        (Msr, "size", Size, Fixed(1)),
        (Msr, "responsetime", Response, Usual(100)),
        (Alibaba, "deviceid", Device, Open),
        (Alibaba, "opcode", Operation, Open),
        (Alibaba, "offset", Offset, Fixed(1)),
        (Alibaba, "length", Size, Fixed(1)),
        (Alibaba, "timestamp", At, Usual(1000)),
        (Tencent, "timestamp", At, Usual(SECOND)),
        (Tencent, "offset", Offset, Fixed(512)),
        (Tencent, "size", Size, Fixed(512)),
        (Tencent, "iotype", Operation, Open),
        (Tencent, "volumeid", Device, Open),
        (Spc, "asu", Device, Open),
        (Spc, "lba", Offset, Fixed(512)),
        (Spc, "size", Size, Fixed(1)),
        (Spc, "opcode", Operation, Open),
        (Spc, "timestamp", At, Usual(SECOND)),
        (Systor17, "timestamp", At, Usual(SECOND)),
        (Systor17, "response", Response, Usual(SECOND)),
        (Systor17, "iotype", Operation, Open),
        (Systor17, "lun", Device, Open),
        (Systor17, "offset", Offset, Fixed(1)),
        (Systor17, "size", Size, Fixed(1)),
        (Fiu, "timestamp", At, Usual(1)),
        (Fiu, "pid", Process, Open),
        (Fiu, "process", Name, Open),
        (Fiu, "lba", Offset, Fixed(512)),
        (Fiu, "size", Size, Fixed(512)),
        (Fiu, "op", Operation, Open),
        (Fiu, "major", Device, Open),
        (Fiu, "minor", Other, Open),
        (Fiu, "md5", Other, Open),
        (Biosnoop, "time", End, Fixed(SECOND)),
        (Biosnoop, "comm", Name, Open),
        (Biosnoop, "pid", Process, Open),
        (Biosnoop, "disk", Device, Open),
        (Biosnoop, "t", Operation, Open),
        (Biosnoop, "sector", Offset, Fixed(512)),
        (Biosnoop, "bytes", Size, Fixed(1)),
        (Biosnoop, "que", Queue, Fixed(1_000_000)),
        (Biosnoop, "lat", Response, Fixed(1_000_000)),
    ]
};

/// Columns that may lack.
const OPTIONAL: [(Format, &str); 2] = [(Format::Fiu, "md5"), (Format::Biosnoop, "que")];

fn published(format: Format) -> impl Iterator<Item = (&'static str, Role, Unit)> {
    PUBLISHED.iter().filter(move |row| row.0 == format).map(|(_, name, role, unit)| (*name, *role, *unit))
}

fn is_optional(format: Format, name: &str) -> bool {
    OPTIONAL.contains(&(format, name))
}

impl Heading {
    /// The columns of a published format of so many cells, whose file has no line of names.
    pub fn published(format: Format, cells: usize) -> Option<Self> {
        let all = published(format).count();
        if all == 0 {
            return None;
        }
        let columns = published(format).filter(|(name, ..)| cells >= all || !is_optional(format, name));
        let columns = columns.map(|(_, role, unit)| (role, unit)).collect();
        let by_blanks = matches!(format, Format::Fiu | Format::Biosnoop);
        Some(Self { format, columns, separator: if by_blanks { Separator::Spaces } else { Separator::Byte(b',') } })
    }

    /// By the line that names them, which is the first one until said otherwise. Of a line that names less than two,
    /// `None` is the reason: it is no heading.
    pub fn parse(line: &str) -> Result<Self, Option<Lacking>> {
        let line = line.trim_start_matches(['\u{feff}', '#', ' ', '/']).trim_end();
        let separator = Separator::detect(line);
        let names: Vec<String> = separator.cells(line).map(str::to_ascii_lowercase).collect();
        if !(3..=200).contains(&names.len()) {
            return Err(None);
        }
        let keys: Vec<(String, Option<&str>)> = names.iter().map(|name| key_and_unit(name)).collect();
        if let Some(heading) = published_as(&keys, separator) {
            return Ok(heading);
        }
        let mut columns: Vec<(Role, Unit)> = keys.iter().map(|(key, unit)| column(key, *unit)).collect();
        keep_first_of_each(&mut columns);
        let has = |wanted: &[Role]| columns.iter().any(|(role, _)| wanted.contains(role));
        let needed: [(&str, bool); 4] = [
            ("the time", has(&[Role::At, Role::End])),
            ("the offset", has(&[Role::Offset])),
            ("the size", has(&[Role::Size])),
            ("the operation", has(&[Role::Operation, Role::IsRead, Role::IsWrite])),
        ];
        let there = needed.iter().filter(|(_, there)| *there).count();
        let known = columns.iter().filter(|(role, _)| *role != Role::Other).count();
        match needed.iter().find(|(_, there)| !there) {
            Some((what, _)) => Err((there >= 2 || known >= 4).then_some(Lacking { line: 1, what })),
            None => Ok(Self { format: Format::Named, columns, separator }),
        }
    }

    /// Settles units that are open by the lines behind the heading, or as asked; returns what is to be said of them,
    /// too.
    pub fn settled(
        self,
        sample: &[&str],
        time_scale: Option<u64>,
        length_scale: Option<u64>,
    ) -> Result<(Columns, Vec<String>), Doubt> {
        let mut notes = Vec::new();
        let mut scales: Vec<u64> = self.columns.iter().map(|(_, unit)| documented(*unit).unwrap_or(1)).collect();
        let find = |wanted: &[Role]| self.columns.iter().position(|(role, _)| wanted.contains(role));
        let cells = |line: &str| -> Vec<String> {
            let order: Vec<Role> = self.columns.iter().map(|(role, _)| *role).collect();
            self.separator.cells_by(&order, line).iter().map(|cell| (*cell).to_owned()).collect()
        };
        let rows: Vec<Vec<String>> =
            sample.iter().map(|line| cells(line)).filter(|row| row.len() >= scales.len()).collect();
        if let Some(place) = find(&[Role::At]).or_else(|| find(&[Role::End])) {
            let unit = self.columns[place].1;
            let mut times = Times::default();
            for row in &rows {
                times.take(&row[place]);
            }
            let chosen = match (time_scale, unit) {
                (_, Unit::Named(_)) | (None, Unit::Fixed(_)) => None,
                (Some(scale), _) => Some(scale),
                (None, unit) => {
                    let chosen = times.unit(documented(unit), 0.001, &[])?;
                    notes.extend(chosen.note);
                    Some(chosen.scale)
                }
            };
            let before = documented(unit);
            if let Some(scale) = chosen {
                scales[place] = scale;
            }
            for (other, (role, unit)) in self.columns.iter().enumerate() {
                if matches!(role, Role::Response | Role::Queue | Role::End) && other != place {
                    let moved = before != Some(scales[place])
                        && (rows.iter().any(|row| row[other].contains('.')) || time_scale.is_some());
                    match unit {
                        Unit::Open => scales[other] = scales[place],
                        Unit::Usual(_) if moved => scales[other] = scales[place],
                        _ => {}
                    }
                }
            }
        }
        if let (Some(offset), Some(size)) = (find(&[Role::Offset]), find(&[Role::Size])) {
            let open = |place: usize| matches!(self.columns[place].1, Unit::Usual(_));
            let option = |place: usize| length_scale.filter(|_| !matches!(self.columns[place].1, Unit::Named(_)));
            let mut lengths = Lengths::default();
            for row in &rows {
                lengths.take(if open(offset) { &row[offset] } else { "0" }, &row[size]);
            }
            for place in [offset, size] {
                if let Some(scale) = option(place) {
                    scales[place] = scale;
                } else if open(place) && open(size) {
                    let chosen = lengths.unit(scales[place])?;
                    scales[place] = chosen.scale;
                    notes.extend(chosen.note.filter(|note| !notes.contains(note)));
                }
            }
        }
        let columns = self.columns.iter().zip(scales).map(|((role, _), scale)| Column { role: *role, scale }).collect();
        Ok((Columns::new(columns, self.separator), notes))
    }
}

fn documented(unit: Unit) -> Option<u64> {
    match unit {
        Unit::Named(scale) | Unit::Fixed(scale) | Unit::Usual(scale) => Some(scale),
        Unit::Open => None,
    }
}

/// A published format, if the names are its own in whichever order.
fn published_as(keys: &[(String, Option<&str>)], separator: Separator) -> Option<Heading> {
    let named = |name: &str| keys.iter().any(|(key, _)| key == name);
    let fits = |format: &Format| {
        let known = |key: &str| published(*format).any(|(name, ..)| name == key);
        let all = published(*format).all(|(name, ..)| named(name) || is_optional(*format, name));
        // Another column beside these changes nothing, but a unit that is named elsewise does.
        let time = published(*format).find(|(_, role, _)| *role == Role::At).map(|(name, ..)| name);
        let keeps_unit = |key: &str, has_unit: bool| !known(key) || !has_unit || time != Some(key);
        all && keys.iter().all(|(key, unit)| keeps_unit(key, unit.is_some()))
            && keys.len() <= published(*format).count()
    };
    let formats = PUBLISHED.chunk_by(|left, right| left.0 == right.0).map(|columns| columns[0].0);
    let format = formats.into_iter().find(fits)?;
    let columns = keys
        .iter()
        .map(|(key, unit)| {
            let column = published(format).find(|(name, ..)| name == key);
            let (role, usual) = column.map_or((Role::Other, Unit::Open), |(_, role, unit)| (role, unit));
            (role, unit.and_then(time_scale).filter(|_| role.is_time()).map_or(usual, Unit::Named))
        })
        .collect();
    Some(Heading { format, columns, separator })
}

/// Of several columns of one meaning the first is read, one with a unit before one without.
fn keep_first_of_each(columns: &mut [(Role, Unit)]) {
    for place in 0..columns.len() {
        let (role, unit) = columns[place];
        if role == Role::Other {
            continue;
        }
        let is_better = |other: &(Role, Unit)| {
            other.0 == role && matches!(other.1, Unit::Named(_)) && !matches!(unit, Unit::Named(_))
        };
        let earlier = columns[..place].iter().any(|(known, _)| *known == role);
        if earlier || columns[place + 1..].iter().any(is_better) {
            columns[place] = (Role::Other, Unit::Open);
        }
    }
    // Where an operation stands in words, `t` is the time, else what biosnoop calls it.
    if columns.iter().any(|(role, _)| *role == Role::Operation) {
        columns
            .iter_mut()
            .filter(|(role, _)| matches!(role, Role::IsRead | Role::IsWrite))
            .for_each(|column| column.0 = Role::Other);
    }
}

fn time_scale(unit: &str) -> Option<u64> {
    Some(match unit {
        "s" | "sec" | "secs" | "second" | "seconds" => SECOND,
        "ms" | "msec" | "msecs" | "millis" | "millisecond" | "milliseconds" => 1_000_000,
        "us" | "usec" | "usecs" | "micros" | "microsecond" | "microseconds" | "\u{b5}s" | "\u{3bc}s" => 1000,
        "100ns" | "filetime" => 100,
        "ns" | "nsec" | "nsecs" | "nanos" | "nanosecond" | "nanoseconds" => 1,
        _ => return None,
    })
}

fn length_scale(unit: &str) -> Option<u64> {
    Some(match unit {
        "b" | "byte" | "bytes" => 1,
        "kb" | "kib" | "k" => 1024,
        "mb" | "mib" => 1 << 20,
        "sector" | "sectors" | "512b" | "blocks512" => 512,
        _ => return None,
    })
}

/// A column's name in letters and digits alone, and its unit: `TIME(ms)`, `time_ms`, `Response Time [ms]`.
fn key_and_unit(name: &str) -> (String, Option<&str>) {
    let name = name.trim().trim_matches(['"', '\'']);
    let known = |unit: &&str| time_scale(unit).is_some() || length_scale(unit).is_some();
    let in_brackets = name.split_once(['(', '[']).and_then(|(what, rest)| {
        let unit = rest.trim_end_matches([')', ']']).trim();
        Some((what, unit)).filter(|(_, unit)| known(unit))
    });
    let behind = name.rsplit_once(['_', '-', ' ', '.']).filter(|(what, unit)| !what.is_empty() && known(unit));
    let letters = |what: &str| -> String { what.chars().filter(|letter| letter.is_alphanumeric()).collect() };
    // The unit of `nr_sector` is its name.
    let whole = letters(name);
    if behind.is_some_and(|(_, unit)| length_scale(unit).is_some()) && column(&whole, None).0 != Role::Other {
        return (whole, None);
    }
    let (what, unit) = in_brackets.or(behind).map_or((name, None), |(what, unit)| (what, Some(unit)));
    (letters(what), unit)
}

/// What a column of a CSV with names holds.
fn column(key: &str, unit: Option<&str>) -> (Role, Unit) {
    let time = unit.and_then(time_scale);
    let length = unit.and_then(length_scale);
    let timed = |role| match (time, unit) {
        (Some(scale), _) => (role, Unit::Named(scale)),
        (None, None) => (role, Unit::Open),
        _ => (Role::Other, Unit::Open),
    };
    let placed = |role, usual| match (length, unit) {
        (Some(scale), _) => (role, Unit::Named(scale)),
        (None, None) => (role, usual),
        _ => (Role::Other, Unit::Open),
    };
    match key {
        "at" | "time" | "timestamp" | "timestamps" | "ts" | "arrival" | "arrivaltime" | "start" | "starttime"
        | "begin" | "begintime" | "issuetime" | "requesttime" | "reqtime" | "submittime" | "datetime" => {
            timed(Role::At)
        }
        "filetime" => (Role::At, Unit::Named(100)),
        // What bpftrace calls them.
        "nsecs" => (Role::At, Unit::Named(1)),
        "completion" | "completiontime" | "complete" | "end" | "endtime" | "finish" | "finishtime" => timed(Role::End),
        "response" | "responsetime" | "resp" | "latency" | "lat" | "duration" | "servicetime" | "elapsed"
        | "elapsedtime" => timed(Role::Response),
        "que" | "queue" | "queuetime" => timed(Role::Queue),
        "offset" | "byteoffset" | "address" | "addr" | "startoffset" | "diskoffset" => {
            placed(Role::Offset, Unit::Usual(1))
        }
        "lba" | "slba" | "sector" | "startsector" | "startlba" | "sectornumber" | "lbn" | "blkno" => {
            placed(Role::Offset, Unit::Named(512))
        }
        "size" | "length" | "len" | "iosize" | "requestsize" | "reqsize" | "datasize" | "transfersize" => {
            placed(Role::Size, Unit::Usual(1))
        }
        "bytes" | "nbytes" | "sizebytes" | "bytecount" => placed(Role::Size, Unit::Named(1)),
        "sectors" | "nsectors" | "nrsector" | "nrsectors" | "sectorcount" | "numsectors" => {
            placed(Role::Size, Unit::Named(512))
        }
        "op" | "ops" | "opcode" | "operation" | "optype" | "type" | "iotype" | "kind" | "rw" | "rwbs" | "rwflag"
        | "reqtype" | "requesttype" | "readwrite" | "direction" | "dir" | "rwb" | "action" | "t" => {
            (Role::Operation, Unit::Open)
        }
        "isread" | "read" => (Role::IsRead, Unit::Open),
        "iswrite" | "write" => (Role::IsWrite, Unit::Open),
        "device" | "deviceid" | "dev" | "disk" | "diskid" | "disknumber" | "volume" | "volumeid" | "lun" | "asu"
        | "major" | "namespace" | "nsid" => (Role::Device, Unit::Open),
        "process" | "pid" | "processid" | "tid" => (Role::Process, Unit::Open),
        "comm" | "command" | "processname" | "pname" => (Role::Name, Unit::Open),
        _ => (Role::Other, Unit::Open),
    }
}
