"""What stands beside the verdicts: screened metrics and pairs that were not planned, never to be taken for verdicts."""

import json
from dataclasses import replace

import pytest

from dbdyno.analysis.analyse import analyse
from dbdyno.report import html, markdown, text
from dbdyno.report import json as json_report
from dbdyno.store.records import SCREENED


@pytest.fixture
def screened(run):
    return replace(run, design=replace(run.design, screened=list(SCREENED)))


def test_text(snapshot, screened):
    told = text.render(screened, analyse(screened, each_pair=True))
    assert told[told.index("Screened:") : told.index("Failed trials")] == snapshot


def test_markdown(snapshot, screened):
    told = markdown.render(screened, analyse(screened, each_pair=True))
    assert told[told.index("## Screened") : told.index("## Failed trials")] == snapshot


def test_json(screened):
    document = json.loads(json_report.render(screened, analyse(screened, each_pair=True)))
    assert len(document["every_pair"]) == 6
    assert not any(one["planned"] for one in document["every_pair"])
    assert {one["metric"] for one in document["screened"]} <= set(SCREENED)
    assert all(one["stands_out"] == (one["p"] <= 0.05) for one in document["screened"])
    assert not any("verdict" in one for one in document["screened"])


def test_every_figure_that_stands_out_is_marked(screened):
    told = text.render(screened, analyse(screened), 10_000)
    line = next(line for line in told.splitlines() if "ssd-sata / none against hdd-7200 / mq-deadline, also:" in line)
    stands_out = [one for one in analyse(screened).screened if one.level_id == "t4" and one.baseline_id == "t1"]
    assert line.count("(screened;") == sum(one.stands_out for one in stands_out) > 0
    assert not any(word in line for word in ("faster", "slower", "equivalent"))


def test_the_page_has_both(screened, series_of):
    analysis = analyse(screened, each_pair=True)
    page = html.render(screened, analysis, series_of(screened))
    assert "Hints beside the verdicts, not verdicts" in page
    assert "Every pair, not planned" in page
    assert page.count('<li class="') == len(analysis.verdicts) + len(analysis.every_pair)
    bare = replace(screened, design=replace(screened.design, screened=[]))
    page = html.render(bare, analyse(bare), {})
    assert "Screened" not in page
    assert "not planned" not in page
