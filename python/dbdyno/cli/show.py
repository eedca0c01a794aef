"""How every verb shows a run folder: the report in the format that was asked for, and its page."""

import os
import shlex
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from dbdyno.cli.options import path_of
from dbdyno.cli.output import Format, print_document, write_page
from dbdyno.cli.suggestions import run_folders
from dbdyno.errors import UserError

if TYPE_CHECKING:
    from dbdyno.analysis.analyse import Analysis, Member
    from dbdyno.report.document import Document
    from dbdyno.report.source import CrashRunBeside
    from dbdyno.run.execute import RunOutcome
    from dbdyno.store.others import Budget
    from dbdyno.store.records import Run


# The crash run that a speed run's report takes its safety from: ``report DIR --safety CRASH``.


SAFETY = typer.Option(
    None,
    "--safety",
    parser=path_of,
    metavar="DIR",
    help="A crash run of the same treatments: its safety beside this run's speed.",
    autocompletion=run_folders,
)


def crash_run_beside(run: "Run", folder: Path | None, budget: "Budget") -> "CrashRunBeside | None":
    """Read it, where one was named. Raises ``UserError`` where it has no cuts, or other treatments."""
    if folder is None:
        return None
    from dbdyno.analysis.safety import joined
    from dbdyno.report.source import CrashRunBeside
    from dbdyno.store.run_folder import read_run

    crash = read_run(folder, budget=budget)
    return CrashRunBeside(crash, joined(run, crash))


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
    from dbdyno.store.profiles import read_profiles
    from dbdyno.store.run_folder import read_run
    from dbdyno.store.series import read_analysed_and

    budget = Budget()
    with last_resort(folder):
        run = read_run(folder, budget=budget)
    if prices is not None:
        from dbdyno.plan.plan import prices_for
        from dbdyno.study.load import load_study

        run = replace(run, prices=prices_for(load_study(prices), run))
    if every_pair and not pairs_not_planned(run.design):
        typer.echo("the study plans every pair: its verdicts are those of all of them", err=True)
    brief = format_ is Format.TEXT and not (details or every_pair or prices)
    with last_resort(folder, *([] if safety is None else [safety])):
        drawn = columns_drawn(run) if html is not None else {}
        analysed, series = read_analysed_and(folder, run, drawn, budget)
        analysis = analyse(run, each_pair=every_pair, **analysed)
        profiles = read_profiles(folder, [treatment.id for treatment in run.design.treatments])
        report = document(run, analysis, series, beside=crash_run_beside(run, safety, budget), profiles=profiles)
        print_document(report, format_, brief=brief)
        if brief:
            typer.echo()
        if html is not None:
            write_page(html, report, aside=format_ is not Format.TEXT)
    if brief:
        beside = [] if safety is None else ["--safety", str(safety)]
        say_where_the_rest_is(shlex.join(["dbdyno", "report", str(folder), *beside]), html=html is not None)
    return Shown(report, [(run, analysis)])


def show_several(folders: list[Path], format_: Format, html: Path | None, *, details: bool) -> Shown:
    """Print the ranking over the runs and each one's verdicts; with ``html`` write the page of all of them too."""
    from dbdyno.analysis.analyse import together
    from dbdyno.report.several import document
    from dbdyno.store.others import last_resort

    runs = members(folders)
    brief = format_ is Format.TEXT and not details
    with last_resort(*folders):
        report = document(together(runs))
        print_document(report, format_, brief=brief)
        if html is not None:
            write_page(html, report, aside=format_ is not Format.TEXT)
    if brief:
        say_where_the_rest_is("the same with", html=html is not None)
    return Shown(report, [(member.run, member.analysis) for member in runs])


# Several runs read for one report.


def members(folders: list[Path]) -> list["Member"]:
    """Read and analyse each run, all within one budget. Raises ``UserError`` where a folder is given twice."""
    from dbdyno.analysis.analyse import Member, analyse, distinct_names
    from dbdyno.store.others import last_resort
    from dbdyno.store.series import read_analysed

    runs, budget = runs_in(folders)
    analysed_members = []
    for name, folder, run in zip(distinct_names([run.title for run in runs], folders), folders, runs, strict=True):
        with last_resort(folder):
            analysed_members.append(Member(name, run, analyse(run, **read_analysed(folder, run, budget))))
    return analysed_members


def runs_in(folders: list[Path]) -> "tuple[list[Run], Budget]":
    """Read each run but its series, and return what is left of the command's budget for these.

    Raises ``UserError`` where a folder is given twice, or can't be read.
    """
    from dbdyno.store.others import Budget, last_resort
    from dbdyno.store.run_folder import read_run

    each_once(folders)
    budget, runs = Budget(), []
    for folder in folders:
        with last_resort(folder):
            runs.append(read_run(folder, budget=budget))
    return runs, budget


def each_once(folders: list[Path]) -> None:
    """Raises ``UserError`` where a folder is given twice."""
    if len({os.path.realpath(folder) for folder in folders}) < len(folders):  # a link to itself has one, too
        raise UserError("a run folder is given twice; its blocks would count twice")


# How every verb that runs trials ends: the report, and the right exit code.


TRIALS_FAILED, INTERRUPTED = 1, 130


def end_of_run(outcome: "RunOutcome", into: Path, format_: Format, *, html: bool, details: bool, again: str) -> None:
    """Print the report; ``again`` is the command that would go on with the run.

    Raises:
        typer.Exit: The run was interrupted, a threshold of the study is crossed, or a trial failed.

    """
    from dbdyno.analysis.advice import wants_more_blocks

    shown = show(into, format_, html=into / "report.html" if html else None, details=details)
    if outcome.how == "interrupted":
        typer.echo(f"interrupted; to go on: {again} --resume", err=True)
        raise typer.Exit(INTERRUPTED)
    if any(wants_more_blocks(analysis.advice) for _, analysis in shown.runs):
        typer.echo(f"To go on: {again} --resume --until-decided", err=True)
    exit_by_thresholds(shown)
    if outcome.failures:
        raise typer.Exit(TRIALS_FAILED)


def exit_by_thresholds(shown: Shown) -> None:
    """Raises ``typer.Exit`` with 3 where a threshold of a study is crossed, with 4 where one could not be judged."""
    if codes := {analysis.thresholds.exit_code for _, analysis in shown.runs if analysis.thresholds} - {0}:
        raise typer.Exit(min(codes))
