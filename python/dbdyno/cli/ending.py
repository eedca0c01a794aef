"""The options of ``plan`` and ``run`` that say how large a run is and when it stops; they overrule the study."""

from typing import TYPE_CHECKING

import typer

from dbdyno.cli.values import seconds_of

if TYPE_CHECKING:
    from dbdyno.plan.ending import Asked

BLOCKS = typer.Option(None, min=1, max=1000, help="Run so many blocks, neither more nor fewer.")
MAX_BLOCKS = typer.Option(None, min=6, max=1000, help="Stop after so many blocks at the latest.")
UNTIL_DECIDED = typer.Option(
    False,
    "--until-decided",
    help="Look after every block, stop when all is decided; with --resume, beyond any plan.",
)
BUDGET = typer.Option(None, metavar="TIME", help='Begin no block that would end after it, such as "2h".')
SCALE = typer.Option("", metavar="NAME", help="Run the study at one of its scales: the sections [scale.NAME.*] of it.")


def asked_for(blocks: int | None, max_blocks: int | None, budget: str | None, *, until_decided: bool) -> "Asked":
    """What the options ask for. Raises ``UserError`` where they contradict each other."""
    from dbdyno.plan.ending import Asked

    seconds = None if budget is None else seconds_of("--budget", budget)
    asked = Asked(blocks, max_blocks, seconds, until_decided)
    asked.check()
    return asked
