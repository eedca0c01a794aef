"""Steps along an ordered factor: found where they are, nowhere else, and bounded over the whole suite."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benches.honesty.noise import NOISES
from benches.honesty.suites import rates
from dbdyno.analysis.change_points import changes_along
from dbdyno.model.word import Word

MARGIN = 0.03


def a_suite(seed, loads=3, blocks=10, levels=5, sd=0.01):
    return [np.random.default_rng((seed, load)).normal(0, sd, (blocks, levels)) for load in range(loads)]


def test_a_step_is_placed_sized_and_named_and_the_others_are_left_alone():
    loads = a_suite(1)
    loads[1][:, 3:] += math.log(0.9)
    found = changes_along(loads, MARGIN)
    (step,) = found.loads[1].steps
    assert (step.first, step.at, step.last) == (2, 2, 3)
    assert step.word is Word.SLOWER
    assert step.effect.low < -0.1 < step.effect.high
    assert step.p <= 0.05
    assert found.loads[0].steps == found.loads[2].steps == []
    assert found.loads[1].words[:3] == [Word.EQUIVALENT] * 3
    assert found.loads[1].words[3:] == [Word.SLOWER] * 2
    assert found.loads[0].levels[0].ends == (0.0, 0.0)


def test_two_steps_of_one_load_and_one_within_the_margin():
    loads = a_suite(2, sd=0.004)
    loads[0][:, 1:] += 0.2
    loads[0][:, 4:] -= 0.1
    loads[2][:, 2:] += 0.015
    found = changes_along(loads, MARGIN, more_is_better=False)
    assert [(step.at, step.word) for step in found.loads[0].steps] == [(0, Word.SLOWER), (3, Word.FASTER)]
    assert [(step.at, step.word) for step in found.loads[2].steps] == [(1, Word.EQUIVALENT)]


def test_how_many_permutations_are_held_at_a_time_changes_nothing(monkeypatch):
    loads = a_suite(3)
    at_once = changes_along(loads, MARGIN)
    monkeypatch.setattr("dbdyno.analysis.change_points._CHUNK", 7000)
    in_parts = changes_along(loads, MARGIN)
    assert in_parts.critical == at_once.critical
    assert in_parts == at_once


@given(st.integers(0, 9), st.floats(-3, 3), st.integers(0, 9))
@settings(max_examples=10, deadline=None)
def test_what_the_host_was_worth_in_a_block_and_the_unit_change_nothing(seed, shift, block):
    loads = a_suite(seed, loads=2, blocks=8, levels=3)
    loads[0][:, 2] += 0.1
    moved = [load.copy() for load in loads]
    moved[0] += shift
    moved[1][block % 8] += shift
    one, other = (changes_along(each, MARGIN) for each in (loads, moved))
    assert [(step.first, step.at, step.last) for load in one.loads for step in load.steps] == [
        (step.first, step.at, step.last) for load in other.loads for step in load.steps
    ]
    assert one.critical == pytest.approx(other.critical, rel=1e-6)
    for before, after in zip(one.loads, other.loads, strict=True):
        assert [level.value for level in before.levels] == pytest.approx(
            [level.value for level in after.levels], abs=1e-9
        )


def test_turned_round_it_says_the_opposite():
    loads = a_suite(5)
    loads[0][:, 2:] += 0.08
    (step,) = changes_along(loads, MARGIN).loads[0].steps
    (back,) = changes_along([-load for load in loads], MARGIN).loads[0].steps
    assert (back.first, back.at, back.last, back.word) == (step.first, step.at, step.last, Word.SLOWER)
    assert (1 + back.effect.value) * (1 + step.effect.value) == pytest.approx(1)


def test_blocks_that_a_load_lacks_and_loads_of_too_few():
    loads = a_suite(3)
    loads[0][:, 2:] += 0.1
    loads[0][4] = math.nan
    loads[1][:6, 0] = math.nan
    found = changes_along(loads, MARGIN)
    assert [step.at for step in found.loads[0].steps] == [1]
    assert found.loads[0].blocks == 9
    assert found.loads[1].words == [Word.NOT_COMPARABLE] * 5
    assert not found.loads[1].levels[1].known
    assert changes_along([], MARGIN).loads == []


@pytest.mark.parametrize(
    ("loads", "why"),
    [
        ([np.zeros((6, 2)), np.zeros((6, 3))], "have the shapes"),
        ([np.zeros(6)], "have the shapes"),
        ([np.zeros((6, 1))], "there are 1 levels"),
        ([np.zeros((6, 65))], "there are 65 levels"),
    ],
)
def test_wrong_shapes_are_refused(loads, why):
    with pytest.raises(ValueError, match=why):
        changes_along(loads, MARGIN)


def test_figures_without_any_noise_are_their_own_answer():
    same = changes_along([np.zeros((6, 3))], MARGIN).loads[0]
    assert same.steps == []
    assert [level.value for level in same.levels] == [0.0] * 3


@pytest.mark.parametrize("noise", ["iid", "reference", "heavy tails"])
def test_few_suites_name_a_change_that_is_none(noise):
    """40 suites; 7 or more of 40 have p < .003 where the true share is 5 %. ``benches/honesty/suites.py`` has more."""
    found = rates(NOISES[noise], replicates=40, loads=6, levels=3, blocks=8, step=0.3)
    assert found["wrong"] * 40 < 7
    assert found["found"] > 0.8
