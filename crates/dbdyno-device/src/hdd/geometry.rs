//! Where a sector lies: zone, cylinder, head and angle.
//!
//! Cylinders are filled head after head from the outer edge inwards; in a serpentine layout every other cylinder of a
//! zone is filled from the last head to the first. A small disk stretched over the whole drive has all the zones, with
//! fewer cylinders, each of which stands for several of the drive.
//!
//! Either the short form (zones of equal numbers of cylinders, media rates falling linearly inwards) or a table with
//! what was extracted of each zone. Sectors that are reserved at a zone's front or spare (kept for defects, at the end
//! of each so many tracks) hold no data, but pass under the head.

use super::spec::{HddSpec, LinearZones, Span, ZoneSpec};

/// A place on the platters.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct SectorPosition {
    pub cylinder: u64,
    pub head: u64,
    /// Angle of the sector's beginning, in revolutions, 0 to 1.
    pub angle: f64,
    /// Sectors from this one to the end of the track, this one included.
    pub left_on_track: u64,
    pub sectors_per_track: u64,
    /// Of the sectors to the end of the track, those that hold no data.
    pub spare_on_track: u64,
    pub zone: usize,
}

/// What lies under the heads while a run of sectors passes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Sweep {
    /// Time from the beginning of the first sector to the end of the last, track and cylinder switches (which the skews
    /// hide exactly) included.
    pub pass_ns: f64,
    /// Where the first sector lies.
    pub first: SectorPosition,
    /// Where the last sector lies.
    pub last: SectorPosition,
}

#[derive(Debug)]
pub(super) struct Geometry {
    zones: Vec<Zone>,
    heads: u64,
    serpentine: bool,
    revolution_ns: f64,
    stretch: f64,
}

/// The part after the point of a number that is not negative. Unlike `f64::fract` it needs no library call on plain
/// `x86_64`, and choosing the next move comes down to this; signed, it is one instruction each way.
pub(super) fn fraction(number: f64) -> f64 {
    number - (number as i64) as f64
}

impl Geometry {
    pub(super) fn new(spec: &HddSpec, size_bytes: u64) -> Self {
        let (zones, stretch) = zones(spec, size_bytes);
        Self { zones, heads: spec.heads, serpentine: spec.serpentine, revolution_ns: 60.0 / spec.rpm * 1e9, stretch }
    }

    pub(super) fn revolution_ns(&self) -> f64 {
        self.revolution_ns
    }

    /// Cylinders of the drive for one of this geometry: above 1 for a small disk stretched over the whole drive.
    pub(super) fn stretch(&self) -> f64 {
        self.stretch
    }

    pub(super) fn locate(&self, sector: u64) -> SectorPosition {
        let index = self.zones.partition_point(|zone| zone.first_sector <= sector) - 1;
        let zone = &self.zones[index];
        let mut within = sector - zone.first_sector + zone.reserved;
        let (mut track, mut left_in_region) = (0, u64::MAX);
        if let Some(spares) = &zone.spares {
            track = within / spares.data_sectors * spares.tracks;
            within %= spares.data_sectors;
            left_in_region = spares.data_sectors - within;
        }
        track += within / zone.sectors_per_track;
        let on_track = within % zone.sectors_per_track;
        let (in_zone, head) = (track / self.heads, track % self.heads);
        let cylinder = zone.first_cylinder + in_zone;
        let skewed = cylinder - zone.skewed_from_cylinder;
        let skews = (skewed * (self.heads - 1) + head) as f64 * zone.track_skew
            + skewed as f64 * zone.cylinder_skew
            + zone.angle;
        let to_track_end = zone.sectors_per_track - on_track;
        let left_on_track = to_track_end.min(left_in_region);
        SectorPosition {
            cylinder,
            head: if self.serpentine && in_zone % 2 == 1 { self.heads - 1 - head } else { head },
            angle: fraction(on_track as f64 / zone.sectors_per_track as f64 + skews),
            left_on_track,
            sectors_per_track: zone.sectors_per_track,
            spare_on_track: to_track_end - left_on_track,
            zone: index,
        }
    }

    /// What passes under the heads from the beginning of `sector` on, for `count` sectors, at least one.
    pub(super) fn sweep(&self, sector: u64, count: u64) -> Sweep {
        let (mut sector, mut left, mut revolutions) = (sector, count, 0.0);
        let first = self.locate(sector);
        let mut place = first;
        loop {
            let here = left.min(place.left_on_track);
            revolutions += here as f64 / place.sectors_per_track as f64;
            left -= here;
            sector += here;
            if left == 0 {
                return Sweep { pass_ns: revolutions * self.revolution_ns, first, last: place };
            }
            let next = self.locate(sector);
            revolutions += self.switch(&place, &next);
            place = next;
        }
    }

    /// Revolutions from the end of a track's data to the beginning of the next track's.
    fn switch(&self, from: &SectorPosition, to: &SectorPosition) -> f64 {
        let zone = &self.zones[from.zone];
        if from.zone != to.zone && zone.spares.is_some() {
            // Where the next zone begins its file says; the arm is there within a revolution.
            let end = from.angle + from.left_on_track as f64 / from.sectors_per_track as f64;
            return fraction(to.angle + 2.0 - end);
        }
        let skew = if from.cylinder == to.cylinder { zone.track_skew } else { zone.cylinder_skew };
        if from.spare_on_track == 0 { skew } else { skew + from.spare_on_track as f64 / from.sectors_per_track as f64 }
    }

    /// The time of [`Geometry::sweep`].
    pub(super) fn pass_ns(&self, sector: u64, count: u64) -> f64 {
        if count == 0 { 0.0 } else { self.sweep(sector, count).pass_ns }
    }

    /// The same when the head comes from the sector before: at the beginning of a track that is a switch more.
    pub(super) fn read_on_ns(&self, sector: u64, count: u64) -> f64 {
        let before = sector.saturating_sub(1);
        self.pass_ns(before, count + (sector - before)) - self.pass_ns(before, sector - before)
    }

    /// Sectors a nanosecond that pass under the heads when reading on from `place`, switches included.
    pub(super) fn sectors_per_ns(&self, place: &SectorPosition) -> f64 {
        let zone = &self.zones[place.zone];
        let switches = ((self.heads - 1) as f64 * zone.track_skew + zone.cylinder_skew) / self.heads as f64;
        place.sectors_per_track as f64 / self.revolution_ns / (1.0 + switches)
    }
}

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

#[cfg(test)]
mod tests {
    use super::super::spec::Span;
    use super::*;

    fn spec() -> HddSpec {
        let file: toml::Table = include_str!("../../drives/hdd-7200.toml").parse().unwrap();
        file["hdd"].clone().try_into().unwrap()
    }

    fn geometry() -> Geometry {
        let mut spec = spec();
        spec.capacity_bytes = 10 << 30;
        Geometry::new(&spec, 10 << 30)
    }

    #[test]
    fn tracks_follow_each_other_without_gap_or_overlap() {
        let geometry = geometry();
        let (mut sector, mut before) = (0, (0, 0));
        while sector < (10 << 30) / 4096 {
            let place = geometry.locate(sector);
            assert_eq!(place.left_on_track, place.sectors_per_track, "a track begins at {sector}");
            assert!((0.0..1.0).contains(&place.angle));
            let here = (place.cylinder, place.head);
            assert!(
                sector == 0 || here == (before.0, before.1 + 1) || here == (before.0 + 1, 0),
                "{before:?} {here:?}"
            );
            assert_eq!(geometry.locate(sector + place.sectors_per_track - 1).left_on_track, 1);
            (sector, before) = (sector + place.sectors_per_track, here);
        }
    }

    #[test]
    fn the_skews_meet_the_head_after_each_switch() {
        let geometry = geometry();
        for track in 1..200 {
            let first = track * geometry.locate(0).sectors_per_track;
            // Reading over the switch takes to the angle where the next track's first sector then is.
            let turned = geometry.pass_ns(first - 1, 2) - geometry.pass_ns(first, 1);
            let apart = (geometry.locate(first).angle - geometry.locate(first - 1).angle).rem_euclid(1.0);
            assert!((turned / geometry.revolution_ns() - apart).abs() < 1e-6, "track {track}");
        }
    }

    #[test]
    fn outer_tracks_hold_more() {
        let geometry = geometry();
        let last = geometry.locate((10 << 30) / 4096 - 1);
        assert!(geometry.locate(0).sectors_per_track > 2 * last.sectors_per_track - 10);
        let rate = |sector| geometry.sectors_per_ns(&geometry.locate(sector)) * geometry.revolution_ns();
        assert!(rate(0) > 0.8 * geometry.locate(0).sectors_per_track as f64);
    }

    #[test]
    fn a_table_of_zones_leaves_out_what_is_reserved_or_spare() {
        let file: toml::Table = include_str!("../../tests/drives/extracted.toml").parse().unwrap();
        let spec: HddSpec = file["hdd"].clone().try_into().unwrap();
        let geometry = Geometry::new(&spec, spec.capacity_bytes);
        let place = |sector| {
            let at = geometry.locate(sector);
            (at.cylinder, at.head, at.sectors_per_track - at.left_on_track - at.spare_on_track)
        };
        assert_eq!(place(0), (0, 2, 160), "behind 1000 reserved sectors of 420 a track");
        // 1640 of 1680 sectors a cylinder hold data; every other cylinder goes from the last head to the first.
        assert_eq!(place(639), (0, 3, 379));
        assert_eq!(place(640), (1, 3, 0));
        let second = 4000 * 1640 - 1000;
        assert_eq!([place(second - 1).0, place(second).0, place(second + 399).0], [3999, 4010, 4010]);
        assert_eq!([place(second + 398), place(second + 399)], [(4010, 0, 398), (4010, 1, 0)]);
        let last = place(second + 4000 * 4 * 399 + 3990 * 4 * 360 - 5000 - 1);
        assert_eq!(last.0, 11996, "5000 sectors at the end are spare");
        // Reading over an edge takes to the angle where the next sector then is.
        for first in [420 * 3 - 1000, 640, second, second + 399] {
            let turned = geometry.pass_ns(first - 1, 2) - geometry.pass_ns(first, 1);
            let apart = (geometry.locate(first).angle - geometry.locate(first - 1).angle).rem_euclid(1.0);
            assert!((turned / geometry.revolution_ns() - apart).abs() < 1e-6, "sector {first}");
        }
    }

    #[test]
    fn a_small_disk_can_be_stretched_over_all_zones() {
        let small = Geometry::new(&HddSpec { span: Span::Whole, ..spec() }, 4 << 30);
        let whole = Geometry::new(&spec(), 4 << 30);
        let ends = |geometry: &Geometry, bytes: u64| {
            let last = geometry.locate(bytes / 4096 - 1);
            (last.cylinder as f64 * geometry.stretch(), last.sectors_per_track)
        };
        let (stretched, real) = (ends(&small, 4 << 30), ends(&whole, spec().capacity_bytes));
        assert_eq!(stretched.1, real.1, "the innermost zone");
        assert!((stretched.0 / real.0 - 1.0).abs() < 0.05, "{stretched:?} {real:?}");
    }
}
