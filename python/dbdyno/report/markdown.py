"""The report for a wiki, an issue or a blog."""

import re
from collections.abc import Sequence

from dbdyno.analysis.analyse import Analysis
from dbdyno.analysis.ranking import Ranking
from dbdyno.analysis.reported import Beside
from dbdyno.analysis.several import Several
from dbdyno.analysis.verdict import Verdict
from dbdyno.clean import one_line
from dbdyno.report import (
    aa,
    block_layer,
    cells,
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
from dbdyno.report.letters import letters_line
from dbdyno.report.ranking import ranking_heading, ranking_headings, ranking_notes, ranking_rows
from dbdyno.report.reproduce import command
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
from dbdyno.report.several import (
    DIFFERENCES_HEADING,
    NOT_INTERLEAVED,
    differences_lines,
    heading,
    member_line,
    unranked_line,
)
from dbdyno.report.stopped import stopped_lines
from dbdyno.report.why import explanation
from dbdyno.store.records import Run

_SPECIAL = re.compile(r"[\\`*{}\[\]<>|~&#$]|(?<![^\W_])_|_(?![^\W_])")  # of CommonMark, GitHub's additions, HTML
_LEADING = re.compile(r"^(\d*)([-+=.)])(?=\s|$)")  # a list or an underline, at the start of a line


def escape(text: str) -> str:
    """Return ``text`` such that every Markdown reader shows it literally, on one line."""
    return _LEADING.sub(r"\1\\\2", _SPECIAL.sub(r"\\\g<0>", one_line(text)))


def render(run: Run, analysis: Analysis) -> str:
    """Return the report in GitHub's Markdown."""
    parts = [f"# {escape(run.title)}", ""]
    if run.question:
        parts += [f"*{escape(run.question)}*", ""]
    if line := reported.expected_line(run.expect):
        parts += [escape(line), ""]
    parts += [f"At scale {escape(run.scale)}.", ""] if run.scale else []
    parts += _verdicts(analysis.verdicts, analysis)
    if not analysis.verdicts:
        parts.append(no_verdict())
    if told := stopped_lines(run, analysis):
        parts += ["", " ".join(map(escape, told))]
    parts += ["", *_table(table_headings(analysis), table_rows(analysis))]
    if line := letters_line(analysis):
        parts += ["", escape(line)]
    parts += _cells(analysis)
    parts += _tool_figures(analysis)
    parts += _steadiness(analysis)
    for each in analysis.beside:
        parts += _beside(each)
    parts += _factors(run, analysis)
    if analysis.ranking:
        parts += ["", *_ranking(analysis.ranking)]
    parts += _listed(screened.HEADING, screened.screened_lines(analysis))
    if note := every_pair.every_pair_note(analysis):
        parts += ["", f"## {every_pair.HEADING}", "", escape(note), "", *_verdicts(analysis.every_pair, analysis)]
    parts += _noise_floor(analysis)
    if headings := cost.cost_headings(analysis):
        table = _table(headings, cost.cost_rows(analysis))
        lines = [f"- {escape(line)}" for line in cost.cost_lines(analysis)]
        parts += ["", f"## {cost.HEADING}", "", *table, "", *lines]
    parts += _listed(stability.HEADING, stability.stability_lines(analysis))
    parts += _listed(block_layer.HEADING, block_layer.block_layer_lines(analysis))
    parts += _listed("Failed trials", failure_lines(run))
    parts += _listed(disturbed.HEADING, disturbed.disturbed_lines_in_short(run, analysis))
    parts += _listed("Notes", note_lines(run, analysis))
    parts += _reproduce(run)
    return "\n".join(parts) + "\n"


def _tool_figures(analysis: Analysis) -> list[str]:
    headings = tool_figures.figure_headings(analysis)
    if not headings:
        return []
    return ["", f"## {tool_figures.HEADING}", "", *_table(headings, tool_figures.figure_rows(analysis))]


def render_several(several: Several) -> str:
    """Return several runs in GitHub's Markdown: the ranking over them, then each one's verdicts and table."""
    parts = [f"# {escape(heading(several))}", "", escape(NOT_INTERLEAVED), ""]
    parts += _ranking(several.ranking) if several.ranking else [escape(unranked_line(several))]
    for member in several.members:
        run, analysis = member.run, member.analysis
        parts += ["", f"## {escape(member.name)}", ""]
        parts += [f"*{escape(run.question)}*", ""] if run.question else []
        parts += [escape(f"{member_line(member)}."), "", *_verdicts(analysis.verdicts, analysis)]
        parts += [] if analysis.verdicts else [no_verdict()]
        parts += ["", *_table(table_headings(analysis), table_rows(analysis))]
        parts += ["", escape(line)] if (line := letters_line(analysis)) else []
    parts += _listed(DIFFERENCES_HEADING, differences_lines(several))
    return "\n".join(parts) + "\n"


def render_ranking(ranking: Ranking) -> str:
    """Return a ranking by itself."""
    return "\n".join(_ranking(ranking)) + "\n"


def _ranking(ranking: Ranking) -> list[str]:
    table = _table(ranking_headings(ranking), ranking_rows(ranking))
    notes = [line for note in ranking_notes(ranking) for line in ("", escape(note))]
    return [f"## {ranking_heading(ranking)}", "", *table, *notes]


def _cells(analysis: Analysis) -> list[str]:
    found = cells.cells(analysis)
    return ["", f"## {cells.HEADING}", "", *_table(found.headings, found.rows), "", cells.NOTE] if found else []


def _steadiness(analysis: Analysis) -> list[str]:
    if not analysis.steadiness:
        return []
    told = [f"- {_sentence(one)}" for one in steadiness.steadiness_sentences(analysis)]
    table = _table(steadiness.steadiness_headings(), steadiness.steadiness_rows(analysis))
    return ["", f"## {steadiness.HEADING}", "", *told, "", *table, "", escape(steadiness.NOTE)]


def _beside(each: Beside) -> list[str]:
    rows = reported.table_rows(each)
    table = ["", *_table(reported.table_headings(each), rows), "", escape(reported.summary_line(each))] if rows else []
    claims = [f"- {escape(reported.claim_line(claim, each))}" for claim in each.claims]
    reason = reported.reason_line(each)
    return [
        *("", f"## {reported.HEADING}", "", *map(escape, reported.source_lines(each)), *table),
        *(["", *claims] if claims else []),
        *(["", escape(reason)] if reason else []),
    ]


def _noise_floor(analysis: Analysis) -> list[str]:
    floor = analysis.noise_floor
    if floor is None:
        return []
    parts = [*_listed(aa.HEADING, aa.summary_lines(analysis, floor)), "", escape(aa.reach_text(analysis, floor))]
    rows, orders = aa.reach_rows(floor), aa.order_lines(floor)
    parts += ["", *_table(aa.REACH_HEADINGS, rows)] if rows else []
    return [*parts, "", escape(orders[0]), "", *(f"- {escape(line)}" for line in orders[1:])] if orders else parts


def _reproduce(run: Run) -> list[str]:
    if not run.study_text:
        return []
    versions = ", ".join(f"{name} {version}" for name, version in run.versions.items())
    return ["", "## How to reproduce", "", f"    {one_line(command(run))}", "", escape(f"Measured with {versions}.")]


def _verdicts(verdicts: Sequence[Verdict], analysis: Analysis) -> list[str]:
    lines = []
    for one in verdicts:
        lines.append(_told(verdict_sentence(one, analysis), [evidence(one), *remarks(one, analysis)]))
        if text := explanation(one, analysis):
            lines.append(f"  - {escape(text)}")
    return lines


def _factors(run: Run, analysis: Analysis) -> list[str]:
    told = [_told(*each) for each in (*factors.main_effects(analysis), *factors.interactions(analysis))]
    line = factors.whole_plots_line(run.design)
    return ["", "## Factors", "", *([escape(line), ""] if line else []), *told] if told else []


def _told(sentence: Sentence, reasons: list[str]) -> str:
    return " ".join((f"- {_sentence(sentence)}", *(escape(reason) for reason in reasons if reason)))


def _sentence(sentence: Sentence) -> str:
    separator = " " if sentence.rest.startswith(" ") else ""
    return f"{escape(sentence.subject)}{sentence.link}**{sentence.word}**{separator}{escape(sentence.rest)}"


def _table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    lines = [_line([escape(heading) for heading in headings])]
    lines.append(_line(["---", *["---:"] * (len(headings) - 1)]))
    return lines + [_line([escape(cell) for cell in row]) for row in rows]


def _line(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _listed(heading: str, lines: list[str]) -> list[str]:
    return ["", f"## {heading}", "", *(f"- {escape(line)}" for line in lines)] if lines else []
