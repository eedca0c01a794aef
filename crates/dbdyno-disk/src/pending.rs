//! What the disk has not answered yet.

use dbdyno_device::{Command, Completion, DeviceModel, Kind};
use fuser::{Errno, ReplyData, ReplyEmpty, ReplyWrite};
use slab::Slab;

use crate::content::{Content, Ticket};
use crate::faults::{FaultDecision, Faults};
use crate::leaving::{Leaving, Left};

/// A request as it came from the kernel.
#[derive(Debug, Clone, Copy)]
pub struct Request {
    pub kind: Kind,
    pub offset_bytes: u64,
    pub length_bytes: u64,
    /// Durable when it completes.
    pub fua: bool,
    /// When the block layer handed it to the loop device, where that is known.
    pub start_ns: Option<u64>,
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
    pub fn send(self, request: &Request, ticket: Ticket, content: &Content) -> bool {
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
                // Before the answer: what was acknowledged must be in a cut that is taken after it.
                content.answered(ticket, request.fua);
                if kept {
                    reply.written(request.length_bytes as u32);
                } else {
                    reply.error(Errno::EIO);
                }
                kept
            }
            Self::Done(reply) => {
                let kept = request.kind != Kind::Flush || content.flushed(ticket);
                if request.kind == Kind::Discard {
                    content.answered(ticket, false);
                }
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
    /// How long before the model's time its answer should leave.
    pub ahead_ns: u64,
    /// Requests in flight at its arrival, itself included.
    pub queue_depth: u32,
    pub decision: FaultDecision,
    /// What the content is to be told of when it is answered.
    pub ticket: Ticket,
}

impl Pending {
    /// How long it took from the block layer to the model, where that is known.
    pub fn before_ns(&self) -> Option<u64> {
        self.request.start_ns.map(|start_ns| self.dispatched_ns.saturating_sub(start_ns))
    }
}

/// A request whose time has come.
pub struct Due {
    pub pending: Pending,
    /// When the model, and faults, would have answered; `None` where nothing had to be waited for.
    pub at_ns: Option<u64>,
    /// How long before that the answer was to leave.
    pub taken_ns: u64,
    pub fails: bool,
}

/// The requests in flight: with the model, late by a fault, or held by one.
#[derive(Default)]
pub struct InFlight {
    /// By command id.
    slots: Slab<Pending>,
    finished: Vec<Completion>,
    /// Answered at a time to come: because the model knew its time in advance, or a fault makes it late.
    later: Leaving,
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

    /// Takes out what is to be answered by `now_ns`: before the model's time, as far as that is known so early.
    pub fn take_due(&mut self, model: &mut dyn DeviceModel, faults: &mut Faults, now_ns: u64, due: &mut Vec<Due>) {
        model.poll(now_ns, &mut self.finished);
        model.take_certain(&mut self.finished);
        for Completion { id, at_ns } in self.finished.drain(..) {
            let Some(Pending { decision, ahead_ns, .. }) = self.slots.get(id as usize) else { continue };
            match decision.held_by {
                Some(fault) => self.held.push((fault, id)),
                None => self.later.add(now_ns, id, at_ns + decision.extra_ns, *ahead_ns),
            }
        }
        while let Some(Left { id, at_ns, taken_ns }) = self.later.next(now_ns) {
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
        let later_ns = self.later.next_ns();
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
