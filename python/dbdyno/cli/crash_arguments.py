"""What the verbs of ``dbdyno crash`` are given, and what the shell offers for it."""

import typer

from dbdyno.cli.suggested_places import kept_cuts, run_folders

RUN = typer.Argument(metavar="RUN", help="The run folder.", autocompletion=run_folders)
CUT = typer.Argument(metavar="TRIAL/CUT", help="A cut whose state is kept.", autocompletion=kept_cuts)
CUT_OR_ALL = typer.Argument(
    "", metavar="[TRIAL/CUT]", help="A cut whose state is kept; all of them if not given.", autocompletion=kept_cuts
)
