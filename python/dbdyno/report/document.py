"""A report as a tree of plain values: what is said and in which order, and nothing of how it is drawn.

A section (``sections/``, a file each) gives its part of the tree; a renderer (``render/``, one a format) draws the
whole tree and knows no section. Texts are untrusted: each renderer escapes them, in one place.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal


@dataclass(frozen=True)
class Strong:
    """Words that stand out in a text; a verdict's word has its colour by ``tone``: "faster", "not comparable"."""

    text: str
    tone: str = ""


Text = str | tuple[str | Strong, ...]


def pieces(text: Text) -> tuple[str | Strong, ...]:
    """Return a text as its pieces."""
    return (text,) if isinstance(text, str) else text


def plain(text: Text) -> str:
    """Return a text without emphasis."""
    return "".join(piece if isinstance(piece, str) else piece.text for piece in pieces(text))


@dataclass(frozen=True)
class Paragraph:
    """A paragraph: what is said, the answer to it all, what to do, a warning, what may be skipped, or the question."""

    text: Text
    style: Literal["", "headline", "advice", "warning", "soft", "question"] = ""


@dataclass(frozen=True)
class Item:
    """An item of a list, and below it what explains it, what must be known beside it, and longer reasons."""

    text: Text
    reasons: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    further: tuple[str, ...] = ()
    id: str = ""  # anchor of links that lead here


@dataclass(frozen=True)
class List:
    """A list of items: plain ones, or verdicts, each of which stands out."""

    items: tuple[Item, ...]
    style: Literal["plain", "verdicts"] = "plain"
    heading: str = ""  # where a page has more lists than one below a heading


def bullets(lines: list[str]) -> tuple[List, ...]:
    """Return a list of plain lines; nothing where there is none."""
    return (List(tuple(map(Item, lines))),) if lines else ()


@dataclass(frozen=True)
class Cell:
    """A figure of a table with what stands below it, such as its interval."""

    text: str
    below: str = ""
    strong: bool = False
    tone: str = ""  # of a verdict's word: "faster", "not comparable"
    link: str = ""  # a page of dbdyno's beside this one, where a page shows it


@dataclass(frozen=True)
class Badge:
    """A fact in two or three words, what it means in full, and the section where more of it stands."""

    text: str
    title: str
    section: str = ""
    beware: bool = False  # whether it makes the result less sure, or the settings less safe
    safety: bool = False  # whether it is about what a power cut may take

    @property
    def values(self) -> dict[str, object]:
        """Return what programs read of it."""
        return {"text": self.text, "title": self.title, "section": self.section, "beware": self.beware}


@dataclass(frozen=True)
class Badges:
    """Facts that a reader takes in at a glance: on what it was measured, how far to trust it, how safe it is."""

    items: tuple[Badge, ...]
    counted: str = ""  # what the result rests on: "8 blocks counted"
    tried: str = ""  # whether power cuts were made
    warnings: int | None = None  # how many stand further below; None: the badges don't mention them

    @property
    def facts(self) -> tuple[Badge, ...]:
        """Return on what it was measured, and when."""
        return tuple(badge for badge in self.items if not (badge.beware or badge.safety))

    @property
    def doubts(self) -> tuple[Badge, ...]:
        """Return what makes the result less sure."""
        return tuple(badge for badge in self.items if badge.beware and not badge.safety)

    @property
    def safety(self) -> tuple[Badge, ...]:
        """Return what is known of how safe commits are."""
        return tuple(badge for badge in self.items if badge.safety)


_FIGURE = re.compile(r"[-+<\d]|unknown$")  # how a cell begins that holds one
WHOLE_MAX = 26  # characters of a figure that stays in one line


def stays_whole(cell: str) -> bool:
    """Return whether a cell is a figure that is not broken, such as "292 of 300" or "+91 % (+88 to +97 %)"."""
    return bool(_FIGURE.match(cell)) and len(cell) <= WHOLE_MAX


Look = Literal["", "wide", "results", "settings", "figures"]  # of a table


@dataclass(frozen=True)
class Table:
    """A table. The first cell of a row names it; without ``headings`` rows are names and values."""

    caption: str
    headings: tuple[str, ...]
    rows: tuple[tuple[str | Cell, ...], ...]
    look: Look = ""
    words: tuple[int, ...] = ()  # columns, from 0, that hold so many words that a terminal wraps them
    marked: bool = False  # whether rows are the treatments in the order of the study, whose colours they have
    parts: tuple[str, ...] = ()  # the last columns are parts of a whole, drawn as a bar: what each one's colour is
    shares: tuple[tuple[float, ...], ...] = ()  # of each row: a part's length in percent of the longest bar

    def word_columns(self) -> set[int]:
        """Return the columns beside the first that hold words and no figures."""
        rows = [[cell if isinstance(cell, str) else cell.text for cell in row] for row in self.rows]
        columns = {place: [row[place] for row in rows if row[place]] for place in range(1, len(self.headings))}
        return {place for place, cells in columns.items() if cells and not any(map(_FIGURE.match, cells))} | {
            *self.words
        }


Width = Literal["wide", "narrow"]  # of a window, or of a phone's: text in an SVG shrinks with it


@dataclass(frozen=True)
class Chart:
    """A drawing as SVG, drawn when a renderer asks for it."""

    caption: str
    drawn: Callable[[Width], str]
    legend: tuple[str, ...] = ()  # in the order of the study, from which colours and dashes follow


@dataclass(frozen=True)
class TimeCharts:
    """Charts over time, drawn by the page's script from ``data``, with one cursor and one stretch of time."""

    legend: tuple[str, ...]  # the treatments in the order of the study
    groups: tuple[tuple[str, tuple[int, ...]], ...]  # what stands together: places in ``data["panels"]``
    folded: tuple[str, ...]  # groups
    data: Mapping[str, Any]


@dataclass(frozen=True)
class CodeBlock:
    """A text to be copied as it is: a command, a file."""

    id: str
    caption: str
    text: str


@dataclass(frozen=True)
class Details:
    """What a page shows when it is asked for; other formats show it as it is."""

    summary: str
    blocks: "tuple[Block, ...]"
    count: int | None = None
    open: bool = False
    id: str = ""  # anchor of links that lead here


@dataclass(frozen=True)
class Abridged:
    """The same at several lengths: a page shows ``full``, a terminal and a wiki ``short``; in brief it is ``brief``."""

    full: "tuple[Block, ...]"
    short: "tuple[Block, ...]" = ()
    brief: "tuple[Block, ...] | None" = None  # None: as short


@dataclass(frozen=True)
class Section:
    """A part of a report. ``data`` are its keys and plain values for programs; an unknown figure is not finite.

    A format in which a section would be empty leaves it out; one without a heading follows what stands before it.
    """

    id: str
    heading: str
    blocks: "tuple[Block, ...]" = ()
    summary: Text = ""
    data: Mapping[str, Any] = field(default_factory=dict)
    opening: bool = False  # whether a report in brief shows it too
    unfolded: bool = False  # whether a long page shows it without being asked


Block = Paragraph | List | Badges | Table | Chart | TimeCharts | CodeBlock | Details | Abridged | Section


FIGURES_MAX = 3  # of a summary card


@dataclass(frozen=True)
class Document:
    """A whole report: its title, what stands below it, and its sections in order."""

    title: str
    head: tuple[Block, ...]
    sections: tuple[Section, ...]
    data: Mapping[str, Any] = field(default_factory=dict)
    figures: tuple[tuple[str, str], ...] = ()  # ``FIGURES_MAX`` that answer the question, each with what it is

    def values(self) -> dict[str, Any]:
        """Return what programs read of it: its own data and that of its sections."""
        data = dict(self.data)
        for section in self.sections:
            data |= section.data
        return data

    def time_charts(self) -> Mapping[str, Any] | None:
        """Return the data of the charts over time; a document has one such block at most."""
        blocks = (block for section in self.sections for block in inside(section))
        return next((block.data for block in blocks if isinstance(block, TimeCharts)), None)


def inside(block: Block) -> Iterator[Block]:
    """Yield a block and all that it holds, in order, at full length."""
    yield block
    inner = block.full if isinstance(block, Abridged) else getattr(block, "blocks", ())
    for each in inner:
        yield from inside(each)
