//! Read segments: what was read, and what the drive goes on reading while no command needs the head elsewhere.

use super::geometry::Geometry;

/// A range of sectors in the cache.
#[derive(Debug, Clone, Copy)]
struct Segment {
    start: u64,
    end: u64,
}

/// The read-ahead in progress: since `since_ns` the sectors from `from` to `limit` pass under the head.
#[derive(Debug, Clone, Copy)]
struct Ahead {
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

    /// True if the head, reading on, comes to the end of a range.
    pub(super) fn is_followed_by(&self, (start, end): (u64, u64)) -> bool {
        (self.start..=self.end).contains(&start) && end > self.end
    }
}

#[derive(Debug)]
pub(super) struct ReadCache {
    /// Most recently used last. While `ahead` is set it belongs to the last.
    segments: Vec<Segment>,
    ahead: Option<Ahead>,
    count: usize,
    segment_sectors: u64,
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
}

impl ReadCache {
    pub(super) fn new(count: usize, segment_sectors: u64) -> Self {
        Self { segments: Vec::new(), ahead: None, count, segment_sectors }
    }

    /// The medium has been read from `start` to `end`; the head goes on reading.
    pub(super) fn read(&mut self, now_ns: u64, (start, end): (u64, u64), device_end: u64, sectors_per_ns: f64) {
        if self.count == 0 {
            return;
        }
        if self.segments.len() >= self.count {
            self.segments.remove(0);
        }
        self.segments.push(Segment { start, end });
        let limit = (end + self.segment_sectors).min(device_end);
        self.ahead = Some(Ahead { from: end, since_ns: now_ns, limit, sectors_per_ns });
    }

    /// The arm is wanted elsewhere.
    pub(super) fn stop(&mut self, now_ns: u64) {
        if let (Some(reached), Some(segment)) = (self.reached(now_ns), self.segments.last_mut()) {
            segment.end = segment.end.max(reached);
            segment.start = segment.start.max(segment.end.saturating_sub(self.segment_sectors));
        }
        self.ahead = None;
    }

    /// What the read-ahead has brought, if there is one.
    pub(super) fn run_on(&self, now_ns: u64) -> Option<Run> {
        let (reached, segment) = (self.reached(now_ns)?, self.segments.last()?);
        Some(Run { start: segment.start, end: segment.end.max(reached) })
    }

    /// Looks a read up. If it is coming the read-ahead goes on from there, `rotation_ns(sector)` later if it had
    /// stopped at its limit.
    pub(super) fn look_up(
        &mut self,
        now_ns: u64,
        (start, end): (u64, u64),
        device_end: u64,
        geometry: &Geometry,
        rotation_ns: impl Fn(u64) -> u64,
    ) -> Lookup {
        let reached = self.reached(now_ns);
        if let (Some(ahead), Some(reached), Some(segment)) = (&mut self.ahead, reached, self.segments.last_mut()) {
            segment.end = segment.end.max(reached);
            if start >= segment.start && start <= segment.end {
                if reached >= ahead.limit {
                    *ahead = Ahead { from: reached, since_ns: now_ns + rotation_ns(reached), limit: reached, ..*ahead };
                }
                ahead.limit = ahead.limit.max((end + self.segment_sectors).min(device_end));
                segment.start = segment.start.max(start.saturating_sub(self.segment_sectors));
                if end <= segment.end {
                    return Lookup::Hit;
                }
                // A later read may begin where this one ends, although it is not there yet.
                segment.end = end;
                let passing_ns = geometry.read_on_ns(ahead.from, end - ahead.from) as u64;
                let coming_ns = now_ns.max(ahead.since_ns + passing_ns);
                *ahead = Ahead {
                    from: end,
                    since_ns: coming_ns,
                    limit: ahead.limit,
                    sectors_per_ns: geometry.sectors_per_ns(&geometry.locate(end - 1)),
                };
                return Lookup::Coming(coming_ns);
            }
        }
        match self.segments.iter().position(|segment| start >= segment.start && end <= segment.end) {
            Some(found) => {
                // The one being read ahead stays last.
                if self.ahead.is_none() {
                    let segment = self.segments.remove(found);
                    self.segments.push(segment);
                }
                Lookup::Hit
            }
            None => Lookup::Miss,
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
