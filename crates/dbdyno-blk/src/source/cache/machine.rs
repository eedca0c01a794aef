//! What processes and kernel threads share.

use super::config::CacheConfig;
use super::file::{Page, flag};
use super::journal::Journal;
use super::pages::Pages;
use super::rules::Rules;

/// What a thread does next.
pub(super) enum Next {
    Submit(crate::queue::Bio),
    Wait(Wait),
    Exit,
}

/// What a thread waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wait {
    /// Nothing.
    None,
    /// A request.
    Request,
    /// That another wakes it.
    Event,
    /// A time, or that another wakes it.
    Until(u64),
    /// The queue to be congested no more, but no longer than this time.
    Clear(u64),
    /// A page to arrive.
    Page(Page),
}

/// Pages written back, and how many a second that is, as the kernel estimates it.
#[derive(Debug, Default)]
pub(super) struct Bandwidth {
    pub written: u64,
    since_ns: u64,
    written_then: u64,
    pages_per_s: f64,
}

/// How often it is estimated.
const ESTIMATE_NS: u64 = 200_000_000;
/// 100 MB/s, where nothing was written yet.
const PAGES_PER_S_AT_FIRST: f64 = 25_600.0;

impl Bandwidth {
    pub(super) fn pages_per_s(&mut self, now_ns: u64) -> f64 {
        if self.pages_per_s == 0.0 {
            self.pages_per_s = PAGES_PER_S_AT_FIRST;
        }
        let passed_ns = now_ns - self.since_ns;
        if passed_ns >= ESTIMATE_NS {
            let rate = (self.written - self.written_then) as f64 * 1e9 / passed_ns as f64;
            // A longer time counts more, up to the kernel's three seconds.
            let weight = (passed_ns as f64 / 3e9).min(1.0);
            self.pages_per_s += (rate - self.pages_per_s) * weight;
            (self.since_ns, self.written_then) = (now_ns, self.written);
        }
        self.pages_per_s.max(1.0)
    }
}

/// The machine.
#[derive(Debug)]
pub(super) struct Machine {
    pub config: CacheConfig,
    pub rules: Rules,
    pub pages: Pages,
    pub journal: Journal,
    pub bandwidth: Bandwidth,
    /// The queue of the device takes no more of who does not wait.
    pub congested: bool,
    /// Pages that may be dirty or in writeback.
    pub limit: u64,
    /// Dirty pages from which on they are written back in the background.
    pub background: u64,
    /// Writers have been over the limit.
    pub exceeded: bool,
    /// The background shall begin.
    pub wanted: bool,
    /// Threads that shall look again.
    pub wakes: Vec<u32>,
    /// Processes beside the kernel's threads, which come behind them: the journal's, and those of writeback.
    pub processes: u32,
}

impl Machine {
    pub(super) fn journal_thread(&self) -> u32 {
        self.processes
    }

    pub(super) fn background_thread(&self) -> u32 {
        self.processes + 1
    }

    /// A file changes, by so many new pages.
    pub(super) fn begin_change(&mut self, now_ns: u64, file: u32, new_pages: u64) {
        self.start_transaction(now_ns);
        let is_changed = &mut self.pages.files[file as usize].is_changed;
        self.journal.begin(file, is_changed, new_pages);
    }

    fn start_transaction(&mut self, now_ns: u64) {
        if self.journal.started_ns.is_none() {
            self.journal.started_ns = Some(now_ns);
            self.wakes.push(self.journal_thread());
        }
    }

    /// A page belongs to the running transaction, and no more to the one that is committed.
    pub(super) fn file_page(&mut self, now_ns: u64, page: Page) {
        if self.rules.ordered {
            self.start_transaction(now_ns);
            self.pages.clear(page, self.journal.committing_flag());
            let own = flag::TRANSACTION[self.journal.running()];
            if !self.pages.is(page, own) {
                self.pages.set(page, own);
                self.journal.add(page);
            }
        }
    }

    /// The commit need not wait for a page any more.
    pub(super) fn forgo(&mut self, page: Page) {
        if self.pages.is(page, flag::AWAITED) {
            self.pages.clear(page, flag::AWAITED);
            self.journal_arrived(1);
        }
    }

    pub(super) fn journal_arrived(&mut self, count: u64) {
        self.journal.awaited -= count;
        if self.journal.awaited == 0 && count > 0 {
            self.wakes.push(self.journal_thread());
        }
    }

    pub(super) fn want_background(&mut self) {
        if !self.wanted {
            self.wanted = true;
            self.wakes.push(self.background_thread());
        }
    }
}
