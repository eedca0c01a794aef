"""How few blocks can decide anything at all. Imports nothing heavy, so that ``dbdyno plan`` may ask.

Two rules can call a comparison different. The p of the signed rank has a smallest possible value; that of the mean of
a large effect (``large_effects``) has none once there are ``MIN_BLOCKS`` blocks. So that many blocks can decide any
number of comparisons, if effects are large enough.
"""

import math

from dbdyno.model.design import ALPHA, MIN_BLOCKS

RANKS_OF_ONE_LOOK = 0.9  # what the signed rank has of the error allowed at a single look; the mean has the rest


def smallest_p(blocks: int) -> float:
    """Return the smallest p that so many blocks can show, looked at once: that of a large effect has no least value."""
    return 0.0 if blocks >= MIN_BLOCKS else smallest_p_by_ranks(blocks)


def smallest_p_by_ranks(blocks: int) -> float:
    """Return the smallest two-sided p of the exact signed-rank test: 2 of the 2^n sign patterns, and its share."""
    return min(1.0, 2.0 ** (1 - blocks) / RANKS_OF_ONE_LOOK)


def blocks_by_ranks(comparisons: int, alpha: float = ALPHA) -> int:
    """Return the fewest blocks with which the signed rank decides one of ``comparisons`` under Holm.

    Its smallest p is multiplied by the number of comparisons. A large effect is decided with ``MIN_BLOCKS``.
    """
    return max(MIN_BLOCKS, math.ceil(1 + math.log2(max(comparisons, 1) / (RANKS_OF_ONE_LOOK * alpha))))
