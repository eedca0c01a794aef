//! A private MariaDB for one test: own datadir, own socket, gone afterwards; and a fake server for what a real one
//! does not do.
//!
//! Of cases that are too many for every run some are drawn; `DBDYNO_TEST_LONG` tries all. As in `tests/sampled.py`: the
//! seed is always the same, or what `DBDYNO_TEST_SEED` gives.
#![allow(dead_code, reason = "each test file uses a part")]

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Read;
use std::net::TcpListener;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use serde_json::Value;

pub mod client;
pub mod fake_server;

/// A user without rights, as servers refuse to run as root.
const UNPRIVILEGED: &str = "nobody";

/// How long what must come may take on a busy host. Loads that something must end early are to last longer.
pub const PATIENCE: Duration = Duration::from_secs(180);

pub struct Server {
    folder: PathBuf,
    pub process: Child,
    pub port: u16,
    arguments: Vec<String>,
}

impl Server {
    /// Starts one; `None`, with the reason printed, where there is no MariaDB.
    pub fn start() -> Option<Self> {
        Self::start_with(&[])
    }

    /// The same with arguments of the server's.
    pub fn start_with(arguments: &[String]) -> Option<Self> {
        Some(Self::start_on(template()?, arguments))
    }

    /// One whose log is a file that is written to: where that is in memory, a killed server has lost nothing.
    pub fn start_on_disk() -> Option<Self> {
        Some(Self::start_in("/tmp", template()?, &[]))
    }

    /// One on a copy of data that [`Self::kept`] returned.
    pub fn start_on(data: &Path, arguments: &[String]) -> Self {
        Self::start_in(place(), data, arguments)
    }

    fn start_in(place: &str, data: &Path, arguments: &[String]) -> Self {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let folder = Path::new(place).join(format!("dbdyno-load-{}-{number}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        run(Command::new("cp").arg("-a").arg(data).arg(&folder));
        // The port may be taken before the server has it; then the server does not start, and says so.
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let process = spawn(&folder, port, arguments);
        let mut server = Self { folder, process, port, arguments: arguments.to_vec() };
        server.wait_until_ready();
        server
    }

    /// Shuts it down; its data, to be copied, in the build's own folder.
    pub fn kept(mut self, name: &str) -> PathBuf {
        self.sql("SHUTDOWN");
        self.process.wait().unwrap();
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
        let _ = fs::remove_dir_all(&folder);
        run(Command::new("cp").args(["-a", "--sparse=always"]).arg(&self.folder).arg(&folder));
        folder
    }

    fn wait_until_ready(&mut self) {
        let start = Instant::now();
        while !self.socket().exists() || !self.try_sql("SELECT 1").status.success() {
            let log = fs::read_to_string(self.folder.join("log")).unwrap_or_default();
            assert!(self.process.try_wait().unwrap().is_none(), "the server ended: {log}");
            assert!(start.elapsed() < PATIENCE, "the server does not start: {log}");
            sleep(Duration::from_millis(50));
        }
    }

    /// SIGKILL, as the kernel does when memory is short.
    pub fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    /// Starts it on the same data and places after [`Self::kill`].
    pub fn start_again(&mut self) {
        self.process = spawn(&self.folder, self.port, &self.arguments);
        self.wait_until_ready();
    }

    pub fn socket(&self) -> PathBuf {
        self.folder.join("s")
    }

    /// A path for an output file.
    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    fn try_sql(&self, sql: &str) -> Output {
        let mut command = Command::new("mariadb");
        command.args(["--no-defaults", "-uroot", "-N", "-B", "-e", sql, "-S"]);
        command.arg(self.socket()).output().unwrap()
    }

    /// What the server's own client prints for `sql`.
    pub fn sql(&self, sql: &str) -> String {
        let output = self.try_sql(sql);
        assert!(output.status.success(), "{sql}: {}", text(&output.stderr));
        text(&output.stdout)
    }

    /// Whether the server takes `sql`.
    pub fn accepts(&self, sql: &str) -> bool {
        self.try_sql(sql).status.success()
    }

    /// A status counter of the server.
    pub fn counter(&self, name: &str) -> u64 {
        let [count] = self.counters([name]);
        count
    }

    /// Waits until it has answered so many queries more: a load has begun, or goes on.
    pub fn answers(&self, more: u64) {
        let wanted = self.counter("Questions") + more;
        wait_until("answers to queries", || self.counter("Questions") >= wanted);
    }

    /// Some status counters of the server, asked for with one question.
    pub fn counters<const N: usize>(&self, names: [&str; N]) -> [u64; N] {
        let lines = self.sql(&format!("SHOW GLOBAL STATUS WHERE Variable_name IN ('{}')", names.join("','")));
        names.map(|name| {
            let value = lines.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('\t'));
            value.unwrap_or_else(|| panic!("no {name}: {lines}")).trim().parse().unwrap()
        })
    }

    /// `dbdyno-load` with a verb, its words and flags, on this server as root over the socket.
    pub fn load(&self, line: &str) -> Command {
        let mut command = dbdyno_load();
        command.args(line.split_whitespace()).args(["--no-defaults", "-uroot", "-S"]).arg(self.socket());
        command
    }

    /// `dbdyno-load slap` on this server as root over the socket.
    pub fn slap(&self, flags: &str) -> Command {
        slap_at(&self.socket(), flags)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Where servers have their data: in memory, if there is room, as each table they make or drop is forced to the disk.
fn place() -> &'static str {
    const IN_MEMORY: &str = "/dev/shm";
    const ROOM_BYTES: u64 = 2 << 30;
    let there = rustix::fs::statvfs(IN_MEMORY);
    let has_room = there.is_ok_and(|about| about.f_bavail * about.f_frsize >= ROOM_BYTES);
    if has_room { IN_MEMORY } else { "/tmp" }
}

fn spawn(folder: &Path, port: u16, arguments: &[String]) -> Child {
    let mut command = Command::new("mariadbd");
    command.args(common_arguments(folder));
    command.arg(format!("--socket={}", folder.join("s").display()));
    command.args([format!("--port={port}"), "--bind-address=127.0.0.1".into()]);
    // Nothing of a test outlasts its host, so that no byte has to reach the disk: a killed server's are in the kernel.
    command.args([
        "--innodb-flush-log-at-trx-commit=0",
        "--innodb-flush-method=nosync",
        "--skip-sync-frm",
        "--max-connections=1100",
        "--skip-log-bin",
        "--max-allowed-packet=64M",
    ]);
    command.args(arguments);
    let log = fs::File::create(folder.join("log")).unwrap();
    command.stdout(Stdio::null()).stderr(log).spawn().unwrap()
}

/// A datadir made once, to be copied.
fn template() -> Option<&'static Path> {
    static TEMPLATE: OnceLock<Option<PathBuf>> = OnceLock::new();
    TEMPLATE.get_or_init(install).as_deref()
}

fn install() -> Option<PathBuf> {
    for tool in ["mariadbd", "mariadb-install-db", "mariadb"] {
        if Command::new(tool).arg("--version").output().is_err() {
            eprintln!("skipped: {tool} is not installed");
            return None;
        }
    }
    // Made in /tmp, because the server's user may not pass through the folders above this checkout; kept in the build's
    // own folder, which outlives no build.
    let made = PathBuf::from(format!("/tmp/dbdyno-load-template-{}", std::process::id()));
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("mariadb-template");
    let _ = fs::remove_dir_all(&folder);
    let mut command = Command::new("mariadb-install-db");
    command.args(common_arguments(&made));
    command.args(["--auth-root-authentication-method=normal", "--skip-test-db"]);
    run(&mut command);
    run(Command::new("cp").arg("-a").arg(&made).arg(&folder));
    fs::remove_dir_all(&made).unwrap();
    Some(folder)
}

fn common_arguments(folder: &Path) -> Vec<String> {
    let mut arguments = vec![
        "--no-defaults".to_owned(),
        format!("--datadir={}", folder.display()),
        // A server that starts removes what it takes for its own old temporary tables there.
        format!("--tmpdir={}", folder.display()),
        "--innodb-log-file-size=8M".to_owned(),
    ];
    if rustix::process::getuid().is_root() {
        arguments.push(format!("--user={UNPRIVILEGED}"));
    }
    arguments
}

pub(crate) fn run(command: &mut Command) {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}{}", text(&output.stdout), text(&output.stderr));
}

/// `dbdyno-load` in a clean environment.
pub fn dbdyno_load() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dbdyno-load"));
    for name in ["MYSQL_PWD", "MYSQL_HOST", "MYSQL_TCP_PORT", "MYSQL_UNIX_PORT"] {
        command.env_remove(name);
    }
    command
}

/// `dbdyno-load slap` in a clean environment.
pub fn slap() -> Command {
    let mut command = dbdyno_load();
    command.arg("slap");
    command
}

/// `dbdyno-load slap` as root over a socket.
pub fn slap_at(socket: &Path, flags: &str) -> Command {
    let mut command = slap();
    command.args(["--no-defaults", "-uroot", "-S"]).arg(socket);
    command.args(flags.split_whitespace());
    command
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Runs to the end, which must have this exit code.
pub fn expect(command: &mut Command, code: i32) -> Output {
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(code), "{command:?}: {}", text(&output.stderr));
    output
}

/// Runs to the end; gives the exit code, the messages on stderr, and how long it took.
pub fn ended(command: &mut Command) -> (Option<i32>, String, Duration) {
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    waited_for(&mut child)
}

/// Does something that measures time, and again, a few times at most, if the host stood still meanwhile.
pub fn undisturbed<T>(mut act: impl FnMut() -> T) -> T {
    const LATE_MAX: Duration = Duration::from_millis(100);
    const STEP: Duration = Duration::from_millis(20);
    const ATTEMPTS: usize = 4;
    let mut attempt = || {
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            let witness = scope.spawn(|| {
                let mut longest = Duration::ZERO;
                while !is_over.load(Ordering::Relaxed) {
                    let start = Instant::now();
                    sleep(STEP);
                    longest = longest.max(start.elapsed());
                }
                longest
            });
            let done = catch_unwind(AssertUnwindSafe(&mut act));
            is_over.store(true, Ordering::Relaxed);
            let stood_still = witness.join().unwrap() > STEP + LATE_MAX;
            (done.unwrap_or_else(|panic| resume_unwind(panic)), stood_still)
        })
    };
    for _ in 1..ATTEMPTS {
        if let (done, false) = attempt() {
            return done;
        }
    }
    attempt().0
}

/// Waits for something that must come, however busy the host is.
pub fn wait_until(what: &str, mut come: impl FnMut() -> bool) {
    let start = Instant::now();
    while !come() {
        assert!(start.elapsed() < PATIENCE, "{what} did not come within {PATIENCE:?}");
        sleep(Duration::from_millis(10));
    }
}

/// The end of a program that runs; one that does not come is killed.
pub fn waited_for(child: &mut Child) -> (Option<i32>, String, Duration) {
    let start = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            let mut message = String::new();
            if let Some(stderr) = &mut child.stderr {
                stderr.read_to_string(&mut message).unwrap();
            }
            return (status.code(), message, start.elapsed());
        }
        if start.elapsed() > PATIENCE {
            let arguments = text(&fs::read(format!("/proc/{}/cmdline", child.id())).unwrap());
            child.kill().unwrap();
            child.wait().unwrap();
            panic!("no end within {PATIENCE:?}: {}", arguments.replace('\0', " "));
        }
        sleep(Duration::from_millis(10));
    }
}

pub fn json(path: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

fn seed() -> &'static str {
    static SEED: OnceLock<String> = OnceLock::new();
    SEED.get_or_init(|| std::env::var("DBDYNO_TEST_SEED").unwrap_or_else(|_| "1".to_owned()))
}

/// So many of the cases, in their order, for the test of that name.
pub fn drawn<T: Copy>(test: &str, cases: &[T], count: usize) -> Vec<T> {
    let count = if std::env::var_os("DBDYNO_TEST_LONG").is_some() { cases.len() } else { count };
    let mut places: Vec<usize> = (0..cases.len()).collect();
    places.sort_by_cached_key(|place| {
        let mut hasher = DefaultHasher::new();
        (seed(), test, place).hash(&mut hasher);
        hasher.finish()
    });
    places.truncate(count);
    places.sort_unstable();
    places.into_iter().map(|place| cases[place]).collect()
}
