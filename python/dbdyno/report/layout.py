"""How text is laid out on a console: paragraphs, lists, and tables that fit."""

import textwrap
from collections.abc import Sequence
from io import StringIO

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType
from rich.table import Table
from rich.text import Text

from dbdyno.clean import NO_BREAK, glued, one_line

MIN_WIDTH = 40
PIPED_MAX = 140  # columns of a table in a file or a pipe, where nobody knows the reader's width
LABEL_MIN, LABEL_SPLIT = 16, 26  # columns of a table's first column: at least, and where the table is split
_BETWEEN = 2  # columns


def plain(report: RenderableType, width: int) -> str:
    """Return what a console without colours would show, in lines without trailing blanks."""
    buffer = StringIO()
    console = Console(file=buffer, width=max(width, MIN_WIDTH), color_system=None, legacy_windows=False, _environ={})
    console.print(report, crop=False)
    return "\n".join(line.rstrip() for line in buffer.getvalue().splitlines()) + "\n"


def grid(
    headings: Sequence[str], rows: Sequence[Sequence[str]], options: ConsoleOptions, *, fits: bool
) -> list[RenderableType]:
    """Return a table that fits: its labels may wrap; else its columns go into tables below each other; else paragraphs.

    One that need not fit (``fits`` is false: a pipe) may be 140 characters wide.
    """
    room = options.max_width if fits else max(options.max_width, PIPED_MAX)
    widths = [max(cell_len(one_line(row[place])) for row in (headings, *rows)) for place in range(len(headings))]
    word = max(cell_len(word) for row in (headings, *rows) for word in one_line(row[0]).split() or [""])
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


def _table(headings: Sequence[str], rows: Sequence[Sequence[str]], widths: Sequence[int]) -> Table:
    table = Table(box=None, pad_edge=False, show_edge=False, header_style="bold", padding=(0, _BETWEEN, 0, 0))
    table.width = sum(widths) + _BETWEEN * (len(widths) - 1)
    table.add_column(Text(one_line(headings[0])), width=widths[0])
    for heading, width in zip(headings[1:], widths[1:], strict=True):
        table.add_column(Text(one_line(heading)), justify="right", no_wrap=True, width=width)
    for row in rows:
        table.add_row(*(Text(one_line(cell)) for cell in row))
    return table


def _stacked(headings: Sequence[str], row: Sequence[str], width: int) -> Text:
    figures = []
    for heading, cell in zip(headings[1:], row[1:], strict=True):
        between = NO_BREAK if len(f"  {heading} {cell},") <= width else " "
        figures.append(between.join(part.replace(" ", NO_BREAK) for part in (heading, one_line(cell))))
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


def listed(heading: str, lines: Sequence[str], width: int) -> list[RenderableType]:
    """Return a heading and an item for each line; nothing where there is none."""
    return ["", Text(heading, style="bold"), *items(lines, width)] if lines else []


def items(lines: Sequence[str], width: int) -> list[RenderableType]:
    """Return an item for each line."""
    return [paragraph(line, width, indent="  ", first="- ") for line in lines]
