//! How a password is kept from others: it prints nowhere, is asked for on the terminal, and does not stay in the process
//! list.

use std::ffi::OsString;
use std::fmt;
use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::fs::{OFlags, open};
use rustix::io::Errno;
use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};

use crate::dialect::environment;
use crate::error::Error;

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
