"""Doubts: other log ratios for which a word must hold as well, because those measured may mislead.

Where the word is another one with them, it is withheld: the comparison is undecided, for the cause the doubt names.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from dbdyno.analysis.statistics.arrays import Floats
from dbdyno.analysis.verdict.evidence import Evidence, Relation, Rule, evidence, relations
from dbdyno.analysis.verdict.reasons import Cause


@dataclass(frozen=True)
class Doubt:
    """Log ratios as they might have been, shape (any number of blocks,), and the cause if they change the word."""

    d: Floats
    cause: Cause


def both(one: Evidence, other: Evidence) -> Evidence:
    """Return what can be said only if both say it; estimates are those of ``one``."""
    return replace(
        one,
        low=np.minimum(one.low, other.low),
        high=np.maximum(one.high, other.high),
        p=np.maximum(one.p, other.p),
        p_equivalence=np.maximum(one.p_equivalence, other.p_equivalence),
    )


def cause_to_withhold(  # noqa: PLR0913, PLR0917  (a comparison of a family, and how it is judged)
    family: Evidence, place: int, doubts: Sequence[Doubt], rule: Rule, margin: float, unit: float
) -> Cause | None:
    """Return why the word of one comparison of a family, at ``place``, is withheld; ``None`` where it stands.

    ``rule`` is that of the blocks measured: what is added to them has not been looked at more often.
    ``unit`` is the step of coarse figures, see ``evidence``.
    """
    word = relations(family, margin)[place]
    if word == Relation.UNDECIDED:
        return None
    each = [family.at(one) for one in range(len(family.p))]
    for doubt in doubts:
        doubted = both(each[place], evidence(doubt.d, rule, margin, unit=unit))
        if relations(Evidence.of_each([*each[:place], doubted, *each[place + 1 :]]), margin)[place] != word:
            return doubt.cause
    return None
