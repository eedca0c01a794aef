"""Several runs read for one report."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

from dbdyno.errors import UserError

if TYPE_CHECKING:
    from dbdyno.analysis.analyse import Member
    from dbdyno.store.others import Budget
    from dbdyno.store.records import Run


def members(folders: list[Path]) -> list["Member"]:
    """Read and analyse each run, all within one budget. Raises ``UserError`` where a folder is given twice."""
    from dbdyno.analysis.analyse import Member, analyse, distinct_names
    from dbdyno.store.others import last_resort
    from dbdyno.store.series import read_analysed

    runs, budget = runs_in(folders)
    found = []
    for name, folder, run in zip(distinct_names([run.title for run in runs], folders), folders, runs, strict=True):
        with last_resort(folder):
            found.append(Member(name, run, analyse(run, **read_analysed(folder, run, budget))))
    return found


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
