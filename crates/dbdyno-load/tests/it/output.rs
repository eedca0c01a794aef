//! Files and terminals that can't be written to, or not at once: nothing is measured in vain, and no client waits.
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};
use std::thread::{self, sleep};
use std::time::Duration;

use crate::common::fake_server::FakeServer;
use crate::common::{ended, expect, json, slap_at, text, waited_for};
use rustix::fs::{CWD, FileType, Mode, mknodat};

fn load_of(server: &FakeServer, flags: &str) -> Command {
    let mut command = slap_at(server.socket(), flags);
    command.args(["--query=SELECT 'LOAD'", "--create-schema=x"]);
    command
}

#[test]
fn a_file_that_cannot_be_written_is_told_before_the_run() {
    let server = FakeServer::answering_all(|line, _| line.ok());
    for flag in ["--json", "--series", "--hlog", "--csv"] {
        let output = expect(&mut load_of(&server, &format!("--duration=60 {flag}=/nonexistent/file")), 1);
        assert!(text(&output.stderr).contains("/nonexistent/file: No such file"), "{flag}: {}", text(&output.stderr));
    }
    assert_eq!(server.queries(), 0);
}

#[test]
fn a_series_that_nobody_reads_for_a_while_holds_up_no_client() {
    const PAUSE: Duration = Duration::from_secs(12);
    let server = FakeServer::answering(|line, _| line.ok());
    let (pipe, result) = (server.socket().with_extension("pipe"), server.socket().with_extension("json"));
    mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    let reader = thread::spawn({
        let pipe = pipe.clone();
        move || {
            let mut file = fs::File::open(pipe).unwrap();
            sleep(PAUSE);
            let mut series = String::new();
            file.read_to_string(&mut series).unwrap();
            series
        }
    });
    // More lines than the pipe holds, and the run ends before anybody reads them.
    let mut command = load_of(&server, "-c 2 --duration=2 --interval=10ms --silent");
    command.arg("--series").arg(&pipe).arg("--json").arg(&result);
    let (code, said, _) = ended(&mut command);
    let series = reader.join().unwrap();
    let run = json(&result)["runs"][0].clone();
    for path in [pipe, result] {
        fs::remove_file(path).unwrap();
    }
    assert_eq!(code, Some(0), "{said}");
    assert!(run["seconds_real"].as_f64().unwrap() < PAUSE.as_secs_f64() / 2.0, "{run}");
    assert!(u128::from(run["latency_ns"]["max"].as_u64().unwrap()) < PAUSE.as_nanos() / 2, "{run}");
    let lines = series.lines().count();
    assert!((201..=202).contains(&lines), "{lines}");
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
    let (code, said, _) = waited_for(&mut child);
    let lines = fs::read_to_string(&series).unwrap().lines().count();
    fs::remove_file(series).unwrap();
    assert_eq!((code, said.as_str()), (Some(0), ""));
    assert!(lines > 20, "{lines}");
}
