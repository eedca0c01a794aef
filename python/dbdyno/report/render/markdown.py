"""A report for a wiki, an issue or a blog, in GitHub's Markdown."""

from collections.abc import Iterable, Iterator

from dbdyno.model.printable import markdown_text, one_line
from dbdyno.report import document as doc

_MARKS = dict.fromkeys(("", "advice", "soft"), ("", ""))
_MARKS |= {"headline": ("**", "**"), "warning": ("> ", ""), "question": ("*", "*")}


def render(document: doc.Document) -> str:
    """Return the report in GitHub's Markdown."""
    parts = [f"# {markdown_text(document.title)}"] if document.title else []
    parts += [*_render_blocks(document.head, 2), *_render_blocks(document.sections, 2)]
    return "\n\n".join(parts) + "\n"


def _render_blocks(blocks: Iterable[doc.Block], level: int) -> Iterator[str]:
    """Yield each block that has something to show; a section's heading is of this level."""
    for block in blocks:
        yield from _block(block, level)


def _block(block: doc.Block, level: int) -> Iterator[str]:
    match block:
        case doc.Details():
            yield from _render_blocks(block.blocks, level)
        case doc.Abridged():
            yield from _render_blocks(block.short, level)
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
            yield " · ".join(
                f"**{markdown_text(badge.text)}**" if badge.beware else markdown_text(badge.text)
                for badge in block.items
            )
        case doc.Table():
            yield "\n".join(_table(block))
        case doc.CodeBlock():
            yield "\n".join(f"    {one_line(line)}" for line in block.text.splitlines())


def _section(section: doc.Section, level: int) -> Iterator[str]:
    drawn = [_inline(section.summary)] if section.summary else []
    drawn += _render_blocks(section.blocks, level + 1)
    if drawn and section.heading:
        yield f"{'#' * level} {markdown_text(section.heading)}"
    yield from drawn


def _item(item: doc.Item) -> Iterator[str]:
    yield " ".join((f"- {_inline(item.text)}", *map(markdown_text, (*item.reasons, *item.remarks))))
    yield from (f"  - {markdown_text(reason)}" for reason in item.further)


def _table(table: doc.Table) -> Iterator[str]:
    headings = table.headings or ("", "")
    yield _line(map(markdown_text, headings))
    words = {0, *table.word_columns()} if table.headings else {0, 1}
    yield _line("---" if place in words else "---:" for place in range(len(headings)))
    yield from (_line(map(_cell, row)) for row in table.rows)


def _cell(cell: str | doc.Cell) -> str:
    if isinstance(cell, str):
        return markdown_text(cell)
    shown = f"**{markdown_text(cell.text)}**" if cell.strong or cell.tone else markdown_text(cell.text)
    return f"{shown} ({markdown_text(cell.below)})" if cell.below else shown


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _inline(text: doc.Text) -> str:
    return "".join(
        spaced(piece, markdown_text(piece)) if isinstance(piece, str) else f"**{markdown_text(piece.text)}**"
        for piece in doc.pieces(text)
    )


def spaced(piece: str, shown: str) -> str:
    """Return what is shown of a piece of a text with the spaces at its ends, which join it to its neighbours."""
    if not shown:
        return piece and " "
    return f"{' ' if piece[0] == ' ' else ''}{shown}{' ' if piece[-1] == ' ' else ''}"
