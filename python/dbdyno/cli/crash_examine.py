"""``dbdyno crash examine``: kept states recovered and verified once more."""

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from dbdyno.cli.crash_arguments import CUT_OR_ALL, RUN
from dbdyno.cli.end_of_run import INTERRUPTED
from dbdyno.cli.formats import JSON
from dbdyno.cli.options import HOSTS
from dbdyno.cli.printed import print_done, print_json
from dbdyno.errors import TrialError, UserError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from dbdyno.run.reexamine.examine import Examined, Examining, State


def examine(run: Path = RUN, cut: str = CUT_OR_ALL, hosts: Path | None = HOSTS, json_: bool = JSON) -> None:
    """Examine a kept state, or all, again: mount, check, server, verify; exits 1 where an outcome is another one."""
    from dbdyno.cli.crash_examined_text import all_as_dict, line_of, total_of
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
    from dbdyno.system.run_lock import alone_on_host, only_one

    if missing := lacking(examining=True):
        raise UserError("\n".join(one.said for one in missing))
    stack.enter_context(only_one("crash examine", wait=False, say=typer.echo))
    stack.enter_context(alone_on_host(wait=False, say=typer.echo))
    return here(run)


def _on_hosts(run: Path, states: "Sequence[State]", hosts: Path, stack: ExitStack) -> "Examining":
    from dbdyno.cli.standard_output import say
    from dbdyno.hosts.connect import connected
    from dbdyno.run.reexamine.examine import on_hosts
    from dbdyno.run.reexamine.program_workers import ExaminerAccess

    there = stack.enter_context(connected(hosts))
    return stack.enter_context(on_hosts(run, states, ExaminerAccess(there.hosts, there.why_lost, say)))


def _print_one(one: "Examined", *, json_: bool) -> None:
    from dataclasses import asdict

    from dbdyno.cli.crash_examined_text import UNCHECKED, examined_as_text

    if one.again is None:
        raise UserError(one.why) if one.is_damaged else TrialError(one.why)
    values = {"cut": one.name, "same_outcome": one.is_same, "checked": one.is_checked}
    values |= {"before": asdict(one.before), "again": asdict(one.again)}
    text = examined_as_text(one.name, one.before, one.again)
    print_done(text if one.is_checked else f"{text}\n{UNCHECKED}", values, json_=json_)
