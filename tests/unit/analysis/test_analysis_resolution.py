"""Figures told in whole units: intervals one unit wider, and nothing equivalent where the unit is large."""

import math

import numpy as np
import pytest

from benches.honesty import coarse
from dbdyno.analysis.analyse import analyse
from dbdyno.analysis.verdict.resolution import resolutions, step_of
from dbdyno.report.reasons import reason_text as why


@pytest.mark.parametrize(
    ("values", "step"),
    [
        ([7.0, 8, 7, 9], 1.0),
        ([7.0] * 6, 1.0),
        ([7.0] * 3, 0.0),  # too few to tell a step from chance
        ([40.0, 48, 56, 44, 60], 4.0),  # ticks of 4 ms
        ([40.0, 48, 56], 1.0),
        ([0.031, 0.030, 0.033], 0.001),
        ([1.25, 1.5, 1.75], 0.01),
        ([8123.0, 8311, 8204], 0.0),  # whole, and fine enough
        ([1.2345678, 1.3456789], 0.0),
        ([math.nan, 0.0], 0.0),
        ([], 0.0),
    ],
)
def test_the_step_of_figures(values, step):
    assert step_of(values) == pytest.approx(step)


def milliseconds(blocks, level, seed=1):
    return np.rint(level * np.exp(np.random.default_rng(seed).normal(0, 0.01, blocks))).tolist()


def test_a_latency_in_whole_milliseconds_is_not_equivalent(a_run):
    """Both are shown as 7 ms in every trial; they may be 14 % apart."""
    (found,) = analyse(a_run({"t1": [7.0] * 12, "t2": [7.0] * 12}, metric="latency_ms_p99")).verdicts
    assert found.verdict == "undecided"
    assert "the figures come in steps of 1 ms, 14 % of them: more than half the margin of 3 %" in why(found.reason)
    assert found.effect.low == pytest.approx(-0.13, abs=0.01)
    assert found.effect.high == pytest.approx(0.15, abs=0.01)


def test_the_interval_is_a_unit_wider_at_either_end(a_run):
    scores = {"t1": milliseconds(20, 90.0), "t2": milliseconds(20, 90.0, 2)}
    analysis = analyse(a_run(scores, metric="latency_ms_p99"))
    exact = analyse(a_run({id_: [v + 1e-4 * v**0.5 for v in each] for id_, each in scores.items()},
                          metric="latency_ms_p99"))  # fmt: skip
    (found,), (other,) = analysis.verdicts, exact.verdicts
    assert not other.resolution.coarse
    assert found.effect.low == pytest.approx(other.effect.low - 1 / 90, abs=0.002)
    assert found.effect.high == pytest.approx(other.effect.high + 1 / 90, abs=0.002)
    assert why(found.reason).endswith("1.1 % of them, by which the interval is wider at either end")
    assert analysis.treatments[1].effect == found.effect


def test_a_rate_is_as_coarse_as_the_seconds_it_is_made_from(a_run, a_trial):
    """mysqlslap tells 0.030 s: the rate has many digits and a step of 3 %."""
    seconds = np.rint(np.random.default_rng(3).normal(30, 1, (2, 12))) / 1000
    trials = [
        a_trial(f"t{i + 1}", block, 2000 / float(seconds[i, block - 1]), seconds_real=float(seconds[i, block - 1]))
        for block in range(1, 13)
        for i in range(2)
    ]
    run = a_run({"t1": [1.0] * 12, "t2": [1.0] * 12}, trials=trials)
    (found,) = analyse(run).verdicts
    assert found.verdict == "undecided"
    assert "steps of 0.001 s, 3.3 % of them" in why(found.reason)


def test_a_ratio_of_one_is_no_rounding(a_run):
    (found,) = analyse(a_run({"t1": [1.0] * 12, "t2": [1.0] * 12}, metric="achieved_ratio")).verdicts
    assert not found.resolution.coarse


def test_fine_figures_have_no_resolution(a_run):
    from dbdyno.analysis.blocks import usable_blocks

    run = a_run({"t1": [8123.0, 8200, 8311], "t2": [8223.0, 8250, 8316]})
    assert not any(one.coarse for one in resolutions(usable_blocks(run), "queries_per_second").values())


def test_every_row_of_the_bench_is_met():
    rows = coarse.rows(300, 7)
    assert [row for row in rows if row.met is False] == []
    exact = [row.measured for row in rows if row.group == "coarse: taken as exact"]
    assert max(exact) > 20  # what it is there for
