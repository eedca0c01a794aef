"""Every word, and the reason that goes with it."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benches.honesty import exaggeration as bench
from dbdyno.analysis.analyse import analyse
from dbdyno.analysis.stopping import Allowance
from dbdyno.analysis.verdict.evidence import AlwaysValid, of_signal
from dbdyno.analysis.verdict.finding import Paired, judge
from dbdyno.model.metrics import METRICS
from dbdyno.report.contents import document
from dbdyno.report.reasons import reason_text as why

STEADY = [100.0, 101, 99, 100.5, 99.5, 100.2, 99.8, 100.1]


def scaled(factor, *, noise=0.002, n=8, seed=1):
    wobble = np.exp(np.random.default_rng(seed).normal(0, noise, n))
    return [value * factor * float(w) for value, w in zip((STEADY * 5)[:n], wobble, strict=True)]


def verdict(run):
    (only,) = analyse(run).verdicts
    return only


def test_faster(a_run):
    found = verdict(a_run({"t1": STEADY, "t2": scaled(1.2)}))
    assert found.verdict == "faster"
    assert found.effect.value == pytest.approx(0.2, abs=0.01)
    assert found.p == found.p_adjusted < 2 / 2**8  # the mean's: an effect far beyond the spread
    assert found.blocks == found.effect.n == len(found.by_block) == 8
    assert why(found.reason) == "faster in all 8 blocks (p < 0.001 over 1 comparison), and the interval excludes 0"


def test_slower(a_run):
    assert verdict(a_run({"t1": STEADY, "t2": scaled(0.8)})).verdict == "slower"


@pytest.mark.parametrize(("factor", "word"), [(0.8, "faster"), (1.2, "slower")])
@pytest.mark.parametrize("metric", ["seconds_real", "latency_ms_p99", "server_cpu_us_per_query"])
def test_less_is_faster_for_times(a_run, metric, factor, word):
    found = verdict(a_run({"t1": STEADY, "t2": scaled(factor)}, metric=metric))
    assert found.verdict == word
    assert math.copysign(1, found.effect.value) == (1 if factor > 1 else -1)


EXCLUDED = "No block stalled, but stalls in up to 38 % of blocks could have been missed"


def test_equivalent(a_run):
    found = verdict(a_run({"t1": STEADY, "t2": scaled(1.0)}))
    assert found.verdict == "equivalent"
    ruled_out = "a difference as large as the margin of 3 % is ruled out (p = 0.004 over 1 comparison)"
    assert why(found.reason) == f"{ruled_out}. {EXCLUDED}"


def test_a_real_difference_inside_the_margin_is_equivalent(a_run):
    found = verdict(a_run({"t1": STEADY, "t2": scaled(1.01, noise=0.001)}))
    assert found.verdict == "equivalent"
    assert found.p_adjusted <= 0.05
    assert why(found.reason) == f"the difference is real (p < 0.001) but smaller than the margin of 3 %. {EXCLUDED}"


def test_a_difference_that_may_exceed_the_margin_is_not_equivalent(a_run):
    assert verdict(a_run({"t1": STEADY, "t2": scaled(1.025, noise=0.01)})).verdict == "faster"


def test_undecided_says_how_many_more(a_run):
    found = verdict(a_run({"t1": STEADY, "t2": scaled(1.0, noise=0.08)}))
    assert found.verdict == "undecided"
    assert why(found.reason).startswith("the interval includes 0 and reaches beyond the margin of 3 %; about ")
    assert why(found.reason).endswith(" more blocks to resolve 3 %")


def disturbed(run, blocks):
    """The run with others disturbing a trial of so many blocks."""
    trials = [
        replace(one, disturbance={"beyond": ["foreign_cpu"]}) if one.block <= blocks and one.treatment == "t2" else one
        for one in run.trials
    ]
    return replace(run, trials=trials)


def test_where_others_disturbed_the_blocks_the_advice_is_about_them_and_not_about_more_blocks(a_run):
    run = a_run({"t1": STEADY, "t2": scaled(1.0, noise=0.08)})
    quiet, some, half, all_ = (verdict(disturbed(run, blocks)) for blocks in (0, 3, 4, 8))
    assert why(quiet.reason) == why(some.reason)
    for found, which in ((half, "4 of 8 blocks"), (all_, "all 8 blocks")):
        assert found.blocks_needed is None
        assert why(found.reason).endswith(
            f"; interference in {which}: stop other programs on this host; more blocks would not help"
        )


def test_undecided_names_no_number_of_blocks_that_nobody_can_run(a_run):
    found = verdict(a_run({"t1": STEADY, "t2": scaled(1.0, noise=0.6)}))
    assert found.blocks_needed > 1_000
    assert why(found.reason).endswith("; resolving 3 % needs less noise: longer trials, or an idle host")


def test_too_few_blocks_for_any_comparison(a_run):
    scores = {"t1": STEADY[:5]} | {f"t{i}": scaled(1.5, n=5, seed=i) for i in (2, 3, 4)}
    for found in analyse(a_run(scores)).verdicts:
        assert found.verdict == "undecided"
        assert why(found.reason) == "5 blocks can at best reach p = 0.208 over 3 comparisons; 6 blocks are needed"


def test_a_large_effect_is_decided_in_six_blocks_however_many_comparisons(a_run):
    """4.88x (3.25 to 7.45): the signed rank's smallest p over five comparisons is .156."""
    ratios = [3.25, 4.1, 4.6, 5.1, 5.8, 7.45]
    scores = {"t1": STEADY[:6], "t2": [rate * ratio for rate, ratio in zip(STEADY, ratios, strict=False)]}
    scores |= {f"t{i}": scaled(1.0, n=6, noise=0.03, seed=i) for i in range(3, 7)}
    first, *others = analyse(a_run(scores)).verdicts
    assert first.verdict == "faster"
    assert first.effect.low > 1
    assert "over 5 comparisons" in why(first.reason)
    assert not {"faster", "slower"} & {other.verdict for other in others}


def test_five_blocks_cannot_decide(a_run):
    found = verdict(a_run({"t1": STEADY[:5], "t2": scaled(1.5, n=5)}))
    assert found.verdict == "undecided"
    assert not found.effect.bounded
    assert why(found.reason) == "5 blocks can at best reach p = 0.069 over 1 comparison; 6 blocks are needed"


def test_no_equivalence_beside_an_unknown_interval(a_run):
    assert verdict(a_run({"t1": STEADY[:5], "t2": STEADY[:5]})).verdict == "undecided"


def test_identical_values(a_run):
    found = verdict(a_run({"t1": STEADY, "t2": STEADY}))
    assert (found.verdict, found.effect.value, found.p) == ("equivalent", 0, 1)


def test_holm_makes_the_same_data_stricter(a_run):
    scores = {"t1": STEADY, "t2": [*scaled(1.1)[:7], 160.0]}
    alone = analyse(a_run(scores)).verdicts[0]
    scores |= {f"t{i}": scaled(1.0, noise=0.05, seed=i) for i in range(3, 8)}
    among = analyse(a_run(scores)).verdicts[0]
    assert alone.verdict == "faster"
    assert alone.p == among.p < among.p_adjusted
    assert among.verdict == "undecided"
    assert alone.effect.low > 0 > among.effect.low, "no interval that excludes 0 stands beside undecided"


def test_not_comparable_for_want_of_blocks(a_run):
    found = verdict(a_run({"t1": STEADY[:1], "t2": STEADY[:1]}))
    assert found.verdict == "not comparable"
    assert why(found.reason) == "1 usable block, at least 2 are needed"
    assert math.isnan(found.p)
    assert not found.effect.known


def test_not_comparable_when_it_crashes_again_and_again(a_run, a_trial):
    trials = [a_trial("t1", block, 100) for block in range(1, 9)]
    run = a_run({"t1": STEADY, "t2": STEADY}, trials=trials, failures=[("t2", 1, 1), ("t2", 1, 2)])
    found = verdict(run)
    assert found.verdict == "not comparable"
    assert why(found.reason) == "level t2 failed again and again and was dropped"


def test_a_metric_that_no_trial_carries(a_run, a_trial):
    trials = [a_trial(t, block, 1.0, metric="seconds_real") for block in range(1, 9) for t in ("t1", "t2")]
    analysis = analyse(a_run({"t1": STEADY, "t2": STEADY}, trials=trials))
    assert analysis.verdicts[0].verdict == "not comparable"
    assert analysis.without_figure == sorted(trial.id for trial in trials)


@given(st.lists(st.tuples(st.floats(1, 1e4), st.floats(1, 1e4)), max_size=12))
def test_swapping_the_levels_swaps_the_words(a_run, pairs):
    first, second = [a for a, _ in pairs] or [1.0], [b for _, b in pairs] or [1.0]
    there = verdict(a_run({"t1": first, "t2": second}))
    back = verdict(a_run({"t1": second, "t2": first}))
    opposite = {"faster": "slower", "slower": "faster"}
    assert back.verdict == opposite.get(there.verdict, there.verdict)
    assert back.p == pytest.approx(there.p, nan_ok=True)
    if there.effect.known:
        assert 1 + back.effect.value == pytest.approx(1 / (1 + there.effect.value))


def test_an_unknown_metric_is_refused(a_run):
    with pytest.raises(KeyError):
        analyse(a_run({"t1": STEADY, "t2": STEADY}, metric="beauty"))


def test_a_zero_is_not_left_out(a_run):
    """The level hung in 3 blocks of 10 and was faster in the others: those others are not the answer."""
    level = [0.0 if block in {2, 5, 9} else value for block, value in enumerate(scaled(1.2, n=10), 1)]
    analysis = analyse(a_run({"t1": (STEADY * 2)[:10], "t2": level}))
    (found,) = analysis.verdicts
    assert found.verdict == "not comparable"
    assert why(found.reason) == "queries_per_second of level t2 is 0 in 3 blocks, and there is no ratio to 0"
    assert not analysis.treatments[1].effect.known
    assert analysis.ties.letters["t2"] == ""


def test_a_value_that_is_missing_is_left_out(a_run):
    level = [math.nan, *scaled(1.2, n=9)]
    found = verdict(a_run({"t1": (STEADY * 2)[:10], "t2": level}))
    assert (found.verdict, found.blocks) == ("faster", 9)


@pytest.mark.parametrize("comparisons", [1, 4])
def test_the_first_look_decides_a_large_effect_and_five_blocks_none(a_run, comparisons):
    design = replace(a_run({"t1": [1.0], "t2": [1.0]}).design, until="decided", blocks=40)
    rule = Allowance(design).rule
    for blocks, word in ((5, "undecided"), (6, "faster")):
        clear = {block: 0.5 + 0.01 * block for block in range(blocks)}
        pairs = [Paired("a", "b", "t1", f"t{i}", clear) for i in range(comparisons)]
        found = judge(pairs, METRICS["queries_per_second"], 0.03, rule)[0]
        assert found.verdict == word
        assert ("; 6 blocks are needed" in why(found.reason)) == (word == "undecided")


def test_figures_beyond_all_reason_raise_nothing(a_run):
    found = verdict(a_run({"t1": [1e-300] * 8, "t2": [1e300] * 8}))
    assert (found.verdict, found.effect.value) == ("faster", math.inf)


def test_a_spread_of_nothing_has_no_always_valid_interval(a_run):
    """The t sequence has no scale then; the reason must not speak of an interval that there is not."""
    pair = Paired("a", "b", "t1", "t2", dict.fromkeys(range(10), 0.125))
    design = replace(a_run({"t1": [1.0], "t2": [1.0]}).design, until="open")
    (found,) = judge([pair], METRICS["queries_per_second"], 0.03, Allowance(design).rule)
    assert (found.verdict, found.effect.bounded) == ("undecided", False)
    assert why(found.reason) == "all 10 blocks have the same ratio, so the noise is unknown"
    uneven = replace(pair, log_ratios={1: 0.1, 2: 0.2, 3: 0.1})
    few = judge([uneven], METRICS["queries_per_second"], 0.03, lambda _: AlwaysValid())
    assert why(few[0].reason) == "3 blocks are too few for an interval"


# The winner's curse: what a study that found an effect with little power shows of it.


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
