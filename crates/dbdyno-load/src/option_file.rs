//! Option files (`my.cnf`) and environment: where MySQL's own clients take a login from.

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::error::Error;
use crate::output::note;
use crate::security::SWITCHES;

/// Groups that concern a slap load, as mysqlslap reads them, and ours.
const GROUPS: [&str; 6] = ["client", "client-server", "client-mariadb", "mysqlslap", "mariadb-slap", "dbdyno"];

/// The options of a login; all others in these files are for other programs.
const NAMES: [&str; 14] = [
    "user",
    "password",
    "host",
    "port",
    "socket",
    "protocol",
    "ssl",
    "ssl-mode",
    "ssl-ca",
    "ssl-cert",
    "ssl-key",
    "ssl-verify-server-cert",
    "get-server-public-key",
    "server-public-key-path",
];

const INCLUDE_DEPTH_MAX: usize = 10;

/// Which files to read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Source {
    /// The system's and the user's.
    #[default]
    Usual,
    /// None (`--no-defaults`).
    Nothing,
    /// Only this one, which must exist (`--defaults-file`).
    Only(PathBuf),
    /// The usual ones and this one, which must exist (`--defaults-extra-file`).
    Also(PathBuf),
}

/// Reads the files: option name to value, the last one wins.
///
/// # Errors
/// A named file that cannot be read.
pub fn read(source: &Source) -> Result<BTreeMap<String, String>, Error> {
    let mut options = BTreeMap::new();
    if matches!(source, Source::Usual | Source::Also(_)) {
        let home = env::var_os("HOME").map(|home| Path::new(&home).join(".my.cnf"));
        let usual = ["/etc/my.cnf", "/etc/mysql/my.cnf"].map(PathBuf::from);
        for path in usual.into_iter().chain(home) {
            read_file(&path, &mut options, 0);
        }
    }
    if let Source::Only(path) | Source::Also(path) = source {
        fs::File::open(path).map_err(|error| Error::File(path.clone(), error))?;
        read_file(path, &mut options, 0);
    }
    Ok(options)
}

/// Files that are missing or not readable count as empty, as they do for MySQL's clients.
fn read_file(path: &Path, options: &mut BTreeMap<String, String>, depth: usize) {
    const WRITABLE_BY_ALL: u32 = 0o002;
    let Ok(metadata) = fs::metadata(path) else {
        return;
    };
    if metadata.is_file() && metadata.mode() & WRITABLE_BY_ALL != 0 {
        note(&format!("{} is ignored: everyone may write to it", path.display()));
        return;
    }
    if let Ok(text) = fs::read_to_string(path) {
        read_text(&text, options, depth);
    }
}

fn read_text(text: &str, options: &mut BTreeMap<String, String>, depth: usize) {
    for line in lines(text) {
        match line {
            Line::Option(name, value) => drop(options.insert(name, value)),
            Line::Include(path) => include(Path::new(path), options, depth),
            Line::IncludeFolder(path) => include_folder(Path::new(path), options, depth),
        }
    }
}

/// A line of an option file that concerns us.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Line<'a> {
    /// One of our options and its value.
    Option(String, String),
    /// Another file.
    Include(&'a str),
    /// All `*.cnf` of a folder.
    IncludeFolder(&'a str),
}

/// The lines of an option file that concern us.
pub fn lines(text: &str) -> impl Iterator<Item = Line<'_>> {
    let mut ours = false;
    text.lines().map(str::trim).filter_map(move |line| {
        if let Some(group) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            ours = GROUPS.contains(&group.trim());
            return None;
        }
        if let Some(folder) = line.strip_prefix("!includedir") {
            return Some(Line::IncludeFolder(folder.trim()));
        }
        if let Some(path) = line.strip_prefix("!include") {
            return Some(Line::Include(path.trim()));
        }
        if ours && !line.is_empty() && !line.starts_with(['#', ';']) { option(line) } else { None }
    })
}

/// A line `name = value` or `name`, if the name is one of ours.
fn option(line: &str) -> Option<Line<'_>> {
    let (name, value) = line.split_once('=').unwrap_or((line, ""));
    let name = name.trim().replace('_', "-");
    let name = name.strip_prefix("loose-").unwrap_or(&name);
    let off = name.strip_prefix("skip-").or_else(|| name.strip_prefix("disable-"));
    if let Some(name) = off.filter(|name| SWITCHES.contains(name)) {
        return Some(Line::Option(name.to_owned(), "off".to_owned()));
    }
    NAMES.contains(&name).then(|| Line::Option(name.to_owned(), unquote(value)))
}

fn include(path: &Path, options: &mut BTreeMap<String, String>, depth: usize) {
    if depth < INCLUDE_DEPTH_MAX {
        read_file(path, options, depth + 1);
    }
}

fn include_folder(folder: &Path, options: &mut BTreeMap<String, String>, depth: usize) {
    let Ok(entries) = fs::read_dir(folder) else {
        return;
    };
    let mut paths: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    paths.retain(|path| path.extension().is_some_and(|name| name == "cnf"));
    paths.sort();
    for path in paths {
        include(&path, options, depth);
    }
}

/// A value without its quotes, or else without a trailing comment.
fn unquote(value: &str) -> String {
    let value = value.trim();
    for quote in ['"', '\''] {
        if let Some((inside, _)) = value.strip_prefix(quote).and_then(|rest| rest.rsplit_once(quote)) {
            return inside.to_owned();
        }
    }
    let end = value.find(" #").unwrap_or(value.len());
    value[..end].trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn groups_comments_and_quotes() {
        let text = "[mysqld]\nuser=mysql\n[client]\n# c\nuser = me # trailing\npassword=\"a #b\"\n\
                    port\n[mysqlslap]\nsocket=/s\nconcurrency=3\n[dbdyno]\nuser=other\n";
        let mut options = BTreeMap::new();
        read_text(text, &mut options, 0);
        let found: Vec<_> = options.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
        assert_eq!(found, [("password", "a #b"), ("port", ""), ("socket", "/s"), ("user", "other")]);
    }

    #[test]
    fn prefixes_of_names() {
        let mut options = BTreeMap::new();
        read_text("[client]\nssl\nskip_ssl\nloose-ssl-mode = REQUIRED\nskip-user\n", &mut options, 0);
        let found: Vec<_> = options.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
        assert_eq!(found, [("ssl", "off"), ("ssl-mode", "REQUIRED")]);
    }

    #[test]
    fn other_files() {
        let found: Vec<_> = lines("!includedir /a b\n [x]\n!include /c\n").collect();
        assert_eq!(found, [Line::IncludeFolder("/a b"), Line::Include("/c")]);
    }

    proptest! {
        #[test]
        fn any_text_gives_only_names_of_ours(text: String, group in 0..GROUPS.len(), name in 0..NAMES.len(), value: String) {
            let text = format!("{text}\n[{}]\n{text}\n{}={value}\n", GROUPS[group], NAMES[name]);
            for line in lines(&text) {
                if let Line::Option(name, _) = line {
                    prop_assert!(NAMES.contains(&name.as_str()));
                }
            }
        }
    }

    #[test]
    fn a_named_file_must_exist() {
        assert!(read(&Source::Only("/nonexistent.cnf".into())).is_err());
        assert_eq!(read(&Source::Nothing).unwrap(), BTreeMap::new());
    }
}
