"""``dbdyno plan STUDY``: what a run would do. Changes nothing."""

from pathlib import Path

import typer

from dbdyno.errors import UserError


def plan(
    study: Path = typer.Argument(metavar="STUDY", help="The study file."),
    seed: int | None = typer.Option(None, min=0, help="Overrules the study's seed."),
    blocks: int | None = typer.Option(None, min=1, help="Overrules the study's number of blocks."),
    erase: list[str] = typer.Option(
        [], metavar="SERIAL", help="Plan to erase the real device with this serial, whatever it holds."
    ),
    json_: bool = typer.Option(False, "--json", help="Print JSON."),
) -> None:
    """Show treatments, blocks, order, time, what will be touched, and whether this host can do it."""
    from dbdyno.cli.plan_text import plan_as_dict, plan_as_text
    from dbdyno.needs import unmet_needs
    from dbdyno.plan.plan import make_plan
    from dbdyno.study.load import load_study

    made = make_plan(load_study(study), seed=seed, blocks=blocks)
    lacking = unmet_needs(made, frozenset(erase))
    if json_:
        import json

        print(json.dumps(plan_as_dict(made, lacking), indent=1))
    else:
        print(plan_as_text(made, lacking))
    if lacking:
        raise UserError("this host can't run the study as it is; see above")
