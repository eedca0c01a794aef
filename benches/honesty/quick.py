"""A quick look at two disks: each wanders slowly by itself, nothing truly differs, and all of it takes a minute.

Eight rounds of three operations, each with three numbers of clients, on either disk in turn: 18 steps a round, in
random order. The speed of a disk is an AR(1) process over these steps. What lasts longer than the session looks like a
difference of the disks, and no rule can tell the two apart from within: so those rows are shown, not judged. What is
said is said of these seconds, and is judged as that: against what the disks truly did on average meanwhile.
"""

from collections.abc import Iterator

import numpy as np

from benches.honesty.noise import Floats
from benches.honesty.row import Row
from benches.honesty.verdicts import limit
from dbdyno.analysis.looks import Looks
from dbdyno.analysis.quick import MARGIN, OPERATIONS
from dbdyno.analysis.statistics import log_margin
from dbdyno.analysis.verdict.evidence import Relation, evidence, relations
from dbdyno.model.design import ALPHA

ROUNDS, DEPTHS = 8, 3
STEPS = 2 * DEPTHS * len(OPERATIONS)  # of a round
WANDERS, MEASURED = 0.10, 0.02  # standard deviations of ln(rate): of a disk over time, of a step beside that
MEMORIES = (0.0, 0.9, 0.98, 0.995)  # correlation of a disk's speed from step to step


def rows(replicates: int, seed: int) -> list[Row]:
    """Return every row about quick looks."""
    rng = np.random.default_rng(seed)
    return [row for memory in MEMORIES for row in _rows(rng, memory, replicates)]


def _rows(rng: np.random.Generator, memory: float, replicates: int) -> Iterator[Row]:
    d, meanwhile = looks(rng, memory, replicates)
    found = evidence(d, Looks.single(ROUNDS), MARGIN)
    words, truth = relations(found, MARGIN), meanwhile[:, None]
    higher, lower = words == Relation.HIGHER, words == Relation.LOWER
    wrong = np.any((higher & (truth <= 0)) | (lower & (truth >= 0)), axis=-1)
    equal = np.any((words == Relation.EQUIVALENT) & (np.abs(truth) >= log_margin(MARGIN)), axis=-1)
    held = (found.low <= truth) & (truth <= found.high)
    what, most = f"memory {memory:g}", limit(ALPHA, replicates)
    yield Row("quick: different, of the disks", what, _share(np.any(higher | lower, axis=-1)), "%", None, None)
    yield Row("quick: different, of these seconds", what, _share(wrong), "%", None, most)
    yield Row("quick: equivalent, of these seconds", what, _share(equal), "%", None, most)
    yield Row("quick: coverage, of these seconds", what, _share(held), "%", 100 - most, None)


def looks(rng: np.random.Generator, memory: float, replicates: int) -> tuple[Floats, Floats]:
    """Return log ratios, shape (replicates, operations, rounds), and what the disks did on average meanwhile."""
    disks = np.stack([_wandering(rng, memory, replicates) for _ in range(2)], axis=1)
    measured = disks + rng.normal(0, MEASURED, disks.shape)
    order = np.argsort(rng.random((replicates, ROUNDS, STEPS)), axis=-1).reshape(replicates, ROUNDS, 2, 3, DEPTHS)
    at = (order + STEPS * np.arange(ROUNDS)[:, None, None, None]).reshape(replicates, ROUNDS, 2, -1)
    of = [np.take_along_axis(measured[:, disk], at[:, :, disk].reshape(replicates, -1), axis=1) for disk in (0, 1)]
    d = (of[0] - of[1]).reshape(replicates, ROUNDS, len(OPERATIONS), DEPTHS).mean(axis=-1)
    return np.swapaxes(d, 1, 2), (disks[:, 0] - disks[:, 1]).mean(axis=-1)


def _wandering(rng: np.random.Generator, memory: float, replicates: int) -> Floats:
    values = rng.normal(0, WANDERS * np.sqrt(1 - memory**2), (replicates, ROUNDS * STEPS))
    values[:, 0] = rng.normal(0, WANDERS, replicates)
    for step in range(1, values.shape[1]):
        values[:, step] += memory * values[:, step - 1]
    return values


def _share(which: Floats) -> float:
    return 100 * float(np.mean(which))
