"""``make field-reports``: a study of it run to a page, and nothing done twice."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from dbdyno.store.run_folder import read_run
from tests.support import what_is_left

pytestmark = [pytest.mark.host, pytest.mark.long, pytest.mark.timeout(300)]

ROOT = Path(__file__).parents[2]


def field_reports(*arguments, state):
    environment = {**os.environ, "DBDYNO_STATE_DIR": str(state)}
    command = [sys.executable, "-m", "scripts.field_reports", *map(str, arguments)]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=250, check=False)


def test_a_field_report_becomes_a_page_and_is_not_run_again(state, tmp_path):
    asked = ("ssd-or-hdd-counts", "--blocks", 1, "--into", tmp_path)
    done = field_reports(*asked, state=state)
    assert done.returncode == 0, done.stderr
    assert what_is_left(state) == []
    run = read_run(tmp_path / "ssd-or-hdd-counts")
    assert {trial.treatment for trial in run.trials} == {f"t{number}" for number in range(1, 7)}
    page = (tmp_path / "ssd-or-hdd-counts.html").read_text(encoding="utf-8")
    assert "Reported and measured here" in page
    assert "only runs of 1,000 queries are dearer per query" in page
    index = (tmp_path / "index.html").read_text(encoding="utf-8")
    assert '<a href="ssd-or-hdd-counts.html">Are short runs dearer per query</a>' in index
    again = field_reports(*asked, state=state)
    assert again.returncode == 0, again.stderr
    assert "nothing to do" in again.stderr
    assert [trial.id for trial in read_run(tmp_path / "ssd-or-hdd-counts").trials] == [trial.id for trial in run.trials]


def test_a_study_that_there_is_not_is_refused(state):
    refused = field_reports("ssd-or-hd", state=state)
    assert refused.returncode == 2
    assert "no such study: ssd-or-hd; there are filesystems" in refused.stderr
