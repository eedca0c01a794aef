//! `[hdd]` and `[[hdd.zone]]` of a drive file: the short form of zones, and what commands cost beside the arm and the
//! transfer, which depends on the command before.

use serde::Deserialize;

use super::seek::{SeekCurve, check_table};
use crate::contract::Kind;
use crate::info::{above_zero, fields, within};

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
    /// given; once the head is elsewhere, `read_segment_bytes`. With it a read is served from the cache as far as that
    /// has its beginning.
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
            return check(&self.zone, self.heads, self.sector_bytes, self.capacity_bytes);
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
        let Some(curve) = self.seek_curve() else { return check_table(&self.seek_table) };
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
        Some((field, Some(_))) => Err(format!("{field} cannot be given together with {table}; remove one of them")),
        None => Ok(()),
    }
}

/// Nanoseconds of a number of milliseconds.
pub(super) fn ms(milliseconds: f64) -> u64 {
    (milliseconds * 1e6) as u64
}

/// `[[hdd.zone]]` of a drive file.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ZoneSpec {
    /// Its first cylinder; those between two zones hold no data.
    pub first_cylinder: u64,
    /// Its last cylinder.
    pub last_cylinder: u64,
    /// Sectors on each track.
    pub sectors_per_track: u64,
    /// Angle by which each track's first sector lags the previous track's, in sectors.
    pub track_skew_sectors: f64,
    /// The same from one cylinder to the next, in sectors.
    pub cylinder_skew_sectors: f64,
    /// Angle of the zone's first sector, in sectors.
    #[serde(default)]
    pub offset_sectors: f64,
    /// Sectors at the zone's front that hold no data of the host's.
    #[serde(default)]
    pub reserved_sectors: u64,
    /// Spare sectors at the end of each `spare_tracks` tracks.
    #[serde(default)]
    pub spare_sectors: u64,
    /// See `spare_sectors`; 0: all tracks of the zone.
    #[serde(default)]
    pub spare_tracks: u64,
}

/// The short form.
#[derive(Debug, Clone, Copy)]
pub(super) struct LinearZones {
    pub zones: u64,
    pub outer_mb_s: f64,
    pub inner_mb_s: f64,
    pub track_skew_ms: f64,
    pub cylinder_skew_ms: f64,
}

impl ZoneSpec {
    fn check(&self, heads: u64) -> Result<(), String> {
        above_zero(&fields! { self; sectors_per_track })?;
        within(&(0.0..=1e6), &fields! { self; sectors_per_track, first_cylinder, last_cylinder, reserved_sectors })?;
        within(&(0.0..=1e6), &fields! { self; track_skew_sectors, cylinder_skew_sectors, offset_sectors })?;
        if self.last_cylinder < self.first_cylinder {
            let (first, last) = (self.first_cylinder, self.last_cylinder);
            return Err(format!("last_cylinder = {last} is before first_cylinder = {first}"));
        }
        let tracks = self.tracks_apart(heads);
        if tracks > self.cylinders() * heads || self.spare_sectors >= tracks * self.sectors_per_track {
            let (sectors, tracks) = (self.spare_sectors, self.spare_tracks);
            return Err(format!("spare_sectors = {sectors}, each {tracks} tracks, leave no room for data"));
        }
        if self.data_sectors(heads, self.cylinders()) == 0 {
            return Err(format!("reserved_sectors = {} leave no room for data", self.reserved_sectors));
        }
        Ok(())
    }

    pub(super) fn cylinders(&self) -> u64 {
        self.last_cylinder + 1 - self.first_cylinder
    }

    fn tracks_apart(&self, heads: u64) -> u64 {
        if self.spare_tracks == 0 { self.cylinders() * heads } else { self.spare_tracks }
    }

    /// What the zone would hold with this many cylinders.
    pub(super) fn data_sectors(&self, heads: u64, cylinders: u64) -> u64 {
        let apart = self.tracks_apart(heads);
        let (regions, rest) = (cylinders * heads / apart, cylinders * heads % apart);
        let per_region = apart * self.sectors_per_track - self.spare_sectors;
        let sectors = regions * per_region + (rest * self.sectors_per_track).min(per_region);
        sectors.saturating_sub(self.reserved_sectors)
    }
}

/// Refuses zones that overlap, or hold less than the capacity.
pub(super) fn check(zones: &[ZoneSpec], heads: u64, sector_bytes: u64, capacity_bytes: u64) -> Result<(), String> {
    within(&(1.0..=1000.0), &[("zone", zones.len() as f64)])?;
    let mut next_cylinder = 0;
    for zone in zones {
        zone.check(heads)?;
        if zone.first_cylinder < next_cylinder {
            return Err(format!("first_cylinder = {} is in the zone before", zone.first_cylinder));
        }
        next_cylinder = zone.last_cylinder + 1;
    }
    let sectors: u64 = zones.iter().map(|zone| zone.data_sectors(heads, zone.cylinders())).sum();
    let holds_bytes = sectors * sector_bytes;
    if holds_bytes < capacity_bytes {
        return Err(format!("capacity_bytes = {capacity_bytes} is more than the zones hold, {holds_bytes}"));
    }
    Ok(())
}

/// `[hdd.overheads]` of a drive file. Pairs are for a command after a read and for one after a write.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(clippy::struct_field_names, reason = "they are fields of the drive file, which have their unit in the name")]
pub(crate) struct OverheadSpec {
    /// Until the transfer of a read from the cache begins, ms.
    pub read_hit_ms: (f64, f64),
    /// Until the arm begins to move for a read, ms.
    pub read_miss_ms: (f64, f64),
    /// Until the transfer of a write into the cache begins, ms.
    pub write_hit_ms: (f64, f64),
    /// Until the arm begins to move for a write that must reach the medium, ms.
    pub write_miss_ms: (f64, f64),
    /// From the end of a read's transfer to its completion, ms.
    #[serde(default)]
    pub read_completion_ms: f64,
    /// From the end of a write to its completion, ms.
    #[serde(default)]
    pub write_completion_ms: f64,
    /// From what the watermark waits for to the beginning of the transfer, ms.
    #[serde(default)]
    pub reconnect_ms: f64,
    /// From the time the arm begins to move for a write to the beginning of its transfer, ms.
    #[serde(default)]
    pub write_data_ms: f64,
}

impl OverheadSpec {
    pub(super) fn check(&self) -> Result<(), String> {
        let pair = |name, (after_read, after_write)| [(name, after_read), (name, after_write)];
        let pairs = [
            pair("read_hit_ms", self.read_hit_ms),
            pair("read_miss_ms", self.read_miss_ms),
            pair("write_hit_ms", self.write_hit_ms),
            pair("write_miss_ms", self.write_miss_ms),
        ];
        let single = [
            ("read_completion_ms", self.read_completion_ms),
            ("write_completion_ms", self.write_completion_ms),
            ("reconnect_ms", self.reconnect_ms),
            ("write_data_ms", self.write_data_ms),
        ];
        within(&(0.0..=1e6), &[pairs.as_flattened(), &single].concat())
    }
}

/// The same in nanoseconds.
#[derive(Debug, Clone, Copy)]
pub(super) struct Overheads {
    read_hit: (u64, u64),
    read_miss: (u64, u64),
    write_hit: (u64, u64),
    write_miss: (u64, u64),
    read_completion: u64,
    write_completion: u64,
    pub reconnect: u64,
    pub write_data: u64,
}

impl Overheads {
    /// Those of the drive file, or `overhead_ms` for all that needs no arm.
    pub(super) fn new(spec: Option<&OverheadSpec>, overhead_ms: f64) -> Self {
        let ns = |ms: f64| (ms * 1e6) as u64;
        let both = |(after_read, after_write)| (ns(after_read), ns(after_write));
        let hit = (ns(overhead_ms), ns(overhead_ms));
        match spec {
            Some(spec) => Self {
                read_hit: both(spec.read_hit_ms),
                read_miss: both(spec.read_miss_ms),
                write_hit: both(spec.write_hit_ms),
                write_miss: both(spec.write_miss_ms),
                read_completion: ns(spec.read_completion_ms),
                write_completion: ns(spec.write_completion_ms),
                reconnect: ns(spec.reconnect_ms),
                write_data: ns(spec.write_data_ms),
            },
            None => Self {
                read_hit: hit,
                read_miss: (0, 0),
                write_hit: hit,
                write_miss: (0, 0),
                read_completion: 0,
                write_completion: 0,
                reconnect: 0,
                write_data: 0,
            },
        }
    }

    /// Before the transfer of a command that needs no arm.
    pub(super) fn hit_ns(&self, kind: Kind, after_write: bool) -> u64 {
        let pair = if kind == Kind::Write { self.write_hit } else { self.read_hit };
        if after_write { pair.1 } else { pair.0 }
    }

    /// Before the arm moves for a command.
    pub(super) fn miss_ns(&self, kind: Kind, after_write: bool) -> u64 {
        let pair = if kind == Kind::Write { self.write_miss } else { self.read_miss };
        if after_write { pair.1 } else { pair.0 }
    }

    /// At the end of a command.
    pub(super) fn completion_ns(&self, kind: Kind) -> u64 {
        match kind {
            Kind::Read => self.read_completion,
            Kind::Write => self.write_completion,
            Kind::Flush | Kind::Discard => 0,
        }
    }

    /// The least at the end of a read or a write.
    pub(super) fn least_completion_ns(&self) -> u64 {
        self.read_completion.min(self.write_completion)
    }
}
