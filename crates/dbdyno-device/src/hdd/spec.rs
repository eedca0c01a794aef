//! `[hdd]` of a drive file.

use serde::Deserialize;

use crate::limits::{above_zero, fields, within};

/// The numbers that make a hard disk. Each field's unit is in its name.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct HddSpec {
    /// Capacity, bytes.
    pub capacity_bytes: u64,
    /// Which part of the drive a smaller disk is.
    #[serde(default)]
    pub span: Span,
    /// What the drive reads and writes at least; a write of part of it costs one more revolution.
    pub sector_bytes: u64,
    /// Revolutions per minute.
    pub rpm: f64,
    /// Recording surfaces.
    pub heads: u64,
    /// Zones of equal numbers of cylinders.
    pub zones: u64,
    /// Media rate of the outermost and innermost zone, MB/s, within a track.
    pub outer_mb_s: f64,
    /// See `outer_mb_s`.
    pub inner_mb_s: f64,
    /// Seek over d cylinders, d < `seek_short_cylinders`: a + b sqrt(d), ms.
    pub seek_short_cylinders: u64,
    /// a of the short seek, ms.
    pub seek_a_ms: f64,
    /// b of the short seek, ms.
    pub seek_b_ms: f64,
    /// c of the long seek c + e d, ms.
    pub seek_c_ms: f64,
    /// e of the long seek, ms per cylinder.
    pub seek_e_ms: f64,
    /// What a write needs beyond a read to settle on the track, ms.
    pub write_settle_ms: f64,
    /// Switching to another head on the same cylinder, ms.
    pub head_switch_ms: f64,
    /// Angle by which each track's first sector lags the previous track's, as time, ms.
    pub track_skew_ms: f64,
    /// The same from one cylinder to the next, ms.
    pub cylinder_skew_ms: f64,
    /// What a command costs that needs no arm, beyond its transfer, ms.
    pub overhead_ms: f64,
    /// Time from the end of one move to the choice of the next, ms; what arrives meanwhile can be chosen.
    pub choose_ms: f64,
    /// Host interface, MB/s.
    pub interface_mb_s: f64,
    /// How many of the oldest commands the drive chooses among.
    pub queue_depth: usize,
    /// Weight of the time a command has waited against the time to reach it; 0 is pure
    /// shortest-positioning-time-first, 1 nearly first come, first served.
    pub age_weight: f64,
    /// A command that has waited this long goes first, ms.
    pub age_limit_ms: f64,
    /// Volatile write cache, bytes; 0: writes go to the medium before they complete.
    pub write_cache_bytes: u64,
    /// How many of the oldest dirty extents the drive chooses among.
    pub destage_window: usize,
    /// Head start of host commands over destaging when the next move is chosen, ms.
    pub destage_handicap_ms: f64,
    /// What FLUSH takes beyond writing out the cache, if there was anything to write, ms.
    pub flush_ms: f64,
    /// Read segments in the cache.
    pub read_segments: usize,
    /// Size of one, bytes; the drive reads ahead up to it.
    pub read_segment_bytes: u64,
}

/// Which part of a drive a disk is that is smaller than the drive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Span {
    /// The outer edge, as a first partition would be: fast, with short seeks.
    #[default]
    Beginning,
    /// All of it: the disk's cylinders stand for several of the drive's, so that rates and seeks are those of the whole
    /// drive.
    Whole,
}

impl HddSpec {
    /// Refuses numbers the model cannot work with, naming the first.
    pub(crate) fn check(&self) -> Result<(), String> {
        above_zero(&fields! { self;
            capacity_bytes, sector_bytes, rpm, heads, zones, outer_mb_s, inner_mb_s, interface_mb_s, queue_depth,
            destage_window, age_limit_ms
        })?;
        within(
            &(0.0..=1e6),
            &fields! { self;
                seek_a_ms, seek_b_ms, seek_c_ms, seek_e_ms, write_settle_ms, head_switch_ms, track_skew_ms,
                cylinder_skew_ms, overhead_ms, choose_ms, age_weight, destage_handicap_ms, flush_ms
            },
        )?;
        let inner_sectors = self.inner_mb_s * 1e6 * 60.0 / self.rpm / self.sector_bytes as f64;
        if inner_sectors < 1.0 {
            return Err(format!("inner_mb_s = {} is less than one sector a track", self.inner_mb_s));
        }
        if self.zones > 1000 || self.heads > 1000 {
            return Err(format!("zones = {} and heads = {} must be at most 1000", self.zones, self.heads));
        }
        Ok(())
    }
}

/// Nanoseconds of a number of milliseconds.
pub(super) fn ms(milliseconds: f64) -> u64 {
    (milliseconds * 1e6) as u64
}
