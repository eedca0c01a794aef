"""Whether a plan can decide anything by its last look. Imports nothing heavy: ``dbdyno plan`` asks."""

from dbdyno.analysis.looks.min_blocks import blocks_needed


def can_decide(blocks: int, comparisons: int) -> bool:
    """Return whether the last look of at most ``blocks`` can decide one of ``comparisons`` under Holm.

    The mean of a large effect can at each look from ``MIN_BLOCKS`` on, however small a level is left for it there.
    """
    return blocks >= blocks_needed(comparisons)
