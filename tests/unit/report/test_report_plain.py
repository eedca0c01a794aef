"""Text, Markdown and JSON: what they look like, and that hostile or missing input cannot break them."""

import json
import math
from dataclasses import replace
from io import StringIO

import pytest
from rich.console import Console

from dbdyno.analysis.analyse import analyse
from dbdyno.model.design import Design, Treatment
from dbdyno.model.printable import markdown_text
from dbdyno.report.contents import document
from dbdyno.report.reasons import overhead_lines
from dbdyno.report.render import text
from dbdyno.report.sections.results import client_text, results
from dbdyno.store.records import Run
from tests.unit.report.rendered import as_json, as_markdown, as_text

HOSTILE = "a|b <script>alert(1)</script> *x* `y` [l](u) \x1b[31m\n# z"


@pytest.mark.parametrize("width", [60, 120])
def test_text(snapshot, run, width):
    assert as_text(run, analyse(run), width) == snapshot


def test_markdown(snapshot, run):
    assert as_markdown(run, analyse(run)) == snapshot


def test_json(snapshot, run):
    assert as_json(run, analyse(run)) == snapshot


def test_undecided(snapshot, build):
    run = build(6, noise=0.03, void_block=0)
    assert as_text(run, analyse(run)) == snapshot


@pytest.mark.parametrize("width", [10, 40, 80, 100, 200])
def test_no_sentence_is_wider_than_asked(run, width):
    lines = as_text(run, analyse(run), width).splitlines()
    wide = [line for line in lines if len(line) > max(width, 40)]
    assert len(wide) in {0, 9, 10}  # two tables, whose headings may be shorter
    assert all(any(word in line for word in ("treatment", " / ", "comparison", " vs ")) for line in wide)
    assert not any("\x1b" in line or line != line.rstrip() for line in lines)


def terminal(run, width):
    buffer = StringIO()
    Console(file=buffer, width=width, color_system=None, _environ={}).print(text.Printed(document(run, analyse(run))))
    return buffer.getvalue()


@pytest.mark.parametrize("width", [40, 60, 80, 100, 118, 120, 200])
def test_a_terminal_is_never_overrun_and_no_figure_is_cut(run, width):
    shown = terminal(long_names(run), width)
    assert max(map(len, shown.splitlines())) <= width
    for row in results(analyse(run)).rows:
        assert all(cell in " ".join(shown.split()) for cell in row[1:])
    assert "…" not in shown


def test_a_narrow_terminal(snapshot, run):
    assert terminal(run, 60) == snapshot


def long_names(run):
    levels = [
        {"device": f"hard-disk-drive-7200rpm-{item.id}", "scheduler": "mq-deadline"} for item in run.design.treatments
    ]
    treatments = [replace(item, levels=each) for item, each in zip(run.design.treatments, levels, strict=True)]
    return replace(run, design=replace(run.design, treatments=treatments))


def test_a_pipe_gets_whole_figures_in_a_table_of_140_columns(run):
    told = long_names(run)
    shown = as_text(told, analyse(told))
    lines = [" ".join(line.split()) for line in shown.splitlines()]
    for row in results(analyse(told)).rows:
        assert any(line.endswith(" ".join(row[1:])) for line in lines)
    assert max(map(len, shown.splitlines())) <= 140


def test_80_columns_show_two_tables_of_about_one_width(run):
    lines = terminal(run, 80).splitlines()
    heads = [line for line in lines if line.startswith("treatment ")]
    assert len(heads) == 2
    assert "min s" in heads[0]
    assert heads[1].endswith("ties")
    assert abs(len(heads[0]) - len(heads[1])) < 20


@pytest.mark.parametrize("width", [120, 130])
def test_labels_break_between_words_only(run, width):
    words = terminal(long_names(run), width).split()
    assert "hard-disk-drive-7200rpm-t1" in words
    assert not any(word.startswith("hard-") and len(word) < len("hard-disk-drive-7200rpm-t1") for word in words)


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        ((2.0301, 0.0112, 0), "2.03/0.011/0.000"),
        ((1234.5, 12.3456, 0.34), "1,234.50/12.346/0.340"),
        ((2.0301, math.nan, math.nan), "2.03/-/-"),
        ((math.nan, math.nan, math.nan), "unknown"),
    ],
)
def test_client_seconds_look_as_time_prints_them(seconds, shown):
    assert client_text(*seconds) == shown


def test_a_treatment_without_a_trial_has_one_unknown_per_cell():
    (row,) = results(analyse(empty_run())).rows
    assert row[5] == "unknown"


def test_json_is_the_same_bytes_whatever_the_order_of_dictionaries(run):
    shuffled = replace(run, versions=dict(reversed(run.versions.items())))
    assert as_json(run, analyse(run)) == as_json(shuffled, analyse(shuffled))


def test_unknown_is_null(build):
    run = build(4, void_block=0)
    verdict = json.loads(as_json(run, analyse(run)))["verdicts"][0]
    assert (verdict["low"], verdict["high"], verdict["verdict"]) == (None, None, "undecided")


def hostile(run):
    treatments = [replace(run.design.treatments[0], levels={"x": HOSTILE}), *run.design.treatments[1:]]
    return replace(run, title=HOSTILE, question=HOSTILE, design=replace(run.design, treatments=treatments))


def test_hostile_labels_stay_text(run):
    told = hostile(run)
    plain = as_text(told, analyse(told))
    assert "\x1b" not in plain
    marked = as_markdown(told, analyse(told))
    assert "<script" not in marked.replace("\\<", "")
    rows = [line for line in marked.splitlines() if line.startswith("|")]
    assert {line.replace("\\|", "").count("|") for line in rows} == {6, 11}  # of comparisons, of treatments
    assert json.loads(as_json(told, analyse(told)))["study"] == HOSTILE


@pytest.mark.parametrize(
    ("raw", "escaped"), [("- a", "\\- a"), ("1. a", "1\\. a"), ("a_b -1.5", "a_b -1.5"), ("_a_", "\\_a\\_")]
)
def test_markdown_escapes_only_what_it_must(raw, escaped):
    assert markdown_text(raw) == escaped


def empty_run(**changes):
    design = Design([Treatment("t1", {})], "t1", [], 6, 0.03, "queries_per_second", 1)
    return replace(Run("Empty", "", design, [], [], {}, {}, "interrupted", []), **changes)


def test_a_run_without_trials_can_be_reported():
    run = empty_run()
    for render in (as_text, as_markdown, as_json):
        assert render(run, analyse(run))
    assert "no verdict" in as_text(run, analyse(run))


def test_missing_metrics_are_unknown(run):
    trials = [
        replace(trial, metrics={"queries_per_second": trial.metrics["queries_per_second"]}) for trial in run.trials
    ]
    poor = replace(run, trials=trials)
    assert "unknown" in as_text(poor, analyse(poor))
    row = json.loads(as_json(poor, analyse(poor)))["treatments"][0]
    assert row["seconds_real_mean"] is None


def test_probes_of_odd_shape_cost_nothing(run):
    trials = [
        replace(run.trials[0], probes={"odd": None, "nan": {"cpu_percent": math.nan}}, device={"lateness_ns": "?"})
    ]
    odd = replace(run, trials=trials + run.trials[1:])
    assert as_text(odd, analyse(odd))


def test_what_the_tool_cost(run):
    lines = overhead_lines(run)
    assert lines[0] == "The probes took 0.210 % of one core on average (block_device 0.120 %, host_cpu 0.0900 %)."
    assert lines[1].startswith("The emulated disk answered 99 % of its requests at most 31.")
    assert lines[1].endswith("; 410.0 us the latest single answer).")
    one = replace(run.trials[0], probes={"host_cpu": {"missed": 2}}, device={})
    assert overhead_lines(replace(run, trials=[one])) == ["The probes missed 2 samples."]


def overloaded(run, *treatments, backlog=36_000):
    """Return the run as an open loop at 1,000/s, with which these treatments did not keep up."""
    trials = []
    for trial in run.trials:
        behind = trial.treatment in treatments
        load = {"loop": {"kind": "open", "rate": 1000.0}, "offered": 100_000}
        load |= {"achieved_per_second": 640.0 if behind else 1000.0, "backlog_max": backlog if behind else 3}
        metrics = {**trial.metrics, "achieved_ratio": load["achieved_per_second"] / 1000}
        trials.append(replace(trial, load=load, metrics=metrics))
    return replace(run, trials=trials)


BEHIND = "was offered 1,000/s, achieved 640/s: the queue grew to 36,000; latencies are those of an overloaded server."


def test_a_queue_that_grew_is_told_beside_every_verdict_it_concerns(run):
    told = overloaded(run, "t1")
    analysis = analyse(told)
    plain = " ".join(as_text(told, analysis, 10_000).split())
    assert plain.count(f"hdd-7200 / mq-deadline {BEHIND}") == 4  # and once as a warning
    assert as_markdown(told, analysis).count(BEHIND) == 4
    verdicts = json.loads(as_json(told, analysis))["verdicts"]
    compared = {"t1" in (verdict["baseline_id"], verdict["level_id"]) for verdict in verdicts}
    assert compared == {True, False}
    for verdict in verdicts:
        concerned = "t1" in (verdict["baseline_id"], verdict["level_id"])
        assert verdict["remarks"] == ([f"hdd-7200 / mq-deadline {BEHIND}"] if concerned else [])


def test_a_queue_that_grew_is_noted_where_nothing_was_compared(build):
    run = build(6, rates={"t1": 400.0}, pairs=[], void_block=0)
    told = overloaded(run, "t1")
    assert BEHIND in " ".join(as_text(told, analyse(told), 10_000).split())
    assert "offered" not in as_text(run, analyse(run))


def test_the_json_tells_of_the_overload_and_of_errors(run):
    told = overloaded(run, "t1")
    first, second = json.loads(as_json(told, analyse(told)))["treatments"][:2]
    assert first["overload"] == {
        "offered_per_second": 1000,
        "achieved_per_second": 640,
        "backlog_max": 36_000,
        "trials": 8,
        "of": 8,
    }
    assert second["overload"] is None
    assert (first["errors"], first["rows_per_second"]) == (None, None)  # of a run by an older dbdyno


def test_the_table_shows_the_rate_that_verdicts_are_about(run):
    rows = [replace(trial, metrics={**trial.metrics, "rows_per_second": 5e6}) for trial in run.trials]
    told = replace(run, trials=rows, design=replace(run.design, metric="rows_per_second"))
    shown = as_text(told, analyse(told))
    assert "rows/s" in shown
    assert "5,000,000" in shown
    assert "queries/s" not in shown
    by_latency = replace(run, design=replace(run.design, metric="latency_ms_p99"))
    assert "queries/s" in as_text(by_latency, analyse(by_latency))


def test_what_was_made_up_for_the_path_is_said(run):
    device = {"lateness_ns": {"p99": 90_000}, "path_ns": 60_000, "path_taken_ns": {"mean": 45_000.0}}
    lines = overhead_lines(replace(run, trials=[replace(run.trials[0], device=device)]))
    late, path = (next(line for line in lines if word in line) for word in ("The emulated disk", "The path to"))
    assert "at most 90.00 us after they were due" in late
    assert path.startswith(
        "The path to the emulated disk and back takes 60.00 us a request; answers left 45.00 us earlier to make up"
    )
    assert path.endswith(" so the drive seems slower by 15.00 us a request (means over trials).")


@pytest.mark.parametrize(("early", "words"), [(1_000.0, "slower by 2.000 us"), (5_000.0, "faster by 2.000 us")])
def test_what_remains_of_the_path_is_said_as_it_was_seen(run, early, words):
    seen = {"path_taken_ns": {"mean": 57_000.0}, "path_left_ns": {"mean": 3_000.0}, "path_early_ns": {"mean": early}}
    device = {"lateness_ns": {"p99": 30_000}, "path_ns": 0, **seen}
    lines = overhead_lines(replace(run, trials=[replace(run.trials[0], device=device)]))
    path = next(line for line in lines if "The path to" in line)
    assert "answers left 57.00 us earlier to make up for it, so the drive seems " + words in path


def test_the_path_of_two_disks_is_that_of_both(run):
    two = [{"path_taken_ns": {"mean": taken}, "path_ns": 60_000} for taken in (40_000.0, 50_000.0)]
    device = {"lateness_ns": {"p99": 30_000}, "disks": two}
    lines = overhead_lines(replace(run, trials=[replace(run.trials[0], device=device)]))
    assert any("answers left 45.00 us earlier to make up for it" in line for line in lines)
