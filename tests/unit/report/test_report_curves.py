"""Curves by level: knees in words and as values, axes, and latency by throughput."""

import json
import re
from dataclasses import replace

import pytest

from dbdyno.analysis.analyse import analyse
from dbdyno.model.design import Factor, Treatment
from dbdyno.report.charts import curve
from dbdyno.report.summaries import knee_sentence
from tests.unit.report.conftest import build
from tests.unit.report.rendered import as_json, as_markdown, as_page, as_text
from tests.unit.report.test_report_html import HOSTILE

CLIENTS = ("1", "4", "16", "64")


def stepped(rates, factor=("clients", "workload"), levels=CLIENTS, blocks=10):
    """Return a run with a treatment for each level of a factor: its name and its section."""
    name, section = factor
    ids = [f"t{place}" for place in range(1, len(levels) + 1)]
    treatments = [Treatment(id_, {name: level}) for id_, level in zip(ids, levels, strict=True)]
    pairs = [(ids[0], id_) for id_ in ids[1:]]
    run = build(
        blocks, rates=dict(zip(ids, rates, strict=True)), noise=0.004, treatments=treatments, pairs=pairs, void_block=0
    )
    return replace(run, design=replace(run.design, factors=[Factor(name, section, list(levels))]))


SATURATING = (100.0, 380.0, 700.0, 705.0)


def sentence(rates, place=0):
    analysis = analyse(stepped(rates))
    return knee_sentence(analysis.curves[place].lines[0], analysis.curves[place])


def test_a_knee_is_named_with_its_interval():
    assert sentence(SATURATING) == (
        "The knee is at clients = 16 (95 % interval: only 16): up to there more raises queries per second by 5 % or"
        " more, beyond it by less."
    )


def test_a_latency_that_rises_has_its_knee_where_it_leaves_the_best():
    """In these runs p99 falls as the rate rises: 31 s over the rate."""
    assert sentence((700.0, 705.0, 380.0, 100.0), 1) == (
        "The knee: beyond clients = 4 (95 % interval: only 4) more raises 99th percentile latency by 5 % or more."
    )


def test_a_maximum_has_a_knee_to_either_side():
    found = sentence((100.0, 700.0, 702.0, 300.0))
    assert "the knee is at clients = 4" in found.lower()
    assert "beyond clients = 16 (95 % interval: only 16) more lowers queries per second by 5 % or more" in found


@pytest.mark.parametrize(
    ("rates", "said"),
    [
        ((100.0, 200.0, 400.0, 800.0), "No knee in the range measured: clients = 64 still raises queries per second"),
        ((100.0, 200.0, 400.0, 420.5), "No knee in the range measured: whether more than clients = 16 still raises"),
        ((700.0, 701.0, 702.0, 700.0), "No knee: from clients = 1 to 64 all are within 5 % of the best"),
        (
            (700.0, 701.0, 300.0, 700.0),
            "No knee: clients = 1 and 64 are within 5 % of the best; in between, at clients = 16, queries per second",
        ),
    ],
)
def test_a_range_without_a_knee_is_said_to_have_none(rates, said):
    assert sentence(rates).startswith(said)


def test_too_few_blocks_leave_the_knee_unknown():
    analysis = analyse(stepped(SATURATING, blocks=1))
    assert "unknown" in knee_sentence(analysis.curves[0].lines[0], analysis.curves[0])


def test_json_has_points_and_knees():
    run = stepped(SATURATING)
    found = json.loads(as_json(run, analyse(run)))["curves"]
    assert [one["metric"] for one in found] == ["queries_per_second", "latency_ms_p99"]
    line = found[0]["lines"][0]
    assert [point["level"] for point in line["points"]] == list(CLIENTS)
    assert all(point["low"] < point["value"] < point["high"] for point in line["points"])
    assert line["knee"] == {"at": "16", "low": "16", "high": "16"}
    assert line["worse_beyond"] is None
    assert line["worse_between"] == []
    assert found[0]["share"] == 0.05


def test_every_format_says_the_knee_and_the_headline_does():
    run = stepped(SATURATING)
    analysis = analyse(run)
    for report in (as_text(run, analysis), as_markdown(run, analysis), as_page(run, analysis)):
        assert "more raises queries per second by 5" in " ".join(report.replace("\xa0", " ").split())
    headline = json.loads(as_json(run, analysis))["headline"]
    knee = "The knee in queries per second is at clients = 16 (95 % interval: only 16): beyond it,"
    assert f"{knee} more raises queries per second by less than 5 %." in headline


@pytest.mark.parametrize("window", ["wide", "narrow"])
@pytest.mark.parametrize(
    ("levels", "log"),
    [(("1", "4", "16", "64"), True), (("10", "20", "30", "40"), False), (("64M", "256M", "1G", "2G"), True)],
)
def test_the_axis_is_logarithmic_from_a_factor_of_8_on(levels, log, window):
    run = stepped(SATURATING, levels=levels)
    drawn = str(curve.chart(analyse(run).curves[0]).drawn(window))
    assert ("clients (log)" in drawn) is log
    assert all(f">{level}<" in drawn for level in levels)


def test_each_dot_says_its_figures():
    run = stepped(SATURATING)
    drawn = str(curve.chart(analyse(run).curves[0]).drawn("wide"))
    said = re.findall("<title>(.*?)</title>", drawn)
    assert len(said) == len(CLIENTS)
    assert re.fullmatch(r"clients 16: [67]\d\d\.\d \([\d.]+ to [\d.]+\) queries/s", said[2])


def test_throughput_against_latency_is_drawn_of_the_load_offered_alone():
    analysis = analyse(stepped(SATURATING))
    drawn = str(curve.against_latency(*analysis.curves).drawn("wide"))
    assert "queries/s" in drawn
    assert "p99 ms" in drawn
    assert all(f">{level}</text>" in drawn for level in CLIENTS)
    of_queue = analyse(stepped(SATURATING, ("nr_requests", "queue")))
    assert [one.metric.name for one in of_queue.curves] == ["queries_per_second"]


def test_hostile_names_are_escaped():
    run = stepped(SATURATING, (HOSTILE, "server.settings"))
    page = as_page(run, analyse(run))
    assert HOSTILE not in page
