"""Speed against safety: each treatment by its rate and by how often it may lose, and which nothing else beats."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

from markupsafe import Markup

from dbdyno.analysis.safety import Placed, Word, pareto
from dbdyno.analysis.statistics import Estimate
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
    overlap,
    rim,
    round_ticks,
    rule,
    scale_ticks,
    whisker,
    with_title,
    words,
)
from dbdyno.report.crash import TONES, Names, amount_text, share_text
from dbdyno.report.document import Chart, Width
from dbdyno.report.sentences import estimate_text

LEFT, TOP, WIDTH, NARROW_WIDTH, HEIGHT, BELOW = 70, 14, 960, 254, 270, 44
ROW, MARGIN = 18, 34  # of the legend below, and right of the axis
SMALLEST, LARGEST = 5.0, 17.0  # radius of a mark: of what lost nothing, and of the most seconds
LINE = 13
FIGURES_MAX, NARROW_FIGURES_MAX = 7, 4  # treatments with what they lost beside their names; of more the table has it
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
    return Chart(f"Speed against safety{by}", partial(_draw, shown, metric, names, what))


def _draw(shown: Sequence[Placed], metric: Metric, names: Names, what: str, window: Width) -> Markup:
    x = _across([treatment.speed for treatment in shown], window)
    least = min(FLOOR, *(treatment.safety.tally.lost.at_most / 1.5 for treatment in shown))
    y = Scale(least, 1.25, TOP + HEIGHT, TOP, log=True)
    ticked = [(value, share_text(value)) for value in round_ticks(y.low, 1.0, TICKS + 2, log=True)]
    across = scale_ticks(x, _ticks(window))
    title = f"{what} that lose, at most (log)"
    faster = "" if metric.more_is_better else ", less is better"
    marks = [
        *axis_beside(y, ticked, x.start, x.end, title),
        *axis_below(
            x, apart(across, x), TOP, TOP + HEIGHT, f"{clipped(metric.heading)}{' (log)' if x.log else ''}{faster}"
        ),
        *_line(shown, metric, x, y),
    ]
    with_figures = len(shown) <= (FIGURES_MAX if window == "wide" else NARROW_FIGURES_MAX)
    placed = [_mark(treatment, x, y, names, metric, with_figures=with_figures) for treatment in shown]
    marks += [with_title(mark.says, _shape(mark)) for mark in sorted(placed, key=lambda mark: -mark.radius)]
    names_shown = _readable(placed, x.end + MARGIN)
    marks += [rule(*name.leader, stroke=INK, stroke_opacity="0.6") for name in names_shown if name.leader]
    marks += [words(name.left, name.up, name.text, **rim(LIGHT)) for name in names_shown]
    below = TOP + HEIGHT + BELOW + ROW
    legend, rows = _legend({mark.word for mark in placed}, x.end, below)
    label = f"{metric.words} against how often at most anything is lost"
    return drawing(x.end + MARGIN, below + rows * ROW, label, [*marks, *legend])


def _ticks(window: Width) -> int:
    return TICKS if window == "wide" else NARROW_TICKS


def _across(values: Sequence[Estimate], window: Width) -> Scale:
    """Return the scale of speeds, whose ends keep off the edges."""
    ends = [end for value in values for end in value.ends]
    low, high = min(ends), max(ends)
    end = LEFT + (WIDTH if window == "wide" else NARROW_WIDTH)
    if low > 0 and high >= LOG_FROM * low:
        off = (high / low) ** 0.08
        return Scale(low / off, high * off, LEFT, end, log=True)
    off = 0.1 * (high - low) or 0.1 * high or 1.0
    return Scale(max(0.0, low - off), high + off, LEFT, end)


def _mark(  # noqa: PLR0913 - what a mark is made of
    treatment: Placed, x: Scale, y: Scale, names: Names, metric: Metric, *, with_figures: bool
) -> _Mark:
    tally, lost = treatment.safety.tally, treatment.safety.tally.lost
    ms = tally.tail.ms_most if tally.tail else 0.0
    says = (
        names.long(treatment.safety.id),
        f"{estimate_text(treatment.speed)} {metric.heading}",
        f"lost in {lost.seen:,} of {lost.cuts:,}, at most {share_text(lost.at_most)}",
        f"worst seen: {OUTCOME_WORDS[tally.worst]}",
        *([f"up to {amount_text(ms)} of commits lost"] if ms else []),
    )
    ends = (x(treatment.speed.low), x(treatment.speed.high)) if treatment.speed.bounded else None
    at = y(max(lost.at_most, y.low))
    short = names.short(treatment.safety.id)
    name = f"{short}: {_lost(ms, lost.seen)}" if with_figures else short
    return _Mark(x(treatment.speed.value), at, _radius(ms), treatment.safety.word, name, says, ends)


def _lost(ms: float, seen: int) -> str:
    """Return what a treatment lost, in a few words beside its mark."""
    if ms:
        return f"up to {amount_text(ms)} lost"
    return "some lost" if seen else "nothing lost"


def _radius(ms: float) -> float:
    """Return the radius, whose area grows with the logarithm of what was lost, to 10 s and more."""
    grown = math.log10(max(ms, MOST_LOST_MS) / MOST_LOST_MS) / 2 if ms else 0.0
    return SMALLEST + (LARGEST - SMALLEST) * math.pow(min(1.0, grown), 0.7)


def _shape(mark: _Mark) -> list[Markup]:
    """Draw a treatment: the interval of its speed, and a shape in the colour of its word, hollow where undecided."""
    colour = VERDICTS[TONES[mark.word]]  # type: ignore[index]
    parts = []
    if mark.ends is not None and mark.ends[1] - mark.ends[0] > 1:
        parts.append(whisker(mark.ends, mark.y, 4.0, stroke=colour))
    return [*parts, _figure(mark.word, mark.x, mark.y, mark.radius, colour)]


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
    ordered = sorted(
        shown, key=lambda treatment: -treatment.speed.value if metric.more_is_better else treatment.speed.value
    )
    best = set(pareto(ordered))
    places = [
        (x(treatment.speed.value), y(max(treatment.safety.tally.lost.at_most, y.low)))
        for treatment in ordered
        if treatment.safety.id in best
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
    boxes = [
        (mark.x - mark.radius, mark.y - mark.radius, mark.x + mark.radius, mark.y + mark.radius) for mark in placed
    ]
    for mark in sorted(placed, key=lambda mark: mark.y):
        text = clipped(mark.name)
        long = CHARACTER * len(text)
        for left, up, leads in _name_places(mark, long, end):
            box = (left, up - LINE / 2, left + long, up + LINE / 2)
            inside = left >= LEFT and left + long <= end and TOP <= up <= TOP + HEIGHT - 4
            if inside and not any(overlap(box, other) for other in boxes):
                to = (max(left, min(mark.x, left + long)), up - math.copysign(LINE / 2, up - mark.y))
                shown.append(_Name(left, up, text, ((mark.x, to[0]), (mark.y, to[1])) if leads else None))
                boxes.append(box)
                break
    return shown


def _name_places(mark: _Mark, long: float, end: float) -> Iterator[tuple[float, float, bool]]:
    """Yield places for a name of that length, the best first: its left end, its height, whether a line leads there."""
    off, middle = mark.radius + 5, max(LEFT + 2.0, min(mark.x - long / 2, end - long))
    for left in (mark.x + off, mark.x - off - long):
        yield from ((left, mark.y + down, False) for down in (-LINE, LINE, 0))
    yield from ((middle, mark.y + down, False) for down in (-off - 6, off + 6))
    for lines in range(2, FARTHEST):
        for down in (off + lines * LINE, -off - lines * LINE):
            yield from ((left, mark.y + down, True) for left in (middle, mark.x + off, mark.x - off - long))


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
