"""What was simulated is marked: in headlines, comparisons, rankings, of one run, of two and of several."""

import json
import re
from dataclasses import dataclass, replace

import pytest

from dbdyno.analysis.analyse import Member, analyse, together
from dbdyno.analysis.two_runs import compare
from dbdyno.notebook import summary_html
from dbdyno.report import comparison, several
from dbdyno.report.charts.simulation import surface
from dbdyno.report.render import html, markdown, text
from dbdyno.report.render import json as json_report
from dbdyno.report.sections import ranking
from dbdyno.report.sections.headline import headline
from dbdyno.report.simulation import answer, largest_change
from tests.browser import browser, opened
from tests.unit.report.rendered import as_json, as_markdown, as_page, as_text

KERNEL = {"stack": {"kernel": "2.6.18"}}


@pytest.fixture
def simulated(run):
    return replace(run, study=KERNEL)


def flat(told):
    return " ".join(told.split())


@pytest.mark.parametrize(
    "study",
    [KERNEL, {"stack": {"kernel": ["2.6.18", "6.x"]}}, {"stack": {}, "levels": {"old": {"stack": {"kernel": "6.x"}}}}],
)
def test_a_kernel_of_the_study_makes_a_run_simulated(run, study):
    assert replace(run, study=study).is_simulated


@pytest.mark.parametrize("study", [{}, {"stack": {"device": "nvme"}}, {"stack": "?"}, {"levels": {"old": {}}}])
def test_any_other_run_is_measured(run, study):
    assert not replace(run, study=study).is_simulated


def test_headline_comparisons_and_verdicts_in_every_form(simulated):
    for render in (as_text, as_markdown, as_page):
        told = render(simulated, analyse(simulated))
        assert "Simulated: " in told
        assert "comparison (simulated)" in told
        assert "Verdicts (simulated)" in told
    values = json.loads(as_json(simulated, analyse(simulated)))
    assert (values["simulated"], values["headline"].startswith("Simulated: ")) == (True, True)


@browser
@pytest.mark.parametrize(("width", "mark"), [(390, '" (simulated)"'), (1280, "none")])
def test_on_a_phone_each_row_has_the_mark_that_its_heading_has(simulated, tmp_path, width, mark):
    with opened(as_page(simulated, analyse(simulated)), tmp_path, width=width) as tab:
        rows = "Array.from(document.querySelectorAll('th[data-mark]'))"
        found = tab.value(f"{rows}.map(row => getComputedStyle(row, '::after').content)")
        assert set(found) == {mark}


def test_a_run_that_goes_on_says_both(simulated):
    assert headline(replace(simulated, ended="running"), analyse(simulated))[0] == "Simulated, so far:"


def test_a_page_explains_its_blocks_as_they_were(simulated):
    told = flat(as_page(simulated, analyse(simulated)))
    assert "Every block simulates each treatment once" in told
    assert "freshly started server" not in told
    assert "Values that the simulator used in each trial" in told


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        (KERNEL, KERNEL, "Simulated before and after: "),
        (KERNEL, {}, "Simulated before, measured after: "),
        ({}, KERNEL, "Simulated after, measured before: "),
    ],
)
def test_two_runs_say_which_of_them(run, before, after, said):
    runs = replace(run, study=before), replace(run, study=after)
    found = comparison.document(*runs, compare(*runs))
    assert found.values()["headline"].startswith(said)
    assert said in text.render(found)
    assert found.values()["before"]["simulated"] is (before == KERNEL)


@pytest.mark.parametrize(("studies", "said"), [((KERNEL, KERNEL), "(simulated)"), ((KERNEL, {}), "(1 of 2 simulated)")])
def test_several_runs_and_their_ranking_say_it(run, studies, said):
    runs = [replace(run, study=study) for study in studies]
    members = [Member(name, one, analyse(one)) for name, one in zip(("old", "new"), runs, strict=True)]
    found = together(members)
    for render in (text.render, markdown.render, html.render):
        assert flat(render(several.document(found))).count(said) >= 2
    alone = ranking.document(found.ranking, runs)
    assert said in text.render(alone)
    assert json.loads(json_report.render(alone))["simulated"] == [run.title] * sum(map(bool, studies))


def test_a_notebook_shows_it_beside_the_title(simulated):
    assert f"<h3>{simulated.title} (simulated)</h3>" in summary_html(simulated, analyse(simulated), {})


# The answer of a simulation over several factors.


@dataclass(frozen=True)
class Row:
    levels: dict[str, str]
    rate: float

    def name(self, names):
        return ", ".join(self.levels[name] for name in names)


def rows(*rates):
    levels = [{"device": device, "nr": nr} for device in ("hdd", "ssd") for nr in ("128", "1000")]
    return [Row(level, rate) for level, rate in zip(levels, rates, strict=True)]


def answer_of(*rates, low=False):
    return answer(rows(*rates), ("device", "nr"), lambda row: row.rate, "requests/s", low=low)


def test_a_factor_that_changes_nothing_is_not_in_the_name():
    assert answer_of(100, 100, 4000, 4000) == (
        "ssd: 4,000 requests/s, the most; hdd: 100 (40 times). nr makes no noticeable difference."
    )


def test_each_factor_that_matters_is_named_with_the_most_it_changes():
    assert answer_of(100, 300, 4000, 3000) == (
        "ssd, 128: 4,000 requests/s, the most; hdd, 128: 100 (40 times). Up to 40 times by device and 3 times by nr."
    )


def test_what_comes_as_close_as_makes_no_difference_is_named_beside_the_most():
    """The factor matters on the hard disk alone."""
    assert answer_of(100, 300, 4000, 3990) == (
        "ssd, 128: 4,000 requests/s, the most (no noticeable difference to ssd, 1000); hdd, 128: 100 (40 times)."
        " Up to 40 times by device and 3 times by nr."
    )


def test_nothing_matters():
    assert (
        answer_of(100, 100.4, 100, 100) == "no noticeable difference by device and nr; all reach about 100 requests/s."
    )


def test_the_lowest_where_less_is_better():
    assert answer_of(8, 8, 2, 2, low=True).startswith("ssd: 2 requests/s, the lowest; hdd: 8 (4 times).")


def test_nothing_done_is_no_ratio():
    assert answer_of(0, 0, 5, 5) == "ssd: 5 requests/s, the most; hdd: 0. nr makes no noticeable difference."
    assert largest_change(rows(0, 0, 0, 0), "nr", lambda row: row.rate) == 1


def test_a_surface_has_its_sizes_in_the_order_of_their_bytes():
    rows = [({"load:bs": size, "depth": depth}, 1.0) for size in ("1M", "512", "4k", "16KiB") for depth in ("8", "1")]
    drawn = surface(rows, ("load:bs", "depth"), "requests/s").drawn("wide")
    middle = [text for text in re.findall(r'text-anchor="middle"[^>]*>([^<]+)<', drawn) if text != "1"]
    assert middle == ["512", "4k", "16KiB", "1M"]
