"""Run folders of others: one budget for all that a command reads, and a last word that names the folder."""

import re
from pathlib import Path

import duckdb
import pytest

from dbdyno.errors import TrialError, UserError
from dbdyno.store.others import TRACEBACK, Budget, last_resort
from dbdyno.store.run_folder import read_run
from dbdyno.store.series import SeriesRequest, read_analysed, read_each

KEPT = Path(__file__).parents[2] / "kept/clients"


def test_honest_folders_take_a_small_part_of_the_budget():
    budget, whole = Budget(), Budget()
    for _ in range(3):
        read_analysed(KEPT, read_run(KEPT, budget=budget), budget)
    assert budget.document_values > whole.document_values * 0.98
    assert budget.document_bytes > whole.document_bytes * 0.98
    assert budget.series_values > whole.series_values  # its files take more bytes than so many values do
    assert budget.reading_seconds > whole.reading_seconds - 1


@pytest.mark.parametrize("lacking", ["document_values", "document_bytes"])
def test_what_goes_beyond_the_documents_of_a_command_is_not_read(lacking):
    budget = Budget()
    read_run(KEPT, budget=budget)
    setattr(budget, lacking, (getattr(Budget, lacking) - getattr(budget, lacking)) * 3 // 2)
    read_run(KEPT, budget=budget)
    with pytest.raises(UserError, match=f"{KEPT}: with it the run folders hold more than one command reads"):
        read_run(KEPT, budget=budget)


def test_series_that_stand_for_more_than_their_bytes_are_counted_over_folders(tmp_path):
    bounds = Budget(series_values=150_000)
    folder = tmp_path / "trials" / "b1"
    folder.mkdir(parents=True)
    query = "SELECT 1.0::DOUBLE AS t_s, 1.0::DOUBLE AS iops FROM range(60000)"
    duckdb.execute(f"COPY ({query}) TO '{folder / 'load.parquet'}' (FORMAT parquet, COMPRESSION snappy)")
    asked = [SeriesRequest("b1", "load", ".*")]
    list(read_each(tmp_path, asked, {}, None, bounds))
    with pytest.raises(UserError, match="more than one command reads"):
        list(read_each(tmp_path, asked, {}, None, bounds))


def test_time_that_gives_nothing_is_counted_over_folders(tmp_path):
    budget = Budget()
    budget.take_seconds(tmp_path, 3.0)
    budget.take_seconds(tmp_path, -9.0)
    with pytest.raises(UserError, match=str(tmp_path)):
        budget.take_seconds(tmp_path, 3.0)


def test_an_error_that_nobody_foresaw_names_the_folders(tmp_path, monkeypatch):
    monkeypatch.delenv(TRACEBACK, raising=False)
    words = rf"{re.escape(str(tmp_path))} and other: .*KeyError: 't9.*{TRACEBACK}=1"
    with pytest.raises(UserError, match=words) as said, last_resort(tmp_path, Path("other")):
        {}["t9\x1b"]
    assert "\x1b" not in str(said.value)


def test_where_it_was_made_can_be_seen(tmp_path, monkeypatch):
    monkeypatch.setenv(TRACEBACK, "1")
    with pytest.raises(KeyError), last_resort(tmp_path):
        {}["t9"]


@pytest.mark.parametrize("error", [TrialError("x"), OSError("x"), KeyboardInterrupt()])
def test_an_error_that_says_what_is_wrong_stays(error, tmp_path):
    with pytest.raises(type(error)) as said, last_resort(tmp_path):
        raise error
    assert said.value is error
