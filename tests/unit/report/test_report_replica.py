"""What replicas did: a row for each treatment that has one, in every format; and failovers in words."""

from dataclasses import replace
from json import loads

import pytest

from dbdyno.analysis.analyse import analyse
from dbdyno.report.crash import a_cut, cuts, many, such
from dbdyno.report.sections.replica import section
from dbdyno.report.source import Source
from tests.unit.report.conftest import build
from tests.unit.report.rendered import as_json, as_markdown, as_page, as_text


def with_replica(**metrics):
    """Return a run whose treatment t2 has a replica."""
    run = build(blocks=8)
    trials = [
        replace(
            trial,
            observed={**trial.observed, "replica": {"mode": "semisync", "disk": "second"}},
            metrics={**trial.metrics, **metrics},
        )
        if trial.treatment == "t2"
        else trial
        for trial in run.trials
    ]
    return replace(run, trials=trials)


def test_a_row_for_each_treatment_that_has_one_in_every_format():
    run = with_replica(replica_wait_ms_mean=4.0, replica_lag_ms_mean=12.5, replica_lag_ms_max=80.0)
    analysis = analyse(run)
    (table,) = (block for block in section(Source(run, analysis)).blocks if hasattr(block, "rows"))
    assert table.rows == ((run.design.labels["t2"], "semisync", "second", "8", "4.000", "12.50", "80.00", "-"),)
    formats = (as_text(run, analysis), as_markdown(run, analysis), as_page(run, analysis, {}))
    assert all("commit waits ms" in report for report in formats)
    (value,) = loads(as_json(run, analysis))["replicas"]
    assert (value["treatment"], value["lag_ms_mean"], value["catch_up_ms_mean"]) == ("t2", 12.5, None)


def test_there_is_no_such_section_without_one():
    run = build(blocks=8)
    assert section(Source(run, analyse(run))) is None


@pytest.mark.parametrize(
    ("mode", "said"),
    [
        ("power", ("1 power cut", "power cuts", "such cuts", "a power cut")),
        ("kill", ("1 kill of the server", "kills of the server", "such kills of the server", "a kill of the server")),
        ("failover", ("1 failover", "failovers", "such failovers", "a failover")),
    ],
)
def test_each_way_to_lose_a_server_has_its_words(mode, said):
    assert (cuts(mode, 1), many(mode), such(mode), a_cut(mode)) == said
