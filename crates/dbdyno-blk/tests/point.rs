//! Points: what is refused, and what an outcome holds.

use dbdyno_blk::point::{Outcome, Point, PointError, simulate, summary};
use serde_json::{Value, json};

/// A small point with some fields replaced; `null` leaves one out.
fn point(changes: &Value) -> Value {
    let mut point = json!({
        "device": "hdd-15k", "size_bytes": 4_u64 << 30, "kernel": "2.6.18", "scheduler": "deadline", "duration_s": 2.0,
        "load": {"kind": "jobs", "jobs": [{"read_percent": 50, "depth": 16}]},
    });
    for (name, value) in changes.as_object().expect("an object") {
        point[name] = value.clone();
    }
    point
}

fn simulated(changes: &Value) -> Result<Outcome, PointError> {
    Point::parse(&point(changes).to_string()).and_then(|point| simulate(&point, &mut |_| true))
}

fn jobs(job: &Value) -> Value {
    json!({"load": {"kind": "jobs", "jobs": [job]}})
}

/// One buffered job on a page cache.
fn buffered(job: &Value, cache: &Value) -> Value {
    let mut job = job.clone();
    if job.get("direct").is_none() {
        job["direct"] = json!(false);
    }
    json!({"load": {"kind": "jobs", "jobs": [job], "cache": cache}})
}

#[test]
fn a_load_in_which_no_time_passes_is_refused() {
    for (changes, kind) in [(json!({}), "jobs"), (jobs(&json!({"fsync_every": 1, "read_percent": 0})), "jobs")] {
        for device in ["ideal", "raid1(ideal, 2)", "raid5(ideal, 3)"] {
            let mut changes = changes.clone();
            changes["device"] = device.into();
            let error = simulated(&changes).expect_err(device);
            let is_explained = ["no virtual time passes", device, kind].iter().all(|part| error.problem.contains(part));
            assert!(error.field == "device" && is_explained, "{error}");
        }
    }
}

#[test]
fn jobs_keep_their_rates_and_begin_when_they_should() {
    let count = |job: &Value| {
        let outcome = simulated(&jobs(job)).expect("a job");
        (outcome.reads.requests + outcome.reads.merges, outcome.writes.requests + outcome.writes.merges)
    };
    assert_eq!(count(&json!({"read_percent": 100, "read_rate_ios": 40, "depth": 4})).0, 80);
    assert_eq!(count(&json!({"read_percent": 100, "read_rate_bytes": 40 * 4096, "processes": 2})).0, 160);
    let (reads, _) = count(&json!({"read_percent": 100, "read_rate_ios": 40, "poisson": true, "depth": 8}));
    assert!((50..110).contains(&reads) && reads != 80, "{reads}");
    let (reads, writes) = count(&json!({"read_percent": 50, "write_rate_ios": 20}));
    assert!((38..=40).contains(&writes) && reads > 100, "{reads} {writes}");
    assert_eq!(count(&json!({"read_percent": 100, "read_rate_ios": 40, "start_us": 1_000_000})).0, 40);
    let late = count(&json!({"read_percent": 100, "start_us": 3_000_000}));
    assert_eq!(late, (0, 0));
    let paused = count(&json!({"read_percent": 100, "think_us": 500_000, "think_every": 10})).0;
    assert!((30..=50).contains(&paused), "{paused}");
}

#[test]
fn a_job_may_have_several_sizes_and_prefer_some_offsets() {
    let job = json!({"read_percent": 100, "read_blocks": [[4096, 50], [16384, 50]], "spread": {"zones": [[90, 10], [10, 90]]}});
    let outcome = simulated(&jobs(&job)).expect("a job");
    let request_bytes = outcome.columns.read_kib_per_s * 1024.0 / outcome.columns.reads_per_s;
    assert!((8_000.0..12_500.0).contains(&request_bytes), "{request_bytes}");
    let buffered =
        simulated(&buffered(&json!({"read_blocks": [[4096, 1], [16384, 1]], "range_bytes": 64 << 20}), &json!({})));
    assert!(buffered.is_ok(), "{buffered:?}");
    for (job, field) in [
        (json!({"read_blocks": [[1000, 1]]}), "load.jobs[0].read_blocks"),
        (json!({"spread": {"zones": [[50, 50]]}}), "load.jobs[0].spread"),
        (json!({"spread": {"zipf": 0}}), "load.jobs[0].spread"),
        (json!({"gap_bytes": 100}), "load.jobs[0].gap_bytes"),
        (json!({"run": 0}), "load.jobs[0].run"),
        (json!({"direct": false, "read_rate_ios": 5}), "load.jobs[0].rates"),
    ] {
        assert_eq!(simulated(&jobs(&job)).expect_err(field).field, field);
    }
}

#[test]
fn what_is_wrong_is_named_with_its_path() {
    let trace = |fields: Value| {
        let mut load = json!({"kind": "trace", "files": ["/nowhere/trace"]});
        load.as_object_mut().expect("an object").extend(fields.as_object().expect("an object").clone());
        json!({"load": load})
    };
    for (changes, field, problem) in [
        (json!({"devise": "hdd-15k"}), "devise", "unknown field `devise`"),
        (json!({"device": "hdd-16k"}), "device", "hdd-15k"),
        (json!({"size_bytes": 1_u64 << 50}), "size_bytes", "larger than the drive"),
        (json!({"size_bytes": 1000}), "size_bytes", "not a positive multiple of 4096"),
        (json!({"kernel": "2.6.17"}), "kernel", "2.6.18"),
        (json!({"scheduler": "deadlin"}), "scheduler", "Did you mean"),
        (json!({"tunables": {"fifo_bach": 1}}), "tunables.fifo_bach", "fifo_batch"),
        (json!({"tunables": {"front_merges": 2}}), "tunables.front_merges", "not between 0 and 1"),
        (json!({"nr_requests": 3}), "nr_requests", "not between 4"),
        (json!({"wbt_lat_usec": 2000}), "wbt_lat_usec", "has no writeback throttling"),
        (json!({"queue_depth": 257}), "queue_depth", "1 and 256"),
        (json!({"duration_s": null}), "duration_s", "does not end"),
        (json!({"warm_up_s": -1}), "warm_up_s", "-1 is not between 0"),
        (json!({"load": {}}), "load.kind", "is missing"),
        (json!({"load": {"kind": "job"}}), "load.kind", "jobs"),
        (jobs(&json!({"dept": 3})), "load.jobs[0].dept", "unknown field"),
        (jobs(&json!({"depth": "3"})), "load.jobs[0].depth", "invalid type"),
        (jobs(&json!({"block_bytes": 1000})), "load.jobs[0].block_bytes", "not a multiple of 512"),
        (jobs(&json!({"offset_bytes": 4096, "range_bytes": 4_u64 << 30})), "load.jobs[0].offset_bytes", "beyond"),
        (json!({"load": {"kind": "jobs", "jobs": []}}), "load.jobs", "no job"),
        (buffered(&json!({"depth": 4}), &json!({})), "load.jobs[0].depth", "sends one request at a time"),
        (buffered(&json!({"offset_bytes": 4096}), &json!({})), "load.jobs[0].offset_bytes", "has a file"),
        (buffered(&json!({"block_bytes": 2 << 20}), &json!({})), "load.jobs[0].block_bytes", "1 and 1048576"),
        (buffered(&json!({"range_bytes": 4_u64 << 30}), &json!({})), "size_bytes", "at the start"),
        (buffered(&json!({}), &json!({"memory_bytes": 1 << 20})), "load.cache.memory_bytes", "16 MiB"),
        (buffered(&json!({}), &json!({"filesystem": "xfs"})), "load.cache.filesystem", "ext3"),
        (buffered(&json!({"direct": true}), &json!({})), "load.cache", "direct = false"),
        (json!({"load": {"kind": "jobs", "jobs": [{}, {"direct": false}]}}), "load.jobs[1].direct", "in the first job"),
        (json!({"load": {"kind": "ingest", "table": {"initial_rows": 1_u64 << 30}}}), "size_bytes", "at the start"),
        (json!({"load": {"kind": "commits", "clients": 0}}), "load.clients", "1 and 10000"),
        (trace(json!({})), "load.files[0]", "/nowhere/trace"),
        (trace(json!({"replay": "closed", "speed": 2.0})), "load.speed", "leave it out"),
        (trace(json!({"speed": 0.0})), "load.speed", "not between"),
        (trace(json!({"format": "blk"})), "load.format", "blktrace"),
    ] {
        let error = simulated(&changes).expect_err(field);
        assert!(error.field == field && error.problem.contains(problem), "{changes}: {error}");
    }
}

#[test]
fn an_outcome_adds_up_and_is_the_same_each_time() {
    let changes = json!({"warm_up_s": 0.5, "interval_s": 0.01, "intervals_most": 50, "sample_most": 64});
    let outcome = simulated(&changes).expect("a point");
    let all = outcome.reads.requests + outcome.writes.requests;
    assert!((outcome.measured_s - 2.0).abs() < 1e-9 && !outcome.has_ended && all > 200);
    assert!((outcome.columns.reads_per_s - outcome.reads.requests as f64 / 2.0).abs() < 1e-6);
    assert_eq!(outcome.reads.latency.summary.0.count, outcome.reads.requests + outcome.reads.merges);
    let seeks = &outcome.seeks;
    let steps: u64 = seeks.contiguous + seeks.forward.iter().sum::<u64>() + seeks.backward.iter().sum::<u64>();
    assert_eq!(steps + 1, outcome.commands);
    assert_eq!(seeks.ascending_runs, 1 + seeks.backward.iter().sum::<u64>());
    let intervals = outcome.series.columns.len();
    assert!((25..=51).contains(&intervals) && (32..=64).contains(&outcome.sample.sector.len()), "{intervals}");
    assert!(outcome.sample.at_s.iter().all(|at_s| (0.5..=2.5).contains(at_s)));
    let mean = outcome.series.columns.iter().map(|columns| columns.reads_per_s).sum::<f64>() / intervals as f64;
    assert!((mean / outcome.columns.reads_per_s - 1.0).abs() < 0.02);
    let again = simulated(&changes).expect("a point");
    let json = |outcome: &Outcome| serde_json::to_string(outcome).expect("numbers and names");
    assert_eq!(json(&outcome), json(&again));
    let other = json!({"warm_up_s": 0.5, "interval_s": 0.01, "intervals_most": 50, "sample_most": 64, "seed": 2});
    assert_ne!(json(&outcome), json(&simulated(&other).expect("a point")));
}

#[test]
fn a_load_that_ends_is_measured_to_its_end() {
    let outcome = simulated(&json!({"duration_s": null, "load": {"kind": "jobs", "jobs": [{"ios": 100}]}}));
    let outcome = outcome.expect("a point");
    assert!(outcome.has_ended && outcome.queued == 0 && outcome.reads.requests == 100);
    let seconds = outcome.reads.latency.summary.0.mean.unwrap() * 100.0 / 1e9;
    assert!((outcome.measured_s / seconds - 1.0).abs() < 0.01, "{} {seconds}", outcome.measured_s);
}

#[test]
fn it_stops_when_asked_to() {
    let point = Point::parse(&point(&json!({"duration_s": 1e6})).to_string()).expect("a point");
    let mut calls = 0;
    let error = simulate(&point, &mut |progress| {
        calls += 1;
        progress.requests < 1000
    });
    assert!(calls > 1 && error.is_err_and(|error| error.field == "point"));
}

#[test]
fn a_trace_of_several_devices_asks_which() {
    let path = std::env::temp_dir().join(format!("dbdyno-point-{}.csv", std::process::id()));
    let lines = "time_s,offset,size,op,device\n0,0,4096,R,a\n0.5,4096,4096,W,b\n1,8192,4096,R,a\nx,1,1,R,a\n";
    std::fs::write(&path, lines).expect("room for it");
    let load = |more: Value| {
        let mut load = json!({"files": [path.to_str()]});
        load.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        load
    };
    let summary = summary(&load(json!({})).to_string(), &mut |_| true).expect("a trace");
    assert_eq!((summary.requests, summary.span_s, summary.end_sector), (3, 1.0, 24));
    assert_eq!(summary.devices, [("a".to_owned(), 2), ("b".to_owned(), 1)]);
    let of = |more: Value| simulated(&json!({"duration_s": null, "load": load(more)}));
    let error = of(json!({"kind": "trace"})).expect_err("two devices");
    assert!(error.field == "load.device" && error.problem.contains("a; b"), "{error}");
    let outcome = of(json!({"kind": "trace", "device": "a", "replay": "closed"})).expect("one device");
    assert_eq!((outcome.reads.requests, outcome.writes.requests), (2, 0));
    assert_eq!((&outcome.load["of_other_devices"], &outcome.load["findings"]["damaged"]), (&json!(1), &json!(1)));
    let window = of(json!({"kind": "trace", "device": "a", "window_s": [0.5, 2]})).expect("a part of it");
    assert_eq!((window.reads.requests, &window.load["of_other_devices"]), (1, &json!(1)));
    std::fs::remove_file(&path).expect("it was there");
}

#[test]
fn a_server_counts_what_it_commits() {
    let load = json!({"kind": "commits", "clients": 2});
    let outcome = simulated(&json!({"size_bytes": 16_u64 << 30, "load": load})).expect("a point");
    assert!(outcome.counts["commits"] > 10 && outcome.series.rates.contains_key("commits/s"));
    let (dirty, ages) = (&outcome.series.gauges["dirty_pages"], &outcome.series.gauges["checkpoint_age_bytes"]);
    assert_eq!((dirty.len(), ages.len()), (outcome.series.end_s.len(), outcome.series.end_s.len()));
    assert!(ages.iter().all(|bytes| *bytes > 0));
}

#[test]
fn buffered_writes_are_gathered_in_memory() {
    let job = json!({"read_percent": 0, "ios": 2000, "fsync_every": 500, "range_bytes": 64 << 20});
    let small = json!({"filesystem": "ext3", "data": "writeback"});
    let mut changes = buffered(&job, &small);
    changes["duration_s"] = json!(null);
    let outcome = simulated(&changes).expect("a point");
    assert!(outcome.has_ended && outcome.counts["operations"] == 2000);
    let writes = &outcome.writes;
    assert!(writes.latency.summary.0.count >= 1500 && writes.sectors <= 2000 * 8 + 4096, "{writes:?}");
    assert!(outcome.counts["journal_commits"] >= 4 && outcome.series.gauges.contains_key("dirty_pages"));
    let direct =
        simulated(&json!({"duration_s": null, "load": {"kind": "jobs", "jobs": [{"read_percent": 0, "ios": 2000,
        "fsync_every": 500, "range_bytes": 64 << 20}]}}));
    assert!(outcome.measured_s < direct.expect("a point").measured_s);
}

#[test]
fn files_that_outgrow_the_drive_end_the_point() {
    let load = json!({"kind": "ingest", "cache": {"memory_bytes": 4_u64 << 30},
        "table": {"row_bytes": 4096, "secondary_keys": 0, "cpu_us_per_row": 1.0}});
    let changes = json!({"size_bytes": 256 << 20, "duration_s": 1000.0, "load": load});
    let error = simulated(&changes).expect_err("no room");
    assert!(error.field == "size_bytes" && error.problem.contains("grew"), "{error}");
}
