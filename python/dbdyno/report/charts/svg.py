"""Drawings from a few marks, as SVG that follows the page between light and dark; texts are escaped here.

Coordinates are pixels from the top left; a tenth of one is enough.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from markupsafe import Markup

from dbdyno.model.printable import html_text, one_line
from dbdyno.model.word import Word

INK = "currentColor"
CHARACTER = 7.4  # pixels of a wide font: which one the reader has is unknown
APART = 6  # pixels between two labels
FAINT = "0.1"  # opacity of a grid and of the margin's band
PALE = "0.45"  # opacity of what others are compared with: a baseline, a figure from before
DASHES = "3 3"
LOG_FROM = 8.0  # largest over smallest, from which an axis of amounts is logarithmic
TEXT_BASE = 4  # pixels from the middle of a line of text down to where it stands
Box = tuple[float, float, float, float]  # left, top, right, bottom


@dataclass(frozen=True)
class Scale:
    """Values from ``low`` to ``high`` as pixels from ``start`` to ``end``."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def __call__(self, value: float) -> float:
        """Return where the value stands."""
        low, high, at = (math.log(end) if self.log else end for end in (self.low, self.high, value))
        return self.start + (at - low) / ((high - low) or 1.0) * (self.end - self.start)


def drawing(width: float, height: float, label: str, marks: Iterable[Markup]) -> Markup:
    """Return a whole drawing, with ``label`` for those who cannot see it."""
    return element(
        "svg",
        Markup("").join(marks),
        xmlns="http://www.w3.org/2000/svg",
        role="img",
        aria_label=label,
        width=math.ceil(width),
        height=math.ceil(height),
        viewBox=f"0 0 {math.ceil(width)} {math.ceil(height)}",
        font_family="system-ui, sans-serif",
        font_size=12,
        fill=INK,
    )


def element(name: str, content: str = "", /, **look: str | float | None) -> Markup:
    """Return an element; an attribute that is None is left out, one's ``_`` is SVG's ``-``."""
    attributes = Markup("").join(
        Markup(' {}="{}"').format(key.replace("_", "-"), html_text(_short(value)))
        for key, value in look.items()
        if value is not None
    )
    inner = content if isinstance(content, Markup) else html_text(content)
    ending = Markup(">{}</{}>").format(inner, name) if content else Markup("/>")
    return Markup("<{}{}{}").format(name, attributes, ending)


def _short(value: str | float) -> str:
    return value if isinstance(value, str) else f"{value:.1f}".removesuffix(".0")


def rule(x: tuple[float, float], y: tuple[float, float], **look: str | float) -> Markup:
    """Return a straight line."""
    return element("line", x1=x[0], x2=x[1], y1=y[0], y2=y[1], **{"stroke": INK, **look})


def strokes(lines: Iterable[tuple[float, float, float, float]], **look: str | float) -> Markup:
    """Return straight lines of one look as one path: each from (x, y) on by (dx, dy)."""
    path = "".join(f"M{_short(x)},{_short(y)}l{_short(dx)},{_short(dy)}" for x, y, dx, dy in lines)
    return element("path", d=path, fill="none", **{"stroke": INK, **look})


def whisker(ends: tuple[float, float], y: float, reach: float, **look: str | float) -> Markup:
    """Return an interval that lies across, its ends as uprights that reach so far up and down."""
    (low, high), uprights = ends, ((end, y - reach, 0.0, 2 * reach) for end in ends)
    return strokes([(low, y, high - low, 0.0), *uprights], **{"stroke_width": 1.5, **look})


def band(x: tuple[float, float], y: tuple[float, float]) -> Markup:
    """Return the margin's grey band."""
    (left, right), (top, bottom) = sorted(x), sorted(y)
    return element("rect", x=left, y=top, width=right - left, height=bottom - top, fill_opacity=FAINT)


def dots(  # noqa: PLR0913, PLR0917 - how dots look, and what they say
    places: Sequence[tuple[float, float]],
    radius: float,
    colour: str = INK,
    opacity: str | None = None,
    says: Sequence[str] = (),
    what: str = "",
) -> Markup:
    """Return filled dots of one look as one path, a round pen set down at each: a sixth of the bytes of circles.

    Each ``says`` its own value, and all of them ``what`` they are, for the page's script to show.
    """
    path = "".join(f"M{_short(x)},{_short(y)}h0" for x, y in places)
    values = "|".join(one_line(text).replace("|", "/") for text in says) or None
    title = element("title", one_line(what)) if what else ""
    return element("path", title, d=path, stroke=colour, stroke_width=2 * radius, stroke_linecap="round",
                   stroke_opacity=opacity, data_says=values)  # fmt: skip


def with_title(text: str | Sequence[str], marks: Iterable[Markup]) -> Markup:
    """Return marks with what they say under a pointer: a text, or one of several lines."""
    lines = [text] if isinstance(text, str) else text
    return element("g", Markup("").join([element("title", "\n".join(map(one_line, lines))), *marks]))


def target(x: tuple[float, float], y: tuple[float, float]) -> Markup:
    """Return a place that a pointer meets and nobody sees."""
    return element("rect", x=x[0], y=y[0], width=x[1] - x[0], height=y[1] - y[0], fill="none", pointer_events="all")


def ring(x: float, y: float, radius: float, colour: str) -> Markup:
    """Return a hollow dot."""
    return element("circle", cx=x, cy=y, r=radius, fill="none", stroke=colour, stroke_width=1.5)


def curve(places: Sequence[tuple[float, float]], colour: str, dash: Sequence[int] = ()) -> Markup:
    """Return a line through points."""
    points = " ".join(f"{_short(x)},{_short(y)}" for x, y in places)
    return element("polyline", points=points, fill="none", stroke=colour, stroke_width=2,
                   stroke_dasharray=" ".join(map(str, dash)) or None)  # fmt: skip


def area(places: Sequence[tuple[float, float]], colour: str) -> Markup:
    """Return what lies inside a line around these points, faintly filled."""
    points = " ".join(f"{_short(x)},{_short(y)}" for x, y in places)
    return element("polygon", points=points, fill=colour, fill_opacity="0.15")


def words(x: float, y: float, text: str, **look: str | float) -> Markup:
    """Return a line of text whose middle is at ``y``."""
    return element("text", text, x=x, y=y + TEXT_BASE, **look)


def rim(colour: str) -> dict[str, str | float]:
    """Return the look of text with so coloured a rim, which hides the lines that run below it."""
    return {"stroke": colour, "stroke_width": 4, "stroke_linejoin": "round", "paint_order": "stroke"}


def axis_below(scale: Scale, ticks: Iterable[tuple[float, str]], top: float, bottom: float, title: str) -> list[Markup]:
    """Return a grid, labels below it and a title below them, centred."""
    marks = []
    for value, label in ticks:
        x = scale(value)
        marks += [rule((x, x), (top, bottom), stroke_opacity=FAINT), words(x, bottom + 12, label, text_anchor="middle")]
    marks.append(rule((scale.start, scale.end), (bottom, bottom), stroke_opacity="0.35"))
    return [*marks, words((scale.start + scale.end) / 2, bottom + 30, title, text_anchor="middle")] if title else marks


def axis_beside(
    scale: Scale, ticks: Iterable[tuple[float, str]], left: float, right: float, title: str
) -> list[Markup]:
    """Return a grid, labels to its left and a title turned at their left."""
    marks = []
    for value, label in ticks:
        y = scale(value)
        marks += [rule((left, right), (y, y), stroke_opacity=FAINT), words(left - 6, y, label, text_anchor="end")]
    middle = (scale.start + scale.end) / 2
    return [*marks, words(8, middle, title, text_anchor="middle", transform=f"rotate(-90 8 {middle:.0f})")]


def apart(labels: Iterable[tuple[float, str]], scale: Scale) -> list[tuple[float, str]]:
    """Return labels below an axis, empty where one would touch the one before; the grid has all."""
    shown, end = [], -math.inf
    for value, text in labels:
        half = CHARACTER * len(text) / 2
        fits = scale(value) - half >= end + APART
        shown.append((value, text if fits else ""))
        end = scale(value) + half if fits else end
    return shown


def tick(value: float) -> str:
    """Return the value at a tick as it is written beside it."""
    return f"{value:,.0f}" if abs(value) >= 1e6 else f"{value:,.6g}"  # noqa: PLR2004 - would be an exponent


def scale_ticks(scale: Scale, most: int) -> list[tuple[float, str]]:
    """Return at most so many round values of a scale, as they are written beside it."""
    return [(value, tick(value)) for value in round_ticks(scale.low, scale.high, most, log=scale.log)]


def upright(values: Sequence[float], top: float, bottom: float) -> Scale:
    """Return the scale of amounts that grow upwards: logarithmic if they span much, else from 0."""
    low, high = min(values), max(values)
    if low > 0 and high >= LOG_FROM * low:
        return Scale(low / 1.2, high * 1.2, bottom, top, log=True)
    return Scale(0.0, 1.06 * high or 1.0, bottom, top)


def overlap(first: Box, second: Box) -> bool:
    """Return whether two boxes have a point in common."""
    return first[0] < second[2] and second[0] < first[2] and first[1] < second[3] and second[1] < first[3]


def round_ticks(low: float, high: float, most: int, *, log: bool = False) -> list[float]:
    """Return at most so many round values inside the range; on a logarithmic axis 1, 2 and 5 times powers of ten.

    None of a range that is no range, or beyond all numbers: figures of others may come to that.
    """
    if not (low < high and math.isfinite(high - low)):
        return []
    if log:
        powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
        for steps in ((1, 2, 3, 5, 7), (1, 2, 5), (1, 3), (1,)):
            ticks = [step * 10.0**power for power in powers for step in steps if low <= step * 10.0**power <= high]
            if len(ticks) <= most:
                return ticks
        return ticks
    power = 10.0 ** math.floor(math.log10((high - low) / most))
    step = next(step * power for step in (1, 2, 5, 10, 20) if (high - low) / (step * power) <= most)
    return [place * step for place in range(math.ceil(low / step), math.floor(high / step) + 1)]


# Axes of log ratios.


RATIO_WIDTH = 560  # pixels of such an axis, where nothing else is said
_STEPS = (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 25, 50)  # points between two ticks of an axis in percent
_MANTISSAS = ((1, 2, 3, 4, 5, 7), (1, 2, 5), (1, 3), (1,))  # of the ticks of an axis in times, finest first
_TICKS = 9
LN_TIMES = math.log(2.5)  # an axis that reaches farther to either side is one in times as much, else one in percent
LABEL_GAP = 10  # pixels
_OVER_THE_END = 5  # pixels that a tick's label may reach beyond its axis


def ratio_ticks(low: float, high: float, width: float = RATIO_WIDTH) -> list[tuple[float, str]]:
    """Return log ratios that a person would choose between these ends, with their labels, which have room.

    All are in one language: times as much where the ends are far apart, else percent.
    """
    if max(-low, high) > LN_TIMES:
        powers = range(math.floor(low / math.log(10)) - 1, math.ceil(high / math.log(10)) + 1)
        scales = [[m * 10.0**power for power in powers for m in mantissas] for mantissas in _MANTISSAS]
        choices = ([(math.log(times), f"{times:,.6g}x") for times in multiples] for multiples in scales)
    else:
        choices = (_percent_ticks(step, low, high) for step in _STEPS)
    for choice in choices:
        inside = [ticked for ticked in choice if low <= ticked[0] <= high and _fits_in(ticked, (low, high), width)]
        if len(inside) <= _TICKS and _have_room(inside, width / (high - low)):
            return inside
    return [(0.0, "1x" if max(-low, high) > LN_TIMES else "0 %")]


def _percent_ticks(step: float, low: float, high: float) -> list[tuple[float, str]]:
    first, last = (100 * math.expm1(end) / step for end in (low, high))
    places = range(math.ceil(first), math.floor(last) + 1)
    return [(math.log1p(place * step / 100), f"{place * step:+,.6g} %" if place else "0 %") for place in places]


def _fits_in(ticked: tuple[float, str], ends: tuple[float, float], width: float) -> bool:
    """Return whether a label stays near the axis: what lies beside it has its own place."""
    (value, label), (low, high) = ticked, ends
    room = min(value - low, high - value) * width / (high - low)
    return value == 0 or CHARACTER * len(label) / 2 <= room + _OVER_THE_END


def _have_room(ticked: Sequence[tuple[float, str]], pixels: float) -> bool:
    """Return whether no label touches the next, on an axis with so many pixels for a log ratio of 1."""
    return all(
        (after - before) * pixels >= CHARACTER * (len(label) + len(next_label)) / 2 + LABEL_GAP
        for (before, label), (after, next_label) in pairwise(ticked)
    )


# Colours that stay apart for colour-blind readers, and stand out from a light and from a dark page.
#
# Those of Okabe and Ito (2008), moved until every one has a contrast of at least 3 with its page (WCAG 2.2, 1.4.11) and
# any two differ, also as seen with protanopia and deuteranopia (Machado et al. 2009). A chart is drawn in the light
# ones; where a page is dark, its style gives each the dark one in its place.


LIGHT: Final = "#ffffff"
DARK: Final = "#14171a"
TREATMENTS: Final = ("#0A5BB2", "#96400C", "#03A765", "#BD2D8B", "#A87400", "#5496BE", "#70625F")
TREATMENTS_ON_DARK: Final = ("#3C8BE3", "#FEA158", "#58D399", "#E5A3C3", "#E6B422", "#89E5FB", "#8E8E8E")
TREATMENT_DASHES: Final[tuple[tuple[int, ...], ...]] = ((), (6, 3), (2, 2), (8, 3, 2, 3))
VERDICTS: Final = {word: word.tone.on_light for word in Word}
VERDICTS_ON_DARK: Final = {word: word.tone.on_dark for word in Word}


def treatment_colour(index: int) -> str:
    """Return the colour of the treatment at that place in the study, on a light page."""
    return TREATMENTS[index % len(TREATMENTS)]


def treatment_class(index: int) -> str:
    """Return the class of the page's style that has this colour, light or dark, as ``--own``."""
    return f"t{index % len(TREATMENTS)}"


def treatment_swatch(index: int) -> str:
    """Return the classes of its swatch in a legend: its colour, and its dashes once colours come again."""
    group = index // len(TREATMENTS) % len(TREATMENT_DASHES)
    return f"{treatment_class(index)} d{group}" if group else treatment_class(index)


def treatment_dash(index: int) -> tuple[int, ...]:
    """Return its dash pattern, solid until the colours are used up."""
    return TREATMENT_DASHES[index // len(TREATMENTS) % len(TREATMENT_DASHES)]


def stylesheet() -> str:
    """Return the CSS that gives every colour its name, and a chart's colours their dark counterparts."""
    light = [*_colour_variables(TREATMENTS, VERDICTS), f"--paper: {LIGHT};"]
    dark = [*_colour_variables(TREATMENTS_ON_DARK, VERDICTS_ON_DARK), f"--paper: {DARK};"]
    names = [f"t{place}" for place in range(len(TREATMENTS))] + [word.replace(" ", "-") for word in VERDICTS]
    rules = [
        f":root {{ {' '.join(light)} }}",
        f"@media screen and (prefers-color-scheme: dark) {{ :root:not([data-printing]) {{ {' '.join(dark)} }} }}",
    ]
    rules += [f'.chart svg [stroke="{LIGHT}"] {{ stroke: var(--paper); }}']
    for name, colour in zip(names, (*TREATMENTS, *VERDICTS.values()), strict=True):
        rules += [
            f'.chart svg [fill="{colour}"] {{ fill: var(--{name}); }}',
            f'.chart svg [stroke="{colour}"] {{ stroke: var(--{name}); }}',
        ]
        rules += [f".{name} {{ --own: var(--{name}); }}"]
    return "\n".join(
        [
            *rules,
            *(f".swatch.d{group} {{ {_swatch_path(dash)} }}" for group, dash in enumerate(TREATMENT_DASHES) if dash),
        ]
    )


def _swatch_path(dash: tuple[int, ...]) -> str:
    """Return how a swatch shows a line's dashes: as a short piece of that line."""
    stops, at = [], 0
    for place, pixels in enumerate(dash):
        stops.append(f"{'transparent' if place % 2 else 'var(--own)'} {at}px {at + pixels}px")
        at += pixels
    piece = f"repeating-linear-gradient(90deg, {', '.join(stops)})"
    return f"width: 1.6rem; height: .2rem; border-radius: 0; vertical-align: middle; background: {piece};"


def _colour_variables(treatments: tuple[str, ...], verdicts: dict[Word, str]) -> list[str]:
    named = [f"--t{place}: {colour};" for place, colour in enumerate(treatments)]
    return named + [f"--{word.replace(' ', '-')}: {colour};" for word, colour in verdicts.items()]
