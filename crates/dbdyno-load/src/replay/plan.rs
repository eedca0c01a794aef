//! What is replayed of a log, and on which connections.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::OnceLock;

use crate::error::Error;
use crate::protocol::session::Session;
use crate::script::stage::Destination;
use crate::text::shown;

use super::choice::{Selection, SentStatement, Wish, choose};
use super::log::{Form, Log};
use super::not_sent::{NotSent, Occurrences};
use super::routines::KnownRoutines;

/// How long a session is over before its connection serves another: a slow reply must not hold that up.
const REST_US: i64 = 1_000_000;

/// A log with what is sent of it.
pub struct Replay {
    /// The file's name, without its folder.
    pub name: String,
    /// All that was read.
    pub log: Log,
    /// What is asked for.
    pub wish: Wish,
    /// What is sent by what the log itself says.
    by_log: Shared,
    /// Tables that the log makes are not made.
    lacks_tables: bool,
    /// The same by what the server under test has.
    by_server: OnceLock<Shared>,
}

/// What is sent, shared out to connections.
#[derive(Debug, Default)]
pub struct Shared {
    /// What each connection sends.
    pub lanes: Vec<Lane>,
    /// What is not sent.
    pub not_sent: NotSent,
    /// Sessions of which something is sent.
    pub sessions: usize,
    /// Start of the first statement that is sent, microseconds since 1970.
    pub first_us: i64,
    /// Calls of procedures whose text is not known.
    pub unknown_calls: Occurrences,
}

impl Shared {
    fn new(log: &Log, chosen: Selection) -> Self {
        let Selection { sent, not_sent, unknown_calls, .. } = chosen;
        let statements = || sent.iter().map(|sent| &log.statements[sent.number as usize]);
        let first_us = statements().map(|statement| statement.start_us).min().unwrap_or(0);
        let mut sessions: Vec<u32> = statements().map(|statement| statement.session).collect();
        sessions.sort_unstable();
        sessions.dedup();
        Self { lanes: lanes(log, &sent), not_sent, sessions: sessions.len(), first_us, unknown_calls }
    }
}

impl Replay {
    /// What is sent of `log`, whose path errors name.
    ///
    /// # Errors
    /// Nothing is, or it is of several schemas.
    pub fn new(name: String, path: &str, log: Log, wish: Wish) -> Result<Self, Error> {
        let chosen = choose(&log, &wish, path, &KnownRoutines::of_log(&log))?;
        let lacks_tables = chosen.lacks_tables;
        let by_log = Shared::new(&log, chosen);
        Ok(Self { name, log, wish, by_log, lacks_tables, by_server: OnceLock::new() })
    }

    /// What is sent.
    pub fn shared(&self) -> &Shared {
        self.by_server.get().unwrap_or(&self.by_log)
    }

    /// Leaves out what the routines, triggers and events of the server run by themselves, and what needs tables that it has not.
    ///
    /// # Errors
    /// The server does not say what it has, or nothing is left to send.
    pub fn ask_server(&self, session: &mut Session, destination: &Destination) -> Result<(), Error> {
        if self.by_server.get().is_some() || self.log.form == Form::Slow && !self.lacks_tables {
            return Ok(());
        }
        let mut known = KnownRoutines::of_log(&self.log);
        let schema = (!self.wish.follows_schemas).then_some(destination.schema.as_str());
        known.ask(session, schema, self.log.form)?;
        let mut shared = Shared::new(&self.log, choose(&self.log, &self.wish, &self.name, &known)?);
        // The connections are as many as were counted before.
        shared.lanes.resize(self.by_log.lanes.len(), Lane::default());
        let _ = self.by_server.set(shared);
        Ok(())
    }

    /// Sees that the server has the schemas that the log's statements were sent to.
    ///
    /// # Errors
    /// One is not there.
    pub fn find_schemas(&self, session: &mut Session) -> Result<(), Error> {
        let there = session.values("SELECT SCHEMA_NAME FROM information_schema.SCHEMATA")?;
        let sent = self.shared().lanes.iter().flat_map(|lane| &lane.sent);
        let statements = sent.map(|sent| &self.log.statements[sent.number as usize]);
        let lacking = statements.filter(|one| one.schema != 0).find(|one| {
            let name = String::from_utf8_lossy(&self.log.schemas[usize::from(one.schema)]);
            !there.iter().any(|there| there.eq_ignore_ascii_case(&name))
        });
        let Some(lacking) = lacking else { return Ok(()) };
        let schema = shown(&String::from_utf8_lossy(&self.log.schemas[usize::from(lacking.schema)]));
        Err(Error::Usage(format!(
            "{}:{}: the server has no schema {schema}, in which this statement ran: create it and its tables first",
            self.name, lacking.line
        )))
    }
}

/// The sessions of one connection, one after the other.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Lane {
    /// Their statements in order.
    pub sent: Vec<SentStatement>,
}

/// As many connections as sessions were there at a time, in the log and a second longer.
fn lanes(log: &Log, all: &[SentStatement]) -> Vec<Lane> {
    // A session that goes on with the connection of another stays on it.
    let mut first: Vec<usize> = Vec::with_capacity(log.sessions.len());
    for (number, session) in log.sessions.iter().enumerate() {
        first.push(session.continues.map_or(number, |before| first[before as usize]));
    }
    let mut of_session: Vec<Vec<SentStatement>> = vec![Vec::new(); log.sessions.len()];
    for sent in all {
        of_session[first[log.statements[sent.number as usize].session as usize]].push(*sent);
    }
    let mut quits_us: Vec<Option<i64>> = vec![None; log.sessions.len()];
    for (session, first) in log.sessions.iter().zip(&first) {
        quits_us[*first] = quits_us[*first].max(session.quit_us);
    }
    let mut sessions: Vec<(i64, i64, usize)> = Vec::new();
    for (number, sent) in of_session.iter().enumerate() {
        let times = || sent.iter().map(|sent| &log.statements[sent.number as usize]);
        let Some(start_us) = times().map(|one| one.start_us).min() else { continue };
        let end_us = times().map(|one| one.start_us + one.duration_us).max().unwrap_or(start_us);
        sessions.push((start_us, end_us.max(quits_us[number].unwrap_or(end_us)), number));
    }
    sessions.sort_unstable();
    let mut lanes: Vec<Lane> = Vec::new();
    let mut free: BinaryHeap<Reverse<(i64, usize)>> = BinaryHeap::new();
    for (start_us, end_us, number) in sessions {
        let lane = match free.peek() {
            Some(Reverse((ended_us, lane))) if ended_us + REST_US <= start_us => {
                let lane = *lane;
                free.pop();
                lane
            }
            _ => {
                lanes.push(Lane::default());
                lanes.len() - 1
            }
        };
        lanes[lane].sent.append(&mut of_session[number]);
        free.push(Reverse((end_us, lane)));
    }
    lanes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lanes_of(text: &str) -> Vec<Vec<u32>> {
        let log = Log::parse("a.log", text.as_bytes().to_vec()).unwrap();
        let all: Vec<SentStatement> =
            (0..log.statements.len() as u32).map(|number| SentStatement { number, kind: 0 }).collect();
        lanes(&log, &all).into_iter().map(|lane| lane.sent.iter().map(|sent| sent.number).collect()).collect()
    }

    #[test]
    fn a_connection_serves_sessions_that_do_not_meet() {
        let text = "2026-11-23T12:00:00.000000Z\t    1 Query\tSELECT 1\n2026-11-23T12:00:00.500000Z\t    2 Query\tSELECT 2\n\
                    2026-11-23T12:00:00.600000Z\t    1 Query\tSELECT 3\n2026-11-23T12:00:01.550000Z\t    3 Query\tSELECT 4\n\
                    2026-11-23T12:00:01.590000Z\t    2 Quit\t\n2026-11-23T12:00:02.595000Z\t    4 Query\tSELECT 5\n";
        // The third came while the others were just over; the fourth finds the first free.
        assert_eq!(lanes_of(text), [vec![0, 2, 4], vec![1], vec![3]]);
    }

    #[test]
    fn a_connection_that_begins_anew_stays_one() {
        let at = |us: u32, rest: &str| format!("2026-11-23T12:00:00.{us:06}Z\t    {rest}\n");
        let text = at(0, "1 Query\tSELECT 1")
            + &at(100, "1 Change user\ta@b on shop")
            + &at(200, "1 Query\tSELECT 2")
            + &at(300, "1 Reset Connection\t")
            + &at(400, "1 Query\tSELECT 3");
        assert_eq!(lanes_of(&text), [vec![0, 1, 2]]);
    }
}
