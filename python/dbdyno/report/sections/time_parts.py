"""Where an event's time goes in each treatment, as bars with their figures."""

from dbdyno.analysis.analyse import Analysis
from dbdyno.analysis.explanation import PARTS
from dbdyno.report.amounts import duration
from dbdyno.report.document import Abridged, Block, Paragraph, Section, Table
from dbdyno.report.source import Source
from dbdyno.report.why import PART_NAMES, why_json

SEEN = 1e-3  # of the longest bar: what is less in all treatments is left out
NOTE = (
    "Means over trials, per query (per event if an event is several queries); parts add up to the mean latency. Server"
    " CPU and reads are counted for each; flushes and other writes are the time during which one was in flight while"
    " the query was, so they are at most what is waited for. Waits that were not measured: other locks, waiting for"
    " a processor, network, the client."
)


def section(source: Source) -> Section:
    """Return a bar for each treatment whose time is known."""
    analysis = source.analysis
    shown: tuple[Block, ...] = ()
    if analysis.why.treatments:
        shown = (time_table(analysis), Abridged((Paragraph(NOTE, "soft"),)))
    return Section("time", "Time by part", shown, data={"why": why_json(analysis)})


def time_table(analysis: Analysis) -> Table:
    """Return one row per treatment whose time is known; a part that is next to nothing in all has no column."""
    treatments = analysis.why.treatments
    longest = max(treatment.figures["latency_ms"] for treatment in treatments)
    parts = [
        name for name in PARTS if any(treatment.figures.get(name, 0.0) >= SEEN * longest for treatment in treatments)
    ]
    rows = []
    for treatment in treatments:
        known = (duration(treatment.figures[name]) if name in treatment.figures else "unknown" for name in parts)
        rows.append((treatment.label, duration(treatment.figures["latency_ms"]), *known))
    return Table(
        "Time of a query, by part",
        ("treatment", "mean latency", *(PART_NAMES[name] for name in parts)),
        tuple(rows),
        parts=tuple(name.removesuffix("_ms") for name in parts),
        shares=tuple(
            tuple(100 * treatment.figures.get(name, 0.0) / longest for name in parts) for treatment in treatments
        ),
    )
