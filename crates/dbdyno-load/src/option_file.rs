//! Option files (`my.cnf`) and environment: where MySQL's own clients take a login from.

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::io::Read as _;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use dbdyno_common::option_file::{Entry, lines, with_suffix};

use crate::error::Error;
use crate::output::note;
use crate::security::SWITCHES;

/// Groups that concern a slap load, as mysqlslap reads them, and ours.
const GROUPS: [&str; 6] = ["client", "client-server", "client-mariadb", "mysqlslap", "mariadb-slap", "dbdyno"];

/// The options of a login.
const NAMES: [&str; 15] = [
    "user",
    "password",
    "host",
    "port",
    "socket",
    "protocol",
    "compress",
    "ssl",
    "ssl-mode",
    "ssl-ca",
    "ssl-cert",
    "ssl-key",
    "ssl-verify-server-cert",
    "get-server-public-key",
    "server-public-key-path",
];

/// Options of other purposes that programs find in these groups, so that what is short for several is short for none.
const OTHERS: [&str; 24] = [
    "auto-generate-sql",
    "character-sets-dir",
    "compression-algorithms",
    "concurrency",
    "create",
    "create-schema",
    "debug",
    "default-auth",
    "default-character-set",
    "delimiter",
    "detach",
    "enable-cleartext-plugin",
    "engine",
    "init-command",
    "iterations",
    "plugin-dir",
    "post-query",
    "pre-query",
    "query",
    "silent",
    "ssl-capath",
    "ssl-cipher",
    "ssl-crl",
    "tls-version",
];

const INCLUDE_DEPTH_MAX: usize = 10;
const FILES_MAX: usize = 100;
/// Of one file; people write some kilobytes.
const FILE_SIZE_MAX: u64 = 1 << 20;

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

/// The options found: name to value, the last one wins.
pub type Options = BTreeMap<String, String>;

/// Reads the files; `suffix` is that of `--defaults-group-suffix`.
///
/// # Errors
/// A named file that cannot be read.
pub fn read(source: &Source, suffix: &str) -> Result<Options, Error> {
    let mut reading = Reading { groups: with_suffix(&GROUPS, suffix), options: Options::new(), files: 0 };
    if matches!(source, Source::Usual | Source::Also(_)) {
        let home = env::var_os("HOME").map(|home| Path::new(&home).join(".my.cnf"));
        let usual = ["/etc/my.cnf", "/etc/mysql/my.cnf"].map(PathBuf::from);
        for path in usual.into_iter().chain(home) {
            reading.file(&path, 0);
        }
    }
    if let Source::Only(path) | Source::Also(path) = source {
        fs::File::open(path).map_err(|error| Error::File(path.clone(), error))?;
        reading.file(path, 0);
    }
    Ok(reading.options)
}

/// The options in `text` that the groups of a login with `suffix` have; what it includes is passed over.
pub fn in_text(text: &str, groups: &[&str], suffix: &str) -> Options {
    let mut reading = Reading { groups: with_suffix(groups, suffix), options: Options::new(), files: FILES_MAX };
    reading.text(text, INCLUDE_DEPTH_MAX);
    reading.options
}

struct Reading {
    groups: Vec<String>,
    options: Options,
    /// Files so far.
    files: usize,
}

impl Reading {
    /// Files that are missing or not readable count as empty, as they do for MySQL's clients.
    fn file(&mut self, path: &Path, depth: usize) {
        const WRITABLE_BY_ALL: u32 = 0o002;
        let Ok(metadata) = fs::metadata(path) else {
            return;
        };
        if metadata.is_file() && metadata.mode() & WRITABLE_BY_ALL != 0 {
            note(&format!("{} is ignored: everyone may write to it", path.display()));
            return;
        }
        // A pipe may be named by a person (`<(...)`), but opening one that a file names could wait for ever.
        if self.files >= FILES_MAX || !(metadata.is_file() || depth == 0) {
            return;
        }
        self.files += 1;
        let mut bytes = Vec::new();
        let opened = fs::File::open(path).and_then(|file| file.take(FILE_SIZE_MAX + 1).read_to_end(&mut bytes));
        if opened.is_err() {
            return;
        }
        if bytes.len() as u64 > FILE_SIZE_MAX {
            note(&format!("{} is ignored: it is longer than 1 MiB", path.display()));
            return;
        }
        self.text(&String::from_utf8_lossy(&bytes), depth);
    }

    fn text(&mut self, text: &str, depth: usize) {
        for line in lines(text) {
            match line.entry {
                Entry::Option(name, value) if self.groups.contains(&line.group) => {
                    self.options.extend(option(&name, value));
                }
                Entry::Include(path) => self.include(Path::new(&path), depth),
                Entry::IncludeFolder(path) => self.include_folder(Path::new(&path), depth),
                _ => {}
            }
        }
    }

    fn include(&mut self, path: &Path, depth: usize) {
        if depth < INCLUDE_DEPTH_MAX {
            self.file(path, depth + 1);
        }
    }

    fn include_folder(&mut self, folder: &Path, depth: usize) {
        let Ok(entries) = fs::read_dir(folder) else {
            return;
        };
        let mut paths: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
        paths.retain(|path| path.extension().is_some_and(|name| name == "cnf"));
        paths.sort();
        for path in paths {
            self.include(&path, depth);
        }
    }
}

/// An option as ours, if it is one: dashes and underscores are the same, and a name may be cut where nothing else
/// begins so.
fn option(name: &str, value: Option<String>) -> Option<(String, String)> {
    let name = name.to_ascii_lowercase().replace('_', "-");
    let name = name.strip_prefix("loose-").unwrap_or(&name);
    let switched = [("skip-", "off"), ("disable-", "off"), ("enable-", "on")];
    for (prefix, state) in switched {
        if let Some(found) = name.strip_prefix(prefix).and_then(whole).filter(|name| SWITCHES.contains(name)) {
            // "skip-ssl = 0" is ssl.
            let is_reversed = value.as_deref().is_some_and(|value| ["0", "off", "false"].contains(&value));
            let other = if state == "off" { "on" } else { "off" };
            return Some((found.to_owned(), if is_reversed { other } else { state }.to_owned()));
        }
    }
    whole(name).map(|name| (name.to_owned(), value.unwrap_or_default()))
}

/// The one of our options that begins so.
fn whole(name: &str) -> Option<&'static str> {
    if let Some(same) = NAMES.iter().find(|known| **known == name) {
        return Some(same);
    }
    let mut begun = NAMES.iter().chain(&OTHERS).filter(|known| !name.is_empty() && known.starts_with(name));
    begun.next().filter(|found| begun.next().is_none() && NAMES.contains(found)).copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn found(text: &str, suffix: &str) -> Vec<(String, String)> {
        in_text(text, &GROUPS, suffix).into_iter().collect()
    }

    fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
        expected.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn groups_comments_and_quotes() {
        let text = "[mysqld]\nuser=mysql\n[client]\n# c\nuser = me # trailing\npassword=\"a #b\"\n\
                    port\n[mysqlslap]\nsocket=/s\nconcurrency=3\n[dbdyno]\nuser=other\n";
        assert_eq!(found(text, ""), pairs(&[("password", "a #b"), ("port", ""), ("socket", "/s"), ("user", "other")]));
    }

    #[test]
    fn groups_with_the_suffix_are_read_too() {
        let text =
            "[client_staging]\npassword=\"p#q\"\n[client]\nuser=a\n[mysqlslap_staging]\nuser=b\n[client_x]\nport=1\n";
        assert_eq!(found(text, "_staging"), pairs(&[("password", "p#q"), ("user", "b")]));
        assert_eq!(found(text, ""), pairs(&[("user", "a")]));
    }

    #[test]
    fn prefixes_of_names_and_names_that_are_cut() {
        let text = "[client]\nssl\nskip_ssl\nloose-ssl-mode = REQUIRED\nskip-user\nenable-compress\npass=p\nPORT=3\ns=x\nhos=h\nco=1\n";
        assert_eq!(
            found(text, ""),
            pairs(&[
                ("compress", "on"),
                ("host", "h"),
                ("password", "p"),
                ("port", "3"),
                ("ssl", "off"),
                ("ssl-mode", "REQUIRED"),
            ])
        );
        assert_eq!(found("[client]\nskip-ssl=0\n", ""), pairs(&[("ssl", "on")]));
    }

    #[test]
    fn a_file_that_names_a_pipe_or_itself_does_not_hold_it_up() {
        let folder = env::temp_dir().join(format!("dbdyno-options-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let (pipe, own) = (folder.join("pipe.cnf"), folder.join("my.cnf"));
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &pipe,
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::from_raw_mode(0o600),
            0,
        )
        .unwrap();
        let text = format!("!includedir {}\n[client]\nuser=me\n!include {}\n", folder.display(), own.display());
        fs::write(&own, text).unwrap();
        assert_eq!(read(&Source::Only(own), "").unwrap(), Options::from([("user".into(), "me".into())]));
        fs::remove_dir_all(&folder).unwrap();
    }

    proptest! {
        #[test]
        fn any_text_gives_only_names_of_ours(text: String, group in 0..GROUPS.len(), name in 0..NAMES.len(), value: String) {
            let text = format!("{text}\n[{}]\n{text}\n{}={value}\n", GROUPS[group], NAMES[name]);
            for (name, _) in found(&text, "") {
                prop_assert!(NAMES.contains(&name.as_str()));
            }
        }
    }

    #[test]
    fn a_named_file_must_exist() {
        assert!(read(&Source::Only("/nonexistent.cnf".into()), "").is_err());
        assert_eq!(read(&Source::Nothing, "").unwrap(), Options::new());
    }
}
