"""Several runs read for one report."""

from pathlib import Path
from typing import TYPE_CHECKING

from dbdyno.errors import UserError

if TYPE_CHECKING:
    from dbdyno.analysis.analyse import Member


def members(folders: list[Path]) -> list["Member"]:
    """Read and analyse each run. Raises ``UserError`` where a folder is given twice."""
    from dbdyno.analysis.analyse import Member, analyse, distinct_names
    from dbdyno.store.run_folder import read_run
    from dbdyno.store.series import read_analysed

    each_once(folders)
    runs = [read_run(folder) for folder in folders]
    named = zip(distinct_names([run.title for run in runs], folders), folders, runs, strict=True)
    return [Member(name, run, analyse(run, **read_analysed(folder, run))) for name, folder, run in named]


def each_once(folders: list[Path]) -> None:
    """Raises ``UserError`` where a folder is given twice."""
    if len({folder.resolve() for folder in folders}) < len(folders):
        raise UserError("a run folder is given twice; its blocks would count twice")
