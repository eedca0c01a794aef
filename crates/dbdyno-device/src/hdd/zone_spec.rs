//! `[[hdd.zone]]` of a drive file, and its short form.

use serde::Deserialize;

use crate::limits::{above_zero, fields, within};

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
