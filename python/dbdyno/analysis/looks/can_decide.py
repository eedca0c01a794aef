"""Whether a plan can decide anything by its last look. Imports scipy only where it must: ``dbdyno plan`` asks."""

import math

from dbdyno.analysis.looks.min_blocks import smallest_p
from dbdyno.analysis.looks.planned import deciding_looks, planned_looks
from dbdyno.model.design import ALPHA


def can_decide(blocks: int, comparisons: int) -> bool:
    """Return whether the last look of at most ``blocks`` can decide one of ``comparisons`` under Holm.

    Its nominal level is at least what is left to be spent there, the whole where no look before it can decide. Only
    where that is not plainly enough is the level computed, which takes scipy.
    """
    *_, before, now = (0, *deciding_looks(blocks))
    alpha, best = ALPHA / max(comparisons, 1), smallest_p(blocks)
    left = 1 - math.log1p((math.e - 1) * before / now)  # of Pocock's spending, see ``alpha_spending``
    if best <= alpha * left or best > alpha:
        return best <= alpha
    from dbdyno.analysis.looks.alpha_spending import Looks, nominal_level

    return best <= nominal_level(Looks(planned_looks(blocks), blocks), alpha)
