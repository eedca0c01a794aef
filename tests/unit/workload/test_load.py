"""What a load came to."""

import json
import math
from dataclasses import replace

import pytest

from dbdyno.errors import TrialError
from dbdyno.workload.load import LoadResult, read_load
from tests.unit.workload.test_histogram_log import line

SUMMARY = {"mean": 2e6, "p50": 1e6, "p95": 3e6, "p99": 4e6, "p999": 5e6, "max": 6e6}
RESULT = {
    "clock": {"measure_start_ns": 10**9, "measure_end_ns": 3 * 10**9},
    "loop": {"kind": "closed", "think_seconds": 0.0, "spacing": "exponential"},
    "offered": None,
    "offered_per_second": None,
    "achieved_per_second": 50.0,
    "backlog_max": None,
    "backlog_end": None,
    "events": 100,
    "queries": 400,
    "rows": 0,
    "errors": [],
    "reconnects": 0,
    "seconds_real": 2.0,
    "seconds_user": 0.3,
    "seconds_sys": 0.1,
    "latency_ns": SUMMARY,
    "phases": [],
}
OPEN = {
    "loop": {"kind": "open", "rate": 100.0, "spacing": "exponential"},
    "offered": 210,
    "offered_per_second": 105.0,
    "backlog_max": 110,
    "backlog_end": 110,
}


def load(queries, seconds=0.1, **changes):
    end = round(len(queries) * seconds * 1e9)
    times = [round((index + 1) * seconds * 1e9) for index in range(len(queries))]
    result = {**RESULT, "clock": {"measure_start_ns": 0, "measure_end_ns": end}, **changes}
    return LoadResult(result, {"t_ns": times, "queries": queries}, [""] * len(queries))


def metrics(**changes):
    return LoadResult({**RESULT, **changes}, {}, []).metrics()


@pytest.mark.parametrize(("queries", "ratio"), [([10] * 8, 1), ([10] * 4 + [20] * 4, 2), ([30] * 4 + [15] * 4, 0.5)])
def test_the_second_half_over_the_first(queries, ratio):
    assert load(queries).second_half_ratio() == pytest.approx(ratio)


@pytest.mark.parametrize(
    ("events", "longest", "stalled"),
    [
        ([1] * 20, 0.0, 0.0),
        ([1] * 5 + [0] * 3 + [1] * 12, 0.3, 0.0),
        ([1] * 10 + [0] * 10, 1.0, 0.5),
        ([1] * 5 + [0] * 10 + [1] * 5, 1.0, 0.0),
        ([0] * 25 + [1], 2.5, 1.0),
        ([0, 1], 0.1, None),
    ],
)
def test_stalls_are_the_longest_time_without_an_event_and_the_share_of_such_seconds(events, longest, stalled):
    figures = replace(load(events), series={"t_ns": load(events).series["t_ns"], "events": events}).stalls()
    assert figures["stall_seconds_max"] == pytest.approx(longest)
    assert figures.get("stalled_ratio") == stalled


def test_without_a_series_nothing_is_known_of_stalls():
    assert load([]).stalls() == {}


def test_very_short_runs_have_no_halves():
    assert load([10] * 5).second_half_ratio() is None
    assert load([0, 0, 0, 0, 5, 5]).second_half_ratio() is None


def test_phases_are_not_halves_of_the_same():
    assert load([30] * 4 + [15] * 4, phases=[{"name": "load"}, {"name": "index"}]).second_half_ratio() is None


def test_what_a_closed_loop_that_reads_tells():
    assert metrics() == {
        "queries_per_second": 200,
        "events_per_second": 50,
        "seconds_real": 2,
        "seconds_user": 0.3,
        "seconds_sys": 0.1,
        "latency_ms_mean": 2,
        "latency_ms_p50": 1,
        "latency_ms_p95": 3,
        "latency_ms_p99": 4,
        "latency_ms_p999": 5,
        "latency_ms_max": 6,
        "client_cpu_us_per_query": 1000,
        "errors": 0,
        "reconnects": 0,
    }


def test_rows_errors_and_reconnects_are_counted():
    found = metrics(rows=500, errors=[{"code": 1213, "count": 3}, {"code": 1205, "count": 1}], reconnects=2)
    assert (found["rows_per_second"], found["errors"], found["reconnects"]) == (250, 4, 2)


def test_a_run_without_the_end_of_an_event_has_no_latency():
    found = metrics(latency_ns=dict.fromkeys(SUMMARY))
    assert not any(name.startswith("latency") for name in found)


def test_a_load_that_did_nothing_is_none():
    with pytest.raises(TrialError, match="no query"):
        metrics(queries=0)


def test_an_open_loop_achieves_a_share_of_what_it_offered():
    assert metrics(**OPEN)["achieved_ratio"] == pytest.approx(50 / 105)


HEADER = "run,t_ns,phase,events,queries,rows,errors,reconnects,backlog,"
HEADER += "latency_ns_mean,latency_ns_p50,latency_ns_p95,latency_ns_p99,latency_ns_max\n"


def written(folder, *rows, header=HEADER, log=""):
    result, series, histograms = folder / "load.json", folder / "load.csv", folder / "latency.hlog"
    result.write_text(json.dumps({"runs": [RESULT]}))
    series.write_text(header + "".join(f"{row}\n" for row in rows))
    histograms.write_text(log)
    return result, series, histograms


def test_the_series_on_the_trial_s_clock(tmp_path):
    first = "0,1500000000,load,10,40,5,1,0,7,2000000,1000000,3000000,4000000,5000000"
    second = "0,3000000000,load+index,0,0,0,0,3,0,,,,,"
    columns = read_load(*written(tmp_path, first, second)).columns()
    assert columns["t_s"] == [0.5, 2.0]
    assert columns["events_per_second"] == [20, 0]
    assert columns["queries_per_second"] == [80, 0]
    assert columns["rows_per_second"] == [10, 0]
    assert columns["errors_per_second"] == [2, 0]
    assert columns["reconnects_per_second"] == [0, 2]
    assert columns["backlog"] == [7, 0]
    assert columns["phase"] == ["load", "load+index"]
    assert [columns[f"latency_ms_{name}"][0] for name in ("mean", "p50", "p95", "p99", "max")] == [2, 1, 3, 4, 5]
    assert math.isnan(columns["latency_ms_p99"][1])


def test_a_load_without_phases_has_no_column_of_them(tmp_path):
    columns = read_load(*written(tmp_path, "0,1500000000,,10,40,5,1,0,7,1,1,1,1,1")).columns()
    assert "phase" not in columns
    assert {len(values) for values in columns.values()} == {1}


def test_a_run_of_no_interval_has_an_empty_series(tmp_path):
    assert read_load(*written(tmp_path)).columns()["t_s"] == []


@pytest.mark.parametrize("row", ["0,1,,1", "0,x,,1,1,1,1,1,1,1,1,1,1,1"])
def test_a_series_cut_short_is_said_so(tmp_path, row):
    with pytest.raises(TrialError, match="are not what dbdyno-load writes"):
        read_load(*written(tmp_path, row))


def test_latencies_are_those_of_the_log_and_none_is_beyond_the_largest(tmp_path):
    log = line({5_000_000: 3, 6_000_000: 1})
    found = read_load(*written(tmp_path, log=log)).latencies()
    assert found == {"latency_ns": [5_001_215, 6e6], "count": [3, 1]}, "a bucket ends at 6,004,735 ns"


def test_of_a_log_without_events_latencies_are_unknown(tmp_path):
    assert read_load(*written(tmp_path, log=line({5_000_000: 3}, tag="Tag=insert,"))).latencies() == {}


def test_a_log_that_is_none_is_said_so(tmp_path):
    with pytest.raises(TrialError, match="line 1 has no valid histogram"):
        read_load(*written(tmp_path, log="0.1,0.1,5.0,HISTFAAA\n"))
