//! From one statement of a client to the next.

use super::list::NONE;
use super::pool::Use;
use super::server::{Doing, Innodb, Timer};
use super::settings::InnodbLoad;
use crate::queue::Direction;

impl Innodb {
    /// A client sends a statement, if it has one.
    pub(super) fn begin(&mut self, at: u32) {
        let client = &mut self.clients[at as usize];
        let most = self.settings.statements_per_client;
        if most > 0 && client.statements == most {
            return self.end(at);
        }
        if self.settings.load == InnodbLoad::Mixed {
            client.selects = !client.selects;
        }
        client.begun_ns = self.now_ns;
        (client.row, client.index) = (0, 0);
        let cpu_ns = (self.settings.cpu_us * 1e3 * (0.5 + client.random.unit())) as u64;
        if self.processors.begin(at, cpu_ns) {
            self.set_timer(cpu_ns, Timer::Computed(at));
        }
    }

    fn end(&mut self, at: u32) {
        self.tasks.end(at);
        self.running -= 1;
        if self.running == 0 {
            self.counts.ended_ns = Some(self.now_ns);
        }
    }

    /// A client goes through the pages of its statement until it must wait.
    pub(super) fn access(&mut self, at: u32) {
        loop {
            let client = &mut self.clients[at as usize];
            if client.row == self.settings.rows_per_statement {
                return self.end_statement(at);
            }
            let changes = !client.selects;
            if changes && self.log.is_full() {
                self.counts.log_waits += 1;
                self.log_waiters.push_back(at);
                return self.clean();
            }
            let Some((page, is_new)) = self.page_of(at) else {
                self.counts.is_full = true;
                return self.end(at);
            };
            let Some(frame) = self.frame_of(at, page, is_new, changes) else { return };
            let mut indexes = 1;
            if changes {
                let (from_lsn, to_lsn) = self.log.append(self.settings.log_bytes_per_change);
                self.pool.change(frame, from_lsn, to_lsn);
                indexes = if self.inserts() { self.table.indexes() } else { 1 };
            }
            let client = &mut self.clients[at as usize];
            client.page = None;
            client.index = (client.index + 1) % indexes;
            client.row += u32::from(client.index == 0);
        }
    }

    fn inserts(&self) -> bool {
        matches!(self.settings.load, InnodbLoad::Write | InnodbLoad::Mixed)
    }

    /// The page that a client needs, and whether it is new; `None` if there is no room for its row.
    fn page_of(&mut self, at: u32) -> Option<(u32, bool)> {
        let inserts = self.inserts();
        let client = &mut self.clients[at as usize];
        if client.page.is_none() {
            client.page = Some(if client.selects || !inserts {
                (self.table.random_row(&mut client.random), false)
            } else {
                if client.index == 0 && !self.table.grow(1) {
                    return None;
                }
                self.table.insert(client.index, &mut client.random)
            });
        }
        client.page
    }

    /// The frame with the page that a client needs, if it need not wait.
    fn frame_of(&mut self, at: u32, page: u32, is_new: bool, changes: bool) -> Option<u32> {
        if let Some(frame) = self.pool.find(page) {
            let used = self.pool.frame(frame).r#use;
            if used == Use::Reading || (used == Use::Writing && changes) {
                let first = &mut self.pool.frame(frame).waiter;
                self.clients[at as usize].next_waiter = std::mem::replace(first, at);
                return None;
            }
            self.pool.touch(frame);
            return Some(frame);
        }
        let Some(frame) = self.pool.take(page) else {
            self.counts.frame_waits += 1;
            self.frame_waiters.push_back(at);
            self.clean();
            return None;
        };
        if is_new {
            return Some(frame);
        }
        self.pool.frame(frame).r#use = Use::Reading;
        self.doing[at as usize] = Doing::Read(frame);
        self.counts.pages_read += 1;
        self.send(self.areas.table.page(at, Direction::Read, page));
        None
    }

    pub(super) fn page_is_read(&mut self, at: u32, frame: u32) {
        self.pool.frame(frame).r#use = Use::Idle;
        self.access(at);
        self.wake(frame);
        if let Some(waiter) = self.frame_waiters.pop_front() {
            self.access(waiter);
        }
    }

    /// Lets those go on who wait for a frame.
    pub(super) fn wake(&mut self, frame: u32) {
        let mut next = std::mem::replace(&mut self.pool.frame(frame).waiter, NONE);
        while next != NONE {
            let at = next;
            next = std::mem::replace(&mut self.clients[at as usize].next_waiter, NONE);
            self.access(at);
        }
    }

    fn end_statement(&mut self, at: u32) {
        let client = &mut self.clients[at as usize];
        if !client.selects {
            client.uncommitted += 1;
            if client.uncommitted == self.settings.statements_per_transaction {
                return self.commit(at);
            }
        }
        self.answer(at);
    }

    pub(super) fn is_committed(&mut self, at: u32) {
        self.clients[at as usize].uncommitted = 0;
        self.counts.commits += 1;
        self.answer(at);
    }

    fn answer(&mut self, at: u32) {
        let client = &mut self.clients[at as usize];
        client.statements += 1;
        self.counts.statements += 1;
        self.counts.rows += u64::from(self.settings.rows_per_statement);
        self.counts.latencies.saturating_record((self.now_ns - client.begun_ns).max(1));
        self.set_timer((self.settings.think_us * 1e3) as u64, Timer::Thought(at));
    }
}
