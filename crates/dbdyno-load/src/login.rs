//! The flags every verb has for reaching a server, and what environment and option files add.
//!
//! Option files (`my.cnf`), environment and login paths are the places where MySQL's own clients look for a login.
//!
//! The login file that `mysql_config_editor` writes, `.mylogin.cnf`, is an option file whose lines are hidden from a
//! glance, not from anyone who can read it: after four unused bytes stands the key (20 bytes, folded to 16 by XOR),
//! then each line, after its length, by AES-128 in ECB with PKCS #7 padding.

use std::collections::BTreeMap;
use std::env;
use std::fs::{self, File};
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use aes::Aes128;
use aes::cipher::{BlockCipherDecrypt as _, KeyInit as _};
use dbdyno_common::bounded;
use dbdyno_common::option_file::{Entry, lines, with_suffix};

use crate::dialect::{LOGIN_EDITOR, LOGIN_GROUPS, OPTION_FILES, OPTION_GROUPS, PORT, environment};
use crate::endpoint::{
    Address, Endpoint, NO_CHOICE, NO_REVOCATION, ONE_FILE, SWITCHES, Security, switch, usual_socket,
};
use crate::error::{Error, in_words};
use crate::flags::{Flag, Group, Takes};
use crate::output::note;
use crate::password::{self, Password};
use crate::values::number;

/// The flags, as a group of every verb's.
pub const GROUP: Group = Group { title: "The server", flags: FLAGS };

/// The flags.
pub const FLAGS: &[Flag] = &[
    Flag::value("host", "server; localhost means its socket").short('h'),
    Flag::value("port", "TCP port (3306)").short('P'),
    Flag::value("socket", "unix socket").short('S'),
    Flag::value("user", "user name (yours)").short('u'),
    Flag::joined("password", "password; without a value: ask. Better: MYSQL_PWD or an option file").short('p'),
    Flag::switch("password-from-env", ""),
    Flag::value("protocol", "tcp or socket"),
    Flag::value("init-command", "statement run on each new connection"),
    Flag::value("ssl-mode", "TLS: disabled, preferred, required, verify_ca or verify_identity (disabled)"),
    Flag::joined("ssl", "the same as --ssl-mode=required"),
    Flag::switch("skip-ssl", "the same as --ssl-mode=disabled"),
    Flag::value("ssl-ca", "file of the authority's certificate; verify_ca is the mode then, if none is given"),
    Flag::value("ssl-cert", "file of a certificate to show to the server"),
    Flag::value("ssl-key", "file of its private key"),
    Flag::joined("ssl-verify-server-cert", "the same as --ssl-mode=verify_identity"),
    Flag::switch("skip-ssl-verify-server-cert", ""),
    Flag::switch("get-server-public-key", "ask the server for the RSA key that encrypts a password on plain TCP"),
    Flag::value("server-public-key-path", "file of that key"),
    Flag::joined("compress", "compress the protocol with zlib, which costs CPU on both sides").short('C'),
    Flag::value(
        "compression-algorithms",
        "list of algorithms; the same as --compress if zlib comes before uncompressed",
    ),
    Flag::refused("zstd-compression-level", Takes::Value, "only zlib is supported: see --compress"),
    Flag::value("connect-timeout", "seconds for a connection and its login (10)"),
    Flag::value("stall-timeout", "seconds without any answer after which the server counts as dead (600)"),
    Flag::value("reply-timeout", "seconds from the first byte of a reply to its last (600)"),
    Flag::value("statement-timeout", "seconds for a statement before or after a run (86400)"),
    Flag::refused("ssl-capath", Takes::Value, ONE_FILE),
    Flag::refused("ssl-crl", Takes::Value, NO_REVOCATION),
    Flag::refused("ssl-crlpath", Takes::Value, NO_REVOCATION),
    Flag::refused("ssl-cipher", Takes::Value, NO_CHOICE),
    Flag::refused("tls-ciphersuites", Takes::Value, NO_CHOICE),
    Flag::refused("tls-version", Takes::Value, NO_CHOICE),
    Flag::switch("no-defaults", "read no option files"),
    Flag::value("defaults-file", "read only this option file"),
    Flag::value("defaults-extra-file", "read this option file too"),
    Flag::value("defaults-group-suffix", "read groups with this behind their names too, such as [client_staging]"),
    Flag::value("login-path", "read this group of ~/.mylogin.cnf, which mysql_config_editor writes"),
];

/// The flags as given.
#[derive(Debug, Default)]
pub struct LoginOptions {
    values: BTreeMap<&'static str, String>,
    source: Source,
    suffix: Option<String>,
    login_path: Option<String>,
    ask_password: bool,
    password_from_env: bool,
}

impl LoginOptions {
    /// Takes a flag if it is one of [`FLAGS`].
    ///
    /// # Errors
    /// Two flags that contradict each other.
    pub fn take(&mut self, name: &'static str, value: Option<&str>) -> Result<bool, Error> {
        if !FLAGS.iter().any(|flag| flag.name == name) {
            return Ok(false);
        }
        let path = || PathBuf::from(value.unwrap_or_default());
        match name {
            "no-defaults" => self.source = Source::Nothing,
            "defaults-file" => self.source = Source::Only(path()),
            "defaults-extra-file" => self.source = Source::Also(path()),
            "defaults-group-suffix" => self.suffix = value.map(str::to_owned),
            "login-path" => self.login_path = value.map(str::to_owned),
            "password-from-env" => self.password_from_env = true,
            "password" if value.is_none() => self.ask_password = true,
            "skip-ssl" => drop(self.values.insert("ssl", "off".into())),
            "skip-ssl-verify-server-cert" => drop(self.values.insert("ssl-verify-server-cert", "off".into())),
            _ => {
                self.values.insert(name, value.unwrap_or_default().into());
            }
        }
        Ok(true)
    }

    /// The password given as a flag's value, which must leave the process list.
    pub fn exposed_password(&self) -> Option<&str> {
        self.values.get("password").map(String::as_str)
    }

    /// The endpoint: flags win over the environment's password, over option files, over defaults.
    ///
    /// # Errors
    /// A value that is no number, a protocol that is not one of ours, a file that is missing or
    /// not what it should be.
    pub fn endpoint(&self) -> Result<Endpoint, Error> {
        let variable = |name: &str| env::var(name).ok().filter(|value| !value.is_empty());
        let suffix = self.suffix.clone().or_else(|| variable(environment::GROUP_SUFFIX)).unwrap_or_default();
        let mut file = read(&self.source, &suffix)?;
        if self.source != Source::Nothing || self.login_path.is_some() {
            file.extend(read_login_path(self.login_path.as_deref(), &suffix)?);
        }
        let chosen = |name: &'static str, from_env: Option<String>| {
            let flag = self.values.get(name).cloned();
            flag.or_else(|| file.get(name).cloned()).or(from_env)
        };
        let password = if self.password_from_env {
            variable(environment::PASSWORD)
        } else if self.ask_password {
            Some(password::ask()?)
        } else {
            chosen("password", variable(environment::PASSWORD))
        };
        let port = chosen("port", variable(environment::PORT));
        let port = number("port", port.as_deref())?.unwrap_or(PORT);
        let host = chosen("host", variable(environment::HOST));
        let socket = chosen("socket", variable(environment::SOCKET)).map(PathBuf::from);
        let local = host.as_deref().is_none_or(|host| host == "localhost");
        let over_socket = match chosen("protocol", None).map(|name| name.to_ascii_lowercase()) {
            None => local,
            Some(name) if name == "tcp" => false,
            Some(name) if name == "socket" => true,
            Some(name) => {
                return Err(Error::Usage(format!("--protocol={name}: use tcp or socket")));
            }
        };
        let host = host.unwrap_or_else(|| "localhost".into());
        let security = Security::read(&|name| chosen(name, None), &host)?;
        Ok(Endpoint {
            address: if over_socket {
                Address::Socket(socket.unwrap_or_else(usual_socket))
            } else {
                Address::Tcp(host, port)
            },
            user: chosen("user", variable("USER")).unwrap_or_else(|| "root".into()),
            password: Password::new(password.unwrap_or_default()),
            connect_timeout: self.seconds("connect-timeout", 10)?,
            stall_timeout: self.seconds("stall-timeout", 600)?,
            reply_timeout: self.seconds("reply-timeout", 600)?,
            statement_timeout: self.seconds("statement-timeout", 86_400)?,
            init_command: self.values.get("init-command").cloned(),
            security,
            compressed: self.compressed(&|name| chosen(name, None))?,
        })
    }

    /// Whether the protocol is to be compressed; MySQL 8's clients say by which algorithm.
    fn compressed(&self, chosen: &dyn Fn(&'static str) -> Option<String>) -> Result<bool, Error> {
        let name = "compression-algorithms";
        if let Some(algorithms) = self.values.get(name) {
            let known =
                algorithms.split(',').map(str::trim).find(|algorithm| ["zlib", "uncompressed"].contains(algorithm));
            let known =
                known.ok_or_else(|| Error::Usage(format!("--{name}={algorithms}: use zlib or uncompressed")))?;
            return Ok(known == "zlib");
        }
        Ok(switch("compress", chosen)?.unwrap_or(false))
    }

    fn seconds(&self, name: &'static str, default: u64) -> Result<Duration, Error> {
        let seconds = number(name, self.values.get(name).map(String::as_str))?;
        match seconds.unwrap_or(default) {
            0 => Err(Error::Usage(format!("--{name}=0: give at least 1 second"))),
            seconds => Ok(Duration::from_secs(seconds)),
        }
    }
}

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
        let file = fs::File::open(path).and_then(|file| file.metadata());
        if file.map_err(|error| Error::File(path.clone(), error))?.is_dir() {
            return Err(Error::File(path.clone(), ErrorKind::IsADirectory.into()));
        }
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
        if let Some(switch) = name.strip_prefix(prefix).and_then(full_name).filter(|name| SWITCHES.contains(name)) {
            // "skip-ssl = 0" is ssl.
            let is_reversed = value.as_deref().is_some_and(|value| ["0", "off", "false"].contains(&value));
            let other = if state == "off" { "on" } else { "off" };
            return Some((switch.to_owned(), if is_reversed { other } else { state }.to_owned()));
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
    begun.next().filter(|known| begun.next().is_none() && NAMES.contains(known)).copied()
}

const UNUSED_SIZE: usize = 4;
const KEY_SIZE: usize = 20;
const BLOCK_SIZE: usize = 16;
const OTHERS_MAY: u32 = 0o077;

/// The options of the login path, which must be there if it is `named`; with `suffix` also those of its group.
///
/// # Errors
/// Names the file, what is wrong with it, and the remedy.
fn read_login_path(named: Option<&str>, suffix: &str) -> Result<Options, Error> {
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
    let reason = |error: std::io::Error| in_words(&error);
    let metadata = std::fs::metadata(path).map_err(reason)?;
    if !metadata.is_file() {
        return Err("it is not a regular file".into());
    }
    let file = File::open(path).map_err(reason)?;
    let metadata = file.metadata().map_err(reason)?;
    if metadata.mode() & OTHERS_MAY != 0 {
        return Err("others may read or write it: run chmod 600 on it".into());
    }
    let bytes = bounded::read_all(file, FILE_SIZE_MAX).map_err(reason)?;
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

    fn endpoint(flags: &[(&'static str, Option<&str>)]) -> Result<Endpoint, Error> {
        let mut options = LoginOptions::default();
        options.take("no-defaults", None)?;
        for (name, value) in flags {
            assert!(options.take(name, *value)?);
        }
        options.endpoint()
    }

    #[test]
    fn localhost_is_the_socket_unless_tcp_is_asked_for() {
        let socket = Address::Socket("/x.sock".into());
        let tcp = |host: &str, port| Address::Tcp(host.into(), port);
        let address = |flags: &[_]| endpoint(flags).unwrap().address;
        let s = ("socket", Some("/x.sock"));
        assert_eq!(address(&[s]), socket);
        assert_eq!(address(&[s, ("host", Some("localhost"))]), socket);
        assert_eq!(address(&[s, ("host", Some("db"))]), tcp("db", 3306));
        assert_eq!(address(&[("protocol", Some("TCP")), ("port", Some("4000"))]), tcp("localhost", 4000));
    }

    #[test]
    fn the_last_word_on_tls_counts() {
        let tls = |flags: &[_]| endpoint(flags).unwrap().security.tls.is_some();
        assert!(!tls(&[]));
        assert!(tls(&[("ssl", None)]));
        assert!(!tls(&[("ssl", None), ("skip-ssl", None)]));
        assert!(tls(&[("skip-ssl", None), ("ssl", None)]));
        assert!(endpoint(&[("get-server-public-key", None)]).unwrap().security.may_ask_for_key);
    }

    #[test]
    fn impossible_values_name_their_flag() {
        let message = |name, value| endpoint(&[(name, Some(value))]).unwrap_err().to_string();
        assert!(message("port", "70000").contains("--port=70000"));
        assert!(message("protocol", "pipe").contains("tcp or socket"));
        assert!(message("connect-timeout", "0").contains("at least 1"));
    }

    fn options(text: &str, suffix: &str) -> Vec<(String, String)> {
        in_text(text, &OPTION_GROUPS, suffix).into_iter().collect()
    }

    fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
        expected.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn groups_comments_and_quotes() {
        let text = "[mysqld]\nuser=mysql\n[client]\n# c\nuser = me # trailing\npassword=\"a #b\"\n\
                port\n[mysqlslap]\nsocket=/s\nconcurrency=3\n[dbdyno]\nuser=other\n";
        assert_eq!(
            options(text, ""),
            pairs(&[("password", "a #b"), ("port", ""), ("socket", "/s"), ("user", "other")])
        );
    }

    #[test]
    fn groups_with_the_suffix_are_read_too() {
        let text =
            "[client_staging]\npassword=\"p#q\"\n[client]\nuser=a\n[mysqlslap_staging]\nuser=b\n[client_x]\nport=1\n";
        assert_eq!(options(text, "_staging"), pairs(&[("password", "p#q"), ("user", "b")]));
        assert_eq!(options(text, ""), pairs(&[("user", "a")]));
    }

    #[test]
    fn prefixes_of_names_and_names_that_are_cut() {
        let text = "[client]\nssl\nskip_ssl\nloose-ssl-mode = REQUIRED\nskip-user\nenable-compress\npass=p\nPORT=3\ns=x\nhos=h\nco=1\n";
        assert_eq!(
            options(text, ""),
            pairs(&[
                ("compress", "on"),
                ("host", "h"),
                ("password", "p"),
                ("port", "3"),
                ("ssl", "off"),
                ("ssl-mode", "REQUIRED"),
            ])
        );
        assert_eq!(options("[client]\nskip-ssl=0\n", ""), pairs(&[("ssl", "on")]));
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
            for (name, _) in options(&text, "") {
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
