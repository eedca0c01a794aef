//! Traces of a line a request with columns: those of MSR Cambridge, Alibaba, Tencent and SPC, the emulated disk's own, and any
//! CSV whose first line names its columns.

use super::findings::Findings;
use super::number::{scaled, sectors_of};
use super::record::Record;
use crate::queue::Direction;

/// What a column holds, with what makes nanoseconds or bytes of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Column {
    /// Since whatever the trace counts from.
    At(u64),
    /// From the request to its end.
    Response(u64),
    /// The time of its end, on the clock of its beginning.
    End(u64),
    Offset(u64),
    Size(u64),
    Operation,
    Device,
    Process,
    Other,
}

const SECOND: u64 = 1_000_000_000;

/// Formats without a line of names: what their columns are.
const MSR: &[Column] = {
    use Column::{At, Device, Offset, Operation, Other, Response, Size};
    &[At(100), Other, Device, Operation, Offset(1), Size(1), Response(100)]
};
const ALIBABA: &[Column] = {
    use Column::{At, Device, Offset, Operation, Size};
    &[Device, Operation, Offset(1), Size(1), At(1000)]
};
const TENCENT: &[Column] = {
    use Column::{At, Device, Offset, Operation, Size};
    &[At(SECOND), Offset(512), Size(512), Operation, Device]
};
const SPC: &[Column] = {
    use Column::{At, Device, Offset, Operation, Size};
    &[Device, Offset(512), Size(1), Operation, At(SECOND)]
};

/// A format with commas between its columns.
#[derive(Debug, Clone)]
pub struct Columns(Vec<Column>);

/// Why a line of names does not do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the first line names no column for {0}; known are {KNOWN}")]
pub struct Lacking(&'static str);

const KNOWN: &str = "at_ns, at_us, at_ms, at_s (also time_ and arrival_), offset_bytes, lba or sector, size_bytes or sectors, op, \
                     response_ns, _us, _ms, _s, completion_ns, process, device";

impl Columns {
    pub fn msr() -> Self {
        Self(MSR.to_vec())
    }

    pub fn alibaba() -> Self {
        Self(ALIBABA.to_vec())
    }

    pub fn tencent() -> Self {
        Self(TENCENT.to_vec())
    }

    pub fn spc() -> Self {
        Self(SPC.to_vec())
    }

    /// By the line that names them.
    pub fn named(line: &str) -> Result<Self, Lacking> {
        let columns: Vec<Column> = line.split(',').map(|name| column(&name.trim().to_ascii_lowercase())).collect();
        let has = |wanted: fn(&Column) -> bool| columns.iter().any(wanted);
        let needed: [(&str, bool); 4] = [
            ("the time", has(|one| matches!(one, Column::At(_)))),
            ("the offset", has(|one| matches!(one, Column::Offset(_)))),
            ("the size", has(|one| matches!(one, Column::Size(_)))),
            ("the operation", has(|one| matches!(one, Column::Operation))),
        ];
        match needed.iter().find(|(_, there)| !there) {
            Some((what, _)) => Err(Lacking(what)),
            None => Ok(Self(columns)),
        }
    }

    /// The request of a line; `None` where it is damaged or no I/O, which is counted.
    pub fn record(&self, line: &str, findings: &mut Findings) -> Option<Record> {
        let mut row = Row::default();
        let mut cells = line.split(',');
        for column in &self.0 {
            let Some(cell) = cells.next() else {
                findings.damage(format!("has fewer than {} columns", self.0.len()));
                return None;
            };
            if let Err(why) = row.take(*column, cell.trim(), findings) {
                findings.damage(why);
                return None;
            }
        }
        row.record(findings)
    }
}

fn column(name: &str) -> Column {
    let scale = |unit: &str| match unit {
        "s" => Some(SECOND),
        "ms" => Some(1_000_000),
        "us" => Some(1000),
        "ns" => Some(1),
        _ => None,
    };
    if let Some(scale) = name.rsplit_once('_').and_then(|(what, unit)| Some((what, scale(unit)?))) {
        return match scale {
            ("at" | "time" | "arrival" | "timestamp", scale) => Column::At(scale),
            ("response" | "latency", scale) => Column::Response(scale),
            ("completion", scale) => Column::End(scale),
            _ => Column::Other,
        };
    }
    match name {
        "offset_bytes" | "offset" => Column::Offset(1),
        "lba" | "sector" | "offset_sectors" => Column::Offset(512),
        "size_bytes" | "size" | "bytes" => Column::Size(1),
        "sectors" | "size_sectors" => Column::Size(512),
        "op" | "operation" | "type" | "kind" | "rw" | "rwbs" => Column::Operation,
        "device" | "disk" | "volume" => Column::Device,
        "process" | "pid" => Column::Process,
        _ => Column::Other,
    }
}

/// What a line says so far.
#[derive(Default)]
struct Row {
    at_ns: u64,
    response_ns: Option<u64>,
    end_ns: Option<u64>,
    offset_bytes: u64,
    size_bytes: u64,
    process: u32,
    device: u16,
    operation: Option<Operation>,
}

#[derive(Clone, Copy)]
enum Operation {
    Move(Direction),
    Flush,
}

impl Row {
    fn take(&mut self, column: Column, cell: &str, findings: &mut Findings) -> Result<(), String> {
        let number = |scale| scaled(cell, scale).ok_or_else(|| format!("holds no number: {:?}", short(cell)));
        match column {
            Column::At(scale) => self.at_ns = number(scale)?,
            Column::Response(_) | Column::End(_) if cell.is_empty() => {}
            Column::Response(scale) => self.response_ns = Some(number(scale)?),
            Column::End(scale) => self.end_ns = Some(number(scale)?),
            Column::Offset(scale) => self.offset_bytes = number(scale)?,
            Column::Size(scale) => self.size_bytes = number(scale)?,
            Column::Process => self.process = cell.parse().map_err(|_| format!("has no process: {:?}", short(cell)))?,
            Column::Device => self.device = findings.device(cell),
            Column::Operation => match operation(cell) {
                Some(found) => self.operation = Some(found),
                None => findings.pass_over(cell),
            },
            Column::Other => {}
        }
        Ok(())
    }

    fn record(self, findings: &mut Findings) -> Option<Record> {
        let (direction, flush) = match self.operation? {
            Operation::Move(direction) => (direction, false),
            Operation::Flush => (Direction::Write, true),
        };
        let size_bytes = if flush { 0 } else { self.size_bytes };
        let Some((start_sector, sectors)) = sectors_of(self.offset_bytes, size_bytes) else {
            findings.damage("is beyond every device");
            return None;
        };
        let ended = self.end_ns.map(|end| end.saturating_sub(self.at_ns));
        let response_ns = self.response_ns.or(ended);
        let found = Record::new(self.at_ns, direction, start_sector, sectors);
        Some(Record {
            response_ns,
            process: self.process,
            device: self.device,
            flush,
            sync: found.sync || flush,
            ..found
        })
    }
}

fn operation(cell: &str) -> Option<Operation> {
    match cell.to_ascii_lowercase().as_str() {
        "read" | "r" | "0" | "rs" | "ra" => Some(Operation::Move(Direction::Read)),
        "write" | "w" | "1" | "ws" => Some(Operation::Move(Direction::Write)),
        "flush" | "f" | "fsync" => Some(Operation::Flush),
        _ => None,
    }
}

/// So much of a cell as is shown.
pub fn short(cell: &str) -> String {
    cell.chars().take(24).collect()
}
