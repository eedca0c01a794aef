"""Several runs on one page: the ranking over them, then each one's verdicts, effects and table."""

from typing import Any

from dbdyno.analysis.several import Member, Several
from dbdyno.analysis.wording import margin_text
from dbdyno.report.contents import with_contents
from dbdyno.report.disturbed import disturbed_summary
from dbdyno.report.html import effect_charts, environment, frame, legend, ranking_parts, told
from dbdyno.report.letters import letters_line
from dbdyno.report.sentences import failure_lines, no_verdict, note_lines, table_headings, table_rows
from dbdyno.report.several import (
    DIFFERENCES_HEADING,
    NOT_INTERLEAVED,
    differences,
    heading,
    member_line,
    unranked_line,
)
from dbdyno.report.stopped import interval_words, stopped_lines

_NO_SERIES: dict[str, Any] = {"treatments": [], "panels": [], "phases": []}


def render(several: Several) -> str:
    """Return the page; it says the same as the runs' own pages, but for their series."""
    page = (
        environment()
        .get_template("runs.html.j2")
        .render(
            **frame(heading(several), _NO_SERIES),
            **ranking_parts(several.ranking),
            heading=heading(several),
            not_interleaved=NOT_INTERLEAVED,
            unranked=unranked_line(several),
            runs=[_member(member) for member in several.members],
            no_verdict=no_verdict(),
            differences=differences(several),
            differences_heading=DIFFERENCES_HEADING,
            differences_headings=["fact", *(member.name for member in several.members)],
        )
    )
    return with_contents(page)


def _member(member: Member) -> dict[str, Any]:
    run, analysis = member.run, member.analysis
    disturbed = disturbed_summary(run, analysis)
    return {
        "name": member.name,
        "run": run,
        "analysis": analysis,
        "facts": member_line(member),
        "verdicts": told(analysis.verdicts, analysis),
        "stopped": stopped_lines(run, analysis),
        "forest": effect_charts(analysis),
        "headings": table_headings(analysis),
        "rows": list(zip(table_rows(analysis), legend(run), strict=True)),
        "letters_line": letters_line(analysis),
        "beside_the_point": [*failure_lines(run), *([disturbed] if disturbed else []), *note_lines(run, analysis)],
        "interval": interval_words(analysis),
        "margin": margin_text(analysis.margin),
    }
