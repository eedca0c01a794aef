//! Logins and replies of a real MySQL 8 or 9: an unpacked tree of it (a vendor's archive, or packages unpacked with all
//! their libraries) that DBDYNO_TEST_MYSQLD names; skipped where it names none.

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use dbdyno_load::endpoint::Endpoint;
use dbdyno_load::protocol::packet::Parameter;

use crate::common::client::{connect, execute, over_socket, over_tcp, query, refusal, secured, session, user};

/// Where the packages of Debian have their libraries; a vendor's archive has none of libc.
const LIBRARIES: &str = "usr/lib/x86_64-linux-gnu";

struct Mysql {
    folder: PathBuf,
    process: Child,
    port: u16,
}

impl Mysql {
    fn start() -> Option<Self> {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let Some(tree) = std::env::var_os("DBDYNO_TEST_MYSQLD").map(PathBuf::from) else {
            eprintln!("skipped: DBDYNO_TEST_MYSQLD names no unpacked MySQL");
            return None;
        };
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let folder = PathBuf::from(format!("/tmp/dbdyno-load-mysql-{}-{number}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir(&folder).unwrap();
        if rustix::process::getuid().is_root() {
            assert!(Command::new("chown").arg("nobody").arg(&folder).status().unwrap().success());
        }
        let output = daemon(&tree, &folder).arg("--initialize-insecure").output().unwrap();
        assert!(output.status.success(), "{}", crate::common::text(&output.stderr));
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut command = daemon(&tree, &folder);
        command.arg(format!("--port={port}")).arg(format!("--socket={}", folder.join("s").display()));
        command.args(["--mysqlx=OFF", "--bind-address=127.0.0.1", "--skip-log-bin"]);
        let log = fs::File::create(folder.join("log")).unwrap();
        let process = command.stdout(Stdio::null()).stderr(log).spawn().unwrap();
        let mut mysql = Self { folder, process, port };
        let start = Instant::now();
        while connect(&mysql.socket()).is_err() {
            let log = || fs::read_to_string(mysql.folder.join("log")).unwrap_or_default();
            assert!(mysql.process.try_wait().unwrap().is_none(), "the server ended: {}", log());
            assert!(start.elapsed() < Duration::from_secs(120), "the server does not start: {}", log());
            sleep(Duration::from_millis(100));
        }
        Some(mysql)
    }

    fn socket(&self) -> Endpoint {
        over_socket(&self.folder.join("s"))
    }

    fn tcp(&self, options: &[(&'static str, &str)]) -> Endpoint {
        secured(over_tcp(self.port), options)
    }

    /// A file that the server made in its datadir.
    fn made(&self, name: &str) -> String {
        self.folder.join("data").join(name).display().to_string()
    }

    fn sql(&self, statements: &[&str]) {
        let mut session = session(&self.socket());
        for sql in statements {
            session.execute(sql).unwrap();
        }
    }
}

impl Drop for Mysql {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = fs::remove_dir_all(&self.folder);
    }
}

fn daemon(tree: &Path, folder: &Path) -> Command {
    let loader = tree.join(LIBRARIES).join("ld-linux-x86-64.so.2");
    let (mut command, base) = if loader.exists() {
        let mut command = Command::new(loader);
        command.arg("--library-path").arg(tree.join(LIBRARIES)).arg(tree.join("usr/sbin/mysqld"));
        (command, tree.join("usr"))
    } else {
        (Command::new(tree.join("bin/mysqld")), tree.to_owned())
    };
    let option = |name: &str, path: PathBuf| format!("--{name}={}", path.display());
    command.args(["--no-defaults", "--secure-file-priv="]);
    command.arg(option("basedir", base.clone())).arg(option("datadir", folder.join("data")));
    let messages = ["share/mysql", "share"].map(|name| base.join(name)).into_iter().find(|path| path.exists());
    command.arg(option("lc-messages-dir", messages.unwrap()));
    if rustix::process::getuid().is_root() {
        command.arg("--user=nobody");
    }
    command
}

/// Each account is new, so that the server has no password of it cached and wants the password itself.
#[test]
fn caching_sha2_password_logs_in_every_way() {
    let Some(server) = Mysql::start() else { return };
    let key = server.made("public_key.pem");
    let ca = server.made("ca.pem");
    let ways = [
        ("socket", server.socket()),
        ("asked", server.tcp(&[("get-server-public-key", "")])),
        ("known", server.tcp(&[("server-public-key-path", &key)])),
        ("tls", server.tcp(&[("ssl-mode", "required")])),
        ("verified", server.tcp(&[("ssl-ca", &ca)])),
    ];
    for (name, way) in ways {
        server.sql(&[&format!("CREATE USER {name} IDENTIFIED WITH caching_sha2_password BY 'pass word'")]);
        let message = refusal(&user(server.tcp(&[]), name, "pass word"));
        assert!(
            message.contains("--get-server-public-key") && message.contains("--ssl-mode=required"),
            "{name}: {message}"
        );
        let message = refusal(&user(way.clone(), name, "wrong"));
        assert!(message.contains("1045"), "{name}: {message}");
        let mut full = session(&user(way.clone(), name, "pass word"));
        assert_eq!(full.query("SELECT 1").unwrap(), [[Some("1".into())]], "{name}");
        // Now the password is cached, and a proof of it is enough, on any way.
        for way in [way, server.tcp(&[])] {
            let mut fast = session(&user(way, name, "pass word"));
            assert_eq!(fast.query("SELECT 1").unwrap(), [[Some("1".into())]], "{name}");
        }
        server.sql(&["FLUSH PRIVILEGES"]);
        assert!(connect(&user(server.tcp(&[]), name, "pass word")).is_err(), "{name}: not forgotten");
    }
    server.sql(&["CREATE USER nobody IDENTIFIED BY ''"]);
    session(&user(server.tcp(&[]), "nobody", ""));
}

#[test]
fn sha256_password_logs_in() {
    let Some(server) = Mysql::start() else { return };
    server.sql(&["CREATE USER u IDENTIFIED WITH sha256_password BY 'p'"]);
    session(&user(server.tcp(&[("ssl-mode", "required")]), "u", "p"));
    session(&user(server.tcp(&[("get-server-public-key", "")]), "u", "p"));
    assert!(refusal(&user(server.tcp(&[]), "u", "p")).contains("--get-server-public-key"));
    session(&user(server.socket(), "u", "p"));
}

#[test]
fn replies_are_understood() {
    let Some(server) = Mysql::start() else { return };
    server.sql(&[
        "CREATE SCHEMA test",
        "CREATE PROCEDURE test.p() BEGIN SELECT 1 UNION SELECT 2; SELECT 3; END",
        "SET GLOBAL require_secure_transport = 1",
    ]);
    let message = refusal(&server.tcp(&[]));
    assert!(message.contains("--ssl-mode=required"), "{message}");
    for way in [server.socket(), server.tcp(&[("ssl", "")])] {
        let mut session = session(&way);
        assert!(session.server_version().starts_with(['8', '9']));
        session.prepare_all(&["SELECT ?, 1 UNION SELECT 'b', 2".into(), "CALL test.p()".into()]).unwrap();
        assert!(session.query("LOAD DATA LOCAL INFILE '/etc/passwd' INTO TABLE mysql.user").is_err());
        let mut idle = crate::common::client::session(&way);
        idle.execute("SET wait_timeout = 1").unwrap();
        sleep(Duration::from_millis(2500));
        let message = idle.execute("DO 1").unwrap_err().to_string();
        assert!(message.contains("inactivity"), "{message}");
        let mut killed = crate::common::client::session(&way);
        let number = killed.query("SELECT CONNECTION_ID()").unwrap()[0][0].clone().unwrap();
        server.sql(&[&format!("KILL {number}")]);
        let message = killed.execute("DO 1").unwrap_err().to_string();
        assert!(message.contains("lost the") && message.contains("KILL"), "{message}");
        let mut connection = session.into_connection();
        assert_eq!(query(&mut connection, "CALL test.p()").0.rows, 3);
        assert_eq!(execute(&mut connection, 0, &[Parameter::Text(b"a")]).0.rows, 2);
        assert_eq!(execute(&mut connection, 1, &[]).0.rows, 3);
        assert!(query(&mut connection, "BEGIN").0.in_transaction);
        assert_eq!(query(&mut connection, "SELECT CAST('x' AS SIGNED)").0.warnings, 1);
        assert_eq!(query(&mut connection, "SELECT nothing").0.error.unwrap().code, 1054);
    }
}

#[test]
fn a_script_changes_its_own_schema_alone() {
    let Some(server) = Mysql::start() else { return };
    server.sql(&[
        "CREATE SCHEMA theirs",
        "CREATE TABLE theirs.items (i INT PRIMARY KEY)",
        "INSERT INTO theirs.items VALUES (1)",
        // Routines and triggers need more than rights on a schema where there is a binary log.
        "SET GLOBAL log_bin_trust_function_creators = 1",
    ]);
    let path = server.folder.join("way.sql");
    let (port, socket) = (format!("--port={}", server.port), format!("--socket={}", server.folder.join("s").display()));
    let ways = [vec!["--protocol=tcp", "--host=127.0.0.1", &port], vec![&socket]];
    for way in ways {
        let run = |sql: &str, code| {
            let setup = "-- setup:\nCREATE TABLE own (i INT);\nINSERT INTO own VALUES (1);\n\
                CREATE PROCEDURE wipe() DELETE FROM theirs.items;\nCREATE VIEW v AS SELECT i FROM own;\n";
            fs::write(&path, format!("{setup}-- name: a\n{sql};\n")).unwrap();
            let mut command = Command::new(env!("CARGO_BIN_EXE_dbdyno-load"));
            command.arg("script").arg(&path).args(["--no-defaults", "-uroot", "--events=2"]).args(&way);
            crate::common::text(&crate::common::expect(&mut command, code).stderr)
        };
        for sql in [
            "DELETE FROM theirs.items",
            "CALL wipe()",
            "UPDATE own JOIN theirs.items b SET b.i = 7",
            "SET GLOBAL max_connections = 77",
            "SET PERSIST max_connections = 77",
            "DROP DATABASE theirs",
            "LOAD DATA INFILE '/etc/hostname' INTO TABLE own",
            "SHUTDOWN",
            "SET ROLE 'x'",
        ] {
            let stderr = run(sql, 1);
            assert!(
                stderr.contains("its own schema dbdyno_script alone") || sql.starts_with("SET ROLE"),
                "{sql}: {stderr}"
            );
        }
        run("UPDATE v SET i = i + 1", 0);
        // A role that is everybody's is one that a script could take on.
        server.sql(&["CREATE ROLE wide", "GRANT DELETE ON theirs.* TO wide", "SET GLOBAL mandatory_roles = 'wide'"]);
        let stderr = run("DO 1", 2);
        assert!(stderr.contains("gives every account GRANT DELETE ON `theirs`"), "{stderr}");
        server.sql(&["SET GLOBAL mandatory_roles = ''", "DROP ROLE wide"]);
    }
    let mut session = session(&server.socket());
    let mut ask = |sql: &str| session.query(sql).unwrap()[0][0].clone().unwrap();
    assert_eq!(ask("SELECT COUNT(*) FROM theirs.items WHERE i = 1"), "1");
    assert_eq!(ask("SELECT @@GLOBAL.max_connections"), "151");
    assert_eq!(ask("SELECT COUNT(*) FROM mysql.user WHERE User LIKE 'dbdyno%'"), "0");
    assert_eq!(ask("SELECT COUNT(*) FROM information_schema.SCHEMATA WHERE SCHEMA_NAME LIKE 'dbdyno%'"), "0");
}
