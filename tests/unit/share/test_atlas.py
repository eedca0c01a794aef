"""An atlas: a site of files that works from the disk, finds what it holds, and says what it can't compare."""

import json
import os
import re
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import duckdb
import pytest

from dbdyno.analysis import quick
from dbdyno.errors import UserError
from dbdyno.report.quick import document as quick_document
from dbdyno.report.render import html
from dbdyno.report.render import json as as_json
from dbdyno.share.archive import unpacked
from dbdyno.share.atlas import build, disks_of, find
from dbdyno.share.copy import copy_without_names
from tests.browser import FRAMES, SETTLED, browser, opened
from tests.run_folders import written
from tests.unit.analysis.test_analysis_quick import target
from tests.unit.report.conftest import series_of
from tests.unit.report.test_report_page import AXE, OVERFLOW, SERIOUS

HOSTILE = "<script>alert(1)</script>\"' onerror=x \u202e"
OTHER_HOST = {"cores": 64, "cpu": {"model": "Intel Xeon Gold 6338"}, "kernel": {"release": "5.10.0-30"}}
SHOWN = "Array.from(document.querySelectorAll('#results > li:not([hidden]) .title')).map(e => e.textContent)"


def quick_look():
    """Return a quick look at a folder of a host that both have names."""
    here = target("/srv/private", noise=0.03)
    facts = {"filesystem": "ext4 (rw,relatime)", "disk": "nvme0n1 (Some Drive 980)", "host": "db-prod-7.acme.internal",
             "kernel": "6.12.0", "measured": "2026-01-02 03:04 UTC"}  # fmt: skip
    likeness = quick.likeness(here, [target("ssd-sata", fsync=600, randread=9000, randwrite=20000)])
    return quick.Quick(here, quick.Host(0.02, 0.0, 0.1), quick.noise_of(here), None, likeness, facts=facts)


@pytest.fixture(scope="module")
def results(tmp_path_factory, plain_run):
    """Return a folder of results: three runs, one of another host, an imported one, a quick look."""
    folder = tmp_path_factory.mktemp("results")
    with patch.object(os, "fsync", lambda _: None):
        series = series_of(plain_run, samples=20)
        written(folder / "first", plain_run, series)
        written(folder / "hostile", replace(plain_run, title=HOSTILE, question=HOSTILE), series)
        written(folder / "elsewhere", replace(plain_run, title="On another host", host=OTHER_HOST), series)
        copy_without_names(folder / "elsewhere", folder / "imported", title="Imported")
    (folder / "quick.json").write_text(as_json.render(quick_document(quick_look())), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def site(results, tmp_path_factory):
    """Return the site of them."""
    into = tmp_path_factory.mktemp("atlas") / "site"
    build([results], into, processes=2)
    return into


def texts(site):
    return {
        str(file.relative_to(site)): file.read_text(encoding="utf-8")
        for file in site.rglob("*")
        if file.suffix in {".html", ".svg", ".md"}
    }


def test_each_result_has_a_page_and_a_card(site):
    names = ["elsewhere", "first", "hostile", "imported", "quick"]
    assert sorted(path.stem for path in (site / "runs").iterdir()) == names
    assert sorted(path.stem for path in (site / "cards").iterdir()) == names
    index = (site / "index.html").read_text(encoding="utf-8")
    assert [
        name for name in names if f'href="runs/{name}.html"' in index and f'src="cards/{name}.svg"' in index
    ] == names
    assert all('href="../index.html"' in (site / "runs" / f"{name}.html").read_text(encoding="utf-8") for name in names)


def test_nothing_is_loaded_from_elsewhere_and_no_script_but_ours_runs(site):
    for name, text in texts(site).items():
        linked = re.findall(r'(?:src|href)="([^"#][^"]*)"', text)
        assert [link for link in linked if re.match(r"[a-z]+:|//", link) and not link.startswith("data:")] == [], name
        assert [
            link for link in linked if not link.startswith("data:") and not (site / name).parent.joinpath(link).exists()
        ] == []
        if name.endswith(".html"):
            assert "default-src 'none'" in text
            assert text.count("<script>") == 1


def test_texts_of_others_are_escaped(site):
    for name, text in texts(site).items():
        assert "<script>alert" not in text, name
        assert "\u202e" not in text, name
    assert "&lt;script&gt;alert(1)" in (site / "index.html").read_text(encoding="utf-8")


def test_what_was_imported_is_marked(site):
    index = (site / "index.html").read_text(encoding="utf-8")
    assert index.count("not measured here") == 1
    assert "not measured here" in (site / "cards/imported.svg").read_text(encoding="utf-8")


def test_a_quick_look_shows_neither_the_host_s_name_nor_its_folder(site):
    for name, text in texts(site).items():
        assert "acme" not in text, name
        assert "/srv/private" not in text, name


def test_side_by_side_warns_where_hosts_differ(site):
    text = (site / "compare.html").read_text(encoding="utf-8")
    assert "These figures are from 2 kinds of host" in text
    assert "AMD EPYC, 2 cores, virtual" in text
    assert "not interleaved" in text
    assert "1 result was imported, not measured here" in text
    assert "By drive" in text
    assert 'href="runs/elsewhere.html"' in text


def test_side_by_side_does_not_warn_of_one_host(results, tmp_path):
    build([results / "first", results / "hostile"], tmp_path / "site")
    text = (tmp_path / "site/compare.html").read_text(encoding="utf-8")
    assert "kinds of host (" not in text
    assert "imported" not in text


def test_side_by_side_tells_an_emulated_cpu_apart_and_leaves_out_what_is_not_comparable(plain_run, tmp_path):
    """The dropped treatment is the one with the best figure; it is in the data, and says what it is."""
    guest = {"accelerator": "tcg", "cpus": 2}
    trials = [replace(one, observed={**one.observed, "guest": guest}) for one in plain_run.trials]
    best = max(plain_run.design.treatments, key=lambda one: mean_rate(plain_run, one.id))
    with patch.object(os, "fsync", lambda _: None):
        written(tmp_path / "in-guest", replace(plain_run, trials=trials))
        written(tmp_path / "dropped", replace(plain_run, dropped=frozenset({best.id})))
    build([tmp_path / "in-guest", tmp_path / "dropped"], tmp_path / "site", processes=1)
    text = (tmp_path / "site/compare.html").read_text(encoding="utf-8")
    assert "These figures are from 2 kinds of host" in text
    assert "CPU emulated by QEMU" in text
    figures = f"'{tmp_path / 'site/data/figures.parquet'}'"
    left_out = duckdb.sql(f"SELECT result, label FROM {figures} WHERE NOT comparable").fetchall()
    assert left_out == [("dropped", best.label)]
    treatments = len(plain_run.design.treatments)
    rows = [text.count(f'href="runs/{name}.html"') for name in ("in-guest", "dropped")]
    assert rows == [treatments, treatments - 1]


def mean_rate(run, id_):
    rates = [one.metrics["queries_per_second"] for one in run.trials if one.treatment == id_]
    return sum(rates) / len(rates)


def test_the_query_of_the_readme_is_answered(site, monkeypatch):
    readme = (site / "README.md").read_text(encoding="utf-8")
    (query,) = re.findall(r"```sql\n(.*?)```", readme, re.DOTALL)
    monkeypatch.chdir(site)
    rows = duckdb.sql(query).fetchall()
    assert [row[:3] for row in rows] == [("hdd-7200", "MariaDB 10.11.14", 8), ("ssd-sata", "MariaDB 10.11.14", 8)]
    assert 380 < rows[0][3] < 430
    assert 1600 < rows[1][3] < 1800
    assert query.strip() in (site / "index.html").read_text(encoding="utf-8").replace("&#39;", "'")


def test_the_tables_are_those_of_the_results(site):
    counts = {
        name: duckdb.sql(f"SELECT count(*) FROM '{site}/data/{name}.parquet'").fetchall()[0][0]
        for name in ("results", "figures", "verdicts", "trials")
    }
    assert counts["results"] == 5
    assert counts["verdicts"] == 4 * 4
    assert counts["trials"] == 4 * 35
    hosts = duckdb.sql(f"SELECT DISTINCT host FROM '{site}/data/figures.parquet' WHERE how = 'measured'").fetchall()
    assert len(hosts) == 2


def test_a_sweep_is_a_result(dbdyno, tmp_path):
    sweep = ("simulate", "--rw", "randread", "--device", "hdd-15k,ssd-x25e", "--seconds", "0.2s", "--json")
    (tmp_path / "sweep.json").write_text(dbdyno(*sweep)[1], encoding="utf-8")
    code, out, err = dbdyno("atlas", tmp_path / "sweep.json", "--into", tmp_path / "site", "--json")
    assert (code, err) == (0, "")
    assert json.loads(out)["results"] == 1
    rows = duckdb.sql(
        f"SELECT drive, how, metric, value FROM '{tmp_path}/site/data/figures.parquet' ORDER BY 1"
    ).fetchall()
    assert [row[:3] for row in rows] == [("hdd-15k", "simulated", "iops"), ("ssd-x25e", "simulated", "iops")]
    assert rows[0][3] < rows[1][3]
    assert "Simulated" in (tmp_path / "site/runs/sweep.html").read_text(encoding="utf-8")
    compared = (tmp_path / "site/compare.html").read_text(encoding="utf-8")
    assert "rw=randread: IOPS (simulated)" in compared
    assert "not interleaved" not in compared


def test_what_can_t_be_read_is_left_out_and_named(dbdyno, results, tmp_path):
    folder = tmp_path / "mixed"
    (folder / "broken").mkdir(parents=True)
    (folder / "broken/run.toml").write_text("format = 1", encoding="utf-8")
    (folder / "good").symlink_to(results / "first")
    others = {
        "other.json": "{}",
        "list.json": "[]",
        "deep.json": '{"targets": 3, "likeness": null, "rounds": "x"}',
        "sweep.json": '{"simulated": true, "points": [{"levels": 3}], "load": "x"}',
        "huge.json": '{"rounds": 1' + "0" * 999 + "}",
    }
    for name, text in others.items():
        (folder / name).write_text(text, encoding="utf-8")
    code, out, err = dbdyno("atlas", folder, "--into", tmp_path / "site", "--json")
    shown = json.loads(out)
    assert (code, shown["results"], shown["with_names"]) == (0, 1, 1)
    assert {Path(path).name for path in shown["left_out"]} == {"broken", *others}
    assert err.count("left out: ") == err.count("\n") == 6


def test_the_command_says_what_to_do_before_the_site_is_published(dbdyno, results, tmp_path):
    code, out, err = dbdyno("atlas", results / "first", results / "imported", "--into", tmp_path / "site")
    assert (code, err) == (0, "")
    assert "Atlas of 2 results" in out
    assert "1 result may hold names" in out
    _, out, _ = dbdyno("atlas", results / "imported", "--into", tmp_path / "other")
    assert "may hold names" not in out


def test_a_folder_of_something_else_is_left_alone(results, tmp_path):
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(UserError, match="is not empty and is no atlas"):
        build([results / "first"], tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mine.txt"]


def test_an_atlas_is_made_anew_and_only_its_own_files_go(results, tmp_path):
    site = tmp_path / "site"
    build([results / "first", results / "imported"], site)
    (site / "runs" / "mine.html").write_text("mine")
    listed = json.loads((site / "atlas.json").read_text())
    listed["files"] += ["../precious", "runs/../../precious", "/etc/precious"]
    (site / "atlas.json").write_text(json.dumps(listed))
    (tmp_path / "precious").write_text("precious")
    build([results / "imported"], site)
    assert sorted(path.name for path in (site / "runs").iterdir()) == ["imported.html", "mine.html"]
    assert [path.name for path in (site / "cards").iterdir()] == ["imported.svg"]
    assert (tmp_path / "precious").read_text() == "precious"


def test_a_quick_look_finds_the_disks_of_an_atlas(site):
    (disk,) = disks_of(site)
    here = quick_look()
    assert disk.name == "nvme0n1 (Some Drive 980)"
    assert disk.steps.keys() == here.target.steps.keys()
    key = ("randread", 8)
    assert disk.steps[key].rate.value == pytest.approx(here.target.steps[key].rate.value, rel=1e-5)
    assert disk.steps[key].latency_ns["p50"] == pytest.approx(here.target.steps[key].latency_ns["p50"], rel=1e-5)
    shown = quick_document(replace(here, atlas=(disk,)))
    assert shown.values()["atlas"] == [disk.name]
    page = html.render(shown)
    assert "/srv/private among the 1 disk of the atlas" in page
    assert f"{disk.name}: " in page


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (None, "No such file or directory"),
        ("[]", "it is not a JSON object"),
        ("{}", "'disks'"),
        ('{"disks": [{"rounds": 1000000000, "steps": []}]}', "it says that it has 1000000000 rounds"),
        ('{"disks": [{"rounds": 2, "steps": [{"per_second": 0, "low": 0, "high": 0}]}]}', "p50"),
    ],
)
def test_what_is_no_atlas_is_refused_before_anything_is_measured(dbdyno, tmp_path, content, why):
    (tmp_path / "data").mkdir()
    if content is not None:
        (tmp_path / "data/disks.json").write_text(content, encoding="utf-8")
    code, out, err = dbdyno("quick", tmp_path, "--atlas", tmp_path, "--html", tmp_path / "page.html")
    assert (code, out) == (2, "")
    assert why in err
    assert err.count("\n") == 1
    assert not (tmp_path / "page.html").exists()


def test_results_are_found_once(results):
    assert len(find([results, results / "first"])) == 5
    with pytest.raises(UserError, match="holds no run folder"):
        find([results / "first/trials"])


@pytest.fixture
def tab_of(site):
    """Return a function that opens a page of the site."""

    def shown(tab, page):
        tab.call("Page.navigate", url=(site / page).as_uri())
        tab.wait(f"location.href.endsWith('{page}') && {SETTLED}")
        tab.value(FRAMES)
        return tab

    return shown


@browser
@pytest.mark.parametrize(("width", "dark"), [(1280, False), (390, True)])
def test_pages_are_accessible_and_within_the_window(tab_of, tmp_path, width, dark):
    with opened("<!DOCTYPE html><title>empty</title>", tmp_path, width=width, dark=dark) as tab:
        for page in ("index.html", "compare.html"):
            tab_of(tab, page)
            assert tab.value(OVERFLOW) <= 0
            tab.value(AXE.read_text(encoding="utf-8") + ";0")
            assert tab.value(SERIOUS) == []
            assert tab.console() == []
        tab_of(tab, "index.html")
        tab.value("document.querySelectorAll('img').forEach(each => { each.loading = 'eager'; })")
        tab.wait("Array.from(document.images).every(each => each.complete)")
        assert set(tab.value("Array.from(document.images).map(each => each.naturalWidth)")) == {1200}


@browser
def test_the_gallery_is_searched_and_filtered(tab_of, tmp_path):
    with opened("<!DOCTYPE html><title>empty</title>", tmp_path) as tab:
        tab_of(tab, "index.html")
        assert len(tab.value(SHOWN)) == 5
        typed = "(() => {{ const e = document.querySelector('{}'); e.value = {!r}; "
        typed += "e.dispatchEvent(new Event('input', {{bubbles: true}})); }})()"
        tab.value(typed.format("#filters input", "ANOTHER host"))
        assert tab.value(SHOWN) == ["On another host"]
        assert tab.value("document.getElementById('shown').textContent") == "1 of 5 results"
        tab.value(typed.format("#filters input", ""))
        tab.value(typed.format("#filters select[name=how]", "quick look"))
        assert len(tab.value(SHOWN)) == 1
        tab.value("document.querySelector('#filters button').click()")
        tab.wait(f"({SHOWN}).length === 5")
        tab.value(typed.format("#filters select[name=kernel]", "5.10.0-30"))
        assert sorted(tab.value(SHOWN)) == ["Imported", "On another host"]


def test_an_exported_result_goes_the_whole_way(shared, tmp_path):
    with unpacked(shared) as (folder, about):
        copy_without_names(folder, tmp_path / "run", title=about.title)
    built = build([tmp_path / "run"], tmp_path / "site")
    assert [(entry.title, entry.measured_here, entry.has_names) for entry in built.entries] == [
        ("SSD or HDD", False, False)
    ]
