"""What others published beside what was measured, in every report."""

import json
import re
from dataclasses import replace

import pytest

from dbdyno.analysis.analyse import analyse
from dbdyno.model.design import Comparison
from dbdyno.model.metrics import SECONDS_PER_1000
from dbdyno.store.reported import ReportedClaim, ReportedRow, ReportedTable
from tests.unit.report.rendered import as_json, as_markdown, as_page, as_text

ROWS = [
    ReportedRow("hdd-7200 / mq-deadline", "deadline", "t1", 2.4, 2.1, 2.9),
    ReportedRow("hdd-7200 / none", "noop", "t2", 2.41),
    ReportedRow("ssd-sata / mq-deadline", "", "t3", 0.58),
    ReportedRow("ssd-sata / none", "noop", "t4", 4.8),
    ReportedRow("nvme / none", "", "", 0.1),
]
CLAIMS = [
    ReportedClaim("deadline looks slightly better", [Comparison("t2", "t1")], True, "faster"),
    ReportedClaim(
        "the SSD is at most 2 x as fast", [Comparison("t1", "t3"), Comparison("t2", "t4")], True, None, None, 2.0
    ),
    ReportedClaim("the SSD wins", [Comparison("t1", "t3"), Comparison("t2", "t4")], True, "faster"),
    ReportedClaim("the NVMe wins", [], True, "faster"),
    ReportedClaim("buy two"),
]


def table(**fields):
    given = {"source": "somebody", "setup": "a VM", "metric": SECONDS_PER_1000, "unit": "s per 1,000"}
    return ReportedTable(**{**given, "rows": ROWS, "claims": CLAIMS, "differs_because": "Another disk.", **fields})


@pytest.fixture
def published(run):
    return replace(run, reported=[table()], expect="The SSD is several times faster.", scale="full")


def section(told, heading, following):
    return told[told.index(heading) : told.index(following)]


def test_text(snapshot, published):
    told = as_text(published, analyse(published))
    assert section(told, "Reported and", "Failed trials") == snapshot
    assert "Expected beforehand: The SSD is several times faster.\nAt scale full.\n" in told


def test_markdown(snapshot, published):
    assert section(as_markdown(published, analyse(published)), "## Reported", "## Failed trials") == snapshot


def test_json(snapshot, published):
    assert json.loads(as_json(published, analyse(published)))["reported"] == snapshot


def test_the_page_has_table_claims_and_reason_escaped(published, series_of):
    hostile = replace(published, reported=[table(source="<b>me</b>", differs_because="<i>x</i>")])
    page = as_page(hostile, analyse(hostile), series_of(hostile))
    assert ">Reported and measured here</h2>" in page
    assert "Expected beforehand: The SSD is several times faster." in page
    assert "scale full · " in page
    assert "&lt;b&gt;me" in page
    assert "&lt;i&gt;x" in page
    assert "<b>me" not in page
    bare = replace(published, reported=[])
    assert "measured here" not in as_page(bare, analyse(bare), {})


def test_every_metric_gives_the_words_that_its_reciprocal_gives(published):
    seconds = analyse(published).beside[0]
    rows = [replace(row, value=1000 / row.value, min=None, max=None) for row in ROWS]
    rate = analyse(replace(published, reported=[table(metric="queries_per_second", rows=rows)])).beside[0]
    assert [[one.agreement for one in figure.against] for figure in seconds.figures] == [
        [one.agreement for one in figure.against] for figure in rate.figures
    ]
    assert [claim.counts for claim in seconds.claims] == [claim.counts for claim in rate.claims]


def test_where_all_agrees_there_is_nothing_to_explain(published):
    agreeing = replace(published, reported=[table(rows=[ROWS[0], ROWS[2]], claims=CLAIMS[2:3])])
    told = as_text(agreeing, analyse(agreeing))
    assert "1 reported difference: 1 as here." in told
    assert "Agrees in all 2 comparisons: 4." in told
    assert "Another disk." not in told


def test_before_there_is_a_block_the_table_is_told_all_the_same(published):
    begun = replace(published, trials=[], failures=[])
    told = as_text(begun, analyse(begun), 300)
    assert "2.400 (2.100 to 2.900)" in told
    assert "can't be compared here" in told


def test_tables_without_claims_are_summed_up_in_one_sentence(published):
    bare = table(claims=[], rows=[replace(row, value=2 * row.value) for row in ROWS])
    once, twice = (
        " ".join(as_text(one, analyse(one)).split())
        for one in (replace(published, reported=[bare]), replace(published, reported=[bare, bare]))
    )
    (few,), (many,) = (re.findall(r"(\d+) published differences?: ", told) for told in (once, twice))
    assert int(many) == 2 * int(few) > 0


def test_a_table_without_comparisons_has_no_columns_for_them(published):
    alone = replace(published, reported=[table(rows=ROWS[1:2], claims=[])])
    told = as_text(alone, analyse(alone))
    heading = next(line for line in told.splitlines() if "called there" in line)
    assert heading.endswith("(min to max)")
    assert "reported difference" not in told
