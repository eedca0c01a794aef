"""What fio prints and logs, as figures: kept outputs of fio 3.33, and histograms and logs of any shape."""

import json
import math
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dbdyno.errors import TrialError
from dbdyno.workload.fio import fio_figures, log_columns, parse_log, parse_output, percentiles

KEPT = Path(__file__).parent / "kept"


def test_a_kept_mix():
    run = parse_output((KEPT / "fio-3.33-mix.json").read_text(encoding="utf-8"))
    figures = fio_figures(run["jobs"])
    (job,) = run["jobs"]
    assert figures["iops"] == pytest.approx(job["read"]["iops"] + job["write"]["iops"], rel=0.002)
    moved = job["read"]["bw_bytes"] + job["write"]["bw_bytes"]
    assert figures["megabytes_per_second"] == pytest.approx(moved / 1e6, rel=0.002)
    assert figures["latency_ms_p50"] < figures["latency_ms_p99"] <= figures["latency_ms_max"]


def test_groups_that_follow_each_other_take_the_time_of_all():
    def job(group, runtime_ms):
        read = {"runtime": runtime_ms, "total_ios": 1000, "io_bytes": 10**6, "lat_ns": {"N": 0}}
        return {"groupid": group, "read": read}

    one_after_the_other = fio_figures([job(0, 1000), job(1, 3000)])
    assert (one_after_the_other["seconds_real"], one_after_the_other["iops"]) == (4.0, 500.0)
    beside_each_other = fio_figures([job(0, 1000), job(0, 3000)])
    assert (beside_each_other["seconds_real"], beside_each_other["megabytes_per_second"]) == (3.0, pytest.approx(2 / 3))


def test_percentiles_are_those_that_fio_prints():
    run = parse_output((KEPT / "fio-3.33-read.json").read_text(encoding="utf-8"))
    (job,) = run["jobs"]
    printed = job["read"]["lat_ns"]["percentile"]
    figures = fio_figures(run["jobs"])
    for name, key in (("p50", "50.000000"), ("p95", "95.000000"), ("p99", "99.000000"), ("p999", "99.900000")):
        # fio prints a bucket's end, the histogram its middle; a bucket is 1/64 of a power of two wide.
        assert figures[f"latency_ms_{name}"] * 1e6 == pytest.approx(printed[key], rel=1 / 64)
    assert figures["latency_ms_mean"] == pytest.approx(job["read"]["lat_ns"]["mean"] / 1e6)


def test_notes_before_the_json_are_passed_over():
    text = "note: both iodepth >= 1 and synchronous I/O engine are selected\n" + json.dumps({"jobs": [{"error": 0}]})
    assert parse_output(text)["jobs"] == [{"error": 0}]


@pytest.mark.parametrize("text", ["", "fio: no", "{", "{}", '{"jobs": []}', '{"jobs": [{"error": 5, "jobname": "a"}]}'])
def test_what_is_no_result_fails(text):
    with pytest.raises(TrialError, match="fio"):
        parse_output(text)


@settings(deadline=None)
@given(st.dictionaries(st.integers(1, 10**10), st.integers(1, 1000), min_size=1, max_size=40))
def test_a_percentile_is_the_value_that_so_large_a_share_does_not_exceed(bins):
    values = sorted(value for value, times in bins.items() for _ in range(times))
    for name, share in (("p50", 0.5), ("p99", 0.99), ("p999", 0.999)):
        assert percentiles(bins)[name] == values[math.ceil(share * len(values)) - 1]


def test_nothing_has_no_percentile():
    assert percentiles({}) == {}


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(1, 50), st.integers(0, 3), st.integers(0, 1000)), max_size=60))
def test_series_lose_no_operation(entries):
    """Each entry is a rate in an interval: the sum over intervals stays the same, whoever logged it."""
    log = [(1000 + 100 * index + late, float(iops), 0) for index, late, iops in entries]
    columns = log_columns({"iops": log}, 1000.0)
    assert sum(columns["iops"]) == sum(iops for _, _, iops in entries)
    assert columns["t_s"] == pytest.approx([0.1 * (n + 1) for n in range(len(columns["t_s"]))])


def test_latencies_are_weighted_by_what_each_direction_did():
    logs = {
        "bw": [(1100, 1000.0, 0), (1100, 1000.0, 1)],
        "iops": [(1100, 300.0, 0), (1100, 100.0, 1)],
        "lat": [(1100, 1e6, 0), (1100, 5e6, 1)],
    }
    columns = log_columns(logs, 1000.0)
    assert columns["latency_ms_mean"] == [2.0]
    assert columns["megabytes_per_second"] == [2.048]


def test_a_kept_log():
    entries = parse_log((KEPT / "fio-3.33_iops.log").read_text(encoding="utf-8"))
    assert len(entries) > 10
    assert {way for _, _, way in entries} <= {0, 1}
    with pytest.raises(TrialError, match="log"):
        parse_log("1, 2\n")
