//! Which format a trace has, by its name or by how it begins.

use super::columns::Columns;
use super::disksim::{self, DiskSim};
use super::fio::{IoLog, Version};
use super::headings::{Heading, Lacking};
use super::record::{Action, Begin, Findings};
use super::units::{Doubt, LENGTHS, TIMES, is_number, scaled};
use super::{blkparse, blktrace, disk};

pub use super::headings::Format;

impl Format {
    /// By how the file begins; `None` where that is like no format's.
    pub fn of(head: &[u8]) -> Option<Self> {
        Self::find(head, None).ok().map(|beginning| beginning.format)
    }

    /// Where a format begins, or that which is named. Text may stand before it: what a program prints on a terminal, or
    /// the line that called it. What is nearly a heading is the reason where nothing is found.
    pub(super) fn find(head: &[u8], named: Option<Self>) -> Result<Beginning, Option<Lacking>> {
        if named.is_none() && blktrace::begins(head) {
            return Ok(Beginning { format: Self::Blktrace, lines_before: 0 });
        }
        if named.is_none() && disk::begins(head) {
            return Ok(Beginning { format: Self::Disk, lines_before: 0 });
        }
        let text = String::from_utf8_lossy(head);
        let lines: Vec<&str> = text.trim_start_matches('\u{feff}').lines().map(str::trim).collect();
        let mut lacking = None;
        let full = |line: &&&str| !line.is_empty() && !line.starts_with('#');
        for (number, line) in lines.iter().enumerate().filter(|(_, line)| !line.is_empty()) {
            let fits = |format: &Self| named.is_none_or(|named| named == *format || named == Self::Named);
            match Heading::parse(line) {
                Ok(heading) if fits(&heading.format) => {
                    return Ok(Beginning { format: named.unwrap_or(heading.format), lines_before: number });
                }
                Err(Some(missing)) if lacking.is_none() => lacking = Some(missing.at_line(number + 1)),
                _ => {}
            }
            if line.starts_with('#') {
                continue;
            }
            let Some(format) =
                named.map_or_else(|| Self::of_line(line), |named| named.is_of_line(line).then_some(named))
            else {
                continue;
            };
            // Five numbers in a row may stand in any text: the next line must be of the same kind.
            let next = lines[number + 1..].iter().find(full);
            let is_first = lines[..number].iter().all(|line| !full(&line));
            if is_first || format.is_unlike_others() || next.is_none_or(|next| format.is_of_line(next)) {
                return Ok(Beginning { format, lines_before: number });
            }
        }
        let comments_alone = !lines.iter().any(|line| full(&line)) && text.starts_with('#') && lacking.is_none();
        match named {
            None if comments_alone => Ok(Beginning { format: Self::Tracefs, lines_before: 0 }),
            Some(Self::Named) if lacking.is_some() => Err(lacking),
            Some(format) => Ok(Beginning { format, lines_before: 0 }),
            None => Err(lacking),
        }
    }

    /// No text is like its lines by chance.
    fn is_unlike_others(self) -> bool {
        matches!(self, Self::Blkparse | Self::Tracefs | Self::Fio2 | Self::Fio3)
    }

    fn of_line(line: &str) -> Option<Self> {
        const BY_LINE: [Format; 12] = [
            Format::Fio2,
            Format::Fio3,
            Format::Tracefs,
            Format::Blkparse,
            Format::Disksim,
            Format::Msr,
            Format::Tencent,
            Format::Alibaba,
            Format::Systor17,
            Format::Spc,
            Format::Fiu,
            Format::Biosnoop,
        ];
        let known = BY_LINE.into_iter().find(|format| format.is_of_line(line));
        known.or_else(|| Self::Own.is_of_line(line).then_some(Self::Own))
    }

    /// Whether a line that is no heading is like those of this format. Those with commas differ by where numbers stand.
    fn is_of_line(self, line: &str) -> bool {
        let cells = || -> Vec<&str> { line.split(',').map(str::trim).collect() };
        let words = || -> Vec<&str> { line.split_ascii_whitespace().collect() };
        let digits = is_number;
        let decimal = |cell: &str| scaled(cell, 1).is_some();
        let moves = |cell: &str| matches!(cell.as_bytes().first(), Some(b'R' | b'W' | b'r' | b'w'));
        match self {
            Self::Fio2 => line == "fio version 2 iolog",
            Self::Fio3 => line == "fio version 3 iolog",
            Self::Tracefs => blkparse::begins_tracefs(line),
            Self::Blkparse => blkparse::begins_blkparse(line),
            Self::Disksim => disksim::begins(line),
            Self::Msr => {
                matches!(cells()[..], [at, _, _, op, offset, size, took] if decimal(at) && !digits(op) && digits(offset) && digits(size) && decimal(took))
            }
            Self::Tencent => {
                matches!(cells()[..], [at, offset, size, op, _] if decimal(at) && digits(offset) && digits(size) && digits(op))
            }
            Self::Alibaba => {
                matches!(cells()[..], [device, op, offset, size, at] if digits(device) && moves(op) && digits(offset) && digits(size) && decimal(at))
            }
            Self::Systor17 => {
                matches!(cells()[..], [at, took, op, lun, offset, size] if decimal(at) && (took.is_empty() || decimal(took)) && (op.is_empty() || moves(op)) && digits(lun) && digits(offset) && digits(size))
            }
            Self::Spc => {
                matches!(cells()[..], [device, place, size, op, at, ..] if digits(device) && digits(place) && digits(size) && moves(op) && decimal(at))
            }
            Self::Fiu => {
                let words = words();
                let Some(op) = words.iter().skip(5).position(|word| matches!(*word, "R" | "W")).map(|op| op + 5) else {
                    return false;
                };
                digits(words[0])
                    && digits(words[1])
                    && words[op - 2..op].iter().all(|word| digits(word))
                    && words.get(op + 1).is_some_and(|word| digits(word))
            }
            Self::Biosnoop => biosnoop_cells(line).is_some(),
            Self::Own => blkparse::begins_own(line),
            Self::Blktrace | Self::Disk | Self::Named => false,
        }
    }

    /// How its lines are read, by the lines at its beginning, of which the first may name columns.
    pub(super) fn parser(self, lines: &[&str], units: Units, begin: Begin) -> Result<ParserStart, ParserError> {
        let first = lines.first().copied().unwrap_or_default();
        if let Some(flag) = units.flag().filter(|_| !self.has_open_units()) {
            return Err(ParserError::Exact { format: self.name(), flag });
        }
        let mut notes = Vec::new();
        let mut has_heading = false;
        let parser = match self {
            Self::Blktrace | Self::Disk => Parser::Blkparse,
            Self::Blkparse | Self::Tracefs => {
                if self == Self::Blkparse {
                    Parser::Blkparse
                } else {
                    Parser::Tracefs
                }
            }
            Self::Own => {
                let length_scale = if let Some(scale) = units.length_scale {
                    scale
                } else {
                    let chosen = blkparse::own_lengths(lines).unit(512)?;
                    notes.extend(chosen.note);
                    chosen.scale
                };
                Parser::Own(length_scale)
            }
            Self::Fio2 | Self::Fio3 => {
                has_heading = self.is_of_line(first.trim());
                Parser::Fio(IoLog::new(if self == Self::Fio2 { Version::Two } else { Version::Three }))
            }
            Self::Disksim => {
                let (disksim, remarks) = DiskSim::new(lines, units.time_scale, units.length_scale)?;
                notes = remarks;
                Parser::Disksim(disksim)
            }
            _ => {
                let heading = match Heading::parse(first) {
                    Ok(heading) => {
                        has_heading = true;
                        heading
                    }
                    Err(why) => {
                        let cells = biosnoop_cells(first).unwrap_or(0);
                        let lacking = || ParserError::Lacking(why.unwrap_or_else(Lacking::default));
                        Heading::published(self, cells).ok_or_else(lacking)?
                    }
                };
                let sample = lines.get(usize::from(has_heading)..).unwrap_or_default();
                let (columns, remarks) = heading.settled(sample, units.time_scale, units.length_scale)?;
                notes = remarks;
                Parser::Columns(columns.beginning(begin))
            }
        };
        Ok(ParserStart { parser, has_heading, notes })
    }

    /// Whether the units of its numbers may be others than those that are documented.
    fn has_open_units(self) -> bool {
        !matches!(self, Self::Blktrace | Self::Blkparse | Self::Tracefs | Self::Disk | Self::Fio2 | Self::Fio3)
    }
}

/// How many columns a line of biosnoop has, a name of several words being one; `None` where it is none of its lines.
fn biosnoop_cells(line: &str) -> Option<usize> {
    let words: Vec<&str> = line.split_ascii_whitespace().collect();
    let time = words.first().filter(|time| time.contains('.') && scaled(time, 1).is_some());
    let is_rwbs = |word: &str| word.len() <= 5 && word.bytes().all(|byte| b"RWFSMAEBDN".contains(&byte));
    let ends = |back: usize| {
        let at = words.len().checked_sub(back)?;
        let numbers = is_rwbs(words[at]) && is_number(words[at + 1]) && is_number(words[at + 2]);
        // It has milliseconds with a point; scripts print whole numbers of what they like.
        let is_duration = |word: &&str| word.contains('.') && scaled(word, 1).is_some();
        (at >= 4 && numbers && words[at + 3..].iter().all(is_duration)).then_some(4 + back)
    };
    time.and(ends(4).or_else(|| ends(5)))
}

/// Where the first line of a trace stands.
pub(super) struct Beginning {
    pub format: Format,
    /// Lines before that of its first event or of its heading.
    pub lines_before: usize,
}

/// What is asked of units, in nanoseconds and bytes.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Units {
    pub time_scale: Option<u64>,
    pub length_scale: Option<u64>,
}

impl Units {
    fn flag(self) -> Option<&'static str> {
        self.time_scale.map(|_| "--time-unit").or_else(|| self.length_scale.map(|_| "--length-unit"))
    }
}

/// Why lines can't be read as those of a format.
#[derive(Debug, thiserror::Error)]
pub(super) enum ParserError {
    #[error(transparent)]
    Lacking(#[from] Lacking),
    #[error(transparent)]
    Doubt(#[from] Doubt),
    #[error("{flag} is for traces of columns; the format {format} has units of its own")]
    Exact { format: &'static str, flag: &'static str },
}

/// A parser, whether the first line names columns, and what is to be said of how the rest is read.
pub(super) struct ParserStart {
    pub parser: Parser,
    pub has_heading: bool,
    pub notes: Vec<String>,
}

/// Reads the lines of a format of text.
pub(super) enum Parser {
    Blkparse,
    Tracefs,
    Own(u64),
    Fio(IoLog),
    Disksim(DiskSim),
    Columns(Columns),
}

impl Parser {
    /// The event of a line, of formats that have events.
    pub fn event(&self, line: &str, findings: &mut Findings) -> Option<super::record::BlockEvent> {
        match self {
            Self::Blkparse => blkparse::blkparse(line, findings),
            Self::Tracefs => blkparse::tracefs(line, findings),
            Self::Own(length_scale) => blkparse::own_form(line, *length_scale, findings),
            _ => None,
        }
    }

    pub fn has_events(&self) -> bool {
        matches!(self, Self::Blkparse | Self::Tracefs | Self::Own(_))
    }

    /// The moment that requests begin with, which is the one asked for if the lines at the beginning have such events.
    pub fn moment(&self, lines: &[&str], begin: Begin) -> Action {
        let mut findings = Findings::default();
        let actions: Vec<Action> =
            lines.iter().filter_map(|line| self.event(line, &mut findings)).map(|event| event.action).collect();
        begin.moments().into_iter().find(|moment| actions.contains(moment)).unwrap_or(begin.moments()[0])
    }
}

/// A unit of times by its name, in nanoseconds.
pub fn time_scale(name: &str) -> Option<u64> {
    super::units::scale_of(&TIMES, name)
}

/// A unit of places and lengths by its name, in bytes.
pub fn length_scale(name: &str) -> Option<u64> {
    super::units::scale_of(&LENGTHS, name)
}
