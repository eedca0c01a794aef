"""Verdicts: how often wrong where nothing differs, how often right where something does, and what they cost."""

from collections.abc import Iterator

import numpy as np

from benches.honesty import designs
from benches.honesty.designs import Studies, always_valid, clock, extended, fixed, lagging, precise, sequential
from benches.honesty.noise import NOISES, blocked, reference
from benches.honesty.row import Row
from dbdyno.analysis.verdict.evidence import Relation

EFFECTS = (0.0, 0.02, 0.05, 0.20)
LEVELS = 4
FIXED, MOST = 10, 40
# Percent: the always-valid sequence takes log ratios for normal, which those of a job in each block are not; named in
# METHODOLOGY.md beside the promise.
CRON_ALWAYS_VALID = 7.0
RUNS_SHARE = 45  # percent of those of a fixed design of 40 blocks


def limit(level: float, replicates: int) -> float:
    """Return a share's limit in percent with two standard errors of the simulation."""
    return 100 * (level + 2 * (level * (1 - level) / replicates) ** 0.5)


def rows(replicates: int, seed: int) -> list[Row]:
    """Return every row about verdicts."""
    rng = np.random.default_rng(seed)
    return [
        *_false_positives(rng, replicates),
        *_other_noise(rng, replicates),
        *_power_and_runs(rng, replicates),
        *_at_the_margin(rng, replicates),
        *_coverage(rng, replicates),
        *_one_of_several(rng, replicates),
        *_too_far_out(rng, replicates),
    ]


def _false_positives(rng: np.random.Generator, replicates: int) -> Iterator[Row]:
    most = limit(0.05, replicates)
    d = blocked(rng, reference, replicates, 2, MOST)
    four = blocked(rng, reference, replicates, LEVELS, MOST)
    ends = rng.integers(FIXED, MOST + 1, replicates)
    cases = {
        "fixed 10 blocks": fixed(d, FIXED),
        "sequential": sequential(d),
        "sequential, at most 12": sequential(d, 12),
        "sequential, at most 20": sequential(d, 20),
        "sequential, no figures in 3 blocks": lagging(d, 3),
        "sequential, ended by the clock": clock(d, ends),
        "precise to 2 %": precise(d, 0.02),
        "always valid, every block": always_valid(d),
        "four levels, fixed 10, Holm": fixed(four, FIXED),
        "four levels, sequential, Holm": sequential(four),
    }
    for name, studies in cases.items():
        yield Row("A/A: different", name, 100 * studies.differs(), "%", None, most)
    # Two chances: each keeps its 5 %, both together need not.
    for noise_name, noise in NOISES.items():
        again = 100 * extended(blocked(rng, noise, replicates, 2, MOST), FIXED).differs()
        yield Row("A/A: different", f"fixed 10, extended if undecided, {noise_name}", again, "%", None, 2 * most)


def _other_noise(rng: np.random.Generator, replicates: int) -> Iterator[Row]:
    for name, noise in NOISES.items():
        if noise is reference:
            continue
        d = blocked(rng, noise, replicates, 2, MOST)
        cases = {"fixed 10 blocks": fixed(d, FIXED), "sequential": sequential(d), "always valid": always_valid(d)}
        for design, studies in cases.items():
            most = CRON_ALWAYS_VALID if design == "always valid" and name.startswith("cron") else 6.0
            yield Row("A/A: different", f"{design}, {name}", 100 * studies.differs(), "%", None, most)
        four = blocked(rng, noise, replicates, LEVELS, FIXED)
        yield Row("A/A: different", f"four levels, {name}", 100 * fixed(four, FIXED).differs(), "%", None, 6.0)


def _one_of_several(rng: np.random.Generator, replicates: int) -> Iterator[Row]:
    """Where Holm is at its weakest: two comparisons are clear and share none of the 5 % with a third, which is null."""
    most = limit(0.05, replicates)
    clear = np.array([0.3, -0.3, 0.0])[:, None]
    for name, noise in NOISES.items():
        d = blocked(rng, noise, replicates, LEVELS, MOST)
        cases = {"fixed 10": fixed, "sequential": sequential, "always valid": always_valid}
        for design, studies in cases.items():
            found = studies(d + clear, FIXED if studies is fixed else MOST).found[:, 2]
            wrong = 100 * float(np.mean((found == Relation.HIGHER) | (found == Relation.LOWER)))
            yield Row("null beside clear effects", f"{design}, {name}", wrong, "%", None, max(most, 6.0))
        edge = 100 * sequential(d + np.log1p(designs.MARGIN)).says(Relation.EQUIVALENT)
        yield Row("equivalent at the margin", f"sequential, any of three, {name}", edge, "%", None, most)


def _too_far_out(rng: np.random.Generator, replicates: int) -> Iterator[Row]:
    """What the estimate of a run comes to that stopped early because its effect looked clear."""
    studies = sequential(blocked(rng, reference, replicates, 2, MOST) + np.log1p(designs.MARGIN))
    early = studies.blocks < FIXED
    for name, which in (("all runs", np.ones_like(early)), ("stopped before 10", early)):
        mean = 100 * float(np.expm1(studies.value[which].mean()))
        yield Row("sequential", f"mean estimate of +3 %, {name}", mean, "%", None, None)


def _power_and_runs(rng: np.random.Generator, replicates: int) -> Iterator[Row]:
    runs = []
    for effect in EFFECTS:
        d = blocked(rng, reference, replicates, 2, MOST) + np.log1p(effect)
        studies, ten, open_ended = sequential(d), fixed(d, FIXED), always_valid(d)
        runs.append(2 * float(np.mean(studies.blocks)))
        what = f"+{100 * effect:g} %" if effect else "A/A"
        if effect == 0:
            equivalent = 100 * studies.says(Relation.EQUIVALENT)
            yield Row("sequential", "A/A ends equivalent", equivalent, "%", 90, None)
            yield Row("fixed 10", "A/A ends equivalent", 100 * ten.says(Relation.EQUIVALENT), "%", None, None)
            yield Row(
                "always valid", "A/A ends equivalent", 100 * open_ended.says(Relation.EQUIVALENT), "%", None, None
            )
        if effect == 0.05:  # noqa: PLR2004
            yield Row("fixed 10", "+5 % detected", 100 * ten.says(Relation.HIGHER), "%", 80, None)
            yield Row("sequential", "+5 % detected", 100 * studies.says(Relation.HIGHER), "%", 99, None)
            yield Row("always valid", "+5 % detected", 100 * open_ended.says(Relation.HIGHER), "%", None, None)
        yield Row("sequential", f"runs, {what}", runs[-1], "", None, None)
        yield Row("always valid", f"runs, {what}", 2 * float(np.mean(open_ended.blocks)), "", None, None)
    share = 100 * float(np.mean(runs)) / (2 * MOST)
    yield Row("sequential", "mean runs, of those of 40 fixed blocks", share, "%", None, RUNS_SHARE)


def _at_the_margin(rng: np.random.Generator, replicates: int) -> Iterator[Row]:
    most = limit(0.05, replicates)
    margin = np.log1p(designs.MARGIN)
    for name, noise in NOISES.items():
        for side, truth in (("+", margin), ("-", -margin)):
            d = blocked(rng, noise, replicates, 2, MOST) + truth
            cases = {"fixed 10": fixed(d, FIXED), "fixed 40": fixed(d, MOST), "sequential": sequential(d)}
            for design, studies in (cases | {"always valid": always_valid(d)}).items():
                share = 100 * studies.says(Relation.EQUIVALENT)
                yield Row("equivalent at the margin", f"{design}, {name}, {side}3 %", share, "%", None, most)


def _coverage(rng: np.random.Generator, replicates: int) -> Iterator[Row]:
    for name, noise in NOISES.items():
        d = blocked(rng, noise, replicates, 2, MOST)
        for blocks in (6, 7, 8, 10, 12, 15, 20, 40):
            share = 100 * fixed(d, blocks).covers(0)
            yield Row("coverage", f"fixed {blocks}, {name}", share, "%", 93, limit(0.98, replicates))
    for effect in EFFECTS:
        truth = float(np.log1p(effect))
        d = blocked(rng, reference, replicates, 2, MOST) + truth
        cases: dict[str, Studies] = {
            "sequential": sequential(d),
            "precise to 2 %": precise(d, 0.02),
            "always valid": always_valid(d),
        }
        for design, studies in cases.items():
            yield Row("coverage", f"{design}, +{100 * effect:g} %", 100 * studies.covers(truth), "%", 93, None)
