"""Vega-Lite to inline SVG, without a browser and without anything shipped to the reader."""

import re
from typing import Any

import vl_convert
from markupsafe import Markup

Spec = dict[str, Any]

_GEOMETRY = re.compile(r' (?:d|transform|[xy][12]?)="[^"]*"')
_DIGITS = re.compile(r"(\.\d)\d+")  # a tenth of a pixel is enough
# Vega draws a dot as a path of two arcs; as a circle it takes a third of the bytes, and of 40 blocks there are many.
_DOT = re.compile(r'<path transform="translate\(([-\d.]+),([-\d.]+)\)" d="M([\d.]+),0A[^"Z]*Z?"')
_FILLED = r'<circle cx="([-\d.]+)" cy="([-\d.]+)" r="([\d.]+)" fill="([^"]+)"(?: opacity="([\d.]+)")?/>'
_MANY_DOTS = re.compile(f"(?:{re.sub(r'[(](?![?])', '(?:', _FILLED)}){{8,}}")
# The chart as a whole has a label: what Vega says of its parts would only be read beside it.
_SILENT = re.compile(
    r' pointer-events="none"| opacity="1"|(?<=") stroke-width="2"(?= opacity|/>)| (?:role|aria-\w+)="[^"]*"'
    r'|<path class="(?:fore|back)ground"[^>]*/>'
)

# ``currentColor`` lets one SVG follow the page between light and dark.
CONFIG: Spec = {
    "aria": False,  # a label per mark would double the size; the chart as a whole has one
    "background": None,
    "font": "system-ui, sans-serif",
    "view": {"stroke": None},
    "axis": {
        "domainColor": "currentColor",
        "domainOpacity": 0.35,
        "gridColor": "currentColor",
        "gridOpacity": 0.1,
        "labelColor": "currentColor",
        "labelFontSize": 12,
        "labelLimit": 420,
        "tickColor": "currentColor",
        "tickOpacity": 0.35,
        "titleColor": "currentColor",
        "titleFontSize": 12,
        "titleFontWeight": "normal",
    },
    "text": {"color": "currentColor", "fontSize": 12},
}


def inline_svg(spec: Spec, label: str) -> Markup:
    """Return the chart as SVG to put into a page, scaled to its column, with ``label`` for those who cannot see it.

    Texts in ``spec`` are data, never expressions: Vega escapes them.
    """
    svg = vl_convert.vegalite_to_svg({"config": CONFIG, **spec}, vl_version="5.20")
    svg = _GEOMETRY.sub(lambda attribute: _DIGITS.sub(r"\1", attribute[0]), svg)
    svg = _SILENT.sub("", _DOT.sub(r'<circle cx="\1" cy="\2" r="\3"', svg))
    svg = _MANY_DOTS.sub(lambda dots: _as_paths(dots[0]), svg)
    start = Markup('<svg role="img" aria-label="{}"').format(label)
    return Markup(svg.replace("<svg", start, 1))  # noqa: S704 - Vega's own output


def _as_paths(dots: str) -> str:
    """Return many filled circles as one path for each look, a round pen set down at every dot: a sixth of the bytes."""
    looks: dict[tuple[str, str, str], list[str]] = {}
    for x, y, radius, colour, opacity in re.findall(_FILLED, dots):
        looks.setdefault((radius, colour, opacity), []).append(f"M{x},{y}h0")
    return "".join(
        f'<path d="{"".join(places)}" stroke="{colour}" stroke-width="{2 * float(radius):.3g}" stroke-linecap="round"'
        + (f' stroke-opacity="{opacity}"/>' if opacity else "/>")
        for (radius, colour, opacity), places in looks.items()
    )


def at_any_width(wide: Markup, narrow: Markup) -> Markup:
    """Return both drawings of a chart, of which a page shows the one that fits: text in an SVG shrinks with it."""
    return Markup('<div class="chart roomy">{}</div><div class="chart tight">{}</div>').format(wide, narrow)
