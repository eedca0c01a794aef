"""Verdicts of every pair, asked for when the figures were there to be seen."""

from dbdyno.model.wording import count
from dbdyno.report.document import Details, List, Section
from dbdyno.report.sections.verdicts import verdict_item, verdict_json
from dbdyno.report.source import Source


def section(source: Source) -> Section:
    """Return the verdicts; none where they were not asked for."""
    analysis = source.analysis
    items = tuple(verdict_item(verdict, analysis) for verdict in analysis.every_pair)
    verdicts = Details("Verdicts", (List(items, "verdicts"),), len(items), open=True)
    values = [{**verdict_json(verdict, analysis), "planned": False} for verdict in analysis.every_pair]
    shown = (verdicts,) if items else ()
    note = (
        f"Not planned: these {count(len(items), 'verdict')} were asked for after the run. Holm's correction goes over"
        " all of them, apart from the planned ones, which are above."
    )
    return Section("every-pair", "Every pair, not planned", shown, note if items else "", {"every_pair": values})
