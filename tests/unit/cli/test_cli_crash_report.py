"""Reports of crash runs by the command line, from what a run has written."""

import json

import pytest

from tests.crash_runs import SAFE, crash_run, speed_run
from tests.run_folders import written


@pytest.fixture
def crash(tmp_path):
    return written(tmp_path / "crash", crash_run())


@pytest.fixture
def speed(tmp_path):
    return written(tmp_path / "speed", speed_run(crash_run(seed=8)))


def test_a_crash_run_in_text_and_as_a_page(dbdyno, crash, tmp_path):
    code, out, _ = dbdyno("report", crash, "--html", tmp_path / "crash.html")
    assert code == 0
    assert "lost nothing in 300 power cuts" in " ".join(out.split())
    assert "Speed against safety" in (tmp_path / "crash.html").read_text(encoding="utf-8")


def test_a_speed_run_beside_a_crash_run(dbdyno, crash, speed):
    code, out, _ = dbdyno("report", speed, "--safety", crash, "--json")
    assert code == 0
    assert json.loads(out)["advice"]["take"] == ["t1"]
    code, out, err = dbdyno("report", speed, "--safety", crash)
    assert "900" not in out  # figures of the page alone
    assert f"--safety {crash}" in err


def test_what_does_not_fit_is_refused(dbdyno, crash, speed, tmp_path):
    code, _, err = dbdyno("report", crash, "--safety", speed)
    assert (code, "has no cuts" in err) == (2, True)
    code, _, err = dbdyno("report", speed, crash, "--safety", crash)
    assert (code, err) == (2, "dbdyno: --safety is for one run; give one folder\n")
    other = written(tmp_path / "other", crash_run({"1": SAFE, "2": SAFE}))
    code, _, err = dbdyno("report", speed, "--safety", other)
    assert (code, "lacks" in err) == (2, True)


def test_several_crash_runs_on_one_page(dbdyno, crash, tmp_path):
    code, out, _ = dbdyno("report", crash, written(tmp_path / "again", crash_run(seed=5)))
    assert code == 0
    assert " ".join(out.split()).count("lost nothing in 300 power cuts") == 2


def test_kinds_of_runs_are_ranked_by_speed_alone(dbdyno, crash, tmp_path):
    code, out, _ = dbdyno("rank", crash, written(tmp_path / "again", crash_run(seed=5)))
    assert code == 0
    assert "Ranked by speed alone" in out
