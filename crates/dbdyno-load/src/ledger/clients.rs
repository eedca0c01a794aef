//! The clients of one thread: each sends one transaction after the other and notes its outcome. Beside them a thread
//! with a connection of its own sends the DDL statements, one after the other.
//!
//! A transaction is `invoked` just before its COMMIT is written to the socket, and `acked` when the OK was read: a time
//! that is early in the first case and late in the second makes a verdict milder, never harder. Where the engine has no
//! transactions, the row's INSERT takes the place of COMMIT.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::options::Cuts;
use super::record::{Content, End, Key, Line, Log, PARTS_MAX, Part as Transferred, Pen, Record};
use crate::clock::now_ns;
use crate::dialect::error_codes::TRANSACTION_RETRYABLE;
use crate::error::Error;
use crate::protocol::packet::{self, Parameter, RequestEncoder};
use crate::protocol::reply::KeptRows;
use crate::protocol::session::Session;
use crate::statements::{After, Kind, Next, Part, Statement, Statements};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Rollback,
    Begin,
    Row,
    Transfers,
    Accounts,
    Commit,
}

/// The clients.
pub struct Clients<'a> {
    content: &'a Content,
    transactional: bool,
    pen: Option<Pen>,
    cuts: Option<Arc<Cuts>>,
    /// Begins with the first transaction.
    ddl: Option<Runner>,
    running: Option<Running>,
    writer: Writer,
    clients: Vec<Client>,
}

struct Client {
    key: Key,
    step: Step,
    /// What was sent last.
    sent: Step,
    /// When that was sent which decides, if it was and no answer came.
    invoke_ns: Option<u64>,
    /// The fate of the transaction is noted.
    is_noted: bool,
    transfer: [Transferred; PARTS_MAX],
}

impl<'a> Clients<'a> {
    /// Connections from `first` on.
    pub fn new(
        content: &'a Content,
        transactional: bool,
        connections: Range<u32>,
        (pen, cuts, ddl): (Option<Pen>, Option<Arc<Cuts>>, Option<Runner>),
    ) -> Self {
        // A warm-up may have left a transaction open, which BEGIN would commit.
        let client = |connection| Client {
            key: Key { connection, sequence: 0 },
            step: Step::Rollback,
            sent: Step::Rollback,
            invoke_ns: None,
            is_noted: true,
            transfer: [Transferred::default(); PARTS_MAX],
        };
        let clients = connections.map(client).collect();
        Self { content, transactional, pen, cuts, ddl, running: None, writer: Writer::default(), clients }
    }

    /// The statement that decides over a transaction.
    fn deciding(&self) -> Step {
        if self.transactional { Step::Commit } else { Step::Row }
    }

    fn first(&self) -> Step {
        if self.transactional { Step::Begin } else { Step::Row }
    }

    /// What came of a client's transaction.
    fn note(&mut self, client: usize, end: End) {
        let client = &mut self.clients[client];
        let invoke_ns = client.invoke_ns.take().unwrap_or(0);
        client.is_noted = true;
        if let Some(pen) = &mut self.pen {
            pen.write(Line::Transaction(Record { key: client.key, invoke_ns, end }));
        }
    }

    /// The acknowledgement was read; a cut that follows on it is taken before anything else is.
    fn acked(&mut self, client: usize) -> Result<(), String> {
        let now_ns = now_ns();
        self.note(client, End::Acked(now_ns));
        self.cuts.as_ref().map_or(Ok(()), |cuts| cuts.acked(now_ns))
    }

    /// The transaction is over without an acknowledgement.
    fn give_up(&mut self, client: usize) {
        if self.clients[client].is_noted {
            return;
        }
        let end = if self.clients[client].invoke_ns.is_some() { End::Unanswered } else { End::Unsent };
        self.note(client, end);
    }
}

impl Statements for Clients<'_> {
    fn next(&mut self, client: usize, encoder: &mut RequestEncoder<'_>) -> Next {
        if let Some(ddl) = self.ddl.take() {
            // A thread that can't be had is a run without DDL, of which there is no record either.
            self.running = ddl.start().ok();
        }
        let (first, deciding, transactional) = (self.first(), self.deciding(), self.transactional);
        let Self { content, writer, clients, .. } = self;
        let client = &mut clients[client];
        if client.step == first && client.is_noted {
            client.key.sequence += 1;
            client.is_noted = false;
            content.transfer(client.key, &mut client.transfer);
        }
        client.sent = client.step;
        let (key, parts) = (client.key, &client.transfer[..content.parts]);
        let (statement, step) = match client.step {
            Step::Rollback => (rollback(encoder), first),
            Step::Begin => (begin(encoder), Step::Row),
            Step::Row => (writer.row(content, key, encoder), Step::Transfers),
            Step::Transfers => (transfers(key, parts, encoder), Step::Accounts),
            Step::Accounts if transactional => (accounts(parts, Part::Inner, encoder), Step::Commit),
            Step::Accounts => (accounts(parts, Part::Last, encoder), first),
            Step::Commit => (commit(encoder), first),
        };
        client.step = step;
        if client.sent == deciding {
            client.invoke_ns = Some(now_ns());
        }
        Next::Send(statement)
    }

    fn reads_rows(&self) -> bool {
        true
    }

    fn answered(&mut self, client: usize, _: Statement, _: &KeptRows) -> Result<(), String> {
        if self.clients[client].sent == self.deciding() {
            return self.acked(client);
        }
        Ok(())
    }

    fn refused(&mut self, client: usize, code: u16) -> After {
        let sent = self.clients[client].sent;
        if sent == Step::Rollback {
            return After::GoOn;
        }
        self.clients[client].step = if self.transactional { Step::Rollback } else { self.first() };
        if sent == self.deciding() {
            if TRANSACTION_RETRYABLE.contains(&code) {
                // It did not happen, and is sent again.
                self.clients[client].invoke_ns = None;
            } else {
                // An INSERT that is refused did not happen; of a COMMIT that is not sure.
                self.note(client, if self.transactional { End::Unanswered } else { End::Refused });
            }
        } else if !TRANSACTION_RETRYABLE.contains(&code) {
            // What else is refused would be refused again.
            self.give_up(client);
        }
        After::StartOver
    }

    fn reconnected(&mut self, client: usize) -> After {
        self.give_up(client);
        self.clients[client].step = self.first();
        After::StartOver
    }
}

impl Drop for Clients<'_> {
    /// What was open at the end of the run.
    fn drop(&mut self) {
        self.running = None;
        (0..self.clients.len()).for_each(|client| self.give_up(client));
    }
}

/// Kinds of statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verb {
    Begin,
    Insert,
    Update,
    Commit,
    Rollback,
}

/// All kinds; a ROLLBACK comes in place of some.
pub fn kinds() -> Vec<Kind> {
    let queries = ["begin", "insert", "update", "commit"].into_iter().map(Kind::query);
    queries.chain([Kind::apart("rollback")]).collect()
}

/// Which prepared statement, by its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Query {
    Row,
    RowWithBlob,
    Transfers,
    Accounts,
}

/// What the clients prepare.
pub fn prepared(parts: usize) -> Vec<String> {
    let rows = vec!["(?, ?, ?, ?, ?)"; parts].join(", ");
    let cases = vec!["WHEN ? THEN ?"; parts].join(" ");
    let ids = vec!["?"; parts].join(", ");
    vec![
        "INSERT INTO ledger (connection, sequence, tag, payload) VALUES (?, ?, ?, ?)".into(),
        "INSERT INTO ledger (connection, sequence, tag, payload, content) VALUES (?, ?, ?, ?, ?)".into(),
        format!("INSERT INTO transfers (connection, sequence, part, account, amount) VALUES {rows}"),
        // One statement, so that an engine without transactions keeps the sum, too.
        format!("UPDATE accounts SET balance = balance + CASE id {cases} END WHERE id IN ({ids})"),
    ]
}

/// Writes statements; keeps what it makes them of.
#[derive(Debug, Default)]
pub struct Writer {
    payload: Vec<u8>,
    blob: Vec<u8>,
}

impl Writer {
    /// The row of the ledger.
    pub fn row(&mut self, content: &Content, key: Key, encoder: &mut RequestEncoder<'_>) -> Statement {
        let (tag, has_blob) = content.row(key);
        content.payload(key, &mut self.payload);
        let head = [i64::from(key.connection), key.sequence as i64, tag].map(Parameter::Integer);
        let payload = Parameter::Text(&self.payload);
        if has_blob {
            content.blob(key, &mut self.blob);
            let values = [head[0], head[1], head[2], payload, Parameter::Text(&self.blob)];
            encoder.execute(Query::RowWithBlob as usize, &values);
        } else {
            encoder.execute(Query::Row as usize, &[head[0], head[1], head[2], payload]);
        }
        statement(Verb::Insert, Part::Inner, 1)
    }
}

/// What accounts get, row by row.
pub fn transfers(key: Key, parts: &[Transferred], encoder: &mut RequestEncoder<'_>) -> Statement {
    let mut values = [Parameter::Null; 5 * PARTS_MAX];
    for (number, (part, place)) in parts.iter().zip(values.chunks_exact_mut(5)).enumerate() {
        let row = [i64::from(key.connection), key.sequence as i64, number as i64, part.account.into(), part.amount];
        place.copy_from_slice(&row.map(Parameter::Integer));
    }
    encoder.execute(Query::Transfers as usize, &values[..5 * parts.len()]);
    statement(Verb::Insert, Part::Inner, parts.len() as u32)
}

/// The change of the accounts.
pub fn accounts(parts: &[Transferred], place: Part, encoder: &mut RequestEncoder<'_>) -> Statement {
    let mut values = [Parameter::Null; 3 * PARTS_MAX];
    let (cases, ids) = values[..3 * parts.len()].split_at_mut(2 * parts.len());
    for ((part, case), id) in parts.iter().zip(cases.chunks_exact_mut(2)).zip(ids) {
        let account = Parameter::Integer(part.account.into());
        case.copy_from_slice(&[account, Parameter::Integer(part.amount)]);
        *id = account;
    }
    encoder.execute(Query::Accounts as usize, &values[..3 * parts.len()]);
    statement(Verb::Update, place, 0)
}

/// BEGIN; not every server prepares it.
pub fn begin(encoder: &mut RequestEncoder<'_>) -> Statement {
    plain(b"BEGIN", Verb::Begin, Part::Inner, encoder)
}

/// COMMIT, which ends the event.
pub fn commit(encoder: &mut RequestEncoder<'_>) -> Statement {
    plain(b"COMMIT", Verb::Commit, Part::Last, encoder)
}

/// ROLLBACK, before a transaction is tried again.
pub fn rollback(encoder: &mut RequestEncoder<'_>) -> Statement {
    plain(b"ROLLBACK", Verb::Rollback, Part::Apart, encoder)
}

fn plain(sql: &[u8], verb: Verb, part: Part, encoder: &mut RequestEncoder<'_>) -> Statement {
    encoder.packets(&packet::query(sql));
    statement(verb, part, 0)
}

fn statement(verb: Verb, part: Part, rows: u32) -> Statement {
    Statement { kind: verb as u16, part, rows, phase: 0 }
}

/// Between two statements: without a pause DDL would be most of what the server does.
const PAUSE: Duration = Duration::from_millis(10);

/// What sends.
pub struct Runner {
    session: Session,
    schema: String,
    engine: String,
    pen: Option<Pen>,
    cuts: Option<Arc<Cuts>>,
    log: Option<Arc<Log>>,
}

/// A runner at work; it stops when this goes.
pub struct Running {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Runner {
    /// Over a connection of its own.
    pub fn new(
        session: Session,
        (schema, engine): (&str, &str),
        log: Option<&Arc<Log>>,
        cuts: Option<&Arc<Cuts>>,
    ) -> Self {
        Self {
            session,
            schema: schema.into(),
            engine: engine.into(),
            pen: log.map(Pen::new),
            cuts: cuts.cloned(),
            log: log.cloned(),
        }
    }

    /// Begins.
    ///
    /// # Errors
    /// There is no thread to be had.
    pub fn start(self) -> Result<Running, Error> {
        let stop = Arc::new(AtomicBool::new(false));
        let stop_request = Arc::clone(&stop);
        let thread = thread::Builder::new().name("ddl".into()).spawn(move || self.work(&stop_request));
        let thread = thread.map_err(|error| Error::Failed(format!("cannot start a thread for DDL: {error}")))?;
        Ok(Running { stop, thread: Some(thread) })
    }

    fn work(mut self, stop: &AtomicBool) {
        for number in 1.. {
            if stop.load(Ordering::Relaxed) {
                break;
            }
            if !self.send(number) {
                return;
            }
            thread::park_timeout(PAUSE);
        }
        self.session.quit();
    }

    /// Sends one statement; false at the end.
    fn send(&mut self, number: u64) -> bool {
        let step = super::ddl::Step::from_number(number);
        let sql = step.sql(&self.schema, &self.engine);
        let invoke_ns = now_ns();
        let answer = self.session.execute(&sql);
        let end = match &answer {
            Ok(()) => End::Acked(now_ns()),
            Err(Error::Statement { error, .. }) if !error.ends_session() => End::Refused,
            Err(_) => End::Unanswered,
        };
        if let Some(pen) = &mut self.pen {
            pen.write(Line::Ddl(Record { key: Key { connection: 0, sequence: number }, invoke_ns, end }));
        }
        let cut = match &self.cuts {
            Some(cuts) if step.is_ddl() => match end {
                End::Acked(now_ns) => cuts.ddl_acked(now_ns),
                _ => Ok(()),
            },
            _ => Ok(()),
        };
        let trouble = match (answer, cut) {
            (Ok(()), Ok(())) => return true,
            (Ok(()), Err(why)) => why,
            // The clients of the load say what has become of the server.
            (Err(_), _) if end == End::Unanswered => return false,
            (Err(error), _) => error.to_string(),
        };
        if let Some(log) = &self.log {
            log.fail(std::io::Error::other(trouble));
        }
        false
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // One that panicked has said so.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_and_statements_fit_together() {
        let kinds = kinds();
        assert_eq!(kinds[Verb::Rollback as usize].name, "rollback");
        assert_eq!(kinds[Verb::Update as usize].name, "update");
        let prepared = prepared(3);
        assert_eq!(prepared[Query::Transfers as usize].matches('?').count(), 15);
        assert!(
            prepared[Query::Accounts as usize].starts_with("UPDATE")
                && prepared[Query::Accounts as usize].matches('?').count() == 9
        );
        assert!(prepared[Query::RowWithBlob as usize].contains("content"));
    }
}
