"""A report for a terminal or a pipe."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.text import Text as RichText

from dbdyno.model.printable import one_line
from dbdyno.model.word import Word
from dbdyno.report import document as doc
from dbdyno.report.render import layout

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
    return layout.plain(Printed(document, table_fits=False, brief=brief), width)


@dataclass(frozen=True)
class Printed:
    """A report for a ``rich`` console, which knows its own width and whether it may use colour."""

    document: doc.Document
    table_fits: bool = True  # into the console; else it may be wider
    brief: bool = False  # only the title and the sections that open the report

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield title, head and sections, as ``rich`` asks for them."""
        width, title = options.max_width, self.document.title
        head: list[RenderableType] = [layout.paragraph(title, width, style="bold")] if title else []
        shown = [one for one in self.document.sections if one.opening or not self.brief]
        head += [] if self.brief else self._drawn(self.document.head, options)
        parts: list[list[RenderableType]] = [head, *([*self._section(one, options)] for one in shown)]
        for place, part in enumerate(filter(None, parts)):
            if place:
                yield ""
            yield from part

    def _drawn(self, blocks: Iterable[doc.Block], options: ConsoleOptions) -> Iterator[RenderableType]:
        for block in blocks:
            yield from self._block(block, options)

    def _section(self, section: doc.Section, options: ConsoleOptions) -> Iterator[RenderableType]:
        drawn = [*self._drawn(section.blocks, options)]
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
                yield from self._drawn(block.blocks, options)
            case doc.Abridged():
                shown = block.brief if self.brief and block.brief is not None else block.short
                yield from self._drawn(shown, options)
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
            yield from layout.grid(table.headings, rows, options, fits=self.table_fits, words=table.words)
            return
        yield from layout.items([f"{name}: {value}" for name, value in rows], options.max_width)


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
        case doc.Code():
            yield RichText("\n".join(f"    {one_line(line)}" for line in block.text.splitlines()), no_wrap=True)


def _badges(items: Iterable[doc.Badge]) -> doc.Text:
    """Return badges as one line; what to beware of stands out."""
    found: list[str | doc.Strong] = []
    for place, one in enumerate(items):
        found += [*([" · "] if place else []), doc.Strong(one.text, "beware") if one.beware else one.text]
    return tuple(found)


def _cell(cell: str | doc.Cell) -> str:
    if isinstance(cell, str):
        return cell
    return f"{cell.text} ({cell.below})" if cell.below else cell.text


def _item(item: doc.Item, width: int, *, marked: bool) -> Iterator[RenderableType]:
    """Yield an item and below it what explains it; one that is not marked has its words in colour."""
    if marked:
        yield layout.paragraph(doc.plain(item.text), width, indent="  ", first="- ")
    else:
        yield _paragraph(item.text, width)
    for reason in (*item.reasons, *item.further):
        yield layout.paragraph(reason, width, style="dim", indent="  ")
    for remark in item.remarks:
        yield layout.paragraph(remark, width, style="yellow", indent="  ")


def _paragraph(text: doc.Text, width: int, *, style: str = "") -> RichText:
    drawn = layout.paragraph(doc.plain(text), width, style=style)
    before = ""
    for piece in doc.pieces(text):
        if isinstance(piece, doc.Strong):
            start = len(one_line(before)) + (1 if before else 0)  # a line break takes a space's place
            drawn.stylize(TONES.get(piece.tone, "bold"), start, start + len(piece.text))
        before += piece if isinstance(piece, str) else piece.text
    return drawn
