"""What a client host says of its load: bounded, and of the two kinds there are; else the load ends, with its name."""

import contextlib
import json
from collections import Counter
from threading import Event

import pytest

from dbdyno.errors import TrialError
from dbdyno.stack.tools import own_binary
from dbdyno.system.clock import Offset
from dbdyno.workload import together as client_host
from dbdyno.workload.together import ClientClocks, ClientHostLoad, JointLoad, merged
from tests.local_hosts import LocalHosts
from tests.support import wait_for
from tests.unit.workload.test_histogram_log import packed

READY = {"ready_ns": 5, "start": "/proc/5/fd/7"}
RESULT = {"code": 0, "said": "", "json": "{}", "series": "", "hlog": ""}


def listened(monkeypatch, script, *arguments):
    monkeypatch.setattr(client_host, "_ARGV", ("sh", "-c", script, "sh", *arguments))
    with contextlib.closing(LocalHosts(["c1"])) as hosts:
        client = ClientHostLoad(hosts, "c1", {}, Event(), 1.0)
        wait_for(lambda: client.is_done)
        return client


def said(monkeypatch, *lines):
    return listened(
        monkeypatch, 'printf "%s\\n" "$@"', *[one if isinstance(one, str) else json.dumps(one) for one in lines]
    )


def test_what_a_load_says_is_taken(monkeypatch):
    client = said(monkeypatch, READY, RESULT)
    assert (client.start_path, client.result, client.trouble) == ("/proc/5/fd/7", RESULT, "")


def test_a_load_that_failed_says_why(monkeypatch):
    client = said(monkeypatch, READY, {**RESULT, "code": 1, "said": "dbdyno-load: no server\n"})
    assert (client.result, client.trouble) == (None, "c1: no server")
    assert listened(monkeypatch, "echo why >&2; exit 3").trouble == "c1: the load ended before its time: why"


@pytest.mark.parametrize(
    "lines",
    [
        ["5"],
        ["null"],
        ["[1]"],
        ["not json"],
        ["[" * 100_000],
        [{}],
        [{"start": 5, "ready_ns": 5}],
        [{**READY, "start": "/etc/passwd"}],
        [{**READY, "start": "/proc/5/fd/../../1/root"}],
        [READY, READY],
        [{**RESULT, "code": "0"}],
        [{**RESULT, "series": [1]}],
        [{**RESULT, "more": 1}],
        [{name: RESULT[name] for name in ("code", "said")}],
        [RESULT, RESULT],
        ['{"code": 1e400}'],
        ["\x1b[2J"],
    ],
    ids=lambda lines: str(lines)[:40],
)
def test_what_no_load_says_ends_it(monkeypatch, lines):
    client = said(monkeypatch, *lines)
    assert client.trouble.startswith("c1: ")
    assert client.trouble.isprintable()
    assert "nothing of a load" in client.trouble or "said twice" in client.trouble


def test_a_flood_ends_it(monkeypatch):
    monkeypatch.setattr(client_host, "_BYTES", 1000)
    for script in ("yes", "head -c 100000000 /dev/zero", "head -c 100000000 /dev/zero >&2", "yes ''"):
        assert listened(monkeypatch, script).trouble.startswith("c1: ")


# One load of what client hosts sent, made by dbdyno-load itself, and read as any other load.


START_NS, INTERVAL_NS = 10**12, 10**8
SUMMARY = {"count": 1, "min": 1, "mean": 1.0, "p50": 1, "p90": 1, "p95": 1, "p99": 1, "p999": 1, "max": 9_000_000}


def reply(intervals):
    """What a host sends whose latencies of each interval are these."""
    series = ["run,t_ns,phase,events,queries,rows,errors,reconnects,backlog"]
    log = [f"#[StartMonotonic: {START_NS} ns]"]
    for number, latencies in enumerate(intervals):
        series.append(f"0,{START_NS + (number + 1) * INTERVAL_NS},,{len(latencies)},{len(latencies)},0,0,0,0")
        log.append(f"{number / 10:.3f},0.100,9.0,{packed(Counter(latencies))}")
    clock = {"source": "CLOCK_MONOTONIC", "start_asked_ns": START_NS, "measure_start_ns": START_NS + 1000}
    clock |= {"measure_end_ns": START_NS + len(intervals) * INTERVAL_NS, "connect_ns": 1, "warmup_ns": 2}
    run = {
        **dict.fromkeys(("engine", "offered", "offered_per_second", "backlog_max", "backlog_end", "start_lateness_ns")),
        **dict.fromkeys(("queries_planned", "warmup_steady", "aborted", "share", "network")),
        **dict.fromkeys(("events", "queries", "rows", "queries_dropped", "warmup_queries", "reconnects"), 0),
        "version": 2,
        "kind": "oltp",
        "load": "read_only",
        "iteration": 1,
        "clients": 3,
        "io": "epoll",
        "loop": {"kind": "closed"},
        "achieved_per_second": 1.0,
        "errors": [],
        "clock": clock,
        "io_threads": 1,
        "seconds_real": 0.2,
        "seconds_user": 0.1,
        "seconds_sys": 0.1,
        "threads": [],
        "latency_ns": SUMMARY,
        "operations": {},
        "phases": [],
        "server_version": "10.11",
    }
    loads = {"version": 2, "kind": "oltp", "runs": [run]}
    return {"json": json.dumps(loads), "series": "\n".join(series) + "\n", "hlog": "\n".join(log) + "\n"}


def offered(**replies):
    clocks = ClientClocks(0, {name: Offset(0, 25_000.0, 50_000, 60_000.0, 128) for name in replies})
    return JointLoad(replies, START_NS, clocks, clocks)


def test_client_hosts_are_one_load(tmp_path):
    replies = offered(c1=reply([[10**6] * 3, [10**6]]), c2=reply([[10**6] * 5, [9 * 10**6]]))
    load = merged(own_binary("dbdyno-load"), replies, ["c1", "c2"], tmp_path)
    assert load.series["events"] == [8.0, 2.0]
    assert load.met.counts == [9.0, 1.0]
    found = load.result["latency_ns"]
    assert (found["count"], found["p90"] // 10**6, found["p99"]) == (10, 1, 9_000_000)
    assert load.metrics()["latency_ms_p99"] == 9.0
    assert load.metrics()["events_per_second"] == pytest.approx(50)
    assert [(one["host"], one["clients"], one["start_off_us"]) for one in load.result["client_hosts"]] == [
        ("c1", 3, 1.0),
        ("c2", 3, 1.0),
    ]
    assert sorted(path.name for path in (tmp_path / "clients" / "c1").iterdir()) == [
        "latency.hlog",
        "load.csv",
        "load.json",
    ]


def test_a_host_whose_files_are_not_whole_is_named(tmp_path):
    with pytest.raises(TrialError, match=r"^c2: the output of its load generator is not complete: load\.json: "):
        merged(
            own_binary("dbdyno-load"), offered(c1=reply([[1]]), c2=reply([[1]]) | {"json": "{"}), ["c1", "c2"], tmp_path
        )
