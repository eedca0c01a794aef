//! Certificates made by openssl for one test.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A folder of certificates that servers without rights can read; gone afterwards.
pub struct Certificates(PathBuf);

impl Certificates {
    /// Two authorities, `ca` and `other`; of `ca` a `server` for 127.0.0.1 and a `client`; and `v1`,
    /// for a server, of X.509 version 1.
    pub fn new() -> Option<Self> {
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
        assert!(output.status.success(), "{arguments}: {}", super::text(&output.stderr));
        Command::new("chmod").args(["-R", "a+rX"]).arg(&self.0).status().unwrap();
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
