//! `ledger verify`: reads the tables of a server that was started again, and reports what is left of what was sent, in
//! text and JSON.
//!
//! Every table is looked at by CHECK TABLE ... EXTENDED before it is read, as reading may repair it. A table that can't
//! be read is a finding, not an error. All that is kept in memory is a line for each transaction that was sent.

mod ddl;
mod scan;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use self::scan::{Balances, Inspection, TableState, read_whole, timed};
use scan::Scan;
use serde_json::{Value, json};

use super::book::Book;
use super::ddl::DdlVerdict;
use super::record::{Header, Line, Reader, Record};
use super::schema::{Tables, table};
use super::verdict::{Counts, Cut, Example};
use crate::clock::now_ns;
use crate::endpoint::Endpoint;
use crate::error::Error;
use crate::output::print;
use crate::protocol::session::Session;
use crate::stop::Stop;
use crate::text::shown;
use crate::values::Values;

/// The flags of `verify`.
struct VerifyOptions {
    ledger: PathBuf,
    json: Option<PathBuf>,
    cut: Cut,
    silent: bool,
}

impl VerifyOptions {
    fn read(values: &Values<'_>) -> Result<Self, Error> {
        let ledger = values.path("ledger").ok_or_else(|| {
            Error::Usage("verify needs --ledger=FILE, the file that dbdyno ledger run wrote with the same flag".into())
        })?;
        let begin_ns = values.number("cut-ns", u64::MAX)?;
        let end_ns = values.number("cut-end-ns", begin_ns)?;
        if end_ns < begin_ns {
            return Err(Error::Usage(format!("--cut-end-ns={end_ns} is before --cut-ns={begin_ns}")));
        }
        let (json, silent) = (values.path("json"), values.has("silent"));
        Ok(Self { ledger, json, cut: Cut { begin_ns, end_ns }, silent })
    }
}

/// The work of the word `verify`; gives the exit code.
///
/// # Errors
/// The file or the flags are wrong, or the server can't be reached.
pub fn verify(values: &Values<'_>, endpoint: &Endpoint, stop: &Stop) -> Result<u8, Error> {
    let options = VerifyOptions::read(values)?;
    let tables = Tables::read(values, table)?;
    let mut seconds = BTreeMap::new();
    let begun_ns = now_ns();
    let (header, mut book, statements) = timed(&mut seconds, "ledger", || read(&options, &tables, values))?;
    let mut session = Session::connect(endpoint, None, stop)?;
    read_whole(&mut session)?;
    check_seed(&options, &header, &tables, &mut session)?;
    let mut inspection = Inspection::new(session, tables.schema());
    timed(&mut seconds, "check", || Tables::names().try_for_each(|name| inspection.check(name)))?;
    let mut scan = Scan { header: &header, tables: &tables, book: &mut book, inspection: &mut inspection };
    let (balances, complete) = scan.all(&mut seconds)?;
    let ddl = if header.ddl {
        timed(&mut seconds, "ddl", || ddl::judge(&header, &tables, &statements, options.cut, &mut inspection))?
    } else {
        DdlVerdict::default()
    };
    let tables = inspection.into_tables();
    let (counts, examples) = book.judged(options.cut, (&ddl.findings, ddl.newest_invoke_ns));
    seconds.insert("all", (now_ns() - begun_ns) as f64 / 1e9);
    let report = Report { counts, balances, complete, tables, examples, seconds };
    if let Some(path) = &options.json {
        report.write(path)?;
    }
    if !options.silent {
        print(&report.text());
    }
    Ok(0)
}

/// The file's header and all that was sent: transactions, and DDL.
fn read(options: &VerifyOptions, tables: &Tables, values: &Values<'_>) -> Result<(Header, Book, Vec<Record>), Error> {
    let mut reader = Reader::open(&options.ledger)?;
    let header = reader.header.clone();
    let of = |name: &str, theirs: &str, ours: &str| {
        let path = options.ledger.display();
        Err(Error::Usage(format!("{path} belongs to the {name} {theirs}, not to --{name}={ours}: change one of them")))
    };
    if header.schema != tables.schema() {
        return of("schema", &header.schema, tables.schema());
    }
    if let Some(engine) = values.text("engine").filter(|engine| !engine.eq_ignore_ascii_case(&header.engine)) {
        return of("engine", &header.engine, engine);
    }
    let Header { first_connection, connections, transactional, content, .. } = &header;
    let mut book = Book::new(*first_connection, *connections, content.parts, *transactional);
    let mut statements = Vec::new();
    while let Some(line) = reader.next()? {
        match line {
            Line::Transaction(record) => book.sent(record).map_err(|why| reader.broken(&why))?,
            Line::Ddl(record) => statements.push(record),
            Line::End => book.mark_complete(),
        }
    }
    Ok((header, book, statements))
}

/// Sees that the tables are not those of another run, as far as the server still knows: the crash may have taken that.
fn check_seed(options: &VerifyOptions, header: &Header, tables: &Tables, session: &mut Session) -> Result<(), Error> {
    match tables.seed_of(session, header.first_connection) {
        Ok(Some(seed)) if seed != header.content.seed => Err(Error::Usage(format!(
            "{} belongs to a run with --seed={}, but the tables in {} to one with --seed={seed}: give the ledger of that run",
            options.ledger.display(),
            header.content.seed,
            tables.schema()
        ))),
        Ok(_) | Err(Error::Statement { .. }) => Ok(()),
        Err(error) => Err(error),
    }
}

/// All that was found.
pub struct Report {
    /// Transactions.
    pub counts: Counts,
    /// The accounts.
    pub balances: Balances,
    /// Whether the ledger, its index and the transfers could be read to their ends.
    pub complete: bool,
    /// Each table.
    pub tables: Vec<TableState>,
    /// Some transactions that are not as they should be.
    pub examples: Vec<Example>,
    /// What took how long.
    pub seconds: BTreeMap<&'static str, f64>,
}

impl Report {
    fn json(&self) -> Result<Value, serde_json::Error> {
        let mut counts = self.counts.clone();
        if !self.complete {
            // What could not be read is not lost by that.
            (counts.lost, counts.holes, counts.torn) = (0, 0, 0);
            (counts.oldest_lost_ack_ns, counts.index_differences) = (None, 0);
        }
        let mut value = serde_json::to_value(&counts)?;
        value["balance_off"] = json!(self.balances == Balances::Off);
        value["complete"] = json!(self.complete);
        value["tables"] = json!(self.tables);
        value["examples"] = json!(self.examples().collect::<Vec<_>>());
        value["seconds"] = json!(self.seconds);
        Ok(value)
    }

    /// Of what can be judged.
    fn examples(&self) -> impl Iterator<Item = &Example> {
        self.examples.iter().filter(|example| self.complete || matches!(example.what, "ghost" | "wrong"))
    }

    /// Writes it as JSON.
    ///
    /// # Errors
    /// The file can't be written.
    pub fn write(&self, path: &Path) -> Result<(), Error> {
        let failed = |error: std::io::Error| Error::File(path.into(), error);
        let value = self.json().map_err(|error| failed(error.into()))?;
        fs::write(path, format!("{value:#}\n")).map_err(failed)
    }

    /// For people.
    pub fn text(&self) -> String {
        let Counts { acked, unknown, refused, kept, lost, holes, ghost, torn, wrong, index_differences, .. } =
            self.counts;
        let mut text = format!("{acked} acknowledged, {unknown} unknown, {refused} refused\n");
        // Writing to a string cannot fail.
        let _ = if self.complete {
            writeln!(
                text,
                "kept {kept}, lost {lost} ({holes} of them although a later one was kept), ghost {ghost}, torn {torn}, \
                 wrong {wrong}; index and table differ in {index_differences}"
            )
        } else {
            writeln!(
                text,
                "a table could not be read to its end: what is lost is not known; ghost {ghost}, wrong {wrong}"
            )
        };
        let _ = match self.balances {
            Balances::Right => Ok(()),
            Balances::Off => writeln!(text, "the balances do not match the transfers"),
            Balances::Unknown => writeln!(text, "the balances could not be read"),
        };
        for TableState { table, text: answer, .. } in self.tables.iter().filter(|state| !state.ok) {
            let _ = writeln!(text, "table {table}: {}", shown(answer));
        }
        for Example { connection, sequence, text: description, .. } in self.examples() {
            let _ = writeln!(text, "  transaction {sequence} of connection {connection} {description}");
        }
        text
    }
}
