//! The server's parts, and what its threads do.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use dbdyno_common::random::Random;

use super::area::Areas;
use super::cleaner::Cleaner;
use super::client::{Client, Processors};
use super::counts::InnodbCounts;
use super::log::Log;
use super::other_logs::{Binlog, Journal};
use super::pool::Pool;
use super::settings::{FlushMethod, InnodbError, InnodbSettings, PAGE_BYTES};
use super::table::Table;
use super::tasks::Tasks;
use crate::queue::{Bio, Direction};

pub(super) const SECOND_NS: u64 = 1_000_000_000;

/// What happens at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Timer {
    /// The second of the master thread and the page cleaner.
    Second,
    /// A statement had its CPU.
    Computed(u32),
    /// A client sends its next statement.
    Thought(u32),
}

/// What a thread does; it goes on when all that it asked the drive for is finished.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Doing {
    Nothing,
    /// A client reads a page into this frame.
    Read(u32),
    LogWrite,
    LogSync,
    /// The log is flushed as far as the thread wants.
    LogFlushed,
    BinlogWrite,
    BinlogSync,
    JournalWrite,
    JournalCommit,
    Doublewrite,
    DoublewriteSync,
    PageWrite,
    PageSync,
    CheckpointWrite,
    CheckpointSync,
}

/// A server and its clients, as a source of load.
///
/// Threads by number: clients, the master, the filesystem's journal, the page cleaner.
#[derive(Debug)]
pub struct Innodb {
    pub(super) settings: InnodbSettings,
    pub(super) areas: Areas,
    pub(super) now_ns: u64,
    pub(super) timers: BinaryHeap<Reverse<(u64, Timer)>>,
    pub(super) tasks: Tasks,
    pub(super) doing: Vec<Doing>,
    /// Threads that go on now.
    pub(super) over: VecDeque<u32>,
    pub(super) clients: Vec<Client>,
    pub(super) running: u32,
    pub(super) processors: Processors,
    pub(super) table: Table,
    pub(super) pool: Pool,
    /// Clients that wait for a frame, and for room in the log.
    pub(super) frame_waiters: VecDeque<u32>,
    pub(super) log_waiters: VecDeque<u32>,
    pub(super) log: Log,
    pub(super) binlog: Binlog,
    pub(super) journal: Journal,
    pub(super) cleaner: Cleaner,
    pub(super) counts: InnodbCounts,
}

impl Innodb {
    /// A server whose clients begin at time 0. The seed decides keys, what is in the buffer pool, and CPU times.
    ///
    /// # Errors
    /// [`InnodbError`] names the field, what was given and what must hold.
    pub fn new(settings: InnodbSettings, seed: u64) -> Result<Self, InnodbError> {
        settings.check()?;
        let mut random = Random::new(seed);
        let mut table = Table::new(&settings);
        if !table.fill(settings.rows) {
            let problem = "do not fit into space_bytes";
            return Err(InnodbError { field: "rows", given: settings.rows as f64, problem });
        }
        let mut pool = Pool::new((settings.buffer_pool_bytes / PAGE_BYTES) as usize, table.pages_most());
        if settings.warm {
            pool.warm(table.pages(), &mut random);
        }
        let threads = settings.clients + 3;
        let direct = settings.flush_method == FlushMethod::Direct;
        let clients: Vec<_> = (0..settings.clients).map(|_| Client::new(&settings, random.bits())).collect();
        let first = (0..settings.clients).map(|at| Reverse((0, Timer::Thought(at))));
        Ok(Self {
            areas: Areas::new(&settings),
            now_ns: 0,
            timers: first.chain([Reverse((SECOND_NS, Timer::Second))]).collect(),
            tasks: Tasks::new(threads, if direct { settings.write_depth } else { u32::MAX }),
            doing: vec![Doing::Nothing; threads as usize],
            over: VecDeque::new(),
            running: settings.clients,
            clients,
            processors: Processors::new(settings.cores),
            table,
            pool,
            frame_waiters: VecDeque::new(),
            log_waiters: VecDeque::new(),
            log: Log::new(settings.log_bytes()),
            binlog: Binlog::default(),
            journal: Journal::default(),
            cleaner: Cleaner::default(),
            counts: InnodbCounts::default(),
            settings,
        })
    }

    /// What was counted so far.
    pub fn counts(&self) -> &InnodbCounts {
        &self.counts
    }

    /// Dirty pages now.
    pub fn dirty_pages(&self) -> usize {
        self.pool.dirty_pages()
    }

    /// Log behind the last checkpoint, bytes.
    pub fn checkpoint_age_bytes(&self) -> u64 {
        self.log.age()
    }

    /// Rows of the table now.
    pub fn rows(&self) -> u64 {
        self.table.rows
    }

    /// Where its part of the drive ends, bytes: the drive must not be smaller.
    pub fn end_bytes(&self) -> u64 {
        self.areas.end_bytes()
    }

    pub(super) fn master(&self) -> u32 {
        self.settings.clients
    }

    pub(super) fn journal_thread(&self) -> u32 {
        self.settings.clients + 1
    }

    pub(super) fn cleaner_thread(&self) -> u32 {
        self.settings.clients + 2
    }

    pub(super) fn send(&mut self, bio: Bio) {
        // All writes are those of an fsync, but for pages past the page cache.
        let is_direct = self.settings.flush_method == FlushMethod::Direct && bio.process == self.cleaner_thread();
        let no_idle = bio.direction == Direction::Write && !is_direct;
        self.tasks.send(Bio { intended_ns: self.now_ns, no_idle, ..bio });
    }

    pub(super) fn set_timer(&mut self, after_ns: u64, timer: Timer) {
        self.timers.push(Reverse((self.now_ns + after_ns, timer)));
    }

    /// Has a thread go on as if it had waited for the drive.
    pub(super) fn go_on_soon(&mut self, thread: u32, doing: Doing) {
        self.doing[thread as usize] = doing;
        self.over.push_back(thread);
    }
}
