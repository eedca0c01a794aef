use std::sync::Arc;
use std::time::Duration;

use super::super::result::Clock;
use super::*;
use crate::clock::Cpu;
use crate::measure::Gauges;
use crate::run_options::Spacing;
use crate::run_plan::Plan;
use crate::share::Share;
use crate::statements::Kind;
use crate::statements::Statement;

fn run(seconds: u64, engine: Option<&str>) -> RunResult {
    let mut tally = Tally { kinds: vec![Latencies::default(); 2], ..Tally::default() };
    for _ in 0..9 {
        tally.kinds[usize::from(Statement::alone(0).kind)].record(2_000_000);
        tally.events.record(2_000_000);
    }
    RunResult {
        plan: Plan {
            verb: "slap",
            number: 0,
            iteration: 1,
            step: 0,
            clients: 3,
            share: Share::ALL,
            first_client: 0,
            clients_of_all: 3,
            pace: Loop::Closed { think: Duration::ZERO, spacing: Spacing::Fixed },
            engine_asked: engine.map(str::to_owned),
            engine: Some("InnoDB".into()),
            duration: None,
            events: None,
            queries_planned: Some(9),
            queries_dropped: 1,
        },
        load: "write".into(),
        kinds: Arc::new([Kind::query("insert"), Kind::apart("commit")]),
        warmup_queries: 0,
        warmup_steady: None,
        tally,
        gauges: Gauges::default(),
        lateness: Latencies::default(),
        behind: Latencies::default(),
        particulars: None,
        errors: Vec::new(),
        phases: Vec::new(),
        aborted: None,
        clock: Clock {
            source: "CLOCK_MONOTONIC",
            start_asked_ns: None,
            measure_start_ns: 5,
            measure_end_ns: 5 + seconds * 1_000_000_000,
            connect_ns: 1,
            warmup_ns: 0,
        },
        cpu: Cpu { user_us: 9, sys_us: 18 },
        threads: Vec::new(),
        network: None,
        io: "epoll",
        io_note: None,
        io_threads: 1,
        server_version: "10.11".into(),
    }
}

#[test]
fn the_block_is_that_of_mysqlslap_and_more() {
    let text = block(&[run(1, Some("innodb")), run(3, Some("innodb"))]);
    let expected = "Benchmark
\tRunning for engine innodb
\tAverage number of seconds to run all queries: 2.000 seconds
\tMinimum number of seconds to run all queries: 1.000 seconds
\tMaximum number of seconds to run all queries: 3.000 seconds
\tNumber of clients running queries: 3
\tAverage number of queries per client: 3
\tQueries left out, as they do not divide among the clients: 1
\tQueries per second: 4.5
\tLatency p50 / p95 / p99 / max: 2.000 / 2.000 / 2.000 / 2.000 ms
\tClient CPU user / sys: 0.000 / 0.000 s (3.0 us per query)

";
    assert_eq!(text, expected);
}

#[test]
fn the_csv_line_is_that_of_mysqlslap() {
    assert_eq!(csv_line(&[run(1, None), run(2, None)]), ",write,1.500,1.000,2.000,3,3\n");
}

#[test]
fn an_open_loop_tells_of_its_queue() {
    let mut overloaded = run(2, None);
    overloaded.plan.pace = Loop::Open { rate: 100.0, spacing: Spacing::Fixed };
    overloaded.gauges = Gauges { offered: 200, backlog: 191, backlog_max: 191, offered_for_ns: 1_600_000_000 };
    overloaded.lateness.record(50_000);
    let text = summary(&overloaded);
    for said in [
        "slap write: 3 clients, open loop, 100 events per second offered (epoll, 1 thread)",
        "offered                200 (125.00 per second)",
        "started late by        0.050 / 0.050 / 0.050 ms (p50 / p99 / max)",
        "queue                  191 at the end, 191 at most\n                           what never started is in no latency",
        "events                 9 (4.50 per second)",
    ] {
        assert!(text.contains(said), "{said}\n{text}");
    }
    overloaded.gauges.backlog = 3;
    let text = summary(&overloaded);
    assert!(!text.contains("never started"), "no more than there are clients: {text}");
}
