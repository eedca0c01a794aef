//! Where a sector lies: zone, cylinder, head and angle.
//!
//! Cylinders are filled head after head from the outer edge inwards. Zones have equal numbers of cylinders and sectors
//! per track falling linearly from the outermost to the innermost.

use super::spec::HddSpec;

/// A place on the platters.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Place {
    pub cylinder: u64,
    pub head: u64,
    /// Angle of the sector's beginning, in revolutions, 0 to 1.
    pub angle: f64,
    /// Sectors from this one to the end of the track, this one included.
    pub left_on_track: u64,
    pub sectors_per_track: u64,
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
}

/// The part after the point of a number that is not negative. Unlike `f64::fract` it needs no library call on plain
/// `x86_64`, and choosing the next move comes down to this.
pub(super) fn fraction(number: f64) -> f64 {
    number - (number as u64) as f64
}

impl Geometry {
    pub(super) fn new(spec: &HddSpec) -> Self {
        let revolution_s = 60.0 / spec.rpm;
        let per_track = |mb_s: f64| mb_s * 1e6 * revolution_s / spec.sector_bytes as f64;
        let (outer, inner) = (per_track(spec.outer_mb_s), per_track(spec.inner_mb_s));
        let steps = (spec.zones - 1).max(1) as f64;
        let tracks_of: Vec<u64> =
            (0..spec.zones).map(|zone| (outer + (inner - outer) * zone as f64 / steps).max(1.0) as u64).collect();
        let sectors = spec.capacity_bytes.div_ceil(spec.sector_bytes);
        let cylinders_per_zone = sectors.div_ceil(spec.heads * tracks_of.iter().sum::<u64>()).max(1);
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
        }
    }

    pub(super) fn revolution_ns(&self) -> f64 {
        self.revolution_ns
    }

    pub(super) fn locate(&self, sector: u64) -> Place {
        let zone = &self.zones[self.zones.partition_point(|zone| zone.first_sector <= sector) - 1];
        let within = sector - zone.first_sector;
        let track = within / zone.sectors_per_track;
        let on_track = within % zone.sectors_per_track;
        let cylinder = zone.first_cylinder + track / self.heads;
        let head = track % self.heads;
        let skews =
            (cylinder * (self.heads - 1) + head) as f64 * self.track_skew + cylinder as f64 * self.cylinder_skew;
        Place {
            cylinder,
            head,
            angle: fraction(on_track as f64 / zone.sectors_per_track as f64 + skews),
            left_on_track: zone.sectors_per_track - on_track,
            sectors_per_track: zone.sectors_per_track,
        }
    }

    /// Time from the beginning of `sector` until `count` sectors have passed under the heads, track and cylinder
    /// switches (which the skews hide exactly) included.
    pub(super) fn pass_ns(&self, sector: u64, count: u64) -> f64 {
        let (mut sector, mut left, mut revolutions) = (sector, count, 0.0);
        while left > 0 {
            let place = self.locate(sector);
            let here = left.min(place.left_on_track);
            revolutions += here as f64 / place.sectors_per_track as f64;
            left -= here;
            sector += here;
            if left > 0 {
                let last_head = place.head + 1 == self.heads;
                revolutions += if last_head { self.cylinder_skew } else { self.track_skew };
            }
        }
        revolutions * self.revolution_ns
    }

    /// The same when the head comes from the sector before: at the beginning of a track that is a switch more.
    pub(super) fn read_on_ns(&self, sector: u64, count: u64) -> f64 {
        let before = sector.saturating_sub(1);
        self.pass_ns(before, count + (sector - before)) - self.pass_ns(before, sector - before)
    }

    /// How many sectors from `sector` on pass under the heads in `span_ns`.
    pub(super) fn passed(&self, sector: u64, span_ns: f64) -> u64 {
        let per_track = self.locate(sector).sectors_per_track as f64;
        let switches = ((self.heads - 1) as f64 * self.track_skew + self.cylinder_skew) / self.heads as f64;
        (span_ns / self.revolution_ns / (1.0 + switches) * per_track) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn geometry() -> Geometry {
        let file: toml::Table = include_str!("../../drives/hdd-7200.toml").parse().unwrap();
        let mut spec: HddSpec = file["hdd"].clone().try_into().unwrap();
        spec.capacity_bytes = 10 << 30;
        Geometry::new(&spec)
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
        assert!(geometry.passed(0, geometry.revolution_ns() * 10.0) > 8 * geometry.locate(0).sectors_per_track);
    }
}
