"""Two runs on one host: the second refuses and names the first, or waits; a killed one is in nobody's way."""

import os
import signal

import pytest

from tests.support import dbdyno, put_back, start_dbdyno, study_text, wait_for

pytestmark = [pytest.mark.host, pytest.mark.timeout(300)]


def test_the_second_run_refuses_or_waits(state, study_file, tmp_path):
    study = study_file(study_text(amount='duration = "1s"', blocks=1, scheduler='"none"'))
    first = start_dbdyno("run", study, "--into", tmp_path / "first", state=state)
    wait_for((tmp_path / "first/journal.jsonl").exists)
    first.send_signal(signal.SIGSTOP)  # it holds the host for as long as this test needs
    refused = dbdyno("run", study, "--into", tmp_path / "second", state=state)
    assert refused.returncode == 2
    assert f"another run is going on here: run {study} into {tmp_path / 'first'} (pid {first.pid})" in refused.stderr
    assert not (tmp_path / "second").exists()
    assert dbdyno("disk", "list", state=state).returncode == 0
    second = start_dbdyno("run", study, "--into", tmp_path / "second", "--wait", state=state)
    assert second.stdout.readline().startswith("waiting for another run to end: run")
    first.send_signal(signal.SIGCONT)
    for run in (first, second):
        said, _ = run.communicate()
        assert run.returncode == 0, said


def test_a_killed_run_is_no_obstacle(state, study_file, tmp_path):
    study = study_file(study_text(amount='duration = "1s"', blocks=1, scheduler='"none"'))
    first = start_dbdyno("run", study, "--into", tmp_path / "first", state=state)
    wait_for((tmp_path / "first/journal.jsonl").exists)
    os.kill(first.pid, signal.SIGKILL)
    first.communicate()
    second = dbdyno("run", study, "--into", tmp_path / "second", state=state)
    assert second.returncode == 0, second.stderr
    put_back(state)
