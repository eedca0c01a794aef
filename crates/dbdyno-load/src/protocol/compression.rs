//! The compressed protocol: after the login, packets travel in zlib streams behind headers of their own (three bytes of
//! length on the wire, one of sequence, three of length once inflated; 0 there for what is sent as it is).
//!
//! It does no I/O itself, so that a blocking session and the event loop can both use it.

use std::cell::RefCell;

use flate2::{Compress, Compression as Level, Decompress, FlushCompress, FlushDecompress, Status};

use super::packet::PAYLOAD_MAX;
use super::reply::ProtocolError;

const HEADER_SIZE: usize = 7;

/// What is shorter is sent as it is, by MySQL's clients too.
const SHORTEST: usize = 50;

const GARBAGE: ProtocolError = ProtocolError("compressed bytes that do not inflate to what their header says");

thread_local! {
    // A zlib stream begins anew in every packet, so the connections of a thread share the large tables.
    static DEFLATE: RefCell<Compress> = RefCell::new(Compress::new(Level::default(), true));
    static INFLATE: RefCell<Decompress> = RefCell::new(Decompress::new(true));
}

/// The state of one connection: what has come of a packet that is not there as a whole.
#[derive(Debug, Default)]
pub struct Compression {
    received: Vec<u8>,
}

impl Compression {
    /// Replaces the packets of a request in `out` by the compressed packets that carry them.
    pub fn seal(out: &mut Vec<u8>) {
        let plain = std::mem::take(out);
        for (sequence, piece) in plain.chunks(PAYLOAD_MAX).enumerate() {
            let at = out.len();
            out.resize(at + HEADER_SIZE, 0);
            let is_deflated = piece.len() >= SHORTEST && deflate(piece, out);
            if !is_deflated {
                out.truncate(at + HEADER_SIZE);
                out.extend_from_slice(piece);
            }
            let length = out.len() - at - HEADER_SIZE;
            let inflated = if is_deflated { piece.len() } else { 0 };
            out[at..at + 3].copy_from_slice(&(length as u32).to_le_bytes()[..3]);
            out[at + 3] = sequence as u8;
            out[at + 4..at + HEADER_SIZE].copy_from_slice(&(inflated as u32).to_le_bytes()[..3]);
        }
    }

    /// Takes in `bytes` as received and appends what they complete to `plain`.
    ///
    /// # Errors
    /// What came is not compressed as its header says.
    pub fn open(&mut self, mut bytes: &[u8], plain: &mut Vec<u8>) -> Result<(), ProtocolError> {
        if self.received.is_empty() {
            // Most packets are there as a whole.
            while let Some(rest) = open_first(bytes, plain)? {
                bytes = rest;
            }
            self.received.extend_from_slice(bytes);
            return Ok(());
        }
        self.received.extend_from_slice(bytes);
        let mut rest = self.received.as_slice();
        while let Some(behind) = open_first(rest, plain)? {
            rest = behind;
        }
        let taken = self.received.len() - rest.len();
        self.received.drain(..taken);
        Ok(())
    }
}

/// Opens the packet that `bytes` begin with and gives what is behind it; `None` if it is not there as a whole.
fn open_first<'a>(bytes: &'a [u8], plain: &mut Vec<u8>) -> Result<Option<&'a [u8]>, ProtocolError> {
    let Some((header, rest)) = bytes.split_first_chunk::<HEADER_SIZE>() else {
        return Ok(None);
    };
    let number = |at: usize| u32::from_le_bytes([header[at], header[at + 1], header[at + 2], 0]) as usize;
    let (length, inflated) = (number(0), number(4));
    let Some((piece, behind)) = rest.split_at_checked(length) else {
        return Ok(None);
    };
    if inflated == 0 {
        plain.extend_from_slice(piece);
    } else {
        inflate(piece, inflated, plain)?;
    }
    Ok(Some(behind))
}

/// Appends `piece` deflated to `out`; false if that is not shorter.
fn deflate(piece: &[u8], out: &mut Vec<u8>) -> bool {
    DEFLATE.with_borrow_mut(|stream| {
        stream.reset();
        let start = out.len();
        // No room for more than the piece itself: then it is not worth it.
        out.reserve(piece.len());
        let room = start + piece.len();
        out.resize(room, 0);
        let done = stream.compress(piece, &mut out[start..], FlushCompress::Finish);
        let made = stream.total_out() as usize;
        out.truncate(start + made);
        matches!(done, Ok(Status::StreamEnd)) && made < piece.len()
    })
}

/// Appends to `plain` what `piece` inflates to, which must be `length` bytes.
fn inflate(piece: &[u8], length: usize, plain: &mut Vec<u8>) -> Result<(), ProtocolError> {
    INFLATE.with_borrow_mut(|stream| {
        stream.reset(true);
        let start = plain.len();
        // One byte more, so that a stream that is longer shows.
        plain.resize(start + length + 1, 0);
        let done = stream.decompress(piece, &mut plain[start..], FlushDecompress::Finish);
        let is_whole = matches!(done, Ok(Status::StreamEnd)) && stream.total_out() == length as u64;
        plain.truncate(if is_whole { start + length } else { start });
        if is_whole { Ok(()) } else { Err(GARBAGE) }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn opened(pieces: &[&[u8]]) -> Result<Vec<u8>, ProtocolError> {
        let (mut compression, mut plain) = (Compression::default(), Vec::new());
        for piece in pieces {
            compression.open(piece, &mut plain)?;
        }
        Ok(plain)
    }

    #[test]
    fn what_is_short_or_does_not_shrink_is_sent_as_it_is() {
        let mut short = b"SELECT 1".to_vec();
        Compression::seal(&mut short);
        assert_eq!(short, b"\x08\0\0\0\0\0\0SELECT 1");
        let mut long = vec![b'x'; 1000];
        Compression::seal(&mut long);
        assert!(long.len() < 100 && long[4..7] == [0xe8, 3, 0]);
        assert_eq!(opened(&[&long]), Ok(vec![b'x'; 1000]));
    }

    #[test]
    fn a_long_request_is_split() {
        let mut sent = vec![7; PAYLOAD_MAX + 4];
        Compression::seal(&mut sent);
        assert_eq!(opened(&[&sent]).unwrap().len(), PAYLOAD_MAX + 4);
    }

    #[test]
    fn a_length_that_is_not_true_is_refused() {
        let mut sent = vec![b'x'; 1000];
        Compression::seal(&mut sent);
        for wrong in [999_u16, 1001] {
            sent[4..6].copy_from_slice(&wrong.to_le_bytes());
            assert!(opened(&[&sent]).is_err());
        }
        assert!(opened(&[b"\x04\0\0\0\x09\0\0junk"]).is_err());
    }

    proptest! {
        #[test]
        fn what_is_sealed_opens_however_it_is_cut(plain in prop::collection::vec(0..4_u8, 0..500), cut in 1..50_usize) {
            let mut sent = plain.clone();
            Compression::seal(&mut sent);
            let pieces: Vec<&[u8]> = sent.chunks(cut).collect();
            prop_assert_eq!(opened(&pieces), Ok(plain));
        }

        #[test]
        fn garbage_is_refused_or_waited_for(bytes: Vec<u8>) {
            if let Ok(plain) = opened(&[&bytes]) {
                prop_assert!(plain.len() <= bytes.len() * 1100);
            }
        }
    }
}
