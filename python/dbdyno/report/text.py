"""The report for a terminal or a pipe."""

import textwrap
from dataclasses import dataclass
from io import StringIO

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from dbdyno.analysis.analyse import Analysis
from dbdyno.report.clean import NO_BREAK, glued, one_line
from dbdyno.report.sentences import (
    TABLE_HEADINGS,
    failure_lines,
    no_verdict,
    note_lines,
    table_rows,
    verdict_sentence,
    why,
)
from dbdyno.store.records import Run

STYLES = {
    "faster": "bold green",
    "slower": "bold red",
    "equivalent": "bold blue",
    "undecided": "bold yellow",
    "not comparable": "bold magenta",
}
MIN_WIDTH = 40


def render(run: Run, analysis: Analysis, width: int = 120) -> str:
    """Return the report as plain text without colour codes, no line wider than ``width`` columns (at least 40)."""
    buffer = StringIO()
    console = Console(file=buffer, width=max(width, MIN_WIDTH), color_system=None, legacy_windows=False, _environ={})
    console.print(Report(run, analysis))
    return "\n".join(line.rstrip() for line in buffer.getvalue().splitlines()) + "\n"


@dataclass(frozen=True)
class Report:
    """The report for a ``rich`` console, which knows its own width and whether it may use colour."""

    run: Run
    analysis: Analysis

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the verdicts, the table, failures and notes, as ``rich`` asks for them."""
        run, analysis, width = self.run, self.analysis, options.max_width
        yield _paragraph(run.title, width, style="bold")
        if run.question:
            yield _paragraph(run.question, width, style="italic")
        yield ""
        for verdict in analysis.verdicts:
            sentence = verdict_sentence(verdict, analysis)
            text = _paragraph(str(sentence), width)
            start = len(one_line(f"{sentence.subject}{sentence.link}")) + 1  # a line break takes a space's place
            text.stylize(STYLES[sentence.word], start, start + len(sentence.word))
            yield text
            if why(verdict):
                yield _paragraph(why(verdict), width, style="dim", indent="  ")
        if not analysis.verdicts:
            yield _paragraph(no_verdict(), width)
        yield ""
        yield from _table(analysis, console, options)
        yield from _listed("Failed trials", failure_lines(run), width)
        yield from _listed("Notes", note_lines(run, analysis), width)


def _paragraph(text: str, width: int, *, style: str = "", indent: str = "", first: str | None = None) -> Text:
    start = indent if first is None else first
    # textwrap, unlike rich, keeps together what a no-break space joins.
    lines = textwrap.wrap(glued(text), width, initial_indent=start, subsequent_indent=indent, break_on_hyphens=False)
    return Text("\n".join(lines).replace(NO_BREAK, " "), style=style, no_wrap=True, overflow="ignore")


def _table(analysis: Analysis, console: Console, options: ConsoleOptions) -> list[RenderableType]:
    """Return the table, or one paragraph per treatment where only the labels may wrap and it still doesn't fit."""
    table = Table(box=None, pad_edge=False, show_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    table.add_column(TABLE_HEADINGS[0], min_width=16, overflow="fold")
    for heading in TABLE_HEADINGS[1:]:
        table.add_column(Text(heading), justify="right", no_wrap=True)
    for row in table_rows(analysis):
        table.add_row(*(Text(one_line(cell)) for cell in row))
    if Measurement.get(console, options.update(width=10_000), table).minimum <= options.max_width:
        return [table]
    return [_stacked(row, options.max_width) for row in table_rows(analysis)]


def _stacked(row: tuple[str, ...], width: int) -> Text:
    figures = (
        f"{heading}{NO_BREAK}{cell}".replace(" ", NO_BREAK)
        for heading, cell in zip(TABLE_HEADINGS[1:], row[1:], strict=True)
    )
    lines = textwrap.wrap(", ".join(figures), width, initial_indent="  ", subsequent_indent="  ")
    text = Text.assemble(_paragraph(row[0], width, style="bold"), "\n", "\n".join(lines).replace(NO_BREAK, " "))
    text.no_wrap = True
    return text


def _listed(heading: str, lines: list[str], width: int) -> list[RenderableType]:
    if not lines:
        return []
    items = [_paragraph(line, width, indent="  ", first="- ") for line in lines]
    return ["", Text(heading, style="bold"), *items]
