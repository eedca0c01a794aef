"""What clusters did: a row for each treatment that has one, in every format, and what a commit waits for."""

from dataclasses import replace
from json import loads

from dbdyno.analysis.analyse import analyse
from dbdyno.mysql.durability import durability
from dbdyno.report.sections.cluster import section
from dbdyno.report.source import Source
from tests.unit.report.conftest import build
from tests.unit.report.rendered import as_json, as_markdown, as_page, as_text

WAITS = "A commit waits until all 3 nodes have received its write set"


def with_cluster(size, **metrics):
    """Return a run whose treatment t2 has a cluster."""
    run = build(blocks=8)
    trials = [
        replace(
            trial,
            observed={**trial.observed, "cluster": {"size": size, "disk_2": "second", "disk_3": "data"}},
            metrics={**trial.metrics, **metrics},
        )
        if trial.treatment == "t2"
        else trial
        for trial in run.trials
    ]
    return replace(run, trials=trials)


def test_a_row_for_each_treatment_that_has_one_in_every_format():
    figures = {"cluster_commits_per_second": 250.0, "ordering_ms_mean": 2.5, "flow_control_paused_ratio": 0.25}
    run = with_cluster("3", **figures, receive_queue_mean=4.0, certification_failures=0.0)
    analysis = analyse(run)
    (table,) = (block for block in section(Source(run, analysis)).blocks if hasattr(block, "rows"))
    label = run.design.labels["t2"]
    assert table.rows == ((label, "3", "8", "250.0", "2.500", "25 %", "4.000", "0", "-"),)
    for report in (as_text(run, analysis), as_markdown(run, analysis), as_page(run, analysis, {})):
        assert "write sets/s" in report
        assert WAITS in report
    (value,) = loads(as_json(run, analysis))["clusters"]
    assert (value["treatment"], value["nodes"], value["catch_up_ms_mean"]) == ("t2", "3", None)


def test_a_single_node_waits_for_no_other():
    run = with_cluster("1", cluster_commits_per_second=250.0)
    assert "A commit waits until" not in as_text(run, analyse(run))


def test_there_is_no_such_section_without_one():
    run = build(blocks=8)
    assert section(Source(run, analyse(run))) is None


def test_a_drive_that_lies_below_another_node_takes_no_commit_of_the_first():
    first = {"server": {"innodb_flush_log_at_trx_commit": "1"}, "tables": {"engine": "InnoDB"}}
    lying = {"device of second": {"kind": "emulated", "flush_ignored": True}}
    cluster = {"cluster": {"size": "3", "disk_2": "second", "disk_3": "data"}}
    assert durability([first | lying]).durable is False
    assert durability([first | lying | cluster]).durable is True
