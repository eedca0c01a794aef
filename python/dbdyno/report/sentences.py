"""What every report says in words: one sentence per verdict, the headings of the table, failures, cost."""

import math
from dataclasses import dataclass

from dbdyno.analysis.analyse import Analysis
from dbdyno.analysis.estimate import Estimate
from dbdyno.analysis.metrics import number
from dbdyno.analysis.summary import TreatmentSummary
from dbdyno.analysis.verdict import Verdict
from dbdyno.analysis.wording import UNKNOWN, count, margin_text, p_value, percent, percent_range
from dbdyno.report.cost import cost_lines
from dbdyno.store.records import Run

TABLE_HEADINGS = (
    "level",
    "trials",
    "min s",
    "avg s",
    "max s",
    "client real/user/sys s",
    "queries/s",
    "p99 ms",
    "effect (95 % interval)",
)


@dataclass(frozen=True)
class Sentence:
    """A verdict in words, in pieces so that a report may emphasise ``word``."""

    subject: str
    link: str  # between subject and word, spaces included
    word: str
    rest: str

    def __str__(self) -> str:
        """Return the whole sentence."""
        return f"{self.subject}{self.link}{self.word}{self.rest}"


def verdict_sentence(verdict: Verdict, analysis: Analysis) -> Sentence:
    """Return the sentence a reader may quote: word, effect, interval, blocks, p."""
    figures = f": {_figures(verdict, analysis)}"
    match verdict.verdict:
        case "faster" | "slower":
            return Sentence(verdict.level, " is ", verdict.verdict, f" than {verdict.baseline}{figures}.")
        case "equivalent":
            rest = f" to {verdict.baseline} within {margin_text(analysis.margin)}{figures}."
            return Sentence(verdict.level, " is ", verdict.verdict, rest)
        case "undecided":
            return Sentence(f"{verdict.level} against {verdict.baseline}", " is ", verdict.verdict, f"{figures}.")
        case "not comparable":
            return Sentence(verdict.level, " is ", verdict.verdict, f" with {verdict.baseline}: {verdict.reason}.")


def _figures(verdict: Verdict, analysis: Analysis) -> str:
    effect = verdict.effect
    return (
        f"{percent(effect.value)} {analysis.metric.words} (95 % interval {percent_range(effect.low, effect.high)},"
        f" {count(verdict.blocks, 'block')}, {p_value(verdict.p_adjusted)})"
    )


def why(verdict: Verdict) -> str:
    """Return the reason as a sentence of its own; empty where the verdict's sentence already says it."""
    return "" if verdict.verdict == "not comparable" else f"{verdict.reason[0].upper()}{verdict.reason[1:]}."


def no_verdict() -> str:
    """Return what stands in place of the verdicts where nothing was to be compared."""
    return "The study plans no comparison, so there is no verdict."


def effect_text(effect: Estimate, *, is_baseline: bool) -> str:
    """Return ``"+3.1 % (+2.9 to +3.4 %)"``, ``"baseline"`` or ``"unknown"``."""
    if is_baseline:
        return "baseline"
    if not effect.known:
        return UNKNOWN
    interval = percent_range(effect.low, effect.high) if effect.bounded else "interval unknown"
    return f"{percent(effect.value)} ({interval})"


def client_text(real: float, user: float, sys: float) -> str:
    """Return ``"2.03/0.011/0.000"``, with as many digits as ``time`` prints; ``"unknown"`` if none is known."""
    values = ((real, 2), (user, 3), (sys, 3))
    if not any(math.isfinite(value) for value, _ in values):
        return UNKNOWN
    return "/".join(f"{value:,.{digits}f}" if math.isfinite(value) else "-" for value, digits in values)


def table_rows(analysis: Analysis) -> list[tuple[str, ...]]:
    """Return the table in the shape people post, one row of texts per treatment, as ``TABLE_HEADINGS``."""
    return [_row(row) for row in analysis.treatments]


def _row(row: TreatmentSummary) -> tuple[str, ...]:
    return (
        f"{row.label} (dropped)" if row.dropped else row.label,
        str(row.n),
        number(row.seconds_real_min),
        number(row.seconds_real_mean),
        number(row.seconds_real_max),
        client_text(row.seconds_real_mean, row.seconds_user, row.seconds_sys),
        number(row.queries_per_second),
        number(row.latency_ms_p99),
        effect_text(row.effect, is_baseline=row.is_baseline),
    )


def failure_lines(run: Run) -> list[str]:
    """Return one line per failed trial: what, where, why."""
    labels = {treatment.id: treatment.label for treatment in run.design.treatments}
    return [
        f"{failure.id} ({labels.get(failure.treatment, failure.treatment)}, block {failure.block},"
        f" attempt {failure.attempt}): {failure.cause}"
        for failure in run.failures
    ]


def note_lines(run: Run, analysis: Analysis) -> list[str]:
    """Return deviations, what the data say about themselves, and what watching them cost."""
    return [*run.notes, *analysis.notes, *cost_lines(run)]
