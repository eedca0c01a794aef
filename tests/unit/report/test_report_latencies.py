"""Percentiles of events, from histograms where there are any, and of each kind of statement."""

import json
import re
from dataclasses import replace

import pytest

from dbdyno.analysis.analyse import analyse
from dbdyno.report.charts import percentiles
from tests.browser import browser, opened
from tests.unit.report.conftest import build, latencies_of
from tests.unit.report.rendered import as_json, as_markdown, as_page, as_text
from tests.unit.report.test_report_html import HOSTILE


def summary(ms, count=1000):
    factors = {"p50": 1, "p95": 2, "p99": 3, "p999": 4, "max": 5}
    return {"count": count} | {name: factor * ms * 1e6 for name, factor in factors.items()}


def with_load(**of_block):
    """A run whose trials' loads are what each of these makes of the number of a block."""
    run = build(blocks=2)
    trials = [replace(one, load={name: of(one.block) for name, of in of_block.items()}) for one in run.trials]
    return replace(run, trials=trials)


def transactions(block):
    return {"select": summary(0.1), "commit": summary(block)}


def test_events_and_each_kind_of_statement_have_their_percentiles():
    run = with_load(latency_ns=lambda block: summary(10 * block), operations=transactions)
    found = json.loads(as_json(run, analyse(run)))["latencies"]
    assert [(one["treatment"], one["of"]) for one in found[:3]] == [("t1", "event"), ("t1", "select"), ("t1", "commit")]
    commit = found[2]
    assert commit["count"] == 2000
    assert commit["latency_ms_p99"] == pytest.approx(4.5), "the mean of 3 ms and 6 ms"
    assert commit["latency_ms_max"] == 10, "the largest of 5 ms and 10 ms"


def test_every_format_shows_them():
    run = with_load(latency_ns=lambda block: summary(10 * block), operations=transactions)
    analysis = analyse(run)
    plain = as_text(run, analysis)
    assert "event 2,000 15.00 30.00 45.00 60.00 100.0" in " ".join(plain.split())
    for report in (plain, as_markdown(run, analysis), as_page(run, analysis, {})):
        assert "p99.9 ms" in report
        assert "commit" in report


def test_one_kind_of_statement_is_the_event_itself():
    run = with_load(latency_ns=summary, operations=lambda block: {"insert": summary(block)})
    assert {one["of"] for one in json.loads(as_json(run, analyse(run)))["latencies"]} == {"event"}


@pytest.mark.parametrize("load", [{}, {"latency_ns": None, "operations": []}, {"latency_ns": {"count": 0}}])
def test_a_load_without_a_histogram_has_no_such_section(load):
    run = build(blocks=2)
    run = replace(run, trials=[replace(one, load=load) for one in run.trials])
    analysis = analyse(run)
    assert "latencies" not in json.loads(as_json(run, analysis))
    assert "Latencies" not in as_text(run, analysis)


def with_histograms(blocks=3, events=5000, **of_block):
    """A run whose trials have histograms, and its analysis."""
    run = build(blocks, void_block=0)
    trials = [replace(one, load={name: of(one.block) for name, of in of_block.items()}) for one in run.trials]
    run = replace(run, trials=trials)
    return run, analyse(run, latencies=latencies_of(run, events))


def test_json_has_the_percentiles_of_all_events_with_intervals():
    run, analysis = with_histograms()
    found = json.loads(as_json(run, analysis))["percentiles"]
    assert [one["treatment"] for one in found] == ["t1", "t2", "t3", "t4"]
    assert {(one["events"], one["trials"], one["trials_without"]) for one in found} == {(15_000, 3, 0)}
    points = {point["percentile"]: point for point in found[0]["points"]}
    assert list(points) == sorted(points)
    assert {1, 50, 90, 95, 99, 99.9} <= set(points)
    assert max(points) == 99.92, "12 events stand above it, 9 above the next, 99.94"
    assert all(point["low"] <= point["latency_ms"] <= point["high"] for point in points.values())


def test_the_table_has_a_few_percentiles_and_leaves_out_what_too_few_events_stand_above():
    run, analysis = with_histograms()
    lines = as_text(run, analysis).splitlines()
    heading = next(line for line in lines if "p99.99 ms" in line)
    row = next(line for line in lines[lines.index(heading) :] if line.startswith("ssd-sata / none")).split()
    assert heading.split()[-2:] == ["max", "ms"]
    assert row[3] == "15,000"
    assert row[-2] == "-"
    assert [float(one) for one in row[4:-2]] == sorted(float(one) for one in row[4:-2])
    assert "fewer than 10 events stand above it" in " ".join(as_markdown(run, analysis).split())


def test_with_histograms_events_stand_in_their_own_table_alone():
    run, analysis = with_histograms(latency_ns=summary, operations=transactions)
    found = json.loads(as_json(run, analysis))
    assert found["latencies"][0]["of"] == "event", "programs find what they found before"
    plain = as_text(run, analysis)
    assert "commit" in plain
    assert not re.search(r"  event ", plain)


def test_of_trials_without_a_histogram_it_is_said_how_many():
    run, _ = with_histograms()
    some = {id_: one for id_, one in latencies_of(run).items() if id_ != run.trials[0].id}
    plain = " ".join(as_text(run, analyse(run, latencies=some)).split())
    assert "Of 1 trial the histogram is unknown." in plain


def test_so_few_events_that_no_percentile_can_be_shown_have_no_chart():
    run, analysis = with_histograms(blocks=1, events=10)
    assert "Latencies" not in as_text(run, analysis)


@pytest.mark.parametrize("window", ["wide", "narrow"])
def test_each_further_nine_takes_as_much_room(window):
    run, analysis = with_histograms(events=50_000)
    drawn = str(percentiles.chart(analysis.percentiles, run.design).drawn(window))
    across = {float(text): float(x) for x, text in re.findall(r'<text x="([\d.]+)"[^>]*>([\d.]+)</text>', drawn)}
    assert across[99] - across[90] == pytest.approx(across[99.9] - across[99], abs=0.2)
    assert across[99.9] - across[99] == pytest.approx(across[99.99] - across[99.9], abs=0.2)
    assert drawn.count("<polyline") == drawn.count("<polygon") == 4


def test_every_percentile_says_all_treatments():
    run, analysis = with_histograms()
    said = re.findall(
        "<title>(.*?)</title>", str(percentiles.chart(analysis.percentiles, run.design).drawn("wide")), re.DOTALL
    )
    assert len(said) == len(analysis.percentiles[0].points)
    at = next(text for text in said if text.startswith("p99, ms"))
    assert [line.partition(":")[0] for line in at.splitlines()[1:]] == list(run.design.labels.values())
    assert all(re.search(r": [\d.]+ \([\d.]+ to [\d.]+\)$", line) for line in at.splitlines()[1:])


def test_hostile_labels_are_escaped():
    run, _ = with_histograms()
    named = [replace(one, levels={**one.levels, "device": f"{HOSTILE}{one.id}"}) for one in run.design.treatments]
    run = replace(run, design=replace(run.design, treatments=named))
    page = as_page(run, analyse(run, latencies=latencies_of(run)))
    assert HOSTILE not in page


CHART = "Array.from(document.querySelectorAll('svg[aria-label=\"latency by percentile\"]')).find(e => e.clientWidth)"
TIP = "document.querySelector('.tip:not([hidden])')?.innerText || ''"


@browser
@pytest.mark.parametrize("width", [1280, 390])
def test_pointer_and_arrow_keys_read_the_curves(width, tmp_path):
    run, analysis = with_histograms()
    with opened(as_page(run, analysis), tmp_path, width=width) as tab:
        tab.value("document.querySelectorAll('details').forEach(each => { each.open = true; })")
        tab.value(f"({CHART}).scrollIntoView()")
        x, y, wide, high = tab.value(f"(box => [box.x, box.y, box.width, box.height])({CHART}.getBoundingClientRect())")
        tab.point_at(x + 0.7 * wide, y + 0.4 * high)
        under, lines = tab.value(TIP), len(run.design.treatments) + 1
        assert len(under.splitlines()) == lines
        tab.value(f"({CHART}).focus()")
        tab.press("End")
        assert tab.value(TIP).startswith("p99.92, ms\n")
        tab.press("ArrowLeft")
        assert tab.value(TIP).startswith("p99.9, ms\n")
        assert "ssd-sata / none: " in tab.value(TIP)
        tab.press("Escape")
        assert not tab.value(TIP)
