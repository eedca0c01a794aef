//! Certificates made by openssl.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

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
        super::run(Command::new("cp").arg("-a").arg(made).arg(&copy.0));
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
        super::run(&mut command);
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
    super::run(Command::new("chmod").args(["-R", "a+rX"]).arg(&folder));
    Some(folder)
}
