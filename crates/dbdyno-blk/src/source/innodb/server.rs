//! The server: clients and their statements, processors, threads with their I/O, logs, counts, the way from event to
//! event, and what commits wait for: the redo log, the binary log, the filesystem's journal.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use dbdyno_common::random::Random;
use hdrhistogram::Histogram;

use super::layout::{Areas, Table};
use super::pool::{NONE, Pool, Use};
use super::settings::{FlushMethod, InnodbError, InnodbLoad, InnodbSettings, InnodbVersion, PAGE_BYTES};
use crate::queue::{Bio, Direction};
use crate::source::contract::{Source, Step};

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
    tasks: Tasks,
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
            return Err(InnodbError { field: "rows", value: settings.rows as f64, problem });
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

    fn set_timer(&mut self, after_ns: u64, timer: Timer) {
        self.timers.push(Reverse((self.now_ns + after_ns, timer)));
    }

    /// Has a thread go on as if it had waited for the drive.
    pub(super) fn go_on_soon(&mut self, thread: u32, doing: Doing) {
        self.doing[thread as usize] = doing;
        self.over.push_back(thread);
    }
}

impl Innodb {
    fn expire(&mut self, timer: Timer) {
        match timer {
            Timer::Second => {
                if self.running > 0 {
                    self.set_timer(SECOND_NS, Timer::Second);
                    self.flush_by_master();
                    self.plan_flushing();
                }
            }
            Timer::Computed(client) => {
                if let Some((next, cpu_ns)) = self.processors.end() {
                    self.set_timer(cpu_ns, Timer::Computed(next));
                }
                self.access(client);
            }
            Timer::Thought(client) => self.begin(client),
        }
    }

    /// All that a thread waited for is finished.
    fn go_on(&mut self, thread: u32) {
        match std::mem::replace(&mut self.doing[thread as usize], Doing::Nothing) {
            Doing::Nothing => {}
            Doing::Read(frame) => self.page_is_read(thread, frame),
            Doing::LogWrite => self.sync(thread, Doing::LogSync),
            Doing::LogSync => self.log_is_flushed(),
            Doing::LogFlushed => self.log_is_safe(thread),
            Doing::BinlogWrite => self.sync(thread, Doing::BinlogSync),
            Doing::BinlogSync => self.binlog_is_safe(thread),
            Doing::JournalWrite => self.commit_journal(),
            Doing::JournalCommit => self.journal_is_safe(),
            Doing::Doublewrite => self.sync(thread, Doing::DoublewriteSync),
            Doing::DoublewriteSync => self.write_pages(),
            Doing::PageWrite => self.sync(thread, Doing::PageSync),
            Doing::PageSync => self.pages_are_safe(),
            Doing::CheckpointWrite => self.sync(thread, Doing::CheckpointSync),
            Doing::CheckpointSync => self.checkpoint_is_safe(),
        }
    }

    fn settle(&mut self) {
        while let Some(thread) = self.over.pop_front() {
            self.go_on(thread);
        }
    }
}

impl Source for Innodb {
    fn next_due(&self) -> Option<u64> {
        if self.tasks.has_ready() {
            return Some(self.now_ns);
        }
        self.timers.peek().map(|Reverse((at_ns, _))| *at_ns)
    }

    fn step(&mut self, now_ns: u64) -> Option<Step> {
        self.now_ns = now_ns;
        while let Some(&Reverse((_, timer))) = self.timers.peek().filter(|Reverse((at_ns, _))| *at_ns <= now_ns) {
            self.timers.pop();
            self.expire(timer);
            self.settle();
        }
        self.tasks.step()
    }

    fn asleep(&mut self, process: u32) {
        self.tasks.asleep(process);
    }

    fn awake(&mut self, process: u32) {
        self.tasks.awake(process);
    }

    fn finished(&mut self, now_ns: u64, bio: &Bio) {
        self.now_ns = now_ns;
        if self.tasks.finished(bio.process) {
            self.go_on(bio.process);
            self.settle();
        }
    }
}

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

#[derive(Debug, Default)]
struct Task {
    queue: VecDeque<Bio>,
    outstanding: u32,
    /// It is in the list of those that take a step.
    listed: bool,
    asleep: bool,
    ends: bool,
}

#[derive(Debug)]
pub(super) struct Tasks {
    tasks: Vec<Task>,
    ready: VecDeque<u32>,
    /// Bios that the last task may have outstanding.
    depth_last: u32,
}

impl Tasks {
    /// So many threads, of which the last has `depth_last` bios outstanding at most.
    pub fn new(count: u32, depth_last: u32) -> Self {
        let tasks = (0..count).map(|_| Task::default()).collect();
        Self { tasks, ready: VecDeque::with_capacity(count as usize), depth_last }
    }

    pub fn has_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// Has the thread that the bio names ask for it.
    pub fn send(&mut self, bio: Bio) {
        self.tasks[bio.process as usize].queue.push_back(bio);
        self.list(bio.process);
    }

    /// The thread ends.
    pub fn end(&mut self, at: u32) {
        self.tasks[at as usize].ends = true;
        self.list(at);
    }

    pub fn step(&mut self) -> Option<Step> {
        let at = *self.ready.front()?;
        let is_last = at as usize + 1 == self.tasks.len();
        let task = &mut self.tasks[at as usize];
        if !task.asleep
            && (!is_last || task.outstanding < self.depth_last)
            && let Some(bio) = task.queue.pop_front()
        {
            task.outstanding += 1;
            return Some(Step::Submit(bio));
        }
        self.ready.pop_front();
        task.listed = false;
        Some(if task.ends { Step::Exit(at) } else { Step::Unplug(at) })
    }

    pub fn asleep(&mut self, at: u32) {
        // The process that took the last step is the first of the list.
        self.ready.pop_front();
        let task = &mut self.tasks[at as usize];
        (task.asleep, task.listed) = (true, false);
    }

    pub fn awake(&mut self, at: u32) {
        self.tasks[at as usize].asleep = false;
        self.list(at);
    }

    /// A bio is finished: whether it was the last that the thread wanted.
    pub fn finished(&mut self, at: u32) -> bool {
        let task = &mut self.tasks[at as usize];
        task.outstanding -= 1;
        let is_last = task.outstanding == 0 && task.queue.is_empty();
        if !task.queue.is_empty() {
            self.list(at);
        }
        is_last
    }

    fn list(&mut self, at: u32) {
        let task = &mut self.tasks[at as usize];
        if !task.listed {
            task.listed = true;
            self.ready.push_back(at);
        }
    }
}

/// What the page cleaner is at.
#[derive(Debug, Default)]
pub(super) struct Cleaner {
    pub busy: bool,
    /// Frames that are being written.
    pub batch: Vec<u32>,
    /// Pages of the flush list that this second has left.
    pub left: usize,
    /// The end of the LRU list is to be looked through.
    pub looks_at_lru: bool,
    pub seconds: u64,
    /// Pages of the last seconds, and the mean rate before them.
    pub flushed: usize,
    pub pages_per_s_mean: f64,
    /// What the checkpoint that is being written will be.
    pub checkpoint_lsn: u64,
    pub checkpoint_ns: u64,
}

/// A log begins here, as 0 stands for no change.
const FIRST_LSN: u64 = 8192;

/// The redo log: positions in bytes since it was made.
#[derive(Debug)]
pub(super) struct Log {
    /// Where it ends.
    pub lsn: u64,
    pub flushed_lsn: u64,
    pub checkpoint_lsn: u64,
    /// Ages at which pages are flushed at all speed, and at which changes wait for it.
    pub urgent_bytes: u64,
    pub full_bytes: u64,
    /// Who writes it, and how far.
    pub leader: Option<(u32, u64)>,
    /// Who waits for which position to be safe.
    pub waiters: VecDeque<(u32, u64)>,
}

impl Log {
    pub fn new(bytes: u64) -> Self {
        // InnoDB keeps a tenth, and a tenth of the rest, and looks at seven eighths and fifteen sixteenths of what is
        // left.
        let most = bytes / 10 * 9 / 10 * 9;
        Self {
            lsn: FIRST_LSN,
            flushed_lsn: FIRST_LSN,
            checkpoint_lsn: FIRST_LSN,
            urgent_bytes: most - most / 8,
            full_bytes: most - most / 16,
            leader: None,
            waiters: VecDeque::new(),
        }
    }

    /// Log that a crash would have to be recovered from, bytes.
    pub fn age(&self) -> u64 {
        self.lsn - self.checkpoint_lsn
    }

    pub fn is_full(&self) -> bool {
        self.age() >= self.full_bytes
    }

    /// Adds a change: from where to where it is.
    pub fn append(&mut self, bytes: u32) -> (u64, u64) {
        let from = self.lsn;
        self.lsn += u64::from(bytes);
        (from, self.lsn)
    }
}

/// The binary log.
#[derive(Debug, Default)]
pub(super) struct Binlog {
    /// Who commits now, the leader first, and who is next.
    pub group: Vec<u32>,
    pub queue: VecDeque<u32>,
    pub bytes: u64,
    pub flushed_bytes: u64,
    pub groups_unflushed: u32,
    /// Its group is in it, and the redo log is flushed once more.
    pub is_written: bool,
}

/// The filesystem's journal.
#[derive(Debug, Default)]
pub(super) struct Journal {
    pub bytes: u64,
    /// Who waits for the commit that runs, and for the next.
    pub members: Vec<u32>,
    pub waiting: Vec<u32>,
}

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
    /// Latencies of statements, nanoseconds, from when the client meant to send each; the last of a transaction has its
    /// commit.
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

    fn page_is_read(&mut self, at: u32, frame: u32) {
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

    pub(super) fn count_commit(&mut self, at: u32) {
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
            self.count_commit(thread);
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
        group.drain(..).for_each(|at| self.count_commit(at));
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
