//! What is replayed of a log: which statements are sent, on which connections, and how many of the others there are.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap, HashSet};
use std::sync::OnceLock;

use super::log::{By, Form, Log, LoggedStatement};
use super::not_sent::{NotSent, Occurrences, Reason};
use super::routines::{KnownRoutines, ran};
use super::statement::{self, Class, Step};
use crate::dialect::is_system_schema;
use crate::error::Error;
use crate::protocol::session::Session;
use crate::script::stage::Destination;
use crate::text::shown;

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

    /// Leaves out what the routines, triggers and events of the server run by themselves, and what needs tables that it
    /// has not.
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
        let lacking = statements.filter(|statement| statement.schema != 0).find(|statement| {
            let name = String::from_utf8_lossy(&self.log.schemas[usize::from(statement.schema)]);
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
        let Some(start_us) = times().map(|statement| statement.start_us).min() else { continue };
        let end_us = times().map(|statement| statement.start_us + statement.duration_us).max().unwrap_or(start_us);
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

/// Longest log, as a session can set the time that is logged to any.
const DAYS_MAX: i64 = 366;

/// Most schemas that a message names.
const NAMED_MAX: usize = 5;

/// What is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wish {
    /// Statements that write as well.
    pub writes: bool,
    /// The server lets the statements change one schema alone.
    pub is_confined: bool,
    /// Statements of all schemas, each in its own.
    pub follows_schemas: bool,
    /// Those of this schema of the log alone, and those of none.
    pub from_schema: Option<String>,
}

/// A statement that is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SentStatement {
    /// Its place among the log's statements.
    pub number: u32,
    /// Its kind.
    pub kind: u16,
}

/// What of a log is sent.
#[derive(Debug)]
pub struct Selection {
    /// In the log's order.
    pub sent: Vec<SentStatement>,
    /// What is not sent.
    pub not_sent: NotSent,
    /// Calls of procedures whose text is not known, so that what they ran may be sent as well.
    pub unknown_calls: Occurrences,
    /// Tables are not made that the log makes.
    pub lacks_tables: bool,
}

/// What is sent and what is not, by what is known of the routines and tables that there are.
pub fn choose(log: &Log, wish: &Wish, name: &str, known: &KnownRoutines) -> Result<Selection, Error> {
    let kept = schemas_sent(log, wish, name)?;
    let mut choice =
        Choice { log, wish, kept, sessions: HashMap::new(), lacking: HashSet::new(), lacks_tables: false, known };
    let ran = ran(log, known);
    let mut not = log.others.clone();
    let mut sent = Vec::new();
    for (number, logged) in (0..).zip(&log.statements) {
        let by = if !ran.statements.is_empty() && ran.statements.contains(&number) { By::Call } else { logged.by };
        let statement = &LoggedStatement { by, ..*logged };
        match choice.reason(statement) {
            Some(reason) => not.add(reason, statement.line),
            None => sent.push(SentStatement { number, kind: statement.kind }),
        }
    }
    check_span(log, &sent, name)?;
    if sent.is_empty() {
        let can_write = not.count(Reason::Writes) + not.count(Reason::Functions) > 0;
        let remedy = if can_write { ": --writes also sends statements that write" } else { "" };
        return Err(Error::Usage(format!("{name} has nothing to send ({}){remedy}", not.in_words())));
    }
    let lacks_tables = choice.lacks_tables;
    Ok(Selection { sent, not_sent: not, unknown_calls: ran.unknown, lacks_tables })
}

/// Decides about statements, one after the other.
struct Choice<'a> {
    log: &'a Log,
    wish: &'a Wish,
    kept: Vec<bool>,
    /// Of sessions that have had something of that.
    sessions: HashMap<u32, Made>,
    /// Permanent tables that the logged server had and this one has not.
    lacking: HashSet<Vec<u8>>,
    lacks_tables: bool,
    known: &'a KnownRoutines,
}

/// What a session's connection has by what was sent, and what it lacks by what was not.
#[derive(Default)]
struct Made {
    prepared: HashSet<Vec<u8>>,
    savepoints: HashSet<Vec<u8>>,
    /// Temporary tables that the logged session had and the connection has not.
    lacking: HashSet<Vec<u8>>,
    /// The last EXECUTE was sent, so what the server logs of it once more is not.
    has_executed: bool,
}

impl Choice<'_> {
    /// Why a statement is not sent; `None` if it is.
    fn reason(&mut self, statement: &LoggedStatement) -> Option<Reason> {
        let sql = self.log.sql(statement);
        let step = if takes_steps(statement.kind) { statement::step(sql) } else { Step::None };
        let lacks_nothing = self.lacking.is_empty() && !self.sessions.contains_key(&statement.session);
        if step == Step::None && lacks_nothing {
            return self.by_class(statement);
        }
        let made = self.sessions.remove(&statement.session).unwrap_or_default();
        let reason = self.by_session(statement, &step, &made).or_else(|| self.by_class(statement));
        // What a routine made is there if its call is sent.
        let is_done = reason.is_none() || statement.by == By::Call && self.wish.writes;
        if let Step::MakeTables(names) = &step {
            self.make_tables(names, is_done);
        }
        let made = made.after(step, is_done);
        self.sessions.insert(statement.session, made);
        reason
    }

    /// Why what the session has says that a statement is not sent.
    fn by_session(&self, statement: &LoggedStatement, step: &Step, made: &Made) -> Option<Reason> {
        let is_there = match step {
            Step::Prepare { is_hidden: true, .. } => return Some(Reason::Hidden),
            Step::Execute(name) | Step::Deallocate(name) => made.prepared.contains(name),
            Step::ToSavepoint(name) => made.savepoints.contains(name),
            _ => true,
        };
        match statement.by {
            By::Call => return None,
            By::Execute if made.has_executed => return Some(Reason::Repeated),
            _ => {}
        }
        let is_lacking = || {
            let lacks = |name: &[u8]| {
                let is_made = match step {
                    Step::MakeTemporary(made) => made == name,
                    Step::MakeTables(made) => made.iter().any(|made| made == name),
                    _ => false,
                };
                !is_made && (made.lacking.contains(name) || self.lacking.contains(name))
            };
            let lacks_nothing = made.lacking.is_empty() && self.lacking.is_empty();
            !lacks_nothing && statement::names_table(self.log.sql(statement), lacks)
        };
        // What is not sent anyhow says so by its class.
        let is_sendable = || self.by_class(statement).is_none();
        (!is_there || is_sendable() && is_lacking()).then_some(Reason::Unmade)
    }

    /// Follows which tables there are that the log makes; a server that has them already needs none of that.
    fn make_tables(&mut self, names: &[Vec<u8>], is_done: bool) {
        for name in names {
            if is_done {
                self.lacking.remove(name);
            } else {
                self.lacks_tables = true;
                if self.known.tables.as_ref().is_some_and(|tables| !tables.contains(name)) {
                    self.lacking.insert(name.clone());
                }
            }
        }
    }

    /// Why a statement is not sent by what it does.
    fn by_class(&self, statement: &LoggedStatement) -> Option<Reason> {
        let (wish, schema) = (self.wish, usize::from(statement.schema));
        let is_in_servers_own = || is_system_schema(&self.log.schemas[schema]);
        match statement.class {
            _ if statement.by == By::Call => Some(Reason::Routines),
            Class::Use => Some(Reason::Sessions),
            Class::CutOff => Some(Reason::CutOff),
            Class::Administers => Some(Reason::AdministratorCommands),
            Class::Unknown | Class::Odd => Some(Reason::Unknown),
            Class::LocalFile => Some(Reason::LocalFiles),
            Class::ServerFile => Some(Reason::ServerFiles),
            Class::Placeholder => Some(Reason::Placeholders),
            Class::Several => Some(Reason::Several),
            _ if !self.kept[schema] => Some(Reason::OtherSchemas),
            Class::Functions if !wish.writes => Some(Reason::Functions),
            Class::Writes | Class::Hidden if !wish.writes => Some(Reason::Writes),
            // What is written there are accounts, rights and settings.
            Class::Writes | Class::Hidden if is_in_servers_own() && !wish.is_confined => {
                Some(Reason::AdministratorCommands)
            }
            Class::Hidden if !wish.is_confined => Some(Reason::Hidden),
            Class::Reads | Class::Functions | Class::Writes | Class::Hidden => None,
        }
    }
}

/// Whether a statement of this kind may leave something to its session.
fn takes_steps(kind: u16) -> bool {
    [statement::OTHER, statement::CREATE, statement::DROP, statement::SAVEPOINT, statement::ROLLBACK].contains(&kind)
}

impl Made {
    /// What a session has after a step that was sent, or was not.
    fn after(mut self, step: Step, is_sent: bool) -> Self {
        self.has_executed = is_sent && matches!(step, Step::Execute(_) | Step::ExecuteText);
        match step {
            Step::Prepare { name, .. } if is_sent => {
                self.prepared.insert(name);
            }
            Step::Prepare { name, .. } | Step::Deallocate(name) => {
                self.prepared.remove(&name);
            }
            Step::MakeTemporary(name) if is_sent => {
                self.lacking.remove(&name);
            }
            Step::MakeTemporary(name) => {
                self.lacking.insert(name);
            }
            Step::DropTables(names) => names.iter().for_each(|name| {
                self.lacking.remove(name);
            }),
            Step::Savepoint(name) if is_sent => {
                self.savepoints.insert(name);
            }
            _ => {}
        }
        self
    }
}

/// Of each schema of the log whether its statements are sent.
fn schemas_sent(log: &Log, wish: &Wish, name: &str) -> Result<Vec<bool>, Error> {
    let names: Vec<String> = log.schemas.iter().map(|name| String::from_utf8_lossy(name).into_owned()).collect();
    if wish.follows_schemas {
        return Ok(vec![true; names.len()]);
    }
    let mut counts: BTreeMap<u16, u64> = BTreeMap::new();
    for statement in &log.statements {
        *counts.entry(statement.schema).or_default() += 1;
    }
    let own = |name: &str| !name.is_empty() && !is_system_schema(name.as_bytes());
    let mut users: Vec<(&str, u64)> = counts
        .into_iter()
        .map(|(at, count)| (names[usize::from(at)].as_str(), count))
        .filter(|(name, _)| own(name))
        .collect();
    users.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let listed = users
        .iter()
        .take(NAMED_MAX)
        .map(|(name, count)| format!("{}: {count}", shown(name)))
        .collect::<Vec<_>>()
        .join(", ");
    let wanted = match &wish.from_schema {
        Some(wanted) if users.iter().any(|(name, _)| name == wanted) => wanted.clone(),
        Some(wanted) => {
            let text = format!(
                "--from-schema={wanted}: {name} has no statement in this schema; statements by schema: {listed}"
            );
            return Err(Error::Usage(text));
        }
        None if users.len() > 1 => {
            return Err(Error::Usage(format!(
                "{name} has statements in {} schemas ({listed}): choose one by --from-schema, or replay all by --whole-server",
                users.len()
            )));
        }
        None => users.first().map_or_else(String::new, |(name, _)| (*name).to_owned()),
    };
    Ok(names.iter().map(|name| name.is_empty() || *name == wanted).collect())
}

/// A replay of years would only wait.
fn check_span(log: &Log, sent: &[SentStatement], name: &str) -> Result<(), Error> {
    let times = || sent.iter().map(|sent| &log.statements[sent.number as usize]);
    let first = times().min_by_key(|statement| statement.start_us);
    let last = times().max_by_key(|statement| statement.start_us);
    let (Some(first), Some(last)) = (first, last) else { return Ok(()) };
    let days = (last.start_us - first.start_us) / (86_400 * 1_000_000);
    if days <= DAYS_MAX {
        return Ok(());
    }
    let (from, to) = (first.line, last.line);
    Err(Error::Usage(format!(
        "{name}:{to}: by the times of the log this statement came {days} days after the one in line {from}: leave out the \
         entries of one of them, whose session had set its timestamp"
    )))
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

    /// What is sent of a general log, whose entries stand behind the time and the thread; the reasons for the others,
    /// and whether all are counted.
    fn chosen(entries: &[&str], writes: bool) -> (Vec<String>, String) {
        let line = |entry: &&str| format!("2026-11-23T12:59:07.302048Z\t    7 {entry}\n");
        let log = Log::parse("a.log", entries.iter().map(line).collect::<String>().into_bytes()).unwrap();
        let wish = Wish { writes, is_confined: true, follows_schemas: true, from_schema: None };
        let Selection { sent, not_sent, .. } = choose(&log, &wish, "a.log", &KnownRoutines::of_log(&log)).unwrap();
        assert_eq!(sent.len() as u64 + not_sent.total(), entries.len() as u64, "{not_sent:?}");
        let sql =
            |sent: &SentStatement| String::from_utf8_lossy(log.sql(&log.statements[sent.number as usize])).into_owned();
        (sent.iter().map(sql).collect(), not_sent.in_words())
    }

    #[test]
    fn what_an_execute_executes_is_sent_once() {
        let hidden = [
            "Query\tPREPARE s FROM ...",
            "Prepare\tSELECT v FROM t WHERE id=?",
            "Query\tSET @a=2",
            "Query\tEXECUTE s USING @a",
            "Execute\tSELECT v FROM t WHERE id=2",
            "Query\tDEALLOCATE PREPARE s",
        ];
        for writes in [false, true] {
            let (sent, not) = chosen(&hidden, writes);
            assert_eq!(sent, ["SET @a=2", "SELECT v FROM t WHERE id=2"]);
            assert!(not.contains("1 with a text that the log does not show"), "{not}");
            assert!(
                not.contains("2 of a table, prepared statement or savepoint that is not there (lines 4, 6)"),
                "{not}"
            );
        }
        let shown = ["Query\tPREPARE `S` FROM 'SELECT ?'", "Prepare\tSELECT ?"];
        let shown = [
            &shown[..],
            &["Query\tEXECUTE s USING @a", "Execute\tSELECT 2", "Query\tDROP PREPARE s", "Execute\tSELECT 3"],
        ]
        .concat();
        let (sent, not) = chosen(&shown, true);
        assert_eq!(sent, ["PREPARE `S` FROM 'SELECT ?'", "EXECUTE s USING @a", "DROP PREPARE s", "SELECT 3"]);
        assert!(not.contains("1 logged a second time"), "{not}");
        // Without writes PREPARE is not sent, so the statement with its values is.
        assert_eq!(chosen(&shown, false).0, ["SELECT 2", "SELECT 3"]);
        // MariaDB logs what it makes of a text, too.
        let of_text = ["Query\tEXECUTE IMMEDIATE 'SELECT ?' USING 7", "Prepare\tSELECT ?", "Execute\tSELECT 7"];
        assert_eq!(chosen(&of_text, true).0, ["EXECUTE IMMEDIATE 'SELECT ?' USING 7"]);
        // Another session's is not this one's.
        let renewed =
            ["Query\tPREPARE s FROM 'SELECT 1'", "Change user\ta@b on shop", "Query\tEXECUTE s", "Query\tSELECT 1"];
        assert_eq!(chosen(&renewed, true).0, ["PREPARE s FROM 'SELECT 1'", "SELECT 1"]);
    }

    #[test]
    fn what_only_a_skipped_write_made_is_not_asked_for() {
        let all = [
            "Query\tCREATE TEMPORARY TABLE IF NOT EXISTS Mine SELECT 1 AS a",
            "Query\tSELECT a FROM mine",
            "Query\tSELECT 'mine'",
            "Query\tINSERT INTO mine VALUES (2)",
            "Query\tDROP TEMPORARY TABLE `mine`",
            "Query\tSELECT b FROM mine",
            "Query\tROLLBACK TO SAVEPOINT of_before",
            "Query\tSAVEPOINT a",
            "Query\tROLLBACK TO A",
            "Quit\t",
            "Query\tSELECT c FROM mine",
        ];
        let (sent, not) = chosen(&all, false);
        let read = ["SELECT 'mine'", "SELECT b FROM mine", "SAVEPOINT a", "ROLLBACK TO A", "SELECT c FROM mine"];
        assert_eq!(sent, read);
        assert!(not.starts_with("3 writes, 2 of a table, prepared statement or savepoint"), "{not}");
        assert_eq!(chosen(&all, true).0.len(), 9);
        // Of what makes it, a file is needed; then nobody can read it.
        let of_file = [
            "Query\tCREATE TEMPORARY TABLE f (i INT) DATA DIRECTORY='/x'",
            "Query\tINSERT INTO f VALUES (1)",
            "Query\tSELECT 1",
        ];
        assert_eq!(chosen(&of_file, true).0, ["SELECT 1"]);
    }

    #[test]
    fn every_entry_is_counted_once() {
        let (sent, not) = chosen(
            &[
                "Connect\ta@b on shop",
                "Init DB\tother",
                "Query\tUSE shop",
                "Query\tSELECT SLEEP(1)",
                "Query\tSELECT 'its",
                "Query\tSELECT ?",
                "Query\tSELECT 1; DROP PROCEDURE p",
                "Query\tSHUTDOWN",
                "Query\tSELCT",
                "Query\tLOAD DATA LOCAL INFILE 'a' INTO TABLE t",
                "Query\tSELECT LOAD_FILE('a')",
                "Query\tDELETE FROM t",
                "Ping\t",
                "Query\t",
                "Query\tSELECT 1",
                "Quit\t",
            ],
            false,
        );
        assert_eq!(sent, ["SELECT 1"]);
        assert_eq!(
            not,
            "1 writes, 1 with functions that may do more than read, 2 cut off (lines 5, 14), 1 with ? for values, 1 with a local file, \
             1 with a file of the server, 1 several in one (line 7), 2 administrator commands, 4 of sessions (Connect, USE, Quit), \
             1 not known (line 9)"
        );
    }
}
