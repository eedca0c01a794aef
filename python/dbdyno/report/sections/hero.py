"""The picture that a page begins with, chosen by what the study varies: it answers the question by itself."""

from collections.abc import Iterator
from dataclasses import replace

from dbdyno.analysis.analyse import Analysis
from dbdyno.analysis.curves import Curves
from dbdyno.analysis.safety import placed
from dbdyno.model.wording import capital, margin_text, number, percent
from dbdyno.report.charts import bars, curve, forest
from dbdyno.report.charts import safety as plane
from dbdyno.report.crash import many, names_of
from dbdyno.report.document import Abridged, Block, Chart, Details, Paragraph, Section
from dbdyno.report.sections.curve import opening_curve
from dbdyno.report.sections.stopped import interval_words
from dbdyno.report.sentences import by_interest, in_order
from dbdyno.report.source import Source
from dbdyno.report.summaries import is_nothing_decided, line_name

VERSIONS = ("server",)  # the factor whose levels are versions of a server
FEW = 3  # treatments; of fewer, a comparison says as much as bars
MANY = 12  # treatments; of more, bars are too many to read at a glance


def section(source: Source) -> Section | None:
    """Return the picture; below it, folded, every comparison with its blocks where that is another picture."""
    comparisons = _comparisons(source.analysis)
    first = _picture(source)
    if first is None:
        return Section("effect", "", (Abridged(comparisons),)) if comparisons else None
    folded = (Details("Each comparison, with its blocks", comparisons),) if comparisons else ()
    return Section("effect", "", (Abridged((first, *folded)),))


def _picture(source: Source) -> Chart | None:
    """Return what shows more than a chart of comparisons; None where nothing does."""
    analysis = source.analysis
    if (safety := source.safety) is not None:
        points, names = placed(safety, analysis.treatments), names_of(source.run.design.treatments)
        return plane.chart(points, analysis.metric, names, many(safety.mode)) if len(points) > 1 else None
    if (curves := opening_curve(source)) is not None:
        chart = curve.chart(curves, {verdict.baseline_id for verdict in analysis.verdicts})
        return replace(chart, caption=capital(f"{curves.metric.words} by {curves.factor}"))
    return _versions(analysis)


def _versions(analysis: Analysis) -> Chart | None:
    """Return versions of a server as bars, where nothing else varies and all are compared with one of them."""
    rows = [row for row in analysis.treatments if row.metric.known]
    comparisons = in_order(analysis)
    baselines = {comparison.verdict.baseline_id for comparison in comparisons}
    alone = {comparison.factors for comparison in comparisons} == {VERSIONS} and len(baselines) == 1
    findings = {
        comparison.verdict.level_id: comparison.verdict for comparison in comparisons if comparison.verdict.effect.known
    }
    if not alone or not FEW <= len(rows) <= MANY or len(findings) + 1 != len(rows):
        return None
    return bars.chart(rows, findings, analysis.metric)


def _comparisons(analysis: Analysis) -> tuple[Block, ...]:
    """Return the chart of comparisons; folded a close-up of the margin where the whole range hides it."""
    charts = forest.charts(analysis)
    if not charts:
        return ()
    words = interval_words(analysis)
    note = (
        "To the left the figure of each side, a geometric mean over blocks, with its 95 % interval; to the right the"
        f" difference inside blocks: {words.estimate}, with its {words.name}. The margin is"
        f" {margin_text(analysis.margin)}. The axis is logarithmic: twice as fast and half as fast are equally far from"
        " no difference."
    )
    close_up = (Details("Close to the margin", charts[1:]),) if charts[1:] else ()
    return (charts[0], *close_up, Details("More on this chart", (Paragraph(note, "soft"),)))


def figures(source: Source) -> Iterator[tuple[str, str]]:
    """Yield the figures of a summary card, each with what it is, the most important first."""
    analysis = source.analysis
    if (safety := source.safety) is not None:
        names = names_of(source.run.design.treatments)
        for treatment in safety.treatments:
            lost = treatment.tally.lost
            yield f"{lost.seen:,} of {lost.cuts:,}", f"{many(safety.mode)} lost commits: {names.long(treatment.id)}"
        return
    if (curves := opening_curve(source)) is not None and not is_nothing_decided(analysis):
        yield from _knee_figures(curves)
    for versus in by_interest(analysis.verdicts, analysis):
        if versus.verdict.effect.known:
            yield percent(versus.verdict.effect.value), f"{versus.name}: {versus.verdict.verdict}"


def _knee_figures(curves: Curves) -> Iterator[tuple[str, str]]:
    for line in curves.lines:
        if (plateau := line.plateau) and (turn := plateau.turn):
            point = line.points[turn.at]
            where = f", {line_name(line)}" if line.at else ""
            yield point.level, f"{curves.factor} at the knee{where}"
            yield number(point.value.value), f"{curves.metric.heading} there"
