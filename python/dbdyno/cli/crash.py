"""``dbdyno crash``: the power cuts of a run, one by one, and the states that are kept of them."""

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from dbdyno.cli.options import HOSTS
from dbdyno.cli.output import JSON, print_done, print_json
from dbdyno.cli.show import INTERRUPTED
from dbdyno.cli.suggestions import kept_cuts, run_folders
from dbdyno.errors import TrialError, UserError
from dbdyno.model.printable import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from dbdyno.run.reexamine.examine import Examined, Examining, State


# What the verbs of ``dbdyno crash`` are given, and what the shell offers for it.


RUN = typer.Argument(metavar="RUN", help="The run folder.", autocompletion=run_folders)
CUT = typer.Argument(metavar="TRIAL/CUT", help="A cut whose state is kept.", autocompletion=kept_cuts)
CUT_OR_ALL = typer.Argument(
    "", metavar="[TRIAL/CUT]", help="A cut whose state is kept; all of them if not given.", autocompletion=kept_cuts
)


# ``dbdyno crash examine``: kept states recovered and verified once more.


def examine(run: Path = RUN, cut: str = CUT_OR_ALL, hosts: Path | None = HOSTS, json_: bool = JSON) -> None:
    """Examine a kept state, or all, again: mount, check, server, verify; exits 1 where an outcome is another one."""
    from dbdyno.cli.crash_text import all_as_dict, line_of, total_of
    from dbdyno.run.reexamine.examine import State, kept_states
    from dbdyno.store.cuts import cut_called, kept_folder
    from dbdyno.store.others import last_resort
    from dbdyno.store.run_folder import read_run

    with last_resort(run):
        held = read_run(run)
    if cut:
        trial, before = cut_called(held, cut)
        (found,) = _all(run, [State(cut, before, kept_folder(run, trial, before))], hosts, lambda _: None)
        _print_one(found, json_=json_)
        same = found.is_same
    else:
        each = _all(run, kept_states(run, held), hosts, lambda one: None if json_ else print(line_of(one), flush=True))
        print_json(all_as_dict(str(run), each)) if json_ else print(total_of(each))
        same = all(one.is_same for one in each)
    if not same:
        raise typer.Exit(1)


def _all(
    run: Path, states: "Sequence[State]", hosts: Path | None, shown: "Callable[[Examined], None]"
) -> "list[Examined]":
    """What is found on each, here or on hosts; ``shown`` has each as soon as it and those before it are known."""
    from dbdyno.system.interrupt import Interrupted

    found: list[Examined] = []
    if not states:
        return found
    try:
        with ExitStack() as stack:
            examining = _on_hosts(run, states, hosts, stack) if hosts else _here(run, stack)
            for one in examining(states):
                shown(one)
                found.append(one)
    except Interrupted:
        raise typer.Exit(INTERRUPTED) from None
    return found


def _here(run: Path, stack: ExitStack) -> "Examining":
    from dbdyno.run.kept_states import lacking
    from dbdyno.run.reexamine.examine import here
    from dbdyno.system.locks import alone_on_host, only_one

    if missing := lacking(examining=True):
        raise UserError("\n".join(one.said for one in missing))
    stack.enter_context(only_one("crash examine", wait=False, say=typer.echo))
    stack.enter_context(alone_on_host(wait=False, say=typer.echo))
    return here(run)


def _on_hosts(run: Path, states: "Sequence[State]", hosts: Path, stack: ExitStack) -> "Examining":
    from dbdyno.cli.output import say
    from dbdyno.hosts.connect import connected
    from dbdyno.run.reexamine.examine import on_hosts
    from dbdyno.run.reexamine.program_workers import ExaminerAccess

    there = stack.enter_context(connected(hosts))
    return stack.enter_context(on_hosts(run, states, ExaminerAccess(there.hosts, there.why_lost, say)))


def _print_one(one: "Examined", *, json_: bool) -> None:
    from dataclasses import asdict

    from dbdyno.cli.crash_text import UNCHECKED, examined_as_text

    if one.again is None:
        raise UserError(one.why) if one.is_damaged else TrialError(one.why)
    values = {"cut": one.name, "same_outcome": one.is_same, "checked": one.is_checked}
    values |= {"before": asdict(one.before), "again": asdict(one.again)}
    text = examined_as_text(one.name, one.before, one.again)
    print_done(text if one.is_checked else f"{text}\n{UNCHECKED}", values, json_=json_)


# ``dbdyno crash keep``: a state that a run has kept, as a raw image to be looked at by hand.


def keep(
    run: Path = RUN,
    cut: str = CUT,
    folder: Path = typer.Argument(metavar="FOLDER", help="A new folder, or one without a disk.img."),
    json_: bool = JSON,
) -> None:
    """Copy a kept state out as a raw image, FOLDER/disk.img, and say how to mount it by hand."""
    from dbdyno.cli.crash_text import UNCHECKED, image_as_text
    from dbdyno.run.kept_states import copy_out, lacking, spec_of
    from dbdyno.store.cuts import cut_called, kept_folder
    from dbdyno.store.others import last_resort
    from dbdyno.store.run_folder import read_run

    with last_resort(run):
        trial, found = cut_called(read_run(run), cut)
    state = kept_folder(run, trial, found)
    if missing := lacking(examining=False):
        raise UserError("\n".join(one.said for one in missing))
    spec = spec_of(run, trial.treatment)
    folder.mkdir(parents=True, exist_ok=True)
    image = copy_out(state, spec.stack.device, folder)
    filesystem = spec.stack.filesystem or ""
    values = {"image": str(image), "filesystem": filesystem, "cut": cut, "outcome": found.outcome}
    text = image_as_text(image, filesystem, cut, found)
    is_checked = bool(found.kept_sha256)
    print_done(text if is_checked else f"{text}\n{UNCHECKED}", {**values, "checked": is_checked}, json_=json_)


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
