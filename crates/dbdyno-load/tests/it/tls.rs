//! TLS against a real MariaDB, with certificates made by openssl.

use std::fs;
use std::io::{Read as _, Write as _};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use dbdyno_load::endpoint::{Address, Endpoint};
use dbdyno_load::protocol::packet::Parameter;
use dbdyno_load::protocol::session::Session;
use dbdyno_load::protocol::tls::{Tls, TlsError};
use dbdyno_load::protocol::tls_client::{Files, Mode, TlsClient};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection};

use crate::common::Server;
use crate::common::client::{connect, execute, over_socket, over_tcp, query, refusal, secured, session, user};

/// Both ends of a connection that trusts anybody, the handshake done.
fn ends(files: &Certificates) -> (Tls, ServerConnection) {
    let certificate = CertificateDer::from_pem_file(files.path("server.pem")).unwrap();
    let key = PrivateKeyDer::from_pem_file(files.path("server.key")).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let config = config.with_no_client_auth().with_single_cert(vec![certificate], key).unwrap();
    let mut server = ServerConnection::new(Arc::new(config)).unwrap();
    let mut client = TlsClient::new(Mode::Required, &Files::default(), "x").unwrap().connection().unwrap();
    while client.is_handshaking() || server.is_handshaking() {
        let mut out = Vec::new();
        client.pending(&mut out).unwrap();
        hear(&mut server, &out);
        client.open(&take_records(&mut server), &mut Vec::new()).unwrap();
    }
    (client, server)
}

/// What `server` makes of these records.
fn hear(server: &mut ServerConnection, mut records: &[u8]) -> Vec<u8> {
    let mut plain = Vec::new();
    while !records.is_empty() {
        server.read_tls(&mut records).unwrap();
        server.process_new_packets().unwrap();
        let _ = server.reader().read_to_end(&mut plain);
    }
    plain
}

/// The records that `server` has to send.
fn take_records(server: &mut ServerConnection) -> Vec<u8> {
    let mut records = Vec::new();
    while server.wants_write() {
        server.write_tls(&mut records).unwrap();
    }
    records
}

#[test]
fn records_may_come_in_any_pieces() {
    let Some(files) = Certificates::new() else { return };
    let (mut client, mut server) = ends(&files);
    for size in [1, 2, 100, 5000, 100_000] {
        let text: Vec<u8> = (0..50_000_u32).map(|number| number as u8).collect();
        server.writer().write_all(&text).unwrap();
        let mut plain = b"kept".to_vec();
        for piece in take_records(&mut server).chunks(size) {
            client.open(piece, &mut plain).unwrap();
        }
        assert_eq!(plain, [&b"kept"[..], &text].concat());
        let mut request = text.clone();
        client.seal(&mut request).unwrap();
        assert_eq!(hear(&mut server, &request), text);
    }
}

#[test]
fn new_keys_are_taken_and_answered_with_the_next_request() {
    let Some(files) = Certificates::new() else { return };
    let (mut client, mut server) = ends(&files);
    for _ in 0..3 {
        server.refresh_traffic_keys().unwrap();
        server.writer().write_all(b"reply").unwrap();
        let mut plain = Vec::new();
        client.open(&take_records(&mut server), &mut plain).unwrap();
        assert_eq!(plain, b"reply");
        let [first, second] = [(); 2].map(|()| {
            let mut request = b"request".to_vec();
            client.seal(&mut request).unwrap();
            request
        });
        assert!(first.len() > second.len());
        assert_eq!(hear(&mut server, &[first, second].concat()), b"requestrequest");
    }
}

#[test]
fn the_end_of_tls_is_told() {
    let Some(files) = Certificates::new() else { return };
    let (mut client, mut server) = ends(&files);
    server.writer().write_all(b"last words").unwrap();
    server.send_close_notify();
    let mut plain = Vec::new();
    // They may be the server's reason, or the answer to a COMMIT.
    assert_eq!(client.open(&take_records(&mut server), &mut plain), Ok(()));
    assert_eq!(plain, b"last words");
    assert_eq!(client.open(b"more", &mut plain), Err(TlsError::Closed));
    let (mut client, mut server) = ends(&files);
    server.send_close_notify();
    assert_eq!(client.open(&take_records(&mut server), &mut plain), Err(TlsError::Closed));
    let (mut client, mut server) = ends(&files);
    server.writer().write_all(b"damaged").unwrap();
    let mut records = take_records(&mut server);
    *records.last_mut().unwrap() ^= 1;
    assert!(matches!(client.open(&records, &mut plain), Err(TlsError::Broken(_))));
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
    let message = refusal(&tcp(&[("ssl-ca", &other)]));
    assert!(message.contains("127.0.0.1") && message.contains("did not sign"), "{message}");
    let named = Endpoint { address: Address::Tcp("localhost".into(), server.port), ..over_tcp(server.port) };
    assert!(encrypted(&secured(named.clone(), &[("ssl-ca", &ca)])));
    let message = refusal(&secured(named, &[("ssl-ca", &ca), ("ssl-mode", "verify_identity")]));
    assert!(message.contains("subjectAltName"), "{message}");
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
    let message = refusal(&tcp("x", &[required, ("ssl-cert", &foreign.0), ("ssl-key", &foreign.1)]));
    assert!(message.contains("--ssl-cert") || message.contains("1045"), "{message}");
    server.sql("SET GLOBAL require_secure_transport = 1");
    let message = refusal(&tcp("u", &[]));
    assert!(message.contains("--ssl-mode=required"), "{message}");
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
    let message = refusal(&tcp(&[("ssl-ca", &ca)]));
    assert!(message.contains("X.509 version 3"), "{message}");
}

#[test]
fn a_server_without_tls_is_told() {
    let Some(server) = Server::start() else { return };
    assert!(connect(&secured(over_tcp(server.port), &[("ssl-mode", "preferred")])).is_ok());
    let message = refusal(&secured(over_tcp(server.port), &[("ssl-mode", "required")]));
    assert!(message.contains("offers no TLS") && message.contains("--ssl-mode=disabled"), "{message}");
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
fn a_connection_that_is_lost_is_replaced() {
    let Some(files) = Certificates::new() else { return };
    let Some(server) = Server::start_with(&files.arguments("server")) else { return };
    server.sql("CREATE SCHEMA sbtest");
    let json = server.file("result.json");
    let oltp = |flags: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_dbdyno-load"));
        command.args(["oltp", "point_select", "--no-defaults", "--mysql-ssl=required", "--table-size=100"]);
        command.args(["--mysql-host=127.0.0.1", "--mysql-user=root", "--silent"]);
        command.arg(format!("--mysql-port={}", server.port)).args(flags.split_whitespace());
        command
    };
    crate::common::expect(&mut oltp("prepare"), 0);
    let killed = |flags: &str| {
        let mut run = oltp(flags).arg("--json").arg(&json).stderr(Stdio::piped()).spawn().unwrap();
        let connected = || server.sql("SELECT id FROM information_schema.processlist WHERE db = 'sbtest' ORDER BY id");
        crate::common::wait_until("a connection of each client", || connected().lines().count() >= 4);
        server.answers(100);
        let running = connected();
        let last = running.lines().last().unwrap();
        server.sql(&format!("KILL {last}"));
        let (code, stderr, _) = crate::common::waited_for(&mut run);
        (code, stderr, crate::common::json(&json)["runs"][0]["reconnects"].clone())
    };
    for io in ["auto", "epoll"] {
        let (code, stderr, reconnects) =
            killed(&format!("--threads=4 --time=3 --rate=1000 --reconnect=10 --io={io} run"));
        assert_eq!((code, reconnects.as_u64()), (Some(0), Some(1)), "{stderr}");
    }
    let (code, stderr, _) = killed("--threads=4 --time=3 run");
    assert_eq!(code, Some(1), "{stderr}");
    assert!(stderr.contains("lost the") && stderr.contains("KILL"), "{stderr}");
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
        let mut command = crate::common::slap();
        command.arg(format!("--defaults-file={defaults}")).args(["-h127.0.0.1", "-a", "--silent"]);
        command.arg(format!("--port={}", server.port));
        command
    };
    crate::common::expect(&mut slap(), 0);
    crate::common::expect(slap().arg("--ssl-verify-server-cert"), 0);
    let output = crate::common::expect(slap().arg("--skip-ssl"), 1);
    assert!(crate::common::text(&output.stderr).contains("--ssl-mode=required"));
    let output = crate::common::expect(slap().arg("--tls-version=TLSv1.3"), 2);
    assert!(crate::common::text(&output.stderr).contains("rustls"));
}

/// A folder of certificates, which are made once, that servers without rights can read; gone afterwards.
pub struct Certificates(PathBuf);

impl Certificates {
    /// Two authorities, `ca` and `other`; of `ca` a `server` for 127.0.0.1 and a `client`; and `v1`,
    /// for a server, of X.509 version 1.
    pub fn new() -> Option<Self> {
        static MADE: OnceLock<Option<PathBuf>> = OnceLock::new();
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let made = MADE.get_or_init(make).as_ref()?;
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let copy = Self(PathBuf::from(format!("/tmp/dbdyno-load-tls-{}-{number}", std::process::id())));
        crate::common::run(Command::new("cp").arg("-a").arg(made).arg(&copy.0));
        Some(copy)
    }

    pub fn path(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }

    /// What a server needs to offer TLS with the certificate `name`.
    pub fn arguments(&self, name: &str) -> Vec<String> {
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

/// All of them, in the build's own folder.
fn make() -> Option<PathBuf> {
    if Command::new("openssl").arg("version").output().is_err() {
        eprintln!("skipped: openssl is not installed");
        return None;
    }
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("certificates");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir(&folder).unwrap();
    let openssl = |arguments: &str| {
        let mut command = Command::new("openssl");
        command.args(arguments.split_whitespace()).current_dir(&folder);
        if arguments.starts_with("req") {
            command.args(["-newkey", "rsa:2048"]);
        }
        crate::common::run(&mut command);
    };
    for name in ["ca", "other"] {
        openssl(&format!("req -x509 -nodes -subj /CN={name} -keyout {name}.key -out {name}.pem -days 2"));
    }
    fs::write(folder.join("v3"), "subjectAltName=IP:127.0.0.1\n").unwrap();
    for (name, extensions) in [("server", " -extfile v3"), ("client", " -extfile v3"), ("v1", "")] {
        openssl(&format!("req -nodes -subj /CN={name} -keyout {name}.key -out {name}.csr"));
        let sign = "x509 -req -CA ca.pem -CAkey ca.key -CAcreateserial -days 2";
        openssl(&format!("{sign} -in {name}.csr -out {name}.pem{extensions}"));
    }
    crate::common::run(Command::new("chmod").args(["-R", "a+rX"]).arg(&folder));
    Some(folder)
}
