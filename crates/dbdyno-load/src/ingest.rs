//! The verb `ingest`: rows streamed into one table with secondary indexes, by a stored procedure or by statements.
//!
//! Data flows one way: flags ([`Options`]) -> statements -> the clients that send them. A run's rows are split into
//! events, and the events among clients.

use std::fmt::Write as _;

use dbdyno_common::random::Random;

use crate::error::Error;
use crate::flags::Flag;
use crate::names::{self, quoted};
use crate::protocol::packet::{self, Parameter, RequestEncoder};
use crate::protocol::session::Session;
use crate::statements::{After, Kind, Next, Part, Statement, Statements};
use crate::table_options;
use crate::tables::{OwnTable, Owner};
use crate::text::shown;
use crate::values::Values;
use crate::verb::Verb;
use crate::workload::{Portion, ServerState, Stepwise, Workload};

const ABOUT: &str = "\
Adds rows to a table with an AUTO_INCREMENT key, three random integers with an index each, and a varchar(100) of 40
characters. A run ends after --rows of all clients together, or by --duration or --events.

--mode=procedure: an event is a CALL of a stored procedure that adds --rows-per-call rows. Its latency is time in the
server alone, without the round trips, parsing and client's work on which single rows spend most of their time: divide it
by the rows, and do not compare it with the latency of a statement. Rows are counted when their CALL ends: --report-rows,
--series and --duration cannot be finer than that. A CALL must end within --stall-timeout. The server's RAND() makes the
values, so --seed has no effect on them.

--mode=statement: an event is an INSERT of --rows-per-insert rows, or with a greater --rows-per-commit a transaction of
such INSERTs; its latency includes all round trips. A refused transaction is rolled back and tried again, a refused
INSERT or CALL is not.

With --rows-per-commit=1, as in engines without transactions, every row of a CALL, or every INSERT, commits by itself and
with InnoDB waits for the log to be flushed. With more, a CALL commits after that many rows and at its end.

prepare always makes the procedure too, so that both modes can run on one table.

";

/// The verb.
pub static VERB: Verb = Verb {
    name: "ingest",
    about: ABOUT,
    flags: FLAGS,
    loads: &[],
    word: None,
    has_phase_flag: false,
    workload: make,
    own: None,
};

fn make(values: &Values<'_>, load: &str) -> Result<Box<dyn Stepwise>, Error> {
    if !load.is_empty() {
        return Err(Error::Usage(format!("ingest has no load {load:?}: see --mode")));
    }
    Ok(Box::new(Ingest { options: Options::read(values)? }))
}

/// The load with its options.
#[derive(Debug)]
struct Ingest {
    options: Options,
}

impl Ingest {
    fn procedure(&self, session: &mut Session) -> Result<Owner, Error> {
        let table = &self.options.table;
        let rows = session.query(&format!(
            "SELECT ROUTINE_COMMENT FROM information_schema.ROUTINES \
             WHERE ROUTINE_SCHEMA = {} AND ROUTINE_NAME = '{PROCEDURE}'",
            names::text(&table.schema)
        ))?;
        let comment = rows.into_iter().next().map(|row| row.into_iter().flatten().next().unwrap_or_default());
        Ok(Owner::by_comment(comment.as_deref(), &table.comment()))
    }

    fn foreign(&self) -> Error {
        Error::Usage(format!(
            "the procedure {}.{PROCEDURE} was not made by dbdyno ingest: name another schema with --schema",
            self.options.table.schema
        ))
    }

    fn drop_procedure(&self) -> String {
        format!("DROP PROCEDURE {}.{PROCEDURE}", quoted(&self.options.table.schema))
    }

    fn fill(&self, session: &mut Session) -> Result<(), Error> {
        let options = &self.options;
        let table = &options.table;
        let mut random = Random::new(options.seed);
        let text = String::from_utf8_lossy(TEXT);
        table.fill(session, COLUMNS, options.initial_rows, |sql| {
            let [b1, b2, b3] = [(); 3].map(|()| random.below(u64::from(options.value_range) + 1));
            // Writing to a string cannot fail.
            let _ = write!(sql, "({b1},{b2},{b3},'{text}')");
        })?;
        session.execute(&format!("ALTER TABLE {} {}", table.qualified(), add_indexes()))
    }

    /// prepare adds the indexes last, so that a table without them was not finished.
    fn check_indexes(&self, session: &mut Session) -> Result<(), Error> {
        let table = &self.options.table;
        let rows = session.values(&format!(
            "SELECT COLUMN_NAME FROM information_schema.STATISTICS {} AND INDEX_NAME <> 'PRIMARY' ORDER BY COLUMN_NAME",
            table.filter()
        ))?;
        if rows != INDEXED {
            return Err(table.unfit(&format!(
                "has indexes on ({}), this load needs ({})",
                shown(&rows.join(", ")),
                INDEXED.join(", ")
            )));
        }
        Ok(())
    }

    fn check_rows(&self, session: &mut Session) -> Result<(), Error> {
        let table = &self.options.table;
        let last = session.value(&format!("SELECT COALESCE(MAX(id), 0) FROM {}", table.qualified()))?.unwrap_or(0_u64);
        if last < self.options.initial_rows {
            return Err(
                table.unfit(&format!("has at most {last} rows, but --initial-rows={}", self.options.initial_rows))
            );
        }
        Ok(())
    }
}

impl Workload for Ingest {
    fn load(&self) -> &str {
        match self.options.mode {
            Mode::Procedure => "procedure",
            Mode::Insert | Mode::Transaction => "statement",
        }
    }

    fn schema(&self) -> &str {
        &self.options.table.schema
    }

    fn kinds(&self) -> Vec<Kind> {
        match self.options.mode {
            Mode::Procedure => vec![Kind::query("call")],
            Mode::Insert => vec![Kind::query("insert")],
            Mode::Transaction => {
                vec![Kind::query("insert"), Kind::apart("begin"), Kind::apart("commit"), Kind::apart("rollback")]
            }
        }
    }

    fn prepared(&self) -> Vec<String> {
        prepared(&self.options)
    }

    fn statements(&self, portion: Portion) -> Result<Box<dyn Statements + '_>, Error> {
        Ok(Box::new(Writer::new(&self.options, portion)))
    }
}

impl Stepwise for Ingest {
    fn is_bounded(&self) -> bool {
        self.options.rows.is_some()
    }

    fn prepare(&self, session: &mut Session, begun: &mut bool) -> Result<(), Error> {
        let table = &self.options.table;
        let before = self.procedure(session)?;
        if before == Owner::Other {
            return Err(self.foreign());
        }
        table.make(session, DEFINITION, begun)?;
        if before == Owner::Verb {
            // Left without its table.
            session.execute(&self.drop_procedure())?;
        }
        let create = create_procedure(&quoted(&table.schema), &table.comment());
        session.execute(&create)?;
        self.fill(session)
    }

    fn check(&self, session: &mut Session) -> Result<ServerState, Error> {
        let table = &self.options.table;
        let columns = table.check(session, &FOUND.map(str::to_owned))?;
        self.check_indexes(session)?;
        self.check_rows(session)?;
        if self.options.mode == Mode::Procedure {
            match self.procedure(session)? {
                Owner::Verb => {}
                Owner::Other => return Err(self.foreign()),
                Owner::Absent => return Err(table.unfit(&format!("lacks the procedure {PROCEDURE} beside it"))),
            }
        }
        Ok(columns)
    }

    fn cleanup(&self, session: &mut Session) -> Result<(), Error> {
        let table = &self.options.table;
        match self.procedure(session)? {
            Owner::Absent => {}
            Owner::Other => return Err(self.foreign()),
            Owner::Verb => session.execute(&self.drop_procedure())?,
        }
        table.drop(session)
    }
}

/// Name of the table.
const TABLE: &str = "ingest";

/// Largest value of an indexed column, an INT.
const VALUE_MAX: u32 = i32::MAX as u32;

/// Rows of one event; [`crate::statements::Statement::rows`] holds them.
const EVENT_ROWS_MAX: u32 = 1_000_000_000;

/// Rows of one INSERT: a prepared one takes at most 65,535 parameters, four for each row.
const INSERT_ROWS_MAX: u32 = 10_000;

/// The flags.
const FLAGS: &[Flag] = &[
    Flag::value("mode", "procedure: rows are made by CALLs; statement: by INSERTs"),
    Flag::value("rows", "rows that all clients add together, instead of a duration or a number of events"),
    Flag::value("report-rows", "print a line after this many rows; 0: never"),
    Flag::value("rows-per-call", "procedure: rows per CALL"),
    Flag::value("rows-per-insert", "statement: rows per INSERT"),
    Flag::value("rows-per-commit", "rows per transaction; 1: every INSERT commits by itself"),
    Flag::value("value-range", "greatest indexed value; the least is 0"),
    Flag::value("initial-rows", "rows that prepare adds"),
    Flag::value("db-ps-mode", "auto: prepared statements; disable: text"),
    Flag::value("engine", "storage engine (the server's default)").short('e'),
    Flag::value(table_options::FLAG, table_options::HELP),
    Flag::value("schema", "schema of the table"),
];

/// How rows are added.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// By a stored procedure; an event is a CALL.
    Procedure,
    /// By INSERTs that commit by themselves; an event is an INSERT.
    Insert,
    /// By transactions of some INSERTs; an event is a transaction.
    Transaction,
}

/// All options.
#[derive(Debug, Clone)]
#[allow(missing_docs)]
struct Options {
    pub mode: Mode,
    pub table: OwnTable,
    /// Of a whole run; else something outside bounds it.
    pub rows: Option<u64>,
    pub rows_per_event: u32,
    pub rows_per_insert: u32,
    pub rows_per_commit: u32,
    pub value_range: u32,
    pub initial_rows: u64,
    /// Prepared statements are used.
    pub prepared: bool,
    /// Of the rows that prepare makes.
    pub seed: u64,
}

impl Options {
    /// Reads them.
    ///
    /// # Errors
    /// A value that is none or out of range, or two that contradict each other.
    pub fn read(values: &Values<'_>) -> Result<Self, Error> {
        let by_call = values.choice("mode", &[("procedure", true), ("statement", false)], true)?;
        let rows_per_call = values.within("rows-per-call", 1000, 1..=EVENT_ROWS_MAX)?;
        let rows_per_insert = values.within("rows-per-insert", 1, 1..=INSERT_ROWS_MAX)?;
        let rows_per_commit = values.within("rows-per-commit", 1, 1..=EVENT_ROWS_MAX)?;
        let (mode, rows_per_event) = if by_call {
            (Mode::Procedure, rows_per_call)
        } else if rows_per_commit <= rows_per_insert {
            (Mode::Insert, rows_per_insert)
        } else {
            (Mode::Transaction, rows_per_commit)
        };
        if by_call && rows_per_commit > rows_per_call {
            return Err(Error::Usage(format!(
                "--rows-per-commit={rows_per_commit}: a CALL commits at its end, so give at most its \
                 --rows-per-call={rows_per_call}"
            )));
        }
        if mode == Mode::Transaction && rows_per_commit % rows_per_insert != 0 {
            return Err(Error::Usage(format!(
                "--rows-per-commit={rows_per_commit}: give a multiple of --rows-per-insert={rows_per_insert}"
            )));
        }
        Ok(Self {
            mode,
            table: OwnTable::read(values, "ingest", TABLE, "dbdyno_ingest")?,
            rows: values.text("rows").map(|_| values.positive("rows", 1)).transpose()?,
            rows_per_event,
            rows_per_insert,
            rows_per_commit,
            value_range: values.within("value-range", 100_000_000, 1..=VALUE_MAX)?,
            initial_rows: values.number("initial-rows", 0)?,
            prepared: values.choice("db-ps-mode", &[("auto", true), ("disable", false)], true)?,
            seed: values.number("seed", 1)?,
        })
    }
}

/// Kinds, in the order of [`crate::workload::Workload::kinds`].
const WRITES: u16 = 0;
const BEGIN: u16 = 1;
const COMMIT: u16 = 2;
const ROLLBACK: u16 = 3;

/// A client.
#[derive(Debug)]
struct Cursor {
    share: Share,
    /// Events that are done.
    done: u64,
    /// Statements of the open event that were sent.
    sent: u32,
    /// The open transaction failed and is to be rolled back before it is tried again.
    broken: bool,
    random: Random,
}

/// The clients of one thread.
#[derive(Debug)]
struct Writer<'a> {
    options: &'a Options,
    clients: Vec<Cursor>,
    /// CALLs of whole events, and of the last.
    call: Vec<u8>,
    call_last: Vec<u8>,
    begin: Vec<u8>,
    commit: Vec<u8>,
    rollback: Vec<u8>,
    /// The text INSERT, whose head stays.
    insert: Vec<u8>,
    head_length: usize,
    /// Of the prepared INSERT.
    parameters: Vec<Parameter<'static>>,
}

impl<'a> Writer<'a> {
    /// Clients that share the rows of a run.
    pub fn new(options: &'a Options, portion: Portion) -> Self {
        // A warm-up ends by time alone.
        let rows = options.rows.filter(|_| !portion.warmup);
        let share = |client| Share::new(client, portion.of as u64, rows, options.rows_per_event);
        let clients = (portion.first..).zip(portion.generators()).map(|(number, random)| Cursor {
            share: share(number as u64),
            done: 0,
            sent: 0,
            broken: false,
            random,
        });
        let rows_last = rows.map_or(options.rows_per_event, |rows| rows_of_last(rows, options.rows_per_event));
        let insert = insert_head().into_bytes();
        let row = [Parameter::Integer(0), Parameter::Integer(0), Parameter::Integer(0), Parameter::Text(TEXT)];
        Self {
            options,
            clients: clients.collect(),
            call: call(options, options.rows_per_event),
            call_last: call(options, rows_last),
            begin: packet::query(b"BEGIN"),
            commit: packet::query(b"COMMIT"),
            rollback: packet::query(b"ROLLBACK"),
            head_length: insert.len(),
            insert,
            parameters: row.repeat(options.rows_per_insert as usize),
        }
    }

    fn write_call(&mut self, rows: u32, encoder: &mut RequestEncoder<'_>) {
        let options = self.options;
        if options.prepared {
            let parameters = [rows, options.value_range, options.rows_per_commit];
            encoder.execute(0, &parameters.map(|number| Parameter::Integer(number.into())));
        } else {
            encoder.packets(if rows == options.rows_per_event { &self.call } else { &self.call_last });
        }
    }

    fn write_insert(&mut self, client: usize, rows: u32, encoder: &mut RequestEncoder<'_>) {
        let options = self.options;
        let random = &mut self.clients[client].random;
        // Uniform over 0..=range, as the procedure's values but for its half as likely ends.
        let mut value = || i64::from(random.below(u64::from(options.value_range) + 1) as u32);
        // A smaller one was not prepared.
        if options.prepared && rows == options.rows_per_insert {
            for row in self.parameters.chunks_exact_mut(4) {
                row[..3].fill_with(|| Parameter::Integer(value()));
            }
            encoder.execute(0, &self.parameters);
            return;
        }
        self.insert.truncate(self.head_length);
        for row in 0..rows {
            self.insert.extend_from_slice(if row == 0 { b"(" } else { b",(" });
            for _ in 0..3 {
                self.insert.extend_from_slice(itoa::Buffer::new().format(value()).as_bytes());
                self.insert.push(b',');
            }
            self.insert.push(b'\'');
            self.insert.extend_from_slice(TEXT);
            self.insert.extend_from_slice(b"')");
        }
        encoder.query(&[&self.insert]);
    }

    /// Statement number `place` of a transaction that adds `rows` rows.
    fn write_in_transaction(
        &mut self,
        client: usize,
        place: u32,
        rows: u32,
        encoder: &mut RequestEncoder<'_>,
    ) -> Statement {
        let per_insert = self.options.rows_per_insert;
        let inner = |kind| Statement { kind, part: Part::Inner, rows: 0, phase: 0 };
        if place == 0 {
            encoder.packets(&self.begin);
            return inner(BEGIN);
        }
        let before = (place - 1) * per_insert;
        if before < rows {
            self.write_insert(client, per_insert.min(rows - before), encoder);
            return inner(WRITES);
        }
        encoder.packets(&self.commit);
        // Only now are they there for good.
        Statement { kind: COMMIT, part: Part::Last, rows, phase: 0 }
    }
}

impl Statements for Writer<'_> {
    #[inline]
    fn next(&mut self, client: usize, encoder: &mut RequestEncoder<'_>) -> Next {
        let options = self.options;
        let this = &mut self.clients[client];
        if this.broken {
            this.broken = false;
            encoder.packets(&self.rollback);
            return Next::Send(Statement { kind: ROLLBACK, part: Part::Inner, rows: 0, phase: 0 });
        }
        let rows = this.share.event(this.done);
        let statements = match (options.mode, rows) {
            (Mode::Transaction, Some(rows)) => rows.div_ceil(options.rows_per_insert) + 2,
            _ => 1,
        };
        if this.sent == statements {
            this.sent = 0;
            this.done += 1;
        }
        let Some(rows) = this.share.event(this.done) else {
            return Next::Done;
        };
        let place = this.sent;
        this.sent += 1;
        Next::Send(match options.mode {
            Mode::Transaction => self.write_in_transaction(client, place, rows, encoder),
            Mode::Procedure => {
                self.write_call(rows, encoder);
                Statement { kind: WRITES, part: Part::Last, rows, phase: 0 }
            }
            Mode::Insert => {
                self.write_insert(client, rows, encoder);
                Statement { kind: WRITES, part: Part::Last, rows, phase: 0 }
            }
        })
    }

    /// A transaction is tried again; rows that commit by themselves are not, as some of them may be there.
    fn refused(&mut self, client: usize, _code: u16) -> After {
        let again = self.reconnected(client);
        self.clients[client].broken = again == After::StartOver;
        again
    }

    /// The server rolled back what did not commit. If the COMMIT itself was in flight, it is unknown whether it did,
    /// and its rows may be there twice.
    fn reconnected(&mut self, client: usize) -> After {
        if self.options.mode != Mode::Transaction {
            return After::GoOn;
        }
        let this = &mut self.clients[client];
        this.sent = 0;
        this.broken = false;
        After::StartOver
    }
}

/// Name of the procedure.
const PROCEDURE: &str = "ingest_rows";

/// The columns that a row gives values to.
const COLUMNS: &str = "b1, b2, b3, c";

/// Columns that get an index each.
const INDEXED: [&str; 3] = ["b1", "b2", "b3"];

/// What column `c` holds.
const TEXT: &[u8; 40] = b"1111111111111111111111111111111111111111";

/// CREATE TABLE's list; indexes come when the initial rows are there, which is faster.
const DEFINITION: &str = "id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY, \
    b1 INT NOT NULL, b2 INT NOT NULL, b3 INT NOT NULL, c VARCHAR(100) CHARACTER SET latin1 NOT NULL";

/// The columns as the server reports them.
const FOUND: [&str; 5] = ["id bigint", "b1 int", "b2 int", "b3 int", "c varchar(100)"];

/// CREATE PROCEDURE in the schema called `schema`, which is quoted for SQL.
///
/// Without transactions of its own (`rows_per_commit` of 1) every row commits by itself where the engine commits at
/// all. With them, an error takes back what did not commit.
fn create_procedure(schema: &str, comment: &str) -> String {
    format!(
        "CREATE PROCEDURE {schema}.{PROCEDURE} \
         (IN row_count BIGINT, IN value_range BIGINT, IN rows_per_commit BIGINT) \
         MODIFIES SQL DATA SQL SECURITY INVOKER COMMENT '{comment}' \
         BEGIN \
           DECLARE done BIGINT DEFAULT 0; \
           DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK; RESIGNAL; END; \
           IF rows_per_commit > 1 THEN START TRANSACTION; END IF; \
           WHILE done < row_count DO \
             INSERT INTO ingest ({COLUMNS}) VALUES \
               (RAND() * value_range, RAND() * value_range, RAND() * value_range, REPEAT('1', {length})); \
             SET done = done + 1; \
             IF rows_per_commit > 1 AND done MOD rows_per_commit = 0 AND done < row_count THEN \
               COMMIT AND CHAIN; \
             END IF; \
           END WHILE; \
           IF rows_per_commit > 1 THEN COMMIT; END IF; \
         END",
        length = TEXT.len()
    )
}

/// ALTER TABLE's list that adds the indexes.
fn add_indexes() -> String {
    INDEXED.map(|column| format!("ADD INDEX ({column})")).join(", ")
}

/// The head of every INSERT.
fn insert_head() -> String {
    format!("INSERT INTO ingest ({COLUMNS}) VALUES ")
}

/// What is prepared on each connection.
fn prepared(options: &Options) -> Vec<String> {
    if !options.prepared {
        return Vec::new();
    }
    vec![match options.mode {
        Mode::Procedure => format!("CALL {PROCEDURE}(?, ?, ?)"),
        Mode::Insert | Mode::Transaction => {
            insert_head() + &vec!["(?, ?, ?, ?)"; options.rows_per_insert as usize].join(",")
        }
    }]
}

/// The packets of a CALL that adds `rows` rows.
fn call(options: &Options, rows: u32) -> Vec<u8> {
    let sql = format!("CALL {PROCEDURE}({rows}, {}, {})", options.value_range, options.rows_per_commit);
    packet::query(sql.as_bytes())
}

/// The events of one client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Share {
    /// How many; `None` for as many as time allows.
    pub events: Option<u64>,
    /// Rows of each.
    pub rows: u32,
    /// Rows of the last, which may be fewer.
    pub rows_last: u32,
}

impl Share {
    /// The share of client number `client` of `clients`, of a run of `rows` in all with `rows_per_event` in each event
    /// but the last. Event number n is of client n modulo `clients`.
    pub fn new(client: u64, clients: u64, rows: Option<u64>, rows_per_event: u32) -> Self {
        let Some(rows) = rows else {
            return Self { events: None, rows: rows_per_event, rows_last: rows_per_event };
        };
        let events = rows.div_ceil(u64::from(rows_per_event));
        let mine = events / clients + u64::from(client < events % clients);
        let has_last = events > 0 && client == (events - 1) % clients;
        let rows_last = if has_last { rows_of_last(rows, rows_per_event) } else { rows_per_event };
        Self { events: Some(mine), rows: rows_per_event, rows_last }
    }

    /// Rows of event number `event` of this client, from 0; `None` after its last.
    #[inline]
    pub fn event(&self, event: u64) -> Option<u32> {
        match self.events {
            Some(events) if event >= events => None,
            Some(events) if event + 1 == events => Some(self.rows_last),
            None | Some(_) => Some(self.rows),
        }
    }
}

/// Rows of the last event of a run of `rows` rows.
fn rows_of_last(rows: u64, rows_per_event: u32) -> u32 {
    match rows % u64::from(rows_per_event) {
        0 => rows_per_event,
        rest => rest as u32,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::protocol::packet::Prepared;

    fn read(flags: &[(&'static str, &'static str)]) -> Result<Options, String> {
        Options::read(&Values::of(flags)).map_err(|error| error.to_string())
    }

    #[test]
    fn an_event_is_what_commits_or_calls() {
        let event = |flags: &[_]| read(flags).map(|options| (options.mode, options.rows_per_event));
        let statement = ("mode", "statement");
        assert_eq!(event(&[]), Ok((Mode::Procedure, 1000)));
        // A flag of the other mode says nothing, so that a study may vary the mode alone.
        assert_eq!(event(&[("rows-per-call", "7"), ("rows-per-insert", "5")]), Ok((Mode::Procedure, 7)));
        assert_eq!(event(&[statement]), Ok((Mode::Insert, 1)));
        assert_eq!(event(&[statement, ("rows-per-insert", "5"), ("rows-per-commit", "3")]), Ok((Mode::Insert, 5)));
        let both = [statement, ("rows-per-insert", "5"), ("rows-per-commit", "15")];
        assert_eq!(event(&both), Ok((Mode::Transaction, 15)));
    }

    #[test]
    fn contradictions_are_named() {
        let message = |flags: &[_]| read(flags).unwrap_err();
        let statement = ("mode", "statement");
        assert!(message(&[("rows-per-commit", "2000")]).contains("at most its --rows-per-call=1000"));
        assert!(message(&[statement, ("rows-per-insert", "4"), ("rows-per-commit", "6")]).contains("a multiple"));
        assert!(message(&[("value-range", "2147483648")]).contains("1 to 2147483647"));
        assert!(message(&[("rows", "0")]).contains("at least 1"));
    }

    fn options(flags: &[(&'static str, &'static str)]) -> Options {
        Options::read(&Values::of(flags)).unwrap()
    }

    fn portion(first: usize, clients: usize, of: usize) -> Portion {
        Portion { first, clients, of, seed: 1, warmup: false }
    }

    /// The next statement and its bytes behind the header.
    fn say(writer: &mut Writer<'_>, client: usize, parameters: u16) -> Option<(Statement, Vec<u8>)> {
        let mut out = Vec::new();
        let mut prepared = [Prepared { id: 9, parameters, bound: true }];
        match writer.next(client, &mut RequestEncoder::new(&mut out, &mut prepared)) {
            Next::Send(statement) => Some((statement, out.split_off(4))),
            Next::Done => None,
            Next::Reconnect => panic!("nothing asks for that"),
        }
    }

    fn text(writer: &mut Writer<'_>, client: usize) -> Option<(Statement, String)> {
        say(writer, client, 0).map(|(statement, bytes)| {
            assert_eq!(bytes[0], 3);
            (statement, String::from_utf8(bytes[1..].to_vec()).unwrap())
        })
    }

    /// Everything a client says, as texts with the rows that each adds.
    fn all(writer: &mut Writer<'_>, client: usize) -> Vec<(String, u32)> {
        std::iter::from_fn(|| text(writer, client)).map(|(statement, sql)| (sql, statement.rows)).collect()
    }

    const TEXT_MODE: (&str, &str) = ("db-ps-mode", "disable");
    const STATEMENT: (&str, &str) = ("mode", "statement");

    #[test]
    fn the_last_call_adds_what_is_left() {
        let options = options(&[TEXT_MODE, ("rows", "2500"), ("rows-per-commit", "100")]);
        let mut writer = Writer::new(&options, portion(0, 2, 2));
        let call = |rows: u32| (format!("CALL ingest_rows({rows}, 100000000, 100)"), rows);
        assert_eq!(all(&mut writer, 0), [call(1000), call(500)]);
        assert_eq!(all(&mut writer, 1), [call(1000)]);
        assert_eq!(text(&mut writer, 1), None);
    }

    #[test]
    fn a_prepared_call_has_its_numbers_bound() {
        let options = options(&[("rows", "7"), ("rows-per-call", "5"), ("value-range", "9")]);
        let mut writer = Writer::new(&options, portion(0, 1, 1));
        for rows in [5, 2] {
            let (statement, bytes) = say(&mut writer, 0, 3).unwrap();
            assert_eq!((statement.rows, statement.part), (rows, Part::Last));
            assert!(bytes.ends_with(&[i64::from(rows), 9, 1].map(i64::to_le_bytes).concat()));
        }
        assert_eq!(say(&mut writer, 0, 3), None);
    }

    #[test]
    fn inserts_have_values_within_their_range() {
        let options = options(&[TEXT_MODE, STATEMENT, ("rows", "500"), ("value-range", "3"), ("rows-per-insert", "7")]);
        let mut writer = Writer::new(&options, portion(0, 1, 1));
        let texts = all(&mut writer, 0);
        assert_eq!(texts.len(), 72);
        assert_eq!(texts[71].1, 3);
        let mut counts = [0; 4];
        for (sql, rows) in &texts {
            let values = sql.strip_prefix("INSERT INTO ingest (b1, b2, b3, c) VALUES ").unwrap();
            let row_texts: Vec<&str> = values.trim_matches(['(', ')']).split("),(").collect();
            assert_eq!(row_texts.len(), *rows as usize);
            for row in row_texts {
                let values: Vec<&str> = row.split(',').collect();
                assert_eq!(values[3], format!("'{}'", "1".repeat(40)));
                values[..3].iter().for_each(|value| counts[value.parse::<usize>().unwrap()] += 1);
            }
        }
        assert_eq!(counts.iter().sum::<u32>(), 1500);
        assert!(counts.iter().all(|count| (310..440).contains(count)), "{counts:?}");
    }

    #[test]
    fn a_prepared_insert_binds_whole_rows_and_a_smaller_one_is_a_text() {
        let options = options(&[STATEMENT, ("rows", "5"), ("rows-per-insert", "3")]);
        let mut writer = Writer::new(&options, portion(0, 1, 1));
        let (statement, bytes) = say(&mut writer, 0, 12).unwrap();
        assert_eq!((statement.rows, bytes[0]), (3, 0x17));
        assert!(bytes.ends_with(&[&[40][..], TEXT].concat()));
        assert_eq!(bytes.windows(TEXT.len()).filter(|window| window == TEXT).count(), 3);
        let (statement, sql) = text(&mut writer, 0).unwrap();
        assert_eq!((statement.rows, sql.matches("),(").count()), (2, 1));
    }

    #[test]
    fn a_transaction_is_one_event_and_counts_when_it_commits() {
        let flags = [TEXT_MODE, STATEMENT, ("rows", "7"), ("rows-per-insert", "2"), ("rows-per-commit", "4")];
        let options = options(&flags);
        let mut writer = Writer::new(&options, portion(0, 1, 1));
        let mut statements = Vec::new();
        while let Some((statement, sql)) = text(&mut writer, 0) {
            statements.push((statement.kind, statement.part, statement.rows, sql.matches("),(").count()));
        }
        let (inner, last) = (Part::Inner, Part::Last);
        let whole = [(BEGIN, inner, 0, 0), (WRITES, inner, 0, 1), (WRITES, inner, 0, 1), (COMMIT, last, 4, 0)];
        let rest = [(BEGIN, inner, 0, 0), (WRITES, inner, 0, 1), (WRITES, inner, 0, 0), (COMMIT, last, 3, 0)];
        assert_eq!(statements, [whole, rest].concat());
    }

    #[test]
    fn a_refused_transaction_is_rolled_back_and_tried_again() {
        let options = options(&[TEXT_MODE, STATEMENT, ("rows", "3"), ("rows-per-commit", "3")]);
        for refused_at in 1..=5 {
            let mut writer = Writer::new(&options, portion(0, 1, 1));
            let kinds = |writer: &mut Writer<'_>| text(writer, 0).map(|(statement, _)| statement.kind);
            for _ in 0..refused_at {
                kinds(&mut writer).unwrap();
            }
            assert_eq!(writer.refused(0, 1213), After::StartOver);
            let rest: Vec<u16> = std::iter::from_fn(|| kinds(&mut writer)).collect();
            assert_eq!(rest, [ROLLBACK, BEGIN, WRITES, WRITES, WRITES, COMMIT]);
        }
        let mut writer = Writer::new(&options, portion(0, 1, 1));
        text(&mut writer, 0);
        assert_eq!(writer.reconnected(0), After::StartOver);
        assert_eq!(text(&mut writer, 0).map(|(statement, _)| statement.kind), Some(BEGIN));
    }

    #[test]
    fn a_refused_insert_is_not_tried_again() {
        let options = options(&[TEXT_MODE, STATEMENT, ("rows", "2")]);
        let mut writer = Writer::new(&options, portion(0, 1, 1));
        text(&mut writer, 0);
        assert_eq!((writer.refused(0, 1213), writer.reconnected(0)), (After::GoOn, After::GoOn));
        assert_eq!(all(&mut writer, 0).len(), 1);
    }

    #[test]
    fn a_warm_up_ends_by_time_only_and_threads_share_the_rows() {
        let options = options(&[TEXT_MODE, STATEMENT, ("rows", "10")]);
        let warm = Portion { warmup: true, ..portion(0, 1, 1) };
        let mut writer = Writer::new(&options, warm);
        assert!((0..100).all(|_| text(&mut writer, 0).is_some()));
        let counts = [portion(0, 2, 3), portion(2, 1, 3)].map(|portion| {
            let mut writer = Writer::new(&options, portion);
            (0..portion.clients).map(|client| all(&mut writer, client).len()).sum::<usize>()
        });
        assert_eq!(counts, [7, 3]);
    }

    #[test]
    fn only_the_last_event_is_smaller() {
        let shares = [0, 1, 2].map(|client| Share::new(client, 3, Some(41), 10));
        let rows = shares.map(|share| (0..3).map_while(|event| share.event(event)).collect::<Vec<_>>());
        assert_eq!(rows, [vec![10, 10], vec![10, 1], vec![10]]);
        assert_eq!(Share::new(7, 8, None, 10).event(u64::MAX), Some(10));
    }

    proptest! {
        #[test]
        fn shares_add_up(rows in 1_u64..5000, rows_per_event in 1_u32..300, clients in 1_u64..70) {
            let shares: Vec<Share> = (0..clients).map(|n| Share::new(n, clients, Some(rows), rows_per_event)).collect();
            let events: u64 = shares.iter().map(|share| share.events.unwrap()).sum();
            prop_assert_eq!(events, rows.div_ceil(rows_per_event.into()));
            let sum = |share: &Share| (0..).map_while(|event| share.event(event).map(u64::from)).sum::<u64>();
            prop_assert_eq!(shares.iter().map(sum).sum::<u64>(), rows);
            let counts = shares.iter().map(|share| share.events.unwrap());
            prop_assert!(counts.clone().max().unwrap() - counts.min().unwrap() <= 1);
        }
    }
}
