//! How dirty pages come to the drive, by version.

use crate::kernel::Kernel;

/// How dirty pages come to the drive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Writeback {
    /// pdflush, which never waits for a request, and writers that write themselves (to 2.6.31).
    Pdflush,
    /// A flusher thread for the device, which waits for requests, and writers that write themselves (to 3.1).
    Flusher,
    /// A flusher thread, and writers that sleep (from 3.2).
    Paced,
}

impl Writeback {
    /// What a kernel has.
    pub fn of(kernel: &Kernel) -> Self {
        match kernel.name {
            "2.6.9" | "2.6.18" => Self::Pdflush,
            "2.6.32" => Self::Flusher,
            _ => Self::Paced,
        }
    }
}
