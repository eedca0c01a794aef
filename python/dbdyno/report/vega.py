"""Vega-Lite to inline SVG, without a browser and without anything shipped to the reader."""

import re
from typing import Any

import vl_convert
from markupsafe import Markup

Spec = dict[str, Any]

_GEOMETRY = re.compile(r' (?:d|transform|[xy][12]?)="[^"]*"')
_DIGITS = re.compile(r"(\.\d\d)\d+")  # a hundredth of a pixel is enough

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
    start = Markup('<svg role="img" aria-label="{}"').format(label)
    return Markup(svg.replace("<svg", start, 1))  # noqa: S704 - Vega's own output
