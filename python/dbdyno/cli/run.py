"""``dbdyno run STUDY --into DIR``: run a study."""

from pathlib import Path

import typer


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
    from dbdyno.cli.carry_out import carry_out, held
    from dbdyno.plan.plan import make_plan
    from dbdyno.study.load import load_study

    loaded = load_study(study)
    held_seed, held_blocks = held(into) if resume else (None, None)
    plan = make_plan(loaded, seed=held_seed if seed is None else seed, blocks=blocks or held_blocks)
    again = f"dbdyno run {study} --into {into}"
    carry_out(plan, into, resume=resume, erase=frozenset(erase), html=html, again=again)
