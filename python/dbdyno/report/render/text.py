"""A report for a terminal or a pipe."""

import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from io import StringIO

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.table import Table
from rich.text import Text
from rich.text import Text as RichText

from dbdyno.model.printable import NO_BREAK, glued, one_line
from dbdyno.model.word import Word
from dbdyno.report import document as doc

# How text is laid out on a console: paragraphs, lists, and tables that fit.


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
        wrapped = _fit_widths(headings, rows, widths, (0, *words), room)
        return (
            [_table(headings, rows, wrapped, words)] if wrapped else [_stack_row(headings, row, room) for row in rows]
        )
    word = _longest_word(headings, rows, 0)
    figures = sum(width + _BETWEEN for width in widths[1:])
    label = min(widths[0], max(LABEL_MIN, word, room - figures))
    if label + figures <= room:
        return [_table(headings, rows, [label, *widths[1:]])]
    label = min(widths[0], max(LABEL_SPLIT, word))
    if label + _BETWEEN + max(widths[1:]) > room:
        return [_stack_row(headings, row, options.max_width) for row in rows]
    tables: list[RenderableType] = []
    for places in _group_columns(widths[1:], room - label):
        part = [[row[0], *(row[1 + place] for place in places)] for row in (headings, *rows)]
        below = _table(part[0], part[1:], [label, *(widths[1 + place] for place in places)])
        tables += [*([""] if tables else []), below]
    return tables


def _longest_word(headings: Sequence[str], rows: Sequence[Sequence[str]], place: int) -> int:
    return max(cell_len(word) for row in (headings, *rows) for word in one_line(row[place]).split() or [""])


def _fit_widths(
    headings: Sequence[str], rows: Sequence[Sequence[str]], widths: Sequence[int], words: Sequence[int], room: int
) -> list[int]:
    """Return the columns' widths, of those with many words as narrow as need be in proportion; none where none fit."""
    long = [place for place in words if widths[place] > LABEL_MIN]
    columns = [_longest_word(headings, rows, place) if place in long else width for place, width in enumerate(widths)]
    spare = room - sum(columns) - _BETWEEN * (len(columns) - 1)
    if spare < 0:
        return []
    for _ in range(spare):
        narrow = [place for place in long if columns[place] < widths[place]]
        if narrow:
            columns[max(narrow, key=lambda place: widths[place] / columns[place])] += 1
    return columns


def _group_columns(widths: Sequence[int], room: int) -> list[list[int]]:
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


def _stack_row(headings: Sequence[str], row: Sequence[str], width: int) -> Text:
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


def item_lines(lines: Sequence[str], width: int) -> list[RenderableType]:
    """Return an item for each line."""
    return [paragraph(line, width, indent="  ", first="- ") for line in lines]


TONES = {
    **{word.value: word.tone.in_terminal for word in Word},
    "differs": "bold",
    "does not differ": "bold blue",
    "beware": "bold yellow",
}
STYLES = {"": "", "headline": "bold", "advice": "", "warning": "yellow", "soft": "dim", "question": "italic"}


def render(document: doc.Document, width: int = 120, *, brief: bool = False) -> str:
    """Return the report as plain text without colour codes, for a file or a pipe.

    Sentences are wrapped to ``width`` columns (at least 40); a table may be somewhat wider, see ``layout.grid``.
    """
    return plain(Printed(document, table_fits=False, brief=brief), width)


@dataclass(frozen=True)
class Printed:
    """A report for a ``rich`` console, which knows its own width and whether it may use colour."""

    document: doc.Document
    table_fits: bool = True  # into the console; else it may be wider
    brief: bool = False  # only the title and the sections that open the report

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield title, head and sections, as ``rich`` asks for them."""
        width, title = options.max_width, self.document.title
        head: list[RenderableType] = [paragraph(title, width, style="bold")] if title else []
        shown = [section for section in self.document.sections if section.opening or not self.brief]
        head += [] if self.brief else self._render_blocks(self.document.head, options)
        parts: list[list[RenderableType]] = [head, *([*self._section(section, options)] for section in shown)]
        for place, part in enumerate(filter(None, parts)):
            if place:
                yield ""
            yield from part

    def _render_blocks(self, blocks: Iterable[doc.Block], options: ConsoleOptions) -> Iterator[RenderableType]:
        for block in blocks:
            yield from self._block(block, options)

    def _section(self, section: doc.Section, options: ConsoleOptions) -> Iterator[RenderableType]:
        drawn = [*self._render_blocks(section.blocks, options)]
        if not drawn and not section.summary:
            return
        if section.heading:
            yield RichText(one_line(section.heading), style="bold")
        if section.summary:
            yield _paragraph(section.summary, options.max_width, style="dim")
        yield from drawn

    def _block(self, block: doc.Block, options: ConsoleOptions) -> Iterator[RenderableType]:
        match block:
            case doc.Details():
                yield from self._render_blocks(block.blocks, options)
            case doc.Abridged():
                shown = block.brief if self.brief and block.brief is not None else block.short
                yield from self._render_blocks(shown, options)
            case doc.Section():
                if drawn := [*self._section(block, options)]:
                    yield from ("", *drawn)
            case doc.Table():
                yield from self._table(block, options)
            case _:
                yield from _leaf(block, options.max_width)

    def _table(self, table: doc.Table, options: ConsoleOptions) -> Iterator[RenderableType]:
        rows = [[_cell(cell) for cell in row] for row in table.rows]
        if table.headings:
            yield from grid(table.headings, rows, options, fits=self.table_fits, words=table.words)
            return
        yield from item_lines([f"{name}: {value}" for name, value in rows], options.max_width)


def _leaf(block: doc.Block, width: int) -> Iterator[RenderableType]:
    """Yield what holds no other block; a terminal draws no charts."""
    match block:
        case doc.Paragraph():
            mark = "! " if block.style == "warning" else ""
            yield _paragraph((mark, *doc.pieces(block.text)) if mark else block.text, width, style=STYLES[block.style])
        case doc.List():
            for item in block.items:
                yield from _item(item, width, marked=block.style == "plain")
        case doc.Badges():
            yield _paragraph(_badges(block.items), width, style="dim")
        case doc.CodeBlock():
            yield RichText("\n".join(f"    {one_line(line)}" for line in block.text.splitlines()), no_wrap=True)


def _badges(items: Iterable[doc.Badge]) -> doc.Text:
    """Return badges as one line; what to beware of stands out."""
    pieces: list[str | doc.Strong] = []
    for place, badge in enumerate(items):
        pieces += [*([" · "] if place else []), doc.Strong(badge.text, "beware") if badge.beware else badge.text]
    return tuple(pieces)


def _cell(cell: str | doc.Cell) -> str:
    if isinstance(cell, str):
        return cell
    return f"{cell.text} ({cell.below})" if cell.below else cell.text


def _item(item: doc.Item, width: int, *, marked: bool) -> Iterator[RenderableType]:
    """Yield an item and below it what explains it; one that is not marked has its words in colour."""
    if marked:
        yield paragraph(doc.plain(item.text), width, indent="  ", first="- ")
    else:
        yield _paragraph(item.text, width)
    for reason in (*item.reasons, *item.further):
        yield paragraph(reason, width, style="dim", indent="  ")
    for remark in item.remarks:
        yield paragraph(remark, width, style="yellow", indent="  ")


def _paragraph(text: doc.Text, width: int, *, style: str = "") -> RichText:
    drawn = paragraph(doc.plain(text), width, style=style)
    before = ""
    for piece in doc.pieces(text):
        if isinstance(piece, doc.Strong):
            start = len(one_line(before)) + (1 if before else 0)  # a line break takes a space's place
            drawn.stylize(TONES.get(piece.tone, "bold"), start, start + len(piece.text))
        before += piece if isinstance(piece, str) else piece.text
    return drawn
