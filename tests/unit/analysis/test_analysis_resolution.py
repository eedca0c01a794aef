"""Figures told in whole units: intervals one unit wider, and nothing equivalent where the unit is large."""

import math
from dataclasses import replace

import numpy as np
import pytest

from benches.honesty import coarse
from dbdyno.analysis.analyse import analyse
from dbdyno.analysis.blocks import usable_blocks
from dbdyno.analysis.verdict.evidence import Resolution, resolutions, step_of
from dbdyno.model.metrics import SYSBENCH_BUCKET, step_stated, steps_to_store
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
    assert "the figures are rounded to steps of 1 ms, 14 % of their value: more than half the margin of 3 %" in why(
        found.reason
    )
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
    assert why(found.reason).endswith("1.1 % of their value, so the interval is widened by that at either end")
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
    assert "steps of 0.001 s, 3.3 % of their value" in why(found.reason)


def test_a_ratio_of_one_is_no_rounding(a_run):
    (found,) = analyse(a_run({"t1": [1.0] * 12, "t2": [1.0] * 12}, metric="achieved_ratio")).verdicts
    assert not found.resolution.coarse


def test_fine_figures_have_no_resolution(a_run):
    run = a_run({"t1": [8123.0, 8200, 8311], "t2": [8223.0, 8250, 8316]})
    assert not any(one.coarse for one in resolutions(usable_blocks(run), "queries_per_second").values())


def of_program(a_run, figures, **load):
    """Return the verdict of a run whose trials keep ``load``, on the 99th percentile, within 5 %."""
    run = a_run(figures, metric="latency_ms_p99", margin=0.05)
    trials = [replace(trial, load=load) for trial in run.trials]
    return analyse(replace(run, trials=trials)).verdicts[0]


def in_buckets(buckets, seed):
    return buckets(np.random.default_rng(seed).normal(20, 0.1, 12)).tolist()


@pytest.mark.parametrize(
    ("kind", "buckets", "width"), [("sysbench", coarse.sysbench_buckets, 0.018), ("fio", coarse.fio_buckets, 1 / 64)]
)
def test_a_percentile_is_as_coarse_as_the_buckets_of_its_program(a_run, kind, buckets, width):
    figures = {"t1": in_buckets(buckets, 1), "t2": in_buckets(buckets, 2)}
    found, exact = of_program(a_run, figures, kind=kind), of_program(a_run, figures, kind="oltp")
    assert found.resolution.relative
    assert found.resolution.log_width == pytest.approx(width, rel=5e-3)  # and three decimals
    assert math.log1p(found.effect.high) == pytest.approx(math.log1p(exact.effect.high) + width, abs=1e-3)
    assert math.log1p(found.effect.low) == pytest.approx(math.log1p(exact.effect.low) - width, abs=1e-3)


def test_what_a_trial_keeps_of_its_steps_goes_before_what_its_kind_is_known_for(a_run):
    """The program may have other buckets by then."""
    figures = {"t1": in_buckets(coarse.fio_buckets, 1), "t2": in_buckets(coarse.fio_buckets, 2)}
    kept = {"latency_ms_p99": {"absolute": 0.0, "relative": 0.1}}
    found = of_program(a_run, figures, kind="fio", steps=kept)
    assert found.verdict == "undecided"
    assert why(found.reason).startswith("the figures come from a histogram with buckets that are 10 % wide: more than")
    assert not of_program(a_run, figures, kind="fio", steps={}).resolution.coarse


@pytest.mark.parametrize("broken", [{"latency_ms_p99": 3}, {"latency_ms_p99": {"relative": "x"}}, {"x": None}])
def test_steps_that_are_none_are_no_resolution(a_run, broken):
    figures = {"t1": in_buckets(coarse.fio_buckets, 1), "t2": in_buckets(coarse.fio_buckets, 2)}
    assert not of_program(a_run, figures, kind="fio", steps=broken).resolution.relative


def test_of_steps_stated_and_found_the_coarser_holds(a_run, a_trial):
    """mysqlslap's seconds have three decimals, also where chance leaves no common step to be found."""
    seconds = {"t1": 0.0301, "t2": 0.0302}  # all trials alike: no step is seen in time that never varies
    trials = [
        replace(a_trial(id_, block, 2000 / value, seconds_real=value), load={"kind": "mysqlslap"})
        for block in range(1, 13)
        for id_, value in seconds.items()
    ]
    run = a_run({"t1": [1.0] * 12, "t2": [1.0] * 12}, trials=trials)
    found = resolutions(usable_blocks(run), "queries_per_second", "1/s")
    assert found["t1"] == Resolution(0.001, "s", pytest.approx(0.0005 / 0.0301))


def test_a_program_s_buckets_are_those_that_it_prints():
    """Lines of sysbench 1.0.20's histogram, and bins of fio 3."""
    printed = [0.270, 0.275, 0.280, 0.285, 0.291, 0.296, 0.301, 0.307, 0.872, 0.920, 1.007, 4.41]
    assert np.round(coarse.sysbench_buckets(np.array(printed)), 3).tolist() == pytest.approx(printed, abs=0.0051)
    bins_ns = np.array([37632.0, 38144, 43264, 57600])
    assert coarse.fio_buckets(bins_ns / 1e6).tolist() == pytest.approx((bins_ns / 1e6).tolist())


def test_a_trial_keeps_the_steps_of_the_metrics_that_it_has():
    kept = steps_to_store("sysbench", {"latency_ms_p99": 4.4, "queries_per_second": 100.0})
    assert kept == {"latency_ms_p99": {"absolute": 0.001, "relative": SYSBENCH_BUCKET}}
    assert step_stated({"kind": "sysbench", "steps": kept}, "latency_ms_p99").relative == SYSBENCH_BUCKET


def test_every_row_of_the_bench_is_met():
    rows = coarse.rows(300, 7)
    assert [row for row in rows if row.met is False] == []
    exact = [row.measured for row in rows if row.group == "coarse: taken as exact"]
    assert max(exact) > 20  # what it is there for
