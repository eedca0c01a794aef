"""The options that ``plan``, ``run`` and ``aa`` share: what overrules the study, and what may be done to the host."""

from typing import TYPE_CHECKING

import typer

from dbdyno.cli.ssh_note import note_ssh_config
from dbdyno.cli.values import folder_of, seconds_of, seed_of

if TYPE_CHECKING:
    from dbdyno.plan.stop_rule import StopOptions

BLOCKS = typer.Option(None, min=1, max=1000, help="Run so many blocks, neither more nor fewer.")
MAX_BLOCKS = typer.Option(None, min=6, max=1000, help="Stop after so many blocks at the latest.")
UNTIL_DECIDED = typer.Option(
    False,
    "--until-decided",
    help="Look after every block, stop when all is decided; with --resume, beyond any plan.",
)
SEED = typer.Option(None, parser=seed_of, metavar="<int>", help="For the same order again; else the study's, or drawn.")
BUDGET = typer.Option(None, metavar="TIME", help='Begin no block that would end after it, such as "2h".')
SCALE = typer.Option("", metavar="NAME", help="Run the study at one of its scales: the sections [scale.NAME.*] of it.")

INTO = typer.Option(
    None, parser=folder_of, metavar="<path>", help="The run folder to make; runs/NAME-DATE-TIME, if not given."
)
RESUME = typer.Option(False, "--resume", help="Go on with the run in that folder, same seed, same order.")
HTML = typer.Option(False, "--html", help="Write the HTML report into the run folder at the end.")
WAIT = typer.Option(False, "--wait", help="Wait for another run on this host to end.")
FRESH_IMAGES = typer.Option(False, "--fresh-images", help="Prepare all data anew, not from dbdyno images.")
KEEP_TRACES = typer.Option(
    False, "--keep-traces", help="Keep every request of each trial in the run folder, 256 MiB each at most."
)
HOSTS = typer.Option(
    None, "--hosts", metavar="FILE", help="Hosts that are up: see dbdyno hosts.", callback=note_ssh_config
)
ERASE = typer.Option([], metavar="SERIAL", help="Erase the real device with this serial, whatever it holds.")


def stop_options(
    blocks: int | None, max_blocks: int | None, budget: str | None, *, until_decided: bool
) -> "StopOptions":
    """What the options ask for. Raises ``UserError`` where they contradict each other."""
    from dbdyno.plan.stop_rule import StopOptions

    seconds = None if budget is None else seconds_of("--budget", budget)
    asked = StopOptions(blocks, max_blocks, seconds, until_decided)
    asked.check()
    return asked
