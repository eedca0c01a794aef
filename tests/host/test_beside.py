"""Loads beside the judged one: their figures, what fails, what a kill leaves."""

import json
import os
from pathlib import Path

import pytest

from dbdyno.store.run_folder import read_run
from tests.support import dbdyno, kill, programs_of, put_back, start_dbdyno, wait_for, what_is_left

pytestmark = [pytest.mark.host, pytest.mark.timeout(300)]

STUDY = """\
version = 1
[study]
title = "beside"
[stack]
device = "here"
[server.settings]
innodb_log_file_size = "8M"
[workload]
kind = "oltp"
load = "read_only"
table_size = {rows}
clients = 2
rate = 50
warmup = "0s"
duration = "2s"
{beside}
[design]
interference = "note"
blocks = 1
"""
BACKUP = '[[workload.beside]]\nname = "backup"\nkind = {kind}\nstart = "300ms"\n'


@pytest.fixture
def run(state, tmp_path):
    """Run a study; returns its trials by treatment, and the process."""

    def finish(beside, *, rows=2000):
        study, into = tmp_path / "study.toml", tmp_path / "run"
        study.write_text(STUDY.format(rows=rows, beside=beside), encoding="utf-8")
        done = dbdyno("run", study, "--into", into, state=state)
        assert what_is_left(state) == []
        return {trial.treatment: trial for trial in read_run(into).trials}, done

    return finish


def test_a_dump_beside_readers_has_its_figures_and_is_no_interference(run, state, tmp_path):
    trials, done = run(BACKUP.format(kind='["none", "dump"]'))
    assert done.returncode == 0, done.stderr
    assert "beside" not in trials["t1"].load
    backup = trials["t2"].load["beside"]["backup"]
    assert (backup["kind"], backup["program"], backup["stopped"]) == ("dump", "mariadb-dump", False)
    assert backup["began_s"] > 0.2, "at .3 s; the load itself may begin some ms after the moment named to both"
    assert backup["seconds"] > 0
    assert backup["figures"]["megabytes"] > 0.3
    assert backup["figures"]["rows"] == 2000
    parts, clock = [backup[part]["seconds"] for part in ("during", "outside")], trials["t2"].load["clock"]
    assert sum(parts) == pytest.approx((clock["measure_end_ns"] - clock["measure_start_ns"]) / 1e9, abs=0.2)
    assert all("mariadb-dump" not in name for name in trials["t2"].disturbance["others"])
    # Both begin at a moment that was named before: the treatments differ in the dump alone.
    assert all(trial.load["clock"]["start_asked_ns"] for trial in trials.values())
    report = json.loads(dbdyno("report", tmp_path / "run", "--format", "json", state=state).stdout)
    assert [load["name"] for load in report["beside"]] == ["backup"]


def test_what_still_runs_at_the_end_is_stopped_and_says_what_it_had_done(run):
    batch = '[[workload.beside]]\nname = "batch"\nkind = "oltp"\nload = "update_index"\ntable_size = 100\nrate = 20\n'
    sleeping = '[[workload.beside]]\nname = "sleeper"\nkind = "command"\ncommand = "sleep 100"\n'
    trials, done = run(batch + sleeping)
    assert done.returncode == 0, done.stderr
    beside = trials["t1"].load["beside"]
    assert {name for name, load in beside.items() if load["stopped"]} == {"batch", "sleeper"}
    assert beside["sleeper"]["seconds"] < 60
    assert beside["batch"]["figures"]["events_per_second"] > 0


def test_one_that_fails_fails_its_trial_and_none_is_without_it(run):
    trials, done = run('[[workload.beside]]\nname = "job"\nkind = "command"\ncommand = "ls /no/such/place"\n')
    assert done.returncode == 1
    assert trials == {}
    assert "workload.beside job: ls: exit 2: " in done.stderr
    assert "cannot access '/no/such/place'" in done.stderr


def test_a_missing_program_is_named_with_its_package_before_anything_runs(state, tmp_path, monkeypatch):
    study = tmp_path / "study.toml"
    study.write_text(STUDY.format(rows=10, beside=BACKUP.format(kind='["none", "mariabackup"]')), encoding="utf-8")
    programs = {path.name: path for folder in os.get_exec_path() for path in Path(folder).glob("*")}
    (tmp_path / "bin").mkdir()
    for name in programs.keys() - {"mariabackup", "mariadb-backup"}:
        (tmp_path / "bin" / name).symlink_to(programs[name])
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    assert "mariabackup: not installed; apt-get install mariadb-backup" in dbdyno("plan", study, state=state).stdout


def test_a_killed_run_leaves_no_dump_behind(state, tmp_path):
    study = tmp_path / "study.toml"
    beside = BACKUP.format(kind='"dump"') + 'into = "nowhere"\n'
    study.write_text(STUDY.format(rows=200_000, beside=beside), encoding="utf-8")
    run = start_dbdyno("run", study, "--into", tmp_path / "run", state=state)
    try:
        wait_for(lambda: programs_of(state, "dump"))
    finally:
        kill(run)
    put_back(state)
    assert programs_of(state, "dump") == []
