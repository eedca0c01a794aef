"""What a look of a sequential design shows of the comparisons while the run goes on: one short line each.

Only a look that the design plans may show them: who sees effects at other moments is led to end the run at a good one,
which the intervals do not allow for.
"""

from collections.abc import Sequence

from dbdyno.analysis.verdict.finding import Finding
from dbdyno.model.columns import PROGRESS_COLUMNS
from dbdyno.model.design import Treatment
from dbdyno.model.printable import distinguishable
from dbdyno.model.word import Word
from dbdyno.report.sentences import comparisons_named, effect_text

LINES_MAX, INDENT = 6, "  "


def so_far(verdicts: Sequence[Finding], treatments: Sequence[Treatment]) -> list[str]:
    """Return a line per comparison, in the order of the plan, of at most ``PROGRESS_COLUMNS`` characters."""
    shown = comparisons_named(verdicts[:LINES_MAX], treatments)
    lines = []
    for place, comparison in enumerate(shown):
        finding_text = f": {_finding_text(comparison.verdict)}"
        names = distinguishable([each.name for each in shown], PROGRESS_COLUMNS - len(INDENT) - len(finding_text))
        lines.append(f"{INDENT}{names[place]}{finding_text}")
    more = len(verdicts) - LINES_MAX
    return [*lines, *([f"{INDENT}and {more} more"] if more > 0 else [])]


def _finding_text(verdict: Finding) -> str:
    """Return the effect, and the word where there is one: that nothing is decided yet is what goes without saying."""
    if not verdict.effect.known:
        return verdict.verdict
    decided = "" if verdict.verdict == Word.UNDECIDED else f", {verdict.verdict}"
    return f"{effect_text(verdict.effect)}{decided}"
