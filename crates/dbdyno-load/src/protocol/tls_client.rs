//! What makes TLS connections: which servers are trusted, and who we are to them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use dbdyno_common::bounded;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{Resumption, verify_server_cert_signed_by_trust_anchor, verify_server_name};
use rustls::crypto::{CryptoProvider, WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{ClientConfig, ClientConnection, DigitallySignedStruct, RootCertStore, SignatureScheme};

use super::auth::Channel;
use super::tls::Tls;
use crate::error::{Error, in_words};

/// Longest file of a key or of certificates: a bundle of all public authorities has some 200 KiB.
pub const PEM_BYTES_MAX: u64 = 1 << 20;

/// Whether to use TLS, and whom to trust, as MySQL's `--ssl-mode`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mode {
    /// TCP in the clear.
    Disabled,
    /// TLS if a server offers it over TCP; every server is trusted.
    Preferred,
    /// TLS; every server is trusted.
    Required,
    /// TLS with a server whose certificate a given authority has signed.
    VerifyCa,
    /// The same, and the certificate is for the host that was named.
    VerifyIdentity,
}

impl Mode {
    /// All of them, by their names on the command line.
    pub const ALL: [(&'static str, Self); 5] = [
        ("disabled", Self::Disabled),
        ("preferred", Self::Preferred),
        ("required", Self::Required),
        ("verify_ca", Self::VerifyCa),
        ("verify_identity", Self::VerifyIdentity),
    ];
}

/// Files in PEM.
#[derive(Debug, Clone, Default)]
pub struct Files {
    /// Certificates of the authorities that are trusted.
    pub authorities: Option<PathBuf>,
    /// Our certificate, with those between it and its authority.
    pub certificate: Option<PathBuf>,
    /// Its private key.
    pub key: Option<PathBuf>,
}

/// Makes the TLS side of connections to one host.
#[derive(Clone, Debug)]
pub struct TlsClient {
    mode: Mode,
    config: Arc<ClientConfig>,
    host: ServerName<'static>,
}

impl TlsClient {
    /// For connections to `host`, which matters only if its identity is verified.
    ///
    /// # Errors
    /// Files that are missing or are not what they should be; a host that no certificate can name.
    pub fn new(mode: Mode, files: &Files, host: &str) -> Result<Self, Error> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let verifier = Verifier::new(mode, files.authorities.as_deref(), &provider)?;
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| Error::Failed(format!("TLS: {error}")))?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier));
        let mut config = match (&files.certificate, &files.key) {
            (None, None) => config.with_no_client_auth(),
            (Some(certificate), Some(key)) => config
                .with_client_auth_cert(certificates(certificate, "--ssl-cert")?, private_key(key)?)
                .map_err(|error| Error::Usage(format!("--ssl-cert and --ssl-key: {error}")))?,
            _ => return Err(Error::Usage("--ssl-cert and --ssl-key: give both or none".into())),
        };
        // Each connection stands for a program of its own, which has no session to resume.
        config.resumption = Resumption::disabled();
        // As MySQL's own clients, which do not send the name.
        config.enable_sni = false;
        let host = match ServerName::try_from(host.to_owned()) {
            Ok(host) => host,
            Err(_) if mode == Mode::VerifyIdentity => {
                return Err(Error::Usage(format!("--host={host}: not a name that a certificate can bear")));
            }
            // It is not looked at.
            Err(_) => ServerName::from(std::net::Ipv4Addr::LOCALHOST),
        };
        Ok(Self { mode, config: Arc::new(config), host })
    }

    /// Whether a connection should use TLS: to a server that offers it or not, over a unix socket
    /// or not.
    ///
    /// # Errors
    /// It should and cannot.
    pub fn wants_tls(&self, offered: bool, over_socket: bool) -> Result<bool, Error> {
        match self.mode {
            Mode::Disabled => Ok(false),
            Mode::Preferred => Ok(offered && !over_socket),
            _ if offered => Ok(true),
            _ => Err(Error::Failed(
                "the server offers no TLS: give it a certificate (ssl_cert, ssl_key), or use --ssl-mode=disabled"
                    .into(),
            )),
        }
    }

    /// How far others are kept out of its connections.
    pub fn channel(&self) -> Channel {
        if self.mode >= Mode::VerifyCa { Channel::Private } else { Channel::Sealed }
    }

    /// The TLS side of one connection, its handshake still to come.
    ///
    /// # Errors
    /// There are no random numbers to be had.
    pub fn connection(&self) -> Result<Tls, Error> {
        let connection = ClientConnection::new(Arc::clone(&self.config), self.host.clone());
        connection.map(Tls::new).map_err(|error| Error::Failed(format!("TLS: {error}")))
    }
}

fn certificates(path: &Path, flag: &str) -> Result<Vec<CertificateDer<'static>>, Error> {
    let wrong = |why: String| Error::Usage(format!("{flag}={}: {why}", path.display()));
    let pem = bounded::read(path, PEM_BYTES_MAX).map_err(|error| wrong(in_words(&error)))?;
    match CertificateDer::pem_slice_iter(&pem).collect::<Result<Vec<_>, _>>() {
        Ok(certificates) if certificates.is_empty() => Err(wrong("it has no certificate in PEM format".into())),
        Ok(certificates) => Ok(certificates),
        Err(error) => Err(wrong(error.to_string())),
    }
}

fn private_key(path: &Path) -> Result<PrivateKeyDer<'static>, Error> {
    let wrong = |why: String| Error::Usage(format!("--ssl-key={}: {why}", path.display()));
    let pem = bounded::read(path, PEM_BYTES_MAX).map_err(|error| wrong(in_words(&error)))?;
    PrivateKeyDer::from_pem_slice(&pem).map_err(|error| wrong(error.to_string()))
}

/// Judges the certificates of servers.
#[derive(Debug)]
struct Verifier {
    /// None to trust every server.
    authorities: Option<RootCertStore>,
    by_name: bool,
    algorithms: WebPkiSupportedAlgorithms,
}

impl Verifier {
    fn new(mode: Mode, authorities: Option<&Path>, provider: &CryptoProvider) -> Result<Self, Error> {
        let algorithms = provider.signature_verification_algorithms;
        if mode < Mode::VerifyCa {
            return Ok(Self { authorities: None, by_name: false, algorithms });
        }
        let path = authorities.ok_or_else(|| {
            Error::Usage("verifying the server needs the certificate of its authority: --ssl-ca=FILE".into())
        })?;
        let mut store = RootCertStore::empty();
        for certificate in certificates(path, "--ssl-ca")? {
            store.add(certificate).map_err(|error| Error::Usage(format!("--ssl-ca={}: {error}", path.display())))?;
        }
        Ok(Self { authorities: Some(store), by_name: mode == Mode::VerifyIdentity, algorithms })
    }
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        host: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        if let Some(authorities) = &self.authorities {
            let certificate = ParsedCertificate::try_from(certificate)?;
            let all = self.algorithms.all;
            verify_server_cert_signed_by_trust_anchor(&certificate, authorities, intermediates, now, all)?;
            if self.by_name {
                verify_server_name(&certificate, host)?;
            }
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        if self.authorities.is_none() {
            // That a server has the key of an unsigned certificate proves nothing, and many
            // have one of X.509 version 1, as openssl made them for long, which rustls does not read.
            return Ok(HandshakeSignatureValid::assertion());
        }
        verify_tls12_signature(message, certificate, signed, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        if self.authorities.is_none() {
            return Ok(HandshakeSignatureValid::assertion());
        }
        verify_tls13_signature(message, certificate, signed, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}
