//! One request of a trace, whatever wrote it.

use crate::queue::Direction;

/// A request as its format tells of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record {
    /// When it was asked for, nanoseconds since whatever the trace counts from.
    pub at_ns: u64,
    /// How long it took, where the trace says so.
    pub response_ns: Option<u64>,
    /// Who asked, where the trace says so: a process, or a host's number.
    pub process: u32,
    /// Which of the trace's devices, from 0 in the order met; see [`Findings::devices`](super::Findings::devices).
    pub device: u16,
    /// Which way the data goes.
    pub direction: Direction,
    /// First sector of 512 bytes.
    pub start_sector: u64,
    /// Length in sectors; 0 for a bare flush.
    pub sectors: u32,
    /// A process waits for it, as far as the trace tells: every read, and writes marked so.
    pub sync: bool,
    /// The drive's cache must be written out before the data.
    pub flush: bool,
    /// The data must be on the medium when it is finished.
    pub fua: bool,
}

impl Record {
    /// A read or write; reads are synchronous.
    pub fn new(at_ns: u64, direction: Direction, start_sector: u64, sectors: u32) -> Self {
        Self {
            at_ns,
            response_ns: None,
            process: 0,
            device: 0,
            direction,
            start_sector,
            sectors,
            sync: direction == Direction::Read,
            flush: false,
            fua: false,
        }
    }
}
