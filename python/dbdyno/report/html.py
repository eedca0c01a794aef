"""The report as one HTML file that needs no network: charts as inline SVG, time series drawn by uPlot."""

import base64
import functools
import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from dbdyno.analysis.analyse import Analysis
from dbdyno.analysis.ranking import Ranking
from dbdyno.analysis.verdict import Verdict
from dbdyno.analysis.wording import margin_text
from dbdyno.clean import glued
from dbdyno.report import (
    block_layer,
    cells,
    disturbed,
    every_pair,
    factors,
    forest,
    interaction,
    palette,
    reported,
    screened,
    steadiness,
    strip,
    tool_figures,
)
from dbdyno.report.aa import noise_floor_card
from dbdyno.report.contents import with_contents
from dbdyno.report.cost import cost_headings, cost_lines, cost_rows
from dbdyno.report.letters import letters_line
from dbdyno.report.observed import settings
from dbdyno.report.palette import treatment_class, treatment_dash, treatment_swatch
from dbdyno.report.panels import FOLDED
from dbdyno.report.ranking import ranking_heading, ranking_headings, ranking_notes, ranking_rows
from dbdyno.report.reproduce import how_to_reproduce
from dbdyno.report.sentences import (
    Sentence,
    evidence,
    failure_lines,
    no_verdict,
    note_lines,
    remarks,
    table_headings,
    table_rows,
    verdict_sentence,
)
from dbdyno.report.stability import stability_rows
from dbdyno.report.stopped import blocks_used, interval_words, stopped_lines
from dbdyno.report.timeseries import Drawn, Series, drawn_panels, figures, payload, phase_starts
from dbdyno.report.vega import at_any_width
from dbdyno.report.why import explanation
from dbdyno.report.why_table import time_rows
from dbdyno.store.records import Run

ASSETS = Path(__file__).parent / "assets"
_SCRIPTS = ("guard.js", "uplot/uPlot.iife.min.js", "report.js")
_STYLES = ("uplot/uPlot.min.css", "report.css")
Charts = list[tuple[str, Markup]]


def render(run: Run, analysis: Analysis, series: Series) -> str:
    """Return the whole page. All texts of ``run`` are untrusted and escaped; nothing is loaded from anywhere.

    ``series`` maps trial id -> series name -> column -> samples, the column ``t_s`` being seconds from the start of
    measuring. Trials without series are left out of the time charts.
    """
    drawn = drawn_panels(run, analysis, series)
    observed = settings(analysis)
    screened_headings, screened_rows = screened.screened_table(analysis)
    page = (
        environment()
        .get_template("report.html.j2")
        .render(
            **frame(run.title, _data(run, analysis, drawn)),
            run=run,
            analysis=analysis,
            verdicts=told(analysis.verdicts, analysis),
            every_pair=told(analysis.every_pair, analysis),
            every_pair_heading=every_pair.HEADING,
            every_pair_note=every_pair.every_pair_note(analysis),
            **ranking_parts(analysis.ranking),
            screened_headings=screened_headings,
            screened_rows=screened_rows,
            screened_note=screened.screened_note(analysis),
            margin=margin_text(analysis.margin),
            blocks_used=blocks_used(run, analysis),
            stopped=stopped_lines(run, analysis),
            interval=interval_words(analysis),
            no_verdict=no_verdict(),
            forest=effect_charts(analysis),
            factors={
                "whole_plots": factors.whole_plots_line(run.design),
                "main_effects": factors.main_effects(analysis),
                "interactions": factors.interactions(analysis),
                "charts": _at_any_width(interaction.charts(analysis), interaction.charts(analysis, narrow=True)),
            },
            headings=table_headings(analysis),
            rows=list(zip(table_rows(analysis), legend(run), strict=True)),
            letters_line=letters_line(analysis),
            legend=legend(run),
            drawn=drawn,
            folded=FOLDED,
            figures=figures(drawn, {treatment.id: treatment.label for treatment in run.design.treatments}),
            noise=noise_floor_card(analysis),
            stability_rows=stability_rows(analysis),
            block_layer={
                "heading": block_layer.HEADING,
                "headings": block_layer.HEADINGS,
                "rows": block_layer.block_layer_rows(analysis),
                "shortcomings": block_layer.block_layer_shortcomings(analysis),
            },
            tool_figures={
                "heading": tool_figures.HEADING,
                "headings": tool_figures.figure_headings(analysis),
                "rows": tool_figures.figure_rows(analysis),
            },
            time_rows=time_rows(analysis),
            cost={"headings": cost_headings(analysis), "rows": cost_rows(analysis), "lines": cost_lines(analysis)},
            **_reported(run, analysis),
            **_steadiness(analysis),
            cells=cells.cells(analysis),
            cells_heading=cells.HEADING,
            cells_note=cells.NOTE,
            strip=_strip(run, analysis),
            failures=failure_lines(run),
            disturbed_heading=disturbed.HEADING,
            disturbed=disturbed.disturbed_lines(run, analysis),
            disturbed_summary=disturbed.disturbed_summary(run, analysis),
            notes=note_lines(run, analysis),
            observed_headings=["setting", *(row.label for row in analysis.treatments if row.n)],
            differing=[(setting.name, *setting.values) for setting in observed if setting.differs],
            same=[(setting.name, setting.values[0]) for setting in observed if not setting.differs],
            reproduce=how_to_reproduce(run),
        )
    )
    return with_contents(page)


def environment() -> Environment:
    """Return the templates; every text that is put into one is escaped."""
    found = Environment(
        loader=FileSystemLoader(ASSETS),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.filters["glued"] = functools.partial(glued, labels=False)  # a page is narrow: labels may break
    return found


def frame(title: str, series: dict[str, Any]) -> dict[str, Any]:
    """Return what every page has around its content: styles and scripts, which are our own files, and their data."""
    script = _joined(_SCRIPTS)
    return {
        "title": title,
        "series": series,
        "style": Markup(f"{palette.style()}\n{_joined(_STYLES)}"),  # noqa: S704 - our own files
        "script": Markup(script),  # noqa: S704 - our own files
        "script_hash": _csp_hash(script),
    }


def effect_charts(analysis: Analysis) -> list[tuple[str, Markup]]:
    """Return (caption, chart at any width) of the effects."""
    return _at_any_width(forest.charts(analysis), forest.charts(analysis, narrow=True))


def _at_any_width(wide: Charts, narrow: Charts) -> Charts:
    return [(caption, at_any_width(one, other)) for (caption, one), (_, other) in zip(wide, narrow, strict=True)]


def _strip(run: Run, analysis: Analysis) -> Markup | None:
    wide, narrow = strip.chart(run, analysis), strip.chart(run, analysis, narrow=True)
    return at_any_width(wide, narrow) if wide and narrow else None


def told(verdicts: Sequence[Verdict], analysis: Analysis) -> list[tuple[Verdict, Sentence, list[str], list[str]]]:
    """Return what a page says of each verdict."""
    return [
        (
            verdict,
            verdict_sentence(verdict, analysis),
            [text for text in (evidence(verdict), explanation(verdict, analysis)) if text],
            remarks(verdict, analysis),
        )
        for verdict in verdicts
    ]


def _steadiness(analysis: Analysis) -> dict[str, Any]:
    verdicts = analysis.steadiness.verdicts if analysis.steadiness else []
    return {
        "steadiness": list(zip(steadiness.steadiness_sentences(analysis), verdicts, strict=True)),
        "steadiness_heading": steadiness.HEADING,
        "steadiness_headings": steadiness.steadiness_headings(),
        "steadiness_rows": steadiness.steadiness_rows(analysis),
        "steadiness_note": steadiness.NOTE,
    }


def _reported(run: Run, analysis: Analysis) -> dict[str, Any]:
    return {
        "expected": reported.expected_line(run.expect),
        "reported_heading": reported.HEADING,
        "reported": [
            {
                "source": reported.source_lines(each),
                "headings": reported.table_headings(each),
                "rows": reported.table_rows(each),
                "summary": reported.summary_line(each),
                "claims": [reported.claim_line(claim, each) for claim in each.claims],
                "reason": reported.reason_line(each),
            }
            for each in analysis.beside
        ],
    }


def ranking_parts(ranking: Ranking | None) -> dict[str, Any]:
    """Return what the page shows of a ranking."""
    if ranking is None:
        return {"ranking": None}
    return {
        "ranking": ranking,
        "ranking_heading": ranking_heading(ranking),
        "ranking_headings": ranking_headings(ranking),
        "ranking_rows": ranking_rows(ranking),
        "ranking_notes": ranking_notes(ranking),
    }


@functools.cache
def _joined(names: Sequence[str]) -> str:
    return "\n".join((ASSETS / name).read_text(encoding="utf-8").strip() for name in names) + "\n"


def _csp_hash(script: str) -> str:
    """Return what lets a browser run this script and no other: the policy's hash of its text."""
    return f"sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode('ascii')}"


def legend(run: Run) -> list[dict[str, Any]]:
    """Return each treatment's label, and how its line is drawn."""
    return [
        {
            "label": treatment.label,
            "class": treatment_class(place),
            "swatch": treatment_swatch(place),
            "dash": list(treatment_dash(place)),
        }
        for place, treatment in enumerate(run.design.treatments)
    ]


def _data(run: Run, analysis: Analysis, drawn: list[Drawn]) -> dict[str, Any]:
    places = {treatment.id: place for place, treatment in enumerate(run.design.treatments)}
    phases = [{**phase, "treatment": places[phase["treatment"]]} for phase in phase_starts(analysis)]
    return {"treatments": legend(run), "panels": [payload(panel, places) for panel in drawn], "phases": phases}
