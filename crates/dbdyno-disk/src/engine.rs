//! Time: hands each request to the model when it arrives and answers it when the model says so.
//!
//! Data moves apart from time. A write's data is on the disk when it arrives; a read's data is taken when it is
//! answered, which saves a copy and is as right as any other moment while the read is outstanding.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use dbdyno_device::{Command, Completion, DeviceModel, Kind, ModelError};
use fuser::{ReplyData, ReplyEmpty, ReplyWrite};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::content::Content;
use crate::process::monotonic_ns;
use crate::stats::Stats;

/// Closer to its due time than this the completion thread spins instead of sleeping, because falling asleep and waking
/// up takes about as long. Kept short: the host's cores belong to the database server.
const SPIN_NS: u64 = 8_000;

/// How the disk spends its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Answers at once; for preparation.
    Instant,
    /// Answers when the model says so.
    Model,
}

/// A reply still to be given.
pub enum Answer {
    Read { reply: ReplyData, offset_bytes: u64, length_bytes: usize },
    Write { reply: ReplyWrite, length_bytes: u32 },
    Done(ReplyEmpty),
}

impl Answer {
    fn send(self, content: &Content) {
        match self {
            Self::Read { reply, offset_bytes, length_bytes } => {
                content.read(offset_bytes, length_bytes, |data| reply.data(data));
            }
            Self::Write { reply, length_bytes } => reply.written(length_bytes),
            Self::Done(reply) => reply.ok(),
        }
    }
}

struct Pending {
    answer: Answer,
    kind: Kind,
    arrived_ns: u64,
}

struct Due {
    pending: Pending,
    /// The model's time; `None` in instant mode.
    at_ns: Option<u64>,
}

struct State {
    mode: Mode,
    model: Box<dyn DeviceModel + Send>,
    drive: String,
    seed: u64,
    /// By command id; holes are in `free`.
    pending: Vec<Option<Pending>>,
    free: Vec<usize>,
    finished: Vec<Completion>,
    /// What the completion thread sleeps for; it must be woken for anything earlier.
    sleeping_until_ns: u64,
    stopping: bool,
}

impl State {
    fn in_flight(&self) -> usize {
        self.pending.len() - self.free.len()
    }

    fn keep(&mut self, pending: Pending) -> u64 {
        if let Some(id) = self.free.pop() {
            self.pending[id] = Some(pending);
            id as u64
        } else {
            self.pending.push(Some(pending));
            self.pending.len() as u64 - 1
        }
    }

    /// Takes out what the model has finished by `now_ns`.
    fn take_due(&mut self, now_ns: u64, due: &mut Vec<Due>) {
        self.model.poll(now_ns, &mut self.finished);
        for completion in self.finished.drain(..) {
            if let Some(pending) = self.pending.get_mut(completion.id as usize).and_then(Option::take) {
                self.free.push(completion.id as usize);
                due.push(Due { pending, at_ns: Some(completion.at_ns) });
            }
        }
    }
}

/// One disk: its content, its model and the requests it has not answered.
pub struct Engine {
    pub content: Content,
    state: Mutex<State>,
    wake: Condvar,
    stats: Mutex<Stats>,
}

impl Engine {
    pub fn new(content: Content, drive: &str, seed: u64, mode: Mode) -> Result<Arc<Self>, ModelError> {
        let state = State {
            mode,
            model: dbdyno_device::model(drive, content.size_bytes(), seed)?,
            drive: drive.to_owned(),
            seed,
            pending: Vec::with_capacity(1024),
            free: Vec::with_capacity(1024),
            finished: Vec::with_capacity(1024),
            sleeping_until_ns: 0,
            stopping: false,
        };
        Ok(Arc::new(Self { content, state: Mutex::new(state), wake: Condvar::new(), stats: Mutex::new(Stats::new()) }))
    }

    /// Takes a request whose data, if any, is already on the disk. Whatever is due by now is answered on this thread,
    /// so that a device without latency costs no change of thread.
    pub fn submit(&self, kind: Kind, offset_bytes: u64, length_bytes: u64, answer: Answer) {
        let mut due = Vec::new();
        let mut state = self.lock();
        // The clock is read under the lock so that the model sees times in order.
        let arrived_ns = monotonic_ns();
        let pending = Pending { answer, kind, arrived_ns };
        let queue_depth = state.in_flight() + 1;
        let mut wake = false;
        if state.mode == Mode::Instant {
            due.push(Due { pending, at_ns: None });
        } else {
            let id = state.keep(pending);
            state.model.submit(arrived_ns, Command { id, kind, offset_bytes, length_bytes, fua: false });
            state.take_due(arrived_ns, &mut due);
            wake = state.model.next_due().is_some_and(|next_ns| next_ns < state.sleeping_until_ns);
        }
        drop(state);
        if wake {
            self.wake.notify_one();
        }
        self.lock_stats().arrived(kind, length_bytes, queue_depth);
        self.answer(due);
    }

    /// Counts a write that was refused because the memory allowed is used up.
    pub fn refused_for_space(&self) {
        self.lock_stats().refused_for_space();
    }

    /// Answers requests when they are due, until [`Engine::stop`].
    pub fn answer_when_due(&self) {
        let mut due = Vec::with_capacity(256);
        let mut state = self.lock();
        while !state.stopping {
            let now_ns = monotonic_ns();
            state.take_due(now_ns, &mut due);
            let next_ns = state.model.next_due().unwrap_or(u64::MAX);
            if !due.is_empty() {
                state.sleeping_until_ns = 0;
                drop(state);
                self.answer(due.drain(..));
                state = self.lock();
            } else if next_ns.saturating_sub(now_ns) <= SPIN_NS {
                state.sleeping_until_ns = 0;
                drop(state);
                while monotonic_ns() < next_ns {
                    std::hint::spin_loop();
                }
                state = self.lock();
            } else {
                state.sleeping_until_ns = next_ns;
                let sleep = Duration::from_nanos(next_ns.saturating_sub(now_ns).saturating_sub(SPIN_NS));
                state = self.wake.wait_timeout(state, sleep).unwrap_or_else(PoisonError::into_inner).0;
            }
        }
    }

    /// Ends [`Engine::answer_when_due`].
    pub fn stop(&self) {
        self.lock().stopping = true;
        self.wake.notify_one();
    }

    fn answer(&self, due: impl IntoIterator<Item = Due>) {
        for Due { pending, at_ns } in due {
            pending.answer.send(&self.content);
            let now_ns = monotonic_ns();
            let late_ns = at_ns.map(|at_ns| now_ns.saturating_sub(at_ns));
            self.lock_stats().answered(pending.kind, now_ns - pending.arrived_ns, late_ns);
        }
    }

    /// Changes how time is spent. Going over to the model starts it idle with empty caches.
    pub fn set_mode(&self, mode: Mode) -> Result<(), String> {
        let mut state = self.lock();
        if mode == Mode::Model {
            idle(&state)?;
            state.model = self.fresh_model(&state.drive, state.seed)?;
        }
        state.mode = mode;
        Ok(())
    }

    /// Replaces the model.
    pub fn set_model(&self, drive: &str, seed: Option<u64>) -> Result<(), String> {
        let mut state = self.lock();
        idle(&state)?;
        let seed = seed.unwrap_or(state.seed);
        state.model = self.fresh_model(drive, seed)?;
        drive.clone_into(&mut state.drive);
        state.seed = seed;
        Ok(())
    }

    fn fresh_model(&self, drive: &str, seed: u64) -> Result<Box<dyn DeviceModel + Send>, String> {
        dbdyno_device::model(drive, self.content.size_bytes(), seed).map_err(|error| error.to_string())
    }

    /// All that is known about what the disk did; `reset` starts counting anew.
    pub fn stats(&self, reset: bool) -> Value {
        let mut json = self.counted(reset);
        let state = self.lock();
        let more = json!({
            "mode": state.mode,
            "model": state.drive,
            "seed": state.seed,
            "in_flight": state.in_flight(),
            "size_bytes": self.content.size_bytes(),
            "content_bytes": self.content.live_bytes(),
            "held_bytes": self.content.held_bytes(),
            "max_content_bytes": self.content.held_bytes_max(),
            "snapshots": self.content.snapshots(),
            "cpu_seconds": crate::process::cpu_seconds(),
        });
        drop(state);
        if let (Value::Object(json), Value::Object(more)) = (&mut json, more) {
            json.extend(more);
        }
        json
    }

    fn counted(&self, reset: bool) -> Value {
        // Made before the lock is taken: requests are counted under it.
        let fresh = reset.then(Stats::new);
        let mut stats = self.lock_stats();
        let json = stats.json();
        if let Some(fresh) = fresh {
            *stats = fresh;
        }
        json
    }

    /// The state is changed in small steps that each leave it whole, so a panic elsewhere does not spoil it.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_stats(&self) -> MutexGuard<'_, Stats> {
        self.stats.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn idle(state: &State) -> Result<(), String> {
    match state.in_flight() {
        0 => Ok(()),
        n => Err(format!("{n} requests are in flight; wait until the disk is idle (sync, unmount or stop the load)")),
    }
}
