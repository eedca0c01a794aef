"""``dbdyno run STUDY --into DIR``: run a study."""

from pathlib import Path

import typer

from dbdyno.cli.ending import BLOCKS, BUDGET, MAX_BLOCKS, SCALE, UNTIL_DECIDED, asked_for


def run(
    study: Path = typer.Argument(metavar="STUDY", help="The study file."),
    into: Path = typer.Option(..., help="The run folder to make."),
    resume: bool = typer.Option(False, "--resume", help="Go on with the run in that folder, same seed, same order."),
    scale: str = SCALE,
    seed: int | None = typer.Option(None, min=0, help="Overrules the study's seed."),
    blocks: int | None = BLOCKS,
    max_blocks: int | None = MAX_BLOCKS,
    until_decided: bool = UNTIL_DECIDED,
    budget: str | None = BUDGET,
    html: bool = typer.Option(False, "--html", help="Write the HTML report into the run folder at the end."),
    wait: bool = typer.Option(False, "--wait", help="Wait for another run on this host to end."),
    fresh_images: bool = typer.Option(False, "--fresh-images", help="Prepare all data anew, not from dbdyno images."),
    erase: list[str] = typer.Option(
        [], metavar="SERIAL", help="Erase the real device with this serial, whatever it holds."
    ),
) -> None:
    """Run a study; exits 0 when done, 1 when trials failed, 2 on a user's mistake, 130 when interrupted."""
    from dbdyno.cli.carry_out import carry_out, held, show_as_it_is
    from dbdyno.plan.ending import Ending
    from dbdyno.plan.plan import make_plan
    from dbdyno.resume import see_that_it_is_the_same
    from dbdyno.study.load import load_study

    asked = asked_for(blocks, max_blocks, budget, until_decided=until_decided)
    begun = held(into) if resume else None
    scale = scale or (begun.scale if begun else "")
    loaded = load_study(study, scale)
    if begun:
        ending = asked.going_on(Ending.of_run(begun.design), into)
        seed = begun.design.seed if seed is None else seed
    else:
        ending = asked.overruling(Ending.of_study(loaded.design))
    plan = make_plan(loaded, seed=seed, ending=ending)
    if begun and begun.stopped and not until_decided:
        see_that_it_is_the_same(plan, into)
        show_as_it_is(begun, into, html=html)
        return
    again = f"dbdyno run {study} --into {into}{f' --scale {scale}' if scale else ''}"
    carry_out(
        plan, into, resume=resume, erase=frozenset(erase), html=html, wait=wait, fresh_images=fresh_images, again=again
    )
