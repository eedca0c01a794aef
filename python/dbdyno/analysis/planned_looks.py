"""How often the data are looked at before the last block. Imports nothing heavy, so that ``dbdyno plan`` may ask."""

import math

from dbdyno.model.design import ALPHA, MIN_BLOCKS

LOOKS = (6, 7, 8, *range(10, 41, 2))  # blocks; a longer plan goes on in steps of 20
STEP_BEYOND = 20
FIRST_DECIDING = 6  # blocks: the fewest in which the mean can show a large effect
FIRST_BY_RANKS = 8  # blocks: with fewer the signed rank reaches next to nothing of its share at a look
FIRST_EQUIVALENT = 10  # blocks: fewer see too little of rare stalls to say that two treatments are alike


def planned_looks(blocks: int) -> tuple[int, ...]:
    """Return the numbers of blocks at which a design of at most ``blocks`` is looked at; the last is ``blocks``."""
    beyond = range(LOOKS[-1] + STEP_BEYOND, blocks, STEP_BEYOND)
    return (*(look for look in (*LOOKS, *beyond) if look < blocks), blocks)


# Mean number of blocks to a verdict on one comparison of a plan of 40, by the spread of its log ratio (SD over the log
# margin): where nothing differs, and where the effect is two margins. By ``benches.honesty.designs.sequential``, 1,500
# studies each, seed 20261128.
SPREADS = (0.25, 0.5, 0.75, 1.0, 1.25, 1.5)
BLOCKS_WHERE_ALIKE = (9.9, 10.0, 10.4, 12.5, 17.2, 23.4)
BLOCKS_AT_TWO_MARGINS = (6.0, 6.0, 6.3, 7.0, 8.0, 9.3)


def likely_blocks(spread: float, margin: float) -> tuple[int, int] | None:
    """Return about how many blocks a comparison takes: of two that are alike, of two that differ by two margins.

    ``spread`` is the standard deviation of the log ratio of two trials of a block, ``margin`` .03 for 3 %. None where
    the spread is so large that half of such studies reach their last look or end there undecided.
    """
    size = spread / math.log1p(margin)
    if size > SPREADS[-1]:
        return None
    alike, apart = (_between(size, blocks) for blocks in (BLOCKS_WHERE_ALIKE, BLOCKS_AT_TWO_MARGINS))
    return alike, apart


def _between(size: float, blocks: tuple[float, ...]) -> int:
    """Return the blocks of a spread between two that were simulated, in proportion."""
    place = max(1, next(at for at, spread in enumerate(SPREADS) if spread >= size))
    low, high = SPREADS[place - 1], SPREADS[place]
    share = min(1.0, max(0.0, (size - low) / (high - low)))
    return math.ceil(blocks[place - 1] + share * (blocks[place] - blocks[place - 1]))


# How few blocks can decide anything at all.
#
# Two rules can call a comparison different. The p of the signed rank has a smallest possible value; that of the mean of
# a large effect (``large_effects``) has none once there are ``MIN_BLOCKS`` blocks. So that many blocks can decide any
# number of comparisons, if effects are large enough.


RANKS_OF_ONE_LOOK = 0.9  # what the signed rank has of the error allowed at a single look; the mean has the rest


def smallest_p(blocks: int) -> float:
    """Return the smallest p that so many blocks can show, looked at once: that of a large effect has no least value."""
    return 0.0 if blocks >= MIN_BLOCKS else smallest_p_by_ranks(blocks)


def smallest_p_by_ranks(blocks: int) -> float:
    """Return the smallest two-sided p of the exact signed-rank test: 2 of the 2^n sign patterns, and its share."""
    return min(1.0, 2.0 ** (1 - blocks) / RANKS_OF_ONE_LOOK)


def blocks_by_ranks(comparisons: int) -> int:
    """Return the fewest blocks with which the signed rank decides one of ``comparisons`` under Holm.

    Its smallest p is multiplied by the number of comparisons. A large effect is decided with ``MIN_BLOCKS``.
    """
    return max(MIN_BLOCKS, math.ceil(1 + math.log2(max(comparisons, 1) / (RANKS_OF_ONE_LOOK * ALPHA))))
