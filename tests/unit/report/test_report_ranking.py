"""The ranking: in the report of a run with several loads, and by itself."""

import json
from dataclasses import replace

import pytest

from dbdyno.analysis.analyse import analyse
from dbdyno.analysis.ranking import rank_runs
from dbdyno.model.design import Factor, Treatment
from dbdyno.report.render import json as json_report
from dbdyno.report.render import markdown, text
from dbdyno.report.sections import ranking
from tests.unit.report.rendered import as_json, as_markdown, as_page, as_text

HOSTILE = "a|b <script>alert(1)</script> *x* \x1b[31m\n# z"


@pytest.fixture
def loads(run):
    """The run with its scheduler turned into a number of clients, and its levels into hostile ones."""
    clients = {"mq-deadline": "1", "none": "10"}
    treatments = [
        Treatment(one.id, {"device": one.levels["device"], "clients": clients[one.levels["scheduler"]]})
        for one in run.design.treatments
    ]
    factors = [Factor("device", "stack", ["hdd-7200", "ssd-sata"]), Factor("clients", "workload", ["1", "10"])]
    return replace(run, design=replace(run.design, treatments=treatments, factors=factors))


def part(told, first, after):
    return told[told.index(first) : told.index(after)]


def test_text(snapshot, loads):
    assert part(as_text(loads, analyse(loads)), "Ranking", "Failed trials") == snapshot


def test_markdown(snapshot, loads):
    assert part(as_markdown(loads, analyse(loads)), "## Ranking", "## Failed trials") == snapshot


def test_by_itself_it_is_as_in_the_report(loads):
    found = rank_runs([("whatever", loads)])
    assert found == analyse(loads).ranking
    for render, alone in ((as_text, text.render), (as_markdown, markdown.render)):
        assert alone(ranking.document(found)) in render(loads, analyse(loads))
    document = json.loads(json_report.render(ranking.document(found)))
    notes = document.pop("notes")
    assert document.pop("schema") == json_report.SCHEMA
    assert document == json.loads(as_json(loads, analyse(loads)))["ranking"]
    assert notes == ranking.ranking_notes(found)
    assert [stack["place"] for stack in document["stacks"]] == [1, 2]


def test_a_run_without_loads_to_rank_over_shows_none(run):
    assert "Ranking" not in as_page(run, analyse(run), {})


def test_hostile_names_stay_text(loads):
    found = rank_runs([(HOSTILE, loads), ("b", loads)])
    assert "\x1b" not in text.render(ranking.document(found))
    rows = [line for line in markdown.render(ranking.document(found)).splitlines() if line.startswith("|")]
    assert len({line.replace("\\|", "").count("|") for line in rows}) == 1
    treatments = [replace(one, levels={**one.levels, "device": HOSTILE}) for one in loads.design.treatments[:2]]
    told = replace(loads, design=replace(loads.design, treatments=[*treatments, *loads.design.treatments[2:]]))
    page = as_page(told, analyse(told), {})
    assert "Ranking over 2 tests" in page
    assert "<script>alert" not in page


def test_many_tests_have_no_columns(loads):
    found = rank_runs([(f"run {number}", loads) for number in range(3)])
    assert len(found.tests) == 6
    assert ranking.ranking_headings(found) == ("stack", "place", "score (95 % interval)", "ties")
    assert any("Tests: 1. run 0 / clients 1; 2. run 0 / clients 10;" in note for note in ranking.ranking_notes(found))
    assert set(json.loads(json_report.render(ranking.document(found)))["stacks"][0]["by_test"]) == set(found.tests)


def test_long_names_of_tests_are_numbered(loads):
    found = rank_runs([("a", loads)])
    assert ranking.ranking_headings(found)[3:5] == ("clients 1", "clients 10")
    names = ("clients 1 of the question that fills a line", "clients 10")
    named = [replace(one, by_test=dict(zip(names, one.by_test.values(), strict=True))) for one in found.scores]
    found = replace(found, tests=names, scores=tuple(named))
    assert ranking.ranking_headings(found)[3:5] == ("test 1", "test 2")
    assert f"Tests: 1. {names[0]}; 2. {names[1]}." in ranking.ranking_notes(found)
