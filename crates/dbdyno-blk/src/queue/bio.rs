//! What a process asks of the block layer.

/// Which way the data goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Direction {
    /// From the drive.
    Read,
    /// To the drive.
    Write,
}

impl Direction {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Read, Self::Write];

    /// The place of what is kept per direction.
    #[inline]
    pub fn index(self) -> usize {
        self as usize
    }

    /// The other one.
    #[must_use]
    pub fn other(self) -> Self {
        match self {
            Self::Read => Self::Write,
            Self::Write => Self::Read,
        }
    }
}

/// The class of an I/O priority.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Class {
    /// Before all others.
    RealTime,
    /// What processes have that never called `ioprio_set`.
    BestEffort,
    /// Only while nobody else wants the drive.
    Idle,
}

/// One read, write or flush by a process.
#[allow(clippy::struct_excessive_bools)] // each is a flag of its own, as the kernel has them
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bio {
    /// Who asks; small numbers from 0, as tables are kept by them.
    pub process: u32,
    /// The source's own mark, given back when the bio is finished.
    pub token: u64,
    /// Which way the data goes.
    pub direction: Direction,
    /// A process waits for it: every read, and writes past the page cache or of an fsync.
    pub sync: bool,
    /// Its process is not expected to ask for more nearby soon (`REQ_NOIDLE`): writes of an fsync.
    pub no_idle: bool,
    /// First sector of 512 bytes.
    pub start_sector: u64,
    /// Length in sectors; 0 for a bare flush.
    pub sectors: u32,
    /// The drive's cache must be written out before the data.
    pub flush: bool,
    /// The data must be on the medium when it is finished.
    pub fua: bool,
    /// Class of the I/O priority.
    pub class: Class,
    /// Priority within the class, 0 (most) to 7; 4 is usual.
    pub priority: u8,
    /// When the process meant to ask, nanoseconds; latency counts from here.
    pub intended_ns: u64,
}

impl Bio {
    /// A synchronous bio of best effort that asks for nothing but its data.
    pub fn new(process: u32, direction: Direction, start_sector: u64, sectors: u32) -> Self {
        Self {
            process,
            token: 0,
            direction,
            sync: true,
            no_idle: false,
            start_sector,
            sectors,
            flush: false,
            fua: false,
            class: Class::BestEffort,
            priority: 4,
            intended_ns: 0,
        }
    }

    /// First sector after it.
    #[inline]
    pub fn end_sector(&self) -> u64 {
        self.start_sector + u64::from(self.sectors)
    }

    /// Pieces of memory it comes from: its pages of 4 KiB, none beside another.
    #[inline]
    pub fn segments(&self) -> u32 {
        self.sectors.div_ceil(8)
    }

    /// It may share a request with others.
    #[inline]
    pub fn can_merge(&self) -> bool {
        !self.flush && !self.fua && self.sectors > 0
    }
}
