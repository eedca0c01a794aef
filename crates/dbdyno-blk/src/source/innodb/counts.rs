//! What was counted of a server.

use hdrhistogram::Histogram;

/// An hour: what takes longer counts as an hour in the histogram.
const MOST_NS: u64 = 3_600_000_000_000;

/// Counts since time 0.
#[derive(Debug, Clone)]
pub struct InnodbCounts {
    /// Statements answered.
    pub statements: u64,
    /// Transactions committed.
    pub commits: u64,
    /// Rows inserted, changed or selected.
    pub rows: u64,
    /// Latencies of statements, nanoseconds, from when the client meant to send each; the last of a transaction has its commit.
    pub latencies: Histogram<u64>,
    /// Flushes of the redo log, by commits and others.
    pub log_flushes: u64,
    /// Redo log, bytes.
    pub log_bytes: u64,
    /// Flushes of the binary log.
    pub binlog_flushes: u64,
    /// Commits of the filesystem's journal.
    pub journal_commits: u64,
    /// Pages read.
    pub pages_read: u64,
    /// Pages written to their places.
    pub pages_written: u64,
    /// Pages written to the doublewrite buffer.
    pub doublewrite_pages: u64,
    /// Positions that were written into the header of the log.
    pub checkpoints: u64,
    /// Times that a client waited for pages to be flushed because the log was full.
    pub log_waits: u64,
    /// Times that a client waited for a free frame.
    pub frame_waits: u64,
    /// When the last client ended.
    pub ended_ns: Option<u64>,
    /// The tables had no room for another row: clients ended for that.
    pub is_full: bool,
}

impl Default for InnodbCounts {
    fn default() -> Self {
        // Constants that are within what a histogram takes.
        #[allow(clippy::unwrap_used)]
        let latencies = Histogram::new_with_bounds(1, MOST_NS, 3).unwrap();
        Self {
            statements: 0,
            commits: 0,
            rows: 0,
            latencies,
            log_flushes: 0,
            log_bytes: 0,
            binlog_flushes: 0,
            journal_commits: 0,
            pages_read: 0,
            pages_written: 0,
            doublewrite_pages: 0,
            checkpoints: 0,
            log_waits: 0,
            frame_waits: 0,
            ended_ns: None,
            is_full: false,
        }
    }
}
