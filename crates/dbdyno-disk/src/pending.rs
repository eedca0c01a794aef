//! What the disk has not answered yet.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use dbdyno_device::{Command, Completion, DeviceModel, Kind};
use fuser::{Errno, ReplyData, ReplyEmpty, ReplyWrite};
use slab::Slab;

use crate::content::Content;
use crate::faults::{FaultDecision, Faults};

/// A request as it came from the kernel.
#[derive(Debug, Clone, Copy)]
pub struct Request {
    pub kind: Kind,
    pub offset_bytes: u64,
    pub length_bytes: u64,
    /// Durable when it completes.
    pub fua: bool,
    /// When it reached this process.
    pub arrived_ns: u64,
}

/// A reply still to be given.
pub enum Answer {
    Read(ReplyData),
    Write(ReplyWrite),
    Done(ReplyEmpty),
}

impl Answer {
    /// Tells of success, unless the content says otherwise; returns whether it was one.
    pub fn send(self, request: &Request, sealed: u64, content: &Content) -> bool {
        match self {
            Self::Read(reply) => content.read(request.offset_bytes, request.length_bytes as usize, |outcome| {
                match outcome {
                    Ok(data) => reply.data(data),
                    Err(_) => reply.error(Errno::EIO),
                }
                outcome.is_ok()
            }),
            Self::Write(reply) => {
                let length = request.length_bytes as usize;
                let kept = !request.fua || content.forced(request.offset_bytes, length).is_ok();
                if kept {
                    reply.written(request.length_bytes as u32);
                } else {
                    reply.error(Errno::EIO);
                }
                kept
            }
            Self::Done(reply) => {
                let kept = request.kind != Kind::Flush || content.flushed(sealed);
                if kept {
                    reply.ok();
                } else {
                    reply.error(Errno::EIO);
                }
                kept
            }
        }
    }

    /// Tells of a failure.
    pub fn fail(self, errno: Errno) {
        match self {
            Self::Read(reply) => reply.error(errno),
            Self::Write(reply) => reply.error(errno),
            Self::Done(reply) => reply.error(errno),
        }
    }
}

/// A request and all that is needed to answer it.
pub struct Pending {
    pub answer: Answer,
    pub request: Request,
    /// When it was handed to the model.
    pub dispatched_ns: u64,
    /// Requests in flight at its arrival, itself included.
    pub queue_depth: u32,
    pub decision: FaultDecision,
    /// What a FLUSH makes durable, see [`Content::seal`].
    pub sealed: u64,
}

/// A request whose time has come.
pub struct Due {
    pub pending: Pending,
    /// When the answer was to leave; `None` where nothing had to be waited for.
    pub at_ns: Option<u64>,
    /// How long before the model's time that is.
    pub taken_ns: u64,
    pub fails: bool,
}

/// The requests in flight: with the model, late by a fault, or held by one.
#[derive(Default)]
pub struct InFlight {
    /// By command id.
    slots: Slab<Pending>,
    finished: Vec<Completion>,
    /// Answered at a time to come: because the model knew its time in advance, or a fault makes it late. Time, id, and how
    /// long before the model's time that is.
    later: BinaryHeap<Reverse<(u64, u64, u64)>>,
    /// Done by the model, but held: fault and id.
    held: Vec<(u64, u64)>,
}

impl InFlight {
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Keeps a request and hands it to the model.
    pub fn submit(&mut self, model: &mut dyn DeviceModel, pending: Pending) {
        let Request { kind, offset_bytes, length_bytes, fua, .. } = pending.request;
        let now_ns = pending.dispatched_ns;
        let id = self.slots.insert(pending) as u64;
        model.submit(now_ns, Command { id, kind, offset_bytes, length_bytes, fua });
    }

    /// Keeps a request that no model is asked about, because a fault makes it late all the same.
    pub fn delay(&mut self, pending: Pending) {
        let at_ns = pending.dispatched_ns;
        let id = self.slots.insert(pending) as u64;
        self.finished.push(Completion { id, at_ns });
    }

    /// Takes out what is to be answered by `now_ns`: `path_ns` before the model's time, as far as that is known so early.
    pub fn take_due(
        &mut self,
        model: &mut dyn DeviceModel,
        faults: &mut Faults,
        (now_ns, path_ns): (u64, u64),
        due: &mut Vec<Due>,
    ) {
        model.poll(now_ns, &mut self.finished);
        if path_ns > 0 {
            model.take_certain(&mut self.finished);
        }
        for at in 0..self.finished.len() {
            let Completion { id, at_ns } = self.finished[at];
            match self.slots.get(id as usize).map(|pending| pending.decision) {
                Some(FaultDecision { held_by: Some(fault), .. }) => self.held.push((fault, id)),
                decision => {
                    let at_ns = at_ns + decision.map_or(0, |decision| decision.extra_ns);
                    let taken_ns = at_ns.saturating_sub(now_ns).min(path_ns);
                    self.later.push(Reverse((at_ns - taken_ns, id, taken_ns)));
                }
            }
        }
        self.finished.clear();
        while let Some(Reverse((at_ns, id, taken_ns))) = self.later.peek().copied().filter(|later| later.0.0 <= now_ns)
        {
            self.later.pop();
            self.take(id, Some(at_ns), taken_ns, due);
        }
        if !self.held.is_empty() {
            faults.expire(now_ns);
            let (held, freed): (Vec<_>, Vec<_>) = self.held.drain(..).partition(|(fault, _)| faults.holds(*fault));
            self.held = held;
            for (_, id) in freed {
                self.take(id, None, 0, due);
            }
        }
    }

    fn take(&mut self, id: u64, at_ns: Option<u64>, taken_ns: u64, due: &mut Vec<Due>) {
        if let Some(pending) = self.slots.try_remove(id as usize) {
            let fails = pending.decision.fails;
            due.push(Due { pending, at_ns, taken_ns, fails });
        }
    }

    /// When to look again, beside what the model says; `u64::MAX` if never.
    pub fn next_due_ns(&self, faults: &Faults) -> u64 {
        let later_ns = self.later.peek().map_or(u64::MAX, |Reverse((at_ns, ..))| *at_ns);
        if self.held.is_empty() { later_ns } else { later_ns.min(faults.next_expiry_ns()) }
    }

    /// Takes out everything, as failed: the power is gone.
    pub fn drain(&mut self) -> Vec<Due> {
        self.finished.clear();
        self.later.clear();
        self.held.clear();
        self.slots.drain().map(|pending| Due { pending, at_ns: None, taken_ns: 0, fails: true }).collect()
    }
}
