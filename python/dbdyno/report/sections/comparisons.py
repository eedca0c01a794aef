"""The table of comparisons: one row each, the most interesting first."""

from collections.abc import Sequence

from dbdyno.analysis.analyse import Analysis
from dbdyno.model.wording import count, p_value
from dbdyno.report.document import Abridged, Cell, Paragraph, Section, Table
from dbdyno.report.findings import Findings
from dbdyno.report.sentences import effect_text
from dbdyno.report.short_reason import short_reason
from dbdyno.report.versus import Versus, by_interest

ROWS_MAX = 8  # where a reader has ten seconds
_VERDICT, _REASON = 1, 4  # columns


def section(findings: Findings) -> Section:
    """Return the table; a report in brief has the first rows of a long one."""
    analysis = findings.analysis
    rows, headings = comparison_rows(analysis), comparison_headings(analysis)
    if not rows:
        return Section("comparisons", "")

    def table(shown: Sequence[tuple[str, ...]]) -> Table:
        return Table("Comparisons", headings, tuple(map(_toned, shown)), words=(_VERDICT, _REASON))

    left = len(rows) - ROWS_MAX
    more = (Paragraph(f"{count(left, 'more comparison')} with --details.", "soft"),) if left > 0 else ()
    short = (table(rows[:ROWS_MAX]), *more)
    return Section("comparisons", "", (Abridged((table(rows),), (table(rows),), short),), opening=True)


def _toned(row: tuple[str, ...]) -> tuple[str | Cell, ...]:
    return tuple(Cell(cell, tone=cell) if place == _VERDICT else cell for place, cell in enumerate(row))


def comparison_headings(analysis: Analysis) -> tuple[str, ...]:
    """Return the headings; the effect is one of the metric."""
    return ("comparison", "verdict", f"{analysis.metric.heading} (95 % interval)", "p", "because")


def comparison_rows(analysis: Analysis) -> list[tuple[str, ...]]:
    """Return one row of texts per planned comparison, as ``comparison_headings``."""
    return [_row(one, analysis) for one in by_interest(analysis.verdicts, analysis)]


def _row(one: Versus, analysis: Analysis) -> tuple[str, ...]:
    verdict = one.verdict
    p = p_value(verdict.p_adjusted).removeprefix("p ").removeprefix("= ")
    effect = effect_text(verdict.effect)
    return (one.name, verdict.verdict, effect, p, short_reason(verdict, analysis))
