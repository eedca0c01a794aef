//! `bulk`: sysbench's `prepare` as a load of its own: tables made, filled by multi-row INSERTs, and indexed.
//!
//! A table belongs to one client; a client makes, fills and indexes one after the other, as in sysbench. So phases of
//! different clients overlap, and clients beyond the number of tables have nothing to do. An INSERT is an event; CREATE
//! TABLE and CREATE INDEX are none, but are timed too. What the server refuses is sent again, with the same rows.
//!
//! Cannot: more than one run (the tables are there after the first), warm up, share a table among clients. Rows whose
//! reply a lost connection took away may be there twice. A CREATE INDEX that the server takes longer over than
//! `--stall-timeout` ends the run.

use super::options::{SYSBENCH, TABLES, refuse_unsupported, schema};
use super::tables::{BATCH_BYTES, BATCH_BYTES_MIN, Filler, Stage, Tables};
use crate::dialect;
use crate::distribution::{Distribution, FLAGS as RANDOM};
use crate::error::Error;
use crate::flags::{Flag, Takes, joined};
use crate::protocol::packet::RequestEncoder;
use crate::protocol::session::Session;
use crate::run_options::RunOptions;
use crate::statements::{After, Kind, Next, Part, Statement, Statements};
use crate::values::Values;
use crate::verb::Verb;
use crate::workload::{Portion, ServerState, Stepwise, Workload};

const ABOUT: &str = "\
sysbench's prepare as a load: makes the tables sbtest1, sbtest2, ..., fills them by multi-row INSERTs and indexes them.
--clients=N works on N tables at once. Raise --stall-timeout if an index may take longer.

";

/// The verb.
pub static VERB: Verb = Verb {
    name: "bulk",
    about: ABOUT,
    flags: FLAGS,
    loads: &["load"],
    word: None,
    has_phase_flag: false,
    workload: |values, _| Ok(Box::new(Bulk::new(values)?)),
    own: None,
};

const OWN: &[Flag] = &[
    Flag::value("batch-bytes", "greatest length of an INSERT, in bytes"),
    Flag::ignored("db-ps-mode", Takes::Value, "nothing is prepared in a bulk load"),
];

const FLAGS: &[Flag] =
    &joined::<{ OWN.len() + TABLES.len() + RANDOM.len() + SYSBENCH.len() }>(&[OWN, TABLES, RANDOM, SYSBENCH]);

const CREATE: Statement = Statement { kind: 0, part: Part::Apart, rows: 0, phase: 0 };
const INSERT: Statement = Statement { kind: 1, part: Part::Last, rows: 0, phase: 1 };
const INDEX: Statement = Statement { kind: 2, part: Part::Apart, rows: 0, phase: 2 };

/// A load of tables.
#[derive(Debug)]
pub struct Bulk {
    schema: String,
    tables: Tables,
    distribution: Distribution,
    seed: u64,
    batch_bytes: usize,
}

impl Bulk {
    /// The load that the flags ask for.
    ///
    /// # Errors
    /// A flag that is wrong or cannot be honoured.
    pub fn new(values: &Values<'_>) -> Result<Self, Error> {
        refuse_unsupported(values)?;
        let run = RunOptions::read(values)?;
        if run.clients.len() > 1 || run.loops.len() > 1 {
            return Err(Error::Usage("--clients, --rate: give one number; after one run the tables exist".into()));
        }
        if !run.warmup.is_zero() {
            return Err(Error::Usage("--warmup: a bulk load has none; leave it out".into()));
        }
        let batch_bytes = values.number("batch-bytes", BATCH_BYTES)?;
        if batch_bytes < BATCH_BYTES_MIN {
            return Err(Error::Usage(format!("--batch-bytes={batch_bytes}: at least {BATCH_BYTES_MIN}")));
        }
        Ok(Self {
            schema: schema(values)?,
            tables: Tables::read(values)?,
            distribution: Distribution::parse(values, Distribution::SPECIAL)?,
            seed: run.seed,
            batch_bytes,
        })
    }

    fn stage(&self) -> Stage<'_> {
        Stage { schema: &self.schema, tables: &self.tables }
    }

    /// Sees that the server takes statements this long.
    fn check_packet(&self, session: &mut Session) -> Result<(), Error> {
        // The command's code is part of the packet.
        match session.value(dialect::PACKET_BYTES_MAX_SQL)? {
            Some(limit) if self.batch_bytes >= limit => Err(Error::Usage(format!(
                "--batch-bytes={}: the server's max_allowed_packet is {limit}; lower the one or raise the other",
                self.batch_bytes
            ))),
            _ => Ok(()),
        }
    }
}

impl Workload for Bulk {
    fn load(&self) -> &'static str {
        VERB.loads[0]
    }

    fn schema(&self) -> &str {
        &self.schema
    }

    fn kinds(&self) -> Vec<Kind> {
        vec![Kind::apart("create_table"), Kind::query("insert"), Kind::apart("create_index")]
    }

    fn phases(&self) -> &'static [&'static str] {
        &["create", "load", "index"]
    }

    fn statements(&self, portion: Portion) -> Result<Box<dyn Statements + '_>, Error> {
        if portion.warmup {
            return Err(Error::Usage("--warmup: a bulk load has none; leave it out".into()));
        }
        let first =
            |client: usize| Cursor { table: (portion.first + client + 1) as u64, step: Step::Create, again: None };
        Ok(Box::new(Loaders {
            bulk: self,
            of: portion.of as u64,
            statement: Vec::new(),
            cursors: (0..portion.clients).map(first).collect(),
        }))
    }
}

impl Stepwise for Bulk {
    fn is_bounded(&self) -> bool {
        true
    }

    /// Makes the schema; it is the load that makes the tables.
    fn prepare(&self, session: &mut Session, _begun: &mut bool) -> Result<(), Error> {
        self.stage().enter_or_make(session)?;
        self.stage().check_absent(session)
    }

    fn check(&self, session: &mut Session) -> Result<ServerState, Error> {
        self.stage().enter(session)?;
        self.stage().check_absent(session)?;
        self.check_packet(session)?;
        Ok(ServerState { engine: Some(self.stage().offered_engine(session)?) })
    }

    fn cleanup(&self, session: &mut Session) -> Result<(), Error> {
        self.stage().clear(session)
    }
}

/// The clients of one thread.
struct Loaders<'a> {
    bulk: &'a Bulk,
    /// Clients of all threads.
    of: u64,
    /// The INSERT being written.
    statement: Vec<u8>,
    cursors: Vec<Cursor>,
}

/// Where a client is.
struct Cursor {
    /// Number of its table, from 1.
    table: u64,
    /// What it says next.
    step: Step,
    /// What it sent last.
    again: Option<Step>,
}

/// What is to be done with a table.
#[derive(Clone)]
enum Step {
    Create,
    Fill(Box<Filler>),
    Index,
    Over,
}

impl Statements for Loaders<'_> {
    fn next(&mut self, client: usize, encoder: &mut RequestEncoder<'_>) -> Next {
        let Self { bulk, of, statement, cursors } = self;
        let cursor = &mut cursors[client];
        loop {
            if cursor.table > u64::from(bulk.tables.count) {
                return Next::Done;
            }
            let number = cursor.table as u32;
            let before = cursor.step.clone();
            let sent = match &mut cursor.step {
                Step::Create => {
                    encoder.query(&[bulk.tables.create(number).as_bytes()]);
                    let filler = Filler::new(&bulk.tables, number, bulk.distribution, bulk.seed, bulk.batch_bytes);
                    cursor.step = Step::Fill(filler.into());
                    CREATE
                }
                Step::Fill(filler) => {
                    let rows = filler.write(statement);
                    if rows == 0 {
                        cursor.step = Step::Index;
                        continue;
                    }
                    encoder.query(&[statement]);
                    Statement { rows, ..INSERT }
                }
                Step::Index => {
                    cursor.step = Step::Over;
                    let Some(index) = bulk.tables.create_index(number) else { continue };
                    encoder.query(&[index.as_bytes()]);
                    INDEX
                }
                Step::Over => {
                    cursor.table += *of;
                    cursor.step = Step::Create;
                    continue;
                }
            };
            cursor.again = Some(before);
            return Next::Send(sent);
        }
    }

    fn refused(&mut self, client: usize, _code: u16) -> After {
        self.reconnected(client)
    }

    fn reconnected(&mut self, client: usize) -> After {
        let cursor = &mut self.cursors[client];
        let Some(again) = cursor.again.take() else { return After::GoOn };
        let in_event = matches!(again, Step::Fill(_));
        cursor.step = again;
        if in_event { After::StartOver } else { After::GoOn }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT_AT: usize = 5;

    fn bulk(flags: &[(&'static str, &'static str)]) -> Result<Bulk, String> {
        Bulk::new(&Values::of(flags)).map_err(|error| error.to_string())
    }

    /// The next statement of a client, short.
    fn next(clients: &mut dyn Statements, client: usize) -> Option<(String, Statement)> {
        let mut out = Vec::new();
        match clients.next(client, &mut RequestEncoder::new(&mut out, &mut [])) {
            Next::Send(statement) => Some((String::from_utf8(out[TEXT_AT..].to_vec()).unwrap(), statement)),
            Next::Done => None,
            Next::Reconnect => panic!("no reason"),
        }
    }

    fn words(text: &str) -> String {
        text.split([' ', '(', '\n']).take(3).collect::<Vec<&str>>().join(" ")
    }

    #[test]
    fn a_client_makes_fills_and_indexes_its_tables_in_turn() {
        let bulk = bulk(&[("tables", "3"), ("table-size", "30"), ("batch-bytes", "2048")]).unwrap();
        let mut all = Vec::new();
        for first in 0..2 {
            let portion = Portion { first, clients: 1, of: 2, seed: 1, warmup: false };
            let mut clients = bulk.statements(portion).unwrap();
            let mut statements = Vec::new();
            while let Some((text, what)) = next(&mut *clients, 0) {
                statements.push((words(&text), what));
            }
            assert!(next(&mut *clients, 0).is_none());
            all.push(statements);
        }
        let texts: Vec<&str> = all[0].iter().map(|(text, _)| text.as_str()).collect();
        let table = |number| {
            let insert = format!("INSERT INTO sbtest{number}");
            let index = format!("CREATE INDEX k_{number}");
            [vec![format!("CREATE TABLE sbtest{number}")], vec![insert; 3], vec![index]].concat()
        };
        assert_eq!(texts, [table(1), table(3)].concat());
        assert_eq!(all[1].len(), 5);
        let inserts: Vec<&Statement> =
            all[0].iter().map(|(_, statement)| statement).filter(|statement| statement.rows > 0).collect();
        assert_eq!(inserts.iter().map(|statement| statement.rows).sum::<u32>(), 60);
        assert!(inserts.iter().all(|statement| statement.part == Part::Last && statement.phase == 1));
        let phases: Vec<u8> = all[1].iter().map(|(_, statement)| statement.phase).collect();
        assert_eq!(phases, [0, 1, 1, 1, 2]);
    }

    #[test]
    fn what_was_refused_is_said_again() {
        let bulk = bulk(&[("table-size", "30"), ("batch-bytes", "2048")]).unwrap();
        let portion = Portion { first: 0, clients: 1, of: 1, seed: 1, warmup: false };
        let mut clients = bulk.statements(portion).unwrap();
        while let Some(before) = next(&mut *clients, 0) {
            // Only an INSERT is an event, whose time runs on.
            let expected = if before.1.part == Part::Last { After::StartOver } else { After::GoOn };
            assert_eq!(clients.refused(0, 1213), expected);
            assert_eq!(next(&mut *clients, 0), Some(before));
        }
    }

    #[test]
    fn a_table_may_go_without_an_index() {
        let bulk = bulk(&[("table-size", "1"), ("create-secondary", "off")]).unwrap();
        let mut clients = bulk.statements(Portion { first: 0, clients: 2, of: 2, seed: 1, warmup: false }).unwrap();
        assert!(next(&mut *clients, 0).unwrap().0.starts_with("CREATE TABLE"));
        assert!(next(&mut *clients, 0).unwrap().0.starts_with("INSERT"));
        assert_eq!(next(&mut *clients, 0), None);
        assert_eq!(next(&mut *clients, 1), None, "there is no table for it");
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for (flags, expected) in [
            (&[("clients", "1,2")][..], "one number"),
            (&[("rate", "1,2")], "one number"),
            (&[("warmup", "1")], "leave it out"),
            (&[("batch-bytes", "100")], "at least 1024"),
            (&[("db-driver", "pgsql")], "only MySQL and MariaDB"),
        ] {
            let text = bulk(flags).unwrap_err();
            assert!(text.contains(expected), "{text}");
        }
    }
}
