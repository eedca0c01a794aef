//! Read segments: what was read, and how far the drive goes on reading while no command needs the head elsewhere.

use super::geometry::Geometry;
use super::spec::{HddSpec, ReadAhead};

/// A range of sectors in the cache.
#[derive(Debug, Clone, Copy)]
struct Segment {
    start: u64,
    end: u64,
    /// It was written by the host.
    written: bool,
}

/// The read-ahead in progress: since `since_ns` the sectors from `from` to `limit` pass under the head.
#[derive(Debug, Clone, Copy)]
struct Reading {
    from: u64,
    since_ns: u64,
    limit: u64,
    sectors_per_ns: f64,
}

/// What the head has read by now, reading on.
#[derive(Debug, Clone, Copy)]
pub(super) struct Run {
    start: u64,
    end: u64,
}

impl Run {
    /// True if all of a range was read.
    pub(super) fn holds(&self, (start, end): (u64, u64)) -> bool {
        start >= self.start && end <= self.end
    }

    /// True if what begins at this sector may have been read in part, or be next.
    pub(super) fn meets(&self, start: u64) -> bool {
        // One comparison, not two: half of all sectors lie behind the beginning.
        start.wrapping_sub(self.start) <= self.end - self.start
    }

    /// True if the head, reading on, comes to the end of a range.
    pub(super) fn is_followed_by(&self, (start, end): (u64, u64)) -> bool {
        (self.start..=self.end).contains(&start) && end > self.end
    }
}

#[derive(Debug)]
pub(super) struct ReadCache {
    /// Most recently used last. While `ahead` is set it belongs to the last.
    segments: Vec<Segment>,
    ahead: Option<Reading>,
    count: usize,
    segment_sectors: u64,
    /// A segment keeps no more than this, also while the drive reads ahead.
    kept_sectors: u64,
    /// What is there of a read need not be read again.
    serves_parts: bool,
    /// A hit lets a read-ahead that has reached its limit go on.
    resumes: bool,
    written_segments: usize,
}

/// What the cache can do for a read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lookup {
    /// Nothing: go to the medium.
    Miss,
    /// All is there.
    Hit,
    /// The read-ahead reaches the end of it at this time.
    Coming(u64),
    /// What lies before this sector is there; the arm must go to the rest.
    Part(u64),
}

impl ReadCache {
    pub(super) fn new(spec: &HddSpec) -> Self {
        Self {
            segments: Vec::new(),
            ahead: None,
            count: spec.read_segments,
            segment_sectors: spec.read_segment_bytes / spec.sector_bytes,
            kept_sectors: spec.read_kept_bytes.map_or(u64::MAX, |bytes| bytes / spec.sector_bytes),
            serves_parts: spec.read_kept_bytes.is_some(),
            resumes: spec.read_ahead_after_hit,
            written_segments: spec.write_segments.unwrap_or(1),
        }
    }

    /// The medium has been read from `start` to `end`; the head goes on reading to `limit`.
    pub(super) fn read(&mut self, now_ns: u64, (start, end): (u64, u64), limit: u64, sectors_per_ns: f64) {
        if self.count == 0 {
            return;
        }
        self.add(Segment { start: start.max(end.saturating_sub(self.kept_sectors)), end, written: false });
        self.ahead = Some(Reading { from: end, since_ns: now_ns, limit, sectors_per_ns });
    }

    /// What the host wrote can be read from the cache.
    pub(super) fn keep_written(&mut self, (mut start, end): (u64, u64)) {
        if self.count == 0 {
            return;
        }
        if let Some(before) = self.segments.iter().position(|segment| segment.written && segment.end == start) {
            start = self.segments.remove(before).start;
        }
        let written = self.segments.iter().filter(|segment| segment.written).count();
        if written >= self.written_segments
            && let Some(oldest) = self.segments.iter().position(|segment| segment.written)
        {
            self.segments.remove(oldest);
        }
        self.stop_reading();
        self.add(Segment { start: start.max(end.saturating_sub(self.segment_sectors)), end, written: true });
    }

    /// True if a read that starts here continues what is in the cache.
    pub(super) fn continues(&self, start: u64) -> bool {
        self.segments.iter().any(|segment| !segment.written && (segment.start..=segment.end).contains(&start))
    }

    fn add(&mut self, segment: Segment) {
        if self.segments.len() >= self.count {
            self.segments.remove(0);
        }
        self.segments.push(segment);
    }

    fn stop_reading(&mut self) {
        self.ahead = None;
    }

    /// The arm is wanted elsewhere.
    pub(super) fn stop(&mut self, now_ns: u64) {
        if let (Some(reached), Some(segment)) = (self.reached(now_ns), self.segments.last_mut()) {
            segment.end = segment.end.max(reached);
            segment.start = segment.start.max(segment.end.saturating_sub(self.segment_sectors));
        }
        self.ahead = None;
    }

    /// What the read-ahead has brought, if there is one that goes on.
    pub(super) fn run_on(&self, now_ns: u64) -> Option<Run> {
        let (reached, segment) = (self.reached(now_ns)?, self.segments.last()?);
        if !self.resumes && self.ahead.is_some_and(|ahead| reached >= ahead.limit) {
            return None;
        }
        Some(Run { start: segment.start, end: segment.end.max(reached) })
    }

    /// Looks a read up. If it is coming the read-ahead goes on from there, `rotation_ns(sector)` later if it had
    /// stopped at its limit.
    pub(super) fn look_up(
        &mut self,
        now_ns: u64,
        (start, end): (u64, u64),
        policy: &Ahead<'_>,
        rotation_ns: impl Fn(u64) -> u64,
    ) -> Lookup {
        let reached = self.reached(now_ns);
        if let (Some(ahead), Some(reached), Some(segment)) = (&mut self.ahead, reached, self.segments.last_mut()) {
            segment.end = segment.end.max(reached);
            segment.start = segment.start.max(segment.end.saturating_sub(self.kept_sectors));
            let stopped = reached >= ahead.limit;
            let begins_here = start >= segment.start && start <= segment.end;
            let is_part = self.serves_parts && start < segment.end && end > segment.end;
            if begins_here && !(stopped && (is_part || !self.resumes)) {
                if stopped {
                    let since_ns = now_ns + rotation_ns(reached);
                    *ahead = Reading { from: reached, since_ns, limit: reached, ..*ahead };
                }
                ahead.limit = ahead.limit.max(policy.limit(true, (segment.start, end)));
                segment.start = segment.start.max(start.saturating_sub(self.segment_sectors));
                if end <= segment.end {
                    return Lookup::Hit;
                }
                // A later read may begin where this one ends, although it is not there yet.
                segment.end = end;
                let passing_ns = policy.geometry.read_on_ns(ahead.from, end - ahead.from) as u64;
                let coming_ns = now_ns.max(ahead.since_ns + passing_ns);
                *ahead = Reading {
                    from: end,
                    since_ns: coming_ns,
                    limit: ahead.limit,
                    sectors_per_ns: policy.geometry.sectors_per_ns(&policy.geometry.locate(end - 1)),
                };
                return Lookup::Coming(coming_ns);
            }
        }
        match self.segments.iter().position(|segment| start >= segment.start && end <= segment.end) {
            Some(index) => {
                // The one being read ahead stays last.
                if self.ahead.is_none() {
                    let segment = self.segments.remove(index);
                    self.segments.push(segment);
                }
                Lookup::Hit
            }
            None => self.part(start),
        }
    }

    /// What there is of a read that begins here.
    fn part(&self, start: u64) -> Lookup {
        if !self.serves_parts {
            return Lookup::Miss;
        }
        match self.segments.iter().find(|segment| segment.start <= start && start < segment.end) {
            Some(segment) => Lookup::Part(segment.end),
            None => Lookup::Miss,
        }
    }

    /// The rest of a read was read from `start` on: joins it to the part that was there.
    pub(super) fn join(&mut self, start: u64) -> u64 {
        match self.segments.iter().position(|segment| segment.end == start) {
            Some(index) => self.segments.remove(index).start,
            None => start,
        }
    }

    /// Forgets what a write has made stale.
    pub(super) fn invalidate(&mut self, now_ns: u64, start: u64, end: u64) {
        let stale = |segment: &Segment| segment.start < end && start < segment.end;
        if self.ahead.is_some_and(|ahead| start < ahead.limit) && self.segments.last().is_some_and(|s| end > s.start) {
            self.stop(now_ns);
        }
        self.segments.retain(|segment| !stale(segment));
        if self.segments.is_empty() {
            self.ahead = None;
        }
    }

    fn reached(&self, now_ns: u64) -> Option<u64> {
        let ahead = self.ahead?;
        let span_ns = now_ns.saturating_sub(ahead.since_ns) as f64;
        Some(ahead.limit.min(ahead.from + (span_ns * ahead.sectors_per_ns) as u64))
    }
}

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
