"""Studies from the command line, and the run folders there are."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from tests.crash_runs import crash_run, with_cuts
from tests.run_folders import written
from tests.unit.report.conftest import build, series_of

KEPT = Path(__file__).parents[2] / "kept"


@pytest.fixture
def desk(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_study_is_kept_and_planned(dbdyno, desk):
    code, out, err = dbdyno("try", "device=hdd-7200,ssd-sata", "--load", "write", "--clients", "4", "--plan")
    assert code == 0
    assert out.startswith("device: hdd-7200 or ssd-sata\n")
    (study,) = (desk / "runs").iterdir()
    assert err == f"study: runs/{study.name}\n"
    again = dbdyno("plan", study)
    assert again[1].splitlines()[:5] == out.splitlines()[:5]


def test_a_study_with_a_mistake_is_not_kept(dbdyno, desk):
    code, out, err = dbdyno("try", "device=hdd-7200", "scheduler=none,foo", "--plan")
    assert (code, out) == (2, "")
    assert 'stack.scheduler: is "foo"; allowed are none, mq-deadline' in err
    assert not (desk / "runs").exists()


@pytest.mark.usefixtures("desk")
def test_a_refusal_names_no_file_that_is_gone(dbdyno):
    _, _, err = dbdyno("try", "device=hdd-7200", "scheduler=none,foo")
    assert err.startswith("dbdyno: stack.scheduler: is ")


def test_what_this_host_can_t_do_leaves_no_file(dbdyno, desk):
    url = "mysql://nobody@127.0.0.1:1/bench"
    code, _, err = dbdyno("try", f"server={url}", "innodb_flush_log_at_trx_commit=1,2", "--load", "write")
    assert (code, "does not answer" in err) == (2, True)
    assert not (desk / "runs").exists()


def test_an_external_server_needs_no_device(dbdyno, desk):
    url = "mysql://nobody@127.0.0.1:1/bench"
    code, out, err = dbdyno("try", f"server={url}", "innodb_flush_log_at_trx_commit=1,2", "--load", "write", "--plan")
    assert (code, "changed: innodb_flush_log_at_trx_commit of that server" in out) == (2, True)
    assert err.endswith("dbdyno: this host can't run the study as it is; see above\n")
    assert not (desk / "runs").exists()


def test_a_file_lies_beside_the_user(dbdyno, desk):
    (desk / "slow.log").write_text(
        "# Time: 2026-01-01T00:00:00.000000Z\n# User@Host: a[a] @ localhost []  Id: 3\n"
        "# Query_time: 0.000100  Lock_time: 0.000000 Rows_sent: 1  Rows_examined: 0\n"
        "SET timestamp=1767225600;\nSELECT 1;\n"
    )
    _, _, err = dbdyno("try", "device=here", "file=slow.log", "clients=2,4", "--kind", "replay-log", "--plan")
    (study,) = (desk / "runs").iterdir()
    assert 'file = "../slow.log"' in study.read_text()
    assert "No such file" not in err
    assert "duration" not in study.read_text()


def test_runs_lists_what_each_found(dbdyno, desk):
    for name in ("clients", "every-event"):
        shutil.copytree(KEPT / name, desk / "runs" / name)
    (desk / "runs" / "notes").mkdir()
    damaged = shutil.copytree(KEPT / "clients", desk / "runs" / "damaged")
    (damaged / "run.toml").write_text("{")
    code, out, err = dbdyno("runs", "--json")
    assert (code, err) == (0, "")
    found = {one["folder"]: one for one in json.loads(out)}
    assert set(found) == {"runs/clients", "runs/every-event", "runs/damaged"}
    report = json.loads(dbdyno("report", "runs/clients", "--format", "json")[1])
    assert found["runs/clients"]["headline"] == report["headline"]
    assert found["runs/damaged"]["ended"] == "unreadable"
    listed = dbdyno("runs")[1]
    assert all(one["headline"] in listed for one in found.values())


def test_runs_says_of_a_crash_run_what_its_report_says_first(dbdyno, desk):
    written(desk / "runs" / "crash", crash_run(blocks=8))
    written(desk / "runs" / "both", with_cuts(build(6)))
    (desk / "runs" / "none").mkdir()
    found = {one["folder"]: one["headline"] for one in json.loads(dbdyno("runs", "--json")[1])}
    assert len(found) == 2
    for folder, headline in found.items():
        assert headline == json.loads(dbdyno("report", folder, "--format", "json")[1])["headline"]
    assert found["runs/crash"].startswith("innodb_flush_log_at_trx_commit = 2 and 0 lose up to 1.0 s of commits")


def test_runs_says_what_is_only_seen_in_series(dbdyno, desk):
    """Whether a treatment is steadier than another is no figure of a trial."""
    run = build(8)
    asked = replace(run, design=replace(run.design, steadiness=True))
    series = series_of(asked, samples=150)
    for one in asked.trials:
        if one.treatment == "t2":
            rates = series[one.id]["load"]["queries_per_second"]
            series[one.id]["load"]["queries_per_second"] = rates.mean() + 0.05 * (rates - rates.mean())
    written(desk / "runs" / "steady", asked, series)
    (found,) = json.loads(dbdyno("runs", "--json")[1])
    assert found["headline"] == json.loads(dbdyno("report", found["folder"], "--format", "json")[1])["headline"]
    assert "steadier" in found["headline"]


def test_a_folder_without_runs_is_said_so(dbdyno, desk):
    (desk / "empty").mkdir()
    assert dbdyno("runs", "empty") == (0, "", "no runs in empty\n")
