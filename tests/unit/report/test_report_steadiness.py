"""Steadiness in every report: sentences, table, and no word of it where it is not asked for."""

import json
from dataclasses import replace

import numpy as np
import pytest

from dbdyno.analysis.analyse import analyse
from tests.unit.report.rendered import as_json, as_markdown, as_page, as_text

SPREAD = {"t1": 0.4, "t2": 0.38, "t3": 0.05, "t4": 0.052}


@pytest.fixture
def asked(run):
    return replace(run, design=replace(run.design, steadiness=True))


@pytest.fixture
def load_series(run):
    rng = np.random.default_rng(5)
    return {
        trial.id: {
            "t_s": np.arange(400) + 1.0,
            "events_per_second": 1000 * (1 + SPREAD[trial.treatment] * rng.normal(size=400)).clip(0),
        }
        for trial in run.trials
    }


def test_text(snapshot, asked, load_series):
    told = as_text(asked, analyse(asked, load_series=load_series))
    assert told[told.index("Steadiness") : told.index("\nStability")] == snapshot


def test_markdown_has_the_same_sentences(asked, load_series):
    told = as_markdown(asked, analyse(asked, load_series=load_series))
    section = told[told.index("## Steadiness") : told.index("## Stability")]
    assert section.count("is **steadier** than") == 2
    assert "| ssd-sata / mq-deadline |" in section


def test_json_and_page(asked, run, load_series):
    found = analyse(asked, load_series=load_series)
    document = json.loads(as_json(asked, found))["steadiness"]
    assert [one["verdict"] for one in document["verdicts"]] == ["as steady", "steadier", "steadier", "as steady"]
    assert '<strong class="word faster">steadier</strong> than hdd-7200' in as_page(asked, found, {})
    bare = analyse(run, load_series=load_series)
    assert "Steadiness" not in as_page(run, bare, {})


def test_trials_that_are_too_short_are_no_verdict(asked):
    short = {one.id: {"t_s": np.arange(1, 40) / 10, "events_per_second": np.ones(39)} for one in asked.trials}
    assert "Steadiness" not in as_text(asked, analyse(asked, load_series=short))
