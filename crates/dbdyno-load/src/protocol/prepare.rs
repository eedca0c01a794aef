//! The answer to COM_STMT_PREPARE.

use super::encoder::Prepared;
use super::reply::{Dialect, ProtocolError, ServerError};

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
            return Err(ProtocolError("an answer to a statement to prepare that is none"));
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
            return Err(ProtocolError("another number of definitions than it said"));
        }
        *left = left.checked_sub(1).ok_or(ProtocolError("a definition of nothing"))?;
        Ok(self.progress(prepared))
    }

    fn progress(&self, prepared: Prepared) -> Option<Answer> {
        (self.lists == [0; 2]).then_some(Answer::Prepared(prepared))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

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
