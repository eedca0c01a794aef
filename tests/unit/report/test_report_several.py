"""Several runs in one report: a ranking over them, each one's verdicts, names that tell them apart."""

import json
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbdyno.analysis.analyse import Member, analyse, distinct_names, together
from dbdyno.analysis.ranking import rank_runs
from dbdyno.model.design import Treatment
from dbdyno.report.render import html, markdown, text
from dbdyno.report.render import json as json_report
from dbdyno.report.sentences import treatments_named
from dbdyno.report.several import NOT_INTERLEAVED, document
from tests.browser import browser, opened
from tests.unit.report.rendered import as_json, as_text
from tests.unit.report.test_report_page import AXE, OUTSIDE, OVERFLOW, SERIOUS

HOSTILE = "</h2><script>alert(1)</script> *x* | \x1b[31m <!-- contents -->"


def members(*named):
    return [Member(name, run, analyse(run)) for name, run in named]


@pytest.fixture
def two(build):
    first = build()
    again = build(10, seed=8)
    return together(members(("before", first), ("after", replace(again, versions={"dbdyno": "0.2.0"}))))


def test_every_form_ranks_first_and_then_tells_each_run(two):
    for told in (render(document(two)) for render in (text.render, markdown.render, html.render)):
        flat = " ".join(told.split())
        assert NOT_INTERLEAVED[:60] in flat
        places = [flat.index(part) for part in ("Ranking over 2 tests", "8 usable blocks", "10 usable blocks", "0.2.0")]
        assert places == sorted(places)


def test_the_verdicts_and_the_table_are_those_of_each_run_s_own_report(two):
    told = text.render(document(two))
    for member in two.members:
        own = as_text(member.run, member.analysis)
        assert own[own.index("ssd-sata / none is faster") : own.index("Ties: treatments")] in told


def test_json_holds_the_ranking_and_each_report(two):
    told = json.loads(json_report.render(document(two)))
    assert told["interleaved"] is False
    assert [one["name"] for one in told["runs"]] == ["before", "after"]
    own = json.loads(as_json(two.members[0].run, two.members[0].analysis))
    assert {"schema": json_report.SCHEMA, **told["runs"][0]} == {"name": "before", **own}
    assert told["ranking"]["tests"] == list(rank_runs([(one.name, one.run) for one in two.members]).tests)


def test_runs_that_can_t_be_ranked_are_told_all_the_same(build):
    run = build()
    other = replace(run, design=replace(run.design, metric="latency_ms_p99"))
    several = together(members(("a", run), ("b", other)))
    assert several.ranking is None
    for told in (render(document(several)) for render in (text.render, markdown.render, html.render)):
        assert "different metrics" in told
        assert "8 usable blocks" in told


def test_names_that_repeat_are_distinct_names():
    folders = [Path("runs/a"), Path("runs/b"), Path("old/b"), Path("c")]
    assert distinct_names(["x", "y", "y", "y"], folders) == ["x", "y (runs/b)", "y (old/b)", "y (c)"]
    assert distinct_names(["x", "x"], [Path("/srv/long/one"), Path("two")]) == ["x (one)", "x (two)"]


@browser
@pytest.mark.parametrize(("width", "dark"), [(390, True), (1280, False)])
def test_the_page_is_accessible_and_hostile_names_stay_text(two, tmp_path, width, dark):
    hostile = replace(two, members=tuple(replace(one, name=f"{one.name} {HOSTILE}") for one in two.members))
    page = html.render(document(hostile))
    with opened(page, tmp_path, width=width, dark=dark) as tab:
        tab.value("document.querySelectorAll('details').forEach(each => { each.open = true; })")
        assert tab.value(OVERFLOW) <= 0
        assert tab.value(OUTSIDE) == []
        assert tab.value("document.querySelectorAll('script').length") == 2
        assert tab.value("document.querySelectorAll('h2')[1].textContent").startswith("before </h2><script>")
        tab.value(AXE.read_text(encoding="utf-8") + ";0")
        assert tab.value(SERIOUS) == []
        assert tab.console() == []


# Several treatments in few words.


LEVELS = {"device": ("hdd-7200", "ssd-sata"), "clients": ("1", "10", "50")}
ALL = [
    Treatment(f"t{place}", dict(zip(LEVELS, levels, strict=True)))
    for place, levels in enumerate(product(*LEVELS.values()), 1)
]


def chosen(**levels):
    return [one.id for one in ALL if all(one.levels[name] in wanted for name, wanted in levels.items())]


@pytest.mark.parametrize(
    ("ids", "told"),
    [
        ([one.id for one in ALL], "all treatments"),
        (chosen(device=["ssd-sata"]), "ssd-sata"),
        (chosen(clients=["10", "50"]), "clients 10; clients 50"),
        (chosen(clients=["10"]), "clients 10"),
        (["t1", "t2", "t4"], "hdd-7200 / clients 1; hdd-7200 / clients 10; ssd-sata / clients 1"),
        (["t1", "t5"], "hdd-7200 / clients 1; ssd-sata / clients 10"),
        ([], ""),
    ],
)
def test_as_few_words_as_there_are(ids, told):
    assert treatments_named(ids, ALL) == told


def test_where_there_are_two_both_are_named():
    assert treatments_named(["t1", "t2"], ALL[:2], ", ") == "hdd-7200 / clients 1, hdd-7200 / clients 10"


@given(st.sets(st.sampled_from([one.id for one in ALL])))
def test_the_words_mean_these_and_no_others(ids):
    words = treatments_named(ids, ALL).split("; ") if ids else []
    everyone = words == ["all treatments"]
    meant = {
        one.id
        for one in ALL
        if everyone or any(set(word.split(" / ")) <= set(one.label.split(" / ")) for word in words)
    }
    assert meant == ids
