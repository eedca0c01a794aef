//! A blocking session: logs in, runs the few statements around a load, prepares statements, and then hands its socket
//! to the event loop.

use std::os::fd::OwnedFd;
use std::str::FromStr;
use std::time::Duration;

use super::auth::{AuthError, Channel, Dialogue, Login, Step};
use super::packet::{self, Prepared, take_string};
use super::reply::{Dialect, ProtocolError, Reply, ReplyParser, ServerError};
use super::stream::{Compression, PacketStream};
use super::tls::Tls;
use crate::endpoint::Endpoint;
use crate::error::{Error, Slow, shorten};
use crate::stop::Stop;

/// Longest reply of which the rows are kept, in bytes: what a session asks for is short.
const KEPT_SIZE_MAX: usize = 64 << 20;

/// The same of a result that is as long as the user's table: some 30 million keys.
const LONG_SIZE_MAX: usize = 1 << 30;

/// Longest reply of which nothing is kept, in bytes: a user's own statement may give rows.
const DROPPED_SIZE_MAX: usize = 4 << 30;

const TOO_LONG: &str = "a reply that is too long";

/// The rows of a result as the text protocol gives them; `None` is NULL.
pub type Rows = Vec<Vec<Option<String>>>;

/// A logged-in connection.
#[derive(Debug)]
pub struct Session {
    endpoint: Endpoint,
    stream: PacketStream,
    dialect: Dialect,
    server_version: String,
    connection_id: u32,
    prepared: Vec<Prepared>,
    /// A statement was sent whose reply was not read to its end.
    in_reply: bool,
}

impl Session {
    /// Connects to `endpoint`, starting in `schema`, and runs its initial command.
    ///
    /// # Errors
    /// One line that names the place, the code and the remedy.
    pub fn connect(endpoint: &Endpoint, schema: Option<&str>, stop: &Stop) -> Result<Self, Error> {
        let mut session = Self {
            endpoint: endpoint.clone(),
            stream: PacketStream::dial(endpoint, stop)?,
            dialect: Dialect::Eof,
            server_version: String::new(),
            connection_id: 0,
            prepared: Vec::new(),
            in_reply: false,
        };
        session.log_in(endpoint, schema).map_err(|error| endpoint.explain(error))?;
        session.stream.patience.logged_in();
        if let Some(command) = &endpoint.init_command {
            session.execute(command)?;
        }
        Ok(session)
    }

    fn log_in(&mut self, endpoint: &Endpoint, schema: Option<&str>) -> Result<(), Error> {
        let login = Login {
            user: &endpoint.user,
            password: endpoint.password.reveal(),
            schema,
            channel: if endpoint.is_private() { Channel::Private } else { Channel::Open },
            server_key: endpoint.security.server_key.as_deref(),
            may_ask_for_key: endpoint.security.may_ask_for_key,
            compressed: endpoint.compressed,
        };
        let (mut dialogue, greeting) = Dialogue::start(login, &self.stream.read_payload()?.head)?;
        self.dialect = greeting.dialect;
        self.server_version = greeting.server_version;
        self.connection_id = greeting.connection_id;
        if let Some(tls) = &endpoint.security.tls
            && tls.wants_tls(greeting.offers_tls, endpoint.is_private())?
        {
            self.stream.write_payload(&dialogue.request_tls(tls.channel()))?;
            self.stream.start_tls(Box::new(tls.connection()?))?;
        }
        self.stream.write_payload(&dialogue.response()?)?;
        loop {
            match dialogue.packet(&self.stream.read_payload()?.head)? {
                Step::Send(answer) => self.stream.write_payload(&answer)?,
                Step::Read => {}
                Step::Done if endpoint.compressed => return self.stream.start_compression(),
                Step::Done => return Ok(()),
            }
        }
    }

    /// Another session on the same server by the same login, in no schema yet.
    ///
    /// # Errors
    /// As [`Self::connect`].
    pub fn another(&self) -> Result<Self, Error> {
        let stop = self.stream.stop.clone().unwrap_or_default();
        Self::connect(&self.endpoint, None, &stop)
    }

    /// Version text of the server.
    pub fn server_version(&self) -> &str {
        &self.server_version
    }

    /// A session for cleaning up, which a request to stop no longer interrupts. It is this one, unless
    /// that was left in the middle of a statement, which is killed then.
    ///
    /// # Errors
    /// The server cannot be reached any more.
    pub fn for_cleaning_up(mut self, endpoint: &Endpoint) -> Result<Self, Error> {
        Stop::next_ends_process();
        if self.in_reply {
            let mut fresh = Self::connect(endpoint, None, &Stop::default())?;
            let limits = fresh.stream.patience.limits;
            fresh.wait_at_most(endpoint.connect_timeout);
            // It may have ended by itself, which is an error here.
            let killed = fresh.execute(&format!("KILL {}", self.connection_id));
            fresh.stream.patience.limits = limits;
            return match killed {
                Ok(()) | Err(Error::Statement { .. }) => Ok(fresh),
                Err(dead) => Err(dead),
            };
        }
        self.stream.stop = None;
        Ok(self)
    }

    /// Sets the longest wait for any later statement.
    pub fn wait_at_most(&mut self, longest: Duration) {
        let limits = &mut self.stream.patience.limits;
        (limits.silence, limits.reply) = (limits.silence.min(longest), limits.reply.min(longest));
    }

    /// Runs `sql` and drops its rows.
    ///
    /// # Errors
    /// The server's error, with the statement.
    pub fn execute(&mut self, sql: &str) -> Result<(), Error> {
        self.ask(sql, |_| Ok(()), DROPPED_SIZE_MAX)
    }

    /// Runs `sql`, for which the server may need hours, such as an index on a large table.
    ///
    /// # Errors
    /// As [`Self::execute`]; a server that says nothing is given up only when no statement may take that long.
    pub fn execute_long(&mut self, sql: &str) -> Result<(), Error> {
        let silence = std::mem::replace(&mut self.stream.patience.limits.silence, Duration::MAX);
        let outcome = self.execute(sql);
        self.stream.patience.limits.silence = silence;
        outcome
    }

    /// Runs `sql` and gives its rows.
    ///
    /// # Errors
    /// The server's error, with the statement; a request to stop, in which case it is not run.
    pub fn query(&mut self, sql: &str) -> Result<Rows, Error> {
        self.query_at_most(sql, KEPT_SIZE_MAX)
    }

    /// Runs `sql` and gives all values of its rows but NULLs, one row after the other.
    ///
    /// # Errors
    /// As [`Self::query`].
    pub fn values(&mut self, sql: &str) -> Result<Vec<String>, Error> {
        Ok(self.query(sql)?.into_iter().flatten().flatten().collect())
    }

    /// Runs `sql` and gives the first of its values; `None` where there is none of that type.
    ///
    /// # Errors
    /// As [`Self::query`].
    pub fn value<T: FromStr>(&mut self, sql: &str) -> Result<Option<T>, Error> {
        Ok(self.values(sql)?.first().and_then(|text| text.parse().ok()))
    }

    /// The same for a result that is as long as the user's table.
    ///
    /// # Errors
    /// As [`Self::query`].
    pub fn query_long(&mut self, sql: &str) -> Result<Rows, Error> {
        self.query_at_most(sql, LONG_SIZE_MAX)
    }

    /// Runs `sql` and has `take` look at each row as the text protocol gives it: nothing is kept, however many there
    /// are.
    ///
    /// # Errors
    /// As [`Self::query`]; what `take` has against a row.
    pub fn each_row(&mut self, sql: &str, take: impl FnMut(&[u8]) -> Result<(), ProtocolError>) -> Result<(), Error> {
        self.ask(sql, take, usize::MAX)
    }

    fn query_at_most(&mut self, sql: &str, size_max: usize) -> Result<Rows, Error> {
        let mut rows = Vec::new();
        let keep = |payload: &[u8]| {
            rows.push(row(payload)?);
            Ok(())
        };
        self.ask(sql, keep, size_max)?;
        Ok(rows)
    }

    /// Has the server prepare `statements`, after those prepared before.
    ///
    /// # Errors
    /// The server's error, with the statement; a request to stop.
    pub fn prepare_all(&mut self, statements: &[String]) -> Result<(), Error> {
        self.prepared.reserve(statements.len());
        for sql in statements {
            let prepared = self.prepare(sql, statements.len())?;
            self.prepared.push(prepared);
        }
        Ok(())
    }

    /// Prepares one of `count` statements.
    fn prepare(&mut self, sql: &str, count: usize) -> Result<Prepared, Error> {
        const TOO_MANY_PREPARED: u16 = 1461;
        match self.answer_to_prepare(sql).map_err(|error| self.about(sql, error))? {
            Answer::Refused(error) if error.code == TOO_MANY_PREPARED => Err(Error::Failed(format!(
                "the server prepares no more statements: error {error}: this load prepares {count} on each \
                 connection, so it needs {count} times the number of clients: SET GLOBAL \
                 max_prepared_stmt_count to more than that, or use fewer clients or text statements"
            ))),
            Answer::Refused(error) => Err(Error::Statement { sql: sql.to_owned(), error }),
            Answer::Prepared(prepared) => Ok(prepared),
        }
    }

    fn answer_to_prepare(&mut self, sql: &str) -> Result<Answer, Error> {
        self.send(packet::prepare(sql.as_bytes()))?;
        let mut parser = PrepareParser::new(self.dialect);
        let mut size = 0;
        loop {
            let payload = self.stream.read_payload()?;
            size += payload.length;
            if size > KEPT_SIZE_MAX {
                return Err(ProtocolError(TOO_LONG).into());
            }
            if let Some(answer) = parser.packet(&payload.head, payload.length)? {
                self.in_reply = false;
                return Ok(answer);
            }
        }
    }

    /// With the statement that the server was to answer, where that says more.
    fn about(&self, sql: &str, error: Error) -> Error {
        match error {
            Error::Slow(slow) => Error::Slow(Slow { sql: Some(sql.to_owned()), ..slow }),
            Error::Protocol(why) => {
                Error::Failed(format!("{}: {why}; statement: {}", self.endpoint.place(), shorten(sql)))
            }
            other => other,
        }
    }

    /// Sends a request, unless a request to stop came.
    fn send(&mut self, request: Vec<u8>) -> Result<(), Error> {
        if self.stream.is_stop_requested() {
            return Err(Error::Interrupted);
        }
        self.in_reply = true;
        self.stream.write_request(request)
    }

    /// Hands the connection to an event loop.
    pub fn into_connection(self) -> Connection {
        let mut parser = ReplyParser::new(self.dialect);
        let (socket, tls, compression) = self.stream.into_parts();
        parser.check_numbers(compression.is_none());
        Connection { socket, parser, prepared: self.prepared, tls, compression }
    }

    /// Ends the session politely; the server no longer counts it as aborted.
    pub fn quit(self) {
        self.stream.quit();
    }

    /// Runs `sql` and takes each of its rows, of a reply of at most `size_max` bytes.
    fn ask(
        &mut self,
        sql: &str,
        take: impl FnMut(&[u8]) -> Result<(), ProtocolError>,
        size_max: usize,
    ) -> Result<(), Error> {
        let sent = self.send(packet::query(sql.as_bytes()));
        let reply = sent.and_then(|()| self.reply(take, size_max)).map_err(|error| self.about(sql, error))?;
        reply.error.map_or(Ok(()), |error| Err(Error::Statement { sql: sql.to_owned(), error: *error }))
    }

    /// Reads one reply: a [`ReplyParser`] finds its end, here only the rows are taken out.
    fn reply(
        &mut self,
        mut take: impl FnMut(&[u8]) -> Result<(), ProtocolError>,
        size_max: usize,
    ) -> Result<Reply, Error> {
        let mut parser = ReplyParser::new(self.dialect);
        let mut size = 0;
        loop {
            let payload = self.stream.read_payload()?;
            size += payload.length;
            if size > size_max {
                return Err(ProtocolError(TOO_LONG).into());
            }
            let before = parser.rows();
            let done = parser.payload(&payload.head, payload.length)?;
            if parser.rows() > before {
                take(&payload.head)?;
            }
            if let Some(reply) = done {
                self.in_reply = false;
                return Ok(reply);
            }
        }
    }
}

fn row(mut payload: &[u8]) -> Result<Vec<Option<String>>, ProtocolError> {
    let mut values = Vec::new();
    while !payload.is_empty() {
        let value = take_string(&mut payload).ok_or(ProtocolError("a row cut short"))?;
        values.push(value.map(|text| String::from_utf8_lossy(text).into_owned()));
    }
    Ok(values)
}

impl From<AuthError> for Error {
    fn from(error: AuthError) -> Self {
        match error {
            AuthError::Server(error) => Self::Login(error),
            AuthError::Refused(why) => Self::Failed(why),
        }
    }
}

/// What [`Session::into_connection`] gives.
#[derive(Debug)]
pub struct Connection {
    /// A blocking socket with timeouts; the loop sets it as it likes.
    pub socket: OwnedFd,
    /// Finds the ends of the replies on it.
    pub parser: ReplyParser,
    /// Its prepared statements, in the order they were asked for.
    pub prepared: Vec<Prepared>,
    /// What seals and opens the bytes on the socket, if they are TLS records.
    pub tls: Option<Box<Tls>>,
    /// What inflates the packets in them, if they are compressed.
    pub compression: Option<Box<Compression>>,
}

const OK: u8 = 0x00;
const END: u8 = 0xfe;

/// Longest EOF packet, in bytes; a definition of a parameter or a column is longer.
const EOF_MAX: usize = 8;

/// What the answer comes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// The statement is prepared.
    Prepared(Prepared),
    /// The server refused it.
    Refused(ServerError),
}

/// Parses the answer, one payload after the other. Definitions of parameters and columns are
/// counted, not read.
#[derive(Debug)]
pub struct PrepareParser {
    dialect: Dialect,
    prepared: Option<Prepared>,
    /// Packets to come of the two lists, parameters and columns, with an EOF packet that ends it.
    lists: [u32; 2],
}

impl PrepareParser {
    /// For a connection that speaks `dialect`.
    pub fn new(dialect: Dialect) -> Self {
        Self { dialect, prepared: None, lists: [0; 2] }
    }

    /// Takes the next payload, of `length` bytes that start with `head`; `Some` when it is the last.
    ///
    /// # Errors
    /// It is not the protocol.
    pub fn packet(&mut self, head: &[u8], length: usize) -> Result<Option<Answer>, ProtocolError> {
        if let Some(error) = ServerError::parse(head, length) {
            return Ok(Some(Answer::Refused(error)));
        }
        match self.prepared {
            None => self.head(head),
            Some(prepared) => self.definition(head, prepared),
        }
    }

    /// Marker, number of the statement (4 bytes), columns (2), parameters (2), and what does not
    /// concern us.
    fn head(&mut self, payload: &[u8]) -> Result<Option<Answer>, ProtocolError> {
        let Some([OK, id @ .., c0, c1, p0, p1]) = payload.first_chunk::<9>() else {
            return Err(ProtocolError("an invalid answer to a request to prepare a statement"));
        };
        let columns = u16::from_le_bytes([*c0, *c1]);
        let parameters = u16::from_le_bytes([*p0, *p1]);
        let prepared = Prepared { id: u32::from_le_bytes(*id), parameters, bound: false };
        let packets = |definitions: u16| match definitions {
            0 => 0,
            some => u32::from(some) + u32::from(self.dialect == Dialect::Eof),
        };
        self.lists = [packets(parameters), packets(columns)];
        self.prepared = Some(prepared);
        Ok(self.progress(prepared))
    }

    fn definition(&mut self, payload: &[u8], prepared: Prepared) -> Result<Option<Answer>, ProtocolError> {
        let list = usize::from(self.lists[0] == 0);
        let left = &mut self.lists[list];
        let ends = *left == 1 && self.dialect == Dialect::Eof;
        if ends != (payload.first() == Some(&END) && payload.len() <= EOF_MAX) {
            return Err(ProtocolError("a number of definitions other than announced"));
        }
        *left = left.checked_sub(1).ok_or(ProtocolError("an unexpected definition"))?;
        Ok(self.progress(prepared))
    }

    fn progress(&self, prepared: Prepared) -> Option<Answer> {
        (self.lists == [0; 2]).then_some(Answer::Prepared(prepared))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn rows_have_nulls() {
        assert_eq!(row(b"\x01a\xfb\x00").unwrap(), [Some("a".into()), None, Some(String::new())]);
        assert!(row(b"\x05a").is_err());
    }

    const EOF: &[u8] = &[END, 0, 0, 2, 0];
    const DEFINITION: &[u8] = b"\x03def\x00\x00\x00\x01a\x00";

    /// The answer after all of `payloads`; none may come after the last one.
    fn answer(dialect: Dialect, payloads: &[&[u8]]) -> Result<Option<Answer>, ProtocolError> {
        let mut parser = PrepareParser::new(dialect);
        let (last, before) = payloads.split_last().unwrap();
        for payload in before {
            assert_eq!(parser.packet(payload, payload.len())?, None);
        }
        parser.packet(last, last.len())
    }

    fn head(columns: u8, parameters: u8) -> [u8; 12] {
        [OK, 7, 0, 0, 0, columns, 0, parameters, 0, 0, 0, 0]
    }

    #[test]
    fn definitions_are_counted_in_every_dialect() {
        let prepared = |parameters| Ok(Some(Answer::Prepared(Prepared { id: 7, parameters, bound: false })));
        for dialect in [Dialect::Eof, Dialect::Ok, Dialect::CachedMetadata] {
            assert_eq!(answer(dialect, &[&head(0, 0)]), prepared(0));
        }
        let with_eof = [&head(1, 2), DEFINITION, DEFINITION, EOF, DEFINITION, EOF];
        assert_eq!(answer(Dialect::Eof, &with_eof), prepared(2));
        assert_eq!(answer(Dialect::Ok, &[&head(1, 2), DEFINITION, DEFINITION, DEFINITION]), prepared(2));
        assert_eq!(answer(Dialect::CachedMetadata, &[&head(1, 0), DEFINITION]), prepared(0));
    }

    #[test]
    fn a_refusal_is_reported() {
        let Ok(Some(Answer::Refused(error))) = answer(Dialect::Ok, &[b"\xff\xb5\x05#42000full"]) else { panic!() };
        assert_eq!((error.code, error.message.as_str()), (1461, "full"));
    }

    #[test]
    fn a_wrong_number_of_definitions_is_noticed() {
        assert!(answer(Dialect::Eof, &[&head(2, 0), DEFINITION, EOF]).is_err());
        assert!(answer(Dialect::Eof, &[&head(1, 0), DEFINITION, DEFINITION]).is_err());
        assert!(answer(Dialect::Ok, &[&head(1, 0), EOF]).is_err());
        assert!(answer(Dialect::Ok, &[b"\x00\x01"]).is_err());
    }

    proptest! {
        #[test]
        fn garbage_never_panics(payloads: Vec<Vec<u8>>, columns: u8, parameters: u8, started: bool) {
            for dialect in [Dialect::Eof, Dialect::Ok, Dialect::CachedMetadata] {
                let mut parser = PrepareParser::new(dialect);
                if started {
                    prop_assert!(parser.packet(&head(columns, parameters), 12).is_ok());
                }
                for payload in &payloads {
                    if parser.packet(payload, payload.len()) != Ok(None) {
                        break;
                    }
                }
            }
        }
    }
}
