//! The loop itself: waits for replies and for what is due, and lets clients start events then.

mod events;
mod logged;
mod trouble;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::atomic::Ordering;
use std::time::Duration;

use dbdyno_common::random::Random;

use super::arrivals::{Arrivals, Offer};
use super::client::{Activity, Client, ReplyError};
use super::limits::{Limits, Shared};
use super::replace::Replacer;
use super::wire::Wire;
use crate::clock::now_ns;
use crate::error::Error;
use crate::error::explained;
use crate::measure::{Gauges, Recorder};
use crate::run_options::Loop;
use crate::statements::Statements;
use crate::stop::Stop;

/// Longest sleep: how soon a silent server, a signal or the end of an interval is noticed.
const SLEEP_MAX_NS: u64 = 100_000_000;

/// How soon a new connection is noticed.
const REPLACED_NS: u64 = 500_000;

/// Most that is looked at before time is: a server that never stops talking must not hide it.
const ARRIVALS_MAX: usize = 1024;

/// How long replies that still come in may take after a request to stop.
const LEAVE_NS: u64 = 1_000_000_000;

/// One run of a set of connections.
pub struct Engine<'r, 's> {
    wire: &'r mut dyn Wire,
    clients: &'r mut [Client],
    replacer: &'r mut Replacer,
    statements: &'r mut dyn Statements,
    recorder: &'r mut Recorder<'s>,
    limits: Limits<'r>,
    shared: &'r Shared,
    /// Of an open loop.
    arrivals: Option<Arrivals>,
    /// Of an open loop: who waits for an event to be due.
    idle: VecDeque<usize>,
    /// Of thinking clients: when each goes on.
    pauses: BinaryHeap<Reverse<(u64, usize)>>,
    random: Random,
    /// Clients with a statement in flight.
    busy: usize,
    /// Clients that are not done.
    live: usize,
    /// When to look again for replies that do not end.
    endless_due_ns: u64,
    /// When anything last came, or the first statement went out after a time of rest.
    last_arrival_ns: u64,
    /// No event starts any more.
    closing: bool,
    /// No statement starts any more.
    stopping: bool,
    /// Since when.
    stopping_ns: u64,
}

impl<'r, 's> Engine<'r, 's> {
    pub fn new(
        wire: &'r mut dyn Wire,
        clients: &'r mut [Client],
        replacer: &'r mut Replacer,
        statements: &'r mut dyn Statements,
        recorder: &'r mut Recorder<'s>,
        limits: Limits<'r>,
        shared: &'r Shared,
    ) -> Self {
        Self {
            live: clients.len(),
            wire,
            clients,
            replacer,
            statements,
            recorder,
            limits,
            shared,
            arrivals: None,
            idle: VecDeque::new(),
            pauses: BinaryHeap::new(),
            random: Random::new(!limits.seed),
            busy: 0,
            endless_due_ns: 0,
            last_arrival_ns: 0,
            closing: false,
            stopping: false,
            stopping_ns: 0,
        }
    }

    /// Runs until no client is live, or gives the cause of giving up.
    pub fn run(mut self, stop: &Stop) -> Result<(), String> {
        let outcome = self.turn(stop);
        self.gauge();
        outcome
    }

    fn turn(&mut self, stop: &Stop) -> Result<(), String> {
        self.start(now_ns())?;
        while self.live > 0 {
            self.wire.wait(self.nap()).map_err(|errno| format!("cannot wait for the server: {}", explained(errno)))?;
            self.tick(now_ns(), stop)?;
            for _ in 0..ARRIVALS_MAX {
                let Some(arrival) = self.wire.next() else { break };
                let number = arrival.client;
                match arrival.got.map(|bytes| self.clients[number].on_bytes(bytes)) {
                    Ok(Ok(reply)) => self.on_arrival(number, reply)?,
                    Ok(Err(ReplyError::NotProtocol(error))) => return Err(format!("client {number}: {error}")),
                    Ok(Err(ReplyError::ConnectionEnded(error))) => {
                        self.lost(number, &Error::Tls(self.replacer.place(), error))?;
                    }
                    Err(errno) => self.lost(number, &Error::Lost(self.replacer.place(), errno))?,
                }
            }
            if self.stopping && self.may_leave(now_ns()) {
                return Ok(());
            }
        }
        Ok(())
    }

    /// A server that hangs, or talks without end, must not hold up whoever wants to stop.
    fn may_leave(&self, now: u64) -> bool {
        self.silent_ns(now) >= SLEEP_MAX_NS || now.saturating_sub(self.stopping_ns) >= LEAVE_NS
    }

    fn start(&mut self, now: u64) -> Result<(), String> {
        let limits = self.limits;
        if let Loop::Open { rate, spacing } = limits.pace {
            let (threads, of) = (limits.threads as u64, limits.share.of as u64);
            let share = |all: u64| all / threads + u64::from((limits.thread as u64) < all % threads);
            let offer = Offer {
                rate: rate / (threads * of) as f64,
                spacing,
                start_ns: limits.start_ns,
                phase: (limits.thread as u64 * of + limits.share.index as u64) as f64 / (threads * of) as f64,
                end_ns: limits.deadline_ns.unwrap_or(u64::MAX),
                most: self.shared.events_left.as_ref().map_or(u64::MAX, |left| share(left.load(Ordering::Relaxed))),
            };
            self.arrivals = Some(Arrivals::new(offer, limits.seed));
        }
        self.last_arrival_ns = now;
        for number in 0..self.clients.len() {
            let client = &mut self.clients[number];
            (client.event_ns, client.in_event) = (None, false);
            client.activity = Activity::Idle;
            client.keep_rows(self.statements.reads_rows());
        }
        if let Some(arrivals) = &mut self.arrivals {
            arrivals.pass(now);
        }
        (0..self.clients.len()).try_for_each(|number| self.free(number, now))
    }

    /// How long nothing needs to be done but by an arrival.
    #[inline]
    fn nap(&self) -> Duration {
        // The ordinary case of a closed loop, which is spared a look at the clock.
        if self.busy == self.live {
            return Duration::from_nanos(SLEEP_MAX_NS);
        }
        let now = now_ns();
        let due = self.arrivals.as_ref().and_then(Arrivals::next_ns).filter(|_| !self.idle.is_empty());
        let pause = self.pauses.peek().map(|Reverse((until, _))| *until);
        let deadline = self.limits.deadline_ns.filter(|_| !self.closing);
        let replaced = (self.replacer.pending() > 0).then_some(now + REPLACED_NS);
        let wake = [due, pause, deadline, replaced].into_iter().flatten().fold(now + SLEEP_MAX_NS, u64::min);
        Duration::from_nanos(wake.saturating_sub(now))
    }

    /// Whatever time brings about.
    #[inline]
    fn tick(&mut self, now: u64, stop: &Stop) -> Result<(), String> {
        while let Some(end_ns) = self.recorder.interval_due(now) {
            // The queue at the end of the interval, not at that of our sleep.
            if let Some(arrivals) = &mut self.arrivals {
                arrivals.pass(end_ns);
            }
            self.gauge();
            self.recorder.pass_time(end_ns);
        }
        if let Some(arrivals) = &mut self.arrivals {
            arrivals.pass(now);
        }
        if !self.stopping && (stop.asked() || self.shared.given_up.load(Ordering::Relaxed)) {
            (self.stopping, self.stopping_ns) = (true, now);
        }
        if self.busy > 0 && self.silent_ns(now) >= self.limits.stall_ns {
            let seconds = self.silent_ns(now) / 1_000_000_000;
            let place = self.replacer.place();
            return Err(format!("{place} answered no client for {seconds} s: see the server's error log"));
        }
        if self.is_overdue(now) {
            let (place, seconds) = (self.replacer.place(), self.limits.stall_ns / 1_000_000_000);
            return Err(format!("{place} did not complete a reply within {seconds} s after the end of the run"));
        }
        if now >= self.endless_due_ns {
            self.endless_due_ns = now + SLEEP_MAX_NS;
            self.drop_endless(now)?;
        }
        if self.arrivals.is_some() {
            self.serve(now)?;
        }
        while let Some(Reverse((until, number))) = self.pauses.peek().copied().filter(|Reverse((at, _))| *at <= now) {
            self.pauses.pop();
            if self.clients[number].activity == Activity::Pausing {
                self.recorder.started_late(now - until);
                self.start_event(number, until, now)?;
            }
        }
        while let Some((number, outcome)) = self.replacer.take() {
            self.replaced(number, outcome, now)?;
        }
        if !self.closing && self.is_over(now) {
            self.close();
        }
        Ok(())
    }

    /// Hands due events to idle clients.
    fn serve(&mut self, now: u64) -> Result<(), String> {
        while let Some(number) = self.idle.pop_front() {
            let Some(due) = self.arrivals.as_mut().and_then(Arrivals::take) else {
                self.idle.push_front(number);
                break;
            };
            // A client was there: that the event starts only now is our own lateness.
            self.recorder.started_late(now - due);
            self.start_event(number, due, now)?;
        }
        if self.is_exhausted() {
            while let Some(number) = self.idle.pop_front() {
                self.finish(number);
            }
        }
        Ok(())
    }

    /// An open loop bounded by events that has offered all of them. One bounded by time goes on to its end, though
    /// nothing may be due any more: a run that ended with its last event would have had a higher rate.
    fn is_exhausted(&self) -> bool {
        self.arrivals.as_ref().is_some_and(Arrivals::is_exhausted)
    }

    #[inline]
    fn is_over(&self, now: u64) -> bool {
        self.stopping || self.shared.is_ended() || self.limits.deadline_ns.is_some_and(|end| now >= end)
    }

    /// Whether a reply that was outstanding at the deadline takes as long as no answer may.
    fn is_overdue(&self, now: u64) -> bool {
        let stall_ns = self.limits.stall_ns;
        let endless =
            |client: &Client| client.activity == Activity::Busy && now.saturating_sub(client.intended_ns) >= stall_ns;
        self.limits.deadline_ns.is_some_and(|end| now >= end.saturating_add(stall_ns))
            && self.clients.iter().any(endless)
    }

    fn silent_ns(&self, now: u64) -> u64 {
        now.saturating_sub(self.last_arrival_ns)
    }

    /// No event starts any more: ends the clients that have none open.
    fn close(&mut self) {
        self.closing = true;
        for number in 0..self.clients.len() {
            if matches!(
                self.clients[number].activity,
                Activity::Idle | Activity::Pausing | Activity::Disconnected { .. }
            ) {
                self.finish(number);
            }
        }
        self.idle.clear();
        self.pauses.clear();
    }

    /// Tells the recorder how the open loop stands.
    fn gauge(&mut self) {
        if let Some(arrivals) = &self.arrivals {
            self.recorder.gauge(Gauges {
                offered: arrivals.offered,
                backlog: arrivals.waiting(),
                backlog_max: arrivals.waiting_max,
                offered_for_ns: arrivals.offered_for_ns(),
            });
        }
    }
}
