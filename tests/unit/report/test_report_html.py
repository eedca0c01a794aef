"""The page: escaped, self-contained, and free of errors in a real browser."""

import math
import re
from dataclasses import replace
from itertools import pairwise

import pytest

from dbdyno.analysis.analyse import analyse
from dbdyno.model.design import Design, Treatment
from dbdyno.model.printable import NO_BREAK
from dbdyno.report.charts import forest, strip, svg
from dbdyno.report.sections.about import flattened, settings
from dbdyno.store.records import FailedTrial, Run
from tests.browser import browser, in_browser, opened
from tests.unit.report.rendered import as_page

HOSTILE = (
    "\x1b[31m\x9b2J\u202e\u2066\u200b</script><script>alert(1)</script><img src=x onerror=alert(2)> {{ 7 * 7 }} ' \""
)


@pytest.fixture(scope="module")
def page(run, series_of):
    return as_page(run, analyse(run), series_of(run))


@browser
@pytest.mark.parametrize("width", [1280, 390])
def test_opens_without_console_errors(page, tmp_path, width):
    dom, console = in_browser(page, tmp_path, width)
    assert console == []
    drawn = int(re.search(r'<html[^>]* data-drawn="(\d+)"', dom)[1])
    assert drawn == page.count(" data-panel=") == dom.count("<canvas")
    assert drawn >= 6


@browser
def test_the_browser_test_sees_errors(page, tmp_path):
    broken = page.replace('id="series"', 'id="lost"')
    assert in_browser(broken, tmp_path)[1] != []


@browser
def test_a_malformed_browser_language_is_survived(page, tmp_path):
    lie = "<script>Object.defineProperty(navigator, 'language', { get: () => 'not_a_language' })</script>"
    dom, console = in_browser(re.sub(r"<meta http-equiv[^>]*>", lie, page), tmp_path)
    assert console == []
    assert "data-drawn" in dom


@browser
def test_a_hostile_study_runs_nothing(run, series_of, tmp_path):
    told = hostile(run)
    dom, console = in_browser(as_page(told, analyse(told), series_of(told)), tmp_path)
    assert console == []
    assert len(re.findall(r"<script", dom)) == 2
    assert "<img" not in dom


def hostile(run):
    treatments = [replace(item, levels={"x": f"{HOSTILE} {item.id}"}) for item in run.design.treatments]
    trials = [replace(trial, observed={HOSTILE: HOSTILE}) for trial in run.trials]
    return replace(
        run,
        title=HOSTILE,
        question=HOSTILE,
        design=replace(run.design, treatments=treatments),
        trials=trials,
        failures=[FailedTrial(HOSTILE, 3, 1, "t1", HOSTILE)],
        host={HOSTILE: HOSTILE},
        versions={HOSTILE: HOSTILE},
        notes=[HOSTILE],
    )


def test_script_in_a_title_or_a_level_is_escaped(run, series_of):
    told = hostile(run)
    page = as_page(told, analyse(told), series_of(told))
    assert "<script>alert" not in page
    assert "<img" not in page
    assert "{{ 7 * 7 }}" in page
    assert {char for char in page if not char.isprintable()} <= {"\n", NO_BREAK}
    assert len(re.findall(r"<script\b", page)) == 2


def test_nothing_is_loaded_from_anywhere(page):
    assert not re.search(r"""(?:src|href)\s*=\s*["'](?!data:|#)""", page.split("<script")[0].replace("xlink:href", ""))
    assert "default-src 'none'" in page
    assert not re.search(r"url\((?!data:)", page)


def test_verdict_words_are_coloured_and_first(page):
    assert '<li class="faster" id="v-' in page
    ordered = ["headline", "chart roomy", "word faster", "verdicts"]
    places = [*(page.index(f'class="{name}"') for name in ordered), page.index(">Results</h2>")]
    assert places == sorted(places)


def test_the_page_is_deterministic(run, series_of, page):
    assert as_page(run, analyse(run), series_of(run)) == page


def test_an_empty_run_has_a_page():
    design = Design([Treatment("t1", {})], "t1", [], 6, 0.03, "queries_per_second", 1)
    run = Run("Empty", "", design, [], [], {}, {}, "interrupted", [])
    page = as_page(run, analyse(run), {})
    assert "no verdict" in page
    assert 'class="chart' not in page


@pytest.mark.parametrize("blocks", [1, 2, 5, 45])
def test_any_number_of_blocks_has_a_page(build, blocks):
    run = build(blocks, void_block=0)
    assert "</html>" in as_page(run, analyse(run), {})


def test_large_and_small_effects_get_a_close_up(run, build):
    assert [chart.caption for chart in forest.charts(analyse(run))] == ["", "Close to the margin"]
    small = build(8, rates={"t1": 100.0, "t2": 103.0}, pairs=[("t1", "t2")])
    assert [chart.caption for chart in forest.charts(analyse(small))] == [""]


@pytest.mark.parametrize(("low", "high"), [(-0.05, 0.05), (-0.1, 1.5), (-3, 4), (-0.002, 0.002)])
def test_ticks_are_within_the_range_and_hold_zero(low, high):
    found = [value for value, _ in svg.ratio_ticks(low, high)]
    assert 0 in found
    assert found == sorted(found)
    assert 1 <= len(found) <= 12
    assert all(low <= value <= high for value in found)


@pytest.mark.parametrize("high", [3.2, 5, 21, 60, 600, 10_000])
def test_tick_labels_do_not_touch(high):
    low, high = -0.04, math.log1p(high)
    found = svg.ratio_ticks(low, high)
    for (before, one), (after, other) in pairwise(found):
        gap = (after - before) / (high - low) * svg.RATIO_WIDTH
        assert gap > forest.CHARACTER * len(one + other) / 2
    assert {label[-1] for _, label in found} == {"x"}


@browser
def test_the_results_fit_a_page_1200_pixels_wide(run, tmp_path):
    levels = [{"device": f"hard-disk-drive-7200rpm-{item.id}", "fs": "ext4-ordered"} for item in run.design.treatments]
    treatments = [replace(item, levels=each) for item, each in zip(run.design.treatments, levels, strict=True)]
    told = replace(run, design=replace(run.design, treatments=treatments))
    with opened(as_page(told, analyse(told), {}), tmp_path, width=1200) as tab:
        box = "document.querySelector('.results').parentElement"
        assert tab.value(f"{box}.scrollWidth - {box}.clientWidth") == 0
        assert tab.value("document.querySelector('.whole').getClientRects().length") == 1


def test_settings_that_differ_and_that_changed(run):
    trials = [replace(trial, observed={"queue": {"depth": trial.block % 2, "wbt": None}}) for trial in run.trials]
    found = settings(analyse(replace(run, trials=trials)))
    assert found["queue.depth"][0] == "1 then 0"
    assert len(set(found["queue.wbt"])) == 1


def test_flattened():
    assert flattened({"b": {"x": [1, True], "e": {}}, "a": None}) == {"a": "none", "b.x": "1, yes"}


def with_phases(run):
    spans = [
        {"name": f"{HOSTILE} load", "start_ns": 0, "end_ns": 3 * 10**9},
        {"name": f"{HOSTILE} index", "start_ns": 2 * 10**9, "end_ns": 4 * 10**9},
    ]
    load = {"phases": spans, "clock": {"measure_start_ns": 0, "measure_end_ns": 4 * 10**9}}
    return replace(run, trials=[replace(trial, load=load) for trial in run.trials])


@browser
def test_phases_are_drawn_without_console_errors(run, series_of, tmp_path):
    told = with_phases(run)
    page = as_page(told, analyse(told), series_of(told))
    assert "where a phase of the load begins" in page
    dom, console = in_browser(page, tmp_path)
    assert console == []
    assert "data-drawn" in dom
    assert len(re.findall(r"<script", dom)) == 2


def test_a_queue_that_grew_stands_below_its_verdict(run):
    load = {
        "loop": {"kind": "open", "rate": 1000.0},
        "offered": 9000,
        "achieved_per_second": 640.0,
        "backlog_max": 3600,
    }
    trials = [replace(t, load=load, metrics={**t.metrics, "achieved_ratio": 0.64}) for t in run.trials]
    told = replace(run, trials=trials)
    page = as_page(told, analyse(told), {})
    assert page.count('<p class="remark">') == 8  # both treatments of four verdicts
    assert "achieved 640/s: the queue grew to 3,600" in page


def test_no_dot_is_lost_where_many_are_drawn_as_one_path(run):
    dots = len(run.trials)
    drawn = strip.chart(run, analyse(run)).drawn("wide")
    hollow = sum(trial.block == 3 and trial.attempt == 1 for trial in run.trials)
    assert drawn.count("h0") == 2 * (dots - hollow)
    assert drawn.count("<circle") == 2 * hollow
    assert len(re.findall(r'stroke-linecap="round"', drawn)) == 2 * len(run.design.treatments)


def test_sixteen_hundred_trials_fit_into_a_megabyte(build, series_of):
    named = [Treatment(f"t{place}", {"device": f"ssd-{place}"}) for place in range(1, 41)]
    rates = {one.id: 400.0 + 10 * place for place, one in enumerate(named)}
    pairs = [("t1", one.id) for one in named[1:]]
    run = build(40, rates=rates, treatments=named, pairs=pairs, void_block=0)
    assert len(as_page(run, analyse(run), series_of(run, samples=40)).encode()) < 1_000_000
