//! How far the drive reads on after a read.

use super::geometry::Geometry;
use super::spec::{HddSpec, ReadAhead};

/// The policy at work.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ahead<'a> {
    policy: ReadAhead,
    limit_sectors: u64,
    device_end: u64,
    pub geometry: &'a Geometry,
}

impl<'a> Ahead<'a> {
    pub(super) fn new(spec: &HddSpec, size_bytes: u64, geometry: &'a Geometry) -> Self {
        Self {
            policy: spec.read_ahead,
            limit_sectors: spec.read_ahead_bytes.unwrap_or(spec.read_segment_bytes) / spec.sector_bytes,
            device_end: size_bytes / spec.sector_bytes,
            geometry,
        }
    }

    /// Where the drive stops that has sectors from `cached_from` to `end`; `sequential` says that what it read last
    /// continued what was in the cache.
    pub(super) fn limit(&self, sequential: bool, (cached_from, end): (u64, u64)) -> u64 {
        let most = end + self.limit_sectors;
        let limit = match self.policy {
            ReadAhead::Never => end,
            ReadAhead::Always => most,
            ReadAhead::Sequential => {
                if sequential {
                    most
                } else {
                    end
                }
            }
            ReadAhead::Track => self.track(end).1.min(most),
            ReadAhead::Stream => {
                let (first, track_end) = self.track(end);
                track_end + if cached_from < first { track_end - first } else { 0 }
            }
        };
        limit.min(self.device_end)
    }

    /// First sector of the track of a sector, and the one after its last.
    fn track(&self, sector: u64) -> (u64, u64) {
        let place = self.geometry.locate(sector);
        let on_track = place.sectors_per_track - place.spare_on_track - place.left_on_track;
        (sector.saturating_sub(on_track), sector + place.left_on_track)
    }
}
