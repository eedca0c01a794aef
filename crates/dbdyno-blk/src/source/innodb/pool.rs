//! The buffer pool: which pages are in memory, which of them are dirty since when.
//!
//! Cannot: the midpoint of the LRU list (a page that is read goes to its front), inner pages of indexes (they count as
//! always in memory).

use dbdyno_common::random::Random;

/// Pages that are flushed together: those of the same 64.
pub(super) const AREA: u32 = 64;
/// Frames from the end of the LRU list that a client looks at for one to take.
const SEARCH: usize = 100;

/// What happens to a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Use {
    Idle,
    Reading,
    Writing,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Frame {
    pub page: u32,
    pub r#use: Use,
    /// Log position of its first change since it was last written; 0 if it is clean.
    pub oldest_lsn: u64,
    /// Of its last change.
    pub newest_lsn: u64,
    /// The first of the clients that wait for it.
    pub waiter: u32,
}

#[derive(Debug)]
pub(super) struct Pool {
    frames: Vec<Frame>,
    capacity: usize,
    /// Frame of each page, plus 1; 0 for none.
    of_page: Vec<u32>,
    free: Vec<u32>,
    /// The most recently used first.
    lru: List,
    /// Dirty frames, the latest first change first.
    dirty: List,
}

impl Pool {
    pub fn new(capacity: usize, pages: usize) -> Self {
        // Never more frames than pages.
        let frames = capacity.min(pages).max(1);
        let frame = Frame { page: NONE, r#use: Use::Idle, oldest_lsn: 0, newest_lsn: 0, waiter: NONE };
        Self {
            frames: vec![frame; frames],
            capacity,
            of_page: vec![0; pages],
            free: (0..frames as u32).rev().collect(),
            lru: List::new(frames),
            dirty: List::new(frames),
        }
    }

    /// Reads so many of these pages, each as likely as any other, as there are frames.
    pub fn warm(&mut self, pages: impl Iterator<Item = u32> + Clone, random: &mut Random) {
        let mut left = pages.clone().count() as u64;
        for page in pages {
            if random.below(left) < self.free.len() as u64 {
                self.take(page);
            }
            left -= 1;
        }
    }

    pub fn frame(&mut self, at: u32) -> &mut Frame {
        &mut self.frames[at as usize]
    }

    pub fn find(&self, page: u32) -> Option<u32> {
        self.of_page[page as usize].checked_sub(1)
    }

    pub fn dirty_pages(&self) -> usize {
        self.dirty.len()
    }

    pub fn dirty_percent(&self) -> f64 {
        100.0 * self.dirty.len() as f64 / self.capacity as f64
    }

    /// Log position of the oldest change that is in no data file yet.
    pub fn oldest_lsn(&self) -> Option<u64> {
        self.dirty.backwards().next().map(|at| self.frames[at as usize].oldest_lsn)
    }

    /// Frames that can be taken at once, as far as `depth` from the end of the LRU list.
    pub fn available(&self, depth: usize) -> usize {
        let clean = self.lru.backwards().take(depth).filter(|at| self.is_clean(*at)).count();
        self.free.len() + clean
    }

    /// A frame for a page, if there is a free one or a clean one near the end of the LRU list.
    pub fn take(&mut self, page: u32) -> Option<u32> {
        let at = self.free.pop().or_else(|| {
            let at = self.lru.backwards().take(SEARCH).find(|at| self.is_clean(*at))?;
            self.lru.remove(at);
            self.of_page[self.frames[at as usize].page as usize] = 0;
            Some(at)
        })?;
        self.frames[at as usize].page = page;
        self.of_page[page as usize] = at + 1;
        self.lru.push_first(at);
        Some(at)
    }

    pub fn touch(&mut self, at: u32) {
        self.lru.remove(at);
        self.lru.push_first(at);
    }

    /// A change of the page whose log is from `from_lsn` to `to_lsn`.
    pub fn change(&mut self, at: u32, from_lsn: u64, to_lsn: u64) {
        let frame = &mut self.frames[at as usize];
        frame.newest_lsn = to_lsn;
        if frame.oldest_lsn == 0 {
            frame.oldest_lsn = from_lsn;
            self.dirty.push_first(at);
        }
    }

    pub fn written(&mut self, at: u32) {
        let frame = &mut self.frames[at as usize];
        (frame.r#use, frame.oldest_lsn) = (Use::Idle, 0);
        self.dirty.remove(at);
    }

    /// Adds to `batch` up to `most` dirty frames that nothing happens to, and marks them as being written: the oldest
    /// changes first, or with `by_lru` the least recently used of the last `depth`; each with its neighbours, by page
    /// number.
    pub fn gather(&mut self, batch: &mut Vec<u32>, most: usize, by_lru: Option<usize>, neighbours: bool) {
        let list = if by_lru.is_some() { &self.lru } else { &self.dirty };
        for at in list.backwards().take(by_lru.unwrap_or(usize::MAX)) {
            if batch.len() >= most {
                return;
            }
            let page = self.frames[at as usize].page;
            if !Self::may_write(&self.frames[at as usize]) {
                continue;
            }
            let from = if neighbours { page / AREA * AREA } else { page };
            let to = if neighbours { (from + AREA).min(self.of_page.len() as u32) } else { page + 1 };
            for page in from..to {
                if let Some(near) = self.of_page[page as usize].checked_sub(1)
                    && batch.len() < most
                    && Self::may_write(&self.frames[near as usize])
                {
                    self.frames[near as usize].r#use = Use::Writing;
                    batch.push(near);
                }
            }
        }
    }

    fn is_clean(&self, at: u32) -> bool {
        let frame = &self.frames[at as usize];
        frame.oldest_lsn == 0 && frame.r#use == Use::Idle
    }

    fn may_write(frame: &Frame) -> bool {
        frame.oldest_lsn > 0 && frame.r#use == Use::Idle
    }
}

pub(super) const NONE: u32 = u32::MAX;

/// Numbers from 0 to a fixed end, in an order of one's own.
#[derive(Debug)]
struct List {
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
