"""A run folder in a notebook: the figures of the report, in the frame that was asked for, and nothing written."""

import builtins
import json
import math
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from xml.etree import ElementTree as ET

import numpy as np
import pandas as pd
import polars as pl
import pytest

import dbdyno
from dbdyno import notebook
from dbdyno.analysis.analyse import analyse
from dbdyno.errors import UserError
from dbdyno.model.design import Treatment
from dbdyno.notebook import columns_of, frame_of
from tests.run_folders import STUDY, kept_run
from tests.unit.cli.test_cli_bombs import KEPT, STRANGE, resealed
from tests.unit.report.conftest import build, latencies_of, series_of
from tests.unit.report.rendered import as_json, as_text

FRAMES = {"pandas": pd.DataFrame, "polars": pl.DataFrame}
HOSTILE = "</h3><script>alert(1)</script>\x1b[31m\x9b2J\u202e\u200b & more"


@pytest.fixture(scope="module")
def record():
    return build(blocks=6, void_block=3)


@pytest.fixture(scope="module")
def series(record):
    return series_of(record, samples=20)


@pytest.fixture(scope="module")
def opened(record, series, tmp_path_factory):
    latencies = {id_: {"latency": vars(one)} for id_, one in latencies_of(record).items()}
    stored = {id_: {**series[id_], **latencies[id_]} for id_ in series}
    made = kept_run(tmp_path_factory.mktemp("made") / "run", record, stored)
    copy = shutil.copytree(made, tmp_path_factory.mktemp("another machine") / "copy")
    shutil.rmtree(made)
    return dbdyno.open_run(copy)


def values(frame, column):
    return frame[column].to_list() if isinstance(frame, pl.DataFrame) else frame[column].tolist()


@pytest.mark.parametrize("kind", FRAMES)
def test_trials_hold_what_the_run_folder_holds(opened, record, kind):
    trials = opened.trials(frame=kind)
    assert isinstance(trials, FRAMES[kind])
    assert values(trials, "trial") == [trial.id for trial in record.trials]
    assert values(trials, "queries_per_second") == [trial.metrics["queries_per_second"] for trial in record.trials]
    void = [trial.block == 3 and trial.attempt == 1 for trial in record.trials]
    assert any(void)
    assert values(trials, "counts") == [not one for one in void]
    for at, trial in enumerate(record.trials):
        levels = next(one.levels for one in record.design.treatments if one.id == trial.treatment)
        assert {name: values(trials, name)[at] for name in levels} == levels


@pytest.mark.parametrize("kind", FRAMES)
def test_verdicts_and_table_say_what_the_json_report_says(opened, kind):
    document = json.loads(as_json(opened.record, opened.analysis))
    verdicts, table = opened.verdicts(frame=kind), opened.table(frame=kind)
    assert isinstance(verdicts, FRAMES[kind])
    for key in ("verdict", "level_id", "blocks", "reason"):
        assert values(verdicts, key) == [one[key] for one in document["verdicts"]]
    for frame, rows_, keys in (
        (verdicts, document["verdicts"], ("effect", "low", "high", "p")),
        (table, document["treatments"], ("seconds_real_mean", "latency_ms_p99", "effect")),
    ):
        for key in keys:
            wanted = [math.nan if row[key] is None else row[key] for row in rows_]
            known = [one if math.isfinite(one) else math.nan for one in values(frame, key)]  # as JSON has no infinity
            assert known == pytest.approx(wanted, nan_ok=True, rel=1e-4)
    assert all(one in str(opened).replace("\n", " ") for one in values(verdicts, "verdict"))
    assert values(table, "device") == [one.levels["device"] for one in opened.design.treatments]


@pytest.mark.parametrize("kind", FRAMES)
def test_series_are_those_of_the_trial_bit_by_bit(opened, series, kind):
    assert opened.series_names == ["block_device", "host_cpu", "load", "server_status"]
    for trial in ("b0001a1p0001", opened.record.trials[3].id):
        if trial not in series:
            continue
        found = opened.series("block_device", trial=trial, frame=kind)
        assert set(values(found, "trial")) == {trial}
        for name, column in series[trial]["block_device"].items():
            np.testing.assert_array_equal(values(found, name), column)


@pytest.mark.parametrize("kind", FRAMES)
def test_series_of_the_whole_run_are_those_that_count_below_each_other(opened, series, kind):
    found = opened.series("load", frame=kind)
    counting = [trial.id for trial in notebook.counting(opened.record, opened.analysis)]
    assert list(dict.fromkeys(values(found, "trial"))) == counting
    wanted = np.concatenate([series[id_]["load"]["t_s"] for id_ in counting])
    np.testing.assert_array_equal(values(found, "t_s"), wanted)
    treatments = {trial.id: trial.treatment for trial in opened.record.trials}
    assert values(found, "treatment") == [treatments[id_] for id_ in values(found, "trial")]


def test_a_column_that_one_trial_lacks_is_nan_there(record, series, tmp_path):
    first, second = record.trials[0].id, record.trials[1].id
    series = {**series, first: {"load": {"t_s": [0.1, 0.2], "extra": [1.0, 2.0], "phase": ["load", "index"]}}}
    found = dbdyno.open_run(kept_run(tmp_path / "run", record, series)).series("load", frame="pandas")
    assert found[found.trial == first].extra.tolist() == [1.0, 2.0]
    assert found[found.trial == first].phase.tolist() == ["load", "index"]
    assert found[found.trial == second].extra.isna().all()
    assert found[found.trial == second].phase.isna().all()


def test_what_is_not_there_is_refused_with_what_is(opened):
    with pytest.raises(UserError, match="has no series 'cpu'; there are: block_device, host_cpu, load, server_status"):
        opened.series("cpu")
    with pytest.raises(UserError, match=r"has no finished trial 'b9'; trials\(\) lists them"):
        opened.series("load", trial="b9")
    with pytest.raises(UserError, match='frame is \'arrow\'; allowed are "pandas" and "polars"'):
        opened.trials(frame="arrow")
    with pytest.raises(UserError, match="is not a run folder"):
        dbdyno.open_run(opened.folder / "trials")


@pytest.mark.parametrize(("kind", "other"), [("pandas", "polars"), ("polars", "pandas")])
def test_a_package_that_is_not_installed_is_named_with_the_remedy(opened, kind, other, monkeypatch):
    real = builtins.__import__
    monkeypatch.delitem(sys.modules, kind)

    def without(name, *rest, **options):
        if name.split(".")[0] == kind:
            raise ImportError(name)
        return real(name, *rest, **options)

    monkeypatch.setattr("importlib.import_module", without)
    with pytest.raises(UserError) as refused:
        opened.trials(frame=kind)
    assert str(refused.value) == (
        f'the Python package {kind} is not installed: install it by "pip install {kind}", or ask for frame="{other}"'
    )
    assert len(opened.trials(frame=other)) == len(opened.record.trials)


def test_charts_are_the_reports_own(opened):
    assert list(opened.charts) == ["effect", "close_up", "latency", "order"]
    page = opened.page()
    for chart in opened.charts.values():
        assert chart._repr_svg_() in page
        root = ET.fromstring(chart._repr_svg_())
        assert root.tag.endswith("svg")
        assert chart.title in chart._repr_html_()


def test_the_run_shows_itself(opened, record):
    assert repr(opened) == f"<dbdyno run {str(opened.folder)!r}: {len(record.trials)} trials, done>"
    assert str(opened) == as_text(opened.record, opened.analysis)
    shown = opened._repr_html_()
    assert shown.count("<li>") == len(opened.analysis.verdicts)
    assert opened.charts["effect"]._repr_html_() in shown
    assert "<script" not in shown
    assert opened.study == STUDY
    assert opened.title == record.title


def test_a_hostile_run_is_shown_as_text(record, series, tmp_path):
    treatments = [replace(one, levels={"device": f"{one.id}{HOSTILE}"}) for one in record.design.treatments]
    hostile = replace(
        record, title=HOSTILE, question=HOSTILE, notes=[HOSTILE], design=replace(record.design, treatments=treatments)
    )
    opened = dbdyno.open_run(kept_run(tmp_path / "run", hostile, series))
    shown = [opened._repr_html_(), *(chart._repr_html_() for chart in opened.charts.values())]
    assert all("<script" not in one and "\x1b" not in one for one in shown)
    assert "&lt;script&gt;alert(1)" in shown[0]
    frames = [opened.trials(), opened.verdicts(), opened.table(), opened.series("load")]
    texts = [repr(opened), str(opened), opened.page(), opened.title, *(frame.to_csv() for frame in frames)]
    for text in (*shown, *texts):
        assert {char for char in text if not char.isprintable()} <= {"\n", "\u00a0"}


def test_what_nobody_foresaw_is_said_with_the_folder(tmp_path):
    folder = shutil.copytree(KEPT, tmp_path / "run")
    STRANGE["a metric that is none"](folder)
    resealed(folder)
    opened = dbdyno.open_run(folder)
    for asked in (str, opened.__class__.trials, opened.__class__._repr_html_, lambda one: one.charts):
        with pytest.raises(UserError, match=f"{tmp_path / 'run'}: no report can be made"):
            asked(opened)


def test_an_error_that_names_what_a_folder_holds_is_fit_to_print(tmp_path):
    run = shutil.copytree(KEPT, tmp_path / "run")
    for trial in run.glob("trials/*/trial.json"):
        found = json.loads(trial.read_text())
        found["observed"]["\ud800\x1b[31m\u202e"] = 5
        trial.write_text(json.dumps(found))
    resealed(run)
    with pytest.raises(UserError, match=r"observed\.\?\?\[31m\? is not a table") as raised:
        dbdyno.open_run(run).trials()
    assert str(raised.value).isprintable()


@pytest.mark.parametrize("name", ["run.toml", "journal.jsonl", "host.json"])
def test_a_pipe_in_the_place_of_a_file_is_refused(opened, tmp_path, name):
    folder = shutil.copytree(opened.folder, tmp_path / "run")
    (folder / name).unlink()
    os.mkfifo(folder / name)
    with pytest.raises(UserError, match=f"{folder / name}"):
        dbdyno.open_run(folder)


def test_nothing_is_written(opened):
    before = {path: path.stat().st_mtime_ns for path in opened.folder.rglob("*")}
    fresh = dbdyno.open_run(opened.folder)
    fresh.trials()
    fresh.series("load")
    fresh._repr_html_()
    fresh.page()
    assert {path: path.stat().st_mtime_ns for path in opened.folder.rglob("*")} == before


def test_a_run_without_a_finished_trial_opens(record, series, tmp_path):
    nothing = replace(record, trials=[], failures=[], notes=[], ended="running", stopped="")
    opened = dbdyno.open_run(kept_run(tmp_path / "run", nothing, series))
    assert len(opened.trials()) == 0
    assert opened.charts == {}
    assert opened.series_names == []
    assert len(opened.verdicts()) == len(record.design.comparisons)
    assert "<h3>" in opened._repr_html_()


def test_a_factor_called_as_a_column_keeps_its_name_apart(record):
    treatments = [Treatment(one.id, {"block": one.id}) for one in record.design.treatments]
    named = replace(record, design=replace(record.design, treatments=treatments))
    row = next(notebook.trial_rows(named, analyse(named)))
    assert (row["block"], row["factor.block"]) == (1, record.trials[0].treatment)


@pytest.mark.parametrize("kind", FRAMES)
def test_columns_keep_what_they_are(kind):
    columns = columns_of([{"n": 1, "x": 1, "s": "a", "b": True}, {"n": 2, "x": None, "s": "b", "b": False}])
    frame = frame_of(columns, kind)
    assert values(frame, "n") == [1, 2]
    assert values(frame, "x") == pytest.approx([1.0, math.nan], nan_ok=True)
    assert values(frame, "s") == ["a", "b"]
    assert values(frame, "b") == [True, False]


def test_the_program_does_not_pay_for_it():
    code = "import sys, dbdyno; print([name for name in ('numpy', 'dbdyno.notebook', 'pandas') if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
