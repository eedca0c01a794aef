//! What the layer and its scheduler share: the requests, the dispatch list, and where bios find what they merge with.

use super::lists::{Ends, Fifo};
use super::request::{Bio, NONE, RequestId, Requests, Side};

/// How far requests grow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Most sectors of a request (`max_sectors_kb`).
    pub sectors: u32,
    /// Most pieces of memory of a request (`max_segments`).
    pub segments: u32,
}

/// The request queue of one device.
#[derive(Debug)]
pub struct Queue {
    /// The time, nanoseconds.
    pub now_ns: u64,
    /// All requests, wherever they are.
    pub requests: Requests,
    /// Where the last command that the driver issued ends.
    pub end_sector: u64,
    /// Requests that the drive has.
    pub in_driver: usize,
    /// The drive has heads.
    pub rotational: bool,
    limits: Limits,
    dispatch: Fifo,
    ends: Ends,
    /// The request that a bio is tried on first, or [`NONE`].
    last_merge: RequestId,
}

impl Queue {
    /// An empty one at time 0.
    pub fn new(limits: Limits, rotational: bool) -> Self {
        Self {
            now_ns: 0,
            requests: Requests::default(),
            end_sector: 0,
            in_driver: 0,
            rotational,
            limits,
            dispatch: Fifo::default(),
            ends: Ends::new(),
            last_merge: NONE,
        }
    }

    /// What was chosen and waits for the driver.
    pub fn dispatch(&self) -> &Fifo {
        &self.dispatch
    }

    /// Lets bios find a request that the scheduler now holds.
    pub(crate) fn list(&mut self, id: RequestId) {
        if !self.requests[id].can_merge() {
            return;
        }
        self.requests[id].findable = true;
        self.ends.insert(&mut self.requests, id);
        if self.last_merge == NONE {
            self.last_merge = id;
        }
    }

    fn unlist(&mut self, id: RequestId) {
        if std::mem::take(&mut self.requests[id].findable) {
            let end = self.requests[id].end_sector();
            self.ends.remove(&mut self.requests, id, end);
        }
        if self.last_merge == id {
            self.last_merge = NONE;
        }
    }

    /// Puts a request at the end of the dispatch list.
    pub fn dispatch_last(&mut self, id: RequestId) {
        self.unlist(id);
        self.dispatch.push(&mut self.requests, id);
    }

    /// Sorts a request into the dispatch list: ascending from where the drive is, then ascending from the lowest; never
    /// before one that the driver has looked at, or a flush.
    pub fn dispatch_sorted(&mut self, id: RequestId) {
        self.unlist(id);
        let place = |start_sector| (start_sector < self.end_sector, start_sector);
        let own = place(self.requests[id].start_sector);
        let stays_before = |other: &RequestId| {
            let other = &self.requests[*other];
            other.started || other.bypasses || place(other.start_sector) <= own
        };
        let before = self.dispatch.backwards(&self.requests).find(stays_before).unwrap_or(NONE);
        self.dispatch.insert_after(&mut self.requests, before, id);
    }

    /// Shows the driver what comes next; nothing is put before it any more.
    pub(crate) fn peek(&mut self) -> Option<RequestId> {
        let id = self.dispatch.head()?;
        self.requests[id].started = true;
        Some(id)
    }

    /// Gives the driver the head of the dispatch list.
    pub(crate) fn start(&mut self, id: RequestId) {
        self.dispatch.remove(&mut self.requests, id);
        self.in_driver += 1;
        let request = &mut self.requests[id];
        request.issued_ns = self.now_ns;
        if request.sectors > 0 {
            self.end_sector = request.end_sector();
        }
    }

    /// Whether a bio may join a request, and where.
    #[inline]
    pub fn side(&self, id: RequestId, bio: &Bio) -> Option<Side> {
        let request = &self.requests[id];
        let beside = if request.end_sector() == bio.start_sector {
            Side::Back
        } else if bio.end_sector() == request.start_sector {
            Side::Front
        } else {
            return None;
        };
        let fits = request.can_merge()
            && bio.can_merge()
            && request.direction == bio.direction
            && request.class == bio.class
            && request.sectors + bio.sectors <= self.limits.sectors
            && request.segments + bio.segments() <= self.limits.segments;
        fits.then_some(beside)
    }

    /// The request that a bio joined last, if this one fits it, too.
    pub fn find_last_merge(&self, bio: &Bio) -> Option<(RequestId, Side)> {
        let id = (self.last_merge != NONE).then_some(self.last_merge)?;
        Some((id, self.side(id, bio)?))
    }

    /// A request that ends where a bio begins.
    pub fn find_back(&self, bio: &Bio, allowed: impl Fn(RequestId) -> bool) -> Option<(RequestId, Side)> {
        let fit = |id| allowed(id) && self.side(id, bio) == Some(Side::Back);
        self.ends.find(&self.requests, bio.start_sector, fit).map(|id| (id, Side::Back))
    }

    /// Adds a bio to a request that the scheduler holds.
    pub(crate) fn join(&mut self, id: RequestId, bio: Bio, side: Side) {
        let relist = side == Side::Back && self.requests[id].findable;
        if relist {
            let end = self.requests[id].end_sector();
            self.ends.remove(&mut self.requests, id, end);
        }
        self.requests.join(id, bio, side);
        if relist {
            self.ends.insert(&mut self.requests, id);
        }
        let request = &self.requests[id];
        let is_full = request.sectors >= self.limits.sectors || request.segments >= self.limits.segments;
        self.last_merge = if is_full || !request.findable { NONE } else { id };
    }

    /// Whether `behind` may become a part of `id`.
    pub fn can_absorb(&self, id: RequestId, behind: RequestId) -> bool {
        let (first, second) = (&self.requests[id], &self.requests[behind]);
        first.end_sector() == second.start_sector
            && first.direction == second.direction
            && first.class == second.class
            && first.can_merge()
            && second.can_merge()
            && first.sectors + second.sectors <= self.limits.sectors
            && first.segments + second.segments <= self.limits.segments
    }

    /// Makes `behind`, which its scheduler no longer holds, a part of `id`, which one does.
    pub(crate) fn absorb(&mut self, id: RequestId, behind: RequestId) {
        self.unlist(behind);
        let findable = self.requests[id].findable;
        if findable {
            let end = self.requests[id].end_sector();
            self.ends.remove(&mut self.requests, id, end);
        }
        self.requests.absorb(id, behind);
        if findable {
            self.ends.insert(&mut self.requests, id);
        }
    }
}
