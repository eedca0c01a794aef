//! Clients and processors.

use std::collections::VecDeque;

use dbdyno_common::random::Random;

use super::list::NONE;
use super::settings::{InnodbLoad, InnodbSettings};

/// A connection.
#[derive(Debug)]
pub(super) struct Client {
    pub random: Random,
    /// When it meant to send its statement.
    pub begun_ns: u64,
    pub statements: u64,
    /// The statement changes nothing.
    pub selects: bool,
    /// Where the statement is: row, index, and the page of these with whether it is new.
    pub row: u32,
    pub index: usize,
    pub page: Option<(u32, bool)>,
    /// Statements that are not committed.
    pub uncommitted: u32,
    /// The next that waits for the same frame.
    pub next_waiter: u32,
}

impl Client {
    pub fn new(settings: &InnodbSettings, seed: u64) -> Self {
        Self {
            random: Random::new(seed),
            begun_ns: 0,
            statements: 0,
            // Mixed clients begin with an insert.
            selects: matches!(settings.load, InnodbLoad::Key | InnodbLoad::Mixed),
            row: 0,
            index: 0,
            page: None,
            uncommitted: 0,
            next_waiter: NONE,
        }
    }
}

/// Processors, and the statements that wait for one.
#[derive(Debug)]
pub(super) struct Processors {
    free: u32,
    queue: VecDeque<(u32, u64)>,
}

impl Processors {
    pub fn new(count: u32) -> Self {
        Self { free: count, queue: VecDeque::new() }
    }

    /// Whether a statement that needs so much has a processor now; else it has one later.
    pub fn begin(&mut self, client: u32, cpu_ns: u64) -> bool {
        if self.free == 0 {
            self.queue.push_back((client, cpu_ns));
            return false;
        }
        self.free -= 1;
        true
    }

    /// A statement gives its processor back: who has it next.
    pub fn end(&mut self) -> Option<(u32, u64)> {
        let next = self.queue.pop_front();
        self.free += u32::from(next.is_none());
        next
    }
}
