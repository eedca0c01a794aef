//! The verb `smack`: Super-Smack's INSERT, SELECT, UPDATE and DELETE by primary key over rows of one size.

mod options;
mod smacker;

use std::collections::BTreeSet;
use std::str::FromStr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use dbdyno_common::random::Random;

use crate::error::Error;
use crate::names::put_hex;
use crate::protocol::session::Session;
use crate::statements::{Kind, Statements};
use crate::values::Values;
use crate::verb::Verb;
use crate::workload::{Portion, ServerState, Stepwise, Workload};

use self::options::{Key, Load};
use self::smacker::DeletedKeys;
use options::{FLAGS, Options};
use smacker::Smacker;

const ABOUT: &str = "\
Super-Smack's statements by primary key, over rows of one size. LOAD is insert, select, update, delete or mixed: UPDATE
and SELECT in turn, as Super-Smack's update-select. Every statement is an event and commits by itself.

The keys of prepared rows are the numbers 1 to --rows, or with --key=char names that are made of them: 12 letters and the
number in base 36. SELECT, UPDATE and DELETE draw theirs by --rand-type.

INSERT adds one row with a new key: the next number after all that there are, in ascending order over all clients; with
--key=char numbers go on from the server's clock in microseconds, as its names cannot be looked through quickly, and the
names scatter over the whole index. UPDATE writes all of the row anew, SELECT reads all of it.

DELETE draws with replacement: each statement counts, also one that finds its row gone. Those whose key was drawn before
in this invocation are counted and timed separately, as delete_gone; they show how much of a long run did no work.

A row is its key and random bytes, of which --compressible percent are one byte repeated. At 50 a row shrinks more than
English prose does with lz4, and less than with gzip.

Before a run, up to 100 keys from 1 to --rows are looked up, so that a load on other rows, or after too many DELETEs, is
refused; the rest of the table is not read.

";

/// The verb.
pub static VERB: Verb = Verb {
    name: "smack",
    about: ABOUT,
    flags: FLAGS,
    loads: Load::NAMES,
    word: None,
    has_phase_flag: false,
    workload: make,
    own: None,
};

fn make(values: &Values<'_>, load: &str) -> Result<Box<dyn Stepwise>, Error> {
    Ok(Box::new(Smack::new(Options::read(values, load)?)))
}

/// The load with its options.
#[derive(Debug)]
struct Smack {
    options: Options,
    /// Number of the next new key; 0 before [`Workload::check`].
    next: AtomicI64,
    /// Keys that were drawn for DELETE.
    gone: OnceLock<DeletedKeys>,
    /// Runs before this one, once [`Workload::check`] counted it.
    runs: AtomicU64,
}

impl Smack {
    fn new(options: Options) -> Self {
        Self { options, next: AtomicI64::new(0), gone: OnceLock::new(), runs: AtomicU64::new(u64::MAX) }
    }

    fn columns(&self) -> [String; 2] {
        [self.options.key.column().to_owned(), format!("data varbinary({})", self.options.content_size())]
    }

    /// Looks some keys up, evenly spread over all but those that this invocation deleted.
    fn check_keys(&self, session: &mut Session) -> Result<(), Error> {
        const SAMPLE: i64 = 100;
        let options = &self.options;
        let spread = |step| (options.rows - 1) * step / (SAMPLE - 1) + 1;
        let mut numbers: BTreeSet<i64> = (0..SAMPLE).map(spread).collect();
        if let Some(gone) = self.gone.get() {
            numbers.retain(|number| !gone.has(*number));
        }
        if numbers.is_empty() {
            return Ok(());
        }
        let keys: Vec<String> = numbers.iter().map(|number| options.key_literal(*number)).collect();
        let table = options.table.qualified();
        let sql = format!("SELECT COUNT(*) FROM {table} WHERE id IN ({})", keys.join(","));
        let found: usize = number(session, &sql)?;
        if found < keys.len() {
            return Err(options.table.unfit(&format!(
                "lacks {} of {} keys looked up between 1 and --rows={}",
                keys.len() - found,
                keys.len(),
                options.rows
            )));
        }
        Ok(())
    }

    /// Finds the first number after all keys there are.
    fn find_next(&self, session: &mut Session) -> Result<(), Error> {
        let last = match self.options.key {
            Key::Integer => format!("SELECT COALESCE(MAX(id), 0) FROM {}", self.options.table.qualified()),
            Key::Char => "SELECT CAST(UNIX_TIMESTAMP(NOW(6)) * 1000000 AS UNSIGNED)".into(),
        };
        let last = number::<i64>(session, &last)?.max(self.options.rows);
        // A run before in this invocation may have taken more.
        self.next.fetch_max(last + 1, Ordering::Relaxed);
        Ok(())
    }
}

/// The one number that `sql` asks for.
fn number<T: FromStr>(session: &mut Session, sql: &str) -> Result<T, Error> {
    let number = session.value(sql)?;
    number.ok_or_else(|| Error::Failed(format!("the server gave no number for {sql}")))
}

impl Workload for Smack {
    fn load(&self) -> &str {
        self.options.load.into()
    }

    fn schema(&self) -> &str {
        &self.options.table.schema
    }

    fn kinds(&self) -> Vec<Kind> {
        self.options.load.kinds().iter().map(|name| Kind::query(name)).collect()
    }

    fn prepared(&self) -> Vec<String> {
        let queries = if self.options.prepared { self.options.load.queries() } else { &[] };
        queries.iter().map(|query| query.with_parameters().to_owned()).collect()
    }

    fn statements(&self, portion: Portion) -> Result<Box<dyn Statements + '_>, Error> {
        if self.options.load == Load::Insert && self.next.load(Ordering::Relaxed) == 0 {
            return Err(Error::Failed("the first new key is not known: the table was not looked at".into()));
        }
        if self.options.load != Load::Delete {
            return Ok(Box::new(Smacker::new(&self.options, &self.next, None, portion)));
        }
        let gone = self.gone.get_or_init(|| DeletedKeys::new(self.options.rows));
        // A later run with the same seed would draw nothing but what is gone.
        let seed = portion.seed.wrapping_add(self.runs.load(Ordering::Relaxed));
        Ok(Box::new(Smacker::new(&self.options, &self.next, Some(gone), Portion { seed, ..portion })))
    }
}

impl Stepwise for Smack {
    fn prepare(&self, session: &mut Session, begun: &mut bool) -> Result<(), Error> {
        let options = &self.options;
        let data = format!("data VARBINARY({}) NOT NULL", options.content_size());
        options.table.make(session, &format!("{}, {data}", options.key.definition()), begun)?;
        let mut content = options.content();
        let mut random = Random::new(options.seed);
        let mut number = 0;
        // Over one connection: rows lie in the order of their numbers, on every server and at every speed.
        options.table.fill(session, "id, data", options.rows as u64, |sql| {
            number += 1;
            sql.push('(');
            sql.push_str(&options.key_literal(number));
            sql.push(',');
            put_hex(content.draw(&mut random), sql);
            sql.push(')');
        })
    }

    fn check(&self, session: &mut Session) -> Result<ServerState, Error> {
        let columns = self.options.table.check(session, &self.columns())?;
        match self.options.load {
            Load::Insert => self.find_next(session)?,
            _ => self.check_keys(session)?,
        }
        self.runs.fetch_add(1, Ordering::Relaxed);
        Ok(columns)
    }

    fn cleanup(&self, session: &mut Session) -> Result<(), Error> {
        self.options.table.drop(session)
    }
}
