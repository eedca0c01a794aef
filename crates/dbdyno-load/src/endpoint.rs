//! The server's address, the account, the message when it cannot be reached, and TLS: all by the flags and option files
//! of a login.

use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use dbdyno_common::bounded;
use dbdyno_common::similar::did_you_mean;
use rustix::io::Errno;
use rustix::net::sockopt::{Timeout, set_socket_keepalive, set_socket_timeout, set_tcp_keepidle, set_tcp_nodelay};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};

use crate::clock::now_ns;
use crate::dialect::{USUAL_SOCKETS, error_codes};
use crate::error::{Error, explained};
use crate::password::Password;
use crate::protocol::auth::ServerKey;
use crate::protocol::patience::TimeLimits;
use crate::protocol::tls_client::{Files, Mode, PEM_BYTES_MAX, TlsClient};

/// How long a blocking call of a session waits before it looks whether to go on.
pub const POLL: Duration = Duration::from_millis(100);

/// How the server is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    /// Path of a unix socket.
    Socket(PathBuf),
    /// Host and port.
    Tcp(String, u16),
}

/// A server and a login.
#[derive(Debug, Clone)]
pub struct Endpoint {
    /// How it is reached.
    pub address: Address,
    /// User name.
    pub user: String,
    /// Password.
    pub password: Password,
    /// For connecting and logging in, per connection.
    pub connect_timeout: Duration,
    /// How long the server may say nothing at all before it counts as dead.
    pub stall_timeout: Duration,
    /// How long a reply may take from its first byte to its last.
    pub reply_timeout: Duration,
    /// How long a statement before or after a run may take.
    pub statement_timeout: Duration,
    /// Statement run on each connection after the login.
    pub init_command: Option<String>,
    /// What keeps others out.
    pub security: Security,
    /// Whether the protocol is compressed.
    pub compressed: bool,
}

/// The first of the usual sockets that exists, else the first.
pub fn usual_socket() -> PathBuf {
    let socket = USUAL_SOCKETS.iter().find(|path| Path::new(path).exists());
    PathBuf::from(socket.unwrap_or(&USUAL_SOCKETS[0]))
}

impl Endpoint {
    /// The place in words, for messages.
    pub fn place(&self) -> String {
        match &self.address {
            Address::Socket(path) => format!("socket {}", path.display()),
            Address::Tcp(host, port) => format!("{host}:{port}"),
        }
    }

    /// Whether it is a unix socket, on which no one else can listen.
    pub fn is_private(&self) -> bool {
        matches!(self.address, Address::Socket(_))
    }

    /// The bounds of a session.
    pub fn time_limits(&self) -> TimeLimits {
        TimeLimits {
            login: self.connect_timeout,
            silence: self.stall_timeout,
            reply: self.reply_timeout,
            statement: self.statement_timeout,
        }
    }

    /// Opens a connected blocking socket.
    ///
    /// # Errors
    /// One line with place, errno and remedy.
    pub fn dial(&self) -> Result<OwnedFd, Error> {
        let connected = match &self.address {
            Address::Socket(path) => self.dial_unix(path),
            Address::Tcp(host, port) => self.dial_tcp(host, *port)?,
        };
        connected
            .and_then(|socket| {
                set_socket_timeout(&socket, Timeout::Recv, Some(POLL))?;
                set_socket_timeout(&socket, Timeout::Send, Some(POLL))?;
                Ok(socket)
            })
            .map_err(|errno| self.unreachable(errno))
    }

    fn dial_unix(&self, path: &Path) -> Result<OwnedFd, Errno> {
        let flags = SocketFlags::CLOEXEC;
        let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        // A server whose backlog is full makes connect() wait for this long.
        set_socket_timeout(&socket, Timeout::Send, Some(self.connect_timeout))?;
        connect(&socket, &SocketAddrUnix::new(path)?)?;
        Ok(socket)
    }

    fn dial_tcp(&self, host: &str, port: u16) -> Result<Result<OwnedFd, Errno>, Error> {
        let addresses: Vec<SocketAddr> = (host, port)
            .to_socket_addrs()
            .map_err(|error| Error::Failed(format!("cannot resolve the host {host}: {error}: check --host")))?
            .collect();
        let mut last = Errno::ADDRNOTAVAIL;
        let start_ns = now_ns();
        for address in addresses {
            let left = self.connect_timeout.saturating_sub(Duration::from_nanos(now_ns() - start_ns));
            if left.is_zero() {
                break;
            }
            match TcpStream::connect_timeout(&address, left) {
                Ok(stream) => return Ok(keep_alive(stream.into())),
                Err(error) => last = Errno::from_io_error(&error).unwrap_or(Errno::TIMEDOUT),
            }
        }
        Ok(Err(last))
    }

    fn unreachable(&self, errno: Errno) -> Error {
        let remedy = match errno {
            Errno::NOENT => "is the server running? name its socket with --socket",
            Errno::CONNREFUSED => "is the server running and listening there?",
            Errno::ACCESS | Errno::PERM => "this user may not open it",
            Errno::TIMEDOUT | Errno::AGAIN | Errno::INPROGRESS => {
                "the server does not accept connections in time: see --connect-timeout"
            }
            _ => "check --host, --port, --socket and --protocol",
        };
        Error::Failed(format!("cannot connect to {}: {}: {remedy}", self.place(), explained(errno)))
    }

    /// Adds place and remedy to a login that failed.
    pub fn explain(&self, error: Error) -> Error {
        let place = self.place();
        let server = match error {
            Error::Login(server) => server,
            Error::Failed(why) => return Error::Failed(format!("{place}: {why}")),
            Error::Protocol(why) => return Error::Failed(format!("{place}: {why}")),
            other => return other,
        };
        let remedy = match server.code {
            error_codes::TOO_MANY_CONNECTIONS => "raise the server's max_connections or use fewer clients",
            error_codes::TLS_DEMANDED => "use --ssl-mode=required",
            code if error_codes::is_login_denied(code) && self.security.tls.is_none() => {
                "check --user, --password and the grants; if the account requires TLS, use --ssl-mode=required"
            }
            code if error_codes::is_login_denied(code) => "check --user, --password and the grants",
            error_codes::UNKNOWN_SCHEMA => "prepare it first, with --phase=prepare",
            _ => "see the server's error log",
        };
        Error::Failed(format!("{place} refused the login of {}: error {server}: {remedy}", self.user))
    }
}

/// A host that vanishes must end a run, though nothing is sent to it.
fn keep_alive(socket: OwnedFd) -> Result<OwnedFd, Errno> {
    set_tcp_nodelay(&socket, true)?;
    set_socket_keepalive(&socket, true)?;
    set_tcp_keepidle(&socket, Duration::from_secs(10))?;
    Ok(socket)
}

/// Said of flags about TLS that cannot be honoured.
pub const ONE_FILE: &str = "a folder of certificates is not read: put those you need into one file for --ssl-ca";
/// Said of flags about revoked certificates.
pub const NO_REVOCATION: &str = "revocation is not checked: leave it out if you can do without";
/// Said of flags about the versions and ciphers of TLS.
pub const NO_CHOICE: &str = "TLS 1.2 and 1.3 use rustls's ciphers: choose among them on the server";

/// Options that are on or off.
pub const SWITCHES: [&str; 4] = ["compress", "ssl", "ssl-verify-server-cert", "get-server-public-key"];

/// What keeps others out.
#[derive(Debug, Clone, Default)]
pub struct Security {
    /// TLS, if it is to be used.
    pub tls: Option<TlsClient>,
    /// The server's RSA key, if it is known.
    pub server_key: Option<Arc<ServerKey>>,
    /// Whether the server may be asked for its RSA key, and believed.
    pub may_ask_for_key: bool,
}

impl Security {
    /// Reads it from `option`, which gives options by name, for connections to `host`.
    ///
    /// # Errors
    /// Names the option that is wrong, or whose file is.
    pub fn read(option: &dyn Fn(&'static str) -> Option<String>, host: &str) -> Result<Self, Error> {
        let path = |name| option(name).filter(|path| !path.is_empty()).map(PathBuf::from);
        let files = Files { authorities: path("ssl-ca"), certificate: path("ssl-cert"), key: path("ssl-key") };
        let tls = match mode(option, &files)? {
            Mode::Disabled => None,
            mode => Some(TlsClient::new(mode, &files, host)?),
        };
        let server_key = path("server-public-key-path").map(|path| server_key(&path)).transpose()?;
        let may_ask_for_key = switch("get-server-public-key", option)?.unwrap_or(false);
        Ok(Self { tls, server_key: server_key.map(Arc::new), may_ask_for_key })
    }
}

/// What MySQL's and MariaDB's clients make of the same options. TLS that was not asked for would cost
/// the client CPU time that counts, so there is none by default.
fn mode(option: &dyn Fn(&'static str) -> Option<String>, files: &Files) -> Result<Mode, Error> {
    if let Some(name) = option("ssl-mode") {
        return mode_named(&name).ok_or_else(|| wrong("ssl-mode", &name));
    }
    // sysbench names the mode here.
    let ssl = match option("ssl") {
        Some(name) if mode_named(&name).is_some() => return Ok(mode_named(&name).unwrap_or(Mode::Required)),
        _ => switch("ssl", option)?,
    };
    if ssl == Some(false) {
        return Ok(Mode::Disabled);
    }
    let verify = switch("ssl-verify-server-cert", option)?;
    Ok(match (verify, &files.authorities) {
        (Some(true), _) => Mode::VerifyIdentity,
        (None, Some(_)) => Mode::VerifyCa,
        _ if ssl == Some(true) || files.authorities.is_some() || files.certificate.is_some() => Mode::Required,
        _ => Mode::Disabled,
    })
}

fn mode_named(name: &str) -> Option<Mode> {
    let name = name.to_ascii_lowercase().replace('-', "_");
    Mode::ALL.iter().find(|(known, _)| *known == name).map(|(_, mode)| *mode)
}

/// An option that is on, off, or not given.
///
/// # Errors
/// Its value is neither.
pub fn switch(name: &'static str, option: &dyn Fn(&'static str) -> Option<String>) -> Result<Option<bool>, Error> {
    let Some(value) = option(name) else {
        return Ok(None);
    };
    match value.to_ascii_lowercase().as_str() {
        "" | "1" | "on" | "true" | "yes" => Ok(Some(true)),
        "0" | "off" | "false" | "no" => Ok(Some(false)),
        _ => Err(wrong(name, &value)),
    }
}

fn wrong(name: &str, value: &str) -> Error {
    let modes = Mode::ALL.map(|(name, _)| name);
    let allowed = if name.starts_with("ssl") && !name.contains("verify") { &modes[..] } else { &["on", "off"] };
    let hint = did_you_mean(&value.to_ascii_lowercase(), allowed.iter().copied());
    Error::Usage(format!("--{name}={value}: use one of {}{hint}", allowed.join(", ")))
}

fn server_key(path: &Path) -> Result<ServerKey, Error> {
    let pem = bounded::read(path, PEM_BYTES_MAX).map_err(|error| Error::File(path.into(), error))?;
    ServerKey::parse(&pem).ok_or_else(|| {
        Error::Usage(format!("--server-public-key-path={}: it has no RSA public key in PEM format", path.display()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn endpoint(address: Address) -> Endpoint {
        Endpoint {
            address,
            user: "root".into(),
            password: Password::new("secret".into()),
            connect_timeout: Duration::from_secs(1),
            stall_timeout: Duration::from_secs(1),
            reply_timeout: Duration::from_secs(1),
            statement_timeout: Duration::from_secs(1),
            init_command: None,
            security: Security::default(),
            compressed: false,
        }
    }

    #[test]
    fn a_missing_socket_is_named_with_its_errno() {
        let missing = endpoint(Address::Socket("/nonexistent/s.sock".into()));
        let text = missing.dial().unwrap_err().to_string();
        assert!(text.contains("/nonexistent/s.sock") && text.contains("(errno 2)"), "{text}");
        assert!(!format!("{missing:?}").contains("secret"));
    }

    #[test]
    fn a_refused_port_is_named_with_its_errno() {
        let refused = endpoint(Address::Tcp("127.0.0.1".into(), 1));
        let text = refused.dial().unwrap_err().to_string();
        assert!(text.contains("127.0.0.1:1") && text.contains("(errno 111)"), "{text}");
    }

    fn option<'a>(options: &'a [(&'static str, &str)]) -> impl Fn(&'static str) -> Option<String> + 'a {
        |name| options.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
    }

    #[test]
    fn options_make_the_mode_that_other_clients_make_of_them() {
        let mode = |options: &[_]| {
            let option = option(options);
            let path = |name| option(name).map(PathBuf::from);
            let files = Files { authorities: path("ssl-ca"), certificate: path("ssl-cert"), key: None };
            mode(&option, &files).map_err(|error| error.to_string())
        };
        assert_eq!(mode(&[]), Ok(Mode::Disabled));
        assert_eq!(mode(&[("ssl", "")]), Ok(Mode::Required));
        assert_eq!(mode(&[("ssl", "preferred")]), Ok(Mode::Preferred));
        assert_eq!(mode(&[("ssl-ca", "f")]), Ok(Mode::VerifyCa));
        assert_eq!(mode(&[("ssl-ca", "f"), ("ssl", "0")]), Ok(Mode::Disabled));
        assert_eq!(mode(&[("ssl-ca", "f"), ("ssl-verify-server-cert", "")]), Ok(Mode::VerifyIdentity));
        assert_eq!(mode(&[("ssl-ca", "f"), ("ssl-verify-server-cert", "off")]), Ok(Mode::Required));
        assert_eq!(mode(&[("ssl-cert", "f")]), Ok(Mode::Required));
        assert_eq!(mode(&[("ssl-ca", "f"), ("ssl-mode", "REQUIRED")]), Ok(Mode::Required));
        assert_eq!(mode(&[("ssl-mode", "verify-identity")]), Ok(Mode::VerifyIdentity));
        assert!(mode(&[("ssl-mode", "maybe")]).unwrap_err().contains("use one of disabled, preferred"));
        assert!(mode(&[("ssl-verify-server-cert", "maybe")]).unwrap_err().contains("on, off"));
    }

    #[test]
    fn what_is_missing_is_named() {
        let message = |options: &[_]| Security::read(&option(options), "db").unwrap_err().to_string();
        assert!(message(&[("ssl-mode", "verify_ca")]).contains("--ssl-ca=FILE"));
        assert!(message(&[("ssl-ca", "/nonexistent")]).contains("--ssl-ca=/nonexistent"));
        assert!(message(&[("ssl", ""), ("ssl-cert", "f")]).contains("give both"));
        assert!(message(&[("server-public-key-path", "/dev/null")]).contains("no RSA public key"));
    }
}
