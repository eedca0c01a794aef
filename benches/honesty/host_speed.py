"""The host's speed as a covariate: whether what it takes off may be taken off, and how many blocks that saves.

Noise of a trial is in part the host's, which the covariate sees, and in part its own; ``r`` is the correlation of both.
"""

from collections.abc import Iterator

import numpy as np

from benches.honesty.designs import MARGIN, rules_of
from benches.honesty.families import evidence_of_families
from benches.honesty.noise import Floats, autoregressive
from benches.honesty.row import Row
from benches.honesty.verdicts import limit
from dbdyno.analysis.looks import Looks
from dbdyno.analysis.verdict.evidence import Relation, evidence, relations
from dbdyno.analysis.verdict.figures import correct
from dbdyno.model.design import ALPHA

SIZES, CORRELATIONS = (6, 8, 10, 20), (0.0, 0.3, 0.7)
SD = 0.0325 / np.sqrt(2)  # of a trial: of the log ratio .0325, as where blocks to a verdict were first counted
EFFECTS = (0.0, 0.02, 0.05, 0.20)
BLOCKS_AT_MOST = {0.7: (11.0, 14.0, 7.0, 6.0), 0.0: (15.0, 18.0, 9.0, 6.0)}
EFFICIENCY_LEAST = 85.0  # percent, of ten blocks where the covariate explains nothing
MOVED_SD = 3.0  # what a treatment may move the covariate by, so that it is no longer the host's


def rows(replicates: int, seed: int) -> list[Row]:
    """Return every row about the host's speed."""
    rng = np.random.default_rng(seed)
    return [*_honest(rng, replicates), *_blocks(rng, replicates), *_moved(rng, replicates)]


def trials(
    rng: np.random.Generator, replicates: int, blocks: int, r: float, *, drifting: bool = False
) -> tuple[Floats, Floats]:
    """Return ln(metric) and the covariate of two equal treatments in random order, shape (replicates, blocks, 2)."""
    shape = (replicates, blocks, 2)
    host = rng.normal(0, 1, shape)
    if drifting:
        host = autoregressive(rng, replicates, 2 * blocks, 0.8).reshape(shape) / 0.03
        host += np.linspace(0, 3, 2 * blocks).reshape(blocks, 2)
    logs = SD * (r * host + np.sqrt(1 - r**2) * rng.normal(0, 1, shape))
    order = np.argsort(rng.random(shape), axis=-1)
    return np.take_along_axis(logs, order, -1), np.take_along_axis(host, order, -1)


def ratios(logs: Floats, covariate: Floats) -> Floats:
    """Return the log ratios of which the host's speed is taken off."""
    found = correct(logs, covariate[..., None]).logs
    return np.asarray(found[..., 1] - found[..., 0])


def _honest(rng: np.random.Generator, replicates: int) -> Iterator[Row]:
    most = limit(ALPHA, replicates) + 1.0  # of one in a hundred studies the covariate is left out by chance
    for drifting in (False, True):
        for blocks in SIZES:
            for r in CORRELATIONS:
                logs, host = trials(rng, replicates, blocks, r, drifting=drifting)
                d = ratios(logs, host)
                found = evidence(d, Looks.single(blocks), MARGIN)
                what = f"{blocks} blocks, r = {r:g}{', the host drifts' if drifting else ''}"
                wrong = 100 * float(np.mean((found.low > 0) | (found.high < 0)))
                yield Row("host speed: different", what, wrong, "%", None, most)
                covers = 100 * float(np.mean((found.low <= 0) & (found.high >= 0)))
                yield Row("host speed: coverage", what, covers, "%", 100 - most, None)
                left = 100 * float(np.var(d.mean(axis=1)) / np.var((logs[..., 1] - logs[..., 0]).mean(axis=1)))
                is_idle = r == 0 and blocks == 10  # noqa: PLR2004
                yield Row(
                    "host speed: variance left", what, left, "%", None, 1e4 / EFFICIENCY_LEAST if is_idle else None
                )
                edge = evidence(d + np.log1p(MARGIN), Looks.single(blocks), MARGIN)
                said = 100 * float(np.mean((edge.p_equivalence <= ALPHA) & np.isfinite(edge.low)))
                yield Row("host speed: equivalent at the margin", what, said, "%", None, most)


def _blocks(rng: np.random.Generator, replicates: int) -> Iterator[Row]:
    for r, limits in BLOCKS_AT_MOST.items():
        for effect, most in zip(EFFECTS, limits, strict=True):
            logs, host = trials(rng, replicates, 40, r)
            logs[..., 1] += np.log1p(effect)
            used, live = np.zeros(replicates), np.arange(replicates)
            for n, rule in rules_of("decided", 40).items():
                d = ratios(logs[live, :n], host[live, :n])
                words = relations(evidence_of_families(d[:, None], rule, MARGIN), MARGIN)[:, 0]
                used[live] = n
                live = live[words == Relation.UNDECIDED]
                if not len(live):
                    break
            what = f"effect {100 * effect:g} %, r = {r:g}"
            yield Row("blocks to a verdict", what, float(used.mean()), "", None, most)


def _moved(rng: np.random.Generator, replicates: int) -> Iterator[Row]:
    """A treatment that itself moves the covariate: what it takes off would be the treatment's doing."""
    for moved, judged in ((MOVED_SD, True), (MOVED_SD / 6, False)):
        logs, host = trials(rng, replicates, 10, 0.7)
        host[..., 1] += moved
        found = evidence(ratios(logs, host), Looks.single(10), MARGIN)
        wrong = 100 * float(np.mean((found.low > 0) | (found.high < 0)))
        what = f"moved by {moved:g} sd"
        yield Row("host speed: different", what, wrong, "%", None, limit(ALPHA, replicates) + 1.0, judged=judged)
