"""What every verb that runs trials does with its plan: check, warn, run, report, end with the right code."""

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from dbdyno.cli.report import Format, show
from dbdyno.errors import UserError
from dbdyno.plan.plan import Plan

if TYPE_CHECKING:
    from dbdyno.store.records import Run

TRIALS_FAILED, INTERRUPTED = 1, 130


def carry_out(
    plan: Plan,
    into: Path,
    *,
    resume: bool,
    erase: frozenset[str],
    html: bool,
    wait: bool,
    fresh_images: bool,
    again: str,
    format_: Format = Format.TEXT,
) -> None:
    """Run a plan and print its report; ``again`` is the command that would go on with it.

    Raises:
        UserError: This host can't run the plan, or another run is going on and it was not told to ``wait``; nothing was
            touched.
        typer.Exit: A trial failed, or the run was interrupted.

    """
    from dbdyno.cli.progress import TerminalProgress
    from dbdyno.lock import alone_on_host, only_one
    from dbdyno.needs import unmet_needs
    from dbdyno.provenance import host_facts, versions
    from dbdyno.resume import open_run
    from dbdyno.runner import run_all
    from dbdyno.stack.capabilities import nothing_left_over

    lacking = unmet_needs(plan, erase)
    if lacking:
        raise UserError("\n".join(f"{one.name}: {one.detail}; {one.remedy}" for one in lacking))
    with (
        TerminalProgress(len(plan.specs), plan.seconds_per_trial()) as progress,
        only_one(f"run {plan.study.path} into {into}", wait=wait, say=progress.say),
        alone_on_host(wait=wait, say=progress.say),
    ):
        leftover = nothing_left_over()
        if not leftover.ok:
            progress.say(f"warning: {leftover.detail} and left things on this host; {leftover.remedy} puts it back")
        for warning in plan.warnings():
            progress.say(f"warning: {warning}")
        folder = open_run(plan, into, resume=resume, versions=versions(plan), host=host_facts(plan))
        try:
            outcome = run_all(plan, folder, progress, erase, fresh_images=fresh_images)
        finally:
            folder.close()
    show(into, format_, html=into / "report.html" if html else None)
    if outcome.how == "interrupted":
        typer.echo(f"interrupted; to go on: {again} --resume", err=True)
        raise typer.Exit(INTERRUPTED)
    if outcome.failures:
        raise typer.Exit(TRIALS_FAILED)


def held(into: Path) -> "Run | None":
    """The run to go on with; one that was killed before it wrote its header is begun anew."""
    from dbdyno.store.run_folder import read_run

    if not into.is_dir():
        raise UserError(f"{into} does not exist, so there is nothing to go on with; leave out --resume")
    return read_run(into) if (into / "run.toml").exists() else None


def show_as_it_is(run: "Run", into: Path, *, html: bool) -> None:
    """Say that a run has ended for good and why, and print its report."""
    from dbdyno.analysis.analyse import analyse
    from dbdyno.report.stopped import why_it_stopped

    typer.echo(f"nothing to do: {into} is finished. {why_it_stopped(run, analyse(run))}", err=True)
    typer.echo("to go on beyond its plan: --resume --until-decided", err=True)
    show(into, html=into / "report.html" if html else None)
