"""Two runs against each other, and what an A/A run promises: how far either may be believed.

Runs are independent sessions of two treatments in randomised blocks; what is compared is the first treatment before and
after. Nothing truly differs unless a row says so.
"""

from collections.abc import Iterator
from itertools import product

import numpy as np

from benches.honesty.noise import NOISES, Floats, Noise, blocked, heavy_tailed, independent, reference
from benches.honesty.row import Row
from benches.honesty.verdicts import limit
from dbdyno.analysis.looks import Looks
from dbdyno.analysis.noise_floor import multiple
from dbdyno.analysis.statistics import (
    brunner_munzel_p,
    exact_p,
    exact_p_above,
    exact_p_below,
    holm,
    log_margin,
    mean_p_beyond,
    signed_rank_cdf,
    walsh_averages,
)
from dbdyno.analysis.unpaired import differences, rank_sum_cdf, unpaired_evidence, unpaired_family
from dbdyno.analysis.verdict.evidence import Evidence, Relation, evidence, relations

BLOCKS, PILOT = 10, 10
MARGIN = 0.03
HOST = 0.05  # what the whole host is faster by in the second session, on the log scale
UNEQUAL = ((3, 20), (3, 40), (4, 20), (4, 40), (5, 30), (6, 6), (8, 12), (10, 40), (20, 20), (40, 10))
SPREADS, UNEQUAL_LEVEL = (3, 5), 0.06
SIZES = ((6, 6), (8, 12), (10, 10), (20, 20), (40, 10))
PROMISED = ((10, 1), (20, 1), (40, 1), (10, 4), (20, 4))  # blocks and comparisons of the study to come
LEVEL = 0.05
ONE_BY_ONE = 1000  # replicates of what is no array
POWER = 80.0  # percent, that an A/A run promises; the sigma it saw is uncertain, and the exact levels are steps
POWER_TOLERANCE = 3.5


def rows(replicates: int, seed: int) -> list[Row]:
    """Return every row about unpaired comparisons and noise floors."""
    rng = np.random.default_rng(seed)
    return [
        *_coverage(rng, replicates),
        *_unequal(rng, replicates),
        *_family(rng, replicates),
        *_different(rng, replicates),
        *_equivalent(rng, replicates),
        *_promised(rng, replicates),
    ]


def _coverage(rng: np.random.Generator, replicates: int) -> Iterator[Row]:
    for m, n in SIZES:
        x, y = independent(rng, replicates, m), independent(rng, replicates, n) + HOST
        found = unpaired_evidence(x, y, MARGIN)
        covered = 100 * float(np.mean((found.low <= HOST) & (found.high >= HOST)))
        yield Row("compare: coverage", f"{m} and {n} trials, iid", covered, "%", 93, 98)


def _unequal(rng: np.random.Generator, replicates: int) -> Iterator[Row]:
    """One group spreads three or five times as far as the other, for which the distribution of ranks is not meant."""
    noises: dict[str, Noise] = {"iid": independent, "heavy tails": heavy_tailed}
    for (m, n), spread, (name, noise) in product(UNEQUAL, SPREADS, noises.items()):
        x, y = spread * noise(rng, replicates, m), noise(rng, replicates, n)
        found = unpaired_evidence(x, y, MARGIN)
        what = f"{m} and {n} trials, the first {spread} times, {name}"
        yield Row("compare: unequal spread", what, _differs(found), "%", None, limit(UNEQUAL_LEVEL, replicates))
        alone = 100 * float(np.mean(exact_p(differences(x, y), rank_sum_cdf(m, n)) <= LEVEL))
        yield Row("compare: by ranks alone", what, alone, "%", None, None)
        by_order = np.maximum(
            exact_p(differences(x, y), rank_sum_cdf(m, n)),
            brunner_munzel_p(y[..., None, :] - x[..., :, None]),
        )
        without = 100 * float(np.mean(by_order <= LEVEL))
        yield Row("compare: without Welch", what, without, "%", None, None)
        covered = 100 * float(np.mean((found.low <= 0) & (found.high >= 0)))
        yield Row("compare: unequal, coverage", what, covered, "%", 100 - limit(UNEQUAL_LEVEL, replicates), None)


def _family(rng: np.random.Generator, replicates: int) -> Iterator[Row]:
    """Four treatments of which two changed clearly: what the intervals shown, at Holm's levels, hold of each."""
    truths = (0.0, 0.0, HOST, 2 * HOST)
    held, contradicts = np.zeros(len(truths)), 0
    count = min(replicates, ONE_BY_ONE)
    for _ in range(count):
        groups = [(independent(rng, 1, BLOCKS)[0], independent(rng, 1, BLOCKS)[0] + truth) for truth in truths]
        found = unpaired_family(groups, MARGIN)
        held += (found.low <= truths) & (truths <= found.high)
        contradicts += bool(np.any(((found.low > 0) | (found.high < 0)) != (holm(found.p) <= LEVEL)))
    for truth, share in zip(truths, 100 * held / count, strict=True):
        yield Row("compare: coverage in a family", f"of +{100 * truth:g} %", float(share), "%", 93, None)
    yield Row("compare: interval and word part", "four treatments", 100 * contradicts / count, "%", None, 0.0)


def _sessions(rng: np.random.Generator, noise: Noise, replicates: int) -> tuple[Floats, Floats]:
    """Return ln(metric) of two treatments, before and after: each of shape (replicates, 2, blocks)."""
    sessions = []
    for _ in range(2):
        values = noise(rng, replicates, 2 * BLOCKS).reshape(replicates, BLOCKS, 2)
        sessions.append(np.swapaxes(rng.permuted(values, axis=2), 1, 2))
    return sessions[0], sessions[1]


def _differs(found: Evidence) -> float:
    words = relations(Evidence(*(getattr(found, name)[:, None] for name in Evidence.__dataclass_fields__)), MARGIN)
    return 100 * float(np.mean((words == Relation.HIGHER) | (words == Relation.LOWER)))


def _different(rng: np.random.Generator, replicates: int) -> Iterator[Row]:
    most = limit(LEVEL, replicates)
    for name, noise in NOISES.items():
        before, after = _sessions(rng, noise, replicates)
        alone = _differs(unpaired_evidence(before[:, 0], after[:, 0], MARGIN))
        # Only independent trials are what the interval takes them to be: hence the warning beside every comparison.
        yield Row("compare: different", f"the same host, {name}", alone, "%", None, most, judged=noise is not reference)
        ratios = before[:, 0] - before[:, 1], after[:, 0] + HOST - (after[:, 1] + HOST)
        against = _differs(unpaired_evidence(*ratios, MARGIN))
        yield Row("compare: different", f"against a control, {name}", against, "%", None, most)
    before, after = _sessions(rng, reference, replicates)
    moved = _differs(unpaired_evidence(before[:, 0], after[:, 0] + HOST, MARGIN))
    yield Row("compare: different", "the host 5 % faster, reference", moved, "%", None, None)


def _equivalent(rng: np.random.Generator, replicates: int) -> Iterator[Row]:
    """At exactly the margin, with so little noise that equivalence is within reach."""
    x, y = (independent(rng, replicates, BLOCKS) / 3 for _ in range(2))
    found = unpaired_evidence(x, y + log_margin(MARGIN), MARGIN)
    wrong = 100 * float(np.mean((found.p_equivalence <= LEVEL) & np.isfinite(found.low)))
    yield Row("compare: equivalent", "at exactly the margin, iid", wrong, "%", None, limit(LEVEL, replicates))


def _promised(rng: np.random.Generator, replicates: int) -> Iterator[Row]:
    """How often a study finds the very difference, or shows the very margin, that an A/A run of 10 blocks named."""
    low, high = POWER - POWER_TOLERANCE, POWER + POWER_TOLERANCE
    for name, noise in NOISES.items():
        for blocks, comparisons in PROMISED if noise in {independent, reference} else PROMISED[:2]:
            sigma = blocked(rng, noise, replicates, 2, PILOT)[:, 0].std(axis=1, ddof=1)
            d = blocked(rng, noise, replicates, 2, blocks)[:, 0]
            share = LEVEL / comparisons
            named = [multiple(blocks, level, PILOT - 1, sides) for level, sides in ((share, 1), (2 * share, 2))]
            what, judged = f"{blocks} blocks, {comparisons} compared, {name}", noise is independent
            if named[0] is not None:
                found = evidence(d + (named[0] * sigma)[:, None], Looks.single(blocks), MARGIN)
                seen = 100 * float(np.mean((found.p <= share) & (found.low > 0)))
                yield Row("aa: named difference found", what, seen, "%", low, high, judged)
            if named[1] is not None:
                averages = walsh_averages(d)
                bound = named[1] * sigma
                cdf = signed_rank_cdf(blocks)
                sides = exact_p_above(averages, -bound, cdf), exact_p_below(averages, bound, cdf)
                p = np.maximum(np.maximum(*sides), mean_p_beyond(d, bound))
                shown = 100 * float(np.mean(p <= share))
                yield Row("aa: named margin shown", what, shown, "%", low, high, judged)
