//! Framing: a payload travels as packets of at most 16 MiB - 1, each behind a four-byte header
//! (three bytes of length, one of sequence).
//!
//! Requests are text queries and executions of prepared statements.

/// Largest payload of one packet, in bytes; a longer payload is split.
pub const PAYLOAD_MAX: usize = 0xff_ffff;

/// Bytes in front of each payload.
pub const HEADER_SIZE: usize = 4;

const COM_QUIT: u8 = 0x01;
const COM_QUERY: u8 = 0x03;
const COM_STMT_PREPARE: u8 = 0x16;

/// Appends `payload` to `out` as packets numbered from `sequence`.
///
/// A payload whose length is a multiple of [`PAYLOAD_MAX`] ends in an empty packet, without which
/// the receiver would wait for more.
pub fn encode(sequence: u8, payload: &[u8], out: &mut Vec<u8>) {
    let mut sequence = sequence;
    let mut rest = payload;
    loop {
        let (piece, tail) = rest.split_at(rest.len().min(PAYLOAD_MAX));
        out.extend_from_slice(&header(piece.len(), sequence));
        out.extend_from_slice(piece);
        if piece.len() < PAYLOAD_MAX {
            return;
        }
        sequence = sequence.wrapping_add(1);
        rest = tail;
    }
}

/// Replaces the content of `out` by the packets of a text query made of `parts`.
fn encode_query(parts: &[&[u8]], out: &mut Vec<u8>) {
    out.clear();
    let length = 1 + parts.iter().map(|part| part.len()).sum::<usize>();
    out.reserve(length + HEADER_SIZE);
    if length < PAYLOAD_MAX {
        out.extend_from_slice(&header(length, 0));
        out.push(COM_QUERY);
        for part in parts {
            out.extend_from_slice(part);
        }
        return;
    }
    let mut payload = Vec::with_capacity(length);
    payload.push(COM_QUERY);
    for part in parts {
        payload.extend_from_slice(part);
    }
    encode(0, &payload, out);
}

/// Makes `out`, a payload behind [`HEADER_SIZE`] bytes of room, into packets numbered from 0.
pub fn frame(out: &mut Vec<u8>) {
    let length = out.len() - HEADER_SIZE;
    if length < PAYLOAD_MAX {
        out[..HEADER_SIZE].copy_from_slice(&header(length, 0));
        return;
    }
    let payload = out.split_off(HEADER_SIZE);
    out.clear();
    encode(0, &payload, out);
}

/// Appends a length-encoded integer.
fn put_integer(value: u64, out: &mut Vec<u8>) {
    let bytes = value.to_le_bytes();
    match value {
        0..=0xfa => out.push(bytes[0]),
        0xfb..=0xffff => {
            out.push(0xfc);
            out.extend_from_slice(&bytes[..2]);
        }
        0x1_0000..=0xff_ffff => {
            out.push(0xfd);
            out.extend_from_slice(&bytes[..3]);
        }
        _ => {
            out.push(0xfe);
            out.extend_from_slice(&bytes);
        }
    }
}

/// The packets of the text query `sql`.
pub fn query(sql: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    encode_query(&[sql], &mut out);
    out
}

/// The packets that have `sql` prepared.
pub fn prepare(sql: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    encode(0, &[&[COM_STMT_PREPARE], sql].concat(), &mut out);
    out
}

/// The packet that ends a session.
pub fn quit() -> Vec<u8> {
    let mut out = Vec::new();
    encode(0, &[COM_QUIT], &mut out);
    out
}

/// The sequence number that the reply to `request` (whole encoded packets) starts with.
pub fn reply_sequence(request: &[u8]) -> u8 {
    let pieces = request.len() / (PAYLOAD_MAX + HEADER_SIZE) + 1;
    pieces as u8
}

fn header(length: usize, sequence: u8) -> [u8; HEADER_SIZE] {
    let [a, b, c, _] = (length as u32).to_le_bytes();
    [a, b, c, sequence]
}

/// Length and sequence of the packet behind `header`.
pub fn decode_header(header: [u8; HEADER_SIZE]) -> (usize, u8) {
    let [a, b, c, sequence] = header;
    (u32::from_le_bytes([a, b, c, 0]) as usize, sequence)
}

/// Takes a length-encoded integer off the front of `bytes`; `None` if there is no whole one.
pub fn take_integer(bytes: &mut &[u8]) -> Option<u64> {
    let (first, rest) = bytes.split_first()?;
    let width = match first {
        0..=0xfa => {
            *bytes = rest;
            return Some(u64::from(*first));
        }
        0xfc => 2,
        0xfd => 3,
        0xfe => 8,
        _ => return None,
    };
    let (value, rest) = rest.split_at_checked(width)?;
    let mut wide = [0; 8];
    wide[..width].copy_from_slice(value);
    *bytes = rest;
    Some(u64::from_le_bytes(wide))
}

/// Takes a length-encoded string off the front of `bytes`: `Some(None)` is NULL, `None` is garbage.
pub fn take_string<'a>(bytes: &mut &'a [u8]) -> Option<Option<&'a [u8]>> {
    if bytes.first() == Some(&0xfb) {
        *bytes = &bytes[1..];
        return Some(None);
    }
    let length = usize::try_from(take_integer(bytes)?).ok()?;
    let (value, rest) = bytes.split_at_checked(length)?;
    *bytes = rest;
    Some(Some(value))
}

const COM_STMT_EXECUTE: u8 = 0x17;

/// Column types of the binary protocol.
const TYPE_NULL: u8 = 0x06;
const TYPE_LONGLONG: u8 = 0x08;
const TYPE_DOUBLE: u8 = 0x05;
const TYPE_VAR_STRING: u8 = 0xfd;

/// A statement that was prepared on one connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Prepared {
    /// The server's number for it, on that connection.
    pub id: u32,
    /// Parameters it takes.
    pub parameters: u16,
    /// The server knows the parameters' types from an execution before.
    pub bound: bool,
}

/// A value bound to a prepared statement. A parameter keeps its type over all executions.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Parameter<'a> {
    /// BIGINT.
    Integer(i64),
    /// DOUBLE.
    Double(f64),
    /// Text or bytes.
    Text(&'a [u8]),
    /// NULL.
    Null,
}

impl Parameter<'_> {
    fn type_code(&self) -> u8 {
        match self {
            Self::Integer(_) => TYPE_LONGLONG,
            Self::Double(_) => TYPE_DOUBLE,
            Self::Text(_) => TYPE_VAR_STRING,
            Self::Null => TYPE_NULL,
        }
    }
}

/// Writes one request of one connection.
#[derive(Debug)]
pub struct RequestEncoder<'a> {
    out: &'a mut Vec<u8>,
    prepared: &'a mut [Prepared],
}

impl<'a> RequestEncoder<'a> {
    /// An encoder that replaces what `out` holds; `prepared` are the connection's statements in the
    /// order of the workload's list.
    pub fn new(out: &'a mut Vec<u8>, prepared: &'a mut [Prepared]) -> Self {
        Self { out, prepared }
    }

    /// Whole packets made before.
    #[inline]
    pub fn packets(&mut self, packets: &[u8]) {
        self.out.clear();
        self.out.extend_from_slice(packets);
    }

    /// A text query made of `parts`.
    #[inline]
    pub fn query(&mut self, parts: &[&[u8]]) {
        encode_query(parts, self.out);
    }

    /// Executes statement `number` of the workload's list.
    ///
    /// # Panics
    /// When the list has no such statement or it takes another number of parameters: a mistake in
    /// the workload, which its first statement shows.
    pub fn execute(&mut self, number: usize, parameters: &[Parameter<'_>]) {
        let statement = &mut self.prepared[number];
        assert_eq!(parameters.len(), usize::from(statement.parameters), "parameters of statement {number}");
        let out = &mut *self.out;
        out.clear();
        out.extend_from_slice(&[0; HEADER_SIZE]);
        out.push(COM_STMT_EXECUTE);
        out.extend_from_slice(&statement.id.to_le_bytes());
        // No cursor, one iteration.
        out.extend_from_slice(&[0, 1, 0, 0, 0]);
        if !parameters.is_empty() {
            let nulls = out.len();
            out.resize(nulls + parameters.len().div_ceil(8), 0);
            out.push(u8::from(!statement.bound));
            if !statement.bound {
                out.extend(parameters.iter().flat_map(|parameter| [parameter.type_code(), 0]));
            }
            for (place, parameter) in parameters.iter().enumerate() {
                match parameter {
                    Parameter::Null => out[nulls + place / 8] |= 1 << (place % 8),
                    Parameter::Integer(value) => out.extend_from_slice(&value.to_le_bytes()),
                    Parameter::Double(value) => out.extend_from_slice(&value.to_le_bytes()),
                    Parameter::Text(text) => {
                        put_integer(text.len() as u64, out);
                        out.extend_from_slice(text);
                    }
                }
            }
        }
        // A NULL gives the server nothing of the type that a later value has.
        statement.bound = !parameters.contains(&Parameter::Null);
        frame(out);
    }
}

const _: () = assert!(HEADER_SIZE < PAYLOAD_MAX);

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn decode(mut bytes: &[u8]) -> (Vec<u8>, Vec<u8>) {
        let (mut payload, mut sequences) = (Vec::new(), Vec::new());
        while let Some((header, rest)) = bytes.split_at_checked(HEADER_SIZE) {
            let (length, sequence) = decode_header(header.try_into().unwrap());
            payload.extend_from_slice(&rest[..length]);
            sequences.push(sequence);
            bytes = &rest[length..];
        }
        assert!(bytes.is_empty());
        (payload, sequences)
    }

    #[test]
    fn a_payload_around_the_limit_is_split_and_ends_short() {
        for (length, pieces) in
            [(0, 1), (PAYLOAD_MAX - 1, 1), (PAYLOAD_MAX, 2), (PAYLOAD_MAX + 1, 2), (2 * PAYLOAD_MAX, 3)]
        {
            let sent = vec![7; length];
            let mut out = Vec::new();
            encode(0, &sent, &mut out);
            let (payload, sequences) = decode(&out);
            assert_eq!(payload, sent);
            assert_eq!(sequences, (0..pieces).collect::<Vec<u8>>());
            assert_eq!(reply_sequence(&out), pieces);
        }
    }

    #[test]
    fn a_query_of_parts_is_the_query_of_their_sum() {
        let mut parts = Vec::new();
        encode_query(&[b"SELECT ", b"1"], &mut parts);
        assert_eq!(parts, query(b"SELECT 1"));
        assert_eq!(parts, b"\x09\0\0\0\x03SELECT 1");
        let long = vec![b'x'; PAYLOAD_MAX + 5];
        let (payload, _) = decode(&query(&long));
        assert_eq!(payload[1..], long);
    }

    proptest! {
        #[test]
        fn what_is_encoded_decodes(payload: Vec<u8>, sequence: u8) {
            let mut out = Vec::new();
            encode(sequence, &payload, &mut out);
            prop_assert_eq!(decode(&out), (payload, vec![sequence]));
        }

        #[test]
        fn garbage_has_no_integer_or_a_shorter_rest(bytes: Vec<u8>) {
            let mut rest = bytes.as_slice();
            if take_integer(&mut rest).is_some() {
                prop_assert!(rest.len() < bytes.len());
            }
            let mut rest = bytes.as_slice();
            if take_string(&mut rest).is_some() {
                prop_assert!(rest.len() < bytes.len());
            }
        }
    }

    #[test]
    fn types_are_sent_once() {
        let mut prepared = [Prepared { id: 7, parameters: 2, bound: false }];
        let mut out = Vec::new();
        let values = [Parameter::Integer(3), Parameter::Text(b"ab")];
        RequestEncoder::new(&mut out, &mut prepared).execute(0, &values);
        let head = [0x17, 7, 0, 0, 0, 0, 1, 0, 0, 0, 0];
        let tail = [3, 0, 0, 0, 0, 0, 0, 0, 2, b'a', b'b'];
        assert_eq!(out, [&[27, 0, 0, 0], &head[..], &[1, 8, 0, 0xfd, 0], &tail].concat());
        RequestEncoder::new(&mut out, &mut prepared).execute(0, &values);
        assert_eq!(out, [&[23, 0, 0, 0], &head[..], &[0], &tail].concat());
    }

    #[test]
    fn a_null_has_no_value() {
        let mut prepared = [Prepared { id: 1, parameters: 1, bound: false }];
        let mut out = Vec::new();
        RequestEncoder::new(&mut out, &mut prepared).execute(0, &[Parameter::Null]);
        assert_eq!(out[14..], [1, 1, TYPE_NULL, 0]);
        assert!(!prepared[0].bound);
    }
}
