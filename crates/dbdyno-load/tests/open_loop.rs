//! The open loop against a server that stalls: what is reported must be the arithmetic of intended starts.
#![allow(clippy::unwrap_used, clippy::doc_markdown, reason = "in a test a failure is a panic")]

#[path = "it/common/mod.rs"]
mod common;

use std::thread::sleep;
use std::time::{Duration, Instant};

use common::fake_server::{FakeServer, Stalls};
use common::{json, slap_at, text, undisturbed};
use serde_json::Value;

const RATE: u32 = 1000;

/// A tenth of the time, as 1 s in every 10.
const STALLS: Stalls =
    Stalls { first: Duration::from_millis(1800), period: Duration::from_secs(4), length: Duration::from_millis(400) };

/// Runs one statement over and over with these flags; gives the only run of the result.
fn run(server: &FakeServer, flags: &str) -> Value {
    let runs = runs(server, flags);
    assert_eq!(runs.len(), 1);
    runs[0].clone()
}

fn runs(server: &FakeServer, flags: &str) -> Vec<Value> {
    undisturbed(|| {
        server.forget();
        runs_once(server, flags)
    })
}

fn runs_once(server: &FakeServer, flags: &str) -> Vec<Value> {
    let path = server.socket().with_extension("json");
    let mut command = slap_at(server.socket(), flags);
    command.args(["--query=SELECT 'LOAD'", "--create-schema=x", "--silent"]).arg("--json").arg(&path);
    let output = command.output().unwrap();
    assert!(path.exists(), "{}", text(&output.stderr));
    let result = json(&path);
    std::fs::remove_file(path).unwrap();
    result["runs"].as_array().unwrap().clone()
}

fn number(run: &Value, name: &str) -> f64 {
    run[name].as_f64().unwrap_or_else(|| panic!("{name} is {}", run[name]))
}

fn count(run: &Value, name: &str) -> u64 {
    run[name].as_u64().unwrap_or_else(|| panic!("{name} is {}", run[name]))
}

/// A percentile of the run's latencies, in milliseconds.
fn latency_ms(run: &Value, name: &str) -> f64 {
    number(&run["latency_ns"], name) / 1e6
}

fn assert_within(actual: f64, expected: f64, share: f64, what: &str) {
    assert!(is_within(actual, expected, share), "{what}: {actual}, and not {expected}");
}

fn is_within(actual: f64, expected: f64, share: f64) -> bool {
    (actual - expected).abs() <= share * expected
}

/// A run whose percentiles of latency, in ms, are these within 5 %. On a machine that others use, server and client may
/// have to wait for a processor, so there are some attempts; a run that reports other times fails in all of them.
fn run_that_tells(expected: &[(&str, f64)], server: &FakeServer, flags: &str) -> Value {
    const ATTEMPTS: usize = 4;
    let mut reported = Vec::new();
    for _ in 0..ATTEMPTS {
        let run = run(server, flags);
        if expected.iter().all(|(name, ms)| is_within(latency_ms(&run, name), *ms, 0.05)) {
            return run;
        }
        reported.push(run["latency_ns"].clone());
    }
    panic!("{expected:?} ms expected, {reported:?} ns reported");
}

/// Latencies in ms of events due every 1/RATE s for `seconds`, of which those in a stall wait for its end; sorted.
fn arithmetic_ms(seconds: u32) -> Vec<f64> {
    let due = (0..seconds * RATE).map(|number| Duration::from_secs(number.into()) / RATE);
    let mut latencies: Vec<f64> = due.map(|at| STALLS.left(at).as_secs_f64() * 1e3).collect();
    latencies.sort_by(f64::total_cmp);
    latencies
}

#[test]
fn a_stall_is_told_to_all_who_were_due_in_it() {
    let expected = arithmetic_ms(8);
    let p99 = expected[expected.len() * 99 / 100 - 1];
    let max = expected[expected.len() - 1];
    assert!((355.0..365.0).contains(&p99) && (399.0..401.0).contains(&max), "{p99} {max}");
    for io in ["io_uring --io-threads=1", "epoll --io-threads=2"] {
        let server = FakeServer::answering(|line, query| {
            STALLS.sit_out(query.at);
            line.rows(1)
        });
        let flags = format!("-c 32 --rate={RATE} --arrivals=fixed --duration=8 --io={io}");
        let run = run_that_tells(&[("p99", p99), ("max", max)], &server, &flags);
        assert!(latency_ms(&run, "p50") < 20.0, "{}", latency_ms(&run, "p50"));
        assert_eq!((&run["offered"], &run["events"]), (&8000.into(), &8000.into()));
        assert_within(number(&run, "offered_per_second"), RATE.into(), 0.01, "offered");
        assert_within(number(&run, "achieved_per_second"), RATE.into(), 0.05, "achieved");
        assert_eq!(run["backlog_end"], 0);
        // 400 were due in a stall, and 32 of them were in flight.
        assert_within(number(&run, "backlog_max"), 400.0 - 32.0, 0.05, "backlog");
        assert_eq!(server.queries(), 8000);
        let pace = &run["loop"];
        assert_eq!((&pace["kind"], &pace["spacing"]), (&"open".into(), &"fixed".into()));
    }
}

#[test]
fn a_closed_loop_hides_the_same_stall() {
    let server = FakeServer::answering(|line, query| {
        STALLS.sit_out(query.at);
        line.rows(1)
    });
    let run = run_that_tells(&[("max", 400.0)], &server, "-c 1 --duration=4");
    assert!(latency_ms(&run, "p99") < 20.0, "{}", latency_ms(&run, "p99"));
    assert_eq!(run["loop"]["kind"], "closed");
    assert_eq!((&run["offered"], &run["backlog_end"]), (&Value::Null, &Value::Null));
}

#[test]
fn fixed_arrivals_are_as_many_as_the_rate_says_and_exponential_ones_vary() {
    let offered = |flags: &str| {
        let server = FakeServer::answering(|line, _| line.ok());
        let run = run(&server, &format!("-c 8 --rate=200 --duration=1 {flags}"));
        assert_eq!((count(&run, "offered"), server.queries()), (count(&run, "events"), count(&run, "events")));
        count(&run, "offered")
    };
    assert_eq!([1, 2, 3].map(|seed| offered(&format!("--arrivals=fixed --seed={seed}"))), [200; 3]);
    let varied = [1, 2, 3].map(|seed| offered(&format!("--arrivals=poisson --seed={seed}")));
    assert!(varied.iter().any(|count| *count != varied[0]), "{varied:?}");
}

#[test]
fn the_mean_rate_is_the_one_asked_for() {
    for threads in [1, 3] {
        let server = FakeServer::answering(|line, _| line.ok());
        let run = run(&server, &format!("-c 32 --rate=4000 --duration=5 --io-threads={threads}"));
        // 20,000 and a standard deviation of 141: four of them.
        let events = count(&run, "events");
        assert_within(count(&run, "offered") as f64, 20_000.0, 0.0283, "offered");
        assert_eq!(server.queries(), events);
    }
}

#[test]
fn a_run_bounded_by_time_lasts_as_long_though_nothing_is_due_any_more() {
    let server = FakeServer::answering(|line, _| line.ok());
    for way in ["--io=epoll", "--io=io_uring --io-threads=2"] {
        // The last is due after half a second.
        let run = run(&server, &format!("-c 2 --rate=2 --arrivals=fixed --duration=1 {way}"));
        assert_eq!((&run["offered"], &run["events"]), (&2.into(), &2.into()), "{way}");
        assert_within(number(&run, "seconds_real"), 1.0, 0.5, way);
        assert_within(number(&run, "offered_per_second"), 2.0, 0.5, way);
    }
}

#[test]
fn the_same_seed_gives_the_same_arrivals() {
    let offered = |seed: u32| {
        let server = FakeServer::answering(|line, _| line.ok());
        run(&server, &format!("-c 4 --rate=500 --duration=1 --seed={seed}"))["offered"].clone()
    };
    assert_eq!(offered(7), offered(7));
    let counts: Vec<Value> = (1..6).map(offered).collect();
    assert!(counts.iter().any(|count| *count != counts[0]), "{counts:?}");
}

#[test]
fn more_than_the_server_can_do_is_reported_as_a_backlog() {
    const SERVICE: Duration = Duration::from_millis(10);
    for threads in [1, 2] {
        let server = FakeServer::answering(|line, _| {
            sleep(SERVICE);
            line.ok()
        });
        let start = Instant::now();
        let flags = format!("-c 4 --rate=4000 --arrivals=fixed --duration=3 --io-threads={threads}");
        let run = run(&server, &flags);
        // What waits is not worked off behind the deadline.
        assert!(start.elapsed() < SERVICE * 12_000 / 4, "{:?}", start.elapsed());
        assert_eq!(run["offered"], 12_000);
        let events = count(&run, "events");
        // Four clients at 10 ms and a little more each: 400 a second at best.
        assert!((4..=1204).contains(&events), "{events}");
        assert!(number(&run, "achieved_per_second") < 0.15 * number(&run, "offered_per_second"));
        assert_eq!(count(&run, "backlog_end"), 12_000 - events);
        // After the last was due, each client may have taken one more.
        let more = count(&run, "backlog_max") - count(&run, "backlog_end");
        assert!(more <= 4, "{more}");
        assert_eq!(server.queries(), events);
        // The event that starts last was due when the clients had done so many: it waited for the rest of the time.
        let waited_ms = (12_000 - events) as f64 / 4.0;
        assert_within(latency_ms(&run, "max"), waited_ms, 0.05, "max");
    }
}

#[test]
fn the_rate_is_kept_after_a_warm_up_and_bounded_by_events() {
    let server = FakeServer::answering(|line, _| line.ok());
    let run = run(&server, "-c 4 --rate=1000 --arrivals=fixed --number-of-queries=1500 --warmup=500ms");
    assert_eq!((&run["events"], &run["offered"]), (&1500.into(), &1500.into()));
    assert_within(number(&run, "seconds_real"), 1.5, 0.3, "seconds");
    let warm = count(&run, "warmup_queries");
    assert_within(warm as f64, 500.0, 0.1, "warm-up");
    assert_eq!(server.queries(), 1500 + warm);
}

#[test]
fn a_warm_up_until_steady_ends_when_the_rate_is_or_at_its_bound() {
    // By its very rate the first is steady as soon as one can be; of the second no event ends but the first of each.
    for (flags, steady) in [("--rate=400 --arrivals=fixed", true), ("--think-time=1h", false)] {
        let server = FakeServer::answering(|line, _| line.ok());
        let flags = format!("-c 4 --io-threads=2 {flags} --duration=100ms --warmup=steady --warmup-max=8");
        let run = run(&server, &flags);
        assert_eq!(run["warmup_steady"], steady, "{flags}");
        let seconds = run["clock"]["warmup_ns"].as_u64().unwrap() as f64 / 1e9;
        assert!((6.0..=7.9).contains(&seconds) == steady && seconds < 30.0, "{flags}: {seconds} s");
    }
}

#[test]
fn the_rate_is_kept_over_lost_connections() {
    for way in ["--io=epoll", "--io=io_uring --io-threads=2"] {
        let server =
            FakeServer::answering(|line, query| if query.number % 50 == 49 { line.close() } else { line.ok() });
        let flags = format!("-c 8 --rate=1000 --arrivals=fixed --duration=2 --reconnect=5 {way}");
        let run = run(&server, &flags);
        assert_eq!((&run["aborted"], &run["offered"]), (&Value::Null, &2000.into()), "{way}");
        let lost: u64 = run["errors"].as_array().unwrap().iter().map(|error| error["count"].as_u64().unwrap()).sum();
        assert_eq!(lost, server.queries() / 50, "{way}");
        assert_eq!(count(&run, "events") + lost + count(&run, "backlog_end"), 2000, "{way}");
        // A connection lost at the end is not replaced any more.
        assert!(lost - count(&run, "reconnects") <= 8, "{way}: {lost} {}", run["reconnects"]);
    }
}

#[test]
fn each_step_of_a_ramp_is_a_run() {
    let server = FakeServer::answering(|line, _| line.ok());
    let steps = runs(&server, "-c 4 --rate=100,300,0 --arrivals=fixed --duration=500ms");
    assert_eq!(steps.iter().map(|run| run["offered"].as_u64()).collect::<Vec<_>>(), [Some(50), Some(150), None]);
    let clients = runs(&server, "-c 1,3,2 --duration=100ms");
    assert_eq!(clients.iter().map(|run| count(run, "clients")).collect::<Vec<_>>(), [1, 3, 2]);
}

#[test]
fn clients_that_think_pause_between_events() {
    let server = FakeServer::answering(|line, _| line.ok());
    let flags = "-c 4 --think-time=20ms --think-distribution=fixed --duration=2";
    let fixed = run(&server, flags);
    // At best one at the start and one after each pause.
    let events = count(&fixed, "events");
    assert!((320..=404).contains(&events), "{events}");
    assert_eq!((&fixed["loop"]["kind"], &fixed["loop"]["think_seconds"]), (&"closed".into(), &0.02.into()));
    // What is thought is no latency.
    assert!(latency_ms(&fixed, "p50") < 5.0, "{}", fixed["latency_ns"]);
    let random = count(&run(&server, "-c 4 --think-time=20ms --duration=2"), "events");
    // 400 and a standard deviation of 20, less what the events take.
    assert!((300..=480).contains(&random), "{random}");
}
