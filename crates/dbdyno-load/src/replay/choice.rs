//! Which statements of a log are sent, and how many of the others there are.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::error::Error;
use crate::text::shown;

use super::log::Log;
use super::statement::{Class, classified, is_servers_own};

/// Longest log, as a session can set the time that is logged to any.
const DAYS_MAX: i64 = 366;

/// Most schemas that a message names.
const NAMED_MAX: usize = 5;

/// What is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wish {
    /// Statements that write as well.
    pub writes: bool,
    /// The server lets the statements change one schema alone.
    pub is_confined: bool,
    /// Statements of all schemas, each in its own.
    pub follows_schemas: bool,
    /// Those of this schema of the log alone, and those of none.
    pub from_schema: Option<String>,
}

/// A statement that is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sent {
    /// Its place among the log's statements.
    pub number: u32,
    /// Its kind.
    pub kind: u16,
}

/// Statements and other entries that are not sent, by the reason.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct NotSent {
    /// They write, or may.
    pub writes: u64,
    /// They read, by functions that may do more than that: waiting, locking, or whatever a user's own does.
    pub functions: u64,
    /// Their default schema is another.
    pub other_schemas: u64,
    /// They have no end.
    pub cut_off: u64,
    /// They have `?` in place of values.
    pub placeholders: u64,
    /// They need a file of the client's.
    pub local_files: u64,
    /// They read or write a file of the server's.
    pub server_files: u64,
    /// They run a text that the log does not show, with the rights of the login.
    pub hidden: u64,
    /// They are several statements in one.
    pub several: u64,
    /// KILL, SHUTDOWN, FLUSH, SET GLOBAL, GRANT and their like, and protocol commands without SQL, such as Ping.
    pub administrator_commands: u64,
    /// They begin with no word that is known.
    pub unknown: u64,
}

/// What is sent, in the log's order, and what is not.
pub fn choose(log: &Log, wish: &Wish, name: &str) -> Result<(Vec<Sent>, NotSent), Error> {
    let kept = kept_schemas(log, wish, name)?;
    let mut not =
        NotSent { cut_off: log.unusable.cut_off, administrator_commands: log.unusable.commands, ..NotSent::default() };
    let mut sent = Vec::new();
    for (number, statement) in (0..).zip(&log.statements) {
        let (kind, class) = classified(log.sql(statement));
        let is_in_servers_own = is_servers_own(&log.schemas[usize::from(statement.schema)]);
        let count = match class {
            Class::Use => continue,
            Class::CutOff => &mut not.cut_off,
            Class::Administers => &mut not.administrator_commands,
            Class::Unknown | Class::Odd => &mut not.unknown,
            Class::LocalFile => &mut not.local_files,
            Class::ServerFile => &mut not.server_files,
            Class::Placeholder => &mut not.placeholders,
            Class::Several => &mut not.several,
            _ if !kept[usize::from(statement.schema)] => &mut not.other_schemas,
            Class::Functions if !wish.writes => &mut not.functions,
            Class::Writes | Class::Hidden if !wish.writes => &mut not.writes,
            // What is written there are accounts, rights and settings.
            Class::Writes | Class::Hidden if is_in_servers_own && !wish.is_confined => &mut not.administrator_commands,
            Class::Hidden if !wish.is_confined => &mut not.hidden,
            Class::Reads | Class::Functions | Class::Writes | Class::Hidden => {
                sent.push(Sent { number, kind });
                continue;
            }
        };
        *count += 1;
    }
    check_span(log, &sent, name)?;
    if sent.is_empty() {
        let remedy = if not.writes + not.functions > 0 { ": --writes sends what writes" } else { "" };
        return Err(Error::Usage(format!("{name} has nothing to send ({}){remedy}", not.in_words())));
    }
    Ok((sent, not))
}

impl NotSent {
    /// Each with its number.
    pub fn by_reason(&self) -> [(&'static str, u64); 11] {
        [
            ("writes", self.writes),
            ("with functions that may do more than read", self.functions),
            ("of other schemas", self.other_schemas),
            ("cut off", self.cut_off),
            ("with ? for values", self.placeholders),
            ("with a local file", self.local_files),
            ("with a file of the server", self.server_files),
            ("with a text that the log does not show", self.hidden),
            ("several in one", self.several),
            ("administrator commands", self.administrator_commands),
            ("not known", self.unknown),
        ]
    }

    /// All that are not 0.
    pub fn in_words(&self) -> String {
        let some = self.by_reason().into_iter().filter(|(_, count)| *count > 0);
        let text = some.map(|(reason, count)| format!("{count} {reason}")).collect::<Vec<_>>().join(", ");
        if text.is_empty() { "none".into() } else { text }
    }
}

/// Of each schema of the log whether its statements are sent.
fn kept_schemas(log: &Log, wish: &Wish, name: &str) -> Result<Vec<bool>, Error> {
    let names: Vec<String> = log.schemas.iter().map(|name| String::from_utf8_lossy(name).into_owned()).collect();
    if wish.follows_schemas {
        return Ok(vec![true; names.len()]);
    }
    let mut counts: BTreeMap<u16, u64> = BTreeMap::new();
    for statement in &log.statements {
        *counts.entry(statement.schema).or_default() += 1;
    }
    let own = |name: &str| !name.is_empty() && !is_servers_own(name.as_bytes());
    let mut users: Vec<(&str, u64)> = counts
        .into_iter()
        .map(|(at, count)| (names[usize::from(at)].as_str(), count))
        .filter(|(name, _)| own(name))
        .collect();
    users.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let listed = users
        .iter()
        .take(NAMED_MAX)
        .map(|(name, count)| format!("{}: {count}", shown(name)))
        .collect::<Vec<_>>()
        .join(", ");
    let wanted = match &wish.from_schema {
        Some(wanted) if users.iter().any(|(name, _)| name == wanted) => wanted.clone(),
        Some(wanted) => {
            let text = format!(
                "--from-schema={wanted}: {name} has no statement in it; it has schemas with statements ({listed})"
            );
            return Err(Error::Usage(text));
        }
        None if users.len() > 1 => {
            return Err(Error::Usage(format!(
                "{name} has statements in {} schemas ({listed}): choose one by --from-schema, or replay all by --whole-server",
                users.len()
            )));
        }
        None => users.first().map_or_else(String::new, |(name, _)| (*name).to_owned()),
    };
    Ok(names.iter().map(|name| name.is_empty() || *name == wanted).collect())
}

/// A replay of years would only wait.
fn check_span(log: &Log, sent: &[Sent], name: &str) -> Result<(), Error> {
    let times = || sent.iter().map(|sent| &log.statements[sent.number as usize]);
    let first = times().min_by_key(|statement| statement.start_us);
    let last = times().max_by_key(|statement| statement.start_us);
    let (Some(first), Some(last)) = (first, last) else { return Ok(()) };
    let days = (last.start_us - first.start_us) / (86_400 * 1_000_000);
    if days <= DAYS_MAX {
        return Ok(());
    }
    let (from, to) = (first.line, last.line);
    Err(Error::Usage(format!(
        "{name}:{to}: by the times of the log this statement came {days} days after the one in line {from}: leave out the \
         entries of one of them, whose session had set its timestamp"
    )))
}
