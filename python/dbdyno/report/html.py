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
from dbdyno.report import disturbed, every_pair, factors, forest, interaction, reported, screened, strip
from dbdyno.report.aa import noise_floor_card
from dbdyno.report.clean import glued
from dbdyno.report.letters import letters_line
from dbdyno.report.observed import flattened, settings
from dbdyno.report.palette import VERDICTS, treatment_colour, treatment_dash
from dbdyno.report.ranking import ranking_heading, ranking_headings, ranking_notes, ranking_rows
from dbdyno.report.sentences import (
    Sentence,
    failure_lines,
    no_verdict,
    note_lines,
    remarks,
    table_headings,
    table_rows,
    verdict_sentence,
    why,
)
from dbdyno.report.stability import stability_rows
from dbdyno.report.stopped import blocks_used, interval_words, stopped_lines
from dbdyno.report.timeseries import Drawn, Series, drawn_panels, payload, phase_starts
from dbdyno.report.why import explanation
from dbdyno.report.why_table import time_rows
from dbdyno.store.records import Run

ASSETS = Path(__file__).parent / "assets"
_SCRIPTS = ("guard.js", "uplot/uPlot.iife.min.js", "report.js")
_STYLES = ("uplot/uPlot.min.css", "report.css")


def render(run: Run, analysis: Analysis, series: Series) -> str:
    """Return the whole page. All texts of ``run`` are untrusted and escaped; nothing is loaded from anywhere.

    ``series`` maps trial id -> series name -> column -> samples, the column ``t_s`` being seconds from the start of
    measuring. Trials without series are left out of the time charts.
    """
    environment = Environment(
        loader=FileSystemLoader(ASSETS),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["glued"] = functools.partial(glued, labels=False)  # a page is narrow: labels may break
    drawn = drawn_panels(run, analysis, series)
    script = _joined(_SCRIPTS)
    observed = settings(analysis)
    screened_headings, screened_rows = screened.screened_table(analysis)
    return environment.get_template("report.html.j2").render(
        run=run,
        analysis=analysis,
        verdicts=_told(analysis.verdicts, analysis),
        every_pair=_told(analysis.every_pair, analysis),
        every_pair_heading=every_pair.HEADING,
        every_pair_note=every_pair.every_pair_note(analysis),
        **_ranking(analysis.ranking),
        screened_headings=screened_headings,
        screened_rows=screened_rows,
        screened_note=screened.screened_note(analysis),
        margin=margin_text(analysis.margin),
        blocks_used=blocks_used(run, analysis),
        stopped=stopped_lines(run, analysis),
        interval=interval_words(analysis),
        no_verdict=no_verdict(),
        colours=VERDICTS,
        forest=forest.charts(analysis),
        factors={
            "whole_plots": factors.whole_plots_line(run.design),
            "main_effects": factors.main_effects(analysis),
            "interactions": factors.interactions(analysis),
            "charts": interaction.charts(analysis),
        },
        headings=table_headings(analysis),
        rows=list(zip(table_rows(analysis), _legend(run), strict=True)),
        letters_line=letters_line(analysis),
        legend=_legend(run),
        drawn=drawn,
        noise=noise_floor_card(analysis),
        stability_rows=stability_rows(analysis),
        time_rows=time_rows(analysis),
        **_reported(run, analysis),
        series=_data(run, analysis, drawn),
        strip=strip.chart(run, analysis),
        failures=failure_lines(run),
        disturbed_heading=disturbed.HEADING,
        disturbed=disturbed.disturbed_lines(run, analysis),
        disturbed_summary=disturbed.disturbed_summary(run, analysis),
        notes=note_lines(run, analysis),
        differing=[setting for setting in observed if setting.differs],
        same=[setting for setting in observed if not setting.differs],
        versions=flattened(run.versions),
        host=flattened(run.host),
        style=Markup(_joined(_STYLES)),  # noqa: S704 - our own files
        script=Markup(script),  # noqa: S704 - our own files
        script_hash=_csp_hash(script),
    )


def _told(verdicts: Sequence[Verdict], analysis: Analysis) -> list[tuple[Verdict, Sentence, list[str], list[str]]]:
    return [
        (
            verdict,
            verdict_sentence(verdict, analysis),
            [text for text in (why(verdict), explanation(verdict, analysis)) if text],
            remarks(verdict, analysis),
        )
        for verdict in verdicts
    ]


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


def _ranking(ranking: Ranking | None) -> dict[str, Any]:
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


def _legend(run: Run) -> list[dict[str, Any]]:
    return [
        {"label": treatment.label, "colour": treatment_colour(place), "dash": list(treatment_dash(place))}
        for place, treatment in enumerate(run.design.treatments)
    ]


def _data(run: Run, analysis: Analysis, drawn: list[Drawn]) -> dict[str, Any]:
    places = {treatment.id: place for place, treatment in enumerate(run.design.treatments)}
    phases = [{**phase, "treatment": places[phase["treatment"]]} for phase in phase_starts(analysis)]
    return {"treatments": _legend(run), "panels": [payload(panel, places) for panel in drawn], "phases": phases}
