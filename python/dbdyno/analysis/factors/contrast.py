"""Contrasts: weighted sums of treatments' ln(metric) inside one block, the weights adding up to 0."""

from collections.abc import Mapping, Sequence

import numpy as np

from dbdyno.analysis.statistics.arrays import Floats
from dbdyno.analysis.verdict.figures import Contrast
from dbdyno.model.treatment import Treatment

NOWHERE: Mapping[str, str] = {}


def effect_of(
    treatments: Sequence[Treatment], factor: str, level: str, baseline: str, at: Mapping[str, str] = NOWHERE
) -> Contrast:
    """Return the mean over treatments at ``level`` less the mean over those at ``baseline``.

    Only treatments that have the levels ``at`` count: none given, it is a main effect; some given, a simple effect.
    """
    there = [treatment for treatment in treatments if at.items() <= treatment.levels.items()]
    above = [treatment.id for treatment in there if treatment.levels[factor] == level]
    below = [treatment.id for treatment in there if treatment.levels[factor] == baseline]
    return {id_: 1 / len(above) for id_ in above} | {id_: -1 / len(below) for id_ in below}


def difference(one: Contrast, other: Contrast) -> Contrast:
    """Return ``one - other``: of two simple effects of one factor, its interaction with the other."""
    return {id_: one.get(id_, 0.0) - other.get(id_, 0.0) for id_ in {**one, **other}}


def weights(contrast: Contrast, treatments: Sequence[Treatment]) -> Floats:
    """Return the weights in the order of ``treatments``: logs of shape (..., treatments) @ weights is the contrast."""
    return np.array([contrast.get(treatment.id, 0.0) for treatment in treatments])
