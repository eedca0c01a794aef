"""The report for a terminal or a pipe."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.text import Text

from dbdyno.analysis.analyse import Analysis
from dbdyno.analysis.ranking import Ranking
from dbdyno.analysis.verdict import Verdict
from dbdyno.clean import one_line
from dbdyno.report import (
    aa,
    block_layer,
    cost,
    disturbed,
    every_pair,
    factors,
    reported,
    screened,
    stability,
    steadiness,
    tool_figures,
)
from dbdyno.report.layout import grid, items, listed, paragraph, plain
from dbdyno.report.letters import letters_line
from dbdyno.report.ranking import ranking_heading, ranking_headings, ranking_notes, ranking_rows
from dbdyno.report.sentences import (
    Sentence,
    evidence,
    failure_lines,
    no_verdict,
    note_lines,
    remarks,
    table_headings,
    table_rows,
    verdict_sentence,
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


def render(run: Run, analysis: Analysis, width: int = 120) -> str:
    """Return the report as plain text without colour codes, for a file or a pipe.

    Sentences are wrapped to ``width`` columns (at least 40); a table may be somewhat wider, see ``layout.grid``.
    """
    return plain(Report(run, analysis, table_fits=False), width)


@dataclass(frozen=True)
class Report:
    """The report for a ``rich`` console, which knows its own width and whether it may use colour."""

    run: Run
    analysis: Analysis
    table_fits: bool = True  # into the console; else it may be wider

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the verdicts, the table, failures and notes, as ``rich`` asks for them."""
        run, analysis, width = self.run, self.analysis, options.max_width
        yield paragraph(run.title, width, style="bold")
        if run.question:
            yield paragraph(run.question, width, style="italic")
        if line := reported.expected_line(run.expect):
            yield paragraph(line, width, style="dim")
        if run.scale:
            yield paragraph(f"At scale {run.scale}.", width)
        yield ""
        yield from self.main_part(options)
        yield from self._figures(options)
        yield from self._steadiness(options)
        yield from self._beside(options)
        yield from self._factors(width)
        if analysis.ranking:
            yield ""
            yield from _ranked(analysis.ranking, options, fits=self.table_fits)
        yield from listed(screened.HEADING, screened.screened_lines(analysis), width)
        yield from self._every_pair(width)
        yield from self._noise_floor(options)
        yield from self._cost(options)
        yield from listed(stability.HEADING, stability.stability_lines(analysis), width)
        yield from listed(block_layer.HEADING, block_layer.block_layer_lines(analysis), width)
        yield from listed("Failed trials", failure_lines(run), width)
        yield from listed(disturbed.HEADING, disturbed.disturbed_lines_in_short(run, analysis), width)
        yield from listed("Notes", note_lines(run, analysis), width)

    def main_part(self, options: ConsoleOptions) -> Iterator[RenderableType]:
        """Yield the verdicts, why the run stopped, and the table."""
        run, analysis, width = self.run, self.analysis, options.max_width
        yield from self._verdicts(analysis.verdicts, width)
        if not analysis.verdicts:
            yield paragraph(no_verdict(), width)
        yield ""
        if told := stopped_lines(run, analysis):
            for line in told:
                yield paragraph(line, width)
            yield ""
        headings, rows = table_headings(analysis), table_rows(analysis)
        yield from grid(headings, rows, options, fits=self.table_fits)
        if line := letters_line(analysis):
            yield paragraph(line, width, style="dim")

    def _verdicts(self, verdicts: Sequence[Verdict], width: int) -> Iterator[RenderableType]:
        for verdict in verdicts:
            reasons = [evidence(verdict), explanation(verdict, self.analysis)]
            yield from _told(verdict_sentence(verdict, self.analysis), reasons, width)
            for remark in remarks(verdict, self.analysis):
                yield paragraph(remark, width, style="yellow", indent="  ")

    def _figures(self, options: ConsoleOptions) -> Iterator[RenderableType]:
        """Yield what somebody else's program told, if one was run."""
        if headings := tool_figures.figure_headings(self.analysis):
            yield from ("", Text(tool_figures.HEADING, style="bold"))
            yield from grid(headings, tool_figures.figure_rows(self.analysis), options, fits=self.table_fits)

    def _cost(self, options: ConsoleOptions) -> Iterator[RenderableType]:
        """Yield what the devices come to in money, if the study gives prices."""
        if headings := cost.cost_headings(self.analysis):
            yield from ("", Text(cost.HEADING, style="bold"))
            yield from grid(headings, cost.cost_rows(self.analysis), options, fits=self.table_fits)
            for line in cost.cost_lines(self.analysis):
                yield paragraph(line, options.max_width, indent="  ", first="- ")

    def _every_pair(self, width: int) -> Iterator[RenderableType]:
        if self.analysis.every_pair:
            yield from ("", Text(every_pair.HEADING, style="bold"))
            yield paragraph(every_pair.every_pair_note(self.analysis), width, style="dim")
            yield from self._verdicts(self.analysis.every_pair, width)

    def _steadiness(self, options: ConsoleOptions) -> Iterator[RenderableType]:
        """Yield which treatments are steadier than which, and each one's variation."""
        if not self.analysis.steadiness:
            return
        yield from ("", Text(steadiness.HEADING, style="bold"))
        for sentence in steadiness.steadiness_sentences(self.analysis):
            yield paragraph(str(sentence), options.max_width)
        rows = steadiness.steadiness_rows(self.analysis)
        yield from grid(steadiness.steadiness_headings(), rows, options, fits=self.table_fits)
        yield paragraph(steadiness.NOTE, options.max_width, style="dim")

    def _noise_floor(self, options: ConsoleOptions) -> Iterator[RenderableType]:
        """Yield what an A/A run says of its host."""
        floor, width = self.analysis.noise_floor, options.max_width
        if floor is None:
            return
        yield from listed(aa.HEADING, aa.summary_lines(self.analysis, floor), width)
        yield ""
        yield paragraph(aa.reach_text(self.analysis, floor), width)
        if rows := aa.reach_rows(floor):
            yield ""
            yield from grid(aa.REACH_HEADINGS, rows, options, fits=self.table_fits)
        orders = aa.order_lines(floor)
        if orders:
            yield ""
            yield paragraph(orders[0], width)
            yield from items(orders[1:], width)

    def _beside(self, options: ConsoleOptions) -> Iterator[RenderableType]:
        """Yield what others published, beside what was measured."""
        for each in self.analysis.beside:
            yield from ("", Text(reported.HEADING, style="bold"))
            for line in reported.source_lines(each):
                yield paragraph(line, options.max_width, style="dim")
            if rows := reported.table_rows(each):
                yield from grid(reported.table_headings(each), rows, options, fits=self.table_fits)
                if line := reported.summary_line(each):
                    yield paragraph(line, options.max_width)
            for claim in each.claims:
                line = reported.claim_line(claim, each)
                yield paragraph(line, options.max_width, indent="  ", first="- ")
            if line := reported.reason_line(each):
                yield paragraph(line, options.max_width)

    def _factors(self, width: int) -> Iterator[RenderableType]:
        """Yield what the factors do, if there are two or more."""
        told = [*factors.main_effects(self.analysis), *factors.interactions(self.analysis)]
        if not told:
            return
        yield ""
        yield Text("Factors", style="bold")
        if line := factors.whole_plots_line(self.run.design):
            yield paragraph(line, width)
        for sentence, reasons in told:
            yield from _told(sentence, reasons, width)


def render_ranking(ranking: Ranking, width: int = 120) -> str:
    """Return a ranking by itself as plain text."""
    return plain(RankingReport(ranking, table_fits=False), width)


@dataclass(frozen=True)
class RankingReport:
    """A ranking by itself, for a ``rich`` console."""

    ranking: Ranking
    table_fits: bool = True

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield heading, table and notes."""
        yield from _ranked(self.ranking, options, fits=self.table_fits)


def _ranked(ranking: Ranking, options: ConsoleOptions, *, fits: bool) -> Iterator[RenderableType]:
    yield Text(ranking_heading(ranking), style="bold")
    yield from grid(ranking_headings(ranking), ranking_rows(ranking), options, fits=fits)
    for note in ranking_notes(ranking):
        yield paragraph(note, options.max_width, style="dim")


def _told(sentence: Sentence, reasons: list[str], width: int) -> list[RenderableType]:
    """Return a sentence, its word in colour, and below it what explains it."""
    text = paragraph(str(sentence), width)
    start = len(one_line(f"{sentence.subject}{sentence.link}")) + 1  # a line break takes a space's place
    text.stylize(STYLES[sentence.word], start, start + len(sentence.word))
    return [text, *(paragraph(reason, width, style="dim", indent="  ") for reason in reasons if reason)]
