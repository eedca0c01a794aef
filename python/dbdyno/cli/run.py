"""``dbdyno run STUDY --into DIR``: run a study."""

from pathlib import Path

import typer

from dbdyno.cli.report import show
from dbdyno.errors import UserError

TRIALS_FAILED, INTERRUPTED = 1, 130


def run(
    study: Path = typer.Argument(metavar="STUDY", help="The study file."),
    into: Path = typer.Option(..., help="The run folder to make."),
    resume: bool = typer.Option(False, "--resume", help="Go on with the run in that folder, same seed, same order."),
    seed: int | None = typer.Option(None, min=0, help="Overrules the study's seed."),
    blocks: int | None = typer.Option(None, min=1, help="Overrules the study's number of blocks."),
    html: bool = typer.Option(False, "--html", help="Write the HTML report into the run folder at the end."),
    erase: list[str] = typer.Option(
        [], metavar="SERIAL", help="Erase the real device with this serial, whatever it holds."
    ),
) -> None:
    """Run a study; exits 0 when done, 1 when trials failed, 2 on a user's mistake, 130 when interrupted."""
    from dbdyno.cli.progress import TerminalProgress
    from dbdyno.needs import unmet_needs
    from dbdyno.plan.plan import make_plan
    from dbdyno.provenance import host_facts, versions
    from dbdyno.runner import open_run, run_all
    from dbdyno.stack.capabilities import nothing_left_over
    from dbdyno.study.load import load_study

    loaded = load_study(study)
    held_seed, held_blocks = _held(into) if resume else (None, None)
    plan = make_plan(loaded, seed=held_seed if seed is None else seed, blocks=blocks or held_blocks)
    lacking = unmet_needs(plan, frozenset(erase))
    if lacking:
        raise UserError("\n".join(f"{one.name}: {one.detail}; {one.remedy}" for one in lacking))
    leftover = nothing_left_over()
    with TerminalProgress(plan.seconds_per_trial()) as progress:
        if not leftover.ok:
            progress.say(f"warning: {leftover.detail} and left things on this host; {leftover.remedy} puts it back")
        for warning in plan.warnings():
            progress.say(f"warning: {warning}")
        folder = open_run(plan, into, resume=resume, versions=versions(plan), host=host_facts())
        try:
            outcome = run_all(plan, folder, progress, frozenset(erase))
        finally:
            folder.close()
    show(into, html=into / "report.html" if html else None)
    if outcome.how == "interrupted":
        typer.echo(f"interrupted; to go on: dbdyno run {study} --into {into} --resume", err=True)
        raise typer.Exit(INTERRUPTED)
    if outcome.failures:
        raise typer.Exit(TRIALS_FAILED)


def _held(into: Path) -> tuple[int | None, int | None]:
    """Seed and blocks of the run to go on with; a run that was killed before it wrote them is begun anew."""
    from dbdyno.store.run_folder import read_run

    if not into.is_dir():
        raise UserError(f"{into} does not exist, so there is nothing to go on with; leave out --resume")
    if not (into / "run.toml").exists():
        return None, None
    design = read_run(into).design
    return design.seed, design.blocks
