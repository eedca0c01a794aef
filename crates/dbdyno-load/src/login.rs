//! The flags every verb has for reaching a server, and what environment and option files add.

use std::collections::BTreeMap;
use std::env;
use std::path::PathBuf;
use std::time::Duration;

use crate::dialect::{PORT, environment};
use crate::endpoint::{Address, Endpoint, Password, usual_socket};
use crate::error::Error;
use crate::flags::{Flag, Group, Takes};
use crate::option_file::{self, Source};
use crate::security;
use crate::security::{NO_CHOICE, NO_REVOCATION, ONE_FILE, Security, switch};
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
        let mut file = option_file::read(&self.source, &suffix)?;
        if self.source != Source::Nothing || self.login_path.is_some() {
            file.extend(option_file::read_login_path(self.login_path.as_deref(), &suffix)?);
        }
        let chosen = |name: &'static str, from_env: Option<String>| {
            let flag = self.values.get(name).cloned();
            flag.or_else(|| file.get(name).cloned()).or(from_env)
        };
        let password = if self.password_from_env {
            variable(environment::PASSWORD)
        } else if self.ask_password {
            Some(security::ask()?)
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
        if let Some(given) = self.values.get(name) {
            let known = given.split(',').map(str::trim).find(|one| ["zlib", "uncompressed"].contains(one));
            let known = known.ok_or_else(|| Error::Usage(format!("--{name}={given}: use zlib or uncompressed")))?;
            return Ok(known == "zlib");
        }
        Ok(switch("compress", chosen)?.unwrap_or(false))
    }

    fn seconds(&self, name: &'static str, default: u64) -> Result<Duration, Error> {
        let given = number(name, self.values.get(name).map(String::as_str))?;
        match given.unwrap_or(default) {
            0 => Err(Error::Usage(format!("--{name}=0: give at least 1 second"))),
            seconds => Ok(Duration::from_secs(seconds)),
        }
    }
}

#[cfg(test)]
mod tests {
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
        let said = |name, value| endpoint(&[(name, Some(value))]).unwrap_err().to_string();
        assert!(said("port", "70000").contains("--port=70000"));
        assert!(said("protocol", "pipe").contains("tcp or socket"));
        assert!(said("connect-timeout", "0").contains("at least 1"));
    }
}
