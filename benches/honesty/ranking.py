"""Ranking, tie letters and screening: whether intervals cover, and how often what is alike is called different."""

from collections.abc import Iterator
from itertools import combinations

import numpy as np
import numpy.typing as npt

from benches.honesty.designs import MARGIN
from benches.honesty.noise import SD, blocked, reference
from benches.honesty.row import Row
from benches.honesty.verdicts import limit
from dbdyno.analysis.looks import Looks
from dbdyno.analysis.statistics import benjamini_hochberg, holm
from dbdyno.analysis.verdict.evidence import Evidence, evidence
from dbdyno.model.design import ALPHA

Floats = npt.NDArray[np.float64]

STACKS, TESTS, BLOCKS = 4, 5, 10
BY_TEST = np.array([0.4, 0.0, 0.1, -0.2, 0.05])  # log ratios of the last stack, test by test
TREATMENTS = 4
TRUE_DIFFERENCE = np.log1p(0.05)
DIFFER = np.array([True, True, False, False, False])  # of the screened metrics


def rows(replicates: int, seed: int) -> list[Row]:
    """Return every row about rankings, letters and screening."""
    rng = np.random.default_rng(seed)
    return [*_ranking(rng, replicates), *_letters(rng, replicates), *_screening(rng, replicates)]


def _judged(d: Floats) -> Evidence:
    return evidence(d, Looks.single(d.shape[-1]), MARGIN)


def stack_values(rng: np.random.Generator, replicates: int) -> Floats:
    """Return each stack's mean ln(metric) over its tests, up to a constant of the block: (replicates, stacks, blocks).

    All combinations of stacks and tests run in random order in each block; nothing truly differs.
    """
    ratios = blocked(rng, reference, replicates, STACKS * TESTS, BLOCKS)
    values = np.concatenate((np.zeros_like(ratios[:, :1]), ratios), axis=1)
    return np.asarray(values.reshape(replicates, STACKS, TESTS, BLOCKS).mean(axis=2))


def _ranking(rng: np.random.Generator, replicates: int) -> Iterator[Row]:
    values = stack_values(rng, replicates)
    truth = float(BY_TEST.mean())
    found = _judged(values[:, -1] - values[:, 0] + truth)
    covered = 100 * float(np.mean((found.low <= truth) & (truth <= found.high)))
    what = f"{STACKS} stacks, {TESTS} tests"
    yield Row("ranking", f"score: interval covers, {what}", covered, "%", 93, 97)
    width = 100 * float(np.expm1(np.median(found.high - found.low) / 2))
    yield Row("ranking", "score: half the interval, median", width, "%", None, None)


def _letters(rng: np.random.Generator, replicates: int) -> Iterator[Row]:
    values = stack_values(rng, replicates)
    yield _called_different("identical stacks called different", values, replicates)
    ratios = blocked(rng, reference, replicates, TREATMENTS, BLOCKS)
    values = np.concatenate((np.zeros_like(ratios[:, :1]), ratios), axis=1)
    yield _called_different("identical treatments called different", values, replicates)


def _called_different(name: str, values: Floats, replicates: int) -> Row:
    """Return in how many studies any two of (replicates, k, blocks) share no letter: p over all pairs, Holm."""
    first, second = zip(*combinations(range(values.shape[1]), 2), strict=True)
    p = _judged(values[:, list(second)] - values[:, list(first)]).p
    wrong = 100 * float(np.mean((holm(p) <= ALPHA).any(axis=-1)))
    return Row("tie letters", name, wrong, "%", None, limit(ALPHA, replicates))


def _screening(rng: np.random.Generator, replicates: int) -> Iterator[Row]:
    """Metrics of one trial share half of its noise: a slow trial is slow in most of them."""
    shared = blocked(rng, reference, replicates, TREATMENTS, BLOCKS)[:, None]
    own = np.stack([blocked(rng, _own, replicates, TREATMENTS, BLOCKS) for _ in DIFFER], axis=1)
    for name, differ in (("2 of 5 metrics differ", DIFFER), ("nothing differs", np.zeros_like(DIFFER))):
        d = (shared + own) / np.sqrt(2) + TRUE_DIFFERENCE * differ[:, None, None]
        p = _judged(d).p.reshape(replicates, -1)
        named = benjamini_hochberg(p) <= ALPHA
        true = np.repeat(differ, TREATMENTS - 1)
        wrong = (named & ~true).sum(axis=-1) / np.maximum(named.sum(axis=-1), 1)
        yield Row(
            "screening", f"wrong of those named, {name}", 100 * float(wrong.mean()), "%", None, limit(ALPHA, replicates)
        )
        if differ.any():
            yield Row("screening", "true +5 % that are named", 100 * float(named[:, true].mean()), "%", None, None)


def _own(rng: np.random.Generator, replicates: int, trials: int) -> Floats:
    return rng.normal(0, SD, (replicates, trials))
