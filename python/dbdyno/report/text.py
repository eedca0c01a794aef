"""The report for a terminal or a pipe."""

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from io import StringIO

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from dbdyno.analysis.analyse import Analysis
from dbdyno.analysis.ranking import Ranking
from dbdyno.analysis.verdict import Verdict
from dbdyno.report import block_layer, cost, disturbed, every_pair, factors, reported, screened, stability, steadiness
from dbdyno.report.aa import HEADING, noise_floor_lines
from dbdyno.report.clean import NO_BREAK, glued, one_line
from dbdyno.report.letters import letters_line
from dbdyno.report.ranking import ranking_heading, ranking_headings, ranking_notes, ranking_rows
from dbdyno.report.sentences import (
    Sentence,
    failure_lines,
    no_verdict,
    note_lines,
    remarks,
    table_headings,
    table_rows,
    verdict_sentence,
    why,
)
from dbdyno.report.stopped import stopped_lines
from dbdyno.report.why import explanation
from dbdyno.store.records import Run

STYLES = {
    "faster": "bold green",
    "slower": "bold red",
    "equivalent": "bold blue",
    "undecided": "bold yellow",
    "not comparable": "bold magenta",
    "differs": "bold",
    "does not differ": "bold blue",
}
MIN_WIDTH = 40


def render(run: Run, analysis: Analysis, width: int = 120) -> str:
    """Return the report as plain text without colour codes, for a file or a pipe.

    Sentences are wrapped to ``width`` columns (at least 40); the table is as wide as it needs to be, one line per row.
    """
    return _plain(Report(run, analysis, table_fits=False), width)


def _plain(report: RenderableType, width: int) -> str:
    buffer = StringIO()
    console = Console(file=buffer, width=max(width, MIN_WIDTH), color_system=None, legacy_windows=False, _environ={})
    console.print(report, crop=False)
    return "\n".join(line.rstrip() for line in buffer.getvalue().splitlines()) + "\n"


@dataclass(frozen=True)
class Report:
    """The report for a ``rich`` console, which knows its own width and whether it may use colour."""

    run: Run
    analysis: Analysis
    table_fits: bool = True  # into the console; else it takes the width it needs

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the verdicts, the table, failures and notes, as ``rich`` asks for them."""
        run, analysis, width = self.run, self.analysis, options.max_width
        yield _paragraph(run.title, width, style="bold")
        if run.question:
            yield _paragraph(run.question, width, style="italic")
        if line := reported.expected_line(run.expect):
            yield _paragraph(line, width, style="dim")
        if run.scale:
            yield _paragraph(f"At scale {run.scale}.", width)
        yield ""
        yield from self._verdicts(analysis.verdicts, width)
        if not analysis.verdicts:
            yield _paragraph(no_verdict(), width)
        yield ""
        if told := stopped_lines(run, analysis):
            for line in told:
                yield _paragraph(line, width)
            yield ""
        headings, rows = table_headings(analysis), table_rows(analysis)
        yield from _grid(headings, rows, console, options, fits=self.table_fits)
        if line := letters_line(analysis):
            yield _paragraph(line, width, style="dim")
        yield from self._steadiness(console, options)
        yield from self._beside(console, options)
        yield from self._factors(width)
        if analysis.ranking:
            yield ""
            yield from _ranked(analysis.ranking, console, options, fits=self.table_fits)
        yield from _listed(screened.HEADING, screened.screened_lines(analysis), width)
        yield from self._every_pair(width)
        yield from _listed(HEADING, noise_floor_lines(analysis), width)
        yield from self._cost(console, options)
        yield from _listed(stability.HEADING, stability.stability_lines(analysis), width)
        yield from _listed(block_layer.HEADING, block_layer.block_layer_lines(analysis), width)
        yield from _listed("Failed trials", failure_lines(run), width)
        yield from _listed(disturbed.HEADING, disturbed.disturbed_lines_in_short(run, analysis), width)
        yield from _listed("Notes", note_lines(run, analysis), width)

    def _verdicts(self, verdicts: Sequence[Verdict], width: int) -> Iterator[RenderableType]:
        for verdict in verdicts:
            reasons = [why(verdict), explanation(verdict, self.analysis)]
            yield from _told(verdict_sentence(verdict, self.analysis), reasons, width)
            for remark in remarks(verdict, self.analysis):
                yield _paragraph(remark, width, style="yellow", indent="  ")

    def _cost(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        """Yield what the devices come to in money, if the study gives prices."""
        if headings := cost.cost_headings(self.analysis):
            yield from ("", Text(cost.HEADING, style="bold"))
            yield from _grid(headings, cost.cost_rows(self.analysis), console, options, fits=self.table_fits)
            for line in cost.cost_lines(self.analysis):
                yield _paragraph(line, options.max_width, indent="  ", first="- ")

    def _every_pair(self, width: int) -> Iterator[RenderableType]:
        if self.analysis.every_pair:
            yield from ("", Text(every_pair.HEADING, style="bold"))
            yield _paragraph(every_pair.every_pair_note(self.analysis), width, style="dim")
            yield from self._verdicts(self.analysis.every_pair, width)

    def _steadiness(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        """Yield which treatments are steadier than which, and each one's variation."""
        if not self.analysis.steadiness:
            return
        yield from ("", Text(steadiness.HEADING, style="bold"))
        for sentence in steadiness.steadiness_sentences(self.analysis):
            yield _paragraph(str(sentence), options.max_width)
        rows = steadiness.steadiness_rows(self.analysis)
        yield from _grid(steadiness.steadiness_headings(), rows, console, options, fits=self.table_fits)
        yield _paragraph(steadiness.NOTE, options.max_width, style="dim")

    def _beside(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        """Yield what others published, beside what was measured."""
        for each in self.analysis.beside:
            yield from ("", Text(reported.HEADING, style="bold"))
            for line in reported.source_lines(each):
                yield _paragraph(line, options.max_width, style="dim")
            if rows := reported.table_rows(each):
                yield from _grid(reported.table_headings(each), rows, console, options, fits=self.table_fits)
                yield _paragraph(reported.summary_line(each), options.max_width)
            for claim in each.claims:
                line = reported.claim_line(claim, each)
                yield _paragraph(line, options.max_width, indent="  ", first="- ")
            if line := reported.reason_line(each):
                yield _paragraph(line, options.max_width)

    def _factors(self, width: int) -> Iterator[RenderableType]:
        """Yield what the factors do, if there are two or more."""
        told = [*factors.main_effects(self.analysis), *factors.interactions(self.analysis)]
        if not told:
            return
        yield ""
        yield Text("Factors", style="bold")
        if line := factors.whole_plots_line(self.run.design):
            yield _paragraph(line, width)
        for sentence, reasons in told:
            yield from _told(sentence, reasons, width)


def render_ranking(ranking: Ranking, width: int = 120) -> str:
    """Return a ranking by itself as plain text."""
    return _plain(RankingReport(ranking, table_fits=False), width)


@dataclass(frozen=True)
class RankingReport:
    """A ranking by itself, for a ``rich`` console."""

    ranking: Ranking
    table_fits: bool = True

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield heading, table and notes."""
        yield from _ranked(self.ranking, console, options, fits=self.table_fits)


def _ranked(ranking: Ranking, console: Console, options: ConsoleOptions, *, fits: bool) -> Iterator[RenderableType]:
    yield Text(ranking_heading(ranking), style="bold")
    yield from _grid(ranking_headings(ranking), ranking_rows(ranking), console, options, fits=fits)
    for note in ranking_notes(ranking):
        yield _paragraph(note, options.max_width, style="dim")


def _grid(
    headings: tuple[str, ...], rows: list[tuple[str, ...]], console: Console, options: ConsoleOptions, *, fits: bool
) -> list[RenderableType]:
    """Return a table, or one paragraph per row where only the labels may wrap and it still doesn't fit."""
    table = Table(box=None, pad_edge=False, show_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    table.add_column(Text(one_line(headings[0])), min_width=16)
    for place, heading in enumerate(map(one_line, headings[1:]), start=1):
        # Rich takes a cell's longest word for its smallest width, even where it may not wrap.
        widest = max(cell_len(text) for text in (heading, *(one_line(row[place]) for row in rows)))
        table.add_column(Text(heading), justify="right", no_wrap=True, min_width=widest)
    for row in rows:
        table.add_row(*(Text(one_line(cell)) for cell in row))
    needed = Measurement.get(console, options.update(width=100_000), table)
    if not fits:
        table.width = needed.maximum
    elif needed.minimum > options.max_width:
        return [_stacked(headings, row, options.max_width) for row in rows]
    return [table]


def _told(sentence: Sentence, reasons: list[str], width: int) -> list[RenderableType]:
    """Return a sentence, its word in colour, and below it what explains it."""
    text = _paragraph(str(sentence), width)
    start = len(one_line(f"{sentence.subject}{sentence.link}")) + 1  # a line break takes a space's place
    text.stylize(STYLES[sentence.word], start, start + len(sentence.word))
    return [text, *(_paragraph(reason, width, style="dim", indent="  ") for reason in reasons if reason)]


def _paragraph(text: str, width: int, *, style: str = "", indent: str = "", first: str | None = None) -> Text:
    start = indent if first is None else first
    # textwrap, unlike rich, keeps together what a no-break space joins.
    lines = textwrap.wrap(glued(text), width, initial_indent=start, subsequent_indent=indent, break_on_hyphens=False)
    return Text("\n".join(lines).replace(NO_BREAK, " "), style=style, no_wrap=True, overflow="ignore")


def _stacked(headings: tuple[str, ...], row: tuple[str, ...], width: int) -> Text:
    figures = []
    for heading, cell in zip(headings[1:], row[1:], strict=True):
        between = NO_BREAK if len(f"  {heading} {cell},") <= width else " "
        figures.append(between.join(part.replace(" ", NO_BREAK) for part in (heading, one_line(cell))))
    indent = "  "
    lines = textwrap.wrap(
        ", ".join(figures), width, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False
    )
    text = Text.assemble(_paragraph(row[0], width, style="bold"), "\n", "\n".join(lines).replace(NO_BREAK, " "))
    text.no_wrap = True
    return text


def _listed(heading: str, lines: list[str], width: int) -> list[RenderableType]:
    if not lines:
        return []
    items = [_paragraph(line, width, indent="  ", first="- ") for line in lines]
    return ["", Text(heading, style="bold"), *items]
