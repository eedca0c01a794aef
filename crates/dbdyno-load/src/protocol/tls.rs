//! TLS on one connection: records in, plaintext out, and back. It does no I/O itself, so that a
//! blocking session and the event loop can both use it.

use std::io::{ErrorKind, Read as _, Write as _};

use rustls::ClientConnection;

use crate::text::shown;

/// Why a TLS connection cannot go on.
#[derive(Debug, thiserror::Error, PartialEq)]
pub enum TlsError {
    /// The server said goodbye (`close_notify`).
    #[error("the server closed the TLS connection")]
    Closed,
    /// The server sent an alert, a certificate that is not trusted, or what is not TLS.
    #[error("{}", shown(&.0.to_string()))]
    Broken(#[from] rustls::Error),
    /// This side could not take what came or make a record.
    #[error("{0}")]
    Failed(ErrorKind),
}

impl TlsError {
    /// What to do about it.
    pub fn remedy(&self) -> &'static str {
        use rustls::AlertDescription::{HandshakeFailure, InsufficientSecurity, ProtocolVersion};
        use rustls::CertificateError::{BadSignature, NotValidForName, NotValidForNameContext, Other, UnknownIssuer};
        use rustls::Error::{AlertReceived, InvalidCertificate, InvalidMessage, PeerIncompatible};
        let Self::Broken(error) = self else {
            return "did the server stop, or end it (KILL, wait_timeout)? see its error log";
        };
        match error {
            InvalidCertificate(UnknownIssuer | BadSignature) => {
                "the authority in --ssl-ca did not sign the server's certificate"
            }
            InvalidCertificate(NotValidForName | NotValidForNameContext { .. }) => {
                "name the --host as the certificate's subjectAltName does, or use --ssl-mode=verify_ca"
            }
            InvalidCertificate(Other(_)) => {
                "only certificates of X.509 version 3 can be verified; --ssl-mode=required verifies none"
            }
            AlertReceived(HandshakeFailure | InsufficientSecurity | ProtocolVersion) | PeerIncompatible(_) => {
                "the server must offer TLS 1.2 or 1.3 with an ECDHE cipher"
            }
            InvalidMessage(_) => "the server does not speak TLS 1.2 or 1.3",
            AlertReceived(_) => "does the server accept --ssl-cert? see its error log",
            _ => "see the server's error log",
        }
    }
}

/// The TLS state of one connection.
///
/// Messages after the handshake need no extra turn: session tickets are taken in by [`Tls::open`],
/// and the answer to a key update goes out in front of the next request by [`Tls::seal`], as RFC
/// 8446 (4.6.3) has it: before our next data, not at once.
#[derive(Debug)]
pub struct Tls {
    connection: ClientConnection,
}

impl Tls {
    /// Wraps a connection whose handshake may still be to come.
    pub fn new(mut connection: ClientConnection) -> Self {
        // What goes out is taken out at once, so only a request bounds the buffer.
        connection.set_buffer_limit(None);
        Self { connection }
    }

    /// Whether the handshake is not complete yet.
    pub fn is_handshaking(&self) -> bool {
        self.connection.is_handshaking()
    }

    /// Appends to `out` the records that wait to be sent.
    ///
    /// # Errors
    /// There is no memory for them.
    pub fn pending(&mut self, out: &mut Vec<u8>) -> Result<(), TlsError> {
        while self.connection.wants_write() {
            self.connection.write_tls(out).map_err(|error| failed(&error))?;
        }
        Ok(())
    }

    /// Replaces the plaintext in `out` by the records that carry it.
    ///
    /// # Errors
    /// The connection can send no more.
    pub fn seal(&mut self, out: &mut Vec<u8>) -> Result<(), TlsError> {
        self.connection.writer().write_all(out).map_err(|error| failed(&error))?;
        out.clear();
        self.pending(out)
    }

    /// Takes in `bytes` as received and appends the plaintext that they complete to `plain`. At
    /// most one record, of 16 KiB, is kept for later.
    ///
    /// # Errors
    /// The server closed the connection, sent an alert, or what is not TLS. A goodbye that comes with its last words is
    /// no error: they count, and the end of the connection follows.
    pub fn open(&mut self, mut bytes: &[u8], plain: &mut Vec<u8>) -> Result<(), TlsError> {
        let before = plain.len();
        while !bytes.is_empty() {
            // Nothing is taken after a close_notify.
            if self.connection.read_tls(&mut bytes).map_err(|error| failed(&error))? == 0 {
                return Err(TlsError::Closed);
            }
            let closed = self.connection.process_new_packets()?.peer_has_closed();
            match self.connection.reader().read_to_end(plain) {
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) => return Err(failed(&error)),
            }
            if closed {
                return if plain.len() > before { Ok(()) } else { Err(TlsError::Closed) };
            }
        }
        Ok(())
    }
}

fn failed(error: &std::io::Error) -> TlsError {
    TlsError::Failed(error.kind())
}

#[cfg(test)]
mod tests {
    use super::super::tls_client::{Files, Mode, TlsClient};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn garbage_is_refused_or_waited_for(pieces: Vec<Vec<u8>>, as_record: bool) {
            let mut tls = TlsClient::new(Mode::Required, &Files::default(), "x").unwrap().connection().unwrap();
            let mut plain = Vec::new();
            for piece in pieces {
                // A handshake record of that length, of TLS 1.2.
                let length = (piece.len() as u16).to_be_bytes();
                let bytes = if as_record { [&[22, 3, 3], &length[..], &piece].concat() } else { piece };
                if tls.open(&bytes, &mut plain).is_err() {
                    break;
                }
            }
            prop_assert!(plain.is_empty() && tls.is_handshaking());
        }
    }
}
