"""How every verb shows a run folder: the report in the format that was asked for, and its page."""

import shlex
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from dbdyno.cli.crash_run_beside import crash_run_beside
from dbdyno.cli.formats import Format
from dbdyno.cli.page_file import write_page
from dbdyno.cli.printed import print_document

if TYPE_CHECKING:
    from dbdyno.analysis.analyse import Analysis
    from dbdyno.report.document import Document
    from dbdyno.store.records import Run


@dataclass(frozen=True)
class Shown:
    """What was printed, and the runs that it is made of, in the order of their folders."""

    document: "Document"
    runs: "list[tuple[Run, Analysis]]"


def say_where_the_rest_is(command: str, *, html: bool) -> None:
    """Say how to see what a report in brief leaves out, aside, for a report is the same wherever its folder is."""
    typer.echo(f"More: {command} --details{'' if html else '; as a page: --html FILE'}", err=True)


def show(
    folder: Path,
    format_: Format = Format.TEXT,
    html: Path | None = None,
    *,
    every_pair: bool = False,
    prices: Path | None = None,
    safety: Path | None = None,
    details: bool = False,
) -> Shown:
    """Print the result of a run folder, with ``details`` all of its report; with ``html`` write its page there too.

    ``safety`` is the folder of a crash run of the same treatments.
    """
    from dbdyno.analysis.analyse import analyse
    from dbdyno.analysis.verdict.pairs import pairs_not_planned
    from dbdyno.report.charts.timeseries import columns_drawn
    from dbdyno.report.contents import document
    from dbdyno.store.others import Budget, last_resort
    from dbdyno.store.run_folder import read_run
    from dbdyno.store.series import read_analysed_and

    budget = Budget()
    with last_resort(folder):
        run = read_run(folder, budget=budget)
    if prices is not None:
        from dbdyno.plan.prices import prices_for
        from dbdyno.study.load import load_study

        run = replace(run, prices=prices_for(load_study(prices), run))
    if every_pair and not pairs_not_planned(run.design):
        typer.echo("the study plans every pair: its verdicts are those of all of them", err=True)
    brief = format_ is Format.TEXT and not (details or every_pair or prices)
    with last_resort(folder, *([] if safety is None else [safety])):
        drawn = columns_drawn() if html is not None else {}
        analysed, series = read_analysed_and(folder, run, drawn, budget)
        analysis = analyse(run, each_pair=every_pair, **analysed)
        found = document(run, analysis, series, beside=crash_run_beside(run, safety, budget))
        print_document(found, format_, brief=brief)
        if brief:
            typer.echo()
        if html is not None:
            write_page(html, found, aside=format_ is not Format.TEXT)
    if brief:
        beside = [] if safety is None else ["--safety", str(safety)]
        say_where_the_rest_is(shlex.join(["dbdyno", "report", str(folder), *beside]), html=html is not None)
    return Shown(found, [(run, analysis)])


def show_several(folders: list[Path], format_: Format, html: Path | None, *, details: bool) -> Shown:
    """Print the ranking over the runs and each one's verdicts; with ``html`` write the page of all of them too."""
    from dbdyno.analysis.analyse import together
    from dbdyno.cli.members import members
    from dbdyno.report.several import document
    from dbdyno.store.others import last_resort

    runs = members(folders)
    brief = format_ is Format.TEXT and not details
    with last_resort(*folders):
        found = document(together(runs))
        print_document(found, format_, brief=brief)
        if html is not None:
            write_page(html, found, aside=format_ is not Format.TEXT)
    if brief:
        say_where_the_rest_is("the same with", html=html is not None)
    return Shown(found, [(one.run, one.analysis) for one in runs])
