"""``dbdyno crash examine``: a kept state recovered and verified once more."""

from pathlib import Path

import typer

from dbdyno.cli.crash_arguments import CUT, RUN
from dbdyno.cli.formats import JSON
from dbdyno.cli.printed import print_done
from dbdyno.errors import UserError


def examine(run: Path = RUN, cut: str = CUT, json_: bool = JSON) -> None:
    """Examine a kept state again: mount, check, start the server, verify; exits 1 where the outcome is another one."""
    from dataclasses import asdict

    from dbdyno.cli.crash_examined_text import examined_as_text
    from dbdyno.run.kept_states import examine_again, lacking
    from dbdyno.store.cuts import cut_called, kept_folder
    from dbdyno.store.run_folder import read_run
    from dbdyno.system.run_lock import alone_on_host, only_one

    trial, before = cut_called(read_run(run), cut)
    state = kept_folder(run, trial, before)
    if missing := lacking(examining=True):
        raise UserError("\n".join(one.said for one in missing))
    with only_one("crash examine", wait=False, say=typer.echo), alone_on_host(wait=False, say=typer.echo):
        again = examine_again(run, state)
    same = again.outcome == before.outcome
    values = {"cut": cut, "same_outcome": same, "before": asdict(before), "again": asdict(again)}
    print_done(examined_as_text(cut, before, again), values, json_=json_)
    if not same:
        raise typer.Exit(1)
