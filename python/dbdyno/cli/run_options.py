"""The options of ``run`` and ``aa`` alike: the run folder, its page, and what may be done to the host."""

import typer

from dbdyno.cli.values import folder_of

INTO = typer.Option(..., parser=folder_of, metavar="<path>", help="The run folder to make.")
RESUME = typer.Option(False, "--resume", help="Go on with the run in that folder, same seed, same order.")
HTML = typer.Option(False, "--html", help="Write the HTML report into the run folder at the end.")
WAIT = typer.Option(False, "--wait", help="Wait for another run on this host to end.")
FRESH_IMAGES = typer.Option(False, "--fresh-images", help="Prepare all data anew, not from dbdyno images.")
ERASE = typer.Option([], metavar="SERIAL", help="Erase the real device with this serial, whatever it holds.")
