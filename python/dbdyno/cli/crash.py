"""``dbdyno crash``: the power cuts of a run, one by one, and the states that are kept of them."""

from pathlib import Path

import typer

from dbdyno.cli.crash_arguments import RUN
from dbdyno.cli.crash_examine import examine
from dbdyno.cli.crash_keep import keep
from dbdyno.cli.formats import JSON
from dbdyno.cli.printed import print_json
from dbdyno.model.printable import printable

app = typer.Typer(help="Power cuts of a run: list them, look at a state that was kept.", rich_markup_mode=None)
app.command("keep")(keep)
app.command("examine")(examine)


@app.command("list")
def list_(
    run: Path = RUN,
    lost: bool = typer.Option(False, "--lost", help="Only cuts that lost something."),
    kept: bool = typer.Option(False, "--kept", help="Only cuts whose state is kept."),
    json_: bool = JSON,
) -> None:
    """List the cuts of a run: when, what survived, the outcome and its cause, the seed, whether the state is kept."""
    from dbdyno.cli.crash_text import cut_as_dict, cuts_as_text
    from dbdyno.store.cuts import cuts_of
    from dbdyno.store.others import last_resort
    from dbdyno.store.run_folder import read_run

    with last_resort(run):
        held = read_run(run)
        found = [(trial, cut) for trial, cut in cuts_of(held) if (cut.is_loss or not lost) and (cut.kept or not kept)]
        if json_:
            print_json({"run": str(run), "cuts": [cut_as_dict(held, trial, cut) for trial, cut in found]})
        else:
            print(printable(cuts_as_text(held, found), keep="\n"))
