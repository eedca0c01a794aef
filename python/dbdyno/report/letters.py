"""The column of tie letters, and what it says."""

from dbdyno.analysis.analyse import Analysis
from dbdyno.analysis.ranking import Ties
from dbdyno.model.design import MIN_BLOCKS
from dbdyno.model.wording import count

LETTERS_HEADING = "ties"


def has_letters(analysis: Analysis) -> bool:
    """Whether the table has the column."""
    return any(analysis.ties.letters.values())


def ties_text(ties: Ties, what: str, words: str) -> str:
    """Return one sentence on the letters of ``what``: "treatments", "stacks"."""
    if not ties.pairs:
        return ""
    if ties.too_few_blocks:
        blocks, pairs = count(ties.too_few_blocks, "block"), count(ties.pairs, "pair")
        return f"No tie letters: {blocks} can show no difference over {pairs}; {MIN_BLOCKS} are needed."
    return (
        f"Ties: {what} that share a letter are those between which no difference in {words} was shown, which is not to"
        " say that they are equivalent."
    )
