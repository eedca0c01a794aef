//! Entries put together to sessions: one from a connection's start to its end, with the schema that it is in and what its statements are.

use std::collections::HashMap;

use crate::error::Error;

use super::super::not_sent::{NotSent, Reason};
use super::super::statement::{self, Class, classified, is_only_of_routine};
use super::entry::{By, Entries, Entry, Form, NUMBERLESS, What, Within};
use super::text::{Text, has};

/// What a server writes in place of a variable of a routine, and no client ever does.
const OF_ROUTINE: &[u8] = b"NAME_CONST(";

/// Whether a value stands in it in place of a routine's variable.
fn has_variable(sql: &[u8]) -> bool {
    sql.contains(&b'_') && has(sql, OF_ROUTINE)
}

/// A statement as it was logged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoggedStatement {
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
    /// Its kind, by its place among [`statement::kinds`].
    pub kind: u16,
    /// Whether and when it may be sent.
    pub class: Class,
    /// Who had it executed.
    pub by: By,
    /// It came in one packet with the statement before it in its session.
    pub continues_packet: bool,
}

/// A connection that the server had.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Session {
    /// The server's number for it.
    pub thread: u64,
    /// Until when it is known to have been there, microseconds since 1970; `None` for one that was never ended.
    pub quit_us: Option<i64>,
    /// The session before on the same connection, which began anew.
    pub continues: Option<u32>,
    /// The log has its Connect, which the server's own sessions have not.
    pub is_connected: bool,
}

/// What the entries come to.
#[derive(Debug, Default)]
pub struct Followed {
    /// The statements, in the order of the entries.
    pub statements: Vec<LoggedStatement>,
    /// Their sessions.
    pub sessions: Vec<Session>,
    /// The entries that are no statements.
    pub others: NotSent,
    is_general: bool,
    /// Of each statement the one before it in its session.
    previous: Vec<Option<u32>>,
}

/// A session that goes on.
#[derive(Clone, Copy)]
struct Open {
    number: u32,
    /// When its last statement ended.
    ended_us: i64,
    schema: u16,
    last: Option<u32>,
}

/// Follows the sessions; `starts` are those of the entries.
///
/// In a session no statement starts before the one before it ended: where times are whole seconds, it is put off until
/// then. Where a log has no numbers of connections, several may stand for one session, and nothing is put off.
///
/// # Errors
/// There are too many schemas.
pub fn follow(entries: &mut Entries, starts: &[i64], form: Form, text: &Text<'_>) -> Result<Followed, Error> {
    let mut followed = Followed { is_general: form == Form::General, ..Followed::default() };
    let mut open: HashMap<u64, Open> = HashMap::new();
    for (entry, logged_us) in std::mem::take(&mut entries.all).iter().zip(starts) {
        let thread = entry.thread;
        match entry.what {
            What::Connect | What::Renew => {
                followed.others.add(Reason::Sessions, entry.line);
                let before = open.get(&thread).copied().filter(|_| entry.what == What::Renew);
                let mut session = followed.begin(thread, before.map(|before| before.number), true);
                session.schema = before.map_or(0, |before| before.schema);
                session.enter(entry.schema);
                open.insert(thread, session);
            }
            What::Quit => {
                followed.others.add(Reason::Sessions, entry.line);
                if let Some(session) = open.remove(&thread) {
                    followed.sessions[session.number as usize].quit_us = Some((*logged_us).max(session.ended_us));
                }
            }
            What::Enter => {
                followed.others.add(Reason::Sessions, entry.line);
                open.entry(thread).or_insert_with(|| followed.begin(thread, None, false)).enter(entry.schema);
            }
            What::Command => followed.others.add(Reason::AdministratorCommands, entry.line),
            What::CutOff => followed.others.add(Reason::CutOff, entry.line),
            What::Statement { at, length, by } => {
                let session = open.entry(thread).or_insert_with(|| followed.begin(thread, None, false));
                session.enter(entry.schema);
                let is_one = !entry.stamp.is_exact && thread < NUMBERLESS;
                let start_us = if is_one { (*logged_us).max(session.ended_us) } else { *logged_us };
                let sql = &text.from(at as usize)[..length as usize];
                let (kind, class) = classified(sql);
                let Entry { line, duration_us, .. } = *entry;
                let (number, schema) = (session.number, session.schema);
                let logged = LoggedStatement {
                    start_us,
                    duration_us,
                    line,
                    at,
                    length,
                    session: number,
                    schema,
                    kind,
                    class,
                    by,
                    continues_packet: false,
                };
                match if class == Class::Several { statement::parts(sql) } else { None } {
                    None => followed.statement(session, logged, sql, entries, text)?,
                    Some(parts) => {
                        // All but the last are over at once, as far as the log says.
                        let last = parts.last().map_or(0, |part| part.start);
                        let before_packet = session.last;
                        for part in parts {
                            let blanks = sql[part.clone()].len() - sql[part.clone()].trim_ascii_start().len();
                            let part = part.start + blanks..part.end;
                            let lines = sql[..part.start].iter().map(|byte| u32::from(*byte == b'\n')).sum::<u32>();
                            let (kind, class) = classified(&sql[part.clone()]);
                            let logged = LoggedStatement {
                                duration_us: if part.start >= last { duration_us } else { 0 },
                                line: line.saturating_add(lines),
                                at: at + part.start as u32,
                                length: part.len() as u32,
                                schema: session.schema,
                                kind,
                                class,
                                continues_packet: session.last != before_packet,
                                ..logged
                            };
                            followed.statement(session, logged, &sql[part], entries, text)?;
                        }
                    }
                }
                session.ended_us = start_us + duration_us;
            }
        }
    }
    Ok(followed)
}

impl Open {
    fn enter(&mut self, schema: Within) {
        if let Within::Said(schema) = schema {
            self.schema = schema;
        }
    }
}

impl Followed {
    fn begin(&mut self, thread: u64, continues: Option<u32>, is_connected: bool) -> Open {
        self.sessions.push(Session { thread, quit_us: None, continues, is_connected });
        let number = self.sessions.len() as u32 - 1;
        Open { number, ended_us: i64::MIN, schema: 0, last: None }
    }

    fn statement(
        &mut self,
        session: &mut Open,
        mut logged: LoggedStatement,
        sql: &[u8],
        entries: &mut Entries,
        text: &Text<'_>,
    ) -> Result<(), Error> {
        if logged.class == Class::Use {
            self.others.add(Reason::Sessions, logged.line);
            if let Some(name) = statement::used_schema(sql) {
                session.schema = entries.schema(&name, text)?;
            }
            return Ok(());
        }
        let is_call = logged.kind == statement::CALL;
        let may_be_routines = self.is_general && logged.by == By::Client;
        if may_be_routines && (is_only_of_routine(sql, logged.class) || session.last.is_some() && has_variable(sql)) {
            logged.by = By::Call;
        } else if is_call || session.last.is_some_and(|last| self.statements[last as usize].by == By::Routine) {
            self.find_routine(session.last, &mut logged, text);
        }
        self.previous.push(session.last);
        session.last = Some(self.statements.len() as u32);
        self.statements.push(logged);
        Ok(())
    }

    /// Finds among the statements before `outer`, of which `last` is the session's last, those that a routine ran for it: a slow log has
    /// them before their call, MariaDB and Percona Server with a line that says so.
    fn find_routine(&mut self, last: Option<u32>, outer: &mut LoggedStatement, text: &Text<'_>) {
        let is_call = outer.kind == statement::CALL;
        let is_one = self.sessions[outer.session as usize].thread < NUMBERLESS;
        let outer_end_us = outer.start_us + outer.duration_us;
        let mut at = last;
        while let Some(number) = at {
            let inner = &mut self.statements[number as usize];
            let is_within = || {
                let is_nested = is_one
                    && inner.duration_us > 0
                    && inner.start_us >= outer.start_us
                    && inner.start_us + inner.duration_us <= outer_end_us;
                is_nested || has(&text.from(inner.at as usize)[..inner.length as usize], OF_ROUTINE)
            };
            let is_of_call = match inner.by {
                By::Call => true,
                By::Routine => inner.duration_us <= outer.duration_us,
                By::Client | By::Execute => is_call && is_within(),
            };
            if !is_of_call {
                break;
            }
            if inner.by != By::Call {
                inner.by = By::Call;
                // Of whole seconds, the call was put off until these were done.
                outer.start_us = outer.start_us.min(inner.start_us);
            }
            at = self.previous[number as usize];
        }
    }
}
