"""How much too far out an effect is shown where few studies find it, beside what the report says of it."""

from collections.abc import Iterator

import numpy as np
from scipy import special

from benches.honesty.designs import fixed
from benches.honesty.noise import SD, blocked, independent
from benches.honesty.row import Row
from dbdyno.analysis.statistics import exactly_dropped, signed_rank_cdf
from dbdyno.analysis.verdict.evidence import Relation, of_signal

EFFECTS = (0.015, 0.03, 0.045, 0.08)  # log ratios
BLOCKS = 20
TOLERANCE = 0.12  # of a factor


def rows(replicates: int, seed: int) -> list[Row]:
    """Return the mean of what is shown of true effects by studies that call them different, as a factor."""
    return list(_rows(np.random.default_rng(seed), replicates))


def _rows(rng: np.random.Generator, replicates: int) -> Iterator[Row]:
    level = 2 * float(signed_rank_cdf(BLOCKS)[exactly_dropped(signed_rank_cdf(BLOCKS), 0.05)])
    bound = -float(special.ndtri(level / 2))
    for effect in EFFECTS:
        studies = fixed(blocked(rng, independent, replicates, 2, BLOCKS) + effect, BLOCKS)
        found = studies.found[:, 0] == Relation.HIGHER
        shown = float(studies.value[found, 0].mean()) / effect
        expected = of_signal(effect / (np.sqrt(2) * SD / np.sqrt(BLOCKS)), bound)
        what = f"true {100 * np.expm1(effect):.1f} %, {BLOCKS} blocks"
        low, high = expected.factor * (1 - TOLERANCE), expected.factor * (1 + TOLERANCE)
        yield Row("exaggeration: shown / true", what, shown, "x", low, high)
        yield Row("exaggeration: studies that find it", what, 100 * float(found.mean()), "%", None, None)
