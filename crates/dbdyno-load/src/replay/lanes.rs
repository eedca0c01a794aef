//! Which connection plays which sessions.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::choice::Sent;
use super::log::Log;

/// How long a session is over before its connection serves another: a slow reply must not hold that up.
const REST_US: i64 = 1_000_000;

/// The sessions of one connection, one after the other.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Lane {
    /// Their statements in order.
    pub sent: Vec<Sent>,
}

/// As many connections as sessions were there at a time, in the log and a second longer.
pub fn lanes(log: &Log, all: &[Sent]) -> Vec<Lane> {
    // A session that goes on with the connection of another stays on it.
    let mut first: Vec<usize> = Vec::with_capacity(log.sessions.len());
    for (number, session) in log.sessions.iter().enumerate() {
        first.push(session.continues.map_or(number, |before| first[before as usize]));
    }
    let mut of_session: Vec<Vec<Sent>> = vec![Vec::new(); log.sessions.len()];
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
        let all: Vec<Sent> = (0..log.statements.len() as u32).map(|number| Sent { number, kind: 0 }).collect();
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
