"""A killed run leaves no program of somebody else's running, and goes on where it was cut off."""

import pytest

from dbdyno.store.run_folder import read_run
from tests.support import dbdyno, kill, programs_of, put_back, start_dbdyno, wait_for

pytestmark = [pytest.mark.host, pytest.mark.timeout(300)]

STUDY = """\
version = 1
[study]
title = "fio, killed"
[stack]
device = "here"
[workload]
kind = "fio"
profile = "RND4K Q4T2"
load = ["read", "write"]
size = "8MiB"
duration = "2s"
[design]
interference = "note"
blocks = 1
"""


def test_a_killed_run_leaves_no_fio_behind_and_goes_on(state, tmp_path):
    study, into = tmp_path / "study.toml", tmp_path / "run"
    study.write_text(STUDY, encoding="utf-8")
    run = start_dbdyno("run", study, "--into", into, state=state)
    try:
        # Two jobs and their parent: the load, not the layout, which has one.
        wait_for(lambda: len(programs_of(state, "fio")) >= 3)
    finally:
        kill(run)
    put_back(state)
    assert programs_of(state, "fio") == []

    done = dbdyno("run", study, "--into", into, "--resume", state=state)
    assert done.returncode == 0, done.stderr
    trials = read_run(into).trials
    assert {trial.treatment for trial in trials} == {"t1", "t2"}
    assert all(trial.metrics["iops"] > 0 and trial.observed["tool"]["program"] == "fio" for trial in trials)
    assert all("server" not in trial.observed and "server_process" not in trial.probes for trial in trials)
    assert "MB/s" in done.stdout
    assert "server mariadb" not in (into / "run.toml").read_text(encoding="utf-8").partition("[study")[0]
