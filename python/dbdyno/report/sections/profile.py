"""The server's processor time by function: flame graphs of each comparison, and the functions that differ most."""

from typing import Any

from dbdyno.analysis.profiles import ProfilesCompared, compared_profiles
from dbdyno.model.wording import count, number
from dbdyno.report.charts import flame
from dbdyno.report.document import Abridged, Block, Paragraph, Section, Table
from dbdyno.report.source import Source

SHOWN_MAX = 6  # comparisons on a page; JSON has all
FUNCTIONS_SHOWN, FUNCTIONS_MAX = 10, 200  # in a table, in JSON
FEW_SAMPLES = 500  # of which a function with a tenth of the time is known to a fifth of that
NOTE = (
    "From one trial of each treatment after the judged ones, in which perf sampled the server: it is no part of any"
    " verdict. Own time: of the function itself, without what it calls. [file]: functions that the file does not name;"
    " the server's debug symbols name them. What waits for a disk or a lock is not sampled."
)


def section(source: Source) -> Section | None:
    """Return graphs and a table for each comparison of which both treatments have a profile; None of none."""
    compared = compared_profiles(source.run.design, source.profiles)
    if not compared:
        return None
    labels = source.run.design.labels
    blocks: list[Block] = []
    for each in compared[:SHOWN_MAX]:
        level, baseline = labels[each.comparison.level], labels[each.comparison.baseline]
        blocks += [flame.chart(each, level, baseline), _table(each, level, baseline)]
        if (fewest := min(each.samples)) < FEW_SAMPLES:
            blocks.append(Paragraph(f"Only {count(fewest, 'sample')}: small differences are chance."))
    if (left := len(compared) - SHOWN_MAX) > 0:
        blocks.append(Paragraph(f"{count(left, 'more comparison')} in the JSON report."))
    blocks.append(Abridged((Paragraph(NOTE, "soft"),)))
    return Section(
        "profile",
        "The server's processor time by function",
        tuple(blocks),
        data={"profiles": [_values(each) for each in compared]},
    )


def _unit(each: ProfilesCompared) -> str:
    return "us a query" if each.per_query else "%"


def _table(each: ProfilesCompared, level: str, baseline: str) -> Table:
    rows = tuple(
        (function.name, number(function.level), number(function.baseline), f"{function.difference:+.3g}")
        for function in each.functions[:FUNCTIONS_SHOWN]
    )
    headings = ("function, own time", f"{level}, {_unit(each)}", f"{baseline}, {_unit(each)}", "difference")
    return Table(f"Functions whose own time differs most, {level} against {baseline}", headings, rows)


def _values(each: ProfilesCompared) -> dict[str, Any]:
    """Return the comparison for programs; the folded stacks are in the run folder, ``profiles/TREATMENT.json``."""
    return {
        "level": each.comparison.level,
        "baseline": each.comparison.baseline,
        "unit": "us_per_query" if each.per_query else "percent",
        "samples_level": each.samples[0],
        "samples_baseline": each.samples[1],
        "level_time": each.root.level,
        "baseline_time": each.root.baseline,
        "functions": [
            {"function": function.name, "level": function.level, "baseline": function.baseline}
            for function in each.functions[:FUNCTIONS_MAX]
        ],
    }
