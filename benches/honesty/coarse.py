"""Coarse figures: latencies told in whole units, small beside the margin or large, rounded or cut off."""

from collections.abc import Iterator

import numpy as np

from benches.honesty.designs import MARGIN
from benches.honesty.noise import Floats
from benches.honesty.row import Row
from benches.honesty.stalls import quiet, trials
from benches.honesty.verdicts import limit
from dbdyno.analysis.looks.alpha_spending import Looks
from dbdyno.analysis.statistics.effect import log_margin
from dbdyno.analysis.verdict.evidence import Evidence, Relation, evidence, relations
from dbdyno.analysis.verdict.resolution import half_width, step_of
from dbdyno.model.design import ALPHA

UNITS = (8, 16, 32, 80, 160)  # that a figure comes to, give or take a quarter
BLOCKS = 20
STUDIES_MOST = 1500  # the step of each is looked for by itself
ROUNDED = {"rounded": np.rint, "cut off": np.floor}


def rows(replicates: int, seed: int) -> list[Row]:
    """Return every row about coarse figures."""
    return list(_rows(np.random.default_rng(seed), min(replicates, STUDIES_MOST)))


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


def _judged(figures: Floats, unit: Floats | float) -> Evidence:
    logs = np.log(figures)
    return evidence(logs[:, 1] - logs[:, 0], Looks.single(BLOCKS), MARGIN, unit=unit)


def _widths(figures: Floats) -> Floats:
    """Return by how much each study's interval is wider, as the product finds it: shape (replicates,)."""
    return np.array([sum(half_width(step_of(each.ravel().tolist()), one.tolist()) for one in each) for each in figures])


def _words(found: Evidence) -> Floats:
    fields = Evidence.__dataclass_fields__
    return np.asarray(relations(Evidence(*(getattr(found, name)[:, None] for name in fields)), MARGIN))[:, 0]
