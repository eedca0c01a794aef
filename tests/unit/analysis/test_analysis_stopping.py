"""When measuring stops, how much more it takes, and that few blocks do not get more chances than they may have."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbdyno.analysis.looks import Looks, nominal_level, sequential_p
from dbdyno.analysis.planned_looks import planned_looks
from dbdyno.analysis.statistics import blocks_to_reach, is_feasible
from dbdyno.analysis.stopping import looked, more_blocks, reason_to_stop, settled
from dbdyno.analysis.verdict.evidence import Relation, evidence, relations
from dbdyno.analysis.verdict.finding import Paired, judge
from dbdyno.analysis.verdict.reasons import Dropped
from dbdyno.model.design import Comparison, Design, Treatment
from dbdyno.model.metrics import METRICS

MARGIN, NO_MARGIN = 0.03, 1e-9


def design(until="decided", blocks=40, half_width=None):
    treatments = [Treatment("t1", {"x": "1"}), Treatment("t2", {"x": "2"})]
    return Design(
        treatments, "t1", [Comparison("t1", "t2")], blocks, MARGIN, "queries_per_second", 1, until, half_width
    )


def verdicts(effect, spread, blocks, rule=Looks.single, seed=3):
    d = np.random.default_rng(seed).normal(math.log1p(effect), spread, blocks)
    pair = Paired("1", "2", "t1", "t2", dict(enumerate(d.tolist(), 1)))
    return judge([pair], METRICS["queries_per_second"], MARGIN, rule)


@pytest.mark.parametrize("most", [7, 8, 9, 10, 11, 12, 20])
def test_a_plan_of_few_blocks_is_wrong_no_more_often(most):
    d = np.random.default_rng(most).normal(0, 0.02, (40_000, most))
    wrong = np.zeros(len(d), dtype=bool)
    for k, look in enumerate(planned_looks(most), 1):
        found = evidence(d[:, None, :look], Looks(planned_looks(most)[:k], most), NO_MARGIN)
        wrong |= np.isin(relations(found, NO_MARGIN)[:, 0], (Relation.HIGHER, Relation.LOWER))
    assert 0 < wrong.mean() <= 0.05 + 2.5 * math.sqrt(0.05 * 0.95 / len(d))


def test_the_pilot_look_decides_nothing_unless_the_clock_makes_it_the_last():
    pilot, ended = Looks((6,), 8), Looks((6,), 8, final=True)
    assert (nominal_level(pilot, 0.05), sequential_p(np.array([1e-9]), pilot).tolist()) == (0.0, [1.0])
    assert nominal_level(ended, 0.05) == 0.05


def test_decided_means_that_nothing_is_undecided():
    clear, open_ = verdicts(0.5, 0.01, 10), verdicts(0.03, 0.05, 10)
    assert reason_to_stop(design(), 10, clear) == "decided"
    assert reason_to_stop(design(), 11, clear) == ""  # no look
    assert reason_to_stop(design(), 10, [*clear, *open_]) == ""
    assert reason_to_stop(design(blocks=10), 10, open_) == "blocks"
    assert reason_to_stop(design("open"), 11, clear) == "decided"
    assert reason_to_stop(design("blocks", 10), 9, clear) == ""


def test_precise_means_that_every_interval_is_narrow_enough():
    narrow, wide = design("precise", half_width=0.05), design("precise", half_width=0.001)
    found = verdicts(0.5, 0.01, 10)
    assert reason_to_stop(narrow, 10, found) == "precise"
    assert reason_to_stop(wide, 10, found) == ""
    assert not settled(verdicts(0.5, 0.01, 4)[0], narrow)  # its interval is unknown


def test_a_clear_effect_is_expected_at_the_next_look_and_a_doubtful_one_later():
    assert more_blocks(design(), 6, verdicts(0.5, 0.02, 6, lambda n: Looks((n,), 40))) == 1
    later = more_blocks(design(), 10, verdicts(0.03, 0.05, 10))
    assert later > 5
    assert 10 + later in planned_looks(40)
    assert more_blocks(design("blocks", 12), 5, []) == 7
    assert more_blocks(design(), 5, verdicts(0.5, 0.02, 5)) is None


def test_blocks_for_a_half_width_reach_it_on_the_average():
    rng = np.random.default_rng(5)
    pilot = rng.normal(0, 0.03, (400, 6))
    planned = [blocks_to_reach(d, 0.02) for d in pilot]
    needed = (1.96 * 0.03 / math.log1p(0.02)) ** 2
    assert np.mean([n >= needed for n in planned]) == pytest.approx(0.8, abs=0.06)  # planned from the upper 80 % bound
    assert blocks_to_reach(pilot[0], 0.01) > blocks_to_reach(pilot[0], 0.02)
    assert blocks_to_reach(pilot[0][:1], 0.02) is None


def test_looks_that_the_figures_allow_for():
    assert looked(design(), 15).after == (6, 7, 8, 10, 12, 14, 15)
    assert looked(design(), 17).after == (6, 7, 8, 10, 12, 14, 16, 17)
    assert looked(design("blocks", 10), 10).after == ()
    assert (looked(design("open"), 8).after, looked(design("open"), 8).always) == ((6, 7, 8), True)


@given(st.lists(st.floats(-0.5, 0.5), min_size=10, max_size=40), st.floats(0.001, 0.3))
def test_a_precise_interval_reaches_no_further_to_either_side(d, half_width):
    """An estimate may lie near one end of its interval: half of its length says nothing of the longer side."""
    (found,) = judge([Paired("1", "2", "t1", "t2", dict(enumerate(d, 1)))], METRICS["queries_per_second"], 0.03)
    low, value, high = (1 + end for end in (found.effect.low, found.effect.value, found.effect.high))
    further = max(high / value, value / low)
    if abs(further - 1 - half_width) > 1e-9:
        assert settled(found, design("precise", half_width=half_width)) == (further < 1 + half_width)


def test_no_number_of_blocks_is_told_from_the_spread_that_others_make():
    d = np.random.default_rng(1).normal(0, 0.05, 10)
    quiet = Paired("1", "2", "t1", "t2", dict(enumerate(d.tolist(), 1)))
    told = [
        more_blocks(design(), 10, judge([one], METRICS["queries_per_second"], MARGIN))
        for one in (quiet, replace(quiet, disturbed=4), replace(quiet, disturbed=5))
    ]
    assert told[0] == told[1] is not None
    assert told[2] is None


def test_a_comparison_that_only_lacks_blocks_is_not_given_up():
    """Figures may lack in the first blocks; a run does not stop at the pilot look because of that."""
    few, none, lost = (
        Paired("1", "2", "t1", f"t{i}", ratios, obstacle)
        for i, (ratios, obstacle) in enumerate([({3: 0.1}, None), ({}, None), ({3: 0.1}, Dropped("t2"))])
    )
    found = judge([few, none, lost], METRICS["queries_per_second"], MARGIN)
    assert [one.verdict for one in found] == ["not comparable"] * 3
    assert [settled(one, design()) for one in found] == [False, True, True]
    assert reason_to_stop(design(), 6, found) == ""
    assert more_blocks(design(), 6, found) is None
    assert reason_to_stop(design(), 6, found[1:]) == "decided"


@pytest.mark.parametrize(
    ("until", "blocks", "feasible", "not_feasible"),
    [("blocks", 6, 100, 101), ("decided", 30, 120, 121), ("blocks", 100, 200, 201), ("open", 1000, 200, 201)],
)
def test_more_blocks_are_feasible_up_to_some_times_those_planned(until, blocks, feasible, not_feasible):
    design = Design([], "", [], blocks, 0.03, "queries_per_second", 1, until=until)
    assert is_feasible(feasible, design)
    assert not is_feasible(not_feasible, design)
    assert not is_feasible(874, design)
