//! What can be set of cfq from 2.6.32.

use super::tunables::{Tunable, Unit};

/// From 2.6.33.
pub(super) const TUNABLES: &[Tunable] = &[
    Tunable::new("quantum", 8, Unit::Count),
    Tunable::new("fifo_expire_async", 250, Unit::Milliseconds),
    Tunable::new("fifo_expire_sync", 125, Unit::Milliseconds),
    Tunable::new("back_seek_max", 16_384, Unit::Kibibytes),
    Tunable::new("back_seek_penalty", 2, Unit::Count),
    Tunable::new("slice_sync", 100, Unit::Milliseconds),
    Tunable::new("slice_async", 40, Unit::Milliseconds),
    Tunable::new("slice_async_rq", 2, Unit::Count),
    Tunable::new("slice_idle", 8, Unit::Milliseconds),
    Tunable::new("group_idle", 8, Unit::Milliseconds),
    Tunable::new("low_latency", 1, Unit::Switch),
    Tunable::new("target_latency", 300, Unit::Milliseconds),
];

/// Of 2.6.32.
pub(super) const TUNABLES_2_6_32: &[Tunable] = &[
    Tunable::new("quantum", 4, Unit::Count),
    Tunable::new("fifo_expire_async", 250, Unit::Milliseconds),
    Tunable::new("fifo_expire_sync", 125, Unit::Milliseconds),
    Tunable::new("back_seek_max", 16_384, Unit::Kibibytes),
    Tunable::new("back_seek_penalty", 2, Unit::Count),
    Tunable::new("slice_sync", 100, Unit::Milliseconds),
    Tunable::new("slice_async", 40, Unit::Milliseconds),
    Tunable::new("slice_async_rq", 2, Unit::Count),
    Tunable::new("slice_idle", 8, Unit::Milliseconds),
    Tunable::new("low_latency", 1, Unit::Switch),
];
