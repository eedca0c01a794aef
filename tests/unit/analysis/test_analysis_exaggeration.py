"""The winner's curse: what a study that found an effect with little power shows of it."""

import numpy as np
import pytest

from benches.honesty import exaggeration as bench
from dbdyno.analysis.analyse import analyse
from dbdyno.analysis.verdict.evidence import of_signal
from dbdyno.report.contents import document
from dbdyno.report.reasons import reason_text as why

RNG = np.random.default_rng(8)


def test_the_factor_is_the_mean_of_what_is_called_different():
    for signal, bound in [(0.5, 1.96), (2.0, 1.96), (2.8, 2.3), (5.0, 1.96)]:
        seen = RNG.normal(signal, 1, 400_000)
        called = np.abs(seen) > bound
        found = of_signal(signal, bound)
        assert found.power == pytest.approx(called.mean(), abs=0.005)
        assert found.factor == pytest.approx(np.abs(seen[called]).mean() / signal, rel=0.01)


def test_an_effect_just_found_is_told_to_be_too_large(a_run):
    """The spread is such that one study in two finds what is there."""
    d = RNG.normal(0, 1, 20)
    d = 0.04 * (d - d.mean()) / d.std() + 0.024
    (found,) = analyse(a_run({"t1": [1000.0 + 0.1234] * 20, "t2": (1000.1234 * np.exp(d)).tolist()})).verdicts
    assert found.verdict == "faster"
    assert found.exaggeration.factor > 1.1
    assert why(found.reason).endswith(" times")
    assert "; so few blocks detect such an effect in " in why(found.reason)


def test_a_clear_effect_is_not_told_to_be(a_run):
    rates = (1000 * np.exp(RNG.normal(0, 0.01, (2, 12)))).tolist()
    run = a_run({"t1": rates[0], "t2": [1.2 * rate for rate in rates[1]]})
    analysis = analyse(run)
    (found,) = analysis.verdicts
    assert found.verdict == "faster"
    assert found.exaggeration.factor == pytest.approx(1, abs=0.01)
    assert "overstate" not in why(found.reason)
    assert document(run, analysis).values()["verdicts"][0]["exaggeration"] == pytest.approx(1, abs=0.01)


def test_every_row_of_the_bench_is_met():
    assert [row for row in bench.rows(1500, 7) if row.met is False] == []
