//! `ledger verify`: reads the tables of a server that was started again, and says what is left of what was sent.
//!
//! Every table is looked at by CHECK TABLE ... EXTENDED before it is read, as reading may repair it. A table that can't be
//! read is a finding, not an error. All that is kept in memory is a line for each transaction that was sent.

mod ddl;
mod report;
mod row;
mod scan;
mod tables;
mod timing;

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::clock::now_ns;
use crate::endpoint::Endpoint;
use crate::error::Error;
use crate::output::print;
use crate::protocol::session::Session;
use crate::stop::Stop;
use crate::values::Values;

use super::book::Book;
use super::ddl::judge::Judged;
use super::record::{Header, Line, Reader, Record};
use super::schema::{Tables, table};
use super::verdict::Cut;

use report::Report;
use scan::Scan;
use tables::Inspection;
use timing::timed;

/// The flags of `verify`.
struct Asked {
    ledger: PathBuf,
    json: Option<PathBuf>,
    cut: Cut,
    silent: bool,
}

impl Asked {
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
    let asked = Asked::read(values)?;
    let tables = Tables::read(values, table)?;
    let mut seconds = BTreeMap::new();
    let begun_ns = now_ns();
    let (header, mut book, statements) = timed(&mut seconds, "ledger", || read(&asked, &tables, values))?;
    let mut session = Session::connect(endpoint, None, stop)?;
    check_seed(&asked, &header, &tables, &mut session)?;
    let mut inspection = Inspection::new(session, tables.schema());
    timed(&mut seconds, "check", || Tables::names().try_for_each(|name| inspection.check(name)))?;
    let mut scan = Scan { header: &header, tables: &tables, book: &mut book, inspection: &mut inspection };
    let (balances, complete) = scan.all(&mut seconds)?;
    let ddl = if header.ddl {
        timed(&mut seconds, "ddl", || ddl::judge(&header, &tables, &statements, asked.cut, &mut inspection))?
    } else {
        Judged::default()
    };
    let tables = inspection.done();
    let (counts, examples) = book.judged(asked.cut, (&ddl.findings, ddl.newest_invoke_ns));
    seconds.insert("all", (now_ns() - begun_ns) as f64 / 1e9);
    let report = Report { counts, balances, complete, tables, examples, seconds };
    if let Some(path) = &asked.json {
        report.write(path)?;
    }
    if !asked.silent {
        print(&report.text());
    }
    Ok(0)
}

/// The file's header and all that was sent: transactions, and DDL.
fn read(asked: &Asked, tables: &Tables, values: &Values<'_>) -> Result<(Header, Book, Vec<Record>), Error> {
    let mut reader = Reader::open(&asked.ledger)?;
    let header = reader.header.clone();
    let of = |name: &str, theirs: &str, ours: &str| {
        let path = asked.ledger.display();
        Err(Error::Usage(format!(
            "{path} is of the {name} {theirs}, --{name}={ours} is another: give the one or the other"
        )))
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
            Line::End => book.is_complete(),
        }
    }
    Ok((header, book, statements))
}

/// Sees that the tables are not those of another run, as far as the server still knows: the crash may have taken that.
fn check_seed(asked: &Asked, header: &Header, tables: &Tables, session: &mut Session) -> Result<(), Error> {
    match tables.seed_of(session, header.first_connection) {
        Ok(Some(seed)) if seed != header.content.seed => Err(Error::Usage(format!(
            "{} is of a run with --seed={}, the tables in {} are of one with --seed={seed}: give the ledger of that run",
            asked.ledger.display(),
            header.content.seed,
            tables.schema()
        ))),
        Ok(_) | Err(Error::Statement { .. }) => Ok(()),
        Err(error) => Err(error),
    }
}
