//! A doubly linked list of numbers, each in it once at most.

pub(super) const NONE: u32 = u32::MAX;

/// Numbers from 0 to a fixed end, in an order of one's own.
#[derive(Debug)]
pub(super) struct List {
    /// Before and behind each.
    links: Vec<[u32; 2]>,
    first: u32,
    last: u32,
    length: usize,
}

impl List {
    pub fn new(end: usize) -> Self {
        Self { links: vec![[NONE; 2]; end], first: NONE, last: NONE, length: 0 }
    }

    pub fn len(&self) -> usize {
        self.length
    }

    pub fn push_first(&mut self, at: u32) {
        self.links[at as usize] = [NONE, self.first];
        match self.first {
            NONE => self.last = at,
            next => self.links[next as usize][0] = at,
        }
        self.first = at;
        self.length += 1;
    }

    pub fn remove(&mut self, at: u32) {
        let [before, behind] = self.links[at as usize];
        match before {
            NONE => self.first = behind,
            before => self.links[before as usize][1] = behind,
        }
        match behind {
            NONE => self.last = before,
            behind => self.links[behind as usize][0] = before,
        }
        self.length -= 1;
    }

    /// From the last to the first.
    pub fn backwards(&self) -> impl Iterator<Item = u32> {
        let some = |at| (at != NONE).then_some(at);
        std::iter::successors(some(self.last), move |at| some(self.links[*at as usize][0]))
    }
}
