"""Ranking stacks over several tests: one score for each, with its interval, and letters for who is tied.

A *test* is a load, a *stack* what it runs on. In one run the tests are the combinations of the factors of section
``workload`` and the stacks those of all other factors; several runs bring their tests together, stacks being matched by
label. The score of a stack is the geometric mean, over the tests, of the ratio of its metric to the baseline stack's.

In each block the mean over the tests of ln(ratio) is one value, so every two stacks have a finding as any comparison
has, and scores, places and letters are read from these. Runs are independent of each other, so which block of one goes
with which of another is arbitrary: the b-th usable ones go together, and the shortest run decides how many there are.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from string import ascii_lowercase

import numpy as np

from dbdyno.analysis.blocks import RefusedError, UsableBlocks, usable_blocks
from dbdyno.analysis.lateness import EmulatedCpu, LateDisk
from dbdyno.analysis.statistics import Bools, Estimate
from dbdyno.analysis.stopping import Allowance
from dbdyno.analysis.verdict.evidence import Rule
from dbdyno.analysis.verdict.figures import MetricFigures
from dbdyno.analysis.verdict.finding import (
    MIN_USABLE_BLOCKS,
    Finding,
    OtherRatios,
    Paired,
    adopt_common_word,
    doubt_as_parts,
    either_way,
    judge,
)
from dbdyno.analysis.verdict.pairs import alternatives_of, compared, in_name_only, obstacle, pairs_not_planned
from dbdyno.analysis.verdict.reasons import CarryOver, Cause, Reason, UnequalFailures
from dbdyno.model.design import ALPHA, Comparison, Design, Treatment
from dbdyno.model.metrics import METRICS, Metric, metric_of
from dbdyno.store.records import Run

# Tie letters: treatments that share a letter are those between which no finding claims a difference.
#
# The compact letter display by insert, absorb and sweep. Source: Piepho, "An algorithm for a letter-based
# representation of all-pairwise comparisons", Journal of Computational and Graphical Statistics 13, 2004.


Columns = list[frozenset[int]]  # per letter, who carries it


@dataclass(frozen=True)
class Ties:
    """Who is tied with whom."""

    letters: dict[str, str]  # name -> letters; empty where nothing can be said of it
    pairs: int  # that were looked at, over which Holm's correction goes
    too_few_blocks: int = 0  # so many blocks can show no difference over so many pairs: then none has letters


def ties(findings: Sequence[Finding], names: Sequence[str], *, more_is_better: bool) -> Ties:
    """Return the letters of each name, "a" going to the best; none for one that nothing can be said of.

    ``findings`` are those of every two names, by their ids. Two names differ where their finding claims a difference.
    Letters follow the findings alone, so that other names give the same letters.
    """
    none = dict.fromkeys(names, "")
    judged = [finding for finding in findings if isinstance(finding.reason, Reason)]
    usable = [name for name in names if any(name in finding.ids for finding in judged)]
    if not judged:
        return Ties(none, 0)
    reasons = [finding.reason for finding in judged if isinstance(finding.reason, Reason)]
    if all(reason.p_best > ALPHA for reason in reasons):
        return Ties(none, len(judged), max(finding.blocks for finding in judged))
    place = {name: at for at, name in enumerate(usable)}
    different = np.zeros((len(usable), len(usable)), dtype=bool)
    ahead = np.zeros(different.shape)
    for finding in judged:
        i, j = place[finding.level_id], place[finding.baseline_id]
        different[i, j] = different[j, i] = finding.verdict.is_different
        ahead[i, j] = math.log1p(finding.effect.value) * (1 if more_is_better else -1)
        ahead[j, i] = -ahead[i, j]
    order = np.argsort(-ahead.sum(axis=1), kind="stable")
    letters = compact_letters(different[np.ix_(order, order)])
    return Ties(
        none | {usable[i]: letters_of_name for i, letters_of_name in zip(order.tolist(), letters, strict=True)},
        len(judged),
    )


def compact_letters(different: Bools) -> list[str]:
    """Return the letters of each, given which differ, shape (k, k), symmetric; "a" goes to the first.

    Two share a letter exactly where they do not differ, and no letter can be taken away without breaking that.
    """
    columns = _sweep_letters(_insert_and_absorb(different))
    columns.sort(key=sorted)
    return [
        "".join(_letter(number) for number, column in enumerate(columns) if i in column) for i in range(len(different))
    ]


def _letter(number: int) -> str:
    turn, place = divmod(number, len(ascii_lowercase))
    return f"{ascii_lowercase[place]}{turn or ''}"


def _insert_and_absorb(different: Bools) -> Columns:
    """Insert and absorb: begin with one letter for all; each difference splits the letters that both carry."""
    everyone = frozenset(range(len(different)))
    columns = [everyone] if everyone else []
    for i, j in combinations(range(len(different)), 2):
        if different[i, j]:
            shared = [column for column in columns if i in column and j in column]
            columns = [column for column in columns if not (i in column and j in column)]
            for half in (column - {index} for column in shared for index in (i, j)):
                if not any(half <= column for column in columns):
                    columns = [column for column in columns if not column <= half] + [half]
    return columns


def _sweep_letters(columns: Columns) -> Columns:
    """Take letters away that say nothing new: from whoever shares another letter with all who carry this one."""
    swept = sorted(columns, key=sorted)
    for place in reversed(range(len(swept))):
        for index in sorted(swept[place], reverse=True):
            others = [column for k, column in enumerate(swept) if k != place and index in column]
            if others and swept[place] - {index} <= frozenset().union(*others):
                swept[place] -= {index}
    return [column for column in swept if column]


MIN_STACKS = 2


@dataclass(frozen=True)
class _Test:
    """One load and what each stack did with it."""

    name: str
    baseline: str  # the stack that the run compares with
    figures: MetricFigures  # of its run
    ids: dict[str, str]  # stack -> treatment id

    def places(self, stack: str) -> dict[int, int]:
        """Return place among the usable blocks of the run -> block, of those in which the stack has a figure."""
        logs = self.figures.logs[self.ids[stack]] if stack in self.ids else {}
        return {place: block for place, block in enumerate(self.figures.blocks.trials) if block in logs}


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
    left_out: tuple[str, ...]  # stacks that can't be compared in some test


def ranking_of_run(
    run: Run, blocks: UsableBlocks, rule: Callable[[int], Rule], findings: Sequence[Finding]
) -> Ranking | None:
    """Return the ranking that a run's own report shows: where loads and stacks both vary, else nothing.

    ``findings`` are those of every two treatments: what they say of two stacks in every test holds for the mean.
    """
    figures = MetricFigures(run, blocks, run.design.metric)
    tests = _tests(figures, "")
    if len(tests) < 2 or len(_complete(tests)) < MIN_STACKS:  # noqa: PLR2004 - several
        return None
    return _ranking(tests, metric_of(run.design), rule, None, {id(figures): findings})


def rank_runs(named: Sequence[tuple[str, Run]], baseline: str | None = None) -> Ranking:
    """Return the ranking over one or more runs, each with a name of its own; the tests have equal weight.

    The baseline is the stack named, else that of the first run, else the first stack that all tests have.

    Raises:
        RefusedError: the runs are about different metrics, or have fewer than two stacks in common.

    """
    metrics = {run.design.metric: name for name, run in named}
    if len(metrics) > 1:
        raise RefusedError("metrics of runs", metrics=metrics)
    named_figures = [(name, MetricFigures(run, usable_blocks(run), run.design.metric)) for name, run in named]
    tests = [test for name, figures in named_figures for test in _tests(figures, name if len(named) > 1 else "")]
    common = _complete(tests)
    if len(common) < MIN_STACKS:
        raise RefusedError("too few stacks", common=common, stacks={name: _stacks(run) for name, run in named})
    if baseline is not None and baseline not in common:
        raise RefusedError("no such baseline", baseline=baseline, known=common)
    about, runs = METRICS[next(iter(metrics))], [run for _, run in named]
    of_treatments = {id(figures): _findings_of_run(figures, about) for _, figures in named_figures}
    return _ranking(tests, about, _common_rule(runs), baseline, of_treatments)


def _findings_of_run(figures: MetricFigures, about: Metric) -> list[Finding]:
    """Return what is found of every two treatments of a run, as its report has it."""
    run = figures.run
    rule = Allowance(run.design, ended_by_clock=run.stopped == "budget").rule
    families = run.design.comparisons, pairs_not_planned(run.design)
    return [
        finding for family in families for finding in judge(compared(figures, family), about, run.design.margin, rule)
    ]


def _stacks(run: Run) -> list[str]:
    return list(dict.fromkeys(_split(run.design, treatment)[0] for treatment in run.design.treatments))


def _split(design: Design, treatment: Treatment) -> tuple[str, str]:
    """Return the labels of the stack and of the load that a treatment is made of; empty where nothing of it varies."""
    of_load = {factor.name for factor in design.factors if factor.is_load}
    stack = {name: level for name, level in treatment.levels.items() if name not in of_load}
    load = {name: level for name, level in treatment.levels.items() if name in of_load}
    return Treatment("", stack).label, Treatment("", load).label if load else ""


def _tests(figures: MetricFigures, name: str) -> list[_Test]:
    design = figures.run.design
    labels = {treatment.id: _split(design, treatment) for treatment in design.treatments}
    tests: dict[str, _Test] = {}
    for id_, (stack, load) in labels.items():
        test_name = " / ".join(part for part in (name, load) if part) or design.metric
        test = tests.setdefault(load, _Test(test_name, labels[design.baseline][0], figures, {}))
        test.ids[stack] = id_
    return list(tests.values())


def _complete(tests: Sequence[_Test]) -> list[str]:
    """Return the stacks that can be compared in every test, by figures in the same blocks, at least two."""
    first = tests[0].ids if tests else {}
    return [
        stack
        for stack in first
        if len(_shared_places(tests, stack)) >= MIN_USABLE_BLOCKS and all(_is_comparable(test, stack) for test in tests)
    ]


def _is_comparable(test: _Test, stack: str) -> bool:
    """Return whether nothing stands in the way of a stack, nor is it the baseline's of its run in fact."""
    design, blocks, id_ = test.figures.run.design, test.figures.blocks, test.ids[stack]
    if obstacle(id_, stack, blocks, test.figures.metric):
        return False
    baseline = test.ids.get(test.baseline, id_)
    return baseline == id_ or in_name_only(design, blocks, Comparison(baseline, id_)) is None


def _shared_places(tests: Sequence[_Test], stack: str) -> list[int]:
    places = [test.places(stack).keys() for test in tests]
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


def _ranking(
    tests: Sequence[_Test],
    about: Metric,
    rule: Callable[[int], Rule],
    baseline: str | None,
    of_treatments: Mapping[int, Sequence[Finding]],
) -> Ranking:
    """Return the stacks in order; ``of_treatments`` are the findings of every two treatments, by the figures' id.

    What is in doubt in every test is in doubt on average. What is found in every test holds on average, too, but only
    for tests of one run: the error of several runs adds up.
    """
    stacks = _complete(tests)
    reference = baseline or (tests[0].baseline if tests[0].baseline in stacks else stacks[0])
    ordered = [reference, *(stack for stack in stacks if stack != reference)]
    overall = _findings(tests, list(combinations(ordered, 2)), about, rule)
    by_ids_of = {run_id: either_way(found) for run_id, found in of_treatments.items()}
    by_ids = next(iter(by_ids_of.values())) if len(by_ids_of) == 1 else {}
    findings = [
        _as_in_tests(
            finding,
            [by_ids_of[id(test.figures)].get((test.ids[finding.level], test.ids[finding.baseline])) for test in tests],
            is_one_family=bool(by_ids),
        )
        for finding in overall
    ]
    tied = ties(findings, stacks, more_is_better=about.more_is_better)
    scores = _scores(findings, reference, len(_shared_places(tests, reference)))
    pairs = [(reference, stack) for stack in ordered[1:]]
    by_test = {
        test.name: _scores(
            _findings_of_pairs(test, pairs, by_ids) or _findings([test], pairs, about, rule),
            reference,
            len(_shared_places([test], reference)),
        )
        for test in tests
    }
    worth = {stack: score.value if about.more_is_better else -score.value for stack, score in scores.items()}
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
                by_test={test.name: by_test[test.name][stack] for test in tests},
            )
            for place, stack in enumerate(sorted(stacks, key=lambda stack: -worth[stack]), 1)
        ),
        ties=tied,
        blocks=min(len(_shared_places(tests, stack)) for stack in stacks),
        left_out=tuple(sorted({stack for test in tests for stack in test.ids} - set(stacks))),
    )


def _as_in_tests(finding: Finding, found: Sequence[Finding | None], *, is_one_family: bool) -> Finding:
    """Return the finding on two stacks with what is ``found`` of them in every test; as it is where any has nothing."""
    parts = [part for part in found if part]
    if len(parts) < len(found):
        return finding
    doubted = doubt_as_parts(finding, [(1 / len(parts), part) for part in parts])
    return adopt_common_word(doubted, parts) if is_one_family else doubted


def _findings_of_pairs(
    test: _Test, pairs: Sequence[tuple[str, str]], of_treatments: Mapping[tuple[str, str], Finding]
) -> list[Finding]:
    """Return what was found of each pair (baseline, level) of stacks in one test; nothing unless all are known."""
    findings = [of_treatments.get((test.ids[level], test.ids[baseline])) for baseline, level in pairs]
    known = [finding for finding in findings if finding and finding.effect.known]
    return [
        replace(finding, baseline_id=baseline, level_id=level)
        for finding, (baseline, level) in zip(known, pairs, strict=False)
        if len(known) == len(pairs)
    ]


def _findings(
    tests: Sequence[_Test], pairs: Sequence[tuple[str, str]], about: Metric, rule: Callable[[int], Rule]
) -> list[Finding]:
    """Return a finding for each pair (baseline, level) of stacks, of the mean over the tests; they are one family."""
    runs: dict[int, list[_Test]] = {}
    for test in tests:
        runs.setdefault(id(test.figures), []).append(test)
    of_runs = [_contrast_parts(of_run, pairs, 1 / len(tests)) for of_run in runs.values()]
    paired = [_pair_of_stacks(pair, [of_run[at] for of_run in of_runs]) for at, pair in enumerate(pairs)]
    return judge(paired, about, tests[0].figures.run.design.margin, rule)


@dataclass(frozen=True)
class _Part:
    """What one run adds to the comparison of two stacks, by place among its usable blocks."""

    measured: dict[int, float]
    without_carry_over: dict[int, float] | None
    carry_over: CarryOver | None
    alternatives: tuple[
        tuple[Cause, dict[int, float], list[float]], ...
    ]  # the lowest, then the highest, for each cause;
    # by place, and of blocks that may be missing


def _contrast_parts(tests: Sequence[_Test], pairs: Sequence[tuple[str, str]], weight: float) -> list[_Part]:
    figures = tests[0].figures
    place = {block: at for at, block in enumerate(figures.blocks.trials)}
    contrasts = [
        {test.ids[level]: weight for test in tests} | {test.ids[baseline]: -weight for test in tests}
        for baseline, level in pairs
    ]
    parts = []
    for contrast, pair, contrasted in zip(contrasts, pairs, figures.contrasted(contrasts), strict=True):
        at = [place[block] for block in contrasted.by_block]
        without = contrasted.without_carry_over
        paired = Paired(
            *pair,
            *pair,
            log_ratios=dict(contrasted.by_block),
            carry_over=contrasted.carry_over,
            without_carry_over=without,
        )
        parts.append(
            _Part(
                dict(zip(at, contrasted.by_block.values(), strict=True)),
                None if without is None else dict(zip(at, without.tolist(), strict=True)),
                contrasted.carry_over,
                tuple(
                    (other.cause, dict(zip(at, other.d.tolist(), strict=False)), other.d[len(at) :].tolist())
                    for other in alternatives_of(figures, contrast, paired)
                    if isinstance(other, OtherRatios)
                ),
            )
        )
    return parts


def _pair_of_stacks(pair: tuple[str, str], parts: Sequence[_Part]) -> Paired:
    """Return two stacks compared by what all runs add up to; carry-over is out of it where any run shows it clearly."""
    places = sorted(set(parts[0].measured).intersection(*(part.measured for part in parts[1:])))
    without = [part.without_carry_over or part.measured for part in parts]
    carry_overs = [part.carry_over for part in parts if part.carry_over is not None]
    is_asked = any(part.without_carry_over is not None for part in parts)
    return Paired(
        *pair,
        *pair,
        log_ratios={place: math.fsum(part.measured[place] for part in parts) for place in places},
        carry_over=next(
            (carry_over for carry_over in carry_overs if carry_over.taken_out), carry_overs[0] if carry_overs else None
        ),
        without_carry_over=np.array([math.fsum(values[place] for values in without) for place in places])
        if is_asked and places
        else None,
        alternatives=tuple(_alternatives(parts, places)),
    )


def _alternatives(parts: Sequence[_Part], places: Sequence[int]) -> Iterator[OtherRatios]:
    """Yield what all runs add up to otherwise than measured: for each kind of cause the lowest, then the highest.

    In a block that may be missing of some runs the others add their middle.
    """
    for kind in (UnequalFailures, LateDisk, EmulatedCpu):
        of_parts = [[each for each in part.alternatives if isinstance(each[0], kind)] for part in parts]
        causes = [of_part[0][0] for of_part in of_parts if of_part]
        for end in range(2) if causes and places else ():
            ends = [of_part[end] if of_part else None for of_part in of_parts]
            values = [each[1] if each else part.measured for part, each in zip(parts, ends, strict=True)]
            missing = [each[2] if each else [] for each in ends]
            middles = [float(np.median(list(part.measured.values()))) for part in parts]
            added = [
                math.fsum(row[at] if at < len(row) else middle for row, middle in zip(missing, middles, strict=True))
                for at in range(max(map(len, missing)))
            ]
            d = [math.fsum(value[place] for value in values) for place in places]
            yield OtherRatios(np.array([*d, *added]), causes[0])


def _scores(findings: Sequence[Finding], reference: str, blocks: int) -> dict[str, Estimate]:
    """Return each stack's ratio to the reference, which is 1 of itself."""
    ratios = {
        finding.level_id: replace(
            finding.effect, value=1 + finding.effect.value, low=1 + finding.effect.low, high=1 + finding.effect.high
        )
        for finding in findings
        if finding.baseline_id == reference
    }
    return {reference: Estimate(1.0, 1.0, 1.0, blocks), **ratios}
