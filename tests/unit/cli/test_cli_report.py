"""``dbdyno report``: of one run, of several, and as a table of trials."""

import csv
import json
import os
import struct
import subprocess
import sys
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

import duckdb
import pytest

from dbdyno.analysis.analyse import analyse
from dbdyno.store.run_folder import read_run
from tests.browser import CHROMIUM
from tests.run_folders import written
from tests.unit.report.conftest import build, series_of
from tests.unit.report.fleet_runs import on_hosts

LINES_MAX = 25


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Two runs of one title."""
    base = tmp_path_factory.mktemp("runs")
    first, second = build(6, void_block=2), build(6, seed=11, void_block=0)
    return [written(base / "a", first, series_of(first, samples=5)), written(base / "b", second)]


def test_a_written_run_is_read_back(folders):
    run = build(6, void_block=2)
    found = read_run(folders[0])
    assert (found.design, found.trials, found.failures, found.notes) == (
        run.design,
        run.trials,
        run.failures,
        run.notes,
    )


def test_a_report_is_brief_unless_its_details_are_asked_for(dbdyno, folders, tmp_path):
    code, out, err = dbdyno("report", folders[1], "--html", tmp_path / "page.html")
    assert code == 0
    assert out.splitlines()[2].startswith("ssd-sata is ")
    assert out.endswith(f"HTML report: {tmp_path / 'page.html'}\n")
    assert err == f"More: dbdyno report {folders[1]} --details\n"
    assert len((out + err).splitlines()) <= LINES_MAX
    whole = dbdyno("report", folders[1], "--details")
    assert (whole[0], whole[2]) == (0, "")
    assert len(whole[1].splitlines()) > LINES_MAX
    assert dbdyno("report", folders[1])[2] == f"More: dbdyno report {folders[1]} --details; as a page: --html FILE\n"


def test_several_runs_are_one_report_and_one_page(dbdyno, folders, tmp_path):
    code, out, _ = dbdyno("report", *folders, "--html", tmp_path / "page.html")
    assert code == 0
    assert out.startswith("SSD or HDD: 2 runs\n")
    assert "SSD or HDD (a)" in out
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert page.count('class="cards results') == 2
    assert str(folders[0].parent) not in out.replace(str(tmp_path), "") + page
    code, out, _ = dbdyno("report", *folders, "--format", "json")
    assert [one["name"] for one in json.loads(out)["runs"]] == ["SSD or HDD (a)", "SSD or HDD (b)"]


def test_two_runs_compared_are_a_page_too(dbdyno, folders, tmp_path):
    page = tmp_path / "page.html"
    code, out, err = dbdyno("compare", *folders, "--html", page)
    assert (code, err) == (0, "")
    assert out.endswith(f"HTML report: {page}\n")
    shown = page.read_text(encoding="utf-8")
    assert "<h1>SSD or HDD: before and after</h1>" in shown
    assert "were not interleaved" in shown
    code, out, err = dbdyno("compare", *folders, "--html", page, "--format", "json")
    assert (code, err) == (0, f"HTML report: {page}\n")
    assert json.loads(out)["changes"]
    notes = tmp_path / "notes.txt"
    notes.write_text("mine")
    code, _, err = dbdyno("compare", *folders, "--html", notes)
    assert (code, err) == (2, f"dbdyno: {notes} exists and is not an HTML page; name another file\n")
    assert notes.read_text() == "mine"


def test_csv_has_a_row_per_trial_of_each_run(dbdyno, folders):
    code, out, _ = dbdyno("report", *folders, "--format", "csv")
    assert code == 0
    rows = list(csv.DictReader(out.splitlines()))
    runs = [read_run(folder) for folder in folders]
    assert len(rows) == sum(len(run.trials) for run in runs) == 24 + 3 + 24
    assert [row["trial"] for row in rows if row["run"] == "SSD or HDD (a)"] == [trial.id for trial in runs[0].trials]
    assert float(rows[0]["queries_per_second"]) == runs[0].trials[0].metrics["queries_per_second"]
    assert {row["counts"] for row in rows} == {"true", "false"}
    assert {row["device"] for row in rows} == {"hdd-7200", "ssd-sata"}


def test_parquet_has_the_same_rows(folders, tmp_path):
    file = tmp_path / "trials.parquet"
    with file.open("wb") as into:
        command = [sys.executable, "-m", "dbdyno.cli.main", "report", folders[0], "--format", "parquet"]
        subprocess.run(command, stdout=into, check=True, env=os.environ)
    query = "SELECT count(*), count(*) FILTER (WHERE counts), max(queries_per_second) FROM read_parquet(?)"
    rates = [trial.metrics["queries_per_second"] for trial in read_run(folders[0]).trials]
    with duckdb.connect() as connection:
        assert connection.execute(query, [str(file)]).fetchone() == (27, 24, max(rates))


def test_a_script_learns_by_the_exit_code(dbdyno, folders, tmp_path):
    code, out, err = dbdyno(
        "report", folders[1], "--fail-if", "not faster", "--junit", tmp_path / "v.xml", "--annotations"
    )
    assert code == 3
    assert "--fail-if not faster: " in err
    assert "::error title=SSD or HDD::" in out
    assert "<failure" in (tmp_path / "v.xml").read_text(encoding="utf-8")
    assert dbdyno("report", *folders, "--fail-if", "slower by 99%")[0] == 0
    assert dbdyno("compare", *folders, "--fail-if", "not comparable", "--format", "json")[0] == 0


def test_a_run_is_read_and_analysed_once_for_all_that_is_written_of_it(dbdyno, folders, tmp_path, monkeypatch):
    read = []
    monkeypatch.setattr(
        "dbdyno.store.run_folder.read_run", lambda folder, **more: read.append(folder) or read_run(folder, **more)
    )
    argv = ["--html", tmp_path / "p.html", "--prometheus", tmp_path / "p.prom", "--junit", tmp_path / "p.xml"]
    assert dbdyno("report", folders[0], *argv)[0] == 0
    assert dbdyno("report", *folders, *argv)[0] == 0
    assert read == [folders[0], *folders]
    assert {path.suffix for path in tmp_path.iterdir()} == {".html", ".prom", ".xml"}


def test_figures_for_prometheus_are_written_whole_and_over_nothing_else(dbdyno, folders, tmp_path):
    file = tmp_path / "run.prom"
    for _ in range(2):  # the second time over its own
        assert dbdyno("report", folders[0], "--prometheus", file)[0] == 0
    assert 'dbdyno_trials{run="' in file.read_text(encoding="utf-8")
    assert [path.name for path in tmp_path.iterdir()] == ["run.prom"], "nothing is left beside it"
    assert file.stat().st_mode & 0o444 == 0o444, "a collector is another user"
    assert dbdyno("report", *folders, "--prometheus", file)[0] == 0
    assert len({line for line in file.read_text(encoding="utf-8").splitlines() if "run_info{" in line}) == len(folders)
    other = tmp_path / "other.prom"
    other.write_text("node_load1 1\n", encoding="utf-8")
    wrong = {
        (other,): f"{other} exists and holds no figures of dbdyno's; name another file",
        (tmp_path / "run.txt",): "a textfile collector reads *.prom alone; name it run.txt.prom",
        (tmp_path / "no/run.prom",): "there is no folder",
        (file, "--format", "csv"): "--format csv is a table without a report; leave out --prometheus",
    }
    for arguments, said in wrong.items():
        code, _, err = dbdyno("report", folders[0], "--prometheus", *arguments)
        assert (code, said in err) == (2, True), err
    assert other.read_text(encoding="utf-8") == "node_load1 1\n"


def test_a_summary_card_is_written_as_svg_whole_and_over_nothing_else(dbdyno, folders, tmp_path):
    file = tmp_path / "card.svg"
    for _ in range(2):  # the second time over its own
        code, out, _ = dbdyno("report", folders[1], "--card", file)
        assert (code, out.splitlines()[-1]) == (0, f"Summary card: {file}")
    assert "SSD or HDD" in [
        one.text for one in ET.fromstring(file.read_bytes()).iter("{http://www.w3.org/2000/svg}text")
    ]
    assert dbdyno("report", *folders, "--card", file, "--format", "json")[2].endswith(f"Summary card: {file}\n")
    other = tmp_path / "other.svg"
    other.write_text("mine", encoding="utf-8")
    wrong = {
        (other,): f"{other} exists and is neither an SVG nor a PNG; name another file",
        (tmp_path / "card.jpg",): "a card is an .svg or a .png; name it card.svg",
        (tmp_path / "no/card.svg",): "there is no folder",
        (file, "--format", "csv"): "--format csv is a table without a report; leave out --card",
    }
    for arguments, said in wrong.items():
        code, _, err = dbdyno("report", folders[1], "--card", *arguments)
        assert (code, said in err) == (2, True), err
    assert other.read_text(encoding="utf-8") == "mine"


def test_a_summary_card_as_png_takes_a_browser_and_says_so_where_there_is_none(dbdyno, folders, tmp_path, monkeypatch):
    file = tmp_path / "card.png"
    with monkeypatch.context() as without:
        without.setenv("PATH", str(tmp_path))
        code, _, err = dbdyno("report", folders[1], "--card", file)
    assert code == 2
    assert "only Chromium can draw a PNG, and it is not installed; name it card.svg" in err
    if CHROMIUM is None:
        pytest.skip("no Chromium on this host")
    assert dbdyno("report", folders[1], "--card", file)[0] == 0
    width, height = struct.unpack(">II", file.read_bytes()[16:24])
    assert (width, height) == (1200, 630)
    assert [path.name for path in tmp_path.iterdir()] == ["card.png"], "nothing is left beside it"


# ``dbdyno report`` of a study on several hosts, from its run folder alone.


LEVELS = {"drive": {"db1": "hdd", "db2": "ssd", "db3": "ssd"}}


@pytest.fixture(scope="module")
def run():
    facts = {name: {"cores": cores} for name, cores in (("db1", 2), ("db2", 4), ("db3", 4))}
    return replace(on_hosts([0.1, 0.11, 0.12], levels=LEVELS, speeds=[0.0, 0.3, 0.31]), hosts=facts)


@pytest.fixture(scope="module")
def folder(run, tmp_path_factory):
    return written(tmp_path_factory.mktemp("fleet") / "run", run)


def test_the_folder_holds_all_that_is_said_of_hosts(folder, run):
    found = read_run(folder)
    assert (found.design, found.trials, found.hosts) == (run.design, run.trials, run.hosts)
    assert analyse(found).fleet == analyse(run).fleet


def test_both_claims_are_printed_apart(dbdyno, folder):
    code, out, _ = dbdyno("report", folder)
    text = " ".join(out.split())
    assert code == 0
    assert "On these 3 hosts: scheduler none is 1" in text
    assert "On hosts like these the same is shown, by 3 hosts." in text
    whole = " ".join(dbdyno("report", folder, "--details")[1].split())
    assert "On hosts like these it is faster, too (3 hosts, +1" in whole
    assert "at least 4 hosts of each level are needed (db2 and db3 against db1: +3" in whole
    assert "fact db1 db2 db3 cores 2 4 4" in whole


def test_json_has_the_hosts(dbdyno, folder):
    found = json.loads(dbdyno("report", folder, "--format", "json")[1])["hosts"]
    assert found["like_these"][0]["word"] == "faster"
    assert found["levels"][0]["reason_code"] == "TOO_FEW_HOSTS"


def test_the_table_of_trials_has_hosts_and_what_is_fixed_to_them(dbdyno, folder, run):
    rows = list(csv.DictReader(dbdyno("report", folder, "--format", "csv")[1].splitlines()))
    assert [one["host"] for one in rows] == [trial.host for trial in run.trials]
    assert [one["drive"] for one in rows] == [LEVELS["drive"][trial.host] for trial in run.trials]


# Run folders that were kept: what their reports say in numbers and in words of a fixed list does not change.
# ``clients`` was measured; the trials of the others were played. ``every-event`` holds every kind of event,
# ``without-checksums`` is from before there were any. To each belongs the JSON report that was printed at the time.
# Each released version adds a run of its own.


KEPT = Path(__file__).parents[2] / "kept"


def values(document, path=()):
    """Yield each value with its path; sentences, which may be put otherwise, are left out."""
    if isinstance(document, dict | list):
        for name, one in document.items() if isinstance(document, dict) else enumerate(document):
            yield from values(one, (*path, name))
    elif not (isinstance(document, str) and " " in document):
        yield path, document


@pytest.mark.parametrize("name", sorted(path.stem for path in KEPT.glob("*.json")))
def test_a_kept_run_is_read_as_it_was_then(dbdyno, name):
    code, out, err = dbdyno("report", KEPT / name, "--format", "json")
    assert (code, err) == (0, "")
    found = dict(values(json.loads(out)))
    for path, value in values(json.loads((KEPT / f"{name}.json").read_text())):
        assert path in found
        assert found[path] == (pytest.approx(value, rel=1e-9) if isinstance(value, float) else value), path
