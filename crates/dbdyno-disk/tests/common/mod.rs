//! A real `dbdyno-disk` in a folder of its own, cleared away whatever happens.

#![allow(dead_code, clippy::unwrap_used)]

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::Value;

pub const BINARY: &str = env!("CARGO_BIN_EXE_dbdyno-disk");

/// Why disks cannot be served here, if they cannot.
pub fn impossible() -> Option<&'static str> {
    if !rustix::process::geteuid().is_root() {
        Some("not root")
    } else if std::fs::OpenOptions::new().read(true).write(true).open("/dev/fuse").is_err() {
        Some("/dev/fuse cannot be opened")
    } else {
        None
    }
}

/// Ends the test early, saying why, where disks cannot be served.
#[macro_export]
macro_rules! skip_if_impossible {
    () => {
        if let Some(reason) = common::impossible() {
            eprintln!("skipped: {reason}");
            return;
        }
    };
}

/// A folder removed in the end.
pub struct Folder(pub PathBuf);

impl Folder {
    pub fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("dbdyno-disk-test-{}-{name}", std::process::id()));
        std::fs::create_dir_all(path.join("mount")).unwrap();
        Self(path)
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

pub struct Disk {
    pub child: Child,
    pub ready: Value,
    pub folder: Folder,
}

impl Disk {
    pub fn serve(name: &str, model: &str, more: &[&str]) -> Self {
        let folder = Folder::new(name);
        let mut child = serve_command(&folder, model, more).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let ready = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"));
        Self { child, ready, folder }
    }

    pub fn mount(&self) -> PathBuf {
        self.folder.path("mount")
    }

    pub fn file(&self) -> PathBuf {
        self.mount().join("disk.img")
    }

    pub fn connect(&self) -> UnixStream {
        UnixStream::connect(self.folder.path("socket")).unwrap()
    }

    /// Sends one request and returns the reply.
    pub fn ask(&self, request: &str) -> Value {
        let stream = self.connect();
        (&stream).write_all(format!("{request}\n").as_bytes()).unwrap();
        let mut reply = String::new();
        BufReader::new(&stream).read_line(&mut reply).unwrap();
        serde_json::from_str(&reply).unwrap_or_else(|error| panic!("{error}: {reply:?}"))
    }

    /// Sends a request that must succeed.
    pub fn tell(&self, request: &str) -> Value {
        let reply = self.ask(request);
        assert_eq!(reply["ok"], true, "{request}: {reply}");
        reply
    }

    pub fn signal(&self, signal: rustix::process::Signal) {
        rustix::process::kill_process(rustix::process::Pid::from_child(&self.child), signal).unwrap();
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if is_mounted(&self.mount()) {
            let _ = Command::new("umount").arg("-l").arg(self.mount()).status();
        }
    }
}

pub fn serve_command(folder: &Folder, model: &str, more: &[&str]) -> Command {
    let mut command = Command::new(BINARY);
    command.args(["serve", "--size", "256MiB", "--model", model, "--mount"]).arg(folder.path("mount"));
    command.arg("--control").arg(folder.path("socket")).args(more);
    command
}

pub fn is_mounted(path: &Path) -> bool {
    std::fs::read_to_string("/proc/self/mounts").unwrap().contains(&format!(" {} ", path.display()))
}

/// Runs a program that must succeed; returns its output.
pub fn run(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output().unwrap_or_else(|error| panic!("{program}: {error}"));
    assert!(output.status.success(), "{program} {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}
