"""Flame graphs of a comparison: the stacks of each side, coloured by how much more or less time the level spent."""

from collections.abc import Callable, Iterator
from functools import partial

from markupsafe import Markup

from dbdyno.analysis.profiles import ProfilesCompared, StackFrame
from dbdyno.model.printable import one_line
from dbdyno.model.word import Word
from dbdyno.model.wording import number
from dbdyno.report.charts.svg import CHARACTER, FAINT, VERDICTS, drawing, element, with_title, words
from dbdyno.report.document import Chart, Width

PAGE_WIDTH, NARROW_WIDTH = 1104, 333
ROW, HEADING, APART = 17, 22, 14
SMALL = 0.82  # of a character of this chart, to one of others
WIDTH_MIN = 3.0  # pixels: what is narrower is not drawn, nor what it calls
DEPTH_MAX = 48
PALEST, STRONGEST = 0.12, 0.75
DEEPEST = 0.05  # difference, as a part of all time, from which a frame has the whole of its colour


def chart(compared: ProfilesCompared, level: str, baseline: str) -> Chart:
    """Return both graphs, that of the level above; they have one scale."""
    caption = (
        f"{level} above, {baseline} below: each box is a function on top of its caller, as wide as the time in it and"
        f" in what it calls. Orange: more time with {level}; green: less."
    )
    return Chart(caption, partial(_draw, compared, (level, baseline)))


def _draw(compared: ProfilesCompared, labels: tuple[str, str], window: Width) -> Markup:
    width = PAGE_WIDTH if window == "wide" else NARROW_WIDTH
    whole = max(compared.root.level, compared.root.baseline) or 1.0
    marks, top = list[Markup](), 0.0
    sides: tuple[Callable[[StackFrame], float], ...] = (lambda frame: frame.level, lambda frame: frame.baseline)
    for label, time in zip(labels, sides, strict=True):
        scale = width / whole
        depth = _depth(compared.root, time, scale)
        bottom = top + HEADING + ROW * depth
        unit = "us a query" if compared.per_query else "% of the samples"
        heading = f"{one_line(label)}: {number(time(compared.root))} {unit}"
        marks.append(words(0, top + HEADING / 2, heading[: int(width / CHARACTER)], font_weight="bold"))
        marks += _boxes(compared, compared.root, time, (0.0, bottom, scale), 0)
        top = bottom + APART
    return drawing(width, top, "functions of the server by time, of both treatments", marks)


def _depth(frame: StackFrame, time: Callable[[StackFrame], float], scale: float, depth: int = 0) -> int:
    """Return how many rows a frame and what it calls take."""
    if time(frame) * scale < WIDTH_MIN or depth >= DEPTH_MAX:
        return 0
    return 1 + max((_depth(callee, time, scale, depth + 1) for callee in frame.callees.values()), default=0)


def _boxes(
    compared: ProfilesCompared,
    frame: StackFrame,
    time: Callable[[StackFrame], float],
    place: tuple[float, float, float],
    depth: int,
) -> Iterator[Markup]:
    """Draw a frame and, on top of it, what it calls; ``place`` is its left and bottom, and pixels for its unit."""
    left, bottom, scale = place
    width = time(frame) * scale
    if width < WIDTH_MIN or depth >= DEPTH_MAX:
        return
    unit = "us a query" if compared.per_query else "%"
    said = f"{frame.name}: {number(frame.level)} {unit}, {number(frame.baseline)} in the baseline"
    fits = int((width - 4) / (SMALL * CHARACTER))
    name = one_line(frame.name)
    shown = name if len(name) <= fits else f"{name[: fits - 1]}…" if fits > 3 else ""  # noqa: PLR2004 - no name
    box = element("rect", x=left, y=bottom - ROW, width=width - 0.5, height=ROW - 1, **_look(compared, frame))
    text = [words(left + 2, bottom - ROW / 2, shown, font_size=10)] if shown else []
    yield with_title(said, [box, *text])
    for callee in sorted(frame.callees.values(), key=lambda callee: callee.name):
        yield from _boxes(compared, callee, time, (left, bottom - ROW, scale), depth + 1)
        left += time(callee) * scale


def _look(compared: ProfilesCompared, frame: StackFrame) -> dict[str, str]:
    whole = max(compared.root.level, compared.root.baseline) or 1.0
    share = min(1.0, abs(frame.difference) / whole / DEEPEST)
    if share < PALEST:
        return {"fill_opacity": FAINT}
    colour = VERDICTS[Word.SLOWER if frame.difference > 0 else Word.FASTER]
    return {"fill": colour, "fill_opacity": f"{PALEST + share * (STRONGEST - PALEST):.2f}"}
