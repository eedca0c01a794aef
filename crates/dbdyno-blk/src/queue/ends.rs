//! Requests by the sector behind their last: what a bio may be merged with at the back.

use super::request::{NONE, RequestId, Requests};

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
