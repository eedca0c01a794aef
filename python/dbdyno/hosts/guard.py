"""``python -m dbdyno.hosts.guard``: puts this host back when its standard input ends, that is, when its agent does.

A process of its own, as the agent may be killed. It sleeps until then, and so costs a measured host nothing. It says
two lines: how work of this connection is known, and, at the end, what was undone.
"""

import json
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from dbdyno.errors import HostError
from dbdyno.stack.restore import leftovers, put_back
from dbdyno.stack.undo.actions import EndProcesses, RemoveTree
from dbdyno.stack.undo_log import Journal
from dbdyno.system.interrupt import Interrupted, interruptible
from dbdyno.system.state import make_state_folder, new_token

_WHAT = "programs that another machine's dbdyno started here"
_OUTPUT = 1
_GRACE_SECONDS = 10.0  # a dbdyno among it lowers its stack when it is asked to end


def main() -> None:
    """Say how work is known, wait, put back."""
    try:
        with interruptible(lambda _: None):  # a second signal does not disturb the putting back
            _tell(guard_host())
    except HostError as error:
        _tell({"failed": {"kind": "host", "text": str(error)}})


def guard_host() -> dict[str, Any]:
    """Hold the host until standard input ends; what was then undone. Raises ``HostError``."""
    token, undone = new_token(), list[str]()
    folder = make_state_folder() / "scratch" / token
    journal = Journal(_WHAT)
    whole = True
    try:
        work = EndProcesses(token, _WHAT, _GRACE_SECONDS)
        # The folder goes first: what would be started after that is refused (HostSide.start).
        with journal.undoing(work), journal.undoing(RemoveTree(str(folder))):
            folder.mkdir(parents=True, mode=0o700)
            _tell({"token": token, "folder": str(folder)})
            with suppress(Interrupted):
                sys.stdin.buffer.read()
            if journal.processes():
                undone.append(work.describe())
    except (HostError, OSError) as error:
        whole = False
        undone.append(str(error))
    finally:
        journal.close()
    return put_back_answer(undone, whole=put_back(undone.append, lambda _: None) and whole)


def put_back_answer(
    undone: Sequence[str], *, whole: bool, left: Sequence[str] = (), over: bool = True
) -> dict[str, Any]:
    """What is said of a host that was put back: see ``frames.PutBack``."""
    return {"undone": [*undone], "whole": whole, "left_alone": [*left], "over": over}


def guards_work(token: str) -> bool:
    """Whether a guard still has work of that token to put back."""
    undos = (undo for leftover in leftovers() for _, undo in leftover.undos)
    return bool(token) and any(isinstance(undo, EndProcesses) and undo.token == token for undo in undos)


def _tell(answer: dict[str, Any]) -> None:
    """A line to the agent, which may be gone."""
    with suppress(OSError):
        os.write(_OUTPUT, json.dumps(answer).encode() + b"\n")


if __name__ == "__main__":
    main()
