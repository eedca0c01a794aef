"""Run folders of others: one budget for all that a command reads, whose a folder is, and a last word that names it."""

import os
import re
from pathlib import Path

import duckdb
import pytest

from dbdyno.errors import TrialError, UserError
from dbdyno.store.others import TRACEBACK, Budget, last_resort
from dbdyno.store.run_folder import RunFolder, create, read_run
from dbdyno.store.series import SeriesRequest, read_analysed, read_each
from tests.unit.store.conftest import HEADER, HOST, SERIES, run_one, trial

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


# Whose a run folder is: one that others could lead elsewhere is read, but never written.


def foreign(path):
    os.chown(path, 12345, -1)


def open_to_all(path):
    path.chmod(0o757)


def replaceable(path):
    path.parent.chmod(0o777)


def foreign_state(path):
    state = path / "trials/b0001a1p001-t1/cuts/c1"
    state.mkdir(parents=True)
    (state / "base.img").touch()
    foreign(state / "base.img")


def open_state(path):
    state = path / "trials/b0001a1p001-t1/cuts/c1"
    state.mkdir(parents=True)
    state.chmod(0o777)


def open_file(path):
    (path / "study.toml").touch()
    (path / "study.toml").chmod(0o666)


def open_to_a_group(path):
    os.chown(path / "trials", -1, 12345)
    (path / "trials").chmod(0o775)


def linked_ledger(path):
    state = path / "trials/b0001a1p001-t1/cuts/c1"
    state.mkdir(parents=True)
    (state / "ledger.bin").symlink_to("/etc/shadow")


def linked_trial(path):
    (path / "trials" / "b0001a1p001-t1").symlink_to(path.parent)


def linked_file(path):
    (path / "trials" / "b0001a1p001-t1").mkdir()
    (path / "trials" / "b0001a1p001-t1" / "server.log").symlink_to("/etc/passwd")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (foreign, "{path} belongs to another user (uid 12345), who could change it; name a folder of your own"),
        (lambda path: foreign(path / "journal.jsonl"), "{path}/journal.jsonl belongs to another user (uid 12345)"),
        (open_to_all, "{path} can be written by everybody; chmod o-w it, or "),
        (foreign_state, "{path}/trials/b0001a1p001-t1/cuts/c1/base.img belongs to another user (uid 12345)"),
        (open_state, "{path}/trials/b0001a1p001-t1/cuts/c1 can be written by everybody; chmod o-w it, or "),
        (open_file, "{path}/study.toml can be written by everybody"),
        (open_to_a_group, "{path}/trials can be written by the group 12345; chmod g-w it, or "),
        (linked_ledger, "{path}/trials/b0001a1p001-t1/cuts/c1/ledger.bin is a link; "),
        (replaceable, "{path.parent} can be written by everybody, so {path} can be replaced; chmod o-w it, or "),
        (linked_trial, "{path}/trials/b0001a1p001-t1 is a link; dbdyno writes to no run folder that holds one"),
        (linked_file, "{path}/trials/b0001a1p001-t1/server.log is a link; "),
    ],
)
def test_a_folder_that_others_could_lead_elsewhere_is_read_but_not_written(tmp_path, change, message):
    path = tmp_path / "above" / "run"
    folder = create(path, HEADER, HOST)
    run_one(folder, trial(1, "t1"), SERIES)
    folder.close()
    before = read_run(path)
    change(path)
    with pytest.raises(UserError) as refused:
        RunFolder(path)
    assert str(refused.value).startswith(message.format(path=path))
    assert read_run(path) == before


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_a_folder_given_through_another_user_s_link_is_refused(tmp_path):
    create(tmp_path / "run", HEADER, HOST).close()
    link = tmp_path / "link"
    link.symlink_to("run")
    RunFolder(link).close()
    os.lchown(link, 12345, -1)
    with pytest.raises(UserError, match="belongs to another user"):
        RunFolder(link)


def test_a_new_folder_can_be_written_by_no_others(tmp_path):
    held = os.umask(0)
    try:
        create(tmp_path / "a" / "run", HEADER, HOST).close()
    finally:
        os.umask(held)
    assert [(tmp_path / name).stat().st_mode & 0o777 for name in ("a", "a/run")] == [0o755, 0o755]


def test_a_file_in_a_new_folder_is_not_reached_through_a_link(tmp_path):
    kept = tmp_path / "mine"
    kept.write_text("keep")
    (tmp_path / "run").mkdir()
    for name in ("lock", "host.json.part", "run.toml.part"):
        (tmp_path / "run" / name).symlink_to(kept)
        with pytest.raises(UserError, match="is a link"):
            create(tmp_path / "run", HEADER, HOST)
        (tmp_path / "run" / name).unlink()
    assert kept.read_text() == "keep"
