//! Option files (`my.cnf`), environment and login paths: the places where MySQL's own clients look for a login.
//!
//! The login file that `mysql_config_editor` writes, `.mylogin.cnf`, is an option file whose lines are hidden from a glance,
//! not from anyone who can read it: after four unused bytes stands the key (20 bytes, folded to 16 by XOR), then each line,
//! after its length, by AES-128 in ECB with PKCS #7 padding.

use std::collections::BTreeMap;
use std::env;
use std::fs::{self, File};
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use aes::Aes128;
use aes::cipher::{BlockCipherDecrypt as _, KeyInit as _};
use dbdyno_common::bounded;
use dbdyno_common::option_file::{Entry, lines, with_suffix};

use crate::dialect::{LOGIN_EDITOR, LOGIN_GROUPS, OPTION_FILES, OPTION_GROUPS, environment};
use crate::error::Error;
use crate::output::note;
use crate::security::SWITCHES;

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
    let mut reading = Reading { groups: with_suffix(&OPTION_GROUPS, suffix), options: Options::new(), files: 0 };
    if matches!(source, Source::Usual | Source::Also(_)) {
        let home = env::var_os("HOME").map(|home| Path::new(&home).join(".my.cnf"));
        let usual = OPTION_FILES.map(PathBuf::from);
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
        match bounded::read(path, FILE_SIZE_MAX) {
            Ok(bytes) => self.text(&String::from_utf8_lossy(&bytes), depth),
            Err(error) if error.kind() == ErrorKind::FileTooLarge => {
                note(&format!("{} is ignored: {error}", path.display()));
            }
            Err(_) => {}
        }
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
        if let Some(found) = name.strip_prefix(prefix).and_then(full_name).filter(|name| SWITCHES.contains(name)) {
            // "skip-ssl = 0" is ssl.
            let is_reversed = value.as_deref().is_some_and(|value| ["0", "off", "false"].contains(&value));
            let other = if state == "off" { "on" } else { "off" };
            return Some((found.to_owned(), if is_reversed { other } else { state }.to_owned()));
        }
    }
    full_name(name).map(|name| (name.to_owned(), value.unwrap_or_default()))
}

/// The one of our options that begins so.
fn full_name(name: &str) -> Option<&'static str> {
    if let Some(same) = NAMES.iter().find(|known| **known == name) {
        return Some(same);
    }
    let mut begun = NAMES.iter().chain(&OTHERS).filter(|known| !name.is_empty() && known.starts_with(name));
    begun.next().filter(|found| begun.next().is_none() && NAMES.contains(found)).copied()
}

const UNUSED_SIZE: usize = 4;
const KEY_SIZE: usize = 20;
const BLOCK_SIZE: usize = 16;
const OTHERS_MAY: u32 = 0o077;

/// The options of the login path, which must be there if it is `named`; with `suffix` also those of its group.
///
/// # Errors
/// Names the file, what is wrong with it, and the remedy.
pub fn read_login_path(named: Option<&str>, suffix: &str) -> Result<Options, Error> {
    let path = place();
    let text = match contents(&path) {
        Ok(text) => text,
        Err(why) if named.is_some() => return Err(Error::Usage(format!("--login-path: {}: {why}", path.display()))),
        Err(_) if !path.exists() => return Ok(Options::new()),
        Err(why) => {
            note(&format!("{} is ignored: {why}", path.display()));
            return Ok(Options::new());
        }
    };
    let groups: Vec<&str> = LOGIN_GROUPS.into_iter().chain(named).collect();
    if let Some(name) = named
        && !has_group(&text, name, suffix)
    {
        let text = format!("--login-path={name}: {} has no such group: see {LOGIN_EDITOR} print", path.display());
        return Err(Error::Usage(text));
    }
    Ok(in_text(&text, &groups, suffix))
}

fn has_group(text: &str, name: &str, suffix: &str) -> bool {
    let names = [name.to_lowercase(), format!("{name}{suffix}").to_lowercase()];
    dbdyno_common::option_file::lines(text).iter().any(|line| names.contains(&line.group))
}

fn place() -> PathBuf {
    env::var_os(environment::LOGIN_FILE)
        .map_or_else(|| Path::new(&env::var_os("HOME").unwrap_or_default()).join(".mylogin.cnf"), PathBuf::from)
}

/// What the file says, or why it cannot be used.
fn contents(path: &Path) -> Result<String, String> {
    let said = |error: std::io::Error| error.to_string();
    let metadata = std::fs::metadata(path).map_err(said)?;
    if !metadata.is_file() {
        return Err("it is not a regular file".into());
    }
    let file = File::open(path).map_err(said)?;
    let metadata = file.metadata().map_err(said)?;
    if metadata.mode() & OTHERS_MAY != 0 {
        return Err("others may read or write it: run chmod 600 on it".into());
    }
    let bytes = bounded::read_all(file, FILE_SIZE_MAX).map_err(said)?;
    decrypt(&bytes).ok_or_else(|| format!("{LOGIN_EDITOR} did not write it, or it is cut short: make it anew"))
}

/// The lines in `bytes`; `None` if these are not such a file.
fn decrypt(bytes: &[u8]) -> Option<String> {
    let (key, mut rest) = bytes.get(UNUSED_SIZE..)?.split_at_checked(KEY_SIZE)?;
    let mut folded = [0; BLOCK_SIZE];
    for (at, byte) in key.iter().enumerate() {
        folded[at % BLOCK_SIZE] ^= byte;
    }
    let cipher = Aes128::new(&folded.into());
    let mut text = String::new();
    while !rest.is_empty() {
        let (length, behind) = rest.split_first_chunk::<4>()?;
        let (line, behind) = behind.split_at_checked(usize::try_from(u32::from_le_bytes(*length)).ok()?)?;
        if line.is_empty() || line.len() % BLOCK_SIZE != 0 {
            return None;
        }
        let mut clear = Vec::with_capacity(line.len());
        for block in line.as_chunks::<BLOCK_SIZE>().0 {
            let mut block = aes::Block::from(*block);
            cipher.decrypt_block(&mut block);
            clear.extend_from_slice(&block);
        }
        let padding = usize::from(*clear.last()?);
        if !(1..=BLOCK_SIZE).contains(&padding) || !clear.ends_with(&vec![padding as u8; padding]) {
            return None;
        }
        clear.truncate(clear.len() - padding);
        text.push_str(&String::from_utf8(clear).ok()?);
        rest = behind;
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use aes::cipher::BlockCipherEncrypt as _;
    use proptest::prelude::*;

    use super::*;

    fn found(text: &str, suffix: &str) -> Vec<(String, String)> {
        in_text(text, &OPTION_GROUPS, suffix).into_iter().collect()
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
        fn any_text_gives_only_names_of_ours(text: String, group in 0..OPTION_GROUPS.len(), name in 0..NAMES.len(), value: String) {
            let text = format!("{text}\n[{}]\n{text}\n{}={value}\n", OPTION_GROUPS[group], NAMES[name]);
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

    /// A file as `mysql_config_editor` writes it.
    fn hidden(lines: &[&str]) -> Vec<u8> {
        let key: Vec<u8> = (1..=20).collect();
        let mut folded = [0; BLOCK_SIZE];
        key.iter().enumerate().for_each(|(at, byte)| folded[at % BLOCK_SIZE] ^= byte);
        let cipher = Aes128::new(&folded.into());
        let mut bytes = [&[0; UNUSED_SIZE], key.as_slice()].concat();
        for line in lines {
            let padding = BLOCK_SIZE - line.len() % BLOCK_SIZE;
            let padded = [line.as_bytes(), &vec![padding as u8; padding]].concat();
            bytes.extend((padded.len() as u32).to_le_bytes());
            for block in padded.as_chunks::<BLOCK_SIZE>().0 {
                let mut block = aes::Block::from(*block);
                cipher.encrypt_block(&mut block);
                bytes.extend_from_slice(&block);
            }
        }
        bytes
    }

    #[test]
    fn lines_are_revealed_and_read_as_those_of_an_option_file() {
        let bytes =
            hidden(&["[shop]\n", "user = \"me\"\n", "password = \"p#q and more than a block\"\n", "[client]\n"]);
        let text = decrypt(&bytes).unwrap();
        assert_eq!(text, "[shop]\nuser = \"me\"\npassword = \"p#q and more than a block\"\n[client]\n");
        let options = in_text(&text, &["shop"], "");
        assert_eq!(options.get("password").map(String::as_str), Some("p#q and more than a block"));
        assert!(has_group(&text, "Shop", "") && !has_group(&text, "other", ""));
    }

    #[test]
    fn a_file_cut_short_or_with_another_key_is_refused() {
        let bytes = hidden(&["[client]\n", "user = me\n"]);
        for end in [0, 10, 26, bytes.len() - 1] {
            assert_eq!(decrypt(&bytes[..end]), None, "{end}");
        }
        let mut other = bytes.clone();
        other[5] ^= 0xff;
        assert_eq!(decrypt(&other), None);
    }

    proptest! {
        #[test]
        fn garbage_is_refused_or_text(bytes: Vec<u8>) {
            let _ = decrypt(&bytes);
        }
    }
}
