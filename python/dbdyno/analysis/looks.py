"""How often the data are looked at before the last block. Imports nothing heavy, so that ``dbdyno plan`` may ask."""

import math

from dbdyno.analysis.min_blocks import ALPHA, smallest_p

LOOKS = (6, 10, 15, 20, 30, 40)  # blocks; a longer plan goes on in steps of 20
STEP_BEYOND = 20
FIRST_DECIDING = 8  # blocks: with fewer the exact tests reach next to nothing, so the look at 6 only tells the spread


def planned_looks(blocks: int) -> tuple[int, ...]:
    """Return the numbers of blocks at which a design of at most ``blocks`` is looked at; the last is ``blocks``."""
    beyond = range(LOOKS[-1] + STEP_BEYOND, blocks, STEP_BEYOND)
    return (*(look for look in (*LOOKS, *beyond) if look < blocks), blocks)


def deciding_looks(blocks: int) -> tuple[int, ...]:
    """Return those looks of a design of at most ``blocks`` that can decide anything."""
    return tuple(look for look in planned_looks(blocks) if look >= FIRST_DECIDING or look == blocks)


def can_decide(blocks: int, comparisons: int) -> bool:
    """Return whether the last look of at most ``blocks`` can decide one of ``comparisons`` under Holm.

    Its nominal level is at least what is left to be spent there, the whole where no look before it can decide. Only
    where that is not plainly enough is the level computed, which takes scipy.
    """
    *_, before, now = (0, *deciding_looks(blocks))
    alpha, best = ALPHA / max(comparisons, 1), smallest_p(blocks)
    left = 1 - math.log1p((math.e - 1) * before / now)  # of Pocock's spending, see ``sequential``
    if best <= alpha * left or best > alpha:
        return best <= alpha
    from dbdyno.analysis.sequential import Looks, nominal_level

    return best <= nominal_level(Looks(planned_looks(blocks), blocks), alpha)
