"""Rare stalls: a treatment that is like the other one, but for some trials in which it is far slower.

No study can know of a stall that it has not met. So the limit of a wrong "equivalent" is the share of studies without
one; what the usual block alone would have said is shown beside it.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from benches.honesty.designs import MARGIN, fixed, sequential
from benches.honesty.noise import SD, Floats, Noise, heavy_tailed, independent, reference
from benches.honesty.row import Row
from benches.honesty.verdicts import limit
from dbdyno.analysis.statistics import exact_p_above, exact_p_below, log_margin, signed_rank_cdf, walsh_averages
from dbdyno.analysis.verdict.evidence import Relation
from dbdyno.analysis.verdict.finding import totals
from dbdyno.model.design import ALPHA

QUIET = 0.01 / SD  # of the independent noise: 1 %
SIZES = (10, 20, 40)
TOLERANCE = 3.0  # percent
COVERAGE_MOST = 1000  # studies; totals are computed one by one


@dataclass(frozen=True)
class Stall:
    """So much of the trials at so much of the rate."""

    name: str
    share: float
    rate: float


STALLS = (Stall("1 of 10 at half", 0.1, 0.5), Stall("1 of 20 at a tenth", 0.05, 0.1))


def rows(replicates: int, seed: int) -> list[Row]:
    """Return every row about stalls."""
    rng = np.random.default_rng(seed)
    return [*_equivalent(rng, replicates), *_honest(rng, replicates), *_totals(rng, min(replicates, COVERAGE_MOST))]


def trials(rng: np.random.Generator, noise: Noise, replicates: int, blocks: int) -> Floats:
    """Return ln(rate) of two equal treatments in randomised blocks: (replicates, 2, blocks)."""
    values = noise(rng, replicates, 2 * blocks).reshape(replicates, blocks, 2)
    return np.swapaxes(rng.permuted(values, axis=2), 1, 2)


def quiet(rng: np.random.Generator, replicates: int, count: int) -> Floats:
    """Independent noise of 1 %."""
    return QUIET * independent(rng, replicates, count)


def _stalled(rng: np.random.Generator, values: Floats, stall: Stall) -> Floats:
    return values + np.log(stall.rate) * (rng.random(values.shape) < stall.share)


def _equivalent(rng: np.random.Generator, replicates: int) -> Iterator[Row]:
    for stall in STALLS:
        for blocks in SIZES:
            values = trials(rng, quiet, replicates, blocks)
            d = (_stalled(rng, values[:, 1], stall) - values[:, 0])[:, None]
            what = f"{stall.name}, {blocks} blocks"
            unseen = limit((1 - stall.share) ** blocks, replicates)
            said = 100 * fixed(d, blocks).says(Relation.EQUIVALENT)
            yield Row("stalls: wrong equivalent", what, said, "%", None, unseen + TOLERANCE)
            yield Row("stalls: usual block alone", what, 100 * _usual_alone(d), "%", None, None)
        values = trials(rng, reference, replicates, SIZES[-1])
        d = (_stalled(rng, values[:, 1], stall) - values[:, 0])[:, None]
        said = 100 * sequential(d).says(Relation.EQUIVALENT)
        unseen = limit((1 - stall.share) ** SIZES[0], replicates)  # no look is earlier
        yield Row("stalls: wrong equivalent", f"{stall.name}, sequential, reference", said, "%", None, unseen)


def _usual_alone(d: Floats) -> float:
    n, bound = d.shape[-1], log_margin(MARGIN)
    averages = walsh_averages(d)
    cdf = signed_rank_cdf(n)
    p = np.maximum(exact_p_above(averages, -bound, cdf), exact_p_below(averages, bound, cdf))
    return float(np.mean(p <= ALPHA))


def _honest(rng: np.random.Generator, replicates: int) -> Iterator[Row]:
    """What asking the mean costs two that are equal."""
    cases = {"quiet": (quiet, 98.0), "reference": (reference, None), "heavy tails": (heavy_tailed, None)}
    for name, (noise, least) in cases.items():
        for blocks in SIZES:
            values = trials(rng, noise, replicates, blocks)
            d = (values[:, 1] - values[:, 0])[:, None]
            said = 100 * fixed(d, blocks).says(Relation.EQUIVALENT)
            yield Row("no stalls: equivalent", f"{name}, {blocks} blocks", said, "%", least, None)
            yield Row("no stalls: usual block alone", f"{name}, {blocks}", 100 * _usual_alone(d), "%", None, None)


def _totals(rng: np.random.Generator, replicates: int) -> Iterator[Row]:
    """Whether the interval of the ratio of totals holds the true one, and how often the totals are shown."""
    for stall in (Stall("no stalls", 0.0, 1.0), *STALLS):
        truth = stall.share / stall.rate - stall.share
        for blocks in SIZES[::2]:
            values = trials(rng, quiet, replicates, blocks)
            rates = np.exp(np.stack((_stalled(rng, values[:, 1], stall), values[:, 0]), axis=-1))
            usual = np.median(walsh_averages(np.log(rates[..., 0] / rates[..., 1])), axis=-1)
            found = [
                totals(dict(enumerate(each)), float(at), MARGIN, more_is_better=True)
                for each, at in zip(rates, usual, strict=True)
            ]
            covers = 100 * float(np.mean([one.effect.low <= truth <= one.effect.high for one in found]))
            shown = 100 * float(np.mean([one.apart for one in found]))
            what, honest = f"{stall.name}, {blocks} blocks", stall.share == 0
            yield Row("totals: coverage", what, covers, "%", 93 if honest else None, None)
            seen = 100 * (1 - (1 - stall.share) ** blocks)
            yield Row("totals: shown", what, shown, "%", seen - TOLERANCE, seen + TOLERANCE)
