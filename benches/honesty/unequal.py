"""Failures and disturbances that strike one treatment: how often that makes a wrong word, and what the guard costs.

Whole runs, their blocks repeated as the runner repeats them, judged by the product's own analysis. Nothing truly
differs unless a row says so. Rows "as measured" are what the log ratios alone would say.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from benches.honesty.designs import MARGIN
from benches.honesty.noise import NOISES, Noise, independent, reference
from benches.honesty.row import Row
from benches.honesty.verdicts import limit
from dbdyno.analysis.analyse import planned_verdicts
from dbdyno.analysis.blocks import usable_blocks
from dbdyno.analysis.verdict.figures import MetricFigures
from dbdyno.analysis.verdict.finding import judge
from dbdyno.analysis.verdict.pairs import compared
from dbdyno.model.design import Comparison, Design, Treatment
from dbdyno.model.metrics import METRICS
from dbdyno.store.records import FailedTrial, Run, Trial

MOST = 300  # runs of a kind: each is judged by itself
SLOWED = 0.1  # what a disturbed trial is slower by, on the log scale
EFFECT = float(np.log1p(0.05))
BLOCKS = (10, 20, 40)
ATTEMPTS, PATIENCE = 3, 2  # as in ``runner``
METRIC = "queries_per_second"
IDS = ("t1", "t2")


@dataclass(frozen=True)
class Harm:
    """What happens to trials, and to what share of those of the first and of the second treatment."""

    how: str  # "fails": and is left out; "repeat", "note": is disturbed
    first: float
    second: float
    slow_ones: bool = False  # not by chance: the slowest, which makes those that are left look fast


HARMS = {
    "5 and 60 % disturbed": Harm("note", 0.05, 0.6),
    "5 and 60 % disturbed, repeated": Harm("repeat", 0.05, 0.6),
    "5 and 30 % disturbed": Harm("note", 0.05, 0.3),
    "the slowest 5 and 60 % left out": Harm("fails", 0.05, 0.6, slow_ones=True),
    "the slowest 0 and 15 % left out": Harm("fails", 0.0, 0.15, slow_ones=True),
}
HARMLESS = {
    "5 % of both disturbed": Harm("note", 0.05, 0.05),
    "30 % of both disturbed, repeated": Harm("repeat", 0.3, 0.3),
    "20 % of both left out": Harm("fails", 0.2, 0.2),
}


def rows(replicates: int, seed: int) -> list[Row]:
    """Return every row about unequal failures and disturbances."""
    rng, runs = np.random.default_rng(seed), min(replicates, MOST)
    return [*_wrong(rng, runs), *_cost(rng, runs)]


def _wrong(rng: np.random.Generator, runs: int) -> Iterator[Row]:
    most = max(9.0, limit(0.05, runs))
    for noise in (reference, independent):
        noise_name = next(key for key, value in NOISES.items() if value is noise)
        for name, harm in HARMS.items():
            for blocks in BLOCKS:
                measured, told = _shares(rng, noise, runs, blocks, harm, 0.0, {"faster", "slower"})
                what = f"{name}, {blocks} blocks, {noise_name}"
                yield Row("unequal: different", f"{what}, as measured", measured, "%", None, None)
                yield Row("unequal: different", what, told, "%", None, most)


def _cost(rng: np.random.Generator, runs: int) -> Iterator[Row]:
    for name, harm in HARMLESS.items():
        for blocks in BLOCKS:
            measured, told = _shares(rng, reference, runs, blocks, harm, EFFECT, {"faster"})
            what = f"{name}, {blocks} blocks: +5 % found"
            yield Row("alike on both sides", f"{what}, as measured", measured, "%", None, None)
            yield Row("alike on both sides", what, told, "%", measured - 20, None)


def _shares(  # noqa: PLR0913, PLR0917  (a kind of run and what is looked for)
    rng: np.random.Generator, noise: Noise, runs: int, blocks: int, harm: Harm, effect: float, words: set[str]
) -> tuple[float, float]:
    """Return in what percent of runs one of the words is said: by the log ratios alone, and by the product."""
    found = np.zeros(2)
    for _ in range(runs):
        run = a_run(rng, noise, blocks, harm, effect)
        usable = usable_blocks(run)
        pairs = [
            replace(one, without_carry_over=None, alternatives=())
            for one in compared(MetricFigures(run, usable, METRIC), run.design.comparisons)
        ]
        alone = judge(pairs, METRICS[METRIC], MARGIN)[0].verdict
        found += [alone in words, planned_verdicts(run, usable)[0].verdict in words]
    return float(100 * found[0] / runs), float(100 * found[1] / runs)


def a_run(rng: np.random.Generator, noise: Noise, blocks: int, harm: Harm, effect: float) -> Run:
    """Return a run in which trials come to harm, and blocks are repeated for it as the runner does."""
    values = iter(noise(rng, 1, 2 * blocks * ATTEMPTS)[0])
    sample = noise(rng, 1, 400)[0]
    bounds = [float(np.quantile(sample - sample.mean(), share)) for share in (harm.first, harm.second)]
    run, stayed = _empty(blocks), 0
    for block in range(1, blocks + 1):
        for attempt in range(1, ATTEMPTS + 1):
            again = harm.how == "fails" or (harm.how == "repeat" and attempt < ATTEMPTS and stayed < PATIENCE)
            if _attempt(rng, run, values, (block, attempt), harm, bounds, effect, again=again):
                break
        stayed += harm.how == "repeat" and attempt == ATTEMPTS and stayed < PATIENCE
    return run


def _attempt(  # noqa: PLR0913, PLR0917
    rng: np.random.Generator,
    run: Run,
    values: "Iterator[float]",
    which: tuple[int, int],
    harm: Harm,
    bounds: list[float],
    effect: float,
    *,
    again: bool,
) -> bool:
    """Run one attempt at a block; return whether the block is done with it."""
    for position, side in enumerate(rng.permutation(2), 1):
        value = float(next(values))
        share = (harm.first, harm.second)[side]
        hit = value < bounds[side] if harm.slow_ones else rng.random() < share
        id_ = f"b{which[0]:04d}a{which[1]}p{position:03d}-{IDS[side]}"
        if hit and harm.how == "fails":
            run.failures.append(FailedTrial(id_, *which, IDS[side], "died"))
            return False
        rate = float(np.exp(value + effect * side - SLOWED * hit))
        trial = Trial(id_, *which, position, IDS[side], "", {METRIC: 1000 * rate})
        run.trials.append(replace(trial, disturbance={"beyond": ["foreign_cpu"]}) if hit else trial)
        if hit and again:
            return False
    return True


def _empty(blocks: int) -> Run:
    treatments = [Treatment(id_, {"level": id_}) for id_ in IDS]
    design = Design(treatments, *IDS[:1], [Comparison(*IDS)], blocks, MARGIN, METRIC, 1)
    return Run("A study", "", design, [], [], {}, {}, "done", [])
