"""Several runs for a terminal or a pipe: the ranking over them, then each one's verdicts and table."""

from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from dbdyno.analysis.several import Several
from dbdyno.report.layout import listed, paragraph, plain
from dbdyno.report.several import (
    DIFFERENCES_HEADING,
    NOT_INTERLEAVED,
    differences_lines,
    heading,
    member_line,
    unranked_line,
)
from dbdyno.report.text import RankingReport, Report


def render(several: Several, width: int = 120) -> str:
    """Return the report as plain text without colour codes."""
    return plain(SeveralReport(several, table_fits=False), width)


@dataclass(frozen=True)
class SeveralReport:
    """Several runs, for a ``rich`` console."""

    several: Several
    table_fits: bool = True  # into the console; else it may be wider

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the ranking, then each run, then what differs between them."""
        several, width = self.several, options.max_width
        yield paragraph(heading(several), width, style="bold")
        yield ""
        yield paragraph(NOT_INTERLEAVED, width)
        yield ""
        if several.ranking:
            yield RankingReport(several.ranking, table_fits=self.table_fits)
        else:
            yield paragraph(unranked_line(several), width)
        for member in several.members:
            yield ""
            yield Text("-" * min(width, 40), style="dim")
            yield paragraph(member.name, width, style="bold")
            if member.run.question:
                yield paragraph(member.run.question, width, style="italic")
            yield paragraph(f"{member_line(member)}.", width, style="dim")
            yield ""
            yield from Report(member.run, member.analysis, table_fits=self.table_fits).main_part(options)
        yield from listed(DIFFERENCES_HEADING, differences_lines(several), width)
