"""``dbdyno runs``: the run folders there are, with what each found."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from dbdyno.cli.options import RUNS
from dbdyno.cli.output import JSON, print_json
from dbdyno.model.printable import one_line, short

if TYPE_CHECKING:
    from dbdyno.store.others import Budget


def runs(
    folder: Path = typer.Argument(RUNS, metavar="DIR", help="The folder that holds the run folders."),
    json_: bool = JSON,
) -> None:
    """List run folders, the latest first, with what each found."""
    from dbdyno.errors import UserError

    if not folder.is_dir():
        raise UserError(f"{folder} is not a folder; name the folder that holds your runs")
    summaries = sorted(_summaries(folder), key=lambda summary: str(summary["started_at"]), reverse=True)
    if json_:
        print_json(summaries)
        return
    for summary in summaries:
        elsewhere = ["not measured here"] if summary["measured_here"] is False else []
        words = summary["folder"], summary["started_at"][:16].replace("T", " "), summary["ended"], *elsewhere
        print("  ".join(map(one_line, words)) + "\n  " + one_line(summary["headline"]))
    if not summaries:
        typer.echo(f"no runs in {folder}", err=True)


def _summaries(folder: Path) -> Iterator[dict[str, Any]]:
    from dbdyno.store.others import Budget
    from dbdyno.store.run_folder import is_begun

    budget = Budget.of_a_list()
    for path in sorted(folder.iterdir()):
        if path.is_dir() and is_begun(path):
            yield {"folder": str(path), **_summary(path, budget)}


def _summary(path: Path, budget: "Budget") -> dict[str, Any]:
    """Return what a run's report says first, read and analysed as that does; why there is none where it can't be."""
    from dbdyno.analysis.analyse import analyse
    from dbdyno.errors import DbdynoError
    from dbdyno.report.sections import headline
    from dbdyno.report.source import Source
    from dbdyno.store.others import last_resort
    from dbdyno.store.run_folder import read_run
    from dbdyno.store.series import read_analysed

    try:
        with last_resort(path):
            run = read_run(path, budget=budget)
            analysis = analyse(run, **read_analysed(path, run, budget))
            headlined = headline.section(Source(run, analysis)).data["headline"] if run.trials else ""
    except (DbdynoError, OSError) as error:  # another's folder must not hide those beside it
        return _unreadable(str(error))
    started = min((trial.started_at for trial in run.trials), default="")
    headline_text = headlined if run.trials else "No trial was finished."
    about = {"title": run.title, "started_at": started, "ended": run.ended, "headline": headline_text}
    return {**about, "simulated": run.is_simulated, "measured_here": not run.imported}


def _unreadable(why: str) -> dict[str, Any]:
    return {"title": "", "started_at": "", "ended": "unreadable", "headline": short(why), "measured_here": None}
