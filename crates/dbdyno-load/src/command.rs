//! A verb's command line taken apart: flags, words and login.

use std::ffi::OsString;

use crate::error::Error;
use crate::flags::{self, Given, Table};
use crate::login::LoginOptions;
use crate::secret;
use crate::values::Values;

/// A command line.
#[derive(Debug)]
pub struct Command {
    given: Given,
    /// How the server is reached.
    pub login: LoginOptions,
}

/// What the command line asks for.
#[derive(Debug)]
pub enum Asked {
    /// The help text.
    Help,
    /// The version.
    Version,
    /// Work.
    Load(Command),
}

impl Command {
    /// The flags that are not about the login.
    pub fn values(&self) -> Values<'_> {
        let flags = self.given.flags.iter();
        Values::new(flags.map(|(flag, value)| (flag.canonical(), value.as_deref())).collect())
    }

    /// What belongs to no flag.
    pub fn words(&self) -> &[String] {
        &self.given.words
    }
}

/// Reads the command line of `verb`; notes on what is ignored go to `notes`.
///
/// A password on it makes the process start over without.
///
/// # Errors
/// Anything wrong with it.
pub fn read(
    verb: &str,
    table: Table,
    words_max: usize,
    arguments: impl IntoIterator<Item = OsString>,
    notes: &mut Vec<String>,
) -> Result<Asked, Error> {
    let given = flags::parse(table, words_max, arguments, notes)?;
    let has = |name: &str| given.flags.iter().any(|(flag, _)| flag.name == name);
    if has("help") {
        return Ok(Asked::Help);
    }
    if has("version") {
        return Ok(Asked::Version);
    }
    let mut login = LoginOptions::default();
    for (flag, value) in &given.flags {
        login.take(flag.canonical(), value.as_deref())?;
    }
    if let Some(password) = login.exposed_password() {
        return Err(secret::restart_without(password, without_password(verb, &given)));
    }
    Ok(Asked::Load(Command { given, login }))
}

/// The command line again, without the password.
fn without_password(verb: &str, given: &Given) -> Vec<OsString> {
    let mut arguments = vec![verb.into(), "--password-from-env".into()];
    for (flag, value) in given.flags.iter().filter(|(flag, _)| flag.canonical() != "password") {
        arguments.push(match value {
            Some(value) => format!("--{}={value}", flag.name).into(),
            None => format!("--{}", flag.name).into(),
        });
    }
    arguments.extend(given.words.iter().map(OsString::from));
    arguments
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flags::{Flag, Group};

    #[test]
    fn a_password_does_not_survive_on_the_command_line() {
        static TABLE: Table = &[
            Group {
                title: "",
                flags: &[Flag::switch("all", "").short('a'), Flag::value("mysql-password", "").same_as("password")],
            },
            crate::login::GROUP,
        ];
        for secret in ["-psecret", "--password=secret", "--mysql-password=secret"] {
            let line = ["-a", secret, "-u", "me", "run"].map(OsString::from);
            let given = flags::parse(TABLE, 1, line, &mut Vec::new()).unwrap();
            assert_eq!(without_password("oltp", &given), ["oltp", "--password-from-env", "--all", "--user=me", "run"]);
        }
    }
}
