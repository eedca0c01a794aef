//! Entries put together to sessions: one from a connection's start to its end.

use std::collections::HashMap;

use super::entry::{Entry, NUMBERLESS, What};

/// A statement as it was logged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Logged {
    /// When it started, microseconds since 1970.
    pub start_us: i64,
    /// How long it took, microseconds; 0 where the log does not say.
    pub duration_us: i64,
    /// Its line in the file, from 1.
    pub line: u32,
    /// Offset of its text.
    pub at: u32,
    /// Bytes of its text.
    pub length: u32,
    /// Its session, by its place among [`super::Log::sessions`].
    pub session: u32,
    /// Its default schema, by its place among [`super::Log::schemas`]; 0 where it is not known.
    pub schema: u16,
}

/// A connection that the server had.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Session {
    /// The server's number for it.
    pub thread: u64,
    /// Until when it is known to have been there, microseconds since 1970; `None` for one that was never ended.
    pub quit_us: Option<i64>,
}

/// The statements, in the order of the entries, and their sessions; `starts` are those of the entries.
///
/// In a session no statement starts before the one before it ended: where times are whole seconds, it is put off until
/// then. Where a log has no numbers of connections, several may stand for one session, and nothing is put off.
pub fn sessions(entries: &[Entry], starts: &[i64]) -> (Vec<Logged>, Vec<Session>) {
    let (mut statements, mut sessions) = (Vec::new(), Vec::new());
    // By thread: its session, and when its last statement ended.
    let mut open: HashMap<u64, (u32, i64)> = HashMap::new();
    for (entry, logged_us) in entries.iter().zip(starts) {
        let mut another = || {
            sessions.push(Session { thread: entry.thread, quit_us: None });
            (sessions.len() as u32 - 1, i64::MIN)
        };
        match entry.what {
            What::Connect => {
                open.insert(entry.thread, another());
            }
            What::Quit => {
                if let Some((session, ended_us)) = open.remove(&entry.thread) {
                    sessions[session as usize].quit_us = Some((*logged_us).max(ended_us));
                }
            }
            What::Other => {}
            What::Statement { at, length } => {
                let (session, ended_us) = open.entry(entry.thread).or_insert_with(another);
                let is_one = !entry.stamp.is_exact && entry.thread < NUMBERLESS;
                let start_us = if is_one { (*logged_us).max(*ended_us) } else { *logged_us };
                *ended_us = start_us + entry.duration_us;
                let Entry { line, duration_us, schema, .. } = *entry;
                statements.push(Logged { start_us, duration_us, line, at, length, session: *session, schema });
            }
        }
    }
    (statements, sessions)
}
