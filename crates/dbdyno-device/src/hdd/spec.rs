//! `[hdd]` of a drive file.

use serde::Deserialize;

use super::overheads::OverheadSpec;
use super::seek::{self, SeekCurve};
use super::zone_spec::{self, LinearZones, ZoneSpec};
use crate::limits::{above_zero, fields, within};

/// The numbers that make a hard disk. Each field's unit is in its name.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(clippy::struct_excessive_bools, reason = "each is a field of the drive file")]
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
    /// The zones one by one; instead of `zones`, the rates and the skews.
    #[serde(default)]
    pub zone: Vec<ZoneSpec>,
    /// Cylinder switches stay on the same head.
    #[serde(default)]
    pub serpentine: bool,
    /// Zones of equal numbers of cylinders.
    pub zones: Option<u64>,
    /// Media rate of the outermost and innermost zone, MB/s, within a track.
    pub outer_mb_s: Option<f64>,
    /// See `outer_mb_s`.
    pub inner_mb_s: Option<f64>,
    /// Seek over d cylinders, d < `seek_short_cylinders`: a + b sqrt(d), ms.
    pub seek_short_cylinders: Option<u64>,
    /// a of the short seek, ms.
    pub seek_a_ms: Option<f64>,
    /// b of the short seek, ms.
    pub seek_b_ms: Option<f64>,
    /// c of the long seek c + e d, ms.
    pub seek_c_ms: Option<f64>,
    /// e of the long seek, ms per cylinder.
    pub seek_e_ms: Option<f64>,
    /// Seek times by distance: rows of cylinders and ms; instead of the curve.
    #[serde(default)]
    pub seek_table: Vec<(u64, f64)>,
    /// What a write needs beyond a read to settle on the track, ms; below 0 where it needs less.
    pub write_settle_ms: f64,
    /// Switching to another head on the same cylinder, ms.
    pub head_switch_ms: f64,
    /// Angle by which each track's first sector lags the previous track's, as time, ms.
    pub track_skew_ms: Option<f64>,
    /// The same from one cylinder to the next, ms.
    pub cylinder_skew_ms: Option<f64>,
    /// What a command costs that needs no arm, beyond its transfer, ms.
    pub overhead_ms: f64,
    /// Time from the end of one move to the choice of the next, ms; what arrives meanwhile can be chosen.
    pub choose_ms: f64,
    /// Host interface, MB/s.
    pub interface_mb_s: f64,
    /// The same for writes, where it differs.
    pub interface_write_mb_s: Option<f64>,
    /// Share of a read that must be there before its transfer begins, 0 (a sector) to 1 (all). With it the whole
    /// transfer counts, and a write that must reach the medium waits for its own; without, the last 64 KiB of a read
    /// cross the interface after the last sector, and the transfer of such a write costs nothing.
    pub watermark: Option<f64>,
    /// How much of a write without a cache must have come before its first sector goes to the medium, bytes.
    #[serde(default)]
    pub write_lead_bytes: u64,
    /// Overheads by command and by what came before; instead of `overhead_ms`.
    pub overheads: Option<OverheadSpec>,
    /// How many of the oldest commands the drive chooses among.
    pub queue_depth: usize,
    /// Weight of the time a command has waited against the time to reach it; 0 is pure
    /// shortest-positioning-time-first, 1 nearly first come, first served.
    pub age_weight: f64,
    /// A command that has waited this long goes first, ms.
    pub age_limit_ms: f64,
    /// Volatile write cache, bytes; 0: writes go to the medium before they complete.
    pub write_cache_bytes: u64,
    /// How many runs of dirty sectors the cache takes at a time; as many as there is room for if not given.
    pub write_segments: Option<usize>,
    /// How many of the oldest dirty extents the drive chooses among.
    pub destage_window: usize,
    /// Head start of host commands over destaging when the next move is chosen, ms.
    pub destage_handicap_ms: f64,
    /// True where FLUSH is acknowledged at once and leaves the write cache as it is: a drive that lies.
    #[serde(default)]
    pub flush_ignored: bool,
    /// What FLUSH takes beyond writing out the cache, if there was anything to write, ms.
    pub flush_ms: f64,
    /// Read segments in the cache.
    pub read_segments: usize,
    /// Size of one, bytes; the drive reads ahead up to it.
    pub read_segment_bytes: u64,
    /// When the drive reads ahead.
    #[serde(default)]
    pub read_ahead: ReadAhead,
    /// How far, bytes; `read_segment_bytes` if not given.
    pub read_ahead_bytes: Option<u64>,
    /// A read from the cache lets the drive read ahead further.
    #[serde(default = "yes")]
    pub read_ahead_after_hit: bool,
    /// What a segment holds at most while the drive reads ahead, bytes: what comes pushes out the oldest. All if not
    /// given; once the head is elsewhere, `read_segment_bytes`. With it a read is served from the cache as far as that has
    /// its beginning.
    pub read_kept_bytes: Option<u64>,
    /// The sectors of the track that pass before those asked for are kept too.
    #[serde(default)]
    pub read_before: bool,
    /// A read within one track begins wherever the head comes down, and takes a revolution at most.
    #[serde(default)]
    pub read_on_arrival: bool,
    /// What was written to the medium can be read from the cache.
    #[serde(default)]
    pub read_written: bool,
}

fn yes() -> bool {
    true
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

/// `read_ahead` of a drive file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ReadAhead {
    Never,
    /// After every read, up to the limit.
    #[default]
    Always,
    /// Up to the limit after a read that continues one in the cache.
    Sequential,
    /// To the end of the track on which the next sector lies, or to the limit.
    Track,
    /// To the end of that track, and one track further where the cache holds the end of the track before.
    Stream,
}

impl HddSpec {
    /// Refuses numbers the model cannot work with, naming the first.
    pub(crate) fn check(&self) -> Result<(), String> {
        above_zero(&fields! { self;
            capacity_bytes, sector_bytes, rpm, heads, interface_mb_s, queue_depth, destage_window, age_limit_ms
        })?;
        within(
            &(0.0..=1e6),
            &fields! { self; head_switch_ms, overhead_ms, choose_ms, age_weight, destage_handicap_ms, flush_ms },
        )?;
        within(&(-1e3..=1e6), &fields! { self; write_settle_ms })?;
        within(&(0.0..=1.0), &[("watermark", self.watermark.unwrap_or(0.0))])?;
        above_zero(&[
            ("interface_write_mb_s", self.interface_write_mb_s.unwrap_or(1.0)),
            ("write_segments", self.write_segments.unwrap_or(1) as f64),
        ])?;
        self.overheads.map_or(Ok(()), |overheads| overheads.check())?;
        if self.heads > 1000 {
            return Err(format!("heads = {} must be at most 1000", self.heads));
        }
        if self.flush_ignored && self.write_cache_bytes == 0 {
            return Err("flush_ignored = true needs a write cache: write_cache_bytes is 0".into());
        }
        self.check_zones()?;
        self.check_seek()
    }

    fn check_zones(&self) -> Result<(), String> {
        let short = [
            ("zones", self.zones.map(|zones| zones as f64)),
            ("outer_mb_s", self.outer_mb_s),
            ("inner_mb_s", self.inner_mb_s),
            ("track_skew_ms", self.track_skew_ms),
            ("cylinder_skew_ms", self.cylinder_skew_ms),
        ];
        one_form(&short, self.zone.is_empty(), "[[hdd.zone]]")?;
        let Some(short) = self.linear_zones() else {
            return zone_spec::check(&self.zone, self.heads, self.sector_bytes, self.capacity_bytes);
        };
        above_zero(&fields! { short; zones, outer_mb_s, inner_mb_s })?;
        within(&(0.0..=1e6), &fields! { short; track_skew_ms, cylinder_skew_ms })?;
        let inner_sectors = short.inner_mb_s * 1e6 * 60.0 / self.rpm / self.sector_bytes as f64;
        if inner_sectors < 1.0 {
            return Err(format!("inner_mb_s = {} is less than one sector a track", short.inner_mb_s));
        }
        if short.zones > 1000 {
            return Err(format!("zones = {} must be at most 1000", short.zones));
        }
        Ok(())
    }

    fn check_seek(&self) -> Result<(), String> {
        let curve = [
            ("seek_short_cylinders", self.seek_short_cylinders.map(|cylinders| cylinders as f64)),
            ("seek_a_ms", self.seek_a_ms),
            ("seek_b_ms", self.seek_b_ms),
            ("seek_c_ms", self.seek_c_ms),
            ("seek_e_ms", self.seek_e_ms),
        ];
        one_form(&curve, self.seek_table.is_empty(), "seek_table")?;
        let Some(curve) = self.seek_curve() else { return seek::check(&self.seek_table) };
        within(&(0.0..=1e6), &fields! { curve; seek_a_ms, seek_b_ms, seek_c_ms, seek_e_ms })
    }

    /// The short form of the zones, if the drive file has it.
    pub(super) fn linear_zones(&self) -> Option<LinearZones> {
        Some(LinearZones {
            zones: self.zones?,
            outer_mb_s: self.outer_mb_s?,
            inner_mb_s: self.inner_mb_s?,
            track_skew_ms: self.track_skew_ms?,
            cylinder_skew_ms: self.cylinder_skew_ms?,
        })
    }

    /// The short form of the seek times, if the drive file has it.
    pub(super) fn seek_curve(&self) -> Option<SeekCurve> {
        Some(SeekCurve {
            seek_short_cylinders: self.seek_short_cylinders?,
            seek_a_ms: self.seek_a_ms?,
            seek_b_ms: self.seek_b_ms?,
            seek_c_ms: self.seek_c_ms?,
            seek_e_ms: self.seek_e_ms?,
        })
    }
}

/// All fields of a short form, or none of them where a table stands instead.
fn one_form(short: &[(&str, Option<f64>)], has_no_table: bool, table: &str) -> Result<(), String> {
    match short.iter().find(|(_, value)| value.is_some() != has_no_table) {
        Some((field, None)) => Err(format!("{field} is missing; give it, or {table}")),
        Some((field, Some(_))) => Err(format!("{field} can't stand beside {table}; remove one of them")),
        None => Ok(()),
    }
}

/// Nanoseconds of a number of milliseconds.
pub(super) fn ms(milliseconds: f64) -> u64 {
    (milliseconds * 1e6) as u64
}
