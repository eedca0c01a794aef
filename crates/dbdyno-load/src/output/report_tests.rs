use super::super::result::Clock;
use super::*;
use crate::clock::Cpu;

fn run(seconds: u64, engine: Option<&str>) -> RunResult {
    let mut operations: [Latencies; 6] = Default::default();
    for _ in 0..9 {
        operations[Operation::Insert as usize].record(2_000_000);
    }
    RunResult {
        kind: "slap",
        load: "write".into(),
        engine: Some("InnoDB".into()),
        engine_asked: engine.map(str::to_owned),
        iteration: 1,
        clients: 3,
        queries_planned: Some(9),
        queries_dropped: 1,
        warmup_queries: 0,
        errors: Vec::new(),
        aborted: None,
        clock: Clock {
            source: "CLOCK_MONOTONIC",
            measure_start_ns: 5,
            measure_end_ns: 5 + seconds * 1_000_000_000,
            connect_ns: 1,
            warmup_ns: 0,
        },
        cpu: Cpu { user_us: 9, sys_us: 18 },
        operations,
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
