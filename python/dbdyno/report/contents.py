"""The report of one run: its sections in order, which is the order of every format."""

from importlib import import_module

from dbdyno.analysis.analyse import Analysis
from dbdyno.report.document import Document, Paragraph, Section
from dbdyno.report.source import Beside, Series, Source
from dbdyno.store.records import Run

SECTIONS = (  # each a file of ``sections/``
    "headline",
    "advice",
    "badges",
    "safety",
    "effects",
    "comparisons",
    "server_defaults",
    "warnings",
    "about",
    "verdicts",
    "fleet",
    "stopped",
    "curve",
    "results",
    "latencies",
    "cells",
    "tool_figures",
    "time_parts",
    "client_hosts",
    "cost",
    "steadiness",
    "reported",
    "factors",
    "ranking",
    "secondary",
    "every_pair",
    "noise_floor",
    "stability",
    "block_layer",
    "over_time",
    "run_order",
    "failures",
    "interference",
    "notes",
    "observed",
    "how_to_read",
    "reproduce",
    "seed",
)


def document(run: Run, analysis: Analysis, series: Series | None = None, *, beside: Beside | None = None) -> Document:
    """Return the whole report of a run; without ``series`` there are no charts over time.

    ``beside`` is what a crash run of the same treatments showed.
    """
    source = Source(run, analysis, series or {}, beside)
    sections = tuple(section for name in SECTIONS if (section := _built(name, source)) is not None)
    question = (Paragraph(run.question, "question"),) if run.question else ()
    return Document(run.title, question, sections, _values(source))


def _built(name: str, source: Source) -> Section | None:
    built: Section | None = import_module(f"dbdyno.report.sections.{name}").section(source)
    return built


def _values(source: Source) -> dict[str, object]:
    """Return what programs read of the run as a whole."""
    run, analysis = source.run, source.analysis
    return {
        "study": run.title,
        "question": run.question,
        "scale": run.scale or None,
        "seed": run.design.seed,
        "settle": run.design.settle or None,
        "ended": run.ended,
        "simulated": run.is_simulated,
        "metric": analysis.metric.name,
        "more_is_better": analysis.metric.more_is_better,
        "margin": analysis.margin,
        "blocks_planned": run.design.blocks,
        "blocks_usable": len(analysis.blocks.trials),
    }
