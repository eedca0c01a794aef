"""A suite's report: how many loads each version lost in one sentence, a heat map on the page, a table elsewhere."""

import json
import re
from dataclasses import replace

import pytest

from dbdyno.analysis.analyse import analyse
from dbdyno.report.charts import heat_map
from dbdyno.report.notes import step_lines
from tests.unit.report.rendered import as_json, as_markdown, as_page, as_text
from tests.unit.report.suites import GROUPS, suite_run


@pytest.fixture(scope="module")
def run():
    return suite_run()


@pytest.fixture(scope="module")
def analysis(run):
    return analyse(run)


def test_the_headline_counts_the_loads_of_each_version(run, analysis):
    text = " ".join(as_text(run, analysis).split())
    assert "Among 4 loads, v2 against v1 is slower in insert (-20 %) and update (-3.5 %); faster in cold" in text
    worst = r"v3 is slower in 3, most in insert \(-\d+ %\) and update \(-1\d %\); faster in cold \(\+\d+ %\)\."
    assert re.search(worst, text), text[:900]


def test_of_a_single_load_the_headline_says_its_name(run):
    loads, *rest = run.design.factors
    kept = [t for t in run.design.treatments if t.levels[loads.name] == "insert"]
    ids = {t.id for t in kept}
    pairs = [pair for pair in run.design.comparisons if pair.level in ids]
    factors = [replace(loads, levels=["insert"], groups={"insert": "write"}), *rest]
    design = replace(run.design, treatments=kept, comparisons=pairs, baseline=kept[0].id, factors=factors)
    alone = replace(run, design=design, trials=[trial for trial in run.trials if trial.treatment in ids])
    text = " ".join(as_text(alone, analyse(alone)).split())
    assert "v2 against v1 is slower in insert (-20 %)" in text
    assert "Among" not in text


def test_each_cell_of_the_map_leads_to_its_comparison(run, analysis):
    page = as_page(run, analysis)
    links = re.findall(r'<a href="#(v-t\d+-t\d+)">', page)
    assert len(links) == 2 * 8, "for a window and for a phone"
    for link in links:
        assert len(re.findall(rf'<li [^>]*id="{link}"', page)) == 1


def test_the_map_stands_before_the_verdicts(run, analysis):
    page = as_page(run, analysis)
    assert page.index('href="#v-t9-t7"') < page.index('id="v-t9-t7"')
    assert page.index(">write<") < page.index(">point<"), "the group that lost most is first"


def test_all_names_fit_a_phone(run, analysis):
    page = as_page(run, analysis)
    widths = [float(width) for width in re.findall(r'viewBox="0 0 ([\d.]+) ', page)]
    assert min(widths) <= heat_map.NARROW_WIDTH


def test_other_formats_have_a_table_in_the_same_order(run, analysis):
    for text in (as_text(run, analysis), as_markdown(run, analysis)):
        rows = {"insert": "write", "update": "write", "hot": "point", "cold": "point"}
        places = [re.search(rf"{load} .*{group} .*\(", text).start() for load, group in rows.items()]
        assert places == sorted(places)
        assert re.search(r"insert.*write.*-\d+ \(slower\)", text)


def test_programs_read_all_of_it(run, analysis):
    suite = json.loads(as_json(run, analysis))["suite"]
    assert suite["columns"] == [{"level": "v2", "baseline": "v1"}, {"level": "v3", "baseline": "v1"}]
    assert {load["load"]: load["group"] for load in suite["loads"]} == GROUPS
    insert = suite["loads"][0]
    assert (insert["load"], insert["cells"][1]["verdict"]) == ("insert", "slower")
    assert insert["cells"][1]["low"] < insert["cells"][1]["effect"] < insert["cells"][1]["high"] < 0


def test_notes_say_which_loads_go_on_from_one_another():
    run = suite_run()
    load, server = run.design.factors
    chained = replace(load, after={"cold": "hot", "insert": "cold"})
    (line,) = step_lines(replace(run.design, factors=[chained, server]))
    assert line.startswith("hot, cold, insert: each goes on, on the same server, with the tables")
    assert step_lines(run.design) == []
