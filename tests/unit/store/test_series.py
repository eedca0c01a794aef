"""Series of trials are read back as they were written."""

import contextlib

import duckdb
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dbdyno import _native
from dbdyno.errors import UserError
from dbdyno.store.parts import DamageError
from dbdyno.store.run_folder import read_run
from dbdyno.store.series import (
    LOAD_COLUMNS,
    Bounds,
    SeriesRequest,
    as_parquet,
    read_analysed,
    read_each,
    read_files,
    read_latencies,
    read_matching,
    read_series,
    series_names,
    write_series,
)
from tests.unit.store.conftest import SERIES, run_one, trial


def test_series_are_read_back_bit_by_bit(folder):
    run_one(folder, trial(1, "t1"), SERIES)
    found = read_series(folder.path, ["b1a1-t1"])["b1a1-t1"]
    assert found.keys() == SERIES.keys()
    for name, columns in SERIES.items():
        assert list(found[name]) == list(columns)
        for column, values in columns.items():
            np.testing.assert_array_equal(found[name][column], np.asarray(values))
    assert not list(folder.path.rglob("*.part"))


def test_a_trial_without_series_has_none(folder):
    run_one(folder, trial(1, "t1"), {"load": {}})
    assert read_series(folder.path, ["b1a1-t1"]) == {"b1a1-t1": {}}


def test_the_load_of_all_trials_is_read_at_once(folder):
    done = [trial(block, treatment) for block in (1, 2, 3) for treatment in ("t1", "t2")]
    loads = {one.id: {"t_s": [0.1 * i for i in range(place + 1)]} for place, one in enumerate(done)}
    for place, one in enumerate(done):
        loads[one.id]["events_per_second"] = [float(place)] * (place + 1)
        if place == 3:
            loads[one.id] |= {"phase": ["load"] * 4, "latency_ms_p99": [1.0] * 4}
        run_one(folder, one, {"load": loads[one.id]} if place != 4 else {})
    each = read_matching(folder.path, [one.id for one in done], {"load": LOAD_COLUMNS})
    found = {id_: one["load"] for id_, one in each.items() if one}
    assert set(found) == {one.id for place, one in enumerate(done) if place != 4}
    for id_, columns in found.items():
        assert columns["t_s"].tolist() == loads[id_]["t_s"]
        assert columns["events_per_second"].tolist() == loads[id_]["events_per_second"]
        assert "latency_ms_p99" not in columns
    assert found[done[3].id]["phase"].tolist() == ["load"] * 4
    assert read_matching(folder.path, ["nobody"], {"load": LOAD_COLUMNS}) == {"nobody": {}}


@settings(max_examples=20, deadline=None)
@given(lengths=st.lists(st.integers(0, 3000), min_size=1, max_size=8))
def test_many_files_read_at_once_keep_their_rows_and_their_order(tmp_path_factory, lengths):
    path = tmp_path_factory.mktemp("run")
    written = {f"b{place}": np.arange(length) + 10.0**place for place, length in enumerate(lengths)}
    for id_, values in written.items():
        (path / "trials" / id_).mkdir(parents=True)
        more = {"events_per_second": -values} if len(values) % 2 else {}
        write_series(path / "trials" / id_ / "load.parquet", {"t_s": values, **more})
    found = read_files(path, list(written), "load", "t_s|events_per_second", {})
    assert list(found) == [id_ for id_, values in written.items() if len(values)]
    for id_, columns in found.items():
        np.testing.assert_array_equal(columns["t_s"], written[id_])
        if "events_per_second" in columns:
            np.testing.assert_array_equal(
                columns["events_per_second"],
                -written[id_] if len(written[id_]) % 2 else np.full(len(written[id_]), np.nan),
            )


def test_a_series_without_its_times_is_damaged(tmp_path):
    (tmp_path / "trials" / "b1").mkdir(parents=True)
    write_series(tmp_path / "trials" / "b1" / "load.parquet", {"rows": [1.0]})
    with pytest.raises(DamageError, match="holds no column t_s"):
        read_files(tmp_path, ["b1"], "load", "t_s|events_per_second", {})


def test_a_file_of_more_rows_than_a_trial_can_have_is_not_read(tmp_path):
    (tmp_path / "trials" / "b1").mkdir(parents=True)
    write_series(tmp_path / "trials" / "b1" / "load.parquet", {"t_s": [1.0, 2.0, 3.0]})
    with pytest.raises(DamageError, match="claims to have 3 rows"):
        list(read_each(tmp_path, [SeriesRequest("b1", "load", "t_s")], {}, Bounds(rows=2)))


def test_a_long_run_may_hold_as_much_as_its_bytes_are_due_and_a_bomb_may_not(tmp_path):
    (tmp_path / "trials" / "b1").mkdir(parents=True)
    file, asked = tmp_path / "trials" / "b1" / "load.parquet", [SeriesRequest("b1", "load", "t_s")]
    measured = np.random.default_rng(1).normal(size=5000)
    write_series(file, {"t_s": measured})
    [(_, found)] = read_each(tmp_path, asked, {}, Bounds(values=1000))
    np.testing.assert_array_equal(found["t_s"], measured)
    with pytest.raises(DamageError, match="more than so many trials of so long can have measured"):
        list(read_each(tmp_path, asked, {}, Bounds(values=1000, planned=4000)))
    write_series(file, {"t_s": np.zeros(5000)})
    with pytest.raises(DamageError, match="more than so many trials of so long can have measured"):
        list(read_each(tmp_path, asked, {}, Bounds(values=1000)))


def test_another_reader_of_parquet_finds_the_same(tmp_path):
    columns = {
        "t_s": np.array([0.1, np.nan, np.inf]),
        "trials": [1, -2, 3],
        "counts": [True, False, True],
        "phase": ["load", None, "härter"],
    }
    (tmp_path / "columns.parquet").write_bytes(as_parquet(columns))
    with duckdb.connect() as connection:
        found = connection.execute("SELECT * FROM read_parquet(?)", [str(tmp_path / "columns.parquet")]).fetchall()
    assert [row[1:] for row in found] == [(1, True, "load"), (-2, False, None), (3, True, "härter")]
    np.testing.assert_array_equal([row[0] for row in found], columns["t_s"])


def test_a_file_of_another_writer_of_parquet_is_read(tmp_path):
    """Run folders of 2026 and before were written by DuckDB; unknown numbers may be nulls."""
    (tmp_path / "trials" / "b1").mkdir(parents=True)
    file = tmp_path / "trials" / "b1" / "load.parquet"
    query = "SELECT i / 10::DOUBLE AS t_s, CASE WHEN i%2=0 THEN i END AS n, 'load' AS phase FROM range(5000) AS r(i)"
    with duckdb.connect() as connection:
        connection.execute(f"COPY ({query}) TO '{file}' (FORMAT parquet, ROW_GROUP_SIZE 2048)")
    found = read_files(tmp_path, ["b1"], "load", ".*", {})["b1"]
    np.testing.assert_array_equal(found["t_s"], np.arange(5000) / 10)
    np.testing.assert_array_equal(found["n"], np.where(np.arange(5000) % 2, np.nan, np.arange(5000)))
    assert set(found["phase"]) == {"load"}


@pytest.mark.parametrize("value", ["DATE '2026-01-01'", "[1.0, 2.0]", "{'a': 1.0}", "'text'"])
def test_a_column_without_numbers_is_damage(tmp_path, value):
    (tmp_path / "trials" / "b1").mkdir(parents=True)
    with duckdb.connect() as connection:
        file = tmp_path / "trials" / "b1" / "load.parquet"
        connection.execute(f"COPY (SELECT 0.5::DOUBLE AS t_s, {value} AS rows) TO '{file}' (FORMAT parquet)")
    with pytest.raises(DamageError, match=r"its column rows.* holds no numbers"):
        read_files(tmp_path, ["b1"], "load", ".*", {})


@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_a_damaged_file_is_refused_or_read_never_more(data):
    """What the library panics about, too, is an error of Python's, with nothing printed."""
    whole = as_parquet({"t_s": np.arange(40.0), "phase": ["a", None, "load", "b"] * 10})
    places = data.draw(st.lists(st.tuples(st.integers(0, len(whole) - 1), st.integers(0, 255)), max_size=4))
    broken = bytearray(whole)
    for place, value in places:
        broken[place] = value
    del broken[data.draw(st.integers(0, 8)) :: len(broken)]
    with contextlib.suppress(ValueError):
        found = _native.read_parquet(bytes(broken), 40, lambda _: True)
        assert all(values is None or len(values) <= 8 * 40 for values in found.values())


# How often each latency was met: stored beside the series, and read for the analysis alone.


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
