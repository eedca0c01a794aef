//! Lists of requests, linked through the requests themselves. A request is in one list at a time.

use super::request::{NONE, RequestId, Requests};

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
