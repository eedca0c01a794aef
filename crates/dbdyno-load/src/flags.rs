//! Command-line flags from a table, by the rules of MySQL's clients: dashes or underscores, any
//! unambiguous prefix, `--flag=value` or `--flag value`, `-fvalue` or `-f value`.

use std::collections::BTreeMap;
use std::ffi::OsString;

use dbdyno_common::similar::nearest;
use lexopt::{Arg, Parser};

use crate::error::Error;

/// Which part of the work is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Prepare, run, and clean up after it.
    All,
    /// Make the tables and leave them.
    Prepare,
    /// The load alone, on what is there.
    Run,
    /// Drop what prepare made.
    Cleanup,
}

/// The actions by their names on the command line.
pub const ACTIONS: [(&str, Action); 4] =
    [("all", Action::All), ("prepare", Action::Prepare), ("run", Action::Run), ("cleanup", Action::Cleanup)];

/// Whether a flag has a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Takes {
    /// Never.
    Nothing,
    /// Always.
    Value,
    /// Only when joined to the flag (`--csv=file`, `-psecret`).
    Joined,
}

/// What becomes of a flag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Use {
    /// It counts.
    Honoured,
    /// It changes nothing here; the text says why.
    Ignored(&'static str),
    /// It cannot be honoured; the text says why and what to do.
    Refused(&'static str),
}

/// One flag.
#[derive(Debug, Clone, Copy)]
pub struct Flag {
    /// Long name, with dashes.
    pub name: &'static str,
    /// Short name.
    pub short: Option<char>,
    /// Whether it has a value.
    pub takes: Takes,
    /// What becomes of it.
    pub used: Use,
    /// One line of help; empty: not shown.
    pub help: &'static str,
    /// The flag that it is another name of; empty for none.
    pub same_as: &'static str,
}

impl Flag {
    const fn new(name: &'static str, takes: Takes, help: &'static str) -> Self {
        Self { name, short: None, takes, used: Use::Honoured, help, same_as: "" }
    }

    /// A flag with a value.
    pub const fn value(name: &'static str, help: &'static str) -> Self {
        Self::new(name, Takes::Value, help)
    }

    /// A flag with a value only when joined to it.
    pub const fn joined(name: &'static str, help: &'static str) -> Self {
        Self::new(name, Takes::Joined, help)
    }

    /// A flag without a value.
    pub const fn switch(name: &'static str, help: &'static str) -> Self {
        Self::new(name, Takes::Nothing, help)
    }

    /// The same with a short name.
    #[must_use]
    pub const fn short(mut self, name: char) -> Self {
        self.short = Some(name);
        self
    }

    /// The same, as another name of the flag `name`.
    #[must_use]
    pub const fn same_as(mut self, name: &'static str) -> Self {
        self.same_as = name;
        self
    }

    /// A flag that changes nothing here.
    pub const fn ignored(name: &'static str, takes: Takes, why: &'static str) -> Self {
        Self { used: Use::Ignored(why), ..Self::new(name, takes, "") }
    }

    /// A flag that cannot be honoured.
    pub const fn refused(name: &'static str, takes: Takes, why: &'static str) -> Self {
        Self { used: Use::Refused(why), ..Self::new(name, takes, "") }
    }

    /// The name that its value goes by.
    pub fn canonical(&self) -> &'static str {
        if self.same_as.is_empty() { self.name } else { self.same_as }
    }
}

/// The flags of some groups as one table.
///
/// # Panics
/// At compile time, when `N` is not how many they are.
pub const fn joined<const N: usize>(groups: &[&[Flag]]) -> [Flag; N] {
    let mut all = [Flag::switch("", ""); N];
    let (mut group, mut at, mut end) = (0, 0, 0);
    while group < groups.len() {
        if at < groups[group].len() {
            all[end] = groups[group][at];
            at += 1;
            end += 1;
        } else {
            group += 1;
            at = 0;
        }
    }
    assert!(end == N);
    all
}

/// Flags that belong together.
#[derive(Debug, Clone, Copy)]
pub struct Group {
    /// What they are about, for `--help`.
    pub title: &'static str,
    /// The flags.
    pub flags: &'static [Flag],
}

/// The flags of a verb. The first flag of a name counts.
pub type Table = &'static [Group];

/// A command line taken apart.
#[derive(Debug, Default)]
pub struct ParsedFlags {
    /// Flags in the order given, with their values.
    pub flags: Vec<(&'static Flag, Option<String>)>,
    /// What belongs to no flag.
    pub words: Vec<String>,
}

/// Parses `arguments` by `table`, with at most `words_max` words that belong to no flag; notes on
/// ignored flags are appended to `notes`.
///
/// # Errors
/// Unknown flags with the nearest known one, values missing, too many or not UTF-8, refused flags.
pub fn parse(
    table: Table,
    words_max: usize,
    arguments: impl IntoIterator<Item = OsString>,
    notes: &mut Vec<String>,
) -> Result<ParsedFlags, Error> {
    let mut parser = Parser::from_args(arguments);
    let mut parsed = ParsedFlags::default();
    while let Some(argument) = parser.next().map_err(usage)? {
        let flag = match argument {
            Arg::Long(name) => find_long(table, name)?,
            Arg::Short(name) => find_short(table, name)?,
            Arg::Value(word) if parsed.words.len() < words_max => {
                let word = word.into_string().map_err(|_| Error::Usage("a word that is not UTF-8".into()))?;
                parsed.words.push(word);
                continue;
            }
            // Its text stays unsaid: after `-p` it may be a password.
            Arg::Value(_) => {
                return Err(Error::Usage(
                    "an argument that belongs to no flag (-p takes its value without a space)".into(),
                ));
            }
        };
        let value = match flag.takes {
            Takes::Nothing => None,
            Takes::Value => Some(value_of(&mut parser, table, flag, words_max)?),
            Takes::Joined => parser.optional_value(),
        };
        let value = value.map(OsString::into_string).transpose();
        let value = value.map_err(|_| Error::Usage(format!("--{}: not UTF-8", flag.name)))?;
        match flag.used {
            Use::Honoured => parsed.flags.push((flag, value)),
            Use::Ignored(why) => notes.push(format!("--{} is ignored: {why}", flag.name)),
            Use::Refused(why) => return Err(Error::Usage(format!("--{}: {why}", flag.name))),
        }
    }
    Ok(parsed)
}

/// The value of a flag that has one. What stands where it should but is a part of the work or another flag is none:
/// otherwise a value that was forgotten would change what is done.
fn value_of(parser: &mut Parser, table: Table, flag: &Flag, words_max: usize) -> Result<OsString, Error> {
    if let Some(joined) = parser.optional_value() {
        return Ok(joined);
    }
    let value = parser.value().map_err(usage)?;
    let text = value.to_string_lossy();
    let is_work = words_max > 0 && ACTIONS.iter().any(|(name, _)| *name == text);
    let is_flag = text.strip_prefix("--").is_some_and(|rest| {
        let name = rest.split('=').next().unwrap_or_default().replace('_', "-");
        all(table).any(|flag| flag.name == name)
    });
    if is_work || is_flag {
        return Err(Error::Usage(format!("--{}: its value is missing: write --{}=VALUE", flag.name, flag.name)));
    }
    Ok(value)
}

fn usage(error: lexopt::Error) -> Error {
    match error {
        // Says the value, which may be a password.
        lexopt::Error::UnexpectedValue { option, .. } => Error::Usage(format!("{option} takes no value")),
        other => Error::Usage(other.to_string()),
    }
}

fn all(table: Table) -> impl Iterator<Item = &'static Flag> {
    table.iter().flat_map(|group| group.flags.iter())
}

fn find_short(table: Table, name: char) -> Result<&'static Flag, Error> {
    let flag = all(table).find(|flag| flag.short == Some(name));
    flag.ok_or_else(|| Error::Usage(format!("unknown flag -{name}: see --help")))
}

fn find_long(table: Table, name: &str) -> Result<&'static Flag, Error> {
    let name = name.replace('_', "-");
    if let Some(flag) = all(table).find(|flag| flag.name == name) {
        return Ok(flag);
    }
    let mut prefixed = all(table).filter(|flag| flag.name.starts_with(&name));
    match (prefixed.next(), prefixed.next()) {
        (Some(flag), None) => Ok(flag),
        (Some(first), Some(second)) => {
            Err(Error::Usage(format!("--{name} is short for --{} and --{}: write one out", first.name, second.name)))
        }
        (None, _) => {
            let names = all(table).map(|flag| flag.name);
            let hint =
                nearest(&name, names).map_or_else(|| "see --help".to_owned(), |near| format!("did you mean --{near}?"));
            Err(Error::Usage(format!("unknown flag --{name}: {hint}")))
        }
    }
}

/// The flags as lines of help, each with its default in parentheses, unless the text has one, and its other names.
pub fn help(table: Table, defaults: &BTreeMap<String, String>) -> String {
    use std::fmt::Write as _;
    let mut text = String::new();
    for group in table {
        // Writing to a string cannot fail, here and below.
        let _ = writeln!(text, "{}:", group.title);
        for flag in group.flags.iter().filter(|flag| !flag.help.is_empty()) {
            let short = flag.short.map_or_else(|| "   ".into(), |name| format!("-{name},"));
            let value = match flag.takes {
                Takes::Nothing => "",
                Takes::Value => "=..",
                Takes::Joined => "[=..]",
            };
            let name = format!("--{}{value}", flag.name);
            let others = all(table).filter(|other| other.same_as == flag.name);
            let others: Vec<_> = others.map(|other| format!("--{}", other.name)).collect();
            let also = if others.is_empty() { String::new() } else { format!("; also {}", others.join(", ")) };
            let usual = defaults.get(flag.canonical()).filter(|_| !flag.help.ends_with(')'));
            let usual = usual.map_or_else(String::new, |usual| format!(" ({usual})"));
            let _ = writeln!(text, "  {short} {name:<38} {}{usual}{also}", flag.help);
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    static TABLE: Table = &[
        Group {
            title: "Load",
            flags: &[Flag::value("concurrency", "x").short('c'), Flag::joined("csv", "x").short('C')],
        },
        Group {
            title: "Connection",
            flags: &[
                Flag::value("create-schema", "x").short('s'),
                Flag::joined("password", "secret").short('p'),
                Flag::joined("mysql-password", "").same_as("password"),
            ],
        },
    ];

    #[test]
    fn help_is_in_groups_and_has_defaults_and_other_names() {
        let text = help(TABLE, &[("password".to_owned(), "none".to_owned())].into());
        assert!(text.starts_with("Load:\n  -c, --concurrency=.. "), "{text}");
        assert!(text.contains("\n\nConnection:\n"), "{text}");
        assert!(text.contains("secret (none); also --mysql-password\n"), "{text}");
    }

    fn parsed(arguments: &[&str]) -> Result<Vec<(&'static str, Option<String>)>, String> {
        let arguments = arguments.iter().map(OsString::from);
        parse(TABLE, 0, arguments, &mut Vec::new())
            .map(|parsed| parsed.flags.into_iter().map(|(f, v)| (f.name, v)).collect())
            .map_err(|error| error.to_string())
    }

    #[test]
    fn the_forms_of_mysql_clients() {
        let value = |name, text: &str| Ok(vec![(name, Some(text.to_owned()))]);
        assert_eq!(parsed(&["--concurrency=3"]), value("concurrency", "3"));
        assert_eq!(parsed(&["--conc", "3"]), value("concurrency", "3"));
        assert_eq!(parsed(&["--create_schema=x"]), value("create-schema", "x"));
        assert_eq!(parsed(&["-c3"]), value("concurrency", "3"));
        assert_eq!(parsed(&["-psecret"]), value("password", "secret"));
        assert_eq!(parsed(&["--csv"]), Ok(vec![("csv", None)]));
    }

    #[test]
    fn mistakes_are_explained_and_tell_no_secret() {
        let message = |arguments: &[&str]| parsed(arguments).unwrap_err();
        assert!(message(&["--concurency=3"]).contains("did you mean --concurrency?"));
        assert!(message(&["--c=3"]).contains("write one out"));
        assert!(message(&["--zzzzzzzzzz"]).contains("see --help"));
        assert!(!message(&["-p", "secret"]).contains("secret"));
    }
}
