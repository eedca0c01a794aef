//! Which format a trace has, by its name or by how it begins.

use super::blkparse::is_number;
use super::columns::{Columns, Lacking};
use super::fio::Version;
use super::{blktrace, disk};

/// A format that can be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Binary, a file for each CPU.
    Blktrace,
    /// Text of `blkparse`, in its default format.
    Blkparse,
    /// Text of the kernel's block events.
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
}

impl Format {
    /// All, with the names by which users choose one.
    pub const ALL: [(&'static str, Self); 12] = [
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
    ];

    /// By its name.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(known, _)| *known == name).map(|(_, format)| *format)
    }

    /// The name by which users choose it.
    pub fn name(self) -> &'static str {
        Self::ALL[self as usize].0
    }

    /// By how the file begins; `None` where that is like no format's. Alibaba, Tencent and SPC differ by where numbers stand.
    pub fn of(head: &[u8]) -> Option<Self> {
        if blktrace::begins(head) {
            return Some(Self::Blktrace);
        }
        if disk::begins(head) {
            return Some(Self::Disk);
        }
        let text = String::from_utf8_lossy(head);
        let line = text.lines().find(|line| !line.trim().is_empty() && !line.starts_with('#'));
        let Some(line) = line.map(str::trim) else {
            return text.starts_with('#').then_some(Self::Tracefs);
        };
        Self::of_line(line)
    }

    fn of_line(line: &str) -> Option<Self> {
        match line {
            "fio version 2 iolog" => return Some(Self::Fio2),
            "fio version 3 iolog" => return Some(Self::Fio3),
            _ if line.contains(": block_") => return Some(Self::Tracefs),
            _ => {}
        }
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        let cells: Vec<&str> = line.split(',').map(str::trim).collect();
        let digits = |place: usize| cells.get(place).is_some_and(|cell| is_number(cell));
        match (words.len(), cells.len()) {
            (5, 1) => Some(Self::Disksim),
            (7.., 2..) if words[0].split(',').count() == 2 && words[0].split(',').all(is_number) => {
                Some(Self::Blkparse)
            }
            (_, 7) if digits(0) && digits(4) && digits(5) => Some(Self::Msr),
            (_, 5..=6) if digits(0) && digits(1) && digits(2) && digits(3) => Some(Self::Tencent),
            (_, 5) if digits(0) && digits(2) && digits(3) && digits(4) => Some(Self::Alibaba),
            (_, 5..) if digits(0) && digits(1) && digits(2) => Some(Self::Spc),
            _ => Columns::named(line).is_ok().then_some(Self::Named),
        }
    }

    /// How its lines are read; `first` is the line of names, where it has one.
    pub(super) fn parser(self, first: &str) -> Result<Parser, Lacking> {
        Ok(match self {
            Self::Blktrace | Self::Disk | Self::Blkparse => Parser::Blkparse,
            Self::Tracefs => Parser::Tracefs,
            Self::Fio2 => Parser::Fio(super::fio::IoLog::new(Version::Two)),
            Self::Fio3 => Parser::Fio(super::fio::IoLog::new(Version::Three)),
            Self::Disksim => Parser::Disksim,
            Self::Msr => Parser::Columns(Columns::msr()),
            Self::Alibaba => Parser::Columns(Columns::alibaba()),
            Self::Tencent => Parser::Columns(Columns::tencent()),
            Self::Spc => Parser::Columns(Columns::spc()),
            Self::Named => Parser::Columns(Columns::named(first)?),
        })
    }

    /// Whether its first line holds no request.
    pub(super) fn has_heading(self) -> bool {
        matches!(self, Self::Fio2 | Self::Fio3 | Self::Named)
    }
}

/// Reads the lines of a format of text.
pub(super) enum Parser {
    Blkparse,
    Tracefs,
    Fio(super::fio::IoLog),
    Disksim,
    Columns(Columns),
}
