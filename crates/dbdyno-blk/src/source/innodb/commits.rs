//! What commits wait for: the redo log, the binary log, the filesystem's journal.

use super::server::{Doing, Innodb};
use super::settings::InnodbVersion;
use crate::queue::{Bio, Direction};

const BLOCK_BYTES: u64 = 4096;

impl Innodb {
    /// A client commits.
    pub(super) fn commit(&mut self, at: u32) {
        if self.settings.sync_binlog.is_some() {
            self.binlog.queue.push_back(at);
            self.lead_binlog();
        } else {
            self.secure_commits(at);
        }
    }

    /// Flushes the log if commits do.
    fn secure_commits(&mut self, thread: u32) {
        let lsn = if self.settings.flush_log_at_commit == 1 { self.log.lsn } else { 0 };
        self.secure_log(thread, lsn);
    }

    /// Has a thread go on when the log is safe up to a position.
    pub(super) fn secure_log(&mut self, thread: u32, lsn: u64) {
        if lsn <= self.log.flushed_lsn {
            return self.go_on_soon(thread, Doing::LogFlushed);
        }
        self.log.waiters.push_back((thread, lsn));
        self.lead_log();
    }

    /// The first of those who wait writes all there is.
    fn lead_log(&mut self) {
        let Some(&(thread, _)) = self.log.waiters.front().filter(|_| self.log.leader.is_none()) else { return };
        let (from, to) = (self.log.flushed_lsn, self.log.lsn);
        self.log.leader = Some((thread, to));
        self.doing[thread as usize] = Doing::LogWrite;
        for bio in self.areas.log.writes(thread, from, to, self.settings.log_write_bytes) {
            self.send(bio);
        }
    }

    pub(super) fn log_is_flushed(&mut self) {
        let Some((_, lsn)) = self.log.leader.take() else { return };
        self.counts.log_flushes += 1;
        self.counts.log_bytes += lsn - self.log.flushed_lsn;
        self.log.flushed_lsn = lsn;
        for _ in 0..self.log.waiters.len() {
            let Some((thread, wanted)) = self.log.waiters.pop_front() else { break };
            if wanted <= lsn {
                self.go_on_soon(thread, Doing::LogFlushed);
            } else {
                self.log.waiters.push_back((thread, wanted));
            }
        }
        self.lead_log();
    }

    /// What a thread wanted of the log is safe.
    pub(super) fn log_is_safe(&mut self, thread: u32) {
        if thread == self.cleaner_thread() {
            self.write_batch();
        } else if self.binlog.group.first() == Some(&thread) {
            self.write_binlog(thread);
        } else if thread != self.master() {
            self.is_committed(thread);
        }
    }

    /// The master thread flushes the log every second.
    pub(super) fn flush_by_master(&mut self) {
        let master = self.master();
        if !self.log.waiters.iter().any(|(thread, _)| *thread == master) {
            self.secure_log(master, self.log.lsn);
        }
    }

    /// Makes a group of those who wait for the binary log: one by one in 5.1, else all of them.
    fn lead_binlog(&mut self) {
        let binlog = &mut self.binlog;
        if !binlog.group.is_empty() || binlog.queue.is_empty() {
            return;
        }
        let most = if self.settings.version == InnodbVersion::V51 { 1 } else { binlog.queue.len() };
        binlog.group.extend(binlog.queue.drain(..most));
        binlog.is_written = false;
        let leader = binlog.group[0];
        // The transaction is marked as prepared.
        self.log.append(self.settings.log_bytes_per_change);
        self.secure_commits(leader);
    }

    /// The group is prepared in the redo log; in 5.1 its commit is flushed there, too.
    fn write_binlog(&mut self, leader: u32) {
        if self.binlog.is_written {
            return self.end_binlog();
        }
        self.binlog.is_written = true;
        let row_bytes = u64::from(self.settings.rows_per_statement) * u64::from(self.settings.binlog_bytes_per_row);
        let binlog = &mut self.binlog;
        binlog.bytes +=
            binlog.group.iter().map(|at| u64::from(self.clients[*at as usize].uncommitted) * row_bytes).sum::<u64>();
        binlog.groups_unflushed += 1;
        if self.settings.sync_binlog.is_none_or(|every| every == 0 || binlog.groups_unflushed < every) {
            return self.commit_binlog(leader);
        }
        let (from, to) = (binlog.flushed_bytes, binlog.bytes);
        (binlog.flushed_bytes, binlog.groups_unflushed) = (to, 0);
        self.doing[leader as usize] = Doing::BinlogWrite;
        for bio in self.areas.binlog.writes(leader, from, to, BLOCK_BYTES) {
            self.send(bio);
        }
    }

    pub(super) fn binlog_is_safe(&mut self, leader: u32) {
        self.counts.binlog_flushes += 1;
        self.commit_binlog(leader);
    }

    fn commit_binlog(&mut self, leader: u32) {
        if self.settings.version == InnodbVersion::V51 {
            self.log.append(self.settings.log_bytes_per_change);
            return self.secure_commits(leader);
        }
        self.end_binlog();
    }

    fn end_binlog(&mut self) {
        let mut group = std::mem::take(&mut self.binlog.group);
        group.drain(..).for_each(|at| self.is_committed(at));
        self.binlog.group = group;
        self.lead_binlog();
    }

    /// Has a thread go on when what it wrote is on the medium, as far as the filesystem sees to that.
    pub(super) fn sync(&mut self, thread: u32, then: Doing) {
        if self.settings.journal_blocks > 0 {
            self.doing[thread as usize] = then;
            self.journal.waiting.push(thread);
            self.begin_journal();
        } else if self.settings.barriers {
            self.doing[thread as usize] = then;
            self.send(Bio { flush: true, ..Bio::new(thread, Direction::Write, 0, 0) });
        } else {
            self.go_on_soon(thread, then);
        }
    }

    /// Begins a commit of the journal for all who wait for one.
    fn begin_journal(&mut self) {
        if !self.journal.members.is_empty() || self.journal.waiting.is_empty() {
            return;
        }
        std::mem::swap(&mut self.journal.members, &mut self.journal.waiting);
        let thread = self.journal_thread();
        let blocks = u64::from(self.settings.journal_blocks - 1);
        if blocks == 0 {
            return self.commit_journal();
        }
        self.doing[thread as usize] = Doing::JournalWrite;
        self.write_journal(blocks, false);
    }

    /// The commit block follows what it is for.
    pub(super) fn commit_journal(&mut self) {
        let thread = self.journal_thread();
        self.doing[thread as usize] = Doing::JournalCommit;
        self.write_journal(1, self.settings.barriers);
    }

    fn write_journal(&mut self, blocks: u64, barrier: bool) {
        let (from, to) = (self.journal.bytes, self.journal.bytes + blocks * BLOCK_BYTES);
        self.journal.bytes = to;
        for bio in self.areas.journal.writes(self.journal_thread(), from, to, BLOCK_BYTES) {
            self.send(Bio { flush: barrier, fua: barrier, ..bio });
        }
    }

    pub(super) fn journal_is_safe(&mut self) {
        self.counts.journal_commits += 1;
        let mut members = std::mem::take(&mut self.journal.members);
        self.over.extend(members.drain(..));
        self.journal.members = members;
        self.begin_journal();
    }
}
