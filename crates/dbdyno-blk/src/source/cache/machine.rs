//! What processes and kernel threads share, with the journal: what belongs to its transactions, and how far a commit is.

use super::config::{CacheConfig, Rules};
use super::file::{JOURNAL_SECTORS, PAGE_SECTORS, Page, flag};
use super::pages::{Pages, Purpose, encode};
use crate::queue::{Bio, Direction};

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
    /// Background writeback starts at this many dirty pages.
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

    fn background_thread(&self) -> u32 {
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

/// How far a commit is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    Idle,
    /// At this place of the list of pages.
    Data(usize),
    DataArrives,
    /// So many blocks are left.
    Blocks(u32),
    BlocksArrive,
    CommitBlockArrives,
}

/// The journal.
#[derive(Debug)]
pub(super) struct Journal {
    /// Number of the running transaction.
    pub number: u64,
    /// Since when something belongs to it.
    pub started_ns: Option<u64>,
    /// The last one that is on the drive.
    pub committed: u64,
    /// The last one that a process waits for.
    pub requested: u64,
    /// Pages and blocks that the commit waits for.
    pub awaited: u64,
    /// Pages of both transactions in order of their first change.
    pub pages: [Vec<Page>; 2],
    /// What the running transaction changed beside data: files, and new pages.
    pub files: Vec<u32>,
    pub new_pages: u64,
    /// Blocks that the commit writes before the last.
    pub blocks: u32,
    pub phase: Phase,
    /// Pages that the commit has taken and not submitted yet, the last first.
    pub batch: Vec<Page>,
    start_sector: u64,
    at_sector: u64,
}

impl Journal {
    pub(super) fn new(start_sector: u64) -> Self {
        Self {
            number: 1,
            started_ns: None,
            committed: 0,
            requested: 0,
            awaited: 0,
            pages: Default::default(),
            files: Vec::new(),
            new_pages: 0,
            blocks: 0,
            phase: Phase::Idle,
            batch: Vec::new(),
            start_sector,
            at_sector: 0,
        }
    }

    /// Which of two the running transaction is.
    pub(super) fn running(&self) -> usize {
        self.number as usize % 2
    }

    /// The flag of pages that the commit has yet to look at.
    pub(super) fn committing_flag(&self) -> u8 {
        flag::TRANSACTION[1 - self.running()]
    }

    pub(super) fn add(&mut self, page: Page) {
        self.pages[self.number as usize % 2].push(page);
    }

    /// A file changes, by so many new pages.
    pub(super) fn begin(&mut self, file: u32, is_changed: &mut bool, new_pages: u64) {
        self.new_pages += new_pages;
        if !*is_changed {
            *is_changed = true;
            self.files.push(file);
        }
    }

    /// A write of so many blocks behind the last.
    pub(super) fn next_block(&mut self, blocks: u32) -> Bio {
        if self.at_sector + u64::from(blocks) * PAGE_SECTORS > JOURNAL_SECTORS {
            self.at_sector = 0;
        }
        let sector = self.start_sector + self.at_sector;
        self.at_sector += u64::from(blocks) * PAGE_SECTORS;
        self.awaited += 1;
        let token = encode(Purpose::Journal, Page { file: 0, page: 0 });
        Bio { token, ..Bio::new(0, Direction::Write, sector, blocks * PAGE_SECTORS as u32) }
    }
}
