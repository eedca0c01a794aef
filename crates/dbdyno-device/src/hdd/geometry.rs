//! Where a sector lies: zone, cylinder, head and angle.
//!
//! Cylinders are filled head after head from the outer edge inwards. Zones have equal numbers of cylinders and sectors
//! per track falling linearly from the outermost to the innermost. A small disk stretched over the whole drive has all
//! the zones, with fewer cylinders, each of which stands for several of the drive.

use super::spec::{HddSpec, Span};

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
}

/// What lies under the heads while a run of sectors passes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Sweep {
    /// Time from the beginning of the first sector to the end of the last, track and cylinder switches (which the skews
    /// hide exactly) included.
    pub pass_ns: f64,
    /// Where the last sector lies.
    pub last: SectorPosition,
}

#[derive(Debug)]
struct Zone {
    first_sector: u64,
    first_cylinder: u64,
    sectors_per_track: u64,
}

#[derive(Debug)]
pub(super) struct Geometry {
    zones: Vec<Zone>,
    heads: u64,
    revolution_ns: f64,
    /// Skews in revolutions.
    track_skew: f64,
    cylinder_skew: f64,
    stretch: f64,
}

/// The part after the point of a number that is not negative. Unlike `f64::fract` it needs no library call on plain
/// `x86_64`, and choosing the next move comes down to this.
pub(super) fn fraction(number: f64) -> f64 {
    number - (number as u64) as f64
}

impl Geometry {
    pub(super) fn new(spec: &HddSpec, size_bytes: u64) -> Self {
        let revolution_s = 60.0 / spec.rpm;
        let per_track = |mb_s: f64| mb_s * 1e6 * revolution_s / spec.sector_bytes as f64;
        let (outer, inner) = (per_track(spec.outer_mb_s), per_track(spec.inner_mb_s));
        let steps = (spec.zones - 1).max(1) as f64;
        let tracks_of: Vec<u64> =
            (0..spec.zones).map(|zone| (outer + (inner - outer) * zone as f64 / steps).max(1.0) as u64).collect();
        let sectors_of_all = spec.heads * tracks_of.iter().sum::<u64>();
        let per_zone = |bytes: u64| bytes.div_ceil(spec.sector_bytes).div_ceil(sectors_of_all).max(1);
        let real_cylinders_per_zone = per_zone(spec.capacity_bytes);
        let cylinders_per_zone = match spec.span {
            Span::Beginning => real_cylinders_per_zone,
            Span::Whole => per_zone(size_bytes),
        };
        let mut first_sector = 0;
        let zones = tracks_of
            .into_iter()
            .zip(0..)
            .map(|(sectors_per_track, zone)| {
                let made = Zone { first_sector, first_cylinder: zone * cylinders_per_zone, sectors_per_track };
                first_sector += cylinders_per_zone * spec.heads * sectors_per_track;
                made
            })
            .collect();
        Self {
            zones,
            heads: spec.heads,
            revolution_ns: revolution_s * 1e9,
            track_skew: spec.track_skew_ms / 1e3 / revolution_s,
            cylinder_skew: spec.cylinder_skew_ms / 1e3 / revolution_s,
            stretch: real_cylinders_per_zone as f64 / cylinders_per_zone as f64,
        }
    }

    pub(super) fn revolution_ns(&self) -> f64 {
        self.revolution_ns
    }

    /// Cylinders of the drive for one of this geometry: above 1 for a small disk stretched over the whole drive.
    pub(super) fn stretch(&self) -> f64 {
        self.stretch
    }

    pub(super) fn locate(&self, sector: u64) -> SectorPosition {
        let zone = &self.zones[self.zones.partition_point(|zone| zone.first_sector <= sector) - 1];
        let within = sector - zone.first_sector;
        let track = within / zone.sectors_per_track;
        let on_track = within % zone.sectors_per_track;
        let cylinder = zone.first_cylinder + track / self.heads;
        let head = track % self.heads;
        let skews =
            (cylinder * (self.heads - 1) + head) as f64 * self.track_skew + cylinder as f64 * self.cylinder_skew;
        SectorPosition {
            cylinder,
            head,
            angle: fraction(on_track as f64 / zone.sectors_per_track as f64 + skews),
            left_on_track: zone.sectors_per_track - on_track,
            sectors_per_track: zone.sectors_per_track,
        }
    }

    /// What passes under the heads from the beginning of `sector` on, for `count` sectors, at least one.
    pub(super) fn sweep(&self, sector: u64, count: u64) -> Sweep {
        let (mut sector, mut left, mut revolutions) = (sector, count, 0.0);
        loop {
            let place = self.locate(sector);
            let here = left.min(place.left_on_track);
            revolutions += here as f64 / place.sectors_per_track as f64;
            left -= here;
            sector += here;
            if left == 0 {
                return Sweep { pass_ns: revolutions * self.revolution_ns, last: place };
            }
            let last_head = place.head + 1 == self.heads;
            revolutions += if last_head { self.cylinder_skew } else { self.track_skew };
        }
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
        let switches = ((self.heads - 1) as f64 * self.track_skew + self.cylinder_skew) / self.heads as f64;
        place.sectors_per_track as f64 / self.revolution_ns / (1.0 + switches)
    }
}

#[cfg(test)]
mod tests {
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
