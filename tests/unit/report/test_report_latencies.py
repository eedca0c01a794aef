"""Percentiles of events and of each kind of statement: means of them over trials, and the largest of all."""

import json
from dataclasses import replace

import pytest

from dbdyno.analysis.analyse import analyse
from tests.unit.report.conftest import build
from tests.unit.report.rendered import as_json, as_markdown, as_page, as_text


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
