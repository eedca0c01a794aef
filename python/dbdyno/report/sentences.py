"""What every report says in words: one sentence per verdict, the headings of the table, failures, cost."""

import math
from dataclasses import dataclass

from dbdyno.analysis.analyse import Analysis
from dbdyno.analysis.estimate import Estimate
from dbdyno.analysis.metrics import metric, number
from dbdyno.analysis.summary import TreatmentSummary
from dbdyno.analysis.verdict import Verdict
from dbdyno.analysis.wording import UNKNOWN, count, margin_text, p_value, percent, percent_range, times
from dbdyno.report.disturbed import others_lines
from dbdyno.report.filesystems import filesystem_lines
from dbdyno.report.letters import LETTERS_HEADING, has_letters
from dbdyno.report.overhead import overhead_lines
from dbdyno.report.running import running_lines
from dbdyno.report.smart import smart_lines
from dbdyno.report.stability import regime_remarks
from dbdyno.store.records import Run

RATES = ("queries_per_second", "events_per_second", "rows_per_second")
_OWN_COLUMN = ("seconds_real", "latency_ms_p99")  # which the table has anyhow


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
        f"{percent(effect.value)} {analysis.metric.words}{times(effect.value)}"
        f" (95 % interval {percent_range(effect.low, effect.high)}, {count(verdict.blocks, 'block')},"
        f" {p_value(verdict.p_adjusted)})"
    )


def evidence(verdict: Verdict) -> str:
    """Return the reason as a sentence of its own; empty where the verdict's sentence already says it."""
    return "" if verdict.verdict == "not comparable" else f"{verdict.reason[0].upper()}{verdict.reason[1:]}."


def remarks(verdict: Verdict, analysis: Analysis) -> list[str]:
    """Return what must be known beside a verdict: that either treatment fell behind its rate or changed its regime."""
    compared = (verdict.level_id, verdict.baseline_id)
    behind = [text for row in analysis.treatments if row.id in compared and (text := overload_text(row))]
    return [*behind, *regime_remarks(analysis, compared)]


def overload_text(row: TreatmentSummary) -> str:
    """Return that a treatment fell behind an open loop's rate, and what its latencies are then; else nothing."""
    found = row.overload
    if found is None:
        return ""
    where = "" if found.trials == found.of else f" in {found.trials} of {count(found.of, 'trial')}"
    offered, achieved = _per_second(found.offered_per_second), _per_second(found.achieved_per_second)
    return (
        f"{row.label} was offered {offered}, achieved {achieved}{where}: the queue grew to {found.backlog_max:,};"
        " latencies are those of an overloaded server."
    )


def _per_second(rate: float) -> str:
    return f"{rate:,.0f}/s" if rate >= 100 else f"{rate:.3g}/s"  # noqa: PLR2004 - three digits either way


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


def table_headings(analysis: Analysis) -> tuple[str, ...]:
    """Return the headings of the table; the rate is what verdicts are about, else that of queries."""
    name = _rate(analysis)
    heading = analysis.metric.heading if name == analysis.metric.name else metric(name).heading if name else ""
    rate = (heading,) if name else ()
    seconds = ("min s", "avg s", "max s", "client real/user/sys s")
    letters = (LETTERS_HEADING,) if has_letters(analysis) else ()
    return ("level", "trials", *seconds, *rate, "p99 ms", "effect (95 % interval)", *letters)


def _rate(analysis: Analysis) -> str:
    """Return what stands in the column of rates; empty where the load had no queries and the metric its own column."""
    name = analysis.metric.name
    if name in RATES:
        return name
    if any(math.isfinite(row.queries_per_second) for row in analysis.treatments):
        return RATES[0]
    return "" if name in _OWN_COLUMN else name


def table_rows(analysis: Analysis) -> list[tuple[str, ...]]:
    """Return the table in the shape people post, one row of texts per treatment, as ``table_headings``."""
    name = _rate(analysis)
    rows = [
        _row(row, [getattr(row, name) if name in RATES else row.metric_mean] if name else [])
        for row in analysis.treatments
    ]
    if not has_letters(analysis):
        return rows
    letters = analysis.ties.letters
    return [(*cells, letters.get(row.id) or "-") for cells, row in zip(rows, analysis.treatments, strict=True)]


def _row(row: TreatmentSummary, rate: list[float]) -> tuple[str, ...]:
    return (
        f"{row.label} (dropped)" if row.dropped else row.label,
        str(row.n),
        number(row.seconds_real_min),
        number(row.seconds_real_mean),
        number(row.seconds_real_max),
        client_text(row.seconds_real_mean, row.seconds_user, row.seconds_sys),
        *map(number, rate),
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
    compared = {id_ for verdict in analysis.verdicts for id_ in (verdict.level_id, verdict.baseline_id)}
    behind = [overload_text(row) for row in analysis.treatments if row.id not in compared and row.overload]
    of_the_host = [
        *running_lines(run),
        *filesystem_lines(run),
        *others_lines(run, analysis),
        *smart_lines(run),
        *overhead_lines(run),
    ]
    return [*run.notes, *behind, *analysis.notes, *of_the_host]
