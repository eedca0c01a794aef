"""Percentiles of the events of all blocks together: what holds of every input, and the bench."""

import itertools
import math
from dataclasses import fields

import numpy as np
import pytest

from benches.honesty import percentiles as bench
from dbdyno.analysis.analyse import analyse
from dbdyno.analysis.blocks import usable_blocks
from dbdyno.analysis.looks import Looks
from dbdyno.analysis.percentiles import histograms_in, merged_percentile_evidence, p_of_swaps, swaps
from dbdyno.analysis.verdict.evidence import AlwaysValid, Relation, relations
from dbdyno.analysis.verdict.reasons import EventsTogether
from dbdyno.model.design import ALPHA
from dbdyno.model.metrics import METRICS, percentile_of
from dbdyno.model.word import Word
from dbdyno.store.latencies import Latencies
from tests.unit.analysis.test_analysis_factorial import TWO_BY_TWO
from tests.unit.analysis.test_analysis_factorial import a_run as a_factorial_run

MARGIN = 0.03
STALLED, EVEN = bench.Kind("stalls", 0.35), bench.Kind("even", 0.35, even=True)


def trials(kind, blocks, seed, slower=1.0):
    rng = np.random.default_rng(seed)
    return kind.histograms(rng, np.full(blocks, math.log(slower)))


def compared(level, baseline, percentile=0.99, rule=None, **options):
    rule = rule or Looks.single(len(level))
    return merged_percentile_evidence(level, baseline, percentile, rule, MARGIN, **options)


def word(found):
    one = type(found)(*(getattr(found, field.name)[None] for field in fields(found)))
    return Relation(relations(one, MARGIN)[0])


def merged(histograms, share):
    pooled = {}
    for one in histograms:
        for value, count in zip(one.latency_ns.tolist(), one.count.tolist(), strict=True):
            pooled[value] = pooled.get(value, 0) + count
    values = sorted(pooled)
    sums = list(itertools.accumulate(pooled[value] for value in values))
    return next(value for value, below in zip(values, sums, strict=True) if below >= share * sums[-1] - 1e-9)


@pytest.mark.parametrize("share", [0.5, 0.95, 0.99])
def test_the_estimate_is_the_ratio_of_the_percentiles_of_all_events(share):
    level, baseline = trials(STALLED, 9, 1), trials(EVEN, 9, 2)
    found = compared(level, baseline, share)
    assert found.value == pytest.approx(math.log(merged(level, share) / merged(baseline, share)))
    assert found.low <= found.value <= found.high


def test_turned_around_all_is_turned_around():
    level, baseline = trials(STALLED, 14, 3), trials(STALLED, 14, 4, 1.3)
    one, other = compared(level, baseline), compared(baseline, level)
    assert one.low == pytest.approx(-other.high)
    assert one.high == pytest.approx(-other.low)
    assert one.p == pytest.approx(other.p)
    assert one.p_equivalence == pytest.approx(other.p_equivalence)


def test_the_order_of_blocks_does_not_matter_where_all_swaps_are_made():
    level, baseline = trials(STALLED, 9, 5), trials(STALLED, 9, 6, 1.5)
    one, other = compared(level, baseline), compared(level[::-1], baseline[::-1])
    for field in fields(one):
        assert getattr(one, field.name) == pytest.approx(getattr(other, field.name))


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("slower", [1.0, 1.05, 1.2])
def test_the_interval_excludes_0_just_where_p_says_so(seed, slower):
    level, baseline = trials(bench.QUIET, 10, seed, slower), trials(bench.QUIET, 10, 100 + seed)
    found = compared(level, baseline)
    assert (found.p <= 0.05) == (found.low > 0 or found.high < 0)


def test_a_clear_difference_is_found_and_two_that_are_the_same_are_equivalent():
    quiet = trials(bench.QUIET, 20, 7)
    assert word(compared(trials(bench.QUIET, 20, 8, 1.5), quiet)) == Relation.HIGHER
    assert word(compared(quiet, quiet)) == Relation.EQUIVALENT


def test_stalls_in_some_trials_are_not_faster_than_the_same_in_every_trial():
    """By its usual trial it would be: its 99th percentile has no stall."""
    level, baseline = trials(STALLED, 20, 9), trials(EVEN, 20, 10)
    own = [np.median([merged([one], 0.99) for one in each]) for each in (level, baseline)]
    assert own[0] < 0.5 * own[1]
    assert word(compared(level, baseline)) == Relation.UNDECIDED


def test_figures_of_one_value_have_a_bounded_interval():
    """All events of a bucket: no latency beside it is left, and it may be either of its ends."""
    one = [Latencies(np.array([1e6]), np.array([5000]))] * 8
    other = [Latencies(np.array([1.5e6]), np.array([5000]))] * 8
    found = compared(other, one)
    assert found.low == found.high == found.value == pytest.approx(math.log(1.5))
    assert found.p == pytest.approx(2 / 2**8)
    assert word(compared(one, one)) == Relation.EQUIVALENT


@pytest.mark.parametrize(
    ("blocks", "changed"),
    [
        (1, {}),
        (8, {"latency_ns": np.array([0.0, 1e6])}),
        (8, {"count": np.array([50, 1])}),  # 4 events above the percentile of all
    ],
)
def test_nothing_is_known_of_too_little(blocks, changed):
    given = {"latency_ns": np.array([1e6, 2e6]), "count": np.array([5000, 100]), **changed}
    found = compared([Latencies(**given)] * blocks, [Latencies(**given)] * blocks)
    assert math.isnan(found.value)
    assert (found.low, found.high, found.p, found.p_equivalence) == (-math.inf, math.inf, 1, 1)


def test_several_looks_and_none_planned_widen_the_interval():
    level, baseline = trials(bench.QUIET, 20, 11, 1.1), trials(bench.QUIET, 20, 12)
    once = compared(level, baseline)
    planned = compared(level, baseline, rule=Looks((10, 15, 20), 40))
    open_ended = compared(level, baseline, rule=AlwaysValid())
    for wider in (planned, open_ended):
        assert wider.low < once.low
        assert wider.high > once.high
        assert wider.p > once.p < 1e-6  # less than a group of swaps can show
    assert compared(level, baseline, alpha=0.01).high >= once.high
    pilot = compared(level, baseline, rule=Looks((5,), 40))
    assert (pilot.low, pilot.high, pilot.p) == (-math.inf, math.inf, 1)


def test_coarse_figures_widen_the_interval_and_are_not_equivalent():
    quiet = trials(bench.QUIET, 20, 7)
    exact, coarse = compared(quiet, quiet), compared(quiet, quiet, unit=0.018)
    assert coarse.high == pytest.approx(exact.high + 0.018)
    assert coarse.low == pytest.approx(exact.low - 0.018)
    assert coarse.p_equivalence == 1


@pytest.mark.parametrize("blocks", [2, 6, 12, 13, 20, 40, 200])
def test_swaps_are_a_group_and_each_block_is_swapped_in_half_of_them(blocks):
    made = swaps(blocks)
    assert np.all(made[0] == 1)
    assert np.all(np.abs(made) == 1)
    assert np.all(made[:, 1:].sum(axis=0) == 0)
    every = {row.tobytes() for row in made}
    rng = np.random.default_rng(1)
    assert all((made[i] * made[j]).tobytes() in every for i, j in rng.integers(0, len(made), (50, 2)))
    assert len({made[:, b].tobytes() for b in range(blocks)}) == blocks, "no two blocks are always swapped together"


def test_the_p_of_swaps_is_that_of_all_of_them():
    """Against every swap of six blocks, made by hand."""
    level, baseline = trials(STALLED, 6, 13), trials(STALLED, 6, 14, 1.4)
    values = np.unique(np.concatenate([one.latency_ns for one in (*level, *baseline)]))
    counts = np.array([[dict(zip(one.latency_ns, one.count, strict=True)).get(v, 0) for v in values]
                       for one in (*level, *baseline)])  # fmt: skip
    excess = np.cumsum(counts, axis=1) - 0.99 * counts.sum(axis=1)[:, None]
    logs = np.log(values)

    def apart(which):
        sides = [np.where(np.array(which)[:, None], *pair).sum(axis=0)
                 for pair in ((excess[:6], excess[6:]), (excess[6:], excess[:6]))]  # fmt: skip
        return abs(np.subtract(*(np.interp(0.0, side[i - 1 : i + 1], logs[i - 1 : i + 1])
                                 for side in sides for i in [int(np.argmax(side >= 0))])))  # fmt: skip

    each = [apart(which) for which in itertools.product([True, False], repeat=6)]
    expected = np.mean(np.array(each) >= each[0] - 1e-12)
    assert p_of_swaps(excess[:6], excess[6:], logs) == pytest.approx(expected)


def test_histograms_are_those_of_the_blocks_asked_for_or_none(a_run):
    blocks = usable_blocks(a_run({"t1": [1.0, 2.0, 3.0], "t2": [1.0, 2.0, 3.0]}, metric="latency_ms_p99"))
    ids = [trial.id for row in blocks.trials.values() for trial in row.values()]
    made = {id_: trials(bench.QUIET, 1, seed)[0] for seed, id_ in enumerate(ids)}
    found = histograms_in(blocks, ("t2", "t1"), [1, 3], made)
    assert [[id(one) for one in each] for each in found] == [
        [id(made[f"{id_}-{block}-1"]) for block in (1, 3)] for id_ in ("t2", "t1")
    ]
    del made["t1-3-1"]
    assert histograms_in(blocks, ("t2", "t1"), [1, 3], made) is None
    assert histograms_in(blocks, ("t2", "t1"), [], made) is None


def test_which_metrics_are_percentiles():
    assert {name: percentile_of(name) for name in METRICS if percentile_of(name)} == {
        "latency_ms_p50": 0.5,
        "latency_ms_p95": 0.95,
        "latency_ms_p99": 0.99,
        "latency_ms_p999": 0.999,
    }


def test_every_row_of_the_bench_is_met():
    rows = bench.rows(4, 3)
    assert [row for row in rows if row.met is False] == []
    alone = [row.measured for row in rows if row.group.endswith("each trial alone") and "even, 20" in row.name]
    assert min(alone) > 50  # what it is there for


def test_an_average_of_a_percentile_is_in_doubt_where_one_of_its_pairs_is():
    """The SSD stalls in a third of its trials under one scheduler, and is the HDD's equal under the other."""
    kinds = {"t1": EVEN, "t2": EVEN, "t3": STALLED, "t4": EVEN}
    histograms = {id_: trials(kind, 20, 20 + place) for place, (id_, kind) in enumerate(kinds.items())}
    logs = [[math.log(merged([histograms[id_][block]], 0.99) / 1e6) for id_ in kinds] for block in range(20)]
    run = a_factorial_run(TWO_BY_TWO, logs, metric="latency_ms_p99")
    latencies = {trial.id: histograms[trial.treatment][trial.block - 1] for trial in run.trials}
    found = analyse(run, latencies=latencies, each_pair=True)
    pairs = {finding.ids: finding for finding in (*found.verdicts, *found.every_pair)}
    stalls = next(finding for ids, finding in pairs.items() if set(ids) == {"t1", "t3"})
    equal = next(finding for ids, finding in pairs.items() if set(ids) == {"t2", "t4"})
    assert (stalls.verdict, type(stalls.withheld_for)) == (Word.UNDECIDED, EventsTogether)
    assert equal.doubted_for is None
    (average,) = (effect.verdict for effect in found.factors.main_effects if effect.factor == "device")
    assert (average.verdict, type(average.withheld_for)) == (Word.UNDECIDED, EventsTogether)
    assert average.effect.low < 0 < average.effect.high
    assert average.p_adjusted > ALPHA
