//! What was read ahead: pages that a host which reads on in order will ask for next.
//!
//! A read that begins where one of the last [`STREAMS`] reads ended continues it. The drive then fetches what follows, in
//! whole flash pages, up to `read_ahead_bytes` behind its end, with the priority of the host's reads. A page is kept
//! until it was read to its end, written or discarded, or until its stream is forgotten.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

use super::spec::PAGE_BYTES;
use crate::contract::Command;

/// How many hosts may read on in order at the same time.
const STREAMS: usize = 8;

/// A command that waits for a page, by its slot, and what it wants of the page, bytes.
pub(super) type Waiter = (usize, u64);

/// What a read finds of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Prefetch {
    Missing,
    /// It is on its way; the reader waits for it.
    Coming,
    /// It is, or will by this time be, in the drive's memory.
    Ready(u64),
}

#[derive(Debug, Default)]
struct Fetched {
    ready_ns: Option<u64>,
    waiters: Vec<Waiter>,
    /// It need not be kept when it has come.
    done: bool,
}

#[derive(Debug)]
struct Stream {
    end_bytes: u64,
    /// The first page that was not asked for ahead.
    ahead: u32,
}

#[derive(Debug)]
pub(super) struct ReadAhead {
    /// How far, pages; 0: not at all.
    pages: u32,
    /// The one that was read last at the end.
    streams: VecDeque<Stream>,
    fetched: BTreeMap<u32, Fetched>,
}

impl ReadAhead {
    pub(super) fn new(bytes: u64) -> Self {
        Self { pages: (bytes / PAGE_BYTES) as u32, streams: VecDeque::new(), fetched: BTreeMap::new() }
    }

    pub(super) fn is_on(&self) -> bool {
        self.pages > 0
    }

    /// Looks for a page that is read; `to_end`: no later part of it will be.
    pub(super) fn take(&mut self, page: u32, waiter: Waiter, to_end: bool) -> Prefetch {
        let Some(fetched) = self.fetched.get_mut(&page) else { return Prefetch::Missing };
        let Some(ready_ns) = fetched.ready_ns else {
            fetched.waiters.push(waiter);
            fetched.done |= to_end;
            return Prefetch::Coming;
        };
        if to_end {
            self.fetched.remove(&page);
        }
        Prefetch::Ready(ready_ns)
    }

    /// The pages to fetch after a read.
    pub(super) fn follow(&mut self, command: &Command, flash_pages: u32, logical_pages: u32) -> Range<u32> {
        let end_bytes = command.end_bytes();
        let end_page = end_bytes.div_ceil(PAGE_BYTES) as u32;
        let continued = self.streams.iter().position(|stream| stream.end_bytes == command.offset_bytes);
        let Some(mut stream) = continued.and_then(|index| self.streams.remove(index)) else {
            if self.streams.len() == STREAMS {
                self.streams.pop_front().into_iter().for_each(|stream| self.forget_stream(&stream));
            }
            self.streams.push_back(Stream { end_bytes, ahead: end_page });
            return 0..0;
        };
        let first = stream.ahead.max(end_page);
        let limit = end_page.saturating_add(self.pages) / flash_pages * flash_pages;
        stream.end_bytes = end_bytes;
        stream.ahead = limit.min(logical_pages).max(first);
        let pages = first..stream.ahead;
        self.streams.push_back(stream);
        pages
    }

    /// Says that a page will be fetched; false if it is there or on its way.
    pub(super) fn expect(&mut self, page: u32) -> bool {
        let is_new = !self.fetched.contains_key(&page);
        self.fetched.entry(page).or_default();
        is_new
    }

    /// A page has come; returns who waits for it.
    pub(super) fn arrived(&mut self, page: u32, at_ns: u64) -> Vec<Waiter> {
        let Some(fetched) = self.fetched.get_mut(&page).filter(|fetched| fetched.ready_ns.is_none()) else {
            return Vec::new();
        };
        fetched.ready_ns = Some(at_ns);
        let waiters = std::mem::take(&mut fetched.waiters);
        if fetched.done {
            self.fetched.remove(&page);
        }
        waiters
    }

    /// Drops pages, which were written or discarded; those on their way when they have come.
    pub(super) fn forget(&mut self, pages: Range<u32>) {
        if self.fetched.is_empty() {
            return;
        }
        let known: Vec<u32> = self.fetched.range(pages).map(|(page, _)| *page).collect();
        for page in known {
            match self.fetched.get_mut(&page) {
                Some(fetched) if fetched.ready_ns.is_none() => fetched.done = true,
                _ => drop(self.fetched.remove(&page)),
            }
        }
    }

    fn forget_stream(&mut self, stream: &Stream) {
        let end_page = (stream.end_bytes / PAGE_BYTES) as u32;
        self.forget(end_page..stream.ahead.max(end_page));
    }
}
