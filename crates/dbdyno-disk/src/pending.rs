//! Requests that are not answered yet, and answers that wait for their time: each leaves before it, by what its way
//! took and will take, in the order of the times.
//!
//! Cannot: give back time that is only known when it is too late.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use dbdyno_device::{Command, Completion, DeviceModel, Kind};
use fuser::{Errno, ReplyData, ReplyEmpty, ReplyWrite};
use slab::Slab;

use crate::content::{Content, Ticket};
use crate::faults::{FaultDecision, Faults};

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
    /// Done by the model, but kept back by a fault: fault and id.
    fault_queue: Vec<(u64, u64)>,
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
                Some(fault) => self.fault_queue.push((fault, id)),
                None => self.later.add(now_ns, id, at_ns.saturating_add(decision.extra_ns), *ahead_ns),
            }
        }
        while let Some(Left { id, at_ns, taken_ns }) = self.later.next(now_ns) {
            self.take(id, Some(at_ns), taken_ns, due);
        }
        if !self.fault_queue.is_empty() {
            faults.expire(now_ns);
            let (fault_queue, freed): (Vec<_>, Vec<_>) =
                self.fault_queue.drain(..).partition(|(fault, _)| faults.holds(*fault));
            self.fault_queue = fault_queue;
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
        if self.fault_queue.is_empty() { later_ns } else { later_ns.min(faults.next_expiry_ns()) }
    }

    /// Takes out everything, as failed: the power is gone.
    pub fn drain(&mut self) -> Vec<Due> {
        self.finished.clear();
        self.later.clear();
        self.fault_queue.clear();
        self.slots.drain().map(|pending| Due { pending, at_ns: None, taken_ns: 0, fails: true }).collect()
    }
}

/// What is to leave, by number.
#[derive(Debug, Default)]
pub struct Leaving {
    /// The time, so that the least is on top; in order of arrival where it is the same; when it may leave; its number.
    waiting: BinaryHeap<Reverse<(u64, u64, u64, u64)>>,
    arrivals: u64,
    /// When the latest left.
    left_ns: u64,
}

/// What leaves now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Left {
    pub id: u64,
    /// Its time.
    pub at_ns: u64,
    /// How long before that it was to leave.
    pub taken_ns: u64,
}

impl Leaving {
    /// Takes in what has become known at `now_ns`: to leave `ahead_ns` before its time, or now if that has passed, and
    /// not before anything whose time is earlier.
    pub fn add(&mut self, now_ns: u64, id: u64, at_ns: u64, ahead_ns: u64) {
        let leaves_ns = at_ns.saturating_sub(ahead_ns).max(now_ns).min(at_ns);
        self.waiting.push(Reverse((at_ns, self.arrivals, leaves_ns, id)));
        self.arrivals += 1;
    }

    /// Takes out the next that may leave by `now_ns`.
    pub fn next(&mut self, now_ns: u64) -> Option<Left> {
        let Reverse((at_ns, _, leaves_ns, id)) = self.waiting.peek().copied().filter(|next| next.0.2 <= now_ns)?;
        self.waiting.pop();
        self.left_ns = self.left_ns.max(leaves_ns);
        Some(Left { id, at_ns, taken_ns: at_ns.saturating_sub(self.left_ns) })
    }

    /// When the next may leave; `u64::MAX` if nothing waits.
    pub fn next_ns(&self) -> u64 {
        self.waiting.peek().map_or(u64::MAX, |Reverse((_, _, leaves_ns, _))| *leaves_ns)
    }

    /// Forgets all.
    pub fn clear(&mut self) {
        self.waiting.clear();
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Gap to the one before, time from now, ahead.
    type Step = (u64, u64, u64);

    /// Runs on a virtual clock that stops wherever something may leave: when each became known, and when it left.
    fn run(steps: &[Step]) -> (Vec<u64>, Vec<(u64, Left)>) {
        let (mut leaving, mut now_ns, mut known, mut left) = (Leaving::default(), 0, Vec::new(), Vec::new());
        for (id, &(gap_ns, time_ns, ahead_ns)) in (0..).zip(steps) {
            let next_ns = now_ns + gap_ns;
            while leaving.next_ns() <= next_ns {
                now_ns = leaving.next_ns().max(now_ns);
                left.extend(std::iter::from_fn(|| leaving.next(now_ns)).map(|departure| (now_ns, departure)));
            }
            now_ns = next_ns;
            known.push(now_ns);
            leaving.add(now_ns, id, now_ns + time_ns, ahead_ns);
        }
        while leaving.next_ns() < u64::MAX {
            now_ns = leaving.next_ns().max(now_ns);
            left.extend(std::iter::from_fn(|| leaving.next(now_ns)).map(|departure| (now_ns, departure)));
        }
        (known, left)
    }

    proptest! {
        #[test]
        fn all_leave_once_in_time_and_no_earlier_than_they_may(
            steps in prop::collection::vec((0..5_000_u64, 0..20_000_u64, 0..9_000_u64), 0..60),
        ) {
            let (known, left) = run(&steps);
            prop_assert_eq!(left.len(), steps.len());
            for (now_ns, departure) in &left {
                let (_, time_ns, ahead_ns) = steps[departure.id as usize];
                let known_ns = known[departure.id as usize];
                prop_assert_eq!(departure.at_ns, known_ns + time_ns);
                prop_assert!(*now_ns <= departure.at_ns && *now_ns >= known_ns, "{now_ns} {departure:?}");
                prop_assert!(now_ns + ahead_ns >= departure.at_ns, "{now_ns} {departure:?}");
                prop_assert_eq!(departure.taken_ns, departure.at_ns - now_ns);
            }
        }

        #[test]
        fn what_is_known_together_leaves_in_the_order_of_its_times(
            waiting in prop::collection::vec((0..20_000_u64, 0..9_000_u64), 0..60), step_ns in 1..2_000_u64,
        ) {
            let mut leaving = Leaving::default();
            for (id, &(at_ns, ahead_ns)) in (0..).zip(&waiting) {
                leaving.add(0, id, at_ns, ahead_ns);
            }
            let mut left = Vec::new();
            for now_ns in (0..=22_000).step_by(step_ns as usize) {
                left.extend(std::iter::from_fn(|| leaving.next(now_ns)).map(|departure| (departure.at_ns, departure.id)));
            }
            prop_assert!(left.len() == waiting.len() && left.is_sorted(), "{left:?}");
        }
    }

    #[test]
    fn late_news_leave_at_once_and_count_from_their_time() {
        let mut leaving = Leaving::default();
        leaving.add(5_000, 1, 3_000, 1_000);
        assert_eq!(leaving.next_ns(), 3_000);
        assert_eq!(leaving.next(5_000), Some(Left { id: 1, at_ns: 3_000, taken_ns: 0 }));
        assert_eq!((leaving.next(u64::MAX), leaving.next_ns()), (None, u64::MAX));
    }
}
