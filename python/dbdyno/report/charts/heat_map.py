"""A suite as a picture: a row for each load, a column for each level, each cell a click from its comparison."""

import math
from collections.abc import Iterator, Sequence
from functools import partial

from markupsafe import Markup

from dbdyno.analysis.suite import SuiteCell, SuiteFindings, SuiteLoad
from dbdyno.model.printable import distinguishable
from dbdyno.model.word import Word
from dbdyno.report.charts.svg import CHARACTER, FAINT, INK, VERDICTS, drawing, element, with_title, words
from dbdyno.report.document import Chart, Width
from dbdyno.report.sentences import anchor_of, effect_text

PAGE_WIDTH, NARROW_WIDTH = 1104, 333
ROW, HEADING, GAP, APART = 20, 18, 2, 24  # pixels: of a row, of a heading, between cells, between groups
LABEL_MAX, NARROW_LABEL_MAX, COLUMN_MAX = 26, 22, 14  # characters
CELL_MIN, CELL_MAX = 44, 96  # pixels
SMALL = 0.85  # of a character of this chart, to one of others
DEEPEST = math.log(1.5)  # log ratio from which a cell has the whole of its colour
TIMES_FROM, TWO_DIGITS_FROM = 2.0, 9.95  # a difference as times, from three times as much; percent without decimals
PALEST, STRONGEST = 0.12, 0.6  # opacity: words stay readable on it


def chart(suite: SuiteFindings, caption: str) -> Chart:
    """Return the picture of a suite with a finding at least."""
    return Chart(caption, partial(_draw, suite))


def _draw(suite: SuiteFindings, window: Width) -> Markup:
    wide = window == "wide"
    most = LABEL_MAX if wide else NARROW_LABEL_MAX
    names = dict(zip(suite.loads, distinguishable([load.name for load in suite.loads], most), strict=True))
    headings = distinguishable([level for level, _ in suite.columns], COLUMN_MAX)
    label = SMALL * CHARACTER * max(map(len, names.values())) + 10
    room = (PAGE_WIDTH if wide else NARROW_WIDTH) - label
    cell = min(CELL_MAX, max(CELL_MIN, SMALL * CHARACTER * max(map(len, headings)) + 8))
    cell = min(cell, max(CELL_MIN, room / len(headings)) if wide else room / len(headings))
    width = label + cell * len(headings)
    groups = suite.groups()
    across = max(1, min(len(groups), int((PAGE_WIDTH + APART) // (width + APART)))) if wide else 1
    bottoms, marks = [0.0] * across, list[Markup]()
    for group, loads in groups:
        place = bottoms.index(min(bottoms))
        left, top = place * (width + APART), bottoms[place]
        marks += _group(group, loads, names, headings, (left, top, label, cell))
        bottoms[place] = top + HEADING + ROW * len(loads) + APART / 2
    right = max(across * (width + APART) - APART, 1.0)
    return drawing(right, max(bottoms), "how much each load gained or lost, by what it is compared in", marks)


def _group(
    group: str,
    loads: Sequence[SuiteLoad],
    names: dict[SuiteLoad, str],
    headings: Sequence[str],
    place: tuple[float, float, float, float],
) -> Iterator[Markup]:
    left, top, label, cell = place
    yield words(left, top + HEADING / 2, group, font_weight="bold", font_size=12)
    for number, heading in enumerate(headings):
        middle = left + label + cell * (number + 0.5)
        yield words(middle, top + HEADING / 2, heading, text_anchor="middle", font_size=11, fill_opacity="0.8")
    for row, load in enumerate(loads):
        y = top + HEADING + ROW * row
        yield words(left + label - 8, y + ROW / 2, names[load], text_anchor="end", font_size=12)
        for number, found in enumerate(load.cells):
            if found is not None:
                yield _cell(load.name, found, left + label + cell * number, y, cell - GAP)


def _cell(load: str, found: SuiteCell, x: float, y: float, width: float) -> Markup:
    """Return a cell that leads to its comparison: its colour is the word's, as strong as the difference is large."""
    finding = found.finding
    decided = not finding.verdict.is_open
    size = abs(math.log1p(finding.effect.value)) if finding.effect.known else 0.0
    opacity = PALEST + (STRONGEST - PALEST) * min(1.0, size / DEEPEST)
    colour = VERDICTS[finding.verdict] if decided else INK
    box = element(
        "rect", x=x, y=y, width=width, height=ROW - GAP, rx=2, fill=colour,
        fill_opacity=f"{opacity:.2f}" if decided else FAINT,
        **({"stroke": INK, "stroke_opacity": "0.5", "stroke_dasharray": "2 2"} if found.differs_alone else {}),
    )  # fmt: skip
    text = cell_text(found)
    look = {"font_weight": "bold"} if finding.verdict.is_different else {"fill_opacity": "0.75"}
    marks = [box, words(x + width / 2, y + (ROW - GAP) / 2, text, text_anchor="middle", font_size=12, **look)]
    said = f"{load}, {finding.verdict}: {effect_text(finding.effect)}"
    return element("a", with_title(said, marks), href=f"#{anchor_of(finding)}")


def cell_text(cell: SuiteCell) -> str:
    """Return the difference in percent, or as times: ``"-13"``, ``"4.2x"``; a dash where it is unknown."""
    effect = cell.finding.effect
    if not effect.known or cell.finding.verdict is Word.NOT_COMPARABLE:
        return "-"
    percent = 100 * effect.value
    if effect.value >= TIMES_FROM:
        return f"{1 + effect.value:,.3g}x"
    return f"{percent:+.1f}" if abs(percent) < TWO_DIGITS_FROM else f"{percent:+.0f}"
