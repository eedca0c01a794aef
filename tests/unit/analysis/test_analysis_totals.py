"""Rare stalls: what "equivalent" asks, and how long the same work takes in all."""

import math
import re

import numpy as np
import pytest

from benches.honesty import stalls
from dbdyno.analysis.analyse import analyse
from dbdyno.analysis.statistics import mean_p_beyond
from dbdyno.analysis.verdict.finding import totals
from dbdyno.report.reasons import reason_text as why
from dbdyno.report.reasons import totals_text

RNG = np.random.default_rng(5)


def stalled(blocks, every, rate, *, spread=0.005):
    """Return two equal treatments' rates; the second has ``rate`` of its own in one block of ``every``."""
    first, second = (1000 * np.exp(RNG.normal(0, spread, blocks)) for _ in range(2))
    second[every // 2 :: every] *= rate
    return first.tolist(), second.tolist()


@pytest.mark.parametrize(("every", "rate", "longer"), [(10, 0.5, 0.1), (20, 0.1, 0.45)])
def test_a_treatment_that_stalls_is_not_equivalent(a_run, every, rate, longer):
    first, second = stalled(40, every, rate)
    (found,) = analyse(a_run({"t1": first, "t2": second})).verdicts
    assert found.verdict == "undecided"
    assert why(found.reason).startswith("the typical block lies inside the margin of 3 %, but the mean")
    assert why(found.reason).endswith(f"{40 // every} of 40 blocks are far off")
    assert found.totals.apart
    assert found.totals.effect.value == pytest.approx(longer, abs=0.01)
    assert re.search(
        r"^Average and typical block disagree: (a few blocks were|one block was) far slower \([0-9]+ of [0-9]+; ",
        totals_text(found.totals, found.blocks),
    )


def test_the_total_of_a_latency_is_its_sum(a_run):
    latencies = [1000 / value for value in stalled(40, 10, 0.5)[1]], [1000 / value for value in stalled(40, 10, 1)[1]]
    (found,) = analyse(a_run({"t1": latencies[1], "t2": latencies[0]}, metric="latency_ms_mean")).verdicts
    assert not found.totals.of_time
    assert found.totals.effect.value == pytest.approx(0.1, abs=0.01)
    assert "the sum over all blocks is" in totals_text(found.totals, 40)


def test_totals_are_quiet_where_they_say_the_same(a_run):
    first, second = stalled(40, 10, 1.0)
    (found,) = analyse(a_run({"t1": first, "t2": second})).verdicts
    assert found.verdict == "equivalent"
    assert totals_text(found.totals, found.blocks) == ""
    assert why(found.reason).endswith("No block stalled, but stalls in up to 7.5 % of blocks could have been missed")


def test_totals_of_a_rate_are_those_of_harmonic_means():
    figures = {1: (50.0, 100.0), 2: (100.0, 100.0), 3: (25.0, 50.0)}
    found = totals(figures, 0.0, 0.03, more_is_better=True)
    assert found.effect.value == pytest.approx((1 / 50 + 1 / 100 + 1 / 25) / (1 / 100 + 1 / 100 + 1 / 50) - 1)
    assert not found.effect.bounded  # of 3 blocks


def test_figures_beyond_all_reason_overflow_nothing():
    figures = dict.fromkeys(range(8), (1e-300, 1e300))
    assert not math.isnan(totals(figures, -1300.0, 0.03, more_is_better=False).effect.value)


def test_the_mean_is_beyond_a_bound_that_is_not_there():
    d = RNG.normal(0, 0.001, (3, 10))
    assert mean_p_beyond(d, np.array([0.03, 0.0, -0.01])).round(3).tolist()[1:] >= [0.5, 0.999]
    assert mean_p_beyond(np.zeros(8), 0.03) == 0
    assert mean_p_beyond(np.full(8, 0.04), 0.03) == 1


def test_every_row_of_the_bench_is_met():
    assert [row for row in stalls.rows(400, 7) if row.met is False] == []
