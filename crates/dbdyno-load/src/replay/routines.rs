//! What stored routines, triggers and events ran of a general log: their calls run it again, so it is not sent.
//!
//! A server logs what they run as if the client had sent it, behind the statement that ran it. It is told from what the
//! client sent next by the texts of their bodies, which the log has (CREATE) or the server under test
//! (`information_schema`): of a session's statements those are a routine's that follow its call as its body has them.

use std::collections::{HashMap, HashSet};

use crate::dialect;
use crate::error::Error;
use crate::names;
use crate::protocol::session::Session;

use super::log::{By, Form, Log};
use super::not_sent::Occurrences;
use super::statement::{self, Body, Class, Comparable, Definition, Makes, called_procedure, comparable, definition};

/// Most definitions that are kept.
const DEFINITIONS_MAX: usize = 10_000;

/// Most definitions of one name, which several schemas may have.
const NAMESAKES_MAX: usize = 16;

/// Most events of a server.
const EVENTS_MAX: usize = 1000;

/// Most statements of all bodies together.
const STATEMENTS_MAX: usize = 1_000_000;

/// How far ahead in a body its next logged statement is looked for.
const AHEAD_MAX: usize = 200;

/// Deepest nesting of calls that is followed.
const DEPTH_MAX: usize = 64;

/// What is known of the routines that the logged sessions called, and of the tables of the server under test.
#[derive(Debug, Default)]
pub struct KnownRoutines {
    bodies: Vec<Body>,
    /// Statements of all bodies.
    statements: usize,
    procedures: HashMap<Vec<u8>, Vec<usize>>,
    functions: HashMap<Vec<u8>, Vec<usize>>,
    /// By their tables.
    triggers: HashMap<Vec<u8>, Vec<usize>>,
    /// Those that the server under test runs by itself.
    events: Vec<usize>,
    /// Names in small letters; `None` before the server was asked.
    pub tables: Option<HashSet<Vec<u8>>>,
}

impl KnownRoutines {
    /// What the log's own CREATE statements say.
    pub fn of_log(log: &Log) -> Self {
        let mut known = Self::default();
        if log.form == Form::General {
            let made = log.statements.iter().filter(|statement| statement.kind == statement::CREATE);
            made.filter_map(|statement| definition(log.sql(statement)))
                .filter(|definition| definition.makes != Makes::Event)
                .for_each(|definition| known.add(definition));
        }
        known
    }

    /// What the server under test has, in `schema` or in all that are not its own.
    ///
    /// # Errors
    /// It does not answer.
    pub fn ask(&mut self, session: &mut Session, schema: Option<&str>, form: Form) -> Result<(), Error> {
        let within = |column: &str| match schema {
            Some(schema) => format!("{column} = {}", names::text(schema)),
            None => dialect::is_user_schema_sql(column),
        };
        let names = session.query_long(&format!(
            "SELECT LOWER(TABLE_NAME) FROM information_schema.TABLES WHERE {}",
            within("TABLE_SCHEMA")
        ))?;
        self.tables = Some(names.into_iter().flatten().flatten().map(String::into_bytes).collect());
        if form != Form::General {
            return Ok(());
        }
        let routines = format!(
            "SELECT ROUTINE_TYPE, ROUTINE_NAME, ROUTINE_DEFINITION FROM information_schema.ROUTINES WHERE {}",
            within("ROUTINE_SCHEMA")
        );
        let triggers = format!(
            "SELECT 'TRIGGER', EVENT_OBJECT_TABLE, ACTION_STATEMENT FROM information_schema.TRIGGERS WHERE {}",
            within("EVENT_OBJECT_SCHEMA")
        );
        let events = format!(
            "SELECT 'EVENT', EVENT_NAME, EVENT_DEFINITION FROM information_schema.EVENTS \
             WHERE STATUS = 'ENABLED' AND {} AND {}",
            dialect::EVENTS_RUN_SQL,
            within("EVENT_SCHEMA")
        );
        for sql in [routines, triggers, events] {
            for row in session.query_long(&sql)? {
                // Without a right to it there is no text.
                let [Some(kind), Some(name), Some(text)] = row.as_slice() else { continue };
                let makes = match kind.as_str() {
                    "PROCEDURE" => Makes::Procedure,
                    "FUNCTION" => Makes::Function,
                    "TRIGGER" => Makes::Trigger,
                    "EVENT" => Makes::Event,
                    _ => continue,
                };
                let name = name.to_lowercase().into_bytes();
                self.add(Definition { makes, name, body: Body::read(text.as_bytes()) });
            }
        }
        Ok(())
    }

    /// The functions that a statement may call and the triggers that it may set off.
    fn run_by(&self, sql: &Comparable, may_write: bool) -> Vec<usize> {
        let functions = sql.called.iter().filter_map(|name| self.functions.get(name));
        let written = if may_write { sql.names.as_slice() } else { &[] };
        let triggers = written.iter().filter_map(|name| self.triggers.get(name));
        functions.chain(triggers).flatten().copied().collect()
    }

    fn add(&mut self, definition: Definition) {
        let statements = self.statements + definition.body.statements.len();
        if self.bodies.len() == DEFINITIONS_MAX || statements > STATEMENTS_MAX {
            return;
        }
        let of_name_max = if definition.makes == Makes::Event { EVENTS_MAX } else { NAMESAKES_MAX };
        let number = self.bodies.len();
        let of_name = match definition.makes {
            Makes::Procedure => self.procedures.entry(definition.name).or_default(),
            Makes::Function => self.functions.entry(definition.name).or_default(),
            Makes::Trigger => self.triggers.entry(definition.name).or_default(),
            Makes::Event => &mut self.events,
        };
        let is_known = of_name.iter().any(|known| self.bodies[*known] == definition.body);
        if !is_known && of_name.len() < of_name_max {
            self.statements = statements;
            of_name.push(number);
            self.bodies.push(definition.body);
        }
    }
}

/// What routines ran of a log.
#[derive(Debug, Default)]
pub struct RoutineStatements {
    /// By the numbers of statements.
    pub statements: HashSet<u32>,
    /// Calls of procedures whose text is not known.
    pub unknown: Occurrences,
}

/// Finds in a general log what routines ran.
pub fn ran(log: &Log, known: &KnownRoutines) -> RoutineStatements {
    let mut ran = RoutineStatements::default();
    if log.form != Form::General {
        return ran;
    }
    let logs_calls = logs_calls(log, known);
    let mut sessions: HashMap<u32, Running> = HashMap::new();
    for (number, statement) in (0..).zip(&log.statements) {
        let sql = log.sql(statement);
        let is_call = statement.kind == statement::CALL;
        let is_block = [statement::OTHER, statement::BEGIN].contains(&statement.kind) && statement::is_block(sql);
        let may_be_event = !log.sessions[statement.session as usize].is_connected && !known.events.is_empty();
        let may_run = is_call
            || is_block
            || may_be_event
            || !known.functions.is_empty()
            || !known.triggers.is_empty() && statement.class >= Class::Writes;
        let may_go_on = || {
            !sessions.is_empty() && sessions.get(&statement.session).is_some_and(|running| !running.calls.is_empty())
        };
        if !may_run && !may_go_on() {
            continue;
        }
        let running = sessions.entry(statement.session).or_default();
        let is_of_packet = statement.continues_packet;
        let compared = comparable(sql);
        let is_executed = statement.by == By::Execute && running.has_executed;
        let takes = !is_of_packet && (is_executed || running.takes(known, &compared.text, may_be_event));
        let is_inner = takes || statement.by == By::Call;
        if is_inner {
            ran.statements.insert(number);
        } else if !is_of_packet {
            running.calls.clear();
        }
        running.has_executed = is_inner && compared.text.starts_with(b"execute ");
        let may_write = statement.class >= Class::Writes;
        running.begin(known.run_by(&compared, may_write), true, is_of_packet);
        if is_call && let Some(name) = called_procedure(sql) {
            match known.procedures.get(&name) {
                Some(procedures) if logs_calls || is_inner => running.begin(procedures.clone(), false, is_of_packet),
                Some(_) => {}
                None => ran.unknown.at(statement.line),
            }
        }
        if is_block && logs_calls {
            running.own = Some(Body::read(sql));
            running.begin(vec![OWN], false, is_of_packet);
        }
    }
    ran
}

/// Whether the server logged what procedures ran; MariaDB does so only if configured. It is judged by the procedures
/// whose first statement is certain to run.
fn logs_calls(log: &Log, known: &KnownRoutines) -> bool {
    if known.procedures.is_empty() {
        return true;
    }
    let mut called: HashMap<u32, &[usize]> = HashMap::new();
    let begins_certainly = |number: &usize| {
        let body = &known.bodies[*number];
        let calls_function = body.called.iter().any(|name| known.functions.contains_key(name));
        !calls_function && body.statements.first().is_some_and(|first| first.is_certain)
    };
    let (mut shown, mut hidden) = (0_u64, 0_u64);
    for statement in &log.statements {
        let procedures = called.remove(&statement.session);
        let is_call = statement.kind == statement::CALL;
        if !is_call && procedures.is_none() {
            continue;
        }
        let sql = log.sql(statement);
        // What a packet's calls ran stands behind all of them.
        if statement.continues_packet {
            continue;
        }
        if let Some(procedures) = procedures {
            let text = comparable(sql).text;
            let is_shown = procedures.iter().any(|number| known.bodies[*number].statements[0].text == text);
            *(if is_shown { &mut shown } else { &mut hidden }) += 1;
        }
        if is_call
            && let Some(name) = called_procedure(sql)
            && let Some(procedures) = known.procedures.get(&name)
            && procedures.iter().all(begins_certainly)
        {
            called.insert(statement.session, procedures);
        }
    }
    hidden += called.len() as u64;
    shown >= hidden
}

/// The number of a block that a client sent, among bodies.
const OWN: usize = usize::MAX;

/// What a session's last statement of its client may still be running, the innermost last.
#[derive(Default)]
struct Running {
    calls: Vec<Call>,
    /// The block that the client sent.
    own: Option<Body>,
    /// The last statement of a routine was an EXECUTE, of which the server logs another line.
    has_executed: bool,
}

/// A routine that may be running.
struct Call {
    /// The bodies that it may be.
    bodies: Vec<usize>,
    /// Its body and the statement last run, once known.
    place: Option<(usize, usize)>,
    /// It may run again from its beginning, as a function and a trigger do for each row.
    is_repeated: bool,
}

impl Running {
    /// Whether a routine that is running, or else an event, runs the statement of this text.
    fn takes(&mut self, known: &KnownRoutines, text: &[u8], may_be_event: bool) -> bool {
        if self.goes_on(known, text) {
            return true;
        }
        if !may_be_event {
            return false;
        }
        self.calls = vec![Call { bodies: known.events.clone(), place: None, is_repeated: false }];
        self.goes_on(known, text)
    }

    /// Adds what a statement may run: before what runs already or, of a later statement of a packet, after it.
    fn begin(&mut self, bodies: Vec<usize>, is_repeated: bool, is_after: bool) {
        if !bodies.is_empty() && self.calls.len() < DEPTH_MAX {
            let at = if is_after { 0 } else { self.calls.len() };
            self.calls.insert(at, Call { bodies, place: None, is_repeated });
        }
    }

    /// Goes to the statement of this text in what is running, the innermost first; whether there is one.
    fn goes_on(&mut self, known: &KnownRoutines, text: &[u8]) -> bool {
        let own = Body::default();
        let own = self.own.as_ref().unwrap_or(&own);
        let body = |number: usize| known.bodies.get(number).unwrap_or(own);
        for depth in (0..self.calls.len()).rev() {
            let call = &mut self.calls[depth];
            if call.goes_on(&body, text) {
                self.calls.truncate(depth + 1);
                return true;
            }
            // A function in a condition or in a default runs without a statement of the body.
            let bodies = call.place.map_or_else(|| call.bodies.clone(), |(number, _)| vec![number]);
            let called = bodies.iter().flat_map(|number| &body(*number).called);
            let functions: Vec<usize> =
                called.filter_map(|name| known.functions.get(name)).flatten().copied().collect();
            let mut of_function = Call { bodies: functions, place: None, is_repeated: true };
            if of_function.goes_on(&body, text) && depth + 1 < DEPTH_MAX {
                self.calls.truncate(depth + 1);
                self.calls.push(of_function);
                return true;
            }
        }
        false
    }
}

impl Call {
    fn goes_on<'a>(&mut self, body: &impl Fn(usize) -> &'a Body, text: &[u8]) -> bool {
        if let Some((number, at)) = self.place
            && let Some(next) = next(body(number), Some(at), text)
        {
            self.place = Some((number, next));
            return true;
        }
        if self.place.is_some() && !self.is_repeated {
            return false;
        }
        let begun = self.bodies.iter().find_map(|number| Some((*number, next(body(*number), None, text)?)));
        self.place = begun.or(self.place);
        begun.is_some()
    }
}

/// The place of a statement in a body that may come after the one at `at`, or first.
fn next(body: &Body, at: Option<usize>, text: &[u8]) -> Option<usize> {
    let from = at.map_or(0, |at| at + 1);
    for (number, statement) in body.statements.iter().enumerate().skip(from).take(AHEAD_MAX) {
        let may_follow = || at.is_none_or(|at| statement.may_follow(&body.statements[at]));
        if statement.text == text && !statement.is_of_handler && may_follow() {
            return Some(number);
        }
        if statement.is_certain {
            break;
        }
    }
    let in_handler =
        body.statements.iter().take(AHEAD_MAX).any(|statement| statement.is_of_handler && statement.text == text);
    // What failed first may be what the log does not have.
    let Some(at) = at else { return in_handler.then_some(0) };
    let again = body.loops.iter().filter(|range| range.contains(&at)).find_map(|range| {
        range
            .clone()
            .take(AHEAD_MAX)
            .find(|number| body.statements.get(*number).is_some_and(|statement| statement.text == text))
    });
    again.or_else(|| in_handler.then_some(at))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The routines of a server, by their CREATE statements.
    const MADE: &[&str] = &[
        "CREATE PROCEDURE simple() BEGIN UPDATE cnt SET n = n + 1; INSERT INTO aud (w) VALUES ('simple'); END",
        "CREATE PROCEDURE one() UPDATE cnt SET n=n+10",
        "CREATE PROCEDURE params(IN x INT, OUT y INT) BEGIN INSERT INTO t (a,b) VALUES (x, 'it''s'); SELECT COUNT(*) INTO y FROM t; END",
        "CREATE PROCEDURE locals() BEGIN DECLARE v INT DEFAULT 3; SET v = v + 1; UPDATE t SET a = v WHERE id = 1; \
         IF v > 3 THEN DELETE FROM t WHERE id = v; ELSE SELECT 1; END IF; END",
        "CREATE PROCEDURE curs() BEGIN DECLARE done INT DEFAULT 0; DECLARE i INT; DECLARE c CURSOR FOR SELECT id FROM t; \
         DECLARE CONTINUE HANDLER FOR NOT FOUND SET done = 1; OPEN c; l: LOOP FETCH c INTO i; IF done THEN LEAVE l; END IF; \
         UPDATE cnt SET n = n + i; END LOOP; CLOSE c; END",
        "CREATE PROCEDURE nested() BEGIN CALL simple(); SELECT 'nested'; CALL one(); END",
        "CREATE PROCEDURE hand() BEGIN DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN INSERT INTO aud (w) VALUES ('handled'); END; \
         INSERT INTO nosuch VALUES (1); END",
        "CREATE PROCEDURE dyn() BEGIN SET @s = 'INSERT INTO aud (w) VALUES (?)'; PREPARE st FROM @s; SET @v='dyn'; \
         EXECUTE st USING @v; DEALLOCATE PREPARE st; END",
        "CREATE FUNCTION f(x INT) RETURNS INT MODIFIES SQL DATA BEGIN INSERT INTO aud (w) VALUES ('f'); RETURN x + 1; END",
        "CREATE TRIGGER tr AFTER INSERT ON t FOR EACH ROW BEGIN INSERT INTO aud (w) VALUES ('tr'); INSERT INTO aud (w) VALUES (NEW.b); END",
    ];

    /// A general log whose entries begin with their session; what a routine ran has a star before it.
    fn check(entries: &[&str], events: &[&str]) -> (usize, Occurrences) {
        let line = |entry: &&str| {
            let (session, entry) = entry.trim_start_matches('*').split_once(' ').unwrap();
            let command = ["Connect", "Execute", "Quit"].iter().find(|command| entry.starts_with(**command));
            let entry = command.map_or_else(|| format!("Query\t{entry}"), |_| entry.to_owned());
            format!("2026-11-23T12:59:07.302048Z\t    {session} {entry}\n")
        };
        let log = Log::parse("a.log", entries.iter().map(line).collect::<String>().into_bytes()).unwrap();
        let mut known = KnownRoutines::default();
        for sql in MADE.iter().chain(events) {
            known.add(definition(sql.as_bytes()).unwrap());
        }
        let routines = ran(&log, &known);
        let inner = (0..).zip(&log.statements).filter(|(number, _)| routines.statements.contains(number));
        let inner: Vec<_> = inner.map(|(_, statement)| String::from_utf8_lossy(log.sql(statement))).collect();
        let starred = entries.iter().filter_map(|entry| entry.strip_prefix('*')?.split_once(' '));
        let starred: Vec<_> = starred.map(|(_, sql)| sql.trim_start_matches("Execute\t")).collect();
        assert_eq!(inner, starred);
        (routines.statements.len(), routines.unknown)
    }

    #[test]
    fn what_routines_ran_is_told_from_what_clients_sent() {
        // As MariaDB logged it; other sessions' statements stand between.
        let log = [
            "12 CALL simple()",
            "*12 UPDATE cnt SET n = n + 1",
            "13 UPDATE cnt SET n = n + 1",
            "*12 INSERT INTO aud (w) VALUES ('simple')",
            "12 UPDATE cnt SET n = n + 1",
            "12 call shop.ONE",
            "*12 UPDATE cnt SET n=n+10",
            "12 UPDATE cnt SET n=n+10",
            "12 CALL params(5, @o)",
            "*12 INSERT INTO t (a,b) VALUES ( NAME_CONST('x',5), 'it''s')",
            "*12 INSERT INTO aud (w) VALUES ('tr')",
            "*12 INSERT INTO aud (w) VALUES (NEW.b)",
            "*12 SELECT COUNT(*) INTO y FROM t",
            "12 CALL locals()",
            "*12 UPDATE t SET a =  NAME_CONST('v',4) WHERE id = 1",
            "*12 DELETE FROM t WHERE id =  NAME_CONST('v',4)",
            "12 SELECT 1",
            "12 CALL curs()",
            "*12 UPDATE cnt SET n = n +  NAME_CONST('i',1)",
            "*12 UPDATE cnt SET n = n +  NAME_CONST('i',2)",
            "12 CALL nested()",
            "*12 CALL simple()",
            "*12 UPDATE cnt SET n = n + 1",
            "*12 INSERT INTO aud (w) VALUES ('simple')",
            "*12 SELECT 'nested'",
            "*12 CALL one()",
            "*12 UPDATE cnt SET n=n+10",
            "12 SELECT 'nested'",
            "12 CALL hand()",
            "*12 INSERT INTO nosuch VALUES (1)",
            "*12 INSERT INTO aud (w) VALUES ('handled')",
            "12 Execute\tCALL dyn()",
            "*12 SET @s = 'INSERT INTO aud (w) VALUES (?)'",
            "*12 PREPARE st FROM ...",
            "*12 SET @v='dyn'",
            "*12 EXECUTE st USING @v",
            "*12 Execute\tINSERT INTO aud (w) VALUES ('dyn')",
            "*12 DEALLOCATE PREPARE st",
            "12 SELECT f(id) FROM t",
            "*12 INSERT INTO aud (w) VALUES ('f')",
            "*12 INSERT INTO aud (w) VALUES ('f')",
            "12 INSERT INTO t (a, b) VALUES (1,'x'),(2,'y')",
            "*12 INSERT INTO aud (w) VALUES ('tr')",
            "*12 INSERT INTO aud (w) VALUES (NEW.b)",
            "*12 INSERT INTO aud (w) VALUES ('tr')",
            "*12 INSERT INTO aud (w) VALUES (NEW.b)",
            "12 INSERT INTO aud (w) VALUES ('simple')",
            "12 CALL nobody()",
            "12 BEGIN NOT ATOMIC UPDATE cnt SET n=n+5; END",
            "*12 UPDATE cnt SET n=n+5",
        ];
        assert_eq!(check(&log, &[]).1.count, 1);
        // Several calls in a packet, which the server logs as one.
        check(
            &["1 CALL one(); CALL simple()", "*1 UPDATE cnt SET n=n+10", "*1 UPDATE cnt SET n = n + 1", "1 SELECT 1"],
            &[],
        );
        check(
            &["1 CALL one(); CALL simple();", "*1 UPDATE cnt SET n=n+10", "*1 UPDATE cnt SET n = n + 1", "1 SELECT 1"],
            &[],
        );
        // What a client executes after a routine that ended with an EXECUTE is its own.
        let executes = [
            "12 CALL dyn()",
            "*12 SET @s = 'INSERT INTO aud (w) VALUES (?)'",
            "*12 PREPARE st FROM ...",
            "*12 SET @v='dyn'",
            "*12 EXECUTE st USING @v",
            "*12 Execute\tINSERT INTO aud (w) VALUES ('dyn')",
            "12 Execute\tSELECT 5",
            "12 Execute\tSELECT 5",
        ];
        check(&executes, &[]);
        check(&["1 CALL one(); UPDATE cnt SET n=n+10", "*1 UPDATE cnt SET n=n+10", "1 UPDATE cnt SET n=n+10"], &[]);
    }

    #[test]
    fn a_server_that_logs_no_procedures_still_logs_functions() {
        // MariaDB, unless `sp` is taken from log_disabled_statements.
        let log = [
            "12 CALL simple()",
            "12 SELECT 1",
            "12 CALL one()",
            "12 SELECT 2",
            "12 CALL one()",
            "12 UPDATE cnt SET n=n+10",
            "12 SELECT f(1)",
            "*12 INSERT INTO aud (w) VALUES ('f')",
        ];
        assert_eq!(check(&log, &[]).0, 1);
    }

    #[test]
    fn an_event_runs_in_a_session_without_a_beginning() {
        let event =
            "CREATE EVENT e ON SCHEDULE EVERY 1 SECOND DO BEGIN UPDATE cnt SET n = n + 1000; CALL simple(); END";
        let log = [
            "7 Connect\ta@b on shop",
            "*9 UPDATE cnt SET n = n + 1000",
            "*9 CALL simple()",
            "*9 UPDATE cnt SET n = n + 1",
            "*9 INSERT INTO aud (w) VALUES ('simple')",
            "7 UPDATE cnt SET n = n + 1000",
        ];
        assert_eq!(check(&log, &[event]).0, 4);
        let unstarred: Vec<&str> = log[1..].iter().map(|entry| entry.trim_start_matches('*')).take(1).collect();
        // A server that does not run it leaves it to the replay.
        assert_eq!(check(&unstarred, &[]).0, 0);
    }
}
