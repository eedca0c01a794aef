"""How few blocks can decide anything at all. Imports nothing heavy, so that ``dbdyno plan`` may ask."""

import math

from dbdyno.model.design import ALPHA, MIN_BLOCKS


def smallest_p(blocks: int) -> float:
    """Return the smallest two-sided p of the exact signed-rank test: 2 of the 2^n sign patterns."""
    return min(1.0, 2.0 ** (1 - blocks))


def blocks_needed(comparisons: int, alpha: float = ALPHA) -> int:
    """Return the fewest blocks with which one of ``comparisons`` can be decided under Holm.

    The smallest p is multiplied by the number of comparisons: ``comparisons * 2 / 2^n <= alpha``.
    """
    return max(MIN_BLOCKS, math.ceil(1 + math.log2(max(comparisons, 1) / alpha)))
