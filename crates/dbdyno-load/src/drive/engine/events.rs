//! The way of an event: a client is free, is given one, sends its statements, and their replies come.

use std::cmp::Reverse;
use std::sync::atomic::Ordering;

use super::{Activity, Arrivals, Engine};
use crate::clock::now_ns;
use crate::protocol::reply::Reply;
use crate::run_options::{Loop, Spacing};
use crate::statements::{Next, Part, Statement};

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
    pub(super) fn start_event(&mut self, number: usize, due: u64, now: u64) -> Result<(), String> {
        self.clients[number].event_ns = Some(due);
        self.send_next(number, now)
    }

    /// The client sends the next statement of its event.
    #[inline]
    pub(super) fn send_next(&mut self, number: usize, now: u64) -> Result<(), String> {
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
    pub(super) fn on_arrival(&mut self, number: usize, reply: Option<Reply>) -> Result<(), String> {
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
    pub(super) fn go_on(&mut self, number: usize, statement: Statement, now: u64) -> Result<(), String> {
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
