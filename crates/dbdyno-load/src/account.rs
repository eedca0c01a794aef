//! A server account for statements that are a user's own: with rights on one schema alone, so that the server itself
//! refuses whatever they would change elsewhere, however they are put.
//!
//! The login that was given makes it, gives its random password to no other process, and drops it at the end. Its name
//! is always the same for a schema, as routines, views and triggers act for the account that made them: those of
//! `prepare` must find it again in `run`. A lock of that name keeps a second process out; what a killed one left is
//! made anew.

use rustix::rand::{GetRandomFlags, getrandom};

use crate::dialect::error_codes;
use crate::endpoint::{Endpoint, Security};
use crate::error::{Error, Slow, explained};
use crate::password::Password;
use crate::protocol::session::Session;
use crate::stop::Stop;
use crate::{dialect, names, output};

/// How the names of all such accounts begin.
const PREFIX: &str = "dbdyno_";

/// How long the lock may be held by a process before that has just ended, in seconds.
const LOCK_SECONDS: u32 = 10;

/// Random bytes of a password.
const PASSWORD_BYTES: usize = 24;

/// Has what every server's rules on passwords ask for: small and capital letters, a digit and a mark.
const PASSWORD_START: &str = "aZ9-";

/// What statements are confined to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Confined {
    /// The schema that they may change.
    pub schema: String,
    /// User and host of the account, where the caller has chosen them: it takes care of what a kill leaves then.
    pub account: Option<(String, String)>,
}

impl Confined {
    /// Reads `USER@HOST`, if it is given.
    ///
    /// # Errors
    /// It is not that.
    pub fn new(schema: &str, account: Option<&str>) -> Result<Self, Error> {
        let pair = |text: &str| {
            let (user, host) = text.split_once('@').filter(|(user, host)| is_plain(user) && is_plain(host))?;
            user.starts_with(PREFIX).then(|| (user.to_owned(), host.to_owned()))
        };
        let wrong = |text| Error::Usage(format!("--account={text}: give {PREFIX}NAME@HOST"));
        let account = account.map(|text| pair(text).ok_or_else(|| wrong(text))).transpose()?;
        Ok(Self { schema: schema.into(), account })
    }

    /// What to add to the server's error `code`; empty where it is no question of rights.
    pub fn remedy(&self, code: u16) -> String {
        if !error_codes::is_right_missing(code) {
            return String::new();
        }
        let schema = &self.schema;
        format!(
            ": the script's account may change only its own schema {schema}: leave the statement out, or {}",
            self.otherwise()
        )
    }

    /// How the whole server is given to the statements.
    fn otherwise(&self) -> &'static str {
        if self.account.is_some() {
            "allow in the study that the whole server is changed: [server] whole_server_may_change = true"
        } else {
            "allow changes to the whole server with --whole-server"
        }
    }
}

/// An account, there until it is dropped.
pub struct Account {
    admin: Endpoint,
    /// Holds the lock.
    session: Session,
    endpoint: Endpoint,
    /// As SQL quotes it.
    name: String,
}

impl Account {
    /// Makes the account on the server that `login` reaches, and sees as it that it reaches nothing but the schema.
    ///
    /// # Errors
    /// The login lacks a right, which is named, or the server gives every account rights elsewhere.
    pub fn make(login: &Endpoint, confined: &Confined, stop: &Stop) -> Result<Self, Error> {
        // The initial command is as much the user's own as the rest.
        let admin = Endpoint { init_command: None, ..login.clone() };
        let mut session = Session::connect(&admin, None, stop)?;
        session.execute("SET SESSION wait_timeout = 31536000, SESSION sql_mode = ''")?;
        let (user, host) = match &confined.account {
            Some((user, host)) => (user.clone(), host.clone()),
            None => (name_for(&confined.schema), host_seen(&mut session)?),
        };
        take(&mut session, &user, confined)?;
        let password = format!("{PASSWORD_START}{}", random::<PASSWORD_BYTES>()?);
        let name = format!("'{user}'@'{host}'");
        // It is there only where a process was killed.
        let _ = session.execute(&format!("DROP USER {name}"));
        let created = session.execute(&format!("CREATE USER {name} IDENTIFIED BY '{password}'"));
        created.map_err(|error| {
            let remedy = format!("GRANT CREATE USER ON *.* TO '{}'@...", admin.user);
            refusal("an account of its own", &remedy, confined, error)
        })?;
        let endpoint = Endpoint {
            user,
            password: Password::new(password),
            // A password for these minutes alone, which opens one schema, may go by an unsigned key.
            security: Security { may_ask_for_key: true, ..admin.security.clone() },
            ..login.clone()
        };
        let mut account = Self { admin, session, endpoint, name };
        match account.confine(confined, stop) {
            Ok(()) => Ok(account),
            Err(error) => {
                if let Err(left) = account.remove() {
                    output::note(&left.to_string());
                }
                Err(error)
            }
        }
    }

    /// Gives it the schema, and sees that it has nothing else.
    fn confine(&mut self, confined: &Confined, stop: &Stop) -> Result<(), Error> {
        let rights = format!("GRANT ALL PRIVILEGES ON {}.* TO ", pattern(&confined.schema));
        self.session.execute(&format!("{rights}{}", self.name)).map_err(|error| {
            let remedy = format!("{rights}'{}'@... WITH GRANT OPTION", self.admin.user);
            refusal(&format!("the schema {}", confined.schema), &remedy, confined, error)
        })?;
        self.reaches_nothing_else(confined, &rights, stop)
    }

    /// How to log in by it.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Drops it; a request to stop does not interrupt that.
    ///
    /// # Errors
    /// The server refuses or is away; says what is left.
    pub fn remove(self) -> Result<(), Error> {
        let sql = format!("DROP USER {}", self.name);
        let outcome = self.session.for_cleaning_up(&self.admin).and_then(|mut session| session.execute(&sql));
        let done = match outcome {
            // The server was started again, or has ended the session.
            Err(Error::Lost(..) | Error::Tls(..) | Error::Protocol(_)) => {
                Session::connect(&self.admin, None, &Stop::default()).and_then(|mut session| session.execute(&sql))
            }
            done => done,
        };
        done.map_err(|error| Error::Failed(format!("the account {} could not be dropped: {error}: {sql}", self.name)))
    }

    /// Looks, as the account, whether the server gives it more than it was granted.
    fn reaches_nothing_else(&self, confined: &Confined, rights: &str, stop: &Stop) -> Result<(), Error> {
        let mut session = Session::connect(&self.endpoint, None, stop)?;
        let refused = |what: String| {
            Err(Error::Usage(format!(
                "the script's account would reach more than its schema {}, because this server gives every account {what}: \
                 revoke that, or {}",
                confined.schema,
                confined.otherwise()
            )))
        };
        // Otherwise names could be quoted in another way.
        session.execute("SET SESSION sql_mode = ''")?;
        for grant in session.values("SHOW GRANTS")? {
            if !grant.starts_with("GRANT USAGE ON *.* TO ") && !grant.starts_with(rights) {
                return refused(grant);
            }
        }
        for name in dialect::OPEN_TO_ALL.into_iter().filter(|name| !name.eq_ignore_ascii_case(&confined.schema)) {
            match session.execute(&format!("USE {name}")) {
                Err(Error::Statement { error, .. }) if error.code == error_codes::SCHEMA_DENIED => {}
                Err(error @ (Error::Interrupted | Error::Lost(..))) => return Err(error),
                _ => {
                    let rows = dialect::OPEN_BY;
                    return refused(format!("rights on schemas called {name}, by rows of {rows} without a user"));
                }
            }
        }
        let allowed = ["information_schema", "performance_schema", "sys", &confined.schema];
        let mut others = session.values("SELECT SCHEMA_NAME FROM information_schema.SCHEMATA")?.into_iter();
        match others.find(|name| !allowed.iter().any(|allowed| name.eq_ignore_ascii_case(allowed))) {
            Some(name) => refused(format!("rights on the schema {name}")),
            None => Ok(()),
        }
    }
}

/// What a refusal to make the account comes to, and which statement would give the right that is missing.
fn refusal(what: &str, remedy: &str, confined: &Confined, error: Error) -> Error {
    let error = match error {
        Error::Statement { error, .. } => error,
        // The statement may hold the password.
        Error::Slow(slow) => return Error::Slow(Slow { sql: None, ..slow }),
        other => return other,
    };
    let remedy = if error_codes::is_right_missing(error.code) { remedy } else { "fix that" };
    let otherwise = confined.otherwise();
    Error::Usage(format!("the script can't be given {what}: error {error}: {remedy}, or {otherwise}"))
}

/// Takes the lock of the account.
fn take(session: &mut Session, user: &str, confined: &Confined) -> Result<(), Error> {
    if session.value(&format!("SELECT GET_LOCK('dbdyno account {user}', {LOCK_SECONDS})"))? == Some(1) {
        return Ok(());
    }
    Err(Error::Usage(format!(
        "another dbdyno script works on the schema {}: wait for it, or {}",
        confined.schema,
        confined.otherwise()
    )))
}

/// The user of the account for a schema (FNV-1a): MySQL 5.6 takes names of 16 characters.
fn name_for(schema: &str) -> String {
    let mixed = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    let hash = schema.bytes().fold(0xcbf2_9ce4_8422_2325, mixed);
    format!("{PREFIX}{:09x}", hash >> 28)
}

/// The schema's name as GRANT takes it, where `_` and `%` alone would stand for others too.
fn pattern(schema: &str) -> String {
    names::quoted(&schema.replace('\\', "\\\\").replace('_', "\\_").replace('%', "\\%"))
}

/// The host from which the server sees us come.
fn host_seen(session: &mut Session) -> Result<String, Error> {
    let seen: String = session.value("SELECT USER()")?.unwrap_or_default();
    let host = seen.rsplit_once('@').map_or("", |(_, host)| host);
    if host.is_empty() {
        return Ok("%".into());
    }
    is_plain(host).then(|| host.to_owned()).ok_or_else(|| Error::Failed(format!("the server sees us come from {seen}")))
}

/// Whether a part of an account's name needs no escapes.
fn is_plain(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || "._-:%".contains(c))
}

/// A random number of so many bytes, in hexadecimal digits.
fn random<const BYTES: usize>() -> Result<String, Error> {
    let mut bytes = [0; BYTES];
    let filled = getrandom(&mut bytes, GetRandomFlags::empty());
    filled.map_err(|errno| Error::Failed(format!("the system has no random numbers: {}", explained(errno))))?;
    let mut digits = String::new();
    names::put_digits(&bytes, &mut digits);
    Ok(digits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_means_one_schema() {
        assert_eq!(pattern("dbdyno_script"), "`dbdyno\\_script`");
        assert_eq!(pattern("a`%\\"), "`a``\\%\\\\`");
    }

    #[test]
    fn a_schema_has_one_account() {
        assert_eq!(name_for("dbdyno_script").len(), 16);
        assert_eq!(name_for("shop"), name_for("shop"));
        assert_ne!(name_for("shop"), name_for("shops"));
    }

    #[test]
    fn accounts_are_named_in_whole() {
        let read = |text| Confined::new("s", Some(text)).map(|confined| confined.account);
        assert_eq!(read("dbdyno_1@10.0.0.1").unwrap(), Some(("dbdyno_1".into(), "10.0.0.1".into())));
        assert_eq!(read("dbdyno_1@::1").unwrap(), Some(("dbdyno_1".into(), "::1".into())));
        for wrong in ["root@localhost", "dbdyno_1", "dbdyno_1@", "dbdyno_'@x", "dbdyno_1@a'b"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn only_what_rights_forbid_has_their_remedy() {
        let confined = Confined::new("s", None).unwrap();
        assert!(
            confined.remedy(1142).contains("only its own schema s:")
                && confined.remedy(1142).contains("--whole-server")
        );
        assert_eq!(confined.remedy(1064), "");
        let of_a_study = Confined::new("s", Some("dbdyno_1@h")).unwrap();
        assert!(of_a_study.remedy(1044).contains("whole_server_may_change"));
    }

    #[test]
    fn passwords_are_long_and_never_the_same() {
        let (first, second) = (random::<PASSWORD_BYTES>().unwrap(), random::<PASSWORD_BYTES>().unwrap());
        assert!(first.len() == 2 * PASSWORD_BYTES && first != second && first.chars().all(|c| c.is_ascii_hexdigit()));
    }
}
