//! Time: hands each request to the model when it arrives and answers it when the model says so.
//!
//! Data moves apart from time. A write's data is on the disk when it arrives; a read's data is taken when it is
//! answered, which saves a copy and is as right as any other moment while the read is outstanding.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use dbdyno_device::{DeviceModel, Kind, ModelError, ModelOptions, WriteCache};
use fuser::Errno;
use serde::{Deserialize, Serialize};

use crate::content::{Content, ContentError, Ticket};
use crate::faults::{FaultDecision, Faults};
use crate::path::{Path, SoftInterrupts};
use crate::pending::{Answer, Due, InFlight, Pending, Request};
use crate::process::{Granted, monotonic_ns};
use crate::starts::Following;
use crate::stats::{Answered, Stats, Timing};
use crate::trace::{Record, Trace};
use crate::wake_margin::{Idle, LEAST_NS, Margin};

/// A drive without requests goes on by itself (it empties its cache, say). It is brought up to date this often,
/// or the first request after a long pause would have to wait for all of that to be simulated.
const IDLE_NS: u64 = 20_000_000;

/// How the disk spends its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Answers at once; for preparation.
    Instant,
    /// Answers when the model says so.
    Model,
}

/// Whether the disk works at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Power {
    On,
    /// The power was cut.
    Off,
    /// Somebody pulled the drive out.
    Gone,
}

/// Which drive a disk is.
#[derive(Debug, Clone)]
pub struct Drive {
    pub name: String,
    pub seed: u64,
    pub options: ModelOptions,
}

impl Drive {
    fn model(&self, size_bytes: u64) -> Result<Box<dyn DeviceModel + Send>, ModelError> {
        dbdyno_device::model_with(&self.name, size_bytes, self.seed, &self.options)
    }
}

pub(crate) struct DiskState {
    pub(crate) mode: Mode,
    pub(crate) power: Power,
    pub(crate) model: Box<dyn DeviceModel + Send>,
    /// Whether the model has not been given a request yet, so that it need not be made anew.
    pub(crate) model_unused: bool,
    pub(crate) drive: Drive,
    pub(crate) in_flight: InFlight,
    pub(crate) faults: Faults,
    /// What the completion thread sleeps for; it must be woken for anything earlier.
    sleeping_until_ns: u64,
    pub(crate) margin: Margin,
    stopping: bool,
}

impl DiskState {
    fn take_due(&mut self, now_ns: u64, due: &mut Vec<Due>) {
        self.in_flight.take_due(self.model.as_mut(), &mut self.faults, now_ns, due);
    }

    /// When something is next to be done; `u64::MAX` if never.
    fn next_due_ns(&self) -> u64 {
        self.model.next_due().unwrap_or(u64::MAX).min(self.in_flight.next_due_ns(&self.faults))
    }

    /// Makes the model idle and its caches empty.
    pub(crate) fn renew_model(&mut self, drive: &Drive, content: &Content) -> Result<(), String> {
        self.model = drive.model(content.size_bytes()).map_err(|error| error.to_string())?;
        self.model_unused = true;
        self.drive = drive.clone();
        content.set_volatile(self.model.write_cache() == WriteCache::Volatile);
        self.tell_of_flush(content);
        Ok(())
    }

    /// A drive that ignores FLUSH does so only while it is the drive that answers: what is prepared in instant mode and
    /// flushed is durable.
    pub(crate) fn tell_of_flush(&self, content: &Content) {
        content.set_flush_ignored(self.mode == Mode::Model && self.model.ignores_flush());
    }
}

/// One disk: its content, its model and the requests it has not answered.
pub struct Engine {
    pub content: Content,
    pub trace: Trace,
    pub(crate) path: Path,
    pub(crate) following: Following,
    pub(crate) idle: Arc<Idle>,
    soft_interrupts: SoftInterrupts,
    /// What the process may do, set by [`Engine::granted`].
    pub(crate) granted: OnceLock<Granted>,
    state: Mutex<DiskState>,
    /// Whether some request may meet a fault, readable without the lock.
    may_fault: AtomicBool,
    wake: Condvar,
    stats: Mutex<Stats>,
}

impl Engine {
    pub fn new(content: Content, drive: Drive, mode: Mode) -> Result<Arc<Self>, ModelError> {
        let state = DiskState {
            mode,
            power: Power::On,
            model: drive.model(content.size_bytes())?,
            model_unused: true,
            drive,
            in_flight: InFlight::default(),
            faults: Faults::default(),
            sleeping_until_ns: 0,
            margin: Margin::new(),
            stopping: false,
        };
        content.set_volatile(state.model.write_cache() == WriteCache::Volatile);
        state.tell_of_flush(&content);
        Ok(Arc::new(Self {
            content,
            trace: Trace::default(),
            path: Path::new(),
            following: Following::default(),
            idle: Arc::new(Idle::new()),
            soft_interrupts: SoftInterrupts::new(),
            granted: OnceLock::new(),
            state: Mutex::new(state),
            may_fault: AtomicBool::new(false),
            wake: Condvar::new(),
            stats: Mutex::new(Stats::new()),
        }))
    }

    /// Says what the kernel granted this process.
    pub fn granted(&self, granted: Granted) {
        // Said once, before anybody can ask.
        let _ = self.granted.set(granted);
    }

    /// A request that has just arrived.
    pub fn arrived(&self, kind: Kind, offset_bytes: u64, length_bytes: u64) -> Request {
        let arrived_ns = monotonic_ns();
        let start_ns = self.following.start_ns(offset_bytes, length_bytes, arrived_ns);
        Request { kind, offset_bytes, length_bytes, fua: false, start_ns, arrived_ns }
    }

    /// Takes a read or a FLUSH.
    pub fn take(&self, request: Request, answer: Answer) {
        match self.decision(&request) {
            Ok(decision) => {
                let ticket = if request.kind == Kind::Flush { self.content.seal() } else { Ticket::default() };
                self.submit(request, decision, answer, ticket);
            }
            Err(errno) => self.refuse(&request, answer, errno),
        }
    }

    /// Takes a request that changes the content, which `change` does.
    pub fn take_change(
        &self,
        request: Request,
        answer: Answer,
        change: impl FnOnce(&Content) -> Result<Ticket, ContentError>,
    ) {
        let outcome = self.decision(&request).and_then(|decision| {
            let ticket = if decision.fails { Ok(Ticket::default()) } else { change(&self.content) };
            Ok((decision, ticket.map_err(|error| self.errno(error))?))
        });
        match outcome {
            Ok((decision, ticket)) => self.submit(request, decision, answer, ticket),
            Err(errno) => self.refuse(&request, answer, errno),
        }
    }

    fn errno(&self, error: ContentError) -> Errno {
        match error {
            ContentError::Full => {
                self.lock_stats().refused_for_space();
                Errno::ENOSPC
            }
            ContentError::PastEnd => Errno::EFBIG,
            ContentError::Off | ContentError::Host => Errno::EIO,
        }
    }

    fn decision(&self, request: &Request) -> Result<FaultDecision, Errno> {
        if !self.may_fault.load(Ordering::Acquire) {
            return Ok(FaultDecision::default());
        }
        let mut state = self.lock();
        if state.power != Power::On {
            return Err(Errno::EIO);
        }
        Ok(state.faults.decision(request.arrived_ns, request.kind, request.offset_bytes, request.length_bytes))
    }

    fn refuse(&self, request: &Request, answer: Answer, errno: Errno) {
        answer.fail(errno);
        self.lock_stats().refused(request.kind);
    }

    /// Takes a request whose data, if any, is already on the disk. Whatever is due by now is answered on this thread,
    /// so that a device without latency costs no change of thread.
    fn submit(&self, request: Request, decision: FaultDecision, answer: Answer, ticket: Ticket) {
        let mut due = Vec::new();
        let mut state = self.lock();
        // The clock is read under the lock so that the model sees times in order.
        let dispatched_ns = monotonic_ns();
        let queue_depth = state.in_flight.len() as u32 + 1;
        let ahead_ns = 0;
        let mut pending = Pending { answer, request, dispatched_ns, ahead_ns, queue_depth, decision, ticket };
        pending.ahead_ns = self.path.ahead_ns(request.kind, request.length_bytes, pending.before_ns());
        let mut wake = false;
        if state.power != Power::On {
            due.push(Due { pending, at_ns: None, taken_ns: 0, fails: true });
        } else if state.mode == Mode::Instant && decision.extra_ns == 0 && decision.held_by.is_none() {
            due.push(Due { pending, at_ns: None, taken_ns: 0, fails: decision.fails });
        } else {
            let DiskState { mode, model, model_unused, in_flight, .. } = &mut *state;
            if *mode == Mode::Model {
                *model_unused = false;
                in_flight.submit(model.as_mut(), pending);
            } else {
                in_flight.delay(pending);
            }
            state.take_due(dispatched_ns, &mut due);
            wake = state.next_due_ns() < state.sleeping_until_ns;
        }
        drop(state);
        if wake {
            self.wake.notify_one();
        }
        self.lock_stats().arrived(request.kind, request.length_bytes, queue_depth);
        self.answer(due);
    }

    /// Answers requests when they are due, until [`Engine::stop`].
    pub fn answer_when_due(&self) {
        let mut due = Vec::with_capacity(256);
        let mut state = self.lock();
        while !state.stopping {
            let now_ns = monotonic_ns();
            state.take_due(now_ns, &mut due);
            let next_ns = state.next_due_ns();
            if !due.is_empty() {
                state.sleeping_until_ns = 0;
                drop(state);
                self.answer(due.drain(..));
                state = self.lock();
                continue;
            }
            if let Some(processors) = self.idle.news() {
                state.margin.host_idled(now_ns, processors);
            }
            let margin_ns = state.margin.ns(now_ns);
            if next_ns.saturating_sub(now_ns) <= margin_ns {
                state.sleeping_until_ns = 0;
                drop(state);
                // In short turns: what arrives meanwhile may be due earlier.
                let until_ns = next_ns.min(now_ns + LEAST_NS);
                while monotonic_ns() < until_ns {
                    std::hint::spin_loop();
                }
                state = self.lock();
                state.margin.spun(until_ns, until_ns - now_ns);
            } else {
                state.sleeping_until_ns = next_ns;
                let sleep_ns = next_ns.saturating_sub(now_ns).saturating_sub(margin_ns).min(IDLE_NS);
                let (woken, ended) = self
                    .wake
                    .wait_timeout(state, Duration::from_nanos(sleep_ns))
                    .unwrap_or_else(PoisonError::into_inner);
                state = woken;
                if ended.timed_out() {
                    state.margin.overslept(monotonic_ns().saturating_sub(now_ns + sleep_ns));
                }
            }
        }
    }

    /// Ends [`Engine::answer_when_due`].
    pub fn stop(&self) {
        self.lock().stopping = true;
        self.wake.notify_one();
    }

    pub(crate) fn answer(&self, due: impl IntoIterator<Item = Due>) {
        // All answers first: what is counted of them keeps no other waiting.
        let answered: Vec<_> = due.into_iter().map(|due| self.give(due)).collect();
        for answer in answered {
            if let Some(way_ns) = answer.way_ns() {
                self.path.came(answer.record.kind, answer.record.size_bytes, way_ns);
            }
            // One by one, so that a request that arrives meanwhile need not wait for all.
            self.lock_stats().answered(&answer);
            self.trace.take(|| answer.record);
        }
    }

    fn give(&self, Due { pending, at_ns, taken_ns, fails }: Due) -> Answered {
        let before_ns = pending.before_ns();
        let Pending { answer, request, dispatched_ns, ahead_ns, queue_depth, ticket, .. } = pending;
        let error = if fails {
            if request.kind == Kind::Flush {
                self.content.flush_failed(ticket);
            }
            answer.fail(Errno::EIO);
            true
        } else {
            !answer.send(&request, ticket, &self.content)
        };
        self.soft_interrupts.run();
        let now_ns = monotonic_ns();
        let timing = at_ns.map(|at_ns| Timing { done_ns: now_ns, at_ns, taken_ns, ahead_ns, before_ns });
        let record = Record {
            arrival_ns: request.arrived_ns,
            dispatch_ns: dispatched_ns,
            due_ns: at_ns.unwrap_or(0),
            completion_ns: now_ns,
            offset_bytes: request.offset_bytes,
            size_bytes: request.length_bytes,
            queue_depth,
            kind: request.kind,
            error,
        };
        Answered { record, timing }
    }

    /// Something that [`Engine::decision`] and [`Engine::answer_when_due`] must know of has changed.
    pub(crate) fn changed(&self, state: MutexGuard<'_, DiskState>) {
        self.may_fault.store(state.power != Power::On || !state.faults.is_empty(), Ordering::Release);
        drop(state);
        self.wake.notify_one();
    }

    /// The state is changed in small steps that each leave it whole, so a panic elsewhere does not spoil it.
    pub(crate) fn lock(&self) -> MutexGuard<'_, DiskState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn lock_stats(&self) -> MutexGuard<'_, Stats> {
        self.stats.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
