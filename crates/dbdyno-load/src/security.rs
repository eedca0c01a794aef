//! How passwords and traffic are kept from others: in the process list and on the way, by the flags and option files of a login.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use dbdyno_common::bounded;
use rustix::fs::{OFlags, open};
use rustix::io::Errno;
use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};

use crate::dialect::environment;
use crate::error::Error;
use crate::protocol::auth::ServerKey;
use crate::protocol::tls_client::{Files, Mode, PEM_BYTES_MAX, TlsClient};

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
    let names = Mode::ALL.map(|(name, _)| name).join(", ");
    let allowed = if name.starts_with("ssl") && !name.contains("verify") { names } else { "on, off".to_owned() };
    Error::Usage(format!("--{name}={value}: use one of {allowed}"))
}

fn server_key(path: &Path) -> Result<ServerKey, Error> {
    let pem = bounded::read(path, PEM_BYTES_MAX).map_err(|error| Error::File(path.into(), error))?;
    ServerKey::parse(&pem).ok_or_else(|| {
        Error::Usage(format!("--server-public-key-path={}: it has no RSA public key in PEM format", path.display()))
    })
}

/// Replaces this process by itself, with `arguments` and with `password` in the environment.
///
/// # Errors
/// Returns only if that failed.
pub fn restart_without(password: &str, arguments: Vec<OsString>) -> Error {
    let error = Command::new("/proc/self/exe").args(arguments).env(environment::PASSWORD, password).exec();
    Error::Failed(format!("cannot restart to hide the password: {error}: use {}", environment::PASSWORD))
}

/// Asks for a password on the terminal.
///
/// # Errors
/// There is no terminal; Ctrl-C, after which the terminal echoes again.
pub fn ask() -> Result<String, Error> {
    let failed =
        |errno: Errno| Error::Usage(format!("-p without a value asks on a terminal, and there is none ({errno})"));
    let terminal = open("/dev/tty", OFlags::RDWR, rustix::fs::Mode::empty()).map_err(failed)?;
    let before = tcgetattr(&terminal).map_err(failed)?;
    let mut silent = before.clone();
    // Keys come one by one, and Ctrl-C is one of them: a signal would end us with the echo off.
    silent.local_modes.remove(LocalModes::ECHO | LocalModes::ICANON | LocalModes::ISIG);
    rustix::io::write(&terminal, b"Password: ").map_err(failed)?;
    tcsetattr(&terminal, OptionalActions::Flush, &silent).map_err(failed)?;
    let line = typed(|key| rustix::io::read(&terminal, key));
    let restored = tcsetattr(&terminal, OptionalActions::Flush, &before);
    let _ = rustix::io::write(&terminal, b"\n");
    restored.map_err(failed)?;
    line.map_err(failed)?.ok_or(Error::Interrupted)
}

/// The line that is typed, given what reads a key; `None` after Ctrl-C.
fn typed(mut read: impl FnMut(&mut [u8]) -> Result<usize, Errno>) -> Result<Option<String>, Errno> {
    const INTERRUPT: u8 = 3;
    const END: u8 = 4;
    const ERASE_LINE: u8 = 21;
    let mut line = Vec::new();
    loop {
        let mut key = [END];
        match read(&mut key) {
            Err(Errno::INTR) => continue,
            got => got?,
        };
        match key[0] {
            INTERRUPT => return Ok(None),
            END | b'\n' | b'\r' => return Ok(Some(String::from_utf8_lossy(&line).into_owned())),
            ERASE_LINE => line.clear(),
            8 | 127 => {
                // All bytes of a character beyond ASCII.
                while line.pop().is_some_and(|byte| byte & 0xc0 == 0x80) {}
            }
            byte => line.push(byte),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn option<'a>(given: &'a [(&'static str, &str)]) -> impl Fn(&'static str) -> Option<String> + 'a {
        |name| given.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
    }

    #[test]
    fn options_make_the_mode_that_other_clients_make_of_them() {
        let mode = |given: &[_]| {
            let option = option(given);
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
        let said = |given: &[_]| Security::read(&option(given), "db").unwrap_err().to_string();
        assert!(said(&[("ssl-mode", "verify_ca")]).contains("--ssl-ca=FILE"));
        assert!(said(&[("ssl-ca", "/nonexistent")]).contains("--ssl-ca=/nonexistent"));
        assert!(said(&[("ssl", ""), ("ssl-cert", "f")]).contains("give both"));
        assert!(said(&[("server-public-key-path", "/dev/null")]).contains("no RSA public key"));
    }

    #[test]
    fn keys_make_a_line() {
        let line = |keys: &str| {
            let mut keys = keys.bytes();
            typed(|key| Ok(keys.next().map_or(0, |byte| std::mem::replace(&mut key[0], byte).min(1).into()))).unwrap()
        };
        assert_eq!(line("secret\nmore").as_deref(), Some("secret"));
        assert_eq!(line("sec\u{e9}\u{7f}ret\u{8}\r").as_deref(), Some("secre"));
        assert_eq!(line("wrong\u{15}right\u{4}").as_deref(), Some("right"));
        assert_eq!(line("cut off").as_deref(), Some("cut off"));
        assert_eq!(line("secret\u{3}\n"), None);
    }
}
