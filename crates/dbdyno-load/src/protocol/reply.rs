//! The reply to one statement, parsed as it arrives and only as far as needed, and the rows of it that a load looks at.
//!
//! The parser keeps at most [`HEAD_MAX`] bytes of a packet, so a server can make it neither
//! buffer a large result nor trust a length it claims.

use super::packet::{HEADER_SIZE, PAYLOAD_MAX, decode_header, take_integer, take_string};
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

/// ER_SERVER_SHUTDOWN, ER_CONNECTION_KILLED, ER_CLIENT_INTERACTION_TIMEOUT: the server ends the session with them.
pub const SESSION_ENDED: [u16; 3] = [1053, 1927, 4031];

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
        SESSION_ENDED.contains(&self.code)
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

    /// Has the numbers of packets checked. Those of compressed packets count anew with each compressed one that the
    /// server sends, so only these are in order, and TCP keeps them so.
    pub fn check_numbers(&mut self, check: bool) {
        self.is_numbered = check;
    }

    /// Sets whether the rows of later replies are kept.
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

/// Bytes of all rows of a reply, at most; later rows are left out.
const SIZE_MAX: usize = 64 << 10;

/// Rows of one reply, one after the other.
#[derive(Debug, Default)]
pub struct KeptRows {
    bytes: Vec<u8>,
    /// Where each ends.
    ends: Vec<usize>,
}

impl KeptRows {
    /// Forgets all.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    /// Takes the payload of a row, if there is room.
    pub fn push(&mut self, payload: &[u8]) {
        if self.bytes.len() + payload.len() <= SIZE_MAX {
            self.bytes.extend_from_slice(payload);
            self.ends.push(self.bytes.len());
        }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Row `number`, from 0, of a prepared statement with so many columns; none of them may be NULL.
    pub fn row(&self, number: usize, columns: usize) -> Option<Row<'_>> {
        let start = number.checked_sub(1).map_or(0, |before| self.ends[before]);
        let payload = &self.bytes[start..*self.ends.get(number)?];
        // A marker, then a bit for each column that is NULL, after two bits that mean nothing.
        let values = 1 + (columns + 2).div_ceil(8);
        let (head, values) = payload.split_at_checked(values)?;
        head[1..].iter().all(|nulls| *nulls == 0).then_some(Row(values))
    }
}

/// The values of a row that are still to be read.
#[derive(Debug, Clone, Copy)]
pub struct Row<'a>(&'a [u8]);

impl<'a> Row<'a> {
    /// The next value, of an INT.
    pub fn int(&mut self) -> Option<i32> {
        let (value, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(i32::from_le_bytes(*value))
    }

    /// The next value, of a text or a DECIMAL.
    pub fn text(&mut self) -> Option<&'a [u8]> {
        take_string(&mut self.0).flatten()
    }

    /// The next value, of a DECIMAL with two digits behind the point, in hundredths.
    pub fn hundredths(&mut self) -> Option<i64> {
        let text = std::str::from_utf8(self.text()?).ok()?;
        let (whole, part) = text.split_once('.')?;
        if part.len() != 2 {
            return None;
        }
        format!("{whole}{part}").parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::packet::encode;
    use super::*;

    const OK_PACKET: &[u8] = &[0, 1, 0, 2, 0, 0, 0];

    fn packets(payloads: &[&[u8]]) -> Vec<u8> {
        let mut out = Vec::new();
        let mut sequence = 1;
        for payload in payloads {
            encode(sequence, payload, &mut out);
            sequence = sequence.wrapping_add((payload.len() / PAYLOAD_MAX + 1) as u8);
        }
        out
    }

    fn select(deprecate_eof: bool, status: u8) -> Vec<u8> {
        let eof = [END, 0, 0, status, 0];
        let ok = [END, 0, 0, status, 0, 0, 0];
        let mut payloads: Vec<&[u8]> = vec![&[2], b"\x03def.a", b"\x03def.b"];
        if !deprecate_eof {
            payloads.push(&eof);
        }
        payloads.extend([&b"\x011\x03abc"[..], b"\x012\xfb"]);
        payloads.push(if deprecate_eof { &ok } else { &eof });
        packets(&payloads)
    }

    fn dialect(deprecate_eof: bool) -> Dialect {
        if deprecate_eof { Dialect::Ok } else { Dialect::Eof }
    }

    fn parse(bytes: &[u8], deprecate_eof: bool) -> Result<Option<Reply>, ProtocolError> {
        ReplyParser::new(dialect(deprecate_eof)).feed(bytes)
    }

    fn replies() -> Vec<(bool, Vec<u8>, Reply)> {
        let reply = |rows| Reply { rows, ..Reply::default() };
        let duplicate = ServerError { code: 1062, sqlstate: "23000".into(), message: "Duplicate entry".into() };
        let mut long_row = vec![END];
        long_row.extend((PAYLOAD_MAX as u64 + 10).to_le_bytes());
        long_row.resize(PAYLOAD_MAX + 19, b'x');
        let long = packets(&[&[1], b"\x03def.a", &long_row, &[END, 0, 0, 2, 0, 0, 0]]);
        vec![
            (true, packets(&[OK_PACKET]), reply(0)),
            (true, select(true, 2), reply(2)),
            (false, select(false, 2), reply(2)),
            (true, long, reply(1)),
            (
                true,
                packets(&[b"\xff\x26\x04#23000Duplicate entry"]),
                Reply { error: Some(Box::new(duplicate)), ..Reply::default() },
            ),
        ]
    }

    #[test]
    fn a_reply_is_the_same_split_anywhere() {
        for (deprecate_eof, bytes, expected) in replies() {
            assert_eq!(parse(&bytes, deprecate_eof), Ok(Some(expected.clone())));
            for at in (1..bytes.len()).filter(|at| *at < 200 || at + 200 > bytes.len()) {
                let mut parser = ReplyParser::new(dialect(deprecate_eof));
                assert_eq!(parser.feed(&bytes[..at]), Ok(None), "at {at}");
                assert_eq!(parser.feed(&bytes[at..]), Ok(Some(expected.clone())));
            }
            if bytes.len() < 1000 {
                let mut parser = ReplyParser::new(dialect(deprecate_eof));
                let last = bytes.len() - 1;
                for byte in &bytes[..last] {
                    assert_eq!(parser.feed(&[*byte]), Ok(None));
                }
                assert_eq!(parser.feed(&bytes[last..]), Ok(Some(expected)));
            }
        }
    }

    #[test]
    fn a_parser_serves_reply_after_reply() {
        let mut parser = ReplyParser::new(Dialect::Ok);
        for _ in 0..3 {
            parser.expect(1);
            assert_eq!(parser.feed(&select(true, 2)).unwrap().unwrap().rows, 2);
        }
    }

    #[test]
    fn columns_that_are_known_are_not_defined_again() {
        let mut parser = ReplyParser::new(Dialect::CachedMetadata);
        let end = &[END, 0, 0, 3, 0, 2, 0][..];
        let expected = Reply { rows: 1, warnings: 2, in_transaction: true, error: None };
        for head in [vec![&[2, 0][..]], vec![&[2, 1][..], b"\x03def.a", b"\x03def.b"]] {
            let payloads: Vec<&[u8]> = head.into_iter().chain([&b"\0\0\x01\0"[..], end]).collect();
            parser.expect(1);
            assert_eq!(parser.feed(&packets(&payloads)), Ok(Some(expected.clone())));
        }
    }

    #[test]
    fn several_results_are_one_reply() {
        let mut bytes = select(true, 0x0a);
        let mut sequence = bytes.len() as u8;
        let mut at = 0;
        while at < bytes.len() {
            let (length, number) = decode_header(bytes[at..at + 4].try_into().unwrap());
            sequence = number + 1;
            at += 4 + length;
        }
        let mut parser = ReplyParser::new(Dialect::Ok);
        assert_eq!(parser.feed(&bytes), Ok(None));
        bytes.clear();
        encode(sequence, OK_PACKET, &mut bytes);
        assert_eq!(parser.feed(&bytes).unwrap().unwrap().rows, 2);
    }

    #[test]
    fn control_characters_of_a_server_are_not_printed() {
        let payload = b"\xff\x01\x00#HY\x1b\xe2\x80\x1b[2Jboo\x07 \xe2\x80\xaeeslaf";
        let error = ServerError::parse(payload, payload.len()).unwrap();
        assert_eq!((error.message.as_str(), error.sqlstate.as_str()), ("[2Jboo eslaf", "HY \u{fffd}"));
    }

    #[test]
    fn a_long_error_is_cut_the_same_in_whatever_pieces_it_comes() {
        let payload = [b"\xff\x01\x00#HY000", "\u{20ac}x".repeat(500_000).as_bytes()].concat();
        let bytes = packets(&[&payload]);
        let whole = parse(&bytes, true).unwrap().unwrap();
        let message = &whole.error.as_ref().unwrap().message;
        assert_eq!(message.len(), 1015 + " ... (1998985 more bytes)".len());
        assert!(message.ends_with("x\u{20ac} ... (1998985 more bytes)"), "{message}");
        for size in [1, 700, 16 << 10] {
            let mut parser = ReplyParser::new(Dialect::Ok);
            let replies: Vec<_> = bytes.chunks(size).map(|piece| parser.feed(piece).unwrap()).collect();
            assert_eq!(replies.last().unwrap().as_ref(), Some(&whole), "{size}");
        }
        assert_eq!(ReplyParser::new(Dialect::Ok).payload(&payload[..HEAD_MAX], payload.len()), Ok(Some(whole)));
    }

    #[test]
    fn what_is_not_the_protocol_is_refused() {
        for bytes in [
            packets(&[&[LOCAL_INFILE, b'x']]),
            packets(&[&[]]),
            packets(&[&[0]]),
            packets(&[&[0xfe, 1, 1, 1, 1, 1, 1, 1, 1]]),
            packets(&[OK_PACKET, OK_PACKET]),
            b"\x07\0\0\x05\0\x01\0\x02\0\0\0".to_vec(),
            packets(&[b"\xff\x01"]),
        ] {
            assert!(parse(&bytes, true).is_err(), "{bytes:?}");
        }
    }

    #[test]
    fn a_long_packet_is_not_kept() {
        let mut parser = ReplyParser::new(Dialect::Ok);
        parser.feed(&packets(&[&[1], b"\x03def"])).unwrap();
        parser.feed(&[0xfe, 0xff, 0xff, 3]).unwrap();
        let piece = vec![b'x'; 65_536];
        for _ in 0..255 {
            parser.feed(&piece).unwrap();
        }
        assert!(parser.head.capacity() <= 2 * HEAD_MAX);
    }

    proptest! {
        #[test]
        fn garbage_never_panics(pieces: Vec<Vec<u8>>, deprecate_eof: bool) {
            let mut parser = ReplyParser::new(dialect(deprecate_eof));
            for piece in &pieces {
                if parser.feed(piece).is_err() {
                    break;
                }
            }
        }

        #[test]
        fn garbage_in_good_frames_never_panics(payloads: Vec<Vec<u8>>, deprecate_eof: bool) {
            let payloads: Vec<&[u8]> = payloads.iter().map(Vec::as_slice).collect();
            let _ = parse(&packets(&payloads), deprecate_eof);
        }
    }

    #[test]
    fn values_are_read_in_their_order() {
        let mut rows = KeptRows::default();
        rows.push(b"\0\0\x07\0\0\0\x02ab\x06-12.34");
        rows.push(b"\0\0\xff\xff\xff\xff\0\x040.05");
        let read = |number| {
            let mut row = rows.row(number, 3).unwrap();
            (row.int().unwrap(), row.text().unwrap().to_vec(), row.hundredths().unwrap(), row.int())
        };
        assert_eq!(read(0), (7, b"ab".to_vec(), -1234, None));
        assert_eq!(read(1), (-1, Vec::new(), 5, None));
        assert!(rows.row(2, 3).is_none() && rows.len() == 2);
    }

    #[test]
    fn nulls_and_what_is_cut_short_are_no_rows() {
        let mut rows = KeptRows::default();
        rows.push(b"\0\x04");
        rows.push(b"\0");
        assert!(rows.row(0, 1).is_none() && rows.row(1, 1).is_none());
        rows.push(&vec![0; SIZE_MAX]);
        assert_eq!(rows.len(), 2);
        rows.clear();
        assert!(rows.is_empty() && rows.row(0, 1).is_none());
    }
}
