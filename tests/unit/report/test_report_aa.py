"""The noise floor of an A/A run, in every report."""

import json
from dataclasses import replace

import numpy as np
import pytest

from dbdyno.analysis.analyse import analyse
from dbdyno.model.design import SameTreatment, Treatment
from tests.unit.report.rendered import as_json, as_markdown, as_page, as_text
from tests.unit.report.test_report_one_answer import with_late_answers


@pytest.fixture
def aa(build):
    """Return an A/A run of 10 blocks, optionally with drift from trial to trial and the first half of each slower."""

    def make(*, blocks=10, noise=0.01, drift=0.0, label="ssd-sata / none", comparisons=3):
        run = build(blocks, rates={"t1": 400.0, "t2": 400.0}, pairs=[("t1", "t2")], void_block=0, noise=noise)
        rng = np.random.default_rng(1)
        trials = [
            replace(
                trial,
                metrics={k: v * float(np.exp(drift * place)) for k, v in trial.metrics.items()},
                load={"second_half_ratio": float(np.exp(rng.normal(0, 0.004)))},
            )
            for place, trial in enumerate(run.trials)
        ]
        treatments = [Treatment(id_, {"label": name}) for id_, name in (("t1", "A"), ("t2", "B"))]
        design = replace(run.design, treatments=treatments, aa=SameTreatment(label, comparisons))
        return replace(run, design=design, trials=trials, title="A/A: SSD or HDD")

    return make


def test_text_and_markdown(aa, snapshot):
    run = aa()
    plain, marked = as_text(run, analyse(run)), as_markdown(run, analyse(run))
    assert plain.split("Noise floor of this host")[1].split("\nNotes")[0] == snapshot(name="text")
    assert marked.split("## Noise floor of this host")[1].split("## Notes")[0] == snapshot(name="markdown")


def test_a_drift_is_said_to_have_fooled_a_fixed_order(aa):
    run = aa(drift=0.004)
    said = " ".join(as_text(run, analyse(run), 1000).split())
    assert "A fixed order would have misled" in said
    assert "All of A first, then all of B: +4" in said
    assert "both find a difference that is not there" in said
    assert "Drift from the first trial to the last: +8" in said


def test_a_wrong_word_is_called_wrong(aa):
    run = aa()
    fast = [
        replace(t, metrics={**t.metrics, "queries_per_second": t.metrics["queries_per_second"] * 1.2})
        if t.treatment == "t2"
        else t
        for t in run.trials
    ]
    assert '"Faster" is wrong here.' in as_text(replace(run, trials=fast), analyse(replace(run, trials=fast)))
    assert "is wrong here" not in as_text(run, analyse(run))


def test_json(aa):
    found = json.loads(as_json(aa(), analyse(aa())))["aa"]
    assert (found["treatment"], found["comparisons"]) == ("ssd-sata / none", 3)
    assert [one["blocks"] for one in found["reach"]] == [6, 10, 15, 20, 40]
    assert found["reach"][0]["difference"] is None, "6 blocks can not show one among 3 comparisons"
    assert 0 < found["reach"][4]["difference"] < found["reach"][1]["difference"] < 0.1
    assert [one["order"] for one in found["orders"]] == ["halves", "turns", "random"]
    assert found["spread"]["low"] < found["spread"]["value"] < found["spread"]["high"]


def test_the_page_has_the_card_and_escapes_the_label(aa, run):
    evil = aa(label="<script>alert(1)</script>")
    page = as_page(evil, analyse(evil), {})
    assert "Noise floor of this host" in page
    assert "smallest margin" in page
    assert "<script>alert" not in page
    assert "Noise floor of this host" not in as_page(run, analyse(run), {})


def test_few_blocks_say_so(aa):
    run = aa(blocks=3)
    assert "run at least 6" in as_text(run, analyse(run), 1000)
    assert as_page(run, analyse(run), {})


@pytest.mark.parametrize("p99_us", [1, 300])
@pytest.mark.parametrize("noise", [0.01, 0.08])
def test_of_a_late_disk_no_number_of_blocks_is_said_to_be_enough(aa, noise, p99_us):
    run = with_late_answers(aa(noise=noise), p99_us)
    said = " ".join(as_text(run, analyse(run), 1000).split())
    is_late = p99_us > 1
    assert ("the emulated disk was late" in said) == is_late
    assert ("can detect differences of about" in said) != is_late
    assert ("The emulated disk answered too late" in said) == is_late
    assert ("Run more blocks" in said) == (noise > 0.05 and not is_late)
