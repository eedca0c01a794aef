"""``dbdyno suite``: its study is written, planned and kept; what is no suite is refused."""

import json
import tomllib
from pathlib import Path

import pytest

from dbdyno.cli.suite import INSTALLED, suite_file
from dbdyno.study.load import load_study
from scripts.manual import files

ROOT = Path(__file__).parents[3]
LOADS = (ROOT / "studies/suites/microbench").resolve()


@pytest.fixture
def desk(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def planned(dbdyno, *argv):
    """Return the study that was written, and the plan's text."""
    _, out, err = dbdyno("suite", "microbench", *argv, "--into", "results/a", "--plan")
    assert err.startswith("study: results/a.toml\n"), err
    return Path("results/a.toml"), out


def refused(dbdyno, *argv):
    code, out, err = dbdyno("suite", "microbench", *argv, "--into", "results/a", "--plan")
    assert (code, out) == (2, "")
    return err


@pytest.mark.usefixtures("desk")
def test_a_factor_of_the_command_line_takes_the_place_of_the_file_s(dbdyno, monkeypatch):
    monkeypatch.setattr("dbdyno.cli.plan.show_plan", lambda *_, **__: None)
    monkeypatch.setattr("dbdyno.run.preflight.needs_of", lambda *_: [])
    study, _ = planned(dbdyno, "innodb_flush_log_at_trx_commit=1,2", "--only", "point-*", "--only", "scan")
    raw = tomllib.loads(study.read_text())
    assert "server" not in raw["stack"], "the file's servers are not crossed with it"
    assert (study.parent / raw["suite"]["loads"]).resolve() == LOADS
    load, setting = load_study(study).factors
    assert setting.name == "innodb_flush_log_at_trx_commit"
    assert set(load.labels()) == {"point-query", "point-query.pre", "scan"}


@pytest.mark.usefixtures("desk")
def test_servers_and_blocks(dbdyno, monkeypatch):
    monkeypatch.setattr("dbdyno.cli.plan.show_plan", lambda *_, **__: None)
    monkeypatch.setattr("dbdyno.run.preflight.needs_of", lambda *_: [])
    study, _ = planned(dbdyno, "--servers", "mysql-5.7,mysql-8.0", "--blocks", "9", "duration=2s")
    loaded = load_study(study)
    assert [factor.labels() for factor in loaded.factors[1:]] == [["mysql-5.7", "mysql-8.0"]]
    assert loaded.design.blocks == 9
    assert {spec.workload.duration for _, spec in loaded.combinations()} == {2.0}


@pytest.mark.usefixtures("desk")
def test_the_plan_shows_each_load_with_itself_and_one_image(dbdyno):
    _, out = planned(dbdyno, "innodb_flush_log_at_trx_commit=1,2", "--only", "scan", "--only", "insert")
    assert "t1  scan / innodb_flush_log_at_trx_commit 1   (baseline)" in out
    assert "comparisons (2)" in out
    assert "  t2 against t1\n  t4 against t3\n" in out
    assert "prepared data: 1 image for all treatments" in out


@pytest.mark.usefixtures("desk")
def test_what_was_only_planned_is_planned_anew_and_the_study_of_a_run_is_kept(dbdyno):
    options = "innodb_flush_log_at_trx_commit=1,2", "--only", "scan"
    planned(dbdyno, *options)
    study, _ = planned(dbdyno, *options, "duration=3s")
    assert {spec.workload.duration for _, spec in load_study(study).combinations()} == {3.0}
    Path("results/a").mkdir()
    text = study.read_text()
    assert refused(dbdyno, *options, "duration=4s").startswith(
        "dbdyno: results/a.toml is there already, the study of a"
    )
    Path("results/a").rmdir()
    study.write_text("# mine\n" + text)
    refused(dbdyno, *options)
    assert study.read_text() == "# mine\n" + text


@pytest.mark.usefixtures("desk")
def test_the_plan_of_the_insert_benchmark_says_its_steps_and_may_be_larger(dbdyno):
    _, out, _ = dbdyno(
        "suite", "insert", "innodb_flush_log_at_trx_commit=2,0", "suite.times=3", "--into", "a", "--plan"
    )
    assert "  steps on the same tables, in one trial: fill, index, insert-50, insert-5, range-100, range-" in out
    assert "prepared data: 1 image for all treatments" in out
    (fill,) = {
        spec.workload.events for levels, spec in load_study(Path("a.toml")).combinations() if levels["load"] == "fill"
    }
    assert fill == 3 * 10_000
    _, out, _ = dbdyno("plan", "a.toml", "--profile", "--json")
    plan = json.loads(out)
    assert [len(row) for row in plan["steps"]] == [7, 7]
    assert 0 < plan["profile_seconds"] < plan["seconds"]


@pytest.mark.usefixtures("desk")
def test_the_plan_of_all_loads_fits_a_screen(dbdyno):
    _, out = planned(dbdyno, "innodb_flush_log_at_trx_commit=1,2,0")
    each = ", ".join(f"innodb_flush_log_at_trx_commit {level}" for level in (1, 2, 0))
    assert f"treatments (126): 42 loads, each with {each}\n  aggregate: read-only-10, " in out
    assert "  each load with innodb_flush_log_at_trx_commit 2 against innodb_flush_log_at_trx_commit 1\n" in out
    assert len(out[: out.index("touches:")].splitlines()) < 40


def test_the_suites_of_a_wheel_are_found_without_a_checkout(desk, monkeypatch):
    for place, text in files().items():
        if place.startswith(f"{INSTALLED}/"):
            (desk / place).parent.mkdir(parents=True, exist_ok=True)
            (desk / place).write_text(text, encoding="utf-8")
    monkeypatch.setattr("dbdyno.cli.suite.__file__", "/usr/lib/python3/dist-packages/dbdyno/cli/suite.py")
    monkeypatch.setattr("sys.prefix", str(desk))
    found = suite_file("microbench")
    assert found == desk / INSTALLED / "microbench.toml"
    assert len(load_study(found).factors[0].levels) == len(list(LOADS.glob("*/*.sql")))
