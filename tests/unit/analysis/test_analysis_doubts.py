"""What is in doubt in every pair is in doubt in their average, their interaction and their ranking."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dbdyno.analysis.analyse import analyse
from dbdyno.analysis.blocks import usable_blocks
from dbdyno.analysis.factors import difference, effect_of
from dbdyno.analysis.ranking import rank_runs
from dbdyno.analysis.verdict.figures import MetricFigures, pairs_of
from dbdyno.analysis.verdict.finding import OtherRatios, Paired, judge
from dbdyno.analysis.verdict.pairs import alternatives_of, compared, every_pair
from dbdyno.analysis.verdict.reasons import UnequalFailures
from dbdyno.model.metrics import METRICS
from dbdyno.model.word import Word
from dbdyno.report.reasons import reason_text
from dbdyno.store.records import FailedTrial
from tests.unit.analysis.test_analysis_factorial import a_run, noisy, treatments_of

DRIVES_AND_LOADS = {"device": ["hdd", "ssd"], "load": ["read", "write"]}
SECTIONS = {"load": "workload"}


def failing(run, attempts):
    """The run in which each treatment failed in so many blocks of its own, which were repeated."""
    failed = [id_ for id_, number in attempts.items() for _ in range(number)]
    failures = [FailedTrial(f"f{block}", block, 1, id_, "died") for block, id_ in enumerate(failed, 1)]
    trials = [replace(one, attempt=2) if one.block <= len(failed) else one for one in run.trials]
    return replace(run, trials=trials, failures=failures)


def drives(effects, *, sd=0.015, blocks=14, attempts=()):
    """Two drives under two loads: t1 and t2 are the first drive's, t3 and t4 the second's."""
    run = a_run(DRIVES_AND_LOADS, noisy(effects, blocks, sd), sections=SECTIONS)
    return failing(run, dict(attempts))


def words_of(run):
    """Return the words of the two drives under each load, on average, and of the interaction, and whether they tie."""
    found = analyse(run, each_pair=True)
    by_ids = {(one.level_id, one.baseline_id): one for one in [*found.verdicts, *found.every_pair]}
    pairs = [by_ids["t3", "t1"], by_ids["t4", "t2"]]
    (average,) = [one.verdict for one in found.factors.main_effects if one.factor == "device"]
    (interaction,) = found.factors.interactions
    letters = [set(one.letters) for one in found.ranking.scores]
    return pairs, average, interaction.verdict, not letters[0] & letters[1]


def test_without_failures_all_have_words():
    pairs, average, interaction, apart = words_of(drives([0, 0, 0.038, 0.038]))
    assert {one.verdict for one in (*pairs, average)} == {Word.FASTER}
    assert interaction.verdict is Word.EQUIVALENT
    assert apart


@pytest.mark.parametrize("attempts", [{"t3": 4, "t4": 4}, {"t3": 4, "t2": 4}])
def test_failures_of_one_side_of_every_pair_withhold_the_words_of_averages_and_rankings(attempts):
    """Also where one pair's level and the other's baseline failed: what is picked in one makes up for nothing."""
    pairs, average, interaction, apart = words_of(drives([0, 0, 0.038, 0.038], attempts=attempts))
    assert {one.reason.withheld_for.__class__ for one in (*pairs, average)} == {UnequalFailures}
    assert {one.verdict for one in (*pairs, average, interaction)} == {Word.UNDECIDED}
    assert not average.effect.low > 0
    assert not apart


def test_failures_that_are_unequal_only_together_are_asked_of_the_average():
    run = drives([0, 0, 0.038, 0.038], attempts={"t3": 3, "t4": 3})
    figures = MetricFigures(run, usable_blocks(run), "queries_per_second")
    contrast = effect_of(run.design.treatments, "device", "ssd", "hdd")
    pair = Paired("", "", "", "", figures.by_block(contrast))
    low, high = alternatives_of(figures, contrast, pair)
    assert not any(each.alternatives for each in compared(figures, run.design.comparisons) if "t1" in each.ids)
    assert low.cause == high.cause == UnequalFailures("ssd / read + ssd / write", 6, "hdd / read + hdd / write", 0)
    assert len(low.d) == len(pair.d) + 3
    assert max(low.d[-3:]) < min(pair.d) <= max(pair.d) < min(high.d[-3:])


def test_failures_in_every_run_withhold_the_ranking_over_them():
    runs = [
        (name, drives([0, 0, 0.038, 0.038], attempts=attempts))
        for name in ("one", "other")
        for attempts in ({"t3": 5, "t4": 5},)
    ]
    sound = [(name, drives([0, 0, 0.038, 0.038])) for name in ("one", "other")]
    tied = [rank_runs(each).ties.letters for each in (runs, sound)]
    assert [len(set(letters.values())) for letters in tied] == [1, 2]


@given(st.integers(0, 10_000), st.integers(1, 3), st.integers(1, 3))
def test_a_contrast_is_the_sum_of_its_pairs(seed, more, others):
    levels = {"x": [str(i) for i in range(more + 1)], "y": [str(i) for i in range(others + 1)], "z": ["1", "2"]}
    treatments = treatments_of(levels)
    rng = np.random.default_rng(seed)
    level, at = str(rng.integers(1, more + 1)), str(rng.integers(1, others + 1))
    there, here = (effect_of(treatments, "x", level, "0", {"y": where}) for where in (at, "0"))
    by_id = {one.id: one for one in treatments}
    for contrast, factors in ((effect_of(treatments, "x", level, "0"), {"x"}), (difference(there, here), {"x", "y"})):
        total = dict.fromkeys(contrast, 0.0)
        for pair in pairs_of(contrast, treatments):
            assert pair.weight > 0
            total[pair.level] += pair.weight
            total[pair.baseline] -= pair.weight
            levels_of_pair = by_id[pair.level].levels, by_id[pair.baseline].levels
            apart = {name for name in levels if levels_of_pair[0][name] != levels_of_pair[1][name]}
            assert len(apart) == 1
            assert apart <= factors
        assert total == pytest.approx(contrast)


@settings(max_examples=30, deadline=None)
@given(
    st.integers(0, 10_000),
    st.lists(st.sampled_from([0.0, 0.02, 0.1]), min_size=4, max_size=4),
    st.lists(st.integers(0, 5), min_size=4, max_size=4),
    st.sampled_from([0.003, 0.02]),
)
def test_no_sum_has_a_word_that_every_pair_withholds(seed, effects, attempts, sd):
    logs = noisy(effects, 24, sd, seed)
    run = failing(
        a_run(DRIVES_AND_LOADS, logs, sections=SECTIONS), dict(zip(("t1", "t2", "t3", "t4"), attempts, strict=True))
    )
    pairs, average, interaction, apart = words_of(run)
    if all(one.doubted_for for one in pairs):
        assert average.verdict is Word.UNDECIDED
        assert interaction.verdict is Word.UNDECIDED
        assert not apart
    for one in (*pairs, average, interaction):
        assert one.verdict.is_different <= (one.p_adjusted <= 0.05)
        excludes = one.effect.low > 0 or one.effect.high < 0
        assert one.verdict is Word.EQUIVALENT or one.verdict.is_different == excludes


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10_000), st.lists(st.integers(0, 5), min_size=4, max_size=4))
def test_a_pair_s_alternatives_are_those_of_its_contrast(seed, attempts):
    """One function answers for both; it reaches as far beyond what was seen as that lies apart."""
    run = failing(
        a_run(DRIVES_AND_LOADS, noisy([0, 0, 0.1, 0.1], 24, 0.01, seed)),
        dict(zip(("t1", "t2", "t3", "t4"), attempts, strict=True)),
    )
    figures = MetricFigures(run, usable_blocks(run), "queries_per_second")
    comparisons = every_pair(run.design)
    for comparison, pair in zip(comparisons, compared(figures, comparisons), strict=True):
        ids = [f"t{i}" for i in range(1, 5)]
        counts = dict(zip(ids, attempts, strict=True))
        unequal = [one for one in pair.alternatives if isinstance(one.cause, UnequalFailures)]
        weighted = {comparison.level: 1.0, comparison.baseline: -1.0, **{id_: 0.0 for id_ in ids if id_ not in
                    (comparison.level, comparison.baseline)}}  # fmt: skip
        again = alternatives_of(figures, weighted, pair)
        assert [one.d.tolist() for one in again] == [one.d.tolist() for one in unequal]
        excess = abs(counts[comparison.level] - counts[comparison.baseline])
        for one, sign in zip(unequal, (-1, 1), strict=False):
            extreme = (max(sign * pair.d) + np.ptp(pair.d)) * sign
            assert one.d[len(pair.d) :].tolist() == pytest.approx([extreme] * excess)


@pytest.mark.parametrize(("shift", "word"), [(0.02, Word.FASTER), (-0.06, Word.UNDECIDED), (0.001, Word.EQUIVALENT)])
def test_nothing_is_withheld_where_every_reading_gives_a_word(shift, word):
    """Equivalent as measured; different, in the same direction, by another reading: then it is different."""
    d = 0.015 + np.random.default_rng(4).normal(0, 0.002, 12)
    cause = UnequalFailures("b", 5, "a", 0)
    pair = Paired("a", "b", "t1", "t2", dict(enumerate(d.tolist())), alternatives=(OtherRatios(d + shift, cause),))
    (finding,) = judge([pair], METRICS["queries_per_second"], 0.03)
    assert finding.verdict is word
    assert finding.withheld_for == (cause if word is Word.UNDECIDED else None)
    assert ("as measured" in reason_text(finding.reason)) == (word is Word.UNDECIDED)
