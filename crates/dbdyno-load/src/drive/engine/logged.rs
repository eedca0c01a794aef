//! The way of an event that comes from a log: due at a time of its own, on a connection of its own.

use std::cmp::Reverse;

use super::{Activity, Engine};
use crate::statements::Due;

impl Engine<'_, '_> {
    /// The client has no open event: it waits for what the log has next.
    pub(super) fn by_log(&mut self, number: usize, speed: f64, now: u64) -> Result<(), String> {
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
