"""``dbdyno crash``: cuts listed, and what is said where there is no such cut."""

import json
from dataclasses import replace

import pytest

from tests.crash_runs import FLUSH_0, SAFE, Loses, crash_run
from tests.run_folders import written
from tests.unit.report.conftest import build

BROKEN = Loses(900.0, tail=0.2, damage=0.3, worst="table")


@pytest.fixture
def run(tmp_path):
    """A run with three treatments of 2 blocks, 3 cuts each, of which the first table that needs repair is kept."""
    made = crash_run({"1": SAFE, "2": BROKEN}, blocks=2, cuts=3, control=FLUSH_0)
    return written(tmp_path / "runs" / "one", replace(made, trials=[with_kept(one) for one in made.trials]))


def with_kept(trial):
    cuts = [replace(cut, kept=f"cuts/{cut.id}" if cut.outcome == "table" else "") for cut in trial.cuts]
    return replace(trial, cuts=cuts)


def test_a_line_for_each_cut_the_worst_first(dbdyno, run, snapshot):
    code, out, err = dbdyno("crash", "list", run)
    assert (code, err) == (0, "")
    assert out == snapshot


def test_only_those_that_lost_or_are_kept(dbdyno, run):
    every = json.loads(dbdyno("crash", "list", run, "--json")[1])["cuts"]
    lost = json.loads(dbdyno("crash", "list", run, "--lost", "--json")[1])["cuts"]
    kept = json.loads(dbdyno("crash", "list", run, "--kept", "--json")[1])["cuts"]
    assert len(every) == 18
    assert lost == [one for one in every if one["outcome"] != "nothing"]
    assert kept == [one for one in every if one["kept"]]
    assert 0 < len(kept) < len(lost) < len(every)
    assert {one["label"] for one in every} >= {"innodb_flush_log_at_trx_commit 1"}
    assert all(one["name"].endswith(f"/{one['id']}") for one in every)


def test_a_run_of_speed_has_no_cuts(dbdyno, tmp_path):
    path = written(tmp_path / "speed", build(2))
    assert dbdyno("crash", "list", path) == (0, "this run has no cuts: they are of studies with [crash]\n", "")


def test_none_of_them(dbdyno, tmp_path):
    path = written(tmp_path / "safe", crash_run({"1": SAFE}, blocks=1, control=None))
    assert dbdyno("crash", "list", path, "--lost")[1] == "no such cut\n"


def test_no_run_folder(dbdyno, tmp_path):
    code, _, err = dbdyno("crash", "list", tmp_path)
    assert code == 2
    assert "is not a run folder" in err
