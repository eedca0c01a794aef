//! Whole payloads over a blocking socket, plain or through TLS.

use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};

use super::packet::{self, HEADER_SIZE, PAYLOAD_MAX, decode_header};
use super::reply::ProtocolError;
use super::tls::Tls;
use crate::clock::now_ns;
use crate::endpoint::{Endpoint, POLL};
use crate::error::Error;
use crate::stop::Stop;

/// Longest payload a session takes, in bytes: what it asks for is short.
const PAYLOAD_LIMIT: usize = 64 << 20;

/// Longest payload within a login, when the server may be anybody.
const LOGIN_PAYLOAD_LIMIT: usize = 64 << 10;

/// A blocking connection that can be interrupted.
#[derive(Debug)]
pub struct Wire {
    socket: OwnedFd,
    tls: Option<Box<Tls>>,
    /// Number of the next packet, either way.
    pub sequence: u8,
    /// How long the server may say nothing.
    pub patience: Duration,
    /// When the login must be complete (`CLOCK_MONOTONIC`, ns), however much the server says; none
    /// after it.
    login_end_ns: Option<u64>,
    /// Looked at while waiting.
    pub stop: Option<Stop>,
    received: Vec<u8>,
    taken: usize,
    place: String,
}

impl Wire {
    /// Connects.
    ///
    /// # Errors
    /// The place cannot be reached.
    pub fn dial(endpoint: &Endpoint, stop: &Stop) -> Result<Self, Error> {
        Ok(Self {
            socket: endpoint.dial()?,
            tls: None,
            sequence: 0,
            patience: endpoint.connect_timeout,
            login_end_ns: Some(now_ns() + endpoint.connect_timeout.as_nanos() as u64),
            stop: Some(stop.clone()),
            received: Vec::new(),
            taken: 0,
            place: endpoint.place(),
        })
    }

    /// The server has let us in: from now on it may take its time, but not be silent for longer
    /// than `patience`.
    pub fn logged_in(&mut self, patience: Duration) {
        self.login_end_ns = None;
        self.patience = patience;
    }

    /// Speaks TLS from now on, by `tls`, whose handshake is still to come.
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

    fn flush(&self, tls: &mut Tls) -> Result<(), Error> {
        let mut out = Vec::new();
        tls.pending(&mut out).map_err(|error| Error::Tls(self.place.clone(), error))?;
        self.write_raw(&out)
    }

    /// The socket and what seals it.
    pub fn into_parts(self) -> (OwnedFd, Option<Box<Tls>>) {
        (self.socket, self.tls)
    }

    /// Sends the packet that ends a session, if it can be sent.
    pub fn quit(mut self) {
        let mut bytes = packet::quit();
        if let Some(tls) = &mut self.tls
            && tls.seal(&mut bytes).is_err()
        {
            return;
        }
        let _ = send(&self.socket, &bytes, SendFlags::NOSIGNAL);
    }

    /// Whether a wish to stop was heard.
    pub fn asked_to_stop(&self) -> bool {
        self.stop.as_ref().is_some_and(Stop::asked)
    }

    /// Sends the packets of a request and makes ready for its reply.
    pub fn write_request(&mut self, request: Vec<u8>) -> Result<(), Error> {
        self.sequence = packet::reply_sequence(&request);
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
        if let Some(tls) = &mut self.tls {
            tls.seal(&mut bytes).map_err(|error| Error::Tls(self.place.clone(), error))?;
        }
        self.write_raw(&bytes)
    }

    fn write_raw(&self, mut bytes: &[u8]) -> Result<(), Error> {
        let mut silence = Duration::ZERO;
        while !bytes.is_empty() {
            match send(&self.socket, bytes, SendFlags::NOSIGNAL) {
                Ok(sent) => bytes = &bytes[sent..],
                // What the server said before it closed tells more, and is read next.
                Err(Errno::PIPE) => return Ok(()),
                Err(errno) => self.wait_on(errno, &mut silence)?,
            }
        }
        Ok(())
    }

    /// One payload, put together from its packets.
    pub fn read_payload(&mut self) -> Result<Vec<u8>, Error> {
        let mut payload = Vec::new();
        loop {
            self.fill(HEADER_SIZE)?;
            let header = &self.received[self.taken..self.taken + HEADER_SIZE];
            let header = <[u8; HEADER_SIZE]>::try_from(header).map_err(|_| ProtocolError("a header cut short"))?;
            let (length, sequence) = decode_header(header);
            self.taken += HEADER_SIZE;
            let limit = if self.login_end_ns.is_some() { LOGIN_PAYLOAD_LIMIT } else { PAYLOAD_LIMIT };
            if payload.len() + length > limit {
                return Err(ProtocolError("a packet that is too long").into());
            }
            self.fill(length)?;
            payload.extend_from_slice(&self.received[self.taken..self.taken + length]);
            self.taken += length;
            self.sequence = sequence.wrapping_add(1);
            if length < PAYLOAD_MAX {
                return Ok(payload);
            }
        }
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
            match &mut self.tls {
                None => self.received.extend_from_slice(&buffer[..got]),
                Some(tls) => {
                    tls.open(&buffer[..got], &mut self.received)
                        .map_err(|error| Error::Tls(self.place.clone(), error))?;
                }
            }
        }
        Ok(())
    }

    /// At least one byte as it comes from the socket.
    fn read_raw(&self, buffer: &mut [u8]) -> Result<usize, Error> {
        let mut silence = Duration::ZERO;
        loop {
            match recv(&self.socket, &mut *buffer, RecvFlags::empty()) {
                Ok((0, _)) => return Err(Error::Lost(self.place.clone(), Errno::CONNRESET)),
                Ok(_) if self.login_end_ns.is_some_and(|end| now_ns() > end) => {
                    return Err(Error::Silent(self.place.clone(), self.patience));
                }
                // Much may come without a pause.
                Ok(_) if self.asked_to_stop() => return Err(Error::Interrupted),
                Ok((got, _)) => return Ok(got),
                Err(errno) => self.wait_on(errno, &mut silence)?,
            }
        }
    }

    /// The socket gives up after [`POLL`], so that stop and patience are looked at that often.
    fn wait_on(&self, errno: Errno, silence: &mut Duration) -> Result<(), Error> {
        match errno {
            Errno::AGAIN => *silence += POLL,
            Errno::INTR => {}
            errno => return Err(Error::Lost(self.place.clone(), errno)),
        }
        if self.asked_to_stop() {
            return Err(Error::Interrupted);
        }
        if *silence >= self.patience {
            return Err(Error::Silent(self.place.clone(), *silence));
        }
        Ok(())
    }
}
