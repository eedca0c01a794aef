"""Coarse figures: latencies told in whole units, small beside the margin or large, rounded or cut off; and buckets.

The buckets of sysbench's and fio's histograms are computed as those programs do, of trials that scatter less than a
bucket is wide. Two treatments whose percentiles lie at either side of an edge, .2 % apart, come out a bucket apart.
"""

import math
from collections.abc import Callable, Iterator

import numpy as np

from benches.honesty.designs import MARGIN
from benches.honesty.noise import Floats
from benches.honesty.row import Row
from benches.honesty.stalls import quiet, trials
from benches.honesty.verdicts import limit
from dbdyno.analysis.looks import Looks
from dbdyno.analysis.statistics import log_margin
from dbdyno.analysis.verdict.evidence import Evidence, Relation, evidence, half_width, relations, resolution_of, step_of
from dbdyno.model.design import ALPHA
from dbdyno.model.metrics import SYSBENCH_BUCKET, steps_of

UNITS = (8, 16, 32, 80, 160)  # that a figure comes to, give or take a quarter
BLOCKS = 20
STUDIES_MOST = 1500  # the step of each is looked for by itself
ROUNDED = {"rounded": np.rint, "cut off": np.floor}
WIDE_MARGIN = 0.05  # which leaves room for an equivalence beside buckets of 1.8 %
NARROW_MARGIN = 0.01  # which a bucket is wider than
APART = 0.002  # of the two at an edge
STILL, STILLER = 0.2, 0.05  # of the quiet noise: figures that mostly stay in their bucket


def sysbench_buckets(milliseconds: Floats) -> Floats:
    """Return what sysbench 1.0 prints of latencies: the nearest of its values, three decimals (sb_histogram.c)."""
    places = np.floor(np.log(milliseconds / 1e-3) / SYSBENCH_BUCKET + 0.5)
    return np.round(1e-3 * np.exp(places * SYSBENCH_BUCKET), 3)


def fio_buckets(milliseconds: Floats) -> Floats:
    """Return what fio prints of latencies: the middle of a 64th of a power of two, in nanoseconds (stat.c)."""
    ns = np.floor(milliseconds * 1e6)
    width = np.exp2(np.floor(np.log2(ns)) - 6)
    return (np.floor(ns / width) * width + np.floor(width / 2)) / 1e6


PROGRAMS: dict[str, Callable[[Floats], Floats]] = {"sysbench": sysbench_buckets, "fio": fio_buckets}


def rows(replicates: int, seed: int) -> list[Row]:
    """Return every row about coarse figures."""
    rng, studies = np.random.default_rng(seed), min(replicates, STUDIES_MOST)
    return [*_rows(rng, studies), *_of_buckets(rng, studies), *_at_an_edge(rng, studies)]


def _rows(rng: np.random.Generator, replicates: int) -> Iterator[Row]:
    bound = log_margin(MARGIN)
    for units in UNITS:
        for name, rounding in ROUNDED.items():
            level = units * rng.uniform(0.75, 1.25, (replicates, 1, 1))
            exact = trials(rng, quiet, replicates, BLOCKS) + np.array([0.0, bound])[:, None]
            figures = rounding(level * np.exp(exact))
            what = f"figures of about {units}, {name}"
            allowing = _judged(figures, _widths(figures))
            wrong = 100 * float(np.mean(_words(allowing) == Relation.EQUIVALENT))
            yield Row("coarse: wrong equivalent", what, wrong, "%", None, limit(ALPHA, replicates))
            covers = 100 * float(np.mean((allowing.low <= bound) & (bound <= allowing.high)))
            yield Row("coarse: coverage", what, covers, "%", 93, None)
            taken_as_exact = 100 * float(np.mean(_words(_judged(figures, 0.0)) == Relation.EQUIVALENT))
            yield Row("coarse: taken as exact", what, taken_as_exact, "%", None, None)
        same = np.rint(level * np.exp(trials(rng, quiet, replicates, BLOCKS)))
        said = _words(_judged(same, _widths(same))) == Relation.EQUIVALENT
        yield Row(
            "coarse: equal are equivalent", f"figures of about {units}", 100 * float(np.mean(said)), "%", None, None
        )


def _of_buckets(rng: np.random.Generator, replicates: int) -> Iterator[Row]:
    """Two that differ by the margin, at any place between two edges; and two that are equal."""
    for program, buckets in PROGRAMS.items():
        for margin in (MARGIN, WIDE_MARGIN):
            bound = log_margin(margin)
            level = np.exp(rng.uniform(math.log(0.5), math.log(50), (replicates, 1, 1)))
            noise = STILL * trials(rng, quiet, replicates, BLOCKS)
            figures = buckets(level * np.exp(noise + np.array([0.0, bound])[:, None]))
            what = f"buckets of {program}, margin {100 * margin:.0f} %"
            allowing = _judged(figures, _stated_widths(program, figures), margin)
            wrong = 100 * float(np.mean(_words(allowing, margin) == Relation.EQUIVALENT))
            yield Row("coarse: wrong equivalent", what, wrong, "%", None, limit(ALPHA, replicates))
            covers = 100 * float(np.mean((allowing.low <= bound) & (bound <= allowing.high)))
            yield Row("coarse: coverage", what, covers, "%", 93, None)
            exact = _judged(figures, _widths(figures), margin)
            found = 100 * float(np.mean(_words(exact, margin) == Relation.EQUIVALENT))
            yield Row("coarse: step found in the figures", what, found, "%", None, None)
            same = buckets(level * np.exp(noise))
            said = _words(_judged(same, _stated_widths(program, same), margin), margin) == Relation.EQUIVALENT
            yield Row("coarse: equal are equivalent", what, 100 * float(np.mean(said)), "%", None, None)


def _at_an_edge(rng: np.random.Generator, replicates: int) -> Iterator[Row]:
    """Two that lie close to a bucket's edge, one below and one above."""
    for program, buckets in PROGRAMS.items():
        edge = _edges(buckets, np.exp(rng.uniform(math.log(0.5), math.log(50), replicates)))[:, None, None]
        sides = np.array([-APART / 2, APART / 2])[:, None]
        figures = buckets(edge * np.exp(sides + STILLER * trials(rng, quiet, replicates, BLOCKS)))
        allowing = _judged(figures, _stated_widths(program, figures), NARROW_MARGIN)
        what = f"buckets of {program}, {100 * APART:.1f} % apart at an edge"
        differs = np.isin(_words(allowing, NARROW_MARGIN), (Relation.HIGHER, Relation.LOWER))
        yield Row("coarse: different", what, 100 * float(np.mean(differs)), "%", None, limit(ALPHA, replicates))
        covers = 100 * float(np.mean((allowing.low <= APART) & (allowing.high >= APART)))
        yield Row("coarse: coverage", what, covers, "%", 93, None)
        found = _judged(figures, _widths(figures), NARROW_MARGIN)
        differs = np.isin(_words(found, NARROW_MARGIN), (Relation.HIGHER, Relation.LOWER))
        said = 100 * float(np.mean(differs))
        yield Row("coarse: step found in the figures", f"{what}, different", said, "%", None, None)
        covers = 100 * float(np.mean((found.low <= APART) & (found.high >= APART)))
        yield Row("coarse: step found in the figures", f"{what}, coverage", covers, "%", None, None)


def _edges(buckets: Callable[[Floats], Floats], near: Floats) -> Floats:
    """Return for each value the edge above it of the bucket that it lies in, by halving; shape of ``near``."""
    low, high = near, near * (1 + 2 * SYSBENCH_BUCKET)
    below = buckets(low)
    for _ in range(40):
        middle = (low + high) / 2
        inside = buckets(middle) == below
        low, high = np.where(inside, middle, low), np.where(inside, high, middle)
    return high


def _judged(figures: Floats, unit: Floats | float, margin: float = MARGIN) -> Evidence:
    logs = np.log(figures)
    return evidence(logs[:, 1] - logs[:, 0], Looks.single(BLOCKS), margin, unit=unit)


def _stated_widths(program: str, figures: Floats) -> Floats:
    """Return by how much each study's interval is wider as the program's buckets are stated: shape (replicates,)."""
    stated = steps_of(program)["latency_ms_p99"]
    return np.array([sum(resolution_of(one.tolist(), stated).log_width for one in each) for each in figures])


def _widths(figures: Floats) -> Floats:
    """Return by how much each study's interval is wider, as the product finds it: shape (replicates,)."""
    return np.array([sum(half_width(step_of(each.ravel().tolist()), one.tolist()) for one in each) for each in figures])


def _words(found: Evidence, margin: float = MARGIN) -> Floats:
    fields = Evidence.__dataclass_fields__
    return np.asarray(relations(Evidence(*(getattr(found, name)[:, None] for name in fields)), margin))[:, 0]
