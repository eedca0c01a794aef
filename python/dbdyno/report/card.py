"""A report as one picture to share, 1200 x 630: question, answer, three figures, how far to trust it, and when."""

from collections.abc import Iterator
from dataclasses import dataclass

from markupsafe import Markup

from dbdyno.model.printable import clipped, one_line
from dbdyno.model.word import Word
from dbdyno.report.charts.svg import LIGHT, VERDICTS, element, words
from dbdyno.report.document import FIGURES_MAX, Badges, Document, Paragraph, inside, plain

WIDTH, HEIGHT, EDGE = 1200, 630, 64
CHARACTER_WIDTH = 0.6  # as a share of the font size
FACTS_MAX = 100  # characters
INK, SOFT, LINE, BEWARE = "#17191c", "#565d66", "#dfe2e6", VERDICTS[Word.SLOWER]
_OUTCOMES = {"passed": "Passed: ", "failed": "Failed: ", "undecided": "Not judged: "}  # of the study's thresholds
ANSWER_SIZES = (40, 36, 32, 28, 24, 21)  # the largest in which the answer has room
ANSWER_TOP, ANSWER_BOTTOM, FIGURES_TOP, FOOT_TOP = 152, 352, 378, 520


@dataclass(frozen=True)
class _Opening:
    """What a report says at its beginning."""

    question: str
    answer: str
    badges: Badges


def draw(document: Document) -> Markup:
    """Return the card as SVG; its words are those of the report."""
    opening = _opening(document)
    label = f"{document.title}: {opening.answer}"
    return element(
        "svg",
        Markup("").join([element("title", one_line(label)), *_marks(document, opening)]),
        xmlns="http://www.w3.org/2000/svg",
        role="img",
        aria_label=label,
        width=WIDTH,
        height=HEIGHT,
        viewBox=f"0 0 {WIDTH} {HEIGHT}",
        font_family='system-ui, "Segoe UI", Roboto, "DejaVu Sans", sans-serif',
        fill=INK,
    )


def answer(document: Document) -> str:
    """Return the headline of a report."""
    return _opening(document).answer


def _opening(document: Document) -> _Opening:
    blocks = [block for part in (*document.head, *document.sections) for block in inside(part)]
    paragraphs = {block.style: plain(block.text) for block in reversed(blocks) if isinstance(block, Paragraph)}
    badges = next((block for block in blocks if isinstance(block, Badges)), Badges(()))
    return _Opening(paragraphs.get("question", ""), paragraphs.get("headline", document.title), badges)


def _marks(document: Document, opening: _Opening) -> Iterator[Markup]:
    yield element("rect", x=0, y=0, width=WIDTH, height=HEIGHT, fill=LIGHT)
    yield element("rect", x=0, y=0, width=12, height=HEIGHT, fill=VERDICTS[Word.EQUIVALENT])
    outcome = _OUTCOMES.get(document.values().get("thresholds", {}).get("outcome"), "")
    fill = BEWARE if outcome and not outcome.startswith("Passed") else INK
    yield from _lines(f"{outcome}{document.title}", 30, 62, 1, font_weight="bold", fill=fill)
    yield from _lines(opening.question, 24, 104, 1, fill=SOFT)
    yield from _answer(opening.answer)
    across = (WIDTH - 2 * EDGE) / FIGURES_MAX
    for place, (figure, what) in enumerate(document.figures[:FIGURES_MAX]):
        left = EDGE + place * across
        yield words(left, FIGURES_TOP + 22, clipped(figure, 20), font_size=34, font_weight="bold")
        for line, text in enumerate(_wrap(what, 17, across - 16)[:3]):
            yield words(left, FIGURES_TOP + 58 + 22 * line, text, font_size=17, fill=SOFT)
    yield element("line", x1=EDGE, x2=WIDTH - EDGE, y1=FOOT_TOP - 8, y2=FOOT_TOP - 8, stroke=LINE)
    yield from _foot(opening.badges)


def _answer(text: str) -> Iterator[Markup]:
    room = ANSWER_BOTTOM - ANSWER_TOP
    size = next((size for size in ANSWER_SIZES if len(_wrap(text, size)) * size * 1.25 <= room), ANSWER_SIZES[-1])
    yield from _lines(text, size, ANSWER_TOP + size / 2, int(room / (size * 1.25)), font_weight="bold")


def _foot(badges: Badges) -> Iterator[Markup]:
    """Draw trust, safety, and on what and when it was measured."""
    doubts = " · ".join(badge.text for badge in badges.doubts)
    trust = " · ".join(filter(None, (badges.counted, doubts)))
    safety = "; ".join(filter(None, (" · ".join(badge.text for badge in badges.safety), badges.tried)))
    rows = [("Trust", trust, BEWARE if doubts else INK)] if trust else []
    rows += (
        [("Safety", safety, BEWARE if any(badge.beware for badge in badges.safety) else INK)] if badges.safety else []
    )
    for place, (name, text, colour) in enumerate(rows):
        y = FOOT_TOP + 16 + 28 * place
        yield words(EDGE, y, name, font_size=18, font_weight="bold")
        yield words(EDGE + 84, y, clipped(text, FACTS_MAX), font_size=18, fill=colour)
    facts = " · ".join(badge.text for badge in badges.facts)
    y = FOOT_TOP + 16 + 28 * 2
    yield words(EDGE, y, clipped(facts, FACTS_MAX - 12), font_size=16, fill=SOFT)
    yield words(WIDTH - EDGE, y, "dbdyno", font_size=18, font_weight="bold", fill=SOFT, text_anchor="end")


def _lines(text: str, size: float, top: float, most: int, **look: str | float) -> Iterator[Markup]:
    """Draw a text in at most ``most`` lines, with an ellipsis where it was cut."""
    wrapped = _wrap(text, size)
    shown = wrapped[:most]
    if len(wrapped) > most and shown:
        shown[-1] = f"{shown[-1].rstrip(' .,;:')} …"
    for place, line in enumerate(shown):
        yield words(EDGE, top + place * size * 1.25, line, font_size=size, **look)


def _wrap(text: str, size: float, room: float = WIDTH - 2 * EDGE) -> list[str]:
    """Return the lines of a text in a room of so many pixels; a word that is longer than a line is clipped."""
    most = max(4, int(room / (size * CHARACTER_WIDTH)))
    lines: list[str] = []
    for word in one_line(text).split():
        piece = clipped(word, most)
        if lines and len(lines[-1]) + 1 + len(piece) <= most:
            lines[-1] = f"{lines[-1]} {piece}"
        else:
            lines.append(piece)
    return lines
