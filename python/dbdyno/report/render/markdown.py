"""A report for a wiki, an issue or a blog, in GitHub's Markdown."""

import re
from collections.abc import Iterable, Iterator

from dbdyno.model.printable import one_line
from dbdyno.report import document as doc

_SPECIAL = re.compile(r"[\\`*{}\[\]<>|~&#$]|(?<![^\W_])_|_(?![^\W_])")  # of CommonMark, GitHub's additions, HTML
_LEADING = re.compile(r"^(\d*)([-+=.)])(?=\s|$)")  # a list or an underline, at the start of a line
_MARKS = dict.fromkeys(("", "advice", "soft"), ("", ""))
_MARKS |= {"headline": ("**", "**"), "warning": ("> ", ""), "question": ("*", "*")}


def escape(text: str) -> str:
    """Return ``text`` such that every Markdown reader shows it literally, on one line."""
    return _LEADING.sub(r"\1\\\2", _SPECIAL.sub(r"\\\g<0>", one_line(text)))


def render(document: doc.Document) -> str:
    """Return the report in GitHub's Markdown."""
    parts = [f"# {escape(document.title)}"] if document.title else []
    parts += [*_drawn(document.head, 2), *_drawn(document.sections, 2)]
    return "\n\n".join(parts) + "\n"


def _drawn(blocks: Iterable[doc.Block], level: int) -> Iterator[str]:
    """Yield each block that has something to show; a section's heading is of this level."""
    for block in blocks:
        yield from _block(block, level)


def _block(block: doc.Block, level: int) -> Iterator[str]:
    match block:
        case doc.Details():
            yield from _drawn(block.blocks, level)
        case doc.Abridged():
            yield from _drawn(block.short, level)
        case doc.Section():
            yield from _section(block, level)
        case _:
            yield from _leaf(block)


def _leaf(block: doc.Block) -> Iterator[str]:
    """Yield what holds no other block; a wiki draws no charts."""
    match block:
        case doc.Paragraph():
            start, end = _MARKS[block.style]
            yield f"{start}{_inline(block.text)}{end}"
        case doc.List():
            yield "\n".join(line for item in block.items for line in _item(item))
        case doc.Badges():
            yield " · ".join(f"**{escape(one.text)}**" if one.beware else escape(one.text) for one in block.items)
        case doc.Table():
            yield "\n".join(_table(block))
        case doc.Code():
            yield "\n".join(f"    {one_line(line)}" for line in block.text.splitlines())


def _section(section: doc.Section, level: int) -> Iterator[str]:
    drawn = [_inline(section.summary)] if section.summary else []
    drawn += _drawn(section.blocks, level + 1)
    if drawn and section.heading:
        yield f"{'#' * level} {escape(section.heading)}"
    yield from drawn


def _item(item: doc.Item) -> Iterator[str]:
    yield " ".join((f"- {_inline(item.text)}", *map(escape, (*item.reasons, *item.remarks))))
    yield from (f"  - {escape(reason)}" for reason in item.further)


def _table(table: doc.Table) -> Iterator[str]:
    headings = table.headings or ("", "")
    yield _line(map(escape, headings))
    words = {0, *table.word_columns()} if table.headings else {0, 1}
    yield _line("---" if place in words else "---:" for place in range(len(headings)))
    yield from (_line(map(_cell, row)) for row in table.rows)


def _cell(cell: str | doc.Cell) -> str:
    if isinstance(cell, str):
        return escape(cell)
    shown = f"**{escape(cell.text)}**" if cell.strong or cell.tone else escape(cell.text)
    return f"{shown} ({escape(cell.below)})" if cell.below else shown


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _inline(text: doc.Text) -> str:
    return "".join(
        spaced(piece, escape(piece)) if isinstance(piece, str) else f"**{escape(piece.text)}**"
        for piece in doc.pieces(text)
    )


def spaced(piece: str, shown: str) -> str:
    """Return what is shown of a piece of a text with the spaces at its ends, which join it to its neighbours."""
    if not shown:
        return piece and " "
    return f"{' ' if piece[0] == ' ' else ''}{shown}{' ' if piece[-1] == ' ' else ''}"
