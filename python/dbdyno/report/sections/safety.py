"""Is it as safe: what each treatment lost in cuts, how much more may be lost, and its speed beside it."""

from dataclasses import asdict
from typing import Any

from dbdyno.analysis.safety import (
    WORDS,
    Cause,
    Control,
    CrashSafety,
    SafeChoice,
    SafetyDifference,
    Share,
    Stratum,
    Tally,
    TreatmentSafety,
)
from dbdyno.model.cut import OUTCOMES, CrashMode
from dbdyno.model.printable import one_line
from dbdyno.model.wording import count, number, p_value, percent, percent_range
from dbdyno.report.crash import (
    INDEPENDENT_SECTORS,
    SHORT,
    TONES,
    WORD,
    Names,
    amount_text,
    chosen,
    doubt_text,
    host_lines,
    host_table,
    hosts_json,
    many,
    model_text,
    names_of,
    share_text,
    stratum_text,
)
from dbdyno.report.document import Abridged, Block, Cell, Details, Paragraph, Section, Table, bullets
from dbdyno.report.source import Source

ROWS_MAX = 7  # where a reader has ten seconds
UNKNOWN = "-"


def section(source: Source) -> Section | None:
    """Return table, picture and details; None of a run without cuts."""
    safety = source.safety
    if safety is None:
        return None
    names = names_of(source.run.design.treatments)
    whole = table(source, safety, names)
    first = _first_rows(safety, source, whole) if (left := len(whole.rows) - ROWS_MAX) > 0 else whole.rows
    more = (Paragraph(f"{count(left, 'more row')} with --details.", "soft"),) if left > 0 else ()
    brief = (Table(whole.caption, whole.headings, first, words=whole.words), *more)
    note = Paragraph(_note(source, safety, names), "soft")
    apart = bullets(host_lines(safety, names))
    blocks: tuple[Block, ...] = (*(Abridged((whole,), (whole,), brief), *apart, note, *_details(safety, names)),)
    data = {"safety": safety_json(safety, chosen(source, safety), source)}
    return Section("safety", _heading(safety), blocks, data=data, opening=True, unfolded=True)


def _heading(safety: CrashSafety) -> str:
    return "Crash safety" if safety.mode == "power" else f"Crash safety: {many(safety.mode)}"


def table(source: Source, safety: CrashSafety, names: Names) -> Table:
    """Return a row for each treatment, and one for the control where it is none of them."""
    rates = {row.id: row.metric_mean for row in source.analysis.treatments}
    headings = (
        *(names.heading, "verdict", "lost in", "at most", "time lost: median, most", "worst seen"),
        *("recovery s", source.analysis.metric.heading),
    )
    rows: list[tuple[str | Cell, ...]] = [
        (
            names.short(treatment.id),
            Cell(WORD[treatment.word], tone=TONES[treatment.word]),
            *_figures(treatment.tally),
            number(rates[treatment.id]),
        )
        for treatment in safety.treatments
    ]
    control = safety.control
    if control is not None and not (control.compared and control.id in rates):
        rows.append((f"control: {names.of_control(control)}", Cell("known to lose"), *_figures(control.tally), UNKNOWN))
    return Table(f"After {many(safety.mode)}", headings, tuple(rows), words=(1, 5))


def _first_rows(safety: CrashSafety, source: Source, whole: Table) -> tuple[tuple[str | Cell, ...], ...]:
    """Return the rows that matter most: the safest words first, of each the fastest; the worst word in any case."""
    sign = -1 if source.analysis.metric.more_is_better else 1
    speed = {row.id: sign * row.metric_mean for row in source.analysis.treatments}
    order = sorted(
        range(len(safety.treatments)),
        key=lambda at: (WORDS.index(safety.treatments[at].word), speed[safety.treatments[at].id]),
    )
    shown, worst = order[:ROWS_MAX], safety.treatments[order[-1]].word
    if all(safety.treatments[at].word != worst for at in shown):
        shown[-1] = next(at for at in order if safety.treatments[at].word == worst)
    return tuple(whole.rows[at] for at in shown)


def _figures(tally: Tally) -> tuple[str, ...]:
    least = "at least " if tally.limit_reached and tally.lost.seen else ""
    seen = f"{least}{tally.lost.seen:,} of {tally.lost.cuts:,}" if tally.cuts else "no cut"
    recovery = number(tally.recovery_s_median) if tally.recovery_s_median is not None else UNKNOWN
    return seen, share_text(tally.lost.at_most), _tail(tally), SHORT[tally.worst] if tally.cuts else UNKNOWN, recovery


def _tail(tally: Tally) -> str:
    if tally.tail is None:
        return UNKNOWN
    more = " or more" if tally.limit_reached else ""
    return f"{amount_text(tally.tail.ms_median)}, {amount_text(tally.tail.ms_most)}{more}"


def _note(source: Source, safety: CrashSafety, names: Names) -> str:
    """Return how cuts were made, of how many runs, and what the control lost."""
    runs = min((treatment.tally.runs for treatment in safety.treatments if treatment.tally.cuts), default=0)
    parts = [f'{many(safety.mode).capitalize()} are those of "{source.beside.run.title}".'] if source.beside else []
    parts.append(model_text(safety))
    if INDEPENDENT_SECTORS & set(safety.survivors):
        parts.append("Independent sectors tear more than a real drive does.")
    parts.append(f"{count(runs, 'run')} of each treatment.")
    if (control := safety.control) is not None:
        lost = control.tally.lost
        parts.append(
            f"The control ({names.of_control(control)}), known to lose, lost in {lost.seen:,} of {lost.cuts:,}"
            f"{': this load does show losses' if control.doubt is None else ''}."
        )
    return " ".join(parts)


def _details(safety: CrashSafety, names: Names) -> tuple[Block, ...]:
    """Return what a reader may want to check, folded on a page; a report in brief leaves it out."""
    folded = (
        ("Outcomes", (_outcomes(safety, names),)),
        *((("Causes of damage", (causes,)),) if (causes := _causes(safety, names)) else ()),
        ("Bounds", (_bounds(safety, names), Paragraph(_BOUNDS, "soft"))),
        *((("By stratum", (_strata(safety, names),)),) if len(safety.strata) > 1 else ()),
        *((("By host", (host_table(safety, names),)),) if safety.by_host else ()),
        *((("Differences", (_differences(safety, names),)),) if safety.differences else ()),
    )
    full = tuple(Details(summary, blocks) for summary, blocks in folded)
    short = tuple(Section("", summary, blocks) for summary, blocks in folded)
    undecided = _undecided(safety)
    lines = [f"{names.long(treatment.id)}: {doubt_text(treatment.doubts, safety.mode)}." for treatment in undecided]
    doubts = bullets(lines)
    return (Abridged((*doubts, *full), (*doubts, *short), ()),)


_BOUNDS = (
    'Damage is anything worse than losing the newest commits. Bounds are one-sided, 95 %. "At most" is the bound that'
    ' the report uses, by runs: it holds however alike the cuts of one run are. "If independent": Clopper and Pearson'
    ' over cuts. "Independent cuts": the effective number, by the spread between runs (Korn and Graubard).'
)


def _undecided(safety: CrashSafety) -> list[TreatmentSafety]:
    return [treatment for treatment in safety.treatments if treatment.word == "undecided"]


def _outcomes(safety: CrashSafety, names: Names) -> Table:
    headings = (names.heading, "runs", "cuts", *(SHORT[outcome] for outcome in OUTCOMES), "with holes", "most commits")
    rows = []
    for treatment in safety.treatments:
        tally = treatment.tally
        counted = (f"{tally.outcomes[outcome]:,}" for outcome in OUTCOMES)
        most = f"{tally.tail.commits_most:,}" if tally.tail else UNKNOWN
        rows.append((names.short(treatment.id), str(tally.runs), str(tally.cuts), *counted, str(tally.holes), most))
    return Table(f"Outcomes of {many(safety.mode)}, worst first", headings, tuple(rows))


def _causes(safety: CrashSafety, names: Names) -> Table | None:
    rows = tuple(
        (
            names.short(treatment.id),
            SHORT[cause.outcome],
            one_line(cause.text) or UNKNOWN,
            f"{cause.cuts:,}",
            _kept(cause),
        )
        for treatment in safety.treatments
        for cause in treatment.causes
    )
    headings = (names.heading, "found", "cause", "cuts", "example")
    return Table("Causes of damage", headings, rows, words=(1, 2, 4)) if rows else None


def _kept(cause: Cause) -> str:
    return f"{cause.cut} (its state is kept)" if cause.kept else cause.cut


def _bounds(safety: CrashSafety, names: Names) -> Table:
    headings = (
        *(names.heading, "of", "seen", "95 % interval", "at most", "if independent"),
        "independent cuts",
    )
    rows = [
        (names.short(treatment.id), what, *_bound(share))
        for treatment in safety.treatments
        if treatment.tally.cuts
        for what, share in (("any loss", treatment.tally.lost), ("damage", treatment.tally.damage))
    ]
    return Table("Bounds", headings, tuple(rows), words=(1,))


def _bound(share: Share) -> tuple[str, ...]:
    return (
        f"{share.seen:,} of {share.cuts:,} ({share.runs_with} of {share.runs} runs)",
        f"{share_text(share.low)} to {share_text(share.high)}",
        *map(share_text, (share.at_most, share.if_independent)),
        f"{share.effective_cuts:,.0f}",
    )


def _strata(safety: CrashSafety, names: Names) -> Table:
    headings = (
        names.heading,
        "when / what survives",
        "lost in",
        "at most",
        "time lost: median, most",
        "worst seen",
        "recovery s",
    )
    rows = [
        (names.short(treatment.id), stratum_text(stratum), *_figures(tally))
        for treatment in safety.treatments
        for stratum, tally in treatment.strata.items()
    ]
    control = safety.control
    if control is not None and not control.compared:
        rows += [("control", stratum_text(stratum), *_figures(tally)) for stratum, tally in control.strata.items()]
    return Table("By stratum", headings, tuple(rows), words=(1, 5))


_QUESTIONS = {"loss": "how often anything is lost", "damage": "how often worse than that", "amount": "ms lost"}


def _differences(safety: CrashSafety, names: Names) -> Table:
    rows = tuple(
        (
            f"{names.short(difference.level_id)} vs {names.short(difference.baseline_id)}",
            _QUESTIONS[difference.asked],
            difference.found,
            _of_sides(difference),
            p_value(difference.p).removeprefix("p ").removeprefix("= "),
        )
        for difference in safety.differences
    )
    headings = ("comparison", "asked", "found", "figures", "p (Holm)")
    return Table("Differences, tested by runs", headings, rows, words=(1, 2, 3))


def _of_sides(difference: SafetyDifference) -> str:
    if difference.ratio is not None:
        return f"{percent(difference.ratio.value)} ({percent_range(difference.ratio.low, difference.ratio.high)})"
    (level_seen, level_cuts), (baseline_seen, baseline_cuts) = difference.level, difference.baseline
    return f"{level_seen:,} of {level_cuts:,} against {baseline_seen:,} of {baseline_cuts:,}"


def safety_json(safety: CrashSafety, choice: SafeChoice, source: Source) -> dict[str, Any]:
    """Return what cuts showed of all treatments as values."""
    return {
        "mode": safety.mode,
        "run": source.beside.run.title if source.beside else None,
        "at_least": safety.at_least,
        "treatments": [_treatment_json(treatment, safety.mode) for treatment in safety.treatments],
        "control": _control_json(safety.control) if safety.control else None,
        "correlation": asdict(safety.correlation),
        "differences": [asdict(difference) for difference in safety.differences],
        "by_host": hosts_json(safety),
        "pareto": list(choice.pareto),
    }


def _treatment_json(treatment: TreatmentSafety, mode: CrashMode) -> dict[str, Any]:
    return {
        "id": treatment.id,
        "label": treatment.label,
        "verdict": treatment.word,
        "doubts": [doubt_text((doubt,), mode) for doubt in treatment.doubts],
        "runs_failed": treatment.failed,
        "causes": [asdict(cause) for cause in treatment.causes],
        **_tally_json(treatment.tally),
        "strata": _strata_json(treatment.strata),
    }


def _control_json(control: Control) -> dict[str, Any]:
    return {
        "id": control.id,
        "label": control.label,
        "compared": control.compared,
        "enough": control.doubt is None,
        **_tally_json(control.tally),
        "strata": _strata_json(control.strata),
    }


def _strata_json(strata: dict[Stratum, Tally]) -> list[dict[str, Any]]:
    return [{**asdict(stratum), **_tally_json(tally)} for stratum, tally in strata.items()]


def _tally_json(tally: Tally) -> dict[str, Any]:
    return {**asdict(tally), "worst": tally.worst if tally.cuts else None}
