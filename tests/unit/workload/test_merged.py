"""What several hosts measured, as one load: bit for bit that of all their samples together, in the same time."""

import json
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbdyno.errors import TrialError
from dbdyno.workload.load import percentiles
from dbdyno.workload.merged import Window, client_figures, merged, met, part_of, window_of
from tests.unit.workload.test_histogram_log import packed, upper_end

INTERVAL_NS = 100_000_000
LATENCY = st.integers(1, 10**10)  # ns
SAMPLES = st.lists(st.lists(LATENCY, max_size=40), min_size=3, max_size=3)  # by interval
ROWS = ("events", "queries", "rows", "errors", "reconnects", "backlog")


def told(intervals, *, start_ns=10**12, late_ns=1000, whole=None):
    """What a host sends whose samples of each interval are these; after the whole intervals comes a part of one."""
    whole = len(intervals) if whole is None else whole
    ends = [start_ns + (n + 1) * INTERVAL_NS for n in range(whole)] + [start_ns + whole * INTERVAL_NS + 7000]
    counts = [len(samples) for samples in intervals] + [0]
    lines = [",".join(["t_ns", *ROWS])]
    lines += [",".join(map(str, (end, n, 2 * n, 0, 0, 0, 0))) for end, n in zip(ends, counts, strict=False)]
    begun_ns = start_ns - 3_217_400_000
    log = [f"#[StartMonotonic: {begun_ns} ns]"]
    for number, samples in enumerate(intervals):
        seconds = (start_ns + number * INTERVAL_NS - begun_ns) / 1e9
        if samples:
            log += [f"{prefix}{seconds:.3f},0.100,1.0,{packed(Counter(samples))}" for prefix in ("", "Tag=select,")]
    everything = [value for samples in intervals for value in samples]
    summary = {"max": max(everything, default=None), "p99": None}
    clock = {"start_asked_ns": start_ns, "measure_start_ns": start_ns + late_ns, "measure_end_ns": ends[-1]}
    run = {
        "clock": {**clock, "connect_ns": 1, "warmup_ns": 2},
        "clients": 2,
        "latency_ns": summary,
        "operations": {"select": summary},
        "errors": [{"code": 1213, "operation": "select", "message": "deadlock", "count": 3}],
        "seconds_real": whole / 10,
        "seconds_user": 0.25,
        "seconds_sys": 0.05,
        "start_lateness_ns": {"p99": late_ns},
        "threads": [{"cpu_seconds": 0.09, "wait_seconds": 0.03}],
        "network": None,
        **dict.fromkeys(("offered", "backlog_max", "backlog_end", "offered_per_second", "warmup_steady")),
        "warmup_queries": 5,
    }
    return {"json": json.dumps({"runs": [run]}), "series": "\n".join(lines) + "\n", "hlog": "\n".join(log) + "\n"}


def part(name, intervals, **how):
    return part_of(name, told(intervals, **how), INTERVAL_NS)


@given(st.lists(SAMPLES, min_size=1, max_size=4))
def test_what_is_merged_is_what_was_pooled(hosts):
    parts = [part(f"c{n}", samples, start_ns=10**12 + n * 12_345_678_901) for n, samples in enumerate(hosts)]
    load = merged(parts, 5 * 10**12)
    pooled = Counter(upper_end(value) for samples in hosts for interval in samples for value in interval)
    values, counts = load.met
    assert dict(zip(values, counts, strict=True)) == pooled
    assert load.result["events"] == load.result["latency_ns"]["count"] == pooled.total()
    largest = max((value for samples in hosts for interval in samples for value in interval), default=0)
    of_pooled = {name: min(value, largest) for name, value in percentiles(pooled).items()}
    assert {name: load.result["latency_ns"][name] for name in of_pooled} == of_pooled
    assert {name: load.result["operations"]["select"][name] for name in of_pooled} == of_pooled
    for number, column in enumerate(zip(*hosts, strict=True)):
        here = Counter(upper_end(value) for samples in column for value in samples)
        assert load.series["events"][number] == here.total()
        if here:
            assert load.series["latency_ns_p99"][number] == min(percentiles(here)["p99"], largest)


def test_what_not_all_measured_is_warm_up():
    late = part("c2", [[10], [20], [30], [40]], late_ns=700_000)  # beyond what is tolerated: its first does not count
    short = part("c1", [[1], [2], [3]], late_ns=1000)
    assert window_of([short, late]) == Window(1, 3)
    load = merged([short, late], 10**12)
    assert load.met == ([2.0, 3.0, 20.0, 30.0], [1.0, 1.0, 1.0, 1.0])
    assert load.window_ns == (10**12 + INTERVAL_NS, 10**12 + 3 * INTERVAL_NS)
    assert load.series["t_ns"] == [10**12 + 2 * INTERVAL_NS, 10**12 + 3 * INTERVAL_NS]
    assert (load.result["events"], load.result["queries"], load.result["clients"]) == (4, 8, 4)
    assert load.result["achieved_per_second"] == pytest.approx(20)
    assert [error["count"] for error in load.result["errors"]] == [6]
    assert load.columns()["t_s"] == pytest.approx([0.1, 0.2])
    in_time = part("c2", [[10], [20], [30], [40]], late_ns=400_000)
    assert window_of([short, in_time]) == Window(0, 3)


def test_hosts_that_were_never_at_it_together_give_no_figure():
    with pytest.raises(TrialError, match=r"no interval is whole on all client hosts \(whole ones: c1 3, c2 0\)"):
        merged([part("c1", [[1], [2], [3]]), part("c2", [], whole=0)], 10**12)
    with pytest.raises(TrialError, match="c1: what its load generator wrote is not whole"):
        part_of("c1", {"json": "{}", "series": "", "hlog": ""}, INTERVAL_NS)


def test_each_host_has_its_figures_and_its_start_on_our_clock(clocks):
    before, after = clocks(c1=10**9, c2=-(10**9)), clocks(c1=10**9 + 4000, c2=-(10**9), at=2 * 10**9)
    start_ns = 10**9
    first = part("c1", [[1_000_000], [1_000_000]], start_ns=start_ns + 10**9, late_ns=30_000)
    second = part("c2", [[9_000_000], [9_000_000]], start_ns=0, late_ns=50_000)
    figures = client_figures([first, second], before, after, start_ns)
    assert [one["host"] for one in figures] == ["c1", "c2"]
    # Half of the time between both looks at the clock has passed, and with it half of its drift of 4 us.
    assert figures[0]["start_off_us"] == pytest.approx(30 - 2, abs=0.01)
    assert figures[1]["start_off_us"] == pytest.approx(50)
    assert figures[0]["clock_bound_us"] == 25
    assert figures[0]["clock_drift_us"] == 4
    assert figures[0]["latency_ms_p99"] == pytest.approx(1.0, rel=1e-3)
    assert figures[0]["latency_ms_p99_of_others"] == pytest.approx(9.0, rel=1e-3)
    assert figures[0]["events_per_second"] == 10
    assert figures[0]["thread_cpu_share"] == pytest.approx(0.45)
    assert figures[0]["thread_wait_share"] == pytest.approx(0.15)
    assert met([first], Window(0, 2), "no such tag") == ([], [])


@pytest.fixture
def clocks():
    """Return what makes clocks: the offset of each host, ns, known to within 25 us."""
    from dbdyno.hosts.clock import Offset
    from dbdyno.workload.merged import Clocks

    def made(at=0, **offsets):
        return Clocks(at, {name: Offset(ns, 25_000.0, 50_000, 60_000.0, 128) for name, ns in offsets.items()})

    return made
