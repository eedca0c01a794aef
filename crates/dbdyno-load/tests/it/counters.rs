//! What we count against what the server counts: no statement is lost, none counted twice, whatever happens.
//!
//! Also files and terminals that can't be written to, or not at once: nothing is measured in vain, and no client waits.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Cursor, Read};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use hdrhistogram::serialization::Deserializer;
use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use rustix::pipe::fcntl_setpipe_size;
use serde_json::Value;

use crate::common::fake_server::FakeServer;
use crate::common::{Server, drawn, ended, expect, json, slap_at, text, waited_for};

const WAYS: [&str; 4] = ["--io=epoll", "--io=epoll --io-threads=2", "--io=io_uring", "--io=io_uring --io-threads=2"];

const STATEMENTS: [&str; 6] = ["Com_insert", "Com_update", "Com_delete", "Com_do", "Com_begin", "Com_commit"];

/// How many more of each the server counts now.
fn more(server: &Server, before: [u64; 6]) -> BTreeMap<&'static str, u64> {
    let after = server.counters(STATEMENTS);
    STATEMENTS.into_iter().zip(after.iter().zip(before).map(|(after, before)| after - before)).collect()
}

/// Answers of one kind of statement.
fn answered(run: &Value, kind: &str) -> u64 {
    run["operations"][kind]["count"].as_u64().unwrap_or(0)
}

/// Errors of one kind of statement, or of all.
fn refused(run: &Value, kind: Option<&str>) -> u64 {
    let errors = run["errors"].as_array().unwrap().iter();
    let those = errors.filter(|error| kind.is_none_or(|kind| error["operation"] == kind));
    those.map(|error| error["count"].as_u64().unwrap()).sum()
}

#[test]
fn errors_count_once_and_beside_the_answers() {
    let Some(server) = Server::start() else { return };
    let path = server.file("r.json");
    for way in WAYS {
        let create = "CREATE TABLE t (a int primary key, n int);INSERT INTO t VALUES (1, 0)";
        let query = "INSERT INTO t VALUES (1, 0);UPDATE t SET n = n + 1;DO 1";
        let mut command = server.slap(&format!("-c 7 --number-of-queries=2100 --ignore-errors=1062 --no-drop {way}"));
        command.args(["--force", "--delimiter=;"]).arg(format!("--create={create}")).arg(format!("--query={query}"));
        let before = server.counters(STATEMENTS);
        let output = command.arg("--json").arg(&path).output().unwrap();
        let run = json(&path)["runs"][0].clone();
        assert_eq!(run["aborted"], Value::Null, "{way}: {}", text(&output.stderr));
        let more = more(&server, before);
        assert_eq!((run["queries"].as_u64(), refused(&run, None)), (Some(1400), 700), "{way}");
        assert_eq!((answered(&run, "insert"), refused(&run, Some("insert"))), (0, 700), "{way}");
        assert_eq!(run["errors"][0]["code"], 1062);
        // One more is that of --create.
        assert_eq!((more["Com_insert"], more["Com_update"], more["Com_do"]), (701, 700, 700), "{way}");
        assert_eq!(server.sql("SELECT n FROM mysqlslap.t").trim(), "700", "{way}");
    }
}

#[test]
fn transactions_with_deadlocks_agree_in_every_way() {
    let Some(server) = Server::start() else { return };
    let data = "--table-size=40 --rand-type=uniform";
    expect(&mut server.load(&format!("oltp write_only prepare {data}")), 0);
    let path = server.file("r.json");
    for way in drawn("transactions_with_deadlocks", &WAYS, 2) {
        for mode in ["auto", "disable"] {
            let line = format!("oltp write_only run {data} --threads=12 --events=800 --db-ps-mode={mode} {way}");
            let before = server.counters(STATEMENTS);
            expect(server.load(&line).arg("--json").arg(&path), 0);
            let more = more(&server, before);
            let run = json(&path)["runs"][0].clone();
            let both = |kind| answered(&run, kind) + refused(&run, Some(kind));
            assert_eq!(run["events"], 800, "{way} {mode}");
            assert_eq!(more["Com_update"], both("update_index") + both("update_non_index"), "{way} {mode}");
            assert_eq!((more["Com_delete"], more["Com_insert"]), (both("delete"), both("insert")), "{way} {mode}");
            assert_eq!((more["Com_begin"], more["Com_commit"]), (both("begin"), both("commit")), "{way} {mode}");
            assert_eq!(answered(&run, "commit"), 800, "{way} {mode}");
            let kinds: u64 = run["operations"].as_object().unwrap().keys().map(|kind| answered(&run, kind)).sum();
            assert_eq!(run["queries"], kinds, "{way} {mode}");
        }
    }
}

/// Kills the newest connection in `schema` every while, at most so many times and no longer than so; how many it
/// killed.
fn kill_newest(server: &Server, schema: &str, most: u64, lasting: Duration) -> u64 {
    let (began, mut killed) = (Instant::now(), 0);
    while killed < most && began.elapsed() < lasting {
        sleep(Duration::from_millis(100));
        let newest = format!("SELECT MAX(ID) FROM information_schema.PROCESSLIST WHERE DB = '{schema}'");
        // On a busy machine the connection that was killed before may still be listed.
        killed += u64::from(server.accepts(&format!("KILL {}", server.sql(&newest).trim())));
    }
    killed
}

#[test]
fn killed_connections_lose_one_statement_each() {
    let Some(server) = Server::start() else { return };
    let path = server.file("r.json");
    let flags = "-a --auto-generate-sql-load-type=write";
    for way in drawn("killed_connections", &WAYS, 1) {
        expect(&mut server.slap(&format!("{flags} --force --phase=prepare")), 0);
        let rows = || server.sql("SELECT COUNT(*) FROM mysqlslap.t1").trim().parse::<u64>().unwrap();
        let (rows_before, before) = (rows(), server.counters(STATEMENTS));
        let line = format!("{flags} --phase=run -c 5 --duration=3 --reconnect=10 {way}");
        let mut command = server.slap(&line);
        let mut child = command.arg("--json").arg(&path).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        server.answers(100);
        // The last one's reconnect has to fall into the run, however slow the machine.
        let kills = kill_newest(&server, "mysqlslap", 12, Duration::from_secs(1));
        assert!(kills > 0, "no connection could be killed");
        let (_, stderr, _) = waited_for(&mut child);
        let run = json(&path)["runs"][0].clone();
        assert_eq!(run["aborted"], Value::Null, "{way}: {stderr}");
        assert_eq!(run["reconnects"], kills, "{way}");
        let (done, lost) = (run["queries"].as_u64().unwrap(), refused(&run, None));
        assert_eq!(lost, kills, "{way}: {}", run["errors"]);
        // Of what was lost the server may have seen some, done some, or neither.
        let possible = done..=done + lost;
        let (seen, added) = (more(&server, before)["Com_insert"], rows() - rows_before);
        assert!(possible.contains(&seen), "{way}: {done} done and {lost} lost, the server saw {seen}");
        assert!(possible.contains(&added), "{way}: {done} done and {lost} lost, {added} rows came");
    }
}

/// What the standard base64 alphabet encodes, without its padding.
fn base64(text: &str) -> Vec<u8> {
    let alphabet = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let digits: Vec<u32> =
        text.bytes().filter_map(|byte| alphabet.iter().position(|known| *known == byte).map(|at| at as u32)).collect();
    let mut bytes = Vec::new();
    for four in digits.chunks(4) {
        let bits = four.iter().enumerate().fold(0, |bits, (at, digit)| bits | digit << (18 - 6 * at));
        bytes.extend(&bits.to_be_bytes()[1..four.len()]);
    }
    bytes
}

/// Samples by tag over all intervals of a histogram log.
fn logged(path: &Path) -> BTreeMap<String, u64> {
    let log = fs::read(path).unwrap();
    let mut counts = BTreeMap::new();
    for entry in IntervalLogIterator::new(&log) {
        if let LogEntry::Interval(interval) = entry.unwrap() {
            let bytes = base64(interval.encoded_histogram());
            let histogram = Deserializer::new().deserialize::<u64, _>(&mut Cursor::new(bytes)).unwrap();
            let tag = interval.tag().map_or("", |tag| tag.as_str()).to_owned();
            *counts.entry(tag).or_insert(0) += histogram.len();
        }
    }
    counts
}

/// Sums of the named columns over a series.
fn summed<const N: usize>(path: &Path, names: [&str; N]) -> [u64; N] {
    let series = fs::read_to_string(path).unwrap();
    let mut lines = series.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let header = lines.next().unwrap();
    let places = names.map(|name| header.iter().position(|column| *column == name).unwrap());
    let mut sums = [0; N];
    for line in lines {
        for (sum, place) in sums.iter_mut().zip(places) {
            *sum += line[place].parse::<u64>().unwrap();
        }
    }
    sums
}

#[test]
fn result_series_and_log_tell_the_same() {
    let Some(server) = Server::start() else { return };
    expect(&mut server.load("oltp read_write prepare --table-size=300"), 0);
    let (path, series, log) = (server.file("r.json"), server.file("s.csv"), server.file("h.hlog"));
    let key = "--auto-generate-sql-add-autoincrement --force";
    for way in drawn("result_series_and_log", &WAYS, 2) {
        for line in [
            format!("oltp read_write run --table-size=300 --threads=10 --time=400ms --interval=50ms {way}"),
            format!("slap -a {key} -c 10 --duration=400ms --interval=30ms --warmup=100ms --commit=7 {way}"),
            format!("slap -a {key} -c 4 --rate=3000 --duration=1 --interval=70ms --detach=50 {way}"),
        ] {
            let mut command = server.load(&line);
            expect(command.arg("--json").arg(&path).arg("--series").arg(&series).arg("--hlog").arg(&log), 0);
            let run = json(&path)["runs"][0].clone();
            let number = |name: &str| run[name].as_u64().unwrap();
            let [events, queries, rows, errors, reconnects] =
                summed(&series, ["events", "queries", "rows", "errors", "reconnects"]);
            assert!(queries > 0, "{line}");
            assert_eq!((events, queries, rows), (number("events"), number("queries"), number("rows")), "{line}");
            assert_eq!((errors, reconnects), (refused(&run, None), number("reconnects")), "{line}");
            let logged = logged(&log);
            for kind in run["operations"].as_object().unwrap().keys() {
                assert_eq!(logged.get(kind), Some(&answered(&run, kind)), "{line}: {kind}");
            }
            assert_eq!(logged.get(""), Some(&events), "{line}: events");
            assert_eq!(run["latency_ns"]["count"], events, "{line}");
        }
    }
}

fn load_of(server: &FakeServer, flags: &str) -> Command {
    let mut command = slap_at(server.socket(), flags);
    command.args(["--query=SELECT 'LOAD'", "--create-schema=x"]);
    command
}

#[test]
fn a_file_that_cannot_be_written_is_told_before_the_run() {
    let server = FakeServer::answering_all(|line, _| line.ok());
    for flag in ["--json", "--series", "--hlog", "--csv"] {
        let output = expect(&mut load_of(&server, &format!("--duration=60 {flag}=/nonexistent/file")), 2);
        assert!(text(&output.stderr).contains("/nonexistent/file: No such file"), "{flag}: {}", text(&output.stderr));
    }
    assert_eq!(server.queries(), 0);
}

#[test]
fn a_series_that_nobody_reads_for_a_while_holds_up_no_client() {
    let server = FakeServer::answering(|line, _| line.ok());
    let (pipe, result) = (server.socket().with_extension("pipe"), server.socket().with_extension("json"));
    mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    let (code, stderr, series, queries) = thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut file = fs::File::open(&pipe).unwrap();
            let pipe_bytes = fcntl_setpipe_size(&file, 4096).unwrap();
            // More lines than the pipe holds, and the run has ended before anybody reads them.
            sleep(Duration::from_secs(12));
            let (queries, mut series) = (server.queries(), String::new());
            file.read_to_string(&mut series).unwrap();
            (series, queries, pipe_bytes)
        });
        let mut command = load_of(&server, "-c 2 --duration=2 --interval=10ms --silent");
        command.arg("--series").arg(&pipe).arg("--json").arg(&result);
        let (code, stderr, _) = ended(&mut command);
        let (series, queries, pipe_bytes) = reader.join().unwrap();
        assert!(series.len() > 2 * pipe_bytes, "{series}");
        (code, stderr, series, queries)
    });
    let run = json(&result)["runs"][0].clone();
    for path in [pipe, result] {
        fs::remove_file(path).unwrap();
    }
    assert_eq!(code, Some(0), "{stderr}");
    // A client that was held up would have gone on once the series was read.
    assert_eq!(run["queries"], queries, "{run}");
    // One for each interval, below the names of the columns.
    assert!(series.lines().count() > 200, "{series}");
}

#[test]
fn a_reader_that_has_seen_enough_ends_no_run() {
    let server = FakeServer::answering(|line, _| line.ok());
    let series = server.socket().with_extension("csv");
    let mut command = load_of(&server, "--duration=1 --report-interval=50ms");
    command.arg("--series").arg(&series).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert!(line.starts_with("[ 0.1s ] thds: 1 tps:"), "{line}");
    let (code, stderr, _) = waited_for(&mut child);
    let lines = fs::read_to_string(&series).unwrap().lines().count();
    fs::remove_file(series).unwrap();
    assert_eq!((code, stderr.as_str()), (Some(0), ""));
    assert!(lines > 20, "{lines}");
}
