//! Whole payloads over a blocking socket, plain, compressed or through TLS.
//!
//! In the compressed protocol, after the login, packets travel in zlib streams behind headers of their own (three bytes
//! of length on the wire, one of sequence, three of length once inflated; 0 there for what is sent as it is).
//!
//! Compression does no I/O itself, so that a blocking session and the event loop can both use it.

use std::cell::RefCell;
use std::os::fd::OwnedFd;

use flate2::{Compress, Compression as Level, Decompress, FlushCompress, FlushDecompress, Status};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};

use super::packet::{self, HEADER_SIZE, PAYLOAD_MAX, decode_header};
use super::patience::Patience;
use super::reply::{ERROR, HEAD_MAX, ProtocolError};
use super::tls::Tls;
use crate::clock::now_ns;
use crate::endpoint::Endpoint;
use crate::error::{Error, Slow};
use crate::stop::Stop;

/// Longest payload a session takes, in bytes: what it asks for is short.
const PAYLOAD_LIMIT: usize = 64 << 20;

/// Longest payload within a login, when the server may be anyone's.
const LOGIN_PAYLOAD_LIMIT: usize = 64 << 10;

/// What the server sent in one piece.
#[derive(Debug)]
pub struct Payload {
    /// Its beginning, or all of it.
    pub head: Vec<u8>,
    /// Length of all of it, in bytes.
    pub length: usize,
}

/// A blocking connection that can be interrupted.
#[derive(Debug)]
pub struct PacketStream {
    socket: OwnedFd,
    tls: Option<Box<Tls>>,
    compression: Option<Box<Compression>>,
    /// Number of the next packet, either way.
    pub sequence: u8,
    /// How long the server may take.
    pub patience: Patience,
    /// Looked at while waiting.
    pub stop: Option<Stop>,
    received: Vec<u8>,
    taken: usize,
    place: String,
}

impl PacketStream {
    /// Connects.
    ///
    /// # Errors
    /// The place cannot be reached.
    pub fn dial(endpoint: &Endpoint, stop: &Stop) -> Result<Self, Error> {
        let patience = Patience::new(endpoint.time_limits(), now_ns());
        Ok(Self {
            socket: endpoint.dial()?,
            tls: None,
            compression: None,
            sequence: 0,
            patience,
            stop: Some(stop.clone()),
            received: Vec::new(),
            taken: 0,
            place: endpoint.place(),
        })
    }

    /// Begins to speak TLS by `tls`, whose handshake is still to come.
    pub fn start_tls(&mut self, mut tls: Box<Tls>) -> Result<(), Error> {
        if self.received.len() > self.taken {
            // They would count as if they had come through TLS.
            return Err(ProtocolError("bytes in front of TLS").into());
        }
        let mut buffer = [0; 16 << 10];
        loop {
            self.flush(&mut tls)?;
            if !tls.is_handshaking() {
                self.tls = Some(tls);
                return Ok(());
            }
            let got = self.read_raw(&mut buffer)?;
            if let Err(error) = tls.open(&buffer[..got], &mut self.received) {
                // An alert lets the server's log say why.
                let _ = self.flush(&mut tls);
                return Err(Error::Tls(self.place.clone(), error));
            }
        }
    }

    /// Compresses what follows, in both directions: the login is over.
    pub fn start_compression(&mut self) -> Result<(), Error> {
        if self.received.len() > self.taken {
            return Err(ProtocolError("bytes in front of compression").into());
        }
        self.compression = Some(Box::default());
        Ok(())
    }

    fn flush(&mut self, tls: &mut Tls) -> Result<(), Error> {
        let mut out = Vec::new();
        tls.pending(&mut out).map_err(|error| Error::Tls(self.place.clone(), error))?;
        self.write_raw(&out)
    }

    /// The socket, what seals it, and what compresses on it.
    pub fn into_parts(self) -> (OwnedFd, Option<Box<Tls>>, Option<Box<Compression>>) {
        (self.socket, self.tls, self.compression)
    }

    /// Sends the packet that ends a session, if it can be sent.
    pub fn quit(mut self) {
        let mut bytes = packet::quit();
        if self.compression.is_some() {
            Compression::seal(&mut bytes);
        }
        if let Some(tls) = &mut self.tls
            && tls.seal(&mut bytes).is_err()
        {
            return;
        }
        let _ = send(&self.socket, &bytes, SendFlags::NOSIGNAL);
    }

    /// Whether a request to stop came.
    pub fn is_stop_requested(&self) -> bool {
        self.stop.as_ref().is_some_and(Stop::is_requested)
    }

    /// Sends the packets of a request and makes ready for its reply.
    pub fn write_request(&mut self, request: Vec<u8>) -> Result<(), Error> {
        self.sequence = packet::reply_sequence(&request);
        self.patience.begin_request(now_ns());
        self.write(request)
    }

    /// Sends one payload within a dialogue.
    pub fn write_payload(&mut self, payload: &[u8]) -> Result<(), Error> {
        let mut out = Vec::new();
        packet::encode(self.sequence, payload, &mut out);
        self.sequence = self.sequence.wrapping_add(1);
        self.write(out)
    }

    fn write(&mut self, mut bytes: Vec<u8>) -> Result<(), Error> {
        if self.compression.is_some() {
            Compression::seal(&mut bytes);
        }
        if let Some(tls) = &mut self.tls {
            tls.seal(&mut bytes).map_err(|error| Error::Tls(self.place.clone(), error))?;
        }
        self.write_raw(&bytes)
    }

    fn write_raw(&mut self, mut bytes: &[u8]) -> Result<(), Error> {
        while !bytes.is_empty() {
            match send(&self.socket, bytes, SendFlags::NOSIGNAL) {
                Ok(sent) => {
                    bytes = &bytes[sent..];
                    self.patience.sent(now_ns());
                }
                // What the server sent before it closed says more, and is read next.
                Err(Errno::PIPE) => return Ok(()),
                Err(errno) => self.wait_on(errno)?,
            }
            self.look_up()?;
        }
        Ok(())
    }

    /// One payload, put together from its packets. Of an error only the head is kept, once logged in.
    pub fn read_payload(&mut self) -> Result<Payload, Error> {
        let mut payload = Payload { head: Vec::new(), length: 0 };
        loop {
            self.fill(HEADER_SIZE)?;
            let header = &self.received[self.taken..self.taken + HEADER_SIZE];
            let header = <[u8; HEADER_SIZE]>::try_from(header).map_err(|_| ProtocolError("a header cut short"))?;
            let (length, sequence) = decode_header(header);
            self.taken += HEADER_SIZE;
            let logging_in = self.patience.is_logging_in();
            if payload.length + length > if logging_in { LOGIN_PAYLOAD_LIMIT } else { PAYLOAD_LIMIT } {
                return Err(ProtocolError("a packet that is too long").into());
            }
            self.fill(length.min(HEAD_MAX))?;
            let starts_an_error = length > 0 && self.received[self.taken] == ERROR;
            let is_error = payload.head.first().map_or(starts_an_error, |first| *first == ERROR);
            let kept = if is_error && !logging_in { HEAD_MAX.saturating_sub(payload.head.len()) } else { length };
            self.take(kept.min(length), &mut payload.head)?;
            self.skip(length.saturating_sub(kept))?;
            payload.length += length;
            self.sequence = sequence.wrapping_add(1);
            if length < PAYLOAD_MAX {
                return Ok(payload);
            }
        }
    }

    /// Appends the next `wanted` bytes to `out`.
    fn take(&mut self, wanted: usize, out: &mut Vec<u8>) -> Result<(), Error> {
        self.fill(wanted)?;
        out.extend_from_slice(&self.received[self.taken..self.taken + wanted]);
        self.taken += wanted;
        Ok(())
    }

    /// Reads the next `left` bytes and keeps none.
    fn skip(&mut self, mut left: usize) -> Result<(), Error> {
        while left > 0 {
            self.fill(1)?;
            let there = left.min(self.received.len() - self.taken);
            self.taken += there;
            left -= there;
        }
        Ok(())
    }

    /// Reads until `wanted` bytes are there that were not taken.
    fn fill(&mut self, wanted: usize) -> Result<(), Error> {
        let mut buffer = [0; 16 << 10];
        if self.received.len() - self.taken < wanted {
            self.received.drain(..self.taken);
            self.taken = 0;
        }
        while self.received.len() - self.taken < wanted {
            let got = self.read_raw(&mut buffer)?;
            let mut opened = Vec::new();
            let clear = match &mut self.tls {
                None => &buffer[..got],
                Some(tls) => {
                    tls.open(&buffer[..got], &mut opened).map_err(|error| Error::Tls(self.place.clone(), error))?;
                    &opened
                }
            };
            match &mut self.compression {
                None => self.received.extend_from_slice(clear),
                Some(compression) => compression.open(clear, &mut self.received)?,
            }
        }
        Ok(())
    }

    /// At least one byte as it comes from the socket.
    fn read_raw(&mut self, buffer: &mut [u8]) -> Result<usize, Error> {
        loop {
            match recv(&self.socket, &mut *buffer, RecvFlags::empty()) {
                Ok((0, _)) => return Err(Error::Lost(self.place.clone(), Errno::CONNRESET)),
                Ok((got, _)) => {
                    self.patience.received(now_ns());
                    // Much may come without a pause.
                    return self.look_up().map(|()| got);
                }
                Err(errno) => {
                    self.wait_on(errno)?;
                    self.look_up()?;
                }
            }
        }
    }

    /// The socket gives up after [`crate::endpoint::POLL`], so that stop and patience are looked at that often.
    fn wait_on(&self, errno: Errno) -> Result<(), Error> {
        match errno {
            Errno::AGAIN | Errno::INTR => Ok(()),
            errno => Err(Error::Lost(self.place.clone(), errno)),
        }
    }

    /// Whether to go on.
    fn look_up(&self) -> Result<(), Error> {
        if self.is_stop_requested() {
            return Err(Error::Interrupted);
        }
        match self.patience.passed(now_ns()) {
            None => Ok(()),
            Some((passed, limit)) => Err(Error::Slow(Slow { place: self.place.clone(), passed, limit, sql: None })),
        }
    }
}

const COMPRESSED_HEADER_SIZE: usize = 7;

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
            out.resize(at + COMPRESSED_HEADER_SIZE, 0);
            let is_deflated = piece.len() >= SHORTEST && deflate(piece, out);
            if !is_deflated {
                out.truncate(at + COMPRESSED_HEADER_SIZE);
                out.extend_from_slice(piece);
            }
            let length = out.len() - at - COMPRESSED_HEADER_SIZE;
            let inflated = if is_deflated { piece.len() } else { 0 };
            out[at..at + 3].copy_from_slice(&(length as u32).to_le_bytes()[..3]);
            out[at + 3] = sequence as u8;
            out[at + 4..at + COMPRESSED_HEADER_SIZE].copy_from_slice(&(inflated as u32).to_le_bytes()[..3]);
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
    let Some((header, rest)) = bytes.split_first_chunk::<COMPRESSED_HEADER_SIZE>() else {
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
    use proptest::prelude::*;

    use super::*;

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
