//! Traces of a line a request with columns: what each cell of a line says.

use super::record::{Begin, Findings, Record, with_letters};
use super::units::{scaled, sectors_of};
use crate::queue::Direction;

/// What a column holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// When the request came, since whatever the trace counts from.
    At,
    /// From the request to its end.
    Response,
    /// Before that, in a queue.
    Queue,
    /// The time of its end, on the clock of its beginning.
    End,
    Offset,
    Size,
    Operation,
    /// 1 for a read.
    IsRead,
    /// 1 for a write.
    IsWrite,
    Device,
    Process,
    /// The process's name, which may hold blanks.
    Name,
    Other,
}

impl Role {
    pub fn is_time(self) -> bool {
        matches!(self, Self::At | Self::Response | Self::Queue | Self::End)
    }
}

/// A column, with what makes nanoseconds or bytes of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Column {
    pub role: Role,
    pub scale: u64,
}

/// What stands between cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Separator {
    Byte(u8),
    Spaces,
}

impl Separator {
    /// That of a line.
    pub fn detect(line: &str) -> Self {
        [b',', b';', b'\t', b'|']
            .into_iter()
            .find(|byte| line.as_bytes().contains(byte))
            .map_or(Self::Spaces, Self::Byte)
    }

    /// The cells of a line.
    pub fn cells(self, line: &str) -> Box<dyn Iterator<Item = &str> + '_> {
        match self {
            Self::Byte(byte) => Box::new(line.split(char::from(byte)).map(str::trim)),
            Self::Spaces => Box::new(line.split_ascii_whitespace()),
        }
    }

    /// The cells of a line with columns of these roles; fewer where it ends early.
    pub fn cells_by<'a>(self, roles: &[Role], line: &'a str) -> Vec<&'a str> {
        let mut cells = self.cells(line);
        let mut pending = None;
        let mut row = Vec::with_capacity(roles.len());
        for (place, role) in roles.iter().enumerate() {
            let Some(cell) = pending.take().or_else(|| cells.next()) else { break };
            row.push(cell);
            if *role == Role::Name {
                pending = self.behind_name(&mut cells, roles.get(place + 1).copied());
            }
        }
        row
    }

    /// The cell behind a process's name. Names may hold blanks, so a name ends where the next column's kind of word
    /// stands.
    fn behind_name<'a>(self, cells: &mut impl Iterator<Item = &'a str>, next: Option<Role>) -> Option<&'a str> {
        match next {
            Some(Role::Device | Role::Name | Role::Other) | None => cells.next(),
            _ if self != Self::Spaces => cells.next(),
            Some(Role::Operation) => cells.find(|word| operation(word).is_some()),
            Some(_) => cells.find(|word| scaled(word, 1).is_some()),
        }
    }
}

/// The columns of a trace.
#[derive(Debug, Clone)]
pub struct Columns {
    all: Vec<Column>,
    separator: Separator,
    begin: Begin,
    /// Lines stand in the order of ends, and beginnings are what is left of an end less its duration.
    by_end: bool,
}

/// Added to times that are an end less a duration, so that what began before the trace's zero keeps its distance.
const BEFORE_ZERO_NS: u64 = 3_600_000_000_000;

impl Columns {
    pub fn new(all: Vec<Column>, separator: Separator) -> Self {
        let by_end = !all.iter().any(|column| column.role == Role::At);
        Self { all, separator, begin: Begin::default(), by_end }
    }

    /// Whether requests stand in the order of their ends.
    pub fn by_end(&self) -> bool {
        self.by_end
    }

    /// Which moment is a request's beginning, where a time in a queue is known.
    pub fn beginning(self, begin: Begin) -> Self {
        Self { begin, ..self }
    }

    /// The request of a line; `None` where it is damaged or no I/O, which is counted.
    pub fn record(&self, line: &str, findings: &mut Findings) -> Option<Record> {
        match self.separator {
            Separator::Byte(byte) => self.row(line.split(char::from(byte)), findings),
            Separator::Spaces => self.row(line.split_ascii_whitespace(), findings),
        }
    }

    fn row<'a>(&self, mut cells: impl Iterator<Item = &'a str>, findings: &mut Findings) -> Option<Record> {
        let mut row = Row::default();
        let mut pending = None;
        for (place, column) in self.all.iter().enumerate() {
            let Some(cell) = pending.take().or_else(|| cells.next()) else {
                findings.damage(format!("has fewer than {} columns", self.all.len()));
                return None;
            };
            if column.role == Role::Name {
                row.name = cell.trim();
                pending = self.separator.behind_name(&mut cells, self.all.get(place + 1).map(|next| next.role));
            } else if let Err(why) = row.take(*column, cell.trim(), findings) {
                findings.damage(why);
                return None;
            }
        }
        row.record(self, findings)
    }
}

/// What a line says so far.
#[derive(Default)]
struct Row<'a> {
    at_ns: u64,
    response_ns: Option<u64>,
    queue_ns: u64,
    end_ns: Option<u64>,
    offset_bytes: u64,
    size_bytes: u64,
    process: u32,
    name: &'a str,
    device: u16,
    operation: Option<Operation>,
}

/// What a line asks for.
#[derive(Clone, Copy)]
struct Operation {
    /// Direction and marks; its place is the row's.
    what: Record,
    /// A flush that moves nothing, whatever else its line says.
    bare: bool,
}

impl Operation {
    fn moves(direction: Direction) -> Self {
        Self { what: Record::new(0, direction, 0, 0), bare: false }
    }
}

impl Row<'_> {
    fn take(&mut self, column: Column, cell: &str, findings: &mut Findings) -> Result<(), String> {
        let cell = if cell.starts_with('"') { cell.trim_matches('"') } else { cell };
        let number = || scaled(cell, column.scale).ok_or_else(|| format!("has no number: {:?}", short(cell)));
        match column.role {
            Role::At => self.at_ns = number()?,
            Role::Response | Role::End | Role::Queue if cell.is_empty() => {}
            Role::Response => self.response_ns = Some(number()?),
            Role::Queue => self.queue_ns = number()?,
            Role::End => self.end_ns = Some(number()?),
            Role::Offset => self.offset_bytes = number()?,
            Role::Size => self.size_bytes = number()?,
            Role::Process => self.process = cell.parse().map_err(|_| format!("has no process: {:?}", short(cell)))?,
            Role::Device => self.device = findings.device(cell),
            Role::Operation => match operation(cell) {
                Some(operation) => self.operation = Some(operation),
                None => findings.pass_over(passed_over(cell)),
            },
            Role::IsRead | Role::IsWrite => {
                let yes = matches!(cell.as_bytes().first(), Some(b'1' | b't' | b'T' | b'y' | b'Y'));
                let reads = yes == (column.role == Role::IsRead);
                self.operation = Some(Operation::moves(if reads { Direction::Read } else { Direction::Write }));
            }
            Role::Name | Role::Other => {}
        }
        Ok(())
    }

    fn record(self, columns: &Columns, findings: &mut Findings) -> Option<Record> {
        let Operation { what, bare } = self.operation?;
        let (offset_bytes, size_bytes) =
            if bare || (what.flush && self.size_bytes == 0) { (0, 0) } else { (self.offset_bytes, self.size_bytes) };
        let Some((start_sector, sectors)) = sectors_of(offset_bytes, size_bytes) else {
            findings.damage("is beyond every device");
            return None;
        };
        let (at_ns, response_ns) = if columns.by_end {
            let queue_ns = if columns.begin == Begin::Queued { self.queue_ns } else { 0 };
            let took_ns = self.response_ns.map(|response_ns| response_ns.saturating_add(queue_ns));
            let end_ns = self.end_ns.unwrap_or(0).saturating_add(BEFORE_ZERO_NS);
            (end_ns.saturating_sub(took_ns.unwrap_or(0)), took_ns)
        } else {
            let ended = self.end_ns.map(|end| end.saturating_sub(self.at_ns));
            (self.at_ns, self.response_ns.or(ended))
        };
        if !self.name.is_empty() {
            findings.name_process(self.process, || Some(self.name));
        }
        let Self { process, device, .. } = self;
        Some(Record { at_ns, response_ns, process, device, start_sector, sectors, ..what })
    }
}

fn operation(cell: &str) -> Option<Operation> {
    let known = match cell {
        "Read" | "R" | "r" | "0" | "read" | "READ" => Some(Direction::Read),
        "Write" | "W" | "w" | "1" | "write" | "WRITE" => Some(Direction::Write),
        _ => None,
    };
    if let Some(direction) = known {
        return Some(Operation::moves(direction));
    }
    let word = cell.to_ascii_lowercase();
    match word.as_str() {
        "rd" => return Some(Operation::moves(Direction::Read)),
        "wr" => return Some(Operation::moves(Direction::Write)),
        "flush" | "f" | "fsync" | "ff" | "sync" | "fdatasync" => {
            let what = Record { flush: true, sync: true, ..Record::new(0, Direction::Write, 0, 0) };
            return Some(Operation { what, bare: true });
        }
        _ => {}
    }
    if let Some(rest) = word.strip_prefix("read").or_else(|| word.strip_prefix("write")) {
        let direction = if word.starts_with('r') { Direction::Read } else { Direction::Write };
        return (!rest.starts_with(|letter: char| letter.is_ascii_alphanumeric())).then(|| Operation::moves(direction));
    }
    // Letters of the kernel's RWBS column.
    let letters = cell.len() <= 6 && cell.bytes().all(|byte| b"RWFSMAEVUD".contains(&byte));
    let what = letters.then(|| with_letters(cell, Record::new(0, Direction::Write, 0, 0))).flatten()?;
    Some(Operation { what, bare: false })
}

/// What is no read, write or flush is called in sums.
pub fn passed_over(operation: &str) -> &str {
    let is = |word: &str| operation.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word));
    if operation.is_empty() {
        "no operation"
    } else if operation.starts_with('D') && operation.len() <= 3 || is("discard") || is("trim") || is("unmap") {
        "discard"
    } else {
        operation
    }
}

/// So much of a cell as is shown.
pub fn short(cell: &str) -> String {
    cell.chars().take(24).collect()
}
