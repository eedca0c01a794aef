"""Ranking stacks over several tests: one score for each, with its interval, and letters for who is tied.

A *test* is a load, a *stack* what it runs on. In one run the tests are the combinations of the factors of section
``workload`` and the stacks those of all other factors; several runs bring their tests together, stacks being matched by
label. The score of a stack is the geometric mean, over the tests, of the ratio of its metric to the baseline stack's.

In each block the mean over the tests of ln(ratio) is one value, so estimate, exact interval and p come from the same
signed-rank machinery as a verdict's. Runs are independent of each other, so which block of one goes with which of
another is arbitrary: the b-th usable ones go together, and the shortest run decides how many there are.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from dbdyno.analysis.blocks import UsableBlocks, usable_blocks
from dbdyno.analysis.ranking.letters import MIN_SHARED_BLOCKS, Ties, ties
from dbdyno.analysis.refused import RefusedError
from dbdyno.analysis.statistics.effect import log_ratios
from dbdyno.analysis.statistics.estimate import Estimate
from dbdyno.analysis.stopping import Allowance
from dbdyno.analysis.verdict.evidence import Rule, relative_effect
from dbdyno.model.design import Design
from dbdyno.model.metrics import METRICS, Metric, metric_of
from dbdyno.model.treatment import Treatment
from dbdyno.store.records import Run

WORKLOAD = "workload"  # the section of the study whose factors make tests
MIN_STACKS = 2

ByPlace = dict[int, float]  # place among the usable blocks of its run -> a positive figure


@dataclass(frozen=True)
class _Test:
    """One load and what each stack did with it."""

    name: str
    baseline: str  # the stack that the run compares with
    stacks: dict[str, ByPlace]


@dataclass(frozen=True)
class Score:
    """What a stack came to. Scores are ratios to the baseline stack: 1.2 is a fifth more of the metric."""

    place: int  # from 1, the best first; whether two places differ the letters say
    stack: str
    is_baseline: bool
    score: Estimate
    letters: str
    by_test: dict[str, Estimate]  # ratios too


@dataclass(frozen=True)
class Ranking:
    """Stacks in order, the best first."""

    metric: Metric
    baseline: str
    tests: tuple[str, ...]
    scores: tuple[Score, ...]
    ties: Ties
    blocks: int
    left_out: tuple[str, ...]  # stacks that some test has no figure of


def ranking_of_run(run: Run, blocks: UsableBlocks, rule: Callable[[int], Rule]) -> Ranking | None:
    """Return the ranking that a run's own report shows: where loads and stacks both vary, else nothing."""
    tests = _tests(run, blocks, "")
    if len(tests) < 2 or len(_complete(tests)) < MIN_STACKS:  # noqa: PLR2004 - several
        return None
    return _ranking(tests, metric_of(run.design), rule, None)


def rank_runs(named: Sequence[tuple[str, Run]], baseline: str | None = None) -> Ranking:
    """Return the ranking over one or more runs, each with a name of its own; the tests have equal weight.

    The baseline is the stack named, else that of the first run, else the first stack that all tests have.

    Raises:
        RefusedError: the runs are about different metrics, or have fewer than two stacks in common.

    """
    metrics = {run.design.metric: name for name, run in named}
    if len(metrics) > 1:
        raise RefusedError("metrics of runs", metrics=metrics)
    tests = [test for name, run in named for test in _tests(run, usable_blocks(run), name if len(named) > 1 else "")]
    common = _complete(tests)
    if len(common) < MIN_STACKS:
        raise RefusedError("too few stacks", common=common, stacks={name: _stacks(run) for name, run in named})
    if baseline is not None and baseline not in common:
        raise RefusedError("no such baseline", baseline=baseline, known=common)
    return _ranking(tests, METRICS[next(iter(metrics))], _common_rule([run for _, run in named]), baseline)


def _stacks(run: Run) -> list[str]:
    return list(dict.fromkeys(_split(run.design, treatment)[0] for treatment in run.design.treatments))


def _split(design: Design, treatment: Treatment) -> tuple[str, str]:
    """Return the labels of the stack and of the load that a treatment is made of; empty where nothing of it varies."""
    of_load = {factor.name for factor in design.factors if factor.section == WORKLOAD}
    stack = {name: level for name, level in treatment.levels.items() if name not in of_load}
    load = {name: level for name, level in treatment.levels.items() if name in of_load}
    return Treatment("", stack).label, Treatment("", load).label if load else ""


def _tests(run: Run, blocks: UsableBlocks, name: str) -> list[_Test]:
    design = run.design
    labels = {treatment.id: _split(design, treatment) for treatment in design.treatments}
    places = {block: place for place, block in enumerate(blocks.trials)}
    found: dict[str, _Test] = {}
    for id_, (stack, load) in labels.items():
        test_name = " / ".join(part for part in (name, load) if part) or design.metric
        test = found.setdefault(load, _Test(test_name, labels[design.baseline][0], {}))
        if id_ not in blocks.dropped:
            values = blocks.values(id_, design.metric).items()
            positive = {places[block]: value for block, value in values if math.isfinite(value) and value > 0}
            test.stacks[stack] = positive
    return list(found.values())


def _complete(tests: Sequence[_Test]) -> list[str]:
    """Return the stacks of which every test has figures in the same blocks, at least two."""
    first = tests[0].stacks if tests else {}
    return [stack for stack in first if len(_shared(tests, stack)) >= MIN_SHARED_BLOCKS]


def _shared(tests: Sequence[_Test], stack: str) -> list[int]:
    places = [test.stacks.get(stack, {}).keys() for test in tests]
    return sorted(set(places[0]).intersection(*places[1:]))


def _common_rule(runs: Sequence[Run]) -> Callable[[int], Rule]:
    """Return the strictest rule of the runs: open-ended, else the longest plan with looks, else a single look.

    The last look may spend what is left only where the clock ended all runs with looks: one that stopped when its
    answer was clear may be the shortest, which decides how many blocks count.
    """
    with_looks = [run for run in runs if run.design.until != "blocks"]
    if not with_looks:
        return Allowance(runs[0].design).rule
    strictest = max((run.design for run in with_looks), key=lambda design: (design.until == "open", design.blocks))
    return Allowance(strictest, ended_by_clock=all(run.stopped == "budget" for run in with_looks)).rule


def _ranking(tests: Sequence[_Test], about: Metric, rule: Callable[[int], Rule], baseline: str | None) -> Ranking:
    stacks = _complete(tests)
    reference = baseline or (tests[0].baseline if tests[0].baseline in stacks else stacks[0])
    means = {stack: _geometric_means(tests, stack) for stack in stacks}
    tied = ties(means, rule, more_is_better=about.more_is_better)
    scores = {stack: _ratio(means[stack], means[reference], rule) for stack in stacks}
    worth = {stack: score.value if about.more_is_better else -score.value for stack, score in scores.items()}
    order = sorted(stacks, key=lambda stack: -worth[stack])
    return Ranking(
        metric=about,
        baseline=reference,
        tests=tuple(test.name for test in tests),
        scores=tuple(
            Score(
                place=place,
                stack=stack,
                is_baseline=stack == reference,
                score=scores[stack],
                letters=tied.letters[stack],
                by_test={test.name: _ratio(test.stacks[stack], test.stacks[reference], rule) for test in tests},
            )
            for place, stack in enumerate(order, 1)
        ),
        ties=tied,
        blocks=min(len(means[stack]) for stack in stacks),
        left_out=tuple(sorted({stack for test in tests for stack in test.stacks} - set(stacks))),
    )


def _geometric_means(tests: Sequence[_Test], stack: str) -> ByPlace:
    return {
        place: math.exp(math.fsum(math.log(test.stacks[stack][place]) for test in tests) / len(tests))
        for place in _shared(tests, stack)
    }


def _ratio(values: ByPlace, reference: ByPlace, rule: Callable[[int], Rule]) -> Estimate:
    """Return the ratio of two, Hodges-Lehmann over the blocks; that of the baseline to itself is 1."""
    if values is reference:
        return Estimate(1.0, 1.0, 1.0, len(values))
    d = np.array(list(log_ratios(values, reference).values()))
    found = relative_effect(d, rule(len(d))) if len(d) else Estimate.unknown()
    return Estimate(1 + found.value, 1 + found.low, 1 + found.high, found.n)
