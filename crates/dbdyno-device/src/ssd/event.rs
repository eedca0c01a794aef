//! What happens inside the drive, on its agenda.

/// Something that happens inside the drive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Event {
    /// A plane has brought a flash page into its register.
    Read { die: u32, lane: u32 },
    /// A die has programmed or erased, unless it was suspended meanwhile.
    Job { die: u32, generation: u32 },
    /// A command is done; its place is free.
    Finished,
    /// The host may write another page although the cache is being emptied.
    Paced,
    /// The host may have been idle for long enough to empty the cache.
    Idle,
}
