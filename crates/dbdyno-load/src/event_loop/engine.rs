//! The event loop: it waits for replies and for what is due, and lets clients start events then. A client that is free
//! is given an event, sends its statements, and reads the replies. Events of a log are due at times of their own. The
//! server may refuse a statement, and a connection may go.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::os::fd::OwnedFd;
use std::sync::atomic::Ordering;
use std::time::Duration;

use dbdyno_common::random::Random;

use super::arrivals::{Arrivals, Limits, Offer, Shared};
use super::dial::Replacer;
use super::wire::Wire;
use crate::clock::now_ns;
use crate::dialect::error_codes::{REPLY_TIMEOUT, SERVER_LOST};
use crate::error::{Error, Slow, explained};
use crate::measure::{Gauges, Recorder};
use crate::protocol::packet::{Prepared, RequestEncoder, reply_sequence};
use crate::protocol::patience::Exceeded;
use crate::protocol::reply::{KeptRows, ProtocolError, Reply, ReplyParser, ServerError};
use crate::protocol::session::Connection;
use crate::protocol::stream::Compression;
use crate::protocol::tls::{Tls, TlsError};
use crate::run_options::{Loop, Spacing};
use crate::statements::{After, Due, Next, Part, Statement, Statements};
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
        if !self.stopping && (stop.is_requested() || self.shared.given_up.load(Ordering::Relaxed)) {
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

impl Engine<'_, '_> {
    pub(super) fn finish(&mut self, number: usize) {
        self.clients[number].activity = Activity::Finished;
        self.live -= 1;
    }

    /// The client has no open event.
    #[inline]
    pub(super) fn free(&mut self, number: usize, now: u64) -> Result<(), String> {
        let client = &mut self.clients[number];
        (client.event_ns, client.in_event) = (None, false);
        if self.closing || self.is_over(now) {
            self.finish(number);
            return Ok(());
        }
        match self.limits.pace {
            Loop::Closed { think, spacing } => {
                let pause_ns = self.statements.pause_ns(number);
                if think.is_zero() && pause_ns.is_none() {
                    return self.start_event(number, now, now);
                }
                let pause_ns = pause_ns.unwrap_or_else(|| {
                    let share = if spacing == Spacing::Fixed { 1.0 } else { self.random.exponential() };
                    (think.as_nanos() as f64 * share) as u64
                });
                self.clients[number].activity = Activity::Pausing;
                self.pauses.push(Reverse((now + pause_ns, number)));
                Ok(())
            }
            Loop::Logged { speed } => self.by_log(number, speed, now),
            Loop::Open { .. } => {
                self.clients[number].activity = Activity::Idle;
                match self.arrivals.as_mut().and_then(Arrivals::take) {
                    Some(due) => self.start_event(number, due, now),
                    None if self.is_exhausted() => {
                        self.finish(number);
                        Ok(())
                    }
                    None => {
                        self.idle.push_back(number);
                        Ok(())
                    }
                }
            }
        }
    }

    /// The client starts the event that was due at `due`.
    #[inline]
    fn start_event(&mut self, number: usize, due: u64, now: u64) -> Result<(), String> {
        self.clients[number].event_ns = Some(due);
        self.send_next(number, now)
    }

    /// The client sends the next statement of its event.
    #[inline]
    fn send_next(&mut self, number: usize, now: u64) -> Result<(), String> {
        let client = &mut self.clients[number];
        if self.stopping {
            self.finish(number);
            return Ok(());
        }
        if !client.connected && self.limits.expects_loss && self.limits.reconnect_ns == 0 {
            self.finish(number);
            return Ok(());
        }
        if !client.connected {
            client.activity = Activity::Disconnected { lost: false };
            if !client.reconnecting {
                self.request_reconnect(number, now);
            }
            return Ok(());
        }
        let statements = &mut *self.statements;
        let request = self.wire.request(number);
        match client.write(request, |encoder| statements.next(number, encoder)) {
            // An open loop's schedule is bounded itself.
            Next::Send(statement)
                if statement.part != Part::Apart
                    && !client.in_event
                    && self.arrivals.is_none()
                    && !self.shared.take_event() =>
            {
                self.finish(number);
            }
            Next::Send(statement) => {
                client.seal(request).map_err(|error| format!("client {number}: {error}"))?;
                client.statement = statement;
                client.intended_ns = match client.event_ns {
                    Some(due) if statement.part != Part::Apart && !client.in_event => due,
                    _ => now,
                };
                client.in_event |= statement.part != Part::Apart;
                (client.activity, client.begun_ns) = (Activity::Busy, 0);
                if self.busy == 0 {
                    self.last_arrival_ns = now;
                }
                self.busy += 1;
                self.wire.send(number);
            }
            Next::Reconnect => {
                client.activity = Activity::Disconnected { lost: false };
                self.disconnect(number, now);
            }
            Next::Done => {
                if let (Some(arrivals), Some(due)) = (&mut self.arrivals, client.event_ns.take()) {
                    arrivals.give_back(due);
                }
                self.finish(number);
                if let (Some(arrivals), 0) = (&mut self.arrivals, self.live) {
                    arrivals.withdraw();
                }
            }
        }
        Ok(())
    }

    /// Bytes came for a client, and perhaps a whole reply with them.
    #[inline]
    fn on_arrival(&mut self, number: usize, reply: Option<Reply>) -> Result<(), String> {
        let now = now_ns();
        let client = &mut self.clients[number];
        if client.activity != Activity::Busy {
            // What no client waits for is no sign of life: it must not hide that others wait in vain.
            return Ok(());
        }
        self.last_arrival_ns = now;
        if client.begun_ns == 0 {
            client.begun_ns = now;
        }
        reply.map_or(Ok(()), |reply| self.replied(number, reply, now))
    }

    #[inline]
    fn replied(&mut self, number: usize, reply: Reply, now: u64) -> Result<(), String> {
        self.busy -= 1;
        if let Some(error) = reply.error {
            return self.refused(number, &error, now);
        }
        let client = &mut self.clients[number];
        let statement = client.statement;
        self.recorder.answered(statement, client.intended_ns, now);
        if statement.rows > 0 {
            let before = self.shared.rows.fetch_add(u64::from(statement.rows), Ordering::Relaxed);
            self.recorder.rows_passed(before, u64::from(statement.rows), now);
        }
        if let Some(rows) = self.clients[number].kept_rows() {
            self.statements.answered(number, statement, rows)?;
        }
        match statement.part {
            Part::Inner => self.send_next(number, now),
            Part::Last => {
                let client = &self.clients[number];
                let latency_ns = now - client.event_ns.unwrap_or(client.intended_ns);
                self.recorder.event(latency_ns, self.statements.event_kind(number));
                self.free(number, now)
            }
            Part::Apart => self.go_on(number, statement, now),
        }
    }

    /// After a statement that ended no event by success.
    fn go_on(&mut self, number: usize, statement: Statement, now: u64) -> Result<(), String> {
        let client = &mut self.clients[number];
        let is_closed = matches!(self.limits.pace, Loop::Closed { .. });
        if statement.part == Part::Apart && !client.in_event && is_closed {
            // In a closed loop the event that it came before was not meant to start until now.
            client.event_ns = client.event_ns.map(|_| now);
        }
        let event_goes_on = client.event_ns.is_some() && statement.part != Part::Last;
        if event_goes_on { self.send_next(number, now) } else { self.free(number, now) }
    }
}

impl Engine<'_, '_> {
    /// The client has no open event: it waits for what the log has next.
    fn by_log(&mut self, number: usize, speed: f64, now: u64) -> Result<(), String> {
        match self.statements.due(number) {
            Due::Done => {
                self.finish(number);
                Ok(())
            }
            Due::Reconnect => {
                self.clients[number].activity = Activity::Disconnected { lost: false };
                self.disconnect(number, now);
                Ok(())
            }
            Due::At(_) if speed <= 0.0 => self.start_event(number, now, now),
            Due::At(after_ns) => {
                let due = self.limits.start_ns.saturating_add((after_ns as f64 / speed) as u64);
                if due <= now {
                    // Its session was busy until now: that is the server's lateness, and in the latency.
                    self.recorder.fell_behind(now - due);
                    return self.start_event(number, due, now);
                }
                self.recorder.fell_behind(0);
                self.clients[number].activity = Activity::Pausing;
                self.pauses.push(Reverse((due, number)));
                Ok(())
            }
        }
    }
}

impl Engine<'_, '_> {
    #[cold]
    pub(super) fn refused(&mut self, number: usize, error: &ServerError, now: u64) -> Result<(), String> {
        let statement = self.clients[number].statement;
        let reworded = self.statements.describe_error(number, error);
        let error = &reworded.map_or_else(|| error.clone(), |message| ServerError { message, ..error.clone() });
        self.recorder.refused(statement.kind, error);
        if error.ends_session() {
            if self.limits.reconnect_ns == 0 && self.limits.expects_loss {
                self.leave(number);
                return Ok(());
            }
            if self.limits.reconnect_ns == 0 {
                return Err(format!("the server ended the session of client {number}: error {error}"));
            }
            self.clients[number].activity = Activity::Disconnected { lost: true };
            self.disconnect(number, now);
            return Ok(());
        }
        if !self.limits.ignore.has(error.code) {
            let errors = self.shared.errors.fetch_add(1, Ordering::Relaxed) + 1;
            if errors > self.limits.errors_max {
                return Err(self.too_many(statement, error));
            }
        }
        let after = self.statements.refused(number, error.code);
        self.after(after, number, statement, now)
    }

    fn too_many(&self, statement: Statement, error: &ServerError) -> String {
        let kind = self.recorder.kind(statement.kind);
        match self.limits.errors_max {
            0 => format!("the server refused a statement, {kind}: error {error}"),
            most => format!("more than {most} refused statements; the last, {kind}: error {error}"),
        }
    }

    fn after(&mut self, after: After, number: usize, statement: Statement, now: u64) -> Result<(), String> {
        match after {
            After::GoOn => self.go_on(number, statement, now),
            // An event that fails for ever must end some time.
            After::StartOver if self.is_over(now) => self.free(number, now),
            After::StartOver => self.send_next(number, now),
        }
    }

    /// Gives up a client's connection and asks for another.
    pub(super) fn disconnect(&mut self, number: usize, now: u64) {
        self.wire.detach(number);
        self.clients[number].connected = false;
        self.request_reconnect(number, now);
    }

    fn request_reconnect(&mut self, number: usize, now: u64) {
        self.clients[number].reconnecting = true;
        self.replacer.request(number, now + self.limits.reconnect_ns);
    }

    /// Takes connections for lost whose server began a reply and does not end it: a byte now and then is no silence.
    fn drop_endless(&mut self, now: u64) -> Result<(), String> {
        let reply_ns = self.limits.reply_ns;
        let endless = |client: &Client| {
            client.activity == Activity::Busy && client.begun_ns > 0 && now.saturating_sub(client.begun_ns) >= reply_ns
        };
        let numbers: Vec<usize> = (0..self.clients.len()).filter(|number| endless(&self.clients[*number])).collect();
        numbers.into_iter().try_for_each(|number| {
            let (place, limit) = (self.replacer.place(), Duration::from_nanos(reply_ns));
            self.lost(number, &Error::Slow(Slow { place, passed: Exceeded::Reply, limit, sql: None }))
        })
    }

    #[cold]
    pub(super) fn lost(&mut self, number: usize, lost: &Error) -> Result<(), String> {
        if self.clients[number].activity == Activity::Finished {
            // No statement needs it; after a warm-up it is replaced when there is something to send.
            self.wire.detach(number);
            self.clients[number].connected = false;
            return Ok(());
        }
        let is_final = self.limits.reconnect_ns == 0;
        if is_final && !self.limits.expects_loss {
            return Err(match lost {
                Error::Slow(_) => format!("client {number}: {lost}"),
                _ => format!("client {number} {lost}"),
            });
        }
        let now = now_ns();
        if self.clients[number].activity == Activity::Busy {
            self.busy -= 1;
            let code = if matches!(lost, Error::Slow(_)) { REPLY_TIMEOUT } else { SERVER_LOST };
            let error = ServerError { code, sqlstate: "HY000".into(), message: lost.to_string() };
            self.recorder.refused(self.clients[number].statement.kind, &error);
            self.clients[number].activity = Activity::Disconnected { lost: true };
        }
        if is_final {
            self.leave(number);
        } else {
            self.disconnect(number, now);
        }
        Ok(())
    }

    /// The client's connection is lost for good, as was to be expected: the run ends with it.
    fn leave(&mut self, number: usize) {
        self.shared.end();
        self.wire.detach(number);
        self.clients[number].connected = false;
        // One that waits for an event is found where it waits.
        if !matches!(self.clients[number].activity, Activity::Idle | Activity::Pausing) {
            self.finish(number);
        }
    }

    /// A new connection, or the end of all hope.
    pub(super) fn replaced(
        &mut self,
        number: usize,
        outcome: Result<Connection, Error>,
        now: u64,
    ) -> Result<(), String> {
        self.clients[number].reconnecting = false;
        let connection = match outcome {
            Ok(connection) => connection,
            // The request to stop is looked at elsewhere; who is done needs no connection.
            Err(Error::Interrupted) => return Ok(()),
            Err(_) if self.clients[number].activity == Activity::Finished => return Ok(()),
            Err(error) => return Err(format!("client {number} got no new connection: {error}")),
        };
        let socket = self.clients[number].replace(connection);
        let attached = self.wire.attach(number, socket);
        attached.map_err(|errno| format!("client {number}: cannot watch its new connection: {}", explained(errno)))?;
        self.recorder.reconnected();
        match self.clients[number].activity {
            Activity::Disconnected { lost: true } => {
                let statement = self.clients[number].statement;
                let after = self.statements.reconnected(number);
                self.after(after, number, statement, now)
            }
            // By a log connections change between events.
            Activity::Disconnected { lost: false } if self.clients[number].event_ns.is_none() => self.free(number, now),
            Activity::Disconnected { lost: false } => self.send_next(number, now),
            _ => Ok(()),
        }
    }
}

/// What a client is at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Activity {
    /// It waits for an event to be due.
    Idle,
    /// It thinks.
    Pausing,
    /// It waits for a reply.
    Busy,
    /// It has something to send and no connection; `lost` when the connection went with a
    /// statement in flight.
    Disconnected { lost: bool },
    /// It has sent all.
    Finished,
}

/// Why what came is no reply.
#[derive(Debug)]
pub enum ReplyError {
    /// It is not the protocol.
    NotProtocol(ProtocolError),
    /// It ends the connection.
    ConnectionEnded(TlsError),
}

/// A client.
pub struct Client {
    parser: ReplyParser,
    prepared: Vec<Prepared>,
    tls: Option<Box<Tls>>,
    compression: Option<Box<Compression>>,
    /// What came over TLS, in the clear.
    plain: Vec<u8>,
    /// What came compressed, inflated.
    inflated: Vec<u8>,
    pub activity: Activity,
    /// Whether there is a connection.
    pub connected: bool,
    /// Whether a new one is being made.
    pub reconnecting: bool,
    /// The statement in flight, and when it was meant to start.
    pub statement: Statement,
    pub intended_ns: u64,
    /// When the first bytes of its reply came, if the last have not; 0 without.
    pub begun_ns: u64,
    /// When the event was meant to start that was given to the client, if one was.
    pub event_ns: Option<u64>,
    /// A statement of that event was sent.
    pub in_event: bool,
}

impl Client {
    /// A client and its socket, which goes to the wire.
    pub fn new(connection: Connection) -> (Self, OwnedFd) {
        let client = Self {
            parser: connection.parser,
            prepared: connection.prepared,
            tls: connection.tls,
            compression: connection.compression,
            plain: Vec::new(),
            inflated: Vec::new(),
            activity: Activity::Idle,
            connected: true,
            reconnecting: false,
            statement: Statement { kind: 0, part: Part::Apart, rows: 0, phase: 0 },
            intended_ns: 0,
            begun_ns: 0,
            event_ns: None,
            in_event: false,
        };
        (client, connection.socket)
    }

    /// Takes a new connection in place of the old one.
    pub fn replace(&mut self, connection: Connection) -> OwnedFd {
        let keeps_rows = self.parser.kept_rows().is_some();
        (self.parser, self.prepared, self.tls) = (connection.parser, connection.prepared, connection.tls);
        self.compression = connection.compression;
        self.parser.keep_rows(keeps_rows);
        self.connected = true;
        connection.socket
    }

    /// Whether a request may be written.
    pub fn is_ready(&self) -> bool {
        self.connected && self.activity != Activity::Busy
    }

    /// Sets whether the rows of later replies are kept.
    pub fn keep_rows(&mut self, keep: bool) {
        self.parser.keep_rows(keep);
    }

    /// The rows of the last reply, if they are kept.
    #[inline]
    pub fn kept_rows(&self) -> Option<&KeptRows> {
        self.parser.kept_rows()
    }

    /// Has a request written into `out`.
    #[inline]
    pub fn write<T>(&mut self, out: &mut Vec<u8>, encode: impl FnOnce(&mut RequestEncoder<'_>) -> T) -> T {
        encode(&mut RequestEncoder::new(out, &mut self.prepared))
    }

    /// Makes a request that was written ready to send, and this client for its reply.
    #[inline]
    pub fn seal(&mut self, out: &mut Vec<u8>) -> Result<(), String> {
        self.parser.expect(reply_sequence(out));
        if self.compression.is_some() {
            Compression::seal(out);
        }
        match &mut self.tls {
            Some(tls) => tls.seal(out).map_err(|error| error.to_string()),
            None => Ok(()),
        }
    }

    /// Takes bytes from the server; `Some` when they complete the reply.
    #[inline]
    pub fn on_bytes(&mut self, bytes: &[u8]) -> Result<Option<Reply>, ReplyError> {
        let clear = match &mut self.tls {
            None => bytes,
            Some(tls) => {
                self.plain.clear();
                tls.open(bytes, &mut self.plain).map_err(ReplyError::ConnectionEnded)?;
                &self.plain
            }
        };
        let clear = match &mut self.compression {
            None => clear,
            Some(compression) => {
                self.inflated.clear();
                compression.open(clear, &mut self.inflated).map_err(ReplyError::NotProtocol)?;
                &self.inflated
            }
        };
        if self.activity != Activity::Busy {
            // Unasked for: the server says goodbye, and the end of the connection follows.
            return Ok(None);
        }
        self.parser.feed(clear).map_err(ReplyError::NotProtocol)
    }
}
