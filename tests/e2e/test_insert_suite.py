"""The insert benchmark, small, on a real server: steps on the same tables, killed and gone on with; one that fails."""

import json
import os
import signal
from pathlib import Path

import pytest

from dbdyno.run.profile import perf_need
from dbdyno.store.profiles import read_profiles
from dbdyno.store.run_folder import read_run
from tests.support import dbdyno, start_dbdyno, wait_for, what_is_left

pytestmark = [pytest.mark.host, pytest.mark.timeout(600)]

SUITE = Path(__file__).parents[2] / "studies/suites/insert"
NAMES = ["fill", "index", "insert-50", "insert-5", "range-100", "range-500", "range-1000"]
STUDY = """\
version = 1
[study]
title = "inserts"
[suite]
loads = "insert"
times = 0.004
[stack]
device = "ideal"
size = "512MiB"
filesystem = "ext4"
[server.settings]
innodb_buffer_pool_size = "16M"
innodb_flush_log_at_trx_commit = [2, 0]
[design]
blocks = 1
interference = "note"
"""


@pytest.fixture
def study(tmp_path):
    """The suite with a second for each range step; changes to its files."""

    def written(**files):
        loads = tmp_path / "insert"
        loads.mkdir()
        for file in SUITE.glob("*.sql"):
            (loads / file.name).write_text(file.read_text().replace('"10s"', '"1s"'))
        for name, text in files.items():
            (loads / name).write_text(text)
        (tmp_path / "s.toml").write_text(STUDY)
        return tmp_path / "s.toml"

    return written


def events(run):
    journal = run / "journal.jsonl"
    lines = journal.read_text(encoding="utf-8").splitlines() if journal.exists() else []
    return [json.loads(line) for line in lines]


# A step that fails unless there are 40 transactions of 50 rows: each that came later took as many as it added.
COUNTED = {
    "counted.sql": '-- load: after = "insert-5", events = 1, warmup = "0s"\n'
    "SELECT (SELECT n FROM batch WHERE (SELECT COUNT(*) FROM sales) <> 2000);",
    "range-100.sql": (SUITE / "range-100.sql").read_text().replace("insert-5", "counted").replace('"10s"', '"1s"'),
}


def test_seven_steps_on_the_same_tables_survive_a_kill(study, state, tmp_path):
    path, run = study(**COUNTED), tmp_path / "run"
    process = start_dbdyno("run", path, "--into", run, state=state)
    # Killed in the fourth step of the first row of steps.
    wait_for(lambda: process.poll() is not None or sum(e["event"] == "started" for e in events(run)) >= 4, every=0.01)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate(timeout=60)
    assert not any(event["event"] == "finished" for event in events(run)), "steps are stored together"
    assert dbdyno("restore", state=state).returncode == 0
    done = dbdyno("run", path, "--into", run, "--resume", "--html", state=state)
    assert done.returncode in {0, 3}, done.stdout + done.stderr
    assert what_is_left(state) == []
    found = read_run(run)
    loads = {treatment.id: treatment.levels["load"] for treatment in found.design.treatments}
    names = [*NAMES[:4], "counted", *NAMES[4:]]
    assert [loads[trial.treatment] for trial in found.trials] == 2 * names
    by_load = {loads[trial.treatment]: trial for trial in found.trials}
    assert [by_load[name].load["events"] for name in names[:5]] == [40, 1, 8, 40, 1]
    for name in NAMES[:4]:
        assert by_load[name].metrics["stall_seconds_max"] >= 0
    for name in NAMES[4:]:
        beside = by_load[name].load["beside"]["in_and_out"]
        assert beside["figures"]["achieved_ratio"] > 0.2
        assert by_load[name].metrics["queries_per_second"] > 0
    assert sum("raise server" in trial.seconds for trial in found.trials) == 2, "a server for each row of steps"
    report = json.loads(dbdyno("report", run, "--format", "json", state=state).stdout)
    assert {load["load"] for load in report["suite"]["loads"]} == set(names), report["suite"]


def test_each_step_has_a_profile_of_its_own(study, state, tmp_path):
    path, run = study(), tmp_path / "run"
    done = dbdyno("run", path, "--into", run, "--profile", state=state)
    if not (need := perf_need()).ok:
        assert done.returncode == 2
        assert need.remedy in " ".join(done.stderr.split())
        return
    assert done.returncode == 0, done.stderr
    assert "profile 2 of 2, not judged: fill / " in done.stderr
    assert what_is_left(state) == []
    found = read_run(run)
    loads = {treatment.id: treatment.levels["load"] for treatment in found.design.treatments}
    profiles = {loads[id_]: profile for id_, profile in read_profiles(run, list(loads)).items()}
    ranges = [profiles[name] for name in NAMES if name.startswith("range")]
    for profile in ranges:
        assert profile.seconds == pytest.approx(1, rel=0.1)
        assert profile.queries > 100
    # A short step may be met by no sample; those that read for a second are.
    assert all(any("mysql_select" in stack for stack in profile.stacks) for profile in ranges)


def test_a_step_that_fails_leaves_what_follows_unmeasured_and_says_so(study, state, tmp_path):
    broken = '-- load: after = "index", events = 2, warmup = "0s"\nINSERT INTO nowhere VALUES (1);'
    path, run = study(**{"insert-50.sql": broken}), tmp_path / "run"
    done = dbdyno("run", path, "--into", run, state=state)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "nowhere" in done.stderr
    assert "not measured, as they go on with its tables: insert-5 / " in done.stderr
    assert what_is_left(state) == []
    found = read_run(run)
    loads = {treatment.id: treatment.levels["load"] for treatment in found.design.treatments}
    assert {loads[id_] for id_ in found.dropped} == set(NAMES[2:])
    assert {loads[trial.treatment] for trial in found.trials} == set(NAMES[:2])
    shown = dbdyno("report", run, "--details", state=state).stdout
    assert "is left out, too: it goes on with the tables of insert-50" in " ".join(shown.split())
