"""A report as one HTML file that needs no network: charts are inline SVG, time series are drawn by uPlot."""

import base64
import functools
import gzip
import hashlib
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from dbdyno.model.printable import glued, html_text, json_text, printable_document
from dbdyno.report import card
from dbdyno.report import document as doc
from dbdyno.report.charts.svg import stylesheet, treatment_swatch
from dbdyno.report.render.json import values
from dbdyno.report.render.markdown import spaced

ASSETS = Path(__file__).parent.parent / "assets"
FOLDED_FROM = 4  # sections with a heading, from which a page folds them
_BEGIN = "begin.js"  # when all the others run
_SCRIPTS = ("guard.js", "uplot/uPlot.iife.min.js", "tables.js", "marks.js", "report.js")
_STYLES = ("uplot/uPlot.min.css", "report.css")
_NO_CHARTS: dict[str, Any] = {"treatments": [], "panels": [], "phases": []}


def render(document: doc.Document, *, home: str = "") -> str:
    """Return the whole page. Every text is untrusted and escaped; nothing is loaded from anywhere.

    What a section draws itself, the SVG of a chart, it has escaped itself. ``home`` is the page of an atlas that leads
    here.
    """
    script = f"{_join_assets((_BEGIN,))}afterFirstPaint(function () {{\n{_join_assets(_SCRIPTS)}}});\n"
    page = _environment().get_template("page.html.j2")
    charts = document.time_charts()
    return page.render(
        document=document,
        home=home,
        card=card.draw(document),
        answer=card.answer(document),
        folded=_foldable(document.sections),
        charts=_NO_CHARTS if charts is None else printable_document(charts),
        style=Markup(f"{stylesheet()}\n{_join_assets(_STYLES)}"),  # noqa: S704 - our own files
        script=Markup(script),  # noqa: S704 - our own files
        script_hash=_csp_hash(script),
        packed=_pack_values(document),
    )


def render_gallery(template: str, script: str, **values: object) -> str:
    """Return a page that is no report, of a template of ours with a script of ours, by the same rules."""
    text = _join_assets((script,))
    return (
        _environment()
        .get_template(template)
        .render(
            **values,
            style=Markup(f"{stylesheet()}\n{_join_assets(('report.css', 'atlas.css'))}"),  # noqa: S704 - our own files
            script=Markup(text),  # noqa: S704 - our own file
            script_hash=_csp_hash(text),
        )
    )


def _pack_values(document: doc.Document) -> str:
    """Return the report's values as gzipped JSON in base64: a few percent of a page's bytes, the same for the same."""
    text = json_text(json.dumps(values(document), ensure_ascii=False, allow_nan=False, separators=(",", ":")))
    return base64.b64encode(gzip.compress(text.encode("utf-8", "replace"), mtime=0)).decode("ascii")


def _foldable(sections: Iterable[doc.Section]) -> list[doc.Section]:
    headed = [section for section in sections if section.heading and (section.blocks or section.summary)]
    return headed if len(headed) >= FOLDED_FROM else []


@functools.cache
def _environment() -> Environment:
    """Return the templates; every text that is put into one is escaped, by one function."""
    environment = Environment(
        loader=FileSystemLoader(ASSETS),
        autoescape=True,
        finalize=_finalize,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"inline": inline, "glued": _glue, "tone": _tone, "drawing": Markup}
    environment.tests |= {"stays_whole": doc.stays_whole}
    environment.globals |= {"draw": _draw, "part": _part, "swatch": treatment_swatch}
    return environment


def _finalize(value: object) -> object:
    return html_text(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _draw(blocks: Iterable[doc.Block], level: int = 2) -> Markup:
    """Return blocks drawn by the macros of their names; a heading is of this level."""
    macros = _environment().get_template("blocks.html.j2").module
    return Markup("").join(getattr(macros, type(block).__name__.lower())(block, level) for block in blocks)


def _part(section: doc.Section, folded: Sequence[doc.Section]) -> Markup:
    """Return a section drawn; in a page that folds, one with a heading is folded until it is asked for."""
    macro: Any = getattr(_environment().get_template("blocks.html.j2").module, "section")  # noqa: B009 - no attribute
    return Markup(macro(section, 2, bool(folded)))  # noqa: S704 - drawn by our own template


def inline(text: doc.Text) -> Markup:
    """Return a text with its words in bold, a verdict's in its own colour."""
    return Markup("").join(map(_piece, doc.pieces(text)))


def _piece(piece: str | doc.Strong) -> Markup:
    if isinstance(piece, str):
        return html_text(spaced(piece, _glue(piece)))
    if piece.tone:
        return Markup('<strong class="word {}">{}</strong>').format(_tone((piece,)), html_text(piece.text))
    return Markup("<strong>{}</strong>").format(html_text(piece.text))


def _glue(text: str) -> str:
    return glued(text, labels=False)  # a page is narrow: labels may break


def _tone(text: doc.Text) -> str:
    """Return the class that has the colour of the first word in bold: of a verdict, its word."""
    tones = [piece.tone for piece in doc.pieces(text) if isinstance(piece, doc.Strong)]
    return tones[0].replace(" ", "-") if tones else ""


@functools.cache
def _join_assets(names: Sequence[str]) -> str:
    return "\n".join((ASSETS / name).read_text(encoding="utf-8").strip() for name in names) + "\n"


def _csp_hash(script: str) -> str:
    """Return what lets a browser run this script and no other: the policy's hash of its text."""
    return f"sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode('ascii')}"
