"""A suite at a glance: which loads gained or lost, in the headline, as a picture, and as a table."""

from dbdyno.analysis.analyse import Analysis
from dbdyno.analysis.suite import SuiteFindings
from dbdyno.model.word import Word
from dbdyno.model.wording import capital, count, listed, margin_text, percent
from dbdyno.report.charts import heat_map
from dbdyno.report.document import Abridged, Cell, Chart, Paragraph, Section, Table
from dbdyno.report.source import Source, effect_values

COLUMNS_SAID_MAX = 3  # in the headline
WORST_SAID = 2  # loads that lost or gained most


def picture(analysis: Analysis) -> Chart | None:
    """Return the heat map of a suite; None of what is no suite."""
    suite = analysis.suite
    if suite is None:
        return None
    baselines = dict.fromkeys(baseline for _, baseline in suite.columns)
    against = f" against {next(iter(baselines))}" if len(baselines) == 1 else ""
    caption = f"{analysis.metric.words} in percent{against}; coloured where it is decided; each leads to its comparison"
    if any(cell and cell.differs_alone for load in suite.loads for cell in load.cells):
        caption += "; a broken rim: different if its load were the only one"
    return heat_map.chart(suite, capital(caption))


def sentences(analysis: Analysis) -> list[str]:
    """Return the answer of a suite: how many loads each level won and lost, and the worst; none of what is no suite."""
    suite = analysis.suite
    if suite is None or not analysis.blocks.trials:
        return []
    said = [_of_column(suite, place, analysis) for place in range(min(len(suite.columns), COLUMNS_SAID_MAX))]
    left = len(suite.columns) - len(said)
    return [*said, *([f"{count(left, 'other level')}: see the picture."] if left else [])]


def _of_column(suite: SuiteFindings, place: int, analysis: Analysis) -> str:
    level, baseline = suite.columns[place]
    cells = suite.cells_in(place)
    is_first = place == 0 or suite.columns[0][1] != baseline or len(suite.cells_in(0)) != len(cells)
    among = f"Among {count(len(cells), 'load')}, " if len(cells) > 1 else ""
    subject = f"{among}{level} against {baseline}" if is_first else level
    clauses = []
    for word in (Word.SLOWER, Word.FASTER):
        its = [(name, cell) for name, cell in cells if cell.finding.verdict is word]
        if its:
            its.sort(key=lambda pair: -abs(pair[1].finding.effect.value))
            most = listed([f"{name} ({percent(cell.finding.effect.value)})" for name, cell in its[:WORST_SAID]])
            clauses.append(f"{word} in {len(its)}, most in {most}" if len(its) > WORST_SAID else f"{word} in {most}")
    alike = [name for name, cell in cells if cell.finding.verdict is Word.EQUIVALENT]
    open_ = [name for name, cell in cells if cell.finding.verdict.is_open]
    for what, names in ((f"equivalent within {margin_text(analysis.margin)}", alike), ("undecided", open_)):
        clauses += [f"{what} in {names[0] if len(names) == 1 else len(names)}"] if names else []
    return f"{subject} is {'; '.join(clauses)}."


def section(source: Source) -> Section | None:
    """Return the table of a suite, which a page has as a picture; None of what is no suite."""
    suite = source.analysis.suite
    if suite is None:
        return None
    headings = ("load", "group", *(f"{level} against {baseline}" for level, baseline in suite.columns))
    rows = tuple(
        (
            load.name,
            load.group,
            *(Cell(heat_map.cell_text(cell), cell.finding.verdict) if cell else "" for cell in load.cells),
        )
        for load in suite.loads
    )
    table = Table("Loads by what was compared, in percent", headings, rows, words=(1,))
    note = Paragraph("Loads, in percent; a word holds for all comparisons of the suite together.", "soft")
    data = {
        "suite": {
            "columns": [{"level": level, "baseline": baseline} for level, baseline in suite.columns],
            "loads": [
                {
                    "load": load.name,
                    "group": load.group,
                    "cells": [
                        {
                            **effect_values(cell.finding.effect),
                            "verdict": cell.finding.verdict,
                            "different_in_its_load_alone": cell.differs_alone,
                            "level_id": cell.finding.level_id,
                            "baseline_id": cell.finding.baseline_id,
                        }
                        if cell
                        else None
                        for cell in load.cells
                    ],
                }
                for load in suite.loads
            ],
        }
    }
    return Section("suite", "", (Abridged((), (note, table), ()),), data=data)
