"""The table of comparisons: one row each, the most interesting first."""

from dataclasses import replace

from dbdyno.analysis.analyse import Analysis
from dbdyno.model.wording import count, p_value
from dbdyno.report.document import Abridged, Block, Cell, Paragraph, Section, Table
from dbdyno.report.sentences import Versus, by_interest, effect_text
from dbdyno.report.source import Source, marked
from dbdyno.report.why import short_reason

ROWS_MAX = 8  # where a reader has ten seconds


def section(source: Source) -> Section:
    """Return the table; a report in brief has the first rows of a long one."""
    whole = comparisons(source.analysis, marked("comparison", source.run))
    if not whole.rows:
        return Section("comparisons", "")
    left = len(whole.rows) - ROWS_MAX
    more = (Paragraph(f"{count(left, 'more comparison')} with --details.", "soft"),) if left > 0 else ()
    short: tuple[Block, ...] = (replace(whole, rows=whole.rows[:ROWS_MAX]), *more)
    if source.safety is not None:  # whose table has the speed of each
        short = ()
    return Section("comparisons", "", (Abridged((whole,), (whole,), short),), opening=True)


def comparisons(analysis: Analysis, what: str = "comparison") -> Table:
    """Return one row per planned comparison, which is ``what`` they are called; the effect is one of the metric."""
    headings = (what, "verdict", f"{analysis.metric.heading} (95 % interval)", "p", "because")
    rows = tuple(_row(one, analysis) for one in by_interest(analysis.verdicts, analysis))
    return Table("Comparisons", headings, rows, words=(1, 4))


def _row(one: Versus, analysis: Analysis) -> tuple[str | Cell, ...]:
    verdict = one.verdict
    p = p_value(verdict.p_adjusted).removeprefix("p ").removeprefix("= ")
    word = Cell(verdict.verdict, tone=verdict.verdict)
    return (one.name, word, effect_text(verdict.effect), p, short_reason(verdict, analysis))
