"""Speed against safety: each treatment by its rate and by how often it may lose, and which nothing else beats."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

from markupsafe import Markup

from dbdyno.analysis.safety import Placed, Word, pareto
from dbdyno.analysis.statistics.estimate import Estimate
from dbdyno.model.cut import OUTCOME_WORDS
from dbdyno.model.metrics import Metric
from dbdyno.model.printable import clipped
from dbdyno.report.charts.svg import (
    CHARACTER,
    INK,
    LIGHT,
    VERDICTS,
    Scale,
    apart,
    axis_below,
    axis_beside,
    drawing,
    element,
    rim,
    round_ticks,
    rule,
    said,
    strokes,
    tick,
    words,
)
from dbdyno.report.crash import TONES, Names, amount_text, share_text
from dbdyno.report.document import Chart, Width
from dbdyno.report.sentences import estimate_text

LEFT, TOP, WIDTH, NARROW_WIDTH, HEIGHT, BELOW = 70, 14, 960, 254, 270, 44
ROW, MARGIN = 18, 34  # of the legend below, and right of the axis
SMALLEST, LARGEST = 5.0, 17.0  # radius of a mark: of what lost nothing, and of the most seconds
LINE = 13
TOLD, NARROW_TOLD = 7, 4  # treatments that have what they lost beside their names; of more it is in the table
FARTHEST = 8  # lines from its mark that a name may be
FLOOR, MOST_LOST_MS = 0.001, 100.0  # the axis reaches to .1 % at least; what loses less is as small as it can be
LOG_FROM = 6.0
TICKS, NARROW_TICKS = 6, 4
SHAPES: tuple[tuple[Word, str], ...] = (
    ("no loss seen", "circle: no loss seen"),
    ("loses the newest commits", "triangle: loses the newest commits"),
    ("not crash-safe", "square: not crash-safe"),
    ("undecided", "hollow: undecided"),
)


@dataclass(frozen=True)
class _Mark:
    """A treatment in the picture."""

    x: float
    y: float
    radius: float
    word: Word
    name: str
    says: tuple[str, ...]
    ends: tuple[float, float] | None  # of the interval of its speed


@dataclass(frozen=True)
class _Name:
    """A treatment's name in the picture; far from its mark, the line (both x, both y) that leads to it."""

    left: float
    up: float
    text: str
    leader: tuple[tuple[float, float], tuple[float, float]] | None


def chart(shown: Sequence[Placed], metric: Metric, names: Names, what: str) -> Chart:
    """Return the picture; ``what`` a bound is a share of: "power cuts"."""
    by = f" by {names.heading}" if names.factors else ""
    return Chart(f"Speed against safety{by}", partial(_drawn, shown, metric, names, what))


def _drawn(shown: Sequence[Placed], metric: Metric, names: Names, what: str, window: Width) -> Markup:
    x = _across([one.speed for one in shown], window)
    least = min(FLOOR, *(one.safety.tally.lost.at_most / 1.5 for one in shown))
    y = Scale(least, 1.25, TOP + HEIGHT, TOP, log=True)
    ticked = [(value, share_text(value)) for value in round_ticks(y.low, 1.0, TICKS + 2, log=True)]
    across = [(value, tick(value)) for value in round_ticks(x.low, x.high, _ticks(window), log=x.log)]
    title = f"{what} that lose, at most (log)"
    faster = "" if metric.more_is_better else ", less is better"
    marks = [
        *axis_beside(y, ticked, x.start, x.end, title),
        *axis_below(
            x, apart(across, x), TOP, TOP + HEIGHT, f"{clipped(metric.heading)}{' (log)' if x.log else ''}{faster}"
        ),
        *_line(shown, metric, x, y),
    ]
    told = len(shown) <= (TOLD if window == "wide" else NARROW_TOLD)
    placed = [_mark(one, x, y, names, metric, told=told) for one in shown]
    marks += [said(one.says, _shape(one)) for one in sorted(placed, key=lambda one: -one.radius)]
    names_shown = _readable(placed, x.end + MARGIN)
    marks += [rule(*one.leader, stroke=INK, stroke_opacity="0.6") for one in names_shown if one.leader]
    marks += [words(one.left, one.up, one.text, **rim(LIGHT)) for one in names_shown]
    below = TOP + HEIGHT + BELOW + ROW
    legend, rows = _legend({one.word for one in placed}, x.end, below)
    label = f"{metric.words} against how often at most anything is lost"
    return drawing(x.end + MARGIN, below + rows * ROW, label, [*marks, *legend])


def _ticks(window: Width) -> int:
    return TICKS if window == "wide" else NARROW_TICKS


def _across(values: Sequence[Estimate], window: Width) -> Scale:
    """Return the scale of speeds, whose ends keep off the edges."""
    ends = [end for one in values for end in ((one.low, one.high) if one.bounded else (one.value,))]
    low, high = min(ends), max(ends)
    end = LEFT + (WIDTH if window == "wide" else NARROW_WIDTH)
    if low > 0 and high >= LOG_FROM * low:
        off = (high / low) ** 0.08
        return Scale(low / off, high * off, LEFT, end, log=True)
    off = 0.1 * (high - low) or 0.1 * high or 1.0
    return Scale(max(0.0, low - off), high + off, LEFT, end)


def _mark(  # noqa: PLR0913 - what a mark is made of
    one: Placed, x: Scale, y: Scale, names: Names, metric: Metric, *, told: bool
) -> _Mark:
    found, lost = one.safety.tally, one.safety.tally.lost
    ms = found.tail.ms_most if found.tail else 0.0
    says = (
        names.long(one.safety.id),
        f"{estimate_text(one.speed)} {metric.heading}",
        f"lost in {lost.seen:,} of {lost.cuts:,}, at most {share_text(lost.at_most)}",
        f"worst seen: {OUTCOME_WORDS[found.worst]}",
        *([f"up to {amount_text(ms)} of commits lost"] if ms else []),
    )
    ends = (x(one.speed.low), x(one.speed.high)) if one.speed.bounded else None
    at = y(max(lost.at_most, y.low))
    short = names.short(one.safety.id)
    name = f"{short}: {_lost(ms, lost.seen)}" if told else short
    return _Mark(x(one.speed.value), at, _radius(ms), one.safety.word, name, says, ends)


def _lost(ms: float, seen: int) -> str:
    """Return what a treatment lost, in a few words beside its mark."""
    if ms:
        return f"up to {amount_text(ms)} lost"
    return "some lost" if seen else "nothing lost"


def _radius(ms: float) -> float:
    """Return the radius, whose area grows with the logarithm of what was lost, to 10 s and more."""
    grown = math.log10(max(ms, MOST_LOST_MS) / MOST_LOST_MS) / 2 if ms else 0.0
    return SMALLEST + (LARGEST - SMALLEST) * math.pow(min(1.0, grown), 0.7)


def _shape(one: _Mark) -> list[Markup]:
    """Draw a treatment: the interval of its speed, and a shape in the colour of its word, hollow where undecided."""
    colour = VERDICTS[TONES[one.word]]  # type: ignore[index]
    parts = []
    if one.ends is not None and one.ends[1] - one.ends[0] > 1:
        low, high = one.ends
        bars = [(low, one.y, high - low, 0.0), *((end, one.y - 4, 0.0, 8.0) for end in (low, high))]
        parts.append(strokes(bars, stroke=colour, stroke_width=1.5))
    return [*parts, _figure(one.word, one.x, one.y, one.radius, colour)]


def _figure(word: Word, x: float, y: float, radius: float, colour: str) -> Markup:
    look: dict[str, str | float] = {"fill": colour, "fill_opacity": "0.75", "stroke": colour}
    match word:
        case "loses the newest commits":
            path = f"M{x:.1f},{y - radius:.1f}l{radius:.1f},{1.8 * radius:.1f}h{-2 * radius:.1f}z"
            return element("path", d=path, **look)
        case "not crash-safe":
            side = 1.7 * radius
            return element("rect", x=x - side / 2, y=y - side / 2, width=side, height=side, **look)
        case "undecided":
            return element("circle", cx=x, cy=y, r=radius, fill="none", stroke=colour, stroke_width=2)
        case _:
            return element("circle", cx=x, cy=y, r=radius, **look)


def _line(shown: Sequence[Placed], metric: Metric, x: Scale, y: Scale) -> Iterator[Markup]:
    """Draw the Pareto line as steps: what lies above and to the slow side of it is beaten by something."""
    ordered = sorted(shown, key=lambda one: -one.speed.value if metric.more_is_better else one.speed.value)
    best = set(pareto(ordered))
    places = [
        (x(one.speed.value), y(max(one.safety.tally.lost.at_most, y.low))) for one in ordered if one.safety.id in best
    ]
    if len(places) < 2:  # noqa: PLR2004
        return
    look: dict[str, str | float] = {"stroke": INK, "stroke_opacity": "0.45", "stroke_dasharray": "5 4"}
    for (x0, y0), (x1, y1) in pairwise(places):
        yield rule((x0, x0), (y0, y1), **look)
        yield rule((x0, x1), (y1, y1), **look)


def _readable(placed: Sequence[_Mark], end: float) -> list[_Name]:
    """Return names beside their marks where each touches no mark and no name; if need be farther off, with a leader."""
    shown: list[_Name] = []
    boxes = [(one.x - one.radius, one.y - one.radius, one.x + one.radius, one.y + one.radius) for one in placed]
    for one in sorted(placed, key=lambda one: one.y):
        text = clipped(one.name)
        long = CHARACTER * len(text)
        for left, up, leads in _tried(one, long, end):
            box = (left, up - LINE / 2, left + long, up + LINE / 2)
            inside = left >= LEFT and left + long <= end and TOP <= up <= TOP + HEIGHT - 4
            if inside and not any(_touch(box, other) for other in boxes):
                to = (max(left, min(one.x, left + long)), up - math.copysign(LINE / 2, up - one.y))
                shown.append(_Name(left, up, text, ((one.x, to[0]), (one.y, to[1])) if leads else None))
                boxes.append(box)
                break
    return shown


def _tried(one: _Mark, long: float, end: float) -> Iterator[tuple[float, float, bool]]:
    """Yield places for a name of that length, the best first: its left end, its height, whether a line leads there."""
    off, middle = one.radius + 5, max(LEFT + 2.0, min(one.x - long / 2, end - long))
    for left in (one.x + off, one.x - off - long):
        yield from ((left, one.y + down, False) for down in (-LINE, LINE, 0))
    yield from ((middle, one.y + down, False) for down in (-off - 6, off + 6))
    for lines in range(2, FARTHEST):
        for down in (off + lines * LINE, -off - lines * LINE):
            yield from ((left, one.y + down, True) for left in (middle, one.x + off, one.x - off - long))


def _touch(one: tuple[float, float, float, float], other: tuple[float, float, float, float]) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def _legend(present: set[Word], end: float, top: float) -> tuple[list[Markup], int]:
    """Draw what shapes, size and line mean, in rows that fit; return them and how many rows there are."""
    marks: list[Markup] = []
    left, row = float(LEFT), 0
    entries: list[tuple[Word | None, str]] = [(word, text) for word, text in SHAPES if word in present]
    entries += [(None, "larger: loses more seconds"), (None, "- - nothing is both faster and safer")]
    for word, text in entries:
        wide = CHARACTER * len(text) * 0.85 + (22 if word else 6)
        if left > LEFT and left + wide > end + MARGIN:
            left, row = float(LEFT), row + 1
        y = top + row * ROW
        if word:
            marks.append(_figure(word, left + 6, y, 5.0, VERDICTS[TONES[word]]))  # type: ignore[index]
        marks.append(words(left + (16 if word else 0), y, text))
        left += wide + 8
    return marks, row + 1
