//! The journal: what belongs to transactions, and how far a commit is.

use super::file::{JOURNAL_SECTORS, PAGE_SECTORS, Page, flag};
use super::pages::{Purpose, encode};
use crate::queue::{Bio, Direction};

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
