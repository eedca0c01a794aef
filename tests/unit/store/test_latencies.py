"""How often each latency was met: stored beside the series, and read for the analysis alone."""

import numpy as np
import pytest

from dbdyno.errors import UserError
from dbdyno.store.run_folder import read_run
from dbdyno.store.series import read_analysed, read_latencies, read_series, series_names, write_series
from tests.unit.store.conftest import SERIES, run_one, trial

MET = {"latency_ns": [0.0, 1023.0, 5e9], "count": [1.0, 2.0**40, 3.0]}


@pytest.fixture
def stored(folder):
    run_one(folder, trial(1, "t1"), {**SERIES, "latency": MET})
    run_one(folder, trial(1, "t2"), SERIES)
    return folder.path


def test_it_is_read_back_for_the_trials_that_have_it(stored):
    found = read_analysed(stored, read_run(stored))["latencies"]
    assert found.keys() == {"b1a1-t1"}
    np.testing.assert_array_equal(found["b1a1-t1"].latency_ns, MET["latency_ns"])
    np.testing.assert_array_equal(found["b1a1-t1"].count, MET["count"])


def test_it_is_read_alone_where_nothing_else_is_wanted(stored):
    run = read_run(stored)
    alone, among_others = read_latencies(stored, run), read_analysed(stored, run)["latencies"]
    assert alone.keys() == among_others.keys() == {"b1a1-t1"}
    np.testing.assert_array_equal(alone["b1a1-t1"].count, among_others["b1a1-t1"].count)


def test_it_is_no_series(stored):
    assert series_names(stored, ["b1a1-t1"]) == sorted(SERIES)
    assert read_series(stored, ["b1a1-t1"])["b1a1-t1"].keys() == SERIES.keys()


@pytest.mark.parametrize(
    "columns",
    [
        {"latency_ns": [2.0, 1.0], "count": [1.0, 1.0]},
        {"latency_ns": [1.0, 2.0], "count": [1.0, 0.0]},
        {"latency_ns": [1.0, 2.0], "count": [1.0, 0.5]},
        {"latency_ns": [-1.0, 2.0], "count": [1.0, 1.0]},
        {"latency_ns": [1.0, float("nan")], "count": [1.0, 1.0]},
        {"latency_ns": [1.0, 2.0], "count": [1.0, float("inf")]},
        {"latency_ns": [1.0, 2.0]},
        {"count": [1.0, 2.0]},
        {"latency_ns": [1.0, 2.0], "count": [2.0**53, 1.0]},
    ],
)
def test_what_is_no_histogram_is_damage(stored, columns):
    """Also in a file of which the event log has no sum."""
    file = stored / "trials/b1a1-t2/latency.parquet"
    write_series(file, columns)
    with pytest.raises(UserError, match=r"not a histogram|no column latency_ns") as raised:
        read_analysed(stored, read_run(stored))
    assert "latency.parquet" in str(raised.value)
