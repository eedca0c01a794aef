//! Requests by the order in which they came, by their first sector, and by the sector behind their last.
//!
//! A list is linked through the requests themselves, so a request is in one list at a time.

use std::collections::BTreeMap;

use super::request::{NONE, Request, RequestId, Requests};

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
