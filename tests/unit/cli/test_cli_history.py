"""``dbdyno history``: what it prints of kept runs, and how it ends for a script."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest

from dbdyno.analysis.history import history
from dbdyno.model.design import Comparison, Design, Treatment
from dbdyno.model.word import CONDITION_HOLDS
from dbdyno.report.charts.history import chart
from dbdyno.store.records import Run, Trial
from dbdyno.store.run_folder import read_run
from tests.run_folders import STUDY, written

TREATMENTS = [Treatment("t1", {"device": "hdd"}), Treatment("t2", {"device": "ssd"})]


def a_night(night, slower):
    rng = np.random.default_rng(night)
    trials = [
        Trial(
            id=f"b{block}a1p{place}", block=block, attempt=1, position=place, treatment=treatment.id,
            started_at=f"2026-03-{night:02}T00:{block:02}:00Z",
            metrics={"queries_per_second": 1000 * (slower if place == 2 else 1) * float(np.exp(rng.normal(0, 0.01)))},
        )
        for block in range(1, 7)
        for place, treatment in enumerate(TREATMENTS, 1)
    ]  # fmt: skip
    design = Design(
        treatments=TREATMENTS, baseline="t1", comparisons=[Comparison("t1", "t2")], blocks=6, margin=0.03,
        metric="queries_per_second", seed=1,
    )  # fmt: skip
    return Run("Nightly", "", design, trials, [], {}, {"kernel": "6.1" if slower == 1 else "6.2"}, "done", [])


@pytest.fixture(scope="module")
def nights(tmp_path_factory):
    folder = tmp_path_factory.mktemp("nights")
    return [
        written(folder / f"night{night:02}", replace(a_night(night, 0.9 if night > 8 else 1), study=STUDY))
        for night in range(1, 13)
    ]


def test_the_change_is_told_with_what_differs_there(dbdyno, nights):
    code, told, aside = dbdyno("history", *nights)
    assert code == 0, aside
    text = " ".join(told.split())
    assert "between night08 and night09" in text
    assert "Known to differ there: version kernel." in text
    assert "No change named of hdd" in text


def test_json_and_the_exit_code(dbdyno, nights):
    def code(*options):
        return dbdyno("history", *nights, *options)[0]

    values = json.loads(dbdyno("history", *nights, "--json")[1])
    (change,) = values["verdicts"]
    assert (change["first_after"], change["verdict"], change["treatment"]) == ("night09", "slower", "ssd")
    assert values["treatments"][0]["changes"] == 0
    assert code("--fail-if", "slower by 3%") == CONDITION_HOLDS
    assert code("--fail-if", "slower by 30%") == 0
    assert code("--fail-if", "slower", "--since", "night10") == 0
    assert code("--fail-if", "slower", "--since", "2026-03-09") == CONDITION_HOLDS
    assert code("--fail-if", "slower", "--control", "ssd") == 0, "hdd is faster then"


def test_a_page(dbdyno, nights, tmp_path):
    page = tmp_path / "history.html"
    assert dbdyno("history", *nights, "--html", page)[0] == 0
    text = page.read_text(encoding="utf-8")
    (wide,) = re.findall(r'<svg[^>]*aria-label="each treatment through time.*?</svg>', text, re.DOTALL)[:1]
    assert wide.count('stroke-dasharray="3 3"') == 1, "one change is marked"
    assert "slower between night08 and night09: " in wide
    (hdd, ssd) = re.findall(r'data-says="([^"]*)"', wide)
    assert len(hdd.split("|")) == len(ssd.split("|")) == 12, "a dot for each run"
    blocks, runs = [path.count("M") for path in re.findall(r'<path d="(M[^"]*h0[^"]*)"', wide)][:2]
    assert (blocks, runs) == (72, 12)
    levels = re.findall(r"<title>night\d\d to night\d\d: [\d,.]+ \([\d,.]+ to [\d,.]+\)</title>", wide)
    assert len(levels) == 3, "one of hdd, two of ssd, with their intervals"


def test_the_chart_escapes_names_and_draws_a_dozen_treatments(nights):
    runs = [(f"<b>{number}", read_run(folder)) for number, folder in enumerate(nights)]
    treatments = [Treatment(f"t{number}", {"device": f"<i>{number}"}) for number in range(1, 15)]
    many = [(name, with_treatments(run, treatments)) for name, run in runs]
    made = chart(history(many))
    for window in ("wide", "narrow"):
        drawn = made.drawn(window)
        assert "<b>" not in drawn
        assert "<i>" not in drawn
        assert drawn.count('font-weight="bold"') >= 12
    assert made.caption.endswith("2 more treatments are in the tables alone.")


def with_treatments(run, treatments):
    """Return the run with so many treatments, all of them the first."""
    of_first = [trial for trial in run.trials if trial.treatment == "t1"]
    trials = [replace(trial, id=f"{trial.id}-{t.id}", treatment=t.id) for t in treatments for trial in of_first]
    pairs = [Comparison("t1", treatment.id) for treatment in treatments[1:]]
    return replace(run, trials=trials, design=replace(run.design, treatments=treatments, comparisons=pairs))
