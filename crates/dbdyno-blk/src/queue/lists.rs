//! Requests by the order in which they came, by their first sector, and by the sector behind their last.
//!
//! A list is linked through the requests themselves, so a request is in one list at a time.
//!
//! [`Queue`] is what the layer and its scheduler share: the requests, the dispatch list, and where bios find what they
//! merge with.

use std::collections::BTreeMap;

use super::request::{Bio, NONE, Request, RequestId, Requests, Side};

/// A list of requests.
#[derive(Debug, Clone, Copy)]
pub struct Fifo {
    head: RequestId,
    tail: RequestId,
    length: usize,
}

impl Default for Fifo {
    fn default() -> Self {
        Self { head: NONE, tail: NONE, length: 0 }
    }
}

impl Fifo {
    /// The first one.
    #[inline]
    pub fn head(&self) -> Option<RequestId> {
        (self.head != NONE).then_some(self.head)
    }

    /// Requests in it.
    #[inline]
    pub fn len(&self) -> usize {
        self.length
    }

    /// It has none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Adds one at the end.
    #[inline]
    pub fn push(&mut self, requests: &mut Requests, id: RequestId) {
        self.insert_after(requests, self.tail, id);
    }

    /// Adds one behind another of this list, or at the head, behind [`NONE`].
    pub fn insert_after(&mut self, requests: &mut Requests, before: RequestId, id: RequestId) {
        let after = if before == NONE { self.head } else { requests[before].next };
        (requests[id].previous, requests[id].next) = (before, after);
        if before == NONE {
            self.head = id;
        } else {
            requests[before].next = id;
        }
        if after == NONE {
            self.tail = id;
        } else {
            requests[after].previous = id;
        }
        self.length += 1;
    }

    /// Takes one of this list out.
    pub fn remove(&mut self, requests: &mut Requests, id: RequestId) {
        let (before, after) = (requests[id].previous, requests[id].next);
        if before == NONE {
            self.head = after;
        } else {
            requests[before].next = after;
        }
        if after == NONE {
            self.tail = before;
        } else {
            requests[after].previous = before;
        }
        (requests[id].previous, requests[id].next) = (NONE, NONE);
        self.length -= 1;
    }

    /// Takes the first one out.
    pub fn pop(&mut self, requests: &mut Requests) -> Option<RequestId> {
        let id = self.head()?;
        self.remove(requests, id);
        Some(id)
    }

    /// Puts `id` in the place of `other`, which leaves; both are in this list.
    pub fn take_place(&mut self, requests: &mut Requests, id: RequestId, other: RequestId) {
        self.remove(requests, id);
        self.insert_after(requests, other, id);
        self.remove(requests, other);
    }

    /// From the last to the first.
    pub fn backwards<'a>(&self, requests: &'a Requests) -> impl Iterator<Item = RequestId> + 'a {
        let some = |id| (id != NONE).then_some(id);
        std::iter::successors(some(self.tail), move |id| some(requests[*id].previous))
    }
}

/// Requests of one direction or process by their first sector; of the same sector, in the order of their allocation.
#[derive(Debug, Default)]
pub struct Sorted {
    /// First sector and number; a node of the map holds up to eleven and is used again.
    by_start: BTreeMap<(u64, u64), RequestId>,
}

impl Sorted {
    /// Adds a request.
    pub fn insert(&mut self, requests: &Requests, id: RequestId) {
        self.by_start.insert(key(&requests[id]), id);
    }

    /// Takes a request out, which still has the start that it came with.
    pub fn remove(&mut self, requests: &Requests, id: RequestId) {
        self.by_start.remove(&key(&requests[id]));
    }

    /// Gives a request that grew at its front its new place.
    pub fn moved(&mut self, requests: &Requests, id: RequestId, old_start: u64) {
        self.by_start.remove(&(old_start, requests[id].number));
        self.insert(requests, id);
    }

    /// The first that starts at a sector or behind it.
    pub fn at_or_after(&self, sector: u64) -> Option<RequestId> {
        self.by_start.range((sector, 0)..).next().map(|(_, id)| *id)
    }

    /// The last that starts before a sector.
    pub fn before(&self, sector: u64) -> Option<RequestId> {
        self.by_start.range(..(sector, 0)).next_back().map(|(_, id)| *id)
    }

    /// The one behind a request, which need not be in here.
    pub fn successor(&self, request: &Request) -> Option<RequestId> {
        self.by_start.range((request.start_sector, request.number + 1)..).next().map(|(_, id)| *id)
    }

    /// The one before a request.
    pub fn predecessor(&self, request: &Request) -> Option<RequestId> {
        self.by_start.range(..key(request)).next_back().map(|(_, id)| *id)
    }

    /// One that starts exactly here.
    pub fn starts_at(&self, sector: u64) -> Option<RequestId> {
        self.by_start.range((sector, 0)..=(sector, u64::MAX)).next().map(|(_, id)| *id)
    }

    /// The lowest.
    pub fn first(&self) -> Option<RequestId> {
        self.by_start.values().next().copied()
    }

    /// Requests in it.
    pub fn len(&self) -> usize {
        self.by_start.len()
    }

    /// It has none.
    pub fn is_empty(&self) -> bool {
        self.by_start.is_empty()
    }
}

fn key(request: &Request) -> (u64, u64) {
    (request.start_sector, request.number)
}

/// A hash table whose chains go through the requests.
#[derive(Debug)]
pub(super) struct Ends {
    /// A power of two of them, each the newest request of its chain.
    buckets: Vec<RequestId>,
    count: usize,
}

impl Ends {
    pub(super) fn new() -> Self {
        Self { buckets: vec![NONE; 256], count: 0 }
    }

    pub(super) fn insert(&mut self, requests: &mut Requests, id: RequestId) {
        if self.count == self.buckets.len() {
            self.grow(requests);
        }
        let bucket = self.bucket(requests[id].end_sector());
        requests[id].next_in_bucket = self.buckets[bucket];
        self.buckets[bucket] = id;
        self.count += 1;
    }

    /// Takes a request out that ended here when it was inserted.
    pub(super) fn remove(&mut self, requests: &mut Requests, id: RequestId, end_sector: u64) {
        let next = requests[id].next_in_bucket;
        let bucket = self.bucket(end_sector);
        self.count -= 1;
        let mut at = self.buckets[bucket];
        if at == id {
            self.buckets[bucket] = next;
            return;
        }
        while requests[at].next_in_bucket != id {
            at = requests[at].next_in_bucket;
        }
        requests[at].next_in_bucket = next;
    }

    /// The newest request that ends here and that is fit.
    pub(super) fn find(&self, requests: &Requests, end: u64, fit: impl Fn(RequestId) -> bool) -> Option<RequestId> {
        let mut at = self.buckets[self.bucket(end)];
        while at != NONE {
            if requests[at].end_sector() == end && fit(at) {
                return Some(at);
            }
            at = requests[at].next_in_bucket;
        }
        None
    }

    #[inline]
    fn bucket(&self, end_sector: u64) -> usize {
        // Fibonacci hashing: sectors that differ in their low bits only are spread by the high bits of the product.
        (end_sector.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - self.buckets.len().trailing_zeros())) as usize
    }

    fn grow(&mut self, requests: &mut Requests) {
        let size = self.buckets.len() * 2;
        for head in std::mem::replace(&mut self.buckets, vec![NONE; size]) {
            let mut at = head;
            while at != NONE {
                let next = requests[at].next_in_bucket;
                let bucket = self.bucket(requests[at].end_sector());
                requests[at].next_in_bucket = self.buckets[bucket];
                self.buckets[bucket] = at;
                at = next;
            }
        }
    }
}

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
