//! The reply to one statement, parsed as it arrives and only as far as needed.
//!
//! The parser keeps at most [`HEAD_MAX`] bytes of a packet, so a server can make it neither
//! buffer a large result nor trust a length it claims.

use super::kept_rows::KeptRows;
use super::packet::{HEADER_SIZE, PAYLOAD_MAX, decode_header, take_integer};
use crate::text::{CHARS_MAX, printable};

/// Bytes that matter of any packet. Only an error message can be longer, which MySQL and MariaDB end at 512 bytes.
pub const HEAD_MAX: usize = 1024;

const OK: u8 = 0x00;
const LOCAL_INFILE: u8 = 0xfb;
const END: u8 = 0xfe;
/// The first byte of an error packet, and of no other.
pub const ERROR: u8 = 0xff;

/// An EOF packet is shorter than this.
const EOF_END: usize = 9;

/// The server allows 4,096 columns; more than this is garbage.
const COLUMNS_MAX: u64 = 65_535;

const STATUS_IN_TRANSACTION: u16 = 0x0001;
const STATUS_MORE_RESULTS: u16 = 0x0008;

/// An error packet.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{code} ({sqlstate}): {message}")]
pub struct ServerError {
    /// The server's error code.
    pub code: u16,
    /// Five characters; `HY000` if the server sent none.
    pub sqlstate: String,
    /// The server's text, fit to show.
    pub message: String,
}

impl ServerError {
    /// Parses an error packet of `length` bytes that starts with `head`, marker included.
    pub fn parse(head: &[u8], length: usize) -> Option<Self> {
        let [ERROR, low, high, rest @ ..] = &head[..head.len().min(HEAD_MAX)] else {
            return None;
        };
        let (sqlstate, message) = match rest {
            [b'#', rest @ ..] => rest.split_at_checked(5)?,
            message => (&b"HY000"[..], message),
        };
        Some(Self {
            code: u16::from_le_bytes([*low, *high]),
            sqlstate: printable(sqlstate, sqlstate.len(), sqlstate.len()),
            message: printable(message, length - (head.len().min(HEAD_MAX) - message.len()), CHARS_MAX),
        })
    }

    /// Whether the server ends the session (or itself) with this error.
    pub fn ends_session(&self) -> bool {
        const SERVER_SHUTDOWN: u16 = 1053;
        const CONNECTION_KILLED: u16 = 1927;
        const DISCONNECTED_BY_SERVER: u16 = 4031;
        matches!(self.code, SERVER_SHUTDOWN | CONNECTION_KILLED | DISCONNECTED_BY_SERVER)
    }
}

/// Bytes that are not the protocol.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the server broke the protocol: {0}")]
pub struct ProtocolError(pub &'static str);

/// How result sets look, by the capabilities that were negotiated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// EOF packets end the columns and the rows.
    Eof,
    /// An OK packet ends the rows, nothing the columns (`CLIENT_DEPRECATE_EOF`).
    Ok,
    /// The same, and a byte behind the number of columns says whether their definitions follow
    /// (MariaDB's `CACHE_METADATA`).
    CachedMetadata,
}

/// A whole reply.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Reply {
    /// Rows over all result sets.
    pub rows: u64,
    /// Warnings over all results; 0 after an error, which has none.
    pub warnings: u32,
    /// Whether the session is inside a transaction now; false after an error, which does not say.
    pub in_transaction: bool,
    /// The error that ended the reply; boxed, as it is rare and a reply is passed around often.
    pub error: Option<Box<ServerError>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Expected {
    First,
    Columns(u64),
    EndOfColumns,
    Rows,
}

/// Parses one reply at a time.
#[derive(Debug)]
pub struct ReplyParser {
    dialect: Dialect,
    state: Expected,
    sequence: u8,
    rows: u64,
    warnings: u32,
    in_transaction: bool,
    error: Option<Box<ServerError>>,
    /// The packet before was of the largest size: this one continues it.
    continued: bool,
    header: [u8; HEADER_SIZE],
    header_filled: usize,
    head: Vec<u8>,
    missing: usize,
    kept: Option<KeptRows>,
    is_numbered: bool,
}

impl ReplyParser {
    /// For a connection that speaks `dialect`.
    pub fn new(dialect: Dialect) -> Self {
        Self {
            dialect,
            state: Expected::First,
            sequence: 1,
            rows: 0,
            warnings: 0,
            in_transaction: false,
            error: None,
            continued: false,
            header: [0; HEADER_SIZE],
            header_filled: 0,
            head: Vec::new(),
            missing: 0,
            kept: None,
            is_numbered: true,
        }
    }

    /// Has the numbers of packets checked. Those of compressed packets count anew with each compressed one that the server
    /// sends, so only these are in order, and TCP keeps them so.
    pub fn check_numbers(&mut self, check: bool) {
        self.is_numbered = check;
    }

    /// Keeps the rows of each reply from now on, or does not.
    pub fn keep_rows(&mut self, keep: bool) {
        self.kept = keep.then(KeptRows::default);
    }

    /// The rows of the reply, if they are kept: up to [`HEAD_MAX`] bytes of each.
    pub fn kept_rows(&self) -> Option<&KeptRows> {
        self.kept.as_ref()
    }

    /// Makes ready for a reply whose first packet is numbered `sequence`.
    pub fn expect(&mut self, sequence: u8) {
        self.state = Expected::First;
        self.sequence = sequence;
        self.rows = 0;
        self.warnings = 0;
        self.continued = false;
        self.header_filled = 0;
        self.missing = 0;
        if let Some(kept) = &mut self.kept {
            kept.clear();
        }
    }

    /// Rows seen so far of the reply so far unfinished.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Consumes `bytes`; `Some` when they complete the reply.
    ///
    /// # Errors
    /// What is not the protocol, and bytes after the end of the reply.
    #[inline]
    pub fn feed(&mut self, mut bytes: &[u8]) -> Result<Option<Reply>, ProtocolError> {
        while !bytes.is_empty() {
            let done = match whole_packet(bytes) {
                Some((sequence, payload, rest)) if self.header_filled == 0 => {
                    bytes = rest;
                    self.packet(payload, payload.len(), sequence)?
                }
                _ => self.piece(&mut bytes)?,
            };
            if done {
                return self.reply(bytes);
            }
            bytes = self.pass_rows(bytes);
        }
        Ok(None)
    }

    /// Passes over whole rows, of which a reply can have a lot; what may be anything else is left.
    #[inline]
    fn pass_rows<'b>(&mut self, mut bytes: &'b [u8]) -> &'b [u8] {
        if self.state != Expected::Rows || self.continued || self.header_filled > 0 || self.kept.is_some() {
            return bytes;
        }
        let (mut next, mut passed) = (self.sequence, 0);
        while let Some((sequence, payload, rest)) = whole_packet(bytes)
            && (sequence == next || !self.is_numbered)
            && payload.len() < PAYLOAD_MAX
            && payload.first().is_some_and(|first| *first < END)
        {
            next = next.wrapping_add(1);
            passed += 1;
            bytes = rest;
        }
        self.sequence = next;
        self.rows += passed;
        bytes
    }

    /// Takes one payload of `length` bytes that starts with `head`; `Some` when it completes the reply.
    ///
    /// # Errors
    /// As [`Self::feed`].
    pub fn payload(&mut self, head: &[u8], length: usize) -> Result<Option<Reply>, ProtocolError> {
        if self.meaning(head, length)? { self.reply(&[]) } else { Ok(None) }
    }

    /// The reply that is complete, with what is behind it.
    #[inline]
    fn reply(&mut self, behind: &[u8]) -> Result<Option<Reply>, ProtocolError> {
        if !behind.is_empty() {
            return Err(ProtocolError("bytes after the end of a reply"));
        }
        let Self { rows, warnings, in_transaction, .. } = *self;
        Ok(Some(Reply { rows, warnings, in_transaction, error: self.error.take() }))
    }

    /// Takes what there is of a packet that is not there as a whole.
    fn piece(&mut self, bytes: &mut &[u8]) -> Result<bool, ProtocolError> {
        while self.header_filled < HEADER_SIZE {
            let Some((first, rest)) = bytes.split_first() else {
                return Ok(false);
            };
            self.header[self.header_filled] = *first;
            self.header_filled += 1;
            *bytes = rest;
            if self.header_filled == HEADER_SIZE {
                self.missing = decode_header(self.header).0;
                self.head.clear();
            }
        }
        let (piece, rest) = bytes.split_at(bytes.len().min(self.missing));
        let kept = piece.len().min(HEAD_MAX - self.head.len());
        self.head.extend_from_slice(&piece[..kept]);
        self.missing -= piece.len();
        *bytes = rest;
        if self.missing > 0 {
            return Ok(false);
        }
        self.header_filled = 0;
        let (length, sequence) = decode_header(self.header);
        let head = std::mem::take(&mut self.head);
        let done = self.packet(&head, length, sequence);
        self.head = head;
        done
    }

    /// Handles one packet of `length` bytes that starts with `head`; gives whether it was the last.
    #[inline]
    fn packet(&mut self, head: &[u8], length: usize, sequence: u8) -> Result<bool, ProtocolError> {
        let first = head.first().copied();
        let continues = std::mem::replace(&mut self.continued, length == PAYLOAD_MAX);
        // An error that announces a disconnect is numbered on its own.
        if self.is_numbered && sequence != self.sequence && (continues || first != Some(ERROR)) {
            return Err(ProtocolError("a packet out of sequence"));
        }
        self.sequence = sequence.wrapping_add(1);
        if continues { Ok(false) } else { self.meaning(head, length) }
    }

    /// Handles one payload of `length` bytes that starts with `head`; gives whether it was the last.
    #[inline]
    fn meaning(&mut self, head: &[u8], length: usize) -> Result<bool, ProtocolError> {
        let first = head.first().copied().ok_or(ProtocolError("an empty packet"))?;
        match self.state {
            _ if first == ERROR => return self.refused(head, length),
            Expected::First if first == OK => return self.after_result(ok_status(head)),
            Expected::First => self.head_of_rows(head)?,
            Expected::Columns(left @ 2..) => self.state = Expected::Columns(left - 1),
            Expected::Columns(_) if self.dialect == Dialect::Eof => self.state = Expected::EndOfColumns,
            Expected::Columns(_) => self.state = Expected::Rows,
            Expected::EndOfColumns if first == END && length < EOF_END => self.state = Expected::Rows,
            Expected::EndOfColumns => return Err(ProtocolError("columns without an end")),
            Expected::Rows if first == END && length < self.end_size() => {
                return self.after_result(if self.dialect == Dialect::Eof {
                    eof_status(head)
                } else {
                    ok_status(head)
                });
            }
            Expected::Rows => {
                self.rows += 1;
                if let Some(kept) = &mut self.kept {
                    kept.push(&head[..head.len().min(HEAD_MAX)]);
                }
            }
        }
        Ok(false)
    }

    #[cold]
    fn refused(&mut self, head: &[u8], length: usize) -> Result<bool, ProtocolError> {
        let error = ServerError::parse(head, length).ok_or(ProtocolError("an error packet cut short"))?;
        self.error = Some(Box::new(error));
        (self.warnings, self.in_transaction) = (0, false);
        Ok(true)
    }

    /// A row can start like an end packet, but is then at least this long.
    fn end_size(&self) -> usize {
        if self.dialect == Dialect::Eof { EOF_END } else { PAYLOAD_MAX }
    }

    fn head_of_rows(&mut self, head: &[u8]) -> Result<(), ProtocolError> {
        if head.first() == Some(&LOCAL_INFILE) {
            return Err(ProtocolError("it asks for a local file"));
        }
        let mut rest = head;
        let columns = take_integer(&mut rest).filter(|n| (1..=COLUMNS_MAX).contains(n));
        let columns = columns.ok_or(ProtocolError("an impossible number of columns"))?;
        let defined = self.dialect != Dialect::CachedMetadata || rest != [0];
        self.state = if defined { Expected::Columns(columns) } else { Expected::Rows };
        Ok(())
    }

    #[inline]
    fn after_result(&mut self, status: Option<Status>) -> Result<bool, ProtocolError> {
        let status = status.ok_or(ProtocolError("a status packet cut short"))?;
        self.warnings = self.warnings.saturating_add(u32::from(status.warnings));
        self.in_transaction = status.flags & STATUS_IN_TRANSACTION != 0;
        self.state = Expected::First;
        Ok(status.flags & STATUS_MORE_RESULTS == 0)
    }
}

/// What the end of a result says.
struct Status {
    flags: u16,
    warnings: u16,
}

/// The first packet of `bytes` if it is there as a whole: sequence, payload, what follows.
#[inline]
fn whole_packet(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (header, rest) = bytes.split_first_chunk::<HEADER_SIZE>()?;
    let (length, sequence) = decode_header(*header);
    let (payload, rest) = rest.split_at_checked(length)?;
    Some((sequence, payload, rest))
}

/// Of an OK packet: marker, affected rows, insert id, flags, warnings.
fn ok_status(head: &[u8]) -> Option<Status> {
    let mut rest = head.get(1..)?;
    take_integer(&mut rest)?;
    take_integer(&mut rest)?;
    let [a, b, c, d] = *rest.first_chunk()?;
    Some(Status { flags: u16::from_le_bytes([a, b]), warnings: u16::from_le_bytes([c, d]) })
}

/// Of an EOF packet: marker, warnings, flags.
fn eof_status(head: &[u8]) -> Option<Status> {
    match head {
        [_, a, b, c, d, ..] => {
            Some(Status { flags: u16::from_le_bytes([*c, *d]), warnings: u16::from_le_bytes([*a, *b]) })
        }
        _ => None,
    }
}

#[cfg(test)]
#[path = "reply_tests.rs"]
mod tests;
