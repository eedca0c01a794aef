//! Requests by their first sector.

use std::collections::BTreeMap;

use super::request::{Request, RequestId, Requests};

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
