"""Tables and long lines for the terminal."""

import shutil
import textwrap

COLUMNS = 100  # at most; long lines of a wide terminal are hard to read
COLUMNS_MIN = 40


def table(head: tuple[str, ...], rows: list[list[str]], right: int) -> str:
    """Columns as wide as their longest word; from the ``right``-th on they are numbers."""
    widths = [max(len(cell) for cell in column) for column in zip(head, *rows, strict=True)]
    lines = (
        "  ".join(
            f"{cell:{'>' if at >= right else '<'}{width}}"
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in (list(head), *rows)
    )
    return "\n".join(line.rstrip() for line in lines)


def hanging(start: str, text: str) -> str:
    """A text behind its start, continued below its own beginning where it is longer than a line of the terminal."""
    indent, columns = " " * len(start), shutil.get_terminal_size((COLUMNS, 24)).columns
    return textwrap.fill(
        text,
        min(COLUMNS, max(COLUMNS_MIN, columns)),
        initial_indent=start,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
