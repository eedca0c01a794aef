"""Tie letters: shared exactly where no difference was shown, none too many, and the same under other names."""

from dataclasses import replace
from itertools import combinations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dbdyno.analysis.analyse import analyse
from dbdyno.analysis.ranking import compact_letters, ties
from dbdyno.analysis.statistics import log_ratios
from dbdyno.analysis.verdict.finding import Paired, judge
from dbdyno.model.metrics import METRICS


@st.composite
def relations(draw, most=9):
    k = draw(st.integers(0, most))
    flat = draw(st.lists(st.booleans(), min_size=k * (k - 1) // 2, max_size=k * (k - 1) // 2))
    different = np.zeros((k, k), dtype=bool)
    different[np.triu_indices(k, 1)] = flat
    return different | different.T


def split(letters):
    """Return the letters of each as a set; beyond z they carry a number: "a1"."""
    found = []
    for text in letters:
        marks = []
        for char in text:
            if char.isdigit():
                marks[-1] += char
            else:
                marks.append(char)
        found.append(set(marks))
    return found


def shared(sets):
    return {(i, j) for i, j in combinations(range(len(sets)), 2) if sets[i] & sets[j]}


@given(relations())
def test_two_share_a_letter_exactly_where_they_do_not_differ(different):
    sets = split(compact_letters(different))
    k = len(different)
    assert shared(sets) == {(i, j) for i, j in combinations(range(k), 2) if not different[i, j]}
    assert all(sets)


@given(relations())
def test_no_letter_can_be_taken_away(different):
    sets = split(compact_letters(different))
    for i, mine in enumerate(sets):
        for letter in mine:
            without = [each - {letter} if j == i else each for j, each in enumerate(sets)]
            assert shared(without) != shared(sets) or not without[i]


def test_classics():
    same = np.zeros((4, 4), dtype=bool)
    assert compact_letters(same) == ["a"] * 4
    assert compact_letters(~np.eye(4, dtype=bool)) == ["a", "b", "c", "d"]
    ends = same.copy()
    ends[0, 3] = ends[3, 0] = True
    assert compact_letters(ends) == ["a", "ab", "ab", "b"]
    assert len(set(compact_letters(~np.eye(60, dtype=bool)))) == 60


@st.composite
def figures(draw):
    k, blocks, seed = draw(st.integers(2, 6)), draw(st.integers(10, 14)), draw(st.integers(0, 2**32 - 1))
    rng = np.random.default_rng(seed)
    level = rng.choice([0.0, 0.02, 0.05, 0.1], k)
    values = np.exp(3 + level + rng.normal(0, 0.02, (blocks, k)))
    return {f"t{i}": dict(enumerate(values[:, i].tolist())) for i in range(k)}


def lettered(values, *, more_is_better=True):
    """The letters of what was measured, as any run's findings give them."""
    pairs = [Paired(a, b, a, b, log_ratios(values[b], values[a])) for a, b in combinations(values, 2)]
    findings = judge(pairs, METRICS["queries_per_second" if more_is_better else "latency_ms_p99"], 0.03)
    return ties(findings, list(values), more_is_better=more_is_better).letters, findings


@given(figures(), st.randoms())
def test_letters_are_the_same_under_other_names_and_in_another_order(values, random):
    named = {name: f"other {name}" for name in values}
    order = list(values)
    random.shuffle(order)
    told, _ = lettered({named[name]: values[name] for name in order})
    assert {name: told[named[name]] for name in values} == lettered(values)[0]


@given(figures())
def test_letters_follow_the_findings(values):
    letters, findings = lettered(values)
    for one in findings:
        assert bool(set(letters[one.level_id]) & set(letters[one.baseline_id])) == (not one.verdict.is_different)


def test_the_best_has_the_first_letter_whatever_better_means():
    values = {"slow": dict.fromkeys(range(8), 100.0), "fast": {block: 120.0 + block for block in range(8)}}
    assert lettered(values)[0] == {"slow": "b", "fast": "a"}
    assert lettered(values, more_is_better=False)[0] == {"slow": "a", "fast": "b"}


def test_so_few_blocks_that_nothing_could_differ_give_no_letters(a_run):
    few = analyse(a_run({f"t{i}": [100.0 * i + block for block in range(5)] for i in range(1, 5)})).ties
    assert (set(few.letters.values()), few.pairs, few.too_few_blocks) == ({""}, 6, 5)
    enough = analyse(a_run({f"t{i}": [100.0 * i + block for block in range(6)] for i in range(1, 5)})).ties
    assert sorted(enough.letters.values()) == ["a", "b", "c", "d"]


def test_a_dropped_treatment_and_one_without_figures_have_no_letters(a_run):
    scores = {"t1": [100.0 + i for i in range(8)], "t2": [110.0] * 8, "t3": [0.0] * 8}
    assert analyse(a_run(scores)).ties.letters == {"t1": "b", "t2": "a", "t3": ""}
    told = analyse(a_run({**scores, "t3": []}, failures=[("t3", 1, 1), ("t3", 1, 2)])).ties
    assert told.letters == {"t1": "b", "t2": "a"}


def test_a_large_effect_has_letters_at_the_first_look(a_run):
    run = a_run({"t1": [100.0 + block for block in range(6)], "t2": [120.0] * 6})
    assert analyse(run).ties.letters == {"t1": "b", "t2": "a"}
    looked_at = replace(run, design=replace(run.design, until="decided", blocks=40))
    found = analyse(looked_at).ties
    assert (found.letters["t1"], found.too_few_blocks) == ("b", 0)
