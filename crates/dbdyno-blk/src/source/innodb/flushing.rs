//! Page flushing: how many pages a second, which, and how they are written.
//!
//! 5.1: the master thread flushes `io_capacity` pages at a time while more than `max_dirty_percent` are dirty; every
//! ten seconds it flushes as many if over 70 % are, else a tenth. 5.6: the page cleaner flushes every second by the age
//! of the log, `(io_capacity_max / io_capacity) * age^1.5 / 7.5` percent of `io_capacity` for an age in percent of the
//! urgent one, averaged with what was flushed of late; nothing below a tenth of the log. Both flush at all speed when
//! the age is urgent, and from the end of the LRU list when clean frames get few. A batch has the size of the
//! doublewrite buffer.
//!
//! Cannot: pages that a client flushes alone, several cleaners, batches of the instances of a buffer pool.

use super::pool::AREA;
use super::server::{Doing, Innodb, SECOND_NS};
use super::settings::{FlushMethod, InnodbVersion, PAGE_BYTES};
use crate::queue::Direction;

/// Pages of the doublewrite buffer: two parts of 1 MiB.
const BATCH_PAGES: usize = 2 * AREA as usize;
/// Seconds over which 5.6 takes its mean rate (`innodb_flushing_avg_loops`).
const MEAN_SECONDS: u64 = 30;
/// Percent of the log below which 5.6 does not flush for its age (`innodb_adaptive_flushing_lwm`).
const LOW_WATER_PERCENT: f64 = 10.0;

impl Innodb {
    /// Decides how much is flushed in the second that begins.
    pub(super) fn plan_flushing(&mut self) {
        self.cleaner.seconds += 1;
        self.cleaner.left = match self.settings.version {
            InnodbVersion::V51 => self.pages_by_master(),
            InnodbVersion::V56 => self.pages_by_age(),
        };
        let depth = self.settings.lru_scan_depth as usize;
        self.cleaner.looks_at_lru = self.pool.available(depth) < depth;
        self.clean();
    }

    fn pages_by_master(&self) -> usize {
        let capacity = self.settings.io_capacity() as usize;
        match self.cleaner.seconds % 10 {
            0 if self.pool.dirty_percent() > 70.0 => capacity,
            0 => capacity / 10,
            _ => 0,
        }
    }

    fn pages_by_age(&mut self) -> usize {
        let (capacity, most) = (f64::from(self.settings.io_capacity()), f64::from(self.settings.io_capacity_max()));
        let cleaner = &mut self.cleaner;
        if cleaner.seconds.is_multiple_of(MEAN_SECONDS) {
            let rate = cleaner.flushed as f64 / MEAN_SECONDS as f64;
            cleaner.pages_per_s_mean = f64::midpoint(cleaner.pages_per_s_mean, rate);
            cleaner.flushed = 0;
        }
        let age_percent = 100.0 * self.modified_age() as f64 / self.log.urgent_bytes as f64;
        let by_age = if age_percent < LOW_WATER_PERCENT { 0.0 } else { most / capacity * age_percent.powf(1.5) / 7.5 };
        let by_dirty = if self.pool.dirty_percent() >= self.settings.max_dirty_percent() { 100.0 } else { 0.0 };
        let wanted = capacity * f64::max(by_age, by_dirty) / 100.0;
        f64::midpoint(wanted, self.cleaner.pages_per_s_mean).min(most) as usize
    }

    /// Log since the oldest change that is in no page on the drive, bytes.
    fn modified_age(&self) -> u64 {
        self.log.lsn - self.pool.oldest_lsn().unwrap_or(self.log.lsn)
    }

    /// Flushes the next pages, if there is a reason to, or ends with a checkpoint.
    pub(super) fn clean(&mut self) {
        if self.cleaner.busy {
            return;
        }
        let is_urgent = self.modified_age() >= self.log.urgent_bytes;
        if !is_urgent && !self.log_waiters.is_empty() {
            return self.write_checkpoint();
        }
        let mut batch = std::mem::take(&mut self.cleaner.batch);
        let (neighbours, depth) = (self.settings.flush_neighbours, self.settings.lru_scan_depth as usize);
        if self.cleaner.looks_at_lru || !self.frame_waiters.is_empty() {
            self.pool.gather(&mut batch, BATCH_PAGES, Some(depth), neighbours);
            self.cleaner.looks_at_lru &= batch.len() == BATCH_PAGES;
        }
        let dirty_is_over = self.settings.version == InnodbVersion::V51
            && self.pool.dirty_percent() > self.settings.max_dirty_percent();
        let due = if is_urgent || dirty_is_over { BATCH_PAGES } else { self.cleaner.left.min(BATCH_PAGES) };
        self.pool.gather(&mut batch, due, None, neighbours);
        self.cleaner.left = self.cleaner.left.saturating_sub(batch.len());
        if self.settings.flush_method == FlushMethod::Fsync {
            batch.sort_unstable_by_key(|frame| self.pool.frame(*frame).page);
        }
        let newest_lsn = batch.iter().map(|frame| self.pool.frame(*frame).newest_lsn).max();
        self.cleaner.batch = batch;
        match newest_lsn {
            Some(lsn) => {
                self.cleaner.busy = true;
                self.secure_log(self.cleaner_thread(), lsn);
            }
            None => self.write_checkpoint(),
        }
    }

    /// The log of a batch is safe: now the pages may be written.
    pub(super) fn write_batch(&mut self) {
        if !self.settings.doublewrite {
            return self.write_pages();
        }
        let (thread, pages) = (self.cleaner_thread(), self.cleaner.batch.len() as u64);
        self.counts.doublewrite_pages += pages;
        self.doing[thread as usize] = Doing::Doublewrite;
        for bio in self.areas.doublewrite.writes(thread, 0, pages * PAGE_BYTES, PAGE_BYTES) {
            self.send(bio);
        }
    }

    pub(super) fn write_pages(&mut self) {
        let thread = self.cleaner_thread();
        self.doing[thread as usize] = Doing::PageWrite;
        for nth in 0..self.cleaner.batch.len() {
            let page = self.pool.frame(self.cleaner.batch[nth]).page;
            self.send(self.areas.table.page(thread, Direction::Write, page));
        }
    }

    pub(super) fn pages_are_safe(&mut self) {
        let mut batch = std::mem::take(&mut self.cleaner.batch);
        self.counts.pages_written += batch.len() as u64;
        self.cleaner.flushed += batch.len();
        for frame in &batch {
            self.pool.written(*frame);
        }
        batch.drain(..).for_each(|frame| self.wake(frame));
        self.cleaner.batch = batch;
        self.cleaner.busy = false;
        for _ in 0..self.frame_waiters.len() {
            if let Some(at) = self.frame_waiters.pop_front() {
                self.access(at);
            }
        }
        self.clean();
    }

    /// Writes into the header of the log from where a recovery would begin: every second at most, unless clients wait.
    fn write_checkpoint(&mut self) {
        let lsn = self.pool.oldest_lsn().unwrap_or(self.log.lsn);
        let is_early = self.now_ns < self.cleaner.checkpoint_ns + SECOND_NS && self.log_waiters.is_empty();
        if self.cleaner.busy || is_early || lsn == self.log.checkpoint_lsn {
            return;
        }
        let thread = self.cleaner_thread();
        (self.cleaner.busy, self.cleaner.checkpoint_lsn, self.cleaner.checkpoint_ns) = (true, lsn, self.now_ns);
        self.doing[thread as usize] = Doing::CheckpointWrite;
        for bio in self.areas.log.writes(thread, 0, 1, self.settings.log_write_bytes) {
            self.send(bio);
        }
    }

    pub(super) fn checkpoint_is_safe(&mut self) {
        self.counts.checkpoints += 1;
        self.log.checkpoint_lsn = self.cleaner.checkpoint_lsn;
        self.cleaner.busy = false;
        for _ in 0..self.log_waiters.len() {
            if let Some(at) = self.log_waiters.pop_front() {
                self.access(at);
            }
        }
        self.clean();
    }
}
