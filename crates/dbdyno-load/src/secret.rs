//! Passwords that must not stay in the process list.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::fs::{Mode, OFlags, open};
use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};

use crate::error::Error;

/// Where the password goes; MySQL's own clients read it there too.
pub const VARIABLE: &str = "MYSQL_PWD";

/// Replaces this process by itself, with `arguments` and with `password` in the environment.
///
/// # Errors
/// Returns only if that failed.
pub fn restart_without(password: &str, arguments: Vec<OsString>) -> Error {
    let error = Command::new("/proc/self/exe").args(arguments).env(VARIABLE, password).exec();
    Error::Failed(format!("cannot restart to hide the password: {error}: use {VARIABLE}"))
}

/// Asks for a password on the terminal.
///
/// # Errors
/// There is no terminal.
pub fn ask() -> Result<String, Error> {
    let failed = |errno: rustix::io::Errno| {
        Error::Usage(format!("-p without a value asks on a terminal, and there is none ({errno})"))
    };
    let terminal = open("/dev/tty", OFlags::RDWR, Mode::empty()).map_err(failed)?;
    let before = tcgetattr(&terminal).map_err(failed)?;
    let mut silent = before.clone();
    silent.local_modes.remove(LocalModes::ECHO);
    rustix::io::write(&terminal, b"Password: ").map_err(failed)?;
    tcsetattr(&terminal, OptionalActions::Flush, &silent).map_err(failed)?;
    let mut line = [0; 1024];
    let read = rustix::io::read(&terminal, &mut line);
    let restored = tcsetattr(&terminal, OptionalActions::Flush, &before);
    let _ = rustix::io::write(&terminal, b"\n");
    restored.map_err(failed)?;
    let text = String::from_utf8_lossy(&line[..read.map_err(failed)?]).into_owned();
    Ok(text.trim_end_matches('\n').to_owned())
}
