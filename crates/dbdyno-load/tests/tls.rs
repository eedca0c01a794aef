//! TLS against a real MariaDB, with certificates made by openssl for the test.
#![allow(clippy::unwrap_used, clippy::doc_markdown, reason = "in a test a failure is a panic")]

mod common;

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

use common::Server;
use common::client::{connect, execute, over_socket, over_tcp, query, refusal, secured, session, user};
use dbdyno_load::endpoint::{Address, Endpoint};
use dbdyno_load::protocol::pen::Parameter;
use dbdyno_load::protocol::session::Session;

/// A folder of certificates that servers without rights can read; gone afterwards.
struct Certificates(PathBuf);

impl Certificates {
    /// Two authorities, `ca` and `other`; of `ca` a `server` for 127.0.0.1 and a `client`; and `v1`,
    /// for a server, of X.509 version 1.
    fn new() -> Option<Self> {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        if Command::new("openssl").arg("version").output().is_err() {
            eprintln!("skipped: openssl is not installed");
            return None;
        }
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let made = Self(PathBuf::from(format!("/tmp/dbdyno-load-tls-{}-{number}", std::process::id())));
        fs::create_dir(&made.0).unwrap();
        for name in ["ca", "other"] {
            made.openssl(&format!("req -x509 -nodes -subj /CN={name} -keyout {name}.key -out {name}.pem -days 2"));
        }
        fs::write(made.0.join("v3"), "subjectAltName=IP:127.0.0.1\n").unwrap();
        for (name, extensions) in [("server", " -extfile v3"), ("client", " -extfile v3"), ("v1", "")] {
            made.openssl(&format!("req -nodes -subj /CN={name} -keyout {name}.key -out {name}.csr"));
            let sign = "x509 -req -CA ca.pem -CAkey ca.key -CAcreateserial -days 2";
            made.openssl(&format!("{sign} -in {name}.csr -out {name}.pem{extensions}"));
        }
        Some(made)
    }

    fn openssl(&self, arguments: &str) {
        let mut command = Command::new("openssl");
        command.args(arguments.split_whitespace()).current_dir(&self.0);
        if arguments.starts_with("req") {
            command.args(["-newkey", "rsa:2048"]);
        }
        let output = command.output().unwrap();
        assert!(output.status.success(), "{arguments}: {}", common::text(&output.stderr));
        Command::new("chmod").args(["-R", "a+rX"]).arg(&self.0).status().unwrap();
    }

    fn path(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }

    /// What a server needs to offer TLS with the certificate `name`.
    fn arguments(&self, name: &str) -> Vec<String> {
        vec![
            format!("--ssl-ca={}", self.path("ca.pem")),
            format!("--ssl-cert={}", self.path(&format!("{name}.pem"))),
            format!("--ssl-key={}", self.path(&format!("{name}.key"))),
        ]
    }
}

impl Drop for Certificates {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The cipher of a session, empty without TLS.
fn cipher(session: &mut Session) -> String {
    session.query("SHOW STATUS LIKE 'Ssl_cipher'").unwrap()[0][1].clone().unwrap()
}

fn encrypted(endpoint: &Endpoint) -> bool {
    !cipher(&mut session(endpoint)).is_empty()
}

#[test]
fn modes_decide_whether_and_whom() {
    let Some(files) = Certificates::new() else { return };
    let Some(server) = Server::start_with(&files.arguments("server")) else { return };
    let (ca, other) = (files.path("ca.pem"), files.path("other.pem"));
    let tcp = |options: &[_]| secured(over_tcp(server.port), options);
    let socket = |options: &[_]| secured(over_socket(&server.socket()), options);
    assert!(!encrypted(&tcp(&[])));
    assert!(encrypted(&tcp(&[("ssl-mode", "preferred")])));
    assert!(!encrypted(&socket(&[("ssl-mode", "preferred")])));
    assert!(encrypted(&socket(&[("ssl-mode", "required")])));
    assert!(encrypted(&tcp(&[("ssl-ca", &ca)])));
    assert!(encrypted(&tcp(&[("ssl-ca", &ca), ("ssl-mode", "verify_identity")])));
    let said = refusal(&tcp(&[("ssl-ca", &other)]));
    assert!(said.contains("127.0.0.1") && said.contains("did not sign"), "{said}");
    let named = Endpoint { address: Address::Tcp("localhost".into(), server.port), ..over_tcp(server.port) };
    assert!(encrypted(&secured(named.clone(), &[("ssl-ca", &ca)])));
    let said = refusal(&secured(named, &[("ssl-ca", &ca), ("ssl-mode", "verify_identity")]));
    assert!(said.contains("subjectAltName"), "{said}");
}

#[test]
fn servers_that_demand_tls_say_how() {
    let Some(files) = Certificates::new() else { return };
    let Some(server) = Server::start_with(&files.arguments("server")) else { return };
    server.sql("CREATE USER u IDENTIFIED BY 'p' REQUIRE SSL; CREATE USER x IDENTIFIED BY 'p' REQUIRE X509");
    let tcp = |name, options: &[_]| user(secured(over_tcp(server.port), options), name, "p");
    let required = ("ssl-mode", "required");
    assert!(refusal(&tcp("u", &[])).contains("--ssl-mode=required"));
    assert!(encrypted(&tcp("u", &[required])));
    assert!(refusal(&tcp("x", &[required])).contains("1045"));
    let (certificate, key) = (files.path("client.pem"), files.path("client.key"));
    assert!(encrypted(&tcp("x", &[required, ("ssl-cert", &certificate), ("ssl-key", &key)])));
    let foreign = (files.path("other.pem"), files.path("other.key"));
    let said = refusal(&tcp("x", &[required, ("ssl-cert", &foreign.0), ("ssl-key", &foreign.1)]));
    assert!(said.contains("--ssl-cert") || said.contains("1045"), "{said}");
    server.sql("SET GLOBAL require_secure_transport = 1");
    let said = refusal(&tcp("u", &[]));
    assert!(said.contains("--ssl-mode=required"), "{said}");
}

#[test]
fn old_certificates_and_old_tls() {
    let Some(files) = Certificates::new() else { return };
    let arguments = [files.arguments("v1"), vec!["--tls-version=TLSv1.2".into()]].concat();
    let Some(server) = Server::start_with(&arguments) else { return };
    let tcp = |options: &[_]| secured(over_tcp(server.port), options);
    let mut session = session(&tcp(&[("ssl", "")]));
    let version = session.query("SHOW STATUS LIKE 'Ssl_version'").unwrap();
    assert_eq!(version[0][1].as_deref(), Some("TLSv1.2"));
    let ca = files.path("ca.pem");
    let said = refusal(&tcp(&[("ssl-ca", &ca)]));
    assert!(said.contains("X.509 version 3"), "{said}");
}

#[test]
fn a_server_without_tls_is_told() {
    let Some(server) = Server::start() else { return };
    assert!(connect(&secured(over_tcp(server.port), &[("ssl-mode", "preferred")])).is_ok());
    let said = refusal(&secured(over_tcp(server.port), &[("ssl-mode", "required")]));
    assert!(said.contains("offers no TLS") && said.contains("--ssl-mode=disabled"), "{said}");
}

#[test]
fn loads_go_through_tls() {
    const LONG: usize = 20 << 20;
    let Some(files) = Certificates::new() else { return };
    let Some(server) = Server::start_with(&files.arguments("server")) else { return };
    let mut session = session(&secured(over_tcp(server.port), &[("ssl", "")]));
    session.prepare_all(&["SELECT ?, 1 UNION SELECT 'b', 2".into()]).unwrap();
    let mut connection = session.into_connection();
    for _ in 0..3 {
        let (reply, _) = execute(&mut connection, 0, &[Parameter::Text(b"a")]);
        assert_eq!(reply.rows, 2);
    }
    let (reply, size) = query(&mut connection, &format!("SELECT '{}'", "x".repeat(LONG)));
    assert_eq!(reply.rows, 1);
    assert!(size > LONG);
    let tls = connection.tls.as_mut().unwrap();
    assert!(tls.open(&[0; 100], &mut Vec::new()).is_err());
}

#[test]
fn the_command_line_takes_tls() {
    let Some(files) = Certificates::new() else { return };
    let Some(server) = Server::start_with(&files.arguments("server")) else { return };
    server.sql("CREATE USER u@'%' IDENTIFIED BY 'p' REQUIRE SSL; GRANT ALL ON *.* TO u@'%'");
    let defaults = files.path("my.cnf");
    let ca = files.path("ca.pem");
    fs::write(&defaults, format!("[client]\nuser=u\npassword=p\nssl_ca={ca}\n")).unwrap();
    let slap = || {
        let mut command = common::slap();
        command.arg(format!("--defaults-file={defaults}")).args(["-h127.0.0.1", "-a", "--silent"]);
        command.arg(format!("--port={}", server.port)).arg("--phase=prepare");
        command
    };
    common::expect(&mut slap(), 0);
    common::expect(slap().arg("--ssl-verify-server-cert"), 0);
    let output = common::expect(slap().arg("--skip-ssl"), 1);
    assert!(common::text(&output.stderr).contains("--ssl-mode=required"));
    let output = common::expect(slap().arg("--tls-version=TLSv1.3"), 2);
    assert!(common::text(&output.stderr).contains("rustls"));
}
