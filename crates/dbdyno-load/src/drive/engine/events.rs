//! The way of an event: a client is free, is granted one, says its statements, and their replies come.

use std::cmp::Reverse;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::{Arrivals, Engine, State, Wire};
use crate::clock::now_ns;
use crate::protocol::reply::Reply;
use crate::run_options::{Loop, Spacing};
use crate::statements::{Next, Part, Said};

impl<W: Wire> Engine<'_, '_, W> {
    pub(super) fn finish(&mut self, number: usize) {
        self.clients[number].state = State::Finished;
        self.live -= 1;
    }

    /// The client has no event under way.
    #[inline]
    pub(super) fn free(&mut self, number: usize, now: u64) -> Result<(), String> {
        let client = &mut self.clients[number];
        (client.event_ns, client.in_event) = (None, false);
        if self.closing || self.is_over(now) {
            self.finish(number);
            return Ok(());
        }
        match self.limits.pace {
            Loop::Closed { think: Duration::ZERO, .. } => self.grant(number, now, now),
            Loop::Closed { think, spacing } => {
                let share = if spacing == Spacing::Fixed { 1.0 } else { self.random.exponential() };
                self.clients[number].state = State::Pausing;
                let until = now + (think.as_nanos() as f64 * share) as u64;
                self.pauses.push(Reverse((until, number)));
                Ok(())
            }
            Loop::Open { .. } => {
                self.clients[number].state = State::Idle;
                match self.arrivals.as_mut().and_then(Arrivals::take) {
                    Some(due) => self.grant(number, due, now),
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
    pub(super) fn grant(&mut self, number: usize, due: u64, now: u64) -> Result<(), String> {
        self.clients[number].event_ns = Some(due);
        self.say(number, now)
    }

    /// The client says the next statement of its event.
    #[inline]
    pub(super) fn say(&mut self, number: usize, now: u64) -> Result<(), String> {
        let client = &mut self.clients[number];
        if self.stopping {
            self.finish(number);
            return Ok(());
        }
        if !client.connected {
            client.state = State::Stranded { lost: false };
            if !client.wished {
                self.wish(number, now);
            }
            return Ok(());
        }
        let statements = &mut *self.statements;
        let request = self.wire.request(number);
        match client.write(request, |pen| statements.next(number, pen)) {
            // An open loop's schedule is bounded itself.
            Next::Say(said)
                if said.part != Part::Apart
                    && !client.in_event
                    && self.arrivals.is_none()
                    && !self.shared.take_event() =>
            {
                self.finish(number);
            }
            Next::Say(said) => {
                client.seal(request).map_err(|error| format!("client {number}: {error}"))?;
                client.said = said;
                client.said_ns = match client.event_ns {
                    Some(due) if said.part != Part::Apart && !client.in_event => due,
                    _ => now,
                };
                client.in_event |= said.part != Part::Apart;
                client.state = State::Busy;
                if self.busy == 0 {
                    self.heard_ns = now;
                }
                self.busy += 1;
                self.wire.send(number);
            }
            Next::Reconnect => {
                client.state = State::Stranded { lost: false };
                self.part(number, now);
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
    pub(super) fn heard(&mut self, number: usize, reply: Option<Reply>) -> Result<(), String> {
        let now = now_ns();
        self.heard_ns = now;
        reply.map_or(Ok(()), |reply| self.replied(number, reply, now))
    }

    #[inline]
    fn replied(&mut self, number: usize, reply: Reply, now: u64) -> Result<(), String> {
        self.busy -= 1;
        if let Some(error) = reply.error {
            return self.refused(number, &error, now);
        }
        let client = &mut self.clients[number];
        let said = client.said;
        self.recorder.answered(said, client.said_ns, now);
        if said.rows > 0 {
            let before = self.shared.rows.fetch_add(u64::from(said.rows), Ordering::Relaxed);
            self.recorder.rows_passed(before, u64::from(said.rows), now);
        }
        match said.part {
            Part::Inner => self.say(number, now),
            Part::Last => {
                self.recorder.event(now - client.event_ns.unwrap_or(client.said_ns));
                self.free(number, now)
            }
            Part::Apart => self.go_on(number, said, now),
        }
    }

    /// After a statement that ended no event by success.
    pub(super) fn go_on(&mut self, number: usize, said: Said, now: u64) -> Result<(), String> {
        let client = &mut self.clients[number];
        if said.part == Part::Apart && !client.in_event && self.arrivals.is_none() {
            // In a closed loop the event that it came before was not meant to start until now.
            client.event_ns = client.event_ns.map(|_| now);
        }
        let event_goes_on = client.event_ns.is_some() && said.part != Part::Last;
        if event_goes_on { self.say(number, now) } else { self.free(number, now) }
    }
}
