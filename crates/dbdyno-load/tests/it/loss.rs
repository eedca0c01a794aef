//! Servers that die, hang, come back or talk nonsense: a run ends soon, with what was measured and a clear cause.

use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};
use std::{fs, io};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::common::fake_server::{FakeServer, Greeting, Line, Query};
use crate::common::{PATIENCE, Server, drawn, ended, json, slap_at, wait_until, waited_for};

/// Ways to wait for one, for many and for shared connections.
const WAYS: [&str; 5] = [
    "--io=epoll -c 1",
    "--io=epoll -c 16",
    "--io=io_uring -c 1",
    "--io=io_uring -c 16",
    "--io=io_uring -c 16 --io-threads=2",
];

/// Most memory that a client of few connections may take, kB.
const MEMORY_MAX_KB: u64 = 200_000;

fn started(command: &mut Command) -> Child {
    command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
}

fn only_run(path: &std::path::Path) -> Value {
    json(path)["runs"][0].clone()
}

/// Most memory that a process has held so far, kB.
fn memory_max_kb(process: &Child) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", process.id())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.split_whitespace().next().unwrap().parse().unwrap()
}

fn load_of(server: &FakeServer, flags: &str) -> Command {
    let mut command = slap_at(server.socket(), flags);
    command.args(["--query=SELECT 'LOAD'", "--create-schema=x"]);
    command
}

/// Runs against a server that answers the load like this; gives exit code, stderr, and the run, if any.
fn run_against(
    flags: &str,
    answer: impl Fn(&mut Line, &Query) -> io::Result<()> + Send + Sync + 'static,
) -> (Option<i32>, String, Value) {
    let server = FakeServer::answering(answer);
    let path = server.socket().with_extension("json");
    let (code, stderr, _) = ended(load_of(&server, flags).arg("--json").arg(&path));
    let run = if path.exists() { only_run(&path) } else { Value::Null };
    let _ = fs::remove_file(path);
    (code, stderr, run)
}

#[test]
fn a_killed_server_ends_the_run() {
    let Some(mut server) = Server::start() else { return };
    let path = server.file("r.json");
    for way in WAYS {
        let mut command = server.slap(&format!("-a --duration=600 --auto-generate-sql-load-type=write {way}"));
        let mut child = started(command.arg("--json").arg(&path));
        server.answers(1000);
        server.kill();
        let (code, stderr, _) = waited_for(&mut child);
        assert_eq!(code, Some(1), "{way}: {stderr}");
        let socket = server.socket();
        assert!(stderr.contains(&format!("lost the connection to socket {}", socket.display())), "{way}: {stderr}");
        let run = only_run(&path);
        assert!(run["queries"].as_u64().unwrap() > 0, "{way}");
        assert!(run["aborted"].as_str().unwrap().contains("lost the connection"), "{way}");
        server.start_again();
        server.sql("DROP SCHEMA mysqlslap");
    }
}

#[test]
fn a_frozen_server_counts_as_dead_after_a_while() {
    let Some(server) = Server::start() else { return };
    let signal = |signal| kill_process(Pid::from_child(&server.process), signal).unwrap();
    for way in WAYS {
        let mut command = server.slap(&format!("-a --force --duration=600 --stall-timeout=1 {way}"));
        let mut child = started(&mut command);
        server.answers(1000);
        signal(Signal::STOP);
        let (code, stderr, took) = waited_for(&mut child);
        signal(Signal::CONT);
        assert_eq!(code, Some(1), "{way}: {stderr}");
        assert!(took > Duration::from_millis(800), "{way}: {took:?}");
        assert!(stderr.contains("answered no client for 1 s"), "{way}: {stderr}");
    }
}

#[test]
fn a_run_goes_on_when_the_server_is_back() {
    let Some(mut server) = Server::start() else { return };
    let path = server.file("r.json");
    for (way, clients) in [("--io=epoll -c 1", 1), ("--io=epoll -c 8", 8), ("--io=io_uring -c 8 --io-threads=2", 8)] {
        let flags = format!("-a --force --duration=600 --auto-generate-sql-load-type=write --reconnect=30s {way}");
        let series = server.file("s.csv");
        let mut command = server.slap(&flags);
        let mut child = started(command.arg("--json").arg(&path).arg("--series").arg(&series));
        server.answers(1000);
        server.kill();
        server.start_again();
        let connected = "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE DB = 'mysqlslap'";
        wait_until("a connection of each client", || server.sql(connected).trim() == clients.to_string());
        server.answers(1000);
        kill_process(Pid::from_child(&child), Signal::INT).unwrap();
        let (code, stderr, _) = waited_for(&mut child);
        let run = only_run(&path);
        assert_eq!((code, &run["reconnects"]), (Some(130), &Value::from(clients)), "{way}: {stderr}");
        let lost: u64 = run["errors"].as_array().unwrap().iter().map(|error| error["count"].as_u64().unwrap()).sum();
        assert_eq!(lost, clients, "{way}: each client lost what was in flight: {}", run["errors"]);
        // It went on: the last interval has queries.
        let rows = fs::read_to_string(series).unwrap();
        let at = rows.lines().next().unwrap().split(',').position(|name| name == "queries").unwrap();
        let last_row = rows.lines().last().unwrap().split(',').nth(at).unwrap();
        assert!(last_row.parse::<u64>().unwrap() > 0, "{way}: {rows}");
    }
}

#[test]
fn a_server_that_does_not_come_back_is_waited_for_as_long_as_asked() {
    for way in ["--io=epoll -c 1", "--io=io_uring -c 8"] {
        let Some(mut server) = Server::start() else { return };
        let path = server.file("r.json");
        let mut command = server.slap(&format!("-a --duration=600 --reconnect=2s {way}"));
        let mut child = started(command.arg("--json").arg(&path));
        server.answers(1000);
        server.kill();
        let (code, stderr, took) = waited_for(&mut child);
        assert_eq!(code, Some(1), "{way}: {stderr}");
        assert!(took > Duration::from_millis(1500), "{way}: {took:?}");
        assert!(
            stderr.contains("got no new connection") && stderr.contains("cannot connect to socket"),
            "{way}: {stderr}"
        );
        assert!(only_run(&path)["queries"].as_u64().unwrap() > 0);
    }
}

#[test]
fn an_interrupt_ends_waiting_for_a_server() {
    let Some(mut server) = Server::start() else { return };
    let mut child = started(&mut server.slap("-a --duration=600 --reconnect=60s -c 4"));
    server.answers(1000);
    server.kill();
    sleep(Duration::from_millis(500));
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let (code, stderr, _) = waited_for(&mut child);
    assert_eq!(code, Some(130), "{stderr}");
}

#[test]
fn a_server_that_never_answers_is_given_up() {
    for way in WAYS {
        let start = Instant::now();
        let flags = format!("--duration=600 --stall-timeout=1 {way}");
        let (code, stderr, run) = run_against(&flags, |_, _| {
            sleep(2 * PATIENCE);
            Ok(())
        });
        assert_eq!(code, Some(1), "{way}: {stderr}");
        // For 1 s, or more where the host stood still.
        assert!(stderr.contains("answered no client for "), "{way}: {stderr}");
        assert_eq!(run["queries"], 0, "{way}");
        assert!(start.elapsed() > Duration::from_secs(1));
    }
}

/// What a server may do to a reply, and what is said of it.
type Mischief = (&'static str, fn(&mut Line) -> io::Result<()>, &'static str);

const MISCHIEF: [Mischief; 8] = [
    ("closes at once", Line::close, "lost the connection"),
    ("closes amid a header", |line| line.raw(&[1, 0]).and_then(|()| line.close()), "lost the connection"),
    ("closes amid a packet", |line| line.raw(&[9, 0, 0, 1, 0]).and_then(|()| line.close()), "lost the connection"),
    ("closes amid rows", |line| half(line).and_then(|()| line.close()), "lost the connection"),
    (
        "counts wrongly",
        |line| {
            line.skip_a_number();
            line.ok()
        },
        "out of sequence",
    ),
    (
        "says too much",
        |line| {
            let bytes = [line.result(1), vec![1, 0, 0, 0, 0]].concat();
            line.raw(&bytes)
        },
        "after the end of a reply",
    ),
    ("sends an empty packet", |line| line.packet(&[]), "broke the protocol"),
    ("asks for a file", |line| line.packet(b"\xfb/etc/passwd"), "local file"),
];

fn half(line: &mut Line) -> io::Result<()> {
    let head = line.head();
    let row = line.framed(b"\x05value");
    line.raw(&[head, row].concat())
}

#[test]
fn a_connection_that_nobody_needs_any_more_may_be_lost() {
    for way in ["--io=epoll", "--io=io_uring", "--io=io_uring --io-threads=2", "--reconnect=5"] {
        // Each client has one thing to say; the first loses its connection while the other waits for an answer.
        let flags = format!("-c 2 --number-of-queries=2 {way}");
        let (code, stderr, run) = run_against(&flags, |line, query| {
            if query.number == 0 {
                return line.ok().and_then(|()| line.close());
            }
            sleep(Duration::from_millis(300));
            line.ok()
        });
        assert_eq!((code, &run["queries"], &run["reconnects"]), (Some(0), &2.into(), &0.into()), "{way}: {stderr}");
    }
}

#[test]
fn nonsense_ends_the_run_with_its_cause() {
    for (what, mischief, cause) in MISCHIEF {
        for way in WAYS {
            // Some queries are answered well before.
            let flags = format!("--duration=600 --stall-timeout=5 {way}");
            let (code, stderr, run) =
                run_against(&flags, move |line, query| if query.number < 100 { line.rows(2) } else { mischief(line) });
            assert_eq!(code, Some(1), "{what}, {way}: {stderr}");
            assert!(stderr.contains(cause) && !stderr.contains("panicked"), "{what}, {way}: {stderr}");
            let queries = run["queries"].as_u64().unwrap();
            // Replies in flight at that moment may or may not be read.
            assert!((84..=100).contains(&queries), "{what}, {way}: {queries}");
        }
    }
}

#[test]
fn nonsense_with_reconnect_ends_at_the_deadline() {
    for (what, mischief, _) in &MISCHIEF[..4] {
        let mischief = *mischief;
        let flags = "--duration=1 --reconnect=10 --stall-timeout=5 -c 4 --max-errors=1000000";
        let (_, stderr, run) = run_against(flags, move |line, query| {
            sleep(Duration::from_millis(2));
            if query.number % 50 < 48 { line.rows(2) } else { mischief(line) }
        });
        assert!(!stderr.contains("panicked"), "{what}: {stderr}");
        assert!(run["reconnects"].as_u64().unwrap() > 4, "{what}: {stderr} {}", run["reconnects"]);
        assert!(run["queries"].as_u64().unwrap() > 100, "{what}");
    }
}

#[test]
fn replies_may_come_byte_by_byte() {
    for way in ["--io=epoll -c 1", "--io=epoll -c 4", "--io=io_uring -c 4"] {
        let flags = format!("--number-of-queries=20 {way}");
        let (code, stderr, run) = run_against(&flags, |line, _| {
            for byte in line.result(2) {
                line.raw(&[byte])?;
                sleep(Duration::from_micros(100));
            }
            Ok(())
        });
        assert_eq!(code, Some(0), "{way}: {stderr}");
        assert_eq!((&run["queries"], &run["errors"]), (&20.into(), &Value::Array(vec![])), "{way}");
    }
}

/// Rows until the client leaves; counts their bytes.
fn endless(line: &mut Line, sent_bytes: &AtomicU64) -> io::Result<()> {
    let head = line.head();
    line.raw(&head)?;
    // Numbers of packets begin anew after 256.
    let rows: Vec<u8> = (0..256).flat_map(|_| line.framed(&[b'\xc8'; 201])).collect();
    loop {
        line.raw(&rows)?;
        sent_bytes.fetch_add(rows.len() as u64, Ordering::Relaxed);
    }
}

#[test]
fn rows_without_end_take_no_memory_and_can_be_interrupted() {
    for way in drawn("rows_without_end", &WAYS, 2) {
        let sent_bytes = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&sent_bytes);
        let server = FakeServer::answering(move |line, _| endless(line, &counted));
        let mut child = started(&mut load_of(&server, &format!("--duration=600 {way}")));
        // If they were kept, they would take three times what is allowed.
        wait_until("rows", || sent_bytes.load(Ordering::Relaxed) > 3 * 1024 * MEMORY_MAX_KB);
        let memory = memory_max_kb(&child);
        assert!(memory < MEMORY_MAX_KB, "{way}: {memory} kB");
        kill_process(Pid::from_child(&child), Signal::INT).unwrap();
        let (code, stderr, _) = waited_for(&mut child);
        assert_eq!(code, Some(130), "{way}: {stderr}");
    }
}

#[test]
fn rows_without_end_do_not_outlast_the_run_for_ever() {
    for way in ["--io=epoll -c 1", "--io=io_uring -c 4"] {
        let flags = format!("--duration=300ms --stall-timeout=1 {way}");
        let (code, stderr, run) = run_against(&flags, |line, _| endless(line, &AtomicU64::new(0)));
        assert_eq!(code, Some(1), "{way}: {stderr}");
        assert_eq!(run["queries"], 0, "{way}");
    }
}

#[test]
fn a_server_may_be_hostile_from_the_start() {
    const GREETINGS: [(&str, Greeting); 5] = [
        ("silent", Greeting::Bytes(b"")),
        ("http", Greeting::Bytes(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n")),
        ("zeros", Greeting::Bytes(&[0; 64])),
        ("cut short", Greeting::Bytes(b"\x20\0\0\0\x0a8.0.99\0")),
        ("dripping", Greeting::Dripping),
    ];
    for (what, greeting) in GREETINGS {
        let server = FakeServer::greeting(greeting);
        let mut command = load_of(&server, "--duration=1 -c 4 --connect-timeout=1");
        let (code, stderr, _) = ended(&mut command);
        assert_eq!(code, Some(1), "{what}: {stderr}");
        assert!(stderr.contains(&server.socket().display().to_string()), "{what}: {stderr}");
        assert!(!stderr.contains("panicked") && stderr.lines().count() == 1, "{what}: {stderr}");
    }
}

#[test]
fn what_is_asked_around_the_load_has_bounds_too() {
    let server = FakeServer::answering_all(|line, query| {
        if query.sql.starts_with("SELECT") { endless(line, &AtomicU64::new(0)) } else { line.ok() }
    });
    let mut child = started(&mut slap_at(server.socket(), "-a"));
    wait_until("a query", || server.queries() > 0);
    sleep(Duration::from_millis(500));
    let memory = memory_max_kb(&child);
    assert!(memory < 2 * MEMORY_MAX_KB, "{memory} kB");
    let (code, stderr, _) = waited_for(&mut child);
    assert_eq!(code, Some(1), "{stderr}");
    assert!(stderr.contains("a reply that is too long"), "{stderr}");
}

#[test]
fn an_interrupt_ends_rows_that_nobody_wanted() {
    let server = FakeServer::answering_all(|line, _| endless(line, &AtomicU64::new(0)));
    let mut child = started(&mut slap_at(server.socket(), "-a"));
    wait_until("a query", || server.queries() > 0);
    sleep(Duration::from_millis(500));
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let (code, stderr, _) = waited_for(&mut child);
    assert_eq!(code, Some(130), "{stderr}");
}
