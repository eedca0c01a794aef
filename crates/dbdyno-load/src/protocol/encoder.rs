//! Writes requests: text queries and executions of prepared statements.

use super::packet::{self, HEADER_SIZE, PAYLOAD_MAX};

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
        packet::encode_query(parts, self.out);
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
                        packet::put_integer(text.len() as u64, out);
                        out.extend_from_slice(text);
                    }
                }
            }
        }
        // A NULL gives the server nothing of the type that a later value has.
        statement.bound = !parameters.contains(&Parameter::Null);
        packet::frame(out);
    }
}

const _: () = assert!(HEADER_SIZE < PAYLOAD_MAX);

#[cfg(test)]
mod tests {
    use super::*;

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
