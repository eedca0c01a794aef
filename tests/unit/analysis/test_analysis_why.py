"""Where an event's time goes: parts that never exceed the whole, rules for what limits, what changed between levels."""

import math
from dataclasses import replace
from typing import get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbdyno.analysis.analyse import analyse
from dbdyno.analysis.explanation import (
    FULL,
    PARTS,
    Part,
    Place,
    figures,
    limit,
    means,
    parts,
    spread_parts,
    variance_shares,
)
from dbdyno.store.records import Trial

SECONDS = 4.0
ENDS = np.arange(0.05, SECONDS + 0.1, 0.1)  # as probes sample: not at the start of measuring, and beyond its end
positive = st.floats(0, 1e6)


def watched(**device):
    """Return what probes see of a device at constant rates; columns with a slash are spelled ``r_s`` here."""
    columns = {"r/s": 0.0, "w/s": 0.0, "f/s": 0.0, "r_await": 0.0, "w_await": 0.0, "f_await": 0.0, "%util": 0.0}
    columns |= {name.replace("_s", "/s") if name.endswith("_s") else name: value for name, value in device.items()}
    return {"block_device": {"t_s": ENDS, **{name: np.full(len(ENDS), value) for name, value in columns.items()}}}


def trial(rate, latency_ms, *, cpu_us=0.0, queries=1.0, **disturbance):
    metrics = {
        "latency_ms_mean": latency_ms,
        "events_per_second": rate,
        "queries_per_second": rate * queries,
        "seconds_real": SECONDS,
        "server_cpu_us_per_query": cpu_us,
        "client_cpu_us_per_query": 5.0,
    }
    return Trial("x", 1, 1, 1, "t1", "", metrics, disturbance=disturbance)


@given(positive, st.dictionaries(st.sampled_from(PARTS[:-1]), st.floats(-1e6, 1e6)))
def test_no_part_is_negative_or_above_the_whole_and_all_add_up_to_it(whole, alone):
    found = parts(whole, alone)
    assert all(0 <= value <= whole for value in found.values())
    assert math.fsum(found.values()) == pytest.approx(whole, rel=1e-9, abs=1e-9)
    assert found.keys() == {*alone, "rest_ms"}


@given(
    st.floats(0.1, 1e5), st.floats(1e-3, 1e4), st.floats(0, 1e5), st.lists(st.floats(0, 1e4), min_size=7, max_size=7)
)
def test_whatever_the_probes_say_the_parts_stay_inside_the_latency(rate, latency_ms, cpu_us, device):
    names = ("r_s", "w_s", "f_s", "r_await", "w_await", "f_await", "%util")
    found = figures(trial(rate, latency_ms, cpu_us=cpu_us), watched(**dict(zip(names, device, strict=True))))
    assert found.keys() & {*PARTS} == {*PARTS} - {"lock_ms"}  # nobody asked the server
    assert all(0 <= found.get(name, 0.0) <= latency_ms * (1 + 1e-9) for name in PARTS)
    assert math.fsum(found.get(name, 0.0) for name in PARTS) == pytest.approx(latency_ms)
    assert 0 <= found["flush_share"] <= found["busy_share"] <= 1


@given(st.integers(1, 200), st.floats(0.05, 1), st.floats(0.001, 0.2), st.floats(0.01, 1))
def test_in_a_closed_loop_the_parts_are_what_the_clock_saw(clients, flushing, reading, cpu_share):
    """``clients`` wait all the time, so Little's law gives the latency, and time under a flush its share of it."""
    rate = 500.0
    latency_ms = 1000 * clients / rate
    cpu_us = cpu_share * (1 - flushing) * 1e6 / rate  # used while nothing is flushed
    read_ms = 0.5 * reading * (1 - flushing) * latency_ms
    seen = watched(f_s=100.0, f_await=10 * flushing, r_s=rate, r_await=read_ms, **{"%util": 100 * flushing})
    found = figures(trial(rate, latency_ms, cpu_us=cpu_us), seen)
    assert found["under_way"] == pytest.approx(clients)
    assert found["cpu_ms"] == pytest.approx(min(cpu_us / 1000, latency_ms))
    assert found["read_ms"] == pytest.approx(read_ms)
    left = latency_ms - found["cpu_ms"] - read_ms
    assert found["flush_ms"] == pytest.approx(min(left, flushing * latency_ms))


def test_one_client_that_commits_waits_for_each_of_its_flushes():
    """A commit of .5 ms CPU, a flush of 8 ms and 1.5 ms of something else, one after another."""
    rate = 100.0
    seen = watched(f_s=rate, f_await=8.0, w_s=2 * rate, w_await=4.0, **{"%util": 82.0})
    found = figures(trial(rate, 10.0, cpu_us=500.0), seen)
    assert found["flushes"] == pytest.approx(1.0)
    told = {name: round(found[name], 6) for name in PARTS if name in found}
    assert told == {"cpu_ms": 0.5, "read_ms": 0.0, "flush_ms": 8.0, "write_ms": 0.2, "rest_ms": 1.3}


def test_waiting_for_row_locks_is_what_innodb_says_per_event():
    """Three of ten clients wait for a row at any time: 3,000 ms a second."""
    seen = {"server_status": {"t_s": ENDS, "Innodb_row_lock_time/s": np.full(len(ENDS), 3000.0)}}
    found = figures(trial(100.0, 100.0, cpu_us=500.0), seen)
    assert found["lock_ms"] == pytest.approx(30.0)
    assert found["rest_ms"] == pytest.approx(69.5)


def test_commits_that_share_a_flush_wait_longer_than_it_takes():
    """Ten clients, three commits to a flush of 10 ms: each waits while others are flushed, too."""
    seen = watched(f_s=100.0, f_await=10.0, **{"%util": 100.0})
    found = figures(trial(300.0, 1000 * 10 / 300, cpu_us=100.0), seen)
    assert found["flushes"] == pytest.approx(1 / 3)
    assert found["flush_ms"] == pytest.approx(1000 * 10 / 300 - 0.1)


def test_in_an_open_loop_a_flush_is_waited_for_by_one_where_fewer_are_under_way():
    seen = watched(f_s=10.0, f_await=5.0, **{"%util": 5.0})
    found = figures(trial(10.0, 6.0), seen)  # .06 under way
    assert found["flush_ms"] == pytest.approx(5.0)


def test_of_two_devices_that_flush_together_a_commit_waits_once():
    """The counters of both are added up: 100 flushes of 5 ms each, 50 on either, fill a quarter of the time."""
    seen = watched(f_s=100.0, f_await=5.0, **{"%util": 25.0})
    one = replace(trial(100.0, 10.0), observed={"device": {"kind": "emulated"}})
    two = replace(one, observed={"device": {"kind": "emulated", "devices": 2}})
    assert figures(one, seen)["flush_share"] == pytest.approx(0.25), "bounded by the time that the device was busy"
    assert figures(two, seen)["flush_share"] == pytest.approx(0.25)
    assert figures(two, watched(f_s=100.0, f_await=5.0, **{"%util": 60.0}))["flush_share"] == pytest.approx(0.25)
    assert figures(one, watched(f_s=100.0, f_await=5.0, **{"%util": 60.0}))["flush_share"] == pytest.approx(0.5)


def test_a_read_counts_as_long_as_its_request_however_many_others_keep_the_device_busy():
    """Twenty clients keep an SSD at 100 %, but each of their queries reads for .1 ms only."""
    seen = watched(r_s=10_000.0, r_await=0.1, **{"%util": 100.0})
    found = figures(trial(10_000.0, 2.0, cpu_us=150.0), seen)
    assert found["read_ms"] == pytest.approx(0.1)
    assert found["write_ms"] == found["flush_ms"] == 0


def test_a_block_trace_tells_of_the_wait_for_a_place_in_the_queue_too():
    seen, one = watched(r_s=100.0, r_await=2.0), trial(100.0, 10.0, cpu_us=500.0)
    times = {"queue_ms": {"read": {"mean": 5.0}}, "device_ms": {"read": {"mean": 1.5}}}
    assert figures(one, seen)["read_ms"] == pytest.approx(2.0)
    assert figures(replace(one, block_trace=times), seen)["read_ms"] == pytest.approx(6.5)
    assert figures(replace(one, block_trace={"device_ms": times["device_ms"]}), seen)["read_ms"] == pytest.approx(2.0)


def test_what_no_probe_saw_is_not_a_part():
    found = figures(trial(100.0, 10.0, cpu_us=500.0), {})
    assert found["cpu_ms"] == pytest.approx(0.5)
    assert found["rest_ms"] == pytest.approx(9.5)
    assert not {"flush_ms", "read_ms", "write_ms"} & found.keys()
    assert figures(replace(trial(100.0, 10.0), metrics={"seconds_real": 4.0}), {}) == {}


def test_a_host_on_which_the_server_is_not_says_nothing_of_it():
    seen = {"host_cpu": {"t_s": ENDS, "%idle": np.zeros(len(ENDS)), "%iowait": np.zeros(len(ENDS))}}
    here = trial(100.0, 10.0, pressure={"cpu_some": 0.9}, foreign_cpu=0.5)
    there = replace(here, observed={"server": {"local": False}})
    assert figures(here, seen)["host_busy_share"] == 1.0
    about_the_host = {"host_busy_share", "cpu_wait_share", "foreign_share"}
    assert about_the_host <= figures(here, seen).keys()
    assert not about_the_host & figures(there, seen).keys()


def test_means_count_the_measured_run_only_and_by_time():
    ends = np.array([0.05, 1.0, 2.0, 4.0, 5.0])
    values = np.array([100.0, 1.0, 2.0, 4.0, 100.0])
    expected = (100 * 0.05 + 0.95 + 2 + 2 * 4 + 0 * 100) / 4
    assert means({"t_s": ends, "x": values}, 4.0)["x"] == pytest.approx(expected)
    assert means({"t_s": ends[:2], "x": values[:2]}, 4.0) == {}


PLACE = Place(cores=2.0, server_cores=None, client_beside=False, client_threads=1.0, rotational=True, kept_up=False)
QUIET = {"latency_ms": 10.0, "rest_ms": 1.0, "flush_ms": 6.0, "cpu_ms": 3.0, "busy_share": 0.5, "flush_share": 0.4}


@pytest.mark.parametrize(
    ("figure", "place", "kind"),
    [
        ({}, PLACE, "flush_ms"),
        ({"client_cores": 0.95}, PLACE, "client"),
        ({"client_cores": 0.95}, replace(PLACE, client_threads=2.0), "flush_ms"),
        ({"host_busy_share": 0.97}, PLACE, "processor"),
        ({"server_cores": 0.95}, replace(PLACE, server_cores=1.0), "processor"),
        ({"server_cores": 0.95}, PLACE, "flush_ms"),
        (
            {"server_cores": 0.7, "client_cores": 0.25},
            replace(PLACE, server_cores=1.0, client_beside=True),
            "processor",
        ),
        ({"server_cores": 0.7, "client_cores": 0.25}, replace(PLACE, server_cores=1.0), "flush_ms"),
        ({"busy_share": 0.95, "flush_share": 0.9}, PLACE, "flushes"),
        ({"busy_share": 0.95, "flush_share": 0.9}, replace(PLACE, rotational=False), "flushes"),
        ({"busy_share": 0.95, "flush_share": 0.7}, PLACE, "device"),
        ({"busy_share": 0.95}, replace(PLACE, rotational=False), "flush_ms"),
        ({}, replace(PLACE, kept_up=True), "rate"),
        ({"rest_ms": 7.0}, PLACE, "rest_ms"),
    ],
)
def test_what_limits_a_treatment_follows_from_stated_rules(figure, place, kind):
    found = limit({**QUIET, **figure}, place)
    assert found.kind == kind
    assert found.full == (kind not in {*get_args(Part), "rate"})
    assert found.share >= FULL or not found.full


def test_part_names_are_those_that_can_limit():
    assert get_args(Part) == PARTS


@given(st.lists(st.tuples(*[st.floats(-100, 100)] * len(PARTS)), min_size=6, max_size=12))
def test_what_parts_add_to_the_spread_adds_up_and_shares_are_shares(rows):
    d = dict(zip(PARTS, np.array(rows).T, strict=True))
    whole = np.sum(list(d.values()), axis=0)
    added = spread_parts({"latency_ms": whole, **d})
    shares = variance_shares(added)
    if np.ptp(whole) > 1e-6:
        assert math.fsum(added.values()) == pytest.approx(np.std(whole, ddof=1), rel=1e-4, abs=1e-6)
    assert all(0 <= value <= 1 for value in shares.values())
    assert not shares or math.fsum(shares.values()) == pytest.approx(1.0)
    against = math.fsum(min(0.0, value) for value in added.values())
    assert bool(shares) == (bool(added) and against >= -0.1 * math.fsum(added.values()))


def test_parts_that_vary_against_each_other_have_no_shares():
    """Reads vary by twice as much as the whole, and CPU by as much against it."""
    swing = np.array([1.0, -1.0] * 4)
    added = spread_parts({"latency_ms": swing, "read_ms": 2 * swing, "cpu_ms": -swing})
    deviation = math.sqrt(8 / 7)
    assert added == pytest.approx({"read_ms": 2 * deviation, "cpu_ms": -deviation})
    assert variance_shares(added) == {}
    assert variance_shares(spread_parts({"latency_ms": swing, "read_ms": 0.75 * swing, "cpu_ms": 0.25 * swing})) == (
        pytest.approx({"read_ms": 0.75, "cpu_ms": 0.25})
    )


@given(
    st.dictionaries(
        st.sampled_from(["client_cores", "server_cores", "host_busy_share", "foreign_share", "busy_share", *PARTS]),
        st.floats(0, 4),
    ),
    st.sampled_from([None, 1.0, 2.0]),
    st.booleans(),
)
def test_what_is_full_or_takes_most_has_a_share_of_it(drawn, confined, beside):
    found = {**drawn, **{name: min(1.0, value) for name, value in drawn.items() if name.endswith("_share")}}
    found = {"busy_share": 0.0, **found, "flush_share": found.get("busy_share", 0.0) / 2}
    found["latency_ms"] = math.fsum(found.get(name, 0.0) for name in PARTS) or 1.0
    for rotational in (True, False):
        limited = limit(found, Place(4.0, confined, beside, 1.0, rotational, kept_up=False))
        assert 0 <= limited.others <= limited.share <= 1


def test_the_difference_between_levels_is_taken_inside_blocks(a_run):
    """Blocks differ tenfold in speed; the level takes 3 ms more in each, all of it under flushes."""
    run = a_run({"a": [100.0] * 8, "b": [100.0] * 8})
    seen, trials = {}, []
    for one in run.trials:
        latency = 5.0 * one.block + (3.0 if one.treatment == "b" else 0.0)
        metrics = trial(1000 / latency, latency, cpu_us=200.0).metrics
        trials.append(replace(one, metrics=metrics))
        flush_ms = latency - 1.0
        seen[one.id] = watched(f_s=1000 / latency, f_await=flush_ms, **{"%util": 100 * flush_ms / latency})
    found = analyse(replace(run, trials=trials), watched=seen).why
    changed = found.changes["a", "b"]
    for name, expected in (("latency_ms", 3.0), ("flush_ms", 3.0), ("cpu_ms", 0.0)):
        estimate = changed.differences[name]
        assert (estimate.value, estimate.low, estimate.high) == pytest.approx((expected,) * 3, abs=1e-9)
    assert [one.n for one in found.treatments] == [8, 8]
    assert analyse(replace(run, trials=trials)).why.treatments == []


def test_a_share_that_coarse_counters_put_above_the_whole_is_the_whole(a_run):
    run = a_run({"a": [100.0] * 8, "b": [100.0] * 8})
    pressure = {"pressure": {"cpu_some": 1.02, "io_some": -0.01}, "foreign_cpu": 1.3}
    metrics = trial(100.0, 10.0, cpu_us=500.0).metrics
    trials = [replace(one, metrics=metrics, disturbance=pressure) for one in run.trials]
    locks = {"t_s": ENDS, "Innodb_row_lock_time/s": np.full(len(ENDS), 3000.0)}
    seen = {one.id: {**watched(w_s=500.0), "server_status": locks} for one in trials}
    found = analyse(replace(run, trials=trials), watched=seen).why.treatments[0].figures
    shares = {name: value for name, value in found.items() if name.endswith("_share")}
    expected = {"cpu_wait_share": 1.0, "io_wait_share": 0.0, "foreign_share": 1.0, "lock_wait_share": 1.0}
    assert shares == {**expected, "busy_share": 0.0, "flush_share": 0.0}
    assert found["lock_waiters"] == pytest.approx(3.0)


def test_what_was_watched_on_one_side_only_is_in_the_rest_of_both(a_run):
    """The level's runs are over before the device has been sampled: what it takes more of is not told apart."""
    run = a_run({"a": [100.0] * 8, "b": [100.0] * 8})
    seen, trials = {}, []
    for one in run.trials:
        latency = 4.0 if one.treatment == "b" else 2.0
        trials.append(replace(one, metrics=trial(1000 / latency, latency, cpu_us=500.0).metrics))
        seen[one.id] = watched(w_s=500.0, w_await=1.0, **{"%util": 50.0})
        if one.treatment == "b":
            seen[one.id]["block_device"] = {"t_s": ENDS[:0]}
    changed = analyse(replace(run, trials=trials), watched=seen).why.changes["a", "b"]
    told = {name: estimate.value for name, estimate in changed.differences.items()}
    assert told == pytest.approx({"latency_ms": 2.0, "cpu_ms": 0.0, "rest_ms": 2.0})
    assert [one.figures["rest_ms"] for one in (changed.baseline, changed.level)] == pytest.approx([1.5, 3.5])


@pytest.mark.parametrize(("rate", "latency_ms"), [(1e308, 1e308), (1e-320, 1.0), (5e-324, 5e-324), (1.0, math.inf)])
def test_figures_that_no_host_can_have_explain_nothing_and_break_nothing(rate, latency_ms):
    device = {"r_s": 9.0, "w_s": 9.0, "f_s": 9.0, "r_await": 1.0, "w_await": 1.0, "f_await": 1.0, "%util": 50.0}
    found = figures(trial(rate, latency_ms, cpu_us=9.0), watched(**device))
    assert all(map(math.isfinite, found.values()))
