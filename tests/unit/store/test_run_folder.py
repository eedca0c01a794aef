"""The run folder: what is written is read back, what is damaged is refused."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dbdyno.errors import UserError
from dbdyno.model.design import Fleet
from dbdyno.store.documents import value_of
from dbdyno.store.events import (
    Dropped,
    Ended,
    Failed,
    Finished,
    Joined,
    Note,
    Planned,
    Resumed,
    Started,
    line_of,
    read_events,
)
from dbdyno.store.header import FORMAT
from dbdyno.store.records import FailedTrial, Trial
from dbdyno.store.run_folder import RunFolder, create, read_run
from dbdyno.store.trials import lost_trials
from tests.unit.store.conftest import DESIGN, HEADER, HOST, SERIES, fail_one, run_one, trial


def test_the_study_is_read_back_with_files_of_one_s_own_by_name_and_content(tmp_path):
    path = "/home/somebody/mine.toml"
    study = {"stack": {"device": ["hdd-7200", f"raid1({path}, 2)"]}, "workload": {"clients": 4}}
    create(tmp_path / "run", replace(HEADER, study=study, drive_files={path: "x = 1"}), HOST).close()
    found = read_run(tmp_path / "run").study
    assert found["stack"] == {"device": ["hdd-7200", "raid1(mine.toml, 2)"]}
    assert found["workload"] == {"clients": 4}
    assert list(found["files"]) == ["mine.toml"]
    assert len(found["files"]["mine.toml"]) == 64


def test_the_study_s_text_is_kept_as_it_was_written(tmp_path):
    text = "version = 1  # «my» study\r\n[study]\n"
    create(tmp_path / "run", replace(HEADER, study_file="mine.toml"), HOST, text).close()
    found = read_run(tmp_path / "run")
    assert (found.study_file, found.study_text) == ("mine.toml", text)
    create(tmp_path / "old", HEADER, HOST).close()
    assert read_run(tmp_path / "old").study_text == ""


def test_what_is_written_is_read_back(folder):
    folder.append(Planned(8))
    run_one(folder, trial(1, "t2"), SERIES)
    fail_one(folder, trial(1, "t1"), "the server was killed — «9»\n")
    folder.append(Dropped("t1", "t1 is left out"))
    folder.append(Note("block 1 was given up"))
    folder.append(Ended("done", "blocks"))
    run = read_run(folder.path)
    assert run.design == DESIGN
    assert run.trials == [trial(1, "t2")]
    assert run.failures == [FailedTrial("b1a1-t1", 1, 1, "t1", "the server was killed — «9»\n")]
    assert (run.title, run.question) == ("SSD oder HDD — «quoted»", "Which?\nAnd why?")
    assert (run.host, run.versions, run.ended) == (HOST, HEADER.versions, "done")
    assert run.dropped == {"t1"}
    assert run.notes == ["t1 is left out", "block 1 was given up"]


def test_a_fleet_s_hosts_are_read_back(tmp_path):
    fleet = Fleet(["db1", "db2"], {"drive": {"db1": "hdd", "db2": "ssd"}})
    folder = create(tmp_path / "run", replace(HEADER, design=replace(DESIGN, fleet=fleet)), HOST)
    folder.append(Planned(8))
    folder.append(Joined("db2", {"cores": 4}))
    run_one(folder, replace(trial(1, "t1"), host="db2"), SERIES)
    folder.append(Failed("b1a1-t2", 1, 1, "t2", "died", host="db2"))
    run = read_run(folder.path)
    assert (run.design.fleet, run.hosts) == (fleet, {"db2": {"cores": 4}})
    assert [one.host for one in (*run.trials, *run.failures)] == ["db2", "db2"]
    assert run.host == HOST


def test_a_trial_that_is_of_another_host_than_the_log_says_is_damaged(folder):
    run_one(folder, replace(trial(1, "t1"), host="db2"), SERIES)
    log = folder.path / "journal.jsonl"
    log.write_bytes(b"".join(line_of(replace(one, host="db1")) for one in read_events(folder.path) if one.host))
    with pytest.raises(UserError, match="it is about another trial"):
        read_run(folder.path)


def test_the_number_of_blocks_is_the_last_one_asked_for(folder):
    folder.append(Planned(8))
    folder.append(Ended("done", "blocks"))
    assert read_run(folder.path).ended == "done"
    folder.append(Resumed(12))
    run = read_run(folder.path)
    assert (run.design.blocks, run.ended) == (12, "running")


def test_a_trial_counts_only_when_the_log_says_finished(folder):
    run_one(folder, trial(1, "t1"))
    half = trial(1, "t2")
    where = folder.trial_folder(half.id)
    folder.append(Started(half.id, 1, 1, "t2"))
    shutil.copy(folder.path / "trials/b1a1-t1/trial.json", where / "trial.json")
    fail_one(folder, trial(2, "t1"), "no")
    assert [one.id for one in read_run(folder.path).trials] == ["b1a1-t1"]


def test_a_trial_s_files_are_there_before_the_log_says_finished(folder, monkeypatch):
    seen = []

    def append(_self, event):
        where = folder.path / "trials" / event.trial
        seen.append((type(event), sorted(path.name for path in where.iterdir())))
        json.loads((where / "trial.json").read_text())

    folder.trial_folder("b1a1-t1")
    monkeypatch.setattr(RunFolder, "append", append)
    folder.finish(trial(1, "t1"), SERIES)
    assert seen == [(Finished, ["host_cpu.parquet", "load.parquet", "trial.json"])]


def test_a_second_try_of_a_trial_starts_from_an_empty_folder(folder):
    (folder.trial_folder("b1a1-t1") / "latency.hlog").write_text("half")
    assert list(folder.trial_folder("b1a1-t1").iterdir()) == []


def test_a_finished_trial_whose_file_is_gone_is_damage(folder):
    run_one(folder, trial(1, "t1"))
    (folder.path / "trials/b1a1-t1/trial.json").unlink()
    with pytest.raises(UserError) as refused:
        read_run(folder.path)
    assert str(refused.value) == (
        f"{folder.path}/trials/b1a1-t1/trial.json: is damaged: No such file or directory; put it back from a copy, or "
        f"go on with the run by --into {folder.path} --resume, which measures block 1 again (trial b1a1-t1 was in it)"
    )


def test_one_writer_at_a_time(tmp_path):
    folder = create(tmp_path, HEADER, HOST)
    with pytest.raises(UserError) as refused:
        RunFolder(folder.path)
    assert str(refused.value) == f"{folder.path}: another dbdyno is writing this run"
    folder.close()
    RunFolder(folder.path).close()


def test_reading_needs_no_lock(folder):
    folder.append(Planned(8))
    assert read_run(folder.path).ended == "running"


def test_a_folder_that_is_not_empty_is_left_as_it_is(tmp_path):
    (tmp_path / "mine.txt").write_text("keep")
    with pytest.raises(UserError) as refused:
        create(tmp_path, HEADER, HOST)
    assert str(refused.value) == f"{tmp_path} is not empty; name a new folder, or go on with this run by --resume"
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_an_empty_folder_is_taken(tmp_path):
    create(tmp_path, HEADER, HOST).close()
    assert tomllib.loads((tmp_path / "run.toml").read_text())["format"] == FORMAT


def test_a_file_in_the_way(tmp_path):
    (tmp_path / "run").write_text("")
    with pytest.raises(UserError) as refused:
        create(tmp_path / "run", HEADER, HOST)
    assert str(refused.value) == f"{tmp_path / 'run'}: File exists"


def test_what_is_no_run_folder(tmp_path):
    with pytest.raises(UserError) as refused:
        read_run(tmp_path)
    why = "is not a run folder: it holds no run.toml; dbdyno runs lists those there are"
    assert str(refused.value) == f"{tmp_path} {why}"


def test_a_folder_that_can_not_be_written(tmp_path):
    (tmp_path / "lock").mkdir()
    with pytest.raises(UserError) as refused:
        RunFolder(tmp_path)
    assert str(refused.value) == f"{tmp_path / 'lock'} can't be written: Is a directory"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_what_only_the_reader_may_not_read_is_not_damaged():
    with tempfile.TemporaryDirectory(dir="/var/tmp") as above:  # which others may pass, as they may not pass tmp_path
        Path(above).chmod(0o755)
        see_that_its_reader_is_at_fault(Path(above))


def see_that_its_reader_is_at_fault(above):
    folder = create(above / "run", HEADER, HOST)
    run_one(folder, trial(1, "t1"), SERIES)
    folder.close()
    file = folder.path / "trials/b1a1-t1/trial.json"
    read_run(folder.path)  # all that is imported by it is there
    file.chmod(0o600)
    os.seteuid(65534)
    try:
        with pytest.raises(UserError) as refused:
            lost_trials(folder.path)
    finally:
        os.seteuid(0)
    assert str(refused.value) == f"{file}: can't be read: Permission denied"


REPORT = """
import sys
from pathlib import Path
from dbdyno.cli.output import Format
from dbdyno.cli.show import show
show(Path(sys.argv[1]), Format.JSON)
show(Path(sys.argv[1]), Format.JSON)
"""


def test_the_report_of_a_copied_folder_is_the_same_bytes(tmp_path):
    folder = create(tmp_path / "run", HEADER, HOST)
    folder.append(Planned(8))
    rates = np.random.default_rng(1).normal(0, 0.02, 16).tolist()
    for block in range(1, 9):
        run_one(folder, trial(block, "t1", 100 * np.exp(rates.pop())))
        run_one(folder, trial(block, "t2", 140 * np.exp(rates.pop())))
    folder.append(Ended("done", "blocks"))
    folder.close()
    copies = [shutil.copytree(folder.path, tmp_path / name) for name in ("copy", "elsewhere")]
    shutil.rmtree(folder.path)
    said = [
        subprocess.run(
            [sys.executable, "-c", REPORT, str(copy)],
            env={**os.environ, "PYTHONHASHSEED": seed, "TZ": zone},
            capture_output=True,
            check=True,
        ).stdout
        for copy, seed, zone in zip(copies, ("1", "2"), ("UTC", "Asia/Tokyo"), strict=True)
    ]
    assert said[0] == said[1]
    first, second = said[0][: len(said[0]) // 2], said[0][len(said[0]) // 2 :]
    assert first == second
    document = json.loads(first)
    assert document["verdicts"][0]["verdict"] == "faster"
    assert document["blocks_usable"] == 8


# What a trial's file holds of results: tables are those that are known, figures are anyone's.


TRIAL = {"id": "b1", "block": 1, "attempt": 1, "position": 1, "treatment": "t", "started_at": "", "metrics": {}}


def test_what_another_program_or_version_says_is_kept():
    load = {"kind": "fio", "version": "fio-3.33", "directions": {"read": 1}, "latency_ns": {"p50": 5, "p12345": None}}
    assert value_of(Trial, {**TRIAL, "load": load}).load == load
    assert value_of(Trial, TRIAL).load == {}


@pytest.mark.parametrize(
    ("part", "value", "said"),
    [
        ("load", {"latency_ns": 5}, "load.latency_ns is not a table"),
        ("load", {"client_hosts": [{"host": "c1"}, "c2"]}, r"load.client_hosts\[1\] is not a table"),
        ("load", {"operations": {"select": {"p99": "slow"}}}, "load.operations.select.p99 is not a number"),
        ("device", {"disks": {"lateness_ns": {}}}, "device.disks is not a list"),
        ("disturbance", {"beyond": "stolen"}, "disturbance.beyond is not a list"),
    ],
)
def test_a_table_of_another_shape_is_named(part, value, said):
    with pytest.raises(ValueError, match=said):
        value_of(Trial, {**TRIAL, part: value})
