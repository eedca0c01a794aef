//! Zones: which sectors lie on which cylinders, and at which angles.
//!
//! Either the short form (zones of equal numbers of cylinders, media rates falling linearly inwards) or a table with
//! what was extracted of each zone. Sectors that are reserved at a zone's front or spare (kept for defects, at the end
//! of each so many tracks) hold no data, but pass under the head.

use super::spec::{HddSpec, Span};
use super::zone_spec::{LinearZones, ZoneSpec};

#[derive(Debug)]
pub(super) struct Zone {
    pub first_sector: u64,
    pub first_cylinder: u64,
    pub sectors_per_track: u64,
    pub reserved: u64,
    /// None: every sector of every track holds data.
    pub spares: Option<Spares>,
    /// Skews in revolutions.
    pub track_skew: f64,
    pub cylinder_skew: f64,
    /// Angle of the first sector of the cylinder that the skews count from, revolutions.
    pub angle: f64,
    pub skewed_from_cylinder: u64,
}

/// Each so many tracks hold so many sectors of data.
#[derive(Debug, Clone, Copy)]
pub(super) struct Spares {
    pub tracks: u64,
    pub data_sectors: u64,
}

/// The zones of a disk of this size, and how many of the drive's cylinders one of them stands for.
pub(super) fn zones(spec: &HddSpec, size_bytes: u64) -> (Vec<Zone>, f64) {
    match spec.linear_zones() {
        Some(short) => from_short_form(spec, &short, size_bytes),
        None => from_table(spec, size_bytes),
    }
}

fn from_short_form(spec: &HddSpec, short: &LinearZones, size_bytes: u64) -> (Vec<Zone>, f64) {
    let revolution_s = 60.0 / spec.rpm;
    let per_track = |mb_s: f64| mb_s * 1e6 * revolution_s / spec.sector_bytes as f64;
    let (outer, inner) = (per_track(short.outer_mb_s), per_track(short.inner_mb_s));
    let steps = (short.zones - 1).max(1) as f64;
    let tracks_of: Vec<u64> =
        (0..short.zones).map(|zone| (outer + (inner - outer) * zone as f64 / steps).max(1.0) as u64).collect();
    let sectors_of_all = spec.heads * tracks_of.iter().sum::<u64>();
    let per_zone = |bytes: u64| bytes.div_ceil(spec.sector_bytes).div_ceil(sectors_of_all).max(1);
    let real_cylinders_per_zone = per_zone(spec.capacity_bytes);
    let cylinders_per_zone = match spec.span {
        Span::Beginning => real_cylinders_per_zone,
        Span::Whole => per_zone(size_bytes),
    };
    let mut first_sector = 0;
    let zones = tracks_of.into_iter().zip(0..).map(|(sectors_per_track, zone)| {
        let made = Zone {
            first_sector,
            first_cylinder: zone * cylinders_per_zone,
            sectors_per_track,
            reserved: 0,
            spares: None,
            track_skew: short.track_skew_ms / 1e3 / revolution_s,
            cylinder_skew: short.cylinder_skew_ms / 1e3 / revolution_s,
            angle: 0.0,
            skewed_from_cylinder: 0,
        };
        first_sector += cylinders_per_zone * spec.heads * sectors_per_track;
        made
    });
    (zones.collect(), real_cylinders_per_zone as f64 / cylinders_per_zone as f64)
}

fn from_table(spec: &HddSpec, size_bytes: u64) -> (Vec<Zone>, f64) {
    let share = match spec.span {
        Span::Beginning => 1.0,
        Span::Whole => (size_bytes as f64 / spec.capacity_bytes as f64).min(1.0),
    };
    let (mut first_sector, mut next_cylinder, mut real) = (0, 0, 0);
    let mut zones = Vec::with_capacity(spec.zone.len());
    for zone in &spec.zone {
        // Of a stretched disk the reserved and spare sectors shrink with the zone.
        let shrunk = |sectors: u64| (sectors as f64 * share) as u64;
        let cylinders = ((zone.cylinders() as f64 * share).ceil() as u64).max(1);
        let first_cylinder = if share < 1.0 { next_cylinder } else { zone.first_cylinder };
        let mut here = ZoneSpec { reserved_sectors: shrunk(zone.reserved_sectors), ..zone.clone() };
        if zone.spare_tracks == 0 {
            here.spare_tracks = cylinders * spec.heads;
            here.spare_sectors = shrunk(zone.spare_sectors);
        }
        let revolution = 1.0 / zone.sectors_per_track as f64;
        let data_sectors = here.spare_tracks * zone.sectors_per_track - here.spare_sectors;
        zones.push(Zone {
            first_sector,
            first_cylinder,
            sectors_per_track: zone.sectors_per_track,
            reserved: here.reserved_sectors,
            spares: Some(Spares { tracks: here.spare_tracks, data_sectors }),
            track_skew: zone.track_skew_sectors * revolution,
            cylinder_skew: zone.cylinder_skew_sectors * revolution,
            angle: zone.offset_sectors * revolution,
            skewed_from_cylinder: first_cylinder,
        });
        first_sector += here.data_sectors(spec.heads, cylinders);
        next_cylinder = first_cylinder + cylinders;
        real = zone.last_cylinder + 1;
    }
    (zones, real as f64 / next_cylinder as f64)
}
