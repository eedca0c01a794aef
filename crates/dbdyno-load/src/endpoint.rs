//! Where the server is, who we are there, and what to say when it cannot be reached.

use std::fmt;
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::sockopt::{Timeout, set_socket_keepalive, set_socket_timeout, set_tcp_keepidle, set_tcp_nodelay};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};

use crate::clock::now_ns;
use crate::dialect::{self, USUAL_SOCKETS};
use crate::error::{Error, explained};
use crate::protocol::patience::TimeLimits;
use crate::security::Security;

/// How long a blocking call of a session waits before it looks whether to go on.
pub const POLL: Duration = Duration::from_millis(100);

/// A password that does not print itself.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Password(String);

impl Password {
    /// Wraps `text`.
    pub fn new(text: String) -> Self {
        Self(text)
    }

    /// The text, for the login only.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Password(..)")
    }
}

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
            dialect::TOO_MANY_CONNECTIONS => "raise the server's max_connections or use fewer clients",
            dialect::TLS_DEMANDED => "use --ssl-mode=required",
            code if dialect::is_login_denied(code) && self.security.tls.is_none() => {
                "check --user, --password and the grants; if the account requires TLS, use --ssl-mode=required"
            }
            code if dialect::is_login_denied(code) => "check --user, --password and the grants",
            dialect::UNKNOWN_SCHEMA => "prepare it first, with --phase=prepare",
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
}
