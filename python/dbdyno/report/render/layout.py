"""How text is laid out on a console: paragraphs, lists, and tables that fit."""

import textwrap
from collections.abc import Sequence
from io import StringIO

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType
from rich.table import Table
from rich.text import Text

from dbdyno.model.printable import NO_BREAK, glued, one_line

MIN_WIDTH = 40
PIPED_MAX = 140  # columns of a table in a file or a pipe, where the reader's width is unknown
LABEL_MIN, LABEL_SPLIT = 16, 26  # columns of a table's first column: at least, and where the table is split
_BETWEEN = 2  # columns


def plain(report: RenderableType, width: int) -> str:
    """Return what a console without colours would show, in lines without trailing blanks."""
    buffer = StringIO()
    console = Console(file=buffer, width=max(width, MIN_WIDTH), color_system=None, legacy_windows=False, _environ={})
    console.print(report, crop=False)
    return "\n".join(line.rstrip() for line in buffer.getvalue().splitlines()) + "\n"


def grid(
    headings: Sequence[str],
    rows: Sequence[Sequence[str]],
    options: ConsoleOptions,
    *,
    fits: bool,
    words: Sequence[int] = (),
) -> list[RenderableType]:
    """Return a table that fits: its words may wrap; else its columns go into tables below each other; else paragraphs.

    ``words`` are columns beside the first that hold words. A table that need not fit (``fits`` is false: a pipe) may be
    140 characters wide.
    """
    room = options.max_width if fits else max(options.max_width, PIPED_MAX)
    widths = [max(cell_len(one_line(row[place])) for row in (headings, *rows)) for place in range(len(headings))]
    if words := [place for place in words if place < len(headings)]:
        wrapped = _wrapped(headings, rows, widths, (0, *words), room)
        return [_table(headings, rows, wrapped, words)] if wrapped else [_stacked(headings, row, room) for row in rows]
    word = _longest_word(headings, rows, 0)
    figures = sum(width + _BETWEEN for width in widths[1:])
    label = min(widths[0], max(LABEL_MIN, word, room - figures))
    if label + figures <= room:
        return [_table(headings, rows, [label, *widths[1:]])]
    label = min(widths[0], max(LABEL_SPLIT, word))
    if label + _BETWEEN + max(widths[1:]) > room:
        return [_stacked(headings, row, options.max_width) for row in rows]
    tables: list[RenderableType] = []
    for places in _balanced(widths[1:], room - label):
        part = [[row[0], *(row[1 + place] for place in places)] for row in (headings, *rows)]
        below = _table(part[0], part[1:], [label, *(widths[1 + place] for place in places)])
        tables += [*([""] if tables else []), below]
    return tables


def _longest_word(headings: Sequence[str], rows: Sequence[Sequence[str]], place: int) -> int:
    return max(cell_len(word) for row in (headings, *rows) for word in one_line(row[place]).split() or [""])


def _wrapped(
    headings: Sequence[str], rows: Sequence[Sequence[str]], widths: Sequence[int], words: Sequence[int], room: int
) -> list[int]:
    """Return the columns' widths, of those with many words as narrow as need be in proportion; none where none fit."""
    long = [place for place in words if widths[place] > LABEL_MIN]
    found = [_longest_word(headings, rows, place) if place in long else width for place, width in enumerate(widths)]
    spare = room - sum(found) - _BETWEEN * (len(found) - 1)
    if spare < 0:
        return []
    for _ in range(spare):
        narrow = [place for place in long if found[place] < widths[place]]
        if narrow:
            found[max(narrow, key=lambda place: widths[place] / found[place])] += 1
    return found


def _balanced(widths: Sequence[int], room: int) -> list[list[int]]:
    """Return which columns go together: as few tables as fit into ``room``, of about one width."""
    fewest = len(_split(widths, room))
    return next(
        split
        for narrower in range(max(widths) + _BETWEEN, room + 1)
        if len(split := _split(widths, narrower)) == fewest
    )


def _split(widths: Sequence[int], room: int) -> list[list[int]]:
    parts: list[list[int]] = [[]]
    used = 0
    for place, width in enumerate(widths):
        if parts[-1] and used + width + _BETWEEN > room:
            parts.append([])
            used = 0
        parts[-1].append(place)
        used += width + _BETWEEN
    return parts


def _table(
    headings: Sequence[str], rows: Sequence[Sequence[str]], widths: Sequence[int], words: Sequence[int] = ()
) -> Table:
    table = Table(box=None, pad_edge=False, show_edge=False, header_style="bold", padding=(0, _BETWEEN, 0, 0))
    table.width = sum(widths) + _BETWEEN * (len(widths) - 1)
    for place, (heading, width) in enumerate(zip(headings, widths, strict=True)):
        wraps = place == 0 or place in words
        table.add_column(Text(one_line(heading)), justify="left" if wraps else "right", no_wrap=not wraps, width=width)
    for row in rows:
        table.add_row(*(Text(one_line(cell)) for cell in row))
    return table


def _stacked(headings: Sequence[str], row: Sequence[str], width: int) -> Text:
    figures = []
    for heading, cell in zip(headings[1:], row[1:], strict=True):
        figure = one_line(heading), one_line(cell)
        between = NO_BREAK if len("  {} {},".format(*figure)) <= width else " "
        figures.append(between.join(part.replace(" ", NO_BREAK) for part in figure))
    indent = "  "
    lines = textwrap.wrap(
        ", ".join(figures), width, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False
    )
    text = Text.assemble(paragraph(row[0], width, style="bold"), "\n", "\n".join(lines).replace(NO_BREAK, " "))
    text.no_wrap = True
    return text


def paragraph(text: str, width: int, *, style: str = "", indent: str = "", first: str | None = None) -> Text:
    """Return a paragraph wrapped to ``width``; what a no-break space joins stays together."""
    start = indent if first is None else first
    # textwrap, unlike rich, keeps together what a no-break space joins.
    lines = textwrap.wrap(glued(text), width, initial_indent=start, subsequent_indent=indent, break_on_hyphens=False)
    return Text("\n".join(lines).replace(NO_BREAK, " "), style=style, no_wrap=True, overflow="ignore")


def items(lines: Sequence[str], width: int) -> list[RenderableType]:
    """Return an item for each line."""
    return [paragraph(line, width, indent="  ", first="- ") for line in lines]
